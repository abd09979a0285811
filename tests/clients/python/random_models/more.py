"""What models of seeds from 10000 on have besides.

It is rarer, or came later, and is drawn by numbers of its own, so that smaller seeds keep their models.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator

from random_models.draw import Attributes, Draw, Scene, add, text
from random_models.more_forces import add_more_actuators, add_more_sensors, change_actuators, change_tendons

FIRST = 10000  # the first seed of such models

# solref: below two steps, undamped, nothing at all, signs that MuJoCo does not take.
REFERENCES: tuple[list[float], ...] = ([0.003, 1], [-300, 0], [0, 0], [-100, 1], [0.02, -1])
# solimp: a jump, a line, one number, one that falls, midpoints at an end, all that there is.
IMPEDANCES: tuple[list[float], ...] = (
    [0.3, 0.9, 0, 0.5, 2], [0.1, 0.9, 0.02, 0.5, 1], [0.8, 0.8, 0.01, 0.5, 2], [0.95, 0.4, 0.02, 0.5, 3],
    [0.2, 0.9, 0.02, 0, 2], [0.2, 0.9, 0.02, 1, 2], [1, 1, 0.001, 0.5, 2],
)  # fmt: skip


def add_more(scene: Scene, seed: int) -> None:
    """Add what is drawn for a model that is complete."""
    if seed < FIRST:
        return
    scene.draw = Draw(f"more {seed}")
    _change_options(scene)
    _change_joints(scene)
    _change_geoms(scene)
    _add_bodies(scene)
    _add_cameras(scene)
    _add_constraints(scene)
    change_tendons(scene)
    change_actuators(scene)
    add_more_actuators(scene)
    add_more_sensors(scene)
    _change_solver_parameters(scene)


def _some(scene: Scene, tag: str, probability: float) -> Iterator[ET.Element]:
    """Iterate over elements, each with a probability."""
    return (x for x in scene.root.iter(tag) if scene.draw.chance(probability))


def _set(element: ET.Element, attributes: Attributes) -> None:
    for name, value in attributes.items():
        element.set(name, text(value))


def _change_options(scene: Scene) -> None:
    d = scene.draw
    option, compiler = scene.root.find("option"), scene.root.find("compiler")
    assert option is not None and compiler is not None
    _set(option, d.some(timestep=(0.3, d.pick([0.0005, 0.003, 0.01])), gravity=(0.1, [0, 0, 0])))
    flag = option.find("flag")
    assert flag is not None
    if scene.theme.sleep:
        _set(option, {"sleep_tolerance": 10 ** d.real(-4, 0)})
    elif not scene.theme.discrete:
        _set(flag, d.some(speculative=(0 if scene.exact else 0.1, "enable")))  # found by advances
    _set(compiler, d.some(
        boundmass=(0.05, d.real(0.1, 1)), boundinertia=(0.05, d.real(0.001, 0.02)), balanceinertia=(0.1, "true"),
        settotalmass=(0.05, d.real(1, 20)), fusestatic=(0.1, "true"), alignfree=(0.1, "true"),
        eulerseq=(0.2, d.pick(["zyx", "XYZ", "zxz"])), inertiafromgeom=(0.05, "true"),
    ))  # fmt: skip


def _change_joints(scene: Scene) -> None:
    """Limited joints have a ref, free ones springs, dampers and friction; springs soften, bodies have other stacks."""
    d = scene.draw
    for joint in _some(scene, "joint", 0.25):
        if "range" in joint.attrib and joint.get("type") in ("hinge", "slide"):
            _set(joint, {"ref": d.real(-0.3, 0.3)})
    for body in list(scene.root.iter("body")):
        for joint in [x for x in body.findall("freejoint") if d.chance(0.4)]:
            joint.tag = "joint"
            joint.attrib.pop("align", None)
            _set(joint, {"type": "free"} | d.some(
                stiffness=(0.5, d.polynomial(1, 20)), damping=(0.5, d.polynomial(0.01, 1)),
                armature=(0.3, d.real(0.001, 0.1)), frictionloss=(0.3, d.real(0.01, 1)),
            ))  # fmt: skip
        kinds = [joint.get("type") for joint in body.findall("joint")]
        if len(kinds) == 1 and kinds[0] in ("hinge", "slide") and d.chance(0.08):
            last = list(body).index(body.findall("joint")[-1])
            name = scene.name("joint")
            scene.joint_types[name] = "ball"
            body.insert(last + 1, ET.Element("joint", {"name": name, "type": "ball", "damping": text(d.real(0, 0.5))}))
    for element in [*_some(scene, "joint", 0.2), *_some(scene, "spatial", 0.2), *_some(scene, "fixed", 0.2)]:
        for name in ("stiffness", "damping"):
            if name in element.attrib and d.chance(0.5):
                linear = float(element.attrib[name].split()[0])
                _set(element, {name: [linear, *d.reals(2, -linear, linear)]})


def _change_geoms(scene: Scene) -> None:
    """Frictions of zero, weights of zero, masses of zero beside others, bodies that MuJoCo may not simplify."""
    d = scene.draw
    for geom in scene.root.iter("geom"):
        if "type" not in geom.attrib or geom.get("contype") == "0":
            continue  # a tendon's wrap, or one that touches nothing
        _set(geom, d.some(
            solmix=(0.1, 0), priority=(0.05, -1),
            friction=(0.1, d.pick([[0.0, 0, 0], [d.real(0.1, 1), 0, 0], [0, 0.01, 0.01]])),
        ))  # fmt: skip
    for body in scene.root.iter("body"):
        geoms = body.findall("geom")
        if len(geoms) > 1 and d.chance(0.1):
            geoms[0].attrib.pop("density", None)
            _set(geoms[0], {"mass": 0})
        if "mocap" not in body.attrib:
            _set(body, d.some(simple=(0.15, "false"), gravcomp=(0.05, -0.5)))


def _add_bodies(scene: Scene) -> None:
    """Add bodies that hang on mocap bodies, and planes and height fields in bodies that stand or are led."""
    d = scene.draw
    world = scene.root.find("worldbody")
    assert world is not None
    for body in list(world.findall("body")):
        if "mocap" in body.attrib and not scene.theme.sleep and d.chance(0.5):
            hung = add(body, "body", {"name": scene.name("body")}, d.position(0.2), d.orientation())
            name = scene.name("joint")
            scene.joint_types[name] = d.pick(["hinge", "ball", "slide"])
            add(hung, "joint", {"name": name, "type": scene.joint_types[name]}, d.some(damping=(0.5, d.real(0, 1))))
            geom: Attributes = {"name": scene.name("geom"), "type": d.pick(["sphere", "capsule", "box"])}
            add(hung, "geom", geom, {"size": d.reals(3, 0.03, 0.1)}, d.position(0.1))
            add(hung, "site", {"name": scene.name("site")}, d.position(0.1))
    if d.chance(0.25):
        place: Attributes = {"pos": [*d.reals(2, -0.3, 0.3), d.real(-0.3, 0)], "euler": d.reals(3, -0.2, 0.2)}
        body = add(world, "body", {"name": scene.name("body")}, place, d.some(mocap=(0.5, "true")))
        plane: Attributes = {"name": scene.name("geom"), "type": "plane", "size": [0, 0, 1]}
        if scene.names["hfield"] and not scene.exact and d.chance(0.5):
            plane = {"name": plane["name"], "type": "hfield", "hfield": scene.names["hfield"][0]}
            scene.names["height field"].append(scene.names["geom"][-1])
        add(body, "geom", plane, d.position(0.05), {"euler": d.reals(3, -0.1, 0.1)})


def _add_cameras(scene: Scene) -> None:
    """Add cameras of all projections, with few pixels: rays of rangefinders."""
    d = scene.draw
    bodies = [x for x in scene.root.iter() if x.tag in ("body", "worldbody")]
    for _ in range(d.pick([0, 0, 1, 2])):
        camera: Attributes = {"name": scene.name("camera"), "resolution": [d.integer(1, 3), d.integer(1, 3)]}
        camera |= d.pick([
            {"fovy": d.real(30, 80)}, {"projection": "orthographic", "fovy": d.real(0.1, 1)},
            {"sensorsize": [0.02, 0.03], "focal": d.reals(2, 0.01, 0.05), "principal": d.reals(2, -0.01, 0.01)},
            {"sensorsize": [0.02, 0.02], "focalpixel": d.reals(2, 1, 5), "principalpixel": d.reals(2, -1, 1)},
        ])  # fmt: skip
        add(d.pick(bodies), "camera", camera, d.position(0.3), d.orientation())
    if scene.names["mesh"] and d.chance(0.3):
        zone: Attributes = {"name": scene.name("zone"), "type": "mesh", "mesh": d.pick(scene.names["mesh"])}
        add(d.pick(bodies), "site", zone, d.position(0.2), d.orientation())


def _add_constraints(scene: Scene) -> None:
    """Add an equality with the world; pairs have rubbing springs of their own, and none at all."""
    d = scene.draw
    for pair in scene.root.iter("pair"):
        _set(pair, d.some(
            friction=(0.3, d.pick([[0.0, 0, 0, 0, 0], [d.real(0.1, 1), 0, 0.01, 0, 1e-3]])),
            solreffriction=(0.3, d.pick(REFERENCES)),
        ))  # fmt: skip
    section = scene.root.find("equality")
    assert section is not None
    for weld in section.findall("weld"):
        _set(weld, d.some(torquescale=(0.15, 0)))
    if d.chance(0.1):
        ends: Attributes = {"body1": "world", "body2": d.pick(scene.names["body"])}
        add(section, d.pick(["connect", "weld"]), {"anchor": d.reals(3, -0.3, 0.3)}, ends)


def _change_solver_parameters(scene: Scene) -> None:
    d = scene.draw
    for element in scene.root.iter():
        for name in element.attrib:
            if name.startswith("solref") and d.chance(0.2):
                _set(element, {name: d.pick(REFERENCES)})
            elif name.startswith("solimp") and d.chance(0.3):
                _set(element, {name: d.pick(IMPEDANCES)})
