"""Rows of numbers over time, the latest of them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sinew.loop.source import History

if TYPE_CHECKING:
    from sinew.client.plan import Plan

__all__ = ["Recent"]

_ROWS = 2048
_SECONDS = 30.0
_OF_PLANS = ("cost", "gradient norm", "iterations", "latency", "deadline")


class Recent:
    """What plans were like lately. One thread adds, any other reads.

    Parameters
    ----------
    terms : sequence of str
        Names of the cost's terms.
    na : int
        Number of activations.
    """

    def __init__(self, terms: Sequence[str], na: int) -> None:
        self._terms = list(terms)
        self._names = ["time", *_OF_PLANS, *(f"term: {name}" for name in terms)]
        self._rows = np.zeros((_ROWS, len(self._names) + na))
        self._count = 0
        self._lock = threading.Lock()

    def clear(self) -> None:
        """Forget all rows."""
        with self._lock:
            self._count = 0

    def add(self, time: float, plan: Plan, latency: float, deadline: float, act: NDArray[np.float64]) -> None:
        """Add a plan that was taken at `time`, and the body's activations then; all times in seconds."""
        terms = [plan.terms.get(name, np.nan) for name in self._terms]
        row = [time, plan.cost_after, plan.gradient_norm, plan.iterations, latency, deadline, *terms, *act]
        with self._lock:
            self._rows[self._count % _ROWS] = row
            self._count += 1

    def history(self) -> History:
        """Return a copy of the latest seconds."""
        with self._lock:
            kept = min(self._count, _ROWS)
            order = np.arange(self._count - kept, self._count) % _ROWS
            rows = self._rows[order]
        rows = rows[rows[:, 0] >= rows[-1, 0] - _SECONDS] if len(rows) else rows
        series = {name: rows[:, k] for k, name in enumerate(self._names)}
        return History(series.pop("time"), series, rows[:, len(self._names) :])
