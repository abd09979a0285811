"""Recordings for tests, of an arm that MuJoCo moves."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import sinew
from sinew.client import Daemon
from sinew.record import Recorder

SETTINGS = {"adam_iterations": 2, "iterations": 2}
STEP = 0.01  # between states [s]


class Arm:
    """An arm that MuJoCo moves, and its session: it waits for each plan."""

    def __init__(self, client: sinew.Client, task: str = "arm_reach", **settings: Any) -> None:
        self.session = client.open(task, 3, SETTINGS | settings)
        self.model = mujoco.MjModel.from_xml_path(self.session.model.file)
        self.model.opt.timestep = STEP
        self.data = mujoco.MjData(self.model)
        self.data.qpos[:], self.data.qvel[:] = self.session.initial.qpos, self.session.initial.qvel
        self.states: list[np.ndarray] = []

    def go(self, plans: int, **options: Any) -> None:
        """Make so many plans."""
        for _ in range(plans):
            self.states.append(self.data.qpos.copy())
            self.session.plan(self.data, **options)
            self.data.ctrl[:] = self.session.control(self.data.time)
            mujoco.mj_step(self.model, self.data)


def wait(condition: Any, seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def await_first(arm: Arm, recorder: Recorder, **options: Any) -> None:
    """Make plans until one is recorded: subscriptions take a moment."""
    while recorder.progress.plans == 0:
        arm.go(1, **options)
        time.sleep(0.02)


def record(arm: Arm, path: Path, plans: int, daemon: Daemon, **options: Any) -> None:
    """Record at least so many plans of an arm, which may have made some before."""
    with Recorder(path, arm.session.id, daemon.endpoint, **options) as recorder:
        while recorder.progress.plans < plans:
            arm.go(1)
            time.sleep(0.01)
    assert recorder.error is None


@pytest.fixture(name="file", scope="module")
def recorded_file(daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record a session from its middle on, with tuning.

    Poses and figures are written up to a thousand times a second: a fast machine makes all plans within 0.1 s.
    """
    path = tmp_path_factory.mktemp("record") / "arm.mcap"
    with daemon.client(20) as client:
        arm = Arm(client)
        arm.go(5)
        with Recorder(path, arm.session.id, daemon.endpoint, rate=1000.0) as recorder:
            await_first(arm, recorder, states=True)
            arm.go(40, states=True)
            arm.session.tune(weights={"speed": 0.002}, adam_rate=0.02)
            arm.go(40)
            arm.session.close()
            wait(lambda: not recorder.progress.running)
    assert recorder.error is None
    assert recorder.progress.plans > 80
    assert recorder.progress.lost == 0
    assert "closed" in recorder.progress.text
    assert recorder.progress.size == path.stat().st_size
    return path
