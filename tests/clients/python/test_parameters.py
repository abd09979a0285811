"""Parameters as attributes of MJCF: what they name, models made of them, derivatives by them, what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import sinew
from sinew import errors
from sinew.parameters import Parameter, Parameters

ARM = """
<mujoco><option timestep="0.005" tolerance="1e-15"/>
  <default><default class="link"><joint damping="0.1"/><geom type="capsule" size="0.02"/></default></default>
  <worldbody>
    <body name="upper" pos="0 0 1"><joint name="shoulder" class="link" axis="0 1 0"/>
      <geom name="upper" class="link" fromto="0 0 0 0.3 0 0"/>
      <body name="lower" pos="0.3 0 0"><joint name="elbow" class="link" axis="0 1 0"/>
        <geom name="lower" class="link" fromto="0 0 0 0.25 0 0"/><site name="tip" pos="0.25 0 0"/>
        <geom name="ball" size="0.03 0 0" pos="0.25 0 0" density="2000"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="m" joint="elbow" gear="2"/></actuator>
</mujoco>
"""


def test_what_they_name() -> None:
    names: dict[str, Any] = {
        "radius": "geom.lower.size",
        "both": Parameter(["geom.upper.size[0]", "geom.lower.size[0]"]),
        "damping": "default.link.joint.damping[0]",
        "tip": "site.tip.pos[0]",
        "gravity": "option.gravity[2]",
        "gear": "actuator.m.gear[0]",
        "place": "body.lower.pos[0]",
        "density": Parameter("geom.ball.density", bounds=(500, 5000)),
    }
    parameters = Parameters(ARM, names)
    expected = [0.02, 0.02, 0.1, 0.25, -9.81, 2, 0.3, 2000]
    np.testing.assert_allclose(parameters.values, expected)
    assert len(parameters) == 8 and parameters.names == list(names) and "density=2000" in repr(parameters)
    values = np.array([0.02, 0.03, 0.2, 0.2, -5, 3, 0.35, 1000])
    model = parameters.model(values)
    np.testing.assert_allclose(model.dof_damping.ravel(), 0.2)
    np.testing.assert_allclose(model.geom_size[:2, 0], 0.03)  # the later one of two that share a number
    assert model.opt.gravity[2] == -5 and model.site_pos[0, 0] == 0.2 and model.body_pos[2, 0] == 0.35
    assert model.actuator_gear.ravel()[0] == 3
    ball = 4 / 3 * math.pi * 0.03**3 * 1000
    whole = mujoco.MjSpec.from_string(ARM)
    assert parameters.model().body_mass.sum() == pytest.approx(whole.compile().body_mass.sum(), rel=1e-12)
    assert model.body_mass.ravel()[2] > ball


def test_derivatives_of_what_the_compiler_makes() -> None:
    """A radius changes masses, inertias and places of masses; the chain has them all."""
    parameters = Parameters(
        ARM, {"radius": "geom.lower.size[0]", "density": "geom.ball.density", "place": "body.lower.pos[0]"}
    )

    def number(values: np.ndarray) -> float:
        made = sinew.rollout(parameters.model(values), {"qvel": [1.0, 2.0]}, np.full((20, 1), 0.1), gradients=False)
        return float(np.sum(made.qpos))

    made = sinew.rollout(parameters.model(), {"qvel": [1.0, 2.0]}, np.full((20, 1), 0.1))
    found = sinew.rollout_vjp(made, qpos=np.ones((21, 2)), parameters=parameters.tangents()).parameters
    assert found is not None
    for k, step in enumerate(1e-4 * parameters.values):
        way = step * np.eye(3)[k]
        difference = (number(parameters.values + way) - number(parameters.values - way)) / (2 * step)
        assert found[k] == pytest.approx(difference, rel=1e-6)


def test_positions_at_zero() -> None:
    start = {"qpos": [0, 0, 0.2, 0.9, 0.3, 0.3, 0.1]}
    text = """<mujoco><worldbody><geom type="plane" size="5 5 1"/><body pos="0 0 0.3"><freejoint/>
      <geom name="box" type="box" size="0.1 0.08 0.05"/><geom name="ball" size="0.15" mass="0"/><site name="s"/>
      </body></worldbody><sensor><framepos objtype="site" objname="s"/></sensor></mujoco>"""
    # without mass, so that a body's inertia stays in its frame
    parameters = Parameters(text, {"ball": "geom.ball.pos[2]", "site": "site.s.pos[0]"})

    def value(at: list[float]) -> Any:
        return sinew.rollout(parameters.model(at), start, nstep=80)

    motion = value([0, 0])
    bar = np.zeros_like(motion.sensordata)
    bar[-1] = [1, 0.5, 2]
    slope = sinew.rollout_vjp(motion, sensordata=bar, parameters=parameters.tangents()).parameters
    for k, way in enumerate(np.eye(2)):
        ends = [np.sum(value(sign * 1e-5 * way).sensordata * bar) for sign in (1, -1)]
        assert slope is not None
        assert slope[k] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-3)
        assert abs(slope[k]) > 1e-3
    with pytest.raises(errors.ArgumentError, match=r"x: beside 0 the model is of another structure, a start of 0.0001"):
        Parameters(text, {"x": "geom.box.pos[2]"}).tangents()


def test_written_out(tmp_path: Path) -> None:
    parameters = Parameters(ARM, {"density": "geom.ball.density"})
    parameters.save(tmp_path / "arm.xml", [1500])
    again = Parameters(tmp_path / "arm.xml", {"density": "geom.ball.density"})
    assert again.values[0] == 1500
    np.testing.assert_allclose(again.model().body_mass, parameters.model([1500]).body_mass, rtol=1e-12)
    assert Parameters(mujoco.MjSpec.from_string(ARM), {"density": "geom.ball.density"}).values[0] == 2000


@pytest.mark.parametrize(
    "p",
    [
        Parameter("x", (0.5, 2.0)),
        Parameter("x", (0.5, 2.0), transform="log"),
        Parameter("x", transform="softplus"),
        Parameter("x", (0.5, 2.0), transform="softclip"),
    ],
)
def test_transforms(p: Parameter) -> None:
    for value in (0.6, 1.0, 1.9):
        free = p.to_free(value)
        assert p.to_value(free) == pytest.approx(value, rel=1e-12)
        assert p.slope(free) == pytest.approx((p.to_value(free + 1e-6) - p.to_value(free - 1e-6)) / 2e-6, rel=1e-6)
    if p.bounds is not None:
        assert p.bounds[0] <= p.to_value(-50.0) <= p.to_value(50.0) <= p.bounds[1]


@pytest.mark.parametrize(
    ("target", "error", "text"),
    [
        ("geom.lowr.size", errors.NotFoundError, "no geom of the name 'lowr'; there are upper, lower, ball"),
        ("gem.lower.size", errors.NotFoundError, "'gem' is no kind of element; allowed are body, geom"),
        ("geom.lower.radius", errors.NotFoundError, "no attribute 'radius'; there are .*density.*friction"),
        ("geom.lower.type", errors.UnsupportedError, "type is discrete"),
        ("geom.lower.condim", errors.UnsupportedError, "condim is discrete"),
        ("geom.lower.size[5]", errors.ArgumentError, r"size has 3 numbers, from \[0\] on"),
        ("geom.lower.density[0]", errors.ArgumentError, r"density has 1 numbers"),
        ("geom.lower.friction", errors.ArgumentError, r"its numbers differ .*name one, as geom.lower.friction\[0\]"),
        ("geom.lower.mass", errors.ArgumentError, "geom.lower.mass is not set in the file: give start"),
        ("default.lnk.joint.damping[0]", errors.NotFoundError, "there is no such class"),
        ("lower", errors.ArgumentError, "expected KIND.NAME.ATTRIBUTE"),
    ],
)
def test_bad_targets(target: str, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Parameters(ARM, {"p": target})


def test_bad_values() -> None:
    with pytest.raises(errors.ArgumentError, match=r"p: bounds are \(2, 1\)"):
        Parameters(ARM, {"p": Parameter("geom.ball.density", bounds=(2, 1))})
    with pytest.raises(errors.ArgumentError, match=r"p: starts at 2000.0, outside of its bounds"):
        Parameters(ARM, {"p": Parameter("geom.ball.density", bounds=(1, 2))})
    with pytest.raises(errors.ArgumentError, match="transform is 'exp'"):
        Parameters(ARM, {"p": Parameter("geom.ball.density", transform="exp")})  # type: ignore[arg-type]
    with pytest.raises(errors.ArgumentError, match="softclip needs bounds"):
        Parameters(ARM, {"p": Parameter("geom.ball.density", transform="softclip")})
    with pytest.raises(errors.ArgumentError, match=r"bounds\[0\] is 0, above 0 is allowed"):
        Parameters(ARM, {"p": Parameter("geom.ball.density", bounds=(0, 5000), transform="log")})
    parameters = Parameters(ARM, {"radius": Parameter("geom.ball.size[0]", bounds=(-1, 1))})
    with pytest.raises(errors.ArgumentError, match=r"radius: 2.0 is outside of its bounds"):
        parameters.model([2.0])
    with pytest.raises(errors.ArgumentError, match="expected 1 finite numbers"):
        parameters.model([1.0, 2.0])
    with pytest.raises(errors.ArgumentError, match="values: numbers of type object, expected real numbers"):
        parameters.model({"radius": 0.1})  # type: ignore[arg-type]
    with pytest.raises(errors.ArgumentError, match="source: int, expected a path, a text of MJCF or"):
        Parameters(3, {"radius": "geom.ball.size[0]"})
    with pytest.raises(errors.ArgumentError, match=r"MuJoCo refuses radius = -0.5: .*size"):
        parameters.model([-0.5])


def test_elements_without_names_are_counted() -> None:
    text = '<mujoco><worldbody><geom size="0.1"/><geom size="0.2"/></worldbody></mujoco>'
    with pytest.raises(errors.NotFoundError, match="no geom of the name 'ball'; there are 2 without a name"):
        Parameters(text, {"size": "geom.ball.size[0]"})


def test_what_has_no_derivative_is_named() -> None:
    parameters = Parameters(ARM, {"density": "geom.ball.density", "the step": Parameter("option.timestep")})
    with pytest.raises(errors.UnsupportedError, match=r"^parameter 'the step': it moves timestep\[0\]"):
        parameters.tangents()
