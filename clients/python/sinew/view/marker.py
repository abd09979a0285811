"""A target in the scene that can be taken by the mouse."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import viser
from numpy.typing import NDArray

__all__ = ["Marker", "Pose"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Pose:
    """Position (3,) [m] and orientation (4,) in the world."""

    position: Array
    wxyz: Array


@dataclass(frozen=True)
class _Grip:
    """One thing that the mouse did: it took, moved or let go of a marker, or clicked on it."""

    phase: str
    pose: Pose | None = None


class Marker:
    """A sphere (a position) or axes (an orientation); a second one shows where the mouse wants it.

    A sphere is dragged in the plane of the screen. A click shows a handle with axes for either kind, another click
    hides it. The browser's events wait until `take`, which the drawing thread calls.
    """

    def __init__(
        self, server: viser.ViserServer, name: str, color: tuple[int, int, int], radius: float, turns: bool
    ) -> None:
        scene = server.scene
        self._grips: deque[_Grip] = deque()
        self._offset = np.zeros(3)
        self.held = False
        self.solid: viser.IcosphereHandle | viser.FrameHandle
        self.wish: viser.IcosphereHandle | viser.FrameHandle
        if turns:
            axes: dict[str, Any] = {
                "axes_length": 3 * radius,
                "axes_radius": 0.15 * radius,
                "origin_radius": 0.5 * radius,
            }
            self.solid = scene.add_frame(f"{name}/target", origin_color=color, visible=False, **axes)
            self.wish = scene.add_frame(f"{name}/wish", origin_color=(160, 160, 160), visible=False, **axes)
        else:
            ball: dict[str, Any] = {"cast_shadow": False, "receive_shadow": False, "visible": False, "subdivisions": 2}
            self.solid = scene.add_icosphere(f"{name}/target", radius, color, opacity=0.75, **ball)
            self.wish = scene.add_icosphere(f"{name}/wish", 1.15 * radius, color, wireframe=True, **ball)
            self.solid.on_drag("left")(self._on_drag)
        self.solid.on_click(self._on_click)
        self.handle = scene.add_transform_controls(
            f"{name}/handle",
            scale=5 * radius,
            disable_axes=turns,
            disable_sliders=turns,
            disable_rotations=not turns,
            depth_test=False,
            visible=False,
        )
        self.handle.on_update(self._on_handle)

    def place(self, pose: Pose | None, wish: Pose | None) -> None:
        """Put both into the scene; None hides one."""
        for handle, where in ((self.solid, pose), (self.wish, wish)):
            if where is not None:
                handle.position, handle.wxyz = where.position, where.wxyz
            handle.visible = where is not None
        if pose is None:
            self.handle.visible = False
        elif self.handle.visible and not self.held:
            self.handle.position, self.handle.wxyz = (wish or pose).position, (wish or pose).wxyz

    def take(self) -> Pose | None:
        """Return where the mouse wants it now; None where it did nothing since the last call."""
        wanted = None
        while self._grips:
            grip = self._grips.popleft()
            if grip.phase == "click":
                self.handle.position, self.handle.wxyz = self.solid.position, self.solid.wxyz
                self.handle.visible = not self.handle.visible
                continue
            self.held = grip.phase != "end"
            wanted = grip.pose or wanted
        return wanted

    # Coroutines keep the order of the events.

    async def _on_click(self, event: viser.SceneNodePointerEvent[Any]) -> None:
        self._grips.append(_Grip("click"))

    async def _on_drag(self, event: viser.SceneNodeDragEvent[Any]) -> None:
        if event.phase == "start":
            self._offset = np.array(self.solid.position) - event.start_position
        position = np.array(event.end_position) + self._offset
        self._grips.append(_Grip(event.phase, Pose(position, np.array(self.solid.wxyz))))

    async def _on_handle(self, event: viser.TransformControlsEvent) -> None:
        pose = Pose(np.array(event.target.position), np.array(event.target.wxyz))
        self._grips.append(_Grip(event.phase, pose))
