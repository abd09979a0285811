"""Settings of SHAC."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from sinew.errors import ArgumentError
from sinew.names import did_you_mean

__all__ = ["Settings"]


@dataclasses.dataclass(frozen=True)
class Settings:
    """How SHAC learns. Tasks have values of their own for some (`Task.settings`).

    Attributes
    ----------
    seed : int
        Of networks, noise of actions, starts and batches.
    worlds : int
        Bodies that are stepped together, N.
    horizon : int
        Steps whose return is differentiated, H.
    iterations : int
        Updates of the actor in all; learning rates fall linearly over them.
    discount : float
        Of rewards, a step.
    trace : float
        Lambda of the critic's targets: 0 bootstraps after a step, 1 at the end of the horizon.
    reward_scale : float
        Multiplies rewards for the networks; logs have them as they are.
    actor_rate, critic_rate, last_rate : float
        Adam's rates at the beginning, and of both at the end.
    critic_passes, critic_batches : int
        Passes over the samples of an iteration, and batches of each.
    target_keep : float
        Part of the target critic that an iteration keeps; the rest becomes the critic's.
    gradient_limit : float
        Largest norm of a network's gradient; what is longer is shortened.
    state_gradient_limit : float
        Largest norm of the derivative by the state of each body at each step; 0: none.
    actor_layers, critic_layers : tuple of int
        Widths of hidden layers.
    deviation : float
        Standard deviation of the noise of actions at the beginning.
    contact : str
        Contacts while it learns: "model", the model's own, or "mujoco" or "sigmoid" (`Options.contact`).
    contact_width : float
        Of the sigmoid [m], read where `contact` is "sigmoid".
    contact_stiffness : float
        Of smoothed contacts, the share of the depth that a step takes back; read where `contact` is "sigmoid".
    """

    seed: int = 1
    worlds: int = 64
    horizon: int = 32
    iterations: int = 500
    discount: float = 0.99
    trace: float = 0.95
    reward_scale: float = 1.0
    actor_rate: float = 2e-3
    critic_rate: float = 2e-3
    last_rate: float = 1e-5
    critic_passes: int = 4
    critic_batches: int = 4
    target_keep: float = 0.4
    gradient_limit: float = 1.0
    state_gradient_limit: float = 0.0
    actor_layers: tuple[int, ...] = (64, 64)
    critic_layers: tuple[int, ...] = (64, 64)
    deviation: float = 0.4
    contact: str = "model"
    contact_width: float = 0.005
    contact_stiffness: float = 0.2

    def __post_init__(self) -> None:
        for name in ("worlds", "horizon", "iterations", "critic_passes", "critic_batches"):
            if getattr(self, name) < 1:
                raise ArgumentError(f"{name}: {getattr(self, name)}, allowed is 1 and more")
        for name in ("actor_rate", "critic_rate", "last_rate", "gradient_limit", "deviation", "reward_scale"):
            if not getattr(self, name) > 0:
                raise ArgumentError(f"{name}: {getattr(self, name)}, allowed is more than 0")
        for name in ("discount", "trace", "target_keep"):
            if not 0 <= getattr(self, name) <= 1:
                raise ArgumentError(f"{name}: {getattr(self, name)}, allowed is 0 to 1")
        if not self.state_gradient_limit >= 0:
            raise ArgumentError(f"state_gradient_limit: {self.state_gradient_limit}, allowed is 0 and more")
        for name in ("actor_layers", "critic_layers"):
            if not getattr(self, name) or min(getattr(self, name)) < 1:
                raise ArgumentError(f"{name}: {getattr(self, name)}, expected widths of 1 and more")

        if self.contact not in ("model", "mujoco", "sigmoid"):
            raise ArgumentError(f"contact: {self.contact!r}, allowed is model, mujoco or sigmoid")

    @property
    def options(self) -> dict[str, Any]:
        """Options of the model while it learns."""
        if self.contact != "sigmoid":
            return {} if self.contact == "model" else {"contact": self.contact}
        return {name: getattr(self, name) for name in ("contact", "contact_width", "contact_stiffness")}

    @classmethod
    def of(cls, *changes: Mapping[str, Any]) -> Settings:
        """Return the defaults with changes, of which the later ones count. Values may be texts.

        Raises
        ------
        ArgumentError
            There is no such setting, or a value is wrong.
        """
        types = {field.name: field.type for field in dataclasses.fields(cls)}
        values: dict[str, Any] = {}
        for name, value in (pair for change in changes for pair in change.items()):
            if name not in types:
                raise ArgumentError(f"there is no setting {name!r}{did_you_mean(name, types)}")
            values[name] = _value(name, str(types[name]), value)
        return cls(**values)


def _value(name: str, kind: str, value: Any) -> Any:
    """Return a value in the type of its setting."""
    try:
        if kind == "int":
            return int(value)
        if kind == "float":
            return float(value)
        if kind == "str":
            return str(value)
        return tuple(int(x) for x in (value.split(",") if isinstance(value, str) else value))
    except (TypeError, ValueError):
        expected = {"int": "a whole number", "float": "a number"}.get(kind, "whole numbers, as in 64,64")
        raise ArgumentError(f"{name}: {value!r}, expected {expected}") from None
