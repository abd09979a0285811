"""Losses of identification: how far the states of a model are from recorded ones, and the derivatives by them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sinew._arrays import Doubles
from sinew.errors import ArgumentError
from sinew.model import Model
from sinew.segments import Segments

__all__ = ["Loss", "PoseLoss", "StateLoss"]


def _quaternions(model: Model) -> list[int]:
    """Return where the quaternions of free and ball joints begin in qpos."""
    kinds = {0: 3, 1: 0}
    pairs = zip(model.jnt_type, model.jnt_qposadr, strict=True)
    return [int(adr) + kinds[int(kind)] for kind, adr in pairs if int(kind) in kinds]


def _matrices(q: Doubles) -> tuple[Doubles, Doubles]:
    """Return rotation matrices (..., 9) of quaternions, and the derivatives by their entries (..., 9, 4)."""
    norm = np.linalg.norm(q, axis=-1, keepdims=True)
    w, x, y, z = np.moveaxis(q / norm, -1, 0)
    zero = np.zeros_like(w)
    rows = [
        w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y),
        2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x),
        2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z,
    ]  # fmt: skip
    slopes = [
        (w, x, -y, -z), (-z, y, x, -w), (y, z, w, x),
        (z, y, x, w), (w, -x, y, -z), (-x, -w, z, y),
        (-y, z, -w, x), (x, w, z, y), (w, -x, -y, z),
    ]  # fmt: skip
    change = 2 * np.stack([np.stack([e + zero for e in row], -1) for row in slopes], -2)
    unit = q / norm
    along = np.einsum("...ij,...j->...i", change, unit)
    return np.stack(rows, -1), (change - along[..., None] * unit[..., None, :]) / norm[..., None]


@dataclass(frozen=True)
class StateLoss:
    """Mean square of the differences of states, rotations of free and ball joints as matrices.

    Parameters
    ----------
    velocity : float
        Weight of squares of velocities beside those of positions.
    scale : float
        What positions are measured in: a length of 0.1 m counts as much as a turn by a tenth of a radian with 1, as one
        by a whole radian with 0.1.
    """

    velocity: float = 0.0
    scale: float = 1.0

    def __call__(
        self, model: Model, qpos: Doubles, qvel: Doubles, wanted: Segments
    ) -> tuple[Doubles, Doubles, Doubles]:
        """Return the loss of each segment (N,), and its derivatives by the states after the first (N, K, .)."""
        plain, far, turns, speed, share = self._parts(model, qpos, qvel, wanted)
        bar = np.zeros_like(qpos)
        bar[..., plain] = far / self.scale
        loss = np.einsum("nki,nki->n", far, far)
        for adr, off, change in turns:
            loss += np.einsum("nki,nki->n", off, off)
            bar[..., adr : adr + 4] = np.einsum("nki,nkij->nkj", off, change)
        loss += self.velocity * np.einsum("nki,nki->n", speed, speed)
        return share * loss, 2 * share * bar, 2 * share * self.velocity * speed

    def _parts(self, model: Model, qpos: Doubles, qvel: Doubles, wanted: Segments) -> tuple[Any, ...]:
        """Return places of plain positions, how far they are off; (place, off, change) of turns; speeds; the share."""
        starts, goal = _quaternions(model), wanted.qpos[:, 1:]
        plain = np.setdiff1d(np.arange(model.nq), [adr + i for adr in starts for i in range(4)])
        turns = []
        for adr in starts:
            matrix, change = _matrices(qpos[..., adr : adr + 4])
            turns.append((adr, matrix - _matrices(goal[..., adr : adr + 4])[0], change))
        far = (qpos[..., plain] - goal[..., plain]) / self.scale
        share = 1 / (qpos.shape[1] * (len(plain) + 9 * len(turns)))
        return plain, far, turns, qvel - wanted.qvel[:, 1:], share

    def residuals(
        self, model: Model, qpos: Doubles, qvel: Doubles, wanted: Segments, by_qpos: Doubles, by_qvel: Doubles
    ) -> tuple[Doubles, Doubles]:
        """Return residuals (N, K, R) whose squares make the loss, and their derivatives (N, K, R, P).

        ``by_qpos`` and ``by_qvel`` (N, K, ., P) are those of the entries of positions, and of velocities.
        """
        plain, far, turns, speed, share = self._parts(model, qpos, qvel, wanted)
        off, by = [far], [by_qpos[..., plain, :] / self.scale]
        for adr, turn, change in turns:
            off.append(turn)
            by.append(change @ by_qpos[..., adr : adr + 4, :])
        if self.velocity > 0:
            off.append(np.sqrt(self.velocity) * speed)
            by.append(np.sqrt(self.velocity) * by_qvel)
        return np.sqrt(share) * np.concatenate(off, axis=-1), np.sqrt(share) * np.concatenate(by, axis=-2)


@dataclass(frozen=True)
class PoseLoss:
    """Distance of a free body's place over a scale, plus the angle of its turn, mean over the segment.

    Parameters
    ----------
    scale : float
        A length, as the side of a cube [m].
    joint : int
        The free joint, counted among all joints.
    """

    scale: float
    joint: int = 0

    def __call__(
        self, model: Model, qpos: Doubles, qvel: Doubles, wanted: Segments
    ) -> tuple[Doubles, Doubles, Doubles]:
        """Return the loss of each segment (N,), and its derivatives by the states after the first (N, K, .)."""
        if not 0 <= self.joint < model.njnt:
            raise ArgumentError(f"PoseLoss: joint {self.joint}, the model has {model.njnt}, from 0 on")
        if model.jnt_type[self.joint] != 0:
            raise ArgumentError(f"PoseLoss: joint {self.joint} is not free")
        adr, bar, share = int(model.jnt_qposadr[self.joint]), np.zeros_like(qpos), 1 / qpos.shape[1]
        place, turn = slice(adr, adr + 3), slice(adr + 3, adr + 7)
        off = qpos[..., place] - wanted.qpos[:, 1:, place]
        far = np.linalg.norm(off, axis=-1)
        bar[..., place] = off / np.maximum(far, 1e-12)[..., None] / self.scale
        goal = wanted.qpos[:, 1:, turn]
        goal = goal / np.linalg.norm(goal, axis=-1, keepdims=True)
        norm = np.linalg.norm(qpos[..., turn], axis=-1, keepdims=True)
        unit = qpos[..., turn] / norm
        dot = np.einsum("nki,nki->nk", unit, goal)
        same = np.clip(np.abs(dot), 0, 1)
        angle = 2 * np.arccos(same)
        slope = -2 / np.sqrt(np.maximum(1 - same * same, 1e-12)) * np.sign(dot)
        bar[..., turn] = slope[..., None] * (goal - dot[..., None] * unit) / norm
        return share * np.sum(far / self.scale + angle, axis=1), share * bar, np.zeros_like(qvel)


Loss = StateLoss | PoseLoss
