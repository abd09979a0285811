"""Several daemons behind HAProxy, by the example's configuration: sessions spread, one daemon's end is no other's."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import sinew
from sinew import errors
from sinew.client import Client, Daemon, Session

HAPROXY = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
EXAMPLE = Path(__file__).parents[3] / "daemon" / "haproxy.cfg"

pytestmark = pytest.mark.skipif(HAPROXY is None, reason="there is no haproxy: Debian's package of that name")


def free_ports(count: int) -> list[int]:
    """Return ports of loopback that nobody listens at."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def serve(port: int) -> Daemon:
    return sinew.serve(threads=1, settings={"tcp": f"tcp://127.0.0.1:{port}"})


@contextmanager
def balancer(folder: Path, front: int, one: int, two: int) -> Iterator[str]:
    """Run HAProxy with the example's configuration on other ports; yields its address."""
    text = EXAMPLE.read_text()
    for old, new in (("7440", front), ("7441", one), ("7442", two)):
        assert f"127.0.0.1:{old}" in text
        text = text.replace(f"127.0.0.1:{old}", f"127.0.0.1:{new}")
    (folder / "haproxy.cfg").write_text(text)
    with open(folder / "log", "w+") as log:
        process = subprocess.Popen([str(HAPROXY), "-db", "-f", folder / "haproxy.cfg"], stdout=log, stderr=log)
        try:
            yield f"tcp://127.0.0.1:{front}"
            assert process.poll() is None, (folder / "log").read_text()
        finally:
            process.kill()
            process.wait()


def sessions(daemon: Daemon) -> set[int]:
    """Return the numbers of a daemon's sessions, asked on its own address."""
    with daemon.client() as client:
        return {session.session for session in client.statistics().sessions}


def plan(session: Session, at: float) -> None:
    state = {"time": at, "qpos": session.initial.qpos, "qvel": session.initial.qvel}
    assert session.plan(state, iterations=1).ctrl.size > 0


def reopen(client: Client, lost: Session) -> Session:
    """Return a new session in place of one whose daemon is gone, which has to be said in words."""
    until = time.monotonic() + 30
    while True:
        try:
            plan(lost, 1.0)
        except errors.NoSessionError as error:
            assert str(lost.id) in str(error)
            return client.open("arm_reach", seed=1)
        except errors.TimedOutError:  # the request was on its way when the daemon was killed
            assert time.monotonic() < until
        else:
            raise AssertionError("a session outlived its daemon")


def test_spread_kill_return(tmp_path: Path) -> None:
    front, first, second = free_ports(3)
    with ExitStack() as stack:
        one, two = stack.enter_context(serve(first)), stack.enter_context(serve(second))
        address = stack.enter_context(balancer(tmp_path, front, first, second))
        clients = [stack.enter_context(Client(address, timeout=5, retries=1)) for _ in range(6)]
        opened = [client.open("arm_reach", seed=1) for client in clients]
        for at in (0.0, 0.05):
            for session in opened:
                plan(session, at)
        at_one, at_two = sessions(one), sessions(two)
        print(f"sessions: {len(at_one)} and {len(at_two)}")
        assert at_one | at_two == {session.id for session in opened}
        assert not at_one & at_two
        assert min(len(at_one), len(at_two)) >= 2

        os.kill(one.pid, signal.SIGKILL)
        for session in opened:
            if session.id in at_two:
                plan(session, 0.1)
        lost = [(client, session) for client, session in zip(clients, opened, strict=True) if session.id in at_one]
        moved = {reopen(client, session).id for client, session in lost}
        assert len(moved) == len(at_one)
        with two.client() as client:
            statistics = client.statistics()
        plans = {session.session: session.plans for session in statistics.sessions}
        assert plans == {**dict.fromkeys(at_two, 3), **dict.fromkeys(moved, 0)}
        assert statistics.malformed == 0  # HAProxy's looks at it, twice a second, are no requests

        again = stack.enter_context(serve(first))
        until = time.monotonic() + 30
        while not sessions(again):  # HAProxy looks for it twice a second
            assert time.monotonic() < until
            client = stack.enter_context(Client(address, timeout=5, retries=1))
            plan(client.open("arm_reach", seed=1), 0.0)
            time.sleep(0.2)
        assert sessions(two) >= at_two | moved
