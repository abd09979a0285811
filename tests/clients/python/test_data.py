"""One body, beside MuJoCo's bindings: arrays, steps, derivatives, bad input, threads, memory."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import time

import mujoco
import numpy as np
import pytest
import sinew
from sinew.data import Warnings
from sinew.errors import ArgumentError, DivergedError, NotFoundError, StateError, UnsupportedError

import scenes
from processes import resident

# Arrays that a step leaves out, and what MuJoCo does not fill beyond what is in use.
LEFT_OUT = ("xipos", "ximat", "geom_xpos", "geom_xmat", "site_xpos", "site_xmat", "subtree_com")
IN_USE = ("wrap_xpos", "wrap_obj", "ten_wrapadr")
# Of the pattern of the constraints' Jacobian MuJoCo has other zeros; its solver takes another way to the same solution.
# What sleeps is empty without flag sleep: test_sleep.py has it.
OTHERWISE = ("efc_J", "efc_state", "solver_niter", "tree_asleep", "sleep_qpos", *IN_USE)


BALL = """
<mujoco>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body pos="0 0 0.15"><freejoint/><geom size="0.1"/></body>
  </worldbody>
</mujoco>
"""


@pytest.fixture(scope="module")
def zoo() -> sinew.Model:
    return sinew.Model.from_string(scenes.ZOO)


@pytest.fixture(scope="module")
def theirs() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(scenes.ZOO)


@pytest.fixture
def data(zoo: sinew.Model) -> sinew.Data:
    data = sinew.Data(zoo)
    data.reset("bent")
    return data


@pytest.fixture
def other(theirs: mujoco.MjModel) -> mujoco.MjData:
    other = mujoco.MjData(theirs)
    mujoco.mj_resetDataKeyframe(theirs, other, 0)
    return other


def compare(data: sinew.Data, other: mujoco.MjData, tolerance: float = 1e-9) -> int:
    compared = 0
    for name in data.fields():
        if name.startswith(OTHERWISE):
            continue
        mine, expected = getattr(data, name), np.asarray(getattr(other, name))
        assert np.shape(mine) == expected.shape, name
        scale = 1 + np.abs(expected.astype(float)).max(initial=0)
        np.testing.assert_allclose(mine, expected, rtol=0, atol=tolerance * scale, err_msg=name)
        compared += 1
    return compared


def test_arrays_are_mujocos(data: sinew.Data, other: mujoco.MjData, theirs: mujoco.MjModel) -> None:
    mujoco.mj_forward(theirs, other)
    data.forward()
    assert compare(data, other) > 55
    assert data.ncon > 0 and data.nefc > data.ncon and data.nl + data.ne > 0
    assert data.efc_J.shape == (data.efc_J_rownnz.sum(),)


def test_steps_are_mujocos(data: sinew.Data, other: mujoco.MjData, theirs: mujoco.MjModel) -> None:
    data.ctrl = other.ctrl[:] = [0.3, -0.2, 0.01, 0.6]
    for _ in range(100):
        mujoco.mj_step(theirs, other)
        data.step()
    np.testing.assert_allclose(data.qpos, other.qpos, rtol=0, atol=1e-9)
    assert data.time == pytest.approx(other.time, abs=1e-12)
    again = sinew.Data(data.model)
    again.reset(0)
    again.ctrl = other.ctrl
    again.step(100)
    np.testing.assert_array_equal(again.qpos, data.qpos)


def test_what_is_not_in_the_list_is_computed_by_a_step(zoo: sinew.Model) -> None:
    data = sinew.Data(zoo)
    data.step()
    for name in data.fields():
        if name not in (*LEFT_OUT, *IN_USE, "ten_wrapnum", "sensordata"):
            assert np.all(np.isfinite(getattr(data, name))), name


@pytest.mark.parametrize("integrator", ["euler", "rk4", "implicit", "implicitfast"])
@pytest.mark.parametrize("steps", [1, 3, 200])
def test_arrays_that_steps_leave_out_are_there_when_asked_for(zoo: sinew.Model, integrator: str, steps: int) -> None:
    model = zoo.with_options(integrator=integrator)
    first, second = sinew.Data(model), sinew.Data(model)
    for data in (first, second):
        data.reset("bent")
    _ = second.geom_xpos  # from now on all is computed
    for data in (first, second):
        data.step(steps)
    first.ctrl = second.ctrl = [0.5, 0.5, 0.5, 0.5]  # of the step after
    state = first.state
    for name in LEFT_OUT:
        assert np.all(np.isfinite(getattr(first, name))), name
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name), err_msg=name)
    np.testing.assert_array_equal(first.qpos, state.qpos)
    np.testing.assert_array_equal(first.ctrl, second.ctrl)
    first.step(10)
    second.step(10)
    np.testing.assert_array_equal(first.qpos, second.qpos)
    np.testing.assert_array_equal(first.site_xpos, second.site_xpos)


def test_arrays_left_out_after_forward(data: sinew.Data) -> None:
    data.forward()
    data.qpos[0] += 1  # after the call whose outputs these are
    expected = sinew.Data(data.model)
    expected.reset("bent")
    _ = expected.geom_xpos
    expected.forward()
    np.testing.assert_array_equal(data.geom_xpos, expected.geom_xpos)
    assert data.qpos[0] == 1


@pytest.mark.parametrize("frames_first", [False, True])
def test_sensordata(data: sinew.Data, other: mujoco.MjData, theirs: mujoco.MjModel, frames_first: bool) -> None:
    assert np.all(np.isnan(sinew.Data(data.model).sensordata))
    mujoco.mj_step(theirs, other, 3)
    data.step(3)
    if frames_first:
        assert np.all(np.isfinite(data.geom_xpos))
    qpos = data.qpos.copy()
    np.testing.assert_allclose(data.sensordata, other.sensordata, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(data.qpos, qpos)
    mujoco.mj_step(theirs, other, 2)
    data.step(2)
    np.testing.assert_allclose(data.sensor("where").data, other.sensor("where").data, rtol=0, atol=1e-10)
    mujoco.mj_forward(theirs, other)
    data.forward()
    np.testing.assert_allclose(data.sensordata, other.sensordata, rtol=0, atol=1e-10)


def test_contacts_are_mujocos(data: sinew.Data, other: mujoco.MjData, theirs: mujoco.MjModel) -> None:
    data.step(50)
    data.forward()
    other.qpos, other.qvel, other.act = data.qpos, data.qvel, data.act
    mujoco.mj_forward(theirs, other)
    contacts = data.contacts
    assert len(contacts) == data.ncon == other.ncon > 2
    order = np.lexsort(contacts["pos"].T)
    expected = np.lexsort(other.contact.pos.T)
    for name in ("dist", "pos", "frame", "friction", "dim", "geom"):
        np.testing.assert_allclose(
            contacts[name][order], getattr(other.contact, name)[expected], rtol=0, atol=1e-9, err_msg=name
        )
    forces = np.zeros((other.ncon, 6))
    for i in range(other.ncon):
        mujoco.mj_contactForce(theirs, other, i, forces[i])
    np.testing.assert_allclose(contacts["force"][order], forces[expected], rtol=0, atol=1e-4)
    contacts["dist"] = 0  # a copy
    assert np.any(data.contacts["dist"] != 0)
    assert len(sinew.Data(data.model).contacts) == 0


def test_named_views_are_mujocos(data: sinew.Data, other: mujoco.MjData, theirs: mujoco.MjModel) -> None:
    mujoco.mj_forward(theirs, other)
    data.forward()
    compared = 0
    for kind, count in (
        ("body", 5),
        ("joint", 4),
        ("geom", 5),
        ("site", 3),
        ("tendon", 2),
        ("actuator", 4),
        ("sensor", 3),
    ):
        for i in range(count):
            ours, expected = getattr(data, kind)(i), getattr(other, kind)(i)
            for name in set(dir(ours)) & set(dir(expected)) - {"id", "name", "wrapadr"}:
                if name.startswith("_"):
                    continue
                value = np.asarray(getattr(expected, name))
                assert getattr(ours, name).shape == value.shape, (kind, name)
                np.testing.assert_allclose(getattr(ours, name), value, rtol=0, atol=1e-8 * (1 + np.abs(value).max()))
                compared += 1
    assert compared > 100


def test_named_views_are_live_and_written(data: sinew.Data) -> None:
    elbow = data.joint("elbow")
    qpos = elbow.qpos
    data.qpos[11] = 0.25
    assert qpos == 0.25
    elbow.qpos = 0.5
    assert data.qpos[11] == 0.5
    data.joint("shoulder").qvel = [1, 2, 3]
    np.testing.assert_array_equal(data.qvel[6:9], [1, 2, 3])
    data.actuator("servo").ctrl = 0.1
    assert data.ctrl[2] == 0.1
    data.actuator("muscle").act = 0.7
    assert data.act[1] == 0.7 and data.actuator("direct").act.shape == (0,)
    with pytest.raises(AttributeError, match="xpos is an output"):
        data.body("crate").xpos = 0
    with pytest.raises(ArgumentError, match="joint 'shoulder': qvel"):
        data.joint("shoulder").qvel = [1, 2]


def test_state(data: sinew.Data, other: mujoco.MjData) -> None:
    state = data.state
    assert state.time == 0.5
    np.testing.assert_array_equal(state.qpos, other.qpos)
    np.testing.assert_array_equal(state.mocap, np.concatenate([other.mocap_pos, other.mocap_quat], axis=1))
    data.step(20)
    assert not np.array_equal(data.qpos, state.qpos)
    data.set_state(state)
    np.testing.assert_array_equal(data.qpos, state.qpos)
    data.set_state({"qvel": np.ones(11)})
    np.testing.assert_array_equal(data.qpos, data.model.qpos0)
    assert data.time == 0 and np.all(data.qvel == 1)
    data.set_state(other)
    assert data.time == 0.5
    np.testing.assert_array_equal(data.act, other.act)
    data.reset()
    assert data.time == 0 and np.all(data.qvel == 0)


def test_writing(data: sinew.Data) -> None:
    data.qpos = np.arange(13)
    data.qvel = list(range(11))
    data.time = 3
    data.mocap_pos = [[1, 2, 3]]
    assert data.qpos[12] == 12 and data.qvel[10] == 10 and data.time == 3 and data.mocap_pos[0, 1] == 2
    data.ctrl, data.mocap_pos = 0.1, [4, 5, 6]  # one for all, as in MuJoCo
    assert np.all(data.ctrl == 0.1) and data.mocap_pos[0].tolist() == [4, 5, 6]
    data.qacc_warmstart[:] = 0
    with pytest.raises(ValueError, match="read-only"):
        data.xpos[0] = 1


@pytest.mark.parametrize(
    "name,value,error,text",
    [
        ("qpos", [1, 2, 3], ArgumentError, r"qpos: shape \(3,\), expected \(13,\)"),
        ("qpos", [[1] * 13] * 2, ArgumentError, r"qpos: shape \(2, 13\), expected \(13,\)"),
        ("mocap_pos", [1, 2], ArgumentError, r"mocap_pos: shape \(2,\), expected \(1, 3\)"),
        ("ctrl", "none", ArgumentError, "ctrl"),
        ("ctrl", None, ArgumentError, "ctrl"),
        ("time", [1, 2], ArgumentError, "time"),
        ("xpos", 0, AttributeError, "xpos: an output"),
        ("ncon", 0, AttributeError, "ncon: an output"),
        ("model", None, AttributeError, "model"),
        ("control", 0, AttributeError, "control"),
        ("qpo", 0, AttributeError, "did you mean 'qpos'"),
    ],
)
def test_wrong_writing(data: sinew.Data, name: str, value, error, text: str) -> None:
    with pytest.raises(error, match=text):
        setattr(data, name, value)


@pytest.mark.parametrize(
    "call,error,text",
    [
        (lambda d: d.xpo, AttributeError, "did you mean 'xpos'"),
        (lambda d: d.step(-1), ArgumentError, "steps is -1"),
        (lambda d: d.step(1.5), ArgumentError, "nstep: 1.5, expected a whole number"),
        (lambda d: d.step(2**40), ArgumentError, "nstep: 1099511627776 is out of range"),
        (lambda d: d.reset("straigt"), NotFoundError, "keyframe 'straigt'; did you mean 'straight'"),
        (lambda d: d.reset(2), NotFoundError, "keyframe 2: it has 2"),
        (lambda d: d.set_state({"qpos": [1]}), ArgumentError, "qpos: shape"),
        (lambda d: d.set_state({"position": [1]}), ArgumentError, "'position'"),
        (lambda d: d.set_state(3), ArgumentError, "int"),
        (lambda d: d.set_state({"qvel": np.full(11, np.nan)}), DivergedError, r"qvel\[0\] is nan"),
        (lambda d: d.vjp(qpos=np.ones(11)), ArgumentError, r"expected \(13,\)"),
        (lambda d: d.vjp(qpos=np.ones(13), coordinates="tangent"), ArgumentError, r"expected \(11,\)"),
        (lambda d: d.vjp(coordinates="polar"), ArgumentError, "'polar'"),
        (lambda d: d.vjp(qvel=np.full(11, np.inf)), ArgumentError, "inf"),
        (lambda d: d.distance("box", "sphere"), NotFoundError, "geom 'sphere'"),
        (lambda d: d.distance(0, 9), NotFoundError, "geom 9"),
        (lambda d: d.distance(0, 1), StateError, None),
        (lambda d: d.copy_state_from(sinew.Data(sinew.Model.from_string(scenes.PENDULUM))), ArgumentError, "models"),
        (lambda d: d.copy_state_from(None), ArgumentError, "other: NoneType, expected a sinew.Data"),
        (lambda d: sinew.Data(3), ArgumentError, "int"),
        (lambda d: d.set_cfd(True), ArgumentError, "cfd: bool, expected a sinew.CFD"),
        (lambda d: d.set_cfd(sinew.CFD(bodies=["ghost"])), NotFoundError, "ghost"),
    ],
)
def test_wrong_calls(data: sinew.Data, call, error, text: str | None) -> None:
    before = data.qpos.copy()
    with pytest.raises(error, match=text):
        call(data)
    np.testing.assert_array_equal(data.qpos, before)


def test_divergence(data: sinew.Data) -> None:
    data.ctrl[1] = np.nan
    with pytest.raises(DivergedError, match=r"ctrl\[1\] is nan"):
        data.step()
    assert data.warnings == Warnings.BAD_STATE
    data.clear_warnings()
    assert data.warnings == 0
    ball = sinew.Data(sinew.Model.from_string(BALL).with_options(gravity=(0, 0, 0)))
    ball.qvel[0] = 9e9
    with pytest.raises(DivergedError, match=r"after \d+ steps: .*step \d+ of \d+: qpos\[0\]"):
        ball.step(100000)
    assert 9.9e9 < ball.qpos[0] < 1e10
    assert np.all(np.isnan(ball.xipos[1]))  # there is no step that could be made again
    assert 9.9e9 < ball.qpos[0] < 1e10


def transition(theirs: mujoco.MjModel, other: mujoco.MjData) -> list[np.ndarray]:
    """Return A, B, C, D by MuJoCo's central differences."""
    n, nu, sensed = 2 * theirs.nv + theirs.na, theirs.nu, theirs.nsensordata
    blocks = [np.zeros((n, n)), np.zeros((n, nu)), np.zeros((sensed, n)), np.zeros((sensed, nu))]
    mujoco.mjd_transitionFD(theirs, other, 1e-6, True, *blocks)
    return blocks


@pytest.fixture
def smooth(zoo: sinew.Model, theirs: mujoco.MjModel) -> tuple[sinew.Data, mujoco.MjData, mujoco.MjModel]:
    """Return a body in the air, off its limits, moving, and MuJoCo's in the same state."""
    rng = np.random.default_rng(3)
    data, other = sinew.Data(zoo), mujoco.MjData(theirs)
    qpos = zoo.qpos0.copy()
    qpos[2], qpos[11] = 2, 0.3
    data.qpos = other.qpos[:] = zoo.integrate(qpos, 0.1 * rng.normal(size=zoo.nv))
    data.qvel = other.qvel[:] = 0.1 * rng.normal(size=zoo.nv)
    data.act = other.act[:] = [0.2, 0.4]
    data.ctrl = other.ctrl[:] = [0.1, 0.3, 0.02, 0.7]
    return data, other, theirs


def test_jacobian_is_that_of_differences(smooth) -> None:
    data, other, theirs = smooth
    expected = transition(theirs, other)
    found = data.jacobian(sensors=True)
    for mine, difference, name in zip(found, expected, "ABCD", strict=True):
        np.testing.assert_allclose(mine, difference, rtol=0, atol=2e-5 * (1 + np.abs(difference).max()), err_msg=name)
    for mine, again in zip(data.jacobian(), found, strict=False):
        np.testing.assert_array_equal(mine, again)
    assert data.time == 0


def test_vjp_is_the_jacobian_transposed(smooth) -> None:
    data, _, _ = smooth
    model, rng = data.model, np.random.default_rng(5)
    a, b, c, d = data.jacobian(sensors=True)
    bars = rng.normal(size=model.nstate)
    sensor_bar = rng.normal(size=model.nsensordata)
    nv = model.nv
    found = data.vjp(bars[:nv], bars[nv : 2 * nv], bars[2 * nv :], sensor_bar, coordinates="tangent")
    expected = bars @ a + sensor_bar @ c
    np.testing.assert_allclose(np.concatenate(found[:3]), expected, rtol=0, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_allclose(found.ctrl, bars @ b + sensor_bar @ d, rtol=0, atol=1e-9)
    nothing = data.vjp()
    assert all(np.all(part == 0) for part in nothing)


def test_vjp_by_entries_of_qpos(smooth) -> None:
    data, _, _ = smooth
    weights = np.random.default_rng(7).normal(size=data.model.nq)

    def value(qpos: np.ndarray) -> float:
        moved = copy.copy(data)
        moved.qpos = qpos
        moved.step()
        return float(weights @ moved.qpos)

    found, start = data.vjp(qpos=weights).qpos, data.qpos.copy()
    for i in range(data.model.nq):
        h = np.zeros_like(start)
        h[i] = 1e-6
        assert found[i] == pytest.approx((value(start + h) - value(start - h)) / 2e-6, abs=2e-6), i


def test_distances_are_mujocos(data: sinew.Data, other: mujoco.MjData, theirs: mujoco.MjModel) -> None:
    data.forward()
    mujoco.mj_forward(theirs, other)
    fromto = np.zeros(6)
    expected = mujoco.mj_geomDistance(theirs, other, 2, 4, 10, fromto)
    found = data.distance("box", "fist", jacobian=True)
    assert found.dist == pytest.approx(expected, abs=1e-6)
    np.testing.assert_allclose(found.fromto.ravel(), fromto, rtol=0, atol=1e-5)
    np.testing.assert_allclose(found.fromto[1] - found.fromto[0], found.dist * found.normal, atol=1e-12)
    assert found.jacobian is not None
    start = data.qpos.copy()
    for name, by in (
        ("dist", found.jacobian.dist),
        ("fromto", found.jacobian.fromto),
        ("normal", found.jacobian.normal),
    ):
        for i in range(data.model.nv):
            ends = []
            for h in (1e-6, -1e-6):
                data.qpos = data.model.integrate(start, np.eye(data.model.nv)[i], h)
                data.forward()
                ends.append(np.asarray(getattr(data.distance("box", "fist"), name)))
            np.testing.assert_allclose(by[..., i], (ends[0] - ends[1]) / 2e-6, rtol=0, atol=1e-6, err_msg=name)
    far = data.distance("box", "fist", limit=0.01)
    assert far.dist == 0.01 and not far.fromto.any() and far.jacobian is None


STACK = """<mujoco><option iterations="1"/><worldbody><geom type="plane" size="1 1 .1"/>
  <body pos="0 0 .19"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
  <body pos=".05 .05 .35"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
  <body pos="0 0 1"><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""


def test_what_a_step_left_out_is_that_of_its_own_settings_and_warns_no_more() -> None:
    data, alone = (sinew.Data(sinew.Model.from_string(STACK)) for _ in range(2))
    for x in (data, alone):
        x.step(3)
    assert data.warnings == Warnings.NOT_CONVERGED
    data.clear_warnings()
    data.set_cfd(sinew.CFD(forward=True))
    assert np.array_equal(data.geom_xpos, alone.geom_xpos)
    assert np.array_equal(data.qacc, alone.qacc) and data.ncon == alone.ncon
    assert data.warnings == 0
    for x in (data, alone):
        x.forward()
    assert data.ncon > alone.ncon


def test_contacts_from_distance_reach_derivatives() -> None:
    data = sinew.Data(sinew.Model.from_string(BALL))
    plain = data.jacobian()[0]
    data.set_cfd(sinew.CFD())
    near = data.jacobian()[0]
    assert plain[8, 2] == 0 and near[8, 2] != 0
    data.set_cfd(None)
    np.testing.assert_array_equal(data.jacobian()[0], plain)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda data: pickle.loads(pickle.dumps(data))])
def test_copies_have_contacts_from_distance(copied) -> None:
    data = sinew.Data(sinew.Model.from_string(BALL))
    data.set_cfd(sinew.CFD())
    np.testing.assert_array_equal(copied(data).jacobian()[0], data.jacobian()[0])
    data.set_cfd(None)
    np.testing.assert_array_equal(copied(data).jacobian()[0], data.jacobian()[0])


def test_a_sensor_without_a_derivative_is_refused() -> None:
    xml = scenes.PENDULUM.replace("</mujoco>", '<sensor><clock name="now"/></sensor></mujoco>')
    model = sinew.Model.from_string(xml)
    data = sinew.Data(model)
    if model.sensor_support("now").differentiable:
        data.jacobian(sensors=True)
    else:
        with pytest.raises(UnsupportedError, match="now"):
            data.jacobian(sensors=True)


def test_copies(data: sinew.Data) -> None:
    data.step(3)
    for other in (copy.copy(data), copy.deepcopy(data), pickle.loads(pickle.dumps(data))):
        np.testing.assert_array_equal(other.qpos, data.qpos)
        other.step(5)
        again = sinew.Data(data.model)
        again.copy_state_from(data)
        again.step(5)
        np.testing.assert_array_equal(other.qpos, again.qpos)
        assert other.time > data.time


def test_views_outlive_data_and_model() -> None:
    data = sinew.Data(sinew.Model.from_string(scenes.ZOO))
    data.forward()
    views = [data.qpos, data.xpos, data.geom_xpos, data.efc_J, data.joint("elbow").qpos]
    expected = [view.copy() for view in views]
    del data
    gc.collect()
    blocks = [np.full(20000, np.nan) for _ in range(100)]
    for view, value in zip(views, expected, strict=True):
        np.testing.assert_array_equal(view, value)
    views[0][:] = 1
    del blocks


def test_two_threads_on_one_body(data: sinew.Data) -> None:
    found: list[BaseException] = []
    begun = threading.Event()

    def run() -> None:
        begun.set()
        try:
            data.step(100000)
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    begun.wait()
    refused = 0
    while thread.is_alive():
        try:
            data.forward()
        except StateError as error:
            assert "in use" in str(error)
            refused += 1
        time.sleep(0.01)
        if refused >= 3:
            break
    thread.join()
    assert refused >= 1 or found


def test_many_bodies_on_many_threads(zoo: sinew.Model) -> None:
    expected = sinew.Data(zoo)
    expected.step(200)
    bodies = [sinew.Data(zoo) for _ in range(8)]
    threads = [threading.Thread(target=lambda body=body: [body.step(20) for _ in range(10)]) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for body in bodies:
        np.testing.assert_array_equal(body.qpos, expected.qpos)


def test_ten_thousand_calls_leave_memory_where_it_was() -> None:
    model = sinew.Model.from_string(scenes.PENDULUM)

    def calls(n: int) -> None:
        data = sinew.Data(model)
        for _ in range(n):
            data.step()
            data.jacobian()
            data.vjp(qpos=[1])
            _ = data.contacts, data.efc_J, data.state, data.joint("hinge").qpos, model.opt
            with pytest.raises(NotFoundError):
                model.joint("hinges")
            sinew.Data(model).forward()

    calls(500)
    gc.collect()
    before = resident()
    calls(10000)
    gc.collect()
    assert resident() - before < 2**21
