"""Sensors of a model."""

from __future__ import annotations

from collections.abc import Sequence

from random_models.draw import Attributes, Scene, add

# What a sensor is of: the attribute, and the names that it may have.
OF = {
    **dict.fromkeys(
        ("touch", "accelerometer", "velocimeter", "gyro", "force", "torque", "magnetometer", "rangefinder"),
        ("site", "site"),
    ),
    **dict.fromkeys(("jointpos", "jointvel", "jointactuatorfrc"), ("joint", "scalar joint")),
    **dict.fromkeys(("jointlimitpos", "jointlimitvel", "jointlimitfrc"), ("joint", "limited joint")),
    **dict.fromkeys(("ballquat", "ballangvel"), ("joint", "ball joint")),
    **dict.fromkeys(("tendonpos", "tendonvel", "tendonactuatorfrc"), ("tendon", "tendon")),
    **dict.fromkeys(("tendonlimitpos", "tendonlimitvel", "tendonlimitfrc"), ("tendon", "limited tendon")),
    **dict.fromkeys(("actuatorpos", "actuatorvel", "actuatorfrc"), ("actuator", "actuator")),
    **dict.fromkeys(("subtreecom", "subtreelinvel", "subtreeangmom"), ("body", "body")),
}
FRAMES = (
    "framepos", "framequat", "framexaxis", "frameyaxis", "framezaxis", "framelinvel", "frameangvel", "framelinacc",
    "frameangacc",
)  # fmt: skip
OTHERS = (
    "camprojection", "insidesite", "distance", "normal", "fromto", "contact", "e_potential", "e_kinetic", "clock",
    "tactile", "user",
)  # fmt: skip
# A unit vector or quaternion, a set of numbers, and a yes or no have no cutoff.
WHOLE = {
    "framequat", "framexaxis", "frameyaxis", "framezaxis", "ballquat", "normal", "fromto", "contact", "insidesite",
    "tactile",
}  # fmt: skip
CONTACT_DATA = ("found", "force", "torque", "dist", "pos", "normal", "tangent")


def add_sensors(scene: Scene) -> None:
    """Add up to fourteen sensors; one that finds nothing to measure is left out."""
    d, section = scene.draw, scene.section("sensor")
    scene.names["scalar joint"], scene.names["ball joint"] = scene.joints("hinge", "slide"), scene.joints("ball")
    for _ in range(d.integer(3, 14) if scene.theme.sensors else 0):
        kind = d.pick([*OF, *FRAMES, *OTHERS])
        measured = _measured(scene, kind)
        if measured is None:
            continue
        common = d.some(cutoff=(0 if kind in WHOLE else 0.15, d.real(0.05, 5)))
        if scene.theme.delays and kind != "user" and d.chance(0.3):
            common |= {"nsample": d.integer(8, 20), "delay": d.real(0.001, 0.02)}
            common |= {"interp": d.pick(["zoh", "linear", "cubic"])} | d.some(interval=(0.4, d.real(0.002, 0.02)))
        add(section, kind, {"name": scene.name("sensor")}, measured, common)


def _measured(scene: Scene, kind: str) -> Attributes | None:
    """Return what a sensor measures, or None where there is no such thing."""
    d, names = scene.draw, scene.names
    if kind in OF:
        attribute, of = OF[kind]
        return {attribute: d.pick(names[of])} if names[of] else None
    if kind in FRAMES:
        frame = _object(scene, "obj", ("body", "xbody", "geom", "site", "camera"))
        relative = not kind.endswith("acc") and d.chance(0.4)
        return frame | (_object(scene, "ref", ("body", "xbody", "geom", "site", "camera")) if relative else {})
    if kind == "camprojection":
        return {"camera": d.pick(names["camera"]), "site": d.pick(names["site"])} if names["camera"] else None
    if kind == "insidesite":
        return _object(scene, "obj", ("body", "geom", "site")) | {"site": d.pick(names["site"])}
    if kind in ("distance", "normal", "fromto"):
        geoms = d.sample([name for name in names["geom"] if name not in names["height field"]], 2)
        if len(geoms) < 2 or (scene.exact and set(geoms) & set(names["searched geom"])):
            return None
        return {"geom1": geoms[0], "geom2": geoms[1], "cutoff": d.real(0.5, 2)}
    if kind == "tactile":
        felt = names["colliding geom"] if names["mesh"] else []
        return {"geom": d.pick(felt), "mesh": d.pick(names["mesh"])} if felt else None
    if kind == "user":
        return {"dim": d.integer(1, 7), "needstage": d.pick(["pos", "vel", "acc"])}
    return _contact(scene) if kind == "contact" else {}


def _object(scene: Scene, prefix: str, kinds: Sequence[str]) -> Attributes:
    """Return the type and the name of an object, such as `objtype` and `objname`."""
    d = scene.draw
    listed = {"xbody": "body"}
    kind = d.pick([kind for kind in kinds if scene.names[listed.get(kind, kind)]])
    return {f"{prefix}type": kind, f"{prefix}name": d.pick(scene.names[listed.get(kind, kind)])}


def _contact(scene: Scene) -> Attributes | None:
    """Return which contacts a sensor reports, and what of them."""
    d, names = scene.draw, scene.names
    if not names["geom"]:
        return None
    chosen = d.sample(CONTACT_DATA, d.integer(1, len(CONTACT_DATA)))
    report: Attributes = {"data": " ".join(x for x in CONTACT_DATA if x in chosen), "num": d.integer(1, 4)}
    report["reduce"] = d.pick(["none", "mindist", "maxforce", "netforce"])
    geom, body = d.pick(names["geom"]), d.pick(names["body"])
    first: list[Attributes] = [{"geom1": geom}, {"body1": body}, {"subtree1": body}, {"site": d.pick(names["site"])}]
    report |= d.pick(first)
    other: list[Attributes] = [{"geom2": d.pick(names["geom"])}, {"body2": d.pick(names["body"])}]
    return report if "site" in report or d.chance(0.7) else report | d.pick(other)
