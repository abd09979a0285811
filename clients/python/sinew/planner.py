"""Planners in this process: a body, a task, and a plan that is refined from state to state.

>>> model, task = sinew.Model.from_xml("arm_reach.xml"), sinew.Task("arm_reach")
>>> planner = sinew.planner.Planner(model, task, settings={"planner": "adam"})
>>> plan = planner.plan(planner.initial, iterations=8)
>>> ctrl = planner.control(plan.start)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sinew import _core
from sinew._arrays import Doubles, doubles, history_of, number, one_state, switch, whole
from sinew.data import Warnings
from sinew.errors import ArgumentError, NotFoundError
from sinew.model import Model, not_a_model
from sinew.names import did_you_mean
from sinew.state import State, StateLike
from sinew.task import Task

__all__ = ["Evaluation", "Plan", "Planner", "Setting", "settings"]


class Setting(NamedTuple):
    """A setting of planners."""

    name: str
    unit: str
    doc: str
    choices: tuple[str, ...] | None  # None: a number or a text
    integer: bool  # a whole number
    live: bool  # may change while a planner runs
    value: float | str  # default
    lowest: float  # of a number
    highest: float
    text: bool = False  # a text, without bounds


@cache
def settings() -> dict[str, Setting]:
    """Return all settings of planners by their names, with defaults and bounds."""
    table = {}
    for x in _core.settings():
        choices = None if x["choices"] is None else tuple(x["choices"].split("|"))
        value = choices[int(x["value"])] if choices else int(x["value"]) if x["integer"] else x["value"]
        if x["text"] is not None:
            value = x["text"]
        table[x["name"]] = Setting(**{**x, "choices": choices, "value": value, "text": x["text"] is not None})
    return table


def _assignment(name: str, value: Any) -> str:
    """Return a setting as the library takes it."""
    setting = settings().get(name)
    if setting is None:
        raise NotFoundError(f"there is no setting {name!r}{did_you_mean(name, settings())}")
    if setting.choices is not None and value not in setting.choices:
        raise ArgumentError(f"setting {name}: {value!r}, expected one of {', '.join(setting.choices)}")
    if setting.text and not isinstance(value, str):
        raise ArgumentError(f"setting {name}: {value!r}, expected a text")
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if setting.choices is None and not setting.text and not is_number:
        raise ArgumentError(f"setting {name}: {value!r}, expected a number from {setting.lowest} to {setting.highest}")
    if isinstance(value, str):
        return f"{name}={value}"
    return f"{name}={int(value) if setting.integer and float(value).is_integer() else float(value)!r}"


@dataclass(frozen=True, eq=False)
class Plan:
    """A plan. Its arrays are copies.

    Attributes
    ----------
    number : int
        1, 2, ... in the life of the planner.
    start, step : float
        Time of the first row of `ctrl`, and between rows [s].
    lead : int
        Rows before the optimised ones: those of the plan before.
    ctrl : array, (steps, nu)
        Controls.
    qpos, qvel, act : array, (steps + 1, nq), (steps + 1, nv), (steps + 1, na), or None
        Predicted states, where they were asked for.
    cost_before, cost_after : float
        Cost of the shifted plan before (infinite: it diverged, NaN: not evaluated), and of this plan.
    terms : array, (number of terms,)
        Weighted parts of `cost_after`, in the order of the task's terms.
    iterations : int
        Iterations that went into it; the last may be partial.
    candidates : int
        Candidates of the last iteration that were used.
    gradient_norm : float
        At this plan, or, where the deadline left no time for that, at the iterate before. NaN: there is none.
    refined : bool
        False: the shifted plan of before, there was no time.
    deadline_met : bool
        Whether it was made within the budget.
    act_estimated : bool
        Whether the state came without activations.
    device_lost : bool
        Whether the CPU made it, because the device is lost.
    warnings : Warnings
        What happened in the rollouts that count.
    backend, remark : str
        Name of what made it, and what a user should know of how.
    seconds : float
        Time that it took [s].
    gain : array, (gain_rows, nu, 2 nv + na), or None
        Feedback of the rows from `lead` on, where it was asked for: see `Planner.feedback`.
    gain_rows : int
        Rows that have feedback; where none have although it was asked for, `remark` says why.
    stuck : bool
        Whether it is no better than the shifted plan before, and its gradient next to nothing.
    unimproved : int
        Plans in a row, up to this one, whose cost did not fall; 0: that of this one did.
    from_policy : bool
        Whether it began with the rollout of the task's policy, not with the shifted plan before.
    """

    number: int
    start: float
    step: float
    lead: int
    ctrl: Doubles = field(repr=False)
    qpos: Doubles | None = field(repr=False)
    qvel: Doubles | None = field(repr=False)
    act: Doubles | None = field(repr=False)
    cost_before: float
    cost_after: float
    terms: Doubles
    iterations: int
    candidates: int
    gradient_norm: float
    refined: bool
    deadline_met: bool
    act_estimated: bool
    device_lost: bool
    warnings: Warnings
    backend: str
    remark: str
    seconds: float
    gain: Doubles | None = field(repr=False)
    gain_rows: int
    stuck: bool
    unimproved: int
    from_policy: bool

    @property
    def time(self) -> Doubles:
        """Times of the rows of `ctrl`, (steps,) [s]."""
        return self.start + self.step * np.arange(len(self.ctrl), dtype=np.float64)


class Evaluation(NamedTuple):
    """Cost of controls, infinite where the motion diverges, and its gradient where it was asked for."""

    cost: float
    gradient: NDArray[np.float64] | None  # (steps, nu)


class Planner:
    """A planner: the one that sinewd runs for a session, with the same plans bit for bit.

    It belongs to one thread at a time: a call while another is under way raises `StateError`. Calls that compute
    release the interpreter's lock, and Ctrl-C ends them.

    Parameters
    ----------
    model : Model
        What moves.
    task : Task
        What it shall do.
    threads : int
        Threads of the CPU; 0: as many as this process may use.
    device : str
        "cpu" or "cuda". The CPU goes on where a device is lost.
    settings : mapping, optional
        Settings by name, over those of the task; `sinew.planner.settings` lists all.
    seed : int
        Perturbs the initial pose and plan (0: not), and keys the noise.

    Raises
    ------
    NotFoundError
        There is no such setting, or the model has not a name of the task: a list of them.
    ArgumentError
        A value of a setting: its bounds.
    UnsupportedError
        There are no gradients, which all planners but sampling, MPPI and CEM need.
    StateError
        The body diverges before it has settled.
    """

    model: Model
    task: Task

    def __init__(
        self,
        model: Model,
        task: Task,
        *,
        threads: int = 0,
        device: str = "cpu",
        settings: Mapping[str, float | str] | None = None,
        seed: int = 0,
    ):
        if not isinstance(model, Model):
            raise not_a_model("model", model)
        if not isinstance(task, Task):
            raise ArgumentError(f"task: {type(task).__name__}, expected a sinew.Task")
        if settings is not None and not isinstance(settings, Mapping):
            raise ArgumentError(f"settings: {settings!r}, expected a mapping of names to values or None")
        assignments = [_assignment(name, value) for name, value in (settings or {}).items()]
        cpu = _core.Backend("cpu", whole("threads", threads))
        backend, fallback = (cpu, None) if device == "cpu" else (_core.Backend(device, 0), cpu)
        self._native = _core.Planner(model._native, task._native, backend, fallback, assignments, _seed(seed))
        self.task = task
        self.model = Model._wrap(self._native.model())  # with the task's options

    @property
    def initial(self) -> State:
        """A copy of the state in which the body shall start."""
        return State(**self._native.initial())

    def reset(self, seed: int = 0) -> None:
        """Go back to the initial state and plan; settings, weights and targets that were set stay."""
        self._native.reset(_seed(seed))

    def plan(
        self,
        state: StateLike,
        *,
        latency: float = 0.0,
        budget: float = 0.0,
        iterations: int = 0,
        states: bool = False,
        gains: int = 0,
    ) -> Plan:
        """Make a plan, which is the warm start of the next.

        Parameters
        ----------
        state : State, mapping or MjData
            Measured state. It needs qpos and qvel. Without act it is estimated from the controls since the state
            before, and so are buffers of controls without history; without mocap it is as in the plan before, at
            first as in the task.
        latency : float
            Time until the plan is in force [s]: the state is first rolled forward by it.
        budget : float
            Time to compute [s]; 0: no limit.
        iterations : int
            Most iterations; 0: as the settings say.
        states : bool
            Whether predicted states are wanted.
        gains : int
            Rows behind the lead whose feedback gains are wanted, with the predicted states: `feedback`.

        Raises
        ------
        ArgumentError
            A number of the request that is not allowed; neither a budget nor iterations, here or by a setting.
        UnsupportedError
            Gains are wanted of a planner that makes none.
        DivergedError
            Every candidate diverged: there is no plan.
        KeyboardInterrupt
            The plan before stays in force.
        """
        time, qpos, qvel, act, mocap = one_state(self.model, state)
        made = self._native.plan(
            time, qpos, qvel, act, mocap, number("latency", latency), number("budget", budget),
            whole("iterations", iterations), switch("states", states), whole("gains", gains),
            history_of(self.model, state),
        )  # fmt: skip
        if made["gain"] is not None:
            made["gain"] = made["gain"].reshape(made["gain_rows"], self.model.nu, -1)
        return Plan(**{**made, "warnings": Warnings(made["warnings"])})

    def control(self, time: float) -> Doubles:
        """Return the controls (nu,) of the latest plan at a time [s]: the row in force, within the plan.

        Raises
        ------
        NoPlanError
            There is none since the last reset.
        """
        ctrl = np.empty(self.model.nu)
        self._native.control(number("time", time), ctrl)
        return ctrl

    def feedback(self, state: StateLike) -> Doubles:
        """Return the controls (nu,) for a measured state: those of `control` at its time, with the plan's feedback.

        A row with gains becomes its controls plus its gain times the difference of the state to the predicted one,
        within the ranges of the controls. Other rows stay as they are, and so do all after a plan that failed.

        Parameters
        ----------
        state : State, mapping or MjData
            Time, qpos, qvel and act.

        Raises
        ------
        ArgumentError
            A part that is missing, a shape, or a number that is not finite.
        NoPlanError
            There is none since the last reset.
        """
        time, qpos, qvel, act, _ = one_state(self.model, state)
        ctrl = np.empty(self.model.nu)
        self._native.feedback(time, qpos, qvel, act, ctrl)
        return ctrl

    def evaluate(self, state: StateLike, ctrl: ArrayLike, gradient: bool = False) -> Evaluation:
        """Return the cost of controls (steps, nu) from a state, under the weights and targets in force.

        Plans go on as if there had been no evaluation.

        Raises
        ------
        ArgumentError
            A shape, or a number that is not finite.
        UnsupportedError
            There are no gradients.
        DivergedError
            The derivative left the range of numbers.
        """
        controls = doubles("ctrl", ctrl)
        if controls.ndim != 2 or controls.shape[1] != self.model.nu:
            raise ArgumentError(f"ctrl: shape {controls.shape}, expected (steps, {self.model.nu})")
        time, qpos, qvel, act, mocap = one_state(self.model, state)
        to = np.empty_like(controls) if gradient else None
        return Evaluation(self._native.evaluate(time, qpos, qvel, act, mocap, controls, to), to)

    def measure(self, state: StateLike) -> dict[str, float]:
        """Return the values of the measures of success of the task in a state, by name, under the targets in force."""
        names = [x.name for x in self.task.measures]
        time, qpos, qvel, act, mocap = one_state(self.model, state)
        values = np.empty(len(names))
        self._native.measure(time, qpos, qvel, act, mocap, values)
        return dict(zip(names, values.tolist(), strict=True))

    def get(self, name: str) -> float | str:
        """Return the present value of a setting."""
        text = self._native.get(name)
        setting = settings()[name]
        return text if setting.choices is not None or setting.text else int(text) if setting.integer else float(text)

    def set(self, **values: float | str) -> None:
        """Change live settings, from the next plan on: ``planner.set(adam_rate=0.02)``.

        Raises
        ------
        NotFoundError
            There is no such setting.
        ArgumentError
            A value is out of bounds, which are named.
        StateError
            A setting cannot change while a planner runs.
        """
        for assignment in [_assignment(name, value) for name, value in values.items()]:
            self._native.set(assignment)

    def set_weight(self, term: str, weight: float, terminal: float) -> None:
        """Change the weights of a term of the cost, running and at the end of the horizon, each 0 to 1e9."""
        self._native.set_weight(term, number("weight", weight), number("terminal", terminal))

    def set_target(self, term: str, value: ArrayLike | None) -> None:
        """Change the target of a term, or of a measure of success; None: the task's own again."""
        self._native.set_target(term, [] if value is None else doubles("value", value).ravel().tolist())

    def targets(self, time: ArrayLike) -> Doubles:
        """Return the targets that the terms of the task give as numbers, at times.

        They are what a policy reads behind qpos, qvel and act (the task's `policy`, the setting ``warm_start``).

        Parameters
        ----------
        time : array_like, (rows,) or a number
            Times [s].

        Returns
        -------
        array, (rows, ntarget), or (ntarget,) for one time
            In the order of the terms, under the targets in force.
        """
        times = doubles("time", time)
        rows = np.array(self._native.targets(times.ravel().tolist()), dtype=np.float64)
        return rows.reshape(*times.shape, -1) if times.size else rows.reshape(0, 0)


def _seed(seed: int) -> int:
    """Return a seed that the library can hold."""
    if not isinstance(seed, int | np.integer) or not 0 <= seed < 2**64:
        raise ArgumentError(f"seed: {seed!r}, expected a whole number from 0 to 2**64 - 1")
    return int(seed)
