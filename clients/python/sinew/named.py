"""Named access: the numbers that belong to one joint, body, actuator ..., as slices of arrays.

``model.joint("elbow").range``, ``data.body("hand").xpos``, ``batch.joint("elbow").qpos`` have MuJoCo's names and
shapes. A slice of a batch has the axis of the simulations first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sinew.errors import ArgumentError, NotFoundError
from sinew.names import did_you_mean

if TYPE_CHECKING:
    from sinew.model import Model

__all__ = ["Named", "Part", "Table", "View", "data_table", "model_table", "object_id"]

# Kinds of objects by the values of SinewObject in sinew.h.
KINDS = ("body", "joint", "geom", "site", "tendon", "actuator", "sensor", "keyframe", "equality")


class Part(NamedTuple):
    """An attribute of a named view: the rows of an array that are along `axis`."""

    field: str
    axis: str


Table = dict[str, dict[str, Part]]  # kind -> attribute -> part

# Beginnings of the arrays of a model that belong to a kind, and what their rows count. The first that has a name wins.
_PREFIXES: dict[str, tuple[tuple[str, str], ...]] = {
    "body": (("body_", "id"),),
    "joint": (("jnt_", "id"), ("dof_", "dof")),
    "geom": (("geom_", "id"),),
    "site": (("site_", "id"),),
    "tendon": (("tendon_", "id"), ("ten_", "id")),
    "actuator": (("actuator_", "id"),),
    "sensor": (("sensor_", "id"),),
    "keyframe": (("key_", "id"),),
    "equality": (("eq_", "id"),),
}
# Those whose rows count something else.
_MODEL_AXES = {
    "qpos0": ("joint", "qpos"),
    "qpos_spring": ("joint", "qpos"),
    "actuator_ctrllimited": ("actuator", "ctrl"),
    "actuator_ctrlrange": ("actuator", "ctrl"),
    "actuator_gear": ("actuator", "out"),
    "actuator_acc0": ("actuator", "out"),
    "actuator_lengthrange": ("actuator", "out"),
    "ten_J_colind": ("tendon", "ten_J"),
}
# Arrays of a body: of which kind, and what their rows count; attributes are named without the prefix of the kind.
_DATA_AXES = {
    ("joint", "id"): "xanchor xaxis",
    ("joint", "qpos"): "qpos",
    ("joint", "dof"): "qvel qacc qacc_warmstart qacc_smooth qfrc_bias qfrc_spring qfrc_damper qfrc_gravcomp "
    "qfrc_fluid qfrc_adhesion qfrc_passive qfrc_actuator qfrc_smooth qfrc_constraint cdof cdof_dot qLDiagInv",
    ("body", "id"): "xpos xquat xmat xipos ximat subtree_com cvel",
    ("geom", "id"): "geom_xpos geom_xmat",
    ("site", "id"): "site_xpos site_xmat",
    ("tendon", "id"): "ten_length ten_velocity ten_wrapadr ten_wrapnum",
    ("tendon", "ten_J"): "ten_J",
    ("actuator", "ctrl"): "ctrl",
    ("actuator", "act"): "act act_dot",
    ("actuator", "out"): "actuator_length actuator_velocity actuator_force",
    ("sensor", "sensordata"): "sensordata",
}
_DATA_PREFIXES = ("geom_", "site_", "ten_", "actuator_", "sensor")


def model_table(fields: Iterable[str]) -> Table:
    """Return the attributes of the named views of a model whose arrays are `fields`."""
    names = list(fields)
    table: Table = {kind: {} for kind in KINDS}
    for field, (kind, axis) in _MODEL_AXES.items():
        if field in names:
            table[kind][_without(field, [prefix for prefix, _ in _PREFIXES[kind]])] = Part(field, axis)
    for kind, prefixes in _PREFIXES.items():
        for prefix, axis in prefixes:
            for field in names:
                if field.startswith(prefix) and field not in _MODEL_AXES:
                    table[kind].setdefault(field.removeprefix(prefix), Part(field, axis))
    return table


def data_table() -> Table:
    """Return the attributes of the named views of a body."""
    table: Table = {kind: {} for kind in KINDS}
    for (kind, axis), fields in _DATA_AXES.items():
        for field in fields.split():
            table[kind][_without(field, _DATA_PREFIXES)] = Part(field, axis)
    return table


def _without(field: str, prefixes: Iterable[str]) -> str:
    for prefix in prefixes:
        if field.startswith(prefix):
            return field.removeprefix(prefix)
    return field


def object_id(model: Model, kind: str, key: str | int) -> int:
    """Return the index of an object that is given by name or index.

    Raises
    ------
    NotFoundError
        There is no object of this kind and name, or index.
    """
    number = KINDS.index(kind)
    native = model._native
    if isinstance(key, str):
        found = native.find(number, key) if key else -1
        if found < 0:
            close = did_you_mean(key, model.names(kind))
            raise NotFoundError(f"the model has no {kind} {key!r}{close}")
        return found
    try:
        index = int(key.__index__())
    except AttributeError:
        raise ArgumentError(f"{kind}: {key!r}, expected a name or an index") from None
    count = native.count(number)
    if not 0 <= index < count:
        raise NotFoundError(f"the model has no {kind} {index}: it has {count} of them")
    return index


def rows_of(model: Model, axis: str, index: int) -> slice:
    """Return the rows of an array that belong to object `index`, where rows count what `axis` says."""
    if axis == "id":
        return slice(index, index + 1)
    if axis == "qpos":
        return _between(model.jnt_qposadr, index, model.nq)
    if axis == "dof":
        return _between(model.jnt_dofadr, index, model.nv)
    address, number = {
        "ctrl": ("actuator_ctrladr", "actuator_ctrlnum"),
        "act": ("actuator_actadr", "actuator_actnum"),
        "out": ("actuator_outadr", "actuator_outnum"),
        "sensordata": ("sensor_adr", "sensor_dim"),
        "ten_J": ("ten_J_rowadr", "ten_J_rownnz"),
    }[axis]
    first = max(int(getattr(model, address)[index]), 0)
    return slice(first, first + int(getattr(model, number)[index]))


def _between(addresses: NDArray[Any], index: int, end: int) -> slice:
    """Return the rows from the address of an object up to that of the next one."""
    last = index + 1 == len(addresses)
    return slice(int(addresses[index]), end if last else int(addresses[index + 1]))


# What counts several rows of an object: its matrices stay matrices where it has one row.
_MATRICES = frozenset({"dof", "qpos"})


class View:
    """The numbers of one object. Its attributes are slices of the arrays that they are named after, and as live."""

    __slots__ = ("_index", "_kind", "_owner", "name")

    name: str

    def __init__(self, owner: Named, kind: str, key: str | int):
        index = object_id(owner._named_model, kind, key)
        set_own = object.__setattr__
        set_own(self, "_owner", owner)
        set_own(self, "_kind", kind)
        set_own(self, "_index", index)
        set_own(self, "name", owner._named_model._native.name(KINDS.index(kind), index))

    _owner: Named
    _kind: str
    _index: int

    @property
    def id(self) -> int:
        """Index of the object among those of its kind."""
        return self._index

    def __getattr__(self, attribute: str) -> NDArray[Any]:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return self._slice(attribute, write=False)

    def __setattr__(self, attribute: str, value: Any) -> None:
        if attribute in ("id", "name") or attribute.startswith("_"):
            raise AttributeError(f"{attribute} of a {self._kind} cannot be changed")
        part = self._slice(attribute, write=True)
        try:
            part[...] = value
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"{self._kind} {self.name!r}: {attribute}: {error}") from None

    def _slice(self, attribute: str, write: bool) -> NDArray[Any]:
        owner = self._owner
        parts = owner._named_table()[self._kind]
        part = parts.get(attribute)
        if part is None:
            close = did_you_mean(attribute, parts)
            raise AttributeError(f"a {self._kind} of a {type(owner).__name__} has no {attribute!r}{close}")
        rows = rows_of(owner._named_model, part.axis, self._index)
        array = owner._named_array(part.field, write)
        # An object's one row of a matrix is a vector.
        vector = part.axis not in _MATRICES and rows.stop - rows.start == 1
        if owner._named_batch:
            return array[:, rows.start] if vector and array.ndim > 2 else array[:, rows]
        return array[rows.start] if vector and array.ndim > 1 else array[rows]

    def __dir__(self) -> list[str]:
        return sorted({"id", "name", *self._owner._named_table()[self._kind]})

    def __repr__(self) -> str:
        lines = [f"<{self._kind} {self.name!r}, id {self.id}"]
        for attribute in sorted(self._owner._named_table()[self._kind]):
            text = np.array2string(self._slice(attribute, write=False), threshold=12)
            lines.append(f"  {attribute}: {text}".replace("\n", "\n    "))
        return "\n".join([*lines, ">"])


class Named:
    """What has objects with names: a model, a body, a batch of them."""

    _named_batch = False  # whether arrays have an axis of simulations before their rows

    @property
    def _named_model(self) -> Model:
        raise NotImplementedError

    def _named_table(self) -> Table:
        raise NotImplementedError

    def _named_array(self, field: str, write: bool) -> NDArray[Any]:
        """Return the array of a field, live; `write`: refuse one that cannot be written."""
        raise NotImplementedError

    def body(self, key: str | int) -> View:
        """Return the numbers of the body of this name or index."""
        return View(self, "body", key)

    def joint(self, key: str | int) -> View:
        """Return the numbers of the joint of this name or index."""
        return View(self, "joint", key)

    def geom(self, key: str | int) -> View:
        """Return the numbers of the geom of this name or index."""
        return View(self, "geom", key)

    def site(self, key: str | int) -> View:
        """Return the numbers of the site of this name or index."""
        return View(self, "site", key)

    def tendon(self, key: str | int) -> View:
        """Return the numbers of the tendon of this name or index."""
        return View(self, "tendon", key)

    def actuator(self, key: str | int) -> View:
        """Return the numbers of the actuator of this name or index."""
        return View(self, "actuator", key)

    def sensor(self, key: str | int) -> View:
        """Return the numbers of the sensor of this name or index."""
        return View(self, "sensor", key)
