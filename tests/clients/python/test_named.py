"""Named access of models, beside MuJoCo's."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import sinew
from sinew.errors import ArgumentError, NotFoundError

import scenes

KINDS = {
    "body": "nbody",
    "joint": "njnt",
    "geom": "ngeom",
    "site": "nsite",
    "tendon": "ntendon",
    "actuator": "nactuator",
    "sensor": "nsensor",
    "keyframe": "nkey",
    "equality": "neq",
}


@pytest.fixture(scope="module")
def zoo() -> sinew.Model:
    return sinew.Model.from_string(scenes.ZOO)


@pytest.fixture(scope="module")
def theirs() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(scenes.ZOO)


def attributes(view) -> list[str]:
    return [x for x in dir(view) if not x.startswith("_") and x not in ("id", "name")]


@pytest.mark.parametrize("kind", KINDS)
def test_views_are_mujocos(zoo: sinew.Model, theirs: mujoco.MjModel, kind: str) -> None:
    compared = 0
    for i in range(getattr(zoo, KINDS[kind])):
        ours, other = getattr(zoo, kind)(i), getattr(theirs, kind)(i)
        assert (ours.id, ours.name) == (other.id, other.name)
        for attribute in set(attributes(ours)) & set(attributes(other)):
            mine, expected = (
                getattr(ours, attribute),
                np.asarray(getattr(other, attribute)),
            )
            if (kind, attribute) == (
                "joint",
                "bodyid",
            ):  # MuJoCo has it for each degree of freedom
                expected = expected[:1]
            assert mine.shape == expected.shape, attribute
            np.testing.assert_array_equal(mine, expected, err_msg=attribute)
            compared += 1
    assert compared >= 3 * getattr(zoo, KINDS[kind])


def test_tendons_have_their_arrays(zoo: sinew.Model, theirs: mujoco.MjModel) -> None:
    for i in range(zoo.ntendon):  # MuJoCo's own views have few of them
        for attribute in ("range", "stiffness", "damping", "solref_lim", "length0", "adr", "lengthspring"):
            expected = np.atleast_1d(getattr(theirs, f"tendon_{attribute}")[i])
            np.testing.assert_array_equal(getattr(zoo.tendon(i), attribute), expected, err_msg=attribute)


def test_by_name(zoo: sinew.Model, theirs: mujoco.MjModel) -> None:
    for kind in KINDS:
        for i, name in enumerate(zoo.names(kind)):
            if name:
                assert getattr(zoo, kind)(name).id == i == getattr(theirs, kind)(name).id
    assert zoo.joint("elbow").id == zoo.joint(np.int32(2)).id == 2
    np.testing.assert_array_equal(zoo.joint("elbow").range, np.deg2rad([-60, 100]))
    assert zoo.joint("elbow").qposadr == 11 and zoo.joint("elbow").dofadr == 9
    np.testing.assert_array_equal(zoo.tendon("rope").range, [0, 2])
    np.testing.assert_array_equal(zoo.actuator("direct").ctrlrange, [-2, 2])
    assert "elbow" in repr(zoo.joint("elbow")) and "range" in repr(zoo.joint("elbow"))


@pytest.mark.parametrize(
    "key,error,text",
    [
        ("elbw", NotFoundError, "no joint 'elbw'; did you mean 'elbow'"),
        ("", NotFoundError, "no joint ''"),
        (4, NotFoundError, "no joint 4: it has 4"),
        (-1, NotFoundError, "no joint -1"),
        (2**70, NotFoundError, "no joint"),
        (1.5, ArgumentError, "joint: 1.5"),
        (None, ArgumentError, "joint: None"),
    ],
)
def test_wrong_keys(zoo: sinew.Model, key, error, text: str) -> None:
    with pytest.raises(error, match=text):
        zoo.joint(key)
    assert issubclass(NotFoundError, LookupError)


def test_wrong_attributes(zoo: sinew.Model) -> None:
    joint = zoo.joint("elbow")
    with pytest.raises(AttributeError, match="'rang'; did you mean 'range'"):
        _ = joint.rang
    with pytest.raises(AttributeError, match="cannot be changed"):
        joint.range = [0, 1]
    with pytest.raises(AttributeError, match="cannot be changed"):
        joint.name = "knee"
    with pytest.raises(ValueError, match="read-only"):
        joint.range[0] = 1
