"""Models that a specification is compiled to for values of parameters, and how each parameter moves them.

A compiled model is the last one with some numbers replaced. How a parameter moves these numbers is found by compiling
with the parameter moved both ways. That is kept where numbers turn out to be linear in the parameters: the numbers of
each later model are foretold by it, and a parameter with numbers that are not as foretold is compiled for anew.
Constants at ``qpos0``, as inverse weights, are linear in little; the engine makes them of the other numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from sinew._arrays import Doubles
from sinew.errors import ArgumentError, SinewError, UnsupportedError
from sinew.model import Model
from sinew.model_tangents import ModelTangents

__all__ = ["Compiled", "Compiler", "DifferencesWarning", "steps_of"]

STEP = 1e-5  # of a parameter's size, by which it is moved
_LINEAR = 1e-10  # share of a number by which one that was foretold may be off
_OPTIONS = ("timestep", "impratio", "tolerance", "ls_tolerance", "ccd_tolerance", "gravity", "o_margin", "o_solref",
            "o_solimp", "o_friction", "density", "viscosity", "wind", "magnetic")  # fmt: skip
_FOLLOWING = ("body_subtreemass", "tree_asleep0")  # other arrays, and MuJoCo's data, give them
# What the others give at qpos0.
_CONSTANTS = ("dof_M0", "dof_invweight0", "body_invweight0", "tendon_length0", "tendon_invweight0", "actuator_acc0")
_FIXED = ("integrator", "cone", "iterations", "ls_iterations", "ccd_iterations", "disableflags", "enableflags",
          "disableactuator", "noslip_iterations", "noslip_tolerance",
          "sleep_tolerance")  # fmt: skip


class DifferencesWarning(UserWarning):
    """A parameter has no exact derivative: its column of the Jacobian is made by differences of whole motions."""


def steps_of(x: Doubles, lower: Doubles, upper: Doubles) -> tuple[Doubles, Doubles]:
    """Return points (P,) within the bounds about which parameters are moved, next to x, and by how much."""
    size = np.maximum(np.abs(x), 1e-2 * np.minimum(upper - lower, 1.0))
    steps = np.minimum(STEP * size, 0.25 * (upper - lower))
    return np.clip(x, lower + steps, upper - steps), steps


class _Layout:
    """Which numbers of an MjModel a Model is made of, one after the other."""

    def __init__(self, model: Model, m: mujoco.MjModel) -> None:
        arrays = [name for name in model.fields() if np.size(getattr(model, name)) and name not in _FOLLOWING]
        movable = [getattr(m, name).dtype.kind == "f" and not name.startswith("mesh_") for name in arrays]
        self.fixed = [name for name, moves in zip(arrays, movable, strict=True) if not moves]
        self.names = [name for name, moves in zip(arrays, movable, strict=True) if moves]
        self.shapes = [getattr(m, name).shape for name in self.names]
        self.options = [np.atleast_1d(getattr(m.opt, name)) for name in _OPTIONS]
        sizes = [int(np.prod(shape)) for shape in self.shapes] + [len(x) for x in self.options]
        self.at = np.cumsum([0, *sizes])
        kinds = [name in _CONSTANTS for name in self.names] + [False] * len(self.options)
        self.constant = np.repeat(kinds, sizes)
        self._kept = self._unmoved(m)

    def _unmoved(self, m: mujoco.MjModel) -> list[Any]:
        """Return what is no number that a parameter may move."""
        options = [np.ravel(getattr(m.opt, name)) for name in _FIXED]
        return [np.concatenate([np.ravel(getattr(m, name)) for name in self.fixed]), np.concatenate(options)]

    def same(self, m: mujoco.MjModel) -> bool:
        """Return whether a model differs from the first one in these numbers alone."""
        if any(getattr(m, name).shape != shape for name, shape in zip(self.names, self.shapes, strict=True)):
            return False
        return all(map(np.array_equal, self._unmoved(m), self._kept))

    def numbers(self, m: mujoco.MjModel) -> Doubles:
        parts = [getattr(m, name).ravel() for name in self.names]
        return np.concatenate([*parts, *(np.atleast_1d(getattr(m.opt, name)) for name in _OPTIONS)]).astype(float)

    def _part(self, numbers: Doubles, name: str) -> Doubles:
        k = self.names.index(name)
        return numbers[self.at[k] : self.at[k + 1]].reshape(self.shapes[k])

    def replaced(self, model: Model, numbers: Doubles, moved: NDArray[np.intp]) -> Model:
        """Return the model with these numbers, of which the ones of these indices differ."""
        arrays: dict[str, Any] = {}
        options: dict[str, Any] = {}
        for k in np.unique(np.searchsorted(self.at, moved, side="right") - 1):
            part = numbers[self.at[k] : self.at[k + 1]]
            if k < len(self.names):
                arrays[self.names[k]] = self._part(numbers, self.names[k])
            else:
                options[_OPTIONS[k - len(self.names)]] = part if len(part) > 1 else float(part[0])
        if "geom_size" in arrays:  # what would be derived from it is as it was compiled
            arrays = {name: self._part(numbers, name) for name in ("geom_rbound", "geom_aabb")} | arrays
        model = model.replace(**arrays) if arrays else model
        return model.with_options(**options) if options else model


@dataclass(eq=False)
class _Way:
    """How a parameter moves the numbers: linearly from where that was found, or not by numbers alone."""

    moved: NDArray[np.intp]  # indices of them
    rates: Doubles
    value: float  # of the parameter where the way was found
    base: Doubles  # the numbers there
    linear: bool = True
    constants: bool = False  # whether constants at qpos0 follow

    def is_off(self, x: float, numbers: Doubles) -> bool:
        """Return whether the numbers at x are not as foretold."""
        now, foretold = numbers[self.moved], self.base + self.rates * (x - self.value)
        return not self.linear or bool(np.any(_differ(now, foretold, _LINEAR)))


def _differ(x: Doubles, y: Doubles, share: float) -> NDArray[np.bool_]:
    return np.abs(x - y) > share * np.maximum(np.abs(x), np.abs(y))


_NOTHING = _Way(np.empty(0, np.intp), np.empty(0), 0.0, np.empty(0))


@dataclass(eq=False)
class Compiled:
    """The model for some values of the parameters."""

    x: Doubles
    mjmodel: mujoco.MjModel
    model: Model
    numbers: Doubles


class Compiler:
    """Compiles one specification for values of parameters.

    Parameters
    ----------
    build : callable
        Returns the MjModel for a vector of values.
    names : list of str
        Names of the parameters' components.
    """

    def __init__(self, build: Callable[[Doubles], mujoco.MjModel], names: list[str]) -> None:
        self._build, self._names = build, names
        self._layout: _Layout | None = None
        self._last: Compiled | None = None
        self._still: Doubles | None = None  # numbers where all ways were found, for those that nothing moves
        self._ways: list[_Way] = []
        self.differences: set[str] = set()  # names of parameters without an exact derivative

    def compile(self, x: Doubles) -> Compiled:
        """Return the model for values x (P,)."""
        m = self._build(x)
        if self._layout is None or self._last is None or not self._layout.same(m):
            model = Model.from_mujoco(m)
            self._layout, self._still = _Layout(model, m), None
            self._last = Compiled(x, m, model, self._layout.numbers(m))
            return self._last
        numbers, last = self._layout.numbers(m), self._last
        try:
            model = self._layout.replaced(last.model, numbers, np.flatnonzero(numbers != last.numbers))
        except SinewError:
            model = Model.from_mujoco(m)
        self._last = Compiled(x, m, model, numbers)
        return self._last

    # ---- how parameters move it ----

    def _way(self, k: int, at: Doubles, step: float) -> _Way:
        """Return how parameter k moves the numbers, by compiling twice."""
        assert self._layout is not None and self._last is not None
        ends = [self._build(x) for x in _moved(at, k, step)]
        if not all(self._layout.same(m) for m in ends):
            return replace(_NOTHING, linear=False)
        up, down = (self._layout.numbers(m) for m in ends)
        moved = _differ(up, down, 16 * np.finfo(float).eps)
        constants = bool(np.any(_differ(up, down, 1e-12) & self._layout.constant))
        moves = np.flatnonzero(moved & ~self._layout.constant)
        up, down = up[moves], down[moves]
        return _Way(moves, (up - down) / (2 * step), float(at[k]), (up + down) / 2, constants=constants)

    def _stale(self, x: Doubles, numbers: Doubles) -> list[int]:
        """Return the parameters whose ways are to be found anew: numbers that they move are not as foretold."""
        if self._still is None or self._layout is None:
            return list(range(len(x)))
        users = np.bincount(np.concatenate([way.moved for way in self._ways]), minlength=len(numbers))
        still = (users == 0) & ~self._layout.constant
        if np.any(_differ(numbers, self._still, _LINEAR) & still):
            return list(range(len(x)))
        # of a product of two parameters one alone may seem linear
        pairs = enumerate(zip(self._ways, x, strict=True))
        return [k for k, (way, value) in pairs if way.is_off(value, numbers) or np.any(users[way.moved] > 1)]

    def tangents(
        self, compiled: Compiled, at: Doubles, steps: Doubles, free: list[int]
    ) -> tuple[ModelTangents, list[int]]:
        """Return how the parameters move a model, and the parameters that have no exact derivative.

        Parameters
        ----------
        compiled : Compiled
            The model.
        at, steps : ndarray, (P,)
            Values next to its own about which parameters are moved, and by how much.
        free : list of int
            Parameters that may move the model; others move nothing.

        Returns
        -------
        ModelTangents
            Of all P parameters; zero for those of the list.
        list of int
            Parameters that have no exact derivative.
        """
        x, self._last = compiled.x, compiled
        stale = self._stale(x, compiled.numbers)
        if len(stale) == len(x):
            self._ways, self._still = [_NOTHING] * len(x), compiled.numbers
        for k in set(stale) & set(free):
            self._ways[k] = self._way(k, at, float(steps[k]))
        pairs = [self._pair(compiled, k, float(steps[k])) for k in range(len(x))]
        return self._accepted(compiled, pairs, steps)

    def _accepted(
        self, compiled: Compiled, pairs: list[tuple[Model, Model] | SinewError], steps: Doubles
    ) -> tuple[ModelTangents, list[int]]:
        """Return the directions of all pairs of models, zero of those that are refused, and which these are."""
        refused = [k for k, pair in enumerate(pairs) if isinstance(pair, SinewError)]
        still = compiled.model, compiled.model
        taken = [still if isinstance(pair, SinewError) else pair for pair in pairs]
        try:
            tangents = ModelTangents(compiled.model, [p for p, _ in taken], [m for _, m in taken], steps)
        except (ArgumentError, UnsupportedError):
            before = len(refused)
            for k, pair in enumerate(taken):
                try:
                    ModelTangents(compiled.model, pair[:1], pair[1:], steps[k : k + 1])
                except (ArgumentError, UnsupportedError) as error:
                    pairs[k] = error
            if sum(isinstance(pair, SinewError) for pair in pairs) == before:
                raise
            return self._accepted(compiled, pairs, steps)
        for k in refused:
            self._tell(k, pairs[k])
        return tangents, refused

    def _pair(self, compiled: Compiled, k: int, step: float) -> tuple[Model, Model] | SinewError:
        """Return the model moved up and down by parameter k, or why it cannot be by numbers alone."""
        assert self._layout is not None
        way = self._ways[k]
        if not way.linear:
            return UnsupportedError("it changes more than numbers")
        pair = []
        for sign in (step, -step):
            numbers = compiled.numbers.copy()
            numbers[way.moved] += sign * way.rates
            try:
                model = self._layout.replaced(compiled.model, numbers, way.moved)
                pair.append(model.with_constants() if way.constants else model)
            except SinewError as error:
                return error
        return pair[0], pair[1]

    def ends(self, k: int, at: Doubles, step: float) -> list[Model]:
        """Return the model moved up and down by parameter k, compiled anew: for differences of motions."""
        return [Model.from_mujoco(self._build(x)) for x in _moved(at, k, step)]

    def _tell(self, k: int, reason: Any) -> None:
        name = self._names[k]
        if name not in self.differences:
            self.differences.add(name)
            text = str(reason).removeprefix("parameter 0: ")
            warnings.warn(f"{name}: by differences of whole motions, as {text}", DifferencesWarning, stacklevel=2)


def _moved(at: Doubles, k: int, step: float) -> list[Doubles]:
    """Return values with the one of parameter k moved up and down."""
    way = step * (np.arange(len(at)) == k)
    return [at + way, at - way]
