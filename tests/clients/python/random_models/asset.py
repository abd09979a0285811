"""Meshes and height fields of a model."""

from __future__ import annotations

import itertools

from random_models.draw import Attributes, Scene, add


def add_assets(scene: Scene) -> None:
    """Add meshes by their vertices and a height field by its elevations, as the theme wants them."""
    d, asset = scene.draw, scene.section("asset")
    for _ in range(d.integer(1, 3) if scene.theme.mesh else 0):
        options = d.some(
            scale=(0.2, d.reals(3, 0.7, 1.3)),
            refpos=(0.2, d.reals(3, -0.05, 0.05)),
            inertia=(0.3, "convex"),
            maxhullvert=(0.15, d.integer(5, 12)),
        )
        add(asset, "mesh", {"name": scene.name("mesh"), "vertex": _vertices(scene)}, options)
    if scene.theme.hfield:
        rows, columns = d.integer(3, 8), d.integer(3, 8)
        size = [*d.reals(2, 0.5, 1.5), d.real(0.05, 0.3), 0.1]
        elevation = d.reals(rows * columns, 0, 1)
        shape: Attributes = {"nrow": rows, "ncol": columns, "size": size, "elevation": elevation}
        add(asset, "hfield", {"name": scene.name("hfield")}, shape)


def _vertices(scene: Scene) -> list[float]:
    """Return those of a box, a tetrahedron or points of an ellipsoid."""
    d = scene.draw
    c = d.real(0.04, 0.12)
    box = [[c * x, 1.3 * c * y, 0.7 * c * z] for x, y, z in itertools.product((-1, 1), repeat=3)]
    tetrahedron = [[c * x for x in d.direction()] for _ in range(4)]
    axes = d.reals(3, 0.04, 0.15)
    cloud = [[a * x for a, x in zip(axes, d.direction(), strict=True)] for _ in range(d.integer(6, 40))]
    return [x for vertex in d.pick([box, tetrahedron, cloud, cloud]) for x in vertex]
