"""Rollouts with a model each: those of their own models to the bit, on the way there and back, and refusals."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import sinew
from sinew.errors import ArgumentError

XML = """
<mujoco><option timestep="0.004"/><worldbody><geom type="plane" size="9 9 1"/>
<body name="box" pos="0 0 0.11"><freejoint/><geom name="box" type="box" size="0.1 0.1 0.1"/></body>
<body pos="0.5 0 0.14"><joint name="turn" axis="0 1 0" damping="0.1"/><geom type="capsule" size="0.05 0.1"/></body>
</worldbody><actuator><motor joint="turn" gear="2"/></actuator></mujoco>
"""
STEPS = 30


@pytest.fixture(scope="module")
def model() -> sinew.Model:
    return sinew.Model.from_string(XML)


def others(model: sinew.Model) -> list[sinew.Model]:
    """Return models with another friction, mass and contact."""
    rough = model.geom_friction.copy()
    rough[:, 0] = 0.2
    heavy = model.replace(body_mass=2 * model.body_mass, body_inertia=2 * model.body_inertia).with_constants()
    return [model.replace(geom_friction=rough), model, heavy, model.with_options(contact="sigmoid")]


def start(count: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    rng = np.random.default_rng(3)
    qvel = np.zeros((count, 7))
    qvel[:, :2] = rng.uniform(0.2, 0.5, (count, 2))
    return {"qvel": qvel}, rng.uniform(-1, 1, (count, STEPS, 1))


def test_each_is_that_of_its_own_model(model: sinew.Model) -> None:
    models = others(model)
    state, ctrl = start(len(models))
    together = sinew.rollout(model, state, ctrl, models=models, threads=2)
    bars = np.random.default_rng(1).standard_normal(together.qpos.shape)
    gradient = sinew.rollout_vjp(together, qpos=bars)
    for i, own in enumerate(models):
        alone = sinew.rollout(own, {"qvel": state["qvel"][i]}, ctrl[i])
        assert np.array_equal(together.qpos[i], alone.qpos) and np.array_equal(together.qvel[i], alone.qvel)
        back = sinew.rollout_vjp(alone, qpos=bars[i])
        for name in ("ctrl", "qpos", "qvel"):
            assert np.array_equal(getattr(gradient, name)[i], getattr(back, name))
    assert len({x.tobytes() for x in together.qpos[:, -1]}) == len(models)


def test_one_state_is_rolled_out_with_each(model: sinew.Model) -> None:
    models = others(model)
    state, ctrl = start(1)
    one = {"qvel": state["qvel"][0]}
    together = sinew.rollout(model, one, ctrl[0], models=models)
    assert together.qpos.shape == (len(models), STEPS + 1, model.nq)
    for own, got in zip(models, together.qpos, strict=True):
        assert np.array_equal(got, sinew.rollout(own, one, ctrl[0]).qpos)
    many = sinew.rollout(model, one, ctrl[0], models=[model])
    assert many.qpos.shape == (1, STEPS + 1, model.nq)


def test_models_live_as_long_as_the_way_back(model: sinew.Model) -> None:
    state, ctrl = start(4)
    want = sinew.rollout_vjp(motion := sinew.rollout(model, state, ctrl, models=others(model)), qvel=np.ones((31, 7)))
    motion.close()
    motion = sinew.rollout(model, state, ctrl, models=others(model))
    gc.collect()
    assert np.array_equal(sinew.rollout_vjp(motion, qvel=np.ones((31, 7))).ctrl, want.ctrl)


def test_an_integrator_counts_for_all(model: sinew.Model) -> None:
    state, ctrl = start(2)
    heavy = others(model)[2]
    motion = sinew.rollout(model, state, ctrl, models=[model, heavy], integrator="implicitfast")
    for i, own in enumerate((model, heavy)):
        alone = sinew.rollout(own, {"qvel": state["qvel"][i]}, ctrl[i], integrator="implicitfast")
        assert np.array_equal(motion.qpos[i], alone.qpos)


def test_refusals(model: sinew.Model) -> None:
    state, ctrl = start(3)
    with pytest.raises(ArgumentError, match="models: 2 of them, expected 3"):
        sinew.rollout(model, state, ctrl, models=[model, model])
    with pytest.raises(ArgumentError, match="models: 0 of them, expected 1"):
        sinew.rollout(model, nstep=2, models=[])
    with pytest.raises(ArgumentError, match="models: one model, expected a sequence"):
        sinew.rollout(model, state, ctrl, models=model)  # type: ignore[arg-type]
    other = sinew.Model.from_string(XML.replace('<geom type="capsule"', '<joint axis="1 0 0"/><geom type="capsule"'))
    with pytest.raises(ArgumentError, match=r"models\[1\]: qpos0 has the shape"):
        sinew.rollout(model, state, ctrl, models=[model, other, model])
    with pytest.raises(ArgumentError, match=r"models\[1\]: str"):
        sinew.rollout(model, state, ctrl, models=[model, "model", model])  # type: ignore[list-item]
    assert sinew.rollout(model, state, ctrl).qpos.shape[0] == 3  # and goes on
