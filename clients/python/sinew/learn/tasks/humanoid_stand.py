"""A humanoid keeps standing: dm_control's model and the reward of its task `stand`; episodes begin upright.

What dm_control reads of the head and the torso comes from sensors that are added to the model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch

from sinew.learn.task import Bodies, Task
from sinew.learn.tasks.models import load_with_sensors

__all__ = ["HumanoidStand"]

_SENSORS = """
  <framepos name="learn_head" objtype="xbody" objname="head"/>
  <framezaxis name="learn_upright" objtype="xbody" objname="torso"/>
  <subtreelinvel name="learn_speed" body="torso"/>
"""
_HEIGHT = 1.4  # of the head [m]


def _near(x: torch.Tensor, margin: float) -> torch.Tensor:
    """Return 1 at 0, and a tenth at the margin, by a normal curve."""
    return torch.exp(math.log(0.1) * (x / margin).square())


class HumanoidStand(Task):
    """Earns up to 1 for each action: the product of height of the head, an upright torso, little control and rest."""

    name = "humanoid_stand"
    frame_skip = 5
    episode = 400
    noise = 0.02
    diverged_reward = 0.0
    settings: ClassVar[Mapping[str, Any]] = {
        "worlds": 16, "iterations": 400, "deviation": 0.15, "state_gradient_limit": 0.03,
        "actor_layers": (128, 64), "critic_layers": (128, 64),
    }  # fmt: skip

    def __init__(self) -> None:
        super().__init__(load_with_sensors("dm_control", "suite/humanoid.xml", _SENSORS))

    def observe(self, bodies: Bodies) -> torch.Tensor:
        """Return height, quaternion, angles and velocities."""
        return torch.cat([bodies.qpos[:, 2:], bodies.qvel], dim=1)

    def reward(self, before: Bodies, after: Bodies, action: torch.Tensor) -> torch.Tensor:
        """Return how well it stands, 0 to 1."""
        head, axis, speed = after.sensordata[:, -9:].split(3, dim=1)
        standing = _near((_HEIGHT - head[:, 2]).clamp(min=0), _HEIGHT / 4)
        upright = (1 - (0.9 - axis[:, 2]).clamp(min=0) / 1.9).clamp(min=0)
        little = (4 + (1 - self.controls(action).square()).clamp(min=0).mean(1)) / 5
        return standing * upright * little * _near(speed[:, :2], 2.0).mean(1)

    def terminated(self, bodies: Bodies) -> torch.Tensor:
        """Return whose head is lower than 1 m."""
        return bodies.sensordata[:, -7].detach() < 1.0
