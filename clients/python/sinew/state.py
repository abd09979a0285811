"""States of bodies: one, or a row for each of many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from numpy.typing import ArrayLike

from sinew.errors import ArgumentError

__all__ = ["State", "StateLike"]


@dataclass
class State:
    """A state of a body, or of N bodies. What is None is as in the model: `qpos0`, at rest, at time 0.

    Attributes
    ----------
    qpos : array_like, (nq,) or (N, nq)
        Positions [m, rad]. Quaternions need not be of unit length.
    qvel : array_like, (nv,) or (N, nv)
        Velocities [m/s, rad/s].
    act : array_like, (na,) or (N, na)
        Activations.
    time : float or array_like, (N,)
        Time [s].
    mocap : array_like, (nmocap, 7) or (N, nmocap, 7)
        Positions [m] and quaternions of the mocap bodies.
    qacc_warmstart : array_like, (nv,) or (N, nv)
        Accelerations that the solver of constraints starts from. None: zero.
    history : array_like, (nhistory,) or (N, nhistory)
        Buffers of controls and sensors, ``MjData.history``, then rests of springs that yield, ``MjData.plastic``.
        None: as after a reset; for a planner, buffers as its controls make them, and rests as they were.
    """

    qpos: ArrayLike | None = None
    qvel: ArrayLike | None = None
    act: ArrayLike | None = None
    time: ArrayLike | None = None
    mocap: ArrayLike | None = None
    qacc_warmstart: ArrayLike | None = None
    history: ArrayLike | None = None

    @classmethod
    def of(cls, x: StateLike | None) -> State:
        """Return `x` as a state: a State, a mapping of some of its members, or None for the model's own.

        An object with these attributes, such as a ``mujoco.MjData``, counts as its state.
        """
        if x is None:
            return cls()
        if isinstance(x, State):
            return x
        names = [field.name for field in fields(cls)]
        if isinstance(x, Mapping):
            unknown = [name for name in x if name not in names]
            if unknown:
                raise ArgumentError(f"state: {unknown[0]!r} is not one of {', '.join(names)}")
            return cls(**{str(name): value for name, value in x.items()})
        if hasattr(x, "qpos") and hasattr(x, "qvel"):
            return cls._of_data(x)
        raise ArgumentError(f"state: {type(x).__name__}, expected a State, a mapping or an MjData")

    @classmethod
    def _of_data(cls, x: Any) -> State:
        import numpy as np

        from sinew.data import Data

        state = cls(np.array(x.qpos), np.array(x.qvel), np.array(x.act), float(x.time))
        state.qacc_warmstart = np.array(x.qacc_warmstart)
        if len(x.mocap_pos):
            state.mocap = np.concatenate([x.mocap_pos, x.mocap_quat], axis=1)
        rests = () if isinstance(x, Data) else getattr(x, "plastic", ())  # history of a Data has them
        history = np.concatenate([getattr(x, "history", ()), rests])
        if len(history):
            state.history = history
        return state


StateLike = State | Mapping[str, ArrayLike] | Any
