"""A plan: controls for the next time steps, and what is known of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sinew.client.messages import GateValue
from sinew.client.quantities import ModelDescription, Trajectory
from sinew.errors import ArgumentError
from sinew.state import State, StateLike

if TYPE_CHECKING:
    import pandas

__all__ = ["Plan"]


@dataclass(frozen=True, eq=False)
class Plan:
    """A plan as the daemon sent it. Times are on the client's clock but for `age` and `computing` [s].

    Attributes
    ----------
    session, sequence : int
        Whose it is, and its number there; better plans for one state share it.
    status : str
        ``"OK"``: refined at least once; ``"WARM_START"``: the shifted plan of before, there was no time.
    state_time : float
        Stamp of the state that it answers.
    age : float
        Time that the daemon took.
    time_to_live : float
        No row may be applied once the time is more than so long after `state_time`.
    start, step : float
        Time of the first row of `ctrl`, and between rows.
    steps, lead : int
        Rows, and how many of the first ones are those of the plan before (they fall into the latency).
    ctrl : numpy.ndarray, (steps, nu)
        Controls.
    states : Trajectory or None
        Predicted states, if asked for and the deadline allowed.
    cost_now, cost_before, cost_after : float
        Cost of the state; of the shifted plan before (infinite: it diverged, NaN: not evaluated); of this
        plan.
    terms : dict of float
        Parts of `cost_after` by the names of the terms.
    iterations, candidates : int
        Iterations that went into it, and candidates of the last one that were used: both reproduce the plan.
    deadline_met, act_estimated : bool
        Whether it was made in time; whether the state came without activations.
    config_version : int
        Of the settings, weights and targets that it was made with.
    computing : float
        Time from begin to end of planning.
    gradient_norm : float
        At this plan, or, where the deadline left no time for that, at the iterate before. NaN: there is none.
    stream_sequence, stream_misses : int
        In continuous mode: number of the plan, and states so far whose first plan was late.
    backend : str
        That made it.
    overflow : bool
        The model had no room for all contacts or constraint rows.
    remark : str
        What one should know of how it was made; empty: nothing.
    device_lost : bool
        The daemon's device has failed: plans come from its CPU.
    gain : numpy.ndarray, (gain_rows, nu, 2 nv + na)
        Feedback of the rows from `lead` on, if asked for: see `control`.
    gain_rows : int
        Rows that have feedback; where none have although it was asked for, `remark` says why.
    stuck : bool
        Whether it is no better than the shifted plan before, and its gradient next to nothing.
    unimproved : int
        Plans in a row, up to this one, whose cost did not fall; 0: that of this one did.
    gates : tuple of GateValue
        Of the terms that have one, in the state that it answers.
    restarts : int
        Restarts of the daemon that the session has outlasted; one more than before: there was a gap.
    from_policy : bool
        Whether it began with the rollout of the task's policy, not with the shifted plan before.
    model : ModelDescription
        Names of the entries.
    """

    session: int
    sequence: int
    status: str
    state_time: float
    age: float
    time_to_live: float
    start: float
    step: float
    steps: int
    lead: int
    ctrl: NDArray[np.float64] = field(repr=False)
    states: Trajectory | None = field(repr=False)
    cost_now: float
    cost_before: float
    cost_after: float
    terms: dict[str, float]
    iterations: int
    candidates: int
    deadline_met: bool
    act_estimated: bool
    config_version: int
    computing: float
    gradient_norm: float
    stream_sequence: int
    stream_misses: int
    backend: str
    overflow: bool
    remark: str
    device_lost: bool
    gain: NDArray[np.float64] = field(repr=False)
    gain_rows: int
    stuck: bool
    unimproved: int
    gates: tuple[GateValue, ...] = field(repr=False)
    restarts: int
    from_policy: bool
    model: ModelDescription = field(repr=False)

    def __post_init__(self) -> None:
        if self.gain_rows > 0:
            shape = (self.gain_rows, self.ctrl.size // self.steps, -1)
            object.__setattr__(self, "gain", self.gain.reshape(shape))

    @property
    def refined(self) -> bool:
        """Whether it was refined; else it is the shifted plan of before."""
        return self.status == "OK"

    @property
    def time(self) -> NDArray[np.float64]:
        """Times at which the rows of `ctrl` begin, (steps,) [s]."""
        return self.start + self.step * np.arange(self.steps, dtype=np.float64)

    def usable(self, now: float) -> bool:
        """Return whether it may be applied at time `now` [s].

        Not more than its time to live after its state, nor so long before: then the clock has been set back.
        """
        return abs(now - self.state_time) <= self.time_to_live

    def row(self, now: float) -> int:
        """Return which row of `ctrl` acts at time `now` [s].

        A stamp on the grid takes the row that begins there, whatever the rounding; the last row goes on
        holding.
        """
        row = math.floor((now - self.start) / self.step + 1e-6)
        return min(max(row, 0), self.steps - 1)

    def control(self, state: StateLike) -> NDArray[np.float64]:
        """Return the controls for a measured state, with the plan's feedback.

        The row of `ctrl` at the state's time, plus its gain times the difference of the state to the predicted one,
        each limited to its range. Rows without gains are not corrected, nor are those whose gains come to a control
        that is not finite or beyond 1e10. Whether the plan may still be used is not looked at:
        `sinew.Session.feedback` does, and falls back.

        Parameters
        ----------
        state : State, mapping or MjData
            Time, qpos, qvel and act.

        Returns
        -------
        numpy.ndarray, (nu,)
        """
        measured = State.of(state)
        if measured.time is None:
            raise ArgumentError("a measured state needs a time")
        row = self.row(float(np.asarray(measured.time)))
        low = [c.min if c.limited else -np.inf for c in self.model.ctrl]
        high = [c.max if c.limited else np.inf for c in self.model.ctrl]
        planned: NDArray[np.float64] = np.clip(self.ctrl[row], low, high)
        if not 0 <= row - self.lead < self.gain_rows:
            return planned
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            difference = self._difference(measured, row)
            corrected: NDArray[np.float64] = np.clip(
                self.ctrl[row] + self.gain[row - self.lead] @ difference, low, high
            )
        return corrected if (np.abs(corrected) <= 1e10).all() else planned

    def _difference(self, state: State, row: int) -> NDArray[np.float64]:
        """Return how far a state is from the predicted one, in the tangent coordinates of the gains."""
        predicted = self._predicted()
        entries = {"qpos": self.model.nq, "qvel": self.model.nv, "act": self.model.na}
        x = {name: np.asarray([] if getattr(state, name) is None else getattr(state, name), float) for name in entries}
        for name, size in entries.items():
            if x[name].shape != (size,):
                raise ArgumentError(f"the state's {name}: shape {x[name].shape}, expected ({size},)")
            if not np.isfinite(x[name]).all():
                raise ArgumentError(f"the state's {name} has a number that is not finite")
        parts = []
        for joint in self.model.qpos:
            at = slice(joint.address, joint.address + joint.size)
            parts.append(_tangent(predicted.qpos[row, at], x["qpos"][at]))
        return np.concatenate([*parts, x["qvel"] - predicted.qvel[row], x["act"] - predicted.act[row]])

    def to_pandas(self, vector: str = "ctrl") -> pandas.DataFrame:
        """Return a table with a row for each time and a column for each entry, named as in the model.

        Parameters
        ----------
        vector : str
            ``"ctrl"``: columns are actuators. ``"qpos"``, ``"qvel"`` (columns are joints), ``"act"``: of the
            predicted states, which must have been asked for (``states=True``).

        Returns
        -------
        pandas.DataFrame
            The index is the time [s].
        """
        import pandas

        if vector == "ctrl":
            time, rows = self.time, self.ctrl
        elif vector in ("qpos", "qvel", "act"):
            states = self._predicted()
            time, rows = states.time, getattr(states, vector)
        else:
            raise ArgumentError(f"vector is {vector!r}; allowed are 'ctrl', 'qpos', 'qvel', 'act'")
        return pandas.DataFrame(rows, pandas.Index(time, name="time"), self.model.columns(vector))

    def to_joint_trajectory(
        self, of: str = "joints", *, stamp: float | None = None, frame_id: str = ""
    ) -> dict[str, Any]:
        """Return the fields of a ROS 2 message ``trajectory_msgs/msg/JointTrajectory``; ROS is not needed.

        Parameters
        ----------
        of : str
            ``"joints"``: the predicted motion, which must have been asked for (``states=True``).
            ``joint_names`` are the hinges and slides of the model, ``positions`` their `qpos` [rad, m],
            ``velocities`` their `qvel`. Joints with more than one coordinate are left out. ``effort`` is
            empty: muscles have no torque of a joint.

            ``"actuators"``: the controls. ``joint_names`` are the actuators and ``effort`` the rows of
            `ctrl`, in the units of the actuators' controls (excitations of muscles); ``positions`` and
            ``velocities`` are empty.
        stamp : float, optional
            ``header.stamp`` [s], when the first point is due. By default the plan's `start`, on the client's
            clock; ROS takes 0 as "at once".
        frame_id : str
            ``header.frame_id``.

        Returns
        -------
        dict
            ``header``, ``joint_names`` and ``points``; ``time_from_start`` counts from the plan's `start`.
        """
        if of == "joints":
            names, points = self._points_of_joints()
        elif of == "actuators":
            names = self.model.columns("ctrl")
            points = [_point(self.step * i, effort=row) for i, row in enumerate(self.ctrl)]
        else:
            raise ArgumentError(f"of is {of!r}; allowed are 'joints' and 'actuators'")
        header = {"stamp": _duration(self.start if stamp is None else stamp), "frame_id": frame_id}
        return {"header": header, "joint_names": names, "points": points}

    def _points_of_joints(self) -> tuple[list[str], list[dict[str, Any]]]:
        states = self._predicted()
        single = [(q, v) for q, v in zip(self.model.qpos, self.model.qvel, strict=True) if q.size == 1]
        names = [q.name or f"qpos{q.address}" for q, _ in single]
        qpos = [q.address for q, _ in single]
        qvel = [v.address for _, v in single]
        points = [
            _point(time - self.start, positions=q, velocities=v)
            for time, q, v in zip(states.time, states.qpos[:, qpos], states.qvel[:, qvel], strict=True)
        ]
        return names, points

    def _predicted(self) -> Trajectory:
        if self.states is None:
            raise ArgumentError("the plan has no predicted states: ask for it with states=True")
        return self.states


def _tangent(start: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what leads from one position of a joint to another, a rotation as a vector in the frame of the first."""
    if len(start) == 1:
        return end - start
    plain = len(start) - 4
    (w, x, y, z), q = start[plain:] / np.linalg.norm(start[plain:]), end[plain:] / np.linalg.norm(end[plain:])
    back = np.array([[w, x, y, z], [-x, w, z, -y], [-y, -z, w, x], [-z, y, -x, w]])  # product with the inverse
    scalar, axis = (turn := back @ q)[0], turn[1:]
    size = np.linalg.norm(axis)
    angle = 2 * math.atan2(size, scalar)
    angle -= 2 * math.pi if angle > math.pi else 0
    return np.concatenate([end[:plain] - start[:plain], axis * (angle / size if size > 0 else 2)])


def _duration(seconds: float) -> dict[str, int]:
    """Return seconds as ROS 2 writes times: whole seconds, rounded down, and nanoseconds."""
    nanoseconds = round(seconds * 1e9)
    return {"sec": nanoseconds // 10**9, "nanosec": nanoseconds % 10**9}


def _point(after: float, **rows: NDArray[np.float64]) -> dict[str, Any]:
    """Return a ``JointTrajectoryPoint`` with these rows; the others are empty."""
    point: dict[str, Any] = {name: [] for name in ("positions", "velocities", "accelerations", "effort")}
    point.update((name, row.tolist()) for name, row in rows.items())
    point["time_from_start"] = _duration(float(after))
    return point
