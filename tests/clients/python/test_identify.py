"""Identification: losses and their derivatives, recordings that are refused, parameters of motions that are known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sinew
from sinew import errors
from sinew.identify import Motion, PoseLoss, Segments, StateLoss, identify
from sinew.parameters import Parameter, Parameters

SEED = 20261124
TIMES = 0.006767 * np.arange(31)


@pytest.fixture(scope="module")
def cube() -> str:
    return Path(sinew.share("models/cube_table.xml")).read_text(encoding="utf-8")


def tosses(model: sinew.Model, count: int, seed: int = SEED) -> list[Motion]:
    """Return tosses of a cube that begin low above the table."""
    print("seed", seed)
    rng = np.random.default_rng(seed)
    qpos = np.zeros((count, 7))
    qpos[:, 2], qpos[:, 3:] = 0.1, rng.standard_normal((count, 4))
    qpos[:, 3:] /= np.linalg.norm(qpos[:, 3:], axis=1, keepdims=True)
    qvel = np.concatenate([rng.standard_normal((count, 3)), 3 * rng.standard_normal((count, 3))], axis=1)
    made = sinew.rollout(model, {"qpos": qpos, "qvel": qvel}, nstep=30, gradients=False).raise_if_diverged()
    return [
        Motion(q, v, time=TIMES, name=f"toss {i}") for i, (q, v) in enumerate(zip(made.qpos, made.qvel, strict=True))
    ]


@pytest.mark.parametrize("loss", [StateLoss(), StateLoss(velocity=0.3, scale=0.1), PoseLoss(0.1)])
def test_losses_and_their_derivatives(cube: str, loss: Any) -> None:
    model = sinew.Model.from_string(cube)
    rng = np.random.default_rng(SEED)
    wanted = Segments(rng.standard_normal((4, 3, 7)), rng.standard_normal((4, 3, 6)), None)
    qpos, qvel = rng.standard_normal((4, 2, 7)), rng.standard_normal((4, 2, 6))
    value, by_qpos, by_qvel = loss(model, qpos, qvel, wanted)
    assert value.shape == (4,) and np.all(value > 0)
    for array, slope in ((qpos, by_qpos), (qvel, by_qvel)):
        way = rng.standard_normal(array.shape)
        ends = []
        for sign in (1e-6, -1e-6):
            moved = [x + sign * way if x is array else x for x in (qpos, qvel)]
            ends.append(loss(model, *moved, wanted)[0])
        np.testing.assert_allclose(
            np.einsum("nki,nki->n", slope, way), (ends[0] - ends[1]) / 2e-6, rtol=1e-5, atol=1e-9
        )
    same = Segments(np.concatenate([qpos[:, :1], qpos], 1), np.concatenate([qvel[:, :1], qvel], 1), None)
    np.testing.assert_allclose(loss(model, qpos, qvel, same)[0], 0, atol=1e-6)
    turned = Segments(same.qpos * np.array([1, 1, 1, -1, -1, -1, -1]), same.qvel, None)  # the same rotations
    np.testing.assert_allclose(loss(model, qpos, qvel, turned)[0], 0, atol=1e-6)


def test_a_cube_is_found(cube: str) -> None:
    """Mass does not show in a fall onto a table that is as soft as its weight says; side and friction do."""
    truth = sinew.Model.from_string(cube.replace('size="0.05 0.05 0.05"', 'size="0.055 0.055 0.055"'))
    both = ["geom.cube.friction[0]", "geom.table.friction[0]"]
    names = {
        "side": Parameter("geom.cube.size", bounds=(0.02, 0.1)),
        "friction": Parameter(both, bounds=(0.05, 1), start=0.3, transform="log"),
    }
    steps = []
    found = identify(
        Parameters(cube, names), tosses(truth, 40), stride=2, iterations=120, batch=128, held_out=0.1, uncertainty=True,
        progress=steps.append, seed=SEED,
    )  # fmt: skip
    np.testing.assert_allclose(found.values, [0.055, 0.4], rtol=0.01)
    assert found.loss < 1e-2 * found.history[0]["loss"]
    assert 0 < found.held_out < 5e-2 * found.history[0]["loss"]
    assert np.all(found.errors >= 0) and found.errors[0] < 0.001
    assert len(steps) == 121 and steps[3]["iteration"] == 3


def test_lbfgs_and_controls() -> None:
    """Motions of a pendulum with a motor, two steps of the model from one row to the next."""
    text = """<mujoco><option timestep="0.005"/><worldbody><body><joint name="j" axis="0 1 0" damping="{}"/>
      <geom size="0.03" pos="0 0 -0.4" mass="{}"/></body></worldbody><actuator><motor joint="j"/></actuator></mujoco>"""
    rng = np.random.default_rng(SEED)
    truth = sinew.Model.from_string(text.format(0.13, 0.7))
    ctrl = np.repeat(rng.standard_normal((3, 40, 1)), 2, axis=1)
    made = sinew.rollout(truth, {"qpos": rng.standard_normal((3, 1))}, ctrl, gradients=False)
    motions = [Motion(made.qpos[i, ::2], made.qvel[i, ::2], np.append(ctrl[i, ::2], [[0]], axis=0)) for i in range(3)]
    spec = text.replace("<geom size", '<geom name="g" size').format(0.05, 1.0)
    parameters = Parameters(spec, {"damping": "joint.j.damping[0]", "mass": Parameter("geom.g.mass", transform="log")})
    found = identify(
        parameters, motions, steps=10, stride=5, substeps=2, optimizer="lbfgs", loss=StateLoss(velocity=0.1)
    )
    np.testing.assert_allclose(found.values, [0.13, 0.7], rtol=1e-4)
    again = identify(
        parameters, motions, steps=10, stride=5, substeps=2, optimizer="lbfgs", loss=StateLoss(velocity=0.1)
    )
    np.testing.assert_array_equal(again.values, found.values)


def test_what_is_kept(cube: str, tmp_path: Path) -> None:
    parameters = Parameters(cube, {"side": "geom.cube.size"})
    found = identify(parameters, tosses(parameters.model(), 3), iterations=3)
    found.save(tmp_path / "found.json")
    kept = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert kept["names"] == ["side"] and kept["values"] == found.values.tolist() and len(kept["history"]) == 4
    found.plot(tmp_path / "found.png")
    assert (tmp_path / "found.png").stat().st_size > 1000
    assert repr(found).startswith("<sinew.Identification side=0.05")


@pytest.mark.parametrize(("scale", "substeps"), [(1000, 1), (2, 1), (1, 2)])
def test_times_of_another_step_are_refused(cube: str, scale: float, substeps: int) -> None:
    """Milliseconds, or every other row."""
    parameters = Parameters(cube, {"side": Parameter("geom.cube.size", bounds=(0.02, 0.1))})
    motions = tosses(parameters.model(), 2)
    for motion in motions:
        motion.time = TIMES * scale
    text = r"toss 0: rows are .* s apart, . steps of the model are .* s: set substeps"
    for recorded in (motions, Segments.of(motions, 4), Segments.whole(motions).take(slice(0, 1))):
        with pytest.raises(errors.ArgumentError, match=text):
            identify(parameters, recorded, steps=4, iterations=1, substeps=substeps)


def test_bad_recordings() -> None:
    qpos, qvel = np.zeros((5, 7)), np.zeros((5, 6))
    with pytest.raises(errors.ArgumentError, match=r"toss 3: qvel has shape \(4, 6\), expected 5 rows"):
        Motion(qpos, qvel[:4], name="toss 3")
    with pytest.raises(errors.ArgumentError, match=r"toss 3: qpos\[2\] is not finite"):
        Motion(np.where(np.arange(5)[:, None] == 2, np.nan, qpos), qvel, name="toss 3")
    with pytest.raises(errors.ArgumentError, match=r"toss 3: qpos: 5 of its numbers are masked"):
        Motion(np.ma.masked_greater(np.eye(5, 7), 0), qvel, name="toss 3")
    with pytest.raises(errors.ArgumentError, match=r"toss 3: a gap at row 1: 0.02 s to the next, elsewhere 0.01 s"):
        Motion(qpos, qvel, time=[0, 0.01, 0.03, 0.04, 0.05], name="toss 3")
    with pytest.raises(errors.ArgumentError, match=r"toss 3: times do not ascend: 0 s, then 0 s"):
        Motion(qpos, qvel, time=np.zeros(5), name="toss 3")
    with pytest.raises(errors.ArgumentError, match=r"motions: none has 9 rows"):
        Segments.of([Motion(qpos, qvel)], 8)
    with pytest.raises(errors.ArgumentError, match=r"some have controls and some have none"):
        Segments.of([Motion(qpos, qvel), Motion(qpos, qvel, np.zeros((5, 1)))], 2)
    with pytest.raises(errors.ArgumentError, match=r"steps, stride: 0, 1"):
        Segments.of([Motion(qpos, qvel)], 0)


def test_bad_settings(cube: str) -> None:
    parameters = Parameters(cube, {"side": "geom.cube.size"})
    segments = Segments.of(tosses(parameters.model(), 1), 4)
    with pytest.raises(errors.ArgumentError, match="optimizer: 'sgd', allowed are adam, lbfgs, lm, cmaes"):
        identify(parameters, segments, optimizer="sgd")  # type: ignore[arg-type]
    with pytest.raises(errors.ArgumentError, match="rate -1"):
        identify(parameters, segments, rate=-1)
    for name, bad in (("iterations", 2.0), ("substeps", "1"), ("batch", 0.5), ("starts", None)):
        with pytest.raises(errors.ArgumentError, match=f"{name}: {bad!r}, expected a whole number"):
            identify(parameters, segments, **{name: bad})
    for name in ("steps", "stride"):
        with pytest.raises(errors.ArgumentError, match=f"{name}: 1.5, expected a whole number"):
            identify(parameters, tosses(parameters.model(), 1), **{name: 1.5})
    for betas in ((0.5, 1), (-0.1, 0.9), (0.5, float("nan"))):
        with pytest.raises(errors.ArgumentError, match=r"betas: .*, allowed are two numbers from 0 to below 1"):
            identify(parameters, segments, betas=betas)
    with pytest.raises(errors.ArgumentError, match=r"betas: shape \(3,\), expected \(2,\)"):
        identify(parameters, segments, betas=(0.5, 0.9, 0.9))  # type: ignore[arg-type]
    with pytest.raises(errors.ArgumentError, match="joint 0 is not free"):
        hinge = "<mujoco><worldbody><body><joint/><geom size='0.1'/></body></worldbody></mujoco>"
        PoseLoss(0.1)(sinew.Model.from_string(hinge), np.zeros((1, 1, 1)), np.zeros((1, 1, 1)), segments)
    for joint in (1, -1):
        with pytest.raises(errors.ArgumentError, match=f"joint {joint}, the model has 1, from 0 on"):
            identify(parameters, segments, loss=PoseLoss(0.1, joint))
