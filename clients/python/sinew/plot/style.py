"""How pictures look: legible in a column of print, by the colour-blind, and without colours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sinew._colors import BLACK, BLUE, ORANGE, PURPLE, SKY, VERMILION

__all__ = ["COLOURS", "COLUMN", "MAP", "NEUTRAL", "TEXT", "lines", "pictures"]

COLUMN = 3.5
"""Width of a column of print [inches]."""

COLOURS = (BLUE, ORANGE, BLACK, PURPLE, SKY, VERMILION)
"""Of M. Okabe and K. Ito, which the colour-blind tell apart; without their green and yellow."""

NEUTRAL = "#777777"
MAP = "cividis"

TEXT = 8.0
"""Size of the text [points]."""

_DASHES = ("-", "--", ":", "-.")


def lines(count: int) -> list[dict[str, Any]]:
    """Return colour and dashes of as many lines, no two alike: their order tells them apart without colours, too."""
    styles = [(colour, dash) for dash in range(len(_DASHES)) for colour in range(len(COLOURS))]
    return [{"color": COLOURS[c], "linestyle": _DASHES[(c + d) % len(_DASHES)]} for c, d in (styles * count)[:count]]


@contextmanager
def pictures() -> Iterator[None]:
    """Draw in this style, without a screen."""
    import matplotlib

    style: dict[Any, Any] = {
        "axes.axisbelow": True,
        "axes.grid": True,
        "axes.labelsize": TEXT,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlesize": TEXT,
        "figure.dpi": 150,
        "figure.titlesize": TEXT + 1,
        "font.size": TEXT,
        "grid.color": "#dddddd",
        "grid.linewidth": 0.5,
        "legend.fontsize": TEXT - 1,
        "legend.framealpha": 0.8,
        "lines.linewidth": 1.2,
        "pdf.fonttype": 42,
        "savefig.dpi": 200,
        "svg.fonttype": "path",
        "svg.hashsalt": "sinew",
        "xtick.labelsize": TEXT - 1,
        "ytick.labelsize": TEXT - 1,
    }
    with matplotlib.rc_context(style):
        yield
