"""Record sessions of a daemon: states, plans, settings and their versions, as an MCAP file.

Ctrl-C ends it and closes the file. Foxglove and PlotJuggler open the file.

  sinew record next arm.mcap                 the next session that opens, until it closes
  sinew record 6312879 arm.mcap --seconds 60
  sinew record all day.mcap --task hand_balls
  sinew record all day.mcap --endpoint tcp://robot:7440 --server-key server.pub --key admin    with a key of role admin
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import sys
import time

from sinew.client.arguments import add_daemon_arguments, keys_of
from sinew.errors import ArgumentError
from sinew.record.recorder import Progress, Recorder, Which

HELP = "record sessions of a daemon into a file"

_LOOK = 0.2  # between lines of progress [s]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("session", metavar="SESSION", type=_which, help="number of a session, 'next' or 'all'")
    parser.add_argument("file", metavar="FILE", help="a new file, such as out.mcap")
    add_daemon_arguments(parser, "of the daemon; by default this user's")
    parser.add_argument("--seconds", type=float, metavar="S", help="end after so many seconds")
    parser.add_argument("--task", metavar="NAME", help="sessions on this task alone")
    parser.add_argument("--force", action="store_true", help="replace a file that is there")
    parser.add_argument(
        "--rate", type=float, default=30.0, metavar="HZ", help="scene, joints and figures a second (30; 0: none)"
    )
    parser.add_argument("--json", action="store_true", help="print what was recorded as JSON")


def _which(text: str) -> Which:
    if text == "all":
        return "all"
    if text == "next":
        return "next"
    if text.isdecimal():
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r}; allowed are the number of a session, 'next' and 'all'")


def run(arguments: argparse.Namespace) -> int:
    """Record until Ctrl-C, the end of the session, or the time that was given."""
    for name in ("seconds", "rate"):
        value = getattr(arguments, name)
        if value is not None and not value >= 0:
            raise ArgumentError(f"--{name} {value:g}: expected a number from 0 on")
    recorder = Recorder(
        arguments.file,
        arguments.session,
        arguments.endpoint,
        task=arguments.task,
        force=arguments.force,
        rate=arguments.rate,
        **keys_of(arguments),
    )
    recorder.start()
    with contextlib.suppress(KeyboardInterrupt):
        _wait(recorder, arguments.seconds)
    progress = recorder.stop()
    if arguments.json:
        print(json.dumps({"file": recorder.path, **dataclasses.asdict(progress)}))
    else:
        _clear()
        print(f"{recorder.path}: {_line(progress)}")
    if recorder.error is not None:
        raise recorder.error
    return 0


def _wait(recorder: Recorder, seconds: float | None) -> None:
    """Wait for the end and show how it goes."""
    until = time.monotonic() + (float("inf") if seconds is None else seconds)
    while recorder.progress.running and (left := until - time.monotonic()) > 0:
        if sys.stderr.isatty():
            _clear()
            print(_line(recorder.progress), end="", file=sys.stderr, flush=True)
        time.sleep(min(_LOOK, left))


def _clear() -> None:
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _line(progress: Progress) -> str:
    """Return how it goes in a line."""
    count = len(progress.sessions)
    text = f"{progress.plans} plans in {progress.seconds:.1f} s, {progress.size / 1e6:.1f} MB"
    text += "" if count == 1 else f", {count} sessions"
    text += f", {progress.lost} records lost" if progress.lost else ""
    return text + (f" ({progress.text})" if progress.text else "")
