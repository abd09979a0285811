"""Pictures of closed loops: one, or several side by side with the same scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sinew.errors import ArgumentError
from sinew.plot.loop import Loop
from sinew.plot.panels import PANELS, SHARED, available, name_panels
from sinew.plot.style import COLUMN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_loops"]

_HEIGHT = 1.9  # of a panel [inches]


def draw_loops(loops: Sequence[Loop], what: Sequence[str] = ()) -> Figure:
    """Draw closed loops.

    Parameters
    ----------
    loops : sequence of Loop
        One: its panels stand two by two. More: a column for each, with the same scales.
    what : sequence of str
        Names of panels; empty: all that there are numbers for.

    Raises
    ------
    ArgumentError
        A panel for which a loop has no numbers.
    """
    from matplotlib.figure import Figure

    names = list(what) or [name for name in PANELS if any(name in available(loop) for loop in loops)]
    for loop in loops:
        missing = [name for name in what if name not in available(loop)]
        if missing:
            raise ArgumentError(
                f"{loop.name}: nothing to draw of {', '.join(missing)}; {', '.join(available(loop))} can be"
            )
    columns = len(loops) if len(loops) > 1 else min(2, len(names))
    rows = len(names) if len(loops) > 1 else -(-len(names) // columns)
    figure = Figure(figsize=(COLUMN * columns, 0.3 + _HEIGHT * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    if len(loops) == 1:
        places = [*grid.flat]
        figure.suptitle(loops[0].name)
        for axes, name in zip(places, names, strict=False):
            PANELS[name](axes, loops[0])
        for axes in places[len(names) :]:
            axes.remove()
        return figure
    for row, name in zip(grid, names, strict=True):
        for axes, loop in zip(row, loops, strict=True):
            if name in available(loop):
                PANELS[name](axes, loop)
            else:
                axes.set_axis_off()
        if name in SHARED:
            _share(list(row))
    name_panels(list(grid[0]), [loop.name for loop in loops])
    return figure


def _share(row: list[Axes]) -> None:
    """Give all panels of a row the same scales."""
    drawn = [axes for axes in row if axes.has_data()]
    limits = [(*axes.get_xlim(), *axes.get_ylim()) for axes in drawn]
    for axes in drawn:
        axes.set_xlim(min(x[0] for x in limits), max(x[1] for x in limits))
        axes.set_ylim(min(x[2] for x in limits), max(x[3] for x in limits))
