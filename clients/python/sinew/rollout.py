"""Many rollouts at once, and the way back through them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sinew import _core
from sinew._arrays import Doubles, Inputs, as_array, check_out, doubles, inputs, number, whole
from sinew._pool import Key, Lease, lease
from sinew.cfd import CFD, checked_cfd
from sinew.errors import ArgumentError, DivergedError, StateError
from sinew.model import Model, not_a_model
from sinew.model_tangents import ModelTangents, native_tangents
from sinew.options import integrator_number
from sinew.state import State, StateLike

__all__ = ["Gradient", "Rollout", "rollout", "rollout_vjp"]

OUTPUTS = ("time", "qpos", "qvel", "act", "sensordata", "history")
_NOTHING: Mapping[str, Any] = {}


class Rollout:
    """Rollouts: trajectories of T + 1 states, and what became of them.

    The first dimension, N, is there when the initial state or the controls had one. Rows after the good states of a
    rollout that has diverged are NaN; so are sensors that the engine does not have.

    Attributes
    ----------
    model : Model
        What was rolled out, with the options of the call; with `models` the one that they are copies of.
    time : ndarray, (N, T + 1)
        Time [s].
    qpos : ndarray, (N, T + 1, nq)
        Positions [m, rad].
    qvel : ndarray, (N, T + 1, nv)
        Velocities [m/s, rad/s].
    act : ndarray, (N, T + 1, na)
        Activations.
    sensordata : ndarray, (N, T + 1, nsensordata)
        Sensors of each state under its controls; at the last state those of the last step stand.
    history : ndarray, (N, T + 1, nhistory)
        Buffers of controls and sensors, of models with delays or sample intervals.
    qacc_warmstart : ndarray, (N, nv)
        Accelerations that the solver would start from in a next step; NaN where diverged.
    status : ndarray of int, (N,)
        0, or 10 where the rollout has diverged.
    good_states : ndarray of int, (N,)
        States before the first that is bad, or whose acceleration is; T + 1: all are good.
    warnings : ndarray of int, (N,)
        Bits of what happened in its steps, ``SINEW_WARN_*``.
    cost : ndarray, (N,), or None without a task
        Cost of the task, infinity where diverged.
    terms : ndarray, (N, number of terms), or None without a task
        Its weighted parts.

    Notes
    -----
    With ``gradients`` a rollout keeps memory of the library for `rollout_vjp`, which `close`, the end of a ``with``
    block, or its garbage collection gives back. Its arrays stay.
    """

    model: Model
    time: Doubles
    qpos: Doubles
    qvel: Doubles
    act: Doubles
    sensordata: Doubles
    history: Doubles
    qacc_warmstart: Doubles
    status: NDArray[np.int32]
    good_states: NDArray[np.int32]
    warnings: NDArray[np.int32]
    cost: Doubles | None
    terms: Doubles | None
    _lease: Lease
    _count: int
    _steps: int
    _many: bool
    _mocap: Doubles | None  # as it was given

    @property
    def last(self) -> State:
        """The states after the last steps: rollouts that begin in them go on bit for bit as longer ones would."""
        now = slice(-1, None) if not self._many else (slice(None), -1)
        names = ("time", "qpos", "qvel", "act", *(("history",) if self.model.nhistory else ()))
        ends = {name: getattr(self, name)[now] for name in names}
        if not self._many:
            ends = {name: x[0] for name, x in ends.items()}
        return State(**ends, mocap=self._mocap, qacc_warmstart=self.qacc_warmstart)

    def __getattr__(self, name: str) -> Any:
        if name in OUTPUTS:
            raise StateError(f"{name} was not asked for: the call had outputs without it")
        raise AttributeError(f"a Rollout has no {name!r}")

    def __repr__(self) -> str:
        bad = int(np.count_nonzero(self.status))
        return f"<Rollout of {self._count} x {self._steps} steps{f', {bad} diverged' if bad else ''}>"

    def raise_if_diverged(self) -> Rollout:
        """Return the rollouts, or raise `DivergedError` which names those that have diverged."""
        bad = np.flatnonzero(self.status)
        if len(bad) == 0:
            return self
        good = int(self.good_states.reshape(-1)[bad[0]])
        named = ", ".join(map(str, bad[:5])) + (", ..." if len(bad) > 5 else "")
        raise DivergedError(
            f"{len(bad)} of {self._count} rollouts diverged ({named}); rollout {bad[0]} at state {good} of "
            f"0 to {self._steps}"
        )

    def close(self) -> None:
        """Give back what the way back needs. Arrays stay; `rollout_vjp` raises `StateError` from now on."""
        self._lease.give_back()

    def __enter__(self) -> Rollout:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(eq=False)
class Gradient:
    """Derivatives of a number by what rollouts began with; zeros for a rollout whose status is not 0.

    The first dimension, N, is there when the rollouts have it. Each rollout has derivatives of its own, also by a
    state or controls that all of them share: sum over N for the derivative by these.

    Attributes
    ----------
    ctrl : ndarray, (N, T, nu)
        By the controls.
    qpos : ndarray, (N, nq), or (N, nv) as tangents
        By the initial positions.
    qvel : ndarray, (N, nv)
        By the initial velocities.
    act : ndarray, (N, na)
        By the initial activations.
    status : ndarray of int, (N,)
        0, or 10 where the rollout diverged or the derivative left the range of numbers.
    parameters : ndarray, (N, P), or None
        By parameters of the model, where they were given.
    history : ndarray, (N, nhistory), or None
        By the samples in the initial buffers of controls and sensors, 0 elsewhere; of a model that has some.
    """

    ctrl: Doubles
    qpos: Doubles
    qvel: Doubles
    act: Doubles
    status: NDArray[np.int32]
    parameters: Doubles | None = None
    history: Doubles | None = None


# ---- what a call is made of ----

_with_integrator: WeakKeyDictionary[Model, dict[int, Model]] = WeakKeyDictionary()


def derived_model(model: Model, integrator: str | int | None) -> Model:
    """Return the model with another integrator, made once; None: the model itself."""
    if not isinstance(model, Model):
        raise not_a_model("model", model)
    if integrator is None:
        return model
    made, number = _with_integrator.setdefault(model, {}), integrator_number(integrator)
    if number not in made:
        made[number] = model.with_options(integrator=number)
    return made[number]


def cfd_key(cfd: CFD | None) -> tuple[Any, ...] | None:
    """Return settings by their values."""
    if cfd is None:
        return None
    bodies = checked_cfd(cfd).bodies  # a tuple already
    return (tuple(cfd.solimp), cfd.softplus, cfd.friction, cfd.surrogate, bodies, cfd.forward, cfd.smooth)


def device_name(device: str) -> str:
    """Return the name of a device; refuse what is no name, such as a device of PyTorch's or JAX's."""
    if not isinstance(device, str):
        raise ArgumentError(f"device: {device!r}, expected a name, as 'cpu' or 'cuda'")
    return device


def batch_key(
    model: Model,
    device: str,
    threads: int,
    block_threads: int,
    task: Any,
    cfd: CFD | None,
    gradients: bool,
    max_velocity: float,
) -> Key:
    """Return what a batch of these is kept under."""
    native = None if task is None else task if isinstance(task, _core.Task) else getattr(task, "_native", None)
    if task is not None and not isinstance(native, _core.Task):
        raise ArgumentError(f"task: {type(task).__name__}, expected a sinew.Task")
    threads, block_threads = whole("threads", threads), whole("block_threads", block_threads)
    if device == "cpu" and block_threads != 0:
        raise ArgumentError(f"block_threads: {block_threads}, with device 'cpu' allowed is 0: it is for devices")
    settings = (native, cfd_key(cfd), bool(gradients), number("max_velocity", max_velocity))
    return Key(model._native, device_name(device), threads, block_threads, *settings)


# ---- results ----


def _checked_out(name: str, array: Any, shape: tuple[int, ...], given: Inputs) -> Doubles:
    """Return an array of the caller that a result can be written into."""
    check_out(name, array, shape)
    for source in given.arrays:
        if source is not None and np.may_share_memory(array, source):
            raise ArgumentError(f"out: {name!r} shares memory with an input")
    checked: Doubles = array
    return checked


def _results(model: Model, given: Inputs, outputs: Sequence[str], out: Mapping[str, Any]) -> dict[str, Doubles]:
    """Return arrays of the caller or new ones that trajectories go into."""
    widths = {"qpos": model.nq, "qvel": model.nv, "act": model.na, "sensordata": model.nsensordata}
    widths["history"] = model.nhistory
    rows = (given.count, given.steps + 1) if given.many else (given.steps + 1,)
    made: dict[str, Doubles] = {}
    for name in outputs:
        if name not in OUTPUTS:
            raise ArgumentError(f"outputs: {name!r} is not one of {', '.join(OUTPUTS)}")
        shape = rows if name == "time" else (*rows, widths[name])
        if name not in out:
            made[name] = np.empty(shape)
            continue
        array = _checked_out(name, out[name], shape, given)
        if any(np.may_share_memory(array, other) for other in made.values()):
            raise ArgumentError(f"out: {name!r} shares memory with another result")
        made[name] = array
    return made


def _wanted(outputs: Sequence[str] | None, out: Mapping[str, Any] | Rollout | None) -> tuple[Any, Mapping[str, Any]]:
    """Return the names of the results, and the arrays that the caller has for them."""
    names = OUTPUTS if outputs is None else (outputs,) if isinstance(outputs, str) else outputs
    if out is None:
        return names, _NOTHING
    if isinstance(out, Rollout):
        out.close()
        return names, {name: array for name, array in vars(out).items() if name in names}
    unknown = [name for name in out if name not in names]
    if unknown:
        raise ArgumentError(f"out: {unknown[0]!r} is not one of the results: {', '.join(names)}")
    return names, out


def rollout(
    model: Model,
    state: StateLike | None = None,
    ctrl: ArrayLike | None = None,
    *,
    nstep: int | None = None,
    threads: int = 0,
    device: str = "cpu",
    cfd: CFD | None = None,
    integrator: str | int | None = None,
    task: Any = None,
    gradients: bool = True,
    max_velocity: float = 0.0,
    outputs: Sequence[str] | None = None,
    out: Mapping[str, Any] | Rollout | None = None,
    models: Sequence[Model] | None = None,
    block_threads: int = 0,
) -> Rollout:
    """Roll out a model from N initial states under N sequences of T controls.

    Parameters
    ----------
    model : Model
        The model.
    state : State, mapping or MjData, optional
        Initial state: members with one row, or with N. Default: `qpos0` at rest.
    ctrl : array_like, (T, nu) or (N, T, nu), optional
        Controls of each step. Without them they are zero.
    nstep : int, optional
        T, where there are no controls.
    threads : int
        Threads of the CPU; 0: as many as this process may use. Results do not depend on it.
    device : str
        "cpu" or "cuda".
    cfd : CFD, optional
        Contacts from distance.
    integrator : str or int, optional
        Another integrator than the model's, as in `Model.with_options`.
    task : Task, optional
        Gives a cost, and options of the model.
    gradients : bool
        Keep what `rollout_vjp` needs.
    max_velocity : float
        A faster joint means divergence [rad/s, m/s]; 0: 1e10.
    outputs : sequence of str, optional
        The trajectories that are wanted, of "time", "qpos", "qvel", "act", "sensordata", "history". Default: all.
    out : mapping of arrays, or Rollout, optional
        Arrays that trajectories are written into, by name; a Rollout is closed and its arrays are used again.
    models : sequence of Model, optional
        A model for each rollout, on the CPU alone: copies of `model` with other numbers (`Model.replace`) or options.
        Derivatives are those of its own model. Where state and controls have one row, there are as many rollouts.
    block_threads : int
        Threads of a world on a device: 1, 8 or 32; with `gradients` it has 32 in any case. 0 is what is best: 32,
        or 8 where there are more rollouts than the device runs at once with 32. With 1 a thread has a world alone:
        faster from some twenty thousand rollouts on, slower for few. The device then keeps room for all threads that it
        could run at once, tens of GB for a hand. With fewer than 32 last digits differ from those of 32.

    Returns
    -------
    Rollout
        Trajectories. A rollout that diverges is data (``status``), see `Rollout.raise_if_diverged`.

    Raises
    ------
    ArgumentError
        A shape, a type, a number that is NaN or beyond 1e10, models of another number or structure, or a
        `block_threads` that is not allowed.
    UnsupportedError
        `models` on a device.
    LimitError
        With `block_threads` 1 a world is too large for a thread, or the device has no room for so many.

    Notes
    -----
    Worlds are kept ready for the next call: those of sixteen models, on the CPU of as many more as take 128 MB in all.
    Where more take turns, each call makes its worlds anew: roll out many at once, or give copies of one model as
    `models`.
    """
    model = derived_model(model, integrator)
    given = inputs(model, state, ctrl, nstep)
    each = [] if models is None else _own_models(models, integrator, given)
    names, arrays = _wanted(outputs, out)
    key = batch_key(model, device, threads, block_threads, task, cfd, gradients, max_velocity)
    leased = lease(key, model, cfd, given.count, given.steps)
    try:
        result = _computed(model, given, leased, _results(model, given, names, arrays), each)
    except BaseException:
        leased.give_back()
        raise
    finally:
        leased.leave()
    if not gradients:
        leased.give_back()
    return result


def _own_models(models: Sequence[Model], integrator: str | int | None, given: Inputs) -> list[_core.Model]:
    """Return the models of rollouts, checked; one state under one sequence of controls is rolled out with each."""
    if isinstance(models, Model):
        raise ArgumentError("models: one model, expected a sequence of them, one for each rollout")
    if given.count == 1 and len(models):
        given.count, given.many = len(models), True
    if len(models) != given.count:
        raise ArgumentError(f"models: {len(models)} of them, expected {given.count}")
    for i, model in enumerate(models):
        if not isinstance(model, Model):
            raise not_a_model(f"models[{i}]", model)
    return [derived_model(model, integrator)._native for model in models]


def _computed(
    model: Model, given: Inputs, leased: Lease, results: dict[str, Doubles], models: list[_core.Model]
) -> Rollout:
    batch, count, steps = leased.batch, given.count, given.steps
    rows = (count,) if given.many else ()
    status, good_states, warnings = np.empty((3, count), np.int32)
    terms = batch.terms
    cost = np.empty(rows) if terms else None
    term = np.empty((*rows, terms)) if terms else None
    end = np.empty((*rows, model.nv))
    time, qpos, qvel, act, mocap, qacc_warmstart, history, ctrl = given.arrays
    get = results.get
    batch.rollout(
        count, steps, given.one_state, given.one_ctrl, time, qpos, qvel, act, mocap, qacc_warmstart, ctrl,
        get("time"), get("qpos"), get("qvel"), get("act"), get("sensordata"), end, cost, term, status,
        good_states, warnings, history, get("history"), models,
    )  # fmt: skip
    if not given.many:
        status, good_states, warnings = status.reshape(()), good_states.reshape(()), warnings.reshape(())
    result = Rollout()
    result.__dict__.update(
        results, model=model, qacc_warmstart=end, status=status, good_states=good_states, warnings=warnings,
        cost=cost, terms=term, _lease=leased, _count=count, _steps=steps, _many=given.many,
        _mocap=None if mocap is None else mocap.copy(),
    )  # fmt: skip
    return result


# ---- the way back ----


def _bar(name: str, x: ArrayLike | None, shape: tuple[int, ...], of: Rollout) -> Doubles | None:
    """Return a derivative by a trajectory, (N, ...)."""
    if x is None:
        return None
    array = doubles(name, x)
    whole_shape = (of._count, *shape)
    if array.shape == whole_shape:
        return array
    if array.shape != shape:
        expected = f"{shape} or {whole_shape}" if of._many else f"{shape}"
        raise ArgumentError(f"{name}: shape {array.shape}, expected {expected}")
    return np.ascontiguousarray(np.broadcast_to(array, whole_shape))


def rollout_vjp(
    rollout: Rollout,
    qpos: ArrayLike | None = None,
    qvel: ArrayLike | None = None,
    act: ArrayLike | None = None,
    sensordata: ArrayLike | None = None,
    ctrl: ArrayLike | None = None,
    cost: ArrayLike | None = None,
    coordinates: Literal["array", "tangent"] = "array",
    parameters: ModelTangents | None = None,
    history: ArrayLike | None = None,
) -> Gradient:
    """Return the derivatives of a number by what rollouts began with, given those by all states.

    Parameters
    ----------
    rollout : Rollout
        Rollouts with gradients. May be used any number of times.
    qpos, qvel, act, sensordata : array_like, (T + 1, .) or (N, T + 1, .), optional
        Derivatives of the number by the trajectories; one for all rollouts, or each its own. None: zero.
    ctrl : array_like, (T, nu) or (N, T, nu), optional
        Its derivatives by the controls themselves.
    cost : float or array_like, (N,), optional
        Its derivatives by the task's cost. Default with a task: 1.
    coordinates : {"array", "tangent"}
        How derivatives by positions are given, here and in the result: by the entries of `qpos` (nq), or along
        tangents (nv), where a rotation counts 3.
    parameters : ModelTangents, optional
        Parameters of the model by which derivatives are wanted, too.
    history : array_like, (T + 1, nhistory) or (N, T + 1, nhistory), optional
        Derivatives by the samples in the buffers of controls and sensors; what is no sample is not looked at.

    Returns
    -------
    Gradient
        Derivatives by controls, initial states and parameters.

    Raises
    ------
    ArgumentError
        A shape, a type, or a number that is not finite.
    StateError
        The rollouts were made without gradients, or closed.
    UnsupportedError
        A derivative by a sensor that has none, or parameters of rollouts on a device.
    """
    if not isinstance(rollout, Rollout):
        raise ArgumentError(f"rollout: {type(rollout).__name__}, expected a sinew.Rollout")
    by_entries = as_array(coordinates)
    if cost is not None and rollout.cost is None:
        raise ArgumentError("cost: the rollouts have no task")
    model, n, rows = rollout.model, rollout._count, rollout._steps + 1
    nq = model.nq if by_entries else model.nv
    bars = (
        _bar("qpos", qpos, (rows, nq), rollout),
        _bar("qvel", qvel, (rows, model.nv), rollout),
        _bar("act", act, (rows, model.na), rollout),
        _bar("sensordata", sensordata, (rows, model.nsensordata), rollout),
        _bar("ctrl", ctrl, (rows - 1, model.nu), rollout),
        _bar("cost", cost, (), rollout),
    )
    out = (np.empty((n, rows - 1, model.nu)), np.empty((n, nq)), np.empty((n, model.nv)), np.empty((n, model.na)))
    status = np.empty(n, np.int32)
    native = native_tangents(parameters)
    moved = None if parameters is None else np.empty((n, len(parameters)))
    past_bar = _bar("history", history, (rows, model.nhistory), rollout)
    past = np.empty((n, model.nhistory)) if model.nhistory else None
    with rollout._lease.use() as batch:
        batch.vjp(by_entries, *bars, *out, status, native, moved, past_bar, past)
    if rollout._many:
        return Gradient(*out, status, moved, past)
    last = (None if x is None else x[0] for x in (moved, past))
    return Gradient(out[0][0], out[1][0], out[2][0], out[3][0], status.reshape(()), *last)
