"""Pictures of few_shot.py."""

from pathlib import Path
from typing import Any

import numpy as np
from few_shot_scenes import STEP

COLORS = {"recorded": "black", "before": "0.6", "identified": "C0", "augmented": "C3", "scaled": "C2"}


def pyplot() -> Any:
    """Return matplotlib's module, which draws into files."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def errors(rows: dict[str, dict[str, float]], file: Path) -> None:
    """Draw position and angle errors of held-out tosses, and both together: figures 4 and 7."""
    figure, axes = pyplot().subplots(1, 3, figsize=(10, 3), layout="constrained")
    for axis, (what, unit) in zip(axes, (("loss", ""), ("position", " [mm]"), ("angle", " [rad]")), strict=True):
        axis.bar(list(rows), [x[what] for x in rows.values()], color=[COLORS.get(x, "C1") for x in rows])
        axis.set_title({"loss": "equation 1, a row"}.get(what, what) + unit, fontsize="medium")
        axis.tick_params(axis="x", labelrotation=25)
    figure.savefig(file, dpi=80)


def tosses(paths: list[dict[str, np.ndarray]], file: Path) -> None:
    """Draw ways of held-out tosses as recorded and as simulated, from the side: figure 5."""
    figure, axes = pyplot().subplots(2, len(paths), figsize=(3.4 * len(paths), 4.6), layout="constrained")
    for k, path in enumerate(paths):
        for name, qpos in path.items():
            time = STEP * np.arange(len(qpos))
            way = np.linalg.norm(qpos[:, :2] - qpos[:1, :2], axis=1)
            axes[0, k].plot(
                time, 1000 * qpos[:, 2], color=COLORS[name], label=name, lw=1.6 if name == "recorded" else 1
            )
            axes[1, k].plot(time, 1000 * way, color=COLORS[name], lw=1.6 if name == "recorded" else 1)
        axes[1, k].set_xlabel("time [s]")
    axes[0, 0].set_ylabel("height [mm]")
    axes[1, 0].set_ylabel("way over the table [mm]")
    axes[0, 0].legend(fontsize="x-small")
    figure.savefig(file, dpi=80)


def _outline(axis: Any, place: np.ndarray, turn: np.ndarray, side: float, **ways: Any) -> None:
    """Draw a cube as seen from above, by the square of its lower side."""
    corners = side / 2 * np.array([[-1, -1, -1], [1, -1, -1], [1, 1, -1], [-1, 1, -1], [-1, -1, -1]])
    seen = place[:2] + corners @ turn[:2].T
    axis.plot(seen[:, 0], seen[:, 1], **ways)


def array(engine: Any, network: Any, side: float, file: Path) -> None:
    """Draw the array from above at four times, by the engine and by the network: figure 6."""
    last = len(engine.place) - 1
    times = [0, last // 4, last // 2, last]
    figure, axes = pyplot().subplots(2, 4, figsize=(11, 5.6), sharex=True, sharey=True, layout="constrained")
    for row, (name, pose) in enumerate((("engine", engine), ("network", network))):
        for axis, k in zip(axes[row], times, strict=True):
            for i, (place, turn) in enumerate(zip(pose.place[k].numpy(), pose.turn[k].numpy(), strict=True)):
                _outline(axis, place, turn, side, color="C0" if i == 0 else "C2", lw=1.2)
            axis.set(aspect="equal", title=f"{name}, {STEP * k:.2f} s")
    figure.savefig(file, dpi=80)


def push(found: dict[str, Any], file: Path) -> None:
    """Draw distance from the target and speed of the push over epochs, of all starts: figure 1."""
    figure, axes = pyplot().subplots(1, 3, figsize=(10.5, 3), layout="constrained")
    for color, (name, run) in zip(("C2", "C0"), found.items(), strict=True):
        real, thought = 1000 * np.array(run.real), 1000 * np.array(run.thought)
        axes[0].plot(thought, color=color, lw=1, label=[name, *[None] * (thought.shape[1] - 1)])
        axes[1].plot(real, color=color, lw=1)
        axes[2].plot(np.linalg.norm(run.velocity, axis=-1), color=color, lw=1)
    titles = ("off, as the way itself sees it [mm]", "off, by the engine [mm]", "speed of the push [m/s]")
    for axis, title in zip(axes, titles, strict=True):
        axis.set_title(title, fontsize="medium")
        axis.set(xlabel="epoch", ylim=(0, None))
    axes[0].legend(fontsize="small")
    figure.savefig(file, dpi=80)


def losses(tables: dict[str, list[list[float]]], file: Path) -> None:
    """Draw losses of the trainings over their iterations."""
    figure, axis = pyplot().subplots(figsize=(5, 3), layout="constrained")
    for name, rows in tables.items():
        axis.plot([x[0] for x in rows], [x[3] for x in rows], label=name, lw=1)
    axis.set(xlabel="iteration", ylabel="loss", yscale="log")
    axis.legend(fontsize="small")
    figure.savefig(file, dpi=80)
