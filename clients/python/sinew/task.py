"""Tasks: cost and start of what a planner shall do, from YAML."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from sinew import _core
from sinew.errors import ArgumentError
from sinew.files import share

__all__ = ["Measure", "Plant", "Task"]


class Measure(NamedTuple):
    """A measure of success: a run is one when all of them are met."""

    name: str
    below: float  # met where the value is at most this
    during: float  # for so long at the end of the run [s]; 0: at the end alone


class Plant(NamedTuple):
    """How all contacts of the simulated robot yield; NaN: as in the model."""

    solref: tuple[float, ...]
    solimp: tuple[float, ...]


class Task:
    """Cost and start of what a planner shall do: read-only, and any number of threads may use it.

    Parameters
    ----------
    source : str or path
        A YAML file; the name of a task that comes with the package, such as "arm_reach"; or a text of YAML, which is
        what has more than one line. ``planner/tasks/README.md`` in ``sinew/share/sinew/tasks`` documents the format.

    Attributes
    ----------
    name : str
        Name of the task.
    model : str
        Name or path of its model, as the file has it.

    Raises
    ------
    FormatError
        A list of every mistake as file:line:column.
    NotFoundError, FileError
        There is no such file, or it cannot be read.
    """

    name: str
    model: str
    _native: _core.Task

    def __init__(self, source: str | os.PathLike[str]):
        if isinstance(source, str) and "\n" in source:
            self._take(_core.Task.parse(source, "task"))
            return
        try:
            path = Path(os.fspath(source))
        except TypeError:
            raise ArgumentError(f"task: {type(source).__name__}, expected a path, a name or a text") from None
        if not path.is_file() and path.stem == str(source):
            path = share("tasks/README.md").with_name(f"{source}.yaml")
        self._take(_core.Task.load(str(path)))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Task:
        """Load a task from a YAML file."""
        return cls(Path(path))

    @classmethod
    def parse(cls, text: str, name: str = "task") -> Task:
        """Read a task from a text of YAML; `name` stands for the file in messages.

        A task that it begins from (``base:``) is looked for beside that: ``name="folder/mine"`` finds those in
        ``folder``.
        """
        task = cls.__new__(cls)
        task._take(_core.Task.parse(text, name))
        return task

    def _take(self, native: _core.Task) -> None:
        self.__dict__.update(_native=native, name=native.name, model=native.model)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{name}: a Task cannot be changed")

    def __repr__(self) -> str:
        return f"<sinew.Task {self.name!r} of {self.model!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Task.parse, (self.text, self.name)

    @property
    def text(self) -> str:
        """The YAML that it was made of: all of it, where it begins from other tasks."""
        return self._native.text

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Measures of success."""
        return tuple(Measure(*x) for x in self._native.measures())

    @property
    def plant(self) -> Plant:
        """What the task says of the simulated robot that its plans move."""
        solref, solimp = self._native.plant()
        return Plant(tuple(solref), tuple(solimp))
