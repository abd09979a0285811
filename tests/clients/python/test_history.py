"""Buffers of controls and sensors in Python: states, bodies, rollouts and their derivatives, refusals."""

from __future__ import annotations

import numpy as np
import pytest
import sinew
from sinew.errors import ArgumentError, UnsupportedError

XML = """
<mujoco><option timestep="0.005"/>
<worldbody><body><joint name="a" axis="0 1 0" damping=".1"/><geom size=".05 .2" type="capsule" pos="0 0 -.2"/>
<body pos="0 0 -.4"><joint name="b" axis="0 1 0" damping=".1"/><geom size=".05 .2" type="capsule" pos="0 0 -.2"/>
</body></body></worldbody>
<actuator><motor name="late" joint="a" delay=".018" nsample="4" interp="linear"/>
<motor name="now" joint="b"/></actuator>
<sensor><jointpos joint="b" delay=".01" nsample="3"/><jointvel joint="a"/></sensor></mujoco>
"""
SAMPLES = [6, 7, 8, 9, 15, 16, 17]  # behind mark, cursor and times of each buffer


@pytest.fixture(scope="module")
def model() -> sinew.Model:
    return sinew.Model.from_string(XML)


def controls(steps: int) -> np.ndarray:
    return np.random.default_rng(1).uniform(-1, 1, (steps, 2))


def test_bodies_and_rollouts_have_mujocos_buffers(model: sinew.Model) -> None:
    mujoco = pytest.importorskip("mujoco")
    m = mujoco.MjModel.from_xml_string(XML)
    d = mujoco.MjData(m)
    data = sinew.Data(model)
    ctrl = controls(40)
    motion = sinew.rollout(model, None, ctrl)
    assert model.nhistory == m.nhistory == 18
    for t, u in enumerate(ctrl):
        np.testing.assert_allclose(motion.history[t], d.history, atol=1e-9)
        d.ctrl[:] = u
        mujoco.mj_step(m, d)
        np.testing.assert_allclose(motion.sensordata[t], d.sensordata, atol=1e-9)
        data.ctrl = u
        data.step()
    np.testing.assert_allclose(data.history, d.history, atol=1e-9)
    other = sinew.Data(model)
    other.set_state(data.state)
    np.testing.assert_array_equal(other.history, data.history)
    other.set_state(d)
    np.testing.assert_allclose(other.history, d.history)
    other.set_state(None)
    np.testing.assert_array_equal(other.history, sinew.Data(model).history)


def test_rollouts_go_on(model: sinew.Model) -> None:
    ctrl = controls(30)
    whole = sinew.rollout(model, None, ctrl)
    first = sinew.rollout(model, None, ctrl[:13])
    rest = sinew.rollout(model, first.last, ctrl[13:])
    np.testing.assert_array_equal(rest.qpos[-1], whole.qpos[-1])
    np.testing.assert_array_equal(rest.history[-1], whole.history[-1])
    many = sinew.rollout(model, {"history": np.tile(first.history[-1], (3, 1))}, ctrl[13:])
    assert many.history.shape == (3, 18, 18)


def test_gradients_go_through_buffers(model: sinew.Model) -> None:
    ctrl, rng = controls(20), np.random.default_rng(2)
    start = sinew.rollout(model, None, controls(9)).last
    weights = rng.normal(size=(21, 2))
    on_history = np.zeros((21, 18))
    on_history[:, SAMPLES] = rng.normal(size=(21, len(SAMPLES)))

    def number(history: np.ndarray, u: np.ndarray) -> float:
        motion = sinew.rollout(model, sinew.State(**{**vars(start), "history": history}), u)
        return float(np.sum(weights * motion.sensordata) + np.sum(on_history * motion.history))

    history = np.asarray(start.history)
    gradient = sinew.rollout_vjp(sinew.rollout(model, start, ctrl), sensordata=weights, history=on_history)
    assert gradient.history is not None
    for i in range(18):
        move = np.zeros(18)
        move[i] = 1e-6
        if i in SAMPLES:
            wanted = (number(history + move, ctrl) - number(history - move, ctrl)) / 2e-6
            assert gradient.history[i] == pytest.approx(wanted, abs=1e-6)
        else:
            assert gradient.history[i] == 0
    for t in (0, 7, 19):
        move = np.zeros_like(ctrl)
        move[t, 0] = 1e-6
        wanted = (number(history, ctrl + move) - number(history, ctrl - move)) / 2e-6
        assert gradient.ctrl[t, 0] == pytest.approx(wanted, abs=1e-6)


CLAY = """
<mujoco><option timestep="0.005" integrator="implicitfast"/>
<worldbody><body><joint name="a" axis="0 1 0" stiffness="4" springyield=".1" damping=".1"/>
<geom size=".05 .2" type="capsule" pos="0 0 -.2"/><body pos="0 0 -.4"><joint name="b" type="ball" stiffness="1"
springyield=".1" damping=".1"/><geom size=".05 .2" type="capsule" pos=".05 0 -.2"/></body></body></worldbody>
<actuator><motor joint="a" gear="4" delay=".01" nsample="2"/><motor joint="b" gear="1 1 0"/></actuator></mujoco>
"""


def test_rests_of_springs_that_yield_end_the_history() -> None:
    mujoco = pytest.importorskip("mujoco")
    model, m = sinew.Model.from_string(CLAY), mujoco.MjModel.from_xml_string(CLAY)
    d, data, ctrl = mujoco.MjData(m), sinew.Data(model), controls(60).repeat(5, axis=0)
    assert (model.nhistory, model.nplastic) == (m.nhistory + m.nplastic, m.nplastic) == (11, 5)
    np.testing.assert_array_equal(data.plastic, d.plastic)
    motion = sinew.rollout(model, None, ctrl)
    batch = sinew.Batch(model, 2)
    for t, u in enumerate(ctrl):
        np.testing.assert_allclose(motion.history[t], np.concatenate([d.history, d.plastic]), atol=1e-9)
        d.ctrl[:] = data.ctrl[:] = u
        batch.ctrl = u
        mujoco.mj_step(m, d)
        data.step()
        batch.step()
    assert np.ptp(motion.history[:, 6:], axis=0).min() > 0.01
    np.testing.assert_allclose(data.plastic, d.plastic, atol=1e-9)
    np.testing.assert_allclose(batch.plastic, np.tile(d.plastic, (2, 1)), atol=1e-9)
    for state in (d, data, data.state):
        other = sinew.Data(model)
        other.set_state(state)
        np.testing.assert_allclose(other.history, data.history, atol=1e-9)


def test_gradients_go_through_rests() -> None:
    model, rng = sinew.Model.from_string(CLAY), np.random.default_rng(3)
    ctrl, weights = controls(30), rng.normal(size=(31, 11))
    weights[:, :4] = 0  # mark, cursor and times of the buffer
    start = sinew.rollout(model, None, controls(50).repeat(3, axis=0)).last
    gradient = sinew.rollout_vjp(sinew.rollout(model, start, ctrl), history=weights)

    def number(move: float, i: int) -> float:
        history = np.array(start.history)
        history[i] += move
        motion = sinew.rollout(model, sinew.State(**{**vars(start), "history": history}), ctrl)
        return float(np.sum(weights * motion.history))

    assert gradient.history is not None
    for i in (4, 5, 6):  # samples, the hinge's rest
        wanted = (number(1e-6, i) - number(-1e-6, i)) / 2e-6
        assert gradient.history[i] == pytest.approx(wanted, abs=1e-6)
    with pytest.raises(UnsupportedError, match="springyield"):
        sinew.linearize(model, None, ctrl)


def test_batches_and_states(model: sinew.Model) -> None:
    batch = sinew.Batch(model, 3)
    ctrl = controls(6)
    for u in ctrl:
        batch.ctrl = u
        batch.step()
    whole = sinew.rollout(model, None, ctrl)
    np.testing.assert_allclose(batch.state.history, np.tile(whole.history[-1], (3, 1)), atol=1e-12)


def test_refusals(model: sinew.Model) -> None:
    with pytest.raises(ArgumentError, match="history: shape"):
        sinew.rollout(model, {"history": np.zeros(4)}, controls(3))
    with pytest.raises(ArgumentError, match=r"history.*of rollout 0: .*times that ascend"):
        sinew.rollout(model, {"history": np.zeros(18)}, controls(3))
    with pytest.raises(UnsupportedError, match="history buffers"):
        sinew.linearize(model, None, controls(3))
    with pytest.raises(UnsupportedError, match="history buffer"):
        sinew.integrate(model, None, [0.1])


def test_models_without_buffers_have_none() -> None:
    model = sinew.Model.from_string("<mujoco><worldbody><body><joint/><geom size='.1'/></body></worldbody></mujoco>")
    motion = sinew.rollout(model, None, nstep=3)
    assert model.nhistory == 0 and motion.history.shape == (4, 0)
    assert sinew.rollout_vjp(motion, qpos=np.ones((4, 1))).history is None
    assert sinew.Data(model).state.history is None
