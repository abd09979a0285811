"""What pictures of one closed loop are made of, and the files that it is read from."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sinew.errors import FileError, FormatError, NotFoundError

__all__ = ["Loop", "Series", "read_loop"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Series:
    """Named numbers over time.

    Attributes
    ----------
    time : array, (n,)
        [s]
    names : tuple of str
        Of the columns.
    values : array, (n, number of names)
    """

    time: Array = field(repr=False)
    names: tuple[str, ...]
    values: Array = field(repr=False)


@dataclass(frozen=True, eq=False)
class Loop:
    """One closed loop. What is None is not known of it.

    Attributes
    ----------
    name : str
        For the picture's title.
    cost : Series
        Of the states.
    measures, controls, activations : Series or None
        Of the states.
    below, during : tuple of float, or None
        Of each measure: its bound, and for how long it is looked at before the end [s].
    terms : Series or None
        Weighted parts of the plans' costs.
    latency : array, (plans,), or None
        Time that each plan took [s].
    interval : float or None
        Time of the motion between two plans [s].
    deadline : float or None
        For each plan [s].
    places : dict of array (n, 3)
        By name: where what the cost looks at was [m].
    predicted : dict of array (plans, steps + 1, 3)
        By name: where some plans expected it to be [m].
    """

    name: str
    cost: Series
    measures: Series | None = None
    controls: Series | None = None
    activations: Series | None = None
    below: tuple[float, ...] | None = None
    during: tuple[float, ...] | None = None
    terms: Series | None = None
    latency: Array | None = field(default=None, repr=False)
    interval: float | None = None
    deadline: float | None = None
    places: dict[str, Array] = field(default_factory=dict, repr=False)
    predicted: dict[str, Array] = field(default_factory=dict, repr=False)


def read_loop(path: str | Path) -> Loop:
    """Read a loop: a trace of ``sinew sweep --keep``, a recording, or columns of ``sinew-plant --data``.

    Raises
    ------
    NotFoundError, FileError
        There is no such file, or it cannot be read.
    FormatError
        It is something else.
    """
    path = Path(path)
    if not path.is_file():
        raise NotFoundError(f"{path}: there is no such file")
    try:
        with open(path, "rb") as file:
            begin = file.read(5)
        if begin == b"\x89MCAP":
            from sinew.plot.recording import read_recording

            return read_recording(path)
        return _of_trace(path) if begin.startswith(b"PK") else _of_columns(path)
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}") from None


def _of_trace(path: Path) -> Loop:
    import zipfile
    import zlib

    try:
        with path.open("rb") as packed, np.load(packed) as file:  # one that is damaged is closed, too
            x: dict[str, NDArray[Any]] = {name: file[name] for name in file.files}
        time, plans = x["time"], x["plan_time"]
        names = {
            kind: tuple(map(str, x[f"{kind}_names"])) for kind in ("measure", "term", "actuator", "muscle", "place")
        }
        return Loop(
            name=str(x["title"]),
            cost=Series(time, ("cost",), x["cost"][:, None]),
            measures=_series(time, names["measure"], x["measures"]),
            controls=_series(time, names["actuator"], x["ctrl"]),
            activations=_series(time, names["muscle"], x["act"]),
            below=tuple(x["measure_below"]),
            during=tuple(x["measure_during"]),
            terms=_series(plans, names["term"], x["plan_terms"]),
            latency=x["plan_latency"],
            interval=float(x["interval"]),
            deadline=float(x["deadline"]) or None,
            places={name: x["places"][:, i] for i, name in enumerate(names["place"])},
            predicted={name: x["ghost_places"][:, :, i] for i, name in enumerate(names["place"])},
        )
    except (ValueError, KeyError, IndexError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise FormatError(f"{path}: no trace of sinew sweep --keep: {error}") from None


def _series(time: Array, names: tuple[str, ...], values: Array) -> Series | None:
    return Series(time, names, values) if names and len(values) else None


def _of_columns(path: Path) -> Loop:
    """Read a header line with names of columns, time and cost first, and numbers below."""
    wrong = FormatError(
        f"{path}: no trace of sinew sweep --keep, recording, or columns time, cost, ... of sinew-plant --data"
    )
    try:
        with open(path) as file:
            names = shlex.split(file.readline())
            if names[:2] != ["time", "cost"]:
                raise wrong
            table = np.loadtxt(file, ndmin=2)
    except (ValueError, UnicodeDecodeError) as error:
        raise wrong from error
    if table.shape[1] != len(names) or len(table) == 0:
        raise wrong
    controls = [i for i, name in enumerate(names) if i >= 2 and re.fullmatch(r"ctrl\d+", name)]
    # Behind the controls stand ages and jumps of plans, and positions.
    ages = [i for i, name in enumerate(names) if i >= 2 and name == "age"]
    measures = list(range(2, min([*controls[:1], *ages, len(names)])))
    time, parts = (
        table[:, 0],
        [_series(table[:, 0], tuple(names[i] for i in x), table[:, x]) for x in (measures, controls)],
    )
    return Loop(path.name, Series(time, ("cost",), table[:, 1:2]), measures=parts[0], controls=parts[1])
