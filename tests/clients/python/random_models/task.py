"""A random task of a model: terms of all quantities, with targets, norms and gates of all kinds."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import mujoco

from random_models.draw import Draw

Map = dict[str, Any]
OBJECTS = {"site": mujoco.mjtObj.mjOBJ_SITE, "body": mujoco.mjtObj.mjOBJ_BODY, "geom": mujoco.mjtObj.mjOBJ_GEOM}
PLURAL = {"site": "sites", "body": "bodies", "geom": "geoms"}
OF_ACTUATORS = ("activation", "control", "control_rate")
LISTS = ("joint_position", "joint_velocity", *OF_ACTUATORS, "tendon_length")
QUANTITIES = ("position", "orientation", "velocity", "angular_velocity", "distance", *LISTS, "sensor")
NOT_LOOKED_AT = {int(x) for x in (
    mujoco.mjtSensor.mjSENS_USER, mujoco.mjtSensor.mjSENS_TACTILE, mujoco.mjtSensor.mjSENS_CONTACT,
    mujoco.mjtSensor.mjSENS_INSIDESITE, mujoco.mjtSensor.mjSENS_CAMPROJECTION,
)}  # fmt: skip

# Rows of limits are those of a step, which the last state has not.
LIMITS = {int(x) for x in (
    mujoco.mjtSensor.mjSENS_JOINTLIMITPOS, mujoco.mjtSensor.mjSENS_JOINTLIMITVEL,
    mujoco.mjtSensor.mjSENS_TENDONLIMITPOS, mujoco.mjtSensor.mjSENS_TENDONLIMITVEL,
)}  # fmt: skip


class Looked(NamedTuple):
    """What a term looks at: its residual as the file has it, and the sizes of its items: 1, 3, or 4 of a rotation."""

    residual: Map
    items: list[int]
    acts: bool = False  # it depends on controls: no terminal weight

    @property
    def entries(self) -> int:
        """Return how many numbers its value has."""
        return sum(self.items)

    @property
    def size(self) -> int:
        """Return how many numbers its residual has."""
        return sum(min(n, 3) for n in self.items)


class TaskMaker:
    """A random task of a model, in the making."""

    def __init__(self, model: mujoco.MjModel, seed: int) -> None:
        self.model = model
        self.draw = Draw(seed + 1_000_000)

    def task(self) -> Map:
        """Return the task, as its file has it."""
        d = self.draw
        terms = [self._term(f"term{i}") for i in range(d.integer(1, 4))]
        initial: Map = {"settle": d.pick([0.01, 0.03])} if d.chance(0.3) else {}
        task = {"model": "model.xml", "initial": initial, "terms": terms}
        task["settings"] = {"horizon": d.integer(6, 14), "knots": 4}
        if "control_rate" not in json.dumps(terms[0]):
            task["success"] = [{"name": "measure", "term": "term0", "below": 1}]
        return task

    def _names(self, kind: mujoco.mjtObj, count: int) -> list[str]:
        names = [mujoco.mj_id2name(self.model, kind, i) for i in range(count)]
        return [name for name in names if name]

    def _objects(self, kind: str) -> list[str]:
        counts = {"site": self.model.nsite, "body": self.model.nbody, "geom": self.model.ngeom}
        return [name for name in self._names(OBJECTS[kind], counts[kind]) if name != "world"]

    def _object(self) -> Map:
        kind = self.draw.pick([kind for kind in OBJECTS if self._objects(kind)])
        return {kind: self.draw.pick(self._objects(kind))}

    # ---- quantities ----

    def _looked(self, quantity: str | None = None, axis: Any = None) -> Looked:
        """Return something to look at: of a quantity and axes, or any."""
        while True:
            looked = self._of(quantity or self.draw.pick(QUANTITIES), axis)
            if looked is not None:
                return looked

    def _of(self, quantity: str, axis: Any) -> Looked | None:
        d = self.draw
        if quantity in ("position", "velocity", "angular_velocity"):
            what: Map = self._object()
            if d.chance(0.2):
                kind = next(iter(what))
                what = {PLURAL[kind]: d.sample(self._objects(kind), d.integer(1, 3))}
            return self._with_axis({quantity: what}, [3], axis)
        if quantity == "orientation":
            return Looked({quantity: self._object()}, [4])
        if quantity == "distance":
            return Looked({quantity: [self._object(), self._object()]}, [1])
        if quantity == "sensor":
            return self._sensor(axis)
        return self._list(quantity)

    def _with_axis(self, residual: Map, items: list[int], axis: Any, acts: bool = False) -> Looked:
        d = self.draw
        if axis is None and d.chance(0.3):
            axis = d.pick(["x", "y", "z", ["z", "x"], ["y"]])
        return Looked(residual | {"axis": axis}, [1] * len(axis), acts) if axis else Looked(residual, items, acts)

    def _sensor(self, axis: Any) -> Looked | None:
        m = self.model
        if m.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_SENSOR:
            return None  # a task computes them all the same, MuJoCo does not
        usable = [i for i in range(m.nsensor) if may_look_at(m, i)]
        if not usable:
            return None
        i = self.draw.pick(usable)
        stage = m.sensor_needstage[i]
        acts = bool(stage == mujoco.mjtStage.mjSTAGE_ACC) or int(m.sensor_type[i]) in LIMITS
        residual, size = {"sensor": m.sensor(i).name}, int(m.sensor_dim[i])
        return self._with_axis(residual, [3], axis, acts) if size == 3 else Looked(residual, [size], acts)

    def _list(self, quantity: str) -> Looked | None:
        m, d = self.model, self.draw
        sizes: dict[str, list[int]] = {}
        if quantity.startswith("joint"):
            # Free joint, ball, slide, hinge.
            of = [[], [4], [1], [1]] if quantity == "joint_position" else [[1] * 6, [1] * 3, [1], [1]]
            sizes = {m.joint(i).name: of[m.jnt_type[i]] for i in range(m.njnt)}
        elif quantity == "tendon_length":
            sizes = {m.tendon(i).name: [1] for i in range(m.ntendon)}
        else:
            counts = m.actuator_actnum if quantity == "activation" else m.actuator_ctrlnum
            sizes = {m.actuator(i).name: [1] * int(counts[i]) for i in range(len(counts))}
        sizes = {name: size for name, size in sizes.items() if size}
        if not sizes:
            return None
        names = d.pick(["all", d.pick(list(sizes)), d.sample(list(sizes), d.integer(1, 3))])
        chosen = list(sizes) if names == "all" else [names] if isinstance(names, str) else names
        return Looked({quantity: names}, [n for name in chosen for n in sizes[name]], quantity.startswith("control"))

    # ---- targets ----

    def _values(self, items: list[int], one: bool = True) -> float | list[float]:
        """Return numbers of the value's size, or one for all where there are no rotations."""
        d = self.draw
        if one and 4 not in items and d.chance(0.4):
            return d.real(-0.5, 0.5)
        return [x for n in items for x in (d.direction(4) if n == 4 else d.reals(n, -0.5, 0.5))]

    def _target(self, looked: Looked) -> tuple[Any, bool]:
        """Return a target, or None, and whether it depends on controls."""
        d = self.draw
        quantity = next(iter(looked.residual))
        framed = (
            quantity in ("position", "orientation", "velocity", "angular_velocity") and "axis" not in looked.residual
        )
        ways: list[Callable[[], tuple[Any, bool]]] = [
            lambda: (None, False),
            lambda: (self._values(looked.items), False),
            lambda: (self._keyframes(looked), False),
            lambda: self._other(looked, quantity, framed),
            lambda: self._other(looked, quantity, framed),
        ]
        if framed:
            ways += 3 * [lambda: ({"value": self._values(looked.items, False), "frame": self._body()}, False)]
        if 4 not in looked.items:
            ways.append(lambda: (self._sinusoid(looked), False))
        return d.pick(ways)()

    def _body(self) -> str:
        return self.draw.pick(self._objects("body"))

    def _other(self, looked: Looked, quantity: str, framed: bool) -> tuple[Any, bool]:
        """Return another element as the target, as it moves or where it was at the start."""
        d = self.draw
        for _ in range(20):
            other = self._looked("position" if quantity == "sensor" else quantity, looked.residual.get("axis"))
            if quantity != "sensor" and other.items == looked.items:
                target = dict(other.residual)
                if d.chance(0.4) and not other.acts:
                    target["at"] = "start"
                if framed and d.chance(0.4) and "at" in target:
                    target["frame"] = self._body()
                return target, other.acts
        return None, False

    def _sinusoid(self, looked: Looked) -> Map:
        values = {name: self._values(looked.items) for name in ("center", "amplitude", "phase")}
        return {"sinusoid": values | {"period": self.draw.real(0.02, 0.1)}}

    def _keyframes(self, looked: Looked) -> Map:
        d = self.draw
        n = d.integer(2, 4)
        times = sorted(round(t, 4) for t in d.reals(n, 0, 0.04))
        times = [t + 1e-3 * i for i, t in enumerate(times)]
        one = 4 not in looked.items and d.chance(0.3)
        values = [d.real(-0.5, 0.5) if one else self._values(looked.items, False) for _ in range(n)]
        interpolation = d.pick(["zero", "linear", "cubic"])
        return {"keyframes": {"times": times, "values": values, "interpolation": interpolation,
                              "repeat": d.chance(0.4)}}  # fmt: skip

    # ---- terms ----

    def _term(self, name: str) -> Map:
        d, looked = self.draw, self._looked()
        target, target_acts = self._target(looked)
        norm = d.pick(["squared", "euclidean", "smooth_abs"])
        term: Map = {"name": name, "residual": looked.residual, "norm": norm, "weight": d.real(0, 3)}
        if target is not None:
            term["target"] = target
        if norm == "smooth_abs" or (norm == "euclidean" and d.chance(0.6)):
            term["width"] = d.real(1e-3, 0.3)
        if d.chance(0.25):
            term["side"] = d.pick(["above", "below", "both"])
        if d.chance(0.25):
            term["weights"] = [d.pick([0, 1, d.real(0, 2)]) for _ in range(looked.size)]
        acts = looked.acts or target_acts
        if d.chance(0.3):
            gate, gate_acts = self._gate()
            term["gate"] = gate
            acts |= gate_acts
        if not acts and d.chance(0.7):
            term["terminal"] = d.real(0, 3)
        return term

    def _gate(self) -> tuple[Map, bool]:
        d, looked = self.draw, self._looked()
        target, acts = self._target(looked)
        gate: Map = {"residual": looked.residual}
        if target is not None:
            gate["target"] = target
        if looked.size > 1 or d.chance(0.4):
            gate["norm"] = d.pick(["squared", "euclidean"])
            if d.chance(0.2):
                gate["side"] = d.pick(["above", "below"])
            if d.chance(0.2):
                gate["weights"] = d.reals(looked.size, 0.1, 2)
        if "norm" not in gate or d.chance(0.7):
            gate |= {d.pick(["above", "below"]): d.real(-0.3, 0.8), "width": d.real(0.05, 0.5)}
        return gate, acts or looked.acts


def random_task(model: mujoco.MjModel, seed: int) -> Map:
    """Return the task of a seed for a model, as its file has it."""
    return TaskMaker(model, seed).task()


def may_look_at(model: mujoco.MjModel, sensor: int) -> bool:
    """Return whether a term may look at a sensor."""
    kind, of = int(model.sensor_type[sensor]), int(model.sensor_objid[sensor])
    if kind == mujoco.mjtSensor.mjSENS_TORQUE and model.site_bodyid[of] == 0:
        return False
    return kind not in NOT_LOOKED_AT and model.sensor_dim[sensor] in (1, 3, 4)


def task_text(task: Map) -> str:
    """Return the file: JSON, which YAML is more than, but for `all`, which in quotes is a name like others."""
    return json.dumps(task, indent=1).replace('"all"', "all")
