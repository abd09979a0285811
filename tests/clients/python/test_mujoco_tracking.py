"""Residuals with exact Jacobians for mujoco.minimize.least_squares."""

from __future__ import annotations

import io

import mujoco
import mujoco.minimize
import numpy as np
import pytest
import sinew.mujoco
from sinew.errors import ArgumentError, DivergedError, UnsupportedError
from sinew.mujoco import Tracking

from bodies import Body, body, controls

FINGER = """<mujoco>
  <option timestep="0.01"><flag eulerdamp="disable"/></option>
  <worldbody>
    <body><joint name="a" axis="0 1 0" damping=".2"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/>
      <body pos=".3 0 0"><joint name="b" axis="0 1 0" damping=".2"/>
        <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/><site name="tip" pos=".3 0 0"/></body></body>
  </worldbody>
  <actuator><motor joint="a" gear="3"/><general joint="b" dyntype="filter" dynprm=".05" gainprm="3"/></actuator>
  <sensor><framepos objtype="site" objname="tip"/><actuatorfrc actuator="motor"/></sensor>
</mujoco>""".replace('<motor joint="a"', '<motor name="motor" joint="a"')


def finger() -> sinew.Model:
    return sinew.Model.from_string(FINGER)


def differences(motion: Tracking, x: np.ndarray, h: float) -> np.ndarray:
    """Return central differences, all columns in one call."""
    steps = h * np.eye(len(x))
    forward, back = (motion.residual(x[:, None] + s * steps) for s in (1, -1))
    return (forward - back) / (2 * h)


def assert_jacobian(motion: Tracking, seed: int, h: float = 1e-6, tolerance: float = 1e-6) -> None:
    x = motion.x0 + 0.1 * np.random.default_rng(seed).normal(size=len(motion.x0))
    exact, numeric = motion.jacobian(x[:, None], motion.residual(x[:, None])), differences(motion, x, h)
    assert exact.shape == numeric.shape
    assert np.abs(numeric).max() > 1e-3
    np.testing.assert_allclose(exact, numeric, rtol=0, atol=tolerance * np.abs(numeric).max())


EVERYTHING = {
    "sensordata": (0.2, 2.0),
    "qpos": ([0.1, -0.2], [1.0, 0.0]),
    "ctrl": (0.1, [0.5, 0.3]),
    "act": (0.0, 1.0),
    "qvel": (0.0, 0.1),
}


@pytest.mark.parametrize("by", ["ctrl", "state", "basis"])
def test_jacobians_are_the_differences(by: str) -> None:
    model, steps = finger(), 12
    basis = np.random.default_rng(3).normal(size=(steps, 2, 5)) if by == "basis" else None
    ctrl = np.random.default_rng(1).uniform(-1, 1, (steps, 2))
    state = {"qpos": [0.3, -0.4], "qvel": [1.0, 0.5], "act": [0.2]}
    motion = Tracking(model, state, ctrl, EVERYTHING, by="state" if by == "state" else "ctrl", basis=basis)
    assert len(motion.x0) == {"ctrl": 24, "state": 5, "basis": 5}[by]
    assert_jacobian(motion, 4)


@pytest.mark.parametrize("name", ["hand", "cube"])
def test_jacobians_with_contacts_and_muscles(name: str) -> None:
    b: Body = body(name)
    ctrl = controls(b, 1, 8, 3)[0]
    scalar = np.zeros(b.model.nq)
    scalar[:3] = 1
    state = {"qpos": b.reference.qpos0.copy(), "qvel": 0.1 * np.ones(b.model.nv)}
    targets = {"qpos": (0.3, scalar), "qvel": (0.0, 0.1)}
    basis = np.random.default_rng(1).uniform(-0.05, 0.05, (*ctrl.shape, 4))
    exact = b.model.with_options(tolerance=0, iterations=200)
    assert_jacobian(Tracking(exact, state, ctrl, targets, basis=basis), 2, h=1e-5, tolerance=1e-4)


def test_columns_are_moved_at_once() -> None:
    motion = Tracking(finger(), None, np.zeros((5, 2)), EVERYTHING)
    x = np.random.default_rng(0).normal(size=(10, 7))
    many = motion.residual(x)
    assert many.shape[1] == 7
    for k in range(7):
        np.testing.assert_array_equal(motion.residual(x[:, k]), many[:, k])


def test_residuals_are_what_mujoco_moves() -> None:
    model, m = finger(), mujoco.MjModel.from_xml_string(FINGER)
    ctrl = np.random.default_rng(1).uniform(-1, 1, (20, 2))
    target = np.random.default_rng(2).normal(size=(21, 2))
    motion = Tracking(m, {"qvel": [1, 0]}, ctrl, {"qpos": (target, 2)})
    d, rows = mujoco.MjData(m), []
    d.qvel[:] = [1, 0]
    for t in range(21):
        rows.append(2 * (d.qpos - target[t]))
        d.ctrl[:] = ctrl[min(t, 19)]
        mujoco.mj_step(m, d)
    np.testing.assert_allclose(motion.residual(motion.x0), np.concatenate(rows), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(motion.controls(motion.x0), ctrl)
    assert model.nu == 2


def test_least_squares_needs_fewer_evaluations() -> None:
    calls = {"exact": 0, "numeric": 0}
    found = {}
    bounds = [-np.ones((60, 1)), np.ones((60, 1))]
    for kind in calls:
        target = np.array([0.35, 0.0, 0.3, 0.0])
        weight = np.zeros((31, 4))
        weight[-1, :3] = 10
        motion = Tracking(finger(), None, np.zeros((30, 2)), {"sensordata": (target, weight), "ctrl": (0, 0.1)})

        def residual(x: np.ndarray, motion: Tracking = motion, kind: str = kind) -> np.ndarray:
            calls[kind] += np.atleast_2d(x.T).shape[0]
            return motion.residual(x)

        jacobian = motion.jacobian if kind == "exact" else None
        output = io.StringIO()
        x, _ = mujoco.minimize.least_squares(
            motion.x0, residual, bounds, jacobian, verbose=1, output=output,
            check_derivatives=kind == "exact", max_iter=200,
        )  # fmt: skip
        found[kind] = x
        if kind == "exact":
            assert "matches finite-differences" in output.getvalue()
            calls[kind] -= 60  # the check
    np.testing.assert_allclose(found["exact"], found["numeric"], atol=1e-4)
    assert 5 * calls["exact"] < calls["numeric"]


def test_wrong_arguments() -> None:
    model, ctrl = finger(), np.zeros((4, 2))
    cases = [
        ((model, None, np.zeros((4, 3)), {}), {}, "ctrl"),
        ((model, None, np.zeros((0, 2)), {}), {}, "ctrl"),
        ((model, None, ctrl, {"xpos": (0, 1)}), {}, "xpos"),
        ((model, None, ctrl, {"qpos": (np.zeros((4, 2)), 1)}), {}, "qpos"),
        ((model, None, ctrl, {}), {"by": "both"}, "by"),
        ((model, None, ctrl, {}), {"by": "state", "basis": np.zeros((4, 2, 1))}, "basis"),
        ((model, None, ctrl, {}), {"basis": np.zeros((3, 2, 1))}, "basis"),
        ((model, {"qpos": [1, 2, 3]}, ctrl, {}), {}, "qpos"),
    ]
    for args, kwargs, text in cases:
        with pytest.raises(ArgumentError, match=text):
            Tracking(*args, **kwargs)
    with pytest.raises(ArgumentError, match="5 variables"):
        Tracking(model, None, ctrl, {"ctrl": (0, 1)}).residual(np.zeros(5))
    cube = body("cube").model
    ctrl = np.zeros((4, cube.nu))
    with pytest.raises(UnsupportedError, match="quaternion"):
        Tracking(cube, None, ctrl, {"qpos": (0, 1)})
    with pytest.raises(UnsupportedError, match="quaternion"):
        Tracking(cube, None, ctrl, {"qvel": (0, 1)}, by="state")


def test_a_motion_that_diverges() -> None:
    motion = Tracking(finger(), {"qvel": [1e6, -1e6]}, np.zeros((50, 2)), {"qpos": (0, 1)})
    assert np.isfinite(motion.residual(motion.x0)).all()
    assert motion.residual(motion.x0).max() == 1e10
    with pytest.raises(DivergedError):
        motion.jacobian(motion.x0)
