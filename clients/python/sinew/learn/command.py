"""Learn a policy by the gradients of short rollouts (SHAC), on bodies that are stepped together.

A folder gets progress.csv, a row an iteration, and checkpoint.pt. A training that was interrupted goes on with the
same command, and ends with the same numbers. For another task, model, seed or settings take another folder.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
from pathlib import Path
from typing import Any

from sinew._extras import require
from sinew._json import finite
from sinew.errors import ArgumentError

__all__ = ["HELP", "add_arguments", "run"]

HELP = "learn a policy by the gradients of short rollouts"

_EPILOG = """
example:
  sinew learn hopper -o RUN --iterations 300 --seed 1     # 300 iterations of 16 bodies, 32 actions each
  sinew learn hopper -o RUN --evaluate                    # the policy of its checkpoint, without noise

Settings (--set) are those of sinew.learn.Settings, with values that suit the task: `sinew learn TASK --settings`.
Models come from packages (gymnasium, dm_control, myosuite) or from clients/setup.sh --models.
Events for TensorBoard go into the folder where the package tensorboard is installed.
exit status: 0 all is done, 1 an error, 2 wrong usage, 130 interrupted: the same command goes on.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.epilog = _EPILOG
    add = parser.add_argument
    add("task", nargs="?", metavar="TASK", help="what is learned; without it, the names of all tasks are printed")
    add("-o", "--out", type=Path, metavar="FOLDER", help="where log and checkpoints go")
    add("--iterations", type=int, metavar="N", help="updates of the policy")
    add("--worlds", type=int, metavar="N", help="bodies")
    add("--horizon", type=int, metavar="N", help="actions whose return is differentiated")
    add("--seed", type=int, help="of networks, noise, starts and batches (default: 1)")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="another setting; may be repeated")
    add("--settings", action="store_true", help="print the settings and stop")
    add("--evaluate", action="store_true", help="run an episode of each of 32 bodies without noise, and learn nothing")
    add("--threads", type=int, default=0, metavar="N", help="threads (default: as many as this process may use)")
    add("--cfd", action="store_true", help="contacts from distance, in derivatives alone")
    add("--json", action="store_true", help="print what came of it as JSON, and no progress")


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns its exit status."""
    require("learn")
    from sinew.learn import Physics, Shac, make_task, task_names

    if arguments.task is None:
        print("\n".join(task_names()))
        return 0
    task = make_task(arguments.task)
    settings = _settings(arguments, task.settings)
    if arguments.settings:
        print("\n".join(f"{name}={value}" for name, value in dataclasses.asdict(settings).items()))
        return 0
    if arguments.out is None:
        raise ArgumentError("-o FOLDER: not given; log and checkpoints go there")
    physics = Physics(arguments.threads, _cfd(arguments.cfd))
    if arguments.evaluate:
        return _evaluated(task, physics, arguments)
    return _learned(Shac(task, settings, physics), arguments)


def _settings(arguments: argparse.Namespace, of_task: Any) -> Any:
    from sinew.learn import Settings

    given: dict[str, Any] = {}
    for text in arguments.set:
        name, sign, value = text.partition("=")
        if not sign:
            raise ArgumentError(f"--set: {text!r}, expected NAME=VALUE")
        given[name] = value
    for name in ("iterations", "worlds", "horizon", "seed"):
        if getattr(arguments, name) is not None:
            given[name] = getattr(arguments, name)
    return Settings.of(of_task, given)


def _cfd(wanted: bool) -> Any:
    from sinew.cfd import CFD

    return CFD() if wanted else None


def _learned(shac: Any, arguments: argparse.Namespace) -> int:
    """Train, with a bar for the progress."""
    from tqdm import tqdm

    from sinew.learn import train
    from sinew.learn.training import Row, last_row

    settings = shac.settings
    silent = arguments.json or not sys.stderr.isatty()
    each = settings.worlds * settings.horizon
    with tqdm(total=settings.iterations * each, unit=" samples", unit_scale=True, disable=silent) as bar:

        def show(row: Row) -> None:
            bar.update(row.samples - bar.n)
            bar.set_postfix_str(f"return {row.episode_return:.4g}")

        row = train(shac, arguments.out, show)
    if arguments.json:
        last = last_row(arguments.out) if row is None else row
        print(json.dumps(finite(last._asdict() if last else {})))
    elif row is None:
        print(f"{arguments.out}: all {settings.iterations} iterations are done")
    else:
        ended = not math.isnan(row.episode_return)
        print(
            f"{row.samples} samples in {row.seconds:.1f} s ({row.cpu_seconds:.1f} s of the CPU), "
            f"{f'return {row.episode_return:.6g}' if ended else 'no episode has ended'}, seed {settings.seed}; "
            f"{arguments.out}"
        )
    return 0


def _evaluated(task: Any, physics: Any, arguments: argparse.Namespace) -> int:
    """Run the policy of the checkpoint."""
    from sinew.learn import Shac, checkpoint, evaluate
    from sinew.learn.training import CHECKPOINT

    path = arguments.out / CHECKPOINT
    shac = Shac(task, checkpoint.settings_of(path), physics)
    checkpoint.load(path, shac)
    returns, lengths = evaluate(task, shac.policy, physics=physics)
    found = {
        "episodes": len(returns),
        "return": float(returns.mean()),
        "deviation": float(returns.std()),
        "length": float(lengths.double().mean()),
    }
    if arguments.json:
        print(json.dumps(finite(found)))
    else:
        print(
            f"return {found['return']:.6g} +- {found['deviation']:.3g} over {found['episodes']} episodes, "
            f"of {found['length']:.0f} actions"
        )
    return 0
