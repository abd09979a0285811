"""Actuators of a model, of all kinds on all transmissions."""

from __future__ import annotations

from collections.abc import Callable

from random_models.draw import Attributes, Scene, add

Maker = Callable[[Scene], Attributes | None]
GEARS = {"hinge": 1, "slide": 1, "ball": 3, "free": 6}


def add_actuators(scene: Scene) -> None:
    """Add up to six actuators; one that finds nothing to act on is left out."""
    d, section = scene.draw, scene.section("actuator")
    for _ in range(d.integer(1, 6) if scene.theme.actuators else 0):
        kind = d.pick([*KINDS, "muscle", "general"])
        made = KINDS[kind](scene)
        if made is not None:
            add(section, kind, {"name": scene.name("actuator")}, _common(scene, kind, made), made)


def _common(scene: Scene, kind: str, made: Attributes) -> Attributes:
    """Return what actuators of most kinds have."""
    d = scene.draw
    common = d.some(group=(0.2, d.integer(0, 3)))
    if scene.theme.delays and d.chance(0.5):
        common |= {"delay": d.real(0.001, 0.03), "nsample": d.integer(8, 40), "interp": _interpolation(scene)}
    if kind in ("adhesion", "orientation"):
        return common
    controls = {"muscle": [0.0, 1.0], "damper": [0.0, d.real(0.1, 2)]}.get(kind, d.interval(0.1, 2))
    common |= d.some(ctrlrange=(1 if kind == "damper" else 0.4, controls))
    common |= d.some(forcerange=(0 if kind == "dcmotor" else 0.3, d.interval(0.1, 10)))
    if "site" not in made and "slidersite" not in made:
        common |= d.some(armature=(0.12, d.real(0.001, 0.05)), damping=(0.12, d.polynomial(0.01, 0.5)))
    return common


def _interpolation(scene: Scene) -> str:
    return scene.draw.pick(["zoh", "linear", "cubic"])


# ---- transmissions ----


def _joint(scene: Scene) -> Attributes | None:
    d, joints = scene.draw, list(scene.joint_types)
    if not joints:
        return None
    joint = d.pick(joints)
    count = GEARS[scene.joint_types[joint]]
    where: Attributes = {d.pick(["joint", "joint", "joint", "jointinparent"]): joint}
    return where | d.some(gear=(1 if count > 1 else 0.5, d.reals(count, -2, 2)))


def _scalar_joint(scene: Scene) -> Attributes | None:
    d, joints = scene.draw, scene.joints("hinge", "slide")
    return {"joint": d.pick(joints)} | d.some(gear=(0.5, d.real(-2, 2))) if joints else None


def _tendon(scene: Scene) -> Attributes | None:
    d, tendons = scene.draw, scene.names["tendon"]
    return {"tendon": d.pick(tendons)} | d.some(gear=(0.5, d.real(-2, 2))) if tendons else None


def _site(scene: Scene) -> Attributes | None:
    d, sites = scene.draw, scene.draw.sample(scene.names["site"], 2)
    if len(sites) < 2:
        return None
    site: Attributes = {"site": sites[0], "gear": d.reals(6, -2, 2)}
    return site | d.some(refsite=(0.5, sites[1]))


def _slider_crank(scene: Scene) -> Attributes | None:
    d, sites = scene.draw, scene.draw.sample(scene.names["site"], 2)
    if len(sites) < 2:
        return None
    return {"slidersite": sites[0], "cranksite": sites[1], "cranklength": d.real(0.2, 1)}


def transmission(scene: Scene) -> Attributes | None:
    """Return what an actuator acts on, or None where there is no such thing."""
    return scene.draw.pick([_joint, _joint, _joint, _tendon, _tendon, _site, _site, _slider_crank])(scene)


# ---- kinds ----


def _motor(scene: Scene) -> Attributes | None:
    return transmission(scene)


def _position(scene: Scene) -> Attributes | None:
    d, where = scene.draw, transmission(scene)
    if where is None:
        return None
    damping: list[Attributes] = [{}, {"kv": d.real(0, 1)}, {"dampratio": d.real(0.2, 1)}]
    return where | {"kp": d.real(0.5, 20)} | d.pick(damping) | d.some(timeconst=(0.3, d.real(0.005, 0.1)))


def _velocity(scene: Scene) -> Attributes | None:
    where = transmission(scene)
    return None if where is None else where | {"kv": scene.draw.real(0.01, 0.5)}


def _intvelocity(scene: Scene) -> Attributes | None:
    d, where = scene.draw, transmission(scene)
    if where is None:
        return None
    return where | {"kp": d.real(0.5, 20), "actrange": d.interval(0.1, 1)} | d.some(kv=(0.5, d.real(0, 1)))


def _cylinder(scene: Scene) -> Attributes | None:
    d, where = scene.draw, transmission(scene)
    if where is None:
        return None
    bias = [d.real(-1, 1), -d.real(0, 2), -d.real(0, 0.2)]
    return where | {"timeconst": d.real(0.01, 0.2), "area": d.real(0.5, 2), "bias": bias}


def _muscle(scene: Scene) -> Attributes | None:
    d = scene.draw
    where = _tendon(scene) if d.chance(0.7) else _scalar_joint(scene)
    if where is None:
        return None
    shortest = d.real(0.1, 0.3) if "tendon" in where else -d.real(0.5, 1)
    where["lengthrange"] = [shortest, shortest + d.real(0.3, 1.5)]
    where |= d.some(
        force=(0.6, d.real(1, 30)),
        timeconst=(0.5, [d.real(0.005, 0.03), d.real(0.02, 0.08)]),
        tausmooth=(0.4, d.real(0.01, 0.5)),
        range=(0.4, [d.real(0.5, 0.9), d.real(1, 1.3)]),
    )
    if d.chance(0.3):
        where |= {"lmin": d.real(0.3, 0.6), "lmax": d.real(1.4, 1.9), "vmax": d.real(1, 2.5)}
        where |= {"fpmax": d.real(0.8, 2), "fvmax": d.real(1.05, 1.6)}
    return where


def _adhesion(scene: Scene) -> Attributes | None:
    d = scene.draw
    if scene.theme.override:
        return None  # not supported in a model with gaps
    return {"body": d.pick(scene.names["body"]), "ctrlrange": [0, d.real(0.5, 2)], "gain": d.real(1, 10)}


def _pid(scene: Scene) -> Attributes | None:
    d, where = scene.draw, transmission(scene)
    if where is None:
        return None
    return (
        where
        | {"kp": d.real(0.5, 20), "kv": d.real(0, 1)}
        | d.some(
            ki=(0.7, d.real(0.1, 10)),
            imax=(0.4, d.real(0.01, 1)),
            slewmax=(0.3, d.real(0.1, 10)),
            input=(0.3, d.pick(["pos", "pos vel", "pos ff", "pos vel ff"])),
        )
    )


def _dcmotor(scene: Scene) -> Attributes | None:
    d, where = scene.draw, transmission(scene)
    if where is None:
        return None
    if d.chance(0.3):
        gains = [d.real(0, 3), d.real(0, 3), d.real(0, 2), d.pick([0, 3]), d.pick([0, 0.3]), d.real(1, 5)]
        where |= {"input": d.pick(["pos", "pos vel", "pos vel ff voltage"]), "controller": gains}
    friction = [d.real(1, 100), d.real(0.01, 0.5), d.real(0.005, 0.05), d.real(0.02, 0.1), d.real(0.01, 0.1)]
    return (
        where
        | {"motorconst": d.reals(d.pick([1, 2]), 0.02, 0.3), "resistance": d.real(0.5, 5)}
        | d.some(
            inductance=(0.4, d.real(1e-4, 0.05)),
            cogging=(0.3, [d.real(0.001, 0.05), d.integer(1, 12), d.real(-1, 1)]),
            lugre=(0.3, friction),
            thermal=(0.2, [d.real(1, 3), d.real(0.5, 2), d.real(0, 0.1), d.real(0.001, 0.01), 20, d.real(20, 40)]),
            saturation=(0.2, d.real(0.1, 1)),
        )
    )


def _orientation(scene: Scene) -> Attributes | None:
    d, balls, sites = scene.draw, scene.joints("ball"), scene.draw.sample(scene.names["site"], 2)
    if balls and d.chance(0.7):
        where: Attributes = {"joint": d.pick(balls)}
    elif len(sites) == 2 and not scene.theme.sleep:
        where = {"site": sites[0], "refsite": sites[1]}
    else:
        return None
    return where | {"kp": d.real(0.5, 10), "kv": d.real(0, 0.5)} | d.some(input=(0.3, d.pick(["quat", "expmap"])))


def _general(scene: Scene) -> Attributes | None:
    d, where = scene.draw, transmission(scene)
    if where is None:
        return None
    dynamics = d.pick(["none", "none", "integrator", "filter", "filterexact", "muscle"])
    where["dyntype"] = dynamics
    if dynamics in ("filter", "filterexact"):
        where["dynprm"] = d.real(0.005, 0.1)
    elif dynamics == "muscle":
        where["dynprm"] = [d.real(0.005, 0.03), d.real(0.02, 0.08), d.pick([0, 0.2])]
    if dynamics != "none":
        where |= d.some(actrange=(0.4, d.interval(0.1, 1)), actearly=(0.4, "true"))
    gain = [d.real(-5, 5), d.real(-3, 3), d.real(-0.5, 0.5)]
    bias = [d.real(-1, 1), -d.real(0, 10), -d.real(-0.1, 1)]
    where |= d.pick([{"gaintype": "fixed", "gainprm": gain[:1]}, {"gaintype": "affine", "gainprm": gain}])
    return where | d.pick([{"biastype": "none"}, {"biastype": "affine", "biasprm": bias}])


KINDS: dict[str, Maker] = {
    "motor": _motor,
    "position": _position,
    "velocity": _velocity,
    "intvelocity": _intvelocity,
    "damper": _velocity,
    "cylinder": _cylinder,
    "muscle": _muscle,
    "general": _general,
    "adhesion": _adhesion,
    "pid": _pid,
    "dcmotor": _dcmotor,
    "orientation": _orientation,
}
