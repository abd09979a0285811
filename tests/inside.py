#!/usr/bin/env python3
"""Checks the table of clients/README.md that says which sources of our tools need more than the public header, and why.

  tests/inside.py            complaints, one a line; exit status 1 if there are any
  tests/inside.py --count    how many sources use what

Each source of the folders below has a row: its file, what it uses, and a reason where that is the inside. It uses

  inside           headers of physics or planner, directly or through others; but not the tools of physics/base
                   (status, clock) and planner/base/pool.h (threads)
  public header    clients/include/sinew.h, and none of the inside
  neither          none of both

Example:

  $ tests/inside.py
  clients/bench/mode_step.c: uses the inside (by physics/step/step.h), clients/README.md says: public header
"""

from __future__ import annotations

import argparse
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "clients" / "README.md"
FOLDERS = ("clients/bench", "clients/check")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
ROW = re.compile(r"^\| `([a-z]+/[a-z_]+\.c)` \| (inside|public header|neither) \| (.*) \|$", re.MULTILINE)
TOOLS = re.compile(r"physics/base/|planner/base/pool\.h$")


def reached(file: pathlib.Path) -> set[str]:
    """All headers of the repository that a source includes, directly or through others, as paths from the top."""
    found: set[str] = set()
    pending = [file]
    while pending:
        for name in INCLUDE.findall(pending.pop().read_text()):
            if name not in found and (ROOT / name).is_file():
                found.add(name)
                pending.append(ROOT / name)
    return found


def use_of(headers: set[str]) -> tuple[str, str]:
    """What a source uses, with a header that shows it."""
    inside = sorted(h for h in headers if h.startswith(("physics/", "planner/")) and not TOOLS.match(h))
    if inside:
        return "inside", inside[-1]
    public = "clients/include/sinew.h"
    return ("public header", public) if public in headers else ("neither", "")


def check(text: str) -> list[str]:
    """All complaints about the table."""
    rows = {f"clients/{file}": (use, reason.strip()) for file, use, reason in ROW.findall(text)}
    files = {str(path.relative_to(ROOT)) for folder in FOLDERS for path in (ROOT / folder).glob("*.c")}
    found = [f"{file}: has no row in clients/README.md" for file in sorted(files - set(rows))]
    found += [f"clients/README.md: {file} is not there" for file in sorted(set(rows) - files)]
    for file in sorted(files & set(rows)):
        use, by = use_of(reached(ROOT / file))
        said, reason = rows[file]
        if use != said:
            found.append(f"{file}: uses the {use} (by {by}), clients/README.md says: {said}")
        elif (use == "inside") != bool(reason):
            found.append(f"{file}: clients/README.md has a reason where the inside is used, and nowhere else")
    return found


def main() -> int:
    """Reads the arguments, checks or counts."""
    parser = argparse.ArgumentParser(
        prog="tests/inside.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", action="store_true", help="print how many sources use what")
    arguments = parser.parse_args()
    text = PAGE.read_text()
    if arguments.count:
        counts = collections.Counter(use for _, use, _ in ROW.findall(text))
        for use in ("public header", "inside", "neither"):
            print(f"{use:14} {counts[use]}")
        return 0
    found = check(text)
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
