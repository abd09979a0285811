"""Run a table of closed loops: every combination of tasks, planners, settings and seeds.

Each run moves MuJoCo's body, with the task's contacts of the robot, by the plans of a planner in the same process,
which are those of sinewd bit for bit. Runs that are done are not repeated: the same command goes on where it ended.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

from sinew._extras import require
from sinew._json import finite
from sinew.errors import ArgumentError
from sinew.planner import settings as all_settings
from sinew.sweep.job import Job, jobs_of
from sinew.sweep.local import play_here
from sinew.sweep.report import text_of
from sinew.sweep.store import CURVES, Store, written
from sinew.sweep.summary import summary
from sinew.sweep.table import PLANNERS, Table

if TYPE_CHECKING:
    import pandas as pd

    from sinew.sweep.play import Played

__all__ = ["HELP", "add_arguments", "run"]

HELP = "run a table of closed loops: tasks, planners, settings, seeds"

_EPILOG = """
examples:
  sinew sweep table.yaml -o RUN
  sinew sweep -o RUN --tasks arm_reach --planners adam,sampling-64 --set horizon=32,48 --seeds 1-16 --seconds 2

files in RUN: runs.parquet, a row a run; runs.jsonl, what is done by now; traces/KEY.npz of --keep.
exit status: 0 all runs are done, 1 some have an error (a row, too; the same command tries them again).
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.epilog = _EPILOG
    add = parser.add_argument
    add("table", nargs="?", metavar="TABLE.yaml", help="what is run; options replace what it says")
    add("-o", "--out", required=True, metavar="RUN", help="folder of the results; one that is there is gone on with")
    add("--tasks", metavar="LIST", help="names or paths of tasks, apart by commas")
    add("--planners", metavar="LIST", help=f"of {PLANNERS} (default: task)")
    add("--set", action="append", metavar="NAME=V1,V2", help="values of a setting of planners; may be repeated")
    add("--seeds", metavar="LIST", help="such as 1-16 or 1,3,5-8 (default: 1)")
    add("--seconds", metavar="LIST", help="of motion (default: 1)")
    add("--execute", metavar="LIST", help="steps between two plans (default: 16)")
    add("--iterations", metavar="LIST", help="of each plan (default: as the settings say)")
    add("--budget", metavar="LIST", help="seconds for each plan, in place of iterations")
    add("--models", action="append", metavar="FOLDER", help="where models are looked for first; may be repeated")
    add("--jobs", type=int, default=0, metavar="N", help="runs at once on this machine (default: its cores)")
    add("--ray", metavar="ADDRESS", help="run on a Ray cluster, such as 127.0.0.1:6379, or auto")
    add("--keep", action="store_true", help="keep a trace of each run, for sinew plot")
    add("--csv", action="store_true", help="write runs.csv, too")
    add("--json", action="store_true", help="print the summary as JSON, and no progress")


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns its exit status."""
    require("sweep")
    if arguments.ray is not None:
        require("ray")
    if arguments.jobs < 0:
        raise ArgumentError(f"--jobs {arguments.jobs}: expected a number from 1 on")
    table = _table(arguments)
    jobs = jobs_of(table)
    with Store(arguments.out) as store:
        left = [job for job in {job.key: job for job in jobs}.values() if not store.has(job.key, arguments.keep)]
        before = len({job.key for job in jobs}) - len(left)
        try:
            _play(left, before, store, arguments)
        finally:
            runs = store.table((job.key, job.run) for job in jobs)
            if arguments.csv:
                path = store.folder / "runs.csv"
                with written(path):
                    runs.drop(columns=list(CURVES), errors="ignore").to_csv(path, index=False)
    return _report(runs, before, arguments)


def _table(arguments: argparse.Namespace) -> Table:
    names = ("tasks", "planners", "seeds", "seconds", "execute", "iterations", "budget")
    given = {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
    changes: dict[str, Any] = {name: text if name == "seeds" else text.split(",") for name, text in given.items()}
    if arguments.models:
        changes["models"] = arguments.models
    if arguments.set:
        changes["settings"] = _assignments(arguments.set)
    if arguments.table:
        return Table.load(arguments.table, changes)
    if "tasks" not in changes:
        raise ArgumentError("a table or --tasks is needed")
    return Table.of(changes)


def _assignments(texts: Sequence[str]) -> dict[str, list[str]]:
    settings: dict[str, list[str]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals or not values:
            raise ArgumentError(f"--set {text}: expected NAME=VALUE or NAME=V1,V2")
        if name in settings:
            raise ArgumentError(f"--set {text}: {name} is set twice; expected all of its values once, as NAME=V1,V2")
        setting = all_settings().get(name)
        settings[name] = [values] if setting and setting.text else values.split(",")  # a text may have commas
    return settings


def _play(jobs: list[Job], before: int, store: Store, arguments: argparse.Namespace) -> None:
    """Run jobs and write each as it ends."""
    from tqdm import tqdm

    silent = arguments.json or not sys.stderr.isatty()
    with (
        tqdm(total=before + len(jobs), initial=before, unit="run", disable=silent) as progress,
        contextlib.closing(_played(jobs, arguments)) as results,
    ):
        for job, played in results:
            if isinstance(played, str):
                store.add(job.key, {"error": played}, {}, None)
                progress.write(f"{job.run.task}, {job.run.planner}, seed {job.run.seed}: {played}", sys.stderr)
            else:
                store.add(job.key, played.result, played.curve, played.trace)
            progress.update()


def _played(jobs: list[Job], arguments: argparse.Namespace) -> Generator[tuple[Job, Played | str]]:
    if arguments.ray is None:
        return play_here(jobs, arguments.jobs or len(os.sched_getaffinity(0)), arguments.keep)
    from sinew.sweep.cluster import play_on_ray

    return play_on_ray(jobs, arguments.ray, arguments.keep)


def _report(runs: pd.DataFrame, before: int, arguments: argparse.Namespace) -> int:
    """Print the summary; returns the exit status."""
    groups = summary(runs)
    errors = int((runs["error"] != "").sum())
    if arguments.json:
        rows = finite(groups.to_dict("records"))
        said = {"folder": str(arguments.out), "runs": len(runs), "done_before": before, "errors": errors}
        print(json.dumps({**said, "summary": rows}))
    else:
        print(text_of(groups))
        print(f"\n{len(runs)} runs, {before} of them done before; {os.path.join(arguments.out, 'runs.parquet')}")
    if errors and not arguments.json:
        print(f"sinew sweep: {errors} of {len(runs)} runs have an error", file=sys.stderr)
    return 1 if errors else 0
