"""What the daemon answers, as dataclasses. Names, units and meanings are those of ``proto/sinew.proto``.

Times are in seconds. Arrays are read-only float64. NaN and infinities mean what the schema says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sinew.client.quantities import ModelDescription, Quantity, Trajectory
from sinew.client.tasks import (
    GateDescription,
    GateValue,
    MeasureDescription,
    ObjectName,
    Plant,
    TaskDescription,
    TermDescription,
    term_of,
)
from sinew.state import State

__all__ = [
    "Config",
    "Device",
    "Evaluation",
    "GateDescription",
    "GateValue",
    "Gradient",
    "Health",
    "Hello",
    "Limits",
    "LoadedModel",
    "MeasureDescription",
    "MeasureValue",
    "ModelDescription",
    "ModelSummary",
    "ObjectName",
    "Plant",
    "Quantity",
    "SessionStatistics",
    "SettingInfo",
    "Statistics",
    "StreamReply",
    "TaskDescription",
    "TaskSummary",
    "Telemetry",
    "TermDescription",
    "TermGradient",
    "TermSettings",
    "Trajectory",
]

Array = NDArray[np.float64]


# ---------------------------------------------------------------------------------------- the daemon


@dataclass(frozen=True)
class Limits:
    """What the daemon takes at most: bytes of a message, steps of a plan, sessions, models, waiting requests."""

    message_bytes: int
    sessions: int
    horizon: int
    models: int
    queue: int


@dataclass(frozen=True)
class Hello:
    """Who answers.

    Attributes
    ----------
    protocol : int
        Version of the protocol.
    version : str
        Of the daemon.
    planners, backends : tuple of str
        What may be asked for; the first backend makes the plans.
    number : str
        Number type of the engine, ``"double"`` or ``"float"``.
    limits : Limits
    telemetry, records : str
        Addresses of telemetry and of records, empty where there are none.
    role : str
        Of this connection: ``"watch"``, ``"plan"``, ``"tune"`` or ``"admin"``.
    """

    protocol: int
    version: str
    planners: tuple[str, ...]
    backends: tuple[str, ...]
    number: str
    limits: Limits
    telemetry: str
    records: str = ""
    role: str = ""


@dataclass(frozen=True)
class Device:
    """The device that plans are made on; memory in bytes, ``lost_for`` in seconds."""

    backend: str
    text: str
    memory_used: int
    memory_budget: int
    memory_total: int
    lost: bool
    reason: str
    lost_for: float


@dataclass(frozen=True)
class Health:
    """How the daemon is.

    Attributes
    ----------
    state : str
        ``"READY"``, ``"STOPPING"``, ``"STALLED"`` or ``"DEGRADED"`` (its device is lost).
    text : str
        For people.
    uptime, planner_age : float
        Since its start, and since its planner last said that it is alive [s].
    sessions, models : int
        Open sessions, loaded models.
    memory_bytes : int
        Resident.
    device : Device or None
        None where it plans on the CPU.
    """

    state: str
    text: str
    uptime: float
    sessions: int
    models: int
    planner_age: float
    memory_bytes: int
    device: Device | None


@dataclass(frozen=True)
class SessionStatistics:
    """Counters of one session; latencies and ages in seconds, NaN before the first plan."""

    session: int
    task: str
    plans: int
    misses: int
    replaced: int
    latency_p50: float
    latency_p99: float
    cost: float
    idle: float
    config_version: int
    best_cost: float
    gradient_norm: float
    iterations: int
    sent: int
    plan_age: float
    streaming: bool
    backend: str
    overflows: int
    unimproved: int
    stuck: bool
    served: float
    name: str
    restarts: int


@dataclass(frozen=True)
class Statistics:
    """Counters of the daemon, or of one session; times in seconds."""

    uptime: float
    requests: int
    errors: int
    malformed: int
    plans: int
    misses: int
    replaced: int
    latency_p50: float
    latency_p99: float
    queue: int
    sessions: tuple[SessionStatistics, ...]
    device: Device | None
    sessions_on_device: int
    sessions_on_cpu: int


@dataclass(frozen=True)
class Telemetry:
    """What the daemon publishes all the time: seconds since its start, and its statistics."""

    time: float
    statistics: Statistics


# ----------------------------------------------------------------------------------- models and tasks


@dataclass(frozen=True)
class ModelSummary:
    """A model that the daemon can load, whether it has, and how many sessions use it."""

    name: str
    loaded: bool
    sessions: int


@dataclass(frozen=True)
class LoadedModel:
    """A model that was loaded, and how long that took [s]; near zero when it was loaded before."""

    model: str
    seconds: float


@dataclass(frozen=True)
class TaskSummary:
    """A task of the daemon, its model, a line for people, and why it cannot be used (empty when it can)."""

    name: str
    model: str
    text: str
    error: str


# ------------------------------------------------------------------------------------------- settings


@dataclass(frozen=True, eq=False)
class TermSettings:
    """A term of the cost as it is in force. A target that is empty is the task's own."""

    name: str
    weight: float | None
    terminal_weight: float | None
    target: Array
    own_target: bool | None


@dataclass(frozen=True)
class SettingInfo:
    """A setting of the planner: bounds or choices, unit, and whether it may change while the session runs."""

    name: str
    text: str
    min: float
    max: float
    choices: tuple[str, ...]
    live: bool
    unit: str


@dataclass(frozen=True)
class Config:
    """Settings, weights and targets of a session in one of their versions.

    Attributes
    ----------
    version : int
        1 at open, one more with each change.
    planner, session : dict
        Settings by name.
    terms : tuple of TermSettings
    table : tuple of SettingInfo
        All settings of the planner; only where the configuration was asked for.
    oldest : int
        The oldest version that the daemon keeps.
    warning : str
        What one should know of these settings; empty: nothing.
    reverted_to : int
        The version whose values were put in force again; 0: a change, or the opening.
    """

    version: int
    planner: dict[str, Any]
    session: dict[str, Any]
    terms: tuple[TermSettings, ...]
    table: tuple[SettingInfo, ...]
    oldest: int
    warning: str
    reverted_to: int


# ----------------------------------------------------------------------------------------- evaluation


@dataclass(frozen=True)
class MeasureValue:
    """A measure of success in the last state."""

    name: str
    value: float
    met: bool


@dataclass(frozen=True, eq=False)
class TermGradient:
    """Derivative of the cost by the target of a term.

    Attributes
    ----------
    target : numpy.ndarray, (steps + 1, size)
        By the target at each step; a constant target has their sum as its derivative.
    """

    name: str
    size: int
    target: Array = field(repr=False)

    def __post_init__(self) -> None:
        if self.size:
            object.__setattr__(self, "target", self.target.reshape(-1, self.size))


@dataclass(frozen=True, eq=False)
class Gradient:
    """Derivatives of a cost.

    Attributes
    ----------
    status : str
        ``"OK"``, ``"DIVERGED"`` or ``"UNBOUNDED"``; all is 0 in the latter two.
    ctrl : numpy.ndarray, (steps, nu)
        By the controls.
    qpos, qvel, act : numpy.ndarray, (nv,), (nv,), (na,)
        By the state; positions in tangent coordinates, as `qvel`.
    targets : tuple of TermGradient
        By the targets of all terms.
    norm : float
        Of `ctrl`.
    """

    status: str
    ctrl: Array = field(repr=False)
    qpos: Array = field(repr=False)
    qvel: Array = field(repr=False)
    act: Array = field(repr=False)
    targets: tuple[TermGradient, ...] = field(repr=False)
    norm: float


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The cost of controls, or of a state.

    Attributes
    ----------
    cost : float
        Infinite when the motion diverged.
    terms : dict of float
        Parts of the cost by the names of the terms.
    measures : tuple of MeasureValue
        In the last state.
    states : Trajectory or None
        If asked for.
    diverged : bool
        The motion left all bounds.
    act_estimated : bool
        The state came without activations.
    gradient : Gradient or None
        If asked for.
    """

    cost: float
    terms: dict[str, float]
    measures: tuple[MeasureValue, ...]
    states: Trajectory | None
    diverged: bool
    act_estimated: bool
    gradient: Gradient | None


# ------------------------------------------------------------------------------------ continuous mode


@dataclass(frozen=True)
class StreamReply:
    """How continuous mode goes.

    Attributes
    ----------
    session : int
    end : str
        ``"RUNNING"``, ``"STOPPED"``, ``"LEASE"``, ``"CLOSED"`` or ``"SHUTTING_DOWN"``.
    lease : float
        In force [s].
    states, plans, misses : int
        Since it began: states planned for, plans sent, states whose first plan was late.
    warning : str
        What one should know of how it runs, such as a latency of 0; empty: nothing.
    """

    session: int
    end: str
    lease: float
    states: int
    plans: int
    misses: int
    warning: str


@dataclass(frozen=True)
class Opened:
    """The answer to opening a session."""

    session: int
    initial: State = field(repr=False)
    config: Config = field(repr=False)
    resumed: bool = False
    restarts: int = 0


def _state(time: float, qpos: Array, qvel: Array, act: Array, mocap: Array, history: Array) -> State:
    """Return a state of the wire as the user has it: arrays of its own, poses of mocap bodies one a row."""
    poses = mocap.reshape(-1, 7) if mocap.size % 7 == 0 else mocap
    return State(qpos.copy(), qvel.copy(), act.copy(), time, poses.copy(), history=history.copy())


# What stands for a message of the schema.
CLASSES: dict[str, Callable[..., Any]] = {
    "Config": Config,
    "Device": Device,
    "Evaluation": Evaluation,
    "GateDescription": GateDescription,
    "GateValue": GateValue,
    "Gradient": Gradient,
    "Health": Health,
    "HelloReply": Hello,
    "Limits": Limits,
    "LoadModelReply": LoadedModel,
    "MeasureDescription": MeasureDescription,
    "MeasureValue": MeasureValue,
    "ModelDescription": ModelDescription,
    "ModelSummary": ModelSummary,
    "ObjectName": ObjectName,
    "OpenReply": Opened,
    "Plant": Plant,
    "Quantity": Quantity,
    "SessionStatistics": SessionStatistics,
    "SettingInfo": SettingInfo,
    "State": _state,
    "Statistics": Statistics,
    "StreamReply": StreamReply,
    "TaskDescription": TaskDescription,
    "TaskSummary": TaskSummary,
    "Telemetry": Telemetry,
    "TermDescription": term_of,
    "TermGradient": TermGradient,
    "TermSettings": TermSettings,
    "Trajectory": Trajectory,
}
