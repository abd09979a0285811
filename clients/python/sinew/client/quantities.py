"""Models and motions as the daemon describes them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["ModelDescription", "Quantity", "Trajectory", "columns"]


@dataclass(frozen=True)
class Quantity:
    """One or more consecutive entries of a state or control vector.

    Attributes
    ----------
    name : str
        Of the joint, actuator or body; empty where the model gives none.
    address, size : int
        First entry in the vector, and number of entries: 4 for the quaternion of a ball joint.
    unit : str
        Such as ``"m"``, ``"rad/s"``, ``"1"``, ``"m, quaternion"``.
    limited : bool
        Whether `min` and `max` hold.
    min, max : float
        Range.
    """

    name: str
    address: int
    size: int
    unit: str
    limited: bool
    min: float
    max: float


def columns(vector: str, quantities: Iterable[Quantity]) -> list[str]:
    """Return a name for each entry of a vector, as `ModelDescription.columns` has them."""
    names = []
    for quantity in quantities:
        for i in range(quantity.size):
            name = quantity.name or f"{vector}{quantity.address + i}"
            names.append(f"{name}[{i}]" if quantity.name and quantity.size > 1 else name)
    seen = {name: names.count(name) for name in names}
    return [f"{name}[{names[:i].count(name)}]" if seen[name] > 1 else name for i, name in enumerate(names)]


@dataclass(frozen=True)
class ModelDescription:
    """A model: sizes, and what the entries of its vectors are.

    Attributes
    ----------
    model, file : str
        Name, and the path on the daemon's machine from which it was loaded.
    timestep : float
        [s]
    nq, nv, na, nu, nmocap : int
        Numbers of positions, velocities, activations, controls, mocap bodies.
    qpos, qvel, act, ctrl, mocap : tuple of Quantity
        Entries of the vectors of those sizes.
    nhistory : int
        Numbers of the buffers of controls and sensors.
    """

    model: str
    timestep: float
    nq: int
    nv: int
    na: int
    nu: int
    nmocap: int
    qpos: tuple[Quantity, ...] = field(repr=False)
    qvel: tuple[Quantity, ...] = field(repr=False)
    act: tuple[Quantity, ...] = field(repr=False)
    ctrl: tuple[Quantity, ...] = field(repr=False)
    mocap: tuple[Quantity, ...] = field(repr=False)
    file: str
    nhistory: int = 0

    def columns(self, vector: str) -> list[str]:
        """Return a name for each entry of ``"qpos"``, ``"qvel"``, ``"act"`` or ``"ctrl"``.

        Entries of a quantity with several are numbered (``"ball[0]"``); where the model gives no name, the
        vector and the entry stand for it (``"ctrl3"``). Names that an actuator with several controls would
        repeat are numbered.
        """
        return columns(vector, getattr(self, vector))


@dataclass(frozen=True, eq=False)
class Trajectory:
    """States along a plan, the first at its start, and what its cost compares them with.

    Attributes
    ----------
    time : numpy.ndarray, (steps + 1,)
        [s]
    qpos, qvel, act : numpy.ndarray, (steps + 1, nq), (steps + 1, nv), (steps + 1, na)
    targets : dict of numpy.ndarray, (steps + 1, size)
        Targets by the names of the terms, as they were when the plan was made; in the unit and the frame that
        `TermDescription` says. A term whose target follows an element of the model has none here.
    """

    time: NDArray[np.float64] = field(repr=False)
    qpos: NDArray[np.float64] = field(repr=False)
    qvel: NDArray[np.float64] = field(repr=False)
    act: NDArray[np.float64] = field(repr=False)
    targets: dict[str, NDArray[np.float64]] = field(repr=False)

    def __post_init__(self) -> None:
        rows = len(self.time)
        for name in ("qpos", "qvel", "act"):
            x = getattr(self, name)
            if rows and x.size % rows == 0:
                object.__setattr__(self, name, x.reshape(rows, x.size // rows))
