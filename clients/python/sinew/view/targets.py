"""Targets of the cost's terms: where they are, and where the mouse wants them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mujoco
import numpy as np
import viser
from numpy.typing import NDArray

from sinew.view.colors import term_color
from sinew.view.marker import Marker, Pose
from sinew.view.motion import Element, Motion, find_elements
from sinew.view.traces import Lines

if TYPE_CHECKING:
    from sinew.client.messages import TermDescription
    from sinew.loop.source import Frame

__all__ = ["Targets"]

Array = NDArray[np.float64]

_SIZES = {"position": 3, "orientation": 4}
_PATIENCE = 2.0  # after which a wish that the daemon did not take is dropped [s]
_SAME = 1e-6


@dataclass
class _Target:
    """A term with a target in space, its place in the scene, and what the mouse wants and the daemon has not yet."""

    term: str
    turns: bool
    frame: int
    element: Element | None
    follows: tuple[Element, ...]  # whose mean position it is
    marker: Marker
    lines: Lines
    wish: Array | None = None
    wished: float = 0.0


class Targets:
    """Draws targets of positions and orientations, and tells where the mouse drags them."""

    def __init__(
        self, server: viser.ViserServer, model: mujoco.MjModel, terms: Sequence[TermDescription], radius: float
    ) -> None:
        self._targets = []
        for number, term in enumerate(terms):
            if _SIZES.get(term.quantity) != term.target_size or term.axis:  # components are not drawn
                continue
            color, turns = term_color(number), term.quantity == "orientation"
            follows = find_elements(model, term.target_objects) if term.target_follows else ()
            self._targets.append(
                _Target(
                    term.name,
                    turns,
                    max(mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, term.frame), 0) if term.frame else 0,
                    next(iter(find_elements(model, term.objects)), None),
                    tuple(follows),
                    Marker(server, f"/targets/{number}", color, radius, turns),
                    Lines(server, f"/targets/{number}/trace", [color], 0.25 * radius),
                )
            )

    def show(self, frame: Frame, data: mujoco.MjData, visible: bool) -> list[tuple[str, Array]]:
        """Draw the present targets; returns what the mouse has changed, in the frames of the terms."""
        wishes = []
        for target in self._targets:
            dragged = target.marker.take()
            if dragged is not None:
                target.wish, target.wished = _value(target, data, dragged), time.monotonic()
                wishes.append((target.term, target.wish))
            value = _present(target, frame, data)
            self._settle(target, value)
            place = None if value is None or not visible else _pose(target, data, value)
            wish = None if target.wish is None or place is None else _pose(target, data, target.wish)
            target.marker.place(place, wish)
            if not visible:
                target.lines.hide()
        return wishes

    def trace(self, frame: Frame, motion: Motion | None) -> None:
        """Draw how the targets move along the plan; None hides that."""
        for target in self._targets:
            rows = _rows(target, frame)
            if motion is None or target.turns or rows is None or len(rows) <= motion.rows[-1]:
                target.lines.hide()
                continue
            points = np.empty((len(motion.rows), 1, 3))
            for i, row in enumerate(motion.rows):
                mujoco.mju_rotVecQuat(points[i, 0], rows[row], motion.xquat[i, target.frame])
                points[i, 0] += motion.xpos[i, target.frame]
            target.lines.show(points)

    @staticmethod
    def _settle(target: _Target, value: Array | None) -> None:
        """Drop a wish that has been fulfilled, or that was refused: nothing came of it in time."""
        if target.wish is None:
            return
        fulfilled = value is not None and np.allclose(value, target.wish, rtol=0, atol=_SAME)
        if fulfilled or (not target.marker.held and time.monotonic() - target.wished > _PATIENCE):
            target.wish = None


def _rows(target: _Target, frame: Frame) -> Array | None:
    """Return the targets along the plan, (rows, size), in the term's frame; None where it says nothing of them."""
    if frame.predicted is None:
        return None
    rows = frame.predicted.targets.get(target.term)
    return rows if rows is not None and len(rows) else None


def _present(target: _Target, frame: Frame, data: mujoco.MjData) -> Array | None:
    """Return the target that holds now, in the term's frame: of the plan, else of the settings in force."""
    set_value = next((x for x in frame.config.terms if x.name == target.term), None) if frame.config else None
    own = set_value is None or set_value.own_target is not False
    if target.follows and own:
        position = np.mean([element.position(data) for element in target.follows], axis=0)
        return _value(target, data, Pose(position, _orientation(target.follows[0], data)))
    rows = _rows(target, frame)
    if rows is not None and frame.predicted is not None:
        after = int(np.searchsorted(frame.predicted.time, frame.time + 1e-9, side="right")) - 1
        return np.array(rows[min(max(after, 0), len(rows) - 1)])
    if set_value is not None and set_value.target.size == _SIZES["orientation" if target.turns else "position"]:
        return np.array(set_value.target)
    return None


def _orientation(element: Element, data: mujoco.MjData) -> Array:
    """Return an element's orientation as a quaternion."""
    quaternion = np.empty(4)
    matrix = {"site": data.site_xmat, "body": data.xmat, "geom": data.geom_xmat}[element.kind][element.id]
    mujoco.mju_mat2Quat(quaternion, matrix)
    return quaternion


def _pose(target: _Target, data: mujoco.MjData, value: Array) -> Pose:
    """Return a target in the world; an orientation stands where the element is that shall have it."""
    if not target.turns:
        position = np.empty(3)
        mujoco.mju_rotVecQuat(position, value, data.xquat[target.frame])
        return Pose(position + data.xpos[target.frame], np.array([1.0, 0, 0, 0]))
    wxyz = np.empty(4)
    mujoco.mju_mulQuat(wxyz, data.xquat[target.frame], value)
    return Pose(np.zeros(3) if target.element is None else target.element.position(data), wxyz)


def _value(target: _Target, data: mujoco.MjData, pose: Pose) -> Array:
    """Return a pose of the world as a target in the term's frame."""
    back = np.empty(4)
    mujoco.mju_negQuat(back, data.xquat[target.frame])
    value = np.empty(4 if target.turns else 3)
    if target.turns:
        mujoco.mju_mulQuat(value, back, pose.wxyz)
    else:
        mujoco.mju_rotVecQuat(value, pose.position - data.xpos[target.frame], back)
    return value
