"""Motions to learn from: recorded ones, turned about the vertical, and those that the engine makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from sinew._arrays import Doubles
from sinew.errors import ArgumentError
from sinew.learn.graph.meshes import Scene
from sinew.learn.graph.poses import Pose, of_qpos, turned
from sinew.model import Model
from sinew.rollout import rollout
from sinew.segments import Motion

__all__ = ["Motions", "about_vertical", "made", "recorded"]


@dataclass(frozen=True, eq=False)
class Motions:
    """N motions of the bodies of one scene, at equal distances in time.

    Attributes
    ----------
    scene : Scene
        The bodies.
    pose : Pose
        Places (N, T, n, 3) and turns (N, T, n, 3, 3).
    length : ndarray of int, (N,)
        How many poses of each are there; the rest does not count.
    """

    scene: Scene
    pose: Pose
    length: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.length)

    def windows(self, horizon: int) -> NDArray[np.int64]:
        """Return where windows of a pose before, a pose now and ``horizon`` poses behind may begin: motion, row."""
        rows = np.arange(self.pose.place.shape[1])
        return np.argwhere(rows < (self.length[:, None] - horizon - 1))

    def take(self, windows: NDArray[np.int64], horizon: int) -> Pose:
        """Return poses of windows (B, 2): places (B, horizon + 2, n, 3) and turns (B, horizon + 2, n, 3, 3)."""
        motion = torch.from_numpy(windows[:, :1])
        row = torch.from_numpy(windows[:, 1:]) + torch.arange(horizon + 2)
        return Pose(*(x[motion, row] for x in self.pose))


def _motions(scene: Scene, qpos: Doubles, length: NDArray[np.int64]) -> Motions:
    """Return motions of positions (N, T, 7 n), in floats."""
    if qpos.shape[-1] != 7 * len(scene):
        raise ArgumentError(
            f"motions: {qpos.shape[-1]} positions a row, expected {7 * len(scene)} of {len(scene)} bodies"
        )
    flat = of_qpos(torch.from_numpy(qpos.reshape(-1, qpos.shape[-1])))
    return Motions(scene, Pose(*(x.unflatten(0, qpos.shape[:2]).float() for x in flat)), length)


def recorded(scene: Scene, motions: Sequence[Motion], stride: int = 1) -> Motions:
    """Return recorded motions, every ``stride``-th row of each from each of its first rows on.

    Raises
    ------
    ArgumentError
        There is no motion with three rows so far apart, or positions of another number of bodies.
    """
    if stride < 1:
        raise ArgumentError(f"stride: {stride}, allowed are 1 and more")
    parts = [np.asarray(x.qpos)[first::stride] for x in motions for first in range(stride)]
    parts = [x for x in parts if len(x) > 2]
    if not parts:
        raise ArgumentError(f"motions: none has three rows with a stride of {stride}")
    length = np.array([len(x) for x in parts], np.int64)
    at = [
        np.minimum(np.arange(length.max()), n - 1) for n in length
    ]  # the last row stands for those that are not there
    return _motions(scene, np.stack([x[k] for x, k in zip(parts, at, strict=True)]), length)


def about_vertical(motions: Motions, copies: int, seed: int = 0) -> Motions:
    """Return copies of motions, turned about the vertical by random angles: data augmentation.

    Parameters
    ----------
    motions : Motions
        What is turned.
    copies : int
        How often each is there, 1 and more.
    seed : int
        Of the angles.
    """
    if copies < 1:
        raise ArgumentError(f"copies: {copies}, allowed are 1 and more")
    angle = np.random.default_rng(seed).uniform(0, 2 * np.pi, copies * len(motions))
    vector = torch.zeros(len(angle), 3)
    vector[:, 2] = torch.from_numpy(angle)
    about = turned(torch.eye(3), vector)[:, None, None]
    place, turn = (x.repeat(copies, *[1] * (x.ndim - 1)) for x in motions.pose)
    pose = Pose((about @ place[..., None])[..., 0], about @ turn)
    return Motions(motions.scene, pose, np.tile(motions.length, copies))


def made(
    scene: Scene, model: Model, qpos: ArrayLike, qvel: ArrayLike, rows: int, substeps: int = 1, threads: int = 0
) -> Motions:
    """Return motions that the engine makes from N states, all at once.

    Parameters
    ----------
    scene : Scene
        The bodies.
    model : Model
        The same bodies, in this order, on free joints.
    qpos, qvel : array_like, (N, 7 n) and (N, 6 n)
        Where they begin.
    rows : int
        How many poses a motion has, 3 and more.
    substeps : int
        Steps of the model from one pose to the next.
    threads : int
        Threads of the CPU; 0: as many as this process may use.

    Raises
    ------
    ArgumentError
        A shape, or rows or substeps out of range.
    SimulationError
        Motions that diverge.
    """
    if rows < 3 or substeps < 1:
        raise ArgumentError(f"rows, substeps: {rows}, {substeps}, allowed are 3 and 1 and more")
    found = rollout(
        model, {"qpos": qpos, "qvel": qvel}, nstep=(rows - 1) * substeps, gradients=False, outputs=["qpos"],
        threads=threads,
    ).raise_if_diverged()  # fmt: skip
    kept = found.qpos.reshape(-1, *found.qpos.shape[-2:])[:, ::substeps]
    return _motions(scene, np.ascontiguousarray(kept), np.full(len(kept), rows, np.int64))
