"""Option contact of a model: smoothed hard contacts in rollouts, bodies and plans, and what they do not go with."""

from __future__ import annotations

import numpy as np
import pytest
import sinew
from sinew.errors import ArgumentError, FormatError, UnsupportedError
from sinew.planner import Planner

XML = """
<mujoco><option timestep="0.004"/><default><geom friction="0.6"/></default><worldbody><geom type="plane" size="9 9 1"/>
<body name="box" pos="0 0 0.1"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body>
<body pos="0.5 0 0.14"><joint type="slide" axis="0 0 1"/><joint name="turn" axis="0 1 0" damping="0.1"/>
<geom type="capsule" size="0.05 0.1"/></body></worldbody><actuator><motor joint="turn" gear="2"/></actuator></mujoco>
"""


@pytest.fixture(scope="module")
def model() -> sinew.Model:
    return sinew.Model.from_string(XML).with_options(
        contact="sigmoid", contact_width=0.01, contact_restitution=0.2, tolerance=1e-14
    )


def test_contacts_are_mujocos_unless_asked_for(model: sinew.Model) -> None:
    plain = sinew.Model.from_string(XML)
    assert (plain.opt.contact, plain.opt.contact_width, plain.opt.contact_stiffness) == (0, 0.005, 0.2)
    assert (model.opt.contact, model.opt.contact_width, model.opt.contact_restitution) == (1, 0.01, 0.2)
    back = model.with_options(contact="mujoco", tolerance=plain.opt.tolerance)
    want, got = (sinew.rollout(m, nstep=50).qpos for m in (plain, back))
    assert np.array_equal(want, got)
    assert not np.array_equal(want, sinew.rollout(model, nstep=50).qpos)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"contact": "soft"}, ArgumentError, "option contact: 'soft', expected mujoco or sigmoid"),
        ({"contact_width": 0.0}, ArgumentError, "option contact_width is 0: must be 1e-06 to 1 m"),
        ({"contact_stiffness": 2.0}, ArgumentError, "option contact_stiffness is 2: must be 0 to 1"),
        ({"contact_restitution": -1.0}, ArgumentError, "option contact_restitution is -1: must be 0 to 1"),
        ({"integrator": "rk4"}, UnsupportedError, "option 'contact': sigmoid in a model with integrator RK4"),
        (
            {"enableflags": 1 << 4},
            UnsupportedError,
            "option 'contact': sigmoid in a model with flag sleep is not supported",
        ),
    ],
)
def test_refusals(model: sinew.Model, changes: dict[str, object], error: type[Exception], words: str) -> None:
    with pytest.raises(error) as caught:
        model.with_options(**changes)
    assert words in str(caught.value)


def test_contacts_from_distance_and_chosen_steps_are_refused(model: sinew.Model) -> None:
    with pytest.raises(UnsupportedError, match="option 'contact' of the model is sigmoid"):
        sinew.rollout(model, nstep=2, cfd=sinew.CFD())
    with pytest.raises(UnsupportedError, match="option 'contact' of the model is sigmoid"):
        sinew.Data(model).set_cfd(sinew.CFD())
    with pytest.raises(UnsupportedError, match="option 'contact' is sigmoid"):
        sinew.integrate(model, None, [0.1])


def test_gradients_are_those_of_the_motion(model: sinew.Model) -> None:
    steps, eps = 40, 1e-4  # a contact begins with 2e-9 of its force, which small moves would see
    start = {"qpos": model.qpos0.copy(), "qvel": np.zeros(model.nv)}
    start["qpos"][2] += 0.02  # it falls onto the floor, sliding
    start["qvel"][:3] = 0.8, 0.3, -0.5
    ctrl = np.full((steps, 1), 0.1)
    weights = np.random.default_rng(1).standard_normal(model.nq)

    def cost(qvel: np.ndarray, ctrl: np.ndarray) -> float:
        return float(sinew.rollout(model, {**start, "qvel": qvel}, ctrl).qpos[-1] @ weights)

    motion = sinew.rollout(model, start, ctrl)
    bars = np.zeros_like(motion.qpos)
    bars[-1] = weights
    gradient = sinew.rollout_vjp(motion, qpos=bars)
    for i in range(model.nv):
        move = eps * np.eye(model.nv)[i]
        slope = (cost(start["qvel"] + move, ctrl) - cost(start["qvel"] - move, ctrl)) / (2 * eps)
        assert abs(slope - gradient.qvel[i]) < 1e-4 * max(1.0, abs(slope))
    push = np.full_like(ctrl, eps)
    slope = (cost(start["qvel"], ctrl + push) - cost(start["qvel"], ctrl - push)) / (2 * eps)
    assert abs(slope - gradient.ctrl.sum()) < 1e-4 * max(1.0, abs(slope))


def test_a_gradient_knows_of_a_contact_to_come() -> None:
    ball = """<mujoco><option timestep="0.004" gravity="0 0 0"/><worldbody><geom type="plane" size="1 1 1"/>
    <body pos="0 0 0.1"><joint type="slide" axis="0 0 1"/><geom size="0.1"/></body></worldbody></mujoco>"""
    start = {"qpos": np.array([0.02]), "qvel": np.array([-0.1])}
    slopes = []
    for contact in ("mujoco", "sigmoid"):
        model = sinew.Model.from_string(ball).with_options(contact=contact)
        motion = sinew.rollout(model, start, nstep=20)
        bars = np.zeros_like(motion.qvel)
        bars[-1] = 1
        slopes.append(float(sinew.rollout_vjp(motion, qvel=bars).qpos[0]))
    assert slopes[0] == 0
    assert slopes[1] < 0  # the nearer, the more it is braked


def test_tasks_have_the_option() -> None:
    text = """
model: box.xml
options: {contact: CONTACT, contact_stiffness: 0.3}
settings: {horizon: 16}
terms: [{name: place, residual: {position: {body: box}}, target: [1, 0, 0.1], norm: squared}]
"""
    plain = sinew.Model.from_string(XML)
    costs = []
    for number, contact in enumerate(("mujoco", "sigmoid")):
        planner = Planner(plain, sinew.Task.parse(text.replace("CONTACT", contact)))
        assert (planner.model.opt.contact, planner.model.opt.contact_stiffness) == (number, 0.3)
        costs.append(planner.evaluate(planner.initial, np.zeros((16, 1))).cost)
    assert costs[0] != costs[1]
    with pytest.raises(FormatError, match="contact: 'soft' is unknown, allowed is mujoco"):
        sinew.Task.parse(text.replace("CONTACT", "soft"))
