"""sinew.Batch against bodies that are stepped alone, against mujoco.batch, and against MuJoCo's steps."""

from __future__ import annotations

import copy
import os
import pickle

import mujoco
import mujoco.batch
import numpy as np
import pytest
import sinew
from sinew.errors import ArgumentError, NotFoundError, SimulationError, StateError, UnsupportedError

from bodies import CUBE, body, controls, states
from processes import interrupt, resident

NSIM = 5
KEYS = """<keyframe>
  <key qpos="0 0 .3 1 0 0 0 1 0 0 0 .2" time="2" ctrl=".1 .2"/><key qvel="1 0 0 0 0 0 0 0 0 0"/>
</keyframe>"""
CUBE_KEYS = CUBE.replace("</mujoco>", KEYS + "</mujoco>")


@pytest.fixture
def cube() -> sinew.Model:
    return sinew.Model.from_string(CUBE_KEYS)


def spread(batch: sinew.Batch, name: str, seed: int) -> list[sinew.Data]:
    """Put simulations into states of their own, and return bodies in the same."""
    b = body(name)
    state = states(b, batch.nsim, seed)
    bodies = []
    for i in range(batch.nsim):
        data = sinew.Data(batch.model)
        for part, rows in state.items():
            setattr(data, part, rows[i])
        bodies.append(data)
    for part, rows in state.items():
        setattr(batch, part, rows)
    return bodies


# ---- steps ----


@pytest.mark.parametrize("name", ["hand", "cube", "ball", "mocap", "reach"])
@pytest.mark.parametrize("threads", [1, 3])
def test_simulations_are_bodies_bit_for_bit(name: str, threads: int) -> None:
    b = body(name)
    batch = sinew.Batch(b.model, NSIM, threads)
    bodies = spread(batch, name, 1)
    ctrl = controls(b, NSIM, 12, 2)
    outputs = {field: batch.bind(field) for field in ("xpos", "qacc", "site_xpos", "ncon", "actuator_force")}
    for t in range(6):
        batch.ctrl = ctrl[:, t]
        batch.step()
    record = batch.rollout(6, ctrl[:, 6:], record=("qpos", "act", "xpos", "time"))
    for i, data in enumerate(bodies):
        for t in range(12):
            data.ctrl = ctrl[i, t]
            data.step()
            if t >= 6:
                assert np.array_equal(record["qpos"][i, t - 6], data.qpos)
                assert np.array_equal(record["act"][i, t - 6], data.act)
                assert np.array_equal(record["xpos"][i, t - 6], data.xpos)
                assert record["time"][i, t - 6] == data.time
        for field in ("qpos", "qvel", "act", "qacc_warmstart", "ctrl"):
            assert np.array_equal(batch.bind(field)[i], getattr(data, field)), field
        assert batch.time[i] == data.time
        for field, rows in outputs.items():
            assert np.array_equal(rows[i], getattr(data, field)), field


def test_numbers_are_those_of_the_batch_of_mujoco() -> None:
    b = body("cube")
    ours, theirs = sinew.Batch(b.model, NSIM), mujoco.batch.Batch(b.reference, NSIM, 1)
    state = states(b, NSIM, 3)
    ctrl = controls(b, NSIM, 20, 4)
    for batch in (ours, theirs):
        for part, rows in state.items():
            setattr(batch, part, rows)
    fields = ("qpos", "qvel", "act", "xpos", "sensordata")
    got, want = ours.rollout(20, ctrl, record=fields), theirs.rollout(20, ctrl, record=fields)
    for field in fields:
        assert got[field].shape == want[field].shape
        assert np.abs(got[field] - want[field]).max() < 1e-6, field
    for field in ("xpos", "xquat", "sensordata", "qfrc_bias", "time", "ctrl", "mocap_pos"):
        assert ours.bind(field).shape == theirs.bind(field).shape, field
    ours.step(nstep=3)
    theirs.step(nstep=3)
    for field in ("qpos", "xpos", "sensordata", "qfrc_bias"):
        assert np.abs(ours.bind(field) - theirs.bind(field)).max() < 1e-6, field
    for batch in (ours, theirs):
        batch.forward()
    for field in ("qpos", "xpos", "sensordata", "qfrc_bias"):
        assert np.abs(ours.bind(field) - theirs.bind(field)).max() < 1e-6, field


def test_only_the_simulations_that_are_named_move(cube: sinew.Model) -> None:
    batch = sinew.Batch(cube, 4)
    batch.step([1, 3])
    assert batch.time.tolist() == [0, 0.005, 0, 0.005]
    batch.step(np.array([True, False, False, False]), nstep=2)
    assert batch.time.tolist() == [0.01, 0.005, 0, 0.005]
    batch.step([])
    got = batch.rollout(3, np.zeros((2, 3, 2)), ids=[0, 2])
    assert got["qpos"].shape == (2, 3, 12)
    assert np.array_equal(got["qpos"][:, -1], batch.qpos[[0, 2]])


def test_reset_goes_to_qpos0_or_keyframes(cube: sinew.Model) -> None:
    batch = sinew.Batch(cube, 4)
    top = batch.site("top").xpos
    batch.step(nstep=5)
    batch.reset([1, 2, 3], [-1, 0, 1])
    assert batch.time[0] > 0
    assert np.array_equal(batch.qpos[1], cube.qpos0)
    assert np.array_equal(batch.qpos[2], cube.key_qpos[0])
    assert batch.time[2] == 2
    assert batch.ctrl[2].tolist() == [0.1, 0.2]
    assert batch.qvel[3, 0] == 1
    assert top[2, 2] == pytest.approx(0.3)
    batch.reset()
    assert not batch.time.any()


def test_sensordata_is_that_of_the_begin_of_the_last_step(cube: sinew.Model) -> None:
    batch = sinew.Batch(cube, 2)
    sensors = batch.sensordata
    batch.ctrl = 0.5
    batch.step(nstep=4)
    data = sinew.Data(cube)
    data.ctrl[:] = 0.5
    data.step(3)
    data.forward()
    assert np.array_equal(sensors[1], data.sensordata)


# ---- fields ----


def test_fields_are_live_and_outputs_cannot_be_written(cube: sinew.Model) -> None:
    batch = sinew.Batch(cube, 3)
    assert batch.bind("qpos") is batch.qpos
    assert batch.qpos.flags.writeable
    batch.qvel = np.arange(10.0)
    assert np.array_equal(batch.qvel[2], np.arange(10.0))
    xpos = batch.xpos
    assert not xpos.flags.writeable
    assert not xpos.any()
    batch.forward()
    assert xpos.any()
    with pytest.raises(AttributeError, match="xpos is an output"):
        batch.xpos = 0
    with pytest.raises(ArgumentError, match="ctrl: "):
        batch.ctrl = np.zeros(3)
    with pytest.raises(AttributeError, match="qpoz"):
        batch.qpoz = 1
    with pytest.raises(AttributeError, match="did you mean 'xpos'"):
        batch.xpoz  # noqa: B018
    with pytest.raises(NotFoundError, match=r"expand\('body_mass'\)"):
        batch.bind("body_mass")
    with pytest.raises(NotFoundError, match="change from step to step"):
        batch.bind("efc_force")


def test_named_views_are_slices_of_all_simulations(cube: sinew.Model) -> None:
    batch = sinew.Batch(cube, 3)
    theirs = mujoco.batch.Batch(mujoco.MjModel.from_xml_string(CUBE_KEYS), 3, 1)
    batch.joint("hinge").qpos = [[0.1], [0.2], [0.3]]
    theirs.joint("hinge").qpos = [[0.1], [0.2], [0.3]]
    pairs = [
        (x.joint("hinge").qpos, x.joint("ball").qvel, x.body("cube").xpos, x.body("cube").mass, x.site("top").xpos,
         x.joint("hinge").damping, x.actuator(0).force, x.geom(1).size)
        for x in (batch, theirs)
    ]  # fmt: skip
    batch.forward()
    theirs.forward()
    for ours, other in zip(*pairs, strict=True):
        assert ours.shape == other.shape
        assert np.allclose(ours, other, atol=1e-9)
    with pytest.raises(NotFoundError, match="no joint 'elbow'"):
        batch.joint("elbow")


# ---- models ----


def test_simulations_have_models_of_their_own(cube: sinew.Model) -> None:
    masses = np.array([0.5, 1.0, 2.0])
    batch = sinew.Batch(cube, 3)
    plain = batch.get_model(0)
    assert plain is cube
    assert batch.expanded("body_mass") is None
    rows = batch.expand("body_mass")
    hinge = cube.joint("hinge").id
    batch.expand("dof_damping")[2] *= 3
    rows[:, 1] = masses
    batch.joint("hinge").qpos = 0.4
    batch.ctrl = 0.3
    batch.step(nstep=20)
    assert np.array_equal(batch.expanded("body_mass"), rows)
    for i, mass in enumerate(masses):
        m = mujoco.MjModel.from_xml_string(CUBE)
        m.body_mass[1] = mass
        if i == 2:
            m.dof_damping *= 3
        m.opt.tolerance = 0
        d = mujoco.MjData(m)
        d.qpos[m.jnt_qposadr[hinge]] = 0.4
        d.ctrl[:] = 0.3
        mujoco.mj_step(m, d, 20)
        assert np.abs(batch.qpos[i] - d.qpos).max() < 1e-6
        assert batch.get_model(i).body_mass[1] == mass
    assert batch.get_model(1) is batch.get_model(1)
    assert batch.body("cube").mass.ravel().tolist() == masses.tolist()
    # A simulation goes back to numbers of before, and another one stays.
    kept = batch.get_model(2)
    rows[0, 1] = 1.0
    batch.step()
    assert batch.get_model(0).body_mass[1] == 1
    assert batch.get_model(2) is kept


def test_constants_follow_from_numbers_of_each_simulation(cube: sinew.Model) -> None:
    batch = sinew.Batch(cube, 3)
    masses = [0.5, 1.0, 2.0]
    batch.body("cube").mass = np.reshape(masses, (3, 1))
    batch.set_const()
    batch.step(nstep=20)
    for i, mass in enumerate(masses):
        m = mujoco.MjModel.from_xml_string(CUBE)
        m.body_mass[1] = mass
        d = mujoco.MjData(m)
        mujoco.mj_setConst(m, d)
        m.opt.tolerance = 0
        for name in ("dof_M0", "dof_invweight0", "body_invweight0"):
            assert np.allclose(getattr(batch.get_model(i), name), getattr(m, name), rtol=1e-9), name
        mujoco.mj_resetData(m, d)
        mujoco.mj_step(m, d, 20)
        assert np.abs(batch.qpos[i] - d.qpos).max() < 1e-6


def test_options_can_differ(cube: sinew.Model) -> None:
    batch = sinew.Batch(cube, 3)
    batch.expand("opt.timestep")[:] = [0.001, 0.002, 0.003]
    batch.step()
    assert batch.time.tolist() == [0.001, 0.002, 0.003]


def test_models_of_the_caller(cube: sinew.Model) -> None:
    batch = sinew.Batch(cube, 3)
    heavy = cube.replace(body_mass=2 * cube.body_mass)
    batch.set_models([cube, heavy, cube])
    assert batch.models == (cube, heavy, cube)
    assert batch.body("cube").mass.ravel().tolist() == [1, 2, 1]
    batch.ctrl = 1
    batch.step(nstep=5)
    assert np.array_equal(batch.qpos[0], batch.qpos[2])
    assert not np.array_equal(batch.qpos[0], batch.qpos[1])
    with pytest.raises(StateError, match="set_models"):
        batch.expand("body_mass")
    with pytest.raises(ArgumentError, match="2 of them, expected 3"):
        batch.set_models([cube, cube])
    now = batch.state
    for wrong, text in ((body("ball").model, "another size of"), ("cube", r"models\[2\]: str")):
        with pytest.raises(ArgumentError, match=text):
            batch.set_models([heavy, heavy, wrong])
    batch.step()  # with the models of before
    first = {name: rows[0] for name, rows in vars(now).items()}
    alone = sinew.rollout(cube, first, np.ones((1, 2)))
    assert np.array_equal(batch.qpos[0], alone.qpos[1])
    batch.set_models([heavy, None, heavy])
    assert np.array_equal(batch.body("cube").mass[:, 0], [m.body("cube").mass[0] for m in (heavy, cube, heavy)])
    batch.set_models(None)
    assert batch.models is None
    assert batch.get_model(1) is cube


def test_what_cannot_differ_is_refused(cube: sinew.Model) -> None:
    batch = sinew.Batch(cube, 2)
    with pytest.raises(UnsupportedError):
        batch.expand("jnt_qposadr")
    with pytest.raises(NotFoundError, match="did you mean"):
        batch.expand("body_masss")
    with pytest.raises(NotFoundError, match=r"bind\('xpos'\)"):
        batch.expand("xpos")
    with pytest.raises(NotFoundError, match="no option 'speed'"):
        batch.expand("opt.speed")
    batch.expand("body_mass")[1] = -1
    with pytest.raises(ArgumentError, match="body_mass"):
        batch.step()


# ---- errors ----


def test_simulations_that_diverge_are_named_and_keep_their_state(cube: sinew.Model) -> None:
    batch = sinew.Batch(cube, 4)
    batch.qvel[2, 0] = np.nan
    before = batch.qpos.copy()
    with pytest.raises(SimulationError, match=r"1 of 4 simulations failed \(2\); simulation 2: ") as raised:
        batch.step(nstep=10)
    assert raised.value.ids.tolist() == [2]
    assert batch.status.tolist() == [0, 0, 10, 0]
    assert "nan" in batch.error(2)
    assert batch.error(0) == ""
    assert batch.time[[0, 1, 3]] == pytest.approx(0.05)
    assert np.array_equal(batch.qpos[2], before[2])
    batch.reset([2])
    batch.step()
    assert not batch.status.any()


def test_records_of_diverged_simulations_repeat_the_last_state(cube: sinew.Model) -> None:
    batch = sinew.Batch(cube, 2)
    batch.qvel[1, 0] = 1e9
    got = batch.rollout(30, record=("qpos", "time"))
    assert batch.status.tolist() == [0, 10]
    assert np.isfinite(got["qpos"]).all()
    good = int(np.argmax(got["time"][1] == got["time"][1, -1]))
    assert (got["qpos"][1, good:] == got["qpos"][1, good]).all()
    assert np.array_equal(batch.qpos[1], got["qpos"][1, -1])


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda b: b.step([4]), "ids: 4, allowed is 0 to 3"),
        (lambda b: b.step([-1]), "ids: -1, allowed"),
        (lambda b: b.step([1, 1]), "sorted and unique"),
        (lambda b: b.step([0.5]), "ids: expected indices"),
        (lambda b: b.step([True]), r"ids: a mask of shape \(1,\)"),
        (lambda b: b.step(nstep=-1), "nstep: -1"),
        (lambda b: b.step(nstep=1.5), "nstep: 1.5"),
        (lambda b: b.rollout(0), "nstep: 0"),
        (lambda b: b.rollout(3, np.zeros((3, 3))), r"control: shape \(3, 3\), expected \(3, 2\) or \(4, 3, 2\)"),
        (lambda b: b.rollout(3, out={"qpos": np.zeros((4, 3, 11))}), "out: 'qpos' must be"),
        (lambda b: b.rollout(3, out={"qvel": np.zeros((4, 3, 10))}), "out: 'qvel' is not recorded: qpos"),
        (lambda b: setattr(b, "ctrl", None), "^ctrl: numbers of type object"),
        (lambda b: setattr(b, "qpos", [1, 2]), "qpos: could not broadcast"),
        (lambda b: b.reset(keyframe=2), "keyframe: 2, allowed is -1 to 1"),
        (lambda b: b.reset([0], [0, 1]), "keyframe: expected an index"),
        (lambda b: b.get_model(4), "simulation 4, allowed"),
        (lambda b: b.error(-1), "simulation -1"),
        (lambda b: b.vjp(np.zeros((3, 3))), "ctrl: shape"),
    ],
)
def test_wrong_input_is_refused_in_words(cube: sinew.Model, call, text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        call(sinew.Batch(cube, 4))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_batches_are_not_copied(cube: sinew.Model, copied) -> None:
    with pytest.raises(TypeError, match="a Batch is neither copied nor pickled"):
        copied(sinew.Batch(cube, 2))


def test_batches_that_cannot_be_made_are_refused(cube: sinew.Model) -> None:
    with pytest.raises(ArgumentError, match="nsim: 0, allowed is 1 to"):
        sinew.Batch(cube, 0)
    with pytest.raises(ArgumentError, match="threads: -1"):
        sinew.Batch(cube, 1, -1)
    with pytest.raises(ArgumentError, match="model: str"):
        sinew.Batch("cube.xml", 1)
    with pytest.raises(UnsupportedError, match="device: 'cuda'"):
        sinew.Batch(cube, 1, device="cuda")


# ---- derivatives ----


def test_derivatives_are_those_of_rollouts(cube: sinew.Model) -> None:
    batch = sinew.Batch(cube, 3)
    spread(batch, "cube", 5)
    ctrl = np.random.default_rng(6).uniform(size=(3, 7, 2))
    bar = np.random.default_rng(7).normal(size=(3, 8, 12))
    before = batch.qpos.copy()
    got = batch.vjp(ctrl, qpos=bar)
    want = sinew.rollout_vjp(sinew.rollout(cube, batch.state, ctrl), qpos=bar)
    assert np.array_equal(batch.qpos, before)
    for part in ("ctrl", "qpos", "qvel", "act"):
        assert np.array_equal(getattr(got, part), getattr(want, part))
    heavy = cube.replace(body_mass=2 * cube.body_mass)
    batch.set_models([cube, heavy, cube])
    mixed = batch.vjp(ctrl, qpos=bar)
    state = {k: v[1] for k, v in vars(batch.state).items()}
    alone = sinew.rollout_vjp(sinew.rollout(heavy, state, ctrl[1]), qpos=bar[1])
    assert np.array_equal(mixed.ctrl[[0, 2]], got.ctrl[[0, 2]])
    assert np.array_equal(mixed.ctrl[1], alone.ctrl)


# ---- processes, signals, memory ----


def test_a_child_of_fork_is_told(cube: sinew.Model) -> None:
    batch = sinew.Batch(cube, 2, threads=2)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        text = "no error"
        try:
            batch.step()
        except StateError as error:
            text = str(error)
        del batch
        os.write(writing, text.encode())
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert "fork()" in os.read(reading, 1000).decode()
    batch.step()
    os.close(reading)
    os.close(writing)


STEPS_UNTIL_INTERRUPTED = """
import sys
import numpy as np
import sinew
from bodies import body

batch = sinew.Batch(body("reach").model, 2, threads=2)
batch.step()
if sys.argv[1] == "the main thread waits":
    batch.qpos[0] = np.nan  # which ends its first simulation at once
before = batch.qpos.copy()


def call():
    batch.step(nstep=1000000)


def check():
    assert np.array_equal(batch.qpos, before, equal_nan=True)
    batch.step(ids=[1])
"""


@pytest.mark.parametrize("case", ["all threads step", "the main thread waits"])
def test_ctrl_c_ends_a_call(case: str) -> None:
    interrupt(STEPS_UNTIL_INTERRUPTED, case)


def test_calls_leave_memory_where_it_was(cube: sinew.Model) -> None:
    batch = sinew.Batch(cube, 4, threads=2)
    masses = batch.expand("body_mass")

    def work(calls: int) -> None:
        for i in range(calls):
            if i % 100 == 0:
                masses[i % 4, 1] += 0.01
                sinew.Batch(cube, 3, threads=2).step()
            batch.step()
            batch.rollout(2, record=("qpos", "xpos"))

    work(1000)
    before = resident()
    work(10000)
    assert resident() - before < 4 << 20
