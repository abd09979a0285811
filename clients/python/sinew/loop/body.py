"""A body that moves: MuJoCo plays the robot. It belongs to one thread at a time."""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from sinew.errors import ArgumentError
from sinew.loop.places import load_described, take_warnings
from sinew.state import State

if TYPE_CHECKING:
    from sinew.client.messages import Plant, TaskDescription
    from sinew.task import Plant as TaskPlant

__all__ = ["Body", "check_push"]

Array = NDArray[np.float64]

# Warnings of MuJoCo after which it begins again at time 0.
_UNUSABLE = slice(mujoco.mjtWarning.mjWARN_BADQPOS, mujoco.mjtWarning.mjWARN_BADQACC + 1)


class Body:
    """A robot in simulation, stepped by MuJoCo.

    Parameters
    ----------
    model : mujoco.MjModel
        It is copied.
    timestep : float, optional
        In place of the model's [s].
    plant : Plant, optional
        Contacts of all geoms and pairs in place of the model's, as a task has them; NaN: the model's.

    Attributes
    ----------
    model, data : mujoco.MjModel, mujoco.MjData
        What MuJoCo has.
    diverged : bool
        A step since the reset left the range of numbers: MuJoCo has put the body back to the model's own state.
    """

    def __init__(
        self, model: mujoco.MjModel, *, timestep: float | None = None, plant: Plant | TaskPlant | None = None
    ) -> None:
        self.model = copy.copy(model)
        if timestep is not None:
            self.model.opt.timestep = timestep
        if plant is not None:
            _set_contacts(self.model, plant)
        self.data = mujoco.MjData(self.model)
        self.diverged = False
        self._pushes: dict[int, tuple[Array, Array]] = {}
        take_warnings()
        mujoco.mj_forward(self.model, self.data)

    @classmethod
    def of_task(cls, task: TaskDescription) -> Body:
        """Make the body of a task of a daemon, in its initial state, with the task's time step and contacts.

        Raises
        ------
        NotFoundError
            The model's file is not on this machine.
        ArgumentError
            The file is another model than the daemon's.
        """
        body = cls(load_described(task.model), timestep=task.model.timestep, plant=task.plant)
        body.reset(task.initial)
        return body

    @property
    def time(self) -> float:
        """Time [s]."""
        return float(self.data.time)

    @property
    def timestep(self) -> float:
        """Time step [s]."""
        return float(self.model.opt.timestep)

    @property
    def state(self) -> State:
        """A copy of the state: time, qpos, qvel, act, mocap, history."""
        d = self.data
        mocap = np.concatenate([d.mocap_pos, d.mocap_quat], axis=1)
        past = np.concatenate([d.history, d.plastic])
        history = past if len(past) else None
        return State(d.qpos.copy(), d.qvel.copy(), d.act.copy(), float(d.time), mocap, history=history)

    def reset(self, state: State | None = None) -> None:
        """Put the body at a state, None: the model's own. What pushes it ends."""
        d = self.data
        mujoco.mj_resetData(self.model, d)
        state = state or State()
        for name in ("qpos", "qvel", "act", "time"):
            value = getattr(state, name)
            if value is not None:
                setattr(d, name, value)
        if state.history is not None:
            d.history, d.plastic = np.split(np.asarray(state.history), [self.model.nhistory])
        if state.mocap is not None and self.model.nmocap:
            mocap = np.asarray(state.mocap).reshape(-1, 7)
            d.mocap_pos, d.mocap_quat = mocap[:, :3], mocap[:, 3:]
        self._pushes.clear()
        self.diverged = False
        mujoco.mj_forward(self.model, d)

    def step(self, ctrl: ArrayLike | None = None) -> bool:
        """Take one time step.

        Parameters
        ----------
        ctrl : array_like, (nu,), optional
            Controls; None: as before.

        Returns
        -------
        bool
            False when the body diverged.
        """
        d = self.data
        if ctrl is not None:
            d.ctrl = ctrl
        if self._pushes:
            self._apply_pushes()
        mujoco.mj_step(self.model, d)
        self.diverged = bool(d.warning.number[_UNUSABLE].any())
        return not self.diverged

    def push(self, body: int, point: ArrayLike | None = None, force: ArrayLike | None = None) -> None:
        """Pull at a point of a body from the next step on.

        Parameters
        ----------
        body : int
            Its number, from 1 on: the world is 0.
        point : array_like, (3,), optional
            In the body's frame [m]; None: its origin.
        force : array_like, (3,), optional
            In the world's frame [N]; None ends the pull at this body.
        """
        pull = check_push(self.model, body, point, force)
        if pull is None:
            self._pushes.pop(body, None)
            self.data.xfrc_applied[body] = 0
        else:
            self._pushes[body] = pull

    def _apply_pushes(self) -> None:
        """Write force and torque about each pushed body's centre of mass."""
        d = self.data
        mujoco.mj_kinematics(self.model, d)  # a step leaves positions of the state before it
        for body, (point, force) in self._pushes.items():
            at = d.xpos[body] + d.xmat[body].reshape(3, 3) @ point
            d.xfrc_applied[body, :3] = force
            d.xfrc_applied[body, 3:] = np.cross(at - d.xipos[body], force)


def check_push(
    model: mujoco.MjModel, body: int, point: ArrayLike | None, force: ArrayLike | None
) -> tuple[Array, Array] | None:
    """Return point and force of a pull, None where it ends, or raise `ArgumentError`."""
    if not 0 < body < model.nbody:
        raise ArgumentError(f"body: {body}, expected 1 to {model.nbody - 1}")
    if force is None:
        return None
    return _vector("point", np.zeros(3) if point is None else point), _vector("force", force)


def _vector(name: str, x: ArrayLike) -> Array:
    vector = np.array(x, np.float64)
    if vector.shape != (3,) or not np.isfinite(vector).all():
        raise ArgumentError(f"{name}: {x!r}, expected three finite numbers")
    return vector


def _set_contacts(model: mujoco.MjModel, plant: Plant | TaskPlant) -> None:
    """Give all geoms and pairs these contacts; NaN leaves a number as it is."""
    for kind in ("geom", "pair"):
        for name, values in (("solref", plant.solref), ("solimp", plant.solimp)):
            table = getattr(model, f"{kind}_{name}")
            for column, value in enumerate(values):
                if not math.isnan(value):
                    table[:, column] = value
