"""Processes in tests: their memory, examples, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def resident() -> int:
    """Return the resident memory of this process [bytes]."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def run_example(
    script: Path, *arguments: str | Path, folder: Path | None = None, limit: float = 300.0
) -> subprocess.CompletedProcess[str]:
    """Run an example that draws without a screen, in a folder, for at most so long [s]; return what came of it."""
    return subprocess.run(
        [sys.executable, script, *arguments],
        cwd=folder,
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        timeout=limit,
        check=False,
    )


def interrupt(program: str, case: str, wait: float) -> None:
    """Send SIGINT to a program in a call, which has to end, and to go on after it.

    It prints "ready", `wait` seconds [s] after which the signal comes; "interrupted" and the time of its monotonic
    clock; "goes on".
    """
    # Where the tests run in a shell's background SIGINT is ignored, by children too.
    heard = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    child = subprocess.Popen(
        [sys.executable, "-c", heard + program, case], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(wait)
        sent = time.monotonic()
        child.send_signal(signal.SIGINT)
        word, when = child.stdout.readline().split()
        assert word == "interrupted"
        print(f"{case} ended {float(when) - sent:.3f} s after SIGINT")
        assert child.stdout.readline() == "goes on\n"
        assert child.wait(60) == 0
    finally:
        child.kill()
        child.wait()
