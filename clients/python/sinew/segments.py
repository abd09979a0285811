"""Recorded motions, and the segments that they are cut into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sinew._arrays import Doubles, doubles, whole
from sinew.errors import ArgumentError

__all__ = ["Motion", "Segments", "check_times"]


@dataclass
class Motion:
    """A recorded motion, at equal distances in time.

    Parameters
    ----------
    qpos : array_like, (T, nq)
        Positions.
    qvel : array_like, (T, nv)
        Velocities.
    ctrl : array_like, (T, nu), optional
        Controls from each time on. Default: zero.
    time : array_like, (T,), optional
        Times [s], to be checked for gaps, and that rows are as far apart as the states that they are compared with.
    name : str
        What errors call it.
    act : array_like, (T, na), optional
        Activations. Default: zero at the begin of each segment.

    Raises
    ------
    ArgumentError
        Shapes that do not fit, a number that is not finite, a gap in the times: the text names the row.
    """

    qpos: ArrayLike
    qvel: ArrayLike
    ctrl: ArrayLike | None = None
    time: ArrayLike | None = None
    name: str = "motion"
    act: ArrayLike | None = None

    def __post_init__(self) -> None:
        self.qpos, self.qvel = self._numbers("qpos", self.qpos), self._numbers("qvel", self.qvel)
        arrays: dict[str, Any] = {"qpos": self.qpos, "qvel": self.qvel}
        if self.ctrl is not None:
            arrays["ctrl"] = self.ctrl = self._numbers("ctrl", self.ctrl)
        if self.act is not None:
            arrays["act"] = self.act = self._numbers("act", self.act)
        for what, array in arrays.items():
            if array.ndim != 2 or len(array) != len(self.qpos):
                raise ArgumentError(f"{self.name}: {what} has shape {array.shape}, expected {len(self.qpos)} rows")
            bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
            if len(bad):
                raise ArgumentError(f"{self.name}: {what}[{bad[0]}] is not finite: {array[bad[0]]}")
        if self.time is None:
            return
        times = self.time = self._numbers("time", self.time)
        if times.shape != (len(self.qpos),):
            raise ArgumentError(f"{self.name}: time has shape {times.shape}, expected ({len(self.qpos)},)")
        steps = np.diff(times)
        if len(steps) and not np.median(steps) > 0:
            raise ArgumentError(f"{self.name}: times do not ascend: {times[0]:.6g} s, then {times[1]:.6g} s")
        gap = np.flatnonzero(~(np.abs(steps - np.median(steps)) <= 0.05 * np.median(steps)))
        if len(gap):
            raise ArgumentError(
                f"{self.name}: a gap at row {gap[0]}: {steps[gap[0]]:.6g} s to the next, elsewhere "
                f"{np.median(steps):.6g} s"
            )

    def _numbers(self, what: str, x: ArrayLike) -> Doubles:
        return doubles(f"{self.name}: {what}", x)


def _distances(motions: Sequence[Motion]) -> tuple[tuple[str, float], ...]:
    """Return the names of motions with times, and how far their rows are apart [s]."""
    found = []
    for motion in motions:
        times = np.empty(0) if motion.time is None else np.asarray(motion.time, np.float64)
        if len(times) > 1:
            found.append((motion.name, float(times[-1] - times[0]) / (len(times) - 1)))
    return tuple(found)


def check_times(recorded: Sequence[Motion] | Segments, substeps: int, timestep: float) -> None:
    """Refuse motions, or segments of such, whose times say that rows are not so many steps of the model apart."""
    frame = substeps * timestep
    for name, apart in recorded.apart if isinstance(recorded, Segments) else _distances(recorded):
        if abs(apart - frame) > 1e-3 * frame:
            raise ArgumentError(
                f"{name}: rows are {apart:.6g} s apart, {substeps} steps of the model are {frame:.6g} s: set "
                "substeps, or the model's timestep"
            )


def _given(motions: Sequence[Motion]) -> list[str]:
    """Return which of controls and activations the motions have; refuse what is no sequence of motions."""
    if isinstance(motions, Motion):
        raise ArgumentError("motions: one Motion, expected a sequence of them")
    for i, motion in enumerate(motions):
        if not isinstance(motion, Motion):
            raise ArgumentError(f"motions[{i}]: {type(motion).__name__}, expected a Motion")
    for name, what in (("ctrl", "controls"), ("act", "activations")):
        if len({getattr(motion, name) is None for motion in motions}) > 1:
            raise ArgumentError(f"motions: some have {what} and some have none")
    return [name for name in ("ctrl", "act") if motions and getattr(motions[0], name) is not None]


@dataclass(frozen=True)
class Segments:
    """Segments of motions: N initial states, and K states that follow each.

    Attributes
    ----------
    qpos, qvel : ndarray, (N, K + 1, .)
        Recorded states.
    ctrl : ndarray, (N, K, nu), or None
        Controls between them.
    length : ndarray of int, (N,), or None
        How many states follow in each, the rest is not looked at. None: K.
    act : ndarray, (N, na), or None
        Activations that they begin with.
    apart : tuple of pairs
        Names of the motions with times that they are cut from, and how far rows are apart there [s].
    """

    qpos: Doubles
    qvel: Doubles
    ctrl: Doubles | None
    length: NDArray[np.intp] | None = None
    act: Doubles | None = None
    apart: tuple[tuple[str, float], ...] = ()

    @classmethod
    def of(cls, motions: Sequence[Motion], steps: int, stride: int = 1) -> Segments:
        """Cut motions into segments of ``steps`` steps that begin every ``stride`` rows.

        Raises
        ------
        ArgumentError
            No motion is long enough, or some have controls and others not.
        """
        steps, stride = whole("steps", steps), whole("stride", stride)
        if steps < 1 or stride < 1:
            raise ArgumentError(f"steps, stride: {steps}, {stride}, allowed are 1 and more")
        some = _given(motions)
        cuts: dict[str, list[NDArray[Any]]] = {name: [] for name in ("qpos", "qvel", *some)}
        for motion in motions:
            starts = np.arange(0, len(np.asarray(motion.qpos)) - steps, stride)
            rows = starts[:, None] + np.arange(steps + 1)
            cuts["qpos"].append(np.asarray(motion.qpos)[rows])
            cuts["qvel"].append(np.asarray(motion.qvel)[rows])
            if "ctrl" in some:
                cuts["ctrl"].append(np.asarray(motion.ctrl)[rows[:, :-1]])
            if "act" in some:
                cuts["act"].append(np.asarray(motion.act)[starts])
        if not motions or sum(map(len, cuts["qpos"])) == 0:
            raise ArgumentError(f"motions: none has {steps + 1} rows")
        joined = {name: np.concatenate(parts) for name, parts in cuts.items()}
        return cls(joined["qpos"], joined["qvel"], joined.get("ctrl"), None, joined.get("act"), _distances(motions))

    @classmethod
    def whole(cls, motions: Sequence[Motion]) -> Segments:
        """Take each motion as one segment. All become as long as the longest by its last row.

        Raises
        ------
        ArgumentError
            A motion has one row, or some have controls and others not.
        """
        some = _given(motions)
        rows = np.array([len(np.asarray(motion.qpos)) for motion in motions])
        if not len(rows) or rows.min() < 2:
            raise ArgumentError("motions: there is none, or one has a single row")
        at = [np.minimum(np.arange(rows.max()), n - 1) for n in rows]
        qpos = np.array([np.asarray(motion.qpos)[k] for motion, k in zip(motions, at, strict=True)])
        qvel = np.array([np.asarray(motion.qvel)[k] for motion, k in zip(motions, at, strict=True)])
        ctrl = act = None
        if "ctrl" in some:
            ctrl = np.array([np.asarray(motion.ctrl)[k[:-1]] for motion, k in zip(motions, at, strict=True)])
        if "act" in some:
            act = np.array([np.asarray(motion.act)[0] for motion in motions])
        return cls(qpos, qvel, ctrl, rows - 1, act, _distances(motions))

    def __len__(self) -> int:
        return len(self.qpos)

    def take(self, rows: NDArray[np.intp] | slice) -> Segments:
        """Return some of them."""
        ctrl = None if self.ctrl is None else self.ctrl[rows]
        length = None if self.length is None else self.length[rows]
        act = None if self.act is None else self.act[rows]
        return Segments(self.qpos[rows], self.qvel[rows], ctrl, length, act, self.apart)

    @property
    def looked(self) -> NDArray[np.bool_]:
        """Which of the states that follow are looked at, (N, K)."""
        count = self.qpos.shape[1] - 1
        return np.ones((len(self), count), bool) if self.length is None else np.arange(count) < self.length[:, None]

    @property
    def first(self) -> dict[str, Doubles]:
        """The states that they begin with."""
        first = {"qpos": self.qpos[:, 0], "qvel": self.qvel[:, 0]}
        return first if self.act is None else first | {"act": self.act}
