"""What happened in one session of a recording, by rows: one for each state that the daemon planned for."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sinew.client import schema
from sinew.client.messages import Config, TaskDescription
from sinew.client.plan import Plan
from sinew.errors import FormatError
from sinew.record.reader import Entry, Recording, plan_of

__all__ = ["Film"]

Array = NDArray[np.float64]

_FIGURES = ("cost_now", "cost_after", "gradient_norm", "iterations", "age")


class Film:
    """A session. Plans stay in the file until they are asked for.

    Parameters
    ----------
    recording : Recording
    session : int, optional
        By default the first one in the file.

    Attributes
    ----------
    task : TaskDescription
    time : array, (rows,)
        From the first state on [s]; it does not go back where the session was reset.
    stamp : array, (rows,)
        The states' own times [s].
    qpos, qvel, act, mocap : array, (rows, entries)
        States; activations that were not recorded are 0, mocap bodies stay where they are not given.
    deadline, misses : array, (rows,)
        For a plan [s], and late plans so far.
    figures, terms : dict of array, (rows,)
        Of the plans, by name; NaN where there was none.

    Raises
    ------
    FormatError
        The file has no states of this session.
    """

    def __init__(self, recording: Recording, session: int | None = None) -> None:
        self._recording, self._session = recording, session
        self._opened: Any = None
        self._rows: list[list[Any]] = []  # time, deadline, state by its parts
        self._places: list[tuple[int, float, bool]] = []  # of each row's plan: chunk (-1: no plan), time, with states
        self._numbers: list[dict[str, float]] = []
        self.qpos = self.qvel = self.act = self.mocap = np.empty((0, 0))
        self._configs: list[tuple[int, Any]] = []  # row from which it is in force, message
        self._row_of: dict[int, int] = {}  # by the number of the plan
        for entry in recording.entries(session=session):
            self._take(entry)
        if not self._rows:
            raise FormatError(f"{recording.path} has no states" + ("" if session is None else f" of session {session}"))
        opened: Any = self._opened
        self.task: TaskDescription = schema.convert(opened.description)
        self._arrange()
        self._plan_of = lru_cache(64)(self._read_plan)
        self._config_of = lru_cache(64)(lambda number: schema.convert(self._configs[number][1]))

    def _take(self, entry: Entry) -> None:
        """Note what a record says."""
        if entry.kind == "open" and self._opened is None:
            self._opened, self._session = entry.body, entry.session
            self._configs.append((0, entry.body.config))
        if self._opened is None or entry.session != self._session:
            return
        body = entry.body
        if entry.kind == "begin":
            state = body.state
            self._row_of[body.sequence] = len(self._rows)
            self._rows.append([state.time, body.deadline, state.qpos, state.qvel, state.act, state.mocap])
            self._places.append((-1, 0.0, False))
            self._numbers.append({})
        elif entry.kind == "plan" and body.ctrl and body.sequence in self._row_of:
            row = self._row_of.pop(body.sequence)
            self._places[row] = (entry.at, entry.time, body.HasField("states"))
            self._numbers[row] = {
                **{name: getattr(body, name) for name in _FIGURES},
                "late": not body.deadline_met,
                **{f"term: {term.name}": term.cost for term in body.terms},
            }
        elif entry.kind == "config":
            self._configs.append((len(self._rows), body.config))

    def _arrange(self) -> None:
        """Make arrays out of the rows."""
        model, count = self.task.model, len(self._rows)
        self.stamp = np.array([row[0] for row in self._rows])
        self.deadline = np.array([row[1] for row in self._rows])
        self.time = np.concatenate([[0.0], np.cumsum(np.maximum(np.diff(self.stamp), 0.0))])
        parts = {"qpos": model.nq, "qvel": model.nv, "act": model.na, "mocap": 7 * model.nmocap}
        first = {name: np.zeros(size) for name, size in parts.items()}
        if self.task.initial.mocap is not None:
            first["mocap"] = np.ravel(self.task.initial.mocap)
        for place, name in enumerate(parts, 2):
            made = np.empty((count, parts[name]))
            latest = first[name]
            for row, values in enumerate(self._rows):
                latest = schema.numbers(values[place], name) if values[place] else latest
                made[row] = latest
            setattr(self, name, made)
        names = [f"term: {term.name}" for term in self.task.terms]
        rows = {name: np.array([x.get(name, np.nan) for x in self._numbers], float) for name in (*_FIGURES, *names)}
        self.figures = {name: rows[name] for name in _FIGURES}
        self.terms = {name: rows[name] for name in names}
        self.misses = np.cumsum([x.get("late", False) for x in self._numbers])
        there, shown = np.array([x[0] >= 0 for x in self._places]), np.array([x[2] for x in self._places])
        self._latest = [np.maximum.accumulate(np.where(x, np.arange(count), -1)) for x in (there, shown)]
        self._rows, self._numbers = [], []

    def row(self, time: float) -> int:
        """Return the row of the latest state at a time [s]."""
        return max(int(np.searchsorted(self.time, time + 1e-9, side="right")) - 1, 0)

    def plan(self, row: int, predicted: bool = False) -> Plan | None:
        """Return the latest plan at a row, or the latest with predicted states; None before the first."""
        latest = int(self._latest[predicted][row])
        return None if latest < 0 else self._plan_of(latest)

    def config(self, row: int) -> Config:
        """Return the configuration that is in force at a row."""
        config: Config = self._config_of(sum(begin <= row for begin, _ in self._configs) - 1)
        return config

    def _read_plan(self, row: int) -> Plan:
        at, time, _ = self._places[row]
        for entry in self._recording.entries_at(at):
            if entry.kind == "plan" and entry.session == self._session and entry.time == time:
                return plan_of(entry.body, self.task.model)
        raise FormatError(f"{self._recording.path} has changed since it was opened")
