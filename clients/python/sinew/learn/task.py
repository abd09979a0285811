"""What a task of learning is: a model, observations, a reward, starts and ends of episodes."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple
from weakref import WeakKeyDictionary

import torch

from sinew.cfd import CFD
from sinew.errors import ArgumentError, UnsupportedError
from sinew.model import Model
from sinew.torch import rollout, rollout_and_ends

__all__ = ["Bodies", "Physics", "Task"]


class Bodies(NamedTuple):
    """States of N bodies, in doubles.

    Attributes
    ----------
    qpos, qvel, act : Tensor, (N, .)
        As in `sinew.State`.
    sensordata : Tensor, (N, nsensordata)
        Sensors at the state before the last step of the model; at a start those of the state itself.
    qacc_warmstart : Tensor, (N, nv)
        What the solver starts from, a constant.
    goal : Tensor, (N, .)
        What a task draws for an episode, and what else it carries from action to action.
    """

    qpos: torch.Tensor
    qvel: torch.Tensor
    act: torch.Tensor
    sensordata: torch.Tensor
    qacc_warmstart: torch.Tensor
    goal: torch.Tensor

    def each(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Bodies:
        """Return the bodies with every tensor changed."""
        return Bodies(*map(change, self))

    def where(self, mask: torch.Tensor, others: Bodies) -> Bodies:
        """Return `others` where the mask (N,) is set, and these elsewhere."""
        rows = mask[:, None]
        return Bodies(*(torch.where(rows, other, own) for own, other in zip(self, others, strict=True)))


@dataclass(frozen=True)
class Physics:
    """How bodies are stepped.

    Attributes
    ----------
    threads : int
        Threads of the CPU; 0: as many as this process may use.
    cfd : CFD, optional
        Contacts from distance.
    options : mapping
        Options in place of the model's, as `Model.with_options` takes them: ``{"contact": "sigmoid"}``.
    """

    threads: int = 0
    cfd: CFD | None = None
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def model(self, model: Model) -> Model:
        """Return a model with these options, made once."""
        if not self.options:
            return model
        made = _with_options.setdefault(model, {})
        key = repr(sorted(self.options.items()))
        if key not in made:
            made[key] = model.with_options(**self.options)
        return made[key]


_with_options: WeakKeyDictionary[Model, dict[Any, Model]] = WeakKeyDictionary()


class Task(abc.ABC):
    """A task. Its rewards and observations are operations on tensors with a row for each body.

    Attributes
    ----------
    name : str
        The name.
    model : Model
        The model.
    frame_skip : int
        Steps of the model under one action.
    episode : int
        Actions until an episode is truncated.
    noise : float
        Half the width of the uniform noise of positions and velocities at a start.
    diverged_reward : float
        Reward of an action under which a body diverges.
    settings : mapping
        Values of `Settings` that suit it.
    """

    name: ClassVar[str]
    frame_skip: ClassVar[int] = 5
    episode: ClassVar[int] = 1000
    noise: ClassVar[float] = 0.0
    diverged_reward: ClassVar[float] = -10.0
    settings: ClassVar[Mapping[str, Any]] = {}
    model: Model

    def __init__(self, model: Model) -> None:
        for name, count in (("mocap bodies", model.nmocap), ("delays or springs that yield", model.nhistory)):
            if count:
                raise UnsupportedError(f"task {self.name}: its model has {name}, which bodies that learn do not have")
        self.model = model
        low, high = torch.tensor(model.ctrl_range).unbind(1)
        if not bool(torch.isfinite(high - low).all()):
            bad = model.actuator(int(torch.argmin(torch.isfinite(high - low).long()))).name
            raise ArgumentError(f"task {self.name}: actuator {bad!r} has no ctrlrange for actions to be scaled to")
        self._middle, self._half = (high + low) / 2, (high - low) / 2

    @property
    def dt(self) -> float:
        """Time of an action [s]."""
        return self.frame_skip * self.model.opt.timestep

    @property
    def actions(self) -> int:
        """Numbers of an action."""
        return self.model.nu

    @abc.abstractmethod
    def observe(self, bodies: Bodies) -> torch.Tensor:
        """Return observations, (N, k)."""

    @abc.abstractmethod
    def reward(self, before: Bodies, after: Bodies, action: torch.Tensor) -> torch.Tensor:
        """Return rewards (N,) of an action (N, nu), in [-1, 1], that led from bodies to bodies."""

    def terminated(self, bodies: Bodies) -> torch.Tensor:
        """Return whose episode has failed, (N,)."""
        return torch.zeros(len(bodies.qpos), dtype=torch.bool)

    def pose(self, count: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        """Return positions and velocities of starts, (N, nq) and (N, nv): `qpos0` at rest, with noise."""
        qpos = torch.tensor(self.model.qpos0).repeat(count, 1)
        return qpos + self._uniform(qpos.shape, generator), self._uniform((count, self.model.nv), generator)

    def goal(self, count: int, generator: torch.Generator) -> torch.Tensor:
        """Return what episodes are to reach, (N, .)."""
        return torch.zeros(count, 0, dtype=torch.float64)

    def start(self, count: int, generator: torch.Generator) -> Bodies:
        """Return bodies at the start of episodes."""
        qpos, qvel = self.pose(count, generator)
        goal = self.goal(count, generator)
        act = torch.zeros(count, self.model.na, dtype=torch.float64)
        return Bodies(qpos, qvel, act, self.seen(qpos, qvel), torch.zeros_like(qvel), goal)

    def seen(self, qpos: torch.Tensor, qvel: torch.Tensor | None = None) -> torch.Tensor:
        """Return sensors (N, nsensordata) at positions and velocities, under controls of 0; NaN counts as 0."""
        with torch.no_grad():
            motion = rollout(self.model, {"qpos": qpos, "qvel": qvel}, nstep=1, threads=1)
        return torch.nan_to_num(motion.sensordata[:, 0])

    def advance(self, bodies: Bodies, action: torch.Tensor, physics: Physics) -> tuple[Bodies, torch.Tensor]:
        """Return the bodies after an action, and which of them have diverged, (N,)."""
        held = self.controls(action)[:, None].expand(-1, self.frame_skip, -1)
        return self.stepped(bodies, held, physics)

    def controls(self, action: torch.Tensor) -> torch.Tensor:
        """Return controls (N, nu) of actions in [-1, 1], scaled to their ranges."""
        return self._middle + self._half * action

    def models(self, bodies: Bodies) -> list[Model] | None:
        """Return a model for each body, where worlds differ; None: all have the task's."""
        return None

    def stepped(self, bodies: Bodies, ctrl: torch.Tensor, physics: Physics) -> tuple[Bodies, torch.Tensor]:
        """Return the bodies after the steps of controls (N, T, nu), and which of them have diverged, (N,)."""
        state = {"qpos": bodies.qpos, "qvel": bodies.qvel, "act": bodies.act}
        state["qacc_warmstart"] = bodies.qacc_warmstart
        models = self.models(bodies)
        each = None if models is None else list(map(physics.model, models))
        how: dict[str, Any] = {"threads": physics.threads, "cfd": physics.cfd, "models": each}
        motion, ends = rollout_and_ends(physics.model(self.model), state, ctrl, **how)
        warm = torch.as_tensor(ends.state.qacc_warmstart)
        qpos, qvel, act, sensordata = (x[:, -1] for x in motion)
        return Bodies(qpos, qvel, act, torch.nan_to_num(sensordata), warm, bodies.goal), ends.diverged

    def _uniform(self, shape: tuple[int, ...] | torch.Size, generator: torch.Generator) -> torch.Tensor:
        return self.noise * (2 * torch.rand(shape, generator=generator, dtype=torch.float64) - 1)
