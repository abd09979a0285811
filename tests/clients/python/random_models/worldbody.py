"""Bodies of a model: their joints, geoms, sites and cameras."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from random_models.draw import Attributes, Scene, add

SHAPES = ["sphere", "capsule", "ellipsoid", "cylinder", "box"]
SEARCHED = ("ellipsoid", "cylinder", "hfield")  # types with contacts that are searched by iterations


def add_worldbody(scene: Scene) -> None:
    """Add `worldbody`: ground, a few fixed geoms and sites, and up to four trees."""
    d, world = scene.draw, scene.section("worldbody")
    if d.chance(0.6):
        plane: Attributes = {"name": scene.name("geom"), "type": "plane", "size": [3, 3, 0.1]}
        plane["pos"] = [0, 0, d.real(-0.2, 0.1)]
        add(world, "geom", plane, d.some(euler=(0.3, d.reals(3, -0.1, 0.1))), _contact(scene, "plane"))
    for hfield in scene.names["hfield"]:
        field: Attributes = {"name": scene.name("geom"), "type": "hfield", "hfield": hfield}
        field["pos"] = [0, 0, d.real(-0.3, 0)]
        add(world, "geom", field, _contact(scene, "hfield"))
        scene.names["height field"].append(scene.names["geom"][-1])
    for _ in range(d.pick([0, 0, 1, 2])):
        _add_geom(scene, world, 0.2)
    scene.names["static geom"] = list(scene.names["geom"])
    for _ in range(d.pick([1, 2])):
        _add_site(scene, world, 0.4)
    for _ in range(d.pick([1, 1, 2, 3, 4])):
        _add_body(scene, world, d.pick([0, 1, 2, 3]), top=True)


def _add_body(scene: Scene, parent: ET.Element, depth: int, top: bool = False) -> None:
    d, size = scene.draw, scene.draw.real(0.06, 0.15)
    place: Attributes = {"pos": [*d.reals(2, -0.4, 0.4), d.real(0.05, 0.6)]} if top else d.position(0.2)
    rest = d.some(gravcomp=(0.2, d.pick([0.5, 1, 1, d.real(0, 1.5)])))
    if top and d.chance(0.12):
        rest["mocap"] = "true"
    elif top and scene.theme.sleep:
        rest |= d.some(sleep=(0.5, d.pick(["never", "allowed", "init"])))
    body = add(parent, "body", {"name": scene.name("body")}, place, d.orientation(), rest)
    if "mocap" in rest:
        _add_geom(scene, body, size)
        _add_site(scene, body, size)
        return
    _add_joints(scene, body, free=top and d.chance(0.45))
    inertial = d.chance(0.2)
    if inertial:
        _add_inertial(scene, body)
    for _ in range(d.pick([0, 1, 1, 1, 1]) if inertial else d.pick([1, 1, 2])):
        _add_geom(scene, body, size)
    if scene.theme.tendons and len(scene.names["wrap"]) < 4 and d.chance(0.35):
        _add_wrap(scene, body)
    for _ in range(d.pick([0, 1, 1, 2])):
        _add_site(scene, body, size)
    if d.chance(0.15):
        camera: Attributes = {"name": scene.name("camera"), "fovy": d.real(30, 80)}
        add(body, "camera", camera, d.position(0.2), d.orientation())
    for _ in range(d.pick([0, 1, 1, 1, 2]) if depth else 0):
        _add_body(scene, body, depth - 1)


def _add_joints(scene: Scene, body: ET.Element, free: bool) -> None:
    d = scene.draw
    if free:
        name = scene.name("joint")
        scene.joint_types[name] = "free"
        add(body, "freejoint", {"name": name}, d.some(align=(0.5, d.pick(["true", "false"]))))
        return
    one = [d.pick(["hinge", "hinge", "slide", "ball"])]
    two = [d.pick(["hinge", "slide"]) for _ in range(2)]
    three = d.pick([["slide", "ball"], ["hinge", "hinge", "slide"]])
    for kind in d.pick([[], one, one, one, one, one, one, two, two, two, three]):
        _add_joint(scene, body, kind)


def _add_joint(scene: Scene, body: ET.Element, kind: str) -> None:
    d, ball = scene.draw, kind == "ball"
    name = scene.name("joint")
    scene.joint_types[name] = kind
    joint: Attributes = {"name": name, "type": kind}
    if not ball:
        joint["axis"] = d.pick([d.direction(), d.direction(), d.pick([[1.0, 0, 0], [0.0, 1, 0], [0.0, 0, 1]])])
    if d.chance(0.2 if kind == "slide" else 0.5):
        joint |= d.position(0.1)
    if d.chance(0.45):
        scene.names["limited joint"].append(name)
        reach = d.interval(0.02, 1 if kind == "hinge" else 0.3)
        joint["range"] = [0, d.real(0.2, 1.5)] if ball else reach
        joint |= d.some(margin=(0.4, d.real(0, 0.2))) | scene.solver_parameters("limit")
    elif not ball:
        joint |= d.some(ref=(0.15, d.real(-0.3, 0.3)))
    if d.chance(0.1):
        joint["springdamper"] = [d.real(0.05, 0.3), d.real(0.5, 1.5)]
    else:
        joint |= d.some(stiffness=(0.4, d.polynomial(1, 30)), damping=(0.5, d.polynomial(0.01, 1)))
    joint |= d.some(armature=(0.4, d.real(0.001, 0.1)), actuatorgravcomp=(0.15, "true"))
    if not ball:
        joint |= d.some(springref=(0.25, d.real(-0.5, 0.5)), actuatorfrcrange=(0.3, d.interval(0.02, 2)))
    if d.chance(0.25):
        joint |= {"frictionloss": d.real(0.01, 1)} | scene.solver_parameters("friction")
    if scene.theme.springyield:
        joint |= d.some(springyield=(0.5, d.real(0.2, 5)))
    add(body, "joint", joint)


def _add_inertial(scene: Scene, body: ET.Element) -> None:
    """Add an inertia that a body can have: none of its moments is larger than the sum of the others."""
    d = scene.draw
    a, b = d.reals(2, 0.002, 0.03)
    c = d.real(max(abs(a - b), 0.002) + 1e-4, a + b)
    inertial: Attributes = {"mass": d.real(0.1, 3)} | d.position(0.05)
    full = [a + 0.01, b + 0.01, c + 0.01, *d.reals(3, -0.002, 0.002)]
    moments: Attributes = {"fullinertia": full} if d.chance(0.4) else {"diaginertia": [a, b, c]} | d.orientation()
    add(body, "inertial", inertial, moments)


def _add_geom(scene: Scene, body: ET.Element, size: float) -> None:
    d, meshes = scene.draw, scene.names["mesh"]
    kind = d.pick(SHAPES + (["mesh", "mesh"] if meshes else []))
    geom: Attributes = {"name": scene.name("geom"), "type": kind}
    if kind in SEARCHED:
        scene.names["searched geom"].append(scene.names["geom"][-1])
    count = {"sphere": 1, "capsule": 2, "cylinder": 2, "mesh": 0}.get(kind, 3)
    sizes = d.reals(count, 0.3 * size, size)
    if kind == "mesh":
        geom["mesh"] = d.pick(meshes)
    else:
        geom["size"] = sizes
    if kind in ("capsule", "cylinder") and d.chance(0.3):
        start, way, length = d.reals(3, -size, size), d.direction(), d.real(0.5, 2) * size
        geom |= {"size": sizes[:1], "fromto": start + [p + length * x for p, x in zip(start, way, strict=True)]}
    else:
        geom |= (d.position(0.6 * size) if d.chance(0.7) else {}) | d.orientation()
    geom |= d.pick([{}, {}, {"density": d.real(200, 3000)}, {"mass": d.real(0.05, 2)}])
    if kind != "mesh":
        geom |= d.some(shellinertia=(0.1, "true"))
    if scene.theme.fluid and d.chance(0.4):
        coefficients = [*d.reals(2, 0, 1), d.real(0, 2), *d.reals(2, 0, 1)]
        geom |= {"fluidshape": "ellipsoid"} | d.some(fluidcoef=(0.5, coefficients))
    contact = _contact(scene, kind)
    if contact.get("contype") != 0:
        scene.names["colliding geom"].append(scene.names["geom"][-1])
    add(body, "geom", geom, contact)


def _contact(scene: Scene, kind: str) -> Attributes:
    """Return how a geom of a type collides, or that it does not."""
    d, theme = scene.draw, scene.theme
    none: Attributes = {"contype": 0, "conaffinity": 0}
    if not d.chance(theme.contacts):
        return none
    contact: Attributes = {}
    if d.chance(0.25):
        contact |= {"contype": d.integer(1, 3), "conaffinity": d.integer(0, 3)}
    # The second contact of a mesh is found by a turned search, whose turn grows with margin and gap: 0.4 % of them.
    reach = 0 if scene.exact and scene.names["mesh"] else 1
    contact |= d.some(
        condim=(0.6, d.pick([1, 3, 3, 4, 6])),
        friction=(0.5, [d.real(0.1, 1.5), d.real(0.001, 0.05), d.real(1e-4, 0.01)]),
        margin=(reach * 0.3, d.real(0, 0.04)),
        priority=(0.2, d.integer(0, 2)),
        solmix=(0.3, d.real(0, 2)),
        # Without margin or with it; not so under override, where MuJoCo's broad phase leaves such contacts out.
        gap=(0 if theme.override else reach * 0.15, d.real(0, 0.03)),
        surfacevel=(0.3 if theme.surfacevel else 0, d.reals(d.pick([3, 6]), -0.5, 0.5)),
        adhesion=(0.3 if theme.adhesion else 0, d.real(0, 5)),
    )
    contact |= scene.solver_parameters("", 0.3)
    return none if scene.exact and kind in SEARCHED else contact


def _add_wrap(scene: Scene, body: ET.Element) -> None:
    """Add a geom that tendons wrap, `wrapN`, with a site at a side of it or inside, `sideN`."""
    d, radius = scene.draw, scene.draw.real(0.02, 0.08)
    place = d.position(0.1)
    away = radius * d.pick([d.real(0, 0.8), d.real(1.1, 2.5), d.real(1.1, 2.5)])
    wrap: Attributes = {"name": scene.name("wrap"), "type": d.pick(["sphere", "cylinder"]), "size": [radius, 0.1]}
    add(body, "geom", wrap, place, d.orientation(), {"contype": 0, "conaffinity": 0, "mass": 0.01})
    centre, way = place["pos"], d.direction()
    assert isinstance(centre, list)
    add(body, "site", {"name": scene.name("side"), "pos": [p + away * x for p, x in zip(centre, way, strict=True)]})


def _add_site(scene: Scene, body: ET.Element, size: float) -> None:
    d = scene.draw
    site: Attributes = {"name": scene.name("site"), "type": d.pick(SHAPES), "size": d.reals(3, 0.02, 0.1)}
    add(body, "site", site, d.position(size), d.orientation())
