"""A private daemon: it comes, serves, goes, and never stays behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
import sinew
from sinew import errors
from sinew.files import program

from daemons import write_joints


def ended(pid: int) -> bool:
    """Wait until a process that is not ours is gone."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.02)
    return False


def test_life(tmp_path: Path) -> None:
    with sinew.serve(**write_joints(tmp_path), threads=1, settings={"sessions": 3}) as daemon:
        assert daemon.running
        assert "1 thread" in daemon.log()
        with daemon.client() as client:
            assert client.hello.limits.sessions == 3
            assert client.hello.telemetry
            names = [task.name for task in client.list_tasks()]
            assert "joints" in names
            assert "arm_reach" in names
        folder = daemon.folder
        assert folder.stat().st_mode & 0o777 == 0o700
    assert not daemon.running
    assert daemon._process.returncode == 0
    assert not folder.exists()
    assert daemon.log() == ""
    daemon.stop()


def test_two_at_once() -> None:
    with sinew.serve() as one, sinew.serve() as two:
        assert one.endpoint != two.endpoint
        with one.client() as a, two.client() as b:
            a.open("arm_reach")
            assert (a.health().sessions, b.health().sessions) == (1, 0)


def test_faults(tmp_path: Path) -> None:
    with pytest.raises(errors.StateError, match=r"(?s)ended with status 64.*unrecognized option '--sesions=3'"):
        sinew.serve(settings={"sesions": 3})
    with pytest.raises(errors.StateError, match=r"(?s)ended with status 1.*threads is '-2'"):
        sinew.serve(threads=-2)
    with pytest.raises(errors.StateError, match=r"(?s)ended with status 1.*nowhere"):
        sinew.serve(tasks=tmp_path / "nowhere")
    with pytest.raises(errors.StateError, match=r"cannot be started: .*nowhere"):
        sinew.serve(program=tmp_path / "nowhere")
    with pytest.raises(errors.ArgumentError, match="models: 3 is no path"):
        sinew.serve(models=[3])  # type: ignore[list-item]
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nexec sleep 100\n")
    silent.chmod(0o700)
    with pytest.raises(errors.TimedOutError, match=r"did not answer within 0.2 s"):
        sinew.serve(program=silent, timeout=0.2)
    deaf = tmp_path / "deaf"
    deaf.write_text("#!/bin/sh\nexit 3\n")
    deaf.chmod(0o700)
    with pytest.raises(errors.StateError, match="ended with status 3"):
        sinew.serve(program=deaf)


def test_missing_program() -> None:
    with pytest.raises(errors.NotFoundError, match=r"there is no .*/bin/sinewe"):
        program("sinewe")


def test_stubborn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not end by SIGTERM is killed."""
    monkeypatch.setattr("sinew.client.serving._PATIENCE", 0.2)
    with sinew.serve() as daemon:
        os.kill(daemon.pid, signal.SIGSTOP)
    assert daemon._process.returncode == -signal.SIGKILL
    assert not daemon.folder.exists()


def test_warnings_as_errors() -> None:
    """Where all warnings are errors each client closes all of its sockets, and does not wait for one for ever."""
    code = """
    import asyncio
    import sinew

    async def ask(endpoint):
        async with sinew.AsyncClient(endpoint) as client:
            await client.health()

    with sinew.serve() as daemon:
        with daemon.client() as client, client.open("arm_reach") as session:
            session.plan(session.initial, deadline=0.01)
            next(client.telemetry(wait=10))
        asyncio.run(ask(daemon.endpoint))
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def start_python(code: str, **options: Any) -> tuple[subprocess.Popen[str], int]:
    """Start a Python program that serves, prints its daemon's process, and goes on."""
    whole = f"import sinew, os, time, threading\n{textwrap.dedent(code)}"
    process = subprocess.Popen([sys.executable, "-c", whole], stdout=subprocess.PIPE, text=True, **options)
    assert process.stdout is not None
    return process, int(process.stdout.readline())


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_python_dies(by: signal.Signals) -> None:
    """A daemon does not outlive the Python that started it, in whichever thread."""
    code = """
    def begin():
        global daemon
        daemon = sinew.serve()
    thread = threading.Thread(target=begin)
    thread.start()
    thread.join()
    time.sleep(0.3)
    assert daemon.running  # also when the thread that started it has ended
    print(f"{daemon.pid}\\n{daemon.folder}", flush=True)
    time.sleep(60)
    """
    process, daemon = start_python(code)
    assert process.stdout is not None
    folder = Path(process.stdout.readline().strip())
    process.send_signal(by)
    process.wait(20)
    assert ended(daemon)
    if by == signal.SIGINT:
        assert not folder.exists()
    else:  # nobody is left who could remove it
        assert [file.name for file in folder.iterdir()] == ["log"]
        shutil.rmtree(folder)


def test_interrupt_of_a_terminal() -> None:
    """Ctrl-C in a terminal goes to all processes of Python's group; the daemon is there until Python stops it."""
    code = """
    with sinew.serve() as daemon, daemon.client() as client:
        try:
            print(daemon.pid, flush=True)
            time.sleep(60)
        except KeyboardInterrupt:
            time.sleep(0.5)
            print(client.health().state, flush=True)
    """
    process, daemon = start_python(code, start_new_session=True)
    os.killpg(process.pid, signal.SIGINT)
    assert process.stdout is not None
    assert process.stdout.readline() == "READY\n"
    assert process.wait(20) == 0
    assert ended(daemon)


def test_python_ends() -> None:
    """Without a with block the daemon is stopped at the end of Python, and its folder is removed."""
    process, daemon = start_python("daemon = sinew.serve()\nprint(daemon.pid, flush=True)\nprint(daemon.folder)")
    assert process.stdout is not None
    folder = Path(process.stdout.readline().strip())
    assert process.wait(20) == 0
    assert ended(daemon)
    assert not folder.exists()


def test_children_leave_it(tmp_path: Path) -> None:
    """A child of fork() that ends leaves its parent's daemon alone."""
    with sinew.serve() as daemon:
        code = os.fork()
        if code == 0:
            daemon.stop()
            os._exit(0)
        os.waitpid(code, 0)
        assert daemon.running
        with daemon.client() as client:
            assert client.health().state == "READY"
