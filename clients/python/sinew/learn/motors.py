"""Motors of joints: a PD law whose torque is limited by speed, as operations on tensors.

A motor at a bus of limited voltage has less torque the faster it turns the way it pushes. Its limit is the line from
the stall torque at rest to 0 at the greatest speed, cut by what the joint may take; braking is not limited by speed:

    torque = clamp(k (target - q) - d v, -most(-v), most(v)),    most(v) = clamp(stall (1 - v / fastest), 0, effort).

At a limit the derivative by the target is 0, and that by the speed is the slope of the line, or 0 where
the effort cuts it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from sinew.errors import ArgumentError

__all__ = ["ANYDRIVE", "Motors"]


@dataclass(frozen=True)
class Motors:
    """Motors of one kind.

    Attributes
    ----------
    stiffness : float
        Torque by the way to the target [N m/rad].
    damping : float
        Torque against the velocity [N m s/rad].
    effort : float
        Greatest torque [N m].
    stall : float
        Torque at rest of the line that falls with speed [N m].
    fastest : float
        Speed at which that line is 0 [rad/s].
    """

    stiffness: float
    damping: float
    effort: float
    stall: float
    fastest: float

    def __post_init__(self) -> None:
        for name in ("stiffness", "damping", "effort", "stall", "fastest"):
            if not getattr(self, name) > 0:
                raise ArgumentError(f"{name}: {getattr(self, name)}, allowed is more than 0")

    def limits(self, qvel: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the least and the greatest torque at velocities [rad/s], in their shape."""
        slope = qvel / self.fastest
        least = (self.stall * (-1 - slope)).clamp(-self.effort, 0.0)
        return least, (self.stall * (1 - slope)).clamp(0.0, self.effort)

    def torque(
        self,
        target: torch.Tensor,
        qpos: torch.Tensor,
        qvel: torch.Tensor,
        stiffness: torch.Tensor | float = 1.0,
        damping: torch.Tensor | float = 1.0,
    ) -> torch.Tensor:
        """Return torques (N, nu) towards targets (N, nu) at positions and velocities of the joints (N, nu).

        `stiffness` and `damping` are factors of the gains, for each body (N, 1) or for all.
        """
        wanted = stiffness * self.stiffness * (target - qpos) - damping * self.damping * qvel
        least, most = self.limits(qvel)
        return torch.minimum(torch.maximum(wanted, least), most)


# Drives of ANYmal C. Limits: Isaac Lab's ANYDRIVE_3_SIMPLE_ACTUATOR_CFG; gains: legged_gym (N. Rudin et al. 2021).
ANYDRIVE = Motors(stiffness=80.0, damping=2.0, effort=80.0, stall=120.0, fastest=7.5)
