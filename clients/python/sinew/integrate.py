"""Integration with chosen steps, by explicit Runge-Kutta methods, and the way back."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from sinew import _core
from sinew._arrays import Doubles, as_array, doubles, given, one_state, row, shape_text, whole
from sinew.cfd import CFD
from sinew.errors import ArgumentError, DivergedError, LimitError
from sinew.model import Model, not_a_model
from sinew.model_tangents import ModelTangents, native_tangents
from sinew.rollout import cfd_key
from sinew.state import StateLike

__all__ = ["Controller", "Integration", "IntegrationGradient", "integrate", "integrate_vjp"]

End = Literal["done", "steps", "smallest", "diverged", "memory"]
Method = Literal["euler", "heun", "midpoint", "ralston", "bosh3", "rk4", "tsit5", "dopri5", "dopri8"]
ENDS: tuple[End, ...] = ("done", "steps", "smallest", "diverged", "memory")  # SinewIntegrationEnd


@dataclass(frozen=True)
class Controller:
    """How the size of a step follows the errors of those before (PID; G. Soderlind, ACM TOMS 29, 2003).

    Attributes
    ----------
    p, i, d : float
        Gains.
    safety : float
        Factor of the size that is proposed, above 0, at most 1.
    shrink, grow : float
        Least and largest factor from a step to the next.
    """

    p: float = 0.2
    i: float = 0.4
    d: float = 0.0
    safety: float = 0.9
    shrink: float = 0.2
    grow: float = 10.0


@dataclass(eq=False)
class Integration:
    """A motion at M times, and how it was computed.

    Attributes
    ----------
    model : Model
        What moved.
    time : ndarray, (M,)
        Times since the initial state [s].
    qpos : ndarray, (M, nq)
        Positions [m, rad]; NaN behind the end of a run that was not done, as in the other two.
    qvel : ndarray, (M, nv)
        Velocities [m/s, rad/s].
    act : ndarray, (M, na)
        Activations.
    end : str
        "done"; "steps": `max_steps` do not suffice; "smallest": the tolerance asks for a step below the smallest one;
        "diverged"; "memory": it does not hold all steps that the way back needs.
    reached : float
        Time that was reached [s].
    accepted, rejected, evaluations : int
        Steps, attempts whose error was too large, and how often the dynamics were evaluated.
    warnings : int
        Bits of what happened in its steps, rejected ones included, ``SINEW_WARN_*``.
    step_time : ndarray, (accepted,)
        Where the steps begin [s]; empty without gradients.
    """

    model: Model
    time: Doubles
    qpos: Doubles
    qvel: Doubles
    act: Doubles
    end: End
    reached: float
    accepted: int
    rejected: int
    evaluations: int
    warnings: int
    step_time: Doubles
    _words: str = field(repr=False)
    _integrator: _core.Integrator = field(repr=False)
    _knots: int | None = field(repr=False)  # None: the controls have no dimension of time

    def __repr__(self) -> str:
        return f"<Integration of {self.reached:g} s, {self.accepted} steps, {self.rejected} rejected: {self.end}>"

    def raise_if_unfinished(self) -> Integration:
        """Return the motion, or raise `DivergedError` or `LimitError` that says where and why it ended."""
        if self.end == "done":
            return self
        kind = DivergedError if self.end == "diverged" else LimitError
        raise kind(f"at {self.reached:.6g} s, after {self.accepted} steps: {self._words}")


@dataclass(eq=False)
class IntegrationGradient:
    """Derivatives of a number by what an integration began with.

    Attributes
    ----------
    ctrl : ndarray, (K, nu) or (nu,)
        By the controls, as these were given.
    qpos : ndarray, (nq,), or (nv,) as a tangent
        By the initial positions.
    qvel : ndarray, (nv,)
        By the initial velocities.
    act : ndarray, (na,)
        By the initial activations.
    mocap : ndarray, (nmocap, 6)
        By displacements of the mocap bodies, then by their turns about the world's axes.
    parameters : ndarray, (P,), or None
        By parameters of the model, where they were given.
    """

    ctrl: Doubles
    qpos: Doubles
    qvel: Doubles
    act: Doubles
    mocap: Doubles
    parameters: Doubles | None = None


def _knots(model: Model, ctrl: ArrayLike | None, ctrl_time: ArrayLike | None) -> tuple[Doubles, Doubles, int | None]:
    """Return times and values of the knots of the controls, and their number where the caller gave several."""
    if ctrl is None:
        if ctrl_time is not None:
            raise ArgumentError("ctrl_time: given without ctrl")
        return np.zeros(1), np.zeros((1, model.nu)), None
    values = doubles("ctrl", ctrl)
    if ctrl_time is None:
        return np.zeros(1), row("ctrl", values, model.nu).reshape(1, -1), None
    if values.ndim != 2 or values.shape[1] != model.nu:
        raise ArgumentError(f"ctrl: shape {shape_text(values.shape)}, expected (K, {model.nu}) with ctrl_time")
    return row("ctrl_time", ctrl_time, len(values)), values, len(values)


def _number(name: str, x: float) -> float:
    """Return `x` as a float."""
    try:
        return float(x)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name}: {x!r}, expected a number") from None


def memory_bytes(memory: int) -> int:
    """Return a number of bytes, checked."""
    try:
        size = operator.index(memory)
    except TypeError:
        raise ArgumentError(f"memory: {memory!r}, expected a whole number of bytes") from None
    if not 0 <= size < 2**63:
        raise ArgumentError(f"memory: {memory} bytes, expected 0 to 2**63 - 1")
    return size


def wanted_times(time: ArrayLike) -> Doubles:
    """Return the times at which a motion is wanted, checked."""
    wanted = doubles("time", time)
    if wanted.ndim != 1 or len(wanted) == 0:
        raise ArgumentError(f"time: shape {shape_text(wanted.shape)}, expected (M,) with M of at least 1")
    late = np.append(wanted[0] >= 0, np.diff(wanted) > 0)
    if not late.all():
        k = int(np.argmin(late))
        bound = f"above the one before, {wanted[k - 1]:g} s" if k else "at least 0 s"
        raise ArgumentError(f"time[{k}]: {wanted[k]:g} s, expected {bound}")
    if wanted[-1] == 0:
        raise ArgumentError("time: the last one is 0 s, expected one above it: the motion ends there")
    return wanted


def native_integrator(
    model: Model,
    *,
    linear: bool = False,
    method: Method = "tsit5",
    rtol: float = 1e-5,
    atol: float = 1e-5,
    fixed_step: float | None = None,
    first_step: float | None = None,
    smallest_step: float | None = None,
    largest_step: float | None = None,
    controller: Controller | None = None,
    max_steps: int = 100_000,
    stop_at_outputs: bool = False,
    cfd: CFD | None = None,
    gradients: bool = True,
    memory: int = 1 << 30,
    events: bool = True,
) -> _core.Integrator:
    """Return the library's integrator for settings of `integrate`, checked."""
    if not isinstance(model, Model):
        raise not_a_model("model", model)
    cfd_key(cfd)
    c = Controller() if controller is None else controller
    if not isinstance(c, Controller):
        raise ArgumentError(f"controller: {type(c).__name__}, expected a sinew.Controller")
    if not isinstance(method, str):
        raise ArgumentError(f"method: {method!r}, expected a name")
    if fixed_step is not None and not _number("fixed_step", fixed_step) > 0:
        raise ArgumentError(f"fixed_step: {fixed_step} s, expected above 0 s, or None")
    bounds = {"fixed_step": fixed_step, "first_step": first_step, "smallest_step": smallest_step}
    sizes = [0.0 if x is None else _number(name, x) for name, x in [*bounds.items(), ("largest_step", largest_step)]]
    return _core.Integrator(
        model._native, method, [_number("rtol", rtol), _number("atol", atol)], sizes,
        [_number(f"controller.{name}", x) for name, x in vars(c).items()], whole("max_steps", max_steps), bool(linear),
        bool(stop_at_outputs), bool(gradients), memory_bytes(memory), None if cfd is None else cfd._native(),
        bool(events),
    )  # fmt: skip


def integrate(
    model: Model,
    state: StateLike | None = None,
    time: ArrayLike = (),
    ctrl: ArrayLike | None = None,
    *,
    ctrl_time: ArrayLike | None = None,
    linear: bool = False,
    method: Method = "tsit5",
    rtol: float = 1e-5,
    atol: float = 1e-5,
    fixed_step: float | None = None,
    first_step: float | None = None,
    smallest_step: float | None = None,
    largest_step: float | None = None,
    controller: Controller | None = None,
    max_steps: int = 100_000,
    stop_at_outputs: bool = False,
    cfd: CFD | None = None,
    gradients: bool = True,
    memory: int = 1 << 30,
    events: bool = True,
) -> Integration:
    """Move one body by an explicit Runge-Kutta method whose steps keep to a tolerance.

    The state (qpos, qvel, act) moves by (qvel, qacc, act_dot), without the implicit damping of MuJoCo's Euler method;
    rotations move on their group. A stiff contact that rests costs steps for as long as it rests.

    Parameters
    ----------
    model : Model
        The model.
    state : State, mapping or MjData, optional
        One initial state. Default: `qpos0` at rest.
    time : array_like, (M,)
        Strictly ascending times since the initial state at which the motion is wanted [s]. It ends with the last one.
    ctrl : array_like, (nu,) or (K, nu), optional
        Controls: one for all the time, or K knots. Without them they are zero.
    ctrl_time : array_like, (K,), optional
        Strictly ascending times of the knots [s]. Before the first and behind the last one their controls hold.
    linear : bool
        Controls go linearly between knots; else each holds until the next.
    method : str
        "euler", "heun", "midpoint", "ralston", "bosh3", "rk4", "tsit5", "dopri5" or "dopri8". "euler" and "rk4" need
        `fixed_step`.
    rtol, atol : float
        Relative and absolute tolerance of a step, above 0, at most 1.
    fixed_step : float, optional
        All steps have this size, and no error is controlled [s].
    first_step, smallest_step, largest_step : float, optional
        Bounds of the steps [s]. Default: chosen; what rounding leaves; the horizon.
    controller : Controller, optional
        How the size of the steps is chosen.
    max_steps : int
        Most steps, rejected ones included.
    stop_at_outputs : bool
        Steps end at `time`; else the motion is interpolated there.
    cfd : CFD, optional
        Contacts from distance.
    gradients : bool
        Keep what `integrate_vjp` needs.
    memory : int
        Most bytes for that. Where they do not hold all steps, `integrate_vjp` computes most of them once more, to the
        same bits.
    events : bool
        Steps end where a contact or limit begins to act, ends with a force, sticks or slides; steps of a fixed size do
        not. Without it derivatives through contacts are of no use.

    Returns
    -------
    Integration
        The motion. How it ended is data (``end``), see `Integration.raise_if_unfinished`.

    Raises
    ------
    ArgumentError
        A shape, a type, a time, a tolerance.
    NotFoundError
        An unknown method.
    DivergedError
        A number of the initial state is NaN or beyond 1e10.
    """
    integrator = native_integrator(
        model, linear=linear, method=method, rtol=rtol, atol=atol, fixed_step=fixed_step, first_step=first_step,
        smallest_step=smallest_step, largest_step=largest_step, controller=controller, max_steps=max_steps,
        stop_at_outputs=stop_at_outputs, cfd=cfd, gradients=gradients, memory=memory, events=events,
    )  # fmt: skip
    wanted = wanted_times(time)
    knot_time, knot, knots = _knots(model, ctrl, ctrl_time)
    start = one_state(model, state)
    m = len(wanted)
    qpos, qvel, act = np.empty((m, model.nq)), np.empty((m, model.nv)), np.empty((m, model.na))
    end, words, reached, accepted, rejected, evaluations, warnings = integrator.run(
        float(wanted[-1]), *start, knot_time, knot, wanted, qpos, qvel, act
    )
    step_time = np.empty(accepted if gradients else 0)
    integrator.steps(step_time)
    return Integration(
        model, wanted.copy(), qpos, qvel, act, ENDS[end], reached, accepted, rejected, evaluations, warnings,
        step_time, words, integrator, knots,
    )  # fmt: skip


def integrate_vjp(
    integration: Integration,
    qpos: ArrayLike | None = None,
    qvel: ArrayLike | None = None,
    act: ArrayLike | None = None,
    coordinates: Literal["array", "tangent"] = "array",
    parameters: ModelTangents | None = None,
    adjoint: Literal["discrete", "backsolve"] = "discrete",
) -> IntegrationGradient:
    """Return the derivatives of a number by what an integration began with, given those by the motion.

    The steps are gone through backwards. Where a contact or limit begins to act, or ends with a force, the motion has
    a jump of its acceleration, whose moment moves with what the motion began with: that is in the derivative
    (``events``). It is left out where an event was not found: where a contact only grazes, and where the number of
    contacts of a pair changes at a depth. Of corners that touch at the same time the derivative is that in directions
    which keep them together. With steps of a fixed size it is the derivative of what the steps compute.

    Parameters
    ----------
    integration : Integration
        A motion with gradients that is done. May be used any number of times.
    qpos, qvel, act : array_like, (M, .), optional
        Derivatives of the number by the motion at its M times. None: zero.
    coordinates : {"array", "tangent"}
        How derivatives by positions are given, here and in the result: by the entries of `qpos` (nq), or along
        tangents (nv), where a rotation counts 3.
    parameters : ModelTangents, optional
        Parameters of the model by which derivatives are wanted, too.
    adjoint : {"discrete", "backsolve"}
        That of the steps; or that of the motion, a differential equation which is solved backwards by steps of its own.
        The second one is a check of the first: they differ by the tolerance. It costs several times as much, most where
        contacts are stiff, and has no derivatives by parameters. With contacts from distance on the way back alone it
        finds the steps that these need, where the motion took long ones.

    Returns
    -------
    IntegrationGradient
        Derivatives by controls, initial state, mocap bodies and parameters.

    Raises
    ------
    ArgumentError
        A shape, a type, or a number that is not finite.
    StateError
        The motion is not done, or was made without gradients.
    DivergedError
        A derivative is not finite.
    """
    if not isinstance(integration, Integration):
        raise ArgumentError(f"integration: {type(integration).__name__}, expected a sinew Integration")
    by_entries = as_array(coordinates)
    if adjoint not in ("discrete", "backsolve"):
        raise ArgumentError(f"adjoint: {adjoint!r}, expected 'discrete' or 'backsolve'")
    model, m = integration.model, len(integration.time)
    nq = model.nq if by_entries else model.nv
    bars = given("qpos", qpos, m, nq), given("qvel", qvel, m, model.nv), given("act", act, m, model.na)
    knots = integration._knots
    out = IntegrationGradient(
        np.zeros((1 if knots is None else knots, model.nu)), np.empty(nq), np.empty(model.nv), np.empty(model.na),
        np.zeros((model.nmocap, 6)),
    )  # fmt: skip
    native = native_tangents(parameters)
    if parameters is not None:
        out.parameters = np.empty(len(parameters))
    integration._integrator.vjp(
        by_entries,
        *bars,
        out.qpos,
        out.qvel,
        out.act,
        out.ctrl,
        out.mocap,
        native,
        out.parameters,
        adjoint == "backsolve",
    )
    if knots is None:
        out.ctrl = out.ctrl[0]
    return out
