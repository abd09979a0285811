"""Sessions that are no more, as daemons of today and of before ``Error.no_session`` say it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import sinew
from sinew import errors
from sinew.client import Daemon

from arms import SETTINGS, arm, state_at
from daemons import Liar


def forget(reply: Any) -> Any:
    """Leave out of a reply what daemons of before did not say."""
    if reply.WhichOneof("body") == "error":
        reply.error.ClearField("no_session")
    return reply


@pytest.mark.parametrize("lie", [lambda reply: reply, forget], ids=["today", "before"])
def test_closed_by_another_client(daemon: Daemon, lie: Callable[[Any], Any]) -> None:
    with (
        Liar(daemon.endpoint) as liar,
        sinew.Client(liar.endpoint, timeout=20) as client,
        daemon.client(timeout=20) as other,
        arm(client) as session,
    ):
        liar.lie = lie
        with pytest.raises(errors.RefusedError, match="no version 9") as version:
            session.revert(9)
        assert type(version.value) is errors.RefusedError  # the session is there
        with pytest.raises(errors.RefusedError, match="no version 9") as version:
            session.get_config(9)
        assert type(version.value) is errors.RefusedError
        state = state_at(session, 0)
        other._abandon(session.id)
        other.health()  # behind which it is closed
        for ask in (
            lambda: session.plan(state, iterations=1),
            lambda: session.evaluate(state),
            session.get_config,
            session.statistics,
            session.snapshot,
            session.stream,
        ):
            with pytest.raises(errors.NoSessionError, match="no session"):
                ask()
        session.send(state, iterations=1)
        with pytest.raises(errors.NoSessionError, match="no session"):
            session.receive(20)
        session.close()


def losing(lost: list[bool], lie: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return what makes answers to the states of a stream those of a daemon that does not know the session."""

    def change(reply: Any) -> Any:
        if reply.WhichOneof("body") == "plan" and lost:
            reply.error.code, reply.error.text, reply.error.no_session = 3, "no session 5", True
        return lie(reply)

    return change


@pytest.mark.parametrize("lie", [lambda reply: reply, forget], ids=["today", "before"])
def test_stream_ends(daemon: Daemon, lie: Callable[[Any], Any]) -> None:
    """A stream whose session is no more does not run, and is not stopped at the daemon."""
    lost: list[bool] = []
    with (
        Liar(daemon.endpoint) as liar,
        sinew.Client(liar.endpoint, timeout=20) as client,
        arm(client) as session,
        session.stream(lease=20) as stream,
    ):
        liar.lie = losing(lost, lie)
        stream.send(state_at(session, 0))
        assert stream.receive(20) is not None
        requests = liar.requests
        lost.append(True)
        stream.send(state_at(session, 0.01))  # may be on its way yet when a plan made before it brings the error
        with pytest.raises(errors.NoSessionError, match="no session 5"):
            while True:
                stream.receive(20)
        assert not stream.running
    assert liar.requests == requests + 2  # the state, and the session is closed


@pytest.mark.parametrize("lie", [lambda reply: reply, forget], ids=["today", "before"])
def test_stream_ends_for_a_task(daemon: Daemon, lie: Callable[[Any], Any]) -> None:
    """The same of the client for asyncio."""
    lost: list[bool] = []

    async def steps(liar: Liar) -> None:
        async with (
            sinew.AsyncClient(liar.endpoint, timeout=20) as client,
            await client.open("arm_reach", 3, SETTINGS) as session,
            await session.stream(lease=20) as stream,
        ):
            liar.lie = losing(lost, lie)
            lost.append(True)
            await stream.send(state_at(session, 0))
            with pytest.raises(errors.NoSessionError, match="no session 5"):
                await stream.receive(20)
            assert not stream.running

    with Liar(daemon.endpoint) as liar:
        asyncio.run(asyncio.wait_for(steps(liar), 60))
