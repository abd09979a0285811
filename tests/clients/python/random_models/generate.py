"""A whole model of a seed."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from random_models.actuator import add_actuators
from random_models.asset import add_assets
from random_models.constraint import add_contacts, add_equalities
from random_models.draw import Draw, Scene, Theme, add
from random_models.more import add_more
from random_models.option import add_option
from random_models.sensor import add_sensors
from random_models.tendon import add_tendons
from random_models.worldbody import add_worldbody


def random_model(seed: int, exact: bool = False) -> str:
    """Return the MJCF of a seed.

    MuJoCo refuses a few of them: what its compiler checks, such as inertias of thin meshes, is left to it.

    Parameters
    ----------
    seed : int
        The same one gives the same model.
    exact : bool
        Geoms whose contacts are searched by iterations touch nothing: where a search ends has a slope of its own,
        which differences have and derivatives do not.

    Returns
    -------
    str
        MJCF, an element a line.
    """
    draw = Draw(seed)
    scene = Scene(draw, Theme(draw, seed), exact)
    add(scene.root, "compiler", {"angle": "radian", "autolimits": "true"})
    for section in (
        add_option, add_assets, add_worldbody, add_contacts, add_tendons, add_equalities, add_actuators, add_sensors,
    ):  # fmt: skip
        section(scene)
    add_more(scene, seed)
    ET.indent(scene.root)
    return ET.tostring(scene.root, encoding="unicode")
