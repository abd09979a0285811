"""sinew.linearize and Batch.linearize against MuJoCo's differences and against steps of one body."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import sinew
from sinew.errors import ArgumentError, DivergedError

from bodies import Body, body, controls, states


def differences(b: Body, state: dict[str, np.ndarray], ctrl: np.ndarray) -> list[np.ndarray]:
    """Return A, B, C, D of MuJoCo's step from a state."""
    m, d = b.reference, mujoco.MjData(b.reference)
    d.time, d.qpos[:], d.qvel[:], d.act[:], d.ctrl[:] = (*(state[k] for k in ("time", "qpos", "qvel", "act")), ctrl)
    n = 2 * m.nv + m.na
    found = [np.zeros(shape) for shape in ((n, n), (n, m.nu), (m.nsensordata, n), (m.nsensordata, m.nu))]
    mujoco.mjd_transitionFD(m, d, 1e-6, True, *(x if x.size else None for x in found))
    return found


@pytest.mark.parametrize("name", ["hand", "cube", "ball", "reach"])
def test_matrices_are_those_of_differences_of_mujoco(name: str) -> None:
    b = body(name)
    steps = 4
    # In some poses of the hand MuJoCo's nearest points of meshes jump between steps: differences grow as these shrink.
    state = {k: v[0] for k, v in states(b, 1, 22).items()}
    ctrl = controls(b, 1, steps, 23)[0]
    sensors = b.model.nsensordata > 0
    found = sinew.linearize(b.model, state, ctrl, sensors=True) if sensors else sinew.linearize(b.model, state, ctrl)
    motion = sinew.rollout(b.model, state, ctrl)
    n = b.model.nstate
    assert found[0].shape == (steps, n, n)
    assert found[1].shape == (steps, n, b.model.nu)
    for t in range(steps):
        at = {k: getattr(motion, k)[t] for k in ("time", "qpos", "qvel", "act")}
        want = differences(b, at, ctrl[t])
        for matrix, ours, theirs in zip("ABCD", found, want, strict=False):
            scale = np.abs(theirs).max(initial=0) + 1
            assert np.abs(ours[t] - theirs).max(initial=0) < 1e-5 * scale, (matrix, t)


def test_matrices_are_those_of_a_body_in_the_same_states() -> None:
    b = body("cube")
    state, ctrl = states(b, 3, 23), controls(b, 3, 5, 24)
    found = sinew.linearize(b.model, state, ctrl, sensors=True)
    alone = sinew.linearize(b.model, {k: v[1] for k, v in state.items()}, ctrl[1], sensors=True)
    motion = sinew.rollout(b.model, state, ctrl)
    for ours, one in zip(found, alone, strict=True):
        assert np.array_equal(ours[1], one)
    data = sinew.Data(b.model)
    for i in range(3):
        for t in range(5):
            data.set_state({k: getattr(motion, k)[i, t] for k in ("time", "qpos", "qvel", "act")})
            data.ctrl = ctrl[i, t]
            for ours, theirs in zip(found, data.jacobian(sensors=True), strict=True):
                assert np.allclose(ours[i, t], theirs, rtol=1e-6, atol=1e-6)


def test_products_of_matrices_are_the_way_back() -> None:
    b = body("hand")
    ctrl = controls(b, 1, 6, 25)[0]
    a_of, b_of = sinew.linearize(b.model, None, ctrl)
    bar = np.random.default_rng(26).normal(size=(7, b.model.nv))
    bar[:-1] = 0
    gradient = sinew.rollout_vjp(sinew.rollout(b.model, None, ctrl), qvel=bar, coordinates="tangent")
    row = np.concatenate([np.zeros(b.model.nv), bar[-1], np.zeros(b.model.na)])
    for t in reversed(range(6)):
        assert np.allclose(row @ b_of[t], gradient.ctrl[t], rtol=1e-6, atol=1e-8)
        row = row @ a_of[t]
    assert np.allclose(row[: b.model.nv], gradient.qpos, rtol=1e-6, atol=1e-6)


def test_integrators_and_contacts_from_distance_are_taken() -> None:
    b = body("ball")
    state = {"qpos": [0, 0, 0.15, 1, 0, 0, 0]}
    plain, distant, rk4 = (
        sinew.linearize(b.model, state, nstep=1, **options).A
        for options in ({}, {"cfd": sinew.CFD()}, {"integrator": "rk4"})
    )
    assert not np.allclose(plain, distant)
    assert np.array_equal(rk4, sinew.linearize(b.model.with_options(integrator="rk4"), state, nstep=1).A)


def test_a_motion_that_diverges_is_named() -> None:
    b = body("cube")
    state = states(b, 2, 27)
    state["qvel"][1, -1] = 1e9
    with pytest.raises(DivergedError, match=r"1 of 2 rollouts diverged \(1\)"):
        sinew.linearize(b.model, state, nstep=10)
    with pytest.raises(ArgumentError, match="ctrl: shape"):
        sinew.linearize(b.model, None, np.zeros((3, 5)))


def test_batches_are_linearized_where_they_are() -> None:
    b = body("cube")
    batch = sinew.Batch(b.model, 3)
    batch.qvel = states(b, 3, 28)["qvel"]
    batch.ctrl = controls(b, 3, 1, 29)[:, 0]
    before = batch.qpos.copy()
    found = batch.linearize(sensors=True)
    want = sinew.linearize(b.model, batch.state, batch.ctrl[:, np.newaxis], sensors=True)
    assert np.array_equal(batch.qpos, before)
    for ours, theirs in zip(found, want, strict=True):
        assert np.array_equal(ours, theirs[:, 0])
    batch.expand("body_mass")[1] *= 2
    assert np.array_equal(batch.linearize().A[[0, 2]], found.A[[0, 2]])
    assert not np.array_equal(batch.linearize().A[1], found.A[1])
