"""Pushing the body with the mouse: Ctrl (or Cmd) and a drag on it pulls there like a spring, as in MuJoCo's viewer."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import mujoco
import numpy as np
import viser
from numpy.typing import NDArray

from sinew.view.colors import ARROW

__all__ = ["Mouse", "Push"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Push:
    """A force (3,) [N, in the world] at a point (3,) [m, in the body's frame] of a body; None: it ends."""

    body: int
    point: Array | None
    force: Array | None


@dataclass(frozen=True)
class _Drag:
    phase: str
    body: int
    start: Array
    end: Array


class Mouse:
    """Turns drags on the meshes of bodies into forces, and shows them by an arrow."""

    def __init__(self, server: viser.ViserServer, model: mujoco.MjModel, size: float) -> None:
        self._model = model
        self._drags: deque[_Drag] = deque()
        self._perturb = mujoco.MjvPerturb()
        self._server = server
        self._arrow = server.scene.add_arrows(
            "/push",
            np.zeros((1, 2, 3)),
            ARROW,
            shaft_radius=0.012 * size,
            head_radius=0.035 * size,
            head_length=0.08 * size,
            visible=False,
        )

    def listen(self, handle: viser.BatchedGlbHandle, bodies: NDArray[np.int32]) -> None:
        """Let a batch of meshes be dragged; instance i is the body `bodies[i]`."""

        async def on_drag(event: viser.SceneNodeDragEvent[viser.BatchedGlbHandle]) -> None:
            body = int(bodies[event.instance_index or 0])
            start, end = np.array(event.start_position), np.array(event.end_position)
            self._drags.append(_Drag(event.phase, body, start, end))

        handle.on_drag("left", modifier="cmd/ctrl")(on_drag)
        handle.on_drag("right", modifier="cmd/ctrl")(on_drag)  # MuJoCo's own

    def take(self, data: mujoco.MjData) -> Push | None:
        """Return the force of now; None where nothing is pushed. `data` has the positions that are on the page."""
        ended = 0
        while self._drags:
            drag = self._drags.popleft()
            if drag.phase == "end":
                ended, self._perturb.active = self._perturb.select, 0
                continue
            if drag.phase == "start":
                self._begin(data, drag)
            self._perturb.refselpos[:] = drag.end
        if self._perturb.active:
            return self._pull(data)
        if ended:
            self._arrow.visible = False
            return Push(ended, None, None)
        return None

    def _begin(self, data: mujoco.MjData, drag: _Drag) -> None:
        """Take hold of a body where the mouse is on it."""
        back = np.empty(4)
        mujoco.mju_negQuat(back, data.xquat[drag.body])
        mujoco.mju_rotVecQuat(self._perturb.localpos, drag.start - data.xpos[drag.body], back)
        self._perturb.select, self._perturb.active = drag.body, mujoco.mjtPertBit.mjPERT_TRANSLATE
        self._perturb.localmass = self._mass(data, drag)

    def _mass(self, data: mujoco.MjData, drag: _Drag) -> float:
        """Return the mass that is felt at a point: the inverse of its mean acceleration under a unit force [kg]."""
        mujoco.mj_fwdPosition(self._model, data)
        jacobian = np.empty((3, self._model.nv))
        mujoco.mj_jac(self._model, data, jacobian, None, drag.start, drag.body)
        solved = np.empty_like(jacobian)
        mujoco.mj_solveM(self._model, data, solved, jacobian)
        inverse = float(np.sum(jacobian * solved)) / 3
        return 1 / inverse if inverse > 0 else 0.0

    def _pull(self, data: mujoco.MjData) -> Push:
        """Return MuJoCo's own spring and damper between the point and the mouse, and show it."""
        mujoco.mj_fwdPosition(self._model, data)
        mujoco.mj_comVel(self._model, data)
        body = self._perturb.select
        data.xfrc_applied[:] = 0
        mujoco.mjv_applyPerturbForce(self._model, data, self._perturb)
        force = data.xfrc_applied[body, :3].copy()
        data.xfrc_applied[:] = 0
        held = np.empty(3)
        mujoco.mju_rotVecQuat(held, self._perturb.localpos, data.xquat[body])
        self._arrow.points = np.array([[held + data.xpos[body], self._perturb.refselpos]], dtype=np.float32)
        self._arrow.visible = True
        return Push(body, self._perturb.localpos.copy(), force)
