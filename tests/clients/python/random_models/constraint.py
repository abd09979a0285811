"""Pairs of geoms, excluded pairs of bodies, and equalities of a model."""

from __future__ import annotations

from random_models.draw import Attributes, Scene, add


def add_contacts(scene: Scene) -> None:
    """Add `pair` and `exclude`; a pair of two static geoms has no contact under flag sleep in MuJoCo."""
    d, section = scene.draw, scene.section("contact")
    moving = sorted(set(scene.names["geom"]) - set(scene.names["static geom"]))
    for _ in range(d.integer(1, 3) if len(scene.names["geom"]) > 1 and moving and d.chance(0.25) else 0):
        first = d.pick(moving)
        second = d.pick([name for name in scene.names["geom"] if name != first])
        pair = _pair(scene)
        searched = scene.names["searched geom"] + scene.names["height field"]
        if not (scene.exact and {first, second} & set(searched)):
            add(section, "pair", {"geom1": first, "geom2": second}, pair)
    if len(scene.names["body"]) > 1 and d.chance(0.2):
        first, second = d.sample(scene.names["body"], 2)
        add(section, "exclude", {"body1": first, "body2": second})


def _pair(scene: Scene) -> Attributes:
    d, theme = scene.draw, scene.theme
    pair = d.some(
        condim=(0.6, d.pick([1, 3, 4, 6])),
        friction=(0.5, [*d.reals(2, 0.1, 1.5), d.real(0.001, 0.05), *d.reals(2, 1e-4, 0.01)]),
        margin=(0.3, d.real(0, 0.05)),
        gap=(0 if theme.override else 0.2, d.real(0, 0.03)),
        solreffriction=(0.2 if theme.solver_parameters else 0, [d.real(0.01, 0.05), d.real(0.5, 1.5)]),
        adhesion=(0.3 if theme.adhesion else 0, d.real(0, 5)),
    )
    return pair | scene.solver_parameters()


def add_equalities(scene: Scene) -> None:
    """Add up to three equalities of bodies, sites, joints or tendons."""
    d, section = scene.draw, scene.section("equality")
    for _ in range(d.integer(1, 3) if scene.theme.equalities else 0):
        kind = d.pick(["connect", "connect", "weld", "weld", "joint", "joint", "tendon"])
        if kind in ("connect", "weld"):
            parts = _bodies(scene, kind)
        else:
            several = scene.joints("hinge", "slide") if kind == "joint" else scene.names["tendon"]
            if not several or (kind == "tendon" and scene.theme.sleep):
                continue
            ends = d.sample(several, d.pick([1, 2, 2, 2, 2]))
            polynomial = [d.real(-0.2, 0.2), *d.reals(4, -1, 1)]
            parts = {f"{kind}{i + 1}": end for i, end in enumerate(ends)} | d.some(polycoef=(0.7, polynomial))
        add(
            section, kind, {"name": scene.name("equality")}, parts, scene.solver_parameters("", 0.5),
            d.some(active=(0.07, "false")),
        )  # fmt: skip


def _bodies(scene: Scene, kind: str) -> Attributes:
    """Return what `connect` or `weld` holds together."""
    d = scene.draw
    scale = d.some(torquescale=(0.4 if kind == "weld" else 0, d.real(0.1, 2)))
    if d.chance(0.4) and len(scene.names["site"]) > 1:
        first, second = d.sample(scene.names["site"], 2)
        return {"site1": first, "site2": second} | scale
    ends = d.sample(scene.names["body"], d.pick([1, 2]))
    parts: Attributes = {f"body{i + 1}": end for i, end in enumerate(ends)}
    parts |= d.some(anchor=(1 if kind == "connect" else 0.5, d.reals(3, -0.2, 0.2)))
    relpose = [*d.reals(3, -0.2, 0.2), *d.direction(4)]
    return parts | d.some(relpose=(0.3 if kind == "weld" else 0, relpose)) | scale
