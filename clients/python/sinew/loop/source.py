"""What moves, as a page sees it: a closed loop with a daemon, a model alone, or a recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    import mujoco

    from sinew.client.messages import Config, TaskDescription
    from sinew.client.plan import Plan
    from sinew.client.quantities import Trajectory

__all__ = ["Frame", "History", "Mode", "Source"]

Array = NDArray[np.float64]

Mode = Literal["lockstep", "real time", "model", "recording"]
"""lockstep: the body waits for each plan; real time: it does not; model: no plans; recording: it has all happened."""


@dataclass(frozen=True, eq=False)
class Frame:
    """What a source looks like at one moment. Its arrays do not change any more.

    Attributes
    ----------
    number : int
        Another one whenever anything is different.
    time : float
        On the body's clock [s].
    qpos, qvel, act, ctrl : array, (nq,), (nv,), (na,), (nu,)
        The body's state, and the controls in force.
    mocap : array, (nmocap, 7)
        Positions and quaternions.
    mode : str
        See `Mode`.
    paused : bool
        Whether time stands still.
    speed : float
        The body's seconds in a second, as asked for.
    rate : float
        The same as measured.
    plan : Plan or None
        The latest, with its states where they came; None without a daemon and before the first.
    predicted : Trajectory or None
        The latest predicted states: not every plan brings them.
    age : float
        Of the latest plan at the body: from the state to its plan [s]; NaN before the first.
    deadline : float
        For a plan [s]; 0: none.
    misses : int
        Plans that came after it.
    cost : float
        Of the state; NaN where there is no task.
    connected : bool
        Whether the daemon answers.
    text : str
        What a user should know now, in a sentence; empty: all is well.
    config : Config or None
        Settings, weights and targets in force.
    """

    number: int
    time: float
    qpos: Array = field(repr=False)
    qvel: Array = field(repr=False)
    act: Array = field(repr=False)
    ctrl: Array = field(repr=False)
    mocap: Array = field(repr=False)
    mode: Mode = "model"
    paused: bool = False
    speed: float = 1.0
    rate: float = float("nan")
    plan: Plan | None = field(default=None, repr=False)
    predicted: Trajectory | None = field(default=None, repr=False)
    age: float = float("nan")
    deadline: float = 0.0
    misses: int = 0
    cost: float = float("nan")
    connected: bool = True
    text: str = ""
    config: Config | None = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class History:
    """The latest seconds of a source, for plots: a row a plan.

    Attributes
    ----------
    time : array, (rows,)
        On the body's clock [s].
    series : dict of array, (rows,)
        By name: ``"cost"`` (of the plan: its terms add up to it), ``"gradient norm"``, ``"iterations"``,
        ``"latency"`` [s], ``"deadline"`` [s], and ``"term: NAME"`` for each term of the cost.
    activation : array, (rows, na)
        Of the muscles.
    """

    time: Array = field(repr=False)
    series: dict[str, Array] = field(repr=False)
    activation: Array = field(repr=False)


class Source(Protocol):
    """What a page shows and steers. Any thread may call it; no call waits for a plan."""

    @property
    def model(self) -> mujoco.MjModel:
        """The body, for drawing: a copy of its own for each call."""

    @property
    def task(self) -> TaskDescription | None:
        """What the body shall do; None where there is no task."""

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The modes that `set_mode` takes."""

    @property
    def duration(self) -> float | None:
        """Length of a recording [s]; None where it goes on."""

    def latest(self) -> Frame:
        """Return how it is now."""

    def history(self) -> History:
        """Return how the latest seconds were."""

    def close(self) -> None:
        """End it; a second call does nothing."""

    def pause(self, on: bool) -> None:
        """Let time stand still, or go on."""

    def step(self) -> None:
        """Go on by one step of the model while paused (by one plan in lockstep)."""

    def set_speed(self, speed: float) -> None:
        """Set the body's seconds in a second, such as 0.25 for slow motion."""

    def set_mode(self, mode: Mode) -> None:
        """Change the mode."""

    def seek(self, time: float) -> None:
        """Go to a time of a recording [s]."""

    def reset(self, seed: int | None = None) -> None:
        """Begin again, with another seed if one is given."""

    def push(self, body: int, point: ArrayLike | None, force: ArrayLike | None) -> None:
        """Pull at a point of a body (3,) [m, in the body's frame] by a force (3,) [N, in the world's]; None ends it."""

    def set_ctrl(self, ctrl: Mapping[int, float]) -> None:
        """Set controls by number, where no plan does."""

    def settings(self) -> Config | None:
        """Return settings, weights and targets in force, with the table of all settings."""

    def tune(
        self,
        *,
        weights: Mapping[str, float] | None = None,
        terminal_weights: Mapping[str, float] | None = None,
        targets: Mapping[str, ArrayLike | None] | None = None,
        **settings: Any,
    ) -> Config:
        """Change settings, weights and targets at the daemon, as `Session.tune` does; returns what is in force."""

    def reopen(self, **settings: Any) -> None:
        """Begin a new session with settings that cannot change in a running one, such as ``horizon=128``."""
