"""Everything that happened in one closed loop, for judging it and for plots."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from sinew.loop.lockstep import Moment
from sinew.planner import Plan, Planner
from sinew.rollout import rollout
from sinew.state import State
from sinew.sweep.table import Run

__all__ = ["KINDS", "Trace", "positions"]

Array = NDArray[np.float64]

_GHOSTS = 12  # plans whose states are kept
KINDS = {
    "site": (mujoco.mjtObj.mjOBJ_SITE, "site_xpos"),
    "body": (mujoco.mjtObj.mjOBJ_BODY, "xpos"),
    "geom": (mujoco.mjtObj.mjOBJ_GEOM, "geom_xpos"),
}
"""What has a position: MuJoCo's type, and the field of an MjData."""


class Trace:
    """What happened in one closed loop.

    Parameters
    ----------
    planner : Planner
        It says what states cost, and the values of the task's measures.
    keep : bool
        Whether `arrays` is wanted.

    Attributes
    ----------
    time, cost : list of float
        Of each state: time [s] and cost.
    plans : list of Plan
        Without their arrays unless these are kept.
    failed : int
        States for which every candidate diverged: the plan before went on.
    """

    def __init__(self, planner: Planner, keep: bool) -> None:
        self._planner = planner
        self._keep = keep
        self._no_ctrl = np.zeros((0, planner.model.nu))
        self._measures: list[list[float]] = []
        self._moments: list[Moment] = []
        self.task = planner.task
        self.time: list[float] = []
        self.cost: list[float] = []
        self.plans: list[Plan] = []
        self.failed = 0

    def add(self, moment: Moment, planned: bool) -> None:
        """Add the next state; `planned`: a plan was wanted for it."""
        self.time.append(float(moment.state.time))  # type: ignore[arg-type]
        self.cost.append(self._planner.evaluate(moment.state, self._no_ctrl).cost)
        self._measures.append(list(self._planner.measure(moment.state).values()))
        if self._keep:
            self._moments.append(moment)
        if isinstance(moment.plan, Plan):
            self.plans.append(moment.plan)
        elif planned:
            self.failed += 1

    def measures(self) -> Array:
        """Return the values of the measures of all states, (n, number of measures)."""
        return np.array(self._measures, np.float64).reshape(len(self.time), -1)

    def arrays(self, model: mujoco.MjModel, run: Run) -> dict[str, NDArray[Any]]:
        """Return all that is kept, by the names that `sinew.plot` knows."""
        import yaml

        task = yaml.safe_load(self.task.text)
        names = [str(term["name"]) for term in task["terms"]]
        seen = dict.fromkeys(_seen(task["terms"]))
        qpos = np.array([moment.state.qpos for moment in self._moments])
        planned = [(x.state, x.plan) for x in self._moments if isinstance(x.plan, Plan)]
        ghosts = planned[:: max(1, -(-len(planned) // _GHOSTS))]
        ghost_qpos = np.array([self._expected(state, plan) for state, plan in ghosts])
        return {
            "time": np.array(self.time),
            "qpos": qpos,
            "qvel": np.array([moment.state.qvel for moment in self._moments]),
            "act": np.array([moment.state.act for moment in self._moments]),
            "ctrl": np.array([moment.ctrl for moment in self._moments]),
            "cost": np.array(self.cost),
            "measures": self.measures(),
            "measure_names": np.array([x.name for x in self.task.measures], np.str_),
            "measure_below": np.array([x.below for x in self.task.measures]),
            "measure_during": np.array([x.during for x in self.task.measures]),
            "plan_time": np.array([plan.start for plan in self.plans]),
            "plan_latency": np.array([plan.seconds for plan in self.plans]),
            "plan_cost": np.array([plan.cost_after for plan in self.plans]),
            "plan_terms": np.array([plan.terms for plan in self.plans]).reshape(len(self.plans), len(names)),
            "plan_iterations": np.array([plan.iterations for plan in self.plans]),
            "plan_gradient_norm": np.array([plan.gradient_norm for plan in self.plans]),
            "term_names": np.array(names, np.str_),
            "actuator_names": np.array([model.actuator(i).name for i in range(model.nu)], np.str_),
            "title": np.array(f"{Path(run.task).stem}, {run.planner}, seed {run.seed}"),
            "deadline": np.array(run.budget),
            "interval": np.array(run.execute * model.opt.timestep),
            "muscle_names": np.array(_muscles(model), np.str_),
            "place_names": np.array([name for _, name in seen], np.str_),
            "places": positions(model, list(seen), qpos),
            "ghost_time": np.array([plan.start for _, plan in ghosts]),
            "ghost_qpos": ghost_qpos,
            "ghost_places": positions(model, list(seen), ghost_qpos),
        }

    def _expected(self, state: State, plan: Plan) -> Array:
        """Return the positions that a plan expects from its state on: a budget leaves the planner no time for them."""
        return rollout(self._planner.model, state, plan.ctrl, threads=1, gradients=False, outputs=["qpos"]).qpos


def _muscles(model: mujoco.MjModel) -> list[str]:
    """Return a name for each activation."""
    pairs = [(model.actuator(i).name, int(model.actuator_actnum[i])) for i in range(model.nu)]
    return [name if number == 1 else f"{name} {k}" for name, number in pairs for k in range(number)]


def _seen(x: Any) -> Iterator[tuple[str, str]]:
    """Yield kind and name of the sites, bodies and geoms that a part of a task file looks at."""
    if isinstance(x, dict):
        for key, value in x.items():
            if key in KINDS and isinstance(value, str):
                yield key, value
            else:
                yield from _seen(value)
    elif isinstance(x, list):
        for item in x:
            yield from _seen(item)


def positions(model: mujoco.MjModel, seen: list[tuple[str, str]], qpos: Array) -> Array:
    """Return positions (..., number of places, 3) [m] at positions of the joints (..., nq)."""
    data, rows = mujoco.MjData(model), qpos.reshape(-1, model.nq)
    ids = [(KINDS[kind][1], mujoco.mj_name2id(model, KINDS[kind][0], name)) for kind, name in seen]
    places = np.empty((len(rows), len(ids), 3))
    for row, place in zip(rows, places, strict=True):
        data.qpos = row
        mujoco.mj_kinematics(model, data)
        for i, (field, number) in enumerate(ids):
            place[i] = getattr(data, field)[number]
    return places.reshape(*qpos.shape[:-1], len(ids), 3)
