"""Where what the cost looks at goes along the plan."""

from __future__ import annotations

import numpy as np
import viser
from numpy.typing import NDArray

__all__ = ["Lines"]


class Lines:
    """Curves through points, each with a colour."""

    def __init__(
        self, server: viser.ViserServer, name: str, colors: list[tuple[int, int, int]], thickness: float
    ) -> None:
        self._server, self._name, self._thickness = server, name, thickness
        self._colors = np.array(colors, dtype=np.uint8).reshape(-1, 3)
        self._handle: viser.LineSegmentsHandle | None = None

    def hide(self) -> None:
        """Draw nothing until the next points."""
        if self._handle is not None:
            self._handle.visible = False

    def show(self, points: NDArray[np.float64]) -> None:
        """Draw curves through points (n, curves, 3) [m]."""
        if len(points) < 2 or not points.shape[1]:
            self.hide()
            return
        pieces = np.stack([points[:-1], points[1:]], axis=2).reshape(-1, 2, 3).astype(np.float32)
        if self._handle is not None and len(self._handle.points) != len(pieces):
            self._handle.remove()
            self._handle = None
        if self._handle is None:
            colors = np.broadcast_to(self._colors[None, :, None], (len(points) - 1, len(self._colors), 2, 3))
            self._handle = self._server.scene.add_line_segments(
                self._name, pieces, colors.reshape(-1, 2, 3), thickness=self._thickness
            )
        self._handle.points = pieces
        self._handle.visible = True
