"""Pictures of a sweep: groups of runs that differ in their seeds alone, beside each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sinew.plot.panels import name_lines, name_panels
from sinew.plot.style import COLOURS, COLUMN, lines
from sinew.sweep.summary import GROUP, summary

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["TABLE_PANELS", "draw_table"]

_ENDED = 1e200  # cost of a run behind the moment at which it has diverged: more than any other, and not drawn
_ROW = 0.22  # height of a group [inches]


def draw_table(runs: pd.DataFrame, what: Sequence[str] = ()) -> Figure:
    """Draw a table of runs, as `sinew.sweep.read` returns it: a column of panels for each task.

    Parameters
    ----------
    runs : DataFrame
        A row for each run.
    what : sequence of str
        Of "success", "cost", "latency"; empty: all.
    """
    from matplotlib.figure import Figure

    names = list(what) or list(TABLE_PANELS)
    tasks = list(dict.fromkeys(runs["task"]))
    most = max(len(summary(runs[runs["task"] == task])) for task in tasks)
    heights = [2.4 if name == "cost" else 0.6 + _ROW * most for name in names]
    figure = Figure(figsize=(1.25 * COLUMN * len(tasks), 0.3 + sum(heights)), layout="constrained")
    grid = figure.subplots(len(names), len(tasks), squeeze=False, height_ratios=heights)
    for column, task in enumerate(tasks):
        part = runs[runs["task"] == task]
        groups = [(_label(key, runs), group) for key, group in part.groupby(list(GROUP), sort=False)]
        for axes, name in zip(grid[:, column], names, strict=True):
            TABLE_PANELS[name](axes, groups)
    name_panels(list(grid[0]), tasks)
    return figure


def _label(key: tuple[Any, ...], runs: pd.DataFrame) -> str:
    """Return what tells a group from the others of its task."""
    told = [(name, x) for name, x in zip(GROUP, key, strict=True) if name != "task" and runs[name].nunique() > 1]
    parts = [str(x) if name in ("planner", "settings") else f"{name}={x:g}" for name, x in told if x != ""]
    return ", ".join(parts) or str(key[GROUP.index("planner")])


Groups = list[tuple[str, "pd.DataFrame"]]


def _success(axes: Axes, groups: Groups) -> None:
    for row, (_, group) in enumerate(groups):
        figures = summary(group).iloc[0]
        share, low, high = (float(figures[name]) for name in ("success", "success_low", "success_high"))
        axes.plot([low, high], [row, row], color=COLOURS[0], linewidth=2.5, solid_capstyle="butt")
        axes.plot(share, row, "o", color=COLOURS[2], markersize=4)
        text = f"{figures['successes']}/{figures['runs']}"
        axes.text(1.03, row, text, transform=axes.get_yaxis_transform(), va="center", fontsize=7)
    axes.set(xlim=(-0.02, 1.02), xlabel="share of runs that succeed, 95 % interval (Wilson)")
    _name_rows(axes, groups)


def _cost(axes: Axes, groups: Groups) -> None:
    for (label, group), style in zip(groups, lines(len(groups)), strict=True):
        curves = [row for row in group[["curve_time", "curve_cost"]].itertuples(index=False) if len(row.curve_time)]
        if not curves:
            continue
        time = max((np.asarray(curve.curve_time) for curve in curves), key=len)
        costs = np.full((len(curves), len(time)), _ENDED)
        for row, curve in zip(costs, curves, strict=True):
            row[: len(curve.curve_cost)] = curve.curve_cost
        quantiles = np.quantile(costs, [0.25, 0.5, 0.75], axis=0)
        low, middle, high = np.where(quantiles < 1e-2 * _ENDED, quantiles, np.nan)
        axes.fill_between(time, low, high, color=style["color"], alpha=0.2, linewidth=0)
        axes.plot(time, middle, label=label, **style)
    axes.set(yscale="log", xlabel="time [s]", ylabel="cost, median and quartiles")
    name_lines(axes, 2)


def _latency(axes: Axes, groups: Groups) -> None:
    for row, (_, group) in enumerate(groups):
        if "latency_p50" in group and group["latency_p50"].notna().any():
            middle, high = (1e3 * float(group[f"latency_{name}"].median()) for name in ("p50", "p99"))
            axes.plot([middle, high], [row, row], color=COLOURS[0], linewidth=1.5)
            axes.plot(middle, row, "o", color=COLOURS[2], markersize=4)
            axes.plot(high, row, "|", color=COLOURS[0], markersize=7)
    axes.set(xscale="log", xlabel="latency of a plan [ms], median to 99 %")
    low, high = np.log10(axes.get_xlim())
    axes.set_xlim(10 ** np.floor(low), 10 ** np.ceil(high))  # whole decades, which have numbers
    _name_rows(axes, groups)


def _name_rows(axes: Axes, groups: Groups) -> None:
    axes.set_yticks(range(len(groups)), [label for label, _ in groups])
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)


TABLE_PANELS: dict[str, Callable[[Axes, Groups], None]] = {"success": _success, "cost": _cost, "latency": _latency}
"""What draws each panel, by its name, in their order."""
