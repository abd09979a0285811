"""Takes a page's changes to the daemon, so that no page waits for it and no slider fills a queue."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sinew.errors import SinewError
from sinew.loop.source import Source

__all__ = ["Key", "Tuner"]

Key = tuple[str, str]
"""What is changed: ``"settings"``, ``"weights"``, ``"terminal_weights"`` or ``"targets"``, and its name there."""

_HOLD = 0.5  # for which a control shows what its user has set, whatever the source says [s]


@dataclass(frozen=True)
class _Change:
    value: Any
    client: Any


class Tuner:
    """A thread that tells a source what has changed, the newest value of each setting alone.

    Parameters
    ----------
    source : Source
    refused : callable
        Gets the key of a change that was refused, the daemon's words, and the page (`client`) that it came from.
    """

    def __init__(self, source: Source, refused: Callable[[Key, str, Any], None]) -> None:
        self._source = source
        self._refused = refused
        self._wanted: dict[Key, _Change] = {}
        self._touched: dict[Key, float] = {}
        self._wake = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="sinew-tuner", daemon=True)
        self._thread.start()

    def change(self, key: Key, value: Any, client: Any = None) -> None:
        """Note a change and return at once. It takes the place of one of the same key that has not left yet."""
        with self._wake:
            self._wanted[key] = _Change(value, client)
            self._touched[key] = time.monotonic()
            self._wake.notify()

    def held(self, key: Key) -> bool:
        """Return whether somebody has just changed it, so that its control shows that and nothing older."""
        return time.monotonic() - self._touched.get(key, float("-inf")) < _HOLD

    def close(self) -> None:
        """End the thread; what has not left is dropped."""
        with self._wake:
            self._closed = True
            self._wake.notify()
        self._thread.join(1.0)

    def _run(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._wanted or self._closed)
                if self._closed:
                    return
                changes, self._wanted = self._wanted, {}
            self._send(changes)

    def _send(self, changes: dict[Key, _Change]) -> None:
        """Send changes as one; where they are refused, one by one, so that a wrong one spoils no other."""
        try:
            self._source.tune(**_arguments(changes))
            problem = ""
        except SinewError as error:
            problem = str(error)
        if problem and len(changes) > 1:
            for key, change in changes.items():
                self._send({key: change})
            return
        for key, change in changes.items():
            with self._wake:
                newer = key in self._wanted
                self._touched[key] = float("-inf") if problem and not newer else time.monotonic()
            if problem and not newer:
                self._refused(key, problem, change.client)


def _arguments(changes: dict[Key, _Change]) -> dict[str, Any]:
    """Return the arguments of `Source.tune` for some changes."""
    arguments: dict[str, Any] = {}
    for (kind, name), change in changes.items():
        if kind == "settings":
            arguments[name] = change.value
        else:
            arguments.setdefault(kind, {})[name] = change.value
    return arguments
