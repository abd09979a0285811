#!/usr/bin/env python3
"""Checks that every include line keeps to the order of the rooms (folders with sources), as tests/rooms.txt has it.

  tests/rooms.py              complaints, one a line; exit status 1 if there are any
  tests/rooms.py physics      those about sources under these folders
  tests/rooms.py --list       the rooms in their order: what each may include, what others may include of it

Each line of tests/rooms.txt is

  ROOM: ROOM... | HEADER...

The rooms after the colon stand further up in the list (so there is no circle), and are all that its sources may include
besides its own. "physics/*" stands for all rooms of a folder, <mujoco> for headers of a library that few may see. Other
rooms include the header named after the room ("physics/step/step.h") and those after the bar; "*" opens all of them. A
header that no other room may include is named *_private.h.

The tests of a room, tests/ROOM, may include all of that room, and of any other what other rooms may. Folders of tests that
mirror no room (tests/support, tests/lanes, ...) may include everything.

Example:

  $ tests/rooms.py
  physics/world/layout.c:3: includes "physics/step/step.h": tests/rooms.txt does not allow physics/world that room
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests" / "rooms.txt"
INCLUDE = re.compile(r'\s*#\s*include\s+["<]([^">]+)[">]')
TOPS = {"physics", "planner", "cuda", "proto", "daemon", "clients", "tests"}
GUARDED = {"mujoco", "ccd"}  # libraries that only rooms with <NAME> in their line may include
TEXT = (".c", ".cu", ".inc")  # the text of a stage as part of another unit: allowed where its header is


@dataclasses.dataclass(frozen=True)
class Room:
    """One line of the table."""

    name: str
    allowed: frozenset[str]
    libraries: frozenset[str]
    headers: frozenset[str]  # besides the one named after the room; "*": all

    def opens(self, header: str) -> bool:
        """Whether other rooms may include a file of this one."""
        return header == pathlib.PurePath(self.name).name + ".h" or "*" in self.headers or header in self.headers


def read_table(text: str) -> dict[str, Room]:
    """The rooms in their order; what a line names must stand above it."""
    rooms: dict[str, Room] = {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        name, _, rest = line.partition(":")
        wanted, _, headers = rest.partition("|")
        allowed: set[str] = set()
        libraries = set()
        for word in wanted.split():
            known = {room for room in rooms if room == word or (word.endswith("/*") and room.startswith(word[:-1]))}
            if word.endswith("/*") and word[:-2] in rooms:
                known.add(word[:-2])
            if word.startswith("<"):
                libraries.add(word.strip("<>"))
            elif not known:
                raise SystemExit(f"tests/rooms.txt:{number}: '{word}' is no room above this line")
            allowed |= known
        rooms[name] = Room(name, frozenset(allowed), frozenset(libraries), frozenset(headers.split()))
    return rooms


def complaint(rooms: dict[str, Room], file: str, included: str) -> str:
    """What is wrong with one include line, in quotes or in angle brackets; empty: nothing."""
    room = rooms[str(pathlib.PurePath(file).parent)]
    path = pathlib.PurePath(included)
    if path.parts[0] in GUARDED:
        return "" if path.parts[0] in room.libraries else f"tests/rooms.txt does not give {room.name} <{path.parts[0]}>"
    ours = path.parts[0] in TOPS or path.parts[0] == ".."
    if not ours or str(path.parent) == room.name:
        return ""
    other = rooms.get(str(path.parent))
    if other is None or other.name not in room.allowed:
        return f"tests/rooms.txt does not allow {room.name} that room"
    if path.suffix not in TEXT and not other.opens(path.name):
        return f"only {other.name} may: it is no header for other rooms"
    return ""


def check_test(rooms: dict[str, Room], file: str) -> list[str]:
    """Complaints about a source of the tests: headers that only other rooms, and their tests, may include."""
    tested = str(pathlib.PurePath(file).parent.relative_to("tests"))
    found = []
    for number, line in enumerate((ROOT / file).read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if not match or not match[1] or "/" not in match[1] or match[1].startswith("tests/"):
            continue
        path = pathlib.PurePath(match[1])
        other = rooms.get(str(path.parent))
        mirrored = other is not None and tested in rooms and tested != other.name
        if other and mirrored and path.suffix not in TEXT and not other.opens(path.name):
            found.append(f"{file}:{number}: includes {path}: only {other.name} and tests/{other.name} may")
    return found


def check(rooms: dict[str, Room], folders: list[str]) -> list[str]:
    """All complaints about the sources under these folders that git knows."""
    patterns = [f"{folder}*.{end}" for folder in folders or [""] for end in ("c", "h", "cu", "inc", "cpp")]
    listed = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    found = []
    for file in listed.stdout.split():
        path = pathlib.PurePath(file)
        if path.parts[0] == "tests":
            found += check_test(rooms, file)
            continue
        room = rooms.get(str(path.parent))
        if room is None:
            found.append(f"{file}: {path.parent} is no room of tests/rooms.txt")
            continue
        if path.suffix == ".h" and not room.opens(path.name) and not path.name.endswith("_private.h"):
            found.append(f"{file}: no other room may include it: its name has to end with _private.h")
        for number, line in enumerate((ROOT / file).read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            why = complaint(rooms, file, match[1]) if match else ""
            if match and why:
                found.append(f"{file}:{number}: includes {match[1]}: {why}")
    return found


def check_table(rooms: dict[str, Room]) -> list[str]:
    """Complaints about lines of the table: rooms and headers that are not there."""
    found = []
    for room in rooms.values():
        folder = ROOT / room.name
        files = [file for file in folder.glob("*") if file.suffix in (".c", ".h", ".cu", ".inc", ".cpp")]
        if not files:
            found.append(f"tests/rooms.txt: {room.name} has no sources")
        for header in sorted(room.headers - {"*"}):
            if not (folder / header).is_file():
                found.append(f"tests/rooms.txt: {room.name} opens {header}, which is not there")
    return found


def main() -> int:
    """Reads the arguments, checks or lists."""
    parser = argparse.ArgumentParser(
        prog="tests/rooms.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="print the rooms in their order")
    parser.add_argument("folders", nargs="*", metavar="FOLDER", help="folders to check; all without any")
    arguments = parser.parse_args()
    rooms = read_table(TABLE.read_text())
    if arguments.list:
        for room in rooms.values():
            print(f"{room.name}: {' '.join(sorted(room.allowed))} | {' '.join(sorted(room.headers))}")
        return 0
    found = check_table(rooms) + check(rooms, [folder.rstrip("/") + "/" for folder in arguments.folders])
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
