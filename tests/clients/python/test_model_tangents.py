"""Derivatives by parameters of a model: every array, every pair of geoms, muscles and wraps, against differences."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sinew
from sinew import errors

SEED = 20261124
MACHINE = """
<mujoco>
  <compiler angle="radian"/>
  <option timestep="0.004" integrator="{integrator}" cone="{cone}" tolerance="1e-15"/>
  <worldbody>
    <geom type="plane" size="3 3 0.1" friction="0.7"/>
    <body pos="0 0 1" euler="0.1 0.2 0.3">
      <joint name="a" axis="0 1 0.2" pos="0.02 0.01 0" damping="0.3" stiffness="1.5" springref="0.2" armature="0.01"
        range="0.01 0.5"/>
      <joint name="b" axis="1 0 0" pos="0 0.03 0.01" damping="0.1" frictionloss="5"/>
      <geom type="capsule" size="0.03 0.15" pos="0.01 0 -0.15" euler="0.1 0 0" mass="0.7"/>
      <site name="high" pos="0.03 0.01 -0.1" euler="0.3 0.1 0"/>
      <body pos="0 0 -0.3" euler="0 0.3 0" gravcomp="0.6">
        <joint name="slide" type="slide" axis="0.1 0 1" stiffness="20" damping="2" pos="0 0.01 0" frictionloss="0.05"/>
        <joint name="ball" type="ball" damping="0.1" stiffness="0.5" pos="0.01 0 0.02"/>
        <geom type="box" size="0.04 0.05 0.06" pos="0 0.01 -0.05" mass="0.5"/>
        <site name="low" pos="0.02 -0.02 -0.05"/>
        <body pos="0.05 0 -0.1">
          <inertial pos="0.01 0.02 0" mass="0.2" diaginertia="0.001 0.002 0.0015"/>
          <geom type="sphere" size="0.03"/>
        </body>
      </body>
    </body>
    <body pos="0.5 0 0.099" euler="0.05 0.1 0.3">
      <freejoint/>
      <geom type="box" size="0.1 0.08 0.1" mass="1.3"/>
      <geom type="sphere" size="0.05" pos="0.1 0.1 0.1" mass="0.3"/>
      <site name="push" pos="0.1 0 0.1"/>
    </body>
    <body pos="-0.6 0 0.15">
      <freejoint/>
      <geom type="capsule" size="0.05 0.1" euler="0.05 0 0" mass="0.8"/>
    </body>
  </worldbody>
  <tendon>
    <spatial name="string" stiffness="30" springlength="0.1" damping="0.5" frictionloss="0.02" armature="0.03">
      <site site="high"/><site site="low"/>
    </spatial>
    <fixed name="sum" stiffness="3" damping="0.2" range="{reach} 1" frictionloss="3">
      <joint joint="a" coef="0.7"/><joint joint="slide" coef="1.2"/>
    </fixed>
  </tendon>
  <equality>
    <joint joint1="a" joint2="b" polycoef="0.01 0.3 0.2 0 0"/>
    <tendon tendon1="string" tendon2="sum" polycoef="0 0.5 0.1 0 0" solref="0.3 1"/>
  </equality>
  <actuator>
    <motor joint="a" gear="1.5" ctrlrange="-0.5 0.4"/>
    <position joint="b" kp="5" kv="0.4"/>
    <general tendon="string" gainprm="3" biastype="affine" biasprm="0.1 -2 -0.3" dyntype="filter" dynprm="0.03"
      gear="1.2" damping="0.1" armature="0.01"/>
    <general site="push" gear="0.3 0.2 0.5 0.02 0.01 0.03" dyntype="filterexact" dynprm="0.05" actrange="0 0.05"/>
    <motor joint="slide" gear="2" forcerange="-0.3 0.3"/>
    <motor joint="ball" gear="0.1 0.2 0.3"/>
  </actuator>
</mujoco>
"""
ARRAYS = [
    "body_pos", "body_quat", "body_ipos", "body_iquat", "body_mass", "body_inertia", "body_invweight0",
    "body_gravcomp", "jnt_solref", "jnt_solimp", "jnt_pos", "jnt_axis", "jnt_stiffness", "jnt_range", "dof_solref",
    "dof_solimp", "dof_frictionloss", "dof_armature", "dof_damping", "dof_invweight0", "geom_solref", "geom_solimp",
    "geom_size", "geom_pos", "geom_quat", "geom_friction", "site_pos", "site_quat", "eq_solref", "eq_solimp",
    "eq_data", "tendon_solref_lim", "tendon_solimp_lim", "tendon_solref_fri", "tendon_solimp_fri", "tendon_range",
    "tendon_stiffness", "tendon_damping", "tendon_armature", "tendon_frictionloss", "tendon_lengthspring",
    "tendon_invweight0", "tendon_length0", "qpos0", "qpos_spring", "wrap_prm", "actuator_dynprm",
    "actuator_gainprm", "actuator_biasprm", "actuator_actrange", "actuator_damping", "actuator_armature",
    "actuator_forcerange", "actuator_ctrlrange", "actuator_gear",
]  # fmt: skip
# What stays idle where the limit of the tendon holds, which presses the joint out of its own, and where it does not.
IDLE = {
    "0.1": {"jnt_range", "jnt_solref", "jnt_solimp", "tendon_solref_fri", "tendon_solimp_fri"},
    "0.005": {"tendon_range", "tendon_solref_lim", "tendon_solimp_lim"},
}
TURNS = ("body_quat", "body_iquat", "geom_quat", "site_quat", "jnt_axis")
PLACES = ("body_pos", "geom_pos", "site_pos", "body_ipos", "jnt_pos")
SHAPES = {
    "sphere": "0.1",
    "capsule": "0.07 0.1",
    "ellipsoid": "0.1 0.08 0.12",
    "cylinder": "0.09 0.1",
    "box": "0.08 0.1 0.09",
}
SEARCHED = {("sphere", "ellipsoid"), ("capsule", "ellipsoid"), ("ellipsoid", "ellipsoid"), ("ellipsoid", "cylinder"),
            ("ellipsoid", "box"), ("capsule", "cylinder"), ("cylinder", "cylinder"), ("cylinder", "box")}  # fmt: skip


class Motion:
    """Rollouts of a model and of what is made of it, and a number of their states."""

    def __init__(self, model: sinew.Model, steps: int, seed: int = SEED, speed: float = 0.3) -> None:
        rng = np.random.default_rng(seed)
        self.model, self.steps = model, steps
        self.state = {"qpos": model.qpos0.copy(), "qvel": speed * rng.standard_normal(model.nv)}
        self.ctrl = rng.uniform(0, 1, (steps, model.nu))
        rows = steps + 1
        self.bars: dict[str, Any] = {
            "qpos": rng.standard_normal((rows, model.nq)),
            "qvel": 0.05 * rng.standard_normal((rows, model.nv)),
            "act": rng.standard_normal((rows, model.na)),
        }
        self.rng = rng
        self.rollout = sinew.rollout(model, self.state, self.ctrl, nstep=steps).raise_if_diverged()

    def number(self, model: sinew.Model) -> float:
        made = sinew.rollout(model, self.state, self.ctrl, nstep=self.steps, gradients=False)
        return sum(float(np.sum(bar * getattr(made, name))) for name, bar in self.bars.items())

    def slope(self, moved: Callable[[float], sinew.Model]) -> float:
        """Return the derivative along a direction by the adjoint."""
        tangents = sinew.ModelTangents(self.model, [moved(1e-6)], [moved(-1e-6)], [1e-6])
        found = sinew.rollout_vjp(self.rollout, **self.bars, parameters=tangents).parameters
        assert found is not None and found.shape == (1,)
        return float(found[0])

    def difference(self, moved: Callable[[float], sinew.Model], step: float) -> float:
        return (self.number(moved(step)) - self.number(moved(-step))) / (2 * step)

    def direction(self, name: str) -> Callable[[float], sinew.Model]:
        """Return what moves an array along a random direction."""
        array = np.array(getattr(self.model, name), float)
        way = self.rng.standard_normal(array.shape) * (0.1 if name in TURNS + PLACES else np.abs(array))
        if name in ("qpos0", "qpos_spring"):
            way[:] = 0
            scalar = self.model.jnt_type >= 2
            way[self.model.jnt_qposadr[scalar]] = 0.1 * self.rng.standard_normal(int(scalar.sum()))
        assert np.any(way)

        def moved(step: float) -> sinew.Model:
            now = array + step * way
            if name in TURNS:
                now /= np.linalg.norm(now, axis=-1, keepdims=True)
            return self.model.replace(**{name: now})

        return moved

    def compare(self, moved: Callable[[float], sinew.Model], tolerance: float) -> float:
        """Compare with the best of several differences; return the derivative."""
        slope = self.slope(moved)
        differences = [self.difference(moved, step) for step in (1e-4, 1e-5, 1e-6)]
        error = min(abs(slope - x) for x in differences)
        assert error <= tolerance * max(abs(slope), 1e-4), (slope, differences)
        return slope


def machine(integrator: str = "Euler", cone: str = "pyramidal", reach: str = "0.1") -> sinew.Model:
    return sinew.Model.from_string(MACHINE.format(integrator=integrator, cone=cone, reach=reach))


@pytest.mark.parametrize("reach", ["0.1", "0.005"])
@pytest.mark.parametrize(
    ("integrator", "cone"), [("Euler", "pyramidal"), ("implicitfast", "elliptic"), ("RK4", "elliptic")]
)
def test_every_array(integrator: str, cone: str, reach: str) -> None:
    print("seed", SEED)
    motion = Motion(machine(integrator, cone, reach), 20)
    idle = {name for name in ARRAYS if motion.compare(motion.direction(name), 1e-5) == 0}
    assert idle <= IDLE[reach], sorted(idle)


def test_options() -> None:
    motion = Motion(machine(), 20)
    way = np.array([0.1, 0.3, 1.0])
    assert motion.compare(lambda h: motion.model.with_options(gravity=motion.model.opt.gravity + h * way), 1e-6) != 0


@pytest.mark.parametrize(
    "pair", [("plane", x) for x in SHAPES] + list(itertools.combinations_with_replacement(SHAPES, 2))
)
def test_sizes_of_all_pairs(pair: tuple[str, str]) -> None:
    """What MuJoCo searches for by iterations has the noise of its search in the motion itself."""
    first, second = pair
    below = (
        '<geom type="plane" size="2 2 1"/>'
        if first == "plane"
        else '<body><joint axis="1 0 0" damping="1"/><joint type="slide" axis="0 0 1" stiffness="300" damping="5"/>'
        f'<geom type="{first}" size="{SHAPES[first]}" euler="10 20 30"/></body>'
    )
    model = sinew.Model.from_string(f"""
        <mujoco><option timestep="0.002" tolerance="1e-15"/>
          <default><geom solimp="0.001 0.9 0.02" margin="0.05"/></default>
          <worldbody>{below}
            <body pos="0.01 0.02 {0.1 if first == "plane" else 0.17}" euler="5 3 10">
              <freejoint/><geom type="{second}" size="{SHAPES[second]}" mass="1"/>
            </body>
          </worldbody></mujoco>""")
    motion = Motion(model, 12, seed=3)
    for name in ("geom_size", "geom_pos", "geom_friction", "geom_margin"):
        if pair in SEARCHED:
            assert np.isfinite(motion.slope(motion.direction(name)))
        else:
            motion.compare(motion.direction(name), 1e-5)


# Models whose parameters reach the motion by ways of their own, and the arrays that do so.
LINKAGE = """<worldbody><site name="post" pos="0.1 0.2 0.9" euler="0.3 0.1 0.2"/>
  <body pos="0 0 1"><joint axis="0 1 0.2"/><joint axis="1 0 0" pos="0 0.02 0.01"/><geom size="0.05" pos="0.1 0 -0.1"/>
    <body name="plate" pos="0.05 0.02 -0.1" euler="0.2 0.1 0"><geom type="box" size="0.03 0.04 0.05"/>
      <site name="pin" pos="0.01 0.02 -0.03" euler="0 0.4 0.1"/>
      <body name="tip" pos="0.01 0 -0.05"><geom size="0.02"/></body></body></body>
  <body name="rest" pos="0.3 0.1 0.8"><freejoint/><geom type="box" size="0.05 0.06 0.07"/></body></worldbody>
  <equality><weld site1="pin" site2="post" torquescale="0.3" solref="0.05 1"/>
    <connect body1="tip" body2="rest" anchor="0.01 0.02 0.03" solref="0.05 1"/></equality>
  <sensor><force site="pin"/><torque site="pin"/><framelinvel objtype="xbody" objname="tip"/></sensor>"""
LIMITED = """<worldbody><site name="post" pos="0.3 0.1 1.2"/>
  <body pos="0 0 1" gravcomp="0.5"><joint axis="0.1 0 1" type="slide" pos="0.02 0.01 0"/>
    <joint axis="0 1 0.2" pos="0.01 0.02 0" {first}/><joint axis="1 0 0.1" pos="0 0.02 0.01" {second}/>
    <geom size="0.05" pos="0.1 0 -0.1"/>
    <body pos="0.05 0.02 -0.1" euler="0.2 0.1 0" gravcomp="0.7"><joint axis="0 1 0.3" {first}/>
      <geom type="box" size="0.03 0.04 0.05" pos="0.02 0.03 0"/><site name="pin" pos="0.05 0.1 0.02"/></body></body>
  </worldbody><tendon><spatial name="t"><site site="pin"/><site site="post"/></spatial></tendon>
  <actuator><motor site="pin" refsite="post" gear="3 4 5 1 2 3"/><motor tendon="t" gear="8"/></actuator>"""
SATURATED = LIMITED.format(first='actuatorfrcrange="-0.01 0.01"', second="")
LIFTED = LIMITED.format(first='actuatorgravcomp="true"', second='actuatorgravcomp="true" actuatorfrcrange="-0.1 0.1"')
GEARED = """<worldbody>
  <body pos="0 0 1"><joint name="a" axis="0 1 0"/><joint name="b" axis="1 0 0"/><geom size="0.05" pos="0.1 0 -0.1"/>
    <body pos="0 0 -0.2"><joint name="c" axis="0 1 0"/><geom size="0.04" pos="0 0.1 -0.1"/></body>
    <body pos="0 0.3 -0.2"><joint name="d" axis="1 0 0"/><geom size="0.04" pos="0.1 0 -0.1"/></body></body></worldbody>
  <tendon><fixed armature="0.05"><joint joint="a" coef="0.7"/><joint joint="c" coef="-1.1"/></fixed>
    <fixed armature="0.03"><joint joint="c" coef="0.9"/><joint joint="d" coef="1.2"/></fixed></tendon>"""
BOUNDED = """<worldbody>
  <body pos="0 0 1"><joint name="a" axis="0 1 0" range="-0.1 0.3" margin="0.05"/>
    <joint name="b" axis="1 0 0" range="0.02 0.4" margin="0.05"/><geom size="0.05" pos="0.1 0 -0.1"/>
    <body pos="0 0 -0.2"><joint name="ball" type="ball" range="0 0.03" margin="0.06"/>
      <geom size="0.04" pos="0 0.1 -0.1"/></body></body></worldbody>
  <tendon><fixed name="low" range="0.05 1" margin="0.1"><joint joint="a" coef="0.7"/></fixed>
    <fixed name="high" range="-1 -0.05" margin="0.1"><joint joint="b" coef="0.7"/></fixed></tendon>
  <sensor><jointlimitpos joint="a"/><jointlimitpos joint="b"/><tendonlimitpos tendon="low"/>
    <tendonlimitpos tendon="high"/></sensor>"""
DRIVEN = """<worldbody>
  <body pos="0 0 1"><joint name="a" axis="0 1 0" actuatorfrcrange="-0.1 0.2"/><joint name="b" axis="1 0 0"/>
    <geom size="0.05" pos="0.1 0 -0.1"/></body></worldbody>
  <actuator><motor joint="a" gear="3"/><motor joint="b" gear="1.5"/><motor joint="b" gear="-0.7"/>
    <damper joint="b" ctrlrange="0 0.05" kv="2"/></actuator>
  <sensor><jointactuatorfrc joint="a"/><jointactuatorfrc joint="b"/></sensor>"""
FRAMES = ("body_pos", "body_quat", "jnt_pos", "jnt_axis", "qpos0")


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "RK4"])
@pytest.mark.parametrize(
    ("body", "arrays"),
    [
        (LINKAGE, ("site_pos", "site_quat", "body_pos", "body_quat")),
        (SATURATED, FRAMES),
        (LIFTED, FRAMES),
        (GEARED, ("wrap_prm",)),
        (BOUNDED, ("jnt_range", "jnt_margin", "tendon_range", "tendon_margin")),
        (DRIVEN, ("actuator_gear", "jnt_actfrcrange", "actuator_ctrlrange")),
    ],
    ids=["welded sites and bodies", "saturated joints", "lifted joints", "geared tendons", "bounds", "drives"],
)
def test_ways_of_their_own(body: str, arrays: tuple[str, ...], integrator: str) -> None:
    """Anchors fixed to sites and welded bodies; axes of joints that forces do not reach; armature; bounds."""
    model = sinew.Model.from_string(
        f'<mujoco><compiler angle="radian"/><option timestep="0.004" tolerance="1e-15" integrator="{integrator}"/>'
        f"{body}</mujoco>"
    )
    motion = Motion(model, 8)
    if model.nsensordata:
        motion.bars["sensordata"] = 0.1 * motion.rng.standard_normal((9, model.nsensordata))
    for name in arrays:
        assert motion.compare(motion.direction(name), 1e-5) != 0


SIMPLE = """<worldbody><body pos="0 0 0.5"><freejoint/><geom type="box" size="0.1 0.08 0.06"/></body>
  <body pos="1 0 0"><joint type="slide" axis="1 0 0" armature="0.2"/><joint type="slide" axis="0 1 0"/>
    <geom size="0.05"/></body>
  <body pos="2 0 0"><joint axis="0 0 1"/><geom type="box" size="0.05 0.06 0.07"/></body>
  <body pos="3 0 0"><joint axis="0 0.6 0.8" pos="0 0.1 0" damping="0.1"/><geom type="box" size="0.05 0.06 0.07"/></body>
  </worldbody><sensor><e_kinetic/></sensor>"""


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "implicit", "RK4"])
def test_inertia_of_simple_bodies(integrator: str) -> None:
    """A step takes theirs from `dof_M0`, which stays unless it is given, whatever becomes of masses."""
    text = f'<mujoco><option timestep="0.004" tolerance="1e-15" integrator="{integrator}"/>{SIMPLE}</mujoco>'
    compiled = sinew.Model.from_string(text)
    for model in (compiled, compiled.replace(body_mass=1.3 * compiled.body_mass)):
        motion = Motion(model, 8)
        motion.bars["sensordata"] = motion.rng.standard_normal((9, 1))
        for name in ("dof_M0", "body_mass", "body_inertia", "dof_armature"):
            moved = motion.direction(name)
            alone = motion.compare(moved, 1e-5)
            if model is compiled and name != "dof_M0":
                assert alone != motion.compare(lambda h, moved=moved: moved(h).with_constants(), 1e-5)


def test_a_hand(myosuite: Path) -> None:
    """Muscles, and tendons around spheres and cylinders."""
    model = sinew.Model.load(myosuite / "envs/myo/assets/hand/myohand_pose.xml").with_options(tolerance=1e-15)
    motion = Motion(model, 8)
    for name in (
        "site_pos",
        "geom_pos",
        "actuator_gainprm",
        "actuator_biasprm",
        "actuator_dynprm",
        "actuator_lengthrange",
    ):
        assert motion.compare(motion.direction(name), 1e-5) != 0
    way = np.where(np.isin(model.geom_type, (2, 5))[:, None], model.geom_size, 0) * [1, 0, 0]
    assert motion.compare(lambda h: model.replace(geom_size=model.geom_size + h * way), 1e-5) != 0


def test_of_a_sensor_and_a_task(models: Path) -> None:
    """Frames of sites reach sensors and costs."""
    model = sinew.Model.load(models / "arm_reach.xml").with_options(tolerance=1e-15)
    motion = Motion(model, 10)
    way = np.random.default_rng(SEED).standard_normal(model.site_pos.shape)
    moved = [model.replace(site_pos=model.site_pos + h * way) for h in (1e-5, -1e-5)]
    bar = np.ones((11, model.nsensordata))
    tangents = sinew.ModelTangents(model, moved[:1], moved[1:], [1e-5])
    found = sinew.rollout_vjp(motion.rollout, sensordata=bar, parameters=tangents).parameters
    ends = [sinew.rollout(x, motion.state, motion.ctrl, nstep=10).sensordata.sum() for x in moved]
    assert found is not None and found[0] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6)


def test_many_rollouts_at_once() -> None:
    """Rollouts with models of their own have derivatives at those; threads change nothing."""
    model = machine()
    motion = Motion(model, 6)
    moves = [motion.direction(name) for name in ("body_mass", "site_pos")]
    tangents = sinew.ModelTangents(model, [m(1e-6) for m in moves], [m(-1e-6) for m in moves], [1e-6, 1e-6])
    state = {
        "qpos": np.tile(model.qpos0, (5, 1)),
        "qvel": 0.1 * np.random.default_rng(4).standard_normal((5, model.nv)),
    }
    found = []
    for threads in (1, 2):
        made = sinew.rollout(model, state, motion.ctrl, threads=threads)
        found.append(sinew.rollout_vjp(made, **motion.bars, parameters=tangents).parameters)
    assert found[0] is not None and found[0].shape == (5, 2)
    np.testing.assert_array_equal(found[0], found[1])
    single = sinew.rollout(model, {k: v[3] for k, v in state.items()}, motion.ctrl)
    np.testing.assert_array_equal(sinew.rollout_vjp(single, **motion.bars, parameters=tangents).parameters, found[0][3])
    plain = sinew.rollout_vjp(made, **motion.bars)
    assert plain.parameters is None
    np.testing.assert_array_equal(plain.qpos, sinew.rollout_vjp(made, **motion.bars, parameters=tangents).qpos)


def test_of_an_integration(models: Path) -> None:
    model = sinew.Model.load(models / "arm_reach.xml")
    state: Mapping[str, Any] = {"qpos": [0.4, 0.9], "act": np.full(model.na, 0.3)}

    def end(x: sinew.Model) -> sinew.Integration:
        return sinew.integrate(x, state, [0.05, 0.1], np.full(x.nu, 0.5), method="dopri5", rtol=1e-10, atol=1e-10)

    bar = np.ones((2, model.nq))
    moves = [
        lambda h, name=name: model.replace(**{name: getattr(model, name) * (1 + h)})
        for name in ("body_mass", "actuator_gainprm", "dof_damping", "site_pos")
    ]
    tangents = sinew.ModelTangents(model, [m(1e-5) for m in moves], [m(-1e-5) for m in moves], [1e-5] * 4)
    found = sinew.integrate_vjp(end(model), qpos=bar, parameters=tangents).parameters
    expected = [(np.sum(end(m(1e-4)).qpos) - np.sum(end(m(-1e-4)).qpos)) / 2e-4 for m in moves]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_what_is_refused(models: Path) -> None:
    model = sinew.Model.load(models / "arm_reach.xml")
    other = sinew.Model.load(models / "cart_pole.xml")
    with pytest.raises(errors.ArgumentError, match=r"step\[0\]: 0, allowed is a number above 0"):
        sinew.ModelTangents(model, [model], [model], [0.0])
    with pytest.raises(errors.ArgumentError, match="as many of each"):
        sinew.ModelTangents(model, [model], [], [1e-5])
    with pytest.raises(errors.ArgumentError, match=r"plus\[0\]: body_parentid"):
        sinew.ModelTangents(model, [other], [other], [1e-5])
    with pytest.raises(errors.UnsupportedError, match=r"parameter 0: it moves timestep\[0\]"):
        sinew.ModelTangents(model, [model.with_options(timestep=0.003)], [model], [1e-5])
    cut = sinew.Model.from_string(
        "<mujoco><worldbody><body><joint name='j'/><geom size='.1'/></body></worldbody>"
        "<sensor><jointpos joint='j' cutoff='.1'/></sensor></mujoco>"
    )
    with pytest.raises(errors.UnsupportedError, match=r"parameter 0: it moves sensor_cutoff\[0\]"):
        sinew.ModelTangents(cut, [cut.replace(sensor_cutoff=[0.2])], [cut], [1e-5])
    with pytest.raises(errors.UnsupportedError, match=r"parameter 0: it changes actuator_ctrllimited\[0\] from 1 to 0"):
        sinew.ModelTangents(
            model, [model.replace(actuator_ctrllimited=0 * model.actuator_ctrllimited)], [model], [1e-5]
        )
    with pytest.raises(errors.ArgumentError, match=r"parameters: list, expected a sinew\.ModelTangents"):
        sinew.rollout_vjp(sinew.rollout(model, nstep=2), parameters=[1])  # type: ignore[arg-type]
    tangents = sinew.ModelTangents(other, [other], [other], [1e-5])
    with pytest.raises(errors.ArgumentError, match="parameters: they are those of a model of another structure"):
        sinew.rollout_vjp(sinew.rollout(model, nstep=2), parameters=tangents)
    assert len(tangents) == 1 and repr(tangents) == "<ModelTangents of 1 parameters>"
    with pytest.raises(errors.ArgumentError, match="model: int"):
        sinew.ModelTangents(3, [], [], [])  # type: ignore[arg-type]
