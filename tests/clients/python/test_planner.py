"""Planners in this process: the plans of sinewd, bodies that they move, what can be tuned, what is refused."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import pytest
import sinew
from sinew.errors import (
    ArgumentError,
    DivergedError,
    NoPlanError,
    NotFoundError,
    StateError,
    UnsupportedError,
)
from sinew.planner import Planner

import scenes
from processes import resident

MODEL = scenes.ROOT / "physics" / "models" / "arm_reach.xml"
ADAM = {"planner": "adam", "adam_iterations": 3}
SAMPLING = {"planner": "sampling", "candidates": 8, "iterations": 2}


@pytest.fixture(scope="module")
def model() -> sinew.Model:
    return sinew.Model.from_xml(MODEL)


@pytest.fixture(scope="module")
def task() -> sinew.Task:
    return sinew.Task("arm_reach")


@pytest.fixture
def planner(model: sinew.Model, task: sinew.Task) -> Planner:
    return Planner(model, task, threads=1, settings=ADAM, seed=5)


def numbers(planner: Planner, plans: int = 4) -> list[np.ndarray]:
    """Return the controls of plans along the plans themselves."""
    state: Any = planner.initial
    found = []
    for _ in range(plans):
        plan = planner.plan(state, states=True)
        assert plan.qpos is not None and plan.qvel is not None and plan.act is not None
        found.append(plan.ctrl)
        state = {"time": plan.start + 8 * plan.step, "qpos": plan.qpos[8], "qvel": plan.qvel[8], "act": plan.act[8]}
    return found


@pytest.mark.parametrize("settings", [ADAM, SAMPLING])
@pytest.mark.parametrize("latency", [0.0, 0.01])
def test_plans_are_those_of_sinewd(
    model: sinew.Model, task: sinew.Task, settings: dict[str, Any], latency: float
) -> None:
    planner = Planner(model, task, threads=1, settings=settings, seed=5)
    with sinew.serve(threads=2) as daemon, daemon.client(timeout=20) as client:
        session = client.open("arm_reach", 5, settings, latency=latency)
        state: Any = planner.initial
        np.testing.assert_array_equal(state.qpos, session.initial.qpos)
        for i in range(5):
            ours = planner.plan(state, latency=latency, states=True)
            theirs = session.plan(state, states=True)
            np.testing.assert_array_equal(ours.ctrl, theirs.ctrl)
            assert theirs.states is not None
            assert ours.qpos is not None and ours.qvel is not None and ours.act is not None
            np.testing.assert_array_equal(ours.qpos, theirs.states.qpos)
            np.testing.assert_array_equal(ours.act, theirs.states.act)
            assert (ours.cost_before, ours.cost_after) == (theirs.cost_before, theirs.cost_after)
            assert (ours.lead, ours.iterations, ours.candidates) == (theirs.lead, theirs.iterations, theirs.candidates)
            assert ours.act_estimated == theirs.act_estimated
            act = ours.act[8] if i % 2 else None  # every other state has no activations
            state = sinew.State(ours.qpos[8], ours.qvel[8], act, ours.start + 8 * ours.step)


def test_plans_depend_on_the_seed_alone(model: sinew.Model, task: sinew.Task) -> None:
    first, second = (Planner(model, task, threads=n, settings=SAMPLING, seed=7) for n in (1, 2))
    expected = numbers(first)
    for a, b in zip(expected, numbers(second), strict=True):
        np.testing.assert_array_equal(a, b)
    first.reset(7)
    np.testing.assert_array_equal(numbers(first)[0], expected[0])
    first.reset(8)
    assert not np.array_equal(numbers(first)[0], expected[0])


def test_a_plan_moves_a_body_of_mujoco(planner: Planner) -> None:
    theirs = mujoco.MjModel.from_xml_path(str(MODEL))
    theirs.opt.timestep = planner.model.opt.timestep
    body = mujoco.MjData(theirs)
    start = planner.initial
    body.qpos, body.qvel, body.act = start.qpos, start.qvel, start.act
    before = planner.measure(body)["hand_at_target"]
    for _ in range(60):
        plan = planner.plan(body, iterations=4)
        for _ in range(8):
            body.ctrl = planner.control(body.time)
            mujoco.mj_step(theirs, body)
    after = planner.measure(body)["hand_at_target"]
    assert before > 0.1 and after < 0.03
    assert plan.number == 60 and plan.refined and plan.deadline_met and not plan.act_estimated


def test_control_takes_the_row_in_force(planner: Planner) -> None:
    with pytest.raises(NoPlanError):
        planner.control(0)
    plan = planner.plan(planner.initial)
    np.testing.assert_array_equal(planner.control(plan.start), plan.ctrl[0])
    np.testing.assert_array_equal(planner.control(plan.start + 3.5 * plan.step), plan.ctrl[3])
    np.testing.assert_array_equal(planner.control(-5), plan.ctrl[0])
    np.testing.assert_array_equal(planner.control(100), plan.ctrl[-1])
    np.testing.assert_array_equal(plan.time, plan.start + plan.step * np.arange(len(plan.ctrl)))
    planner.reset(5)
    with pytest.raises(NoPlanError):
        planner.control(0)


def test_costs_and_their_gradients(planner: Planner, task: sinew.Task) -> None:
    plan = planner.plan(planner.initial)
    cost, none = planner.evaluate(planner.initial, plan.ctrl)
    assert none is None and cost == pytest.approx(plan.cost_after, rel=1e-12)
    rollout = sinew.rollout(planner.model, planner.initial, plan.ctrl, task=task)
    assert cost == pytest.approx(float(np.asarray(rollout.cost)), rel=1e-12)
    ctrl = np.random.default_rng(11).uniform(0.1, 0.9, plan.ctrl.shape)  # no muscle's control is its activation
    gradient = planner.evaluate(planner.initial, ctrl, gradient=True).gradient
    assert gradient is not None
    for i, j in ((0, 0), (10, 2), (20, 5)):
        step = np.zeros_like(ctrl)
        step[i, j] = 1e-5
        ends = [planner.evaluate(planner.initial, ctrl + sign * step).cost for sign in (1, -1)]
        assert gradient[i, j] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-8)
    assert planner.evaluate(planner.initial, np.empty((0, 6))).cost >= 0


def test_weights_and_targets(planner: Planner) -> None:
    state, ctrl = planner.initial, np.zeros((20, 6))
    cost = planner.evaluate(state, ctrl).cost
    for term in scenes.REACH_TERMS:
        planner.set_weight(term, 0, 0)
    assert planner.evaluate(state, ctrl).cost == 0
    planner.set_weight("reach", 2, 2)
    assert planner.evaluate(state, ctrl).cost > 0
    hand = planner.measure(state)["hand_at_target"]
    planner.set_target("hand_at_target", [9, 9, 9])
    assert planner.measure(state)["hand_at_target"] > 5
    planner.set_target("hand_at_target", None)
    assert planner.measure(state)["hand_at_target"] == hand
    assert cost != planner.evaluate(state, ctrl).cost


def test_settings(planner: Planner) -> None:
    table = sinew.planner.settings()
    assert len(table) > 20
    for name, setting in table.items():
        assert setting.name == name and setting.doc
        if setting.choices is not None:
            assert setting.value in setting.choices
        elif setting.text:
            assert isinstance(setting.value, str)
        else:
            assert setting.lowest <= float(setting.value) <= setting.highest
        assert isinstance(planner.get(name), type(setting.value)), name
    assert planner.get("planner") == "adam" and planner.get("adam_iterations") == 3
    planner.set(adam_rate=0.125, planner="sampling", candidates=np.int64(4), iterations=2)
    assert (planner.get("adam_rate"), planner.get("planner"), planner.get("candidates")) == (0.125, "sampling", 4)
    assert planner.plan(planner.initial).candidates <= 4


def test_no_improvement(planner: Planner) -> None:
    planner.set(planner="sampling", candidates=1, iterations=1, patience=2)
    plans = [planner.plan(planner.initial) for _ in range(3)]
    assert [plan.unimproved for plan in plans] == [1, 2, 3]
    assert [plan.remark for plan in plans] == ["", "no improvement for 2 plans", "no improvement for 3 plans"]
    assert not any(plan.stuck for plan in plans)


def test_feedback(model: sinew.Model, task: sinew.Task) -> None:
    planner = Planner(model, task, settings={"planner": "ilqg", "ilqg_iterations": 2}, threads=1)
    with pytest.raises(NoPlanError):
        planner.feedback(planner.initial)
    plan = planner.plan(planner.initial, gains=3)
    nu, width = planner.model.nu, 2 * planner.model.nv + planner.model.na
    assert plan.gain is not None and plan.gain.shape == (plan.gain_rows, nu, width) == (3, 6, 10)
    assert plan.qpos is not None and plan.qvel is not None and plan.act is not None
    ranges = [(0.0, 1.0)] * nu
    rng = np.random.default_rng(2)
    for row in range(5):
        moved = 0.05 * rng.standard_normal(width)
        state = {
            "time": plan.time[row],
            "qpos": plan.qpos[row] + moved[:2],  # two hinges
            "qvel": plan.qvel[row] + moved[2:4],
            "act": plan.act[row] + moved[4:],
        }
        wanted = plan.ctrl[row] + (plan.gain[row] @ moved if row < 3 else 0)
        np.testing.assert_allclose(planner.feedback(state), np.clip(wanted, *zip(*ranges, strict=True)), atol=1e-12)
    with pytest.raises(ArgumentError, match=r"qvel\[1\] is nan"):
        planner.feedback({**state, "qvel": [0, np.nan]})
    with pytest.raises(ArgumentError, match="act is NULL"):
        planner.feedback({**state, "act": None})
    planner.set(planner="adam")
    with pytest.raises(UnsupportedError, match="planner 'adam' makes none"):
        planner.plan(planner.initial, gains=3)
    again = planner.plan(planner.initial, iterations=1)
    assert again.gain is None and again.gain_rows == 0


def test_time_grid(planner: Planner) -> None:
    horizon = int(planner.get("horizon"))
    planner.set(grid=f"{horizon // 2}x1,{horizon // 4}x2")
    assert planner.get("grid") == f"{horizon // 2}x1,{horizon // 4}x2"
    plan = planner.plan(planner.initial)
    assert plan.ctrl.shape[0] == horizon
    assert np.array_equal(plan.ctrl[horizon // 2 :: 2], plan.ctrl[horizon // 2 + 1 :: 2])
    with pytest.raises(ArgumentError, match=f"'7x1' lasts 7 base steps, allowed is the horizon, {horizon}"):
        planner.set(grid="7x1")
    with pytest.raises(ArgumentError, match="expected a text"):
        planner.set(grid=7)
    assert planner.get("grid") == f"{horizon // 2}x1,{horizon // 4}x2"


@pytest.mark.parametrize(
    "call,error,text",
    [
        (lambda p: p.set(adam_rat=1), NotFoundError, "'adam_rat'; did you mean 'adam_rate'"),
        (lambda p: p.set(adam_rate=-1), ArgumentError, "adam_rate: -1 is out of bounds, allowed is 1e-09 to 10"),
        (lambda p: p.set(adam_rate=np.nan), ArgumentError, "adam_rate: nan"),
        (lambda p: p.set(adam_rate="fast"), ArgumentError, "'fast', expected a number from 1e-09 to 10"),
        (lambda p: p.set(adam_rate=True), ArgumentError, "True, expected a number from 1e-09 to 10"),
        (lambda p: p.set(adam_rate=None), ArgumentError, "None"),
        (lambda p: p.set(candidates=1.5), ArgumentError, "candidates"),
        (lambda p: p.set(candidates=np.nan), ArgumentError, "candidates"),
        (lambda p: p.set(candidates=np.inf), ArgumentError, "candidates"),
        (lambda p: p.set(planner="newton"), ArgumentError, "'newton', expected one of sampling, adam"),
        (lambda p: p.set(planner=1), ArgumentError, "expected one of sampling, adam"),
        (lambda p: p.set(horizon=10), StateError, "horizon"),
        (lambda p: p.get("pace"), NotFoundError, "pace"),
        (lambda p: p.set_weight("rech", 1, 1), NotFoundError, "rech"),
        (lambda p: p.set_weight("reach", -1, 1), ArgumentError, "-1"),
        (lambda p: p.set_target("reach", [1]), ArgumentError, ""),
        (lambda p: p.set_target("reach", [np.nan] * 3), ArgumentError, ""),
        (lambda p: p.plan({}), ArgumentError, "qpos and qvel"),
        (lambda p: p.plan({"qpos": [0, 0, 0], "qvel": [0, 0]}), ArgumentError, r"qpos: shape \(3,\), expected \(2,\)"),
        (lambda p: p.plan({"qpos": [np.nan, 0], "qvel": [0, 0]}), ArgumentError, "qpos"),
        (lambda p: p.plan(p.initial, latency=-1), ArgumentError, "latency: -1"),
        (lambda p: p.plan(p.initial, budget=np.nan), ArgumentError, "budget"),
        (lambda p: p.plan(p.initial, budget="soon"), ArgumentError, "budget: numbers of type"),
        (lambda p: p.plan(p.initial, latency=[0, 1]), ArgumentError, r"latency: shape \(2,\), expected \(\)"),
        (lambda p: p.control(None), ArgumentError, "time: numbers of type"),
        (lambda p: p.set_weight("reach", "more", 1), ArgumentError, "weight: numbers of type"),
        (lambda p: p.plan(p.initial, iterations=-1), ArgumentError, "iterations"),
        (lambda p: p.plan(p.initial, iterations=1.5), ArgumentError, "iterations: 1.5"),
        (lambda p: p.evaluate(p.initial, np.zeros(6)), ArgumentError, r"expected \(steps, 6\)"),
        (lambda p: p.evaluate(p.initial, np.full((3, 6), np.nan)), ArgumentError, "ctrl"),
        (lambda p: p.evaluate({"qvel": [1e11, 0]}, np.zeros((3, 6))), (ArgumentError, DivergedError), "qvel"),
        (lambda p: p.measure({"qpos": [1]}), ArgumentError, "qpos"),
        (lambda p: p.reset(-1), ArgumentError, "seed: -1"),
        (lambda p: p.reset(2**64), ArgumentError, "seed"),
        (lambda p: Planner(p.model, "arm_reach"), ArgumentError, "task: str"),
        (lambda p: Planner(MODEL, p.task), ArgumentError, "model"),
        (lambda p: Planner(p.model, p.task, seed=0.5), ArgumentError, "seed: 0.5"),
        (lambda p: Planner(p.model, p.task, threads="all"), ArgumentError, "threads"),
        (lambda p: Planner(p.model, p.task, device="abacus"), NotFoundError, "abacus"),
        (lambda p: Planner(p.model, p.task, settings={"horizon": 1}), ArgumentError, "horizon: 1"),
        (lambda p: Planner(p.model, p.task, settings="horizon=9"), ArgumentError, "settings: 'horizon=9', expected a"),
        (lambda p: Planner(sinew.Model.from_string(scenes.PENDULUM), p.task), NotFoundError, ""),
    ],
)
def test_what_is_refused(planner: Planner, call: Callable[[Planner], Any], error: Any, text: str) -> None:
    with pytest.raises(error, match=text or None):
        call(planner)
    planner.plan(planner.initial)


def test_planner_without_a_plan_within_its_budget(planner: Planner) -> None:
    planner.plan(planner.initial)
    plan = planner.plan(planner.initial, budget=1e-9)
    assert not plan.refined


def test_two_threads_on_one_planner(planner: Planner) -> None:
    thread = threading.Thread(target=lambda: planner.plan(planner.initial, budget=1.0, iterations=10**6))
    thread.start()
    refused = 0
    while thread.is_alive() and not refused:
        try:
            planner.control(0)
        except StateError as error:
            assert "in use" in str(error)
            refused += 1
        except NoPlanError:
            pass
        time.sleep(0.01)
    thread.join()
    assert refused


def test_ctrl_c_ends_a_plan() -> None:
    program = f"""
        import sinew, time
        planner = sinew.planner.Planner(sinew.Model.from_xml({str(MODEL)!r}), sinew.Task("arm_reach"), seed=1)
        first = planner.plan(planner.initial, iterations=1)
        print("begun", flush=True)
        try:
            planner.plan(planner.initial, budget=60, iterations=10**9)
        except KeyboardInterrupt:
            print(time.time(), flush=True)
        assert (planner.control(first.start) == first.ctrl[0]).all()
        assert planner.plan(planner.initial, iterations=1).number > 1
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stdout.readline() == "begun\n"
        time.sleep(0.3)
        sent = time.time()
        child.send_signal(signal.SIGINT)
        at = child.stdout.readline()
        assert child.wait(20) == 0
    print(f"Ctrl-C acted after {1e3 * (float(at) - sent):.1f} ms")


def test_models_and_plans_outlive_their_planner(model: sinew.Model, task: sinew.Task) -> None:
    planner = Planner(model, task, settings=ADAM)
    plan, of = planner.plan(planner.initial, states=True), planner.model
    expected = plan.ctrl.copy(), of.body_mass.copy()
    del planner
    gc.collect()
    other = Planner(of, task, settings=ADAM)
    np.testing.assert_array_equal(other.plan(other.initial).ctrl, plan.ctrl)
    blocks = [np.full(20000, np.nan) for _ in range(100)]
    np.testing.assert_array_equal(plan.ctrl, expected[0])
    np.testing.assert_array_equal(of.body_mass, expected[1])
    plan.ctrl[:] = 0
    del blocks


def test_ten_thousand_plans_leave_memory_where_it_was(planner: Planner) -> None:
    state = planner.initial

    def plans(n: int) -> None:
        for _ in range(n):
            planner.plan(state, iterations=1, states=True)
            planner.evaluate(state, np.zeros((2, 6)), gradient=True)
            planner.measure(planner.initial)

    plans(500)
    gc.collect()
    before = resident()
    plans(10000)
    gc.collect()
    assert resident() - before < 2**21
