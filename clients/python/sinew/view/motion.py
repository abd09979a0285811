"""Where bodies and points of a model are along a plan, by MuJoCo's kinematics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import mujoco
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sinew.client.messages import ObjectName
    from sinew.client.quantities import Trajectory

__all__ = ["Element", "Kinematics", "Motion", "find_elements"]

Array = NDArray[np.float64]

_POSITIONS = {"site": "site_xpos", "body": "xpos", "geom": "geom_xpos"}


@dataclass(frozen=True)
class Element:
    """A site, body or geom of a model, by its number."""

    kind: str
    id: int

    def position(self, data: mujoco.MjData) -> Array:
        """Return where it is, (3,) [m]."""
        position: Array = getattr(data, _POSITIONS[self.kind])[self.id]
        return position.copy()


def find_elements(model: mujoco.MjModel, objects: Sequence[ObjectName]) -> tuple[Element, ...]:
    """Return those of the objects that have a position in this model."""
    kinds = {
        "site": mujoco.mjtObj.mjOBJ_SITE,
        "body": mujoco.mjtObj.mjOBJ_BODY,
        "geom": mujoco.mjtObj.mjOBJ_GEOM,
    }
    found = [(x.kind, mujoco.mj_name2id(model, kinds[x.kind], x.name)) for x in objects if x.kind in kinds]
    return tuple(Element(kind, number) for kind, number in found if number >= 0)


@dataclass(frozen=True, eq=False)
class Motion:
    """Poses along a plan, the first at its start.

    Attributes
    ----------
    rows : array of int, (poses,)
        Of the plan's states.
    xpos, xquat : array, (poses, nbody, 3), (poses, nbody, 4)
        Of the bodies [m, quaternion].
    points : array, (poses, elements, 3)
        Of the elements asked for [m].
    """

    rows: NDArray[np.intp] = field(repr=False)
    xpos: Array = field(repr=False)
    xquat: Array = field(repr=False)
    points: Array = field(repr=False)


class Kinematics:
    """Computes motions of one model."""

    def __init__(self, model: mujoco.MjModel, elements: Sequence[Element] = ()) -> None:
        self._model = model
        self._data = mujoco.MjData(model)
        self._elements = tuple(elements)

    def along(self, states: Trajectory, poses: int, mocap: Array) -> Motion | None:
        """Return evenly spaced poses of a plan; None where its states are not finite or not of this model."""
        model, data = self._model, self._data
        if states.qpos.ndim != 2 or states.qpos.shape[1] != model.nq or not np.isfinite(states.qpos).all():
            return None
        rows = np.unique(np.linspace(0, len(states.qpos) - 1, poses).round().astype(np.intp))
        motion = Motion(
            rows,
            np.empty((len(rows), model.nbody, 3)),
            np.empty((len(rows), model.nbody, 4)),
            np.empty((len(rows), len(self._elements), 3)),
        )
        data.mocap_pos[:], data.mocap_quat[:] = mocap[:, :3], mocap[:, 3:]
        for i, row in enumerate(rows):
            data.qpos[:] = states.qpos[row]
            mujoco.mj_kinematics(model, data)
            motion.xpos[i], motion.xquat[i] = data.xpos, data.xquat
            for j, element in enumerate(self._elements):
                motion.points[i, j] = element.position(data)
        return motion
