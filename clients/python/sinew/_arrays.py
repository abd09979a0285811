"""Arrays that callers pass: converted to doubles, checked, and refused in words."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sinew.errors import ArgumentError
from sinew.state import State, StateLike

if TYPE_CHECKING:
    from sinew.model import Model

__all__ = ["Doubles", "Inputs", "doubles", "inputs", "row", "rows_of", "whole"]

Doubles = NDArray[np.float64]
_DOUBLE = np.dtype(np.float64)


def doubles(name: str, x: ArrayLike) -> Doubles:
    """Return `x` as a contiguous array of doubles, itself where it is one."""
    if type(x) is np.ndarray and x.dtype == _DOUBLE and x.flags.c_contiguous:
        return x
    try:
        array = np.asarray(x)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{name}: {error}") from None
    if array.dtype.kind not in "fiu":
        raise ArgumentError(f"{name}: numbers of type {array.dtype}, expected real numbers")
    return array.astype(_DOUBLE, order="C", copy=False)


def whole(name: str, x: Any) -> int:
    """Return `x` as an int that a C int can hold."""
    try:
        value = operator.index(x)
    except TypeError:
        raise ArgumentError(f"{name}: {x!r}, expected a whole number") from None
    if not -(2**31) <= value < 2**31:
        raise ArgumentError(f"{name}: {value} is out of range")
    return value


def _shape_text(shape: tuple[int | str, ...]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def row(name: str, x: ArrayLike, *shape: int) -> Doubles:
    """Return `x` as doubles of this shape."""
    array = doubles(name, x)
    if array.shape != shape:
        raise ArgumentError(f"{name}: shape {_shape_text(array.shape)}, expected {_shape_text(shape)}")
    return array


def rows_of(name: str, x: ArrayLike, shape: tuple[int, ...]) -> tuple[Doubles, int | None]:
    """Return `x` as doubles, and its number of rows where it has a row for each of many; None: it is one."""
    array = doubles(name, x)
    if array.shape == shape:
        return array, None
    if array.ndim == len(shape) + 1 and array.shape[1:] == shape:
        return array, array.shape[0]
    expected = f"{_shape_text(shape)} or {_shape_text(('N', *shape))}"
    raise ArgumentError(f"{name}: shape {_shape_text(array.shape)}, expected {expected}")


@dataclass(eq=False, slots=True)
class Inputs:
    """Initial states and controls of N rollouts, as the library takes them."""

    count: int  # N
    steps: int  # T
    many: bool  # whether the caller gave a batch dimension
    one_state: bool  # arrays of the state have one row
    one_ctrl: bool  # ctrl has one sequence
    arrays: tuple[
        Doubles | None, ...
    ]  # time, qpos, qvel, act, mocap, qacc_warmstart, ctrl; None: the library's default


def _ctrl_of(model: Model, ctrl: ArrayLike | None, nstep: int | None) -> tuple[Doubles | None, int | None, int]:
    """Return the controls, their rows, and T."""
    if ctrl is None:
        if nstep is None:
            raise ArgumentError("ctrl: None, expected controls (T, nu) or (N, T, nu), or nstep steps without any")
        return None, None, whole("nstep", nstep)
    array = doubles("ctrl", ctrl)
    if array.ndim not in (2, 3) or array.shape[-1] != model.nu:
        expected = f"(T, {model.nu}) or (N, T, {model.nu})"
        raise ArgumentError(f"ctrl: shape {_shape_text(array.shape)}, expected {expected}")
    steps = array.shape[-2]
    if nstep is not None and whole("nstep", nstep) != steps:
        raise ArgumentError(f"nstep: {nstep}, but ctrl has {steps} rows of controls")
    return array, array.shape[0] if array.ndim == 3 else None, steps


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


def inputs(model: Model, state: StateLike | None, ctrl: ArrayLike | None, nstep: int | None) -> Inputs:
    """Return what rollouts begin with, checked."""
    array, ctrl_rows, steps = _ctrl_of(model, ctrl, nstep)
    of = State.of(state)
    shapes: dict[str, tuple[int, ...]] = {
        "time": (),
        "qpos": (model.nq,),
        "qvel": (model.nv,),
        "act": (model.na,),
        "mocap": (model.nmocap, 7),
        "qacc_warmstart": (model.nv,),
    }
    parts: dict[str, Doubles | None] = {}
    rows: dict[str, int | None] = {}
    for name, shape in shapes.items():
        x = getattr(of, name)
        parts[name], rows[name] = (None, None) if x is None else rows_of(name, x, shape)
    count = _common_rows([*rows.items(), ("ctrl", ctrl_rows)])
    one_state = all(n is None or n == 1 for n in rows.values())
    if not one_state:
        parts = {name: _repeated(part, rows[name], count) for name, part in parts.items()}
    many = ctrl_rows is not None or any(n is not None for n in rows.values())
    return Inputs(count, steps, many, one_state, ctrl_rows is None or ctrl_rows == 1, (*parts.values(), array))
