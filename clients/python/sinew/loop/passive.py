"""A model without a task: MuJoCo moves it by itself, by controls that are set, and by pushes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NoReturn

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from sinew.errors import ArgumentError, StateError
from sinew.loop.body import Body
from sinew.loop.moving import POLL, Moving
from sinew.loop.pace import Pace
from sinew.loop.places import load_model
from sinew.loop.source import History, Mode

__all__ = ["Passive"]

_ALONE = "a model alone has no daemon: give it a task"


class Passive(Moving):
    """A model that moves in real time: a `Source`.

    Parameters
    ----------
    file : path
        MJCF or a compiled model (.mjb).
    paused : bool
        Whether time stands still at first.

    Attributes
    ----------
    keyframes : tuple of str
        Names of the model's keyframes, by which `reset` may begin; a number for one without a name.

    Raises
    ------
    NotFoundError
        There is no such file.
    FormatError
        What MuJoCo's compiler says of it.
    """

    modes: tuple[Mode, ...] = ("model",)
    duration: float | None = None
    task = None

    def __init__(self, file: str | os.PathLike[str], paused: bool = False) -> None:
        super().__init__(Body(load_model(file)), Pace(), paused)
        self.keyframes = tuple(self._model.key(k).name or str(k) for k in range(self._model.nkey))
        self._pace.restart(self._body.time)
        self._start()

    def history(self) -> History:
        """Return an empty history: there are no plans."""
        return History(np.zeros(0), {}, np.zeros((0, self._model.na)))

    def settings(self) -> None:
        """Return None: there are none."""

    def reset(self, seed: int | None = None) -> None:
        """Begin again: with the model's own state, or with the keyframe of this number."""
        if seed is not None and not 0 <= seed < len(self.keyframes):
            raise ArgumentError(f"keyframe {seed}: the model has {len(self.keyframes)}")

        def do() -> None:
            self._paused = self._paused and not self._body.diverged
            self._body.reset()
            if seed is not None:
                mujoco.mj_resetDataKeyframe(self._body.model, self._body.data, seed)
                mujoco.mj_forward(self._body.model, self._body.data)
            self._pace.restart(self._body.time)

        self._ask(do)

    def set_ctrl(self, ctrl: Mapping[int, float]) -> None:
        """Set controls by number; MuJoCo limits each to its range."""
        for number, value in ctrl.items():
            if not 0 <= number < self._model.nu or not np.isfinite(value):
                raise ArgumentError(
                    f"control {number} = {value}, expected a finite number of control 0 to {self._model.nu - 1}"
                )

        def do() -> None:
            for number, value in ctrl.items():
                self._body.data.ctrl[number] = value

        self._ask(do)

    def set_mode(self, mode: Mode) -> None:
        """Take ``"model"``, and nothing else."""
        if mode != "model":
            raise StateError(_ALONE)

    def tune(
        self,
        *,
        weights: Mapping[str, float] | None = None,
        terminal_weights: Mapping[str, float] | None = None,
        targets: Mapping[str, ArrayLike | None] | None = None,
        **settings: Any,
    ) -> NoReturn:
        """Raise `StateError`: there is no daemon."""
        raise StateError(_ALONE)

    def reopen(self, **settings: Any) -> None:
        """Raise `StateError`: there is no daemon."""
        raise StateError(_ALONE)

    def _move(self) -> bool:
        if not self._pace.wait(self._body.time, POLL):
            return False
        self._body.step()
        self._pace.mark(self._body.time)
        return True

    def _about(self) -> dict[str, Any]:
        return {"mode": "model"}
