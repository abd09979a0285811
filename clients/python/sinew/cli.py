"""The program ``sinew``: one command each for what is done with bodies, plans and recordings."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from sinew._interrupts import terminated_as_interrupted
from sinew.errors import SinewError

__all__ = ["main"]

# Each command's module has HELP, add_arguments(parser) and run(arguments) -> status.
_COMMANDS: dict[str, str] = {
    "record": "sinew.record.command_record",
    "replay": "sinew.record.command_replay",
    "export": "sinew.record.command_export",
    "identify": "sinew.identification.command",
    "learn": "sinew.learn.command",
    "plot": "sinew.plot.command",
    "sweep": "sinew.sweep.command",
    "view": "sinew.view.command",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; returns its exit status.

    It is 0, 1 after an error, 2 for wrong usage, 130 after Ctrl-C, SIGTERM or SIGHUP, 141 where nobody reads what it
    prints, and where the terminal is gone that it prints to.
    """
    _reserve_standard_streams()
    streams = [x for x in (sys.stdout, sys.stderr) if x is not None]
    gone = {errno.EPIPE} | ({errno.EIO} if any(x.isatty() for x in streams) else set())
    try:
        try:
            return _run(arguments)
        finally:
            for stream in streams:
                stream.flush()  # a reader that has gone, as head does, is noticed here
    except OSError as error:
        if error.errno not in gone:
            raise
        with open(os.devnull, "w") as nothing:
            for stream in streams:
                os.dup2(nothing.fileno(), stream.fileno())  # else the interpreter complains at its end
        return 141


def _reserve_standard_streams() -> None:
    """Open the null device in place of closed standard streams, so that files and sockets do not get their numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _run(arguments: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(prog="sinew", description="See, record and compare what sinew plans.")
    parser.add_argument("--version", action="store_true", help="print the version and stop")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, module in _COMMANDS.items():
        command = import_module(module)
        added = commands.add_parser(
            name,
            help=command.HELP,
            description=command.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_arguments(added)
        added.set_defaults(run=command.run)
    chosen = parser.parse_args(arguments)
    if chosen.version:
        import sinew

        print(sinew.__version__)
        return 0
    if chosen.command is None:
        parser.print_help()
        return 2
    try:
        with terminated_as_interrupted():
            status: int = chosen.run(chosen)
    except KeyboardInterrupt:
        return 130
    except SinewError as error:
        print(f"sinew {chosen.command}: {error}", file=sys.stderr)
        return 1
    return status
