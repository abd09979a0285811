"""Tendons as lines, coloured by how active their muscles are."""

from __future__ import annotations

import mujoco
import numpy as np
import viser
from numpy.typing import NDArray

from sinew.view.colors import TENDON, activation_colors

__all__ = ["Tendons", "tendon_colors"]

Array = NDArray[np.float64]

_PULLEY = -2  # mjData.wrap_obj where a path is divided


class Tendons:
    """Draws the spatial tendons of a model."""

    def __init__(self, server: viser.ViserServer, model: mujoco.MjModel) -> None:
        self._model = model
        # What is drawn by MuJoCo's own viewer at first: groups 0 to 2, not transparent.
        self._shown = (model.tendon_group < 3) & (model.tendon_rgba[:, 3] > 0)
        wraps = np.isin(model.wrap_type, (mujoco.mjtWrap.mjWRAP_SPHERE, mujoco.mjtWrap.mjWRAP_CYLINDER))
        # A path has a point for each element and one more for each that it wraps over.
        self._room = int(model.nwrap + np.count_nonzero(wraps))
        self._handle: viser.LineSegmentsHandle | None = None
        if self._room and self._shown.any():
            self._handle = server.scene.add_line_segments(
                "/tendons",
                np.zeros((self._room, 2, 3), dtype=np.float32),
                np.zeros((self._room, 2, 3), dtype=np.uint8),
                thickness=2 * float(np.median(model.tendon_width[self._shown])),
                visible=False,
            )

    def show(self, data: mujoco.MjData, visible: bool) -> None:
        """Draw them as they are in `data`, whose positions, paths, activations and controls are current."""
        if self._handle is None:
            return
        if visible:
            points, tendon = self._segments(data)
            if len(points):
                filler = np.broadcast_to(points[-1, 1], (self._room - len(points), 2, 3))
                colors = np.zeros((self._room, 2, 3), dtype=np.uint8)
                colors[: len(points)] = tendon_colors(self._model, data)[tendon, None]
                colors[len(points) :] = colors[len(points) - 1, 0]
                self._handle.points = np.concatenate([points, filler]).astype(np.float32)
                self._handle.colors = colors
            visible = len(points) > 0
        self._handle.visible = visible

    def _segments(self, data: mujoco.MjData) -> tuple[Array, NDArray[np.intp]]:
        """Return the pieces of all paths, (n, 2, 3), and the tendon of each, (n,)."""
        tendon = np.repeat(np.arange(self._model.ntendon), data.ten_wrapnum)
        points = data.wrap_xpos.reshape(-1, 3)[: len(tendon)]
        path = data.wrap_obj.reshape(-1)[: len(tendon)] != _PULLEY
        joined = (tendon[1:] == tendon[:-1]) & path[1:] & path[:-1] & self._shown[tendon[:-1]]
        first = np.flatnonzero(joined)
        return np.stack([points[first], points[first + 1]], axis=1), tendon[first]


def tendon_colors(model: mujoco.MjModel, data: mujoco.MjData) -> NDArray[np.uint8]:
    """Return the colour of each tendon, (ntendon, 3), by the most active of the actuators that pull it."""
    chosen = np.flatnonzero((model.actuator_trntype == mujoco.mjtTrn.mjTRN_TENDON) & (model.actuator_trnid[:, 0] >= 0))
    activation = np.full(model.ntendon, -np.inf)
    np.maximum.at(activation, model.actuator_trnid[chosen, 0], _activations(model, data, chosen))
    colors = activation_colors(np.maximum(activation, 0))
    colors[np.isneginf(activation)] = TENDON
    return colors


def _activations(model: mujoco.MjModel, data: mujoco.MjData, chosen: NDArray[np.intp]) -> Array:
    """Return how active some actuators are, 0 to 1: activations, else controls by their range."""
    limit = np.where(model.actuator_ctrllimited[chosen], np.abs(model.actuator_ctrlrange[chosen]).max(axis=1), 1)
    activation: Array = np.abs(data.ctrl[chosen]) / np.maximum(limit, np.finfo(float).tiny)
    if model.na:
        last = model.actuator_actadr[chosen] + model.actuator_actnum[chosen] - 1
        activation = np.where(last >= 0, np.abs(data.act[np.maximum(last, 0)]), activation)
    activation = np.clip(activation, 0, 1)
    return activation
