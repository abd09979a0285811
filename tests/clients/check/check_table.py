#!/usr/bin/env python3
"""Runs sinew-check on every model of the MyoSuite wheel that MuJoCo loads and prints the result as a Markdown table.

    check_table.py SINEW_CHECK MYOSUITE [--gradient] [--steps N] [--jobs N] [--write PAGE | --page PAGE] [--extra MODEL.xml ...]

MYOSUITE is the folder of the package (clients/scripts/fetch_models.sh prints it). With --gradient the table is that of the
derivatives, of the models that agree without it. With --write the table replaces what stands between the two marker
lines of that page (MODELS.md beside this script; models_page.sh writes all of it). With --page names and verdicts are
compared with those of the page. Exit status: 0 every model agrees, also stage by stage, or is one of refused.txt and refused
with the words there; 1 one differs, crashes, is refused or accepted against that list, is not on the page as it should be,
or the number of models that load is not the known one; 77 the folder is missing.
"""

import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import sys

LOADABLE = 63  # models of MyoSuite 2.12.2 that MuJoCo 4.0.0 loads
OURS = "envs/myo/assets/sinew/"  # of clients/myosuite, put beside those; they count for themselves
REFUSED = pathlib.Path(__file__).with_name("refused.txt")  # NAME: what is not supported, a line each model
MARKERS = "<!-- table of models: begin -->", "<!-- table of models: end -->"
GRADIENT_MARKERS = "<!-- table of gradients: begin -->", "<!-- table of gradients: end -->"


def check(program, model, steps, *flags):
    """The report of sinew-check on one model; verdict "crash" when there is none."""
    try:
        done = subprocess.run(
            [program, str(model), "--json", "--steps", str(steps), *flags], capture_output=True, text=True, timeout=1800, check=False
        )
        report = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, json.JSONDecodeError):
        return {"verdict": "crash", "unsupported": [], "fields": {}}
    expected = {"agrees": 0, "differs": 1, "unsupported": 2, "error": 3, "undecided": 4}[report["verdict"]]
    if done.returncode != expected:
        report["verdict"] = "crash"
    return report


def check_both(program, model, steps):
    """The same, and as "alone" the verdict on every stage by itself, without allowances."""
    report = check(program, model, steps)
    if report["verdict"] in ("agrees", "differs"):
        report["alone"] = check(program, model, steps, "--isolate", "--strict")["verdict"]
    return report


def remark(report):
    """What a reader wants to know beyond the verdict: refusals, or the worst field and how near its tolerance."""
    if report["verdict"] == "unsupported":
        return "; ".join(report["unsupported"])
    fields = report["fields"]
    if report["verdict"] == "differs":
        names = [f"{name} {f['rel']:.1e}" for name, f in fields.items() if not f["agrees"]]
        return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    if report["verdict"] in ("agrees", "undecided"):
        worst = max((f["rel"], name) for name, f in fields.items() if f["tolerance"] > 0)
        ties = f", {report['ties']} ties; {report['tie']}" if report.get("ties") else ""
        return f"largest error {worst[0]:.1e} ({worst[1]}){ties}"
    return report.get("error", "no report")


def table(rows, steps):
    lines = [
        f"{sum(r['verdict'] == 'agrees' for _, r in rows)} agree, "
        f"{sum(r['verdict'] == 'unsupported' for _, r in rows)} are refused by name, "
        f"{sum(r['verdict'] not in ('agrees', 'unsupported') for _, r in rows)} differ or fail, in {steps} steps each "
        "(loose: steps with contacts of polyhedra or cylinder edges; noisy: steps at which a field exceeds its tolerance "
        "by no more than ten times what MuJoCo's own value changes by when its state moves by rounding; stages alone: each "
        "on MuJoCo's values of the others, no allowance for noise).",
        "",
        "| model | verdict | loose | noisy | stages alone | remark |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, r in rows:
        verdict = "refused" if r["verdict"] == "unsupported" else r["verdict"]
        loose, noisy = (r.get("loose_steps", ""), r.get("noisy_steps", "")) if r["fields"] else ("", "")
        lines.append(f"| {name} | {verdict} | {loose} | {noisy} | {r.get('alone', '')} | {remark(r)} |")
    return "\n".join(lines)


def check_gradient(program, model, steps):
    """The report with derivatives; as "alone" whether all but them agrees."""
    report = check(program, model, steps, "--gradient")
    if "gradient" in report:
        report["alone"] = "agrees" if all(f["agrees"] for f in report["fields"].values()) else "differs"
        report["fields"] = {name: f for name, f in report["fields"].items() if not f["agrees"]}
    return report


def gradient_table(rows, steps):
    rows = [(name, r) for name, r in rows if r["verdict"] != "unsupported"]
    lines = [
        f"{sum(r['verdict'] == 'agrees' for _, r in rows)} of {len(rows)} supported models agree, in {steps} steps each "
        "(A, B: Jacobians of a step against MuJoCo's central differences, median and largest error of the steps; rollout: "
        "largest error along 8 directions against central differences of our rollout; skipped: steps and directions at "
        "which differences with 1e-6 and 1e-5 disagree by more than 1e-6, but for the curved ones, which do so as those of "
        "a smooth function and are compared).",
        "",
        "| model | verdict | A median | A largest | B median | B largest | skipped | rollout | skipped |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, r in rows:
        if "gradient" not in r:
            lines.append(f"| {name} | {r['verdict']} |  |  |  |  |  |  | {r.get('error', '')} |")
            continue
        g = r["gradient"]
        figures = [g[x][y] for x in "AB" for y in ("median", "max")]
        cells = [r["verdict"]] + [f"{x:.1e}" if x is not None else "NaN" for x in figures]
        curved = f", {g['steps_curved']} curved" if g["steps_curved"] else ""
        cells += [f"{g['steps_skipped']} of {g['steps_compared'] + g['steps_skipped']}{curved}"]
        worst = g["rollout"]["max"]
        cells += [f"{worst:.1e}" if worst is not None else "NaN"]
        cells += [f"{g['rollout']['skipped']} of {g['rollout']['compared'] + g['rollout']['skipped']}"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def refusals(rows, known_file, words):
    """Where what is refused, and with which words (of a report), is not as the file says: a line each."""
    known = dict(line.split(": ", 1) for line in known_file.read_text(encoding="utf-8").splitlines())
    now = {name: words(r) for name, r in rows if r["verdict"] == "unsupported"}
    return [
        f"{name}: refused: {now.get(name, 'no')}; in {known_file.name}: {known.get(name, 'no')}"
        for name in sorted(known.keys() | now.keys())
        if known.get(name) != now.get(name)
    ]


def between(page, markers):
    """Where what stands between the two marker lines of a page begins and ends."""
    return page.index(markers[0]) + len(markers[0]), page.index(markers[1])


def stale(path, markers, text):
    """Where names and verdicts of a page's table are not those of this one, a line each.

    A page may have other models besides, and fewer steps than its own may leave undecided what agrees there.
    """

    def verdicts(table):
        cells = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")]
        return {c[0].removeprefix("| "): c[1] for c in cells[2:]}

    page = pathlib.Path(path).read_text(encoding="utf-8")
    begin, end = between(page, markers)
    kept, now = verdicts(page[begin:end]), verdicts(text)
    names = now.keys() | {name for name in kept if name.startswith(("envs/", "simhive/"))}
    return [
        f"{name}: {now.get(name, 'no such model')}; in {pathlib.Path(path).name}: {kept.get(name, 'no such model')}"
        for name in sorted(names)
        if kept.get(name) != now.get(name) and not (now.get(name) == "undecided" and kept.get(name) == "agrees")
    ]


def write(path, markers, text):
    page = pathlib.Path(path).read_text(encoding="utf-8")
    begin, end = between(page, markers)
    pathlib.Path(path).write_text(page[:begin] + "\n" + text + "\n" + page[end:], encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--gradient", action="store_true")
    parser.add_argument("--steps", type=int, help="default 256, with --gradient 64")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", metavar="PAGE")
    parser.add_argument("--page", metavar="PAGE")
    parser.add_argument("--extra", nargs="*", type=pathlib.Path, default=[])
    args = parser.parse_args()
    steps = args.steps or (64 if args.gradient else 256)
    run = check_gradient if args.gradient else check_both

    if not args.folder.is_dir():
        print(f"{args.folder} is missing: clients/scripts/fetch_models.sh fetches it", file=sys.stderr)
        return 77
    models = sorted(args.folder.rglob("*.xml"))
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        reports = list(pool.map(lambda m: run(args.program, m, steps), models + args.extra))
    rows = [
        (str(m.relative_to(args.folder) if m.is_relative_to(args.folder) else pathlib.Path(*m.parts[-2:])), r)
        for m, r in zip(models + args.extra, reports)
        if r["verdict"] != "error" or m in args.extra
    ]
    text = (gradient_table if args.gradient else table)(rows, steps)
    markers = GRADIENT_MARKERS if args.gradient else MARKERS
    print(text)
    if args.write:
        write(args.write, markers, text)

    loaded = len(rows) - len(args.extra) - sum(name.startswith(OURS) for name, _ in rows)
    if loaded != LOADABLE:
        print(f"{loaded} models load, {LOADABLE} are expected", file=sys.stderr)
    good = ("agrees", "unsupported", "undecided") if args.page else ("agrees", "unsupported")
    bad = [name for name, r in rows if r["verdict"] not in good or r.get("alone", "agrees") != "agrees"]
    bad += refusals(rows, REFUSED, remark)
    bad += stale(args.page, markers, text) if args.page else []
    for name in bad:
        print(f"not as it should be: {name}", file=sys.stderr)
    return 1 if bad or loaded != LOADABLE else 0


if __name__ == "__main__":
    sys.exit(main())
