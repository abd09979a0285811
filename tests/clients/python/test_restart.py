"""A daemon that is killed, or told to stop, and started again: a session with a name goes on, and counts the gap."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import sinew
from sinew import errors
from sinew.files import program
from sinew.state import State


class Phoenix:
    """A daemon that can be started again at the same address."""

    def __init__(self, folder: Path) -> None:
        self.endpoint = f"ipc://{folder}/s"
        share = sinew.share("sinew.desc").parent
        self._arguments = [
            str(program("sinewd")),
            f"--endpoint={self.endpoint}",
            f"--state={folder}/state",
            f"--cache={folder}/cache",
            f"--tasks={share}/tasks",
            f"--models={share}/models",
            "--threads=1",
            "--backend=cpu",
        ]
        self._log = open(folder / "log", "wb")  # noqa: SIM115
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._arguments, stdout=self._log, stderr=self._log)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def restart(self, in_order: bool = False) -> None:
        if in_order:  # as a service is: requests that wait are refused, streams end
            self._process.terminate()
            self._process.wait()
        else:
            self.kill()
        self.start()

    def stop_before(self, seconds: float) -> threading.Thread:
        """Hold the daemon up; after so long it goes on, is to end before what waits, and the next one starts."""
        self._process.send_signal(signal.SIGSTOP)
        self._process.terminate()

        def go_on() -> None:
            time.sleep(seconds)
            self._process.send_signal(signal.SIGCONT)
            self._process.wait()
            self.start()

        thread = threading.Thread(target=go_on)
        thread.start()
        return thread


@pytest.fixture
def phoenix(tmp_path: Path) -> Iterator[Phoenix]:
    """Start a daemon that keeps sessions."""
    daemon = Phoenix(tmp_path)
    yield daemon
    daemon.kill()


def moved(session: sinew.Session | sinew.AsyncSession, time: float) -> State:
    return State(session.initial.qpos, session.initial.qvel, session.initial.act, time)


def test_plans_go_on(phoenix: Phoenix) -> None:
    with sinew.Client(phoenix.endpoint, timeout=20) as client:
        session = client.open("arm_reach", seed=2, name="left")
        assert not session.resumed
        session.set_weight("reach", 7.0)
        assert session.plan(moved(session, 0), iterations=1).restarts == 0
        phoenix.restart()
        plan = session.plan(moved(session, 0.01), iterations=1)
        assert (plan.restarts, session.gaps) == (1, 1)
        assert {term.name: term.weight for term in session.get_config().terms}["reach"] == 7.0
        statistics = session.statistics().sessions[0]
        assert (statistics.name, statistics.restarts) == ("left", 1)
    # Neither the end of its client nor an error in a with block ends it.
    with sinew.Client(phoenix.endpoint, timeout=20) as client:
        with pytest.raises(ZeroDivisionError), client.open("arm_reach", name="left") as session:
            assert session.resumed
            assert (session.id, session.config.version) == (plan.session, 2)
            1 / 0  # noqa: B018
        with client.open("arm_reach", name="left") as session:
            assert session.id == plan.session
        assert not client.open("arm_reach", name="left").resumed


def test_a_plan_under_way(phoenix: Phoenix) -> None:
    with sinew.Client(phoenix.endpoint, timeout=20) as client:
        session = client.open("arm_reach", settings={"planner": "sampling", "iterations": 0}, name="a")
        thread = threading.Timer(0.3, phoenix.restart)
        thread.start()
        assert session.plan(moved(session, 0), deadline=4.0).restarts == 1
        thread.join()


def test_refused_requests_are_sent_again(phoenix: Phoenix) -> None:
    with sinew.Client(phoenix.endpoint, timeout=20) as client:
        session = client.open("arm_reach", name="a")
        for ask in (
            lambda: session.plan(moved(session, 0), iterations=1),
            lambda: client.open("arm_reach", name="b"),
            session.close,
        ):
            stopping = phoenix.stop_before(0.2)
            ask()
            stopping.join()
        assert not client.open("arm_reach", name="a").resumed  # closed is closed
        assert client.open("arm_reach", name="b").resumed


def test_refused_requests_are_sent_again_asynchronously(phoenix: Phoenix) -> None:
    async def run() -> None:
        async with sinew.AsyncClient(phoenix.endpoint, timeout=20) as client:
            stopping = phoenix.stop_before(0.2)
            session = await client.open("arm_reach", name="a")
            stopping.join()
            stopping = phoenix.stop_before(0.2)
            await session.plan(moved(session, 0), iterations=1)
            stopping.join()
            stopping = phoenix.stop_before(0.2)
            await session.close()
            stopping.join()
            assert not (await client.open("arm_reach", name="a")).resumed

    asyncio.run(run())


def test_a_name_is_not_empty(phoenix: Phoenix) -> None:
    with sinew.Client(phoenix.endpoint, timeout=20) as client, pytest.raises(errors.ArgumentError, match=r"^name: "):
        client.open("arm_reach", name="")


@pytest.mark.parametrize("in_order", [False, True])
def test_stream_goes_on(phoenix: Phoenix, in_order: bool) -> None:
    with sinew.Client(phoenix.endpoint, timeout=20) as client:
        session = client.open("arm_reach", latency=0.02, name="a")
        with session.stream() as stream:
            now = 0.0
            for restarts in range(3):
                until = time.monotonic() + 20
                while True:
                    assert time.monotonic() < until
                    stream.send(moved(session, now))
                    now += 0.005
                    plan = stream.receive(0.005)
                    if plan is not None and plan.restarts == restarts:
                        break
                if restarts < 2:
                    phoenix.restart(in_order)
        assert session.gaps == 2


@pytest.mark.parametrize("in_order", [False, True])
def test_async(phoenix: Phoenix, in_order: bool) -> None:
    async def run() -> None:
        async with sinew.AsyncClient(phoenix.endpoint, timeout=20) as client:
            session = await client.open("arm_reach", settings={"planner": "sampling", "iterations": 0}, name="a")
            waiting = asyncio.create_task(session.plan(moved(session, 0), deadline=4.0))
            await asyncio.sleep(0.3)
            await asyncio.to_thread(phoenix.restart)
            assert (await waiting).restarts == 1
            async with await session.stream() as stream:
                for k in range(6000):
                    await stream.send(moved(session, 0.01 + 0.005 * k))
                    plan = await stream.receive(0.005)
                    if k == 20:
                        await asyncio.to_thread(phoenix.restart, in_order)
                    if plan is not None and plan.restarts == 2:
                        break
            assert session.gaps == 2

    asyncio.run(run())


def test_without_a_name(phoenix: Phoenix) -> None:
    with sinew.Client(phoenix.endpoint, timeout=20) as client:
        session = client.open("arm_reach")
        phoenix.restart()
        with pytest.raises(errors.NoSessionError, match="no session"):
            session.plan(moved(session, 0), iterations=1)


def test_a_daemon_that_keeps_none(client: sinew.Client) -> None:
    with pytest.raises(errors.RefusedError, match="names no folder"):
        client.open("arm_reach", name="x")
