"""What a session knows, whether its client waits or not: states to send, plans to believe, controls to apply."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sinew._arrays import doubles
from sinew.client import schema
from sinew.client.accept import accept_gain, accept_plan, accept_session, first_not_finite
from sinew.client.messages import Config, Evaluation, Opened, StreamReply, TaskDescription
from sinew.client.plan import Plan
from sinew.client.wire import Call, Wire, check, is_coming, is_stopping, request
from sinew.errors import (
    ArgumentError,
    EndedError,
    ExpiredError,
    NoPlanError,
    NoSessionError,
    ProtocolError,
)
from sinew.state import State, StateLike

__all__ = ["Applied", "Fallback", "Mailbox", "SessionBase", "StreamBase"]

Array = NDArray[np.float64]

Fallback = Callable[[float, Array], ArrayLike] | Literal["zero", "hold"] | None
"""What acts without a usable plan: a function of the time [s] and the latest controls (nu,), zeros, or the latest."""

Applied = tuple[ArrayLike, ArrayLike]
"""Controls that were applied since the last state: times (rows,) [s] and rows (rows, nu)."""

Judge = Callable[[Any], Plan | None]
"""Tells what a reply means: its plan, None where there is nothing to act on, or an error."""

_ENDS = {
    "LEASE": "no state came within its lease",
    "CLOSED": "the session was closed",
    "SHUTTING_DOWN": "the daemon stops",
}


class Mailbox:
    """Replies of one channel that nobody has taken yet; the newest ones where there are too many."""

    def __init__(self, channel: int) -> None:
        self.channel = channel
        self.replies: deque[Any] = deque(maxlen=1024)

    def put(self, reply: Any) -> None:
        """Add a reply."""
        self.replies.append(reply)


def array(name: str, x: ArrayLike | None, *shapes: tuple[int, ...]) -> Array | None:
    """Return numbers as a float64 array, checked for one of these shapes and for numbers that are not finite."""
    if x is None:
        return None
    a = doubles(name, x)
    if a.shape not in shapes:
        raise ArgumentError(f"{name}: shape {a.shape}, expected {' or '.join(map(str, shapes))}")
    if (bad := first_not_finite(a)) is not None:
        at = ", ".join(map(str, bad))
        raise ArgumentError(f"{name}[{at}] = {a[bad]:g}; allowed are finite numbers")
    return a


class SessionBase:
    """A session at the daemon.

    Attributes
    ----------
    id : int
        Number at the daemon.
    task : TaskDescription
        What the body shall do.
    model : ModelDescription
        Sizes, names, units and ranges; the time step.
    initial : State
        Where the body shall start.
    config : Config
        Settings, weights and targets in force, as far as this session has been told.
    name : str or None
        Under which it outlasts the daemon.
    resumed : bool
        Whether it was there already, under its name.
    gaps : int
        Restarts of the daemon since it was opened here, as far as its plans have told.
    ctrl_range : numpy.ndarray, (nu, 2)
        Ranges of the controls; infinite where not limited.
    acting : str
        What the latest controls came from: ``"plan"``, or the fallback because there was ``"no plan"`` or it
        had ``"expired"``.
    """

    _box: Mailbox  # of states that were sent on

    def __init__(self, wire: Wire, opened: Opened, task: TaskDescription, fallback: Fallback, owned: bool) -> None:
        accept_session(task.model, opened.initial)
        self.id = opened.session
        self.task = task
        self.model = task.model
        self.initial = opened.initial
        self.config: Config = opened.config
        self.name: str | None = None
        self.resumed = opened.resumed
        self.gaps = 0
        self._restarts = opened.restarts
        ranges = [(c.min, c.max) if c.limited else (-np.inf, np.inf) for c in self.model.ctrl]
        self.ctrl_range: Array = np.array(ranges, np.float64).reshape(-1, 2)
        self.acting = "no plan"
        self._wire = wire
        self._owned = owned
        self._fallback = _fallback_of(fallback)
        self._last = np.zeros(self.model.nu)
        self._plan: Plan | None = None
        self._latest = -math.inf  # stamp of the latest state sent
        self._furthest = -math.inf  # largest stamp sent so far, resets or not
        self._set_back = 0  # times that the caller has set its clock back, by resets or by a stamp
        self._sent = self._taken = 0  # ids: of the latest state sent on, and up to which answers are of no use

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} on {self.task.task}>"

    @property
    def current_plan(self) -> Plan | None:
        """The plan in force; None before the first."""
        return self._plan

    # ------------------------------------------------------------------------------------ controls

    def control(self, now: float, out: Array | None = None) -> Array:
        """Return the controls for time `now`, from the plan in force, each limited to its range.

        A plan is never used more than its time to live after its state's stamp, nor so long before it.
        Without a plan that may be used the fallback acts; `acting` says which. This neither waits nor talks
        to the daemon.

        Parameters
        ----------
        now : float
            On the clock of the states [s].
        out : numpy.ndarray, (nu,), optional
            Gets the controls.

        Raises
        ------
        NoPlanError, ExpiredError
            Only where the session was opened with ``fallback=None``.
        """
        plan = self._plan
        if plan is not None and plan.usable(now):
            self.acting = "plan"
            controls: ArrayLike = plan.ctrl[plan.row(now)]
        else:
            self.acting = "no plan" if plan is None else "expired"
            controls = self._fall_back(now, plan)
        out = np.empty(self.model.nu) if out is None else out
        np.clip(controls, self.ctrl_range[:, 0], self.ctrl_range[:, 1], out=out)
        self._last[:] = out
        return out

    def feedback(self, state: StateLike, out: Array | None = None) -> Array:
        """Return the controls for a measured state: as `control` at its time, with the plan's feedback.

        Where the plan must not be used the fallback acts, as for `control`; rows without gains are not corrected.

        Parameters
        ----------
        state : State, mapping or MjData
            Time, qpos, qvel and act.
        out : numpy.ndarray, (nu,), optional
            Gets the controls.

        Raises
        ------
        ArgumentError
            A part that is missing, a shape, or a number that is not finite.
        NoPlanError, ExpiredError
            Only where the session was opened with ``fallback=None``.
        """
        measured = self._measured(state)
        if measured["act"] is None and self.model.na > 0:
            raise ArgumentError("feedback needs the activations; act is missing")
        out = self.control(measured["time"], out)
        if self.acting == "plan" and self._plan is not None:
            out[:] = self._plan.control(measured)
            self._last[:] = out
        return out

    def _fall_back(self, now: float, plan: Plan | None) -> ArrayLike:
        if self._fallback is not None:
            controls = np.asarray(self._fallback(now, self._last.copy()), np.float64)
            if controls.shape != self._last.shape:
                raise ArgumentError(f"fallback: shape {controls.shape}, expected {self._last.shape}")
            return controls
        if plan is None:
            raise NoPlanError("no plan has come yet")
        raise ExpiredError(
            f"at {now:g} s the plan of the state at {plan.state_time:g} s must not be used,"
            f" it lives {plan.time_to_live:g} s"
        )

    # ---------------------------------------------------------------------------------------- states

    def _measured(self, state: StateLike) -> dict[str, Any]:
        """Return a measured state as it goes over the wire; its stamp is then the latest."""
        state = State.of(state)
        for name in ("time", "qpos", "qvel"):
            if getattr(state, name) is None:
                raise ArgumentError(f"a measured state needs time, qpos and qvel; {name} is missing")
        model = self.model
        act = None if state.act is None or np.size(state.act) == 0 else state.act
        mocap = None if state.mocap is None or np.size(state.mocap) == 0 else state.mocap
        history = None if state.history is None or np.size(state.history) == 0 else state.history
        time = array("the state's time", state.time, ())
        return {
            "time": float(time),  # type: ignore[arg-type]
            "qpos": array("the state's qpos", state.qpos, (model.nq,)),
            "qvel": array("the state's qvel", state.qvel, (model.nv,)),
            "act": array("the state's act", act, (model.na,)),
            "mocap": array("the state's mocap", mocap, (model.nmocap, 7), (7 * model.nmocap,)),
            "history": array("the state's history", history, (model.nhistory,)),
        }

    def _plan_call(
        self,
        state: StateLike,
        deadline: float,
        iterations: int,
        candidates: int,
        states: bool,
        gains: int,
        applied: Applied | None,
    ) -> Call[Plan]:
        measured = self._measured(state)
        fields = {
            "session": self.id,
            "state": measured,
            "applied": self._applied(applied),
            "deadline": deadline,
            "want_states": states,
            "iterations": iterations or None,
            "candidates": candidates or None,
            "gain_rows": gains or None,
        }
        message, time = request("plan", fields), measured["time"]
        self._stamp(time)
        take = partial(self._take_awaited, stamp=time, set_back=self._set_back)
        return Call("plan", message, take, deadline if deadline > 0 else 0.0)

    def _applied(self, applied: Applied | None) -> dict[str, Array | None] | None:
        if applied is None:
            return None
        time, ctrl = applied
        rows = len(np.atleast_1d(time))
        return {
            "time": array("applied: time", time, (rows,)),
            "ctrl": array("applied: ctrl", ctrl, (rows, self.model.nu)),
        }

    def _evaluate_call(
        self, state: StateLike, ctrl: ArrayLike | None, gradient: bool, states: bool
    ) -> Call[Evaluation]:
        nu = self.model.nu
        rows = len(np.atleast_1d(ctrl)) if ctrl is not None else 0
        fields = {
            "session": self.id,
            "state": self._measured(state),
            "ctrl": array("ctrl", ctrl, (rows, nu)),
            "want_states": states,
            "want_gradient": gradient,
        }
        return Call("evaluate", request("evaluate", fields), lambda reply: self._evaluation(reply, rows, gradient))

    def _evaluation(self, reply: Any, rows: int, gradient: bool) -> Evaluation:
        evaluation: Evaluation = schema.convert(reply)
        if math.isnan(evaluation.cost):
            raise ProtocolError("the cost is nan")
        if not gradient:
            return evaluation
        if evaluation.gradient is None or evaluation.gradient.ctrl.size != rows * self.model.nu:
            raise ProtocolError("the gradient has the wrong size")
        ctrl = evaluation.gradient.ctrl.reshape(rows, self.model.nu)
        if (bad := first_not_finite(ctrl)) is not None:
            raise ProtocolError(f"the gradient by control {bad[1]} of row {bad[0]} is {ctrl[bad]:g}")
        object.__setattr__(evaluation.gradient, "ctrl", ctrl)
        return evaluation

    # ----------------------------------------------------------------------------------------- plans

    def _stamp(self, time: float) -> None:
        """Note that a state of that time [s] is sent; when the clock was set back, what is on its way is of no use."""
        if time < self._latest:
            self._taken = self._sent
            self._set_back += 1
        self._latest = time
        self._furthest = max(self._furthest, time)

    def _outlived(self, message: Any) -> bool:
        """Return whether a plan answers a state of before the caller set its clock back, as at a new episode."""
        time: float = message.state_time
        return message.session == self.id and self._latest < time <= self._furthest

    def _take_plan(self, message: Any) -> Plan:
        """Put a plan of a state that was sent on in force, or raise why it must not be."""
        return self._put_in_force(self._accepted(message, self._latest))

    def _take_awaited(self, message: Any, stamp: float, set_back: int) -> Plan:
        """Put the plan that a request waited for in force, or raise why it must not be.

        Other tasks may have sent states meanwhile: it is held against the stamp [s] of its own request. Where the clock
        has been set back since, `_set_back` is no longer what it was then, and the plan is of no use.
        """
        plan = self._accepted(message, stamp)
        if set_back != self._set_back:
            raise NoPlanError(f"no plan for the state at {stamp:g} s: the clock was set back meanwhile")
        return self._put_in_force(plan)

    def _outlasts(self, reply: Any) -> bool:
        """Return whether a reply says no more than that a daemon stops which the session outlasts."""
        return self.name is not None and is_stopping(reply)

    def _accepted(self, message: Any, latest: float) -> Plan:
        """Return the plan of a message, which answers a state of `latest` [s] or before, or raise what is wrong."""
        fields = schema.values(message)
        if fields["session"] == self.id and fields["status"] in ("REPLACED", "DIVERGED"):
            why = "a newer one replaced it" if fields["status"] == "REPLACED" else "every candidate diverged"
            raise NoPlanError(f"no plan for the state at {fields['state_time']:g} s: {why}")
        accept_plan(fields, self.id, self.model.nu, latest)
        accept_gain(fields, self.model)
        fields["ctrl"] = fields["ctrl"].reshape(fields["steps"], self.model.nu)
        return Plan(**fields, model=self.model)

    def _put_in_force(self, plan: Plan) -> Plan:
        self._plan = plan
        self.gaps = max(self.gaps, plan.restarts - self._restarts)
        return plan

    def _judge(self, reply: Any) -> Plan | None:
        """Return the plan of a reply to a state that was sent on; None when the reply is of no use any more."""
        if reply.id <= self._taken or is_coming(reply) or self._outlasts(reply):
            return None
        body = reply.WhichOneof("body")
        replaced = body == "plan" and schema.values(reply.plan)["status"] == "REPLACED"
        if replaced and reply.id != self._sent:
            return None
        self._taken = reply.id
        check(reply, seeks_session=True)
        if body != "plan":
            raise ProtocolError("unexpected answer to a plan request")
        return None if self._outlived(reply.plan) else self._take_plan(reply.plan)

    def _restarted(self, initial: State) -> State:
        """Forget the plan and the stamps of before a reset."""
        accept_session(self.model, initial)
        self.initial = initial
        self._plan = None
        self._latest = -math.inf
        self._set_back += 1
        self._taken = self._sent
        return initial

    def _went_back(self, restored: dict[str, Any]) -> Config:
        """Forget the plan and the stamps of before a snapshot was restored."""
        self._restarted(restored["initial"])
        return self._configured(restored["config"])

    def _configured(self, config: Config) -> Config:
        self.config = config
        return config


class StreamBase:
    """Continuous mode of a session.

    Attributes
    ----------
    reply : StreamReply
        The daemon's latest answer: the lease in force, what has been counted, a warning.
    running : bool
        Whether plans may come.
    """

    _box: Mailbox

    def __init__(self, session: SessionBase) -> None:
        self._base = session
        self._read = 0  # number of the latest plan that was read
        self._terms: tuple[float, float, float, int, bool, int] = (0.0, 0.0, 0.0, 0, False, 0)
        self.reply: StreamReply | None = None
        self.running = False

    def _begun(self, reply: StreamReply) -> StreamReply:
        if reply.states == 0:
            self._read = 0
        self.reply = reply
        self.running = reply.end == "RUNNING"
        return reply

    def _state(self, state: StateLike, applied: Applied | None) -> Any:
        """Return the request with a state."""
        base = self._base
        measured = base._measured(state)
        fields = {
            "session": base.id,
            "state": measured,
            "applied": base._applied(applied),
            "seen": self._read,
        }
        message = request("stream_state", fields)
        base._stamp(measured["time"])
        return message

    def _judge(self, reply: Any) -> Plan | None:
        """Return the plan of a reply; None when there is nothing in it to act on."""
        body = reply.WhichOneof("body")
        if is_coming(reply) or (self.running and self._base._outlasts(reply)):
            return None
        if body == "error" and self.running and schema.values(reply.error)["code"] == "STATE":
            # A daemon that was started again knows the session and not its stream.
            self._read = 0
            self._begin_again()
            return None
        try:
            check(reply, seeks_session=True)
        except NoSessionError:
            self.running = False
            raise
        if body == "plan" and reply.plan.session == self._base.id and reply.plan.stream_sequence > self._read:
            return self._take(reply.plan)
        if body == "stream" and reply.stream.session == self._base.id:
            ended: StreamReply = schema.convert(reply.stream)
            if ended.end != "RUNNING":
                self.reply, self.running = ended, False
                raise EndedError(f"continuous mode has ended: {_ENDS.get(ended.end, ended.end)}")
        return None

    def _begin_again(self) -> None:
        """Ask for the stream anew, on the terms of before, without waiting."""
        raise NotImplementedError

    def _take(self, message: Any) -> Plan | None:
        """Take a plan. The number of one that is refused is not believed, that of one without controls is."""
        try:
            plan = None if self._base._outlived(message) else self._base._take_plan(message)
        except NoPlanError:
            self._read = message.stream_sequence
            raise
        self._read = message.stream_sequence
        return plan


def newest(box: Mailbox, judge: Judge) -> Plan | None:
    """Take all replies of a mailbox and return the newest plan.

    Raises
    ------
    NoPlanError
        Where the latest reply says so; other errors at once, and there may be more to take.
    """
    plan, failure = None, None
    while box.replies:
        try:
            taken = judge(box.replies.popleft())
        except NoPlanError as error:
            plan, failure = None, error
        else:
            plan, failure = (taken, None) if taken is not None else (plan, failure)
    if failure is not None:
        raise failure
    return plan


def _fallback_of(fallback: Fallback) -> Callable[[float, Array], ArrayLike] | None:
    if fallback == "zero":
        return lambda now, last: np.zeros_like(last)
    if fallback == "hold":
        return lambda now, last: last
    if fallback is None or callable(fallback):
        return fallback
    raise ArgumentError(f"fallback is {fallback!r}; allowed are 'zero', 'hold', a function and None")


def session_settings(latency: float | None, lease: float | None, time_to_live: float | None) -> dict[str, float | None]:
    """Return the settings of a session that are the daemon's; None: as the daemon says."""
    return {"latency": latency, "lease": lease, "time_to_live": time_to_live}


def task_of(sessions: Sequence[Any], id: int) -> str:
    """Return the name of a session's task out of its statistics."""
    for session in sessions:
        if session.session == id:
            return str(session.task)
    raise ProtocolError(f"the statistics are not those of session {id}")
