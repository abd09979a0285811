"""A session of a recording, as pictures are made of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sinew.errors import SinewError
from sinew.plot.loop import Loop, Series
from sinew.record.film import Film
from sinew.record.reader import Recording

__all__ = ["read_recording"]

_MOST = 500  # states whose controls are read
_PREDICTED = 12  # plans whose states are drawn

Array = NDArray[np.float64]


def read_recording(path: Path) -> Loop:
    """Read the first session of a recording. Its states are those that the daemon planned for."""
    film = Film(Recording(path))
    task, latency = film.task, film.figures["age"]
    limits = film.deadline[np.isfinite(film.deadline) & (film.deadline > 0)]
    every = range(0, len(film.time), max(1, -(-len(film.time) // _MOST)))
    plans = [(row, plan) for row in every if (plan := film.plan(row)) is not None]
    ctrl = np.array([plan.ctrl[plan.row(film.stamp[row])] for row, plan in plans]).reshape(-1, task.model.nu)
    places, predicted = _places(film)
    return Loop(
        name=path.name,
        cost=Series(film.time, ("cost",), film.figures["cost_now"][:, None]),
        controls=_series(film.time[[row for row, _ in plans]], task.model.columns("ctrl"), ctrl),
        activations=_series(film.time, task.model.columns("act"), film.act),
        terms=_series(film.time, [term.name for term in task.terms], np.array(list(film.terms.values())).T),
        latency=latency[np.isfinite(latency)],
        interval=float(np.median(np.diff(film.time))) if len(film.time) > 1 else None,
        deadline=float(np.median(limits)) if len(limits) else None,
        places=places,
        predicted=predicted,
    )


def _series(time: Array, names: list[str], values: Array) -> Series | None:
    return Series(time, tuple(names), values) if names and len(time) else None


def _places(film: Film) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return where what the cost looks at was, and was expected to be; nothing without its model."""
    from sinew.loop.places import load_described
    from sinew.sweep.trace import KINDS, positions

    try:
        model = load_described(film.task.model)
    except SinewError:
        return {}, {}
    objects = [x for term in film.task.terms for x in (*term.objects, *term.target_objects) if x.kind in KINDS]
    seen = list(dict.fromkeys((x.kind, x.name) for x in objects))
    rows = range(0, len(film.time), max(1, -(-len(film.time) // _PREDICTED)))
    plans = [plan for row in rows if (plan := film.plan(row, predicted=True)) is not None]
    expected = [plan.states.qpos for plan in plans if plan.states is not None]
    expected = [qpos for qpos in expected if qpos.shape == expected[0].shape]
    ways = positions(model, seen, film.qpos)
    ghosts = positions(model, seen, np.array(expected)) if expected else np.empty((0, 0, len(seen), 3))
    names = [name for _, name in seen]
    return {x: ways[:, i] for i, x in enumerate(names)}, {x: ghosts[:, :, i] for i, x in enumerate(names)}
