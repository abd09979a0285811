"""Programs that serve a page, as children of a test."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType

PATIENCE = 90.0  # for a page to be there, or a program to end, on a machine with much else to do [s]
VIEW = (sys.executable, "-m", "sinew", "view")


class Program:
    """A program that prints the address of its page; killed at the end at the latest.

    Attributes
    ----------
    address : str
        Of the page.
    """

    def __init__(self, *arguments: str | Path) -> None:
        self._output = tempfile.TemporaryFile("w+")  # noqa: SIM115  (closed by __exit__)
        self._process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=self._output, stderr=self._output)
        self.address = ""

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def output(self) -> str:
        """Return what it has printed so far."""
        self._output.seek(0)
        return self._output.read()

    def wait_for_address(self) -> None:
        """Wait until it has printed an address."""
        until = time.monotonic() + PATIENCE
        while not (found := re.search(r"http://[^\s│]+", self.output())):
            assert self._process.poll() is None, f"ended with status {self._process.returncode}: {self.output()}"
            assert time.monotonic() < until, f"no address within {PATIENCE:g} s: {self.output()}"
            time.sleep(0.05)
        self.address = found[0]

    def send(self, by: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(by)

    def wait(self) -> int:
        """Return its status once it has ended."""
        return self._process.wait(PATIENCE)

    def __enter__(self) -> Program:
        try:
            self.wait_for_address()
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._kill()
                if kind is None:
                    raise
        if kind is not None:
            print(f"the program printed:\n{self.output()}")
        self._output.close()

    def _kill(self) -> None:
        self._process.kill()
        self._process.wait()


def sinew_view(*arguments: str | Path) -> Program:
    """Start ``sinew view`` on a free port."""
    return Program(*VIEW, "--port", "0", *arguments)
