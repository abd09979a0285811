"""The body's clock beside the wall's."""

from __future__ import annotations

import time
from collections import deque

from sinew.errors import ArgumentError

__all__ = ["Pace", "check_speed"]

_BEHIND = 0.25  # what is later than this is given up [s]
_WINDOW = 1.0  # over which the rate is measured [s]
_MARK = 0.05  # between two marks [s]
_SLOWEST, _FASTEST = 1e-3, 1e3


class Pace:
    """Says when a time of the body is due, and how fast its clock goes.

    Attributes
    ----------
    speed : float
        The body's seconds in a second, as wanted.
    """

    def __init__(self, speed: float = 1.0) -> None:
        self.speed = speed
        self._wall = self._time = 0.0
        self._marks: deque[tuple[float, float]] = deque()

    def restart(self, now: float) -> None:
        """Let the body's time `now` [s] be due now: after a pause, a jump, another speed."""
        self._wall, self._time = time.monotonic(), now
        self._marks.clear()

    def wait(self, now: float, longest: float) -> bool:
        """Sleep until the body's time `now` is due, but at most for `longest` [s].

        Returns
        -------
        bool
            Whether it is due.
        """
        left = self._wall + (now - self._time) / self.speed - time.monotonic()
        if left < -_BEHIND:
            self._wall -= left  # the machine was too slow: what is lost is not made up for
        if left > 0:
            time.sleep(min(left, longest))
        return left <= longest

    def skip(self, now: float) -> None:
        """Do not make up for a delay: the body's time `now` is due at the earliest now."""
        late = time.monotonic() - self._wall - (now - self._time) / self.speed
        self._wall += max(late, 0.0)

    def mark(self, now: float) -> None:
        """Note that the body has come to time `now` [s]."""
        wall = time.monotonic()
        if self._marks and wall - self._marks[-1][0] < _MARK:
            return
        self._marks.append((wall, now))
        while wall - self._marks[0][0] > _WINDOW and len(self._marks) > 2:
            self._marks.popleft()

    @property
    def rate(self) -> float:
        """The body's seconds in a second, as measured over the latest one; NaN: not known yet."""
        if len(self._marks) < 2:
            return float("nan")
        (wall, begin), (until, end) = self._marks[0], self._marks[-1]
        return (end - begin) / (until - wall)


def check_speed(speed: float) -> float:
    """Return a speed that is allowed, or raise `ArgumentError`."""
    if not _SLOWEST <= speed <= _FASTEST:
        raise ArgumentError(
            f"speed: {speed!r}, expected {_SLOWEST:g} to {_FASTEST:g} of the body's seconds in a second"
        )
    return float(speed)
