#!/usr/bin/env python3
"""Draws what tests/device.sh has measured: a device beside the CPU over how many there are at once.

    clients/scripts/device.py RESULTS PICTURE.svg

RESULTS is the folder of the results, or the archive of it. Needs gnuplot. Panels without results stay empty.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator

HERE = pathlib.Path(__file__).resolve().parent
Line = tuple[str, list[tuple[float, float]]]


def records(folder: pathlib.Path, name: str) -> Iterator[dict]:
    """Return the documents of a part, one a line of its file; none where it did not run."""
    path = folder / f"{name}.jsonl"
    if path.exists():
        yield from (json.loads(line) for line in path.read_text().splitlines() if line.strip())


def short(x: dict) -> str:
    """Return the name of a result's model."""
    return pathlib.Path(x["model"]).stem.replace("_", " ")


def side(x: dict) -> str:
    """Return the name of the side that a result is of: a device's, or the CPU with its threads."""
    return x["backend"] if x["backend"] != "cpu" else x["device"].split(", ")[-1]


def steps(folder: pathlib.Path) -> list[Line]:
    """Return steps per second over worlds."""
    return [
        (f"{short(x)}, {side(x)}", [(row["worlds"], row["steps_per_s"]) for row in x["rows"]])
        for x in records(folder, "step")
    ]


def gradients(folder: pathlib.Path) -> list[Line]:
    """Return gradients per second over their number, by method."""
    lines = []
    for x in records(folder, "gradient"):
        rows = x.get("items", [])
        for method in sorted({row["method"] for row in rows}):
            points = [(row["items"], 1e3 / row["ms_an_item"]) for row in rows if row["method"] == method]
            lines.append((f"{side(x)}, {method}", points))
    return lines


def wins(folder: pathlib.Path) -> list[Line]:
    """Return how many times faster than all threads of the CPU the device is, over how many at once."""
    return [
        (
            f"{short(x)}, {kind['what']}",
            [(row["count"], row["cpu_seconds"][-1] / row["device_seconds"]) for row in kind["rows"]],
        )
        for x in records(folder, "wins")
        for kind in x["measured"]
    ]


def shapes(folder: pathlib.Path) -> list[Line]:
    """Return steps per second of the most worlds over the threads of a block, by registers."""
    found: dict[str, list[tuple[float, float]]] = {}
    for x in records(folder, "shapes"):
        best = max(x["rows"], key=lambda row: row["worlds"])
        found.setdefault(x["library"], []).append((x["block_threads"], best["steps_per_s"]))
    return [(name, sorted(points)) for name, points in found.items()]


PANELS = (steps, gradients, wins, shapes)


def write(lines: list[Line], path: pathlib.Path) -> int:
    """Write a panel's data, a block for each line: its name, then its points. Return the number of lines."""
    kept = [(name, points) for name, points in lines if points]
    blocks = ['"{}"\n{}\n'.format(name, "\n".join(f"{x:g} {y:g}" for x, y in points)) for name, points in kept]
    path.write_text("\n\n".join(blocks) or '"no results"\n')
    return len(kept)


def draw(folder: pathlib.Path, picture: pathlib.Path, work: pathlib.Path) -> None:
    """Draw the results of a folder."""
    counts = [write(lines(folder), work / f"{i}.dat") for i, lines in enumerate(PANELS)]
    script = str(HERE / "device.gp")
    subprocess.run(["gnuplot", "-c", script, str(picture), str(work), " ".join(map(str, counts))], check=True)


def main() -> int:
    """Read the arguments and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("picture", type=pathlib.Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        folder = args.results
        if folder.is_file():
            with tarfile.open(folder) as archive:
                archive.extractall(work / "results", filter="data")
            folder = next((work / "results").iterdir())
        if not any(folder.glob("*.jsonl")):
            print(f"{args.results}: no results are there", file=sys.stderr)
            return 1
        draw(folder, args.picture, work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
