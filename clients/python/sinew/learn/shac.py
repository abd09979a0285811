"""Short-horizon actor-critic (J. Xu et al. 2021, arXiv 2204.07137).

N bodies go on for H actions from where they are. The actor's loss is minus the mean over bodies of what they earn,

    L = -1 / (N H) sum over pieces of ( sum_t d^t r_t + d^n V'(s_n) ),

where an episode's end cuts the way of a body into pieces: d is the discount, n the length of a piece, V' the target
critic, whose value counts as 0 behind an episode that has failed. L is differentiated through the H actions, the steps
of the bodies between them, and V'. The states that an iteration begins in are constants.

The critic V is fitted by least squares to targets G that mix all lengths of looking ahead,

    G_t = r_t + d ((1 - l) V'(s_t+1) + l G_t+1),   G_t = r_t + d V'(s_t+1) at the end of a piece,

with l the trace. V' follows V slowly.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from typing import Any, NamedTuple

import torch

from sinew.errors import ArgumentError, DivergedError
from sinew.learn.networks import Actor, Normalizer, network
from sinew.learn.settings import Settings
from sinew.learn.task import Physics, Task
from sinew.learn.worlds import Worlds

__all__ = ["Figures", "Shac"]


class Figures(NamedTuple):
    """What an iteration came to.

    Attributes
    ----------
    iteration, samples : int
        Iterations so far, and actions of all bodies.
    episode_return, episode_length : float
        Means of the last hundred episodes that have ended; NaN before the first.
    actor_loss, critic_loss : float
        Losses.
    gradient_norm : float
        Norm of the actor's gradient before it was shortened.
    """

    iteration: int
    samples: int
    episode_return: float
    episode_length: float
    actor_loss: float
    critic_loss: float
    gradient_norm: float


class _Piece(NamedTuple):
    """Samples of an action of all bodies, as constants."""

    seen: torch.Tensor  # (N, k), as it was observed
    reward: torch.Tensor  # (N,), scaled
    value: torch.Tensor  # (N,), of the target critic, of the state after it; 0 where the episode has failed
    ended: torch.Tensor  # (N,)


class Shac:
    """SHAC on a task. It is reproducible: a seed gives the same bits on any number of threads of the physics.

    Parameters
    ----------
    task : Task
        The task.
    settings : Settings
        How it learns.
    physics : Physics, optional
        How bodies are stepped; contacts are those of the settings.
    policy : Module, optional
        A network to begin with, in doubles: of observations (N, k), as they are, it makes (N, nu) whose tangens
        hyperbolicus are the actions. The training changes it. Default: a new one, which sees normalised observations.

    Raises
    ------
    ArgumentError
        The policy does not make a row of nu doubles for each observation.
    """

    def __init__(
        self, task: Task, settings: Settings, physics: Physics | None = None, policy: torch.nn.Module | None = None
    ) -> None:
        self.task, self.settings, s = task, settings, settings
        self.generator = torch.Generator()
        self.generator.manual_seed(s.seed)
        physics = physics or Physics()
        physics = dataclasses.replace(physics, options={**physics.options, **s.options})
        self.worlds = Worlds(task, s.worlds, s.seed, physics)
        seen = self.worlds.observe()
        size = seen.shape[1]
        self.normalizer = Normalizer(size)
        self.given = policy is not None  # such a policy sees observations as they are
        if policy is None:
            policy = network(size, s.actor_layers, task.actions, self.generator)
        else:
            _check_policy(policy, seen, task)
        self.actor = Actor(policy, task.actions, s.deviation)
        self.critic = network(size, s.critic_layers, 1, self.generator)
        self.target = copy.deepcopy(self.critic).requires_grad_(False)
        betas = (0.7, 0.95)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=s.actor_rate, betas=betas)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=s.critic_rate, betas=betas)
        self.iteration = 0

    @property
    def samples(self) -> int:
        """Actions of all bodies so far."""
        return self.iteration * self.settings.worlds * self.settings.horizon

    def policy(self, seen: torch.Tensor) -> torch.Tensor:
        """Return actions (N, nu) of observations (N, k), without noise."""
        return self._act(seen, None)

    def _act(self, seen: torch.Tensor, noise: torch.Tensor | None) -> torch.Tensor:
        actions: torch.Tensor = self.actor(seen if self.given else self.normalizer(seen), noise)
        return actions

    def iterate(self) -> Figures:
        """Update the actor, then the critic.

        Raises
        ------
        ArgumentError
            Rewards have no derivative by the actions.
        DivergedError
            The return, its derivative or a target of the critic is not finite. All is as before the iteration.
        """
        moving = self._moving()
        try:
            loss, pieces = self.loss()
            norm = self._differentiated(loss)
            targets = self._targets(pieces)
            if not bool(torch.isfinite(targets).all()):
                raise DivergedError("a target of the critic is not finite")
        except BaseException:
            self._load_moving(moving)
            raise
        self._set_rates()
        self.actor_optimizer.step()
        critic_loss = self._fit(torch.cat([x.seen for x in pieces]), targets.flatten())
        self.normalizer.update(torch.cat([x.seen for x in pieces]))
        self.iteration += 1
        ended = torch.tensor(self.worlds.ended, dtype=torch.float64).reshape(-1, 2)
        earned, length = ended.mean(0).tolist() if len(ended) else (math.nan, math.nan)
        return Figures(self.iteration, self.samples, earned, length, float(loss), critic_loss, norm)

    def loss(self) -> tuple[torch.Tensor, list[_Piece]]:
        """Move the bodies over a horizon; return the actor's loss and the samples."""
        s, worlds = self.settings, self.worlds
        worlds.cut()
        seen = worlds.observe()
        noise = torch.randn(s.horizon, s.worlds, self.task.actions, generator=self.generator, dtype=torch.float64)
        loss, earned = torch.zeros((), dtype=torch.float64), torch.zeros(s.worlds, dtype=torch.float64)
        weight = torch.ones(s.worlds, dtype=torch.float64)
        pieces, slopes = [], False
        for t in range(s.horizon):
            step = worlds.step(self._act(seen, noise[t]), s.state_gradient_limit)
            ended = step.terminated | step.truncated
            last = ended | (t == s.horizon - 1)
            with torch.set_grad_enabled(bool(last.any())):  # elsewhere only the critic's targets want values
                value = self.target(self.normalizer(step.last_seen)).squeeze(1)
            value = torch.where(step.terminated, 0.0, value)
            reward = s.reward_scale * step.reward
            slopes |= step.reward.requires_grad
            earned, weight = earned + weight * reward, s.discount * weight
            loss = loss - torch.where(last, earned + weight * value, 0.0).sum()
            earned, weight = torch.where(last, 0.0, earned), torch.where(last, 1.0, weight)
            pieces.append(_Piece(seen.detach(), reward.detach(), value.detach(), ended))
            seen = step.seen
        if torch.is_grad_enabled() and not slopes:
            raise ArgumentError(f"task {self.task.name}: its rewards have no derivative by the actions")
        return loss / (s.horizon * s.worlds), pieces

    def _differentiated(self, loss: torch.Tensor) -> float:
        """Put the derivative of the loss, shortened, into the actor; return its norm before that."""
        if not bool(torch.isfinite(loss)):
            raise DivergedError(f"the return of task {self.task.name} is {-float(loss)}")
        self.actor_optimizer.zero_grad()
        loss.backward()
        norm = float(torch.nn.utils.clip_grad_norm_(self.actor.parameters(), self.settings.gradient_limit))
        if not math.isfinite(norm):
            raise DivergedError(f"the derivative of the return of task {self.task.name} has the norm {norm}")
        return norm

    def _targets(self, pieces: list[_Piece]) -> torch.Tensor:
        """Return the targets of the critic, (H, N)."""
        s = self.settings
        targets: list[torch.Tensor] = []
        ahead = pieces[-1].value
        for x in reversed(pieces):
            beyond = torch.where(x.ended, x.value, (1 - s.trace) * x.value + s.trace * ahead)
            ahead = x.reward + s.discount * beyond
            targets.append(ahead)
        return torch.stack(targets[::-1])

    def _fit(self, seen: torch.Tensor, targets: torch.Tensor) -> float:
        """Fit the critic to targets, let the target critic follow; return the mean loss of the last pass."""
        s = self.settings
        seen = self.normalizer(seen)
        losses: list[float] = []
        for _ in range(s.critic_passes):
            order = torch.randperm(len(seen), generator=self.generator)
            losses = []
            for rows in order.chunk(s.critic_batches):
                loss = (self.critic(seen[rows]).squeeze(1) - targets[rows]).square().mean()
                self.critic_optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(self.critic.parameters(), s.gradient_limit)
                self.critic_optimizer.step()
                losses.append(float(loss))
        with torch.no_grad():
            for old, new in zip(self.target.parameters(), self.critic.parameters(), strict=True):
                old.lerp_(new, 1 - s.target_keep)
        return sum(losses) / len(losses)

    def _set_rates(self) -> None:
        s = self.settings
        part = min(self.iteration / s.iterations, 1.0)
        for optimizer, rate in ((self.actor_optimizer, s.actor_rate), (self.critic_optimizer, s.critic_rate)):
            for group in optimizer.param_groups:
                group["lr"] = rate + part * (s.last_rate - rate)

    # ---- state ----

    def _moving(self) -> dict[str, Any]:
        """Return what changes before networks do."""
        worlds, normalizer = self.worlds.state_dict(), self.normalizer.state_dict()
        return {"worlds": worlds, "normalizer": normalizer, "generator": self.generator.get_state()}

    def _load_moving(self, state: dict[str, Any]) -> None:
        self.worlds.load_state_dict(state["worlds"])
        self.normalizer.load_state_dict(state["normalizer"])
        self.generator.set_state(state["generator"])

    def _modules(self) -> dict[str, Any]:
        names = ("actor", "critic", "target", "actor_optimizer", "critic_optimizer")
        return {name: getattr(self, name) for name in names}

    def state_dict(self) -> dict[str, Any]:
        """Return all that the next iterations depend on; tensors of networks are those that go on to change."""
        modules = {name: x.state_dict() for name, x in self._modules().items()}
        return {**self._moving(), **modules, "iteration": self.iteration}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take a state of `state_dict`: iterations go on bit for bit."""
        self._load_moving(state)
        for name, x in self._modules().items():
            x.load_state_dict(state[name])
        self.iteration = int(state["iteration"])


def _check_policy(policy: torch.nn.Module, seen: torch.Tensor, task: Task) -> None:
    """Refuse a network that does not make actions of observations."""
    wanted = (len(seen), task.actions)
    try:
        with torch.no_grad():
            made = policy(seen)
    except RuntimeError as error:  # sizes of layers, or their type
        raise ArgumentError(f"policy: it takes no observations {tuple(seen.shape)} in doubles: {error}") from None
    if tuple(made.shape) != wanted or made.dtype != torch.float64:
        raise ArgumentError(f"policy: it makes {tuple(made.shape)} of {made.dtype}, expected {wanted} of torch.float64")
