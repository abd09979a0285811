"""A body that a thread of its own moves, while other threads look at it and steer it."""

from __future__ import annotations

import copy
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from sinew.errors import SinewError, StateError
from sinew.loop.body import Body, check_push
from sinew.loop.pace import Pace, check_speed
from sinew.loop.source import Frame

if TYPE_CHECKING:
    import mujoco

__all__ = ["POLL", "Moving"]

POLL = 0.02  # after which the thread listens to those who steer, at the latest [s]
_SWITCH = 0.0005  # how long another thread may keep the interpreter to itself while this one waits for it [s]
_PUBLISH = 0.005  # between two frames of a body that moves [s]
_DIVERGED = "the body has left the range of numbers: a reset lets it begin again"


class Moving(ABC):
    """What sources with a body have in common: time, pushes, frames.

    What is asked for is done by the body's thread before its next step; a frame is made by it, too, and handed over
    without a lock. So neither waits for the other.
    """

    def __init__(self, body: Body, pace: Pace, paused: bool) -> None:
        self._body, self._pace = body, pace
        self._model: mujoco.MjModel = copy.copy(body.model)
        self._paused = paused
        self._single = self._closing = False
        self._dirty = True  # something is different
        self._said = ""  # what went wrong with what was asked for
        self._commands: deque[Callable[[], None]] = deque()
        self._wake = threading.Event()
        self._shown, self._number = 0.0, 0
        self._threads: list[threading.Thread] = []
        self._frame = self._picture()

    def _start(self, *more: Callable[[], None]) -> None:
        """Start the body's thread, and more."""
        sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH))
        self._threads = [threading.Thread(target=run, daemon=True) for run in (self._run, *more)]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End it; a second call does nothing."""
        self._closing = True
        self._wake.set()
        for thread in self._threads:
            thread.join()
        self._threads = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # ------------------------------------------------------------------------------ looking and steering

    @property
    def model(self) -> mujoco.MjModel:
        """The body, for drawing: a copy of its own for each call."""
        return copy.copy(self._model)

    def latest(self) -> Frame:
        """Return how it is now."""
        return self._frame

    def pause(self, on: bool) -> None:
        """Let time stand still, or go on."""

        def do() -> None:
            self._paused, self._single = on, False
            self._pace.restart(self._body.time)

        self._ask(do)

    def step(self) -> None:
        """Go on by one step of the model while paused (by one plan in lockstep)."""

        def do() -> None:
            self._single = self._paused
            self._pace.restart(self._body.time)

        self._ask(do)

    def set_speed(self, speed: float) -> None:
        """Set the body's seconds in a second, such as 0.25 for slow motion."""
        wanted = check_speed(speed)

        def do() -> None:
            self._pace.speed = wanted
            self._pace.restart(self._body.time)

        self._ask(do)

    def seek(self, time: float) -> None:
        """Raise `StateError`: time does not go back here."""
        raise StateError("time goes on here; a recording can be searched")

    def push(self, body: int, point: ArrayLike | None, force: ArrayLike | None) -> None:
        """Pull at a point of a body (3,) [m, in the body's frame] by a force (3,) [N, in the world's]; None ends it."""
        check_push(self._model, body, point, force)
        self._ask(lambda: self._body.push(body, point, force))

    # ---------------------------------------------------------------------------------- the body's thread

    @abstractmethod
    def _move(self) -> bool:
        """Take a step once it is due, waiting at most a moment; return whether anything is different."""

    @abstractmethod
    def _about(self) -> dict[str, Any]:
        """Return what a frame says beyond the body."""

    def _still(self) -> None:  # noqa: B027
        """Do what is to be done while time stands still."""

    def _stepped(self) -> bool:
        """Return whether the one step that was asked for is done, now that the body has moved."""
        return True

    def _ask(self, do: Callable[[], None]) -> None:
        """Let the body's thread do something before its next step."""
        self._commands.append(do)
        self._wake.set()

    def _obey(self) -> None:
        while self._commands:
            try:
                self._said = ""
                self._commands.popleft()()
            except SinewError as error:
                self._said = str(error)
            self._dirty = True

    def _run(self) -> None:
        """Move the body until the end."""
        try:
            while not self._closing:
                self._obey()
                if self._paused and not self._single:
                    self._still()
                    self._publish(False)
                    self._wake.wait(POLL)
                    self._wake.clear()
                else:
                    self._publish(self._advance())
        except Exception as error:
            self._said, self._paused = f"the body's thread has ended: {error}", True
            self._frame = self._picture()
            raise

    def _advance(self) -> bool:
        before = self._body.time
        moved = self._move()
        if self._body.diverged:
            self._paused, self._single, self._dirty = True, False, True
        if self._single and self._body.time != before and self._stepped():
            self._single, self._dirty = False, True
        return moved

    def _publish(self, moved: bool) -> None:
        """Make a frame where anything is different; of a body that moves not too often."""
        now = time.monotonic()
        if self._dirty or (moved and now - self._shown >= _PUBLISH):
            self._dirty = False
            self._shown = now
            self._frame = self._picture()

    def _picture(self) -> Frame:
        data = self._body.data
        self._number += 1
        about = {"text": self._said, **self._about()}
        if self._body.diverged:
            about["text"] = _DIVERGED
        return Frame(
            number=self._number,
            time=self._body.time,
            qpos=data.qpos.copy(),
            qvel=data.qvel.copy(),
            act=data.act.copy(),
            ctrl=data.ctrl.copy(),
            mocap=np.concatenate([data.mocap_pos, data.mocap_quat], axis=1),
            paused=self._paused,
            speed=self._pace.speed,
            rate=float("nan") if self._paused else self._pace.rate,
            **about,
        )
