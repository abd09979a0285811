"""What `distill.py refine` learns on: the plans of a daemon's task as episodes of `sinew.learn`, with the task's cost.

An episode is one plan: its rewards add up to minus the cost that the planner gives the same controls. Where it ends
nothing is left to be earned, so over a whole plan SHAC differentiates the planner's cost through policy and body.
"""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

import numpy as np
import torch
import yaml
from tqdm import trange

import sinew
from sinew.learn import Bodies, Physics, Settings, Shac, Task, evaluate
from sinew.planner import Planner

PUSH = 3.0  # half the width of what pushes add to each velocity


class Term(NamedTuple):
    """A term of the cost: weighted squares of some columns of qpos, qvel, act and ctrl, less a target."""

    columns: list[int]
    target: torch.Tensor
    weight: float
    terminal: float


def columns_of(model: sinew.Model, residual: dict[str, Any], name: str) -> list[int]:
    """Return what a residual looks at, counted through qpos, qvel, act and ctrl.

    Raises
    ------
    SystemExit
        It is no quantity of joints, activations or controls.
    """
    kind, of = next(iter(residual.items()))
    begin = {"joint_position": 0, "joint_velocity": model.nq}
    begin |= {"activation": model.nq + model.nv, "control": model.nq + model.nv + model.na}
    if kind not in begin or model.nq != model.njnt or model.na not in (0, model.nu):
        raise SystemExit(f"term {name}: refine knows states of hinges and slides, activations and controls")
    count, part = (model.njnt, model.joint) if kind.startswith("joint") else (model.nu, model.actuator)
    names = [part(i).name for i in range(count)]
    wanted = names if of == "all" else [of] if isinstance(of, str) else of
    return [begin[kind] + names.index(x) for x in wanted]


def terms_of(model: sinew.Model, text: str) -> list[Term]:
    """Read the terms of a task.

    Raises
    ------
    SystemExit
        A term is not a sum of squares without a gate, or its target moves.
    """
    made = []
    for term in yaml.safe_load(text)["terms"]:
        name, target = term["name"], term.get("target", 0.0)
        plain = term.get("norm", "squared") == "squared" and not {"gate", "side", "weights"} & term.keys()
        if not plain or isinstance(target, dict):
            raise SystemExit(f"term {name}: refine knows squares with fixed targets, without gate, side and weights")
        columns = columns_of(model, term["residual"], name)
        goal = torch.tensor(target, dtype=torch.float64).expand(len(columns))
        made.append(Term(columns, goal, term.get("weight", 1.0), term.get("terminal", 0.0)))
    return made


class Plans(Task):
    """Plans of a task from states that are drawn: half the starts of seeds, half states of recordings, pushed or not.

    Parameters
    ----------
    planner : Planner
        A planner of the task; its horizon is an episode's length.
    recorded : ndarray, (N, nq + nv + na + .)
        States of recordings, as a policy reads them.
    seeds : range
        Of starts.
    """

    frame_skip = 1
    diverged_reward = -100.0

    def __init__(self, planner: Planner, recorded: np.ndarray, seeds: range) -> None:
        super().__init__(planner.model)
        model = planner.model
        self.name = f"plans of {planner.task.name}"
        self.episode = self.steps = int(planner.get("horizon"))
        self.terms = terms_of(model, planner.task.text)
        self.targets = torch.tensor(planner.targets(0.0))
        sizes = [model.nq, model.nv, model.na]
        starts = []
        for seed in seeds:
            planner.reset(seed)
            starts.append(np.concatenate([planner.initial.qpos, planner.initial.qvel, planner.initial.act]))
        self.pools = [torch.tensor(x[:, : sum(sizes)]).split(sizes, dim=1) for x in (np.stack(starts), recorded)]

    def start(self, count: int, generator: torch.Generator) -> Bodies:
        """Return bodies at starts of plans; their goal is the number of steps that are left."""
        rows = [torch.randint(len(pool[0]), (count,), generator=generator) for pool in self.pools]
        moving = torch.rand(count, 1, generator=generator) < 0.5
        qpos, qvel, act = (torch.where(moving, b[rows[1]], a[rows[0]]) for a, b in zip(*self.pools, strict=True))
        push = PUSH * (2 * torch.rand(qvel.shape, generator=generator, dtype=torch.float64) - 1)
        pushed = moving & (torch.rand(count, 1, generator=generator) < 0.5)
        qvel = qvel + torch.where(pushed, push, 0.0)
        left = torch.full((count, 1), float(self.steps), dtype=torch.float64)
        return Bodies(qpos, qvel, act, self.seen(qpos, qvel), torch.zeros_like(qvel), left)

    def observe(self, bodies: Bodies) -> torch.Tensor:
        """Return what the planner gives a policy: positions, velocities, activations, targets."""
        targets = self.targets.expand(len(bodies.qpos), -1)
        return torch.cat([bodies.qpos, bodies.qvel, bodies.act, targets], dim=1)

    def advance(self, bodies: Bodies, action: torch.Tensor, physics: Physics) -> tuple[Bodies, torch.Tensor]:
        """Return the bodies after a step of the plan."""
        after, diverged = super().advance(bodies, action, physics)
        return after._replace(goal=bodies.goal - 1), diverged

    def reward(self, before: Bodies, after: Bodies, action: torch.Tensor) -> torch.Tensor:
        """Return minus a step's part of the cost, at the end with that of the last state."""
        ctrl = self.controls(action)
        running = self.cost(before, ctrl, [term.weight / self.steps for term in self.terms])
        ending = self.cost(after, torch.zeros_like(ctrl), [term.terminal for term in self.terms])
        return -running - torch.where(self.terminated(after), ending, 0.0)

    def cost(self, bodies: Bodies, ctrl: torch.Tensor, weights: list[float]) -> torch.Tensor:
        """Return the weighted sum (N,) of the terms."""
        x = torch.cat([bodies.qpos, bodies.qvel, bodies.act, ctrl], dim=1)
        total = torch.zeros(len(x), dtype=torch.float64)
        for term, weight in zip(self.terms, weights, strict=True):
            total = total + weight * (x[:, term.columns] - term.target).square().sum(1)
        return total

    def terminated(self, bodies: Bodies) -> torch.Tensor:
        """Return whose plan is at its end."""
        return bodies.goal[:, 0] < 0.5


class Mean(torch.nn.Module):
    """What a distilled network computes before its last hyperbolic tangent; it shares its numbers."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.chain = network.chain[:-1]
        self.register_buffer("mean", network.mean)
        self.register_buffer("spread", network.spread)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (batch, nu) of inputs as they are."""
        return self.chain((x - self.mean) / self.spread)


def refined(network: Any, plans: Plans, arguments: argparse.Namespace) -> tuple[float, float]:
    """Refine a network in place by SHAC; return what its plans cost at first and at last, means of 32 starts."""
    network.double()
    changes = {"iterations": arguments.updates, "actor_rate": arguments.rate, "seed": arguments.seed}
    settings = Settings(worlds=8, horizon=plans.steps, discount=1.0, deviation=0.02, **changes)
    shac = Shac(plans, settings, Physics(), policy=Mean(network))
    first = cost_of(shac)
    for _ in trange(arguments.updates, desc="updates", leave=False):
        shac.iterate()
    last = cost_of(shac)
    network.float()
    return first, last


def cost_of(shac: Shac) -> float:
    """Return the mean cost of plans from 32 starts, without noise."""
    return -float(evaluate(shac.task, shac.policy, physics=shac.worlds.physics)[0].mean())
