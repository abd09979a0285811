"""The body, its plan and its targets in a page's 3D view."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import mujoco
import numpy as np
import viser
from numpy.typing import NDArray

from sinew.view.body import BodyScene, body_scene
from sinew.view.camera import Sight
from sinew.view.colors import term_color
from sinew.view.ghost import Ghost
from sinew.view.meshes import drawable_model
from sinew.view.motion import Kinematics, Motion, find_elements
from sinew.view.mouse import Mouse
from sinew.view.targets import Targets
from sinew.view.tendons import Tendons
from sinew.view.traces import Lines

if TYPE_CHECKING:
    from sinew.client.messages import TaskDescription
    from sinew.client.quantities import Trajectory
    from sinew.loop.source import Frame

__all__ = ["Scene"]

Array = NDArray[np.float64]

MOST_POSES = 64


class Scene:
    """Shows frames of a source to all clients of a server alike; each has a camera of its own.

    One thread calls `show`; the callbacks are called in it. The options may be set by any thread and act from the
    next frame on.

    Attributes
    ----------
    ghost, traces, tendons, contacts, targets : bool
        What is shown beside the body.
    surroundings : bool
        Whether what stands far from all that moves is shown, too.
    poses : int
        Of the ghost, 1 to 64.
    on_target : callable
        Gets a term's name and its target as the mouse wants it, in the term's frame.
    on_push : callable
        Gets a body, a point of it [m, in its frame] and a force [N, in the world]; None for both: the push is over.
    notes : tuple of str
        What of the model cannot be drawn, in sentences.
    """

    def __init__(self, server: viser.ViserServer, model: mujoco.MjModel, task: TaskDescription | None) -> None:
        self.ghost = self.traces = self.tendons = self.targets = True
        self.contacts = self.surroundings = False
        self.poses = 16
        self.on_target: Callable[[str, Array], None] = lambda term, value: None
        self.on_push: Callable[[int, Array | None, Array | None], None] = lambda body, point, force: None
        self._server, self._model = server, model
        self._data = mujoco.MjData(model)
        if task is not None:
            self._begin(task)
        mujoco.mj_forward(model, self._data)
        terms = () if task is None else task.terms
        found = [(number, x) for number, term in enumerate(terms) for x in find_elements(model, term.objects)]
        elements = [x for _, x in found]
        points = np.array([x.position(self._data) for x in elements]).reshape(-1, 3)
        sight = Sight(model, self._data, points)
        self._kinematics = Kinematics(model, elements)
        drawn, notes = drawable_model(model)
        self._body: BodyScene
        self._body, broken = body_scene(server, drawn, sight)
        self.notes = notes + broken
        self._tendons = Tendons(server, model)
        self._ghost = Ghost(server, drawn, 0.02 * sight.size)
        self._traces = Lines(server, "/traces", [term_color(number) for number, _ in found], 0.007 * sight.size)
        self._targets = Targets(server, model, terms, 0.05 * sight.size)
        self._mouse = Mouse(server, drawn, sight.size)
        for handle, bodies in self._body.meshes():
            self._mouse.listen(handle, bodies)
        sight.apply(server)
        self._number: int | None = None
        self._drawn: tuple[Trajectory | None, int, bool, bool, bool] | None = None

    def show(self, frame: Frame) -> None:
        """Draw a frame, and call back what the mouse did since the last one."""
        push = self._mouse.take(self._data)
        with self._server.atomic():
            if frame.number != self._number:
                self._number = frame.number
                self._pose(frame)
            self._body.show_contact_points = self._body.show_contact_forces = self.contacts
            self._body.show_surroundings(self.surroundings)
            self._body.update_from_mjdata(self._data)
            self._tendons.show(self._data, self.tendons)
            wishes = self._targets.show(frame, self._data, self.targets)
            self._show_plan(frame)
        for term, value in wishes:
            self.on_target(term, value)
        if push is not None:
            self.on_push(push.body, push.point, push.force)

    def _begin(self, task: TaskDescription) -> None:
        """Put the body where the task begins."""
        for name in ("qpos", "act"):
            x = getattr(task.initial, name)
            if x is not None and np.size(x) == getattr(self._data, name).size:
                getattr(self._data, name)[:] = x

    def _pose(self, frame: Frame) -> None:
        """Take over a frame's state, if it is finite, and compute what is drawn of it."""
        model, data = self._model, self._data
        if not np.isfinite(frame.qpos).all():
            return
        data.time = frame.time
        data.qpos[:], data.qvel[:], data.act[:], data.ctrl[:] = frame.qpos, frame.qvel, frame.act, frame.ctrl
        data.mocap_pos[:], data.mocap_quat[:] = frame.mocap[:, :3], frame.mocap[:, 3:]
        if self.contacts:
            mujoco.mj_forward(model, data)
            return
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_tendon(model, data)

    def _show_plan(self, frame: Frame) -> None:
        """Draw the plan, if it or what is shown of it is another one."""
        poses = min(max(int(self.poses), 1), MOST_POSES)
        wanted = (frame.predicted, poses, self.ghost, self.traces, self.targets)
        if self._drawn is not None and wanted[0] is self._drawn[0] and wanted[1:] == self._drawn[1:]:
            return
        self._drawn = wanted
        motion: Motion | None = None
        if frame.predicted is not None and (self.ghost or self.traces):
            motion = self._kinematics.along(frame.predicted, 1 + poses, frame.mocap)
        if motion is None or not self.ghost:
            self._ghost.hide()
        else:
            self._ghost.show(motion)
        if motion is None or not self.traces:
            self._traces.hide()
        else:
            self._traces.show(motion.points)
        self._targets.trace(frame, motion if self.traces and self.targets else None)
