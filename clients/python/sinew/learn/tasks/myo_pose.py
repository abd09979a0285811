"""Muscles bring a body into a pose: MyoSuite's models and rewards of hand and elbow; the hand's bounds are smooth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch

from sinew.learn.task import Bodies, Task
from sinew.learn.tasks.models import load, load_with_sensors

__all__ = ["MyoElbowReach", "MyoHandPose"]


class _Muscles(Task):
    """Actions go through MyoSuite's sigmoid to excitations of muscles."""

    frame_skip = 10
    episode = 100

    def controls(self, action: torch.Tensor) -> torch.Tensor:
        """Return excitations in (0, 1)."""
        return torch.sigmoid(5 * (action - 0.5))

    def near(self, distance: torch.Tensor, within: float) -> torch.Tensor:
        """Return 4 times the number of bounds that a distance is within: `within`, and half as much more."""
        return 4.0 * (distance < within) + 4.0 * (distance < 1.5 * within)


class MyoHandPose(_Muscles):
    """Loses the distance of 23 joints from a pose [rad] and a little effort; earns up to 8 near the pose.

    MyoSuite's earns 4 or 8: steps, which no derivative sees. Here they are smooth over 0.1 rad, half of them earned at
    the bound. Activations are observed, too, which MyoSuite's task does not.
    """

    name = "myo_hand_pose"
    settings: ClassVar[Mapping[str, Any]] = {
        "worlds": 8, "iterations": 250, "discount": 0.9, "reward_scale": 0.1, "deviation": 0.15,
        "actor_layers": (128, 64), "critic_layers": (128, 64),
    }  # fmt: skip
    _width = 0.1  # [rad]

    def __init__(self) -> None:
        super().__init__(load("myosuite", "envs/myo/assets/hand/myohand_pose.xml"))
        self._pose = torch.tensor(self.model.key_qpos[0])

    def observe(self, bodies: Bodies) -> torch.Tensor:
        """Return angles, velocities of an action's time, activations and the distance of each joint."""
        return torch.cat([bodies.qpos, self.dt * bodies.qvel, bodies.act, self._pose - bodies.qpos], dim=1)

    def near(self, distance: torch.Tensor, within: float) -> torch.Tensor:
        """Return 4 times the smooth number of bounds that a distance is within."""
        first, second = ((bound - distance) / self._width for bound in (within, 1.5 * within))
        return 4.0 * torch.sigmoid(first) + 4.0 * torch.sigmoid(second)

    def reward(self, before: Bodies, after: Bodies, action: torch.Tensor) -> torch.Tensor:
        """Return MyoSuite's reward, with smooth bounds."""
        distance = (self._pose - after.qpos).norm(dim=1)
        effort = after.act.norm(dim=1) / self.model.na
        return self.near(distance, 0.7) - distance - effort - 50.0 * (distance > 2 * math.pi)

    def terminated(self, bodies: Bodies) -> torch.Tensor:
        """Return whose distance from the pose is more than 2 pi."""
        return (self._pose - bodies.qpos).detach().norm(dim=1) > 2 * math.pi


class MyoElbowReach(_Muscles):
    """Loses ten times the distance of its wrist from a point [m] and a little effort; earns 4 or 8 near it.

    The point is where the wrist is at an angle that is drawn for each episode, as MyoSuite draws it for its pose.
    """

    name = "myo_elbow_reach"
    settings: ClassVar[Mapping[str, Any]] = {
        "worlds": 8, "horizon": 16, "iterations": 200, "reward_scale": 0.1,
        "actor_layers": (32, 32), "critic_layers": (32, 32),
    }  # fmt: skip
    _angles: ClassVar[tuple[float, float]] = (0.0, 2.27)  # [rad]

    def __init__(self) -> None:
        sensors = '<framepos name="learn_wrist" objtype="site" objname="wrist"/>'
        super().__init__(load_with_sensors("myosuite", "envs/myo/assets/elbow/myoelbow_1dof6muscles.xml", sensors))

    def pose(self, count: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        """Return any angle of the range, at rest."""
        return self._drawn(count, generator), torch.zeros(count, self.model.nv, dtype=torch.float64)

    def goal(self, count: int, generator: torch.Generator) -> torch.Tensor:
        """Return points (N, 3) [m]."""
        return self.seen(self._drawn(count, generator))[:, -3:]

    def observe(self, bodies: Bodies) -> torch.Tensor:
        """Return the angle, its velocity over an action, activations, and the way from the wrist to the point."""
        way = bodies.goal - bodies.sensordata[:, -3:]
        return torch.cat([bodies.qpos, self.dt * bodies.qvel, bodies.act, way], dim=1)

    def reward(self, before: Bodies, after: Bodies, action: torch.Tensor) -> torch.Tensor:
        """Return MyoSuite's reward for a pose, of the distance of the wrist."""
        distance = ((after.goal - after.sensordata[:, -3:]).square().sum(1) + 1e-8).sqrt()
        effort = after.act.norm(dim=1) / self.model.na
        return self.near(distance, 0.04) - 10 * distance - effort

    def _drawn(self, count: int, generator: torch.Generator) -> torch.Tensor:
        low, high = self._angles
        return low + (high - low) * torch.rand(count, 1, generator=generator, dtype=torch.float64)
