"""Models: loading, sizes, arrays, options, copies; beside MuJoCo's bindings."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
from pathlib import Path

import mujoco
import numpy as np
import pytest
import sinew
from sinew.errors import (
    ArgumentError,
    FileError,
    FormatError,
    NotFoundError,
    UnsupportedError,
)

import scenes

MESHES = ("mesh_vert", "mesh_poly", "mesh_extrema", "mesh_graph", "mesh_face", "mesh_normal")


@pytest.fixture(scope="module")
def zoo() -> sinew.Model:
    return sinew.Model.from_string(scenes.ZOO)


def compare_arrays(ours: sinew.Model, theirs: mujoco.MjModel) -> int:
    """Compare every array of a model with MuJoCo's; returns how many there were."""
    compared = 0
    for name in ours.fields():
        if name == "tree_asleep0":  # MuJoCo's data has it: test_sleep.py
            continue
        if name.startswith(MESHES):  # meshes that nothing can touch have no vertices
            continue
        mine, other = getattr(ours, name), np.asarray(getattr(theirs, name))
        assert mine.shape == other.shape, name
        if name == "geom_rgba":  # that of the material, where a geom has one
            material = theirs.geom_matid >= 0
            other = np.where(material[:, None], theirs.mat_rgba[theirs.geom_matid] if theirs.nmat else other, other)
        np.testing.assert_array_equal(mine, other, err_msg=name)
        assert not mine.flags.writeable, name
        compared += 1
    return compared


@pytest.mark.parametrize("name,theirs", scenes.models(), ids=lambda x: x if isinstance(x, str) else "")
def test_arrays_are_mujocos(name: str, theirs: mujoco.MjModel) -> None:
    ours = sinew.Model.from_mujoco(theirs)
    assert compare_arrays(ours, theirs) > 150
    for size in (
        "nq",
        "nv",
        "na",
        "nu",
        "nbody",
        "njnt",
        "ngeom",
        "nsite",
        "ntendon",
        "neq",
        "nmocap",
        "nkey",
    ):
        assert getattr(ours, size) == getattr(theirs, size)
    assert (ours.nsensor, ours.nsensordata) == (theirs.nsensor, theirs.nsensordata)
    assert ours.nstate == 2 * theirs.nv + theirs.na


def test_arrays_of_a_hand(myosuite: Path) -> None:
    path = str(myosuite / "envs/myo/assets/hand/myohand_baoding.xml")
    assert compare_arrays(sinew.Model.from_xml(path), mujoco.MjModel.from_xml_path(path)) > 150


def test_keyframes_of_one_number_are_rows() -> None:
    model = sinew.Model.from_string(scenes.PENDULUM.replace("</mujoco>", "<keyframe><key/><key/></keyframe></mujoco>"))
    assert (model.key_qpos.shape, model.key_ctrl.shape, model.key_time.shape) == (
        (2, 1),
        (2, 1),
        (2,),
    )


def test_every_way_to_load_gives_the_same(zoo: sinew.Model, tmp_path) -> None:
    spec = mujoco.MjSpec.from_string(scenes.ZOO)
    compiled = mujoco.MjModel.from_xml_string(scenes.ZOO)
    (tmp_path / "zoo.xml").write_text(scenes.ZOO)
    mujoco.mj_saveModel(compiled, str(tmp_path / "zoo.mjb"))
    zoo.save(tmp_path / "zoo.image")
    loaded = [
        sinew.Model.from_xml(tmp_path / "zoo.xml"),
        sinew.Model.load(tmp_path / "zoo.mjb"),
        sinew.Model.load(tmp_path / "zoo.image"),
        sinew.Model.read((tmp_path / "zoo.mjb").read_bytes()),
        sinew.Model.read((tmp_path / "zoo.image").read_bytes()),
        sinew.Model.from_mujoco(spec),
        sinew.Model.from_mujoco(compiled),
        pickle.loads(pickle.dumps(zoo)),
    ]
    for other in loaded:
        for name in zoo.fields():
            np.testing.assert_array_equal(getattr(other, name), getattr(zoo, name), err_msg=name)
        assert other.opt == zoo.opt
        assert other.names("joint") == zoo.names("joint")


def test_present_numbers_of_a_model_of_mujoco() -> None:
    theirs = mujoco.MjModel.from_xml_string(scenes.PENDULUM)
    theirs.body_mass[1] = 7
    assert sinew.Model.from_mujoco(theirs).body_mass[1] == 7


def test_includes_are_found_in_the_folder(tmp_path) -> None:
    (tmp_path / "part.xml").write_text('<mujocoinclude><body name="b"/></mujocoinclude>')
    xml = '<mujoco><worldbody><include file="part.xml"/></worldbody></mujoco>'
    assert sinew.Model.from_string(xml, tmp_path).names("body") == ["world", "b"]
    with pytest.raises(FileError):
        sinew.Model.from_string(xml, tmp_path / "nowhere")


def test_options_are_mujocos(zoo: sinew.Model) -> None:
    theirs = mujoco.MjModel.from_xml_string(scenes.ZOO).opt
    own = {name: value for name, value in vars(zoo.opt).items() if name.startswith("contact")}  # of the sigmoid
    assert own == {"contact": 0, "contact_width": 0.005, "contact_stiffness": 0.2, "contact_restitution": 0}
    for name in vars(zoo.opt).keys() - own.keys():
        np.testing.assert_array_equal(getattr(zoo.opt, name), getattr(theirs, name), err_msg=name)
    assert (zoo.opt.timestep, zoo.opt.gravity, zoo.opt.iterations) == (
        0.003,
        (0, 0.1, -9.8),
        50,
    )


def test_other_options(zoo: sinew.Model) -> None:
    other = zoo.with_options(timestep=0.01, integrator="rk4", gravity=np.array([0, 0, -1]), cone="Elliptic")
    assert (other.opt.timestep, other.opt.integrator, other.opt.cone) == (0.01, 1, 1)
    assert other.opt.gravity == (0, 0, -1)
    assert other.opt.tolerance == zoo.opt.tolerance
    assert zoo.opt.timestep == 0.003
    soft = zoo.with_options(contact_solref=(0.05, np.nan))
    np.testing.assert_array_equal(soft.geom_solref[:, 0], np.full(zoo.ngeom, 0.05))
    np.testing.assert_array_equal(soft.geom_solref[:, 1], zoo.geom_solref[:, 1])


@pytest.mark.parametrize(
    "change,error,text",
    [
        ({"timestep": -1}, ArgumentError, "timestep"),
        ({"timestep": "fast"}, ArgumentError, "timestep.*'fast'"),
        ({"timestep": [1, 2]}, ArgumentError, "timestep"),
        ({"timestep": None}, ArgumentError, "timestep"),
        ({"timestep": object()}, ArgumentError, "timestep"),
        ({"timesteps": 1}, ArgumentError, "'timesteps'; did you mean 'timestep'"),
        ({"gravity": 3}, ArgumentError, "gravity: expected 3"),
        ({"gravity": [1, 2]}, ArgumentError, "gravity: expected 3"),
        ({"gravity": [1, 2, np.nan]}, ArgumentError, "gravity"),
        ({"iterations": 1.5}, ArgumentError, "iterations.*whole"),
        ({"iterations": 2**40}, ArgumentError, "iterations"),
        ({"integrator": "heun"}, ArgumentError, "'heun'.*rk4"),
        ({"integrator": "discrete", "noslip_iterations": 1}, UnsupportedError, "discrete with noslip"),
        ({"integrator": 17}, UnsupportedError, "integrator"),
        ({"contact_solimp": np.inf}, ArgumentError, "contact_solimp"),
    ],
)
def test_wrong_options(zoo: sinew.Model, change, error, text) -> None:
    with pytest.raises(error, match=text):
        zoo.with_options(**change)


def test_other_arrays(zoo: sinew.Model) -> None:
    theirs = mujoco.MjModel.from_xml_string(scenes.ZOO)
    gain = zoo.actuator_gainprm.copy()
    gain[2, 0] = 50
    changes = {"body_mass": 2 * zoo.body_mass, "jnt_range": zoo.jnt_range / 2, "actuator_gainprm": gain}
    other = zoo.replace(**changes)
    for name, value in changes.items():
        getattr(theirs, name)[:] = value
        np.testing.assert_array_equal(getattr(other, name), value)
    data, expected = sinew.Data(other), mujoco.MjData(theirs)
    data.reset("bent")
    mujoco.mj_resetDataKeyframe(theirs, expected, 0)
    data.step(20)
    mujoco.mj_step(theirs, expected, 20)
    np.testing.assert_allclose(data.qpos, expected.qpos, rtol=0, atol=1e-7)
    same = sinew.Data(zoo)
    same.reset("bent")
    same.step(20)
    assert np.abs(same.qpos - data.qpos).max() > 1e-3
    assert zoo.body_mass[2] * 2 == other.body_mass[2]


@pytest.mark.parametrize(
    "change,error,text",
    [
        ({"body_mas": 1}, NotFoundError, "'body_mas'; did you mean 'body_mass'"),
        ({"body_mass": 1}, ArgumentError, r"body_mass: shape \(\), expected \(5,\)"),
        ({"body_mass": np.full(5, -1.0)}, ArgumentError, "body_mass"),
        ({"body_mass": np.full(5, np.nan)}, ArgumentError, "body_mass"),
        ({"jnt_type": np.zeros(4)}, UnsupportedError, "jnt_type"),
    ],
)
def test_wrong_arrays(zoo: sinew.Model, change, error, text) -> None:
    with pytest.raises(error, match=text):
        zoo.replace(**change)


def test_tangents_are_mujocos(zoo: sinew.Model) -> None:
    theirs = mujoco.MjModel.from_xml_string(scenes.ZOO)
    rng = np.random.default_rng(1)
    qpos, tangent = rng.normal(size=zoo.nq), rng.normal(size=zoo.nv)
    expected = qpos.copy()
    mujoco.mj_integratePos(theirs, expected, tangent, 0.3)
    moved = zoo.integrate(qpos, tangent, 0.3)
    np.testing.assert_allclose(moved, expected, rtol=0, atol=1e-15)
    start = zoo.integrate(qpos, np.zeros(zoo.nv))
    mujoco.mj_differentiatePos(theirs, expected := np.empty(zoo.nv), 1, start, moved)
    np.testing.assert_allclose(zoo.difference(start, moved), expected, rtol=0, atol=1e-14)
    with pytest.raises(ArgumentError, match=r"tangent: shape \(3,\), expected \(11,\)"):
        zoo.integrate(qpos, [1, 2, 3])
    with pytest.raises(ArgumentError, match="qpos"):
        zoo.integrate(qpos * np.nan, tangent)
    with pytest.raises(ArgumentError, match="qpos2"):
        zoo.difference(qpos, "no numbers")


def test_ranges_of_controls(zoo: sinew.Model) -> None:
    # MuJoCo takes the control of a muscle to be between 0 and 1.
    np.testing.assert_array_equal(zoo.ctrl_range, [[-2, 2], [-np.inf, np.inf], [-np.inf, np.inf], [0, 1]])


def test_sensors(zoo: sinew.Model) -> None:
    assert zoo.sensor_support("where") == (True, True)
    own = '<mujoco><worldbody/><sensor><user dim="2" needstage="pos"/></sensor></mujoco>'
    assert sinew.Model.from_string(own).sensor_support(0) == (True, False)


@pytest.mark.parametrize(
    "load,error",
    [
        (lambda: sinew.Model.from_xml("no such file.xml"), NotFoundError),
        (
            lambda: sinew.Model.from_string("<mujoco><worldbody><bodi/></worldbody></mujoco>"),
            FormatError,
        ),
        (lambda: sinew.Model.from_string(""), ArgumentError),
        (lambda: sinew.Model.from_string(b"<mujoco/>"), ArgumentError),
        (lambda: sinew.Model.from_string(Path("arm.xml")), ArgumentError),
        (lambda: sinew.Model.read(b"SINEW\0" + bytes(3000)), FormatError),
        (lambda: sinew.Model.from_mujoco(3), ArgumentError),
        (
            lambda: sinew.Model.from_string(scenes.ZOO.replace("implicitfast", 'discrete" noslip_iterations="1')),
            UnsupportedError,
        ),
        (lambda: sinew.Model.from_xml(None), TypeError),
        (lambda: sinew.Model.read("text"), TypeError),
        (lambda: sinew.Model(), TypeError),
    ],
)
def test_what_cannot_be_loaded(load, error) -> None:
    with pytest.raises(error):
        load()


def test_where_a_model_cannot_be_saved(zoo: sinew.Model, tmp_path) -> None:
    with pytest.raises(FileError):
        zoo.save(tmp_path / "no folder" / "x")


def test_names_that_are_wrong(zoo: sinew.Model) -> None:
    with pytest.raises(AttributeError, match="'body_mas'; did you mean 'body_mass'"):
        _ = zoo.body_mas
    assert not hasattr(zoo, "rgba")
    assert "body_mass" in dir(zoo) and "nq" in dir(zoo)
    with pytest.raises(ArgumentError, match="joints"):
        zoo.names("joints")


def test_a_model_cannot_be_changed(zoo: sinew.Model) -> None:
    with pytest.raises(AttributeError, match="nq"):
        zoo.nq = 3
    with pytest.raises(ValueError, match="read-only"):
        zoo.body_mass[0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        zoo.body_mass.flags.writeable = True


def test_copies(zoo: sinew.Model) -> None:
    assert copy.copy(zoo) is zoo and copy.deepcopy({"m": zoo})["m"] is zoo
    other = pickle.loads(pickle.dumps(zoo))
    assert other != zoo and len({zoo, other, zoo}) == 2
    assert "nq=13" in repr(zoo)


def test_a_view_outlives_its_model() -> None:
    mass = sinew.Model.from_string(scenes.ZOO).body_mass
    expected = mass.copy()
    gc.collect()
    blocks = [np.full(10000, np.nan) for _ in range(100)]
    np.testing.assert_array_equal(mass, expected)
    del blocks


def test_threads_read_one_model(zoo: sinew.Model) -> None:
    expected = {name: getattr(zoo, name).copy() for name in zoo.fields()}
    other = pickle.loads(pickle.dumps(zoo))
    wrong = []

    def read() -> None:
        for name in other.fields():
            if not np.array_equal(getattr(other, name), expected[name]):
                wrong.append(name)
        other.with_options(timestep=0.001)
        pickle.dumps(other)

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
