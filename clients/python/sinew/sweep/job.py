"""A run with everything that it needs on any machine, and the key by which its result is known."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from sinew.loop.places import find_model, load_model
from sinew.sweep.table import Run, Table
from sinew.task import Task

__all__ = ["Job", "jobs_of"]


class _Material(NamedTuple):
    """A task and its model, as bytes."""

    text: str
    model: bytes
    checksum: str


@dataclass(frozen=True)
class Job:
    """A run with everything that it needs.

    Attributes
    ----------
    key : str
        Says what determines the result: settings, task, model, version.
    run : Run
        What is run.
    text : str
        Of the task file.
    model : bytes
        MuJoCo's compiled model.
    version : str
        Of the package that shall run it.
    """

    key: str
    run: Run
    text: str = field(repr=False)
    model: bytes = field(repr=False)
    version: str


def jobs_of(table: Table) -> list[Job]:
    """Return a job for each run of a table, in its order.

    Raises
    ------
    NotFoundError, FileError, FormatError
        A task or a model is not there, or is refused.
    """
    from sinew import __version__

    material = {name: _load(name, table.models) for name in dict.fromkeys(run.task for run in table.runs)}
    return [_job(run, material[run.task], __version__) for run in table.runs]


def _job(run: Run, material: _Material, version: str) -> Job:
    parts = [
        material.text,
        material.checksum,
        sorted(run.all_settings.items()),
        [run.seed, run.seconds, run.execute, run.iterations, run.budget],
        version,
    ]
    key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:20]
    return Job(key, run, material.text, material.model, version)


def _load(name: str, folders: Sequence[str]) -> _Material:
    import mujoco
    import numpy as np

    task = Task(name)
    own = (path for folder in folders for path in (Path(folder, task.model), Path(folder, task.model + ".xml")))
    compiled = load_model(next(filter(Path.is_file, own), None) or find_model(task.model))
    image = np.empty(mujoco.mj_sizeModel(compiled), np.uint8)
    mujoco.mj_saveModel(compiled, None, image)
    model = image.tobytes()
    return _Material(task.text, model, hashlib.sha256(model).hexdigest())
