"""Four legs walk forward: Gymnasium's model and reward of Ant-v5 without forces of contacts.

Another integrator, implicitfast, takes a quarter of the time of the model's own, RK4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch

from sinew.learn.task import Bodies, Task
from sinew.learn.tasks.models import load

__all__ = ["Ant"]


class Ant(Task):
    """Earns the speed of its torso [m/s] and 1 for each action that it stands, loses half of its squared actions."""

    name = "ant"
    frame_skip = 5
    noise = 0.1
    settings: ClassVar[Mapping[str, Any]] = {"reward_scale": 0.1}

    def __init__(self) -> None:
        super().__init__(load("gymnasium", "envs/mujoco/assets/ant.xml").with_options(integrator="implicitfast"))

    def observe(self, bodies: Bodies) -> torch.Tensor:
        """Return height, quaternion, angles and velocities."""
        return torch.cat([bodies.qpos[:, 2:], bodies.qvel], dim=1)

    def reward(self, before: Bodies, after: Bodies, action: torch.Tensor) -> torch.Tensor:
        """Return speed, less the cost of actions, and 1 while it stands."""
        speed = (after.qpos[:, 0] - before.qpos[:, 0]) / self.dt
        return speed + 1.0 * ~self.terminated(after) - 0.5 * action.square().sum(1)

    def terminated(self, bodies: Bodies) -> torch.Tensor:
        """Return whose torso is lower than 0.2 m or higher than 1 m."""
        height = bodies.qpos[:, 2].detach()
        return (height < 0.2) | (height > 1.0)
