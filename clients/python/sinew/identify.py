"""Identification: parameters of a model from recorded motions, by exact gradients.

Recorded motions are cut into segments. A model is rolled out from the begin of each, all at once, and the distance of
its states from the recorded ones is the loss. Its derivative by the parameters is exact (`sinew.rollout_vjp`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from sinew import least_squares
from sinew._arrays import Doubles, number, row, whole
from sinew._cma import cma
from sinew._files import reason
from sinew._journal import Journal, digest_of
from sinew._json import finite
from sinew._moved import Moved, Ways
from sinew.cfd import CFD
from sinew.errors import ArgumentError, FileError
from sinew.losses import Loss, PoseLoss, StateLoss
from sinew.model import Model
from sinew.parameters import Parameters
from sinew.segments import Motion, Segments, check_times

__all__ = ["Identification", "Loss", "Motion", "PoseLoss", "Segments", "StateLoss", "identify", "predict"]

Optimizer = Literal["adam", "lbfgs", "lm", "cmaes"]
Kind = Literal["residuals", "losses", ""]  # of standard errors


@dataclass
class Identification:
    """What was identified.

    Attributes
    ----------
    names : list of str
        Names of the parameters.
    values : ndarray, (P,)
        Their values where the loss was least.
    errors : ndarray, (P,)
        Standard errors by the Gauss-Newton matrix; infinite: the recordings do not show this parameter, or only
        together with others; NaN: not asked for.
    loss : float
        The loss there, of all segments.
    held_out : float
        The loss of the held-out segments; NaN without any.
    history : list of dict
        Iteration, loss of its batch and values of each evaluation.
    errors_of : {"residuals", "losses", ""}
        What the standard errors were made of: exact derivatives of the residuals of a `StateLoss` by steps of the
        model, else differences of the roots of the segments' losses, which count for less; "": not asked for.
    """

    names: list[str]
    values: Doubles
    errors: Doubles
    loss: float
    held_out: float
    history: list[dict[str, Any]] = field(default_factory=list)
    errors_of: Kind = ""

    def __repr__(self) -> str:
        pairs = zip(self.names, self.values, strict=True)
        return f"<sinew.Identification {', '.join(f'{n}={v:.6g}' for n, v in pairs)}, loss {self.loss:.4g}>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of it as JSON, null for NaN and infinity, or raise `FileError`."""
        whole = asdict(self) | {"values": self.values.tolist(), "errors": self.errors.tolist()}
        try:
            Path(path).write_text(json.dumps(finite(whole), indent=1), encoding="utf-8")
        except OSError as error:
            raise FileError(f"{path}: {reason(error)}") from None

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw the loss and the values over the iterations, with matplotlib, to a file."""
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(
            1, 1 + len(self.names), figsize=(4 * (1 + len(self.names)), 3), layout="constrained"
        )
        steps = [x["iteration"] for x in self.history]
        for axis, name in zip(np.atleast_1d(axes), ["loss", *self.names], strict=True):
            axis.plot(
                steps, [x["loss"] if name == "loss" else x["values"][self.names.index(name)] for x in self.history]
            )
            axis.set(title=name, xlabel="iteration")
        axes[0].set_yscale("log")
        figure.savefig(path, dpi=100)
        plt.close(figure)


class _Problem:
    """The loss of segments as a function of the values."""

    def __init__(self, parameters: Parameters, segments: Segments, loss: Loss, ways: Ways, journal: Journal) -> None:
        self.parameters, self.segments, self.loss = parameters, segments, loss
        self.ways, self.journal = ways, journal

    def compared(self, model: Model, segments: Segments, moved: Moved) -> tuple[Doubles, Doubles, Doubles]:
        """Return the loss of each segment and its derivatives by its states. Where these are bad they are numbers."""
        looked = moved.good[:, None] & segments.looked
        scale = looked.shape[1] / np.sum(segments.looked, axis=1)
        qpos = np.where(looked[..., None], moved.qpos, segments.qpos[:, 1:])
        qvel = np.where(looked[..., None], moved.qvel, segments.qvel[:, 1:])
        loss, by_qpos, by_qvel = self.loss(model, qpos, qvel, segments)
        share = (scale[:, None] * looked)[..., None]
        return scale * loss, share * by_qpos, share * by_qvel

    def losses(self, values: Doubles, segments: Segments) -> Doubles:
        """Return the loss of each segment, (N,); NaN: it diverges."""
        model = self.parameters.model(values)
        moved = self.ways.moved(model, segments, gradients=False)
        return np.where(moved.good, self.compared(model, segments, moved)[0], np.nan)

    def value(self, values: Doubles, segments: Segments | None = None) -> float:
        asked = self.segments if segments is None else segments
        return float(self.journal.ask("value", values, lambda: float(np.mean(self.losses(values, asked)))))

    def slope(self, values: Doubles, segments: Segments) -> tuple[float, Doubles]:
        """Return the mean loss and its derivatives by the values. A segment that diverges counts nothing."""

        def evaluate() -> list[Any]:
            model = self.parameters.model(values)
            moved = self.ways.moved(model, segments, gradients=True)
            if not np.any(moved.good):
                raise ArgumentError(f"all {len(segments)} segments diverge at {values}")
            loss, by_qpos, by_qvel = self.compared(model, segments, moved)
            found = moved.back(by_qpos, by_qvel, self.parameters.tangents(values))[moved.good]
            return [float(np.mean(loss[moved.good])), np.mean(found, axis=0).tolist()]

        loss, by_value = self.journal.ask("slope", values, evaluate)
        return loss, np.array(by_value)

    def standard_errors(self, values: Doubles) -> tuple[Doubles, Kind]:
        """Return standard errors: of residuals where the loss has them, else from differences of the losses' roots."""
        if isinstance(self.loss, StateLoss) and self.ways.integrator is None:
            return least_squares.standard_errors(self, values), "residuals"
        steps = 1e-4 * np.maximum(np.abs(values), 1e-3)
        ways = [[self.clip(values + s * way) for way in np.diag(steps)] for s in (1, -1)]
        ends = np.array([[np.sqrt(self.losses(at, self.segments)) for at in side] for side in ways])
        width = np.diagonal(np.array(ways[0]) - np.array(ways[1]))  # at a bound that of one side
        jacobian = ((ends[0] - ends[1]) / width[:, None]).T
        jacobian = jacobian[np.all(np.isfinite(jacobian), axis=1)]  # without segments that diverge
        variance = self.value(values) * len(self.segments) / max(len(self.segments) - len(values), 1)
        return least_squares.spread(jacobian, variance), "losses"

    def clip(self, values: Doubles) -> Doubles:
        return np.array([self.parameters[n].clip(float(v)) for n, v in zip(self.parameters.names, values, strict=True)])


Callback = Callable[[Mapping[str, Any]], None]
_OPTIMIZERS = ("adam", "lbfgs", "lm", "cmaes")


def _adam(
    problem: _Problem, start: Doubles, iterations: int, rate: float, betas: tuple[float, float], batch: int,
    rng: np.random.Generator, note: Callback,
) -> None:  # fmt: skip
    """Turn the free numbers by Adam (D. Kingma, J. Ba 2015), in units of their first sizes, of logarithms at least 1.

    A slope counts as none that changes the loss by less than a ten thousandth of its first value over such a unit.
    """
    parameters, segments = problem.parameters, problem.segments
    free = parameters.to_free(start)
    first, second = np.zeros_like(free), np.zeros_like(free)
    least = [1e-3 if parameters[name].transform == "none" else 1.0 for name in parameters.names]
    scale, flat = np.maximum(np.abs(free), least), 0.0
    for k in range(1, iterations + 1):
        rows = rng.permutation(len(segments))[:batch] if batch < len(segments) else slice(None)
        values = parameters.to_values(free)
        loss, by_value = problem.slope(values, segments.take(rows))
        note({"iteration": k - 1, "loss": loss, "values": values.tolist()})
        slope = by_value * parameters.slopes(free) * scale
        first = betas[0] * first + (1 - betas[0]) * slope
        second = betas[1] * second + (1 - betas[1]) * slope * slope
        mean, square = first / (1 - betas[0] ** k), second / (1 - betas[1] ** k)
        flat = 1e-4 * loss if k == 1 else flat
        size = np.sqrt(square) + flat
        free = free - rate * scale * np.divide(mean, size, out=np.zeros_like(mean), where=size > 0)
        free = np.array(
            [
                p.to_free(p.to_value(float(x)))
                for p, x in zip((parameters[n] for n in parameters.names), free, strict=True)
            ]
        )
    note(
        {
            "iteration": iterations,
            "loss": problem.value(parameters.to_values(free)),
            "values": parameters.to_values(free).tolist(),
        }
    )


def _lbfgs(problem: _Problem, start: Doubles, iterations: int, note: Callback) -> None:
    """Turn the free numbers by SciPy's L-BFGS-B, on all segments. The loss counts in units of its first value."""
    from scipy.optimize import Bounds, minimize

    parameters = problem.parameters
    losses: list[float] = []

    def value(free: Doubles) -> tuple[float, Doubles]:
        values = parameters.to_values(free)
        loss, by_value = problem.slope(values, problem.segments)
        note({"iteration": len(losses), "loss": loss, "values": values.tolist()})
        losses.append(loss)
        unit = losses[0] or 1.0
        return loss / unit, by_value * parameters.slopes(free) / unit

    minimize(
        value, parameters.to_free(start), jac=True, method="L-BFGS-B", bounds=Bounds(*parameters.free_bounds()),
        options={"maxiter": iterations},
    )  # fmt: skip


def predict(
    model: Model, segments: Segments, *, substeps: int = 1, integrator: Mapping[str, Any] | None = None,
    threads: int = 0,
) -> tuple[Doubles, Doubles]:  # fmt: skip
    """Return qpos and qvel, (N, K, .), to which a model moves from where segments begin; NaN where it diverges.

    Parameters
    ----------
    model : Model
        The model.
    segments : Segments
        What was recorded.
    substeps, integrator, threads
        As those of `identify`.
    """
    made = Ways(substeps, integrator, None, threads).moved(model, segments, gradients=False)
    qpos, qvel = (np.where(made.good[:, None, None], x, np.nan) for x in (made.qpos, made.qvel))
    return qpos, qvel


def identify(
    parameters: Parameters,
    motions: Sequence[Motion] | Segments,
    *,
    steps: int = 4,
    stride: int = 1,
    substeps: int = 1,
    loss: Loss | None = None,
    optimizer: Optimizer = "adam",
    iterations: int = 100,
    rate: float = 0.02,
    betas: tuple[float, float] = (0.5, 0.9),
    batch: int = 256,
    start: ArrayLike | None = None,
    starts: int = 1,
    held_out: float = 0.0,
    cfd: CFD | None = None,
    integrator: Mapping[str, Any] | None = None,
    uncertainty: bool = False,
    threads: int = 0,
    seed: int = 0,
    progress: Callback | None = None,
    journal: str | os.PathLike[str] | None = None,
) -> Identification:
    """Identify parameters of a model from recorded motions.

    Parameters
    ----------
    parameters : Parameters
        What is sought, and of which model. Its time step times ``substeps`` is the time between recorded states.
    motions : sequence of Motion, or Segments
        What was recorded.
    steps, stride : int
        Steps of a segment, and rows between their begins.
    substeps : int
        Steps of the model from one recorded state to the next.
    loss : StateLoss or PoseLoss, optional
        Default: `StateLoss`.
    optimizer : {"adam", "lbfgs", "lm", "cmaes"}
        Adam on random batches of segments; on all of them SciPy's L-BFGS-B, or Levenberg and Marquardt's method on
        exact Jacobians, for a `StateLoss` and steps of the model; for comparison CMA-ES on random batches, without
        gradients, by the package cmaes.
    iterations : int
        Iterations of it.
    rate, betas, batch : float, (float, float), int
        Of Adam: the rate, a share of each number's first size; decay of its moments; segments of an iteration.
    start : array_like, (P,), optional
        First values. Default: those of ``parameters``. With the transform softclip a start at a bound moves inside
        by a thousandth of the width, as slopes vanish at bounds.
    starts : int
        How many starts there are: that one, and others at random between the bounds. The best end counts.
    held_out : float
        Share of the segments that are only looked at in the end, the last ones.
    cfd : CFD, optional
        Contacts from distance, in derivatives alone.
    integrator : mapping, optional
        Settings of `integrate` by which segments are moved with chosen steps, ``{"rtol": 1e-4, "atol": 1e-4}``, say.
        None: by steps of the model.
    uncertainty : bool
        Compute standard errors: `Identification.errors_of` says of what.
    threads : int
        Threads; 0: as many as this process may use.
    seed : int
        Of the batches.
    progress : callable, optional
        Called with start, iteration, loss and values after each evaluation.
    journal : path, optional
        A file of all evaluations. The same call on what is left of one that was interrupted goes on from there; but
        ``lm``, whose Jacobians are not kept, begins anew. Another call is refused.

    Returns
    -------
    Identification
        The values with the least loss over all segments, among the last ones and those of the best batches.

    Raises
    ------
    ArgumentError
        Bad numbers, no segment that does not diverge, or a journal of another identification.
    """
    if not isinstance(parameters, Parameters):
        raise ArgumentError(f"parameters: {type(parameters).__name__}, expected a sinew.Parameters")
    if loss is not None and not callable(loss):
        raise ArgumentError(f"loss: {loss!r}, expected a StateLoss, a PoseLoss or None")
    if integrator is not None and not isinstance(integrator, Mapping):
        raise ArgumentError(f"integrator: {integrator!r}, expected a mapping of settings or None")
    if optimizer not in _OPTIMIZERS:
        raise ArgumentError(f"optimizer: {optimizer!r}, allowed are {', '.join(_OPTIMIZERS)}")
    iterations, substeps = whole("iterations", iterations), whole("substeps", substeps)
    batch, starts = whole("batch", batch), whole("starts", starts)
    if (
        not 0 <= number("held_out", held_out) < 1
        or min(iterations, substeps, batch, starts) < 1
        or not number("rate", rate) > 0
    ):
        raise ArgumentError(
            f"held_out {held_out}, iterations {iterations}, substeps {substeps}, batch {batch}, starts {starts}, rate "
            f"{rate}: allowed are 0 to below 1, and numbers above 0"
        )
    if not all(0 <= x < 1 for x in row("betas", betas, 2)):
        raise ArgumentError(f"betas: {betas}, allowed are two numbers from 0 to below 1")
    segments = motions if isinstance(motions, Segments) else Segments.of(motions, steps, stride)
    check_times(segments, substeps, float(parameters.model().opt.timestep))
    kept = len(segments) - round(held_out * len(segments))
    if kept == 0:
        raise ArgumentError(f"held_out: {held_out} of {len(segments)} segments leaves none")

    loss, first = loss or StateLoss(), parameters.inside(parameters.values if start is None else start)
    digest = "" if journal is None else digest_of(
        parameters.identity(first), first, segments, loss, substeps, integrator, cfd, optimizer, iterations, rate,
        betas, batch, starts, kept, uncertainty, seed,
    )  # fmt: skip
    ways = Ways(substeps, integrator, cfd, threads)
    problem = _Problem(parameters, segments.take(slice(0, kept)), loss, ways, Journal(journal, digest))
    history: list[dict[str, Any]] = []
    rng = np.random.default_rng(seed)
    for k in range(starts):
        begin = first if k == 0 else parameters.inside(parameters.between(rng.uniform(size=len(parameters))))

        def note(step: Mapping[str, Any], k: int = k) -> None:
            history.append({"start": k} | dict(step))
            if progress is not None:
                progress(history[-1])

        if optimizer == "adam":
            _adam(problem, begin, iterations, rate, betas, batch, rng, note)
        elif optimizer == "lm":
            least_squares.minimize(problem, begin, iterations, note)
        elif optimizer == "lbfgs":
            _lbfgs(problem, begin, iterations, note)
        else:
            cma(problem, begin, iterations, batch, rng, note)
    best, score = _best(problem, history)
    rest = segments.take(slice(kept, None))
    kind: Kind = ""
    spread = np.full(len(best), np.nan)
    if uncertainty:
        spread, kind = problem.standard_errors(best)
    apart = problem.value(best, rest) if len(rest) else float("nan")
    return Identification(parameters.names, best, spread, score, apart, history, kind)


def _best(problem: _Problem, history: list[dict[str, Any]]) -> tuple[Doubles, float]:
    """Return the values with the least loss over all segments, among the last and the best of each start; and it."""
    tried = []
    for k in sorted({x["start"] for x in history}):
        own = [x for x in history if x["start"] == k]
        tried += [own[-1], *sorted(own, key=lambda x: x["loss"])[:3]]
    scores = [problem.value(np.array(x["values"])) for x in tried]
    if np.all(np.isnan(scores)):
        raise ArgumentError(f"a segment diverges at each of the {len(tried)} best values: {tried[0]['values']} is one")
    best = int(np.nanargmin(scores))
    return np.array(tried[best]["values"]), float(scores[best])
