"""What the scripts on hard contacts share: motions that begin with one number, how they end, and the slope of that.

No program of its own. `HARD_CONTACTS.md` shows the scripts and what they draw.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import sinew

Array = NDArray[np.float64]
Adjoint = Literal["discrete", "backsolve"]
CHUNK = 50  # rollouts at once: short steps keep many states
TIGHT = 1e-12  # tolerance of what is exact


@dataclass
class Curve:
    """Values and slopes over the number that motions begin with, and what they took.

    Attributes
    ----------
    name : str
        How they were computed.
    values, slopes : ndarray, (N,)
        NaN where a motion did not end.
    seconds, evaluations : float
        Of the processor, and of the dynamics, for a value and its slope: means.
    """

    name: str
    values: Array
    slopes: Array
    seconds: float = 0.0
    evaluations: float = 0.0

    def errors(self, exact: "Curve") -> dict[str, float]:
        """Return median and ninth tenth of the errors beside an exact curve; inf where motions did not end."""
        found: dict[str, float] = {}
        for name, mine, other in (("value", self.values, exact.values), ("slope", self.slopes, exact.slopes)):
            apart = np.nan_to_num(np.abs(mine - other), nan=np.inf)
            median, most = np.quantile(apart, (0.5, 0.9), method="higher")
            found |= {f"{name}_median": float(median), f"{name}_90%": float(most)}
        return found

    def row(self, exact: "Curve") -> dict[str, Any]:
        """Return its name, costs and errors."""
        costs = {"evaluations": round(self.evaluations, 1), "ms": 1000 * self.seconds}
        return {"name": self.name, **costs, **self.errors(exact)}


def last(i: int) -> Callable[[Array], tuple[Array, Array]]:
    """Return the loss that is one of the last positions."""

    def loss(qpos: Array) -> tuple[Array, Array]:
        bar = np.zeros_like(qpos)
        bar[:, i] = 1
        return qpos[:, i], bar

    return loss


@dataclass
class Motion:
    """A motion whose start holds a number, and a loss of its end.

    Attributes
    ----------
    model : Model
        What moves.
    seconds : float
        For how long.
    start : dict
        A state, `qpos` and `qvel`.
    where : tuple of str and int
        The array and the entry of it that the number replaces.
    loss : callable
        Gets last positions (N, nq), returns values (N,) and their derivatives (N, nq).
    options : dict
        For `sinew.integrate`.
    """

    model: sinew.Model
    seconds: float
    start: dict[str, Array]
    where: tuple[str, int]
    loss: Callable[[Array], tuple[Array, Array]]
    options: dict[str, Any] = field(default_factory=dict)

    def states(self, numbers: Array) -> dict[str, Array]:
        """Return a state for each number."""
        states = {name: np.tile(x, (len(numbers), 1)) for name, x in self.start.items()}
        states[self.where[0]][:, self.where[1]] = numbers
        return states

    def steps(self, numbers: Array, step: float, integrator: str = "euler", cfd: sinew.CFD | None = None) -> Curve:
        """Return values and slopes by MuJoCo's steps of one size [s]."""
        begin = time.process_time()
        count = round(self.seconds / step)
        model = self.model.with_options(timestep=self.seconds / count, integrator=integrator)
        values, slopes = [], []
        for part in np.array_split(numbers, -(-len(numbers) // CHUNK)):
            motion = sinew.rollout(model, self.states(part), nstep=count, outputs=["qpos"], cfd=cfd)
            value, bar = self.loss(motion.qpos[:, -1])
            bars = np.zeros_like(motion.qpos)
            bars[:, -1] = bar
            gradient = sinew.rollout_vjp(motion, qpos=bars)
            values.append(value)
            slopes.append(getattr(gradient, self.where[0])[:, self.where[1]])
            motion.close()
        seconds = (time.process_time() - begin) / len(numbers)
        evaluations = count * (4 if integrator == "rk4" else 1)
        name = f"{'RK4 ' if integrator == 'rk4' else ''}steps of {step:g} s"
        return Curve(name, np.concatenate(values), np.concatenate(slopes), seconds, evaluations)

    def run(
        self, number: float, gradients: bool = True, adjoint: Adjoint = "discrete", **options: Any
    ) -> tuple[float, float, int]:
        """Return value, slope and evaluations of `sinew.integrate`; NaN where it did not end."""
        state = {name: x[0] for name, x in self.states(np.array([number])).items()}
        options = {"max_steps": 2_000_000, **self.options, **options}
        motion = sinew.integrate(self.model, state, [self.seconds], gradients=gradients, **options)
        if motion.end != "done":
            return np.nan, np.nan, motion.evaluations
        value, bar = self.loss(motion.qpos)
        if not gradients:
            return float(value[0]), np.nan, motion.evaluations
        gradient = sinew.integrate_vjp(motion, qpos=bar, adjoint=adjoint)
        return float(value[0]), float(getattr(gradient, self.where[0])[self.where[1]]), motion.evaluations

    def curve(self, name: str, numbers: Array, **options: Any) -> Curve:
        """Return values and slopes of `sinew.integrate` with options."""
        begin = time.process_time()
        found = np.array([self.run(x, **options) for x in numbers])
        seconds = (time.process_time() - begin) / len(numbers)
        return Curve(name, found[:, 0], found[:, 1], seconds, float(np.mean(found[:, 2])))

    def chosen(self, numbers: Array, tolerance: float, **options: Any) -> Curve:
        """Return values and slopes by steps that keep to a tolerance."""
        bound = f", at most {options['largest_step']:g} s" if "largest_step" in options else ""
        bound += "" if options.get("events", True) else ", no events"
        bound += ", backsolve" if options.get("adjoint") == "backsolve" else ""
        return self.curve(f"tolerance {tolerance:g}{bound}", numbers, rtol=tolerance, atol=tolerance, **options)

    def exact(self, numbers: Array, eps: float = 1e-4, tolerance: float = TIGHT, **options: Any) -> Curve:
        """Return values at a tight tolerance, and central differences of fourth order of them."""
        tight = {"rtol": tolerance, "atol": tolerance, "gradients": False, **options}
        moves = [0, eps, -eps, 2 * eps, -2 * eps]
        values, *moved = (np.array([self.run(x + d, **tight)[0] for x in numbers]) for d in moves)
        slopes = (8 * (moved[0] - moved[1]) - (moved[2] - moved[3])) / (12 * eps)
        return Curve(f"differences at {tolerance:g}", values, slopes)


def parser(text: str | None, points: int) -> argparse.ArgumentParser:
    """Return a parser of the arguments that all scripts have."""
    found = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--points", type=int, default=points, help=f"numbers along each curve (default: {points})")
    found.add_argument("--picture", type=sinew.files.writable, help="file to draw into, .svg or .png")
    found.add_argument("--json", action="store_true", help="print one object in place of a table")
    return found


def progress(text: str) -> None:
    """Say on the error stream what was computed."""
    print(f"{time.process_time():7.1f} s  {text}", file=sys.stderr, flush=True)


def show(tables: Mapping[str, Sequence[dict[str, Any]]], as_json: bool) -> None:
    """Print tables of rows with the same columns, or one object."""
    if as_json:
        print(json.dumps(tables))
        return
    for title, rows in tables.items():
        names = list(rows[0])
        cells = [[x if isinstance(x, str) else f"{x:.4g}" for x in row.values()] for row in rows]
        widths = [max(len(x) for x in column) for column in zip(names, *cells, strict=True)]
        print(title)
        for line in (names, *cells):
            print("  " + line[0].ljust(widths[0]), *(x.rjust(w) for x, w in zip(line[1:], widths[1:], strict=True)))


@contextmanager
def drawing(picture: str, rows: int, columns: int, size: tuple[float, float]) -> Any:
    """Give axes of a figure in the style of the package's pictures, and save it."""
    from matplotlib.figure import Figure

    from sinew.plot.style import pictures

    with pictures():
        figure = Figure(figsize=size, layout="constrained")
        yield figure.subplots(rows, columns, squeeze=False)
        figure.savefig(picture, dpi=110)
    if picture.endswith(".png"):
        from PIL import Image

        Image.open(picture).convert("RGB").quantize(64, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(
            picture, optimize=True
        )


def draw(axes: Sequence[Any], numbers: Array, curves: Sequence[Curve], exact: Curve | None, bound: float = 4) -> None:
    """Draw values into the first of two axes, slopes into the second, whose range is a multiple of the exact ones."""
    from sinew.plot.style import lines

    for curve, style in zip(curves, lines(len(curves)), strict=True):
        axes[0].plot(numbers, curve.values, label=curve.name, lw=0.9, **style)
        axes[1].plot(numbers, curve.slopes, label=curve.name, lw=0.9, **style)
    if exact is None:
        return
    for axis, y in ((axes[0], exact.values), (axes[1], exact.slopes)):
        axis.plot(numbers, y, color="#999999", lw=3, alpha=0.6, zorder=1, label=exact.name)
    middle, reach = (
        np.nanmedian(exact.values),
        max(2 * np.nanmax(np.abs(exact.values - np.nanmedian(exact.values))), 1e-9),
    )
    axes[0].set_ylim(middle - reach, middle + reach)
    most = bound * np.nanquantile(np.abs(exact.slopes), 0.9)
    axes[1].set_ylim(-most, most)
