"""sinew.integrate against motions in closed form, MuJoCo's RK4 and differences; its way back; what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import sinew
from sinew.errors import ArgumentError, DivergedError, LimitError, NotFoundError, SinewError, StateError

SPRING = """
<mujoco><option gravity='0 0 0'/><worldbody><body><joint name='x' type='slide' axis='1 0 0' stiffness='36'/>
<geom size='.1' mass='4' contype='0' conaffinity='0'/></body></worldbody>
<actuator><motor joint='x'/></actuator></mujoco>"""
TOP = """
<mujoco><option timestep='0.004' integrator='RK4'/><worldbody><body pos='0 0 1'><joint type='ball' damping='.02'/>
<geom type='capsule' size='.03' fromto='0 0 0 .3 .1 0'/><body pos='.3 0 0'><joint name='j' axis='0 1 0' stiffness='1'/>
<geom type='capsule' size='.02' fromto='0 0 0 .2 0 .1' contype='0' conaffinity='0'/></body></body></worldbody>
<actuator><general joint='j' dyntype='filter' dynprm='.05' gainprm='.4'/></actuator></mujoco>"""
OMEGA = 3.0  # of the spring [rad/s]


def spring() -> sinew.Model:
    return sinew.Model.from_string(SPRING)


@pytest.mark.parametrize("method", ["heun", "midpoint", "ralston", "bosh3", "tsit5", "dopri5", "dopri8"])
def test_a_spring_swings_as_its_formula_says(method: Any) -> None:
    tolerance = 1e-5 if method in ("heun", "midpoint", "ralston") else 1e-9
    time = np.linspace(0, 2, 21)
    motion = sinew.integrate(
        spring(), {"qpos": [0.2], "qvel": [-0.3]}, time, [2.0], method=method, rtol=tolerance, atol=tolerance
    )
    rest = 2.0 / 36
    want = rest + (0.2 - rest) * np.cos(OMEGA * time) - 0.1 * np.sin(OMEGA * time)
    assert motion.raise_if_unfinished() is motion
    assert motion.end == "done"
    assert motion.reached == pytest.approx(2)
    assert motion.step_time.shape == (motion.accepted,)
    assert np.all(np.diff(motion.step_time) > 0)
    np.testing.assert_allclose(motion.qpos[:, 0], want, atol=100 * tolerance)
    assert motion.qvel.shape == (21, 1)
    assert motion.act.shape == (21, 0)


def test_its_derivatives_are_those_of_the_formula() -> None:
    motion = sinew.integrate(spring(), {"qpos": [0.2]}, [0.7, 1.3], rtol=1e-10, atol=1e-10)
    g = sinew.integrate_vjp(motion, qpos=[[0], [1]])
    np.testing.assert_allclose(g.qpos, np.cos(OMEGA * 1.3), atol=1e-7)
    np.testing.assert_allclose(g.qvel, np.sin(OMEGA * 1.3) / OMEGA, atol=1e-7)
    np.testing.assert_allclose(g.ctrl, (1 - np.cos(OMEGA * 1.3)) / 36, atol=1e-7)
    assert g.ctrl.shape == (1,)
    assert sinew.integrate_vjp(motion, qvel=[[1], [0]]).qpos == pytest.approx(-OMEGA * np.sin(OMEGA * 0.7), abs=1e-7)


def top_state(seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    quaternion = random.normal(size=4)
    qpos = np.append(quaternion / np.linalg.norm(quaternion), 0.3)
    return {"qpos": qpos, "qvel": random.normal(size=4), "act": np.array([0.2])}


def test_fixed_steps_are_those_of_mujoco() -> None:
    reference = mujoco.MjModel.from_xml_string(TOP)
    data = mujoco.MjData(reference)
    state = top_state(1)
    data.qpos[:], data.qvel[:], data.act[:], data.ctrl[:] = *state.values(), 0.7
    want = []
    for _ in range(10):
        mujoco.mj_step(reference, data)
        want.append(np.concatenate([data.qpos, data.qvel, data.act]))
    time = 0.004 * np.arange(1, 11)
    motion = sinew.integrate(sinew.Model.from_mujoco(reference), state, time, [0.7], method="rk4", fixed_step=0.004)
    np.testing.assert_allclose(np.hstack([motion.qpos, motion.qvel, motion.act]), want, atol=1e-10)


@pytest.mark.parametrize("linear", [False, True])
def test_the_way_back_is_that_of_differences(linear: bool) -> None:
    model, state = sinew.Model.from_string(TOP), top_state(2)
    knots, ctrl = np.array([0.02, 0.1, 0.15]), np.array([[0.5], [-0.4], [0.8]])
    weight = np.random.default_rng(3).normal(size=(2, 10))
    names = ("qpos", "qvel", "act")

    def run(qpos: Any, qvel: Any, act: Any, ctrl: Any, tangent: Any = None) -> sinew.Integration:
        if tangent is not None:
            moved = np.array(qpos)
            mujoco.mj_integratePos(mujoco.MjModel.from_xml_string(TOP), moved, tangent, 1)
            qpos = moved
        start = {"qpos": qpos, "qvel": qvel, "act": act}
        return sinew.integrate(
            model, start, [0.07, 0.2], ctrl, ctrl_time=knots, linear=linear, method="bosh3", fixed_step=0.01
        )

    def number(motion: sinew.Integration) -> float:  # of rotations by a matrix's column, so that q and -q are the same
        q = motion.qpos[:, :4]
        first = 1 - 2 * (q[:, 2] ** 2 + q[:, 3] ** 2)
        return float(
            np.sum(weight[:, 0] * first + weight[:, 1] * motion.qpos[:, 4]) + np.sum(weight[:, 2:6] * motion.qvel)
        )

    given = [*(state[name] for name in names), ctrl]
    motion = run(*given)
    q = motion.qpos[:, :4]
    bar = np.zeros_like(motion.qpos)
    bar[:, 2:4] = -4 * weight[:, :1] * q[:, 2:4]
    bar -= np.hstack([q * np.sum(bar[:, :4] * q, axis=1, keepdims=True), np.zeros((2, 1))])
    bar[:, 4] = weight[:, 1]
    g = sinew.integrate_vjp(motion, qpos=bar, qvel=weight[:, 2:6])
    eps = 1e-6
    for k, got in enumerate((g.qvel, g.act, g.ctrl), start=1):
        for i in np.ndindex(got.shape):
            change = np.zeros_like(given[k])
            change[i] = eps
            up, down = ([*given[:k], given[k] + s * change, *given[k + 1 :]] for s in (1, -1))
            assert got[i] == pytest.approx((number(run(*up)) - number(run(*down))) / (2 * eps), abs=1e-6)
    # By tangents: MuJoCo moves the rotation.
    no_bar = np.zeros((2, model.nv))
    no_bar[:, 3] = weight[:, 1]
    hinge = sinew.integrate_vjp(motion, qpos=no_bar, coordinates="tangent").qpos
    assert hinge.shape == (model.nv,)
    for i in range(model.nv):
        tangent = eps * np.eye(model.nv)[i]
        difference = run(*given, tangent=tangent).qpos[:, 4] - run(*given, tangent=-tangent).qpos[:, 4]
        assert hinge[i] == pytest.approx(np.sum(weight[:, 1] * difference) / (2 * eps), abs=1e-6)
    assert g.qpos[:4] @ state["qpos"][:4] == pytest.approx(0, abs=1e-12)
    assert motion.step_time[0] == 0


def test_a_hand_moves_as_by_small_steps(myosuite: Path) -> None:
    model = sinew.Model.from_xml(myosuite / "envs/myo/assets/hand/myohand_pose.xml")
    random = np.random.default_rng(5)
    ctrl, knots, time = random.uniform(0.05, 0.4, (3, model.nu)), [0, 0.05, 0.1], [0.02, 0.05]
    start = {"act": np.full(model.na, 0.1)}
    small = sinew.integrate(
        model, start, time, ctrl, ctrl_time=knots, linear=True, method="rk4", fixed_step=1e-5, gradients=False
    )
    assert small.accepted == 5000
    for tolerance in (1e-4, 1e-6):
        motion = sinew.integrate(model, start, time, ctrl, ctrl_time=knots, linear=True, rtol=tolerance, atol=tolerance)
        assert motion.accepted < 500
        # The small steps are 1e-5 off themselves: limits begin to act inside of one.
        np.testing.assert_allclose(motion.qpos, small.qpos, atol=20 * tolerance + 2e-5)
        np.testing.assert_allclose(motion.act, small.act, atol=40 * tolerance)  # a tolerance is that of the mean square


BOUNCE = """
<mujoco><option cone='pyramidal'><flag refsafe='disable'/></option>
<default><geom solimp='.9 .95 .001' solref='.01 .3'/></default>
<worldbody><geom type='plane' size='5 5 .1'/>
<body pos='0 0 .5'><freejoint/><geom size='.1'/></body></worldbody></mujoco>"""


def bounce_slope(tolerance: float, *, events: bool) -> float:
    """Return the derivative of the height after two touches by the velocity at the start."""
    state = {"qvel": [0.3, 0, -1, 0, 0, 0]}
    ball = sinew.Model.from_string(BOUNCE)
    motion = sinew.integrate(ball, state, [0.5], rtol=tolerance, atol=tolerance, events=events)
    bar = np.zeros((1, ball.nv))
    bar[0, 2] = 1
    return float(sinew.integrate_vjp(motion.raise_if_unfinished(), qpos=bar, coordinates="tangent").qvel[2])


def test_moments_of_touch_move() -> None:
    ball = sinew.Model.from_string(BOUNCE)
    up, down = (
        sinew.integrate(ball, {"qvel": [0.3, 0, -1 + d, 0, 0, 0]}, [0.5], rtol=1e-12, atol=1e-12).qpos[0, 2]
        for d in (1e-5, -1e-5)
    )
    slope = (up - down) / 2e-5
    assert bounce_slope(1e-4, events=True) == pytest.approx(slope, rel=0.02)
    assert bounce_slope(1e-8, events=True) == pytest.approx(slope, rel=1e-3)
    assert abs(bounce_slope(1e-8, events=False) / slope - 1) > 0.1


def test_little_memory_gives_the_same_derivatives() -> None:
    ball = sinew.Model.from_string(BOUNCE)
    bar = np.ones((2, ball.nq))
    got = []
    for memory in (1 << 30, 80_000):
        motion = sinew.integrate(ball, {"qvel": [0.3, 0, -1, 0, 1, 0]}, [0.2, 0.5], rtol=1e-7, atol=1e-7, memory=memory)
        got.append(sinew.integrate_vjp(motion.raise_if_unfinished(), qpos=bar))
        assert len(motion.step_time) == motion.accepted > 40
        assert (np.diff(motion.step_time) > 0).all()
    np.testing.assert_array_equal(got[0].qvel, got[1].qvel)
    np.testing.assert_array_equal(got[0].qpos, got[1].qpos)


def test_backsolve_agrees_with_the_adjoint_of_the_steps() -> None:
    model = spring()
    state, time = {"qpos": [0.2], "qvel": [-0.3]}, [0.5, 2.0]
    motion = sinew.integrate(model, state, time, np.zeros((2, model.nu)), ctrl_time=[0, 1], rtol=1e-9, atol=1e-9)
    bar = np.array([[0.3], [1.0]])
    steps = sinew.integrate_vjp(motion, qpos=bar, qvel=-bar)
    back = sinew.integrate_vjp(motion, qpos=bar, qvel=-bar, adjoint="backsolve")
    np.testing.assert_allclose(back.qpos, steps.qpos, rtol=1e-7)
    np.testing.assert_allclose(back.qvel, steps.qvel, rtol=1e-7)
    np.testing.assert_allclose(back.ctrl, steps.ctrl, rtol=1e-7)
    assert back.qpos[0] != steps.qpos[0]
    with pytest.raises(ArgumentError, match="expected 'discrete' or 'backsolve'"):
        sinew.integrate_vjp(motion, qpos=bar, adjoint="both")  # type: ignore[arg-type]


def test_backsolve_finds_the_steps_that_contacts_from_distance_need() -> None:
    model = sinew.Model.from_xml(sinew.share("models/billiard.xml"))  # a shot that misses: nothing happens in it
    qvel = np.zeros(model.nv)
    qvel[:2] = 2.0, 1.3
    bar = np.zeros((1, model.nq))
    bar[0, 7] = 1  # the place of the ball that is missed

    def slope(adjoint: Any, **bounds: Any) -> tuple[float, int]:
        options = {"rtol": 1e-6, "atol": 1e-6, "cfd": sinew.CFD(), **bounds}
        motion = sinew.integrate(model, {"qpos": model.key_qpos[0], "qvel": qvel}, [0.6], **options)
        return float(sinew.integrate_vjp(motion, qpos=bar, adjoint=adjoint).qvel[1]), motion.evaluations

    fine, short, own = slope("discrete", largest_step=2e-4), slope("discrete"), slope("backsolve")
    assert own[1] == short[1] < 100 < fine[1]
    assert abs(own[0] - fine[0]) < 1e-3 * abs(fine[0])
    assert abs(short[0] - fine[0]) > 0.05 * abs(fine[0])


PENDULUM = """
<mujoco><worldbody><body><joint type='hinge' axis='0 1 0' damping='.05'/>
<geom type='sphere' pos='.5 0 0' size='.1' mass='1' contype='0' conaffinity='0'/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("method", ["heun", "bosh3", "tsit5", "dopri5", "dopri8"])
def test_steps_are_those_of_diffrax(method: Any) -> None:
    diffrax, jax = pytest.importorskip("diffrax"), pytest.importorskip("jax")
    inertia, tolerance, end, first = 0.25 + 0.4 * 0.01, 1e-6, 3.0, 0.05

    def rates(_t: Any, y: Any, _: Any) -> Any:
        return y[1], (9.81 * 0.5 * jax.numpy.cos(y[0]) - 0.05 * y[1]) / inertia

    def norm(error: Any) -> Any:  # the velocity integrated in a step has the error of the position
        return jax.numpy.sqrt((2 * error[0] ** 2 + error[1] ** 2) / 3)

    with jax.enable_x64(True):
        found = diffrax.diffeqsolve(
            diffrax.ODETerm(rates), getattr(diffrax, method.capitalize())(), 0.0, end, first,
            (jax.numpy.asarray(0.3), jax.numpy.asarray(0.5)), saveat=diffrax.SaveAt(steps=True), max_steps=20000,
            stepsize_controller=diffrax.PIDController(
                rtol=1e-14, atol=tolerance, pcoeff=0.2, icoeff=0.4, dcoeff=0, norm=norm, safety=0.9, factormin=0.2,
                factormax=10,
            ),
        )  # fmt: skip
        steps, rejected = int(found.stats["num_accepted_steps"]), int(found.stats["num_rejected_steps"])
        times, positions = np.asarray(found.ts)[:steps], np.asarray(found.ys[0])[:steps]
    ours = sinew.integrate(
        sinew.Model.from_string(PENDULUM), {"qpos": [0.3], "qvel": [0.5]}, [end], method=method, rtol=1e-14,
        atol=tolerance, first_step=first,
    )  # fmt: skip
    assert (ours.accepted, ours.rejected) == (steps, rejected)
    # Errors of a step are rounded: those of dopri8 are small.
    np.testing.assert_allclose(ours.step_time[1:], times[:-1], atol=1e-4 if method == "dopri8" else 1e-6)
    assert ours.qpos[0, 0] == pytest.approx(positions[-1], abs=1e-10)


def test_a_run_that_does_not_end_is_data() -> None:
    motion = sinew.integrate(spring(), {"qpos": [0.2]}, [0, 5], max_steps=3, rtol=1e-9, atol=1e-9)
    assert (motion.end, motion.accepted + motion.rejected) == ("steps", 3)
    assert np.isfinite(motion.qpos[0]).all()
    assert np.isnan(motion.qpos[1]).all()
    with pytest.raises(LimitError, match="max_steps"):
        motion.raise_if_unfinished()
    with pytest.raises(StateError, match="no run that was done"):
        sinew.integrate_vjp(motion)
    few = sinew.integrate(spring(), {"qpos": [0.2]}, [5], memory=2000, rtol=1e-9, atol=1e-9)
    assert few.end == "memory"
    with pytest.raises(LimitError, match=r"\(memory\) does not suffice"):
        few.raise_if_unfinished()
    assert motion.warnings == 0
    assert "steps" in repr(few)


def test_without_gradients_nothing_is_kept() -> None:
    motion = sinew.integrate(spring(), None, [1.0], gradients=False)
    assert len(motion.step_time) == 0
    with pytest.raises(StateError, match="without gradients"):
        sinew.integrate_vjp(motion)


@pytest.mark.parametrize(
    ("kind", "word", "arguments"),
    [
        (ArgumentError, "time: shape", {"time": []}),
        (ArgumentError, r"time\[1\]: 0.2 s", {"time": [0.5, 0.2]}),
        (ArgumentError, r"time\[0\]: -1 s", {"time": [-1.0, 0.2]}),
        (ArgumentError, r"time\[1\]: nan", {"time": [0.1, float("nan")]}),
        (ArgumentError, "the last one is 0 s", {"time": [0.0]}),
        (ArgumentError, "rtol", {"rtol": 0}),
        (ArgumentError, "atol", {"atol": float("nan")}),
        (ArgumentError, "fixed_step must", {"method": "rk4"}),
        (NotFoundError, "'rk45'", {"method": "rk45"}),
        (ArgumentError, "max_steps", {"max_steps": 0}),
        (ArgumentError, "memory", {"memory": 5}),
        (ArgumentError, "memory: -5", {"memory": -5}),
        (ArgumentError, "memory: 1000000", {"memory": 1e6}),
        (ArgumentError, "method: 5", {"method": 5}),
        (ArgumentError, "controller: dict", {"controller": {"p": 1}}),
        (ArgumentError, "rtol: 'x'", {"rtol": "x"}),
        (ArgumentError, "fixed_step: 0", {"fixed_step": 0.0}),
        (ArgumentError, "ctrl: shape", {"ctrl": [1, 2]}),
        (ArgumentError, "ctrl_time: shape", {"ctrl": [[1], [2]], "ctrl_time": [0]}),
        (ArgumentError, r"knot_time\[1\]", {"ctrl": [[1], [2]], "ctrl_time": [1, 1]}),
        (ArgumentError, "without ctrl", {"ctrl_time": [0]}),
        (ArgumentError, "control", {"ctrl": [float("inf")]}),
        (DivergedError, r"qpos\[0\]", {"state": {"qpos": [float("nan")]}}),
        (ArgumentError, "safety", {"controller": sinew.Controller(safety=2)}),
    ],
)
def test_bad_input_is_refused_in_words(kind: type[SinewError], word: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(kind, match=word):
        sinew.integrate(spring(), **{"time": [1.0], **arguments})


def test_bars_are_checked() -> None:
    motion = sinew.integrate(spring(), None, [1.0])
    with pytest.raises(ArgumentError, match="qpos: shape"):
        sinew.integrate_vjp(motion, qpos=[1.0])
    with pytest.raises(ArgumentError, match="finite"):
        sinew.integrate_vjp(motion, qpos=[[np.nan]])
    with pytest.raises(ArgumentError, match="coordinates"):
        sinew.integrate_vjp(motion, coordinates="euler")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="expected a sinew"):
        sinew.integrate_vjp(3)  # type: ignore[arg-type]
