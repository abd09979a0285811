"""Tendons, actuators and sensors that models of seeds from 10000 on have besides."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from random_models.actuator import transmission
from random_models.draw import Attributes, Draw, Scene, add, text
from random_models.sensor import CONTACT_DATA

RAY = ("dist", "dir", "origin", "point", "normal", "depth")
OBJECTS = ("body", "xbody", "geom", "site", "camera")
FRAMES = ("framepos", "framequat", "framexaxis", "framelinvel", "frameangvel")


def change_tendons(scene: Scene) -> None:
    """Side sites lie in other bodies, paths come back, joints do not count."""
    d = scene.draw
    section = scene.root.find("tendon")
    assert section is not None
    for wrap in section.iter("geom"):
        if "sidesite" in wrap.attrib and d.chance(0.3):
            wrap.set("sidesite", d.pick(scene.names["site"]))
    for tendon in section.findall("spatial"):
        path = list(tendon)
        if d.chance(0.1) and path[-1].tag == "site":
            ET.SubElement(tendon, "site", path[0].attrib)
    for tendon in section.findall("fixed"):
        for joint in tendon.findall("joint"):
            if d.chance(0.1):
                joint.set("coef", "0")


def change_actuators(scene: Scene) -> None:
    """Limits of servos of orientations, of several inputs and of adhesion; gears of slider-cranks, and of zero."""
    d = scene.draw
    section = scene.root.find("actuator")
    assert section is not None
    for x in section:
        more: Attributes = {}
        if x.tag == "orientation":
            more = d.some(
                forcerange=(0.5 if _may_saturate(scene) else 0, [0, d.real(0.1, 3)]),
                ctrlrange=(0.3, d.interval(0.1, 1)),
            )
        elif x.tag == "adhesion":
            more = d.some(forcerange=(0.4, [0, d.real(0.5, 5)]))
        elif x.tag == "pid":
            given = x.get("input", "pos vel").split()
            more = d.some(
                velrange=(0.4 if "vel" in given else 0, d.interval(0.1, 1)),
                ffrange=(0.4 if "ff" in given else 0, d.interval(0.1, 1)),
            )
        if "slidersite" in x.attrib:
            more |= d.some(gear=(0.4, d.real(-2, 2)))
        for name, value in more.items():
            x.set(name, text(value))


def _may_saturate(scene: Scene) -> bool:
    """Return whether servos of orientations may be at their limit: rounding decides there of implicit steps' slopes."""
    return not scene.exact or scene.theme.integrator in ("Euler", "RK4")


def add_more_actuators(scene: Scene) -> None:
    """Add muscles of all kinds of transmissions, motors of all kinds of inputs, servos that integrate."""
    d = scene.draw
    section = scene.root.find("actuator")
    assert section is not None
    for _ in range(d.pick([0, 0, 1, 2]) if scene.theme.actuators else 0):
        kind, made = d.pick([_muscle, _curves, _motor, _servo, _inherited])(scene)
        if made:
            late = {} if made.get("input") == "none" else _late(scene, 0.4)
            add(section, kind, {"name": scene.name("actuator")}, late, made)


def _late(scene: Scene, probability: float) -> Attributes:
    d = scene.draw
    if not scene.theme.delays or not d.chance(probability):
        return {}
    interpolation = d.pick(["zoh", "linear", "cubic"])
    return {"delay": d.real(0.001, 0.02), "nsample": d.integer(6, 30), "interp": interpolation}


def _lengths(d: Draw) -> Attributes:
    shortest = d.real(-0.5, 0.2)
    return {"lengthrange": [shortest, shortest + d.real(0.5, 1.5)]}


def _muscle(scene: Scene) -> tuple[str, Attributes]:
    d = scene.draw
    where = transmission(scene) or {}
    if "site" in where:
        return "muscle", {}
    return "muscle", where and where | _lengths(d) | {"force": d.real(1, 20)} | d.some(
        tausmooth=(0.3, d.real(0.01, 0.5))
    )


def _curves(scene: Scene) -> tuple[str, Attributes]:
    """Return gain or bias of a muscle beside other dynamics."""
    d = scene.draw
    where = transmission(scene) or {}
    if not where:
        return "general", {}
    curve = [0.75, 1.05, d.real(1, 20), 200, 0.5, 1.6, 1.5, 1.3, 1.2]
    where |= _lengths(d) | {
        "dyntype": d.pick(["none", "integrator", "filter", "filterexact"]),
        "dynprm": d.real(0.01, 0.1),
    }
    where |= d.pick([{"gaintype": "muscle", "gainprm": curve}, {"gaintype": "affine", "gainprm": d.reals(3, -3, 3)}])
    where |= d.pick([{"biastype": "muscle", "biasprm": curve}, {"biastype": "affine", "biasprm": d.reals(3, -2, 0)}])
    return "general", where


def _motor(scene: Scene) -> tuple[str, Attributes]:
    d = scene.draw
    where = transmission(scene) or {}
    if scene.theme.discrete or not where:
        return "dcmotor", {}
    inputs = d.pick(["voltage", "none", "vel", "ff", "vel ff", "pos ff", "ff voltage", "pos vel ff voltage"])
    where |= {"input": inputs}
    where |= d.pick(
        [
            {"nominal": [d.real(3, 24), d.real(0.2, 3), d.real(20, 200)]},
            {"motorconst": d.real(0.02, 0.3), "resistance": d.real(0.5, 5)},
        ]
    )
    if inputs not in ("voltage", "none"):
        integral = d.pick([0, d.real(0, 2)]) if "pos" in inputs else 0
        where |= {
            "controller": [
                d.real(0, 3) if "pos" in inputs else 0,
                integral,
                d.real(0, 2),
                d.pick([0, 3]),
                d.pick([0, 0.3]),
                d.pick([0, 2]),
            ]
        }
    electric = d.pick([[], [d.real(1e-4, 0.05)], [0, d.real(0.001, 0.02)]])
    if electric:
        where |= {"inductance": electric} | d.some(saturation=(0.5, [d.pick([0, 0.5]), d.pick([0, 2]), d.real(1, 50)]))
    return "dcmotor", where | d.some(
        thermal=(0.3, d.pick([[2, 0, 3, 0.004, 20, 30], [0, 1.5, 2, 0.004, 25, 20]])),
        lugre=(0.3, [d.real(1, 100), d.real(0.01, 0.5), d.real(0.005, 0.05), d.real(0.02, 0.1), d.real(0.01, 0.1)]),
    )


def _servo(scene: Scene) -> tuple[str, Attributes]:
    """Return a servo of an orientation that integrates its control, or one that is critically damped."""
    d = scene.draw
    balls, sites = scene.joints("ball"), d.sample(scene.names["site"], 2)
    where: Attributes = {"joint": d.pick(balls)} if balls and d.chance(0.7) else {}
    if not where and len(sites) == 2 and not scene.theme.sleep:
        where = {"site": sites[0], "refsite": sites[1]}
    if not where or scene.theme.sleep:
        return "general", {}
    stiff = d.real(0.5, 10)
    servo: Attributes = {
        "gaintype": "so3",
        "biastype": "so3",
        "gainprm": stiff,
        "biasprm": [0, -stiff, -d.real(0, 0.5)],
    }
    return "general", where | servo | {"dyntype": d.pick(["none", "integrator"])} | d.some(
        forcerange=(0.3 if _may_saturate(scene) else 0, [0, d.real(0.1, 3)])
    )


def _inherited(scene: Scene) -> tuple[str, Attributes]:
    """Return a servo whose range is that of its joint."""
    d = scene.draw
    limited = [x for x in scene.joints("hinge", "slide") if x in scene.names["limited joint"]]
    if not limited:
        return "position", {}
    where: Attributes = {"joint": d.pick(limited), "kp": d.real(0.5, 20), "inheritrange": d.real(0.5, 1.2)}
    kind = d.pick(["position", "intvelocity", "pid"])
    return kind, where | d.pick([{"kv": d.real(0, 1)}, {"dampratio": d.real(0.2, 1)}])


def add_more_sensors(scene: Scene) -> None:
    """Add sensors of rays, of contacts by velocities and subtrees, of distances of bodies, and of the world."""
    d = scene.draw
    section = scene.root.find("sensor")
    assert section is not None
    for _ in range(d.pick([0, 1, 2, 4]) if scene.theme.sensors else 0):
        kind, measured = d.pick([_range, _contacts, _distance, _frame, _subtree, _zone])(scene)
        if measured:
            add(section, kind, {"name": scene.name("sensor")}, measured, _late(scene, 0.3))


def _range(scene: Scene) -> tuple[str, Attributes]:
    d = scene.draw
    names = scene.names
    chosen = d.sample(RAY, d.integer(1, len(RAY)))
    data: Attributes = {"data": " ".join(x for x in RAY if x in chosen)}
    if names["camera"] and d.chance(0.7):
        return "rangefinder", data | {"camera": d.pick(names["camera"])}
    return "rangefinder", data | {"site": d.pick(names["site"])}


def _contacts(scene: Scene) -> tuple[str, Attributes]:
    d = scene.draw
    names = scene.names
    chosen = d.sample(data := (*CONTACT_DATA, "linvel", "angvel"), d.integer(1, 9))
    report: Attributes = {"data": " ".join(x for x in data if x in chosen), "num": d.integer(1, 4)}
    report["reduce"] = d.pick(["none", "mindist", "maxforce"])
    first, second = d.pick(names["body"]), d.pick(names["body"])
    matched: list[Attributes] = [
        {}, {"site": d.pick(names["site"]), "body2": second}, {"subtree1": first, "subtree2": second},
        {"subtree1": first, "subtree2": first}, {"body1": first, "subtree2": "world"}, {"subtree2": second},
        {"site": d.pick(names["site"]), "subtree2": second},
    ]  # fmt: skip
    return "contact", report | d.pick(matched)


def _distance(scene: Scene) -> tuple[str, Attributes]:
    d = scene.draw
    kind, ends = d.pick(["distance", "normal", "fromto"]), d.sample(scene.names["body"], 2)
    if len(ends) < 2 or scene.exact:
        return kind, {}
    return kind, {"body1": ends[0], "body2": ends[1], "cutoff": d.real(0.5, 2)}


def _frame(scene: Scene) -> tuple[str, Attributes]:
    d = scene.draw
    named = [kind for kind in OBJECTS if scene.names[kind.removeprefix("x")]]
    kind = d.pick(named)
    other: Attributes = {"objtype": kind, "objname": d.pick(scene.names[kind.removeprefix("x")])}
    world = d.pick(["body", "xbody"])
    if d.chance(0.5):
        return d.pick(FRAMES), {"objtype": world, "objname": "world", "reftype": kind, "refname": other["objname"]}
    return d.pick(FRAMES), other | {"reftype": world, "refname": "world"}


def _subtree(scene: Scene) -> tuple[str, Attributes]:
    d = scene.draw
    return d.pick(["subtreecom", "subtreelinvel", "subtreeangmom"]), {"body": "world"}


def _zone(scene: Scene) -> tuple[str, Attributes]:
    """Return whether something is in a zone that is a mesh, or what touches there."""
    d = scene.draw
    if not scene.names["zone"]:
        return "insidesite", {}
    zone = d.pick(scene.names["zone"])
    if d.chance(0.5):
        return "contact", {"site": zone, "data": "found dist pos", "num": 2}
    return "insidesite", {"objtype": "body", "objname": d.pick(scene.names["body"]), "site": zone}
