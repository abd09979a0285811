"""A model without a task that moves by itself, and the clock of what moves."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import mujoco
import numpy as np
import pytest
from sinew.errors import ArgumentError, FormatError, NotFoundError, StateError
from sinew.loop.pace import Pace
from sinew.loop.passive import Passive

from scenes import ZOO
from sources import wait


@pytest.fixture
def zoo(tmp_path: Path) -> Iterator[Passive]:
    """Move the zoo, paused at first."""
    (tmp_path / "zoo.xml").write_text(ZOO)
    with Passive(tmp_path / "zoo.xml", paused=True) as source:
        yield source


def test_steps_are_mujocos(zoo: Passive) -> None:
    model = zoo.model
    data = mujoco.MjData(model)
    crate, ctrl = model.body("crate").id, [0.3, -0.2, 0.1, 0.9]
    zoo.set_ctrl(dict(enumerate(ctrl)))
    zoo.push(crate, None, [0.0, 0.0, 30.0])
    data.ctrl = ctrl
    for _ in range(20):
        before = zoo.latest()
        zoo.step()
        frame = wait(zoo, lambda frame: frame.time > before.time)  # noqa: B023
        mujoco.mj_kinematics(model, data)
        data.xfrc_applied[crate, 2] = 30
        data.xfrc_applied[crate, 3:] = np.cross(data.xpos[crate] - data.xipos[crate], [0, 0, 30])
        mujoco.mj_step(model, data)
        assert frame.time == pytest.approx(data.time)
        for name in ("qpos", "qvel", "act", "ctrl"):
            assert np.array_equal(getattr(frame, name), getattr(data, name)), name
    assert frame.mode == "model"
    assert frame.paused
    assert frame.plan is None
    zoo.push(crate, None, None)
    zoo.step()
    after = wait(zoo, lambda other: other.time > frame.time)
    assert after.qvel[2] < frame.qvel[2]  # it falls again


def test_keyframes_are_beginnings(zoo: Passive) -> None:
    assert zoo.keyframes == ("bent", "straight")
    zoo.reset(0)
    frame = wait(zoo, lambda frame: frame.time == 0.5)
    assert np.array_equal(frame.qpos, zoo.model.key("bent").qpos)
    assert np.array_equal(frame.mocap[0, :3], zoo.model.key("bent").mpos)
    zoo.reset()
    assert np.array_equal(wait(zoo, lambda frame: frame.time == 0).qpos, zoo.model.qpos0)
    with pytest.raises(ArgumentError, match="keyframe 2: the model has 2"):
        zoo.reset(2)


def test_time_goes_on_and_stands_still(zoo: Passive) -> None:
    zoo.set_speed(0.5)
    begun = time.monotonic()
    zoo.pause(False)
    frame = wait(zoo, lambda frame: frame.time > 0.3)
    assert time.monotonic() - begun > 0.55
    assert frame.speed == 0.5
    zoo.pause(True)
    still = wait(zoo, lambda frame: frame.paused)
    time.sleep(0.1)
    assert zoo.latest() is still
    assert np.isnan(still.rate)


def test_what_has_no_meaning_without_a_task_is_refused(zoo: Passive) -> None:
    assert zoo.task is None
    assert zoo.settings() is None
    assert zoo.history().time.size == 0
    for call in (lambda: zoo.tune(adam_rate=1), lambda: zoo.reopen(horizon=1), lambda: zoo.set_mode("lockstep")):
        with pytest.raises(StateError, match="no daemon"):
            call()
    with pytest.raises(StateError, match="recording"):
        zoo.seek(1.0)
    for ctrl in ({4: 1.0}, {-1: 1.0}, {0: float("nan")}):
        with pytest.raises(ArgumentError, match="control"):
            zoo.set_ctrl(ctrl)


def test_mistakes_of_a_file_are_said_in_mujocos_words(tmp_path: Path) -> None:
    (tmp_path / "bad.xml").write_text("<mujoco>\n<worldbody><geom/></worldbody>\n</mujoco>")
    with pytest.raises(FormatError, match=r"(?s)bad\.xml: .*size"):
        Passive(tmp_path / "bad.xml")
    with pytest.raises(NotFoundError, match=r"none\.xml: there is no such file"):
        Passive(tmp_path / "none.xml")


def test_a_pace_makes_up_for_short_delays_alone() -> None:
    pace = Pace(2.0)
    begun = time.monotonic()
    pace.restart(1.0)
    assert not pace.wait(6.0, 0.01)
    while not pace.wait(1.2, 0.01):
        pass
    assert time.monotonic() - begun >= 0.1
    time.sleep(0.15)
    assert pace.wait(1.4, 0.0)  # due by now: it is made up for
    time.sleep(1.2)
    assert pace.wait(1.4, 0.0)  # too late by far: time begins here
    assert not pace.wait(3.4, 0.0)  # due for long, had it not
    assert np.isnan(pace.rate)
    for k in range(3):
        pace.mark(2.0 + 0.2 * k)
        time.sleep(0.1)
    assert 0.3 < pace.rate <= 2.0
