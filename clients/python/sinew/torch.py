"""Rollouts and nearest points as operations of PyTorch.

>>> from sinew.torch import rollout
>>> ctrl = torch.zeros(64, 256, model.nu, requires_grad=True)
>>> out = rollout(model, {"qpos": qpos, "qvel": qvel}, ctrl)
>>> out.qpos[:, -1].square().sum().backward()
>>> ctrl.grad

Tensors are on the CPU. Physics is computed in doubles whatever their type; results have the type of the tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

try:
    import torch
except ImportError as error:
    raise ImportError("sinew.torch needs PyTorch: pip install torch, or Debian's python3-torch") from error

from sinew.cfd import CFD
from sinew.errors import ArgumentError, UnsupportedError
from sinew.model import Model
from sinew.nearest_points import check_derivative, nearest_points_vjp
from sinew.nearest_points import nearest_points as _nearest_points
from sinew.rollout import Rollout, rollout_vjp
from sinew.rollout import rollout as _rollout
from sinew.state import State, StateLike
from sinew.trajectory import Nearest, Trajectory

__all__ = ["Ends", "Nearest", "Trajectory", "nearest_points", "rollout", "rollout_and_ends"]

_DIFFERENTIABLE = ("ctrl", "qpos", "qvel", "act")


class Ends(NamedTuple):
    """What rollouts came to, as constants.

    Attributes
    ----------
    state : State
        The states after the last steps, from which other rollouts go on bit for bit. Put tensors of the trajectory in
        place of its `qpos`, `qvel` and `act` where gradients shall go through them.
    diverged : Tensor of bool, (N,)
        Rollouts that have diverged: their states are NaN.
    """

    state: State
    diverged: torch.Tensor


class _Call(NamedTuple):
    """What of a call is no tensor that may have a gradient."""

    model: Model
    state: State
    ctrl: Any
    dtype: torch.dtype
    options: dict[str, Any]
    ends: list[Ends]  # of the rollouts, once they are made


def _numbers(x: torch.Tensor) -> NDArray[Any]:
    array: NDArray[Any] = x.detach().numpy()
    return array


def _fitted(gradient: NDArray[np.float64], of: torch.Tensor) -> torch.Tensor:
    """Return a derivative in shape and type of what it is by: the sum over rollouts that share it."""
    shape = tuple(of.shape)
    array = gradient if gradient.shape == shape else gradient.sum(axis=0).reshape(shape)
    return torch.from_numpy(array).to(of.dtype)


class _Forward(torch.autograd.Function):
    """Rolls out; its node in the graph keeps what the way back needs until it is freed."""

    @staticmethod
    def forward(ctx: Any, call: _Call, *given: torch.Tensor | None) -> tuple[torch.Tensor, ...]:
        arrays = {name: _numbers(x) for name, x in zip(_DIFFERENTIABLE, given, strict=True) if x is not None}
        ctrl = arrays.pop("ctrl", call.ctrl)
        state = State(**{**vars(call.state), **arrays})
        result = _rollout(call.model, state, ctrl, **call.options)
        call.ends.append(Ends(result.last, torch.from_numpy(np.asarray(result.status != 0))))
        ctx.rollout = result
        ctx.save_for_backward(*given)
        ctx.set_materialize_grads(False)
        return tuple(torch.from_numpy(getattr(result, name)).to(call.dtype) for name in Trajectory._fields)

    @staticmethod
    def backward(ctx: Any, *bars: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        return None, *_Backward.apply(ctx.rollout, ctx.needs_input_grad[1:], *ctx.saved_tensors, *bars)


class _Backward(torch.autograd.Function):
    """Goes back through rollouts. It is an operation of its own so that a derivative of it is refused in words."""

    @staticmethod
    def forward(ctx: Any, result: Rollout, needed: tuple[bool, ...], *given: Any) -> tuple[torch.Tensor | None, ...]:
        inputs, bars = given[: len(_DIFFERENTIABLE)], given[len(_DIFFERENTIABLE) :]
        qpos, qvel, act, sensordata = (None if x is None else _numbers(x) for x in bars)
        gradient = rollout_vjp(result, qpos, qvel, act, sensordata)
        return tuple(
            _fitted(getattr(gradient, name), x) if need else None
            for name, need, x in zip(_DIFFERENTIABLE, needed, inputs, strict=True)
        )

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        raise UnsupportedError("second derivatives: sinew.torch.rollout has first derivatives only")


def _checked(name: str, x: torch.Tensor) -> None:
    if x.device.type != "cpu":
        raise ArgumentError(f"{name}: a tensor on {x.device}, expected one on the CPU, as {name}.cpu() gives it")
    if x.dtype not in (torch.float32, torch.float64):
        raise ArgumentError(f"{name}: a tensor of {x.dtype}, expected torch.float32 or torch.float64")
    if x.layout != torch.strided:
        raise ArgumentError(f"{name}: a tensor of layout {x.layout}, expected a dense one")


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
    models: Sequence[Model] | None = None,
    block_threads: int = 0,
) -> Trajectory[torch.Tensor]:
    """Roll out a model from N initial states under N sequences of T controls.

    Parameters
    ----------
    model : Model
        The model.
    state : State, mapping or MjData, optional
        Initial state: members with one row, or with N. Default: `qpos0` at rest. Gradients go to `qpos`, `qvel` and
        `act` where these are tensors that require them; the rest is constant. A derivative by `qpos` is one by its
        entries, and zero along a quaternion.
    ctrl : Tensor, (T, nu) or (N, T, nu), optional
        Controls of each step. Without them they are zero.
    nstep : int, optional
        T, where there are no controls.
    threads : int
        Threads of the CPU; 0: as many as this process may use. Results do not depend on it.
    device : str
        Where physics is computed: "cpu" or "cuda". Tensors are on the CPU either way.
    cfd : CFD, optional
        Contacts from distance.
    integrator : str or int, optional
        Another integrator than the model's, as in `Model.with_options`.
    models : sequence of Model, optional
        A model for each rollout, as `sinew.rollout` takes them.
    block_threads : int
        Threads of a world on a device, 1, 8, 32, or 0 for what is best, as `sinew.rollout` takes them.

    Returns
    -------
    Trajectory of Tensor
        `qpos`, `qvel`, `act`, `sensordata`, (N, T + 1, .), of the largest type among the tensors that were given;
        float64 without any.

    Raises
    ------
    ArgumentError
        A shape, a type, a device, or a number that is NaN or beyond 1e10.
    UnsupportedError
        In `backward`: a derivative of the derivative, or by a sensor that has none. `models` on a device.
    """
    options: dict[str, Any] = {"nstep": nstep, "threads": threads, "device": device, "cfd": cfd}
    options |= {"integrator": integrator, "models": models, "block_threads": block_threads}
    return _rolled_out(model, state, ctrl, options)[0]


def rollout_and_ends(
    model: Model, state: StateLike | None = None, ctrl: Any = None, **options: Any
) -> tuple[Trajectory[torch.Tensor], Ends]:
    """Roll out as `rollout` does, with the same arguments; return also what the rollouts came to."""
    return _rolled_out(model, state, ctrl, options)


def _rolled_out(
    model: Model, state: StateLike | None, ctrl: Any, options: dict[str, Any]
) -> tuple[Trajectory[torch.Tensor], Ends]:
    given = State.of(state)
    parts = {**vars(given), "ctrl": ctrl}
    tensors = {name: x for name, x in parts.items() if isinstance(x, torch.Tensor)}
    for name, x in tensors.items():
        _checked(name, x)
    types = {x.dtype for x in tensors.values()}
    dtype = torch.float64 if not types or torch.float64 in types else torch.float32
    constant = {
        name: _numbers(x) if isinstance(x, torch.Tensor) and name not in _DIFFERENTIABLE else x
        for name, x in vars(given).items()
    }
    gradients = torch.is_grad_enabled() and any(tensors[x].requires_grad for x in _DIFFERENTIABLE if x in tensors)
    ends: list[Ends] = []
    call = _Call(model, State(**constant), ctrl, dtype, {**options, "gradients": gradients}, ends)
    trajectory = Trajectory(*_Forward.apply(call, *(tensors.get(name) for name in _DIFFERENTIABLE)))
    return trajectory, ends[0]


# ---- nearest points ----


class _Pairs(NamedTuple):
    """What of a call is no tensor that may have a gradient."""

    model: Model
    state: State
    pairs: Any
    derivative: Literal["exact", "surrogate"]
    options: dict[str, Any]


class _NearestPoints(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, call: _Pairs, qpos: torch.Tensor | None) -> tuple[torch.Tensor, ...]:
        given = {} if qpos is None else {"qpos": _numbers(qpos)}
        result = _nearest_points(call.model, State(**{**vars(call.state), **given}), call.pairs, **call.options)
        ctx.result, ctx.derivative = result, call.derivative
        ctx.save_for_backward(qpos)
        ctx.set_materialize_grads(False)
        dtype = torch.float64 if qpos is None else qpos.dtype
        return tuple(torch.from_numpy(x).to(dtype) for x in (result.dist, result.fromto, result.normal))

    @staticmethod
    def backward(ctx: Any, *bars: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        return None, _NearestBackward.apply(ctx.result, ctx.derivative, *ctx.saved_tensors, *bars)


class _NearestBackward(torch.autograd.Function):
    """Goes back through nearest points, an operation of its own as `_Backward` is."""

    @staticmethod
    def forward(ctx: Any, result: Any, derivative: Any, qpos: torch.Tensor, *bars: torch.Tensor | None) -> torch.Tensor:
        dist, fromto, normal = (None if x is None else _numbers(x) for x in bars)
        return _fitted(nearest_points_vjp(result, dist, fromto, normal, derivative=derivative).qpos, qpos)

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        raise UnsupportedError("second derivatives: sinew.torch.nearest_points has first derivatives only")


def nearest_points(
    model: Model,
    state: StateLike | None = None,
    pairs: Sequence[tuple[str | int, str | int]] | NDArray[np.integer] = (),
    *,
    limit: float = np.inf,
    threads: int = 0,
    derivative: Literal["exact", "surrogate"] = "exact",
) -> Nearest[torch.Tensor]:
    """Find nearest points of any pairs of geoms at one state, or at N, as `sinew.nearest_points` does.

    Parameters
    ----------
    model : Model
        The model.
    state : State, mapping or MjData, optional
        States. Gradients go to `qpos`, as derivatives by its entries, where it is a tensor that requires them.
    pairs : sequence of pairs of str or int, (K, 2)
        Geoms, by names or indices.
    limit : float
        What is farther away is not looked for [m].
    threads : int
        Threads of the CPU; 0: as many as this process may use.
    derivative : {"exact", "surrogate"}
        Whether points and normals move as they do, or, for comparison, are carried rigidly by their geoms.

    Returns
    -------
    Nearest of Tensor
        `dist` (N, K), `fromto` (N, K, 2, 3), `normal` (N, K, 3), of the type of `qpos`; float64 without it.
    """
    check_derivative(derivative)
    of = State.of(state)
    qpos = of.qpos if isinstance(of.qpos, torch.Tensor) else None
    if qpos is not None:
        _checked("qpos", qpos)
    constant = {name: _numbers(x) if isinstance(x, torch.Tensor) else x for name, x in vars(of).items()}
    call = _Pairs(model, State(**constant), pairs, derivative, {"limit": limit, "threads": threads})
    return Nearest(*_NearestPoints.apply(call, qpos))
