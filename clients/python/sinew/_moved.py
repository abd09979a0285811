"""Segments of recorded motions as a model moves from where they begin: by its own steps, or by chosen ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sinew._arrays import Doubles
from sinew.cfd import CFD
from sinew.integrate_batch import integrate_batch, integrate_batch_vjp
from sinew.model import Model
from sinew.model_tangents import ModelTangents
from sinew.rollout import Rollout, rollout, rollout_vjp

if TYPE_CHECKING:
    from sinew.segments import Segments

__all__ = ["Moved", "Ways"]


@dataclass(eq=False)
class Moved:
    """N motions at the K times that follow the begin of a segment.

    Attributes
    ----------
    qpos, qvel : ndarray, (N, K, .)
        States.
    good : ndarray of bool, (N,)
        Whether a motion came to its end.
    back : callable
        Takes derivatives of a number by them, and parameters; returns those by the parameters, (N, P).
    """

    qpos: Doubles
    qvel: Doubles
    good: NDArray[np.bool_]
    back: Callable[[Doubles, Doubles, ModelTangents], Doubles]


@dataclass(frozen=True)
class Ways:
    """How a model moves from one recorded state to the next.

    Attributes
    ----------
    substeps : int
        Steps of the model.
    integrator : mapping, or None
        Settings of chosen steps in their place.
    cfd : CFD, or None
        Contacts from distance, where gradients are wanted.
    threads : int
        Threads; 0: as many as this process may use.
    """

    substeps: int
    integrator: Mapping[str, Any] | None
    cfd: CFD | None
    threads: int

    def rolled(self, model: Model, segments: Segments, gradients: bool) -> Rollout:
        """Return rollouts by steps of the model from where segments begin."""
        steps = self.substeps * (segments.qpos.shape[1] - 1)
        ctrl = None if segments.ctrl is None else np.repeat(segments.ctrl, self.substeps, axis=1)
        return rollout(
            model, segments.first, ctrl, nstep=steps, gradients=gradients, outputs=["qpos", "qvel"],
            cfd=self.cfd if gradients else None, threads=self.threads,
        )  # fmt: skip

    def moved(self, model: Model, segments: Segments, gradients: bool) -> Moved:
        """Return the motions from where segments begin."""
        return (_by_steps if self.integrator is None else _by_chosen_steps)(self, model, segments, gradients)


def _by_steps(ways: Ways, model: Model, segments: Segments, gradients: bool) -> Moved:
    made = ways.rolled(model, segments, gradients)
    now = slice(ways.substeps, None, ways.substeps)

    def back(by_qpos: Doubles, by_qvel: Doubles, tangents: ModelTangents) -> Doubles:
        bars = np.zeros_like(made.qpos), np.zeros_like(made.qvel)
        bars[0][:, now], bars[1][:, now] = by_qpos, by_qvel
        found = rollout_vjp(made, qpos=bars[0], qvel=bars[1], parameters=tangents).parameters
        made.close()
        assert found is not None
        return found

    return Moved(made.qpos[:, now], made.qvel[:, now], made.status == 0, back)


def _by_chosen_steps(ways: Ways, model: Model, segments: Segments, gradients: bool) -> Moved:
    frame = ways.substeps * float(model.opt.timestep)
    time = frame * np.arange(1, segments.qpos.shape[1])
    knots: dict[str, Any] = {}
    if segments.ctrl is not None:
        knots = {"ctrl": segments.ctrl, "ctrl_time": frame * np.arange(segments.ctrl.shape[1])}
    made = integrate_batch(
        model, segments.first, time, gradients=gradients,
        cfd=ways.cfd if gradients else None, threads=ways.threads, **(knots | dict(ways.integrator or {})),
    )  # fmt: skip

    def back(by_qpos: Doubles, by_qvel: Doubles, tangents: ModelTangents) -> Doubles:
        found = integrate_batch_vjp(made, by_qpos, by_qvel, parameters=tangents).parameters
        assert found is not None
        return found

    return Moved(made.qpos, made.qvel, made.end == "done", back)
