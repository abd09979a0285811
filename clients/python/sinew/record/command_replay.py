"""Send what was recorded to a daemon again, and compare its plans with the recorded ones bit for bit.

Ends with status 0 where all are the same, and with 1 where one is not. By default it starts a daemon of its own.

  sinew replay arm.mcap
  sinew replay arm.mcap --from 20 --to 30 --endpoint ipc:///tmp/other.sock
  sinew replay arm.mcap --tasks my/tasks --models my/models --json
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import sys
from typing import Any

from sinew.client import Client, serve
from sinew.record.reader import Recording
from sinew.record.replay import Outcome, replay

HELP = "repeat a recording and compare its plans bit for bit"

_TIMEOUT = 120.0  # for a plan [s]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("file", metavar="FILE", help="a recording")
    parser.add_argument("--endpoint", metavar="ADDRESS", help="of a daemon; by default a new one")
    parser.add_argument("--tasks", metavar="FOLDER", action="append", help="task files of the new daemon")
    parser.add_argument("--models", metavar="FOLDER", action="append", help="models of the new daemon")
    parser.add_argument("--session", metavar="NUMBER", type=int, help="replay this session of the file alone")
    parser.add_argument("--from", dest="begin", type=float, default=0.0, metavar="S", help="compare from here on")
    parser.add_argument("--to", dest="end", type=float, default=float("inf"), metavar="S", help="and up to here")
    parser.add_argument("--anyway", action="store_true", help="go on where the daemon's model is another one")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Replay a file; returns 0 where no plan differs."""
    recording = Recording(arguments.file)
    with contextlib.ExitStack() as stack:
        endpoint = arguments.endpoint
        if endpoint is None:
            daemon = serve(tasks=arguments.tasks, models=arguments.models)
            endpoint = stack.enter_context(daemon).endpoint
        client = stack.enter_context(Client(endpoint, _TIMEOUT))
        bar = stack.enter_context(_bar(recording))
        outcome = replay(
            recording,
            client,
            begin=arguments.begin,
            end=arguments.end,
            anyway=arguments.anyway,
            session=arguments.session,
            watch=lambda outcome: bar.update(recording.read - bar.n),
        )
    if arguments.json:
        print(json.dumps({"file": recording.path, **dataclasses.asdict(outcome)}))
    else:
        print("\n".join(lines(outcome)))
    return 0 if outcome.plans and not outcome.different else 1


def _bar(recording: Recording) -> Any:
    """Return a bar that shows how much of the file is done, where somebody looks."""
    from tqdm import tqdm

    return tqdm(total=recording.size, unit="B", unit_scale=True, disable=not sys.stderr.isatty(), leave=False)


def lines(outcome: Outcome) -> list[str]:
    """Return what a replay has found in words."""
    said = [f"note: {remark}" for remark in outcome.remarks]
    if outcome.cut:
        said.append("note: the end of the file is not there; this is what comes before")
    for why, count in outcome.skipped.items():
        said.append(f"{count} plans cannot be repeated: {why}")
    if outcome.first is not None:
        said.append(f"{outcome.different} of {outcome.plans} plans differ; the first one:\n{outcome.first}")
    elif outcome.plans:
        said.append(f"{outcome.plans} plans, all the same bits")
    else:
        said.append("no plan could be compared")
    return said
