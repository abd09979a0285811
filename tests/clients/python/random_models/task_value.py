"""The cost of a motion by what `planner/tasks/README.md` says of terms, of MuJoCo's fields alone."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicHermiteSpline
from scipy.special import expit

from random_models.task import OBJECTS, PLURAL, Map

Doubles = NDArray[np.float64]
Item = tuple[int, Doubles]  # size, value


class Moment:
    """A state of a motion in MuJoCo."""

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData, rate: Doubles) -> None:
        self.model, self.data, self.rate = model, data, rate

    def pose(self, kind: str, name: str) -> tuple[Doubles, Doubles]:
        """Return position and orientation of an object."""
        frame = getattr(self.data, kind)(name)
        if kind == "body":
            return frame.xpos.copy(), frame.xquat.copy()
        quat = np.empty(4)
        mujoco.mju_mat2Quat(quat, frame.xmat)
        return frame.xpos.copy(), quat

    def motion(self, kind: str, name: str) -> Doubles:
        """Return angular and linear velocity of an object."""
        out = np.empty(6)
        which = mujoco.mjtObj.mjOBJ_XBODY if kind == "body" else OBJECTS[kind]
        index = mujoco.mj_name2id(self.model, OBJECTS[kind], name)
        mujoco.mj_objectVelocity(self.model, self.data, which, index, out, 0)
        return out

    def items(self, element: Map, axis: Any = None) -> list[Item]:
        """Return the items of an element."""
        quantity = next(key for key in element if key not in ("axis", "at", "frame"))
        axis = element.get("axis", axis)
        what = element[quantity]
        if quantity in ("position", "velocity", "angular_velocity"):
            found = [(3, self._point(quantity, what))]
        elif quantity == "orientation":
            ((kind, name),) = what.items()
            found = [(4, self.pose(kind, name)[1])]
        elif quantity == "distance":
            ends = [self._point("position", end) for end in what]
            found = [(1, np.array([np.linalg.norm(ends[0] - ends[1])]))]
        elif quantity == "sensor":
            value = self.data.sensor(what).data.copy()
            found = [(len(value), value)]
        else:
            found = self._list(quantity, what)
        if axis:
            value = found[0][1]
            found = [(1, value[["xyz".index(a)]]) for a in axis]
        return found

    def _point(self, quantity: str, what: Map) -> Doubles:
        ((kind, names),) = what.items()
        kind = {many: one for one, many in PLURAL.items()}.get(kind, kind)
        names = [names] if isinstance(names, str) else names
        if quantity == "position":
            return np.asarray(np.mean([self.pose(kind, name)[0] for name in names], axis=0))
        part = slice(0, 3) if quantity == "angular_velocity" else slice(3, 6)
        return np.asarray(np.mean([self.motion(kind, name)[part] for name in names], axis=0))

    def _list(self, quantity: str, names: Any) -> list[Item]:
        m, d = self.model, self.data
        count = (
            m.njnt
            if quantity.startswith("joint")
            else m.ntendon
            if quantity == "tendon_length"
            else len(m.actuator_ctrlnum)
        )
        of = m.joint if quantity.startswith("joint") else m.tendon if quantity == "tendon_length" else m.actuator
        every = [of(i).name for i in range(count)]
        chosen = every if names == "all" else [names] if isinstance(names, str) else names
        items: list[Item] = []
        for name in chosen:
            i = every.index(name)
            if quantity == "joint_position":
                width, at = (7, 4, 1, 1)[m.jnt_type[i]], m.jnt_qposadr[i]
                if width < 7:
                    items.append((width, d.qpos[at : at + width]))
                continue
            if quantity == "joint_velocity":
                at, n, values = m.jnt_dofadr[i], (6, 3, 1, 1)[m.jnt_type[i]], d.qvel
            elif quantity == "tendon_length":
                at, n, values = i, 1, d.ten_length
            elif quantity == "activation":
                at, n, values = m.actuator_actadr[i], m.actuator_actnum[i], d.act
            else:
                at, n = m.actuator_ctrladr[i], m.actuator_ctrlnum[i]
                values = d.ctrl if quantity == "control" else self.rate
            items += [(1, values[at + k : at + k + 1]) for k in range(n)]
        return items


# ---- targets ----


def _rotated(quat: Doubles, v: Doubles) -> Doubles:
    out = np.empty(3)
    mujoco.mju_rotVecQuat(out, v, quat)
    return out


def _product(a: Doubles, b: Doubles) -> Doubles:
    out = np.empty(4)
    mujoco.mju_mulQuat(out, a, b)
    return out


def _conjugate(q: Doubles) -> Doubles:
    return q * [1, -1, -1, -1]


def _entries(values: Any, count: int) -> Doubles:
    return np.full(count, values, float) if np.ndim(values) == 0 else np.asarray(values, float)


def _keyframes(keys: Map, t: float, count: int) -> Doubles:
    x = np.asarray(keys["times"], float)
    values: Doubles = np.array([_entries(row, count) for row in keys["values"]])
    if keys["repeat"]:
        t = x[0] + np.mod(t - x[0], x[-1] - x[0])
    t = float(np.clip(t, x[0], x[-1]))
    if keys["interpolation"] == "zero":
        return np.asarray(values[np.searchsorted(x, t, side="right") - 1])
    if keys["interpolation"] == "linear":
        return np.array([np.interp(t, x, column) for column in values.T])
    # Slopes are differences over both neighbours, one-sided at the ends.
    low, high = np.maximum(np.arange(len(x)) - 1, 0), np.minimum(np.arange(len(x)) + 1, len(x) - 1)
    slopes = (values[high] - values[low]) / (x[high] - x[low])[:, np.newaxis]
    return np.asarray(CubicHermiteSpline(x, values, slopes)(t))


class Term:
    """A term, a gate or a measure, with what it took at the start."""

    def __init__(self, term: Map, start: Moment) -> None:
        self.term = term
        self.target: Any = term.get("target")
        self.captured: list[Item] = []
        if isinstance(self.target, dict) and self.target.get("at") == "start":
            self.captured = [(n, x.copy()) for n, x in start.items(self.target, term["residual"].get("axis"))]
            if "frame" in self.target:
                self.captured = [self._into_frame(start, n, x) for n, x in self.captured]
        self.gate = Term(term["gate"], start) if "gate" in term else None

    def _velocity(self) -> bool:
        return "velocity" in self.term["residual"] or "angular_velocity" in self.term["residual"]

    def _into_frame(self, moment: Moment, n: int, x: Doubles) -> Item:
        pos, quat = moment.pose("body", self.target["frame"])
        if n == 4:
            return n, _product(_conjugate(quat), x)
        return n, _rotated(_conjugate(quat), x if self._velocity() else x - pos)

    def residual(self, moment: Moment, t: float) -> Doubles:
        """Return the residual in a state."""
        items = moment.items(self.term["residual"])
        wanted = self._wanted(moment, t, [n for n, _ in items])
        return np.concatenate([_difference(n, x, y) for (n, x), y in zip(items, wanted, strict=True)])

    def _wanted(self, moment: Moment, t: float, sizes: list[int]) -> list[Doubles]:
        target, total = self.target, sum(sizes)
        if isinstance(target, dict) and not {"value", "sinusoid", "keyframes"} & set(target):
            moving = self.captured or moment.items(target, self.term["residual"].get("axis"))
            wanted = [x for _, x in moving]
        else:
            flat = self._given(target, t, total)
            wanted = np.split(flat, np.cumsum(sizes)[:-1])
            wanted = [_unit(x) if n == 4 else x for n, x in zip(sizes, wanted, strict=True)]
        if isinstance(target, dict) and "frame" in target:
            pos, quat = moment.pose("body", target["frame"])
            turned = [_product(quat, x) if n == 4 else _rotated(quat, x) for n, x in zip(sizes, wanted, strict=True)]
            wanted = [x if n == 4 or self._velocity() else x + pos for n, x in zip(sizes, turned, strict=True)]
        return wanted

    @staticmethod
    def _given(target: Any, t: float, count: int) -> Doubles:
        if target is None:
            return np.zeros(count)
        if not isinstance(target, dict):
            return _entries(target, count)
        if "value" in target:
            return _entries(target["value"], count)
        if "keyframes" in target:
            return _keyframes(target["keyframes"], t, count)
        wave = target["sinusoid"]
        center, amplitude, phase = (_entries(wave[name], count) for name in ("center", "amplitude", "phase"))
        return np.asarray(center + amplitude * np.sin(2 * np.pi * t / wave["period"] + phase))

    def value(self, moment: Moment, t: float) -> float:
        """Return the norm, times the gate."""
        r = self.residual(moment, t)
        norm = self._norm(r, self.term["norm"])
        return norm * (1 if self.gate is None else self.gate.factor(moment, t))

    def _norm(self, r: Doubles, norm: str) -> float:
        side, width = self.term.get("side", "both"), self.term.get("width", 0.0)
        if side != "both":
            r = np.maximum(r, 0) if side == "above" else np.minimum(r, 0)
        e = np.asarray(self.term.get("weights", np.ones(len(r))))
        if self.term.get("above") is not None or self.term.get("below") is not None:
            width = 0.0
        if norm == "squared":
            return float(np.sum(e * r * r))
        if norm == "euclidean":
            return float(np.sqrt(np.sum(e * r * r) + width**2) - width)
        return float(np.sum(e * (np.sqrt(r * r + width**2) - width)))

    def factor(self, moment: Moment, t: float) -> float:
        """Return what a gate multiplies by."""
        r = self.residual(moment, t)
        number = self._norm(r, self.term["norm"]) if "norm" in self.term else float(r[0])
        for side, sign in (("above", -1), ("below", 1)):
            if side in self.term:
                return float(expit(-sign * (number - self.term[side]) / self.term["width"]))
        return number


def _unit(q: Doubles) -> Doubles:
    length = np.linalg.norm(q)
    return q / length if length > 1e-12 else np.array([1.0, 0, 0, 0])


def _difference(size: int, x: Doubles, y: Doubles) -> Doubles:
    if size != 4:
        return np.asarray(x - y)
    out = np.empty(3)
    mujoco.mju_subQuat(out, _unit(x), _unit(y))
    return out


def cost_parts(
    model: mujoco.MjModel, task: Map, start: mujoco.MjData, states: list[mujoco.MjData], ctrl: Doubles
) -> Doubles:
    """Return the weighted parts of the cost of a motion, (number of terms).

    Parameters
    ----------
    model : MjModel
        The model.
    task : dict
        The task, as its file has it.
    start : MjData
        Where targets are taken at the start: the task's initial state.
    states : list of MjData
        The T + 1 states of the motion after `mj_forward`.
    ctrl : ndarray, (T, nu)
        Controls.
    """
    steps = len(states) - 1
    terms = [Term(term, Moment(model, start, np.zeros(model.nu))) for term in task["terms"]]
    parts = np.zeros(len(terms))
    for k, data in enumerate(states):
        rate = (ctrl[k] - ctrl[k - 1]) / model.opt.timestep if 0 < k < steps else np.zeros(model.nu)
        moment = Moment(model, data, rate)
        for i, term in enumerate(terms):
            weight = term.term["weight"] / steps if k < steps else term.term.get("terminal", 0)
            parts[i] += weight * term.value(moment, data.time) if weight else 0
    return parts
