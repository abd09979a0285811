#!/usr/bin/env python3
"""Damages models and gives them to sinew-import: each one ends in words or in a model, in time.

  tests/fuzz/mutate_mjcf.py BIN [--files N] [--seed S] [--first I] [--seconds S] [--keep FOLDER] [--json FILE]
                            [--models FOLDER]... [--daemon]

BIN is the folder of the programs. Models are those below physics/models, what clients/setup.sh has fetched, and
the folders that --models names. File number I of a seed is always the same, so `--seed S --first I --files 1` makes one again.
--daemon has every 20th file loaded by a sinewd, too, which must go on to answer.

An import fails the test when it takes longer than 30 s, ends by a signal, without words, or with a status that
sinew-import does not have; then the file is kept. Exit status: 0, 1 when there was one. A crash of MuJoCo's compiler
that is told in words is none; they are counted.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 30.0  # for an import, by the clock [s]
OWN_LIMITS = ["--seconds", "20", "--memory", "2048"]
OUTCOME = {0: "a model", 2: "not supported", 3: "cannot be loaded", 4: "a limit"}

NUMBERS = ["0", "-1", "1e-300", "1e308", "-1e308", "nan", "inf", "-inf", "2147483648", "-2147483649", "1e10", "0x1p3"]
NUMBERS += ["", "1 2 3", "1e999999", "x"]
WORDS = [
    "",
    "world",
    "nothere",
    "a" * 5000,
    "../../../etc/passwd",
    "/dev/zero",
    "/proc/self/mem",
    "%s%n",
    "é\u202e",
    "\t",
]
ELEMENTS = [
    '<body><freejoint/><geom size=".1"/></body>',
    '<geom type="mesh" mesh="nothere"/>',
    '<site size="0"/>',
    '<joint type="ball" range="0 -1" limited="true"/>',
    '<include file="model.xml"/>',
    '<replicate count="100000"><geom size=".1"/></replicate>',
    '<composite type="cable" count="100000 1 1"/>',
    '<flexcomp name="f" type="grid" count="200 200 200"/>',
    '<hfield name="h" nrow="30000" ncol="30000" size="1 1 1 1"/>',
    '<texture type="2d" builtin="flat" width="100000" height="100000"/>',
    '<mesh name="m" vertex="0 0 0 1 0 0 0 1 0"/>',
    '<mesh name="n" vertex="0 0 0 1 0 0 0 1 0 nan 0 1"/>',
    '<size memory="100G"/>',
    '<plugin plugin="mujoco.nothere"/>',
    '<attach model="nothere" prefix="a"/>',
    "<key qpos='1 2 3'/>",
    "<!DOCTYPE a [<!ENTITY b 'c'>]>",
]

Rng = random.Random


def change_number(text: str, rng: Rng) -> str:
    """Put another number in the place of one."""
    found = list(re.finditer(r"-?\d+\.?\d*(?:e-?\d+)?", text))
    if not found:
        return text
    m = rng.choice(found)
    new = rng.choice(NUMBERS) if rng.random() < 0.7 else str(float(m.group()) * rng.choice([-1, 0, 1e3, 1e-6]))
    return text[: m.start()] + new + text[m.end() :]


def change_word(text: str, rng: Rng) -> str:
    """Put another value in the place of an attribute's, of another attribute most often."""
    found = list(re.finditer(r'="([^"]*)"', text))
    if not found:
        return text
    m = rng.choice(found)
    new = rng.choice(found).group(1) if rng.random() < 0.7 else rng.choice(WORDS)
    return text[: m.start(1)] + new + text[m.end(1) :]


def rename(text: str, rng: Rng) -> str:
    """Give an attribute or an element the name of another one."""
    found = list(re.finditer(r"(?<=[\s<])[a-z]{3,}(?=[\s=/>])", text))
    if not found:
        return text
    m = rng.choice(found)
    return text[: m.start()] + rng.choice(found).group() + text[m.end() :]


def _elements(text: str) -> list[re.Match[str]]:
    return list(re.finditer(r"<[a-z][^<>]*/>", text))


def move_element(text: str, rng: Rng) -> str:
    """Leave an element out, or put a copy of it somewhere."""
    found = _elements(text)
    if not found:
        return text
    m = rng.choice(found)
    if rng.random() < 0.4:
        return text[: m.start()] + text[m.end() :]
    at = rng.choice(found).end()
    return text[:at] + m.group() * rng.choice([1, 1, 2, 50]) + text[at:]


def add_element(text: str, rng: Rng) -> str:
    """Add an element that makes trouble."""
    found = list(re.finditer(r">", text))
    at = rng.choice(found).end() if found else 0
    return text[:at] + rng.choice(ELEMENTS) + text[at:]


def nest(text: str, rng: Rng) -> str:
    """Put bodies into each other, thousands deep."""
    deep = rng.choice([50, 1000, 20000])
    at = text.find("<worldbody>") + len("<worldbody>")
    return text[:at] + '<body><geom size=".1"/>' * deep + "</body>" * deep + text[at:]


def change_bytes(text: str, rng: Rng) -> str:
    """Change letters, leave some out, or cut the end off."""
    at, run = rng.randrange(len(text) + 1), rng.randint(1, 40)
    match rng.randrange(4):
        case 0:
            return text[:at] + chr(rng.randrange(256)) + text[at + 1 :]
        case 1:
            return text[:at] + text[at + run :]
        case 2:
            return text[:at] + text[at : at + run] * 3 + text[at + run :]
        case _:
            return text[:at]


CHANGES: list[tuple[int, Callable[[str, Rng], str]]] = [
    (8, change_number),
    (5, change_word),
    (3, rename),
    (4, move_element),
    (2, add_element),
    (1, change_bytes),
]


def damaged(text: str, rng: Rng) -> str:
    """Return the text with one change or a few."""
    weights, changes = zip(*CHANGES, strict=True)
    for change in rng.choices(changes, weights, k=rng.choice([1, 1, 1, 2, 3, 6])):
        text = change(text, rng)
    return nest(text, rng) if rng.random() < 0.005 else text


def sources(more: Sequence[str]) -> list[Path]:
    """Return all models, in an order that does not depend on the machine."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "sinew"
    folders = [
        ROOT / "physics/models",
        *(cache / name for name in ("myosuite-2.12.2", "mujoco-core-4.0.0")),
        *map(Path, more),
    ]
    found = [path for folder in folders for path in sorted(folder.rglob("*.xml")) if path.stat().st_size < 400000]
    return [path for path in found if re.search(r"<mujoco[\s>]", path.read_text(errors="replace"))]


def judge(done: subprocess.CompletedProcess[bytes] | None, image: Path) -> tuple[str, bool]:
    """Return how an import ended, in words, and whether it may end so."""
    if done is None:
        return f"longer than {LIMIT:g} s", False
    said = done.stderr.decode(errors="replace")
    if done.returncode not in OUTCOME:
        return f"status {done.returncode}", False
    if done.returncode == 0:
        return ("a model", True) if image.read_bytes()[:8] == b"SINEWMDL" else ("no image", False)
    words = [line for line in said.splitlines() if line.strip() and not line.startswith("warning: ")]
    if not words:
        return "no words", False
    crash = re.search(r"(?:crashed|gave up on this file) by signal (\d+)", said)
    return f"signal {crash.group(1)}, told" if crash else OUTCOME[done.returncode], True


@contextmanager
def daemon(binaries: Path, work: Path) -> Iterator[Callable[[str], str]]:
    """Run a sinewd on the folder work/models; give what asks it to load a model and says how it is after that."""
    endpoint = f"ipc://{work}/s"
    (work / "models").mkdir()
    options = [
        f"--endpoint={endpoint}",
        f"--models={work}/models",
        f"--cache={work}/cache",
        "--telemetry=none",
        "--records=none",
    ]
    with (work / "log").open("wb") as log:
        process = subprocess.Popen([binaries / "sinewd", *options, "--import-seconds=20"], stderr=log)

    def ask(*words: str) -> subprocess.CompletedProcess[str]:
        command = [binaries / "sinewctl", "--endpoint", endpoint, "--timeout", "60", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def load(name: str) -> str:
        loaded = ask("load", name)
        if process.poll() is not None or ask("health").returncode != 0:
            return "THE DAEMON IS GONE"
        return (
            "daemon: loaded"
            if loaded.returncode == 0
            else "daemon: refused"
            if loaded.stderr.strip()
            else "daemon: NO WORDS"
        )

    try:
        yield load
    finally:
        process.terminate()
        process.wait()


def main() -> int:
    """Run the program; return its exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("bin", type=Path)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--seed", type=int, default=20260711)
    parser.add_argument("--first", type=int, default=0, help="number of the first file")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--keep", type=Path, help="folder for files that fail")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--models", action="append", default=[], metavar="FOLDER")
    parser.add_argument("--daemon", action="store_true")
    options = parser.parse_args()
    models, ends, slowest, bad = sources(options.models), Counter[str](), 0.0, 0
    began, last = time.monotonic(), options.first
    print(f"seed {options.seed}, {len(models)} models", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        path, image = work / "model.xml", work / "image"

        def one(number: int, load: Callable[[str], str] | None) -> None:
            nonlocal bad, slowest
            rng = random.Random(f"{options.seed}:{number}")
            source = rng.choice(models)
            path.write_text(damaged(source.read_text(errors="replace"), rng), errors="surrogateescape")
            image.unlink(missing_ok=True)
            command = [options.bin / "sinew-import", path, f"--folder={source.parent}", "--output", image, *OWN_LIMITS]
            before = time.monotonic()
            try:
                done = subprocess.run(
                    command, capture_output=True, timeout=LIMIT, stdin=subprocess.DEVNULL, check=False
                )
            except subprocess.TimeoutExpired:
                done = None
            slowest = max(slowest, time.monotonic() - before)
            found = [judge(done, image)]
            if load and number % 20 == 0:
                (work / "models" / f"m{number}.xml").write_bytes(path.read_bytes())
                end = load(f"m{number}.xml")
                found.append((end, not end.isupper() and "NO WORDS" not in end))
            for end, good in found:
                ends[end] += 1
                bad += not good
                if not good:
                    print(f"file {number}, from {source}: {end}: {done.stderr[-400:] if done else b''!r}", flush=True)
                if not good and options.keep:
                    (options.keep / f"{options.seed}-{number}.xml").write_bytes(path.read_bytes())

        def all_files(load: Callable[[str], str] | None) -> None:
            nonlocal last
            while last < options.first + options.files and time.monotonic() - began < options.seconds:
                one(last, load)
                last += 1

        if options.daemon:
            with daemon(options.bin, work) as load:
                all_files(load)
        else:
            all_files(None)
    counts = dict(ends.most_common())
    if options.json:
        result = {
            "seed": options.seed,
            "first": options.first,
            "files": last - options.first,
            "bad": bad,
            "slowest": slowest,
        }
        options.json.write_text(json.dumps(result | {"ends": counts}, indent=1) + "\n")
    text = ", ".join(f"{count} {end}" for end, count in counts.items())
    print(f"{last - options.first} files in {time.monotonic() - began:.0f} s, the slowest took {slowest:.1f} s: {text}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
