"""Integration of many bodies with chosen steps, and the way back: each by steps of its own, on threads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sinew import _core
from sinew._arrays import Doubles, as_array, doubles, given, inputs, row, shape_text, whole
from sinew._pool import threads_of_cpu
from sinew.errors import ArgumentError, LimitError
from sinew.integrate import ENDS, memory_bytes, native_integrator, wanted_times
from sinew.model import Model, not_a_model
from sinew.model_tangents import ModelTangents, native_tangents
from sinew.state import State, StateLike

__all__ = ["IntegrationGradients", "Integrations", "integrate_batch", "integrate_batch_vjp"]


@dataclass(eq=False)
class Integrations:
    """N motions at M times, and how they were computed.

    Attributes
    ----------
    model : Model
        What moved.
    time : ndarray, (M,)
        Times since the initial states [s].
    qpos, qvel, act : ndarray, (N, M, .)
        The motions; NaN behind the end of a run that was not done.
    end : ndarray of str, (N,)
        How each ended, as in `Integration`: "done", "steps", "smallest", "diverged" or "memory".
    reached : ndarray, (N,)
        Times that were reached [s].
    accepted, rejected, evaluations, warnings : ndarray, (N,)
        As in `Integration`.
    """

    model: Model
    time: Doubles
    qpos: Doubles
    qvel: Doubles
    act: Doubles
    end: NDArray[np.str_]
    reached: Doubles
    accepted: NDArray[np.int32]
    rejected: NDArray[np.int32]
    evaluations: NDArray[np.int32]
    warnings: NDArray[np.int32]
    _integrators: _core.Integrators = field(repr=False)
    _threads: int = field(repr=False)
    _ctrl: tuple[int, ...] = field(repr=False)  # shape of the controls of one body
    _knots: int = field(repr=False)

    def __repr__(self) -> str:
        done = int(np.sum(self.end == "done"))
        return f"<Integrations of {len(self.end)} motions, {done} done, {int(self.accepted.sum())} steps>"

    def raise_if_unfinished(self) -> Integrations:
        """Return the motions, or raise `LimitError` that names the first one that was not done."""
        bad = np.flatnonzero(self.end != "done")
        if len(bad):
            i = bad[0]
            raise LimitError(
                f"motion {i} ended at {self.reached[i]:.6g} s, after {self.accepted[i]} steps: '{self.end[i]}'; "
                f"{len(bad)} of {len(self.end)} are not done"
            )
        return self


@dataclass(eq=False)
class IntegrationGradients:
    """Derivatives of a number by what each of N integrations began with.

    Attributes
    ----------
    ctrl : ndarray, (N, K, nu) or (N, nu)
        By the controls.
    qpos, qvel, act, mocap : ndarray, (N, .)
        By the initial states, as in `IntegrationGradient`.
    status : ndarray of int, (N,)
        0; else a motion that is not done, or a derivative that is not finite: all of its derivatives are zero.
    parameters : ndarray, (N, P), or None
        By parameters of the model, where they were given.
    """

    ctrl: Doubles
    qpos: Doubles
    qvel: Doubles
    act: Doubles
    mocap: Doubles
    status: NDArray[np.int32]
    parameters: Doubles | None = None


def _knots(model: Model, ctrl: ArrayLike | None, ctrl_time: ArrayLike | None) -> tuple[Doubles, Doubles]:
    """Return times (K,) and values, (K, nu) or (N, K, nu), of the knots of the controls."""
    if ctrl is None:
        if ctrl_time is not None:
            raise ArgumentError("ctrl_time: given without ctrl")
        return np.zeros(1), np.zeros((1, model.nu))
    values = doubles("ctrl", ctrl)
    if ctrl_time is None:
        if values.ndim not in (1, 2) or values.shape[-1] != model.nu:
            raise ArgumentError(
                f"ctrl: shape {shape_text(values.shape)}, expected ({model.nu},) or (N, {model.nu}) without ctrl_time"
            )
        return np.zeros(1), np.ascontiguousarray(values[..., None, :])
    if values.ndim not in (2, 3) or values.shape[-1] != model.nu:
        raise ArgumentError(
            f"ctrl: shape {shape_text(values.shape)}, expected (K, {model.nu}) or (N, K, {model.nu}) with ctrl_time"
        )
    return row("ctrl_time", ctrl_time, values.shape[-2]), values


def _each(x: Doubles | None, count: int, *shape: int) -> Doubles | None:
    """Return an array with a row for each of `count`; None stays."""
    return None if x is None else np.ascontiguousarray(np.broadcast_to(x, (count, *shape)))


def integrate_batch(
    model: Model,
    state: StateLike | None = None,
    time: ArrayLike = (),
    ctrl: ArrayLike | None = None,
    *,
    ctrl_time: ArrayLike | None = None,
    threads: int = 0,
    memory: int = 1 << 30,
    **settings: Any,
) -> Integrations:
    """Move N bodies by an explicit Runge-Kutta method whose steps keep to a tolerance.

    Each has steps of its own, and is bit for bit what `integrate` makes of it.

    Parameters
    ----------
    model : Model
        The model.
    state : State, mapping or MjData, optional
        Initial states: members with one row, or with N. Default: `qpos0` at rest.
    time : array_like, (M,)
        Strictly ascending times since the initial states at which the motions are wanted [s].
    ctrl : array_like, (nu,), (N, nu), (K, nu) or (N, K, nu), optional
        Controls: one for all the time, or, with ``ctrl_time``, K knots; for all bodies or for each.
    ctrl_time : array_like, (K,), optional
        Strictly ascending times of the knots [s].
    threads : int
        Threads of the CPU; 0: as many as this process may use. Results do not depend on it.
    memory : int
        Most bytes for the steps that the way back needs, of all bodies together.
    **settings
        Those of `integrate`: method, tolerances, bounds of the steps, ``linear``, ``cfd``, ``gradients``.

    Returns
    -------
    Integrations
        The motions. How each ended is data (``end``).

    Raises
    ------
    ArgumentError
        A shape, a type, a time, a tolerance.
    NotFoundError
        An unknown method.
    DivergedError
        A number of an initial state is NaN or beyond 1e10.
    """
    if not isinstance(model, Model):
        raise not_a_model("model", model)
    of = State.of(state)
    if of.time is not None and np.ptp(doubles("time", np.reshape(of.time, -1))) > 0:
        raise ArgumentError("state: times differ, expected one for all bodies")
    knot_time, knot = _knots(model, ctrl, ctrl_time)
    start = inputs(model, of, knot, None)
    n = start.count
    like = native_integrator(model, memory=memory_bytes(memory) // n, **settings)
    wanted = wanted_times(time)
    m = len(wanted)
    first, qpos, qvel, act, mocap, _, _, _ = start.arrays
    out = np.empty((n, m, model.nq)), np.empty((n, m, model.nv)), np.empty((n, m, model.na))
    counts, reached = np.empty((5, n), np.int32), np.empty(n)
    integrators = _core.Integrators(like, n)
    with threads_of_cpu(whole("threads", threads)) as backend:
        integrators.run(
            backend, float(wanted[-1]), 0.0 if first is None else float(first.flat[0]), _each(qpos, n, model.nq),
            _each(qvel, n, model.nv), _each(act, n, model.na), _each(mocap, n, model.nmocap, 7), knot_time,
            _each(knot, n, len(knot_time), model.nu), wanted, *out, counts, reached,
        )  # fmt: skip
    return Integrations(
        model, wanted.copy(), *out, np.array(ENDS)[counts[0]], reached, counts[1], counts[2], counts[3], counts[4],
        integrators, threads,
        (len(knot_time), model.nu) if ctrl_time is not None else (model.nu,), len(knot_time),
    )  # fmt: skip


def integrate_batch_vjp(
    integrations: Integrations,
    qpos: ArrayLike | None = None,
    qvel: ArrayLike | None = None,
    act: ArrayLike | None = None,
    coordinates: Literal["array", "tangent"] = "array",
    parameters: ModelTangents | None = None,
) -> IntegrationGradients:
    """Return the derivatives of a number by what integrations began with, given those by the motions.

    Each is bit for bit what `integrate_vjp` makes of it.

    Parameters
    ----------
    integrations : Integrations
        Motions with gradients. May be used any number of times.
    qpos, qvel, act : array_like, (N, M, .), optional
        Derivatives of the number by the motions at their M times. None: zero.
    coordinates : {"array", "tangent"}
        How derivatives by positions are given, here and in the result, as in `integrate_vjp`.
    parameters : ModelTangents, optional
        Parameters of the model by which derivatives are wanted, too.

    Returns
    -------
    IntegrationGradients
        Derivatives by controls, initial states, mocap bodies and parameters.

    Raises
    ------
    ArgumentError
        A shape, a type, or a number that is not finite.
    """
    if not isinstance(integrations, Integrations):
        raise ArgumentError(f"integrations: {type(integrations).__name__}, expected sinew Integrations")
    by_entries = as_array(coordinates)
    model, n, m = integrations.model, len(integrations.end), len(integrations.time)
    nq = model.nq if by_entries else model.nv
    bars = given("qpos", qpos, n, m, nq), given("qvel", qvel, n, m, model.nv), given("act", act, n, m, model.na)
    out = IntegrationGradients(
        np.zeros((n, integrations._knots, model.nu)), np.empty((n, nq)), np.empty((n, model.nv)),
        np.empty((n, model.na)), np.zeros((n, model.nmocap, 6)), np.empty(n, np.int32),
    )  # fmt: skip
    native = native_tangents(parameters)
    if parameters is not None:
        out.parameters = np.empty((n, len(parameters)))
    with threads_of_cpu(integrations._threads) as backend:
        integrations._integrators.vjp(
            backend, by_entries, *bars, out.qpos, out.qvel, out.act, out.ctrl, out.mocap, native, out.parameters,
            out.status,
        )  # fmt: skip
    out.ctrl = out.ctrl.reshape(n, *integrations._ctrl)
    return out
