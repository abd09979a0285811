"""Parameters of a model as attributes of its MJCF: values, bounds, models made of them, and how they move a model."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from sinew._arrays import Doubles, doubles
from sinew._files import reason
from sinew.errors import ArgumentError, FileError, FormatError, NotFoundError, UnsupportedError
from sinew.model import Model
from sinew.model_tangents import ModelTangents

__all__ = ["Parameter", "Parameters"]

KINDS = {
    "body": "bodies",
    "geom": "geoms",
    "joint": "joints",
    "site": "sites",
    "tendon": "tendons",
    "actuator": "actuators",
    "pair": "pairs",
    "equality": "equalities",
}
TARGET = re.compile(
    r"(?:default\.(?P<default>[^.\[\]]+)\.)?(?P<kind>\w+)(?:\.(?P<name>[^\[\]]+?))?\.(?P<attribute>\w+)"
    r"(?:\[(?P<index>\d+)\])?"
)
STEP = 1e-5  # of a value, by which a model is moved for its tangent
# MuJoCo takes the frame of a geom or site that is off its body's by less than 1e-6 for the body's.
FRAMES = ("pos", "quat", "ipos", "iquat")
SHARED = 1e-6
LARGEST = 700.0  # exponent, whose power a double can hold
Transform = Literal["none", "log", "softplus", "softclip"]


@dataclass(frozen=True)
class Parameter:
    """One number, and the attributes of MJCF that have it.

    Parameters
    ----------
    targets : str or sequence of str
        Attributes: ``"geom.NAME.size"`` (all its numbers), ``"geom.NAME.size[0]"``, ``"option.gravity[2]"``. Kinds are
        body, geom, joint, site, tendon, actuator, pair, equality. ``"default.CLASS.geom.friction[0]"`` stands for all
        geoms of a class that have its number; the class of a file without classes is ``main``. Several attributes have
        the same number.
    bounds : (float, float), optional
        Least and largest value.
    start : float, optional
        First value. Default: what the file has.
    transform : {"none", "log", "softplus", "softclip"}
        What an optimiser turns instead of the value: its logarithm, log(exp(value) - 1), or what a logistic function
        brings between the bounds.
    """

    targets: str | Sequence[str]
    bounds: tuple[float, float] | None = None
    start: float | None = None
    transform: Transform = "none"

    def clip(self, value: float) -> float:
        """Return the value within the bounds."""
        return value if self.bounds is None else min(max(value, self.bounds[0]), self.bounds[1])

    def to_free(self, value: float) -> float:
        """Return the number that an optimiser turns."""
        if self.transform == "log":
            return math.log(value)
        if self.transform == "softplus":
            return value + math.log(-math.expm1(-value))
        if self.transform == "softclip":
            low, high = self._limits
            share = min(max((value - low) / (high - low), 1e-9), 1 - 1e-9)
            return math.log(share / (1 - share))
        return value

    def to_value(self, free: float) -> float:
        """Return the value of such a number."""
        if self.transform == "log":
            return self.clip(_exp(free))
        if self.transform == "softplus":
            return self.clip(max(free, 0.0) + math.log1p(_exp(-abs(free))))
        if self.transform == "softclip":
            low, high = self._limits
            return low + (high - low) / (1 + _exp(-free))
        return self.clip(free)

    def slope(self, free: float) -> float:
        """Return the derivative of the value by that number, that of the inside at a bound."""
        if self.transform == "log":
            return _exp(free)
        if self.transform in ("softplus", "softclip"):
            share = 1 / (1 + _exp(-free))
            if self.transform == "softplus":
                return share
            low, high = self._limits
            return (high - low) * share * (1 - share)
        return 1.0

    def inside(self, value: float) -> float:
        """Return the value, with softclip at least a thousandth of the width off the bounds: there slopes vanish."""
        if self.transform != "softclip":
            return value
        low, high = self._limits
        edge = 1e-3 * (high - low)
        return min(max(value, low + edge), high - edge)

    def free_bounds(self) -> tuple[float, float]:
        """Return the bounds of the number that an optimiser turns; infinite where its values keep within bounds."""
        if self.bounds is None or self.transform == "softclip":
            return -math.inf, math.inf
        return self.to_free(self.bounds[0]), self.to_free(self.bounds[1])

    def between(self, share: float) -> float:
        """Return the value at a share of the way between the bounds, of logarithms where these are turned."""
        low, high = self._limits
        return self.clip(low * (high / low) ** share if self.transform == "log" else low + share * (high - low))

    def share(self, value: float) -> float:
        """Return the share of the way at which a value within the bounds lies."""
        low, high = self._limits
        if self.transform == "log":
            return math.log(value / low) / math.log(high / low)
        return (value - low) / (high - low)

    @property
    def _limits(self) -> tuple[float, float]:
        assert self.bounds is not None
        return self.bounds


def _exp(x: float) -> float:
    """Return exp(x), where that is beyond doubles the largest or smallest one that is not."""
    return math.exp(min(max(x, -LARGEST), LARGEST))


def _names(names: list[str]) -> str:
    """Return names for a text that begins with "there are"."""
    if not names:
        return "none"
    named = [name for name in names if name]
    return ", ".join(named[:12]) + (", ..." if len(named) > 12 else "") if named else f"{len(names)} without a name"


def _checked(name: str, given: str | Parameter) -> Parameter:
    p = given if isinstance(given, Parameter) else Parameter(given)
    if p.transform not in ("none", "log", "softplus", "softclip"):
        raise ArgumentError(f"{name}: transform is {p.transform!r}, allowed are none, log, softplus, softclip")
    if p.bounds is not None and not (all(map(math.isfinite, p.bounds)) and p.bounds[0] < p.bounds[1]):
        raise ArgumentError(f"{name}: bounds are {p.bounds}, expected two numbers, the lower one first")
    if p.transform == "softclip" and p.bounds is None:
        raise ArgumentError(f"{name}: transform softclip needs bounds")
    if p.transform in ("log", "softplus") and p.bounds is not None and p.bounds[0] <= 0:
        raise ArgumentError(f"{name}: bounds[0] is {p.bounds[0]}, above 0 is allowed with transform {p.transform}")
    return p


def _check_transformed(name: str, p: Parameter, value: float) -> None:
    """Refuse a value of which the transform has no number."""
    if p.transform in ("log", "softplus") and value <= 0:
        raise ArgumentError(f"{name}: {value} is not above 0, as transform {p.transform} wants it")


@dataclass(frozen=True)
class _Attribute:
    """An attribute of an element of a specification: all of its numbers, or one."""

    text: str
    element: Any
    name: str
    index: int | None

    def get(self) -> float:
        value = getattr(self.element, self.name)
        if not isinstance(value, np.ndarray):
            return float(value)
        if self.index is not None:
            return float(value[self.index])
        used = value[: self._used(value)]
        if np.ptp(used) > 1e-12 * np.max(np.abs(used)):
            raise ArgumentError(f"{self.text}: its numbers differ ({value}): name one, as {self.text}[0]")
        return float(used[0])

    def set(self, number: float) -> None:
        value = getattr(self.element, self.name)
        if not isinstance(value, np.ndarray):
            setattr(self.element, self.name, number)
        elif self.index is not None:
            value[self.index] = number
        else:
            value[: self._used(value)] = number

    def _used(self, value: Any) -> int:
        """Return how many numbers stand for something: sizes of a sphere, say, one."""
        given = int(np.max(np.flatnonzero(np.nan_to_num(value)), initial=0)) + 1
        return given if self.name in ("size", "gear") else len(value)


def _find_element(spec: Any, text: str, match: re.Match[str]) -> Any:
    kind, name = match["kind"], match["name"]
    if kind == "option" and name is None and match["default"] is None:
        return spec.option
    if kind not in KINDS:
        raise NotFoundError(f"{text}: {kind!r} is no kind of element; allowed are {', '.join(KINDS)}, option, default")
    if match["default"] is not None:
        found = spec.default if match["default"] == "main" else spec.find_default(match["default"])
        if found is None or name is not None:
            raise NotFoundError(f"{text}: expected default.CLASS.{kind}.ATTRIBUTE; there is no such class")
        return getattr(found, kind)
    element = None if name is None else getattr(spec, kind)(name)
    if element is None:
        have = _names([x.name for x in getattr(spec, KINDS[kind])])
        raise NotFoundError(f"{text}: there is no {kind} of the name {name!r}; there are {have}")
    return element


def _continuous(element: Any) -> list[str]:
    names = [x for x in dir(element) if not x.startswith("_")]
    return [x for x in names if isinstance(_value(element, x), float | np.ndarray)]


def _value(element: Any, name: str) -> Any:
    try:
        return getattr(element, name)
    except (AttributeError, RuntimeError, ValueError):
        return None


def _find(spec: Any, text: str) -> list[_Attribute]:
    """Return the attributes that a target stands for."""
    match = TARGET.fullmatch(text)
    if match is None:
        raise ArgumentError(
            f"{text!r}: expected KIND.NAME.ATTRIBUTE or KIND.NAME.ATTRIBUTE[NUMBER], as geom.cube.size[0]"
        )
    element, name = _find_element(spec, text, match), match["attribute"]
    value = _value(element, name)
    if value is None or callable(value):
        raise NotFoundError(f"{text}: no attribute {name!r}; there are {', '.join(_continuous(element))}")
    if not isinstance(value, float | np.ndarray) or (isinstance(value, np.ndarray) and value.dtype.kind != "f"):
        raise UnsupportedError(
            f"{text}: {name} is discrete ({value}), only numbers that can move a little are parameters"
        )
    index = None if match["index"] is None else int(match["index"])
    if index is not None and (not isinstance(value, np.ndarray) or index >= len(value)):
        size = len(value) if isinstance(value, np.ndarray) else 1
        raise ArgumentError(f"{text}: {name} has {size} numbers, from [0] on")
    here = _Attribute(text, element, name, index)
    if match["default"] is None:
        return [here]
    # a class has been copied into its elements already
    own, number = match["default"], here.get()
    users = [x for x in getattr(spec, KINDS[match["kind"]]) if own in ("main", x.classname.name)]
    found = [x for x in (_Attribute(text, user, name, index) for user in users) if x.get() == number]
    if not found:
        raise NotFoundError(f"{text}: no {match['kind']} of the class has its number, {number:g}")
    return found


class Parameters:
    """Parameters of a model, named, as attributes of its MJCF.

    >>> parameters = sinew.Parameters("cube.xml", {"side": sinew.Parameter("geom.cube.size", bounds=(0.02, 0.1))})
    >>> model = parameters.model([0.06])
    >>> gradient = sinew.rollout_vjp(rollout, qpos=bar, parameters=parameters.tangents([0.06])).parameters

    Parameters
    ----------
    source : path, str or mujoco.MjSpec
        A file of MJCF, its text, or a specification. It is copied.
    parameters : mapping of str to Parameter or str
        What each is, by names of one's own; a str stands for ``Parameter(str)``.

    Attributes
    ----------
    names : list of str
        The names.
    values : ndarray, (P,)
        First values.

    Raises
    ------
    FormatError
        MuJoCo cannot read the model.
    NotFoundError
        An element or attribute that the model has not; the text lists those that there are.
    UnsupportedError
        A discrete attribute, as a type or ``condim``.
    ArgumentError
        Bounds, an index, a first value outside of the bounds, or one that the file does not have.
    """

    names: list[str]
    values: Doubles

    def __init__(self, source: str | os.PathLike[str] | Any, parameters: Mapping[str, str | Parameter]) -> None:
        import mujoco

        try:
            if isinstance(source, mujoco.MjSpec):
                self._spec = source.copy()
            elif isinstance(source, str) and source.lstrip().startswith("<"):
                self._spec = mujoco.MjSpec.from_string(source)
            else:
                self._spec = mujoco.MjSpec.from_file(os.fspath(source))
        except ValueError as error:
            raise FormatError(f"MuJoCo cannot read the model: {error}") from None
        except TypeError:
            kind = type(source).__name__
            raise ArgumentError(f"source: {kind}, expected a path, a text of MJCF or a mujoco.MjSpec") from None
        self.names = list(parameters)
        self._parameters = [_checked(name, p) for name, p in parameters.items()]
        self._attributes: list[list[_Attribute]] = []
        for p in self._parameters:
            targets = [p.targets] if isinstance(p.targets, str) else list(p.targets)
            self._attributes.append([x for target in targets for x in _find(self._spec, target)])
        self.values = np.array([self._first(k) for k in range(len(self.names))])

    def _first(self, k: int) -> float:
        p, name = self._parameters[k], self.names[k]
        value = self._attributes[k][0].get() if p.start is None else float(p.start)
        if not math.isfinite(value):
            raise ArgumentError(f"{name}: {self._attributes[k][0].text} is not set in the file: give start")
        if p.bounds is not None and not p.bounds[0] <= value <= p.bounds[1]:
            raise ArgumentError(f"{name}: starts at {value}, outside of its bounds {p.bounds}")
        _check_transformed(name, p, value)
        return value

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, name: str) -> Parameter:
        return self._parameters[self.names.index(name)]

    def __repr__(self) -> str:
        held = ", ".join(f"{name}={value:.6g}" for name, value in zip(self.names, self.values, strict=True))
        return f"<sinew.Parameters {held}>"

    def _set(self, values: Sequence[float] | Doubles) -> None:
        for attributes, value in zip(self._attributes, values, strict=True):
            for attribute in attributes:
                attribute.set(float(value))

    def _taken(self, values: ArrayLike | None) -> Doubles:
        taken = self.values if values is None else doubles("values", values)
        if taken.shape != (len(self),) or not np.all(np.isfinite(taken)):
            raise ArgumentError(f"values: {taken}, expected {len(self)} finite numbers")
        for name, p, value in zip(self.names, self._parameters, taken, strict=True):
            if p.bounds is not None and not p.bounds[0] <= value <= p.bounds[1]:
                raise ArgumentError(f"{name}: {value} is outside of its bounds {p.bounds}")
        return taken

    def _of_mujoco(self, values: Sequence[float] | Doubles) -> Any:
        """Return MuJoCo's compiled model."""
        self._set(values)
        try:
            return self._spec.compile()
        except ValueError as error:
            held = ", ".join(f"{name} = {value:.6g}" for name, value in zip(self.names, values, strict=True))
            raise ArgumentError(f"MuJoCo refuses {held}: {error}") from error

    def _compiled(self, values: Sequence[float] | Doubles) -> Model:
        return Model.from_mujoco(self._of_mujoco(values))

    def identity(self, values: ArrayLike | None = None) -> tuple[Any, ...]:
        """Return what tells these parameters at these values, (P,), from others: with the bytes of MuJoCo's model."""
        import mujoco

        model = self._of_mujoco(self._taken(values))
        content = np.empty(mujoco.mj_sizeModel(model), np.uint8)
        mujoco.mj_saveModel(model, None, content)
        return self.names, self._parameters, content

    def model(self, values: ArrayLike | None = None) -> Model:
        """Return the model with these values, (P,); None: the first ones.

        Raises
        ------
        ArgumentError
            A value outside of its bounds, or one that MuJoCo's compiler refuses.
        """
        return self._compiled(self._taken(values))

    def tangents(self, values: ArrayLike | None = None) -> ModelTangents:
        """Return how the parameters move the model at these values, (P,). Compiles the model twice for each.

        Raises
        ------
        ArgumentError
            Values that MuJoCo refuses, or where the model is of one structure and beside them of another: a geom with
            mass that lies exactly in the frame of its body.
        UnsupportedError
            A parameter moves a number without a derivative.
        """
        at = self._taken(values)
        steps = STEP * np.maximum(np.abs(at), 1e-3)
        in_frame = [
            abs(v) < SHARED and any(x.name in FRAMES for x in of) for v, of in zip(at, self._attributes, strict=True)
        ]
        steps[in_frame] = 10 * SHARED
        ends = [[self._compiled(at + sign * way) for way in np.diag(steps)] for sign in (1, -1)]
        try:
            return ModelTangents(self._compiled(at), ends[0], ends[1], steps)
        except ArgumentError as error:
            held = ", ".join(np.array(self.names)[in_frame])
            hint = f"; {held}: beside 0 the model is of another structure, a start of {100 * SHARED:g} has a derivative"
            raise ArgumentError(f"{error}{hint if held else ''}") from error
        except UnsupportedError as error:
            text = re.sub(r"^parameter (\d+):", lambda found: f"parameter {self.names[int(found[1])]!r}:", str(error))
            raise UnsupportedError(text) from error

    def save(self, path: str | os.PathLike[str], values: ArrayLike | None = None) -> None:
        """Write the MJCF with these values, (P,), to a file; it finds meshes and pictures where they are now.

        Raises
        ------
        ArgumentError
            Values that MuJoCo refuses.
        FileError
            The file cannot be written.
        """
        spec = self._spec
        here = Path(spec.modelfiledir).absolute()
        if any(x.file for x in (*spec.meshes, *spec.hfields, *spec.skins)):
            spec.meshdir = str(here / spec.meshdir)
        if any(x.file or any(x.cubefiles) for x in spec.textures):
            spec.texturedir = str(here / spec.texturedir)
        self._of_mujoco(self._taken(values))
        try:
            Path(path).write_text(spec.to_xml(), encoding="utf-8")
        except OSError as error:
            raise FileError(f"{path}: {reason(error)}") from None

    # ---- for optimisers ----

    def to_free(self, values: ArrayLike) -> Doubles:
        """Return the numbers that an optimiser turns, (P,)."""
        taken = self._taken(values)
        for name, p, value in zip(self.names, self._parameters, taken, strict=True):
            _check_transformed(name, p, float(value))
        return np.array([p.to_free(float(value)) for p, value in zip(self._parameters, taken, strict=True)])

    def to_values(self, free: ArrayLike) -> Doubles:
        """Return the values of such numbers, (P,), within their bounds."""
        pairs = zip(self._parameters, np.asarray(free, float), strict=True)
        return np.array([p.to_value(float(x)) for p, x in pairs])

    def to_shares(self, values: ArrayLike) -> Doubles:
        """Return where values lie between their bounds, (P,) of 0 to 1; those of logarithms by their logarithms."""
        pairs = zip(self._bounded(), self._taken(values), strict=True)
        return np.array([p.share(float(x)) for p, x in pairs])

    def between(self, shares: ArrayLike) -> Doubles:
        """Return the values at shares of the way between their bounds, (P,)."""
        pairs = zip(self._bounded(), np.asarray(shares, float), strict=True)
        return np.array([p.between(float(x)) for p, x in pairs])

    def _bounded(self) -> list[Parameter]:
        for name, p in zip(self.names, self._parameters, strict=True):
            if p.bounds is None:
                raise ArgumentError(f"{name}: has no bounds, between which values are to be drawn")
        return self._parameters

    def inside(self, values: ArrayLike) -> Doubles:
        """Return values, (P,), from which an optimiser may begin: see `Parameter.inside`."""
        return np.array([p.inside(float(x)) for p, x in zip(self._parameters, self._taken(values), strict=True)])

    def free_bounds(self) -> tuple[Doubles, Doubles]:
        """Return the least and the largest numbers that an optimiser may turn to, (P,) each."""
        limits = np.array([p.free_bounds() for p in self._parameters]).reshape(-1, 2)
        return limits[:, 0], limits[:, 1]

    def slopes(self, free: ArrayLike) -> Doubles:
        """Return the derivatives of the values by them, (P,)."""
        pairs = zip(self._parameters, np.asarray(free, float), strict=True)
        return np.array([p.slope(float(x)) for p, x in pairs])
