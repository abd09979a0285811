"""sinew.mujoco.rollout against mujoco.rollout: the same arguments, the same results."""

from __future__ import annotations

import concurrent.futures
import copy

import mujoco
import mujoco.rollout
import numpy as np
import pytest
import sinew.mujoco
from sinew.errors import ArgumentError, StateError, UnsupportedError

from bodies import body

FULL = int(mujoco.mjtState.mjSTATE_FULLPHYSICS)
CTRL = int(mujoco.mjtState.mjSTATE_CTRL)
MOCAP = int(mujoco.mjtState.mjSTATE_MOCAP_POS) | int(mujoco.mjtState.mjSTATE_MOCAP_QUAT)
FORCES = int(mujoco.mjtState.mjSTATE_QFRC_APPLIED) | int(mujoco.mjtState.mjSTATE_XFRC_APPLIED)
ACTIVE = int(mujoco.mjtState.mjSTATE_EQ_ACTIVE)


def begin(m: mujoco.MjModel, count: int, seed: int = 1) -> np.ndarray:
    d, rng = mujoco.MjData(m), np.random.default_rng(seed)
    states = np.empty((count, mujoco.mj_stateSize(m, FULL)))
    for row in states:
        mujoco.mj_resetData(m, d)
        mujoco.mj_integratePos(m, d.qpos, rng.normal(size=m.nv), 0.05)
        d.time, d.qvel[:], d.act[:] = rng.uniform(), 0.2 * rng.normal(size=m.nv), rng.uniform(0, 0.5, m.na)
        mujoco.mj_getState(m, d, row, FULL)
    return states


def controls(m: mujoco.MjModel, *rows: int, seed: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.05, 0.95, (*rows, m.nu))


def both(m, *args, threads: int = 0, **kwargs) -> tuple[np.ndarray, np.ndarray]:
    """Return the states of ours after those of sensors have been compared, and both with MuJoCo's."""
    first = m if isinstance(m, mujoco.MjModel) else m[0]
    data = [mujoco.MjData(first) for _ in range(max(1, threads))]
    ours = sinew.mujoco.rollout(m, data, *args, **kwargs)
    reference = mujoco.rollout.rollout(m, data, *args, **kwargs)
    for a, b in zip(ours, reference, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
    return ours


@pytest.mark.parametrize("name", ["hand", "reach", "cube", "ball", "mocap"])
def test_results_are_those_of_mujoco(name: str) -> None:
    m = body(name).reference
    state, _ = both(m, begin(m, 3), controls(m, 3, 20), threads=2)
    assert np.ptp(state[:, -1], axis=0).max() > 0.01


def test_buffers_and_rests_are_part_of_the_state() -> None:
    m = mujoco.MjModel.from_xml_string("""
    <mujoco><worldbody><body><joint name="a" axis="0 1 0" stiffness="4" springyield=".01"/><geom size=".1"
    pos=".2 0 0"/></body></worldbody><actuator><motor joint="a" delay=".008" nsample="5"/></actuator></mujoco>""")
    state, _ = both(m, begin(m, 3), controls(m, 3, 40))
    assert state.shape[-1] == 1 + 2 + m.nhistory + m.nplastic
    assert np.ptp(state[..., -1], axis=1).min() > 0.01


def test_rows_that_stand_for_all() -> None:
    m = body("cube").reference
    cases = [
        ((begin(m, 1)[0],), {}),
        ((begin(m, 4),), {"nstep": 3}),
        ((begin(m, 1), controls(m, 4, 5)), {}),
        ((begin(m, 4), controls(m, 5)), {}),
        ((begin(m, 4), controls(m)), {"nstep": 5}),
        ((begin(m, 4), controls(m, 4, 1)), {"nstep": 5}),
        ((begin(m, 2), 0.5), {"nstep": 3}) if m.nu == 1 else ((begin(m, 2),), {}),
        ((begin(m, 1),), {"initial_warmstart": np.zeros((3, m.nv)), "nstep": 2}),
        ((begin(m, 4), controls(m, 5)), {"nstep": 5, "chunk_size": 2, "persistent_pool": True}),
    ]
    for args, kwargs in cases:
        both(m, *args, **kwargs)


def test_results_go_into_arrays_of_the_caller() -> None:
    m = body("cube").reference
    d, begins, ctrl = mujoco.MjData(m), begin(m, 3), controls(m, 3, 6)
    expected, sensors = mujoco.rollout.rollout(m, d, begins, ctrl)
    state, sensordata = np.full_like(expected, 7), np.full_like(sensors, 7)
    got = sinew.mujoco.rollout(m, d, begins, ctrl, state=state, sensordata=sensordata)
    assert np.shares_memory(got[0], state) and np.shares_memory(got[1], sensordata)
    np.testing.assert_allclose(state, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(sensordata, sensors, rtol=1e-6, atol=1e-6)
    state[:] = 7
    got = sinew.mujoco.rollout([m] * 3, [d], begins, ctrl, nstep=6, state=state, skip_checks=True)
    assert got[1] is None and np.shares_memory(got[0], state)
    np.testing.assert_allclose(state, expected, rtol=1e-6, atol=1e-6)
    one = np.empty((6, expected.shape[2]))
    sinew.mujoco.rollout(m, d, begins[0], ctrl[0], state=one)
    np.testing.assert_allclose(one, expected[0], rtol=1e-6, atol=1e-6)


def test_models_of_each_rollout() -> None:
    m = body("cube").reference
    models = [copy.copy(m) for _ in range(3)]
    for i, other in enumerate(models):
        other.body_mass[1] *= 1 + i
        other.body_inertia[1] *= 1 + i
        other.opt.gravity[0] = i
        mujoco.mj_setConst(other, mujoco.MjData(other))
    state, _ = both([models[0], models[1], models[2], models[0]], begin(m, 1), controls(m, 15), threads=2)
    np.testing.assert_array_equal(state[0], state[3])
    assert np.abs(state[0] - state[1]).max() > 1e-3
    both([m], begin(m, 2), controls(m, 4))
    with pytest.raises(ArgumentError, match="length 2"):
        sinew.mujoco.rollout([m, m], mujoco.MjData(m), begin(m, 3))
    with pytest.raises(ArgumentError, match="compatible"):
        sinew.mujoco.rollout([m, body("ball").reference], mujoco.MjData(m), begin(m, 2))


def test_warm_starts() -> None:
    m = copy.copy(body("hand").reference)
    m.opt.iterations, m.opt.tolerance = 1, 0  # not at the solution: where it starts shows
    d = mujoco.MjData(m)
    d.ctrl[:] = 0.7
    for _ in range(150):
        mujoco.mj_step(m, d)
    state, warmstart = np.empty(mujoco.mj_stateSize(m, FULL)), d.qacc_warmstart.copy()
    mujoco.mj_getState(m, d, state, FULL)
    warm, cold = (sinew.mujoco.rollout(m, d, state, nstep=2, initial_warmstart=x)[0] for x in (warmstart, None))
    reference, _ = mujoco.rollout.rollout(m, d, state, nstep=2, initial_warmstart=warmstart)
    np.testing.assert_allclose(warm, reference, rtol=1e-6, atol=1e-6)
    assert np.abs(cold - warm).max() > 1e-9


def test_mocap_poses_as_controls() -> None:
    m = body("mocap").reference
    pose = np.array([0.1, -0.05, 1.1, 0.9, 0.1, 0, 0.2])
    state, _ = both(m, begin(m, 2), np.tile(pose, (2, 30, 1)), control_spec=MOCAP)
    assert state[0, -1, 3] > 1.01  # the load follows
    both(m, begin(m, 2), np.stack([pose, pose + 0.1])[:, None], control_spec=MOCAP, nstep=9)
    both(m, begin(m, 1), pose[:3], control_spec=int(mujoco.mjtState.mjSTATE_MOCAP_POS), nstep=9)
    moving = np.tile(pose, (1, 5, 1))
    moving[0, 3, 0] += 0.1
    with pytest.raises(UnsupportedError, match="MOCAP_POS changes"):
        sinew.mujoco.rollout(m, mujoco.MjData(m), begin(m, 1), moving, control_spec=MOCAP)


def test_inputs_that_there_are_not() -> None:
    m = body("mocap").reference
    spec = CTRL | FORCES | ACTIVE
    inputs = np.zeros(mujoco.mj_stateSize(m, spec))
    inputs[-1] = 1  # eq_active, as in the model
    both(m, begin(m, 1), inputs, control_spec=spec, nstep=4)
    for index, text in ((m.nu, "QFRC"), (m.nu + m.nv, "XFRC"), (-1, "EQ_ACTIVE")):
        changed = inputs.copy()
        changed[index] = 1 - changed[index]
        with pytest.raises(UnsupportedError, match=text):
            sinew.mujoco.rollout(m, mujoco.MjData(m), begin(m, 1), changed, control_spec=spec, nstep=4)


def test_a_rollout_that_diverges_repeats_its_last_state() -> None:
    m = body("cube").reference
    begins = begin(m, 3)
    ball = slice(1 + m.nq + 6, 1 + m.nq + 9)  # velocity of the ball joint
    begins[1, ball] = [300, 200, 500]
    state, sensordata = sinew.mujoco.rollout(m, mujoco.MjData(m), begins, nstep=200)
    assert np.isfinite(state).all() and np.isfinite(sensordata).all()
    assert begins[1, 0] < state[1, -1, 0] == state[1, -2, 0]
    assert state[0, -1, 0] > state[0, -2, 0] and state[2, -1, 0] > state[2, -2, 0]
    begins[1, ball] = 1e6
    state, _ = sinew.mujoco.rollout(m, mujoco.MjData(m), begins, nstep=3)
    np.testing.assert_array_equal(state[1], np.tile(begins[1], (3, 1)))


def test_controls_of_the_data_stand_where_none_are_given() -> None:
    m = body("cube").reference
    d = mujoco.MjData(m)
    d.ctrl[:] = 0.7
    ours = sinew.mujoco.rollout(m, d, begin(m, 2), nstep=9)[0]
    d.ctrl[:] = 0.7
    np.testing.assert_allclose(ours, mujoco.rollout.rollout(m, d, begin(m, 2), nstep=9)[0], rtol=1e-6, atol=1e-6)


def test_nothing_else_of_the_data_plays_a_role() -> None:
    m = body("mocap").reference
    d = mujoco.MjData(m)
    first, _ = sinew.mujoco.rollout(m, d, begin(m, 2), nstep=5)
    d.mocap_pos[:], d.qvel[:], d.qfrc_applied[:] = 3, 1, 1
    second, _ = sinew.mujoco.rollout(m, d, begin(m, 2), nstep=5)
    np.testing.assert_array_equal(first, second)


def test_edits_of_the_model_take_effect() -> None:
    m = copy.copy(body("cube").reference)
    first, _ = both(m, begin(m, 1), nstep=10)
    m.opt.gravity[2] = -3
    second, _ = both(m, begin(m, 1), nstep=10)
    assert np.abs(first - second).max() > 1e-3


def test_no_steps() -> None:
    m = body("cube").reference
    state, sensordata = both(m, begin(m, 4), nstep=0)
    assert state.shape[:2] == sensordata.shape[:2] == (4, 0)
    with pytest.raises(ArgumentError, match="dimension 1 inferred as 0"):
        sinew.mujoco.rollout(m, mujoco.MjData(m), begin(m, 4), controls(m, 4, 3), nstep=0)


def test_threads_of_the_caller() -> None:
    m = body("cube").reference
    begins, ctrl = begin(m, 2), controls(m, 2, 10)
    expected, _ = sinew.mujoco.rollout(m, mujoco.MjData(m), begins, ctrl)

    def work(_: int) -> np.ndarray:
        return sinew.mujoco.rollout(m, mujoco.MjData(m), begins, ctrl)[0]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for state in pool.map(work, range(20)):
            np.testing.assert_array_equal(state, expected)


def test_the_object() -> None:
    m = body("cube").reference
    data = [mujoco.MjData(m), mujoco.MjData(m)]
    expected, _ = sinew.mujoco.rollout(m, data, begin(m, 3), nstep=4)
    with sinew.mujoco.Rollout(nthread=2) as it:
        np.testing.assert_array_equal(it.rollout(m, data, begin(m, 3), nstep=4)[0], expected)
        with pytest.raises(ArgumentError, match="Length of data: 1"):
            it.rollout(m, data[:1], begin(m, 3))
    with pytest.raises(StateError, match="shutdown"):
        it.rollout(m, data, begin(m, 3))
    with pytest.raises(ArgumentError, match="More than one data"):
        sinew.mujoco.Rollout().rollout(m, data, begin(m, 3))
    sinew.mujoco.shutdown_persistent_pool()


def test_wrong_arguments() -> None:
    m = body("cube").reference
    d, begins = mujoco.MjData(m), begin(m, 2)
    cases = [
        ((m, [], begins), {}, "empty"),
        ((m, d, "state"), {}, "must be a numpy array or float"),
        ((m, d, begins, "control"), {}, "control must be a numpy array or float"),
        ((m, d, begins, np.zeros((2, 3, 4, 5))), {}, "at most 3 dimensions"),
        ((m, d, begins[:, 1:]), {}, f"initial_state must be {begins.shape[1]}"),
        ((m, d, begins, np.zeros((1, 3, m.nu + 1))), {}, f"control must be {m.nu}, got {m.nu + 1}"),
        ((m, d, begins, np.zeros((3, 3, m.nu))), {}, "dimension 0 inferred as 2 but control has 3"),
        ((m, d, begins), {"nstep": -1}, "non-negative"),
        ((m, d, begins), {"nstep": 1.5}, "integer"),
        ((m, d, begins), {"nstep": False}, "integer"),
        ((m, d, begins), {"chunk_size": 0}, "positive"),
        ((m, d, begins), {"chunk_size": 1.5}, "integer"),
        ((m, d, begins), {"control_spec": int(mujoco.mjtState.mjSTATE_ACT)}, "mjSTATE_USER"),
        ((m, d, begins), {"initial_warmstart": np.zeros((2, m.nv + 1))}, "initial_warmstart"),
        ((m, d, begins), {"state": np.zeros((1, 3, begins.shape[1]))}, "state has the rows"),
        (([], d, begins), {}, "model"),
        ((m, [None], begins), {}, "MjData"),
        ((m, mujoco.MjData(body("ball").reference), begins), {}, "compatible"),
        ((m, d, begins * np.nan), {}, "nan"),
    ]
    for args, kwargs, text in cases:
        with pytest.raises(ValueError, match=text):
            sinew.mujoco.rollout(*args, **kwargs)
