#!/usr/bin/env python3
"""Puts known defects into the code, one at a time, and tells which of them the tests notice.

  tests/mutate.sh                       all of them: on two cores about eleven seconds each
  tests/mutate.sh --list                the defects: file, tests that should notice, what is broken
  tests/mutate.sh --check               does each edit still apply, exactly once? No build, done at once
  tests/mutate.sh --only V01,L06        these alone; "planner" stands for all of planner.mutations
  tests/mutate.sh --shard 1/2           every second one; 2/2 are the others, and may run at the same time
  tests/mutate.sh --only daemon --json  the same as a JSON object, for machines

Works on copies of the tree in build/mutate, with builds of their own: your files stay as they are. What has been
found out about this very tree is kept there, too, and not tried again: an interrupted run goes on where it was.
Exit status: 0 only those survive that are marked as equivalent, which must, or as explained; 1 others do, or one of these does not; 2 an edit
does not apply or does not compile, or a test fails without any.

Example:

  $ tests/mutate.sh --only L05
  mutate: 1 to try, 0 known; without any edit 1 of their 1 tests pass
  [1/1] L05 killed by planner/optimize/test_noise (4.3 s)
  1 killed, 0 survived, 0 errors
"""

from __future__ import annotations

import argparse
import ctypes
import dataclasses
import fcntl
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree
from collections.abc import Iterable, Sequence
from typing import TextIO

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORK = ROOT / "build" / "mutate"
OPTIONS = {"equivalent", "explained"}  # besides preset=NAME

Outcome = tuple[str, float]  # of a test: passed, failed, hangs or skipped; seconds
SKIPPED: Outcome = ("skipped", 0.0)


class Trouble(Exception):
    """What makes the result worthless: exit status 2."""


@dataclasses.dataclass(frozen=True)
class Mutation:
    """One entry of a list."""

    id: str
    group: str  # name of its list
    file: str
    tests: tuple[str, ...]
    preset: str
    marks: frozenset[str]  # of OPTIONS
    text: str  # what is broken
    old: str  # whole lines
    new: str
    place: str  # list and line, for complaints


@dataclasses.dataclass
class Result:
    """What became of it. found: killed, survived, or error (no verdict; note says why)."""

    id: str
    found: str
    by: str = ""  # the test that noticed
    note: str = ""
    seconds: float = 0.0
    key: str = ""


# ---- the lists ----


def parse_header(line: str, place: str) -> tuple[str, str, tuple[str, ...], str, frozenset[str]]:
    """Id, file, tests, preset and marks, of "=== ID FILE | TESTS [| OPTIONS]"."""
    parts = [part.split() for part in line[4:].split("|")]
    if len(parts) not in (2, 3) or len(parts[0]) != 2 or not parts[1]:
        raise Trouble(f'{place}: not of the form "=== ID FILE | TEST... [| OPTION...]": {line}')
    preset, marks = "release", set()
    for option in parts[2] if len(parts) == 3 else []:
        if option.startswith("preset="):
            preset = option.removeprefix("preset=")
        elif option in OPTIONS:
            marks.add(option)
        else:
            raise Trouble(f"{place}: unknown option '{option}'; there are preset=NAME, equivalent and explained")
    return parts[0][0], parts[0][1], tuple(parts[1]), preset, frozenset(marks)


def block(lines: Sequence[str]) -> str:
    """Lines as they stand in a file; empty lines at the end only part the entries of a list."""
    last = len(lines)
    while last > 0 and not lines[last - 1]:
        last -= 1
    return "".join(line + "\n" for line in lines[:last])


def parse_entry(group: str, name: str, first: int, lines: Sequence[str]) -> Mutation:
    """The entry whose header is lines[0], line `first` of the list."""
    place = f"{name}:{first}"
    header = parse_header(lines[0], place)
    try:
        old, new = lines.index("---"), lines.index("+++")
    except ValueError:
        raise Trouble(f'{place}: an entry needs a line "---" before the old text and a line "+++" before the new') from None
    text = [line[2:] for line in lines[1:old] if line.startswith("# ")]
    if old > new or len(text) != old - 1 or not text:
        raise Trouble(f'{place}: between header and "---" one or more lines "# what is broken" are wanted')
    return Mutation(
        id=header[0],
        group=group,
        file=header[1],
        tests=header[2],
        preset=header[3],
        marks=header[4],
        text=" ".join(text),
        old=block(lines[old + 1 : new]),
        new=block(lines[new + 1 :]),
        place=place,
    )


def read_list(path: pathlib.Path) -> list[Mutation]:
    """All entries of one list."""
    lines = path.read_text().splitlines()
    heads = [i for i, line in enumerate(lines) if line.startswith("=== ")]
    if not heads or any(lines[: heads[0]]):
        raise Trouble(f'{path.name}: a list begins with a line "=== ID FILE | TEST..."')
    ends = [*heads[1:], len(lines)]
    return [parse_entry(path.stem, path.name, a + 1, lines[a:b]) for a, b in zip(heads, ends, strict=True)]


def count_old(text: str, old: str) -> int:
    """How many times whole lines occur."""
    return f"\n{text}".count(f"\n{old}")


def test_exists(name: str) -> bool:
    """Whether tests/ has a file for a ctest name, or a list of tests names it, in full or up to a parameter."""
    if next((ROOT / "tests").glob(f"{name.replace('fuzz/', 'fuzz/fuzz_')}.*"), None):
        return True
    text = "".join(path.read_text() for path in (ROOT / "tests").rglob("CMakeLists.txt"))
    begun = (name[:i] for i, letter in enumerate(name, 1) if letter == "_")
    return f"_test({name} " in text or any(f"_test({begin}${{" in text for begin in begun)


def complaints(mutations: Sequence[Mutation]) -> list[str]:
    """What is wrong with the lists, from their text and the tree alone."""
    found: list[str] = []
    seen: dict[str, str] = {}
    for m in mutations:
        path = ROOT / m.file
        n = count_old(path.read_text(), m.old) if path.is_file() and m.old else 0
        if m.id in seen:
            found.append(f"{m.place}: {m.id}: stands in {seen[m.id]}, too")
        seen[m.id] = m.place
        if not path.is_file():
            found.append(f"{m.place}: {m.id}: there is no file {m.file}")
        elif n != 1:
            found.append(f"{m.place}: {m.id}: the old text occurs {n} times in {m.file}; it must once")
        if m.old == m.new:
            found.append(f"{m.place}: {m.id}: old and new text are the same")
        found += [f"{m.place}: {m.id}: there is no test {test}" for test in m.tests if not test_exists(test)]
    return found


def select(mutations: Sequence[Mutation], only: str, shard: str) -> list[Mutation]:
    """Those that the command line asks for."""
    wanted = [name for name in only.split(",") if name]
    known = {m.id for m in mutations} | {m.group for m in mutations}
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise Trouble(f"no mutation and no list is called {', '.join(unknown)}; see --list")
    chosen = [m for m in mutations if not wanted or m.id in wanted or m.group in wanted]
    chosen.sort(key=lambda m: m.preset != "release")  # one build after the other
    first, of = shard_numbers(shard)
    return chosen[first - 1 :: of]


def shard_numbers(shard: str) -> tuple[int, int]:
    """I and N of "I/N"."""
    match = re.fullmatch(r"(\d+)/(\d+)", shard)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise Trouble(f"--shard {shard}: wanted is I/N with I from 1 to N")
    return int(match[1]), int(match[2])


# ---- processes ----


def become_reaper() -> None:
    """What a test leaves behind, a daemon say, becomes a child of this process, which ends it."""
    pr_set_child_subreaper = 36
    ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0)

    def stop(number: int, _frame: object) -> None:
        raise KeyboardInterrupt(signal.Signals(number).name)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)


def end_children() -> None:
    """Ends every process that this one has started or inherited."""
    path = pathlib.Path(f"/proc/self/task/{os.getpid()}/children")
    while children := path.read_text().split():
        for child in children:
            try:
                os.kill(int(child), signal.SIGKILL)
                os.waitpid(int(child), 0)
            except (ProcessLookupError, ChildProcessError):
                continue


def command(args: Sequence[str | pathlib.Path], log: pathlib.Path, env: dict[str, str] | None = None) -> int:
    """Runs a command, its output into a file; its exit status."""
    with log.open("w") as out:
        process = subprocess.Popen([str(a) for a in args], stdout=out, stderr=subprocess.STDOUT, env=env, start_new_session=True)
        try:
            return process.wait()
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            end_children()


def tail(log: pathlib.Path, lines: int = 12) -> str:
    """The last lines of a file."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


# ---- the copy of the tree and its builds ----


def tree_files() -> list[str]:
    """The files of the tree as they are now, tracked or new."""
    done = subprocess.run(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True)
    return sorted({name for name in done.stdout.decode().split("\0") if name and (ROOT / name).is_file()})


def tree_digest(files: Iterable[str]) -> str:
    """Of everything that decides what a test says: neither texts nor these lists."""
    digest = hashlib.sha256()
    for name in files:
        if name.endswith(".md") or name.startswith("tests/mutations/"):
            continue
        digest.update(f"{name}\0".encode())
        digest.update(hashlib.sha256((ROOT / name).read_bytes()).digest())
    return digest.hexdigest()


def key_of(m: Mutation, digest: str) -> str:
    """What a result belongs to."""
    return hashlib.sha256(repr((digest, m.file, m.old, m.new, m.tests, m.preset)).encode()).hexdigest()[:20]


class Copy:
    """A copy of the tree, in which one edit is made at a time, and builds of it."""

    def __init__(self, slot: int, jobs: int) -> None:
        self.folder = WORK / str(slot)
        self.tree = self.folder / "tree"
        self.log = self.folder / "log"
        self.jobs = jobs
        self.commands: dict[str, dict[str, list[str]]] = {}  # of tests, by preset
        self.before: tuple[str, str] | None = None  # file and text to which the last edit goes back
        self.tree.mkdir(parents=True, exist_ok=True)
        self.lock = (self.folder / "lock").open("w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Trouble(f"another run works in {self.folder}; shards of one campaign have different numbers") from None

    def update(self, files: Sequence[str]) -> None:
        """Makes the copy equal to the tree; unchanged files keep their time, so that they are not built again."""
        wanted = {self.tree / name for name in files}
        for top in self.tree.iterdir():
            stale = [] if top.name == "build" else [top, *top.rglob("*")]
            for path in stale:
                if path.is_file() and path not in wanted:
                    path.unlink()
        for name in files:
            source, target = ROOT / name, self.tree / name
            if target.is_file() and target.read_bytes() == source.read_bytes():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)

    def edit(self, m: Mutation | None) -> None:
        """Takes the last edit back and makes this one."""
        if self.before:
            (self.tree / self.before[0]).write_text(self.before[1])
        self.before = None
        if m:
            text = (self.tree / m.file).read_text()
            if count_old(text, m.old) != 1:
                raise Trouble(f"{m.id}: {m.file} has changed since the start")
            self.before = m.file, text
            (self.tree / m.file).write_text(f"\n{text}".replace(f"\n{m.old}", f"\n{m.new}", 1)[1:])

    def build_folder(self, preset: str) -> pathlib.Path:
        """Where a preset is built."""
        return self.tree / "build" / preset

    def configure(self, preset: str) -> None:
        """Configures a preset and reads which tests it has."""
        if command(["cmake", "-S", self.tree, "--preset", preset, "-DSINEW_CUDA=OFF"], self.log) != 0:
            raise Trouble(f"cmake --preset {preset} fails:\n{tail(self.log)}")
        lists = (self.build_folder(preset) / "tests").rglob("CTestTestfile.cmake")
        text = "".join(path.read_text() for path in lists)
        found = re.findall(r"^add_test\(\[=\[(.+?)\]=\] (.+)\)$", text, re.MULTILINE)
        self.commands[preset] = {name: re.findall(r'"((?:[^"\\]|\\.)*)"', words) for name, words in found}

    def targets(self, preset: str, tests: Iterable[str]) -> list[str]:
        """What a build must make for these tests: their executables, which depend on what they start; for a script
        everything."""
        programs: set[str] = set()
        for test in tests:
            program = pathlib.Path(self.commands[preset][test][0])
            if not program.is_relative_to(self.build_folder(preset)):
                return ["all"]
            programs.add(str(program.relative_to(self.build_folder(preset))))
        return sorted(programs)

    def build(self, preset: str, tests: Iterable[str]) -> bool:
        """Builds what tests need."""
        where, what = self.build_folder(preset), self.targets(preset, tests)
        return command(["cmake", "--build", where, "-j", str(self.jobs), "--target", *what, "--", "--quiet"], self.log) == 0

    def run(self, preset: str, tests: Iterable[str], timeout: float, jobs: int = 1) -> dict[str, Outcome]:
        """Runs tests."""
        report = self.folder / "report.xml"
        report.unlink(missing_ok=True)
        names = "|".join(re.escape(test) for test in sorted(tests))
        env = {**os.environ, "TSAN_OPTIONS": f"suppressions={self.tree}/tests/tsan.supp halt_on_error=1"}
        which = ["-R", f"^({names})$", "-j", str(jobs), "--timeout", f"{timeout:.0f}"]
        where = self.build_folder(preset)
        command(["ctest", "--test-dir", where, *which, "--output-on-failure", "--output-junit", report], self.log, env)
        if not report.is_file():
            raise Trouble(f"ctest wrote no report:\n{tail(self.log)}")
        found: dict[str, Outcome] = {}
        for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase"):
            status = {"run": "passed", "fail": "failed"}.get(case.get("status", ""), "skipped")
            seconds = float(case.get("time", "0"))
            found[case.get("name", "")] = ("hangs" if status == "failed" and seconds >= timeout else status, seconds)
        return found


# ---- the campaign ----


def check_tests(copy: Copy, preset: str, tests: set[str]) -> dict[str, Outcome]:
    """What tests do without any edit; one that fails has been repeated alone."""
    unknown = [test for test in sorted(tests) if test not in copy.commands[preset]]
    if unknown:
        raise Trouble(f"the {preset} build has no test {', '.join(unknown)}")
    if not copy.build(preset, tests):
        raise Trouble(f"the tree does not build without any edit:\n{tail(copy.log)}")
    found = copy.run(preset, tests, 900, copy.jobs)
    for test in [name for name, (status, _) in found.items() if status in ("failed", "hangs")]:
        found |= copy.run(preset, [test], 900)
    return {test: found.get(test, SKIPPED) for test in tests}


def attempt(copy: Copy, m: Mutation, before: dict[str, Outcome]) -> Result:
    """Makes one edit and runs its tests up to the first that notices. One that fails counts when it fails again, but
    for the thread sanitizer, which speaks of a race when it has seen one."""
    broken = [test for test in m.tests if before[test][0] in ("failed", "hangs")]
    tests = [test for test in m.tests if before[test][0] == "passed"]
    if broken:
        return Result(m.id, "error", note=f"{', '.join(broken)} fails without any edit")
    if not tests:
        return Result(m.id, "error", note=f"{', '.join(m.tests)} is skipped here")
    copy.edit(m)
    if not copy.build(m.preset, tests):
        return Result(m.id, "error", note=f"does not compile:\n{tail(copy.log)}")
    unsteady = ""
    for test in tests:
        timeout = 60 + 10 * before[test][1]
        status = copy.run(m.preset, [test], timeout).get(test, SKIPPED)[0]
        if status == "failed" and m.preset == "release":
            status = copy.run(m.preset, [test], timeout).get(test, SKIPPED)[0]
            unsteady = f"{test} failed once and then did not" if status == "passed" else unsteady
        if status == "hangs":
            return Result(m.id, "killed", test, f"hangs: ended after {timeout:.0f} s")
        if status == "failed":
            return Result(m.id, "killed", test)
    return Result(m.id, "survived", note=unsteady)


def known_results() -> dict[str, Result]:
    """What earlier runs have found out, by key; trouble is tried again."""
    known: dict[str, Result] = {}
    for path in sorted(WORK.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            try:
                result = Result(**json.loads(line))
            except (json.JSONDecodeError, TypeError):
                continue  # cut off by an interruption
            if result.found != "error":
                known[result.key] = result
    return known


def describe(m: Mutation, result: Result) -> str:
    """A line on one result."""
    words = {"killed": f"killed by {result.by}", "survived": "SURVIVED", "error": "ERROR"}[result.found]
    if result.found == "survived" and m.marks:
        words = "survived, as it must: equivalent" if "equivalent" in m.marks else "survived: explained"
    note, _, log = result.note.partition("\n")
    where = f": {m.text} ({m.place})" if result.found != "killed" and not m.marks else ""
    return f"{m.id} {words}{', ' if note else ''}{note} ({result.seconds:.1f} s){where}" + (f"\n{log}" if log else "")


def minutes(seconds: float) -> str:
    """A time to wait, in words."""
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def campaign(chosen: Sequence[Mutation], slot: int, jobs: int, fresh: bool, out: TextIO) -> list[Result]:
    """Tries all that are not known yet; says what is known, then what it finds."""
    become_reaper()
    files = tree_files()
    digest = tree_digest(files)
    copy = Copy(slot, jobs)
    known = {} if fresh else known_results()
    keys = {m.id: key_of(m, digest) for m in chosen}
    todo = [m for m in chosen if keys[m.id] not in known]
    before: dict[str, dict[str, Outcome]] = {}
    copy.update(files)
    for preset in dict.fromkeys(m.preset for m in todo):
        copy.configure(preset)
        before[preset] = check_tests(copy, preset, {test for m in todo if m.preset == preset for test in m.tests})
    states = [status for tests in before.values() for status, _ in tests.values()]
    results = {m.id: known[keys[m.id]] for m in chosen if keys[m.id] in known}
    for m in chosen:
        if m.id in results:
            print(f"[known] {describe(m, results[m.id])}", file=out)
    passed = f"without any edit {states.count('passed')} of their {len(states)} tests pass"
    print(f"mutate: {len(todo)} to try, {len(results)} known; {passed}", file=out, flush=True)
    began = time.monotonic()
    with (WORK / f"{slot}.jsonl").open("a") as kept:
        for i, m in enumerate(todo):
            start = time.monotonic()
            result = attempt(copy, m, before[m.preset])
            result.seconds, result.key = round(time.monotonic() - start, 1), keys[m.id]
            results[m.id] = result
            print(json.dumps(dataclasses.asdict(result)), file=kept, flush=True)
            left = (time.monotonic() - began) / (i + 1) * (len(todo) - i - 1)
            ahead = f", {minutes(left)} left" if left else ""
            print(f"[{i + 1}/{len(todo)}{ahead}] {describe(m, result)}", file=out, flush=True)
    copy.edit(None)
    return [results[m.id] for m in chosen]


def conclude(chosen: Sequence[Mutation], results: Sequence[Result], as_json: bool) -> int:
    """Prints what was found, returns the exit status."""
    survived = [m for m, r in zip(chosen, results, strict=True) if r.found == "survived"]
    errors = [m for m, r in zip(chosen, results, strict=True) if r.found == "error"]
    silent = [m.id for m in survived if not m.marks]
    equivalents = [m for m in survived if "equivalent" in m.marks]
    wrong = [m.id for m, r in zip(chosen, results, strict=True) if "equivalent" in m.marks and r.found == "killed"]
    if as_json:
        rows = [
            {"id": m.id, "file": m.file, "text": m.text, "found": r.found, "by": r.by, "note": r.note, "seconds": r.seconds}
            for m, r in zip(chosen, results, strict=True)
        ]
        print(json.dumps({"mutations": rows, "silent": silent, "not_equivalent": wrong, "errors": [m.id for m in errors]}, indent=1))
    else:
        explained = len(survived) - len(silent) - len(equivalents)
        of_these = f", {len(equivalents)} of these equivalent" * bool(equivalents) + f", {explained} explained" * bool(explained)
        print(f"{len(chosen) - len(survived) - len(errors)} killed, {len(survived)} survived{of_these}, {len(errors)} errors")
        if silent:
            print(f"no test notices: {', '.join(silent)}")
        if wrong:
            print(f"marked as equivalent, but noticed: {', '.join(wrong)}")
    if errors:
        return 2
    return 1 if silent or wrong else 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="tests/mutate.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the defects and stop")
    parser.add_argument("--check", action="store_true", help="only check that every edit applies exactly once")
    parser.add_argument("--only", default="", metavar="ID,LIST,..", help="some of them, by name or by list")
    parser.add_argument("--shard", default="1/1", metavar="I/N", help="every N-th, from the I-th on")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes of a build (default: one a core)")
    parser.add_argument("--fresh", action="store_true", help="try again what is known already")
    parser.add_argument("--json", action="store_true", help="print the results as JSON; progress goes to standard error")
    args = parser.parse_args()
    try:
        mutations = [m for path in sorted(HERE.glob("*.mutations")) for m in read_list(path)]
        wrong = complaints(mutations)
        if wrong:
            print("\n".join(f"mutate: {line}" for line in wrong), file=sys.stderr)
            return 2
        chosen = select(mutations, args.only, args.shard)
        if args.list:
            for m in chosen:
                marks = "".join([f", {m.preset} build" * (m.preset != "release"), *(f", {mark}" for mark in sorted(m.marks))])
                print(f"{m.id:5} {m.file} | {' '.join(m.tests)}{marks}\n      {m.text}")
            return 0
        if args.check:
            print(f"mutate: each of {len(chosen)} edits applies exactly once")
            return 0
        out = sys.stderr if args.json else sys.stdout
        results = campaign(chosen, shard_numbers(args.shard)[0], args.jobs, args.fresh, out)
        return conclude(chosen, results, args.json)
    except Trouble as trouble:
        print(f"mutate: {trouble}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("mutate: interrupted; the same command goes on from here", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
