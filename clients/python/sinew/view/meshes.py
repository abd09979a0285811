"""What of a model can be drawn, and with how many triangles."""

from __future__ import annotations

import copy

import fast_simplification
import mujoco
import numpy as np
import trimesh
from mjviser.conversions import merge_geoms

__all__ = ["body_mesh", "drawable_geoms", "drawable_model", "hide_broken_geoms"]

_TRIANGLES = 60_000  # of all meshes together; a page on a machine without a GPU draws each of them
_FEWEST = 500  # that a mesh is left with
_GROUPS = 3  # the first ones are what MuJoCo's own viewer shows at first


def drawable_model(model: mujoco.MjModel) -> tuple[mujoco.MjModel, tuple[str, ...]]:
    """Return a copy for drawing alone, with light meshes, and sentences about what is not drawn."""
    model = copy.copy(model)
    notes = []
    if model.nflex:
        notes.append(f"{model.nflex} deformable bodies (flex) of the model are not drawn.")
    if model.nskin:
        notes.append(f"{model.nskin} skins of the model are not drawn.")
    sdf = (model.geom_type == mujoco.mjtGeom.mjGEOM_SDF) & (model.geom_dataid >= 0)
    model.geom_type[sdf] = mujoco.mjtGeom.mjGEOM_MESH
    model.geom_rgba[model.geom_group >= _GROUPS, 3] = 0  # mjviser leaves out what is transparent
    _paint(model)
    _lighten(model)
    return model, tuple(notes)


def hide_broken_geoms(model: mujoco.MjModel) -> tuple[str, ...]:
    """Make transparent what cannot be converted to triangles; returns a sentence about each."""
    notes = []
    for geom in range(model.ngeom):
        try:
            merge_geoms(model, [geom])
        except Exception as error:  # of another library, on a model of anybody's
            model.geom_rgba[geom, 3] = 0
            notes.append(f"Geom {model.geom(geom).name or geom} is not drawn: {error}.")
    return tuple(notes)


def drawable_geoms(model: mujoco.MjModel, body: int) -> list[int]:
    """Return the geoms of a body that are seen, without what has no end."""
    start = int(model.body_geomadr[body])
    geoms = range(start, start + int(model.body_geomnum[body]))
    endless = (mujoco.mjtGeom.mjGEOM_PLANE, mujoco.mjtGeom.mjGEOM_HFIELD)
    return [g for g in geoms if model.geom_rgba[g, 3] > 0 and model.geom_type[g] not in endless]


def body_mesh(model: mujoco.MjModel, body: int, triangles: int) -> trimesh.Trimesh | None:
    """Return what is seen of a body, in its frame, with about so many triangles; None where nothing is."""
    geoms = drawable_geoms(model, body)
    if not geoms:
        return None
    mesh = merge_geoms(model, geoms)
    if len(mesh.faces) <= triangles:
        return mesh
    vertices, faces = fast_simplification.simplify(
        np.asarray(mesh.vertices, dtype=np.float32), np.asarray(mesh.faces, dtype=np.int32), target_count=triangles
    )
    return trimesh.Trimesh(vertices, faces, process=False)


def _paint(model: mujoco.MjModel) -> None:
    """Give materials whose texture is wrapped around a cube its mean colour: triangles stay joined and smooth."""
    roles = [int(mujoco.mjtTextureRole.mjTEXROLE_RGB), int(mujoco.mjtTextureRole.mjTEXROLE_RGBA)]
    for material in range(model.nmat):
        for role in roles:
            texture = int(model.mat_texid[material, role])
            if texture < 0 or model.tex_type[texture] == mujoco.mjtTexture.mjTEXTURE_2D:
                continue
            channels = int(model.tex_nchannel[texture])
            pixels = int(model.tex_width[texture]) * int(model.tex_height[texture])
            first = int(model.tex_adr[texture])
            colors = model.tex_data[first : first + pixels * channels].reshape(-1, channels)
            used = colors[colors.any(axis=1), :3]
            if len(used):
                model.mat_rgba[material, :3] *= used.mean(axis=0) / 255
            model.mat_texid[material, role] = -1


def _lighten(model: mujoco.MjModel) -> None:
    """Replace meshes of many triangles by similar ones of fewer, in place."""
    used = np.unique(model.geom_dataid[model.geom_type == mujoco.mjtGeom.mjGEOM_MESH])
    if model.mesh_facenum[used].sum() <= _TRIANGLES:
        return
    for mesh in used:
        count = int(model.mesh_facenum[mesh])
        target = max(_FEWEST, count * _TRIANGLES // int(model.mesh_facenum[used].sum()))
        if count <= target or model.mesh_texcoordnum[mesh] > 0:
            continue
        first, face = int(model.mesh_vertadr[mesh]), int(model.mesh_faceadr[mesh])
        vertices, faces = fast_simplification.simplify(
            model.mesh_vert[first : first + int(model.mesh_vertnum[mesh])],
            model.mesh_face[face : face + count],
            target_count=target,
        )
        if not 0 < len(faces) < count or len(vertices) > model.mesh_vertnum[mesh]:
            continue
        model.mesh_vert[first : first + len(vertices)] = vertices
        model.mesh_face[face : face + len(faces)] = faces
        model.mesh_vertnum[mesh], model.mesh_facenum[mesh] = len(vertices), len(faces)
        model.mesh_polynum[mesh] = 0  # polygons of the convex hull, which number other vertices
