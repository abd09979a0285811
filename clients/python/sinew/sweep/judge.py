"""How good a run was, by the measures of success of its task, as ``sinew-bench`` and ``sinew-plant`` judge it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sinew.task import Measure

__all__ = ["met", "time_to_success", "worst"]

_SLACK = 1e-9  # of times [s]


def met(time: NDArray[np.float64], values: NDArray[np.float64], measures: Sequence[Measure]) -> NDArray[np.bool_]:
    """Return of each moment whether a run that ends there is a success.

    It is where each measure has been at most its bound for as long as it says, and the run is no shorter.

    Parameters
    ----------
    time : array, (n,)
        [s]
    values : array, (n, number of measures)
        Of the measures.
    measures : sequence of Measure
        Of the task. Without any nothing is a success.

    Returns
    -------
    array of bool, (n,)
    """
    good = np.full(len(time), bool(measures))
    for column, measure in zip(values.T, measures, strict=True):
        missed = np.where(column <= measure.below, -np.inf, time)  # NaN is a miss
        latest = np.maximum.accumulate(missed)
        good &= (time >= measure.during) & (latest < time - measure.during - _SLACK)
    return good


def time_to_success(time: NDArray[np.float64], good: NDArray[np.bool_]) -> float:
    """Return the first moment at which a run could have ended as a success [s]; NaN: there is none."""
    return float(time[np.argmax(good)]) if good.any() else float("nan")


def worst(time: NDArray[np.float64], value: NDArray[np.float64], measure: Measure) -> float:
    """Return the largest value of a measure (n,) over the last seconds that it looks at; NaN: one of them is."""
    return float(np.max(value[time >= time[-1] - measure.during - _SLACK]))
