#!/usr/bin/env python3
"""Runs sinew-check on every MJCF file of four Python packages that MuJoCo loads, models that nobody made for us, and
prints the result by package as a Markdown table, then by name what is not supported, what differs and what has ties.

    check_wheels.py SINEW_CHECK [--wheels NAME ...] [--steps N] [--jobs N] [--json] [--write PAGE]

The packages are fetched from PyPI as clients/setup.sh does it: pinned, unpacked into its cache folder, never imported; all
four are 240 MB. The short form is `--wheels gymnasium --steps 24`: half a megabyte, some seconds. With --json the reports
of sinew-check are printed instead, a list. With --write the table replaces what stands between the two marker lines of
that file. Exit status: 0 every model agrees, or is one of refused_wheels.txt and refused with the words there; 1 one
differs, is undecided, crashes, is refused or accepted against that list, or the number of files that load is not the known
one; 77 a package cannot be fetched.
"""

import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import sys

import check_table

SETUP = pathlib.Path(__file__).parents[3] / "clients" / "setup.sh"
WHEELS = {  # version, SHA-256, files that MuJoCo 4.0.0 loads
    "dm_control": ("1.0.50", "5434e1e51ff69016867426da7df6064b18d140e4d0a628f879bbcf0e7d0a586d", 55),
    "gymnasium": ("1.4.0", "1cb947c59e7c72d8eabb2c2274c00cd20948e69f8452a9ef4092223be24fdf0e", 14),
    "gymnasium_robotics": ("1.4.2", "a1743530431cb377e6b3b956d284bc96436fc68bac1648ef205054c178e7dc4b", 33),
    "robosuite": ("1.5.2", "b9e02df55de8949739de6ba1d196d2ba59cf33c51a76efcfbe5c2f73cdcf99ce", 52),
}
REFUSED = pathlib.Path(__file__).with_name("refused_wheels.txt")  # NAME: what is not supported, a line each model
MARKERS = "<!-- table of wheels: begin -->", "<!-- table of wheels: end -->"


def fetch(name):
    """The folder of an unpacked package, fetched where it is missing; None when that fails."""
    version, sha, _ = WHEELS[name]
    script = f'. "{SETUP}" && sinew_wheel "$@" >&2 && echo "$SINEW_CACHE/$1-$2"'
    done = subprocess.run(["bash", "-c", script, "-", name, version, sha], stdout=subprocess.PIPE, text=True, check=False)
    return pathlib.Path(done.stdout.strip()) if done.returncode == 0 else None


def check(program, folder, path, steps):
    """The report of sinew-check on one file, under the name that it has in its package."""
    report = check_table.check(program, path, steps)
    report["model"] = str(path.relative_to(folder))
    return report


def short(report):
    """The remark of the other table, cut: an arm may be refused for each of its geoms."""
    lines = report.get("unsupported", [])
    if report["verdict"] == "unsupported" and len(lines) > 3:
        return f"{lines[0]}; and {len(lines) - 1} more"
    return check_table.remark(report)


def table(wheels, steps):
    kinds = ("agrees", "unsupported", "differs")
    lines = [
        f"In {steps} steps each. Files that MuJoCo does not load are parts of others, or tests of what happens then.",
        "",
        "| package | files | loaded by MuJoCo | agree | not supported | differ |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    total = [0] * 5
    for name, reports in wheels.items():
        verdicts = [r["verdict"] for r in reports]
        cells = [len(verdicts), len(verdicts) - verdicts.count("error"), *(verdicts.count(kind) for kind in kinds)]
        total = [a + b for a, b in zip(total, cells)]
        lines.append(f"| {name} {WHEELS[name][0]} | {' | '.join(map(str, cells))} |")
    lines.append(f"| all | {' | '.join(map(str, total))} |")
    reports = [r for list_ in wheels.values() for r in list_]
    titles = {"differs": "Differ:", "undecided": "Undecided:", "crash": "Crash:", "unsupported": "Not supported:"}
    for verdict, title in titles.items():
        rows = [r for r in reports if r["verdict"] == verdict]
        lines += ["", title, ""] if rows else []
        lines += [f"- {r['model']}: {short(r)}" for r in rows]
    ties = [f"- {r['model']}: {r['ties']}, first: {r['tie']}" for r in reports if r["verdict"] == "agrees" and r.get("ties")]
    lines += ["", "Steps at which rounding decides, of models that agree:", "", *ties] if ties else []
    asked = [f"{r['model']} ({r['solver_of_model']})" for r in reports if r.get("solver_of_model", "Newton") != "Newton"]
    lines += ["", "Ask for another solver than Newton: " + ", ".join(asked) + "."] if asked else []
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--wheels", nargs="+", choices=WHEELS, default=list(WHEELS))
    parser.add_argument("--steps", type=int, default=256)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", metavar="PAGE")
    args = parser.parse_args()

    folders = {name: fetch(name) for name in args.wheels}
    if None in folders.values():
        return 77
    wheels = {}
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for name, folder in folders.items():
            models = sorted(folder.rglob("*.xml"))
            wheels[name] = list(pool.map(lambda m, f=folder: check(args.program, f, m, args.steps), models))
    text = table(wheels, args.steps)
    print(json.dumps([r for reports in wheels.values() for r in reports], indent=1) if args.json else text)
    if args.write:
        check_table.write(args.write, MARKERS, text)

    bad = []
    for name, reports in wheels.items():
        loaded = sum(r["verdict"] != "error" for r in reports)
        if loaded != WHEELS[name][2]:
            bad.append(f"{name}: {loaded} files load, {WHEELS[name][2]} are expected")
        bad += [r["model"] for r in reports if r["verdict"] in ("crash", "differs", "undecided")]
    rows = [(r["model"], r) for reports in wheels.values() for r in reports]
    wrong = check_table.refusals(rows, REFUSED, short)
    bad += [line for line in wrong if line.split("/")[0] in wheels]
    for name in bad:
        print(f"not as it should be: {name}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
