"""Options and flags of a model."""

from __future__ import annotations

from random_models.draw import Attributes, Scene, add

# Probabilities with which flags are turned from their default.
DISABLED = {
    "constraint": 0.02, "equality": 0.04, "frictionloss": 0.05, "limit": 0.05, "contact": 0.05, "spring": 0.05,
    "damper": 0.05, "gravity": 0.05, "clampctrl": 0.08, "warmstart": 0.1, "filterparent": 0.15, "actuation": 0.04,
    "refsafe": 0.1, "midphase": 0.1, "eulerdamp": 0.15, "island": 0.3, "multiccd": 0.15, "autoreset": 0.1,
}  # fmt: skip
ENABLED = {"energy": 0.3, "fwdinv": 0.05, "invdiscrete": 0.1, "diagexact": 0.08}


def add_option(scene: Scene) -> None:
    """Add `option`. Searches end late: what an engine rounds otherwise must not be their error."""
    d, theme = scene.draw, scene.theme
    attributes: Attributes = {
        "timestep": d.pick([0.001, 0.002, 0.004]),
        "integrator": theme.integrator,
        "cone": d.pick(["pyramidal", "elliptic"]),
        "solver": d.pick(["Newton", "Newton", "CG", "PGS"]),
        "jacobian": "sparse",  # a dense one leaves rows of zeros out
        "tolerance": 1e-12,
        "iterations": 200,
        "ls_iterations": 100,
        "ccd_tolerance": 1e-12,
        "ccd_iterations": 500,
    }
    attributes |= d.some(
        impratio=(0.3, d.real(0.5, 20)),
        gravity=(0.3, [*d.reals(2, -5, 5), d.real(-12, 3)]),
        magnetic=(0.3, d.reals(3, -1, 1)),
        actuatorgroupdisable=(0.1, d.pick(["1", "2", "1 3"])),
        noslip_iterations=(0.2, d.integer(1, 8)),
        noslip_tolerance=(0.6, 0),
    )
    if theme.fluid:
        attributes |= {"density": d.pick([0, 1.2, 1000]), "viscosity": d.pick([0, 1e-3, 0.1])}
        attributes |= d.some(wind=(0.5, d.reals(3, -3, 3)))
    if theme.override:
        attributes |= {
            "o_margin": d.real(0, 0.02),
            "o_solref": [d.real(0.01, 0.04), d.real(0.6, 1.2)],
            "o_solimp": [d.real(0.3, 0.9), 0.95, d.real(0.001, 0.02), 0.5, 2],
            "o_friction": [*d.reals(2, 0.2, 1.5), 0.005, 1e-4, 1e-4],
        }
    flags: Attributes = {name: "disable" for name, p in DISABLED.items() if d.chance(p)}
    flags |= {name: "enable" for name, p in ENABLED.items() if d.chance(p)}
    flags |= {name: "enable" for name in ("override", "sleep") if getattr(theme, name)}
    if not theme.delays and d.chance(0.03):
        flags["sensor"] = "disable"
    if theme.discrete:
        attributes.pop("noslip_iterations", None)
        flags.pop("diagexact", None)
        if attributes["solver"] == "PGS":
            attributes["solver"] = "Newton"
    add(add(scene.root, "option", attributes), "flag", flags)
