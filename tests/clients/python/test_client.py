"""The client that waits, beside a daemon. What goes wrong is in test_client_errors.py."""

from __future__ import annotations

import ctypes
import dataclasses
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sinew
from sinew import errors
from sinew.client import Daemon, Session, calls, messages, schema
from sinew.client.plan import Plan

import scenes
from arms import arm, qpos, state_at
from daemons import plain_messages

BUILD = Path(__file__).resolve().parents[3] / "build" / "release" / "clients"


# ----------------------------------------------------------------------------------------- the daemon


def test_every_message_has_its_dataclass() -> None:
    for name, made in [*messages.CLASSES.items(), ("Plan", Plan)]:
        described = plain_messages()[name].DESCRIPTOR.fields_by_name
        if dataclasses.is_dataclass(made):
            fields = {field.name for field in dataclasses.fields(made)} - {"model" if name == "Plan" else ""}
            assert fields == set(described), name
    replies = plain_messages()["Reply"].DESCRIPTOR.fields_by_name
    requests = plain_messages()["Request"].DESCRIPTOR.fields_by_name
    assert set(requests) - set(replies) == {"stream_state"}


def test_service(client: sinew.Client) -> None:
    assert client.hello.protocol == 1
    assert "adam" in client.hello.planners
    assert client.hello.backends == ("cpu",)
    health = client.health()
    assert health.state == "READY"
    assert health.memory_bytes > 1e6
    assert health.device is None
    assert client.statistics().uptime > 0
    tasks = {task.name: task for task in client.list_tasks()}
    assert tasks["arm_reach"].model == "arm_reach.xml"
    assert client.load_model("billiard").model == "billiard"
    assert {m.name: m.loaded for m in client.list_models()}["billiard"]
    client.unload_model("billiard")
    assert not {m.name: m.loaded for m in client.list_models()}["billiard"]
    model = client.describe_model("joints")
    assert (model.nq, model.nv, model.na, model.nu, model.nmocap) == (6, 5, 0, 2, 1)
    assert [q.name for q in model.qpos] == ["shoulder", "rail", ""]
    assert [q.size for q in model.qvel] == [3, 1, 1]
    assert model.ctrl[0].limited
    assert (model.ctrl[0].min, model.ctrl[0].max) == (-2, 3)
    assert not model.ctrl[1].limited
    task = client.describe_task("arm_reach")
    assert [term.name for term in task.terms] == list(scenes.REACH_TERMS)
    assert task.measures[0].below == 0.02
    assert task.settings["horizon"] == 48


def test_telemetry(client: sinew.Client) -> None:
    with arm(client) as session:
        for look in client.telemetry(wait=10):
            if any(s.session == session.id and s.task == "arm_reach" for s in look.statistics.sessions):
                break
    with pytest.raises(errors.TimedOutError, match=r"no telemetry within 0.001 s"):
        next(iter(client.telemetry(wait=0.001)))


# ------------------------------------------------------------------------------------------- sessions


def test_open(client: sinew.Client) -> None:
    options = {"latency": 0.02, "lease": 9.0, "time_to_live": 0.5}
    with (
        arm(client, 3, settings={"horizon": 20}, **options) as session,
        arm(client, 3) as same,
        arm(client, 4) as other,
    ):
        assert session.config.session == options
        assert session.config.planner["horizon"] == 20
        assert np.array_equal(qpos(session.initial), qpos(same.initial))
        assert not np.array_equal(qpos(session.initial), qpos(other.initial))
        assert session.model.nu == 6
        assert session.ctrl_range.shape == (6, 2)
        assert session.current_plan is None
        session.plan(session.initial, iterations=1)
        session.control(0)
        assert session.acting == "plan"
        again = session.reset(4)
        assert session.current_plan is None
        session.control(0)
        assert session.acting == "no plan"
        assert np.array_equal(qpos(again), qpos(other.initial))
    with pytest.raises(errors.NoSessionError, match="no session"):
        client.statistics(session.id)


def test_mocap_and_ranges(client: sinew.Client) -> None:
    with client.open("joints") as session:
        assert session.ctrl_range.tolist() == [[-2, 3], [-math.inf, math.inf]]
        assert np.asarray(session.initial.mocap).shape == (1, 7)
        assert np.asarray(session.initial.mocap)[0, 2] == 2
        poses = np.array([[0.5, 0, 2, 1, 0, 0, 0]])
        state = {**state_at(session, 0), "mocap": poses}
        rows = [session.plan(state, iterations=1).ctrl, session.plan({**state, "mocap": poses[0]}, iterations=1).ctrl]
        assert rows[0].shape == (8, 2)
        with pytest.raises(errors.ArgumentError, match=r"mocap: shape \(6,\), expected \(1, 7\) or \(7,\)"):
            session.plan({**state, "mocap": np.zeros(6)})


def test_plan(client: sinew.Client) -> None:
    with arm(client, latency=0.02) as session:
        plan = session.plan(session.initial, 0.5, iterations=2, states=True)
        assert plan is session.current_plan
        assert plan.lead == 4
        assert plan.ctrl.shape == (plan.steps, 6) == (48 + 4, 6)
        assert plan.cost_after <= plan.cost_before
        assert sum(plan.terms.values()) == pytest.approx(plan.cost_after, rel=1e-12)
        assert plan.refined
        assert not plan.ctrl.flags.writeable
        assert np.allclose(plan.time, 0.005 * np.arange(52))
        assert plan.states is not None
        assert plan.states.qpos.shape == (53, 2)
        assert np.array_equal(plan.states.qpos[0], qpos(session.initial))
        assert session.statistics().sessions[0].plans == 1
        act = np.full(6, 0.1)
        state = {**state_at(session, 0.04), "act": act}
        assert not session.plan(state, iterations=1).act_estimated
        applied = ([0.04, 0.06], np.full((2, 6), 0.3))
        estimated = session.plan(state_at(session, 0.08), iterations=1, states=True, applied=applied)
        assert estimated.act_estimated
        assert estimated.states is not None
        assert estimated.states.act[0].min() > 0


def test_no_improvement(client: sinew.Client) -> None:
    with client.open("arm_reach", settings={"planner": "sampling", "candidates": 1, "patience": 2}) as session:
        plans = [session.plan(session.initial, iterations=1) for _ in range(2)]
        assert [(plan.unimproved, plan.stuck) for plan in plans] == [(1, False), (2, False)]
        assert [plan.remark for plan in plans] == ["", "no improvement for 2 plans"]
        assert session.statistics().sessions[0].unimproved == 2


def test_controls(client: sinew.Client) -> None:
    """The index rule, for times on the grid and between, and the ends of a plan's life."""
    with arm(client, time_to_live=0.5) as session:
        assert session.control(0).tolist() == [0] * 6
        assert session.acting == "no plan"
        plan = session.plan(state_at(session, 1.0), iterations=2)
        low, high = session.ctrl_range.T
        for k in range(200):
            now = 1.0 + k * 0.0025
            out = session.control(now)
            assert session.acting == "plan"
            assert np.array_equal(out, np.clip(plan.ctrl[min(k // 2, 47)], low, high)), now
        assert np.array_equal(session.control(0.7), np.clip(plan.ctrl[0], low, high))
        for now in (1.501, 0.499):
            assert session.control(now).tolist() == [0] * 6
            assert session.acting == "expired"
        mine = np.empty(6)
        assert session.control(1.0, out=mine) is mine


def test_fallbacks(client: sinew.Client) -> None:
    with arm(client, fallback="hold", time_to_live=0.1) as session:
        session.plan(state_at(session, 0), iterations=2)
        last = session.control(0.01)
        assert last.any()
        assert np.array_equal(session.control(1), last)
    with arm(client, fallback=lambda now, last: np.full_like(last, now)) as session:
        assert session.control(0.25).tolist() == [0.25] * 6
        assert session.control(7).tolist() == session.ctrl_range[:, 1].tolist()
    with (
        arm(client, fallback=lambda now, last: [1, 2]) as session,
        pytest.raises(errors.ArgumentError, match="fallback: shape"),
    ):
        session.control(0)
    with arm(client, fallback=None, time_to_live=0.1) as session:
        with pytest.raises(errors.NoPlanError, match="no plan has come yet"):
            session.control(0)
        session.plan(state_at(session, 0), iterations=1)
        with pytest.raises(errors.ExpiredError, match=r"at 0.2 s the plan of the state at 0 s .* lives 0.1 s"):
            session.control(0.2)
    with pytest.raises(errors.ArgumentError, match="fallback is 'relax'"):
        arm(client, fallback="relax")


def test_evaluate(client: sinew.Client) -> None:
    """The gradient is that of central differences of the cost that the daemon tells."""
    with arm(client) as session:
        alone = session.evaluate(session.initial)
        assert alone.cost == pytest.approx(sum(alone.terms.values()))
        assert alone.measures[0].name == "hand_at_target"
        ctrl = np.random.default_rng(5).uniform(0.2, 0.8, (12, 6))
        there = session.evaluate(session.initial, ctrl, gradient=True, states=True)
        assert there.states is not None
        assert there.states.qvel.shape == (13, 2)
        gradient = there.gradient
        assert gradient is not None
        assert gradient.ctrl.shape == (12, 6)
        assert gradient.norm == pytest.approx(np.linalg.norm(gradient.ctrl))
        assert {t.name: t.target.shape for t in gradient.targets}["reach"] == (13, 3)
        for row, control in ((0, 0), (4, 3), (9, 5)):
            moved = [ctrl.copy(), ctrl.copy()]
            moved[0][row, control] += 1e-5
            moved[1][row, control] -= 1e-5
            more, less = (session.evaluate(session.initial, x).cost for x in moved)
            assert gradient.ctrl[row, control] == pytest.approx((more - less) / 2e-5, rel=1e-4, abs=1e-9)
        assert session.evaluate(session.initial, np.full((4, 6), 1e9)).cost >= 0


def test_tune(client: sinew.Client) -> None:
    with arm(client) as session:
        cost = session.evaluate(session.initial).terms["reach"]
        config = session.tune(adam_rate=0.03, latency=0.01, weights={"reach": 2}, targets={"reach": [0.4, 0, 1.3]})
        assert config is session.config
        assert config.version == 2
        assert (config.planner["adam_rate"], config.session["latency"]) == (0.03, 0.01)
        terms = {term.name: term for term in config.terms}
        assert terms["reach"].weight == 2
        assert terms["reach"].target.tolist() == [0.4, 0, 1.3]
        assert session.plan(session.initial, iterations=1).config_version == 2
        session.set_target("reach", None)
        assert session.evaluate(session.initial).terms["reach"] == pytest.approx(2 * cost)
        assert {t.name: t.terminal_weight for t in session.set_weight("reach", 1, terminal=3).terms}["reach"] == 3
        back = session.revert(1)
        assert back.reverted_to == 1
        assert back.planner["adam_rate"] == 0.01
        whole = session.get_config()
        assert "adam_rate" in {row.name for row in whole.table}
        assert session.get_config(2).planner["adam_rate"] == 0.03
        with pytest.raises(errors.ArgumentError, match=r"unknown setting 'adam_rat'; .*; did you mean 'adam_rate'"):
            session.tune(adam_rat=1)
        with pytest.raises(errors.ArgumentError, match="adam_rate is 'fast'"):
            session.tune(adam_rate="fast")
        with pytest.raises(errors.RefusedError, match="nowhere") as refused:
            session.set_weight("nowhere", 1)
        assert refused.value.code in ("INVALID", "NOT_FOUND")
        with pytest.raises(errors.RefusedError, match="adam_rate"):
            session.tune(adam_rate=-1)
        assert session.get_config().version == back.version


def test_attach(client: sinew.Client, daemon: Daemon) -> None:
    """A session is watched and tuned from elsewhere, and goes on."""
    with arm(client) as session, daemon.client() as elsewhere:
        with elsewhere.attach(session.id) as same:
            assert same.tune(adam_rate=0.5).version == 2
            assert same.task.task == "arm_reach"
        assert session.get_config().planner["adam_rate"] == 0.5
        with pytest.raises(errors.RefusedError):
            elsewhere.attach(1)


# ------------------------------------------------------------------------------------ without waiting


def test_send_and_receive(client: sinew.Client) -> None:
    with arm(client, 1) as one, arm(client, 2) as two:
        assert one.receive() is None
        for k in range(3):
            one.send(state_at(one, 0.1 * k), iterations=1)
            two.send(state_at(two, 0.1 * k), iterations=1)
        client.health()
        newest = {session: wait_for(session, 0.2) for session in (one, two)}
        for session, plan in newest.items():
            assert plan.session == session.id
            assert session.current_plan is plan
            assert session.receive() is None
        one.send(state_at(one, 0.3), iterations=1)
        latest = one.plan(state_at(one, 0.4), iterations=1)
        client.health()
        assert one.receive(0.05) is None, "an answer to an earlier state is of no use"
        assert one.current_plan is latest


def wait_for(session: Session, stamp: float) -> Plan:
    """Return the plan for the state of that time."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        plan = session.receive(1)
        if plan is not None and plan.state_time == stamp:
            return plan
    raise AssertionError("no plan has come")


def test_stream(client: sinew.Client) -> None:
    with arm(client, 1, latency=0.01) as session, arm(client, 2) as other:
        with session.stream(lease=5, deadline=1) as stream:
            numbers = []
            for k in range(60):  # more than the plans that may be on their way unread
                stream.send(state_at(session, 0.005 * k))
                assert k % 6 or other.plan(state_at(other, 0.01 * k), 0.02).session == other.id
                plan = stream.receive(5)
                assert plan is not None
                assert plan is session.current_plan
                assert session.control(0.005 * k) is not None
                assert session.acting == "plan"
                numbers.append(plan.stream_sequence)
            assert numbers == sorted(set(numbers))
            assert stream.renew(lease=4).lease == 4
            stream.send(state_at(session, 0.5))
            for plan in stream:
                if plan.state_time == 0.5:
                    break
            with pytest.raises(errors.RefusedError, match="qpos"):
                _refused_state(stream, session)
            assert stream.running
        assert not stream.running
        assert stream.reply is not None
        assert stream.reply.end == "STOPPED"
        assert stream.reply.states >= 1
        assert list(stream) == []


def _refused_state(stream: Any, session: Session) -> None:
    """Send a state that the daemon refuses and this package lets through, and wait for the refusal."""
    stream.send({**state_at(session, 0.6), "qpos": np.full(2, 1e11)})
    for _ in range(100):
        stream.receive(0.1)


def test_stream_ends(client: sinew.Client, daemon: Daemon) -> None:
    with arm(client) as session:
        with pytest.raises(errors.RefusedError, match="lease"):
            session.stream(lease=0.01)
        stream = session.stream(lease=0.06)
        with pytest.raises(errors.EndedError, match="no state came within its lease"):
            wait_for_end(stream)
        assert not stream.running
        stream = session.stream(lease=60)
        with daemon.client() as elsewhere:
            elsewhere._request(calls.close_session(session.id))
        with pytest.raises(errors.EndedError, match="the session was closed"):
            wait_for_end(stream)
        with pytest.raises(errors.RefusedError) as refused:
            session.plan(session.initial, 0.1)
        assert refused.value.code == "NOT_FOUND"


def wait_for_end(stream: Any) -> None:
    for _ in range(100):
        stream.receive(0.2)


# -------------------------------------------------------------------------------------- beside C's client


class CState(ctypes.Structure):
    _fields_ = (
        ("time", ctypes.c_double),
        *((name, ctypes.c_void_p) for name in ("qpos", "qvel", "act", "mocap")),
    )


class CPlan(ctypes.Structure):
    _fields_ = (
        ("number", ctypes.c_uint64),
        ("start", ctypes.c_double),
        ("step", ctypes.c_double),
        ("steps", ctypes.c_int),
        ("ctrl", ctypes.POINTER(ctypes.c_double)),
        ("state_time", ctypes.c_double),
        ("time_to_live", ctypes.c_double),
        ("age", ctypes.c_double),
        ("cost_before", ctypes.c_double),
        ("cost_after", ctypes.c_double),
    )


class CSessionDef(ctypes.Structure):
    """As the first version of the header has it: programs that were built with that go on to work."""

    _fields_ = (
        ("size", ctypes.c_size_t),
        ("task", ctypes.c_char_p),
        ("seed", ctypes.c_uint64),
        ("settings", ctypes.c_void_p),
        ("latency", ctypes.c_double),
        ("lease", ctypes.c_double),
        ("time_to_live", ctypes.c_double),
        ("fallback", ctypes.c_void_p),
        ("fallback_user", ctypes.c_void_p),
    )


@pytest.mark.skipif(not list(BUILD.glob("libsinew_client.so*")), reason="no build/release of the C client")
def test_same_plans_as_c(client: sinew.Client) -> None:
    """Iterations and seed fixed, the C client and this one get the same plans and apply the same rows, bit for bit."""
    library = ctypes.CDLL(str(sorted(BUILD.glob("libsinew_client.so*"))[0]))
    for name in ("sinew_client_connect", "sinew_session_open", "sinew_session_current_plan"):
        getattr(library, name).restype = ctypes.c_void_p
    error = ctypes.create_string_buffer(4096)
    connection = ctypes.c_void_p(library.sinew_client_connect(client.endpoint.encode(), ctypes.c_double(20), 0, error))
    definition = CSessionDef(ctypes.sizeof(CSessionDef), b"arm_reach", 3, None, 0.01)
    pairs = [b"adam_iterations=3", b"iterations=3", None]
    texts = (ctypes.c_char_p * 3)(*pairs)
    definition.settings = ctypes.addressof(texts)
    handle = ctypes.c_void_p(library.sinew_session_open(connection, ctypes.byref(definition), error))
    assert handle.value, error.raw[4:200]
    with arm(client, 3, latency=0.01) as session:
        for k in range(4):
            now = 0.02 * k
            moved = qpos(session.initial) + 0.01 * k
            plan = session.plan({"time": now, "qpos": moved, "qvel": session.initial.qvel})
            qvel = np.asarray(session.initial.qvel)
            state = CState(now, moved.ctypes.data, qvel.ctypes.data, None, None)
            assert library.sinew_session_plan(handle, ctypes.byref(state), ctypes.c_double(0), error) == 0
            theirs = CPlan.from_address(library.sinew_session_current_plan(handle))
            rows = np.ctypeslib.as_array(theirs.ctrl, (theirs.steps, 6))
            assert np.array_equal(plan.ctrl, rows)
            assert (plan.cost_after, plan.start, plan.step) == (theirs.cost_after, theirs.start, theirs.step)
            out = (ctypes.c_double * 6)()
            for tick in np.linspace(now, now + 0.1, 33):
                assert library.sinew_session_control(handle, ctypes.c_double(tick), out, error) == 0
                assert session.control(tick).tolist() == list(out)
    assert library.sinew_session_close(handle, error) == 0
    library.sinew_client_disconnect(connection)


def test_bytes_are_packed_numbers() -> None:
    """Numbers that this package writes as bytes are what protobuf reads as numbers, and the other way round."""
    state = schema.load().new("State")
    schema.fill(state, {"time": 2, "qpos": np.array([1.5, -0.0, np.pi])})
    plain = plain_messages()["State"].FromString(state.SerializeToString())
    assert list(plain.qpos) == [1.5, -0.0, np.pi]
    plain.qvel.extend([0.1, math.inf])
    assert schema.values(type(state).FromString(plain.SerializeToString()))["qvel"].tolist() == [0.1, math.inf]
    broken = type(state).FromString(b"\x12\x03abc")
    with pytest.raises(errors.ProtocolError, match="qpos has 3 bytes"):
        schema.values(broken)
