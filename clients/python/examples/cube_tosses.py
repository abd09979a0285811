"""Tosses of a cube, recorded or made, and how far predictions of them are off: read by the examples cube_*.py.

The recordings are the ContactNets tosses of an acrylic cube of 100 mm and 0.37 kg (S. Pfrommer et al., 2020), one row a
frame: toss, frame, x, y, z, qw, qx, qy, qz, vx, vy, vz, wx, wy, wz. Without a file the model makes tosses.
"""

import argparse
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np

import sinew
from sinew.identify import Motion, Segments, predict

FRAME, SIDE = 0.006767, 0.1  # between frames [s]; of the cube [m]


def both(attribute: str, low: float, high: float, transform: Any = "none", start: float | None = None) -> Any:
    """Return a parameter that cube and table share."""
    return sinew.Parameter([f"geom.{name}.{attribute}" for name in ("cube", "table")], (low, high), start, transform)


def model_text(substeps: int = 1) -> str:
    """Return the MJCF of the cube on its table, with steps of a part of a frame."""
    text = Path(sinew.share("models/cube_table.xml")).read_text(encoding="utf-8")
    return text.replace(f'timestep="{FRAME}"', f'timestep="{FRAME / substeps}"')


def read(file: Path) -> list[Motion]:
    """Return all tosses of a file of at least two frames."""
    with gzip.open(file, "rt") if file.suffix == ".gz" else file.open() as text:
        rows = np.genfromtxt(text, delimiter=",", skip_header=1)
    motions = [rows[rows[:, 0] == toss] for toss in np.unique(rows[:, 0])]
    return [
        Motion(x[:, 2:9], x[:, 9:15], time=FRAME * x[:, 1], name=f"toss {int(x[0, 0])}") for x in motions if len(x) > 1
    ]


def make(tosses: int, frames: int = 60) -> list[Motion]:
    """Return tosses that the model itself makes."""
    rng, model = np.random.default_rng(1), sinew.Model.load(sinew.share("models/cube_table.xml"))
    qpos, qvel = np.zeros((tosses, 7)), rng.standard_normal((tosses, 6)) * [1, 1, 0.5, 4, 4, 4]
    qpos[:, 2], qpos[:, 3:] = 0.12, rng.standard_normal((tosses, 4))
    qpos[:, 3:] /= np.linalg.norm(qpos[:, 3:], axis=1, keepdims=True)
    made = sinew.rollout(model, {"qpos": qpos, "qvel": qvel}, nstep=frames, gradients=False).raise_if_diverged()
    return [Motion(made.qpos[i], made.qvel[i], name=f"toss {i}") for i in range(tosses)]


def pose_errors(qpos: np.ndarray, goal: np.ndarray, look: np.ndarray) -> dict[str, float]:
    """Return how far a free body's positions (N, K, 7) are off, means over the rows that are looked at (N, K).

    ``position`` [mm]: distance; ``angle`` [rad]: of the turn between the two.
    """
    far = np.linalg.norm(qpos[..., :3] - goal[..., :3], axis=-1)
    dot = np.abs(np.sum(qpos[..., 3:] * goal[..., 3:], axis=-1))
    angle = 2 * np.arccos(np.minimum(dot, 1))
    return {"position": float(1000 * np.mean(far[look])), "angle": float(np.mean(angle[look]))}


def distances(model: sinew.Model, tosses: Segments, **ways: Any) -> dict[str, float]:
    """Return how far predictions of whole tosses are off, means over all frames.

    ``state``: absolute difference of the 13 numbers of the state [m, 1, m/s, rad/s], quaternions in the half space of
    the recorded ones; ``position`` and ``angle`` as `pose_errors` has them.
    """
    qpos, qvel = predict(model, tosses, **ways)
    goal, look = tosses.qpos[:, 1:], tosses.looked
    dot = np.sum(qpos[..., 3:] * goal[..., 3:], axis=-1, keepdims=True)
    parts = [
        qpos[..., :3] - goal[..., :3],
        np.where(dot < 0, -1, 1) * qpos[..., 3:] - goal[..., 3:],
        qvel - tosses.qvel[:, 1:],
    ]
    return {"state": float(np.mean(np.abs(np.concatenate(parts, -1)[look])))} | pose_errors(qpos, goal, look)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what all of these examples take."""
    parser.add_argument("data", type=Path, nargs="?", help="the tosses, a CSV file or a gzipped one")
    parser.add_argument("--picture", type=sinew.files.writable, help="file to draw into, .svg or .png")
    parser.add_argument("--json", type=sinew.files.writable, help="file for all numbers")


def tosses_of(arguments: argparse.Namespace, count: int) -> list[Motion]:
    """Return the first tosses of the file, or some that the model makes."""
    return read(arguments.data)[:count] if arguments.data else make(count)


def write(arguments: argparse.Namespace, numbers: Any) -> None:
    """Write numbers where they were asked for."""
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(numbers, indent=1), encoding="utf-8")
