"""Controls of a page for numbers, choices and words: the right one for the range of each setting."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import viser

__all__ = ["Changed", "Control", "notify", "number", "shown", "written"]

Changed = Callable[[Any, Any], None]
"""Gets a new value, and the page (`client`) where it was set."""

_STEPS = 1000  # of a slider, about
_WIDE = 200.0  # a range that is so many times as wide as its value needs a slider that follows the value
_SMALL = 1e-4  # below it numbers are written with an exponent
_GROWTH = 4.0  # of a slider's range over its value
_ON_ITS_WAY = 5.0  # at most, from a page's change to the thread of viser's that tells of it [s]
_REST = 0.7  # after which nobody is taken to drag or to write any more [s]


def notify(client: Any, text: str) -> None:
    """Say on one page why something is not possible."""
    client.add_notification("Not possible", text, color="orange", auto_close_seconds=8.0)


class Control:
    """A control of the page that shows a value and says when a page changes it.

    Parameters
    ----------
    handle
        viser's handle of it.
    changed : callable
        Called when somebody changes it, not when `show` does.
    read : callable
        Returns the value that the handle's stands for; raises `ValueError` with words for people.
    write : callable
        Returns what the handle shows for a value.
    """

    def __init__(
        self,
        handle: Any,
        changed: Changed,
        read: Callable[[Any], Any] = lambda x: x,
        write: Callable[[Any], Any] = lambda x: x,
    ) -> None:
        self.handle = handle
        self._changed = changed
        self._read = read
        self._write = write
        self._value = self._read(handle.value)
        self._known = handle.value  # by the handle, as it was shown or taken last
        handle.on_update(self._update)

    def show(self, value: Any) -> None:
        """Show a value; every page gets it. What a page has just set and nobody has taken yet stays."""
        if self.handle.value != self._known and time.time() - self.handle.update_timestamp < _ON_ITS_WAY:
            return
        self._value = value
        self._known = self._write(value)
        if self.handle.value != self._known:
            self.handle.value = self._known

    def rests(self) -> bool:
        """Return whether nobody has changed it for a while."""
        return bool(time.time() - self.handle.update_timestamp > _REST)

    def rest(self) -> None:
        """Do what is due while nobody touches it."""

    def _update(self, event: viser.GuiEvent[Any]) -> None:
        if event.client is not None:  # else this program has set it
            self._take(event.client)

    def _take(self, client: Any) -> None:
        self._known = self.handle.value
        try:
            value = self._read(self._known)
        except ValueError as error:
            notify(client, str(error))
            self.show(self._value)
            return
        self._value = value
        self._changed(value, client)


class _Following(Control):
    """A slider whose range follows its value: left at its end it grows, left near its begin it shrinks."""

    def __init__(self, handle: Any, changed: Changed, low: float, high: float) -> None:
        super().__init__(handle, changed)
        self._low, self._high = low, high

    def show(self, value: Any) -> None:
        """Show a value, with a range that it is in."""
        if not self.handle.min <= value <= self.handle.max:
            self._fit(value)
        super().show(value)

    def rest(self) -> None:
        """Change the range where the value asks for it."""
        value, end = self.handle.value, self.handle.max
        tight = value >= end and end < self._high
        loose = 0 < value < end / (10 * _GROWTH)
        if (tight or loose) and self.rests():
            self._fit(value)

    def _fit(self, value: float) -> None:
        top, step = _range(value, self._low, self._high, isinstance(self.handle.value, int))
        if top != self.handle.max:
            self.handle.max, self.handle.step, self.handle.precision = top, step, _digits(step)


class _Written(Control):
    """A box whose text counts once nobody writes any more."""

    _client: Any = None

    def rest(self) -> None:
        """Take what has been written."""
        if self._client is not None and self.rests():
            client, self._client = self._client, None
            self._take(client)

    def _update(self, event: viser.GuiEvent[Any]) -> None:
        self._client = event.client or self._client


def number(
    gui: viser.GuiApi, label: str, value: float, low: float, high: float, hint: str, changed: Changed
) -> Control:
    """Add a control for a number within bounds.

    A slider over the whole range where that is of use; a slider whose range follows the value where it is wide; a
    box to write in where numbers are tiny.
    """
    integer = isinstance(value, int)
    if not low <= value <= high:
        low, high = min(low, value), max(high, value)
    if not integer and (high >= _SMALL > abs(value) > 0 or (low < 0 and math.isinf(low))):
        return written(gui, label, value, low, high, hint, changed)
    if high - low <= (_WIDE if integer else 1.0) or high <= _GROWTH * value:
        step: float = 1 if integer else _step(high - low)
        handle = gui.add_slider(label, low if not integer else int(low), _same(high, integer), step, value, hint=hint)
        return Control(handle, changed)
    top, step = _range(value, low, high, integer)
    handle = gui.add_slider(label, _same(low if low > -math.inf else 0, integer), top, step, value, hint=hint)
    return _Following(handle, changed, low, high)


def written(
    gui: viser.GuiApi, label: str, value: float, low: float, high: float, hint: str, changed: Changed
) -> Control:
    """Add a box for a number that may have an exponent."""

    def read(text: str) -> float:
        try:
            given = float(text)
        except ValueError:
            raise ValueError(f"{label}: {text!r} is no number") from None
        if not low <= given <= high:
            raise ValueError(f"{label} = {given:g}; allowed are {low:g} to {high:g}")
        return given

    return _Written(gui.add_text(label, shown(value), hint=hint), changed, read, shown)


def text(gui: viser.GuiApi, label: str, value: str, hint: str, changed: Changed) -> Control:
    """Add a box for a text."""
    return _Written(gui.add_text(label, value, hint=hint), changed)


def shown(value: float) -> str:
    """Return a number as people write it."""
    return f"{value:.6g}"


def _same(value: float, integer: bool) -> Any:
    return int(value) if integer else float(value)


def _range(value: float, low: float, high: float, integer: bool) -> tuple[Any, Any]:
    """Return the end and the step of a slider around a value."""
    wanted = _GROWTH * value if value > 0 else (64 if integer else 1.0)
    digits = 10.0 ** math.floor(math.log10(wanted))
    top = min(math.ceil(wanted / digits) * digits, high)
    if integer:
        return max(int(top), int(low) + 1), 1
    return float(max(top, low)), _step(top)


def _step(width: float) -> float:
    return float(10.0 ** round(math.log10(width / _STEPS)))


def _digits(step: float) -> int:
    return max(0, -math.floor(math.log10(step) + 1e-9))
