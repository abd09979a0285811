"""Tables out of recordings: a row a state, a row of a plan, a plan, or a setting."""

from __future__ import annotations

import contextlib
import csv
import os
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from sinew.client import schema
from sinew.client.messages import ModelDescription
from sinew.errors import ArgumentError, FileError, NotFoundError
from sinew.record.reader import Entry, Recording, plan_of

__all__ = ["TABLES", "Table", "table"]

_VECTORS = ("qpos", "qvel", "act")
_OF_PLAN = (
    *("cost_now", "cost_before", "cost_after", "gradient_norm", "iterations", "candidates", "lead"),
    *("age", "computing", "deadline_met", "config_version"),
)


class Table:
    """A table of one session, by columns; vectors have a column an entry.

    Attributes
    ----------
    columns : dict of list
        By name: numbers or texts, or vectors of equal size.
    names : dict of list of str
        Of the entries of each vector, as the model names them.
    """

    def __init__(self, names: Mapping[str, list[str]]) -> None:
        self.columns: dict[str, list[Any]] = {}
        self.names = dict(names)

    def add(self, **row: Any) -> None:
        """Add a row."""
        for name, value in row.items():
            self.columns.setdefault(name, []).append(value)

    def __len__(self) -> int:
        return max((len(column) for column in self.columns.values()), default=0)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return each column as an array, (rows,) or (rows, entries), and names of entries under ``NAME_names``."""
        made = {name: np.array(column) for name, column in self.columns.items()}
        return made | {f"{name}_names": np.array(entries) for name, entries in self.names.items() if name in made}

    def write_npz(self, path: str | os.PathLike[str]) -> None:
        """Write `arrays` into a file for `numpy.load`."""
        arrays: dict[str, Any] = self.arrays()
        with _written(path) as file:
            np.savez_compressed(file, **arrays)

    def write_csv(self, path: str | os.PathLike[str]) -> None:
        """Write a line for each row; entries of vectors are named ``qpos.NAME``. Numbers keep all their bits."""
        header = [f"{name}.{entry}" if entry else name for name in self.columns for entry in self.names.get(name, [""])]
        with _written(path, text=True) as file:
            lines = csv.writer(file)
            lines.writerow(header)
            for row in zip(*self.columns.values(), strict=True):
                lines.writerow([number for value in row for number in np.ravel(value).tolist()])


@contextlib.contextmanager
def _written(path: str | os.PathLike[str], text: bool = False) -> Iterator[IO[Any]]:
    """Open a file to write, and say in words what the system refuses."""
    try:
        with open(path, "w" if text else "wb", newline="" if text else None) as file:
            yield file
    except OSError as error:
        raise FileError(f"{os.fspath(path)} cannot be written: {error.strerror}") from None


def table(recording: Recording, what: str, session: int | None = None) -> Table:
    """Return a table of one session.

    Parameters
    ----------
    recording : Recording
    what : str
        One of `TABLES`.
    session : int, optional
        By default the first one in the file.

    Raises
    ------
    NotFoundError
        There is no such session.
    """
    if what not in TABLES:
        raise ArgumentError(f"what is {what!r}; allowed are {', '.join(TABLES)}")
    kinds, add = TABLES[what]
    made: Table | None = None
    for entry in recording.entries(("open", *kinds), session):
        if made is None and entry.kind == "open":
            session, model = entry.session, schema.convert(entry.body.description.model)
            terms = [term.name for term in entry.body.description.terms]
            names = {vector: model.columns(vector) for vector in ("ctrl", *_VECTORS)}
            made = Table({**names, "terms": terms})
        if made is not None and entry.session == session and entry.kind in kinds:
            add(made, entry, model)
    if made is None:
        whose = "a session" if session is None else f"session {session}"
        raise NotFoundError(f"{recording.path} has no record that {whose} was open")
    return made


def _add_state(made: Table, entry: Entry, model: ModelDescription) -> None:
    state = entry.body.state
    vectors = {name: schema.numbers(getattr(state, name), name) for name in _VECTORS}
    if vectors["act"].size != model.na:  # the daemon estimates it
        vectors["act"] = np.full(model.na, np.nan)
    made.add(plan=entry.body.sequence, received=entry.time, time=state.time, **vectors)


def _add_rows(made: Table, entry: Entry, model: ModelDescription) -> None:
    plan = plan_of(entry.body, model)
    for time, ctrl in zip(plan.time.tolist(), plan.ctrl, strict=True):
        made.add(plan=plan.sequence, time=time, ctrl=ctrl)


def _add_plan(made: Table, entry: Entry, model: ModelDescription) -> None:
    plan = entry.body
    costs = {term.name: term.cost for term in plan.terms}
    made.add(
        plan=plan.sequence,
        sent=entry.time,
        state_time=plan.state_time,
        **{name: getattr(plan, name) for name in _OF_PLAN},
        terms=np.array([costs.get(name, np.nan) for name in made.names["terms"]]),
    )


def _add_settings(made: Table, entry: Entry, model: ModelDescription) -> None:
    config = entry.body.config
    values = {**schema.present(config.planner), **schema.present(config.session)}
    for term in config.terms:
        values |= {f"weight of {term.name}": term.weight, f"terminal weight of {term.name}": term.terminal_weight}
        if term.target:
            values[f"target of {term.name}"] = " ".join(map(repr, schema.numbers(term.target, "target").tolist()))
    for name, value in values.items():
        made.add(version=config.version, received=entry.time, name=name, value=str(value))


Add = Callable[[Table, Entry, ModelDescription], None]

TABLES: dict[str, tuple[tuple[str, ...], Add]] = {
    "states": (("begin",), _add_state),
    "plans": (("plan",), _add_rows),
    "costs": (("plan",), _add_plan),
    "settings": (("open", "config"), _add_settings),
}
"""What can be had: states as they came, the rows of all plans, what each plan costs, settings with their versions."""
