"""sinew.sensitivity against derivatives that go back, differences, and what is refused; least squares that use it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sinew
from sinew import errors, least_squares
from sinew._journal import Journal
from sinew._moved import Ways
from sinew.identify import Motion, PoseLoss, Segments, StateLoss, _Problem, identify
from sinew.parameters import Parameter, Parameters
from sinew.sensitivity import entry_changes

SEED = 20261125
SCENE = """
<mujoco>
  <option timestep="0.004" tolerance="1e-15"/>
  <worldbody>
    <geom type="plane" size="2 2 1"/>
    <body pos="0 0 0.3"><freejoint/><geom name="ball" size="0.1"/></body>
    <body pos="1 0 1">
      <joint name="wrist" type="ball" damping="0.1"/>
      <geom name="arm" type="capsule" size="0.02" fromto="0 0 0 0.3 0 0"/>
      <body pos="0.3 0 0"><joint name="elbow" axis="0 1 0" stiffness="2"/>
        <geom type="capsule" size="0.02" fromto="0 0 0 0.2 0 0"/><site name="end" pos="0.2 0 0"/></body>
    </body>
  </worldbody>
  <actuator><motor joint="elbow" gear="2"/></actuator>
  <sensor><framepos objtype="site" objname="end"/><jointvel joint="elbow"/><ballquat joint="wrist"/></sensor>
</mujoco>
"""


@pytest.fixture(scope="module")
def parameters() -> Parameters:
    names = {"mass": "geom.arm.density", "damping": "joint.wrist.damping[0]", "spring": "joint.elbow.stiffness[0]"}
    return Parameters(SCENE, names)


def moving(model: sinew.Model, count: int = 2, steps: int = 20) -> sinew.Rollout:
    rng = np.random.default_rng(SEED)
    qpos = np.tile(model.qpos0, (count, 1)) + 0.1 * rng.standard_normal((count, model.nq))
    state = {"qpos": qpos, "qvel": rng.standard_normal((count, model.nv))}
    return sinew.rollout(model, state, rng.standard_normal((count, steps, model.nu)))


def test_both_ways_agree(parameters: Parameters) -> None:
    motion = moving(parameters.model())
    model, rng = motion.model, np.random.default_rng(SEED)
    found = sinew.sensitivity(motion, parameters.tangents(), sensors=True)
    assert found.state.shape == (2, 21, model.nstate, 3) and found.sensordata is not None
    bars = {name: rng.standard_normal(getattr(motion, name).shape) for name in ("qpos", "qvel", "sensordata")}
    back = sinew.rollout_vjp(motion, **bars, parameters=parameters.tangents()).parameters
    changes = entry_changes(model, motion.qpos, found.state[:, :, : model.nv])
    forward = np.einsum("nti,ntip->np", bars["qpos"], changes)
    forward += np.einsum("nti,ntip->np", bars["qvel"], found.state[:, :, model.nv : 2 * model.nv])
    forward += np.einsum("nti,ntip->np", bars["sensordata"], found.sensordata)
    np.testing.assert_allclose(forward, back, rtol=1e-8)
    one = sinew.rollout(model, {"qpos": motion.qpos[1, 0], "qvel": motion.qvel[1, 0]}, nstep=20)
    assert sinew.sensitivity(one, parameters.tangents()).state.shape == (21, model.nstate, 3)


def test_initial_states(parameters: Parameters) -> None:
    """With no parameters and a matrix of ones the sensitivities are products of the steps' Jacobians."""
    motion = moving(parameters.model(), steps=5)
    n = motion.model.nstate
    found = sinew.sensitivity(motion, initial=np.eye(n)).state
    np.testing.assert_allclose(found[:, 0], np.broadcast_to(np.eye(n), (2, n, n)))
    ctrl_free = sinew.rollout(motion.model, {"qpos": motion.qpos[:, 0], "qvel": motion.qvel[:, 0]}, nstep=3)
    steps = sinew.linearize(motion.model, {"qpos": motion.qpos[:, 0], "qvel": motion.qvel[:, 0]}, nstep=3).A
    product = steps[:, 2] @ steps[:, 1] @ steps[:, 0]
    np.testing.assert_allclose(sinew.sensitivity(ctrl_free, initial=np.eye(n)).state[:, 3], product, atol=1e-12)


def test_refusals(parameters: Parameters) -> None:
    motion = moving(parameters.model(), steps=2)
    with pytest.raises(errors.ArgumentError, match=r"rollout: int, expected a sinew.Rollout"):
        sinew.sensitivity(3)  # type: ignore[arg-type]
    with pytest.raises(errors.ArgumentError, match=r"initial: shape \(20, 2\), expected \(20, 3 or more\)"):
        sinew.sensitivity(motion, parameters.tangents(), initial=np.zeros((20, 2)))
    with pytest.raises(errors.ArgumentError, match=r"sensors: shape \(2,\), expected \(8,\)"):
        sinew.sensitivity(motion, sensors=[True, False])
    with pytest.raises(errors.ArgumentError, match="initial: numbers of type <U1, expected real numbers"):
        sinew.sensitivity(motion, initial=[["a"]] * 20)  # type: ignore[arg-type]
    with pytest.raises(errors.ArgumentError, match="sensors: numbers of type object, expected real numbers"):
        sinew.sensitivity(motion, sensors=None)  # type: ignore[arg-type]
    with pytest.raises(errors.ArgumentError, match="not finite"):
        sinew.sensitivity(motion, initial=np.full((20, 1), np.nan))
    motion.close()
    with pytest.raises(errors.StateError, match="closed"):
        sinew.sensitivity(motion)
    touched = (
        "<mujoco><worldbody><body><joint/><geom size='0.1'/><site name='s'/></body></worldbody>"
        "<sensor><user dim='1'/></sensor></mujoco>"
    )
    with (
        sinew.rollout(sinew.Model.from_string(touched), nstep=2) as at,
        pytest.raises(errors.UnsupportedError, match="has no derivative"),
    ):
        sinew.sensitivity(at, sensors=True)


# ---- least squares ----


def tosses(model: sinew.Model, count: int) -> list[Motion]:
    rng = np.random.default_rng(SEED)
    qpos = np.zeros((count, 7))
    qpos[:, 2], qpos[:, 3:] = 0.1, rng.standard_normal((count, 4))
    qpos[:, 3:] /= np.linalg.norm(qpos[:, 3:], axis=1, keepdims=True)
    qvel = np.concatenate([rng.standard_normal((count, 3)), 3 * rng.standard_normal((count, 3))], axis=1)
    made = sinew.rollout(model, {"qpos": qpos, "qvel": qvel}, nstep=30, gradients=False)
    return [Motion(q, v) for q, v in zip(made.qpos, made.qvel, strict=True)]


@pytest.mark.parametrize("loss", [StateLoss(), StateLoss(velocity=0.3, scale=0.1)])
def test_residuals_are_the_loss(loss: Any) -> None:
    cube = Path(sinew.share("models/cube_table.xml")).read_text(encoding="utf-8")
    parameters = Parameters(cube, {"side": "geom.cube.size", "x": "geom.cube.solref[0]"})
    segments = Segments.of(tosses(parameters.model(), 5), 4)
    problem = _Problem(parameters, segments, loss, Ways(1, None, None, 0), Journal(None))
    at = np.array([0.052, 0.025])
    off, jacobian = least_squares.residuals(problem, at, segments)
    value, slope = problem.slope(at, segments)
    assert off @ off == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(2 * off @ jacobian, slope, rtol=1e-8)


def test_levenberg_marquardt_finds_a_cube() -> None:
    cube = Path(sinew.share("models/cube_table.xml")).read_text(encoding="utf-8")
    truth = sinew.Model.from_string(cube.replace('size="0.05 0.05 0.05"', 'size="0.055 0.055 0.055"'))
    both = ["geom.cube.friction[0]", "geom.table.friction[0]"]
    names = {
        "side": Parameter("geom.cube.size", bounds=(0.02, 0.1)),
        "friction": Parameter(both, bounds=(0.05, 1), start=0.3, transform="log"),
    }
    found = identify(
        Parameters(cube, names), tosses(truth, 20), stride=2, iterations=40, optimizer="lm", uncertainty=True
    )
    np.testing.assert_allclose(found.values, [0.055, 0.4], rtol=1e-5)
    assert len(found.history) < 40 and found.loss < 1e-12
    assert np.all(found.errors >= 0) and np.all(found.errors < 1e-4)


def test_uncertainty_is_that_of_noise() -> None:
    """Standard errors are about the scatter of what is found from recordings with other noise."""
    text = """<mujoco><option timestep="0.01"/><worldbody><body><joint name="j" axis="0 1 0" damping="0.05"/>
      <geom size="0.03" pos="0 0 -0.4" mass="0.5"/></body></worldbody></mujoco>"""
    parameters = Parameters(text, {"damping": "joint.j.damping[0]"})
    rng, found = np.random.default_rng(SEED), []
    made = sinew.rollout(parameters.model(), {"qpos": [[1.0]], "qvel": [[0.5]]}, nstep=200, gradients=False)
    for _ in range(30):
        noisy = made.qpos[0] + 0.01 * rng.standard_normal((201, 1))
        noisy[0] = 1.0
        motion = Motion(noisy, made.qvel[0])
        found.append(identify(parameters, [motion], steps=200, optimizer="lm", iterations=20, uncertainty=True))
    scatter = np.std([x.values[0] for x in found])
    assert 0.6 < np.mean([x.errors[0] for x in found]) / scatter < 1.6


def test_no_sum_of_squares() -> None:
    cube = Path(sinew.share("models/cube_table.xml")).read_text(encoding="utf-8")
    parameters = Parameters(cube, {"side": "geom.cube.size"})
    with pytest.raises(errors.ArgumentError, match="lm needs a StateLoss, a PoseLoss is no sum of squares"):
        identify(parameters, tosses(parameters.model(), 1), optimizer="lm", loss=PoseLoss(0.1))
