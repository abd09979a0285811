"""Draw closed loops, or a table of them.

RUN is the folder of a sweep, a trace that sinew sweep --keep has written (RUN/traces/KEY.npz), a recording of sinew
record, or the columns of sinew-plant --data. Several closed loops stand side by side, with the same scales.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from sinew._extras import require
from sinew.errors import ArgumentError, FileError
from sinew.files import writable
from sinew.plot.loop import read_loop
from sinew.plot.panels import PANELS
from sinew.plot.single import draw_loops
from sinew.plot.style import pictures
from sinew.plot.table import TABLE_PANELS, draw_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["HELP", "add_arguments", "run"]

HELP = "draw closed loops, or a table of them"

_KINDS = (".svg", ".png", ".pdf")
_EPILOG = f"""
examples:
  sinew plot RUN -o table.svg
  sinew plot RUN/traces/KEY.npz --what cost,terms,activations -o run.pdf

panels of a table: {", ".join(TABLE_PANELS)}; of a loop: {", ".join(PANELS)}.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.epilog = _EPILOG
    parser.add_argument("source", nargs="+", metavar="RUN", help="folder of a sweep, or files of closed loops")
    parser.add_argument(
        "-o",
        "--out",
        type=writable,
        default="sinew-plot.png",
        metavar="FILE",
        help="picture, .svg, .png or .pdf (default: %(default)s)",
    )
    parser.add_argument("--what", default="", metavar="LIST", help="panels, apart by commas (default: all)")
    parser.add_argument("--title", help="of the picture")


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns its exit status."""
    require("sweep")
    out = Path(arguments.out)
    if out.suffix not in _KINDS:
        raise ArgumentError(f"-o {out}: expected a name that ends with one of {', '.join(_KINDS)}")
    with pictures():
        figure = _figure([Path(name) for name in arguments.source], [x for x in arguments.what.split(",") if x])
        if arguments.title:
            figure.suptitle(arguments.title)
        # The same numbers give the same file: no date.
        metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(out.suffix)
        try:
            figure.savefig(out, metadata=metadata)
        except OSError as error:
            raise FileError(f"{out}: {error.strerror}") from None
    print(out)
    return 0


def _figure(paths: list[Path], what: list[str]) -> Figure:
    is_table = paths[0].is_dir()
    if any(path.is_dir() != is_table for path in paths) or (is_table and len(paths) > 1):
        raise ArgumentError("expected the folder of one sweep, or files of closed loops")
    known = list(TABLE_PANELS if is_table else PANELS)
    for name in what:
        if name not in known:
            raise ArgumentError(f"--what {name}: expected some of {', '.join(known)}")
    if not is_table:
        return draw_loops([read_loop(path) for path in paths], what)
    from sinew.sweep.store import read

    return draw_table(read(paths[0]), what)
