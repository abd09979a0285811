"""Figures of groups of runs, with their intervals of confidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from sinew.errors import ArgumentError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["GROUP", "mean_interval", "success_interval", "summary"]

GROUP = ("task", "planner", "settings", "seconds", "execute", "iterations", "budget")
"""Runs that differ in their seeds alone are a group."""


def success_interval(successes: int, runs: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return Wilson's interval for the probability of success."""
    from scipy.stats import binomtest

    if not 0 <= successes <= runs or runs == 0:
        raise ArgumentError(f"{successes} successes of {runs} runs")
    interval = binomtest(successes, runs).proportion_ci(confidence, method="wilson")
    return float(interval.low), float(interval.high)


def mean_interval(values: ArrayLike, confidence: float = 0.95) -> tuple[float, float, float]:
    """Return the mean of values and Student's interval for it; NaN for the interval of fewer than two."""
    from scipy.stats import t

    x = np.asarray(values, np.float64)
    mean = float(np.mean(x)) if len(x) else float("nan")
    if len(x) < 2 or not np.isfinite(x).all():
        return mean, float("nan"), float("nan")
    half = float(t.ppf((1 + confidence) / 2, len(x) - 1) * np.std(x, ddof=1) / np.sqrt(len(x)))
    return mean, mean - half, mean + half


def summary(runs: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each group of runs that differ in their seeds alone.

    Intervals hold 95 % confidence: Wilson's for the probability of success, in which a run with an error counts as
    none; Student's for means, of runs without errors. A run that diverges costs infinity, as what it cost until then is
    no figure beside those of whole runs.

    Columns are those of a group; `runs`, `errors`, `diverged`, `successes`, `success` and its interval `success_low`,
    `success_high`; for `cost_mean` and `cost_end` the mean, and `..._low`, `..._high`; medians of `time_to_success`
    [s] of the runs that have one, `iterations_mean`, `latency_p50`, `latency_p99` [s], `wall` [s].
    """
    import pandas as pd

    return pd.DataFrame([_figures(group) for _, group in runs.groupby(list(GROUP), sort=False)])


def _figures(group: pd.DataFrame) -> dict[str, object]:
    import pandas as pd

    good = group[group["error"] == ""]
    ended = good["diverged"].astype(bool) if "diverged" in good else pd.Series(False, good.index)
    successes = int(good["success"].sum())
    row: dict[str, object] = {name: group[name].iloc[0] for name in GROUP}
    row |= {"runs": len(group), "errors": len(group) - len(good)}
    row |= {"diverged": int(ended.sum()), "successes": successes}
    row["success"] = successes / len(group)
    row["success_low"], row["success_high"] = success_interval(successes, len(group))
    for name in ("cost_mean", "cost_end"):
        row[name], row[f"{name}_low"], row[f"{name}_high"] = mean_interval(good[name].astype(float).mask(ended, np.inf))
    for name in ("time_to_success", "iterations_mean", "latency_p50", "latency_p99", "wall"):
        row[name] = float(good[name].median()) if name in good else float("nan")
    return row
