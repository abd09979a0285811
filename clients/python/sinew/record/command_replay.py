"""Send what was recorded to a daemon again, and compare its plans with the recorded ones bit for bit.

Ends with status 0 where all are the same, and with 1 where one is not. By default it starts a daemon of its own.

  sinew replay arm.mcap
  sinew replay arm.mcap --from 20 --to 30 --endpoint ipc:///tmp/other.sock
  sinew replay arm.mcap --tasks my/tasks --models my/models --json

A file of the daemon's flight recorder has requests and times, but no plans. Its requests are sent again with the
pauses between them, and what becomes of the plans is compared: their status, and how many are late. A session that
was opened before the file begins needs its task.

  sinew replay flight-20261125T230001Z-misses.mcap --task arm_reach
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import sys
from typing import Any

from sinew.client import Client, serve
from sinew.client.arguments import add_daemon_arguments, keys_of
from sinew.errors import ArgumentError
from sinew.record.flight import Flight, FlightOutcome, is_flight, repeat
from sinew.record.reader import Recording
from sinew.record.replay import Outcome, replay

HELP = "repeat a recording and compare its plans bit for bit, or what a flight recorder has"

_TIMEOUT = 120.0  # for a plan [s]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("file", metavar="FILE", help="a recording, or a file of the flight recorder")
    add_daemon_arguments(parser, "of a daemon; by default a new one")
    parser.add_argument("--tasks", metavar="FOLDER", action="append", help="task files of the new daemon")
    parser.add_argument("--models", metavar="FOLDER", action="append", help="models of the new daemon")
    parser.add_argument("--session", metavar="NUMBER", type=int, help="replay this session of the file alone")
    parser.add_argument("--from", dest="begin", type=float, default=0.0, metavar="S", help="compare from here on")
    parser.add_argument("--to", dest="end", type=float, default=float("inf"), metavar="S", help="and up to here")
    parser.add_argument("--task", metavar="NAME", help="flight: of sessions that were opened before the file begins")
    parser.add_argument("--speed", type=float, metavar="X", help="flight: so many times as fast as it was (1)")
    parser.add_argument("--anyway", action="store_true", help="go on where the daemon's model is another one")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Replay a file; returns 0 where no plan differs."""
    if is_flight(arguments.file):
        return _run_flight(arguments)
    for name in ("task", "speed"):
        if getattr(arguments, name) is not None:
            raise ArgumentError(f"--{name} is for files of the flight recorder; {arguments.file} is a recording")
    recording = Recording(arguments.file)
    with contextlib.ExitStack() as stack:
        client = _client(arguments, stack)
        bar = stack.enter_context(_bar(recording.size, "B"))
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


def _run_flight(arguments: argparse.Namespace) -> int:
    """Repeat a file of the flight recorder; returns 0 where all requests were answered and no plan's status differs."""
    if arguments.anyway:
        raise ArgumentError(f"--anyway is for recordings; {arguments.file} is a file of the flight recorder")
    flight = Flight(arguments.file)
    with contextlib.ExitStack() as stack:
        client = _client(arguments, stack)
        bar = stack.enter_context(_bar(None, "requests"))
        outcome = repeat(
            flight,
            client,
            task=arguments.task,
            session=arguments.session,
            begin=arguments.begin,
            end=arguments.end,
            speed=1.0 if arguments.speed is None else arguments.speed,
            watch=lambda outcome: bar.update(outcome.requests - bar.n),
        )
    if arguments.json:
        print(json.dumps({"file": flight.path, "flight": True, "cut": flight.cut, **dataclasses.asdict(outcome)}))
    else:
        print("\n".join(flight_lines(flight, outcome)))
    return 0 if outcome.plans and not outcome.different else 1


def _client(arguments: argparse.Namespace, stack: contextlib.ExitStack) -> Client:
    """Return a client of the daemon that is asked for, or of one of its own."""
    endpoint, keys = arguments.endpoint, keys_of(arguments)
    if endpoint is None:
        daemon = serve(tasks=arguments.tasks, models=arguments.models)
        endpoint = stack.enter_context(daemon).endpoint
    return stack.enter_context(Client(endpoint, _TIMEOUT, **keys))


def _bar(size: int | None, unit: str) -> Any:
    """Return a bar that shows how much of the file is done, where somebody looks."""
    from tqdm import tqdm

    return tqdm(total=size, unit=unit, unit_scale=True, disable=not sys.stderr.isatty(), leave=False)


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


def flight_lines(flight: Flight, outcome: FlightOutcome) -> list[str]:
    """Return in words what a repetition of a flight has come to."""
    said = [
        f"note: of the flight recorder of sinewd {flight.version}: requests and times, no plans, so their bits are not"
        " compared"
    ]
    said += [f"note: {remark}" for remark in outcome.remarks]
    if flight.cut:
        said.append("note: the end of the file is not there; this is what comes before")
    said += [f"{count} requests were not sent: {why}" for why, count in outcome.passed.items()]
    said.append(f"{outcome.requests} requests of {flight.seconds:.3g} s sent again, {outcome.answered} answered")
    said += [f"{count} were refused: {why}" for why, count in outcome.refused.items()]
    then, now = outcome.then, outcome.now
    rows: list[tuple[str, float, float]] = [
        ("plans", then.plans, now.plans),
        ("late", then.late, now.late),
        ("iterations", then.iterations, now.iterations),
        ("age p50 [ms]", 1e3 * then.age(50), 1e3 * now.age(50)),
        ("age p99 [ms]", 1e3 * then.age(99), 1e3 * now.age(99)),
    ]
    said.append(f"{'':12} {'then':>10} {'now':>10}")
    said += [f"{name:12} {was:10.6g} {is_now:10.6g}" for name, was, is_now in rows]
    if outcome.first is not None:
        said.append(
            f"{outcome.different} of {outcome.plans} plans came to something else; the first one:\n{outcome.first}"
        )
    elif outcome.plans:
        said.append(f"{outcome.plans} plans, all with the status that they had")
    else:
        said.append("no plan could be compared")
    return said
