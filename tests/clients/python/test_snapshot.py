"""Snapshots in Python: sessions that go on from one, here and at another daemon, make the same plans bit for bit."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
import sinew
from sinew.client import Client, Daemon, Plan, Session, Snapshot, records
from sinew.errors import ArgumentError, ProtocolError, RefusedError

SETTINGS = {"planner": "adam", "adam_moments": "kept", "adam_starts": 2}


def _plan(session: Session, k: int) -> Plan:
    """Make plan k of a run: each has a state of its own, every second one without activations."""
    state = session.initial
    moved = {"time": 0.013 * k, "qpos": state.qpos + 0.01 * k, "qvel": state.qvel, "mocap": state.mocap}
    if k % 2:
        moved["act"] = state.act
    return session.plan(sinew.State(**moved), iterations=3)


def _same(a: Plan, b: Plan) -> bool:
    return (a.sequence, a.cost_before, a.cost_after, a.act_estimated) == (
        b.sequence,
        b.cost_before,
        b.cost_after,
        b.act_estimated,
    ) and a.ctrl.tobytes() == b.ctrl.tobytes()


@pytest.fixture
def session(client: Client) -> Session:
    """Open a session with a past and a configuration of its own."""
    session = client.open("arm_reach", 7, SETTINGS, latency=0.01)
    session.tune(weights={"speed": 0.004}, targets={"reach": [0.4, 0.1, 1.3]})
    for k in range(4):
        _plan(session, k)
    return session


def test_goes_on_here_and_there(client: Client, session: Session, tmp_path: Path) -> None:
    file = tmp_path / "snapshot"
    file.write_bytes(bytes(session.snapshot()))
    snapshot = Snapshot(file.read_bytes())
    assert (snapshot.task, snapshot.seed, snapshot.plan, snapshot.number) == ("arm_reach", 7, 4, client.hello.number)
    assert snapshot.time == pytest.approx(0.039) and snapshot == session.snapshot()
    with sinew.serve() as other, other.client() as there:
        sessions = [client.open("arm_reach", snapshot=snapshot), there.open("arm_reach", snapshot=snapshot)]
        for x in sessions:
            assert x.config.session["latency"] == 0.01 and np.array_equal(x.initial.qpos, session.initial.qpos)
        for k in range(4, 7):
            plan = _plan(session, k)
            assert all(_same(plan, _plan(x, k)) for x in sessions)


def test_goes_back(session: Session) -> None:
    snapshot = session.snapshot()
    plans = [_plan(session, k) for k in range(4, 6)]
    session.reset(99)
    session.tune(planner="sampling", latency=0)
    config = session.restore(snapshot)
    assert config == session.config and config.planner["planner"] == "adam" and config.version == 4
    assert session.current_plan is None
    assert all(_same(plan, _plan(session, k)) for k, plan in zip(range(4, 6), plans, strict=True))


def test_other_settings(client: Client, session: Session) -> None:
    snapshot = session.snapshot()
    other = client.open("arm_reach", settings={"planner": "sampling"}, latency=0.0, snapshot=snapshot)
    assert other.config.planner["planner"] == "sampling" and other.config.session["latency"] == 0
    assert other.config.planner["adam_starts"] == 2
    assert not _same(_plan(session, 4), _plan(other, 4))


def test_refused(client: Client, session: Session) -> None:
    snapshot = session.snapshot()
    with pytest.raises(RefusedError, match="of the task 'arm_reach'; this session's is 'joints'"):
        client.open("joints", snapshot=snapshot)
    other = client.open("joints")
    with pytest.raises(RefusedError, match="of the task 'arm_reach'"):
        other.restore(snapshot)
    with pytest.raises(ProtocolError, match="are no Snapshot"):
        Snapshot(bytes(snapshot)[:-7])
    for data in (b"", b"nonsense"):
        with pytest.raises(ProtocolError, match="are no Snapshot"):
            Snapshot(data)
    bad = bytes(snapshot).replace(snapshot.checksum.encode(), b"0" * 16)
    with pytest.raises(RefusedError, match="checksum 0000000000000000"):
        session.restore(Snapshot(bad))
    assert _plan(session, 4).sequence == 5


def test_recorded(client: Client, session: Session) -> None:
    """A snapshot among the records of a session is one to go on from."""
    with client.records(session.id) as subscription:
        recorded = None
        for k in range(4, 40):
            plan = _plan(session, k)
            for _, frame in subscription.messages(0.1):
                record = records.parse(frame)
                if record.WhichOneof("body") == "snapshot":
                    recorded = Snapshot(record.snapshot.SerializeToString())
            if recorded is not None:
                break
        assert recorded is not None and recorded.plan == plan.sequence - 1
        assert _same(plan, _plan(client.open("arm_reach", snapshot=recorded), k))


def test_async(daemon: Daemon, session: Session) -> None:
    async def main() -> None:
        async with daemon.async_client() as client:
            other = await client.open("arm_reach", snapshot=session.snapshot())
            before = await other.snapshot()
            assert before.plan == 4
            await other.plan(session.initial, iterations=1)
            assert (await other.snapshot()).plan == 5
            assert [topic async for topic, _ in client.records(other.id, wait=0.2)] == []  # nobody plans
            for options in ({"wait": float("nan")}, {"most": -1}):
                with pytest.raises(ArgumentError, match=next(iter(options))):
                    await anext(client.records(other.id, **options))
            config = await other.restore(before)
            assert config == other.config and (await other.snapshot()).plan == 4

    asyncio.run(main())


def test_async_records(daemon: Daemon) -> None:
    async def main() -> list[str]:
        kinds: list[str] = []
        async with daemon.async_client() as client, await client.open("arm_reach", 3) as session:

            async def plan() -> None:
                while "plan" not in kinds:
                    await session.plan(session.initial, iterations=1)

            task = asyncio.create_task(plan())
            async for topic, frame in client.records(session.id, wait=float("inf")):
                assert records.parse(frame).session == session.id
                kinds.append(topic.split()[1])
                if "open" in kinds and kinds[-1] == "plan":
                    break
            await task
        return kinds[kinds.index("open") :]

    assert asyncio.run(asyncio.wait_for(main(), 30))[:4] == ["open", "snapshot", "begin", "plan"]
