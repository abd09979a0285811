"""Jacobians of the steps of motions."""

from __future__ import annotations

from typing import Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike

from sinew._arrays import Doubles
from sinew.cfd import CFD
from sinew.errors import DivergedError
from sinew.model import Model
from sinew.rollout import Rollout, rollout
from sinew.state import StateLike

__all__ = ["Linearization", "SensorLinearization", "linearize", "linearize_rollout"]


class Linearization(NamedTuple):
    """Jacobians of steps, dx' = A dx + B du, where a state's tangent is (dqpos, dqvel, dact), n = 2 nv + na numbers."""

    A: Doubles  #: (N, T, n, n) of the state after a step by that before
    B: Doubles  #: (N, T, n, nu) of it by the controls


class SensorLinearization(NamedTuple):
    """Jacobians of steps and of sensors: dx' = A dx + B du, dy = C dx + D du."""

    A: Doubles  #: (N, T, n, n) of the state after a step by that before
    B: Doubles  #: (N, T, n, nu) of it by the controls
    C: Doubles  #: (N, T, nsensordata, n) of sensordata at the begin of a step by the state there
    D: Doubles  #: (N, T, nsensordata, nu) of it by the controls


@overload
def linearize(
    model: Model,
    state: StateLike | None = ...,
    ctrl: ArrayLike | None = ...,
    *,
    sensors: Literal[False] = ...,
    nstep: int | None = ...,
    threads: int = ...,
    cfd: CFD | None = ...,
    integrator: str | int | None = ...,
) -> Linearization: ...


@overload
def linearize(
    model: Model,
    state: StateLike | None = ...,
    ctrl: ArrayLike | None = ...,
    *,
    sensors: Literal[True],
    nstep: int | None = ...,
    threads: int = ...,
    cfd: CFD | None = ...,
    integrator: str | int | None = ...,
) -> SensorLinearization: ...


def linearize(
    model: Model,
    state: StateLike | None = None,
    ctrl: ArrayLike | None = None,
    *,
    sensors: bool = False,
    nstep: int | None = None,
    threads: int = 0,
    cfd: CFD | None = None,
    integrator: str | int | None = None,
) -> Linearization | SensorLinearization:
    """Return the Jacobians of all steps of motions, exact, as ``mjd_transitionFD`` finds them by differences.

    >>> A, B = sinew.linearize(model, state, ctrl)  # (T, n, n), (T, n, nu)

    Parameters
    ----------
    model, state, ctrl, nstep, threads, cfd, integrator
        As `sinew.rollout` has them: motions of T steps from one state or N. For Jacobians at N states of one's own,
        give these and controls (N, 1, nu).
    sensors : bool
        Whether those of sensordata are wanted, too.

    Returns
    -------
    Linearization or SensorLinearization
        (A, B), or with sensors (A, B, C, D). The first dimension, N, is there when `state` or `ctrl` had one.

    Raises
    ------
    DivergedError
        A motion diverges: which, and where.
    UnsupportedError
        A sensor without a derivative.
    """
    with rollout(
        model, state, ctrl, nstep=nstep, threads=threads, cfd=cfd, integrator=integrator, outputs=()
    ) as motions:
        return linearize_rollout(motions, sensors)


def linearize_rollout(motions: Rollout, sensors: bool = False) -> Linearization | SensorLinearization:
    """Return the Jacobians of all steps of rollouts with gradients."""
    motions.raise_if_diverged()
    model, rows = motions.model, (motions._count, motions._steps)
    n, nu, nsensordata = model.nstate, model.nu, model.nsensordata
    a, b = np.empty((*rows, n, n)), np.empty((*rows, n, nu))
    c = np.empty((*rows, nsensordata, n)) if sensors else None
    d = np.empty((*rows, nsensordata, nu)) if sensors else None
    status = np.empty(rows[0], np.int32)
    with motions._lease.use() as batch:
        batch.linearize(a, b, c, d, status)
    if status.any():
        raise DivergedError(f"rollout {int(np.flatnonzero(status)[0])}: a derivative left the range of numbers")
    one = slice(None) if motions._many else 0
    if c is None or d is None:
        return Linearization(a[one], b[one])
    return SensorLinearization(a[one], b[one], c[one], d[one])
