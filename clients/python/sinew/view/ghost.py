"""The plan as a ghost: transparent poses of the bodies that it moves."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
import viser
from numpy.typing import NDArray

from sinew.view.colors import GHOST
from sinew.view.meshes import body_mesh
from sinew.view.motion import Motion

__all__ = ["Ghost"]

_TRIANGLES = 2000  # of a pose
_FEWEST = 24  # of a body
_OPAQUE, _FADED = 0.22, 0.03  # of the first and the last pose where there are few


@dataclass
class _Body:
    """A body's mesh, how far it reaches from the body's origin [m], and its handle once it was needed."""

    id: int
    vertices: NDArray[np.float32]
    faces: NDArray[np.uint32]
    reach: float
    handle: viser.BatchedMeshHandle | None = None


class Ghost:
    """Draws poses of a plan; bodies that hardly move in it are left out."""

    def __init__(self, server: viser.ViserServer, model: mujoco.MjModel, nearest: float) -> None:
        """Prepare meshes; what moves by less than `nearest` [m] is left out."""
        self._server = server
        self._nearest = nearest
        self._count = 0
        moving = np.flatnonzero(model.body_weldid != 0)
        self._bodies = []
        for body in moving:
            mesh = body_mesh(model, int(body), max(_FEWEST, _TRIANGLES // len(moving)))
            if mesh is not None:
                vertices, faces = np.asarray(mesh.vertices, np.float32), np.asarray(mesh.faces, np.uint32)
                reach = float(np.linalg.norm(vertices, axis=1).max())
                self._bodies.append(_Body(int(body), vertices, faces, reach))

    def hide(self) -> None:
        """Draw nothing until the next motion."""
        for body in self._bodies:
            if body.handle is not None:
                body.handle.visible = False

    def show(self, motion: Motion) -> None:
        """Draw a motion without its first pose, which is the body's own."""
        count = len(motion.rows) - 1
        if count < 1:
            self.hide()
            return
        if count != self._count:
            self._forget()
            self._count = count
        for body in self._bodies:
            position, orientation = motion.xpos[1:, body.id], motion.xquat[1:, body.id]
            if self._moves(motion, body):
                self._draw(body, position.astype(np.float32), orientation.astype(np.float32))
            elif body.handle is not None:
                body.handle.visible = False

    def _moves(self, motion: Motion, body: _Body) -> bool:
        """Return whether some point of a body moves by more than the least: its origin and its turn, added."""
        way = np.linalg.norm(motion.xpos[:, body.id] - motion.xpos[0, body.id], axis=1)
        same = np.abs(motion.xquat[:, body.id] @ motion.xquat[0, body.id])
        turn = 2 * np.arccos(np.minimum(same, 1))
        return bool((way + turn * body.reach).max() > self._nearest)

    def _draw(self, body: _Body, position: NDArray[np.float32], orientation: NDArray[np.float32]) -> None:
        if body.handle is None:
            # Many poses cover each other: each is fainter then.
            opacity = np.linspace(_OPAQUE, _FADED, self._count) * min(1, 8 / self._count) ** 0.5
            body.handle = self._server.scene.add_batched_meshes_simple(
                f"/ghost/{body.id}",
                body.vertices,
                body.faces,
                orientation,
                position,
                batched_colors=GHOST,
                batched_opacities=opacity.astype(np.float32),
                lod="off",
                material="toon5",  # without the light of the surroundings, which costs most where no GPU draws
                cast_shadow=False,
                receive_shadow=False,
            )
            return
        body.handle.batched_positions = position
        body.handle.batched_wxyzs = orientation
        body.handle.visible = True

    def _forget(self) -> None:
        for body in self._bodies:
            if body.handle is not None:
                body.handle.remove()
                body.handle = None
