"""One closed loop: MuJoCo's body under the plans of a planner in this process, in lockstep."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

import sinew
from sinew.errors import StateError
from sinew.loop.body import Body
from sinew.loop.lockstep import lockstep
from sinew.planner import Planner
from sinew.planner import settings as all_settings
from sinew.sweep.job import Job
from sinew.sweep.judge import met, time_to_success, worst
from sinew.sweep.table import Run
from sinew.sweep.trace import Trace

__all__ = ["Played", "attempt", "play"]


@dataclass(frozen=True, eq=False)
class Played:
    """What came of a run.

    Attributes
    ----------
    result : dict
        Numbers and words by the name of their column.
    curve : dict of list
        ``"time"`` [s] and ``"cost"`` of the states for which plans were made, and of the last.
    trace : dict of array, or None
        Everything, where it was asked for.
    """

    result: dict[str, Any]
    curve: dict[str, list[float]] = field(repr=False)
    trace: dict[str, NDArray[Any]] | None = field(repr=False)


def play(job: Job, keep: bool = False) -> Played:
    """Run a job on one thread; `keep`: with its trace.

    Raises
    ------
    StateError
        The package here is of another version than the job's.
    SinewError
        What a planner refuses: settings, a model without gradients.
    """
    if job.version != sinew.__version__:
        raise StateError(f"sinew here has version {sinew.__version__}, the sweep {job.version}")
    run, task = job.run, sinew.Task.parse(job.text, job.run.task)
    planner = _planner(sinew.Model.read(job.model), task, run)
    robot = mujoco.MjModel.from_binary_path("model.mjb", {"model.mjb": job.model})
    body = Body(robot, timestep=planner.model.opt.timestep, plant=task.plant)
    body.reset(planner.initial)
    trace, began = Trace(planner, keep), time.perf_counter()
    limits = {"iterations": run.iterations, "budget": run.budget}
    steps = round(run.seconds / body.timestep)
    for number, moment in enumerate(lockstep(body, planner, steps, run.execute, **limits)):
        trace.add(moment, planned=number < steps and number % run.execute == 0)
    taken = time.perf_counter() - began
    at = [*range(0, len(trace.time) - 1, run.execute), len(trace.time) - 1]
    curve = {"time": [trace.time[i] for i in at], "cost": [trace.cost[i] for i in at]}
    return Played(_result(trace, body.diverged, taken), curve, trace.arrays(body.model, run) if keep else None)


def attempt(job: Job, keep: bool) -> Played | str:
    """Run a job; returns the text of its error where it fails."""
    try:
        return play(job, keep)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _planner(model: sinew.Model, task: sinew.Task, run: Run) -> Planner:
    """Return the planner of a run, whose plans end by its iterations or its budget."""
    settings = run.all_settings
    if run.budget:  # of whichever planner: all of them have the same time
        settings |= {x: 0 for x, known in all_settings().items() if x.endswith("iterations") and known.lowest == 0}
    planner = Planner(model, task, threads=1, settings=settings, seed=run.seed)
    if not run.budget and not run.iterations and planner.get("iterations") == 0:
        planner.set(iterations=1)  # something has to end a plan
    return planner


def _result(trace: Trace, diverged: bool, taken: float) -> dict[str, Any]:
    """Return the columns of a run's row that say how it went."""
    times, values, measures = np.array(trace.time), trace.measures(), trace.task.measures
    good = met(times, values, measures)
    plans, latency = trace.plans, [plan.seconds for plan in trace.plans]
    quantiles = np.quantile(latency or [np.nan], [0.5, 0.9, 0.99, 1])
    result: dict[str, Any] = {
        "success": bool(good[-1]) and not diverged,
        "diverged": diverged,
        "time_to_success": time_to_success(times, good),
        "cost_mean": float(np.mean(trace.cost)),
        "cost_end": trace.cost[-1],
        "plans": len(plans),
        "plans_failed": trace.failed,
        "iterations_mean": float(np.mean([plan.iterations for plan in plans])) if plans else 0.0,
        "candidates": plans[-1].candidates if plans else 0,
        "simulated": trace.time[-1],
    }
    for measure, column in zip(measures, values.T, strict=True):
        result[f"end: {measure.name}"] = float(column[-1])
        result[f"worst: {measure.name}"] = worst(times, column, measure)
    result |= dict(zip(("latency_p50", "latency_p90", "latency_p99", "latency_max"), quantiles.tolist(), strict=True))
    return result | {"wall": taken}
