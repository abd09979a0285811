"""Four legs walk forward: Gymnasium's model and observations of Ant-v5, and a reward with more slopes.

Gymnasium gives 1 for each action while the torso is between 0.2 and 1 m high, on its back as well. Here it is 1
upright, falls to 0 towards either height and as the torso tips over to its side, and an episode ends there, too: on its
back it would lie until the end. Forces of contacts are neither seen nor do they cost anything.
Another integrator, implicitfast, takes a quarter of the time of the model's own, RK4, for a step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch

from sinew.learn.task import Bodies, Task
from sinew.learn.tasks.models import load

__all__ = ["Ant"]


_LOW, _HIGH = 0.2, 1.0  # of the torso: an episode ends outside of these [m]
_WALKING = 0.35, 0.8  # heights of the torso between which neither bound costs anything [m]


class Ant(Task):
    """Earns the speed of its torso [m/s] and up to 1 for its posture, and loses half of its squared actions."""

    name = "ant"
    frame_skip = 5
    noise = 0.1
    settings: ClassVar[Mapping[str, Any]] = {
        "reward_scale": 0.1, "horizon": 8, "iterations": 960, "discount": 0.97, "deviation": 0.2,
        "state_gradient_limit": 0.1,
    }  # fmt: skip

    def __init__(self) -> None:
        super().__init__(load("gymnasium", "envs/mujoco/assets/ant.xml").with_options(integrator="implicitfast"))

    def observe(self, bodies: Bodies) -> torch.Tensor:
        """Return height, quaternion, angles and velocities."""
        return torch.cat([bodies.qpos[:, 2:], bodies.qvel], dim=1)

    def reward(self, before: Bodies, after: Bodies, action: torch.Tensor) -> torch.Tensor:
        """Return speed and posture, less the cost of actions."""
        speed = (after.qpos[:, 0] - before.qpos[:, 0]) / self.dt
        height = after.qpos[:, 2]
        low = ((_WALKING[0] - height).clamp(min=0) / (_WALKING[0] - _LOW)).square()
        high = ((height - _WALKING[1]).clamp(min=0) / (_HIGH - _WALKING[1])).square()
        return speed + _upright(after.qpos) - low - high - 0.5 * action.square().sum(1)

    def terminated(self, bodies: Bodies) -> torch.Tensor:
        """Return whose torso is lower than 0.2 m, higher than 1 m, or beyond its side."""
        qpos = bodies.qpos.detach()
        height = qpos[:, 2]
        return (height < _LOW) | (height > _HIGH) | (_upright(qpos) < 0)


def _upright(qpos: torch.Tensor) -> torch.Tensor:
    """Return the vertical part of the torso's axis, (N,): 1 upright, 0 on its side."""
    quat = qpos[:, 3:7]  # no unit at starts
    return 1 - 2 * quat[:, 1:3].square().sum(1) / quat.square().sum(1)
