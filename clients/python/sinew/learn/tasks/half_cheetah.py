"""A cheetah of two legs runs forward: Gymnasium's model, observations and reward of HalfCheetah-v5."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch

from sinew.learn.task import Bodies, Task
from sinew.learn.tasks.models import load

__all__ = ["HalfCheetah"]


class HalfCheetah(Task):
    """Earns its speed [m/s], and loses a tenth of its squared actions. No episode fails."""

    name = "half_cheetah"
    frame_skip = 5
    noise = 0.1
    settings: ClassVar[Mapping[str, Any]] = {
        "reward_scale": 0.1, "horizon": 8, "iterations": 960, "discount": 0.97, "contact": "sigmoid",
    }  # fmt: skip

    def __init__(self) -> None:
        super().__init__(load("gymnasium", "envs/mujoco/assets/half_cheetah.xml"))

    def observe(self, bodies: Bodies) -> torch.Tensor:
        """Return height, angles and velocities."""
        return torch.cat([bodies.qpos[:, 1:], bodies.qvel], dim=1)

    def reward(self, before: Bodies, after: Bodies, action: torch.Tensor) -> torch.Tensor:
        """Return speed, less the cost of actions."""
        return (after.qpos[:, 0] - before.qpos[:, 0]) / self.dt - 0.1 * action.square().sum(1)
