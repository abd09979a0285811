"""Repeats a recording at a daemon and compares the plans bit for bit.

A plan depends on the state of its planner before it, on its request, and on how many iterations and candidates went
into it. All of this is in a recording. Only the norm of its gradient depends on the deadline, too, and is not compared.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sinew.client import Client, schema
from sinew.client.records import RecordSocket, parse
from sinew.client.wire import Call, request
from sinew.errors import FormatError
from sinew.record.reader import Entry, Recording

__all__ = ["Difference", "Outcome", "replay"]

_NUMBERS = ("cost_now", "cost_before", "cost_after", "start", "step")
_COUNTS = ("status", "steps", "lead", "iterations", "candidates", "act_estimated", "overflow")
_STATES = ("time", "qpos", "qvel", "act")
_BITS = struct.Struct("<d")
_LEASE = 3600.0  # of the session that repeats [s]


@dataclass(frozen=True)
class Difference:
    """Where a repeated plan is not the recorded one.

    Attributes
    ----------
    session, sequence : int
        Whose plan, and its number.
    time : float
        Stamp of its state [s].
    what : str
        The number that differs first, such as ``"ctrl[3, biceps]"``: row and name of the control.
    recorded, repeated : float
        Its values.
    count : int
        Numbers of this plan that differ.
    """

    session: int
    sequence: int
    time: float
    what: str
    recorded: float
    repeated: float
    count: int

    def __str__(self) -> str:
        return (
            f"plan {self.sequence} of the state at {self.time:.6g} s: {self.what} was {self.recorded!r},"
            f" is {self.repeated!r}; {self.count} numbers of this plan differ"
        )


@dataclass
class Outcome:
    """What a replay has found.

    Attributes
    ----------
    plans, same, different : int
        Compared, and of these with and without a difference.
    skipped : dict of int
        Plans that cannot be repeated, by reason.
    first : Difference or None
        The first one.
    remarks : list of str
        What one should know of it, each once.
    computing : float
        Time that the daemon took to plan [s].
    cut : bool
        The recording has no end.
    """

    plans: int = 0
    same: int = 0
    different: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    first: Difference | None = None
    remarks: list[str] = field(default_factory=list)
    computing: float = 0.0
    cut: bool = False

    def remark(self, text: str) -> None:
        """Note what one should know."""
        if text and text not in self.remarks:
            self.remarks.append(text)


def replay(
    recording: Recording,
    client: Client,
    *,
    begin: float = 0.0,
    end: float = float("inf"),
    anyway: bool = False,
    session: int | None = None,
    watch: Callable[[Outcome], None] = lambda outcome: None,
) -> Outcome:
    """Send the recorded requests to a daemon and compare its plans with the recorded ones.

    Parameters
    ----------
    recording : Recording
    client : Client
        Of the daemon.
    begin, end : float
        Plans between these times are compared, from the first record on [s].
    anyway : bool
        Go on where the daemon's model is another one than that of the recording.
    session : int, optional
        Replay this session alone.
    watch : callable
        Is told how far it is after each record.

    Raises
    ------
    RefusedError
        The daemon does not know the task, or has another model.
    FormatError
        There is nothing to replay.
    """
    outcome = Outcome()
    outcome.remark(recording.remark)
    first, snapshots = _times(recording, begin, session)
    twins: dict[int, _Twin] = {}
    try:
        for entry in recording.entries(session=session):
            if entry.time > first + end:
                break
            if entry.time < snapshots.get(entry.session, 0.0) and entry.kind != "open":
                continue
            twin = twins.setdefault(entry.session, _Twin(client, entry.session, outcome, anyway))
            twin.take(entry, compared=entry.time >= first + begin)
            watch(outcome)
        else:
            for twin in twins.values():
                twin.end()
    finally:
        for twin in twins.values():
            twin.close()
    outcome.cut = recording.cut
    return outcome


def _times(recording: Recording, begin: float, session: int | None) -> tuple[float, dict[int, float]]:
    """Return the time of the first record, and of each session's last snapshot before plans are compared [s]."""
    first, found = None, False
    snapshots: dict[int, float] = {}
    for entry in recording.entries(session=session):
        first = entry.time if first is None else first
        late = entry.time > first + begin
        if entry.kind == "snapshot":
            found = True
            if not late:
                snapshots[entry.session] = entry.time
        if late and found:
            break
    if first is None or not found:
        whose = "a session" if session is None else f"session {session}"
        raise FormatError(f"{recording.path} has no snapshot of {whose}: there is nothing to replay")
    return first, snapshots


class _Twin:
    """A session at the daemon that repeats a recorded one."""

    def __init__(self, client: Client, number: int, outcome: Outcome, anyway: bool) -> None:
        self._client, self._number, self._outcome, self._anyway = client, number, outcome, anyway
        self._id = 0  # of the session at the daemon; 0: none
        self._records: RecordSocket | None = None
        self._opened: Any = None  # OpenRecord
        self._begin: Any = None  # PlanBegin
        self._latest = 0  # number of the latest record
        self._why = "they come before the first snapshot"  # why plans cannot be repeated; empty: they can

    def take(self, entry: Entry, compared: bool) -> None:
        """Do what a record says; `compared` says whether its plan is looked at."""
        record = entry.record
        if self._latest and record.number > self._latest + 1:
            self._why = "records before them are missing"
        self._latest = record.number
        getattr(self, f"_take_{entry.kind}")(entry.body, compared)

    def end(self) -> None:
        """Note a plan that never came: the daemon may have failed in it."""
        if self._begin is not None:
            state = f"of the state at {self._begin.state.time:.6g} s"
            self._outcome.remark(f"plan {self._begin.sequence} {state} began and has no end in the file")

    def close(self) -> None:
        """Close the session, without waiting for the answer: the daemon may be gone."""
        if self._id:
            self._client._abandon(self._id)
        if self._records is not None:
            self._records.close()
        self._id, self._records = 0, None

    def _take_open(self, opened: Any, compared: bool) -> None:
        if self._opened is None:
            self._opened = opened
            hello = self._client.hello
            if opened.number != hello.number:
                text = f"recorded with numbers of type {opened.number}, the daemon has {hello.number}"
                self._outcome.remark(f"{text}: plans will differ")
            if opened.version != hello.version:
                self._outcome.remark(f"recorded from sinewd {opened.version}, repeated by {hello.version}")

    def _take_snapshot(self, snapshot: Any, compared: bool) -> None:
        if not self._why:
            return
        fitted = self._fitted(snapshot) if self._anyway else snapshot
        if self._id:
            self._ask("reset", {"session": self._id}, lambda reset: reset.snapshot.CopyFrom(fitted))
            self._ask("set_config", {"session": self._id, "settings": {"lease": _LEASE}})
        else:
            fields = {"task": snapshot.task, "session": {"lease": _LEASE}}
            self._id = self._ask("open", fields, lambda opened: opened.snapshot.CopyFrom(fitted)).session
            if self._client.hello.records:  # a key may have none
                self._records = self._client.records(self._id)
        self._why, self._begin = "", None

    def _take_reset(self, reset: Any, compared: bool) -> None:
        if reset.HasField("config"):  # by a snapshot
            self._why = "a snapshot was restored before them"
        elif not self._why:
            self._ask("reset", {"session": self._id, "seed": reset.seed})

    def _take_config(self, record: Any, compared: bool) -> None:
        if record.plan:
            self._why = self._why or "settings changed while they were made"
        elif not self._why:
            self._ask("set_config", {"session": self._id}, lambda wanted: _configure(wanted, record.config))

    def _take_begin(self, begin: Any, compared: bool) -> None:
        self._begin = begin

    def _take_plan(self, plan: Any, compared: bool) -> None:
        begin, self._begin = self._begin, None
        if begin is None or begin.sequence != plan.sequence:
            self._why = self._why or "records before them are missing"
        if not self._why and plan.iterations == 0:
            self._why = "their deadline left no time for an iteration"
        if self._why:
            if compared:
                self._outcome.skipped[self._why] = self._outcome.skipped.get(self._why, 0) + 1
            return
        repeated = self._repeat(begin, plan)
        if compared:
            self._compare(plan, repeated)

    def _take_close(self, close: Any, compared: bool) -> None:
        self.close()
        self._why, self._begin = "the session was closed", None

    # --------------------------------------------------------------------------------------- the daemon

    def _fitted(self, snapshot: Any) -> Any:
        """Return a snapshot with the mark of the daemon's own model."""
        own = self._ask("open", {"task": snapshot.task}).session
        checksum = self._ask("snapshot", {"session": own}).checksum
        self._ask("close", {"session": own})
        if checksum == snapshot.checksum:
            return snapshot
        self._outcome.remark(f"the model is another one: {snapshot.checksum} was recorded, here it is {checksum}")
        fitted = type(snapshot)()
        fitted.CopyFrom(snapshot)
        fitted.checksum = checksum
        return fitted

    def _repeat(self, begin: Any, plan: Any) -> Any:
        """Send what the recorded plan was asked for; returns its repetition."""

        def fill(wanted: Any) -> None:
            wanted.state.CopyFrom(begin.state)
            if begin.HasField("applied"):
                wanted.applied.CopyFrom(begin.applied)
            wanted.want_states = plan.HasField("states")
            wanted.iterations, wanted.candidates = plan.iterations, plan.candidates

        repeated = self._ask("plan", {"session": self._id}, fill)
        self._outcome.computing += repeated.computing
        self._look_at_task()
        return repeated

    def _ask(self, body: str, fields: dict[str, Any], fill: Callable[[Any], None] = lambda part: None) -> Any:
        """Send a request and return the message that answers it."""
        message = request(body, fields)
        fill(getattr(message, body))
        return self._client._request(Call(body, message, lambda reply: reply))

    def _look_at_task(self) -> None:
        """Note whether the daemon's task is the recorded one, once it has made itself known."""
        for topic, data in self._records.receive_many() if self._records is not None else ():
            if topic.split()[1] == "open" and self._records is not None:
                own = parse(data).open
                if own.task_text != self._opened.task_text:
                    self._outcome.remark(f"the daemon's text of task {own.task} is another one than the recorded")
                self._records.close()
                self._records = None

    # -------------------------------------------------------------------------------------- comparison

    def _compare(self, recorded: Any, repeated: Any) -> None:
        outcome = self._outcome
        outcome.plans += 1
        differences = list(_differences(recorded, repeated, self._opened))
        if not differences:
            outcome.same += 1
            return
        outcome.different += 1
        if outcome.first is None:
            count = sum(many for *_, many in differences)
            what, was, now, _ = differences[0]
            outcome.first = Difference(self._number, recorded.sequence, recorded.state_time, what, was, now, count)


def _configure(wanted: Any, config: Any) -> None:
    """Fill a request by a configuration, but for the lease: that is of the one who was recorded."""
    wanted.planner.CopyFrom(config.planner)
    wanted.settings.CopyFrom(config.session)
    wanted.settings.ClearField("lease")
    wanted.terms.extend(config.terms)


Found = tuple[str, float, float, int]  # what differs first, its values, how many


def _differences(recorded: Any, repeated: Any, opened: Any) -> Iterator[Found]:
    """Give what differs between two plans: a vector, or a number."""
    vectors = [("ctrl", recorded.ctrl, repeated.ctrl)]
    if recorded.HasField("states"):
        vectors += [(name, getattr(recorded.states, name), getattr(repeated.states, name)) for name in _STATES]
    for name, was, now in vectors:
        if was != now:
            yield _in_vector(name, opened.description.model, was, now)
    was_terms = {term.name: term.cost for term in recorded.terms}
    now_terms = {term.name: term.cost for term in repeated.terms}
    numbers = [(name, getattr(recorded, name), getattr(repeated, name)) for name in (*_NUMBERS, *_COUNTS)]
    numbers += [(f"terms[{name}]", cost, now_terms.get(name, float("nan"))) for name, cost in was_terms.items()]
    for name, old, new in numbers:
        if _BITS.pack(old) != _BITS.pack(new):
            yield name, old, new, 1


def _in_vector(name: str, model: Any, was: bytes, now: bytes) -> Found:
    """Return where two vectors, which are not the same, differ first: rows of controls, or of a state."""
    columns = ["s"] if name == "time" else schema.convert(model).columns(name)
    shown = name if name == "ctrl" else f"states.{name}"
    old, new = schema.numbers(was, name), schema.numbers(now, name)
    if len(old) != len(new):
        return f"the length of {shown}", len(old), len(new), abs(len(old) - len(new))
    where = np.flatnonzero(old.view(np.uint64) != new.view(np.uint64))
    row, column = divmod(int(where[0]), len(columns))
    return f"{shown}[{row}, {columns[column]}]", float(old[where[0]]), float(new[where[0]]), len(where)
