"""A plan as a table, and as the fields of ROS 2's JointTrajectory."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import sinew
from sinew import errors
from sinew.client import ModelDescription, Plan, Quantity


@pytest.fixture
def plan(client: sinew.Client) -> Plan:
    with client.open("joints") as session:
        initial = session.initial
        qvel = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
        return session.plan({"time": 2.5, "qpos": initial.qpos, "qvel": qvel}, iterations=1, states=True)


def test_tables(plan: Plan) -> None:
    pytest.importorskip("pandas")
    table = plan.to_pandas()
    assert list(table.columns) == ["push", "ctrl1"]
    assert table.index.name == "time"
    assert np.array_equal(table.index, plan.time)
    assert np.array_equal(table.to_numpy(), plan.ctrl)
    assert plan.states is not None
    motion = plan.to_pandas("qpos")
    assert list(motion.columns) == ["shoulder[0]", "shoulder[1]", "shoulder[2]", "shoulder[3]", "rail", "qpos5"]
    assert np.array_equal(motion.to_numpy(), plan.states.qpos)
    assert list(plan.to_pandas("qvel").columns) == ["shoulder[0]", "shoulder[1]", "shoulder[2]", "rail", "qvel4"]
    assert plan.to_pandas("qvel")["rail"].iloc[0] == 0.4
    assert plan.to_pandas("act").shape == (9, 0)
    with pytest.raises(errors.ArgumentError, match="vector is 'xpos'"):
        plan.to_pandas("xpos")


def seconds(time: dict[str, int]) -> float:
    assert set(time) == {"sec", "nanosec"}
    assert 0 <= time["nanosec"] < 10**9
    return time["sec"] + 1e-9 * time["nanosec"]


# Of trajectory_msgs/msg/JointTrajectory and JointTrajectoryPoint, std_msgs/msg/Header.
POINT = ["positions", "velocities", "accelerations", "effort", "time_from_start"]


def check_fields(message: dict[str, Any]) -> None:
    assert list(message) == ["header", "joint_names", "points"]
    assert list(message["header"]) == ["stamp", "frame_id"]
    for point in message["points"]:
        assert list(point) == POINT
        for name in POINT[:-1]:
            assert len(point[name]) in (0, len(message["joint_names"]))
            assert all(type(x) is float for x in point[name])


def test_joint_trajectory(plan: Plan) -> None:
    message = plan.to_joint_trajectory()
    check_fields(message)
    assert message["header"] == {"stamp": {"sec": 2, "nanosec": 500_000_000}, "frame_id": ""}
    assert message["joint_names"] == ["rail", "qpos5"]
    assert plan.states is not None
    assert len(message["points"]) == 9
    for k, point in enumerate(message["points"]):
        assert point["positions"] == plan.states.qpos[k, 4:].tolist()
        assert point["velocities"] == plan.states.qvel[k, 3:].tolist()
        assert point["effort"] == point["accelerations"] == []
        assert seconds(point["time_from_start"]) == pytest.approx(0.01 * k, abs=1e-9)


def test_actuator_trajectory(plan: Plan) -> None:
    message = plan.to_joint_trajectory("actuators", stamp=-0.25, frame_id="world")
    check_fields(message)
    assert message["header"] == {"stamp": {"sec": -1, "nanosec": 750_000_000}, "frame_id": "world"}
    assert message["joint_names"] == ["push", "ctrl1"]
    assert [point["effort"] for point in message["points"]] == plan.ctrl.tolist()
    assert [seconds(point["time_from_start"]) for point in message["points"]] == pytest.approx(0.01 * np.arange(8))
    with pytest.raises(errors.ArgumentError, match="of is 'muscles'"):
        plan.to_joint_trajectory("muscles")


def test_without_states(client: sinew.Client) -> None:
    with client.open("joints") as session:
        plan = session.plan(session.initial, iterations=1)
        with pytest.raises(errors.ArgumentError, match="states=True"):
            plan.to_joint_trajectory()


def test_repeated_names() -> None:
    """An actuator with several controls has one name on the wire; columns of a table are told apart."""
    ctrl = tuple(Quantity(name, i, 1, "1", False, 0, 0) for i, name in enumerate(["twist", "twist", "", "lift"]))
    model = ModelDescription("m", 0.01, 0, 0, 0, 4, 0, (), (), (), ctrl, (), "")
    assert model.columns("ctrl") == ["twist[0]", "twist[1]", "ctrl2", "lift"]


# ----------------------------------------------------------------------------------------- feedback


def test_feedback(client: sinew.Client) -> None:
    with client.open("joints", settings={"planner": "ilqg"}) as session:
        initial = session.initial
        plan = session.plan({"time": 2.5, "qpos": initial.qpos, "qvel": initial.qvel}, iterations=2, gains=3)
        model, states = session.model, plan.states
        assert states is not None
        assert plan.gain.shape == (plan.gain_rows, model.nu, 2 * model.nv + model.na) == (3, 2, 10)
        assert np.abs(plan.gain).max() > 0
        assert session.control(2.5).tolist() == plan.ctrl[0].tolist()
        for row in range(5):
            turn, rest = np.array([0.02, -0.03, 0.01]), np.array([0.04, -0.05])
            angle = np.linalg.norm(turn)
            small = np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * turn / angle])
            ball = product(states.qpos[row, :4], small)
            moved = {
                "time": plan.time[row],
                "qpos": np.concatenate([3 * ball, states.qpos[row, 4:] + rest]),
                "qvel": states.qvel[row] + 0.1,
            }
            difference = np.concatenate([turn, rest, np.full(5, 0.1)])
            wanted = plan.ctrl[row] + (plan.gain[row] @ difference if row < 3 else 0)
            limits = session.ctrl_range
            np.testing.assert_allclose(plan.control(moved), np.clip(wanted, limits[:, 0], limits[:, 1]), atol=1e-12)
        # What large gains come to may be no number, or none that a robot should get: the row acts as it was planned.
        for gain in ([1e308, -1e308], [1e308, 1e308], [1e6, 0]):
            gains = plan.gain.copy()
            gains[:, :, model.nv : model.nv + 2] = gain
            far = states.qvel[0] + np.array([1e10, 1e10, 0, 0, 0])
            wild = dataclasses.replace(plan, gain=gains)
            assert wild.control({"time": 2.5, "qpos": states.qpos[0], "qvel": far}).tolist() == plan.ctrl[0].tolist()
        with pytest.raises(errors.ArgumentError, match="qvel: shape"):
            plan.control({"time": 2.5, "qpos": initial.qpos, "qvel": [1.0]})
        with pytest.raises(errors.ArgumentError, match="needs a time"):
            plan.control({"qpos": initial.qpos, "qvel": initial.qvel})


def test_feedback_in_force(client: sinew.Client) -> None:
    with client.open("joints", settings={"planner": "ilqg"}, time_to_live=0.5) as session:
        initial = session.initial
        state = {"time": 2.5, "qpos": initial.qpos, "qvel": np.asarray(initial.qvel) + 0.1}
        plan = session.plan({**state, "qvel": initial.qvel}, iterations=2, gains=3)
        wanted = plan.control(state)
        assert wanted.tolist() != session.control(2.5).tolist()
        out = np.empty(session.model.nu)
        assert session.feedback(state, out) is out
        assert out.tolist() == wanted.tolist() and session.acting == "plan"
        assert not session.feedback({**state, "time": 3.1}).any() and session.acting == "expired"
        with pytest.raises(errors.ArgumentError, match=r"qvel\[1\] = nan"):
            session.feedback({**state, "qvel": [0, math.nan, 0, 0, 0]})
        with pytest.raises(errors.ArgumentError, match="not finite"):
            plan.control({**state, "qvel": [0, math.nan, 0, 0, 0]})


def test_feedback_of_a_stream(client: sinew.Client) -> None:
    with client.open("joints", settings={"planner": "sampling"}, latency=0.01) as session:
        with pytest.raises(errors.SinewError, match="gains: planner 'sampling' makes none"):
            session.stream(gains=2)
        session.tune(planner="ilqg")
        with session.stream(lease=60, deadline=5, gains=2) as stream:
            stream.send({"time": 1.0, "qpos": session.initial.qpos, "qvel": session.initial.qvel})
            plan = next(iter(stream))
            assert plan.gain.shape == (2, 2, 10) and plan.states is not None and plan.lead == 1


def test_no_feedback(client: sinew.Client, plan: Plan) -> None:
    assert plan.gain_rows == 0 and plan.gain.size == 0
    state = {"time": plan.time[2], "qpos": np.zeros(6), "qvel": np.zeros(5)}
    with client.open("joints", settings={"planner": "sampling"}) as session:
        state["qpos"] = session.initial.qpos
        first = session.plan(state, iterations=1)
        with pytest.raises(errors.SinewError, match="gains: planner 'sampling' makes none"):
            session.plan(state, iterations=1, gains=3)
        assert session.current_plan is first


def product(a: Any, b: Any) -> Any:
    """Return the product of two quaternions."""
    (w, *v), (s, *u) = a, b
    return np.concatenate([[w * s - np.dot(v, u)], w * np.array(u) + s * np.array(v) + np.cross(v, u)])
