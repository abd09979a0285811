"""Files of the daemon's flight recorder: what clients asked in the last seconds, asked again.

Such a file has requests as they came, and of each plan how it came about. It has neither plans nor where a planner
stood when the file begins. So plans are not compared bit for bit, as those of a recording are, but by what became of
them: their status, and whether they were there in time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sinew._extras import require
from sinew.client import Client, schema
from sinew.client.session import Mailbox
from sinew.client.wire import Call, request
from sinew.errors import ArgumentError, FormatError, RefusedError, TimedOutError
from sinew.record.chunks import CUT, opened, pieces

__all__ = ["Figures", "Flight", "FlightOutcome", "is_flight", "repeat"]

_LEASE = 3600.0  # of the sessions that repeat [s]
_PATIENCE = 30.0  # for an answer that the client had, and for those beyond the latest deadline [s]
_BURST = 256  # requests that wait for their answers; a mailbox holds more

_OF_SESSIONS = (
    "plan", "evaluate", "stream", "stream_state", "get_config", "set_config", "revert", "reset", "snapshot", "trace"
)  # fmt: skip
_HARMLESS = ("hello", "health", "statistics", "metrics", "list_models", "list_tasks", "describe_model", "describe_task")


def is_flight(path: str | os.PathLike[str]) -> bool:
    """Return whether a file was written by a flight recorder.

    Raises
    ------
    FileError, FormatError
        There is no such file, or it is none of the kind MCAP.
    """
    require("record")
    from mcap.records import Header

    for _, piece in _pieces(os.fspath(path)):
        return isinstance(piece, Header) and piece.library.startswith("sinewd ")
    return False


def _pieces(path: str) -> Iterator[tuple[int, Any]]:
    with opened(path) as file:
        yield from pieces(file, path)


@dataclass(frozen=True, eq=False)
class _Asked:
    """A request: when it came (Unix time [s]), of which kind it is, and the message."""

    time: float
    kind: str
    message: Any

    @property
    def body(self) -> Any:
        return getattr(self.message, self.kind)

    @property
    def session(self) -> int:
        """Whose it is; 0: no session's."""
        return int(self.body.session) if self.kind in (*_OF_SESSIONS, "close") else 0


@dataclass(frozen=True, eq=False)
class _Traced:
    """How a plan came about: when it was sent (Unix time [s]), and the message ``PlanTrace``."""

    time: float
    trace: Any


class Flight:
    """A file of the flight recorder.

    Parameters
    ----------
    path : path

    Attributes
    ----------
    path, version : str
        Of the file, and of the daemon that wrote it.
    sessions : tuple of int
        That something was asked of, in the order in which they appear.
    seconds : float
        From the first request to the last [s].
    cut : bool
        The end of the file is not there.

    Raises
    ------
    FileError
        There is no such file.
    FormatError
        It is no such file, or is damaged.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        require("record")
        from google.protobuf.message import DecodeError
        from mcap.records import Channel, Header, Message

        self.path = os.fspath(path)
        self.version, self.cut = "", False
        self._asked: list[_Asked] = []
        self._traced: list[_Traced] = []
        topics: dict[int, str] = {}
        try:
            for _, piece in _pieces(self.path):
                if isinstance(piece, Header):
                    self.version = piece.library.removeprefix("sinewd ")
                elif isinstance(piece, Channel):
                    topics[piece.id] = piece.topic
                elif isinstance(piece, Message):
                    self._take(topics.get(piece.channel_id, ""), piece)
                elif piece is CUT:
                    self.cut = True
        except DecodeError:
            raise FormatError(f"{self.path} is damaged: a message in it is none") from None
        if not self._asked:
            raise FormatError(f"{self.path} holds no requests")
        self.sessions = tuple(dict.fromkeys(asked.session for asked in self._asked if asked.session))
        self.seconds = self._asked[-1].time - self._asked[0].time

    def _take(self, topic: str, message: Any) -> None:
        if topic == "plans":
            trace = schema.load().new("PlanTrace").FromString(message.data)
            self._traced.append(_Traced(message.log_time * 1e-9, trace))
        elif topic == "requests":
            asked = schema.load().new("Request").FromString(message.data)
            kind = asked.WhichOneof("body")
            if kind is not None:
                self._asked.append(_Asked(message.log_time * 1e-9, kind, asked))


@dataclass
class Figures:
    """Plans of a run in numbers.

    Attributes
    ----------
    plans, late, iterations : int
        Sent; of their states those that had no plan in time; iterations of all plans.
    ages : list of float
        From a state to its first plan [s].
    """

    plans: int = 0
    late: int = 0
    iterations: int = 0
    ages: list[float] = field(default_factory=list)

    def age(self, percent: float) -> float:
        """Return a percentile of the ages [s], NaN without any."""
        return float(np.percentile(self.ages, percent)) if self.ages else float("nan")

    def add(self, *, first: bool, late: bool, iterations: int, age: float) -> None:
        """Count a plan; `first` for its state."""
        self.plans += 1
        self.iterations += iterations
        if first:
            self.late += late
            self.ages.append(age)


@dataclass
class FlightOutcome:
    """What came of a repetition.

    Attributes
    ----------
    requests, answered : int
        Sent again, and answered; what a stream gets unasked does not count.
    passed, refused : dict of int
        Requests that were not sent, and those that were refused, by reason.
    then, now : Figures
        Plans of the file, and those that came now.
    plans, different : int
        Plans that were compared, and those whose status is another one now.
    first : str or None
        The first of these in words.
    remarks : list of str
        What one should know of it.
    """

    requests: int = 0
    answered: int = 0
    passed: dict[str, int] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    then: Figures = field(default_factory=Figures)
    now: Figures = field(default_factory=Figures)
    plans: int = 0
    different: int = 0
    first: str | None = None
    remarks: list[str] = field(default_factory=list)


def repeat(
    flight: Flight,
    client: Client,
    *,
    task: str | None = None,
    session: int | None = None,
    begin: float = 0.0,
    end: float = float("inf"),
    speed: float = 1.0,
    watch: Callable[[FlightOutcome], None] = lambda outcome: None,
) -> FlightOutcome:
    """Send the requests of a file to a daemon again, with the pauses between them, and see what becomes of them.

    A client that had a plan before it asked for the next one has it now, too.

    Parameters
    ----------
    flight : Flight
    client : Client
        Of the daemon.
    task : str, optional
        Of sessions that were opened before the file begins: they begin anew on it, with its settings.
    session : int, optional
        Repeat this one alone.
    begin, end : float
        Requests between these times are sent, from the first one on [s].
    speed : float
        Pauses are divided by it.
    watch : callable
        Is told how far it is after each request.

    Raises
    ------
    RefusedError
        The daemon does not know a task, or no session could be opened.
    ArgumentError
        A speed that is not positive, or a session that is not in the file.
    """
    if not speed > 0:
        raise ArgumentError(f"speed {speed:g}: expected a number above 0")
    if session is not None and session not in flight.sessions:
        there = ", ".join(map(str, flight.sessions)) or "none"
        raise ArgumentError(f"{flight.path} has no session {session}; there are: {there}")
    again = _Again(flight, client, [session] if session is not None else list(flight.sessions), (begin, end))
    try:
        again.open(task)
        again.run(speed, watch)
    finally:
        again.close()
    return again.outcome


_Answer = tuple[int, bool, float]
"""What the first plan for a state is found by: session, whether of a stream, and then its stamp, else the request."""


@dataclass
class _Sent:
    """A request that was sent again: what it was, and what became of its plan then, if it was one's."""

    asked: _Asked
    traced: _Traced | None = None
    answered: bool = False
    latest: float = float("nan")  # stamp of the state of a stream's latest plan


class _Again:
    """One repetition: sessions at the daemon in the place of those of the file."""

    def __init__(self, flight: Flight, client: Client, sessions: list[int], times: tuple[float, float]) -> None:
        first = flight._asked[0].time
        self.outcome = FlightOutcome()
        self._client = client
        self._sessions = sessions
        self._asked = [x for x in flight._asked if times[0] <= x.time - first <= times[1]]
        self._all = flight._asked
        self._traced = [traced for traced in flight._traced if traced.trace.session in sessions]
        self._first_plans: dict[_Answer, _Traced] = {}
        for x in self._traced:
            of = x.trace.state_time if x.trace.streamed else x.trace.request
            self._first_plans.setdefault((x.trace.session, x.trace.streamed, of), x)
        self._states: dict[tuple[int, float], _Sent] = {}  # of streams
        self._twins: dict[int, int] = {}  # session at the daemon by that of the file
        self._anew: set[int] = set()  # opened before the file begins
        self._box = Mailbox(client._wire.open_channel())
        self._sent: dict[int, _Sent] = {}  # by id
        self._waiting = 0

    # ------------------------------------------------------------------------------------------ sessions

    def open(self, task: str | None) -> None:
        """Open a session for each of the file's."""
        taken: set[int] = set()
        for session in self._sessions:
            first = next(x for x in self._all if x.session == session)
            openings = [x for x in self._all if x.kind == "open" and x.time <= first.time and id(x) not in taken]
            opening = next((x for x in openings if self._fits(session, x.body)), None)
            if opening is not None:
                taken.add(id(opening))
            elif task is not None:
                fresh = request("open", {"task": task}).open
                self._remark(f"session {session} was opened before the file begins: it begins anew, on {task}")
                self._anew.add(session)
                if not self._fits(session, fresh):
                    self._remark(f"session {session} has states of other sizes than {task}: it is left out")
            else:
                self._remark(
                    f"session {session} was opened before the file begins, and is left out: --task says on what"
                )
        if not self._twins:
            raise RefusedError("no session of the file can be opened: " + "; ".join(self.outcome.remarks))

    def _fits(self, session: int, opening: Any) -> bool:
        """Open a session as that was asked for; returns whether its states are of the sizes that the file's have."""
        message = request("open", {})
        message.open.CopyFrom(opening)
        message.open.ClearField("name")
        message.open.session.lease = _LEASE
        opened = self._client._request(Call("open", message, lambda reply: reply))
        state = next((x.body.state for x in self._all if x.session == session and _has_state(x)), opened.initial)
        if len(state.qpos) == len(opened.initial.qpos) and len(state.qvel) == len(opened.initial.qvel):
            self._twins[session] = opened.session
            return True
        self._client._abandon(opened.session)
        return False

    def close(self) -> None:
        """Close the sessions, without waiting for the answers: the daemon may be gone."""
        self._client._boxes.pop(self._box.channel, None)
        for twin in self._twins.values():
            self._client._abandon(twin)

    def _remark(self, text: str) -> None:
        if text not in self.outcome.remarks:
            self.outcome.remarks.append(text)

    # ------------------------------------------------------------------------------------------- requests

    def run(self, speed: float, watch: Callable[[FlightOutcome], None]) -> None:
        """Send all requests, each when its time has come, and take what is answered meanwhile."""
        self._client._boxes[self._box.channel] = self._box
        before: dict[int, _Sent] = {}  # the latest state, by session
        began, latest = time.monotonic(), 0.0
        for asked in self._asked:
            message = self._again(asked)
            if message is None:
                continue
            due = began + (asked.time - self._asked[0].time) / speed
            until = max(due, time.monotonic()) + _PATIENCE
            waits = _had_answer(before.get(asked.session), asked)
            while (
                (left := due - time.monotonic()) > 0
                or self._waiting >= _BURST
                or (waits and not before[asked.session].answered and time.monotonic() < until)
            ):
                self._receive(max(left, 0.001))
            sent = _Sent(asked, self._first_plans.get(_answer_of(asked)))
            self._sent[self._client._send(message, self._box.channel)] = sent
            if asked.kind in ("plan", "stream_state"):
                before[asked.session] = sent
            if asked.kind == "stream_state":
                self._states[asked.session, asked.body.state.time] = sent
            self._waiting += asked.kind != "stream_state"
            self.outcome.requests += asked.kind != "stream_state"
            latest = max(latest, time.monotonic() + getattr(asked.body, "deadline", 0.0))
            watch(self.outcome)
        while self._waiting and time.monotonic() < latest + _PATIENCE:
            self._receive(0.1)
        self._receive(0.0)
        if self._waiting:
            raise TimedOutError(f"{self._waiting} of {self.outcome.requests} requests had no answer from the daemon")
        repeated = {(sent.asked.session, sent.asked.message.id) for sent in self._sent.values()}
        for x in self._traced:
            if (x.trace.session, x.trace.request) in repeated:
                self._count_then(x.trace)

    def _again(self, asked: _Asked) -> Any:
        """Return a request as it is sent now; None: it is not."""
        why = ""
        if asked.kind == "open" or (asked.session and asked.session not in self._twins):
            return None
        if asked.kind not in (*_OF_SESSIONS, *_HARMLESS, "close"):
            why = f"{asked.kind} concerns the daemon"
        elif asked.kind == "close":
            why = "sessions are closed at the end"
        elif asked.kind == "revert" and asked.session in self._anew:
            why = "versions of before the file begins are not there"
        if why:
            _count(self.outcome.passed, why)
            return None
        message = schema.load().new("Request")
        message.CopyFrom(asked.message)
        body = getattr(message, asked.kind)
        if asked.session:
            body.session = self._twins[asked.session]
        if asked.kind == "set_config" and body.HasField("settings"):
            body.settings.ClearField("lease")
        if asked.kind == "stream_state":
            body.ClearField("seen")  # it takes all plans
        return message

    # ------------------------------------------------------------------------------------------- answers

    def _receive(self, wait: float) -> None:
        """Take what has come, after waiting for a first answer."""
        self._client._fill(self._box, wait)
        while self._box.replies:
            reply = self._box.replies.popleft()
            sent = self._sent.get(reply.id)
            if sent is None:
                continue
            if not sent.answered and sent.asked.kind != "stream_state":
                sent.answered = True
                self._waiting -= 1
                self.outcome.answered += 1
            if reply.WhichOneof("body") == "error":
                _count(self.outcome.refused, f"{sent.asked.kind}: {reply.error.text}")
            elif reply.WhichOneof("body") == "plan":
                self._count_now(reply.plan, sent)

    def _count_now(self, plan: Any, sent: _Sent) -> None:
        if plan.stream_sequence and (state := self._states.get((sent.asked.session, plan.state_time))):
            state.answered = True
        first = plan.state_time != sent.latest or not plan.stream_sequence
        sent.latest = plan.state_time
        late = not plan.deadline_met
        self.outcome.now.add(first=first, late=late, iterations=plan.iterations, age=plan.age)
        if sent.traced is None:
            return
        trace = sent.traced.trace
        self.outcome.plans += 1
        if plan.status == trace.status:
            return
        self.outcome.different += 1
        if self.outcome.first is None:
            whose = f"plan {trace.sequence} of session {trace.session}, of the state at {trace.state_time:.6g} s"
            self.outcome.first = f"{whose}, was {_status(trace)}, is {_status(plan)}"

    def _count_then(self, trace: Any) -> None:
        late = trace.due == trace.due and not trace.deadline_met  # NaN: no deadline
        self.outcome.then.add(
            first=trace.first or not trace.streamed, late=late, iterations=trace.iterations, age=trace.sent
        )


def _count(of: dict[str, int], what: str) -> None:
    of[what] = of.get(what, 0) + 1


def _has_state(asked: _Asked) -> bool:
    return asked.kind in ("plan", "evaluate", "stream_state")


def _answer_of(asked: _Asked) -> _Answer:
    """Return what the first plan for a request is found by."""
    streamed = asked.kind == "stream_state"
    return asked.session, streamed, asked.body.state.time if streamed else asked.message.id


def _had_answer(before: _Sent | None, asked: _Asked) -> bool:
    """Return whether the client had the plan before when it asked: then it waits for it now, too."""
    return before is not None and before.traced is not None and before.traced.time <= asked.time


def _status(message: Any) -> str:
    """Return the name of a plan's status."""
    known = message.DESCRIPTOR.fields_by_name["status"].enum_type.values_by_number
    return str(known[message.status].name) if message.status in known else str(message.status)
