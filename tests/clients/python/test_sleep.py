"""Bodies whose trees fall asleep: beside MuJoCo's, pickled, many at once; what keeps all trees awake."""

from __future__ import annotations

import pickle

import mujoco
import numpy as np
import pytest
import sinew
import sinew.mujoco
from sinew.errors import UnsupportedError

SCENE = """<mujoco><option timestep=".005"><flag sleep="enable"/></option><worldbody><geom type="plane" size="5 5 1"/>
<body pos="0 0 .0995"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
<body pos="0 0 .2982"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
<body pos="1 0 .0995" sleep="init"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
<body pos="1 0 2"><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""


@pytest.fixture
def model() -> sinew.Model:
    return sinew.Model.from_string(SCENE)


def test_a_body_sleeps_and_wakes_as_mujocos(model: sinew.Model) -> None:
    m = mujoco.MjModel.from_xml_string(SCENE)
    d, data = mujoco.MjData(m), sinew.Data(model)
    np.testing.assert_array_equal(data.tree_asleep.ravel(), [-10, -10, 2, -10])
    seen = set()
    for _ in range(300):
        mujoco.mj_step(m, d)
        data.step()
        np.testing.assert_array_equal(data.tree_asleep.ravel(), d.tree_asleep)
        np.testing.assert_allclose(data.qpos, d.qpos, rtol=0, atol=1e-7)
        seen.add(tuple(data.tree_asleep.ravel() >= 0))
    assert {(False, False, True, False), (True, True, True, False), (True, True, False, False)} <= seen


def test_a_pickled_body_goes_on_with_the_same_bits(model: sinew.Model) -> None:
    data = sinew.Data(model)
    data.step(100)
    assert (data.tree_asleep.ravel()[:2] == [1, 0]).all()
    other = pickle.loads(pickle.dumps(data))
    np.testing.assert_array_equal(other.tree_asleep, data.tree_asleep)
    for _ in range(2):
        data.step(40)
        other.step(40)
        np.testing.assert_array_equal(other.qpos, data.qpos)
    _ = data.subtree_com  # the latest call is made again, with all that it began with
    np.testing.assert_array_equal(other.tree_asleep, data.tree_asleep)


def test_simulations_of_a_batch_sleep_each_by_itself(model: sinew.Model) -> None:
    batch = sinew.Batch(model, 3, 1)
    bodies = [sinew.Data(model) for _ in range(3)]
    for i, data in enumerate(bodies):
        data.qvel[6] = batch.qvel[i, 6] = 0.3 * i
    for _ in range(30):
        batch.step(nstep=5)
        for i, data in enumerate(bodies):
            data.step(5)
            np.testing.assert_array_equal(batch.tree_asleep[i], data.tree_asleep)
            np.testing.assert_array_equal(batch.qpos[i], data.qpos)


def test_rollouts_keep_all_trees_awake(model: sinew.Model) -> None:
    awake = model.with_options(enableflags=0)
    ctrl = np.zeros((120, 0))
    np.testing.assert_array_equal(sinew.rollout(model, {}, ctrl).qpos, sinew.rollout(awake, {}, ctrl).qpos)
    assert model.opt.sleep_tolerance == 1e-3


def test_an_mjdata_with_sleepers_is_refused() -> None:
    m = mujoco.MjModel.from_xml_string(SCENE)
    with pytest.raises(UnsupportedError, match="flag sleep"):
        sinew.mujoco.step(m, mujoco.MjData(m))
