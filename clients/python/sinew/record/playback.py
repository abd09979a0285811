"""A recording as a page shows it: what moves, and its plans."""

from __future__ import annotations

import copy
import os
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from sinew._extras import require
from sinew.errors import ArgumentError, StateError
from sinew.record.film import Film
from sinew.record.reader import Recording

if TYPE_CHECKING:
    import mujoco

    from sinew.client.messages import Config, TaskDescription
    from sinew.loop.source import Frame, History, Mode

__all__ = ["Playback"]

_SECONDS = 30.0  # of plots [s]


class Playback:
    """A session of a recording that is played: a `Source`.

    Times are those of the recording, from its first state on. What is shown at a time is the latest state before it,
    and the plan that was made for that state.

    Parameters
    ----------
    path : path
        A recording.
    session : int, optional
        By default the first one in the file.
    paused : bool
        Whether time stands still at first.

    Attributes
    ----------
    text : str
        What one should know of the file; empty: nothing.

    Raises
    ------
    FileError, FormatError
        It cannot be read, or is no recording.
    NotFoundError, ArgumentError
        Its model is not on this machine, or is another one by now.
    """

    modes: tuple[Mode, ...] = ("recording",)

    def __init__(self, path: str | os.PathLike[str], session: int | None = None, paused: bool = False) -> None:
        require("record")
        from sinew.loop.places import load_described

        recording = Recording(path)
        self._film = Film(recording, session)
        self._model = load_described(self._film.task.model)
        cut = "its end is not there" if recording.cut else ""
        self.text = "; ".join(text for text in (recording.remark, cut) if text)
        self._lock = threading.Lock()
        self._at, self._wall = 0.0, time.monotonic()  # a time of the recording, and when it was shown
        self._paused, self._speed = paused, 1.0

    @property
    def model(self) -> mujoco.MjModel:
        """The body, for drawing: a copy of its own for each call."""
        return copy.copy(self._model)

    @property
    def task(self) -> TaskDescription:
        """What the body was to do."""
        return self._film.task

    @property
    def duration(self) -> float:
        """Length of the recording [s]."""
        return float(self._film.time[-1])

    # ------------------------------------------------------------------------------------------- looking

    def latest(self) -> Frame:
        """Return what it was like at the time that is shown now."""
        from sinew.loop.source import Frame

        with self._lock:
            now, paused, speed = self._now(), self._paused, self._speed
        film = self._film
        row = film.row(now)
        plan, shown = film.plan(row), film.plan(row, predicted=True)
        at_rest = paused or now >= self.duration
        return Frame(
            number=hash((now, at_rest, speed)),
            time=now,
            qpos=film.qpos[row],
            qvel=film.qvel[row],
            act=film.act[row],
            ctrl=np.zeros(film.task.model.nu) if plan is None else plan.ctrl[plan.row(film.stamp[row])],
            mocap=film.mocap[row].reshape(-1, 7),
            mode="recording",
            paused=at_rest,
            speed=speed,
            rate=float("nan") if at_rest else speed,
            plan=plan,
            predicted=None if shown is None else shown.states,
            age=float("nan") if plan is None else plan.age,
            deadline=float(film.deadline[row]),
            misses=int(film.misses[row]),
            cost=float(film.figures["cost_now"][row]),
            text=self.text,
            config=film.config(row),
        )

    def history(self) -> History:
        """Return the plans of the seconds before the time that is shown."""
        from sinew.loop.source import History

        with self._lock:
            now = self._now()
        film = self._film
        rows = slice(film.row(now - _SECONDS), film.row(now) + 1)
        names = {"cost": "cost_after", "gradient norm": "gradient_norm", "iterations": "iterations", "latency": "age"}
        series = {name: film.figures[figure][rows] for name, figure in names.items()}
        series |= {"deadline": film.deadline[rows]} | {name: x[rows] for name, x in film.terms.items()}
        return History(film.time[rows], series, film.act[rows])

    def settings(self) -> Config:
        """Return settings, weights and targets that were in force."""
        with self._lock:
            return self._film.config(self._film.row(self._now()))

    def close(self) -> None:
        """End it; a second call does nothing."""

    def _now(self) -> float:
        """Return the time that is shown now [s]."""
        if not self._paused:
            wall = time.monotonic()
            self._at = min(self._at + (wall - self._wall) * self._speed, self.duration)
            self._wall = wall
        return self._at

    # ------------------------------------------------------------------------------------------- steering

    def pause(self, on: bool) -> None:
        """Let time stand still, or go on; at the end it begins again."""
        with self._lock:
            now = self._now()
            self._paused, self._wall = on, time.monotonic()
            self._at = 0.0 if not on and now >= self.duration else now

    def step(self) -> None:
        """Go on to the next state while paused."""
        with self._lock:
            if self._paused:
                row = self._film.row(self._at)
                self._at = float(self._film.time[min(row + 1, len(self._film.time) - 1)])

    def seek(self, time: float) -> None:
        """Go to a time of the recording [s]."""
        if not np.isfinite(time):
            raise ArgumentError(f"time is {time}; allowed is 0 to {self.duration:g} s")
        with self._lock:
            self._now()
            self._at = min(max(float(time), 0.0), self.duration)

    def set_speed(self, speed: float) -> None:
        """Set the body's seconds in a second, such as 0.25 for slow motion."""
        from sinew.loop.pace import check_speed

        wanted = check_speed(speed)
        with self._lock:
            self._now()
            self._speed = wanted

    def set_mode(self, mode: Mode) -> None:
        """Take ``"recording"``, and nothing else."""
        if mode != "recording":
            self._refuse()

    def reset(self, seed: int | None = None) -> None:
        """Begin again."""
        self.seek(0.0)

    def push(self, body: int, point: ArrayLike | None, force: ArrayLike | None) -> None:
        """Raise `StateError`, unless a push ends."""
        if force is not None:
            self._refuse()

    def set_ctrl(self, ctrl: Mapping[int, float]) -> None:
        """Raise `StateError`."""
        self._refuse()

    def tune(
        self,
        *,
        weights: Mapping[str, float] | None = None,
        terminal_weights: Mapping[str, float] | None = None,
        targets: Mapping[str, ArrayLike | None] | None = None,
        **settings: Any,
    ) -> NoReturn:
        """Raise `StateError`."""
        self._refuse()

    def reopen(self, **settings: Any) -> None:
        """Raise `StateError`."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise StateError("a recording has happened: nothing in it can be changed")
