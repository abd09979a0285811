"""What a sweep runs: the product of lists of tasks, planners, settings and seeds, and rows beside it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sinew._yaml import read_map
from sinew.errors import ArgumentError, NotFoundError
from sinew.names import did_you_mean
from sinew.planner import settings as all_settings

__all__ = ["PLANNERS", "Run", "Settings", "Table", "seeds_of", "value_of"]

Settings = tuple[tuple[str, float | str], ...]

_VARIANTS: dict[str, dict[str, float | str]] = {
    "task": {},
    "adam": {"planner": "adam", "cfd": "none"},
    "adam+cfd": {"planner": "adam", "cfd": "cfd"},
}
_KNOWN: dict[str, dict[str, float | str]] = {
    **{name: {"planner": name} for name in all_settings()["planner"].choices or ()},
    **_VARIANTS,
}
PLANNERS = f"{', '.join({**_VARIANTS, **_KNOWN})}, or sampling-N for N candidates of brown noise"

_LISTS = ("tasks", "planners", "seeds", "seconds", "execute", "iterations", "budget")
_KEYS = (*_LISTS, "settings", "models", "runs")
_DEFAULTS: dict[str, Any] = {
    "planners": "task",
    "settings": {},
    "seeds": 1,
    "seconds": 1.0,
    "execute": 16,
    "iterations": 0,
    "budget": 0.0,
}


@dataclass(frozen=True)
class Run:
    """One closed loop.

    Attributes
    ----------
    task : str
        Name of a task that comes with the package, or path of a task file.
    planner : str
        What the planner is called in the table.
    planner_settings, settings : tuple of (name, value)
        Of this planner, and the varied ones, over those of the task.
    seed : int
        Of the initial pose, the initial plan and the noise.
    seconds : float
        How long the body moves [s].
    execute : int
        Steps between two plans.
    iterations : int
        Of each plan; 0: as the settings say.
    budget : float
        Time for each plan [s], in place of iterations; 0: no limit.
    """

    task: str
    planner: str
    planner_settings: Settings
    settings: Settings
    seed: int
    seconds: float
    execute: int
    iterations: int
    budget: float

    @property
    def all_settings(self) -> dict[str, float | str]:
        """Settings by name, over those of the task."""
        return {**dict(self.planner_settings), **dict(self.settings)}


@dataclass(frozen=True)
class Table:
    """All runs of a sweep, each once.

    Attributes
    ----------
    runs : tuple of Run
        In the order of the table.
    models : tuple of str
        Folders in which models are looked for first; the others are those of the package and MyoSuite's.
    """

    runs: tuple[Run, ...]
    models: tuple[str, ...] = ()

    @classmethod
    def load(cls, path: str | Path, changes: Mapping[str, Any] | None = None) -> Table:
        """Read a table from a YAML file; `changes` replace what it says.

        Raises
        ------
        FileError, FormatError
            It cannot be read, or is not YAML.
        ArgumentError, NotFoundError
            A key, a name or a value that is not allowed: its place.
        """
        content = read_map(Path(path), _KEYS)
        try:
            return cls.of({**content, **(changes or {})}, Path(path).parent)
        except (ArgumentError, NotFoundError) as error:
            raise type(error)(f"{path}: {error}") from None

    @classmethod
    def of(cls, content: Mapping[str, Any], folder: Path | None = None) -> Table:
        """Make a table of the content of a file; paths of tasks are relative to `folder` (None: the current one)."""
        rows = _list(content.get("runs"))
        top = {name: value for name, value in content.items() if name != "runs"}
        found: dict[Run, None] = {}
        for number, row in enumerate(rows, 1):
            if not isinstance(row, Mapping) or "runs" in row or "models" in row:
                raise ArgumentError(f"runs, row {number}: {row!r}, expected a map with some of {', '.join(_KEYS[:-2])}")
        for part in [top] * ("tasks" in top or not rows) + [{**top, **row} for row in rows]:
            found.update(dict.fromkeys(_product(part, folder)))
        return cls(tuple(found), tuple(str(x) for x in _list(content.get("models"))))


def _product(content: Mapping[str, Any], folder: Path | None) -> Iterator[Run]:
    """Yield every combination of the lists."""
    for name in content:
        if name not in _KEYS:
            raise ArgumentError(f"there is no {name!r}{did_you_mean(name, _KEYS)}; there are {', '.join(_KEYS)}")
    if not _list(content.get("tasks")):
        raise ArgumentError("tasks: none is named")
    given = {**_DEFAULTS, **content}
    for name in ("planners", "seconds", "execute", "iterations", "budget"):
        if not given[name] and given[name] != 0:
            raise ArgumentError(f"{name}: none is named")
    axes: list[list[Any]] = [
        [_task(x, folder) for x in _list(given["tasks"])],
        _planners(given["planners"]),
        list(_varied(given["settings"])),
        [_number("seconds", x, 1e-6, 1e6) for x in _list(given["seconds"])],
        [_whole("execute", x, 1) for x in _list(given["execute"])],
        [_whole("iterations", x, 0) for x in _list(given["iterations"])],
        [_number("budget", x, 0, 1e6) for x in _list(given["budget"])],
        seeds_of(given["seeds"]),
    ]
    for task, (planner, own), varied, seconds, execute, iterations, budget, seed in itertools.product(*axes):
        if iterations and budget:
            raise ArgumentError(f"iterations {iterations} and budget {budget:g}: one of them ends a plan, not both")
        yield Run(task, planner, own, varied, seed, seconds, execute, iterations, budget)


def _list(x: Any) -> list[Any]:
    return [] if x is None else list(x) if isinstance(x, list | tuple) else [x]


def _number(name: str, x: Any, lowest: float, highest: float) -> float:
    try:
        value = float(x)
    except (TypeError, ValueError):
        value = float("nan")
    if isinstance(x, bool) or not lowest <= value <= highest:
        raise ArgumentError(f"{name}: {x!r}, expected a number from {lowest:g} to {highest:g}")
    return value


def _whole(name: str, x: Any, lowest: int) -> int:
    value = _number(name, x, lowest, 1_000_000)
    if value != int(value):
        raise ArgumentError(f"{name}: {x!r}, expected a whole number")
    return int(value)


def seeds_of(x: Any) -> list[int]:
    """Return seeds: a number, a list of them, or a text such as "1-16" or "1,3,5-8"."""
    seeds: list[int] = []
    for item in _list(x):
        for part in str(item).split(","):
            match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", part)
            if isinstance(item, bool) or match is None:
                raise ArgumentError(f"seeds: {item!r}, expected whole numbers such as 1-16 or 1,3,5-8")
            first, last = int(match[1]), int(match[2] or match[1])
            if not first <= last < 2**64 or last - first > 1_000_000:
                raise ArgumentError(f"seeds: {item!r}, expected the lower number first, and at most a million")
            seeds += range(first, last + 1)
    if not seeds:
        raise ArgumentError("seeds: none is named")
    return seeds


def _task(x: Any, folder: Path | None) -> str:
    if not isinstance(x, str) or not x:
        raise ArgumentError(f"tasks: {x!r}, expected a name or a path")
    is_path = "/" in x or x.endswith(".yaml")
    return str(folder / x) if is_path and folder is not None else x


# ---- planners and settings ----


def value_of(name: str, x: Any) -> float | str:
    """Return a value of a setting as the library takes it; numbers may be texts.

    Raises
    ------
    NotFoundError
        There is no such setting.
    ArgumentError
        It is no number, no text, or none of the choices.
    """
    setting = all_settings().get(name)
    if setting is None:
        raise NotFoundError(f"there is no setting {name!r}{did_you_mean(name, all_settings())}")
    if setting.text:
        return _text(name, x)
    if setting.choices is None:
        value = _number(f"setting {name}", x, setting.lowest, setting.highest)
        return int(value) if setting.integer and value.is_integer() else value
    x = {True: "on", False: "off"}[x] if isinstance(x, bool) else x  # what YAML makes of these words
    if x not in setting.choices:
        raise ArgumentError(f"setting {name}: {x!r}, expected one of {', '.join(setting.choices)}")
    return str(x)


def _text(name: str, x: Any) -> str:
    """Return a text; a list of texts, as task files have it, is joined by commas."""
    parts = x if isinstance(x, list) else [x]
    if not all(isinstance(part, str) for part in parts):
        raise ArgumentError(f"setting {name}: {x!r}, expected a text")
    return ",".join(parts)


def _settings(x: Any, where: str) -> Settings:
    if not isinstance(x, Mapping):
        raise ArgumentError(f"{where}: {x!r}, expected a map of settings")
    return tuple(sorted((str(name), value_of(str(name), value)) for name, value in x.items()))


def _varied(x: Any) -> Iterator[Settings]:
    """Yield every combination of settings, each of which has a value or a list of them."""
    if not isinstance(x, Mapping):
        raise ArgumentError(f"settings: {x!r}, expected a map from names to values or lists of values")
    for name, value in x.items():
        if not _list(value):
            raise ArgumentError(f"settings, {name}: no value is given")
    for values in itertools.product(*(_list(value) for value in x.values())):
        yield _settings(dict(zip(x, values, strict=True)), "settings")


def _planners(x: Any) -> list[tuple[str, Settings]]:
    """Return planners by name, with what sets them apart from the settings of the task."""
    if isinstance(x, Mapping):
        return [(str(name), _settings(own or {}, f"planners, {name}")) for name, own in x.items()]
    return [(str(name), _settings(_known_planner(str(name)), "planners")) for name in _list(x)]


def _known_planner(name: str) -> dict[str, float | str]:
    """Return the settings of a planner by the names that ``sinew-bench compare`` has, too."""
    if match := re.fullmatch(r"sampling-(\d+)", name):
        return {"planner": "sampling", "candidates": int(match[1]), "noise": "brown"}
    if name not in _KNOWN:
        raise NotFoundError(f"planners: {name!r}, expected {PLANNERS}, or a map from names to settings")
    return _KNOWN[name]
