"""Ctrl-C, SIGTERM and the end of a terminal: one interrupt, which is not lost where somebody passes it over."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

__all__ = ["terminated_as_interrupted", "wait"]

_LOOK = 1.0  # between two looks, should a signal come just before a wait begins [s]
_asked = False


@contextlib.contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Let SIGTERM do what Ctrl-C does: files are closed, and what was started is stopped.

    So does the end of a terminal (SIGHUP), unless that is ignored, as nohup asks for.
    """
    global _asked
    _asked = False
    heard = [signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        heard.append(signal.SIGHUP)
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        heard.append(signal.SIGINT)
    before = {x: signal.signal(x, _interrupt) for x in heard}
    try:
        yield
    finally:
        for x, handler in before.items():
            signal.signal(x, handler)


def wait() -> None:
    """Wait for an interrupt, and raise KeyboardInterrupt; at once where one has come, though nobody has heard of it.

    Modules of others pass over what is raised while they are imported (trimesh does).
    """
    never = threading.Event()
    while not _asked:
        never.wait(_LOOK)
    raise KeyboardInterrupt


def _interrupt(number: int, frame: object) -> None:
    global _asked
    _asked = True
    raise KeyboardInterrupt
