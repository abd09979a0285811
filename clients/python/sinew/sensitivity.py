"""Sensitivities of rollouts: derivatives of all states and sensors by parameters, taken forward."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sinew._arrays import Doubles, doubles, row
from sinew.errors import ArgumentError
from sinew.model import Model
from sinew.model_tangents import ModelTangents, native_tangents
from sinew.rollout import Rollout

__all__ = ["Sensitivity", "entry_changes", "sensitivity"]

_FREE, _BALL = 0, 1  # types of joints


@dataclass(eq=False)
class Sensitivity:
    """Derivatives of rollouts by P columns; zeros for a rollout whose status is not 0.

    The first dimension, N, is there when the rollouts have it.

    Attributes
    ----------
    state : ndarray, (N, T + 1, n, P)
        Of the states, as tangents (dqpos, dqvel, dact), n = 2 nv + na.
    sensordata : ndarray, (N, T + 1, nsensordata, P), or None
        Of the sensors, where they were asked for.
    status : ndarray of int, (N,)
        0, or 10 where the rollout diverged or a derivative left the range of numbers.
    """

    state: Doubles
    sensordata: Doubles | None
    status: NDArray[np.int32]


def sensitivity(
    rollout: Rollout,
    parameters: ModelTangents | None = None,
    *,
    initial: ArrayLike | None = None,
    sensors: bool | ArrayLike = False,
) -> Sensitivity:
    """Return the derivatives of all states of rollouts by parameters of the model and of the initial states.

    From step to step, with the exact derivatives of each: where many numbers of a trajectory are to be differentiated
    by some parameters, this takes less than `rollout_vjp` for each number. A residual of least squares is such a case.

    >>> S = sinew.sensitivity(motion, parameters.tangents()).state  # (N, T + 1, n, P)

    Parameters
    ----------
    rollout : Rollout
        Rollouts with gradients. May be used any number of times.
    parameters : ModelTangents, optional
        Parameters of the model: the first columns.
    initial : array_like, (n, P) or (N, n, P), optional
        Derivatives of the initial states, as tangents. With more columns than parameters, the last ones are those of
        initial states alone: ``np.eye(n)`` without parameters gives the derivatives by the initial state. Default: 0.
    sensors : bool or array_like of bool, (nsensordata,)
        Whether derivatives of sensordata are wanted, or of which numbers; others are 0.

    Returns
    -------
    Sensitivity
        Derivatives of the states, and of the sensors.

    Raises
    ------
    ArgumentError
        A shape, a type, a number that is not finite, or parameters of a model of another structure.
    StateError
        The rollouts were made without gradients, or closed.
    UnsupportedError
        A sensor that has no derivative, or rollouts on a device.
    """
    if not isinstance(rollout, Rollout):
        raise ArgumentError(f"rollout: {type(rollout).__name__}, expected a sinew.Rollout")
    model, count, rows = rollout.model, rollout._count, rollout._steps + 1
    native = native_tangents(parameters)
    columns = 0 if parameters is None else len(parameters)
    first = None if initial is None else _initial(initial, rollout, columns)
    columns = columns if first is None else first.shape[-1]
    chosen = None if isinstance(sensors, bool) else _chosen(sensors, model.nsensordata)
    state = np.empty((count, rows, model.nstate, columns))
    measured = np.empty((count, rows, model.nsensordata, columns)) if sensors is not False else None
    status = np.empty(count, np.int32)
    with rollout._lease.use() as batch:
        batch.sensitivity(native, columns, first, chosen, state, measured, status)
    if rollout._many:
        return Sensitivity(state, measured, status)
    return Sensitivity(state[0], None if measured is None else measured[0], status.reshape(()))


def _chosen(sensors: ArrayLike, count: int) -> Doubles:
    """Return which numbers of the sensors count, (nsensordata,): given as such, as True and False, or as numbers."""
    flags = np.asarray(sensors)
    return row("sensors", flags.astype(float) if flags.dtype == bool else sensors, count)


def _initial(initial: ArrayLike, rollout: Rollout, parameters: int) -> Doubles:
    """Return the derivatives of the initial states, (N, n, P)."""
    first, n = doubles("initial", initial), rollout.model.nstate
    if first.ndim not in (2, 3) or first.shape[-2] != n or first.shape[-1] < parameters:
        raise ArgumentError(f"initial: shape {first.shape}, expected ({n}, {parameters} or more) or (N, ...)")
    if first.ndim == 3 and first.shape[0] != rollout._count:
        raise ArgumentError(f"initial: shape {first.shape}, expected {rollout._count} in the first dimension")
    return np.ascontiguousarray(np.broadcast_to(first, (rollout._count, *first.shape[-2:])))


def entry_changes(model: Model, qpos: Doubles, tangents: Doubles) -> Doubles:
    """Return how the entries of positions (..., nq) change along tangents (..., nv, P): (..., nq, P).

    A tangent of a rotation turns it about its own axes; the entries of its quaternion change by half its product.
    """
    out: Doubles = np.zeros((*qpos.shape, tangents.shape[-1]))
    for kind, at, dof in zip(model.jnt_type, model.jnt_qposadr, model.jnt_dofadr, strict=True):
        place: Any = slice(at, at + (3 if kind == _FREE else 0 if kind == _BALL else 1))
        width = place.stop - place.start
        out[..., place, :] = tangents[..., dof : dof + width, :]
        if kind > _BALL:
            continue
        w, x, y, z = np.moveaxis(qpos[..., place.stop : place.stop + 4], -1, 0)
        half = 0.5 * np.stack([np.stack(r, -1) for r in ((-x, -y, -z), (w, -z, y), (z, w, -x), (-y, x, w))], -2)
        out[..., place.stop : place.stop + 4, :] = half @ tangents[..., dof + width : dof + width + 3, :]
    return out
