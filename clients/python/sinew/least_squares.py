"""Levenberg and Marquardt's method for identification: residuals of states and their derivatives by the parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sinew._arrays import Doubles
from sinew.errors import ArgumentError
from sinew.losses import StateLoss
from sinew.sensitivity import entry_changes, sensitivity

if TYPE_CHECKING:
    from sinew.identify import _Problem
    from sinew.segments import Segments

__all__ = ["minimize", "residuals", "spread", "standard_errors"]

_UNSEEN = 1e-12  # eigenvalue, of the largest, below which residuals tell nothing of a combination of parameters
_DIVERGED = 1e3  # each residual of a segment that diverges: a step that leads there is not taken


def _state_loss(problem: _Problem) -> StateLoss:
    if not isinstance(problem.loss, StateLoss):
        raise ArgumentError(f"optimizer: lm needs a StateLoss, a {type(problem.loss).__name__} is no sum of squares")
    return problem.loss


def residuals(problem: _Problem, values: Doubles, segments: Segments) -> tuple[Doubles, Doubles]:
    """Return residuals (R,), whose sum of squares is the mean loss of the segments, and Jacobian (R, P) by the values.

    Raises
    ------
    ArgumentError
        A loss that is no sum of squares, or all segments diverge.
    """
    loss, model = _state_loss(problem), problem.parameters.model(values)
    ways, nv = problem.ways, model.nv
    now = slice(ways.substeps, None, ways.substeps)
    with ways.rolled(model, segments, True) as made:
        found = sensitivity(made, problem.parameters.tangents(values))
    good = found.status == 0
    if not np.any(good):
        raise ArgumentError(f"all {len(segments)} segments diverge at {values}")
    qpos, qvel = (np.where(good[:, None, None], x[:, now], 1.0) for x in (made.qpos, made.qvel))
    change = entry_changes(model, qpos, found.state[:, now, :nv])
    off, slope = loss.residuals(model, qpos, qvel, segments, change, found.state[:, now, nv : 2 * nv])
    off[~good], slope[~good] = _DIVERGED, 0
    looked = segments.looked
    weight = np.sqrt(looked * looked.shape[1] / np.sum(looked, axis=1, keepdims=True))[..., None]
    off, slope = weight * off, weight[..., None] * slope
    share = 1 / np.sqrt(len(segments))
    return share * off.reshape(-1), share * slope.reshape(-1, slope.shape[-1])


def minimize(problem: _Problem, start: Doubles, iterations: int, note: Callable[[Mapping[str, Any]], None]) -> None:
    """Turn the free numbers by SciPy's least squares on all segments, with exact Jacobians.

    Without bounds it is MINPACK's method of Levenberg and Marquardt, else its kin for bounds, in a trust region. The
    limit on the gradient of the latter is absolute: small residuals meet it far from their least, so it is off.
    A journal does not keep its Jacobians: after an interrupt it begins anew.
    """
    from scipy.optimize import least_squares

    if problem.ways.integrator is not None:
        raise ArgumentError("optimizer: lm needs steps of the model, not those of an integrator")
    parameters = problem.parameters
    kept: dict[bytes, tuple[Doubles, Doubles]] = {}
    count = 0

    def evaluate(free: Doubles) -> tuple[Doubles, Doubles]:
        nonlocal count
        if free.tobytes() not in kept:
            kept.clear()
            values = parameters.to_values(free)
            off, by_value = residuals(problem, values, problem.segments)
            note({"iteration": count, "loss": float(off @ off), "values": values.tolist()})
            count += 1
            kept[free.tobytes()] = off, by_value * parameters.slopes(free)
        return kept[free.tobytes()]

    limits = parameters.free_bounds()
    bounded = bool(np.any(np.isfinite(limits)))
    least_squares(
        lambda free: evaluate(free)[0], parameters.to_free(start), lambda free: evaluate(free)[1],
        bounds=limits, method="trf" if bounded else "lm", x_scale="jac", max_nfev=iterations,
        gtol=None if bounded else 1e-8,
    )  # fmt: skip


def standard_errors(problem: _Problem, values: Doubles) -> Doubles:
    """Return standard errors (P,) by the Gauss-Newton matrix, where residuals count as independent and of one size."""
    off, jacobian = residuals(problem, values, problem.segments)
    variance = float(off @ off) / max(len(off) - len(values), 1)
    return spread(jacobian, variance)


def spread(jacobian: Doubles, variance: float) -> Doubles:
    """Return standard errors (P,) of a Jacobian (R, P) and the variance of its residuals.

    They are infinite for a parameter that moves no residual, or whose effect others can make up for.
    """
    size = np.linalg.norm(jacobian, axis=0)
    unit = np.where(size > 0, size, 1.0)
    told, ways = np.linalg.eigh((jacobian / unit).T @ (jacobian / unit))
    seen = told > _UNSEEN * max(told[-1], 0)
    squares = np.sum(ways[:, seen] ** 2 / told[seen], axis=1) * variance / unit**2
    unknown = np.any(np.abs(ways[:, ~seen]) > 1e-6, axis=1)
    return np.asarray(np.where(unknown, np.inf, np.sqrt(squares)))
