"""SHAC beside PPO on one task: return over samples and over seconds.

Each run is a process of its own, one after the other; a SHAC run that was interrupted goes on, one of PPO begins anew.

    python compare.py hopper -o RUNS --seeds 1 2 3 --iterations 300 --samples 1000000 --picture hopper.svg
    python compare.py hopper -o RUNS --picture hopper.svg --draw    # what is there already
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import sinew

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HERE = Path(__file__).resolve().parent
FEW = 20  # points of a curve, of which a line shows little, and of one nothing


def read(path: Path) -> dict[str, np.ndarray]:
    """Return columns of a log."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([float(row[name]) for row in rows]) for name in (rows[0] if rows else ())}


def is_whole(path: Path, samples: int) -> bool:
    """Return whether PPO, which begins anew where it was interrupted, has come to these samples."""
    log = read(path) if path.exists() else {}
    return bool(log) and log["samples"][-1] >= samples


def run(arguments: argparse.Namespace, seed: int) -> None:
    """Run both on a seed."""
    common = [arguments.task, "--seed", str(seed), "--threads", str(arguments.threads)]
    ours = ["--iterations", str(arguments.iterations)]
    shac = [sys.executable, "-m", "sinew", "learn", *common, *ours, "-o", arguments.out / f"shac-{seed}"]
    ppo = [sys.executable, HERE / "ppo.py", *common, "--samples", str(arguments.samples)]
    subprocess.run([*shac, *(("--worlds", "8", "--horizon", "8") if arguments.short else ())], check=True)
    if not is_whole(arguments.out / f"ppo-{seed}" / "progress.csv", arguments.samples):
        worlds = ["--worlds", "8"] if arguments.short else []
        subprocess.run([*ppo, *worlds, "-o", arguments.out / f"ppo-{seed}"], check=True)


def table(folder: Path) -> None:
    """Print what each run came to, and what SHAC took to come to the end of PPO."""
    print("run          samples  seconds  of the CPU  return at the end")
    logs = {path.parent.name: read(path) for path in sorted(folder.glob("*/progress.csv"))}
    for name, log in logs.items():
        spent = log["seconds"][-1], log["cpu_seconds"][-1]
        print(f"{name:10} {log['samples'][-1]:9.0f} {spent[0]:8.0f} {spent[1]:11.0f} {log['episode_return'][-1]:18.4g}")
    for name, log in logs.items():
        other = logs.get(name.replace("shac", "ppo"), {})
        if not name.startswith("shac") or not other:
            continue
        last = other["episode_return"][-1]
        if not np.isfinite(last):
            print(f"{name} cannot be compared: no episode of PPO has ended")
            continue
        there = np.flatnonzero(log["episode_return"] >= last)
        if len(there):
            part = log["samples"][there[0]] / other["samples"][-1]
            print(f"{name} has PPO's last return, {last:.4g}, after {part:.2f} of PPO's samples")
        else:
            print(f"{name} does not come to PPO's last return, {last:.4g}")


def plot_returns(axes: Axes, by: str, logs: Sequence[dict[str, np.ndarray]], name: str, **style: Any) -> None:
    """Draw the return of runs that have one name, over a column of their logs; few points are marked."""
    ended = [int(np.isfinite(log["episode_return"]).sum()) for log in logs]
    label = name if any(ended) else f"{name}: no episode has ended"
    for k, (log, points) in enumerate(zip(logs, ended, strict=True)):
        marker = "o" if points < FEW else ""
        axes.plot(log[by], log["episode_return"], marker=marker, markersize=3, label=None if k else label, **style)


def draw(arguments: argparse.Namespace) -> None:
    """Draw return over samples and over seconds of the CPU."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), sharey=True, layout="constrained")
    for kind, color, dashes in (("shac", "#0072b2", "-"), ("ppo", "#d55e00", "--")):
        logs = [read(path) for path in sorted(arguments.out.glob(f"{kind}-*/progress.csv"))]
        for ax, by in zip(axes, ("samples", "cpu_seconds"), strict=True):
            plot_returns(ax, by, logs, kind.upper(), color=color, linestyle=dashes)
    for ax, label in zip(axes, ("samples", "time of the CPU [s]"), strict=True):
        ax.set(xlabel=label, xlim=(0, None))
        ax.locator_params(axis="x", nbins=4)
    axes[0].set(ylabel="return, mean of 100 episodes", title=arguments.task)
    axes[0].legend()
    figure.savefig(arguments.picture, dpi=80)


def options_of_runs(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options of programs that train for some seeds and draw."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1], help="(default: 1)")
    parser.add_argument("--iterations", type=int, default=300, help="of SHAC (default: 300)")
    parser.add_argument("--threads", type=int, default=0, help="(default: as many as this process may use)")
    parser.add_argument("--picture", type=sinew.files.writable, help="file to draw into, .svg or .png")
    parser.add_argument("--draw", action="store_true", help="run nothing")
    parser.add_argument("--short", action="store_true", help="a few samples, to see that it runs")
    return parser


def main() -> None:
    parser = options_of_runs(__doc__)
    parser.add_argument("task", help="as `sinew learn` lists them")
    parser.add_argument("--samples", type=int, default=1_000_000, help="of PPO (default: 1000000)")
    arguments = parser.parse_args()

    if arguments.short:
        arguments.iterations, arguments.samples = 20, 2048
    for seed in [] if arguments.draw else arguments.seeds:
        run(arguments, seed)
    table(arguments.out)
    if arguments.picture:
        draw(arguments)


if __name__ == "__main__":
    main()
