"""What is to be identified, as a file says it."""

from __future__ import annotations

import glob
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from sinew._yaml import read_map
from sinew.cfd import CFD
from sinew.errors import ArgumentError, NotFoundError
from sinew.identify import Loss, PoseLoss, StateLoss
from sinew.names import did_you_mean
from sinew.parameters import Parameter

__all__ = ["Order"]

_OPTIMIZER = ("kind", "iterations", "rate", "batch")
_LOSSES: dict[str, type[StateLoss] | type[PoseLoss]] = {"state": StateLoss, "pose": PoseLoss}


@dataclass
class Order:
    """What is to be identified.

    Attributes
    ----------
    model : Path
        MJCF.
    parameters : dict of Parameter
        By their names.
    recordings : list of Path
        Files of motions.
    whole : bool
        Whether motions are taken whole, not in segments.
    loss : StateLoss or PoseLoss
        Of segments.
    settings : dict
        Arguments of `identify`.
    """

    model: Path
    parameters: dict[str, Parameter]
    recordings: list[Path]
    whole: bool
    loss: Loss
    settings: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> Order:
        """Read a YAML file.

        Raises
        ------
        FileError, FormatError
            It cannot be read, or is not YAML.
        ArgumentError, NotFoundError
            A key, a name or a value that is not allowed: its place.
        """
        content = read_map(path, _KEYS)
        try:
            return cls.of(content, path.parent)
        except (ArgumentError, NotFoundError) as error:
            raise type(error)(f"{path}: {error}") from None

    @classmethod
    def of(cls, content: Any, folder: Path) -> Order:
        """Make it of the content of a file; paths are relative to ``folder``."""
        _map("file", content, _KEYS)
        for name in ("model", "parameters", "recordings"):
            if not content.get(name):
                raise ArgumentError(f"{name}: not given")
        segments = content.get("segments", {})
        whole = segments == "whole"
        cut = {} if whole else _map("segments", segments, ("steps", "stride"))
        optimizer = _map("optimizer", content.get("optimizer", {}), _OPTIMIZER)
        settings: dict[str, Any] = {} if whole else {x: _whole(f"segments.{x}", y, 1) for x, y in cut.items()}
        settings |= {x: y for x, y in optimizer.items() if x != "kind"}
        settings["optimizer"] = optimizer.get("kind", "adam")
        for name in ("substeps", "starts"):
            settings[name] = _whole(name, content.get(name, 1), 1)
        settings["seed"] = _whole("seed", content.get("seed", 0), 0)
        settings["held_out"] = _number("held_out", content.get("held_out", 0.0))
        settings["uncertainty"] = bool(content.get("uncertainty", True))
        settings["cfd"] = _cfd(content.get("cfd", False))
        settings["integrator"] = _integrator(content.get("integrator", False))
        for name in {"iterations", "batch"} & set(settings):
            settings[name] = _whole(f"optimizer.{name}", settings[name], 1)
        if "rate" in settings:
            settings["rate"] = _number("optimizer.rate", settings["rate"])
        parameters = _map("parameters", content["parameters"], None)
        return cls(
            folder / str(content["model"]), {name: _parameter(name, x) for name, x in parameters.items()},
            _files(content["recordings"], folder), whole, _loss(content.get("loss", {})), settings,
        )  # fmt: skip


_KEYS = (
    *("model", "parameters", "recordings", "segments", "substeps", "loss", "optimizer", "starts", "seed", "held_out"),
    *("uncertainty", "cfd", "integrator"),
)


def _map(place: str, x: Any, keys: tuple[str, ...] | None) -> dict[str, Any]:
    """Return a map with some of these keys; None: any."""
    if not isinstance(x, Mapping) or (keys is None and not x):
        raise ArgumentError(f"{place}: {x!r}, expected a map" + (f" with some of {', '.join(keys)}" if keys else ""))
    for name in x:
        if keys is not None and name not in keys:
            raise ArgumentError(
                f"{place}: {name!r} is not known{did_you_mean(name, keys)}; there are {', '.join(keys)}"
            )
    return {str(name): value for name, value in x.items()}


def _number(place: str, x: Any) -> float:
    try:
        if isinstance(x, bool):
            raise ValueError
        return float(x)
    except (TypeError, ValueError):
        raise ArgumentError(f"{place}: {x!r}, expected a number") from None


def _whole(place: str, x: Any, lowest: int) -> int:
    if isinstance(x, bool) or not isinstance(x, int) or x < lowest:
        raise ArgumentError(f"{place}: {x!r}, expected a whole number from {lowest} on")
    return x


def _parameter(name: str, x: Any) -> Parameter:
    if isinstance(x, str | list):
        x = {"attribute": x}
    given = _map(f"parameters.{name}", x, ("attribute", "bounds", "start", "transform"))
    targets = given.get("attribute")
    if not targets or not (isinstance(targets, str) or all(isinstance(t, str) for t in targets)):
        raise ArgumentError(
            f"parameters.{name}.attribute: {targets!r}, expected an attribute, as geom.cube.size, or some"
        )
    bounds = given.get("bounds")
    if bounds is not None:
        if not isinstance(bounds, list) or len(bounds) != 2:
            raise ArgumentError(f"parameters.{name}.bounds: {bounds!r}, expected two numbers")
        bounds = tuple(_number(f"parameters.{name}.bounds", b) for b in bounds)
    start = given.get("start")
    start = None if start is None else _number(f"parameters.{name}.start", start)
    return Parameter(targets, bounds, start, given.get("transform", "none"))


def _files(x: Any, folder: Path) -> list[Path]:
    patterns = [x] if isinstance(x, str) else x
    if not isinstance(patterns, list) or not all(isinstance(p, str) for p in patterns):
        raise ArgumentError(f"recordings: {x!r}, expected paths, which may have * in them")
    found: list[Path] = []
    for pattern in patterns:
        here = sorted(Path(p) for p in glob.glob(str(folder / pattern), recursive=True))
        if not here:
            raise ArgumentError(f"recordings: there is no {folder / pattern}")
        found += here
    return found


def _loss(x: Any) -> Loss:
    given = _map("loss", x, ("kind", *(f.name for kind in _LOSSES.values() for f in fields(kind))))
    name = given.pop("kind", "state")
    if name not in _LOSSES:
        raise ArgumentError(f"loss.kind: {name!r}, allowed are {', '.join(_LOSSES)}")
    known = tuple(f.name for f in fields(_LOSSES[name]))
    _map("loss", given, known)
    if name == "pose" and "scale" not in given:
        raise ArgumentError("loss: kind pose needs scale, a length [m]")
    numbers: dict[str, Any] = {
        key: _whole("loss.joint", v, 0) if key == "joint" else _number(f"loss.{key}", v) for key, v in given.items()
    }
    if numbers.get("scale", 1) <= 0 or numbers.get("velocity", 0) < 0:
        raise ArgumentError(f"loss: {given}, expected a scale above 0 and a velocity of at least 0")
    return _LOSSES[name](**numbers)


def _cfd(x: Any) -> CFD | None:
    if x in (False, None):
        return None
    if x is True:
        return CFD()
    given = _map("cfd", x, tuple(f.name for f in fields(CFD)))
    for name in {"softplus", "smooth"} & set(given):
        given[name] = _number(f"cfd.{name}", given[name])
    for name in {"friction", "surrogate", "forward"} & set(given):
        if not isinstance(given[name], bool):
            raise ArgumentError(f"cfd.{name}: {given[name]!r}, expected true or false")
    if "solimp" in given:
        if not isinstance(given["solimp"], list) or len(given["solimp"]) != 5:
            raise ArgumentError(f"cfd.solimp: {given['solimp']!r}, expected five numbers")
        given["solimp"] = tuple(_number("cfd.solimp", v) for v in given["solimp"])
    bodies = given.get("bodies")
    if bodies is not None and not (isinstance(bodies, list) and all(isinstance(b, str) for b in bodies)):
        raise ArgumentError(f"cfd.bodies: {bodies!r}, expected a list of names")
    return CFD(**given)


def _integrator(x: Any) -> dict[str, Any] | None:
    if x in (False, None):
        return None
    known = ("method", "rtol", "atol", "first_step", "smallest_step", "largest_step", "max_steps", "linear", "events")
    given = _map("integrator", x, known)
    tolerances = {name: _number(f"integrator.{name}", given[name]) for name in ("rtol", "atol") if name in given}
    for name, value in tolerances.items():
        if not 0 < value <= 1:
            raise ArgumentError(f"integrator.{name}: {value:g}, allowed is above 0 to 1")
    return given | tolerances
