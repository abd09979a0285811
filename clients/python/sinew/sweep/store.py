"""The folder of a sweep: a line of JSON for each run that is done, the table of all, and traces."""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sinew.errors import FileError, NotFoundError, StateError
from sinew.sweep.table import Run

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CURVES", "Store", "read", "written"]

CURVES = ("curve_time", "curve_cost")
"""Columns with a list a run: times [s] and costs of the states for which plans were made, and of the last."""

_LINES = "runs.jsonl"
_TABLE = "runs.parquet"


class Store:
    """A folder in which one sweep at a time writes.

    Each run is one line of a file that only grows, so that a sweep which was killed loses the runs under way and no
    others: a last line that was cut short is none.

    Attributes
    ----------
    folder : Path
        Made where it is not there.
    done : dict
        What is written by now, by key: ``{"key": ..., "result": {...}, "curve": {...}}``.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        with written(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lines = open(self.folder / _LINES, "a+b")  # noqa: SIM115
        try:
            fcntl.flock(self._lines, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lines.close()
            raise StateError(f"{self.folder}: another sweep writes there") from None
        self._lines.seek(0)
        text = self._lines.read()
        if text and not text.endswith(b"\n"):
            self._lines.write(b"\n")
        self.done = {line["key"]: line for line in map(_parse, text.splitlines()) if line is not None}

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):  # what is not written has been said
            self._lines.close()

    def has(self, key: str, keep: bool) -> bool:
        """Return whether a run is done; `keep`: and its trace is there."""
        line = self.done.get(key)
        if line is None or line["result"].get("error"):
            return False
        return not keep or self.trace_path(key).is_file()

    def trace_path(self, key: str) -> Path:
        """Return where the trace of a run is, or would be."""
        return self.folder / "traces" / f"{key}.npz"

    def add(
        self, key: str, result: dict[str, Any], curve: dict[str, list[float]], trace: dict[str, NDArray[Any]] | None
    ) -> None:
        """Write a run that is done; its trace first."""
        if trace is not None:
            path = self.trace_path(key)
            part = path.with_suffix(".part")
            with written(path):
                path.parent.mkdir(exist_ok=True)
                with open(part, "wb") as file:
                    np.savez_compressed(file, **trace)  # type: ignore[arg-type]
                os.replace(part, path)
        line = {"key": key, "result": result, "curve": curve}
        with written(self.folder / _LINES):
            self._lines.write(json.dumps(line).encode() + b"\n")
            self.done[key] = line  # before a disk is waited for: Ctrl-C may come then
            self._lines.flush()
            os.fsync(self._lines.fileno())

    def table(self, runs: Iterable[tuple[str, Run]]) -> pd.DataFrame:
        """Return the table of the runs that are done, and write it to ``runs.parquet`` where there is one."""
        import pandas as pd

        known = [(key, run) for key, run in runs if key in self.done]
        settings = sorted({name for _, run in known for name in run.all_settings})
        table = pd.DataFrame([_row(key, run, settings, self.done[key]) for key, run in known])
        if known:
            part = self.folder / (_TABLE + ".part")
            with written(self.folder / _TABLE):
                table.to_parquet(part, index=False)
                os.replace(part, self.folder / _TABLE)
        return table


@contextlib.contextmanager
def written(path: Path) -> Iterator[None]:
    """Say in words what the system refuses within this block, which writes a file."""
    try:
        yield
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror or error}") from None


def read(folder: str | os.PathLike[str]) -> pd.DataFrame:
    """Return the table of a sweep: a row for each run.

    Raises
    ------
    NotFoundError
        There is no table: no sweep has ended there.
    """
    import pandas as pd

    path = Path(folder) / _TABLE
    if not path.is_file():
        raise NotFoundError(f"{folder}: no {_TABLE} is there; sinew sweep -o {folder} writes one")
    return pd.read_parquet(path)


def _parse(line: bytes) -> dict[str, Any] | None:
    """Return a line of the file; None where it is no whole one."""
    try:
        parsed = json.loads(line)
    except ValueError:
        return None
    whole = isinstance(parsed, dict) and {"key", "result", "curve"} <= parsed.keys()
    return parsed if whole else None


def _row(key: str, run: Run, settings: list[str], line: dict[str, Any]) -> dict[str, Any]:
    """Return a row of the table: what was run, and what came of it."""
    row: dict[str, Any] = {"key": key, "task": run.task, "planner": run.planner}
    row["settings"] = ", ".join(f"{name}={value}" for name, value in run.settings)
    row |= {f"set: {name}": run.all_settings.get(name) for name in settings}
    row |= {name: getattr(run, name) for name in ("seed", "seconds", "execute", "iterations", "budget")}
    row |= {"error": "", "success": False, "cost_mean": math.nan, "cost_end": math.nan, **line["result"]}
    return row | dict(zip(CURVES, (line["curve"].get("time", []), line["curve"].get("cost", [])), strict=True))
