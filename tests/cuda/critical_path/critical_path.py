#!/usr/bin/env python3
"""Count the critical path of a step and of its adjoint over the lanes of a device, for four models.

    critical_path.py [--build FOLDER] [--lanes N] [--check | --json | --top N | --write PAGE]

Builds program critical_path in FOLDER (build/release), lets sinew-import make the models, and prints the tables of
cuda/MEASURED.md, on a warp and on 8 lanes of one. --write puts them between the marker lines of that page, --json
prints what the program says of each model on N lanes (32), --top the barriers on N lanes with most accesses before
them. --check ends with 1 where a model has more of something than LIMITS: what is gained stays.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "sinew"
MYOSUITE = CACHE / "myosuite-2.12.2/myosuite/envs/myo/assets"
MODELS = {
    "`arm_reach`": ROOT / "physics/models/arm_reach.xml",
    "MyoHand, balls": MYOSUITE / "hand/myohand_baoding.xml",
    "MyoArm relocate": MYOSUITE / "arm/myoarm_relocate.xml",
    "MyoArm table tennis": MYOSUITE / "arm/myoarm_tabletennis.xml",
}
# By lanes and part: phases, accesses on the path and accesses that a warp issues, which are not to be exceeded.
OF = ("phases", "accesses", "issued")
LIMITS = {
    "`arm_reach`": {(32, "step"): (70, 1980, 2070), (32, "adjoint"): (63, 2260, 2500), (8, "step"): (70, 1990, 2080)},
    "MyoHand, balls": {(32, "step"): (175, 8750, 9350), (32, "adjoint"): (92, 7000, 7660), (8, "step"): (255, 16930, 17500)},
    "MyoArm relocate": {(32, "step"): (312, 15750, 16740), (32, "adjoint"): (156, 11500, 12730), (8, "step"): (344, 31240, 32270)},
}
MARKERS = ("<!-- critical path: begin -->", "<!-- critical path: end -->")


def count(build, model, lanes):
    """Return what the program says of a model."""
    with tempfile.TemporaryDirectory() as folder:
        image = f"{folder}/model.sinew"
        subprocess.run([build / "bin/sinew-import", model, "-o", image], check=True, stdout=subprocess.DEVNULL)
        out = subprocess.run([build / "bin/critical_path", image, str(lanes)], check=True, stdout=subprocess.PIPE)
    return json.loads(out.stdout)


def cells(part):
    """Return the cells of a step or of its adjoint."""
    touched = part["touched_bytes"]
    arrays = sum(touched[place] for place in ("world", "adjoint", "model")) / 1024
    return (
        f"{part['phases']:.0f} ({part['phases_with_one_lane']:.0f})",
        f"{part['accesses']:,.0f} ({part['accesses_with_one_lane']:,.0f})",
        f"{part['issued']:,.0f}",
        f"{part['shuffles']:.0f}",
        f"{part['accesses_of_all_lanes']:,.0f}",
        f"{arrays:.0f}",
        f"{part['estimate_us'] / 1e3:.2f}",
    )


def table(counted, few):
    """Return the tables in Markdown: those of a warp, and of the steps of `few` lanes."""
    lines = [
        "| model | of | phases (with one lane) | accesses on the path (with one lane) | issued | shuffles "
        "| of all lanes | touched [KiB] | estimate [ms] |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, all in counted.items():
        what = f"{name}: {all['contacts']:.1f} contacts, {all['rows']:.1f} rows, {all['iterations']:.1f} iterations"
        lines += [f"| {what} | step | " + " | ".join(cells(all["step"])) + " |"]
        lines += ["| | adjoint | " + " | ".join(cells(all["adjoint"])) + " |"]
        lines += ["| | step, 8 lanes | " + " | ".join(cells(few[name]["step"])) + " |"]
    lines += ["", "By stage: accesses on the path, and phases; in brackets what 8 lanes issue.", ""]
    stages = [(part, stage) for part in ("step", "adjoint") for stage in _stages(counted, part)]
    lines += ["| stage | " + " | ".join(counted) + " |", "| --- |" + " --- |" * len(counted)]
    for part, stage in stages:
        row = (_stage_cell(all[part], few[name][part] if part == "step" else None, stage) for name, all in counted.items())
        lines += [f"| {stage} | " + " | ".join(row) + " |"]
    return "\n".join(lines)


def _stage_cell(warp, few, stage):
    none = {"accesses": 0, "phases": 0, "issued": 0}
    on_warp = warp["stages"].get(stage, none)
    text = f"{on_warp['accesses']:,.0f}, {on_warp['phases']:.0f}"
    return text if few is None else f"{text} ({few['stages'].get(stage, none)['issued']:,.0f})"


def _stages(counted, part):
    names = {}
    for all in counted.values():
        names |= dict.fromkeys(all[part]["stages"])
    return [name for name in names if name != "OTHER"]


def barriers(counted, top):
    """Print the barriers of each model with most accesses before them."""
    for name, all in counted.items():
        for part in ("step", "adjoint"):
            found = sorted(all[part]["barriers"].items(), key=lambda barrier: -barrier[1]["accesses"])
            for place, b in found[:top]:
                numbers = ", ".join(f"{b[of]:.1f} {of}" for of in ("accesses", "phases", "shuffles", "lanes"))
                print(f"{name}, {part}: {place}: {numbers}")


def exceeded(name, counted):
    """Print what exceeds the limits of a model; returns whether something does. counted: by lanes."""
    found = False
    for (lanes, part), limits in LIMITS[name].items():
        for of, limit in zip(OF, limits):
            number = counted[lanes][part][of]
            if number > limit:
                print(f"{name}, {part} on {lanes} lanes: {of} {number:.0f}, at most {limit} allowed", file=sys.stderr)
                found = True
    return found


def write(page, text):
    """Put the text between the markers of a page."""
    old = pathlib.Path(page).read_text(encoding="utf-8")
    begin, end = old.index(MARKERS[0]) + len(MARKERS[0]), old.index(MARKERS[1])
    pathlib.Path(page).write_text(old[:begin] + "\n" + text + "\n" + old[end:], encoding="utf-8")


def main():
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", metavar="FOLDER")
    parser.add_argument("--lanes", type=int, default=32, metavar="N")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true")
    what.add_argument("--json", action="store_true")
    what.add_argument("--top", type=int, metavar="N")
    what.add_argument("--write", metavar="PAGE")
    args = parser.parse_args()
    build = ["cmake", "--build", args.build, "--target", "critical_path", "sinew-import", "--", "--quiet"]
    subprocess.run(build, check=True, stdout=sys.stderr)
    models = {name: model for name, model in MODELS.items() if name in LIMITS or not args.check}
    for name in [name for name, model in models.items() if not model.exists()]:
        print(f"skipped: {models.pop(name)} is not there (clients/setup.sh --models)", file=sys.stderr)
    if args.json or args.top:
        counted = {name: count(args.build, model, args.lanes) for name, model in models.items()}
        if args.json:
            print(json.dumps(counted))
        else:
            barriers(counted, args.top)
        return 0
    warp, few = ({name: count(args.build, model, lanes) for name, model in models.items()} for lanes in (32, 8))
    if args.check:
        return 1 if any([exceeded(name, {32: warp[name], 8: few[name]}) for name in models]) else 0
    if args.write:
        write(args.write, table(warp, few))
    else:
        print(table(warp, few))
    return 0


if __name__ == "__main__":
    sys.exit(main())
