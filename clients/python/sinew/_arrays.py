"""Arrays that callers pass: converted to doubles, checked, and refused in words."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sinew.errors import ArgumentError
from sinew.state import State, StateLike

if TYPE_CHECKING:
    from sinew.model import Model

__all__ = [
    "Doubles",
    "Inputs",
    "Layout",
    "as_array",
    "check_out",
    "doubles",
    "given",
    "history_of",
    "inputs",
    "layout",
    "one_state",
    "row",
    "shape_text",
    "state_shapes",
    "whole",
]

Doubles = NDArray[np.float64]
_DOUBLE = np.dtype(np.float64)


def doubles(name: str, x: ArrayLike) -> Doubles:
    """Return `x` as a contiguous, aligned array of doubles, itself where it is one."""
    if type(x) is np.ndarray and x.dtype == _DOUBLE and x.flags.c_contiguous and x.flags.aligned:
        return x
    if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
        raise ArgumentError(
            f"{name}: {np.count_nonzero(np.ma.getmaskarray(x))} of its numbers are masked, expected none"
        )
    try:
        array = np.asarray(x)
    except (TypeError, ValueError, RuntimeError) as error:  # the last one: a tensor that requires a gradient
        raise ArgumentError(f"{name}: {error}") from None
    if array.dtype.kind not in "fiu":
        raise ArgumentError(f"{name}: numbers of type {array.dtype}, expected real numbers")
    return np.require(array, _DOUBLE, ("C", "ALIGNED"))


def check_out(name: str, array: Any, shape: tuple[int, ...], dtype: np.dtype[Any] = _DOUBLE) -> None:
    """Refuse an array of the caller that a result cannot be written into."""
    if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != dtype or not array.flags.carray:
        raise ArgumentError(f"out: {name!r} must be a writable, contiguous, aligned array of {dtype} of shape {shape}")


def whole(name: str, x: Any) -> int:
    """Return `x` as an int that a C int can hold."""
    try:
        value = operator.index(x)
    except TypeError:
        raise ArgumentError(f"{name}: {x!r}, expected a whole number") from None
    if not -(2**31) <= value < 2**31:
        raise ArgumentError(f"{name}: {value} is out of range")
    return value


def shape_text(shape: tuple[int | str, ...]) -> str:
    """Return a shape as NumPy writes it."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def row(name: str, x: ArrayLike, *shape: int) -> Doubles:
    """Return `x` as doubles of this shape."""
    array = doubles(name, x)
    if array.shape != shape:
        raise ArgumentError(f"{name}: shape {shape_text(array.shape)}, expected {shape_text(shape)}")
    return array


def number(name: str, x: ArrayLike) -> float:
    """Return `x` as a float."""
    return float(row(name, x))


def switch(name: str, x: object) -> bool:
    """Return `x` as a bool, which it has to be."""
    if not isinstance(x, bool | np.bool_):
        raise ArgumentError(f"{name}: {x!r}, expected True or False")
    return bool(x)


def given(name: str, x: ArrayLike | None, *shape: int) -> Doubles | None:
    """Return `x` as doubles of this shape; None stays."""
    return None if x is None else row(name, x, *shape)


def as_array(coordinates: str) -> bool:
    """Return whether derivatives by positions are by the entries of `qpos`, not along tangents."""
    if coordinates not in ("array", "tangent"):
        raise ArgumentError(f"coordinates: {coordinates!r}, expected 'array' or 'tangent'")
    return coordinates == "array"


def one_state(
    model: Model, state: StateLike | None
) -> tuple[float, Doubles | None, Doubles | None, Doubles | None, Doubles | None]:
    """Return time, qpos, qvel, act and mocap of one state; None: the library's default."""
    of = State.of(state)
    time = 0.0 if of.time is None else float(row("time", np.reshape(of.time, -1), 1)[0])
    qpos, qvel = given("qpos", of.qpos, model.nq), given("qvel", of.qvel, model.nv)
    return time, qpos, qvel, given("act", of.act, model.na), given("mocap", of.mocap, model.nmocap, 7)


def history_of(model: Model, state: StateLike | None) -> Doubles | None:
    """Return the buffers of one state; None: the library's default."""
    return given("history", State.of(state).history, model.nhistory)


def _rows(name: str, given: tuple[int, ...], shape: tuple[int, ...]) -> int | None:
    """Return the number of rows of an array that has one for each of many; None: it is one."""
    if given == shape:
        return None
    if len(given) == len(shape) + 1 and given[1:] == shape:
        return given[0]
    expected = f"{shape_text(shape)} or {shape_text(('N', *shape))}"
    raise ArgumentError(f"{name}: shape {shape_text(given)}, expected {expected}")


@dataclass(eq=False, slots=True)
class Layout:
    """How initial states and controls of N rollouts are laid out in arrays."""

    count: int  # N
    steps: int  # T
    many: bool  # whether the caller gave a batch dimension
    one_state: bool  # arrays of the state have one row
    one_ctrl: bool  # ctrl has one sequence
    rows: dict[str, int | None]  # of arrays of the state; None: no batch dimension, or not given


@dataclass(eq=False, slots=True)
class Inputs(Layout):
    """Initial states and controls of N rollouts, as the library takes them."""

    arrays: tuple[Doubles | None, ...]  # those of `state_shapes`, and ctrl; None: the library's default


def state_shapes(model: Model) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the arrays of one state."""
    return {
        "time": (),
        "qpos": (model.nq,),
        "qvel": (model.nv,),
        "act": (model.na,),
        "mocap": (model.nmocap, 7),
        "qacc_warmstart": (model.nv,),
        "history": (model.nhistory,),
    }


def _steps(model: Model, ctrl: tuple[int, ...] | None, nstep: int | None) -> tuple[int, int | None]:
    """Return T, and the number of sequences of controls where there is a dimension for it."""
    if ctrl is None:
        if nstep is None:
            raise ArgumentError("ctrl: None, expected controls (T, nu) or (N, T, nu), or nstep steps without any")
        return whole("nstep", nstep), None
    if len(ctrl) not in (2, 3) or ctrl[-1] != model.nu:
        expected = f"(T, {model.nu}) or (N, T, {model.nu})"
        raise ArgumentError(f"ctrl: shape {shape_text(ctrl)}, expected {expected}")
    if nstep is not None and whole("nstep", nstep) != ctrl[-2]:
        raise ArgumentError(f"nstep: {nstep}, but ctrl has {ctrl[-2]} rows of controls")
    if 0 in ctrl[:-1]:
        raise ArgumentError(f"ctrl: shape {shape_text(ctrl)}, expected at least one rollout of one step")
    return ctrl[-2], ctrl[0] if len(ctrl) == 3 else None


def _common_rows(given: list[tuple[str, int | None]]) -> int:
    """Return N; arrays of one row count for all of them."""
    count, first = 1, ""
    for name, rows in given:
        if rows is None or rows == 1 or rows == count:
            continue
        if first:
            raise ArgumentError(f"{name}: {rows} rows, expected 1 or {count} as {first} has")
        count, first = rows, name
    return count


def _repeated(array: Doubles | None, rows: int | None, count: int) -> Doubles | None:
    """Return an array of a state with a row for each of `count`."""
    if array is None or rows == count:
        return array
    one = array if rows is None else array[0]
    return np.ascontiguousarray(np.broadcast_to(one, (count, *one.shape)))


def layout(model: Model, shapes: Mapping[str, tuple[int, ...]], nstep: int | None) -> Layout:
    """Return how arrays of these shapes are laid out, checked. What is not given has no shape."""
    steps, ctrl_rows = _steps(model, shapes.get("ctrl"), nstep)
    rows = {
        name: _rows(name, shapes[name], shape) if name in shapes else None
        for name, shape in state_shapes(model).items()
    }
    count = _common_rows([*rows.items(), ("ctrl", ctrl_rows)])
    if count == 0 and steps > 0:
        raise ArgumentError("state: no rows, expected one or more")
    one_state = all(n is None or n == 1 for n in rows.values())
    many = ctrl_rows is not None or any(n is not None for n in rows.values())
    return Layout(count, steps, many, one_state, ctrl_rows is None or ctrl_rows == 1, rows)


def inputs(model: Model, state: StateLike | None, ctrl: ArrayLike | None, nstep: int | None) -> Inputs:
    """Return what rollouts begin with, checked."""
    given = {**vars(State.of(state)), "ctrl": ctrl}
    arrays = {name: doubles(name, x) for name, x in given.items() if x is not None}
    of = layout(model, {name: x.shape for name, x in arrays.items()}, nstep)
    parts = [arrays.get(name) for name in (*of.rows, "ctrl")]
    if not of.one_state:
        parts[:-1] = [_repeated(x, rows, of.count) for x, rows in zip(parts[:-1], of.rows.values(), strict=True)]
    return Inputs(of.count, of.steps, of.many, of.one_state, of.one_ctrl, of.rows, tuple(parts))
