"""A quadruped walks forward at a speed; its worlds differ in friction, mass and gains.

The setting is that of DiffSim2Real (J. Bagajo et al. 2024, arXiv 2411.02189): PD motors with torque limits by speed,
randomised worlds, and SHAC through smoothed contact. Actions are targets of joints about those of standing, 50 times a
second. There is no gait to follow: a phase is observed, and when feet are lifted is learned.

Randomised are, as in legged_gym (N. Rudin et al. 2021), friction, 0.5 to 1.25, and a load of the trunk, -5 to 5
kg; and the gains of the motors, by a factor of 0.8 to 1.2 each. Worlds are drawn once, from a seed of their own; each
episode gets one of them, and new gains.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from sinew.learn.motors import ANYDRIVE
from sinew.learn.task import Bodies, Physics, Task
from sinew.model import Model

__all__ = ["Quadruped"]

MODEL = Path(__file__).with_name("quadruped.xml")
FRICTION, LOAD, GAIN = (0.5, 1.25), (-5.0, 5.0), (0.8, 1.2)  # of worlds: of contacts, of the trunk [kg], of motors
SPEED = 0.6  # that is to be walked [m/s]
HEIGHT = 0.5  # of the trunk while it walks [m]
STRIDE = 0.64  # time in which the phase comes round [s]
REACH = 0.4  # of an action, added to the targets of standing [rad]
STAND = torch.tensor([0, 0.4, -0.8, 0, 0.4, -0.8, 0, -0.4, 0.8, 0, -0.4, 0.8], dtype=torch.float64)  # LF RF LH RH [rad]
# What a body carries in its goal: which world it is in, factors of its gains, the phase, the last action.
_WORLD, _GAINS, _PHASE, _ACTION = 0, slice(1, 3), 3, slice(4, 16)
FALLEN_HEIGHT, FALLEN_UP = 0.3, 0.6  # of the trunk [m], and of its axis: where an episode ends


class Quadruped(Task):
    """Earns up to 2 for an action: 1 while it is up, 1 for its velocity, less for leaning, turning and haste.

    Parameters
    ----------
    worlds : int
        How many worlds are drawn.
    seed : int
        What they are drawn from. Checkpoints do not know `worlds` and `seed`: go on with the same.
    """

    name = "quadruped"
    frame_skip = 4
    episode = 500
    noise = 0.02
    diverged_reward = 0.0
    settings: ClassVar[Mapping[str, Any]] = {
        "worlds": 64, "horizon": 24, "iterations": 300, "reward_scale": 0.1, "deviation": 0.2,
        "contact": "sigmoid", "actor_layers": (128, 64), "critic_layers": (128, 64),
    }  # fmt: skip

    def __init__(self, worlds: int = 64, seed: int = 0) -> None:
        super().__init__(Model.from_xml(MODEL))
        rng = np.random.default_rng(seed)
        self.friction = rng.uniform(*FRICTION, worlds)
        self.load = rng.uniform(*LOAD, worlds)
        drawn = np.empty(worlds, object)
        drawn[:] = [self._world(*numbers) for numbers in zip(self.friction, self.load, strict=True)]
        self._drawn = drawn

    def _world(self, friction: float, load: float) -> Model:
        """Return the model with another friction and trunk."""
        model = self.model
        rubbed = model.geom_friction.copy()
        rubbed[:, 0] = friction
        trunk = model.body("trunk").id
        mass, inertia = model.body_mass.copy(), model.body_inertia.copy()
        inertia[trunk] *= (mass[trunk] + load) / mass[trunk]
        mass[trunk] += load
        return model.replace(geom_friction=rubbed, body_mass=mass, body_inertia=inertia).with_constants()

    def models(self, bodies: Bodies) -> list[Model]:
        """Return the models of the worlds that bodies are in."""
        which = bodies.goal[:, _WORLD].detach().numpy().astype(int)
        chosen: list[Model] = self._drawn[which].tolist()
        return chosen

    # ---- starts and motors ----

    def pose(self, count: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        """Return bodies that stand, with noise of joints and velocities."""
        qpos, qvel = super().pose(count, generator)
        qpos[:, :7] = torch.tensor(self.model.qpos0[:7])
        qpos[:, 7:] += STAND
        return qpos, 5 * qvel

    def goal(self, count: int, generator: torch.Generator) -> torch.Tensor:
        """Return worlds, gains and phases."""
        goal = torch.zeros(count, _ACTION.stop, dtype=torch.float64)
        goal[:, _WORLD] = torch.randint(len(self._drawn), (count,), generator=generator)
        low, high = GAIN
        drawn = torch.rand(count, 3, generator=generator, dtype=torch.float64)
        goal[:, _GAINS] = low + (high - low) * drawn[:, :2]
        goal[:, _PHASE] = drawn[:, 2]
        return goal

    def advance(self, bodies: Bodies, action: torch.Tensor, physics: Physics) -> tuple[Bodies, torch.Tensor]:
        """Return the bodies after an action, and which of them have diverged, (N,). Motors act anew at each step."""
        before, targets = bodies.each(torch.Tensor.detach), STAND + REACH * action
        stiffness, damping = bodies.goal[:, _GAINS, None].unbind(1)
        diverged = torch.zeros(len(action), dtype=torch.bool)
        for _ in range(self.frame_skip):
            torque = ANYDRIVE.torque(targets, bodies.qpos[:, 7:], bodies.qvel[:, 6:], stiffness, damping)
            bodies, bad = self.stepped(bodies, torque[:, None], physics)
            diverged = diverged | bad
            bodies = bodies.where(diverged, before)
        goal = bodies.goal
        phase = torch.remainder(goal[:, _PHASE] + self.dt / STRIDE, 1.0)
        return bodies._replace(goal=torch.cat([goal[:, :_PHASE], phase[:, None], action], 1)), diverged

    # ---- what it sees and earns ----

    def observe(self, bodies: Bodies) -> torch.Tensor:
        """Return height, velocities, axes of the trunk, joints, the phase and the last action."""
        rows, qpos, qvel = _axes(bodies.qpos[:, 3:7]), bodies.qpos, bodies.qvel
        turn = 2 * math.pi * bodies.goal[:, _PHASE, None]
        return torch.cat(
            [
                qpos[:, 2:3], qvel[:, :6], rows[:, 1], rows[:, 2], qpos[:, 7:] - STAND, 0.1 * qvel[:, 6:],
                turn.sin(), turn.cos(), bodies.goal[:, _ACTION],
            ], 1,
        )  # fmt: skip

    def reward(self, before: Bodies, after: Bodies, action: torch.Tensor) -> torch.Tensor:
        """Return what velocity and posture earn, less what haste costs."""
        velocity = (after.qpos[:, :2] - before.qpos[:, :2]) / self.dt
        wrong = (velocity[:, 0] - SPEED).square() + velocity[:, 1].square()
        rows = _axes(after.qpos[:, 3:7])
        leaning = rows[:, 2, :2].square().sum(1) + rows[:, 1, 0].square()
        low = (after.qpos[:, 2] - HEIGHT).square()
        turning = after.qvel[:, 3:6].square().sum(1) + after.qvel[:, 2].square()
        haste = (action - before.goal[:, _ACTION]).square().sum(1)
        costs = 2.0 * leaning + 10.0 * low + 0.05 * turning + 0.02 * haste + 0.01 * action.square().sum(1)
        return 1 + torch.exp(-wrong / 0.25) - costs

    def terminated(self, bodies: Bodies) -> torch.Tensor:
        """Return whose trunk is low, or leans far."""
        qpos = bodies.qpos.detach()
        return (qpos[:, 2] < FALLEN_HEIGHT) | (_axes(qpos[:, 3:7])[:, 2, 2] < FALLEN_UP)


def _axes(quat: torch.Tensor) -> torch.Tensor:
    """Return rotations (N, 3, 3) of unit quaternions (N, 4): columns are the axes of the body in the world."""
    w, x, y, z = quat.unbind(1)
    return torch.stack(
        [
            1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
            2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
            2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
        ], 1,
    ).view(-1, 3, 3)  # fmt: skip
