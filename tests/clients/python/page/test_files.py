"""Pages of what no task moves, and that of the demo."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from browser import Window, wait_until
from programs import VIEW, Program, sinew_view
from sinew.client import Daemon

from recordings import Arm, record

ROOT = Path(__file__).parents[4]


def test_recording(look: Callable[[str], Window], daemon: Daemon, tmp_path: Path) -> None:
    """A recording plays without a daemon; its time line leads to any moment."""
    file = tmp_path / "arm.mcap"
    with daemon.client(20) as client:
        record(Arm(client), file, 60, daemon)
    with sinew_view("--paused", file) as program:
        window = look(program.address)
        window.wait_for_text("recording arm.mcap", "a recording: it has all happened")
        window.wait_for_text("paused")
        before = window.wait_for_picture()
        window.move_slider("moment", "End")
        wait_until(lambda: window.differs_from(before), "begin and end look the same")
        window.save("recording")


def test_wrong_files(tmp_path: Path) -> None:
    """A recording that is none, and a model that is none, are refused in words, on one line."""
    for name in ("run.mcap", "hand.xml"):
        (tmp_path / name).write_text("nothing of use")
        ended = subprocess.run([*VIEW, tmp_path / name], capture_output=True, text=True, timeout=120)
        assert ended.returncode == 1
        assert ended.stderr.startswith("sinew view: ")
        assert name in ended.stderr
        assert ended.stderr.count("\n") == 1


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program sinew of this environment is that of the path: the demo installs none."""
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)


@pytest.mark.usefixtures("installed")
def test_demo(look: Callable[[str], Window]) -> None:
    """``clients/demo.sh --view`` opens a page of its task; Ctrl-C ends it, and its daemon."""
    with Program(ROOT / "clients" / "demo.sh", "--view") as program:
        window = look(program.address)
        window.wait_for_text("follows a moving point", "real time", "connected")
        daemon = int(program.output().partition("sinewd runs as process ")[2].partition(";")[0])
        os.kill(daemon, 0)
        program.send(signal.SIGINT)
        assert program.wait() == 0
        assert not Path(f"/proc/{daemon}").exists()


@pytest.mark.usefixtures("installed")
def test_demo_ends_by_itself() -> None:
    demo = [ROOT / "clients" / "demo.sh", "--view", "--seconds", "4", "--mode", "lockstep"]
    ended = subprocess.run(demo, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    assert "http://127.0.0.1:" in ended.stdout
