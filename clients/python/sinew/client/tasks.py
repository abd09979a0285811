"""What the daemon answers when it is asked for a task: its terms, measures and settings, as dataclasses.

Names, units and meanings are those of ``proto/sinew.proto``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sinew.client.quantities import ModelDescription
from sinew.state import State

__all__ = [
    "GateDescription",
    "GateValue",
    "MeasureDescription",
    "ObjectName",
    "Plant",
    "TaskDescription",
    "TermDescription",
    "term_of",
]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ObjectName:
    """Something in the model.

    Attributes
    ----------
    kind : str
        ``"site"``, ``"body"``, ``"geom"``, ``"joint"``, ``"actuator"``, ``"tendon"`` or ``"sensor"``.
    name : str
        Empty where the model gives none.
    """

    kind: str
    name: str


@dataclass(frozen=True)
class GateDescription:
    """What the norm of a term is multiplied by: a sigmoid of a number that opens about a value, or that number.

    Attributes
    ----------
    quantity : str
    objects : tuple of ObjectName
    axis : str
        As in `TermDescription`.
    norm : str
        That makes a number of the difference from its target; empty: the difference itself, which is one number.
    side : str
        Where the gate is open: ``"above"`` or ``"below"`` the value; empty: it is the number itself.
    value, width : float
        Where it is half open, and in which width it opens, in the unit of the number.
    unit : str
        Of what it looks at.
    target_kind : str
        Of what that is compared with, as in `TermDescription`; empty: with nothing.
    """

    quantity: str
    objects: tuple[ObjectName, ...]
    axis: str
    norm: str
    side: str
    value: float
    width: float
    unit: str
    target_kind: str


@dataclass(frozen=True)
class GateValue:
    """The gate of a term in a state: see `GateDescription`.

    Attributes
    ----------
    name : str
        Of the term.
    number : float
        That it looks at.
    factor : float
        That it multiplies the norm of the term by: 0 closed, 1 open, where it opens about a value.
    """

    name: str
    number: float
    factor: float


@dataclass(frozen=True)
class TermDescription:
    """A term of a task's cost: what it looks at, and what it compares that with.

    The target is the task's own; one that is set while a session runs is constant, in the same unit and frame.

    Attributes
    ----------
    name : str
    weight, terminal_weight : float
        Running, and at the end of a plan.
    target_size : int
        Numbers in a target.
    quantity : str
        ``"position"``, ``"orientation"``, ``"velocity"``, ``"angular_velocity"``, ``"distance"``,
        ``"joint_position"``, ``"joint_velocity"``, ``"activation"``, ``"control"``, ``"control_rate"``,
        ``"tendon_length"`` or ``"sensor"``.
    objects : tuple of ObjectName
        Of which it is that, in the order of the numbers; two for a distance; several of a point: their mean.
    norm : str
        ``"squared"``, ``"euclidean"`` or ``"smooth_abs"``.
    width : float
        Of the norm, in the residual's unit; 0: none.
    target_kind : str
        ``"value"`` (constant), ``"element"`` (that of other objects), ``"sinusoid"`` or ``"keyframes"``.
    target_follows : bool
        An element as it moves; else, of an element, as it was at the start.
    target_objects : tuple of ObjectName
        Of an element.
    frame : str
        Body in whose frame the target is given; empty: the world.
    unit : str
        Of the numbers of a target, such as ``"m"``, ``"rad"``, ``"quaternion"``, ``"rad, m"``; empty: that of
        the sensor.
    axis : str
        Components of a position, velocity or sensor that count, such as ``"z"`` or ``"xz"``; empty: all.
    side : str
        Of the target that counts: ``"both"``, ``"above"`` or ``"below"``.
    weights : tuple of float
        Of the residual's entries; empty: all count alike.
    gate : GateDescription or None
        What the norm is multiplied by.
    """

    name: str
    weight: float
    terminal_weight: float
    target_size: int
    quantity: str
    objects: tuple[ObjectName, ...]
    norm: str
    width: float
    target_kind: str
    target_follows: bool
    target_objects: tuple[ObjectName, ...]
    frame: str
    unit: str
    axis: str
    side: str
    weights: tuple[float, ...]
    gate: GateDescription | None


@dataclass(frozen=True)
class MeasureDescription:
    """A measure of success: met when it was at most `below` for `during` seconds at the end."""

    name: str
    below: float
    during: float


@dataclass(frozen=True, eq=False)
class Plant:
    """Contacts of the simulated robot, which need not be those that plans are made with.

    Attributes
    ----------
    solref, solimp : numpy.ndarray, (2,), (5,)
        Of every contact, as in MuJoCo; empty: as in the model's file.
    """

    solref: Array
    solimp: Array


@dataclass(frozen=True)
class TaskDescription:
    """A task, its model as the task changes it, where it begins, and the planner's settings of its own."""

    task: str
    text: str
    model: ModelDescription
    initial: State
    terms: tuple[TermDescription, ...]
    measures: tuple[MeasureDescription, ...]
    settings: dict[str, Any]
    plant: Plant


def term_of(weights: Array, **fields: Any) -> TermDescription:
    """Return the description of a term as the user has it: it can be compared with another one."""
    return TermDescription(weights=tuple(weights.tolist()), **fields)
