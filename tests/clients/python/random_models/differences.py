"""Derivatives of motions beside central differences of these motions.

Each number (a random combination of all states, or of what one sensor measures) is differentiated by each input
(initial positions, velocities and activations, controls, every array of the model) along a random direction.
Differences are taken with three sizes. What they say of a derivative is a `Verdict`:

- agrees: the nearest of them is within `TOLERANCE` of it.
- rough: no two neighbouring sizes agree within `STEADY`: a contact comes or goes, a search has noise, digits are few.
- kink: differences to both sides are apart by more than `TOLERANCE`, and by no less where the size is a tenth: a bound,
  an edge of a cone or a power of 1 exactly here. Asked only of what would differ.
- differs: anything else, and every derivative that is not finite.

All are relative to the larger of the difference, a tenth of the derivative, 1e-5 of the number's summands, and 1e-9.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import sinew
from numpy.typing import NDArray
from sinew import errors
from sinew.sensitivity import entry_changes

STEPS = 4
SIZES = (1e-6, 1e-5, 1e-4)
TOLERANCE = 1e-3
STEADY = 1e-5
FASTEST = 200.0  # a motion with larger velocities is left alone [rad/s, m/s]
# With a row of larger forces a model is left alone: one of zeros but for rounding, as that of a limited tendon whose
# sites are in one body, whose force is of no consequence but for its rounding.
STRONGEST = 1e12
# With a larger `efc_D` too: nothing softens a contact of a body that turns about its own centre of mass, and 1e15 times
# J J' leaves no digits of the inertia beside it.
HARDEST = 9.99e14

Doubles = NDArray[np.float64]
Verdict = Literal["agrees", "rough", "kink", "differs"]
Bars = dict[str, Any]  # derivatives by trajectories of a rollout, by their names

TURNS = ("body_quat", "body_iquat", "geom_quat", "site_quat", "jnt_axis")
PLACES = ("body_pos", "geom_pos", "site_pos", "body_ipos", "jnt_pos")
OPTIONS = ("gravity", "wind", "magnetic", "density", "viscosity")


class Difference(NamedTuple):
    """A derivative that differs."""

    number: str
    by: str
    derivative: float
    differences: tuple[float, ...]
    relative: float


@dataclass
class Report:
    """What came of one model's derivatives."""

    outcome: str = "compared"  # or why nothing was
    verdicts: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)  # derivatives that the engine does not have, by name
    differs: list[Difference] = field(default_factory=list)


@dataclass
class Start:
    """What a motion begins with."""

    model: sinew.Model
    state: dict[str, Doubles]
    ctrl: Doubles

    def motion(self, gradients: bool = False) -> sinew.Rollout:
        """Return the motion."""
        return sinew.rollout(self.model, self.state, self.ctrl, nstep=STEPS, gradients=gradients, threads=1)


@dataclass
class Input:
    """What a motion is differentiated by."""

    name: str
    moved: Callable[[float], Start]
    slope: Callable[[sinew.Rollout, Bars], float]


def compare_derivatives(xml: str, seed: int, by: str | None = None) -> Report:
    """Compare the derivatives of a short motion of a model.

    Parameters
    ----------
    xml : str
        MJCF.
    seed : int
        Of the state, the controls and the directions.
    by : str, optional
        The only input to differentiate by.

    Returns
    -------
    Report
        Verdicts, counted, and what differs.
    """
    report = Report()
    try:
        model = sinew.Model.from_string(xml)
    except errors.UnsupportedError:
        return Report("not supported")
    except errors.SinewError:
        return Report("refused by MuJoCo")
    if model.nv == 0:
        return Report("nothing moves")
    model = model.with_options(tolerance=1e-15)
    rng = np.random.default_rng(seed)
    start = random_start(model, rng)
    motion = start.motion(gradients=True)
    if motion.status != 0 or not np.all(np.isfinite(motion.qvel)) or np.abs(motion.qvel).max() > FASTEST:
        return Report("diverges")
    left = left_alone(start)
    if left:
        return Report(left)
    numbers = dict(_numbers(motion, rng, report))
    for made in _of_start(start, seed), _of_model(start, seed, report, by):
        for x in made:
            if by in (None, x.name):
                _compare(motion, numbers, x, report)
    return report


def random_start(model: sinew.Model, rng: np.random.Generator) -> Start:
    """Return a random state near the model's own, and random controls."""
    state = {
        "qpos": model.integrate(model.qpos0, 0.1 * rng.standard_normal(model.nv)),
        "qvel": 0.3 * rng.standard_normal(model.nv),
        "act": rng.uniform(0.1, 0.6, model.na),
    }
    bodies = model.body_mocapid >= 0
    if np.any(bodies):
        state["mocap"] = np.concatenate([model.body_pos[bodies], model.body_quat[bodies]], axis=1)
    return Start(model, state, rng.uniform(0, 0.8, (STEPS, model.nu)))


def left_alone(start: Start) -> str:
    """Return why the rows at the begin leave too few digits to compare, or nothing."""
    data = sinew.Data(start.model)
    data.qpos[:], data.qvel[:] = start.state["qpos"], start.state["qvel"]
    try:
        data.forward()
    except errors.DivergedError:  # what a motion, whose steps damp, can bear
        return "diverges"
    if np.max(np.abs(data.efc_force), initial=0) > STRONGEST:
        return "a row of zeros"
    return "a row that nothing softens" if np.max(data.efc_D, initial=0) > HARDEST else ""


def _numbers(motion: sinew.Rollout, rng: np.random.Generator, report: Report) -> Iterator[tuple[str, Bars]]:
    """Return numbers to differentiate, each by its derivatives with respect to states and sensors."""
    scales = {"qpos": 1, "qvel": 0.05, "act": 1}
    yield "state", {name: x * rng.standard_normal(getattr(motion, name).shape) for name, x in scales.items()}
    model = motion.model
    for name, at, size in zip(model.names("sensor"), model.sensor_adr, model.sensor_dim, strict=True):
        bar = np.zeros(motion.sensordata.shape)
        bar[:, at : at + size] = rng.standard_normal((STEPS + 1, size))
        if not np.all(np.isfinite(motion.sensordata[:, at : at + size])):
            report.refused["a sensor that is not computed"] += 1
            continue
        try:
            sinew.rollout_vjp(motion, sensordata=bar)
        except errors.UnsupportedError:
            report.refused[f"a sensor of type {model.sensor_type[model.names('sensor').index(name)]}"] += 1
            continue
        yield name, {"sensordata": bar}


def _direction(seed: int, name: str, shape: tuple[int, ...]) -> Doubles:
    """Return a random direction, the same for a name whatever else is compared."""
    return np.random.default_rng([seed, *name.encode()]).standard_normal(shape)


def _of_start(start: Start, seed: int) -> Iterator[Input]:
    """Return the initial state and the controls, each along a direction."""
    model = start.model
    sizes = {"qpos": (model.nv,), "qvel": (model.nv,), "act": (model.na,), "ctrl": start.ctrl.shape}
    for name, shape in sizes.items():
        way = _direction(seed, name, shape)

        def moved(h: float, name: str = name, way: Doubles = way) -> Start:
            if name == "ctrl":
                return Start(model, start.state, start.ctrl + h * way)
            x = start.state[name]
            return Start(
                model, start.state | {name: model.integrate(x, way, h) if name == "qpos" else x + h * way}, start.ctrl
            )

        def slope(motion: sinew.Rollout, bars: Bars, name: str = name, way: Doubles = way) -> float:
            by = getattr(sinew.rollout_vjp(motion, **_tangent(motion, bars), coordinates="tangent"), name)
            return float(np.sum(by * way))

        if way.size:
            yield Input(name, moved, slope)


def _tangent(motion: sinew.Rollout, bars: Bars) -> Bars:
    """Return derivatives by positions along tangents, given those by the entries."""
    if "qpos" not in bars:
        return bars
    changes = entry_changes(motion.model, motion.qpos, np.eye(motion.model.nv))
    return bars | {"qpos": np.einsum("tq,tqv->tv", bars["qpos"], changes)}


def _of_model(start: Start, seed: int, report: Report, by: str | None) -> Iterator[Input]:
    """Return every array of the model, and options, by which there is a derivative, along a direction."""
    model = start.model

    def option(name: str, way: Doubles) -> Callable[[float], sinew.Model]:
        return lambda h: model.with_options(**{name: getattr(model.opt, name) + h * way})

    def array(name: str, way: Doubles) -> Callable[[float], sinew.Model]:
        def moved(h: float) -> sinew.Model:
            now = getattr(model, name) + h * way
            if name in TURNS:
                now /= np.linalg.norm(now, axis=-1, keepdims=True)
            return model.replace(**{name: now})

        return moved

    wanted = [by] if by else [*OPTIONS, *model.fields()]
    for name in [name for name in wanted if name in OPTIONS]:
        value = np.asarray(getattr(model.opt, name), float)
        yield from _input(start, name, option(name, value * _direction(seed, name, value.shape)), report)
    for name in [name for name in wanted if name in model.fields()]:
        x = getattr(model, name)
        if x.size == 0 or x.dtype != float:
            continue
        way = _direction(seed, name, x.shape) * (0.1 if name in TURNS + PLACES else np.abs(x))
        if name in ("qpos0", "qpos_spring"):
            way[np.setdiff1d(np.arange(model.nq), model.jnt_qposadr[model.jnt_type >= 2])] = 0  # quaternions
        if _tangents(model, array(name, way)) is None:
            for row in range(len(way)):  # those that may be moved
                one = np.zeros(way.shape)
                one[row] = way[row]
                if _tangents(model, array(name, one)) is None:
                    way[row] = 0
        if np.any(way):
            yield from _input(start, name, array(name, way), report)
        else:
            report.refused[name] += 1


def _tangents(model: sinew.Model, moved: Callable[[float], sinew.Model]) -> sinew.ModelTangents | None:
    """Return how a parameter moves a model, or None where it may not or has no derivative."""
    try:
        return sinew.ModelTangents(model, [moved(SIZES[0])], [moved(-SIZES[0])], SIZES[:1])
    except (errors.ArgumentError, errors.UnsupportedError):
        return None


def _input(start: Start, name: str, moved: Callable[[float], sinew.Model], report: Report) -> Iterator[Input]:
    tangents = _tangents(start.model, moved)

    def slope(motion: sinew.Rollout, bars: Bars) -> float:
        found = sinew.rollout_vjp(motion, **bars, parameters=tangents).parameters
        assert found is not None
        return float(found[0])

    if tangents is None:
        report.refused[name] += 1
    else:
        yield Input(name, lambda h: Start(moved(h), start.state, start.ctrl), slope)


def _compare(motion: sinew.Rollout, numbers: dict[str, Bars], by: Input, report: Report) -> None:
    """Differentiate all numbers by one input."""
    ends = {h: by.moved(h).motion() for size in SIZES for h in (size, -size)}
    for name, bars in numbers.items():
        try:
            slope = by.slope(motion, bars)
        except errors.UnsupportedError:
            report.refused[f"{by.name} of a sensor"] += 1
            continue
        values = {h: float(np.sum(_summands(end, bars))) for h, end in {0.0: motion, **ends}.items()}
        verdict, relative = judge(slope, values, float(np.sum(np.abs(_summands(motion, bars)))))
        report.verdicts[verdict] += 1
        if verdict == "differs":
            report.differs.append(Difference(name, by.name, slope, central(values), relative))


def _summands(motion: sinew.Rollout, bars: Bars) -> Doubles:
    """Return what a number is the sum of; other sensors may be NaN."""
    return np.concatenate([bar[bar != 0] * getattr(motion, name)[bar != 0] for name, bar in bars.items()])


def central(values: dict[float, float]) -> tuple[float, ...]:
    """Return the central differences of all sizes."""
    return tuple((values[h] - values[-h]) / (2 * h) for h in SIZES)


def judge(slope: float, values: dict[float, float], summands: float) -> tuple[Verdict, float]:
    """Judge a derivative by values at 0 and at all sizes to both sides; return also how far off it is.

    >>> sizes = [0, *SIZES, *(-h for h in SIZES)]
    >>> judge(2.0, {h: 2 * h + h * h for h in sizes}, 1.0)[0]
    'agrees'
    >>> judge(2.1, {h: 2 * h + h * h for h in sizes}, 1.0)[0]
    'differs'
    >>> judge(0.0, {h: max(h, 0.0) for h in sizes}, 1.0)[0]
    'kink'
    >>> judge(0.0, {h: max(h - 3e-6, 0.0) for h in sizes}, 1.0)[0]
    'rough'
    """
    differences = central(values)
    scale = max(abs(differences[0]), 0.1 * abs(slope), 1e-5 * summands + 1e-9)
    relative = min(abs(slope - x) for x in differences) / scale
    if not np.isfinite(slope):
        return "differs", np.inf
    if not min(abs(a - b) for a, b in itertools.pairwise(differences)) <= STEADY * scale:
        return "rough", relative
    if relative <= TOLERANCE:
        return "agrees", relative
    gaps = [abs(values[h] - 2 * values[0] + values[-h]) / h for h in SIZES[:2]]
    return ("kink" if gaps[0] > TOLERANCE * scale and gaps[0] > 0.5 * gaps[1] else "differs"), relative
