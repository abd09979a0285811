"""Records of sessions: a subscriber gets what happened, in its order."""

from __future__ import annotations

import time

import numpy as np
import pytest
import sinew
from sinew.client import RecordSocket, Session, records
from sinew.errors import ArgumentError, ProtocolError, RefusedError


def _await(subscription: RecordSocket, session: Session) -> None:
    """Plan until the session has made itself known to the subscription."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        plan = session.plan(session.initial, iterations=1)
        got = [records.parse(frame) for _, frame in subscription.messages(0.2)]
        if any(record.WhichOneof("body") == "open" for record in got):
            assert got[-1].plan.sequence == plan.sequence
            return
    pytest.fail("the subscription was not heard")


def test_records_of_a_session() -> None:
    with sinew.serve() as daemon, daemon.client() as client:
        session = client.open("arm_reach", 3)
        with client.records(session.id) as subscription:
            _await(subscription, session)
            plan = session.plan(session.initial, iterations=2)
            session.tune(noise_scale=0.2)
            messages = list(subscription.messages(0.5))
            assert [topic for topic, _ in messages] == [
                records.topic_of(session.id, kind) for kind in ("begin", "plan", "config")
            ]
            begin, made, config = (records.parse(frame) for _, frame in messages)
            assert begin.session == session.id and begin.number + 2 == config.number
            assert abs(begin.time - time.time()) < 60
            assert np.array_equal(np.frombuffer(begin.begin.state.qpos), session.initial.qpos)
            assert np.array_equal(np.frombuffer(made.plan.ctrl).reshape(plan.ctrl.shape), plan.ctrl)
            assert config.config.config.planner.noise_scale == 0.2
            assert subscription.receive_many() == []


def test_all_sessions() -> None:
    with sinew.serve() as daemon, daemon.client() as client, client.records() as subscription:
        first = client.open("arm_reach")
        _await(subscription, first)
        second = client.open("arm_reach", 5)
        (topic, frame), *_ = subscription.messages(2.0)
        assert topic == records.topic_of(second.id, "open")
        opened = records.parse(frame).open
        assert (opened.task, opened.seed, opened.number) == ("arm_reach", 5, client.hello.number)
        assert "site: hand" in opened.task_text


def test_no_records() -> None:
    with sinew.serve(settings={"records": "none"}) as daemon, daemon.client() as client:
        assert client.hello.records == ""
        with pytest.raises(RefusedError, match="publishes no records"):
            client.records()


def test_bad_input() -> None:
    for call, match in (
        (lambda: RecordSocket("nowhere"), "nowhere"),
        (lambda: RecordSocket(""), "no address"),
        (lambda: RecordSocket("ipc:///tmp/x", most=-1), "most is -1"),
        (lambda: records.topic_of(kind="plan"), "one session alone"),
    ):
        with pytest.raises(ArgumentError, match=match):
            call()
    with pytest.raises(ProtocolError, match="5 bytes are no Record"):
        records.parse(b"hello")
    subscription = RecordSocket("ipc:///tmp/no-such-daemon")
    assert subscription.receive_many(0.01) == []
    subscription.close()
    subscription.close()
    with pytest.raises(sinew.errors.StateError, match="closed"):
        subscription.receive_many()
