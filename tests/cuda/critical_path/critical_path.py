#!/usr/bin/env python3
"""Count the critical path of a step and of its adjoint over the lanes of a device, for four models.

    critical_path.py [--build FOLDER] [--lanes N] [--check] [--json | --top N | --write PAGE]

Builds program critical_path in FOLDER (build/release), lets sinew-import make the models, and prints the table of
cuda/MEASURED.md. --write puts it between the marker lines of that page, --json prints what the program says of each
model, --top the barriers with most accesses before them. --check ends with 1 where a model has more phases or accesses than LIMITS: what is gained stays.
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
# Phases and accesses of a step and of its adjoint that are not to be exceeded, on 32 lanes.
LIMITS = {
    "`arm_reach`": (69, 2010, 62, 2340),
    "MyoHand, balls": (175, 9000, 91, 7600),
    "MyoArm relocate": (312, 16900, 156, 12500),
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
        f"{part['shuffles']:.0f}",
        f"{part['accesses_of_all_lanes']:,.0f}",
        f"{arrays:.0f}",
        f"{part['estimate_us'] / 1e3:.2f}",
    )


def table(counted):
    """Return the table in Markdown."""
    lines = [
        "| model | of | phases (with one lane) | accesses on the path (with one lane) | shuffles "
        "| of all lanes | touched [KiB] | estimate [ms] |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, all in counted.items():
        what = f"{name}: {all['contacts']:.1f} contacts, {all['rows']:.1f} rows, {all['iterations']:.1f} iterations"
        lines += [f"| {what} | step | " + " | ".join(cells(all["step"])) + " |"]
        lines += ["| | adjoint | " + " | ".join(cells(all["adjoint"])) + " |"]
    lines += ["", "Accesses on the path by stage, and phases:", ""]
    stages = [(part, stage) for part in ("step", "adjoint") for stage in _stages(counted, part)]
    lines += ["| stage | " + " | ".join(counted) + " |", "| --- |" + " --- |" * len(counted)]
    for part, stage in stages:
        row = (all[part]["stages"].get(stage, {"accesses": 0, "phases": 0}) for all in counted.values())
        lines += [f"| {stage} | " + " | ".join(f"{s['accesses']:,.0f}, {s['phases']:.0f}" for s in row) + " |"]
    return "\n".join(lines)


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


def exceeded(counted):
    """Print what exceeds its limit; returns whether something does."""
    found = False
    for name, limits in LIMITS.items():
        if name not in counted:
            continue
        parts = counted[name]["step"], counted[name]["adjoint"]
        numbers = [part[of] for part in parts for of in ("phases", "accesses")]
        for of, number, limit in zip(("phases", "accesses", "adjoint's phases", "adjoint's accesses"), numbers, limits):
            if number > limit:
                print(f"{name}: {of} {number:.0f}, at most {limit} are allowed", file=sys.stderr)
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
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--top", type=int, metavar="N")
    parser.add_argument("--write", metavar="PAGE")
    args = parser.parse_args()
    build = ["cmake", "--build", args.build, "--target", "critical_path", "sinew-import", "--", "--quiet"]
    subprocess.run(build, check=True, stdout=sys.stderr)
    counted = {}
    for name, model in MODELS.items():
        if model.exists():
            counted[name] = count(args.build, model, args.lanes)
        else:
            print(f"skipped: {model} is not there (clients/setup.sh --models)", file=sys.stderr)
    if args.json:
        print(json.dumps(counted))
    elif args.top:
        barriers(counted, args.top)
    elif args.write:
        write(args.write, table(counted))
    else:
        print(table(counted))
    return 1 if args.check and exceeded(counted) else 0


if __name__ == "__main__":
    sys.exit(main())
