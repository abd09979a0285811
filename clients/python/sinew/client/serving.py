"""A daemon of one's own, for as long as it is wanted."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sinew.errors import ArgumentError, StateError, TimedOutError
from sinew.files import program as installed

if TYPE_CHECKING:
    from sinew.client.asynchronous import AsyncClient
    from sinew.client.blocking import Client

__all__ = ["Daemon", "serve"]

Folders = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_SOCKET = "sinewd.sock"
_PATIENCE = 5.0  # from SIGTERM to SIGKILL [s]
_LONGEST_PATH = 80  # of the folder: a socket's path may have 107 bytes


class Daemon:
    """A private daemon, as `serve` starts it. A context manager, which stops it.

    Attributes
    ----------
    endpoint : str
        Address for requests.
    pid : int
        Its process.
    folder : pathlib.Path
        Temporary, with the socket and the log; removed when it stops.
    """

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self._process = process
        self._owner = os.getpid()
        self.folder = folder
        self.endpoint = f"ipc://{folder}/{_SOCKET}"
        self.pid = process.pid
        atexit.register(self.stop)

    @property
    def running(self) -> bool:
        """Whether its process is there."""
        return self._process.poll() is None

    def log(self) -> str:
        """Return what it has logged; empty once it is stopped."""
        try:
            return (self.folder / "log").read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def client(self, timeout: float = 10.0, retries: int = 0) -> Client:
        """Return a new client of it."""
        from sinew.client.blocking import Client

        return Client(self.endpoint, timeout, retries)

    def async_client(self, timeout: float = 10.0, retries: int = 0) -> AsyncClient:
        """Return a new client of it for asyncio, to be connected by ``async with``."""
        from sinew.client.asynchronous import AsyncClient

        return AsyncClient(self.endpoint, timeout, retries)

    def stop(self) -> None:
        """Stop it: by SIGTERM, after 5 s by SIGKILL. Its folder is removed. A second call does nothing."""
        atexit.unregister(self.stop)
        if self._owner != os.getpid():
            return  # a child of fork()
        if self.running:
            self._process.terminate()
            try:
                self._process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Daemon:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.pid} at {self.endpoint}>"

    def _await(self, timeout: float) -> None:
        """Wait until it answers."""
        until = time.monotonic() + timeout
        while self.running and time.monotonic() < until:
            if not (self.folder / _SOCKET).exists():
                time.sleep(0.002)
                continue
            with contextlib.suppress(TimedOutError), self.client(timeout=1.0):
                return
        if self.running:
            raise TimedOutError(f"sinewd did not answer within {timeout:g} s:\n{self.log()}")
        raise StateError(f"sinewd ended with status {self._process.returncode}:\n{self.log()}")


def serve(
    *,
    tasks: Folders | None = None,
    models: Folders | None = None,
    threads: int = 0,
    device: str = "cpu",
    settings: Mapping[str, Any] | None = None,
    program: str | os.PathLike[str] | None = None,
    timeout: float = 20.0,
) -> Daemon:
    """Start a private daemon and wait until it answers.

    It listens at an address of its own in a temporary folder, stops at the end of the ``with`` block, and never
    outlives this process, however that ends.

    Parameters
    ----------
    tasks : path or sequence of paths, optional
        Folders of task files, in place of the installed ones.
    models : path or sequence of paths, optional
        Folders of models, or ``"NAME=FOLDER"``, in place of the installed ones and of MyoSuite's.
    threads : int
        That plan; 0: one a core.
    device : str
        Where plans are made, ``"cpu"`` or ``"cuda"``.
    settings : mapping, optional
        Other settings of the daemon by name (``sinewd --help``), such as ``{"sessions": 4}``.
    program : path, optional
        The daemon's program. By default the installed one.
    timeout : float
        How long to wait for its first answer [s].

    Returns
    -------
    Daemon

    Raises
    ------
    StateError
        It ended: a folder that is not there, a setting that does not exist. The text is its log.
    TimedOutError
        It did not answer in time.

    Examples
    --------
    >>> with sinew.serve() as daemon, daemon.client() as client:
    ...     print(client.health().state)
    READY
    """
    folder = _folder()
    try:
        arguments = [str(program or installed("sinewd")), f"--endpoint=ipc://{folder}/{_SOCKET}"]
        arguments += [f"--parent={os.getpid()}", f"--threads={threads}", f"--backend={device}"]
        arguments += [f"--tasks={path}" for path in _paths("tasks", tasks)]
        arguments += [f"--models={path}" for path in _paths("models", models)]
        arguments += [f"--{name.replace('_', '-')}={value}" for name, value in (settings or {}).items()]
        # A process group of its own: Ctrl-C in a terminal is for Python, which then stops it in its order.
        with open(folder / "log", "wb") as log:
            process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log, process_group=0)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise StateError(f"sinewd cannot be started: {error}") from None
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    daemon = Daemon(process, folder)
    try:
        daemon._await(timeout)
    except BaseException:
        daemon.stop()
        raise
    return daemon


def _folder() -> Path:
    """Return a new temporary folder whose path leaves room for the names of sockets."""
    short = len(os.fsencode(tempfile.gettempdir())) <= _LONGEST_PATH
    return Path(tempfile.mkdtemp(prefix="sinew-", dir=None if short else "/tmp"))


def _paths(name: str, folders: Folders | None) -> list[str]:
    if folders is None:
        return []
    paths = [folders] if isinstance(folders, (str, os.PathLike)) else list(folders)
    for path in paths:
        if not isinstance(path, (str, os.PathLike)):
            raise ArgumentError(f"{name}: {path!r} is no path")
    return [os.fspath(path) for path in paths]
