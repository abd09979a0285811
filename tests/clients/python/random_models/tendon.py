"""Tendons of a model, fixed and spatial ones."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from random_models.draw import Attributes, Scene, add


def add_tendons(scene: Scene) -> None:
    """Add up to four tendons of the joints, sites and wraps that are there."""
    d, section = scene.draw, scene.section("tendon")
    for _ in range(d.integer(1, 4) if scene.theme.tendons else 0):
        scalar = scene.joints("hinge", "slide")
        if scalar and d.chance(0.4):
            name = scene.name("tendon")
            tendon = add(section, "fixed", {"name": name}, _attributes(scene, name, -0.3, 0.3))
            for joint in d.sample(scalar, d.integer(1, 3)):
                add(tendon, "joint", {"joint": joint, "coef": d.real(-1.5, 1.5)})
        elif len(scene.names["site"]) > 1:
            name = scene.name("tendon")
            tendon = add(section, "spatial", {"name": name}, _attributes(scene, name, 0.1, 0.7))
            _add_path(scene, tendon)
            if tendon.find("geom") is not None:
                tendon.attrib.pop("armature", None)  # MuJoCo refuses it where a tendon wraps


def _add_path(scene: Scene, tendon: ET.Element) -> None:
    """Add sites with wraps and pulleys between them; a pulley has two sites on each side."""
    d = scene.draw
    sites = d.sample(scene.names["site"], d.integer(2, 5))
    pulley = -1  # the site before the last one
    for i, site in enumerate(sites):
        add(tendon, "site", {"site": site})
        if i + 1 == len(sites):
            break
        if scene.names["wrap"] and d.chance(0.45):
            wrap, side = d.pick(list(zip(scene.names["wrap"], scene.names["side"], strict=True)))
            add(tendon, "geom", {"geom": wrap}, d.some(sidesite=(0.6, side)))
        elif pulley + 1 < i < len(sites) - 2 and d.chance(0.3):
            pulley = i
            add(tendon, "pulley", {"divisor": d.real(0.5, 3)})


def _attributes(scene: Scene, name: str, low: float, high: float) -> Attributes:
    """Return those of a tendon that is between two lengths most often."""
    d = scene.draw
    tendon: Attributes = {}
    if d.chance(0.4):
        scene.names["limited tendon"].append(name)
        middle, (below, above) = d.real(low, high), d.interval(0.02, 0.3)
        tendon["range"] = [middle + below, middle + above]
        tendon |= d.some(margin=(0.4, d.real(0, 0.1))) | scene.solver_parameters("limit")
    if d.chance(0.4):
        rest = d.real(low, high)
        tendon["stiffness"] = d.polynomial(1, 50)
        tendon |= d.some(springlength=(0.4, d.pick([[rest], [rest, rest + d.real(0, 0.2)]])))
        tendon |= d.some(springyield=(0.5 if scene.theme.springyield else 0, d.real(0.2, 5)))
    if d.chance(0.2):
        tendon |= {"frictionloss": d.real(0.01, 1)} | scene.solver_parameters("friction")
    return tendon | d.some(
        damping=(0.4, d.polynomial(0.01, 1)),
        armature=(0.2, d.real(0.001, 0.2)),
        actuatorfrcrange=(0.15, d.interval(0.1, 5)),
    )
