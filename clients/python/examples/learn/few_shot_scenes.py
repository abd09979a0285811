"""Scenes of the few-shot simulator: cubes on a table with identified contacts, and states that they begin with.

Read by few_shot.py and few_shot_push.py. What identification found of the contact is given to all geoms, so cubes of
other sizes and numbers have it, too.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from cube_search import RANGES, SUBSTEPS, search
from cube_tosses import FRAME, SIDE, add_arguments, model_text, pose_errors, tosses_of, write

import sinew
from sinew.learn.graph.data import Motions, made
from sinew.learn.graph.meshes import Mesh, Scene

__all__ = [
    "RANGES", "ROWS", "SIDE", "STEP", "STRIDE", "SUBSTEPS", "add_arguments", "model_of", "model_text", "pose_errors",
    "scaled_pushes", "scaled_tosses", "scene_of", "search", "tosses_of", "write",
]  # fmt: skip

STRIDE = 2  # recorded frames of a step of the network
STEP = STRIDE * FRAME  # of the network [s]
DENSITY = 0.37 / SIDE**3  # of the recorded cube [kg/m^3]
ROWS, PUSH_ROWS = 50, 26  # poses of a motion of a tossed cube, and of cubes that are pushed
TOSSES = {0.1: 0.8, 0.08: 0.1, 0.12: 0.1}  # sides of one tossed cube [m], and their shares of the motions
PUSHED = {2: 0.7, 3: 0.3, 4: 0.5}  # cubes of which one is pushed: in rows, four in a triangle; shares of the motions


def model_of(contact: dict[str, float], sides: Sequence[float]) -> sinew.Model:
    """Return cubes of given sides on a table, with a contact as cube_search.py names its numbers."""
    solimp = " ".join(repr(contact[f"solimp {x}"]) for x in ("d0", "dwidth", "width", "midpoint", "power"))
    solref = f"{contact['solref time constant']!r} {contact['solref damping ratio']!r}"
    cubes = "".join(
        f'<body pos="{i} 0 {side / 2!r}"><freejoint/><geom type="box" size="{side / 2!r} {side / 2!r} {side / 2!r}" '
        f'density="{DENSITY!r}" condim="4"/></body>'
        for i, side in enumerate(sides)
    )
    return sinew.Model.from_string(
        f'<mujoco><option timestep="{FRAME / SUBSTEPS!r}" tolerance="1e-8" iterations="50"/><default>'
        f'<geom solref="{solref}" solimp="{solimp}" friction="{contact["friction"]!r} 0.01 0.1"/></default>'
        f'<worldbody><geom type="plane" size="2 2 0.1"/>{cubes}</worldbody></mujoco>'
    )


def scene_of(sides: Sequence[float]) -> Scene:
    """Return cubes of given sides over a floor."""
    return Scene([Mesh.box([side / 2] * 3) for side in sides])


def tossed(count: int, side: float, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return states of tossed cubes: speeds, turns and heights about as those of the recorded tosses."""
    qpos, qvel = np.zeros((count, 7)), rng.standard_normal((count, 6)) * [0, 0, 0.2, 2.3, 2.3, 2.3]
    qpos[:, 2] = side * rng.uniform(1.0, 2.2, count)
    qpos[:, 3:] = rng.standard_normal((count, 4))
    qpos[:, 3:] /= np.linalg.norm(qpos[:, 3:], axis=1, keepdims=True)
    angle, speed = rng.uniform(0, 2 * np.pi, count), rng.uniform(0.5, 1.5, count)
    qvel[:, 0], qvel[:, 1] = speed * np.cos(angle), speed * np.sin(angle)
    return qpos, qvel


def on_table(
    local: NDArray[Any], turn: NDArray[Any], yaw: NDArray[Any], speed: NDArray[Any], sides: Sequence[float]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return states of cubes that stand, of which the first has a speed (N,) along its axis x.

    Places (N, n, 2) and turns (N, n) are in a frame about the vertical by a yaw (N, 1).
    """
    qpos, qvel = np.zeros((*turn.shape, 7)), np.zeros((*turn.shape, 6))
    qpos[..., 0] = local[..., 0] * np.cos(yaw) - local[..., 1] * np.sin(yaw)
    qpos[..., 1] = local[..., 0] * np.sin(yaw) + local[..., 1] * np.cos(yaw)
    qpos[..., 2] = np.array(sides) / 2
    own = yaw + turn
    qpos[..., 3], qpos[..., 6] = np.cos(own / 2), np.sin(own / 2)
    qvel[:, 0, 0], qvel[:, 0, 1] = speed * np.cos(yaw[:, 0]), speed * np.sin(yaw[:, 0])
    return qpos.reshape(len(qpos), -1), qvel.reshape(len(qvel), -1)


def pushed(count: int, sides: Sequence[float], rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return states in which the first cube slides towards the others, which stand in a row, any way about."""
    bodies, gap = len(sides), rng.uniform(0.02, 0.15, (count, len(sides)))
    along = np.cumsum(gap + np.array(sides), axis=1) - gap[:, :1]
    aside = rng.uniform(-0.04, 0.04, (count, bodies))
    yaw = rng.uniform(0, 2 * np.pi, (count, 1))
    turn, speed = rng.uniform(-0.3, 0.3, (count, bodies)), rng.uniform(0.3, 2.0, count)
    return on_table(np.stack([along, aside], -1), turn, yaw, speed, sides)


def struck(count: int, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return states in which the first cube slides towards the tip of a triangle of three, any way about.

    Where cubes of the triangle are near and turned, some begin inside each other, by up to 15 mm of their 100. The
    network that the README reports on has learned from these, so they are kept.
    """
    pitch = SIDE * rng.uniform(1.05, 1.5, (count, 1, 1))
    local = np.zeros((count, 4, 2))
    local[:, 1:] = pitch * np.array([(0, 0), (1, -0.5), (1, 0.5)])
    local[:, 0, 0], local[:, 0, 1] = -SIDE - rng.uniform(0.02, 0.15, count), rng.uniform(-0.04, 0.04, count)
    local += rng.uniform(-0.005, 0.005, local.shape)
    yaw = rng.uniform(0, 2 * np.pi, (count, 1))
    turn = rng.uniform(-0.15, 0.15, (count, 4)) * (rng.random((count, 1)) < 0.7)  # the others stand in line
    return on_table(local, turn, yaw, rng.uniform(0.3, 2.2, count), [SIDE] * 4)


def scaled_tosses(contact: dict[str, float], count: int, seed: int = 1) -> list[Motions]:
    """Return motions of tossed cubes of several sides, made by the engine."""
    rng, found = np.random.default_rng(seed), []
    for side, share in TOSSES.items():
        state = tossed(max(int(share * count), 2), side, rng)
        found.append(made(scene_of([side]), model_of(contact, [side]), *state, ROWS, STRIDE * SUBSTEPS))
    return found


def scaled_pushes(contact: dict[str, float], count: int, seed: int = 5) -> list[Motions]:
    """Return motions of two, three and four cubes of which one is pushed, made by the engine.

    They end soon after the strike: most of a longer motion would be cubes at rest. Of 500 motions of four cubes that
    the seed 5 makes, 29 begin with cubes inside each other, by up to 10 mm: `struck`.
    """
    rng, found = np.random.default_rng(seed), []
    for bodies, share in PUSHED.items():
        sides, many = [SIDE] * bodies, max(int(share * count), 2)
        state = struck(many, rng) if bodies == 4 else pushed(many, sides, rng)
        found.append(made(scene_of(sides), model_of(contact, sides), *state, PUSH_ROWS, STRIDE * SUBSTEPS))
    return found
