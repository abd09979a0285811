"""A training in a folder: a log, checkpoints, and going on where one ended."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from sinew._files import reason
from sinew.errors import DivergedError, FileError
from sinew.learn import checkpoint
from sinew.learn.shac import Figures, Shac

__all__ = ["CHECKPOINT", "LOG", "STOPPED", "Row", "last_row", "train"]

CHECKPOINT, STOPPED, LOG = "checkpoint.pt", "stopped.pt", "progress.csv"
_EVERY = 20.0  # seconds between checkpoints


class Row(NamedTuple):
    """A row of the log: figures of an iteration, and what all of them took.

    Attributes
    ----------
    seconds, cpu_seconds : float
        Time so far, and time of all threads of this process.
    """

    iteration: int
    samples: int
    seconds: float
    cpu_seconds: float
    episode_return: float
    episode_length: float
    actor_loss: float
    critic_loss: float
    gradient_norm: float


class _Log:
    """``progress.csv``, and TensorBoard's events where that is installed."""

    def __init__(self, folder: Path, iteration: int) -> None:
        path = folder / LOG
        kept: list[list[str]] = []
        if path.exists():  # rows behind the checkpoint are made again
            with path.open(newline="") as file:
                kept = [row for row in csv.reader(file) if row and row[0].isdigit() and int(row[0]) <= iteration]
        self._file = path.open("w", newline="")
        self._rows = csv.writer(self._file)
        self._rows.writerows([Row._fields, *kept])
        self._events: Any = None
        if find_spec("tensorboard"):
            from torch.utils.tensorboard import SummaryWriter

            self._events = SummaryWriter(str(folder), purge_step=iteration + 1)

    def add(self, row: Row) -> None:
        self._rows.writerow(f"{x:.9g}" if isinstance(x, float) else x for x in row)
        self._file.flush()
        for name, value in row._asdict().items() if self._events else ():
            self._events.add_scalar(name, value, row.iteration)

    def close(self) -> None:
        self._file.close()
        if self._events:
            self._events.close()


def last_row(folder: Path) -> Row | None:
    """Return the last row of a training's log; None: it has none."""
    with (folder / LOG).open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    if not rows:
        return None
    iteration, samples, *figures = rows[-1]
    return Row(int(iteration), int(samples), *map(float, figures))


def train(shac: Shac, folder: Path, progress: Callable[[Row], None] | None = None) -> Row | None:
    """Train until all iterations are done; return the last row, None without any iteration.

    A checkpoint of the folder is gone on from. There is a new one every 20 s, and at the end.

    Parameters
    ----------
    shac : Shac
        A training that has just begun.
    folder : Path
        Where the log and checkpoints go, made where there is none.
    progress : callable, optional
        Gets the row of each iteration.

    Raises
    ------
    ArgumentError, FormatError
        The folder has a checkpoint of another task, model or settings, or a damaged one.
    DivergedError
        A return or its derivative is not finite; ``stopped.pt`` has the state before that iteration.
    FileError
        A file cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        spent = {"seconds": 0.0, "cpu_seconds": 0.0}
        if (folder / CHECKPOINT).exists():
            spent = checkpoint.load(folder / CHECKPOINT, shac)
        log = _Log(folder, shac.iteration)
    except OSError as error:
        raise error if isinstance(error, FileError) else FileError(f"{folder}: {reason(error)}") from None
    try:
        return _trained(shac, folder, log, spent, progress)
    finally:
        log.close()


def _trained(
    shac: Shac, folder: Path, log: _Log, spent: dict[str, float], progress: Callable[[Row], None] | None
) -> Row | None:
    row: Row | None = None
    begin, cpu_begin = time.monotonic() - spent["seconds"], time.process_time() - spent["cpu_seconds"]
    saved = time.monotonic()

    def notes() -> dict[str, Any]:
        return {"seconds": time.monotonic() - begin, "cpu_seconds": time.process_time() - cpu_begin}

    while shac.iteration < shac.settings.iterations:
        try:
            figures: Figures = shac.iterate()
        except DivergedError as error:
            checkpoint.save(folder / STOPPED, shac, notes())
            raise DivergedError(
                f"iteration {shac.iteration + 1}: {error}; {folder / STOPPED} has the state before it"
            ) from None
        row = Row(**figures._asdict(), **notes())
        log.add(row)
        if progress:
            progress(row)
        if time.monotonic() - saved > _EVERY or shac.iteration == shac.settings.iterations:
            checkpoint.save(folder / CHECKPOINT, shac, notes())
            saved = time.monotonic()
    return row
