"""Identify parameters of a model from recorded motions, by exact gradients.

A file says what is sought in which recordings (below). What was found goes into a folder: report.md with pictures,
result.json, and the MJCF with the values. A run that was interrupted goes on with the same command, and ends with the
same numbers. For another file, model, recording or seed take another folder.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sinew._extras import require
from sinew._files import reason
from sinew._json import finite
from sinew.errors import FileError
from sinew.identification.order import Order
from sinew.identify import Identification, Segments, identify
from sinew.parameters import Parameters
from sinew.segments import check_times

__all__ = ["HELP", "add_arguments", "main", "run"]

HELP = "identify parameters of a model from recorded motions"

_EPILOG = """
example of a file; paths are relative to it:
  model: cube.xml
  parameters:
    half side: {attribute: geom.cube.size, bounds: [0.02, 0.1], start: 0.04}
    friction: {attribute: ["geom.cube.friction[0]", "geom.table.friction[0]"], bounds: [0.05, 1], transform: log}
  recordings: [tosses/*.csv]           # also .npz, and .mcap of sinew record
  segments: {steps: 4, stride: 5}      # or whole
  substeps: 4                          # steps of the model between two rows
  loss: {kind: state, velocity: 0.001} # or {kind: pose, scale: 0.1}, the side of the body [m]
  optimizer: {kind: adam, iterations: 100, rate: 0.02, batch: 256}   # or lbfgs, lm, cmaes
  starts: 3                            # the first at start, others at random between the bounds
  seed: 1
  held_out: 0.2                        # share of the segments that only the score sees
  cfd: true                            # contacts from distance, in derivatives alone
  integrator: {rtol: 1.0e-4, atol: 1.0e-4}   # chosen steps in place of the model's

A CSV file has the columns that `sinew export` writes: time, qpos.NAME, qvel.NAME, ctrl.NAME where the model has
controls, and act.NAME, without which muscles begin each segment at 0; rows with an equal number in a column `motion`
are one motion.
exit status: 0 all is done, 1 an error, 2 wrong usage, 130 interrupted: the same command goes on, but lm begins anew.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.epilog = _EPILOG
    add = parser.add_argument
    add("file", type=Path, metavar="FILE.yaml", help="what is sought, in which recordings")
    add("-o", "--out", type=Path, required=True, metavar="FOLDER", help="where what was found goes")
    add("--seed", type=int, help="of starts and batches, in place of the file's")
    add("--threads", type=int, default=0, metavar="N", help="threads (default: as many as this process may use)")
    add("--json", action="store_true", help="print what was found as JSON, and no progress")


def main() -> int:
    """Run the command as the program ``sinew-identify``."""
    from sinew.cli import main as command

    return command(["identify", *sys.argv[1:]])


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns its exit status."""
    require("identify")
    order = Order.load(arguments.file)
    if arguments.seed is not None:
        order.settings["seed"] = arguments.seed
    parameters = Parameters(order.model, order.parameters)
    segments = _segments(order, parameters)
    folder: Path = arguments.out
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder}: {reason(error)}") from None
    found = _identified(order, parameters, segments, arguments)
    from sinew.identification.report import note_of, text_of, write_report

    note = note_of(parameters.model(), segments)
    if note:
        print(note, file=sys.stderr)
    found.save(folder / "result.json")
    parameters.save(folder / "identified.xml", found.values)
    ways = {name: order.settings[name] for name in ("substeps", "integrator")}
    write_report(folder, parameters, found, segments, ways)
    if arguments.json:
        print(json.dumps(_plain(found, order)))
    else:
        print(text_of(parameters, found))
        print(f"seed {order.settings['seed']}; {folder / 'report.md'}, result.json, identified.xml")
    return 0


def _segments(order: Order, parameters: Parameters) -> Segments:
    """Read all recordings and cut them."""
    from sinew.identification.recordings import read_motions

    model = parameters.model()
    motions = [motion for path in order.recordings for motion in read_motions(path, model)]
    check_times(motions, order.settings["substeps"], float(model.opt.timestep))
    if order.whole:
        return Segments.whole(motions)
    cut = {name: order.settings[name] for name in ("steps", "stride") if name in order.settings}
    return Segments.of(motions, **({"steps": 4} | cut))


def _identified(
    order: Order, parameters: Parameters, segments: Segments, arguments: argparse.Namespace
) -> Identification:
    """Identify, with a bar for the progress."""
    from tqdm import tqdm

    settings = {name: x for name, x in order.settings.items() if name not in ("steps", "stride")}
    silent = arguments.json or not sys.stderr.isatty()
    total = settings["starts"] * (settings.get("iterations", 100) + (settings["optimizer"] == "adam"))
    if not silent:
        print(f"{len(segments)} segments, seed {settings['seed']}", file=sys.stderr)
    with tqdm(total=total, unit="evaluation", disable=silent) as bar:

        def show(step: Mapping[str, Any]) -> None:
            bar.update()
            bar.set_postfix_str(f"start {step['start']}, loss {step['loss']:.4g}")

        return identify(
            parameters, segments, loss=order.loss, threads=arguments.threads, progress=show,
            journal=arguments.out / "journal.jsonl", **settings,
        )  # fmt: skip


def _plain(found: Identification, order: Order) -> dict[str, Any]:
    """Return what was found as JSON has it."""
    plain: dict[str, Any] = finite(
        {
            "values": dict(zip(found.names, found.values.tolist(), strict=True)),
            "errors": dict(zip(found.names, found.errors.tolist(), strict=True)),
            "loss": found.loss,
            "held_out": found.held_out,
            "seed": order.settings["seed"],
        }
    )
    return plain
