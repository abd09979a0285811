"""What goes wrong with a client: wrong calls, lies, silence, a daemon that was started again, interrupts, memory."""

from __future__ import annotations

import asyncio
import inspect
import math
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sinew
from sinew import errors
from sinew.client import AsyncSession, Daemon
from sinew.client.wire import absence, default_endpoint
from sinew.files import program

from arms import SETTINGS, arm, state_at
from daemons import Liar, plain_messages
from processes import resident


def test_wrong_calls(client: sinew.Client) -> None:
    with pytest.raises(errors.RefusedError, match="nowhere") as refused:
        client.open("nowhere")
    assert refused.value.code == "NOT_FOUND"
    with pytest.raises(errors.ArgumentError, match=r"'candidats' is unknown; known are .*; did you mean 'candidates'"):
        client.open("arm_reach", settings={"candidats": 3})
    with pytest.raises(errors.ArgumentError, match="seed is -1"):
        client.open("arm_reach", seed=-1)
    with pytest.raises(errors.RefusedError, match="latency"):
        client.open("arm_reach", latency=-1)
    with arm(client) as session:
        good = state_at(session, 0)
        wrong = {
            r"qpos: shape \(3,\), expected \(2,\)": {**good, "qpos": np.zeros(3)},
            r"qvel\[1\] = nan; allowed are finite numbers": {**good, "qvel": [0, math.nan]},
            r"time needs|time, qpos and qvel; time is missing": {"qpos": [0, 0], "qvel": [0, 0]},
            r"time: shape \(2,\), expected \(\)": {**good, "time": [0, 0]},
            r"act: shape \(5,\)": {**good, "act": np.zeros(5)},
            r"qpos: numbers of type <U4, expected real numbers": {**good, "qpos": "here"},
            r"qpos: 1 of its numbers are masked": {**good, "qpos": np.ma.masked_greater([0.0, 1.0], 0.5)},
            r"'qposs' is not one of": {**good, "qposs": 1},
        }
        for text, state in wrong.items():
            with pytest.raises(errors.ArgumentError, match=text):
                session.plan(state, 0.1)
        with pytest.raises(errors.ArgumentError, match=r"ctrl: shape \(4, 5\), expected \(4, 6\)"):
            session.evaluate(good, np.zeros((4, 5)))
        with pytest.raises(errors.ArgumentError, match=r"ctrl\[2, 1\] = inf"):
            session.evaluate(good, np.where(np.arange(24).reshape(4, 6) == 13, np.inf, 0))
        with pytest.raises(errors.ArgumentError, match="applied"):
            session.plan(good, 0.1, applied=([0, 1], np.zeros((1, 6))))
        with pytest.raises(errors.ArgumentError, match="iterations is 'two'"):
            session.plan(good, iterations="two")  # type: ignore[arg-type]
        with pytest.raises(errors.RefusedError, match="deadline"):
            session.plan(good, -1)
        with pytest.raises(errors.RefusedError, match="deadline"):
            session.plan(good, math.nan)
        with pytest.raises(errors.LimitError, match="the daemon takes at most 4194304"):
            session.evaluate(good, np.zeros((100_000, 6)))
        assert session.plan(good, iterations=1).refined


def test_wrong_connections() -> None:
    with pytest.raises(errors.ArgumentError, match="timeout must be > 0"):
        sinew.Client(timeout=0)
    with pytest.raises(errors.ArgumentError, match="retries >= 0"):
        sinew.Client(retries=-1)
    with pytest.raises(errors.ArgumentError, match="cannot connect to 'nonsense': expected ipc://PATH or tcp:"):
        sinew.Client("nonsense")
    for port in ("0", "65536", "\u0665" * 4, "1" * 5000):
        with pytest.raises(errors.ArgumentError, match="with a port from 1 to 65535"):
            sinew.Client(f"tcp://127.0.0.1:{port}")
    with pytest.raises(errors.TimedOutError, match=r"no answer from ipc:///nowhere/at/all within 0.1 s: there is"):
        sinew.Client("ipc:///nowhere/at/all", timeout=0.1, retries=1)


def test_words_for_an_absent_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only of a path is said that there is no socket: abstract ones have none, and a closed folder may have one."""
    assert absence(f"ipc://{tmp_path}/s") == ": there is no such socket; does sinewd run?"
    assert absence(f"ipc://{tmp_path}") == ""
    assert absence("ipc://@sinew-absent") == ""
    assert absence("tcp://127.0.0.1:1") == ""

    def refuse(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    with monkeypatch.context() as patched:  # root may look into every folder
        patched.setattr(os, "stat", refuse)
        words = absence(f"ipc://{tmp_path}/s")
    assert words == ": its folder may not be looked into"


def test_default_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    for runtime, address in (
        ("/run/user/7", "ipc:///run/user/7/sinew/sinewd.sock"),
        ("here", f"ipc:///tmp/sinew-{os.getuid()}/sinewd.sock"),
        (None, f"ipc:///tmp/sinew-{os.getuid()}/sinewd.sock"),
    ):
        monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
        if runtime is not None:
            monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        assert default_endpoint() == address


def test_closed(daemon: Daemon) -> None:
    client = daemon.client()
    session = arm(client)
    client.close()
    client.close()
    with pytest.raises(errors.StateError, match="closed"):
        session.plan(session.initial, 0.1)
    with pytest.raises(errors.StateError, match="closed"):
        next(iter(client.telemetry()))
    with daemon.client() as other, pytest.raises(errors.NoSessionError, match="no session"):
        other.statistics(session.id)
    with daemon.client() as client:
        with pytest.raises(RuntimeError, match="mine"), arm(client) as session:
            raise RuntimeError("mine")
        with pytest.raises(errors.NoSessionError, match="no session"):
            client.statistics(session.id)


def test_one_thread_and_one_process(daemon: Daemon) -> None:
    with Liar(daemon.endpoint) as liar, sinew.Client(liar.endpoint, timeout=3) as client:
        liar.lie = lambda reply: None
        seen: list[BaseException] = []

        def wait() -> None:
            with pytest.raises(errors.TimedOutError) as timed_out:
                client.health()
            seen.append(timed_out.value)

        thread = threading.Thread(target=wait)
        thread.start()
        while liar.requests < 2:
            time.sleep(0.01)
        with pytest.raises(errors.StateError, match="another thread uses the client"):
            client.health()
        with pytest.raises(errors.StateError, match="another thread"):
            client.close()
        thread.join()
        assert len(seen) == 1
    with daemon.client() as client:
        pid = os.fork()
        if pid == 0:
            try:
                client.health()
            except errors.StateError:
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        assert client.health().state == "READY"


LIES: dict[str, tuple[Any, str]] = {
    "start_nan": (lambda p: setattr(p, "start", math.nan), "from nan s on"),
    "start_early": (lambda p: setattr(p, "start", -1e308), "from -1e\\+308 s on"),
    "start_late": (lambda p: setattr(p, "start", 1e308), "from 1e\\+308 s on"),
    "step_zero": (lambda p: setattr(p, "step", 0), "time step is 0 s"),
    "step_nan": (lambda p: setattr(p, "step", math.nan), "time step is nan s"),
    "stamp_future": (lambda p: setattr(p, "state_time", p.state_time + 1e-3), "latest that it may answer is of 1 s"),
    "live_inf": (lambda p: setattr(p, "time_to_live", math.inf), "time to live is inf s"),
    "live_zero": (lambda p: setattr(p, "time_to_live", 0), "time to live is 0 s"),
    "other_session": (lambda p: setattr(p, "session", 41), "it is of session 41"),
    "strange_status": (lambda p: setattr(p, "status", 77), "its status is 77, which is unknown"),
    "no_rows": (lambda p: p.ClearField("steps"), "it has 0 rows"),
    "many_rows": (lambda p: setattr(p, "steps", 2**32 - 1), "it has 4294967295 rows"),
    "short_ctrl": (lambda p: p.ctrl.pop(), "it has the wrong size: 287 controls"),
    "long_lead": (lambda p: setattr(p, "lead", p.steps + 1), "49 of its 48 rows are those of the plan before"),
    "ctrl_nan": (lambda p: p.ctrl.__setitem__(13, math.nan), "control 1 of row 2 is nan"),
    "ctrl_huge": (lambda p: p.ctrl.__setitem__(13, 1e300), "control 1 of row 2 is 1e\\+300"),
}


def test_lies(daemon: Daemon) -> None:
    """What a daemon says wrongly is refused by name, and the plan before stays in force."""
    with Liar(daemon.endpoint) as liar, sinew.Client(liar.endpoint, timeout=20) as client, arm(client) as session:
        good = session.plan(state_at(session, 1), iterations=1)
        for name, (change, text) in LIES.items():
            told: list[int] = []

            def lie(reply: Any, change: Any = change, told: list[int] = told) -> Any:
                if reply.WhichOneof("body") == "plan":
                    change(reply.plan)
                    told.append(1)
                return reply

            liar.lie = lie
            with pytest.raises(errors.BadPlanError, match=text):
                session.plan(state_at(session, 1), iterations=1)
            assert told, name
            assert session.current_plan is good
        classes = plain_messages()
        liar.lie = lambda reply: b"\xff\xff\xff"
        with pytest.raises(errors.ProtocolError, match="is not a Reply"):
            client.health()
        liar.lie = lambda reply: classes["Reply"](id=reply.id, list_tasks=classes["ListTasksReply"]())
        with pytest.raises(errors.ProtocolError, match="another kind of message"):
            client.health()
        error = classes["Error"](code=9, text="bell \x07 and \x1b[31m red\nline")
        liar.lie = lambda reply: classes["Reply"](id=reply.id, error=error)
        with pytest.raises(errors.RefusedError) as refused:
            client.health()
        assert str(refused.value) == "bell \\x07 and \\x1b[31m red\nline"
        assert refused.value.code == "INTERNAL"
        liar.lie = lambda reply: reply
        assert session.plan(state_at(session, 2), iterations=1).refined


def test_repeated_plans(daemon: Daemon) -> None:
    """Of the plans of a stream none is taken that is not newer than the one before."""
    with Liar(daemon.endpoint) as liar, sinew.Client(liar.endpoint, timeout=20) as client, arm(client) as session:
        sent = 0

        def lie(reply: Any) -> Any:
            nonlocal sent
            if reply.WhichOneof("body") == "plan":
                sent += 1
                reply.plan.stream_sequence = 1
            return reply

        liar.lie = lie
        with session.stream(lease=20) as stream:
            stream.send(state_at(session, 0))
            first = stream.receive(10)
            assert first is not None
            until = time.monotonic() + 10
            while sent < 3 and time.monotonic() < until:
                stream.send(state_at(session, 0.01 * sent))
                assert stream.receive(0.05) is None
            assert sent >= 3
            assert session.current_plan is first


def test_clock_is_set_back(daemon: Daemon) -> None:
    """A plan of before the clock was set back, which was on its way, is dropped; a later one is a lie."""
    with Liar(daemon.endpoint) as liar, sinew.Client(liar.endpoint, timeout=20) as client, arm(client) as session:
        stamp: list[float] = []

        def lie(reply: Any) -> Any:
            if reply.WhichOneof("body") == "plan" and stamp:
                reply.plan.state_time = stamp[0]
            return reply

        liar.lie = lie
        session.plan(state_at(session, 3), iterations=1)
        session.send(state_at(session, 1), iterations=1)
        first = session.receive(10)
        assert first is not None
        assert first.state_time == 1
        with session.stream(lease=20) as stream:
            stamp.append(3)
            stream.send(state_at(session, 1))
            assert stream.receive(0.5) is None
            session.send(state_at(session, 1), iterations=1)
            assert session.receive(0.5) is None
            assert session.current_plan is first
            stamp[0] = 3.001
            with pytest.raises(errors.BadPlanError, match="of 3\\.001 s, the latest that it may answer is of 1\\.5 s"):
                session.plan(state_at(session, 1.5), iterations=1)
            stamp.clear()
            for k in range(100):  # until one of the stream's plans is better than the latest
                stream.send(state_at(session, 2 + 0.05 * k))
                if (plan := stream.receive(0.1)) is not None:
                    break
            assert plan is not None
            assert session.current_plan is plan


def test_clock_is_set_back_while_a_task_waits(daemon: Daemon) -> None:
    """A plan that a task waits for is held against its own state, whatever other tasks send meanwhile."""
    with Liar(daemon.endpoint) as liar:
        held, go_on = threading.Event(), threading.Event()
        later = 0.0  # that the plan that is held is said to be of a later state [s]

        def lie(reply: Any) -> Any:
            if reply.WhichOneof("body") == "plan" and not held.is_set():
                reply.plan.state_time += later
                held.set()
                go_on.wait(20)
            return reply

        async def meanwhile(session: AsyncSession, first: float, *others: float) -> list[Any]:
            """Plan from a time, and from others before the first reply is there; returns plans or errors."""
            held.clear()
            go_on.clear()
            tasks = [asyncio.create_task(session.plan(state_at(session, first), iterations=1))]
            try:
                assert await asyncio.to_thread(held.wait, 20)
                for time in others:
                    tasks.append(asyncio.create_task(session.plan(state_at(session, time), iterations=1)))
                    await asyncio.sleep(0)
            finally:
                go_on.set()
            return await asyncio.gather(*tasks, return_exceptions=True)

        async def steps() -> None:
            nonlocal later
            async with (
                sinew.AsyncClient(liar.endpoint, timeout=20) as client,
                await client.open("arm_reach", 3, SETTINGS) as session,
            ):
                liar.lie = lie
                early, plan = await meanwhile(session, 3, 0)
                assert isinstance(early, errors.NoPlanError), early
                assert "state at 3 s: the clock was set back" in str(early)
                assert plan.state_time == 0
                assert session.current_plan is plan
                early = (await meanwhile(session, 3, 0, 4))[0]  # it goes by the clock's being set back, not by stamps
                assert isinstance(early, errors.NoPlanError), early
                early, plan = await meanwhile(session, 5, 6)
                assert (early.state_time, plan.state_time) == (5, 6)
                assert session.current_plan is plan
                later = 0.5
                for other in (8, 0):  # a lie, even where a later state was sent, or the clock was set back
                    early, plan = await meanwhile(session, 7, other)
                    assert isinstance(early, errors.BadPlanError), early
                    assert "of 7.5 s, the latest that it may answer is of 7 s" in str(early)
                    assert session.current_plan is plan

        asyncio.run(asyncio.wait_for(steps(), 120))


def test_lies_about_sessions(daemon: Daemon) -> None:
    with Liar(daemon.endpoint) as liar:

        def hello(reply: Any) -> Any:
            reply.hello.protocol = 2
            return reply

        liar.lie = hello
        with pytest.raises(errors.ProtocolError, match="the daemon speaks protocol 2, this package 1"):
            sinew.Client(liar.endpoint)
        liar.lie = lambda reply: reply
        with sinew.Client(liar.endpoint, timeout=20) as client:
            for change, text in (
                (lambda r: r.describe_task.ClearField("model"), "incomplete description"),
                (lambda r: setattr(r.describe_task.model, "nq", 3), "2 numbers of qpos, the model has 3"),
                (lambda r: setattr(r.describe_task.model, "timestep", 0), "time step of 0 s"),
                (lambda r: setattr(r.describe_task.model.ctrl[2], "max", math.nan), "control 2 ranges from 0 to nan"),
                (lambda r: setattr(r.describe_task.model.ctrl[1], "address", 4), "control 1 is described"),
            ):

                def lie(reply: Any, change: Any = change) -> Any:
                    if reply.WhichOneof("body") == "describe_task":
                        change(reply)
                    return reply

                liar.lie = lie
                before = len(client.statistics().sessions)
                with pytest.raises(errors.ProtocolError, match=text):
                    arm(client)
                assert len(client.statistics().sessions) == before


def test_retries(daemon: Daemon) -> None:
    with Liar(daemon.endpoint) as liar, sinew.Client(liar.endpoint, timeout=1, retries=2) as client:
        silent = 2

        def lie(reply: Any) -> Any:
            nonlocal silent
            silent -= 1
            return None if silent >= 0 else reply

        liar.lie = lie
        liar.peers.clear()
        assert client.health().state == "READY"
        assert silent == -1
        assert len(liar.peers) == 3, "each time over a fresh connection"
        silent = 3
        with pytest.raises(errors.TimedOutError, match=r"within 1 s"):
            client.health()
        assert client.health().state == "READY"


def test_restarted_daemon(tmp_path: Path) -> None:
    """A daemon that is started again has no sessions; the client goes on."""
    endpoint = f"ipc://{tmp_path}/s"
    processes = []

    def start() -> subprocess.Popen[bytes]:
        arguments = [str(program("sinewd")), f"--endpoint={endpoint}", f"--parent={os.getpid()}", "--log=error"]
        processes.append(subprocess.Popen(arguments))
        return processes[-1]

    try:
        first = start()
        with sinew.Client(endpoint, timeout=10) as client:
            session = arm(client)
            session.plan(session.initial, iterations=1)
            first.terminate()
            assert first.wait(10) == 0
            client._wire.timeout = 0.2
            with pytest.raises(errors.TimedOutError):
                session.plan(session.initial, iterations=1)
            client._wire.timeout = 10
            start()
            with pytest.raises(errors.NoSessionError, match="no session") as refused:
                session.plan(session.initial, iterations=1)
            assert refused.value.code == "NOT_FOUND"
            session.close()
            with arm(client) as anew:
                assert anew.plan(anew.initial, iterations=1).refined
                with pytest.raises(errors.RefusedError, match="no version 9") as version:
                    anew.revert(9)
            assert type(version.value) is errors.RefusedError  # of the same code, but the session is there
    finally:
        for process in processes:
            process.terminate()
            process.wait(10)


def test_limit_of_another_daemon(tmp_path: Path) -> None:
    """How long a request may be is what the daemon says that is there now, to either client."""
    endpoint = f"ipc://{tmp_path}/s"

    def start(size: int) -> subprocess.Popen[bytes]:
        options = [f"--endpoint={endpoint}", f"--parent={os.getpid()}", "--log=error", f"--message-bytes={size}"]
        return subprocess.Popen([str(program("sinewd")), *options])

    async def steps() -> None:
        process = start(1 << 20)
        try:
            with sinew.Client(endpoint, timeout=20) as client:
                async with sinew.AsyncClient(endpoint, timeout=20) as other:
                    for size in (4000, 1 << 20):
                        process.kill()
                        process.wait(10)
                        process = start(size)
                        for describe in (client.describe_model, other.describe_model):
                            wanted = errors.LimitError if size == 4000 else errors.RefusedError
                            with pytest.raises(wanted):
                                answer: Any = describe("m" * 5000)
                                if inspect.isawaitable(answer):
                                    await answer
        finally:
            process.kill()
            process.wait(10)

    asyncio.run(steps())


def test_a_new_greeting_takes_no_time_of_its_own(client: sinew.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a daemon is greeted again for a request, both have the time of one."""
    waits: list[float] = []
    receive = client._await_reply

    def note(id: int, until: float) -> Any:
        waits.append(until)
        return receive(id, until)

    monkeypatch.setattr(client, "_await_reply", note)
    client._wire.stale = True
    assert client.health().state == "READY"
    assert len(waits) == 2
    assert waits[0] == waits[1]


def test_interrupt(tmp_path: Path) -> None:
    """Ctrl-C ends a wait at once; the client is fit for use behind it. The test prints how long it took."""
    code = """
        import sinew, time
        with sinew.serve() as daemon, daemon.client(timeout=60) as client, client.open("arm_reach") as session:
            print("waiting", flush=True)
            try:
                session.plan(session.initial, 50.0, iterations=1000000)
            except KeyboardInterrupt:
                print("interrupted", time.monotonic(), client.health().state, flush=True)
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        time.sleep(0.3)
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        word, at, state = process.stdout.readline().split()
        assert (word, state) == ("interrupted", "READY")
        assert process.wait(20) == 0
    print(f"Ctrl-C acted after {1e3 * (float(at) - sent):.1f} ms")


def test_memory(client: sinew.Client) -> None:
    """Ten thousand calls leave resident memory where it was."""
    settings = {"planner": "sampling", "candidates": 1, "iterations": 1, "horizon": 8, "knots": 2}
    with client.open("arm_reach", 3, settings) as session:

        def work(rounds: int, begin: float) -> None:
            for k in range(rounds):
                state = state_at(session, begin + 0.005 * k)
                session.plan(state, 1.0)
                session.control(begin + 0.005 * k)
                if k % 50 == 0:
                    session.evaluate(state, np.zeros((8, 6)), gradient=True)
                    with client.open("arm_reach") as other:
                        other.send(state, 0.01)

        work(500, 0)
        before = resident()
        work(5000, 10)
        assert resident() - before < 2e6
