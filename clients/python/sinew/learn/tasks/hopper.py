"""A leg hops forward: Gymnasium's model, observations and ends of Hopper-v5, and a reward with more slopes.

Gymnasium gives 1 for each action that the leg stands. That has no slope, and episodes that end early are shorter than a
horizon, so that no value of the future has one either. Here it is 1 upright and falls to 0 where an episode ends.
Another integrator, implicitfast, takes a quarter of the time of the model's own, RK4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch

from sinew.learn.task import Bodies, Task
from sinew.learn.tasks.models import load

__all__ = ["Hopper"]

_HEIGHT, _LOW = 1.2, 0.7  # of the torso: below the first it earns less, at the second an episode ends [m]
_LEAN = 0.2  # where an episode ends [rad]


class Hopper(Task):
    """Earns its speed [m/s] and up to 1 for its posture, and loses a thousandth of its squared actions."""

    name = "hopper"
    frame_skip = 4
    noise = 5e-3
    settings: ClassVar[Mapping[str, Any]] = {"worlds": 16, "iterations": 200, "reward_scale": 0.1}

    def __init__(self) -> None:
        model = load("gymnasium", "envs/mujoco/assets/hopper.xml")
        super().__init__(model.with_options(integrator="implicitfast"))

    def observe(self, bodies: Bodies) -> torch.Tensor:
        """Return height, angles and velocities."""
        return torch.cat([bodies.qpos[:, 1:], bodies.qvel.clamp(-10, 10)], dim=1)

    def reward(self, before: Bodies, after: Bodies, action: torch.Tensor) -> torch.Tensor:
        """Return speed and posture, less the cost of actions."""
        speed = (after.qpos[:, 0] - before.qpos[:, 0]) / self.dt
        lean = (after.qpos[:, 2] / _LEAN).square()
        low = ((_HEIGHT - after.qpos[:, 1]).clamp(min=0) / (_HEIGHT - _LOW)).square()
        return speed + 1 - lean - low - 1e-3 * action.square().sum(1)

    def terminated(self, bodies: Bodies) -> torch.Tensor:
        """Return who is low, leans by more than 0.2 rad, or is anywhere far out."""
        qpos, far = bodies.qpos.detach(), torch.cat([bodies.qpos[:, 2:], bodies.qvel], dim=1).detach().abs()
        return (qpos[:, 1] <= _LOW) | (qpos[:, 2].abs() >= _LEAN) | (far >= 100).any(1)
