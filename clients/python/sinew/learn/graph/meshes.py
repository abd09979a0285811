"""Meshes of rigid bodies, and scenes of them in which nearest points of triangles are looked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sinew._arrays import Doubles
from sinew.errors import ArgumentError
from sinew.model import Model

__all__ = ["Mesh", "Scene"]

THIN = 0.02  # how far a triangle's fourth corner lies inside, as a share of the root of its area

Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Mesh:
    """A closed surface of triangles, about the centre of mass of its body.

    Attributes
    ----------
    vertices : ndarray, (V, 3)
        Corners [m].
    faces : ndarray of int, (F, 3)
        Corners of each triangle, counter-clockwise as seen from outside.

    Raises
    ------
    ArgumentError
        Shapes, a number that is not finite, a corner that there is not, a triangle without an area.
    """

    vertices: Doubles
    faces: Whole

    def __post_init__(self) -> None:
        vertices, faces = np.asarray(self.vertices, float), np.asarray(self.faces)
        if vertices.ndim != 2 or vertices.shape[1] != 3 or len(vertices) < 4:
            raise ArgumentError(f"vertices: shape {vertices.shape}, expected (V, 3) with V of 4 and more")
        if not np.all(np.isfinite(vertices)):
            raise ArgumentError("vertices: a number is not finite")
        if faces.ndim != 2 or faces.shape[1] != 3 or not np.issubdtype(faces.dtype, np.integer):
            raise ArgumentError(f"faces: shape {faces.shape} of {faces.dtype}, expected (F, 3) of integers")
        bad = np.flatnonzero(np.any((faces < 0) | (faces >= len(vertices)), axis=1))
        if len(bad):
            raise ArgumentError(f"faces[{bad[0]}]: {faces[bad[0]]}, corners are 0 to {len(vertices) - 1}")
        object.__setattr__(self, "vertices", vertices)
        object.__setattr__(self, "faces", faces.astype(np.int64))
        flat = np.flatnonzero(np.linalg.norm(self.crosses, axis=1) <= 1e-12 * np.ptp(vertices) ** 2)
        if len(flat):
            raise ArgumentError(f"faces[{flat[0]}]: {faces[flat[0]]} has no area")

    @classmethod
    def box(cls, half: ArrayLike) -> Mesh:
        """Return a box of half sides (3,) [m], two triangles a side."""
        sides = np.asarray(half, float)
        if sides.shape != (3,) or not np.all(sides > 0):
            raise ArgumentError(f"half: {half!r}, expected three lengths above 0")
        corners = np.array(list(product((-1, 1), repeat=3)), float) * sides
        squares = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
        return cls(corners, np.array([half for a, b, c, d in squares for half in ((a, b, c), (a, c, d))]))

    @property
    def crosses(self) -> Doubles:
        """Normals that point outwards, as long as twice the areas, (F, 3)."""
        a, b, c = np.moveaxis(self.vertices[self.faces], 1, 0)
        return np.asarray(np.cross(b - a, c - a))

    @property
    def edges(self) -> Whole:
        """Edges of the triangles, each in both directions, (E, 2)."""
        ends = np.concatenate([self.faces[:, [i, j]] for i in range(3) for j in range(3) if i != j])
        return np.unique(ends, axis=0)

    def shells(self) -> Doubles:
        """Return thin tetrahedra that stand for the triangles, (F, 4, 3) [m]: the fourth corner lies inside."""
        corners, area = self.vertices[self.faces], np.linalg.norm(self.crosses, axis=1, keepdims=True)
        inside = corners.mean(axis=1) - THIN * self.crosses / np.sqrt(area)
        return np.concatenate([corners, inside[:, None]], axis=1)


def _text(meshes: Sequence[Mesh], floor: float | None) -> str:
    """Return the MJCF of bodies whose triangles are geoms of their own, behind the floor's plane."""
    assets, bodies = "", ""
    for i, mesh in enumerate(meshes):
        for k, shell in enumerate(mesh.shells()):
            assets += f'<mesh name="{i}.{k}" vertex="{" ".join(map(repr, shell.ravel().tolist()))}"/>'
        geoms = "".join(f'<geom type="mesh" mesh="{i}.{k}"/>' for k in range(len(mesh.faces)))
        bodies += f'<body><freejoint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>{geoms}</body>'
    plane = "" if floor is None else f'<geom type="plane" pos="0 0 {floor!r}" size="1 1 1"/>'
    return f"<mujoco><asset>{assets}</asset><worldbody>{plane}{bodies}</worldbody></mujoco>"


class Scene:
    """Rigid bodies of given meshes, over a horizontal floor.

    Nodes, edges and triangles of all bodies are numbered through. The triangle behind the last one is the floor.

    Parameters
    ----------
    meshes : sequence of Mesh
        One for each body.
    floor : float, optional
        Height of the floor [m]. None: there is none.

    Attributes
    ----------
    rest, owner : ndarray, (V, 3) [m] and (V,)
        Nodes in the frames of their bodies, and these.
    edges : ndarray of int, (E, 2)
        Ends of the edges, in both directions.
    faces, face_owner : ndarray of int, (F, 3) and (F,)
        Corners of the triangles, and their bodies.
    normals : ndarray, (F, 3)
        Of the triangles, in the frames of their bodies, of unit length.
    model : Model
        In which nearest points are looked for: each triangle is a geom.
    pairs, pair_faces : ndarray of int, (K, 2)
        Geoms and triangles of all pairs that may touch.
    """

    def __init__(self, meshes: Sequence[Mesh], floor: float | None = 0.0) -> None:
        if not meshes:
            raise ArgumentError("meshes: none, expected one and more")
        if floor is not None and not np.isfinite(floor):
            raise ArgumentError(f"floor: {floor}, expected a height or None")
        self.meshes, self.floor = tuple(meshes), None if floor is None else float(floor)
        nodes = np.cumsum([0, *(len(x.vertices) for x in meshes)])
        counts = [len(x.faces) for x in meshes]
        faces = np.cumsum([0, *counts])
        self.rest = np.concatenate([x.vertices for x in meshes])
        self.owner = np.repeat(np.arange(len(meshes)), np.diff(nodes))
        self.edges = np.concatenate([x.edges + n for x, n in zip(meshes, nodes, strict=False)])
        self.faces = np.concatenate([x.faces + n for x, n in zip(meshes, nodes, strict=False)])
        self.face_owner = np.repeat(np.arange(len(meshes)), counts)
        crosses = np.concatenate([x.crosses for x in meshes])
        self.normals = crosses / np.linalg.norm(crosses, axis=1, keepdims=True)
        self.model = Model.from_string(_text(meshes, self.floor))
        every = [np.arange(a, b) for a, b in pairwise(faces)]
        touching = [np.stack(np.meshgrid(a, b, indexing="ij"), -1).reshape(-1, 2) for a, b in combinations(every, 2)]
        if self.floor is not None:
            touching.append(np.stack([np.arange(faces[-1]), np.full(faces[-1], faces[-1])], -1))
        self.pair_faces: Whole = np.concatenate([np.zeros((0, 2), np.int64), *touching])
        below = 0 if self.floor is None else 1
        self.pairs: Whole = np.where(self.pair_faces == faces[-1], 0, self.pair_faces + below)

    def __repr__(self) -> str:
        return f"<sinew.learn Scene of {len(self.meshes)} bodies, {len(self.faces)} triangles>"

    def __len__(self) -> int:
        return len(self.meshes)
