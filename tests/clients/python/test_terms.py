"""What the daemon says of a task's terms: what they look at, and their targets along predicted states."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import sinew
from sinew import errors
from sinew.client import Daemon, schema
from sinew.client.messages import GateDescription, ObjectName, TaskDescription

import scenes
from daemons import Liar, plain_messages

SETTLING = """
<mujoco>
  <option timestep="0.005"/>
  <worldbody>
    <geom name="floor" type="plane" size="2 2 0.1"/>
    <body name="tray" pos="0.5 0.25 0.4" quat="0.9 0.1 -0.3 0.2">
      <joint name="lift" type="slide" axis="0 0 1" damping="20" stiffness="80"/>
      <geom type="box" size="0.1 0.1 0.02" mass="1"/>
    </body>
    <body name="left" pos="-0.4 0.1 0.1"><freejoint/><geom name="left" size="0.1" mass="0.2"/></body>
    <body name="right" pos="-0.4 -0.4 0.105"><freejoint/><geom name="right" size="0.1" mass="0.2"/></body>
  </worldbody>
  <actuator><motor name="lift" joint="lift" ctrlrange="-1 1"/></actuator>
</mujoco>
"""
SWAP = """
description: bodies settle, then change places as seen from a tray
model: settling.xml
initial: {settle: 0.3}
settings: {planner: sampling, horizon: 12, candidates: 4, knots: 4, iterations: 1}
terms:
  - name: left
    residual: {position: {body: left}}
    target: {position: {body: right}, at: start, frame: tray}
    weight: 1
  - name: upright
    residual: {orientation: {body: right}}
    target: {orientation: {body: left}, at: start, frame: tray}
    weight: 1
  - name: apart
    residual: {distance: [{body: left}, {geom: right}]}
    target: {keyframes: {times: [1, 2], values: [0.25, 0.75]}}
    weight: 1
  - name: follow
    residual: {position: {body: left}}
    target: {position: {body: tray}}
    gate: {residual: {distance: [{body: left}, {geom: right}]}, above: 0.25, width: 0.125}
    weight: 1
"""


@pytest.fixture(scope="module")
def swap() -> Iterator[sinew.Client]:
    """Connect to a daemon with the task above."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "settling.xml").write_text(SETTLING)
        (Path(folder) / "swap.yaml").write_text(SWAP)
        share = sinew.share("sinew.desc").parent
        models: list[Any] = [share / "models", folder]
        with sinew.serve(tasks=[share / "tasks", folder], models=models) as daemon, daemon.client() as client:
            yield client


def term(task: TaskDescription, name: str) -> Any:
    return next(term for term in task.terms if term.name == name)


def ellipse(time: np.ndarray) -> np.ndarray:
    """Return the target of ``planner/tasks/arm_reach.yaml``, as its file says."""
    angle = 2 * np.pi * time[:, None] / 4 + [0, 0, 1.5708]
    return np.array([0.45, 0, 1.35]) + [0.08, 0, 0.10] * np.sin(angle)


def seen_from(data: mujoco.MjData, frame: str, body: str) -> tuple[np.ndarray, np.ndarray]:
    """Return position and orientation of a body in the frame of another, by MuJoCo."""
    back, quat, pos = np.empty(4), np.empty(4), np.empty(3)
    base, other = data.body(frame), data.body(body)
    mujoco.mju_negQuat(back, base.xquat)
    mujoco.mju_rotVecQuat(pos, other.xpos - base.xpos, back)
    mujoco.mju_mulQuat(quat, back, other.xquat)
    return pos, quat


def settled(model: mujoco.MjModel, session: Any) -> mujoco.MjData:
    data = mujoco.MjData(model)
    data.qpos[:] = session.initial.qpos
    mujoco.mj_kinematics(model, data)
    return data


# ----------------------------------------------------------------------------------------------- descriptions


def test_description_of_terms(client: sinew.Client) -> None:
    reach, speed, effort, smooth = client.describe_task("arm_reach").terms
    assert (reach.quantity, reach.objects) == ("position", (ObjectName("site", "hand"),))
    assert (reach.norm, reach.width, reach.unit, reach.frame) == ("euclidean", 0.005, "m", "")
    assert (reach.target_kind, reach.target_follows, reach.target_objects) == ("sinusoid", False, ())
    assert [x.name for x in speed.objects] == ["shoulder", "elbow"]
    assert {x.kind for x in speed.objects} == {"joint"}
    assert speed.unit == "rad/s"
    assert (effort.quantity, effort.unit, len(effort.objects)) == ("activation", "1", 6)
    assert (smooth.quantity, smooth.unit, len(smooth.objects)) == ("control_rate", "1/s", 6)


def test_description_of_targets(swap: sinew.Client) -> None:
    task = swap.describe_task("swap")
    left, follow = term(task, "left"), term(task, "follow")
    assert (left.target_kind, left.target_follows, left.frame) == ("element", False, "tray")
    assert left.target_objects == (ObjectName("body", "right"),)
    assert (follow.target_follows, follow.target_objects, follow.frame) == (True, (ObjectName("body", "tray"),), "")
    assert term(task, "upright").unit == "quaternion"
    assert term(task, "apart").objects == (ObjectName("body", "left"), ObjectName("geom", "right"))
    assert task.plant.solref.size == task.plant.solimp.size == 0
    apart = (ObjectName("body", "left"), ObjectName("geom", "right"))
    assert follow.gate == GateDescription("distance", apart, "", "", "above", 0.25, 0.125, "m", "")
    assert left.gate is None


def test_gates_of_a_plan(swap: sinew.Client) -> None:
    """A plan says what its gates are in the state that it answers."""
    model = mujoco.MjModel.from_xml_string(SETTLING)
    with swap.open("swap") as session:
        data = settled(model, session)
        for moved in (0.0, 0.25):
            data.qpos[1] += moved  # the body on the left, along x
            mujoco.mj_kinematics(model, data)
            apart = float(np.linalg.norm(data.body("left").xpos - data.geom("right").xpos))
            (gate,) = session.plan(replace(session.initial, qpos=data.qpos), iterations=1).gates
            assert gate.name == "follow"
            assert gate.number == pytest.approx(apart, rel=1e-6)
            assert gate.factor == pytest.approx(1 / (1 + np.exp(-(gate.number - 0.25) / 0.125)), rel=1e-12)


# ---------------------------------------------------------------------------------------------------- targets


def test_moving_target(client: sinew.Client) -> None:
    """The rows of the lead have targets, too, and an evaluation has those of its own time."""
    with client.open("arm_reach", 3, {"adam_iterations": 2}, latency=0.02) as session:
        state = {"time": 0.7, "qpos": session.initial.qpos, "qvel": session.initial.qvel}
        plan = session.plan(state, iterations=2, states=True)
        assert plan.lead == 4
        assert plan.states is not None
        assert list(plan.states.targets) == list(scenes.REACH_TERMS)
        assert plan.states.targets["reach"].shape == (plan.steps + 1, 3)
        assert np.allclose(plan.states.targets["reach"], ellipse(plan.states.time), rtol=0, atol=1e-7)
        assert not plan.states.targets["speed"].any()
        there = session.evaluate({**state, "time": 1.9}, plan.ctrl, states=True).states
        assert there is not None
        assert np.allclose(there.targets["reach"], ellipse(there.time), rtol=0, atol=1e-7)


def test_target_set_live(client: sinew.Client) -> None:
    with client.open("arm_reach", 3, {"adam_iterations": 2}) as session:
        session.set_target("reach", [0.4, 0.1, 1.3])
        plan = session.plan(session.initial, iterations=2, states=True)
        assert plan.states is not None
        assert np.array_equal(plan.states.targets["reach"], np.tile([0.4, 0.1, 1.3], (plan.steps + 1, 1)))
        session.set_target("reach", None)
        plan = session.plan(session.initial, iterations=2, states=True)
        assert plan.states is not None
        assert np.allclose(plan.states.targets["reach"], ellipse(plan.states.time), rtol=0, atol=1e-7)


def test_captured_targets(swap: sinew.Client) -> None:
    """Targets that were captured at the start are where MuJoCo has the settled bodies, in the frame of the tray."""
    model = mujoco.MjModel.from_xml_string(SETTLING)
    with swap.open("swap") as session:
        data = settled(model, session)
        fallen = data.body("left").xpos - [-0.4, 0.1, 0.1]
        assert np.abs(fallen).max() > 1e-6  # it has settled: nothing is where the file puts it
        plan = session.plan({**vars_of(session.initial), "time": 1.48}, iterations=1, states=True)
        assert plan.states is not None
        targets = plan.states.targets
        assert set(targets) == {"left", "upright", "apart"}
        position, _ = seen_from(data, "tray", "right")
        _, orientation = seen_from(data, "tray", "left")
        assert np.allclose(targets["left"], position, rtol=0, atol=1e-9)
        assert np.allclose(np.abs(targets["upright"] @ orientation), 1, rtol=0, atol=1e-12)
        assert np.allclose(targets["apart"][:, 0], 0.25 + 0.5 * (plan.states.time - 1), rtol=0, atol=1e-12)
        session.set_target("follow", [1, 2, 3])
        plan = session.plan(session.initial, iterations=1, states=True)
        assert plan.states is not None
        assert np.array_equal(plan.states.targets["follow"][-1], [1, 2, 3])


def vars_of(state: sinew.State) -> dict[str, Any]:
    return {name: getattr(state, name) for name in ("qpos", "qvel", "act")}


def test_targets_of_hand_balls(myosuite: Path) -> None:
    """The balls of the hand, where MuJoCo has them; and what the task's file says of the robot's contacts."""
    with sinew.serve(models=[f"myosuite={myosuite}"]) as daemon, daemon.client() as client:
        plant = client.describe_task("hand_balls").plant
        assert plant.solref.tolist() == [0.02, 1]
        assert plant.solimp.tolist() == [0, 0.95, 0.001, 0.5, 2]
        with client.open("hand_balls", 1, {"adam_iterations": 1, "horizon": 16}) as session:
            data = settled(mujoco.MjModel.from_xml_path(session.model.file), session)
            plan = session.plan(session.initial, iterations=1, states=True)
            assert plan.states is not None
            for name, other in (("ball1", "ball2"), ("ball2", "ball1")):
                position, _ = seen_from(data, "trapezium", other)
                assert np.allclose(plan.states.targets[name], position, rtol=0, atol=1e-8)


# --------------------------------------------------------------------------------------------- continuous mode


def test_stream_of_states(client: sinew.Client) -> None:
    """Plans of a stream have their own states, those that an evaluation of their controls has."""
    with client.open("arm_reach", 1, {"planner": "sampling"}) as session:
        state = {"time": 0.5, **vars_of(session.initial)}
        with session.stream(lease=20, deadline=1, states=True) as stream:
            stream.send(state)
            plans = [plan for plan, _ in zip(stream, range(2), strict=False)]
            stream.renew(lease=20, deadline=1)
            stream.send({**state, "time": 0.6})
            plan = next(plan for plan in stream if plan.state_time == 0.6)
            assert plan.states is None
        for plan in plans:
            assert plan.states is not None
            again = session.evaluate(state, plan.ctrl, states=True).states
            assert again is not None
            assert np.array_equal(plan.states.qpos, again.qpos)
            assert np.array_equal(plan.states.targets["reach"], again.targets["reach"])


def test_stream_of_states_async(daemon: Daemon) -> None:
    async def run() -> None:
        async with (
            daemon.async_client() as client,
            await client.open("arm_reach", 1) as session,
            await session.stream(lease=20, deadline=1, states=True) as stream,
        ):
            await stream.send(session.initial)
            async for plan in stream:
                assert plan.states is not None
                assert plan.states.targets["reach"].shape == (plan.steps + 1, 3)
                break

    asyncio.run(run())


# ------------------------------------------------------------------------------------------------ other daemons


def test_daemon_without_the_fields(daemon: Daemon) -> None:
    """A daemon that knows nothing of terms is understood, and so is one that says more than we know."""

    def older(reply: Any) -> Any:
        for described in reply.describe_task.terms:
            kept = {name: getattr(described, name) for name in ("name", "weight", "terminal_weight", "target_size")}
            described.Clear()
            for name, value in kept.items():
                setattr(described, name, value)
        reply.describe_task.ClearField("plant")
        return reply

    def newer(reply: Any) -> bytes:
        return bytes(reply.SerializeToString()) + b"\xfa\x3e\x04more"  # field 1007

    for lie in (older, newer):

        def change(reply: Any, lie: Any = lie) -> Any:
            return lie(reply) if reply.HasField("describe_task") else reply

        with Liar(daemon.endpoint) as liar, sinew.Client(liar.endpoint) as client:
            liar.lie = change
            task = client.describe_task("arm_reach")
            assert task.terms[0].target_size == 3
            assert task.terms[0].quantity == ("" if lie is older else "position")
            assert task.plant.solref.size == 0


def test_targets_of_a_wrong_size() -> None:
    message = plain_messages()["Trajectory"]()
    message.targets.add(name="reach", size=3, target=[1.0, 2.0])
    told = schema.load().new("Trajectory")
    told.MergeFromString(message.SerializeToString())
    with pytest.raises(errors.ProtocolError, match="the targets of 'reach' are 2 numbers, 3 a row"):
        schema.convert(told)
