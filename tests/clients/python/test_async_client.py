"""The client for asyncio, against a daemon, beside the one that waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest
import sinew
from sinew import errors
from sinew.client import AsyncClient, AsyncSession, Client, Daemon, Plan, Session

from daemons import Liar, plain_messages

SETTINGS = {"adam_iterations": 3, "iterations": 3}


def run(endpoint: str, steps: Callable[[AsyncClient], Awaitable[None]], **options: Any) -> None:
    async def whole() -> None:
        async with AsyncClient(endpoint, **options) as client:
            await asyncio.wait_for(steps(client), 30)

    asyncio.run(whole())


def state_at(session: AsyncSession | Session, time: float) -> dict[str, Any]:
    return {"time": time, "qpos": session.initial.qpos, "qvel": session.initial.qvel}


def test_same_methods() -> None:
    """What one client has, the other has, too."""
    for waits, awaits in ((Client, AsyncClient), (Session, AsyncSession)):
        names = {name for name in dir(waits) if not name.startswith("_")}
        assert names <= {name for name in dir(awaits) if not name.startswith("_")}


def test_all_requests(daemon: Daemon) -> None:
    async def steps(client: AsyncClient) -> None:
        assert (await client.health()).state == "READY"
        assert "arm_reach" in {task.name for task in await client.list_tasks()}
        assert (await client.load_model("billiard")).model == "billiard"
        await client.unload_model("billiard")
        assert not {m.name: m.loaded for m in await client.list_models()}["billiard"]
        assert (await client.describe_model("arm_reach")).nu == 6
        assert (await client.statistics()).requests > 0
        async for look in client.telemetry(10):
            assert look.time > 0
            break
        async with await client.open("arm_reach", 3, SETTINGS, latency=0.01) as session:
            assert session.config.session["latency"] == 0.01
            assert (await session.tune(adam_rate=0.5, weights={"reach": 2})).version == 2
            assert (await session.set_weight("reach", 3)).version == 3
            assert (await session.set_target("reach", [0.4, 0, 1.3])).version == 4
            assert (await session.revert(1)).planner["adam_rate"] == 0.01
            assert (await session.get_config()).version == 5
            async with await client.attach(session.id) as same:
                assert same.config.version == 5
            evaluation = await session.evaluate(session.initial, np.full((4, 6), 0.5), gradient=True)
            assert evaluation.gradient is not None
            assert evaluation.gradient.ctrl.shape == (4, 6)
            assert np.asarray((await session.reset(7)).qpos).shape == (2,)
            assert (await session.statistics()).sessions[0].session == session.id
        with pytest.raises(errors.NoSessionError, match="no session"):
            await session.plan(session.initial, 0.1)

    run(daemon.endpoint, steps)


def test_same_plans(daemon: Daemon, client: Client) -> None:
    """Plans of a fixed number of iterations are those of the client that waits, bit for bit; many at the same time."""
    expected = []
    for seed in range(4):
        with client.open("arm_reach", seed, SETTINGS) as session:
            plans = [session.plan(state_at(session, t)) for t in (0.0, 0.02)]
            expected.append(plans[-1].ctrl)

    async def one(client: AsyncClient, seed: int) -> Plan:
        async with await client.open("arm_reach", seed, SETTINGS) as session:
            await session.plan(state_at(session, 0.0))
            plan = await session.plan(state_at(session, 0.02))
            assert session.control(0.03) is not None
            assert session.acting == "plan"
            return plan

    async def steps(client: AsyncClient) -> None:
        plans = await asyncio.gather(*(one(client, seed) for seed in range(4)))
        for plan, ctrl in zip(plans, expected, strict=True):
            assert np.array_equal(plan.ctrl, ctrl)

    run(daemon.endpoint, steps)


def test_send_and_receive(daemon: Daemon) -> None:
    async def steps(client: AsyncClient) -> None:
        async with await client.open("arm_reach", 1, SETTINGS) as session:
            assert await session.receive() is None
            assert await session.receive(0.01) is None
            await session.send(state_at(session, 0.1), iterations=1)
            plan = await session.receive(20)
            assert plan is not None
            assert plan.state_time == 0.1
            assert session.current_plan is plan

    run(daemon.endpoint, steps)


def test_stream(daemon: Daemon) -> None:
    """Plans arrive while states are sent by another task; stopping ends the iteration."""

    async def steps(client: AsyncClient) -> None:
        async with await client.open("arm_reach", 1, SETTINGS, latency=0.01) as session:
            numbers: list[int] = []
            async with await session.stream(lease=10, deadline=1) as stream:

                async def feed() -> None:
                    for k in range(10):
                        await stream.send(state_at(session, 0.005 * k))
                        while not numbers or len(numbers) <= k:
                            await asyncio.sleep(0.001)
                    assert (await stream.stop()).end == "STOPPED"

                feeding = asyncio.create_task(feed())
                async for plan in stream:
                    numbers.append(plan.stream_sequence)
                await feeding
            assert numbers == sorted(set(numbers))
            assert len(numbers) >= 10
            stream = await session.stream(lease=0.06)
            with pytest.raises(errors.EndedError, match="lease"):
                async for _ in stream:
                    pass

    run(daemon.endpoint, steps, timeout=1000)


def test_cancelled_request(daemon: Daemon) -> None:
    """A request that is given up leaves the client as it was."""

    async def steps(client: AsyncClient) -> None:
        async with await client.open("arm_reach", 1) as session:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(session.plan(session.initial, 0.5, iterations=10**6), 0.05)
            assert not client._waiting
            assert (await client.health()).state == "READY"
            await session.plan(state_at(session, 1), iterations=1)

    run(daemon.endpoint, steps)


def test_errors(daemon: Daemon) -> None:
    async def steps(client: AsyncClient) -> None:
        with pytest.raises(errors.RefusedError, match="nowhere"):
            await client.open("nowhere")
        with pytest.raises(errors.ArgumentError, match="'candidats' is unknown"):
            await client.open("arm_reach", settings={"candidats": 3})
        async with await client.open("arm_reach") as session:
            with pytest.raises(errors.ArgumentError, match="qpos: shape"):
                await session.plan({"time": 0, "qpos": [1], "qvel": [0, 0]}, 0.1)
        with pytest.raises(RuntimeError, match="mine"):
            async with await client.open("arm_reach") as session:
                raise RuntimeError("mine")
        with pytest.raises(errors.NoSessionError, match="no session"):
            await client.statistics(session.id)
        with pytest.raises(errors.StateError, match="connected already"):
            await client.__aenter__()

    run(daemon.endpoint, steps)

    async def outside() -> None:
        with pytest.raises(errors.StateError, match="not connected"):
            await AsyncClient(daemon.endpoint).health()
        with pytest.raises(errors.TimedOutError, match=r"no answer from ipc:///nowhere/at/all within 0.1 s"):
            await AsyncClient.connect("ipc:///nowhere/at/all", timeout=0.1, retries=1)
        with pytest.raises(errors.ArgumentError, match="cannot connect to 'nonsense': expected ipc://PATH or tcp:"):
            await AsyncClient.connect("nonsense")
        client = await AsyncClient.connect(daemon.endpoint)
        await client.close()
        await client.close()
        with pytest.raises(errors.StateError, match="closed"):
            await client.health()

    asyncio.run(outside())


def test_silence_and_garbage(daemon: Daemon) -> None:
    with Liar(daemon.endpoint) as liar:
        reply = plain_messages()["Reply"]

        async def steps(client: AsyncClient) -> None:
            silent = 2

            def lie(said: Any) -> Any:
                nonlocal silent
                silent -= 1
                return None if silent >= 0 else said

            liar.lie = lie
            assert (await client.health()).state == "READY"
            silent = 3
            with pytest.raises(errors.TimedOutError, match=r"within 1 s"):
                await client.health()
            liar.lie = lambda said: b"\xff\xff"
            with pytest.raises(errors.ProtocolError, match="is not a Reply"):
                await client.health()
            liar.lie = lambda said: reply(id=said.id, close={})
            with pytest.raises(errors.ProtocolError, match="another kind"):
                await client.health()
            liar.lie = lambda said: reply(id=0, error={"code": 1, "text": "cannot read it"})
            with pytest.raises(errors.RefusedError, match="cannot read it"):
                await client.health()

        run(liar.endpoint, steps, timeout=1, retries=2)


def test_closing_ends_waits(daemon: Daemon) -> None:
    with Liar(daemon.endpoint) as liar:

        async def steps() -> None:
            client = await AsyncClient.connect(liar.endpoint)
            liar.lie = lambda said: None
            waiting = asyncio.create_task(client.health())
            await asyncio.sleep(0.05)
            await client.close()
            with pytest.raises(errors.StateError, match="closed"):
                await waiting

        asyncio.run(steps())


def test_lazy_names() -> None:
    assert sinew.AsyncClient is AsyncClient
    assert sinew.Client is Client
