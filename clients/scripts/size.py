#!/usr/bin/env python3
"""Measures a step beside MuJoCo's over the size of a model: bodies, contacts, free bodies, vertices of meshes.

    clients/scripts/size.py [--runs N] [--bench PROGRAM] [--picture PICTURE.svg]

Prints a Markdown table, that of physics/SPEED.md, and draws the picture beside it (physics/size.svg). Each figure is the
least of N runs of sinew-bench (default 7), ours and MuJoCo's in turn. Needs a release build and gnuplot.
"""

import argparse
import json
import math
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEAD = '<mujoco><option timestep="0.002"/>'
FLOOR = '<worldbody><geom type="plane" size="50 50 1"/>'


def spread(n, step):
    """Places of n bodies on a square grid."""
    side = math.ceil(math.sqrt(n))
    return [(step * (i % side), step * (i // side)) for i in range(n)]


def slides(n, geoms):
    """n bodies beside each other that slide up and down on a floor, each with these geoms."""
    bodies = (f'<body pos="{x:g} {y:g} .049"><joint type="slide" axis="0 0 1"/>{geoms}</body>' for x, y in spread(n, 0.3))
    return f"{HEAD}{FLOOR}{''.join(bodies)}</worldbody></mujoco>"


def spheres(n):
    """n bodies of two spheres: two contacts each."""
    return slides(n, '<geom size=".05"/><geom size=".05" pos=".11 0 0"/>')


def asleep(n):
    """The same, all asleep from the start."""
    flag = HEAD.replace("/>", '><flag sleep="enable"/></option>')
    return spheres(n).replace(HEAD, flag).replace(" .049\">", ' .049" sleep="init">')


def boxes(n):
    """n bodies of two boxes: eight contacts each."""
    return slides(n, '<geom type="box" size=".05 .05 .05"/><geom type="box" size=".05 .05 .05" pos=".11 0 0"/>')


def heap(n):
    """n free spheres that touch each other in a cube."""
    side = math.ceil(n ** (1 / 3) - 1e-9)
    at = [(0.0995 * (i % side), 0.0995 * (i // side % side), 0.0495 + 0.0995 * (i // side**2)) for i in range(n)]
    bodies = (f'<body pos="{x:g} {y:g} {z:g}"><freejoint/><geom size=".05"/></body>' for x, y, z in at)
    return f"{HEAD}{FLOOR}{''.join(bodies)}</worldbody></mujoco>"


def meshes(n):
    """Eight free balls of n vertices that touch each other and the floor."""
    points = []
    for i in range(n):
        z, turn = 1 - (2 * i + 1) / n, 2.399963 * i
        across = 0.1 * math.sqrt(1 - z * z)
        points.append(f"{across * math.cos(turn):.6g} {across * math.sin(turn):.6g} {0.1 * z:.6g}")
    at = [(0.19 * (i % 2), 0.19 * (i // 2 % 2), 0.098 + 0.19 * (i // 4)) for i in range(8)]
    bodies = (f'<body pos="{x:g} {y:g} {z:g}"><freejoint/><geom type="mesh" mesh="m"/></body>' for x, y, z in at)
    asset = f'<asset><mesh name="m" vertex="{" ".join(points)}"/></asset>'
    return f"{HEAD}{asset}{FLOOR}{''.join(bodies)}</worldbody></mujoco>"


KINDS = (
    ("bodies of two spheres on a floor", spheres, (10, 30, 100, 300, 1000)),
    ("bodies of two boxes on a floor", boxes, (10, 30, 100, 300, 700)),
    ("free spheres in a heap", heap, (8, 27, 64, 125)),
    ("vertices of each of eight meshes", meshes, (100, 1000, 10000, 100000)),
    # The picture has the four above.
    ("bodies of two spheres asleep on a floor", asleep, (10, 30, 100, 300, 1000)),
)


def measure(bench, model, runs):
    """The least time of a step, ours and MuJoCo's [us], and the mean number of contacts."""
    command = [bench, "step", "--model", str(model), "--steps", "20", "--rounds", "3", "--json"]
    done = [json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(runs)]
    profile = json.loads(subprocess.run([*command, "--profile"], capture_output=True, text=True, check=True).stdout)
    return min(x["sinew_us"] for x in done), min(x["mujoco_us"] for x in done), profile["contacts"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--bench", default=str(ROOT / "build/release/bin/sinew-bench"))
    parser.add_argument("--picture", default=str(ROOT / "physics/size.svg"))
    args = parser.parse_args()
    print("| model | size | contacts | a step [us] | MuJoCo's [us] | ratio |\n| --- | --- | --- | --- | --- | --- |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder) / "size.dat"
        with data.open("w", encoding="utf-8") as out:
            for name, make, sizes in KINDS:
                print(f'"{name}"', file=out)
                for n in sizes:
                    model = pathlib.Path(folder) / "model.xml"
                    model.write_text(make(n), encoding="utf-8")
                    ours, theirs, touching = measure(args.bench, model, args.runs)
                    print(f"| {name} | {n} | {touching:.0f} | {ours:.3g} | {theirs:.3g} | {ours / theirs:.2f} |", flush=True)
                    print(n, ours, theirs, file=out)
                print("\n", file=out)
        subprocess.run(["gnuplot", "-c", str(ROOT / "clients/scripts/size.gp"), str(data), args.picture], check=True)


if __name__ == "__main__":
    main()
