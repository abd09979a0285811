"""Recorded motions out of files: CSV, NPZ, and recordings of sessions (MCAP)."""

from __future__ import annotations

import csv
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sinew._arrays import Doubles
from sinew._extras import require
from sinew._files import reason
from sinew.client.quantities import Quantity, columns
from sinew.errors import ArgumentError, FileError, FormatError
from sinew.identify import Motion
from sinew.model import Model

__all__ = ["column_names", "read_motions"]

_VECTORS = {"qpos": "nq", "qvel": "nv", "ctrl": "nu", "act": "na"}
_JOINTS = {0: (7, 6), 1: (4, 3), 2: (1, 1), 3: (1, 1)}  # entries of qpos and qvel of free, ball, slide, hinge


def column_names(model: Model) -> dict[str, list[str]]:
    """Return the names of the columns of each vector, ``qpos.elbow`` say, as `sinew export` writes them."""
    joints = [model.joint(i) for i in range(model.njnt)]
    sizes = [_JOINTS[int(kind)] for kind in model.jnt_type]
    actuators = [model.actuator(i) for i in range(model.actuator_ctrladr.size)]
    parts = {
        "qpos": [(j.name, int(at), n) for j, at, (n, _) in zip(joints, model.jnt_qposadr, sizes, strict=True)],
        "qvel": [(j.name, int(at), n) for j, at, (_, n) in zip(joints, model.jnt_dofadr, sizes, strict=True)],
        "ctrl": [(a.name, int(at), int(n)) for a, at, n in _with(actuators, model, "ctrl")],
        "act": [(a.name, int(at), int(n)) for a, at, n in _with(actuators, model, "act") if n > 0],
    }
    return {
        vector: [f"{vector}.{name}" for name in columns(vector, [Quantity(*x, "", False, 0, 0) for x in entries])]
        for vector, entries in parts.items()
    }


def _with(actuators: list[Any], model: Model, vector: str) -> Any:
    return zip(actuators, getattr(model, f"actuator_{vector}adr"), getattr(model, f"actuator_{vector}num"), strict=True)


def read_motions(path: Path, model: Model) -> list[Motion]:
    """Read the motions of a file.

    CSV has a column ``time``, one for each entry of qpos and qvel, and, where the model has controls, of ctrl, by the
    names of `column_names`; rows of a column ``motion`` that are equal are a motion. NPZ has arrays of these names.
    MCAP is a recording of `sinew record`: its controls are those of the plans.

    Raises
    ------
    FileError, FormatError
        It cannot be read, or is none of these.
    ArgumentError
        Columns that are missing, a gap in the times, a number that is not finite: the place.
    """
    readers = {".csv": _read_csv, ".npz": _read_npz, ".mcap": _read_mcap}
    if path.suffix not in readers:
        raise ArgumentError(f"{path}: a recording ends in {', '.join(readers)}")
    arrays = readers[path.suffix](path, model)
    return _motions(path, model, arrays)


def _motions(path: Path, model: Model, arrays: Mapping[str, NDArray[Any]]) -> list[Motion]:
    """Cut arrays of all rows into motions."""
    count = len(arrays["time"])
    if not count:
        raise ArgumentError(f"{path}: its arrays have no rows")
    arrays = {name: x for name, x in arrays.items() if x.size or name not in ("ctrl", "act")}
    for vector, size in _VECTORS.items():
        if vector in arrays and arrays[vector].shape != (count, getattr(model, size)):
            raise ArgumentError(
                f"{path}: {vector} has shape {arrays[vector].shape}, expected ({count}, {getattr(model, size)})"
            )
    if model.nu and "ctrl" not in arrays:
        raise ArgumentError(f"{path}: no ctrl, and the model has {model.nu} controls")
    number = arrays.get("motion", np.zeros(count))
    if number.shape != (count,) or not np.all(np.isfinite(number)):
        raise ArgumentError(f"{path}: motion has to be a number in each row")
    cuts = np.flatnonzero(np.diff(number)) + 1
    parts = {name: np.split(x, cuts) for name, x in arrays.items() if name != "motion"}
    none: list[None] = [None] * (len(cuts) + 1)
    return [
        Motion(qpos, qvel, ctrl, time, f"{path.name}, motion {k}" if len(cuts) else path.name, act)
        for k, (qpos, qvel, ctrl, time, act) in enumerate(
            zip(
                parts["qpos"], parts["qvel"], parts.get("ctrl", none), parts["time"], parts.get("act", none),
                strict=True,
            )
        )
    ]  # fmt: skip


def _read_csv(path: Path, model: Model) -> dict[str, Doubles]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = [line for line in csv.reader(file) if line]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise FileError(f"{path}: {reason(error)}") from None
    if len(lines) < 3:
        raise FormatError(f"{path}: {len(lines)} lines, expected names of columns and at least two rows")
    head, names = lines[0], column_names(model)
    wanted = ["time", *names["qpos"], *names["qvel"], *names["ctrl"]]
    if any(name in head for name in names["act"]):
        wanted += names["act"]  # all of them or none
    missing = [name for name in wanted if name not in head]
    if missing:
        more = f" and {len(missing) - 8} more" if len(missing) > 8 else ""
        raise ArgumentError(f"{path}: no columns {', '.join(missing[:8])}{more}; there are {', '.join(head[:12])}")
    table = np.empty((len(lines) - 1, len(head)))
    for k, line in enumerate(lines[1:]):
        if len(line) != len(head):
            raise FormatError(f"{path}: line {k + 2} has {len(line)} fields, expected {len(head)}")
        for i, text in enumerate(line):
            try:
                table[k, i] = float(text or "nan")
            except ValueError:
                table[k, i] = np.nan  # a text counts only where it is asked for, and is refused there
    at = {name: i for i, name in enumerate(head)}
    found = {
        vector: table[:, [at[name] for name in names[vector]]]
        for vector in _VECTORS
        if names[vector] and all(name in at for name in names[vector])
    }
    return found | {name: table[:, at[name]] for name in ("time", "motion") if name in at}


def _read_npz(path: Path, model: Model) -> dict[str, Doubles]:
    try:
        with path.open("rb") as packed:  # one that is damaged is closed, too
            file = np.load(packed)
            found = {}
            if not isinstance(file, np.ndarray):
                with file:
                    names = [name for name in ("time", "motion", *_VECTORS) if name in file.files]
                    found = {name: np.asarray(file[name], float) for name in names}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise FileError(f"{path}: {reason(error)}") from None
    if isinstance(file, np.ndarray):
        raise FormatError(f"{path}: one array, expected an archive of arrays by their names, as numpy.savez writes it")
    missing = [name for name in ("time", "qpos", "qvel") if name not in found]
    if missing:
        raise ArgumentError(f"{path}: no arrays {', '.join(missing)}")
    if found["time"].ndim != 1:
        raise ArgumentError(f"{path}: time has shape {found['time'].shape}, expected one dimension")
    return found


def _read_mcap(path: Path, model: Model) -> dict[str, Doubles]:
    require("record")
    from sinew.record.film import Film
    from sinew.record.reader import Recording

    film = Film(Recording(path))
    task = film.task.model
    if (task.nq, task.nv, task.nu) != (model.nq, model.nv, model.nu):
        raise ArgumentError(
            f"{path}: its body has nq, nv, nu = {task.nq}, {task.nv}, {task.nu}, the model {model.nq}, {model.nv}, "
            f"{model.nu}"
        )
    ctrl, latest = np.zeros((len(film.time), model.nu)), np.zeros(model.nu)
    for row in range(len(film.time)):
        plan = film.plan(row)
        if plan is not None:
            latest = plan.ctrl[plan.row(film.stamp[row])]
        ctrl[row] = latest
    return {"time": film.stamp, "qpos": film.qpos, "qvel": film.qvel, "ctrl": ctrl, "act": film.act}
