"""Rollouts and nearest points as operations of JAX, under ``jit``, ``grad`` and ``vmap``.

>>> from sinew.jax import rollout
>>> loss = lambda ctrl: jnp.sum(rollout(model, {"qpos": qpos}, ctrl).qpos[:, -1] ** 2)
>>> value, gradient = jax.jit(jax.value_and_grad(loss))(ctrl)

XLA calls the library itself, without Python's lock, on the CPU. Physics is computed in doubles; arrays are float64
where JAX is allowed to have these (``jax_enable_x64``), else float32. Model and options are static.
"""

from __future__ import annotations

import functools
import hashlib
import pickle
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

try:
    import jax
    import jax.ffi
    import jax.numpy as jnp
except ImportError as error:
    raise ImportError("sinew.jax needs JAX 0.6 or newer: pip install 'jax>=0.6'") from error

from sinew import _core
from sinew._arrays import layout, state_shapes, whole
from sinew.cfd import CFD
from sinew.errors import ArgumentError, UnsupportedError
from sinew.model import Model
from sinew.nearest_points import check_derivative, nearest_points_vjp, pair_indices
from sinew.nearest_points import nearest_points as _nearest_points
from sinew.rollout import cfd_key, derived_model, device_name
from sinew.state import State, StateLike
from sinew.trajectory import Nearest, Trajectory

__all__ = ["Nearest", "Trajectory", "nearest_points", "rollout"]

# Arguments of all of XLA's calls, in this order. Arrays of a state have no row (as in the model), one, or N.
_STATE = ("qpos", "qvel", "act", "time", "mocap", "qacc_warmstart")
_GIVEN = (*_STATE, "ctrl")

jax.ffi.register_ffi_target("sinew_rollout", _core.xla_rollout(), platform="cpu")
jax.ffi.register_ffi_target("sinew_rollout_kept", _core.xla_rollout_kept(), platform="cpu")
jax.ffi.register_ffi_target("sinew_rollout_vjp", _core.xla_rollout_vjp(), platform="cpu")

Arrays = tuple[jax.Array, ...]


class _Call(NamedTuple):
    """What is static of a call."""

    key: str  # under which XLA's calls find model and settings
    nq: int
    nv: int
    na: int
    nu: int
    nsensordata: int


# ---- registration ----


@functools.cache
def _device(device: str, threads: int) -> _core.XlaDevice:
    return _core.XlaDevice(_core.Backend(device, threads))


@functools.lru_cache(maxsize=64)
def _digest(model: Model) -> bytes:
    return hashlib.sha256(pickle.dumps(model)).digest()


def _call_of(model: Model, device: str, threads: int, cfd: CFD | None) -> _Call:
    """Make model and settings known to XLA's calls.

    The key is made of their contents: what XLA has compiled may be used again in another process.
    """
    settings = (device_name(device), threads, cfd_key(cfd))
    key = hashlib.sha256(_digest(model) + repr(settings).encode()).hexdigest()
    _device(device, threads).add(key, model._native, None if cfd is None else cfd._native())
    return _Call(key, model.nq, model.nv, model.na, model.nu, model.nsensordata)


# ---- batches of batches ----


def _stacked(size: int, batched: Sequence[bool], given: Sequence[jax.Array]) -> list[jax.Array]:
    """Return initial states and controls of `size` batches of N rollouts as those of one batch of size * N."""
    rows = [x.shape[1] if batch else x.shape[0] for x, batch in zip(given, batched, strict=True)]
    count = max(rows)
    stacked = []
    for i, x in enumerate(given):
        group = slice(len(_STATE)) if i < len(_STATE) else slice(len(_STATE), None)
        if rows[i] == 0:
            stacked.append(x[0] if batched[i] else x)
        elif not any(batched[group]) and max(rows[group]) == 1:
            stacked.append(x)
        else:
            one = x if batched[i] else x[None]
            every = jnp.broadcast_to(one, (size, count, *one.shape[2:]))
            stacked.append(every.reshape(size * count, *one.shape[2:]))
    return stacked


def _split(size: int, axis: int, x: jax.Array) -> jax.Array:
    """Return an array of one batch as those of `size` batches: `axis` is that of rollouts."""
    split = x.reshape(*x.shape[:axis], size, x.shape[axis] // size, *x.shape[axis + 1 :])
    return jnp.moveaxis(split, axis, 0)


# ---- XLA's calls ----


def _once(function: Callable[..., Arrays], name: str = "rollout") -> Callable[..., Arrays]:
    """Return a part of a derivative as a function whose own derivative is refused in words."""
    refusing = jax.custom_jvp(function)

    @refusing.defjvp
    def refuse(primals: Any, tangents: Any) -> Any:
        raise UnsupportedError(f"second derivatives: sinew.jax.{name} has first derivatives only")

    return refusing


def _forward(call: _Call, target: str) -> Callable[..., Arrays]:
    """Return the function that makes N rollouts: trajectories, and statuses (N)."""

    @jax.custom_batching.custom_vmap
    def run(*given: jax.Array) -> Arrays:
        ctrl = given[-1]
        count = max(x.shape[0] for x in given)
        results = [
            jax.ShapeDtypeStruct((count, ctrl.shape[1] + 1, width), ctrl.dtype)
            for width in (call.nq, call.nv, call.na, call.nsensordata)
        ]
        status = jax.ShapeDtypeStruct((count,), jnp.int32)
        return tuple(jax.ffi.ffi_call(target, [*results, status])(*given, key=call.key))

    @run.def_vmap
    def of_many(size: int, batched: Sequence[bool], *given: jax.Array) -> tuple[Arrays, tuple[bool, ...]]:
        results = run(*_stacked(size, batched, given))
        return tuple(_split(size, 0, x) for x in results), (True,) * len(results)

    return run


def _backward(call: _Call) -> Callable[..., Arrays]:
    """Return the function that goes back through N rollouts with M sets of derivatives by trajectories.

    Its arguments are what the rollouts were made of, their statuses, and derivatives (M, N, T + 1, .). The statuses
    are there so that XLA makes the rollouts first, which are kept until then.
    """
    inputs = len(_GIVEN) + 1

    @jax.custom_batching.custom_vmap
    def run(*args: jax.Array) -> Arrays:
        bar = args[inputs]
        sets, count, rows, _ = bar.shape
        shapes = [(sets, count, rows - 1, call.nu)] + [(sets, count, n) for n in (call.nq, call.nv, call.na)]
        results = [jax.ShapeDtypeStruct(shape, bar.dtype) for shape in shapes]
        return tuple(jax.ffi.ffi_call("sinew_rollout_vjp", results)(*args, key=call.key))

    @run.def_vmap
    def of_many(size: int, batched: Sequence[bool], *args: jax.Array) -> tuple[Arrays, tuple[bool, ...]]:
        every = [x if batch else jnp.broadcast_to(x, (size, *x.shape)) for x, batch in zip(args, batched, strict=True)]
        bars = every[inputs:]
        if any(batched[:inputs]):
            given = _stacked(size, batched[: len(_GIVEN)], args[: len(_GIVEN)])
            status = every[len(_GIVEN)].reshape(-1)
            bars = [jnp.moveaxis(x, 0, 1).reshape(x.shape[1], size * x.shape[2], *x.shape[3:]) for x in bars]
            results = [_split(size, 1, x) for x in run(*given, status, *bars)]
        else:
            bars = [x.reshape(size * x.shape[1], *x.shape[2:]) for x in bars]
            results = [_split(size, 0, x) for x in run(*args[:inputs], *bars)]
        return tuple(results), (True,) * len(results)

    return run


def _summed(bar: jax.Array, of: jax.Array) -> jax.Array:
    """Return derivatives (N, ...) by what rollouts share as the sum over them."""
    if of.shape[0] == bar.shape[0]:
        return bar
    return bar.sum(axis=0, keepdims=True) if of.shape[0] == 1 else jnp.zeros_like(of)


@functools.cache
def _operation(call: _Call) -> Callable[..., Arrays]:
    """Return the function of initial states and controls that gives trajectories."""
    only, kept, back = (
        _forward(call, "sinew_rollout"),
        _once(_forward(call, "sinew_rollout_kept")),
        _once(_backward(call)),
    )

    def way_there(*given: jax.Array) -> tuple[Arrays, tuple[Arrays, jax.Array]]:
        *results, status = kept(*given)
        return tuple(results), (given, status)

    def way_back(residual: tuple[Arrays, jax.Array], bars: Arrays) -> tuple[jax.Array | None, ...]:
        given, status = residual
        ctrl, *state = (x[0] for x in back(*given, status, *(x[None] for x in bars)))
        summed = [_summed(x, of) for x, of in zip(state, given, strict=False)]
        constant = [None] * (len(given) - len(summed) - 1)
        return *summed, *constant, _summed(ctrl, given[-1])

    operation = jax.custom_vjp(lambda *given: only(*given)[:-1])
    operation.defvjp(way_there, way_back)
    return operation


# ---- the call ----


def _converted(parts: dict[str, Any]) -> dict[str, jax.Array]:
    """Return what was given as arrays of one type."""
    arrays = {name: jnp.asarray(x) for name, x in parts.items() if x is not None}
    for name, x in arrays.items():
        if x.dtype not in (jnp.float32, jnp.float64) and not jnp.issubdtype(x.dtype, jnp.integer):
            raise ArgumentError(f"{name}: numbers of type {x.dtype}, expected float32 or float64")
    dtype = jnp.result_type(*arrays.values(), 0.0)
    return {name: x.astype(dtype) for name, x in arrays.items()}


def rollout(
    model: Model,
    state: StateLike | None = None,
    ctrl: Any = None,
    *,
    nstep: int | None = None,
    threads: int = 0,
    device: str = "cpu",
    cfd: CFD | None = None,
    integrator: str | int | None = None,
) -> Trajectory[jax.Array]:
    """Roll out a model from N initial states under N sequences of T controls.

    Parameters
    ----------
    model : Model
        The model; static.
    state : State, mapping or MjData, optional
        Initial state: members with one row, or with N. Default: `qpos0` at rest. Gradients go to `qpos`, `qvel` and
        `act`; the rest is constant. A derivative by `qpos` is one by its entries, and zero along a quaternion.
    ctrl : array, (T, nu) or (N, T, nu), optional
        Controls of each step. Without them they are zero.
    nstep : int, optional
        T, where there are no controls.
    threads : int
        Threads of the CPU; 0: as many as this process may use. Results do not depend on it.
    device : str
        Where physics is computed: "cpu" or "cuda". Arrays are on the CPU either way.
    cfd : CFD, optional
        Contacts from distance.
    integrator : str or int, optional
        Another integrator than the model's, as in `Model.with_options`.

    Returns
    -------
    Trajectory of jax.Array
        `qpos`, `qvel`, `act`, `sensordata`, (N, T + 1, .).

    Raises
    ------
    ArgumentError
        A shape or a type.
    UnsupportedError
        A derivative of the derivative.
    jax.errors.JaxRuntimeError, ValueError
        What is found while XLA computes, under ``jit`` or without it, with the text of the library: a number that is
        NaN or beyond 1e10.

    Notes
    -----
    ``vmap`` adds to N. Forward mode is refused by JAX. What a derivative needs of its rollouts is kept, of the latest
    eight that wait for theirs; older ones are made again. Models and settings that were traced stay in memory. Ctrl-C
    waits for the end of a call, for XLA cannot be interrupted.
    """
    model = derived_model(model, integrator)
    call = _call_of(model, device, whole("threads", threads), cfd)
    if State.of(state).history is not None and model.nhistory:
        raise UnsupportedError("history: traced rollouts begin with buffers as after a reset; sinew.rollout takes them")
    parts = {**{name: getattr(State.of(state), name) for name in _STATE}, "ctrl": ctrl}
    arrays = _converted(parts)
    shape = layout(model, {name: x.shape for name, x in arrays.items()}, nstep)
    if shape.count == 0 or shape.steps <= 0:
        raise ArgumentError(f"{shape.count} rollouts of {shape.steps} steps, expected at least one of one")
    dtype = next(iter(arrays.values())).dtype if arrays else jnp.result_type(float)
    widths, rows = state_shapes(model), 1 if shape.one_state else shape.count
    given = [
        jnp.broadcast_to(arrays[name], (rows, *widths[name]))
        if name in arrays
        else jnp.zeros((0, *widths[name]), dtype)
        for name in _STATE
    ]
    rows = 1 if shape.one_ctrl else shape.count
    sequence = (rows, shape.steps, model.nu)
    given.append(arrays["ctrl"].reshape(sequence) if "ctrl" in arrays else jnp.zeros(sequence, dtype))
    results = _operation(call)(*given)
    return Trajectory(*(x if shape.many else x[0] for x in results))


# ---- nearest points ----


def nearest_points(
    model: Model,
    state: StateLike | None = None,
    pairs: Sequence[tuple[str | int, str | int]] | NDArray[np.integer] = (),
    *,
    limit: float = np.inf,
    threads: int = 0,
    derivative: Literal["exact", "surrogate"] = "exact",
) -> Nearest[jax.Array]:
    """Find nearest points of any pairs of geoms at one state, or at N, as `sinew.nearest_points` does.

    Parameters
    ----------
    model : Model
        The model; static.
    state : State, mapping or MjData, optional
        States. Gradients go to `qpos`, as derivatives by its entries; `mocap`, (nmocap, 7), is static.
    pairs : sequence of pairs of str or int, (K, 2)
        Geoms, by names or indices; static.
    limit : float
        What is farther away is not looked for [m]; static.
    threads : int
        Threads of the CPU; 0: as many as this process may use.
    derivative : {"exact", "surrogate"}
        Whether points and normals move as they do, or, for comparison, are carried rigidly by their geoms.

    Returns
    -------
    Nearest of jax.Array
        `dist` (N, K), `fromto` (N, K, 2, 3), `normal` (N, K, 3), of the type of `qpos`.

    Raises
    ------
    NotFoundError
        A geom that the model does not have.
    ArgumentError
        A shape or a type.
    UnsupportedError
        A derivative of the derivative.
    jax.errors.JaxRuntimeError
        What is found while XLA computes, with the text of `sinew.nearest_points`: a number that is NaN or beyond 1e10.

    Notes
    -----
    XLA calls back into Python. ``vmap`` adds to N. Forward mode is refused by JAX.
    """
    check_derivative(derivative)
    of = State.of(state)
    mocap = None if of.mocap is None else np.asarray(of.mocap)
    qpos = _converted({"qpos": model.qpos0 if of.qpos is None else of.qpos})["qpos"]
    if qpos.ndim not in (1, 2) or qpos.shape[-1] != model.nq:
        raise ArgumentError(f"qpos: shape {qpos.shape}, expected ({model.nq},) or (N, {model.nq})")
    if mocap is not None and mocap.shape != (model.nmocap, 7):
        raise ArgumentError(f"mocap: shape {mocap.shape}, expected ({model.nmocap}, 7)")
    geoms = pair_indices(model, pairs)
    widths = ((len(geoms),), (len(geoms), 2, 3), (len(geoms), 3))

    def found(at: Any) -> Any:
        rows = {"qpos": np.reshape(at, (-1, model.nq)).astype(float), "mocap": mocap}
        return _nearest_points(model, rows, geoms, limit=limit, threads=threads)

    def there(at: Any) -> Any:
        parts = found(at)
        rows, dtype = np.shape(at)[:-1], np.asarray(at).dtype
        return tuple(x.reshape(*rows, *x.shape[1:]).astype(dtype) for x in (parts.dist, parts.fromto, parts.normal))

    def back(at: Any, *bars: Any) -> Any:
        points = found(at)
        parts = (np.reshape(bar, (-1, *width)).astype(float) for bar, width in zip(bars, widths, strict=True))
        gradient = nearest_points_vjp(points, *parts, derivative=derivative).qpos
        return gradient.reshape(np.shape(at)).astype(np.asarray(at).dtype)

    def forward(at: jax.Array) -> Arrays:
        results = tuple(jax.ShapeDtypeStruct((*at.shape[:-1], *width), at.dtype) for width in widths)
        return tuple(jax.pure_callback(there, results, at, vmap_method="broadcast_all"))

    def backward(at: jax.Array, *bars: jax.Array) -> Arrays:
        shape = jax.ShapeDtypeStruct(at.shape, at.dtype)
        return (jax.pure_callback(back, shape, at, *bars, vmap_method="broadcast_all"),)

    way_there, way_back = (_once(function, "nearest_points") for function in (forward, backward))
    operation = jax.custom_vjp(forward)
    operation.defvjp(lambda at: (way_there(at), at), lambda at, bars: way_back(at, *bars))
    return Nearest(*operation(qpos))
