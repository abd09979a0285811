"""Bodies of a task that are stepped together, and begin anew when their episodes end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from sinew.learn.task import Bodies, Physics, Task

__all__ = ["Step", "Worlds", "evaluate"]


class Step(NamedTuple):
    """What an action brought to N bodies.

    Attributes
    ----------
    seen : Tensor, (N, k)
        Observations now: of new episodes where one has ended.
    reward : Tensor, (N,)
        Rewards.
    terminated : Tensor of bool, (N,)
        Episodes that have failed; their future is worth nothing.
    truncated : Tensor of bool, (N,)
        Episodes that are as long as they may be.
    last_seen : Tensor, (N, k)
        Observations before new episodes began.
    """

    seen: torch.Tensor
    reward: torch.Tensor
    terminated: torch.Tensor
    truncated: torch.Tensor
    last_seen: torch.Tensor


class Worlds:
    """N bodies of a task.

    Parameters
    ----------
    task : Task
        The task.
    count : int
        N.
    seed : int
        Of starts.
    physics : Physics
        How they are stepped.
    """

    def __init__(self, task: Task, count: int, seed: int, physics: Physics | None = None) -> None:
        self.task, self.count, self.physics = task, count, physics or Physics()
        self.generator = torch.Generator()
        self.generator.manual_seed(seed)
        self.bodies = task.start(count, self.generator)
        self.steps = torch.zeros(count, dtype=torch.int64)
        self.returns = torch.zeros(count, dtype=torch.float64)
        self.ended: tuple[tuple[float, int], ...] = ()  # returns and lengths of the last hundred episodes

    def observe(self) -> torch.Tensor:
        """Return observations, (N, k)."""
        return self.task.observe(self.bodies)

    def cut(self) -> None:
        """Make the present states constants: gradients go no farther back."""
        self.bodies = self.bodies.each(torch.Tensor.detach)

    def step(self, action: torch.Tensor, state_gradient_limit: float = 0.0) -> Step:
        """Apply actions (N, nu) in [-1, 1].

        The derivative by the state of each body is shortened to `state_gradient_limit`, where that is not 0.
        """
        task, before = self.task, self.bodies
        after, diverged = task.advance(before, action, self.physics)
        after = after.where(diverged, before.each(torch.Tensor.detach))
        if state_gradient_limit and after.qpos.requires_grad:
            after = _limited(after, state_gradient_limit)
        reward = torch.where(diverged, task.diverged_reward, task.reward(before, after, action))
        terminated = diverged | task.terminated(after)
        self.steps = self.steps + 1
        truncated = (self.steps >= task.episode) & ~terminated
        self.returns = self.returns + reward.detach()
        last_seen = seen = task.observe(after)
        ended = terminated | truncated
        if bool(ended.any()):
            after = self._begun(after, ended)
            seen = task.observe(after)
        self.bodies = after
        return Step(seen, reward, terminated, truncated, last_seen)

    def _begun(self, after: Bodies, ended: torch.Tensor) -> Bodies:
        """Return the bodies with new ones where episodes have ended."""
        new = zip(self.returns[ended].tolist(), self.steps[ended].tolist(), strict=True)
        self.ended = (*self.ended, *new)[-100:]
        self.steps = torch.where(ended, 0, self.steps)
        self.returns = torch.where(ended, 0.0, self.returns)
        fresh = self.task.start(int(ended.sum()), self.generator)
        rows = torch.cumsum(ended, 0) - 1  # which of the new ones a body gets
        return after.where(ended, fresh.each(lambda x: x[rows.clamp(min=0)]))

    def state_dict(self) -> dict[str, Any]:
        """Return the state, whose tensors do not change later."""
        return {
            "bodies": tuple(x.detach() for x in self.bodies),
            "steps": self.steps,
            "returns": self.returns,
            "ended": self.ended,
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take a state of `state_dict`."""
        self.bodies = Bodies(*state["bodies"])
        self.steps, self.returns = state["steps"], state["returns"]
        self.ended = tuple((float(x), int(n)) for x, n in state["ended"])
        self.generator.set_state(state["generator"])


def _limited(bodies: Bodies, limit: float) -> Bodies:
    """Return the same bodies; derivatives by the state of each are shortened to the limit on their way back."""
    sizes = [bodies.qpos.shape[1], bodies.qvel.shape[1], bodies.act.shape[1]]
    state = torch.cat(bodies[:3], dim=1)

    def shorten(bar: torch.Tensor) -> torch.Tensor:
        return bar * (limit / bar.norm(dim=1, keepdim=True).clamp(min=limit))

    state.register_hook(shorten)
    qpos, qvel, act = state.split(sizes, dim=1)
    return bodies._replace(qpos=qpos, qvel=qvel, act=act)


def evaluate(
    task: Task,
    policy: Callable[[torch.Tensor], torch.Tensor],
    count: int = 32,
    seed: int = 1000,
    physics: Physics | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return returns and lengths, (N,), of one episode of each of `count` bodies.

    Parameters
    ----------
    task : Task
        The task.
    policy : callable
        Makes actions (N, nu) of observations (N, k).
    count : int
        N.
    seed : int
        Of starts.
    physics : Physics, optional
        How they are stepped.
    """
    worlds = Worlds(task, count, seed, physics)
    running = torch.ones(count, dtype=torch.bool)
    returns, lengths = torch.zeros(count, dtype=torch.float64), torch.zeros(count, dtype=torch.int64)
    with torch.no_grad():
        while bool(running.any()):
            step = worlds.step(policy(worlds.observe()))
            returns += torch.where(running, step.reward, 0.0)
            lengths += running
            running &= ~(step.terminated | step.truncated)
    return returns, lengths
