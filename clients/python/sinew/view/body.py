"""The bodies of a model, drawn by mjviser."""

from __future__ import annotations

from collections.abc import Iterator

import mujoco
import numpy as np
import viser
from mjviser import ViserMujocoScene
from numpy.typing import NDArray

from sinew.view.camera import Sight
from sinew.view.meshes import hide_broken_geoms

__all__ = ["BodyScene", "body_scene"]


class BodyScene(ViserMujocoScene):
    """mjviser's scene without what this page never shows: sites (there are hundreds on muscles) and convex hulls."""

    camera_tracking_enabled = False

    def __init__(self, server: viser.ViserServer, model: mujoco.MjModel, sight: Sight) -> None:
        super().__init__(server, model, 1)
        self.camera_tracking_enabled = False
        mujoco.mj_kinematics(model, self.mj_data)
        self._far = [
            handle
            for (body, *_), handle in self._fixed_geom_handles.items()
            if not sight.has(model, self.mj_data, body)
        ]
        self._far_shown = True
        if not (model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE).any():
            self._add_ground(sight)

    def meshes(self) -> Iterator[tuple[viser.BatchedGlbHandle, NDArray[np.int32]]]:
        """Return the batches of meshes that move, and the body of each instance."""
        for group in self._mesh_groups:
            yield group.handle, group.body_ids

    def show_surroundings(self, on: bool) -> None:
        """Show or hide what stands far from all that moves."""
        if on != self._far_shown:
            self._far_shown = on
            for handle in self._far:
                handle.visible = on

    def _add_ground(self, sight: Sight) -> None:
        """Add a ground for the eye, below all, where the model has none."""
        model = self.mj_model
        low = min((self.mj_data.geom_xpos[:, 2] - model.geom_rbound).min(initial=0.0), sight.center[2] - sight.size)
        self.server.scene.add_grid(
            "/ground",
            infinite_grid=True,
            cell_size=0.1,
            section_size=0.5,
            fade_distance=20 * sight.size,
            shadow_opacity=0.15,
            position=(*sight.center[:2], low),
        )

    def _add_fixed_sites(self) -> None:
        """Draw no sites."""

    def _create_site_handles_by_group(self) -> None:
        """Draw no sites."""

    def _compute_hull_body_meshes(self) -> None:
        """Draw no convex hulls."""


def body_scene(server: viser.ViserServer, model: mujoco.MjModel, sight: Sight) -> tuple[BodyScene, tuple[str, ...]]:
    """Return the scene of the model's geoms, and sentences about those that it cannot draw."""
    try:
        return BodyScene(server, model, sight), ()
    except Exception:  # of another library, on a model of anybody's
        notes = hide_broken_geoms(model)
        return BodyScene(server, model, sight), notes
