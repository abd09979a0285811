"""Panels of pictures of one closed loop: each draws one thing into given axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sinew.plot.loop import Loop, Series
from sinew.plot.style import COLOURS, COLUMN, MAP, NEUTRAL, TEXT, lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PANELS", "SHARED", "available", "name_lines", "name_panels"]

_DECADES = 5  # that a logarithmic scale shows at most
_MOST_LINES = 8  # more are drawn as a map of colours
_AXES = "xyz"
_PANEL = 0.75 * 72 * COLUMN  # width beside the labels of its axis, about [points]

Array = NDArray[np.float64]


def available(loop: Loop) -> list[str]:
    """Return the names of the panels that this loop has numbers for."""
    has = {
        "cost": True,
        "terms": loop.terms is not None,
        "measures": loop.measures is not None,
        "controls": loop.controls is not None,
        "activations": loop.activations is not None,
        "latency": loop.latency is not None and len(loop.latency) > 0,
        "space": bool(loop.places),
    }
    return [name for name in PANELS if has[name]]


def _cost(axes: Axes, loop: Loop) -> None:
    axes.plot(loop.cost.time, _positive(loop.cost.values[:, 0]), color=COLOURS[0])
    _logarithmic(axes, loop.cost.values)
    axes.set(ylabel="cost of the state", xlabel="time [s]")


def _terms(axes: Axes, loop: Loop) -> None:
    assert loop.terms is not None
    _draw_lines(axes, loop.terms, logarithmic=True)
    axes.set(ylabel="plan's cost by term", xlabel="time [s]")


def _measures(axes: Axes, loop: Loop) -> None:
    assert loop.measures is not None
    _draw_lines(axes, loop.measures, logarithmic=True, shown=loop.below or ())
    end = float(loop.measures.time[-1])
    bounds = zip(loop.below or (), loop.during or (), lines(len(loop.measures.names)), strict=False)
    for below, during, style in bounds:
        axes.axhline(below, color=style["color"], linewidth=0.8, linestyle=(0, (1, 1)))
        axes.plot([max(0.0, end - during), end], [below, below], color=style["color"], linewidth=2.5)
    if loop.below:
        text = "bound; thick: where it has to hold"
        axes.annotate(text, (0, max(loop.below)), (1, 2), textcoords="offset points", fontsize=6, va="bottom")
    axes.set(ylabel="measures of success", xlabel="time [s]")


def _controls(axes: Axes, loop: Loop) -> None:
    assert loop.controls is not None
    _draw(axes, loop.controls, "controls")


def _activations(axes: Axes, loop: Loop) -> None:
    assert loop.activations is not None
    _draw_map(axes, loop.activations, "activation")


def _latency(axes: Axes, loop: Loop) -> None:
    from matplotlib.ticker import MaxNLocator

    assert loop.latency is not None
    latency = 1e3 * loop.latency
    axes.hist(latency, bins=min(40, max(8, len(latency) // 4)), color=COLOURS[0])
    for value, text, dash in (
        (loop.deadline, "deadline", "-"),
        (loop.interval, "between two plans in real time", "--"),
    ):
        if value is not None:
            axes.axvline(1e3 * value, color=COLOURS[5], linestyle=dash, label=f"{text}: {1e3 * value:.3g} ms")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    name_lines(axes, 1)
    axes.set(xlabel="latency of a plan [ms]", ylabel="plans", xlim=(0, None))


def _space(axes: Axes, loop: Loop) -> None:
    """Draw ways in the plane of the two axes along which they are longest."""
    everything = np.concatenate(list(loop.places.values()))
    first, second = sorted(np.argsort(-np.ptp(everything, axis=0), kind="stable")[:2])
    for (name, way), style in zip(loop.places.items(), lines(len(loop.places)), strict=True):
        for plan in loop.predicted.get(name, ()):
            axes.plot(plan[:, first], plan[:, second], color=NEUTRAL, linewidth=0.6, alpha=0.7)
        axes.plot(way[:, first], way[:, second], label=name, **style)
        axes.plot(way[0, first], way[0, second], "o", color=style["color"], markersize=4)
        axes.plot(way[-1, first], way[-1, second], "s", color=style["color"], markersize=4)
    if any(len(x) for x in loop.predicted.values()):
        axes.plot([], [], color=NEUTRAL, linewidth=0.6, label="as plans expected")
    axes.plot([], [], "o", color=NEUTRAL, markersize=4, label="start")
    axes.plot([], [], "s", color=NEUTRAL, markersize=4, label="end")
    name_lines(axes, 2)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set(xlabel=f"{_AXES[first]} [m]", ylabel=f"{_AXES[second]} [m]")


PANELS: dict[str, Callable[[Axes, Loop], None]] = {
    "cost": _cost,
    "terms": _terms,
    "measures": _measures,
    "controls": _controls,
    "activations": _activations,
    "latency": _latency,
    "space": _space,
}
"""What draws each panel, by its name, in their order."""

SHARED = ("cost", "terms", "measures", "latency")
"""Panels that have the same scales for all loops of a picture."""


# ---- parts of panels ----


def _draw(axes: Axes, series: Series, label: str) -> None:
    """Draw few numbers as lines, many as a map."""
    if len(series.names) > _MOST_LINES:
        _draw_map(axes, series, label)
        return
    _draw_lines(axes, series, logarithmic=False)
    axes.set(ylabel=label, xlabel="time [s]")


def _draw_lines(axes: Axes, series: Series, logarithmic: bool, shown: Sequence[float] = ()) -> None:
    for name, values, style in zip(series.names, series.values.T, lines(len(series.names)), strict=True):
        axes.plot(series.time, _positive(values) if logarithmic else values, label=name, **style)
    if logarithmic:
        _logarithmic(axes, np.append(series.values, shown))
    name_lines(axes, 3)


def _draw_map(axes: Axes, series: Series, label: str) -> None:
    """Draw a row of colours for each number."""
    low, high = min(0.0, float(np.nanmin(series.values))), float(np.nanmax(series.values))
    edges = (*series.time, 2 * series.time[-1] - series.time[-2]) if len(series.time) > 1 else (0, 1)
    rows = np.arange(len(series.names) + 1) - 0.5
    mesh = axes.pcolormesh(edges, rows, series.values.T, vmin=low, vmax=high, cmap=MAP, rasterized=True)
    every = max(1, -(-len(series.names) // 13))
    axes.set_yticks(range(0, len(series.names), every), series.names[::every])
    axes.set(xlabel="time [s]", ylim=(len(series.names) - 0.5, -0.5))
    axes.grid(False)
    bar = axes.figure.colorbar(mesh, ax=axes, pad=0.01)
    bar.set_label(label)


def name_lines(axes: Axes, columns: int) -> None:
    """Name lines above the axes, where they hide nothing, in so many columns as a panel is wide, or fewer."""
    names = axes.get_legend_handles_labels()[1]
    if names:
        widest = (TEXT - 1) * (4.4 + 0.52 * max(map(len, names)))  # of a line and its name, about [points]
        columns = max(1, min(columns, int(_PANEL / widest)))
        place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2, "frameon": False}
        axes.legend(**place, ncols=columns, columnspacing=1.2, handlelength=2.4)


def name_panels(row: Sequence[Axes], names: Sequence[str]) -> None:
    """Name the panels of a row, above the names of their lines."""
    legends = [legend for axes in row if (legend := axes.get_legend()) is not None]
    lines_of = [-(-len(x.get_texts()) // x._ncols) for x in legends]  # type: ignore[attr-defined]
    for axes, name in zip(row, names, strict=True):
        axes.set_title(name, pad=6 + 1.5 * (TEXT - 1) * max(lines_of, default=0))


def _positive(values: Array) -> Array:
    return np.where(values > 0, values, np.nan)


def _logarithmic(axes: Axes, values: Array) -> None:
    """Scale by decades: at least one, at most the largest five."""
    from matplotlib.ticker import NullFormatter

    finite = values[np.isfinite(values) & (values > 0)]
    axes.set_yscale("log")
    axes.yaxis.set_minor_formatter(NullFormatter())
    if len(finite):
        top = float(np.max(finite))
        low = max(min(float(np.min(finite)), top / 10), top * 10.0**-_DECADES)
        axes.set_ylim(0.7 * low, 1.5 * top)
