"""Checks of the engine with random models.

Each seed gives a model. Its steps, and their Jacobians, are compared with MuJoCo's by `sinew-check`; its derivatives by
initial states, controls and every array of the model with differences of its own motions, of all states and of each
sensor. The cost of a random task is compared with what MuJoCo's numbers make of its terms, and its gradients with
differences. What differs is printed with the seed, and the same seed makes it again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from random_models.beside import Report, compare_steps
from random_models.generate import random_model

EXAMPLE = """examples:
  tests/random_models.sh --seeds 0:400               400 models
  tests/random_models.sh --seeds 17 --reduce         what of model 17 is enough for it to differ
  tests/random_models.sh --seeds 17 --print          its MJCF

Exit status: 0, 1 where something differs. Rough and kink are differences that say nothing, and why: see
tests/clients/python/random_models/differences.py; the other counts are of what could not be compared."""
STEPS = ("steps", "jacobians")
ROOT = Path(__file__).resolve().parents[4]


def main() -> int:
    """Run the command."""
    arguments = _arguments()
    counts: Counter[str] = Counter()
    failed: list[int] = []
    begin = last = time.monotonic()
    for seed in arguments.seeds:
        if arguments.print:
            print(random_model(seed))
            continue
        differs: dict[str, Any] = {}
        if arguments.only in (None, "steps"):
            for kind in STEPS:
                steps = _steps(random_model(seed, kind == "jacobians"), seed, kind, arguments)
                counts[f"{kind}: {steps.outcome}"] += 1
                if steps.outcome == "solvers apart":
                    print(f"seed {seed}: {kind}: solvers apart", file=sys.stderr)
                differs |= {f"{kind}: {name}": x for name, x in steps.differs.items()}
        if arguments.only in (None, "derivatives"):
            differs |= _derivatives(seed, counts, arguments.refused)
        if arguments.only in (None, "costs"):
            differs |= _costs(seed, counts, arguments.refused)
        if differs:
            failed.append(seed)
            _report(seed, differs, arguments)
        if time.monotonic() > last + 10:
            last = time.monotonic()
            print(f"  seed {seed}, {last - begin:.0f} s, {len(failed)} differ", file=sys.stderr)
    if arguments.print:
        return 0
    few = _too_few(counts, arguments)
    _summarize(counts, failed, time.monotonic() - begin, arguments)
    if few:
        print(f"{few}: less than {arguments.agree:g} of the models agree", file=sys.stderr)
    return 1 if failed or few else 0


def _too_few(counts: Counter[str], arguments: argparse.Namespace) -> str:
    """Name the kinds of steps of which fewer models agree than asked for."""
    kinds = STEPS if arguments.only in (None, "steps") else ()
    return ", ".join(k for k in kinds if counts[f"{k}: agrees"] < arguments.agree * len(arguments.seeds))


def _steps(xml: str, seed: int, kind: str, arguments: argparse.Namespace) -> Report:
    return compare_steps(xml, seed, arguments.program, kind == "jacobians")


def _seeds(text: str) -> list[int]:
    """Return the seeds of a list such as 3,10:20."""
    seeds: list[int] = []
    for part in text.split(","):
        first, colon, end = part.partition(":")
        seeds += range(int(first), int(end)) if colon else [int(first)]
    return seeds


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tests/random_models.sh", description=__doc__, epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--seeds", type=_seeds, default="0:24", metavar="LIST", help="such as 3,10:20 (default 0:24)")
    parser.add_argument(
        "--only", choices=("steps", "derivatives", "costs"), help="one of them; steps need no Python package"
    )
    parser.add_argument(
        "--agree", type=float, default=0, metavar="SHARE", help="fail where the steps of fewer agree, such as 0.6"
    )
    parser.add_argument("--reduce", action="store_true", help="print the smallest model that differs in the same place")
    parser.add_argument("--print", action="store_true", help="print the models and compare nothing")
    parser.add_argument("--refused", action="store_true", help="count what has no derivative, too, by name")
    parser.add_argument(
        "--json", action="store_true", help="print JSON, a line for each model that differs and a summary"
    )
    parser.add_argument(
        "--program", type=Path, default=ROOT / "build/release/bin/sinew-check", help="sinew-check (build/release/bin)"
    )
    arguments = parser.parse_args()
    if not arguments.seeds:
        parser.error("--seeds names none: 5:6 is one, its end is not of it")
    arguments.program = arguments.program.resolve()  # it is started in a folder of its own
    if arguments.only in (None, "steps") and not arguments.print and not arguments.program.is_file():
        parser.error(f"{arguments.program} is not there: cmake --build build/release --target sinew-check")
    return arguments


def _derivatives(seed: int, counts: Counter[str], refused: bool) -> dict[str, Any]:
    """Compare derivatives; return those that differ by their names."""
    from random_models.differences import compare_derivatives  # needs the Python package

    report = compare_derivatives(random_model(seed, exact=True), seed)
    _count("derivatives", report, counts, refused)
    return {f"d {x.number} / d {x.by}": x._asdict() for x in report.differs}


def _costs(seed: int, counts: Counter[str], refused: bool) -> dict[str, Any]:
    """Compare the cost of a task; return what differs by its names."""
    from random_models.costs import compare_costs  # needs the Python package

    report = compare_costs(random_model(seed, exact=True), seed)
    _count("costs", report, counts, refused)
    return {f"costs: {x.by}": x._asdict() for x in report.differs}


def _count(kind: str, report: Any, counts: Counter[str], refused: bool) -> None:
    counts[f"models of {kind}: {report.outcome}"] += 1
    counts.update({f"{kind}: {verdict}": n for verdict, n in report.verdicts.items()})
    counts[f"{kind}: refused"] += report.refused.total()
    if refused:
        counts.update({f"refused: {name}": n for name, n in report.refused.items()})


def _report(seed: int, differs: dict[str, Any], arguments: argparse.Namespace) -> None:
    if arguments.json:
        print(json.dumps({"seed": seed, "differs": differs}), flush=True)
    else:
        for name, x in differs.items():
            print(f"seed {seed}: {name}: {json.dumps(x)}", flush=True)
    if arguments.reduce:
        print(_reduced(seed, next(iter(differs)), arguments))


def _reduced(seed: int, name: str, arguments: argparse.Namespace) -> str:
    """Return the smallest model in which the same thing differs."""
    from random_models.reduce import reduced

    kind, _, field = name.partition(": ")
    if kind in STEPS:
        model = random_model(seed, exact=kind == "jacobians")
        return reduced(model, lambda xml: field in _steps(xml, seed, kind, arguments).differs)
    if kind == "costs":
        from sinew.errors import SinewError

        from random_models.costs import compare_costs

        def costs(xml: str) -> bool:
            try:
                return any(field == x.by for x in compare_costs(xml, seed).differs)
            except (IndexError, SinewError):  # the task has no names to choose from, or empty ones
                return False

        return reduced(random_model(seed, exact=True), costs)
    from random_models.differences import compare_derivatives

    def fails(xml: str) -> bool:
        report = compare_derivatives(xml, seed, name.split(" / d ")[1])
        return any(name == f"d {x.number} / d {x.by}" for x in report.differs)

    return reduced(random_model(seed, exact=True), fails)


def _summarize(counts: Counter[str], failed: list[int], seconds: float, arguments: argparse.Namespace) -> None:
    if arguments.json:
        print(json.dumps({"seconds": round(seconds, 1), "counts": dict(sorted(counts.items())), "failed": failed}))
        return
    for name, n in sorted(counts.items()):
        print(f"{n:8} {name}")
    print(f"{len(arguments.seeds)} seeds, {seconds:.0f} s; differ: {failed or 'none'}")


if __name__ == "__main__":
    sys.exit(main())
