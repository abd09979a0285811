"""Where one looks from at first."""

from __future__ import annotations

import mujoco
import numpy as np
import trimesh
import viser
from mjviser.conversions import merge_geoms
from numpy.typing import NDArray

from sinew.view.meshes import drawable_geoms

__all__ = ["Sight"]

Array = NDArray[np.float64]

_SAMPLES = 1000  # points of a surface


class Sight:
    """What the first camera looks at.

    Attributes
    ----------
    center : array, (3,)
        Middle of what the cost looks at, or of what moves [m].
    size : float
        Radius of what moves there [m].
    """

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData, points: Array) -> None:
        """Take points (n, 3) that the cost looks at."""
        moving = np.flatnonzero(model.body_weldid != 0)
        geoms = np.flatnonzero(np.isin(model.geom_bodyid, moving) & (model.geom_group < 3))
        places = data.geom_xpos[geoms] if len(geoms) else data.xpos[moving]
        if not len(places):
            places = np.array([model.stat.center])
        middle = places.mean(axis=0)
        self.center = (middle + points.mean(axis=0)) / 2 if len(points) else middle
        way = np.sort(np.linalg.norm(places - self.center, axis=1))
        # A distant piece or two are not what one looks at.
        self.size = float(max(way[(9 * (len(way) - 1)) // 10], 0.02 * model.stat.extent, 1e-3))
        self._direction = _direction(model, data)

    def has(self, model: mujoco.MjModel, data: mujoco.MjData, body: int) -> bool:
        """Return whether some of the surface of a body is where one looks."""
        geoms = drawable_geoms(model, body)
        if not geoms:
            return False
        back, local = np.empty(4), np.empty(3)
        mujoco.mju_negQuat(back, data.xquat[body])
        mujoco.mju_rotVecQuat(local, self.center - data.xpos[body], back)
        points, _ = trimesh.sample.sample_surface(merge_geoms(model, geoms), _SAMPLES, seed=1)
        return bool((np.linalg.norm(points - local, axis=1) < 2.5 * self.size).any())

    def apply(self, server: viser.ViserServer) -> None:
        """Let pages begin there; each client then moves its own camera."""
        server.initial_camera.position = self.center + 3 * self.size * self._direction
        server.initial_camera.look_at = self.center
        server.initial_camera.fov = np.radians(50)
        server.initial_camera.near = 0.01 * self.size
        server.initial_camera.far = max(1000 * self.size, 100.0)


def _direction(model: mujoco.MjModel, data: mujoco.MjData) -> Array:
    """Return the direction of the camera: across the plane of a mechanism that moves in one, else from ahead."""
    hinges = data.xaxis[model.jnt_type == mujoco.mjtJoint.mjJNT_HINGE]
    direction = np.array([0.7, -0.9, 0.9])
    if len(hinges) and len(hinges) == model.nv:
        spread, axes = np.linalg.eigh(hinges.T @ hinges)
        if spread[-1] > 0.95 * spread.sum() and abs(axes[2, -1]) < 0.5:
            axis = axes[:, -1] * (-1 if axes[1, -1] > 0 else 1)
            direction = axis + np.array([0.25, 0, 0.25])
    unit: Array = direction / np.linalg.norm(direction)
    return unit
