"""The latest seconds on the page: cost by term, gradient, iterations, latency, muscles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import viser
from numpy.typing import NDArray
from viser import uplot

from sinew._colors import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION
from sinew.loop.source import History, Source

__all__ = ["PlotsPanel", "thinned"]

Array = NDArray[np.float64]

_POINTS = 200  # of a line, at most: it is sent several times a second
_HEIGHT = 170  # of a plot, in pixels
_LINES = 8  # in one plot, at most
# M. Okabe and K. Ito's colours, which the colour-blind tell apart; lines beyond them are dashed.
_COLORS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK, GREY)


@dataclass(frozen=True)
class _Plot:
    """A plot: its title, the unit of its axis, series of the history by the names of its lines, and their factor."""

    title: str
    axis: str
    series: dict[str, str]
    factor: float = 1.0
    logarithmic: bool = False


class PlotsPanel:
    """Plots, in folders of their own; nothing is sent for those that are switched off."""

    def __init__(self, gui: viser.GuiApi, source: Source) -> None:
        self._gui = gui
        self._source = source
        self._handles: list[tuple[_Plot, Any]] = []
        self._last = float("nan")
        history = source.history()
        self._on = gui.add_checkbox("live plots", True, hint="off: nothing is sent for them")
        for plot in _plots(source, history):
            self._handles.append((plot, self._add(plot)))
        self._muscles = self._add_muscles(history)

    def refresh(self) -> None:
        """Show the latest seconds, if there is anything new."""
        if not self._on.value:
            return
        history = self._source.history()
        if not len(history.time) or history.time[-1] == self._last:
            return
        self._last = float(history.time[-1])
        for plot, handle in self._handles:
            handle.data = _data(plot, history)
        if self._muscles is not None:
            self._muscles.image = _picture(history.activation)

    def _add(self, plot: _Plot) -> Any:
        empty = tuple(np.zeros(1) for _ in range(1 + len(plot.series)))
        lines = [_line(i, name) for i, name in enumerate(plot.series)]
        scales = {"x": uplot.Scale(time=False)}
        if plot.logarithmic:
            scales["y"] = uplot.Scale(distr=3)
        return self._gui.add_uplot(
            empty,
            (uplot.Series(label="time [s]"), *lines),
            title=plot.title,
            scales=scales,
            axes=(_axis("time [s]", 40), _axis(plot.axis, 55)),
            legend=uplot.Legend(show=len(plot.series) > 1),
            height=_HEIGHT,
        )

    def _add_muscles(self, history: History) -> Any:
        if not history.activation.shape[1]:
            return None
        self._gui.add_markdown("**Muscles**: one row each, time from left to right; white: at rest, dark: fully active")
        return self._gui.add_image(_picture(history.activation), format="png")


def _plots(source: Source, history: History) -> list[_Plot]:
    """Return the plots of what a source has a history of."""
    task = source.task
    if task is None:
        return []
    terms = {term.name: f"term: {term.name}" for term in task.terms[:_LINES]}
    latency = {"plan": "latency", "allowed": "deadline"}
    return [
        _Plot("Cost of the latest plan, by term", "cost", terms),
        _Plot("Size of the gradient (0 where the plan cannot be better)", "norm", {"norm": "gradient norm"}, 1, True),
        _Plot("Iterations of a plan", "number", {"iterations": "iterations"}),
        _Plot("Time for a plan", "ms", latency, 1e3),
    ]


def _axis(label: str, size: int) -> uplot.Axis:
    return uplot.Axis(label=label, size=size, labelSize=16)


def _line(number: int, label: str) -> uplot.Series:
    line = uplot.Series(label=label, stroke=_COLORS[number % len(_COLORS)], width=2, points={"show": False})
    if number % 2:
        line["dash"] = (6, 4)
    return line


def _data(plot: _Plot, history: History) -> tuple[Array, ...]:
    """Return what a plot shows, time first."""
    kept = thinned(len(history.time))
    missing = np.full(len(history.time), np.nan)
    rows = [plot.factor * history.series.get(name, missing)[kept] for name in plot.series.values()]
    if plot.logarithmic:
        rows = [np.where(row > 0, row, np.nan) for row in rows]
    return (history.time[kept], *rows)


def thinned(rows: int, most: int = _POINTS) -> NDArray[np.int64]:
    """Return which rows of a history are shown, (at most `most`,): the latest, and others at equal distances."""
    stride = -(-rows // most) if rows else 1
    return np.arange(rows - 1, -1, -stride, dtype=np.int64)[::-1]


def _picture(activation: Array, shape: Sequence[int] = (160, 300)) -> NDArray[np.uint8]:
    """Return activations (rows, na) as a picture: a row a muscle, white at rest, dark blue when fully active."""
    kept = activation[thinned(len(activation))]
    if not len(kept):
        kept = np.zeros((1, max(activation.shape[1], 1)))
    rows = np.arange(shape[0]) * kept.shape[1] // shape[0]
    columns = np.arange(shape[1]) * len(kept) // shape[1]
    value = np.clip(np.nan_to_num(kept.T[np.ix_(rows, columns)]), 0.0, 1.0)[..., None]
    light, dark = np.array([245.0, 245.0, 245.0]), np.array([0.0, 40.0, 100.0])
    return np.asarray(light + value * (dark - light), dtype=np.uint8)
