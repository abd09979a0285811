"""Write a table out of a recording: as CSV for any program, or as NPZ for NumPy.

  --what states     a row a state: positions, velocities, activations (NaN: the daemon estimated them)
  --what plans      a row for each row of controls in each plan
  --what costs      a row a plan: costs, their parts by term, iterations, times
  --what settings   a row for each setting in each version of the configuration

Columns have the names of the model. Units are SI as in MuJoCo: times in s, positions in m or rad, activations and
excitations of muscles between 0 and 1.

  sinew export arm.mcap --csv costs.csv --what costs
  sinew export arm.mcap --npz states.npz
"""

from __future__ import annotations

import argparse
import json
import os

from sinew.errors import ArgumentError
from sinew.files import writable
from sinew.record.export import TABLES, table
from sinew.record.reader import Recording

HELP = "write tables of a recording as CSV or NPZ"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("file", metavar="FILE", help="a recording")
    parser.add_argument("--what", choices=tuple(TABLES), default="states", help="(states)")
    parser.add_argument("--session", metavar="NUMBER", type=int, help="of this session; by default the first one")
    parser.add_argument("--csv", type=writable, metavar="FILE", help="write a CSV file")
    parser.add_argument("--npz", type=writable, metavar="FILE", help="write a file for numpy.load")
    parser.add_argument("--json", action="store_true", help="print what was written as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Write the tables that are asked for."""
    recording = Recording(arguments.file)
    for name in (arguments.csv, arguments.npz):
        if name and os.path.exists(name) and os.path.samefile(name, recording.path):
            raise ArgumentError(f"{name} is the recording itself: give its table another name")
    made = table(recording, arguments.what, arguments.session)
    if arguments.csv:
        made.write_csv(arguments.csv)
    if arguments.npz:
        made.write_npz(arguments.npz)
    others = recording.opened[1:] if arguments.session is None else []
    columns = {name: made.names.get(name, []) for name in made.columns}
    if arguments.json:
        said = {"what": arguments.what, "rows": len(made), "columns": columns, "remark": recording.remark}
        said["left_out"] = others
        print(json.dumps({**said, "cut": recording.cut, "csv": arguments.csv, "npz": arguments.npz}))
    else:
        listed = ", ".join(f"{name} ({len(entries)})" if entries else name for name, entries in columns.items())
        print(f"{len(made)} {arguments.what}: {listed}")
        if others:
            print(f"of session {recording.opened[0]} alone; --session takes another: {', '.join(map(str, others))}")
        if recording.cut:
            print("the end of the file is not there; this is what comes before")
    return 0
