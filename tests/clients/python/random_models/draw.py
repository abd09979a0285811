"""Random numbers of a seed, and the model that is being made of them."""

from __future__ import annotations

import math
import random
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

Value = str | float | Sequence[float]
Attributes = dict[str, Value]
T = TypeVar("T")


def text(value: Value) -> str:
    """Return a value as MJCF has it."""
    if isinstance(value, str):
        return value
    numbers = [value] if isinstance(value, int | float) else value
    return " ".join(f"{x:.6g}" for x in numbers)


class Draw:
    """Random numbers of a seed."""

    def __init__(self, seed: int | str) -> None:
        self._random = random.Random(seed)

    def chance(self, probability: float) -> bool:
        """Return true with a probability."""
        return self._random.random() < probability

    def real(self, low: float, high: float) -> float:
        """Return a number between two."""
        return self._random.uniform(low, high)

    def reals(self, count: int, low: float, high: float) -> list[float]:
        """Return numbers between two."""
        return [self.real(low, high) for _ in range(count)]

    def interval(self, low: float, high: float) -> list[float]:
        """Return a negative number and a positive one, both of a size between two."""
        return [-self.real(low, high), self.real(low, high)]

    def integer(self, low: int, high: int) -> int:
        """Return an integer of low, ..., high."""
        return self._random.randint(low, high)

    def pick(self, choices: Sequence[T]) -> T:
        """Return one of several; what stands there twice comes twice as often."""
        return self._random.choice(choices)

    def sample(self, choices: Sequence[T], most: int) -> list[T]:
        """Return different ones of several, in random order, `most` or as many as there are."""
        return self._random.sample(choices, min(most, len(choices)))

    def direction(self, size: int = 3) -> list[float]:
        """Return a vector of length 1; with size 4, a rotation."""
        v = [self._random.gauss(0, 1) for _ in range(size)]
        length = math.sqrt(sum(x * x for x in v))
        return [x / length for x in v]

    def polynomial(self, low: float, high: float) -> list[float]:
        """Return a coefficient of a spring or damper; sometimes with those of higher powers."""
        return [self.real(low, high), *self.reals(self.pick([0, 0, 0, 0, 1, 2]), 0, 0.3 * high)]

    def some(self, **rows: tuple[float, Value]) -> Attributes:
        """Keep each attribute, given as (probability, value), with its probability."""
        return {name: value for name, (probability, value) in rows.items() if self.chance(probability)}

    def position(self, size: float) -> Attributes:
        """Return a `pos` in a cube."""
        return {"pos": self.reals(3, -size, size)}

    def orientation(self) -> Attributes:
        """Return none, or one, in one of MJCF's ways."""
        ways: list[Attributes] = [
            {},
            {},
            {"euler": self.reals(3, -1, 1)},
            {"quat": self.direction(4)},
            {"axisangle": [*self.direction(), self.real(-2, 2)]},
        ]
        return self.pick(ways)


class Theme:
    """What a model is about: sections that it has, and how much of some attributes."""

    def __init__(self, draw: Draw, seed: int) -> None:
        self.contacts = draw.pick([0, 0.2, 0.7, 1])  # share of the geoms that collide
        self.mesh = draw.chance(0.4)
        self.hfield = draw.chance(0.2)
        self.tendons = draw.chance(0.6)
        self.equalities = draw.chance(0.5)
        self.actuators = draw.chance(0.8)
        self.sensors = draw.chance(0.9)
        self.fluid = draw.chance(0.3)
        self.solver_parameters = draw.chance(0.6)  # solref, solimp
        self.override = draw.chance(0.08)
        self.integrator = draw.pick(["Euler", "Euler", "implicit", "implicitfast", "implicitfast", "RK4"])
        # RK4 is refused with these.
        stepped = self.integrator != "RK4"
        self.sleep = stepped and draw.chance(0.05)
        self.delays = stepped and draw.chance(0.2)
        self.springyield = stepped and draw.chance(0.12)
        self.adhesion = not self.override and draw.chance(0.15)
        self.surfacevel = draw.chance(0.15)
        # Decided by numbers of its own: the models of all other seeds stay as they are.
        self.discrete = random.Random(f"discrete {seed}").random() < 1 / 6
        if self.discrete:
            self.integrator = "discrete"
            self.sleep = False  # refused with it, as is what options and actuators leave out


@dataclass
class Scene:
    """A model in the making: its elements, and the names that later sections speak of."""

    draw: Draw
    theme: Theme
    exact: bool  # nothing has a contact that is searched by iterations
    root: ET.Element = field(default_factory=lambda: ET.Element("mujoco"))
    names: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    joint_types: dict[str, str] = field(default_factory=dict)

    def name(self, kind: str) -> str:
        """Return a new name, and remember it."""
        made = f"{kind}{len(self.names[kind]) + 1}"
        self.names[kind].append(made)
        return made

    def joints(self, *types: str) -> list[str]:
        """Return the joints of some types."""
        return [name for name, kind in self.joint_types.items() if kind in types]

    def section(self, tag: str) -> ET.Element:
        """Add an element to the model's."""
        return ET.SubElement(self.root, tag)

    def solver_parameters(self, suffix: str = "", probability: float = 0.4) -> Attributes:
        """Return `solref` and `solimp`, or those of limits or friction by their suffix, or nothing."""
        d = self.draw
        if not self.theme.solver_parameters:
            return {}
        timed, direct = [d.real(0.01, 0.05), d.real(0.5, 1.5)], [-d.real(50, 800), -d.real(2, 40)]
        impedance = [d.pick([0, d.real(0, 0.9), d.real(0.3, 0.95)]), d.pick([d.real(0.5, 0.99), 0.95])]
        curve = [d.real(1e-4, 0.05), d.pick([0.5, d.real(0.1, 0.9)]), d.pick([1, 2, d.real(1, 4)])]
        solref, solimp = (probability, d.pick([timed, timed, timed, direct])), (probability, impedance + curve)
        return d.some(**{"solref" + suffix: solref, "solimp" + suffix: solimp})


def add(parent: ET.Element, tag: str, *attributes: Attributes) -> ET.Element:
    """Add an element with attributes, those given later in place of those before."""
    merged = {name: value for some in attributes for name, value in some.items()}
    return ET.SubElement(parent, tag, {name: text(value) for name, value in merged.items()})
