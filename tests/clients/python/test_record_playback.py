"""A recording that is played for a page."""

from __future__ import annotations

import time
from pathlib import Path

import mujoco
import numpy as np
import pytest
from sinew import errors
from sinew.loop.source import Source

pytest.importorskip("mcap")
pytest.importorskip("foxglove_schemas_protobuf")

from sinew.record import Recording
from sinew.record.playback import Playback

import scenes
from recordings import recorded_file  # noqa: F401


def test_shows_what_was_recorded(file: Path) -> None:
    source: Source = Playback(file, paused=True)
    begins = [entry.body for entry in Recording(file).entries(["begin"])]
    plans = [entry.body for entry in Recording(file).entries(["plan"])]
    assert source.duration == pytest.approx(begins[-1].state.time - begins[0].state.time)
    assert source.task is not None
    assert source.task.task == "arm_reach"
    assert isinstance(source.model, mujoco.MjModel)
    for row in np.random.default_rng(2).permutation(len(begins))[:20]:
        source.seek(begins[row].state.time - begins[0].state.time)
        frame = source.latest()
        np.testing.assert_array_equal(frame.qpos, np.frombuffer(begins[row].state.qpos))
        np.testing.assert_array_equal(frame.act, np.frombuffer(begins[row].state.act))
        assert frame.plan is not None
        assert frame.plan.sequence == plans[row].sequence
        assert frame.plan.ctrl.tobytes() == plans[row].ctrl
        np.testing.assert_array_equal(frame.ctrl, frame.plan.ctrl[0])
        assert frame.cost == plans[row].cost_now
        assert frame.config is not None
        assert frame.config.version == plans[row].config_version
        with_states = [plan for plan in plans[: row + 1] if plan.HasField("states")]
        assert frame.predicted is not None  # the first plans have states; their latest stays
        assert frame.predicted.time[0] == with_states[-1].start
        history = source.history()
        assert history.time[-1] == pytest.approx(frame.time)
        np.testing.assert_array_equal(history.series["cost"], [x.cost_after for x in plans[: row + 1]])
        terms = sum(history.series[f"term: {name}"] for name in scenes.REACH_TERMS)
        np.testing.assert_allclose(terms, history.series["cost"])
        assert history.activation.shape == (row + 1, 6)


def test_time_goes_on_as_wanted(file: Path) -> None:
    source = Playback(file, paused=True)
    still = source.latest()
    time.sleep(0.05)
    assert source.latest().number == still.number
    assert still.paused
    source.step()
    assert source.latest().time == pytest.approx(0.01)
    source.set_speed(0.25)
    begun = time.monotonic()
    source.pause(False)
    time.sleep(0.2)
    now, passed = source.latest().time, time.monotonic() - begun
    assert 0.05 <= now - 0.01 <= 0.25 * passed + 1e-3
    source.set_speed(1000)
    time.sleep(0.05)
    frame = source.latest()
    assert frame.time == source.duration
    assert frame.paused
    source.set_speed(0.01)
    source.pause(False)  # at the end it begins again
    assert source.latest().time < 0.1
    source.seek(1e9)
    assert source.latest().time == source.duration
    source.reset()
    assert source.latest().time < 0.1


def test_nothing_can_be_changed(file: Path) -> None:
    source = Playback(file)
    for change in (
        lambda: source.tune(weights={"reach": 2}),
        lambda: source.reopen(horizon=3),
        lambda: source.set_mode("lockstep"),
        lambda: source.set_ctrl({0: 1.0}),
        lambda: source.push(1, [0, 0, 0], [1, 0, 0]),
    ):
        with pytest.raises(errors.StateError, match="has happened"):
            change()
    source.push(1, None, None)
    source.set_mode("recording")
    with pytest.raises(errors.ArgumentError):
        source.seek(float("nan"))
    source.close()


def test_file_without_its_end(file: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.mcap"
    path.write_bytes(file.read_bytes()[: int(file.stat().st_size * 0.7)])
    source = Playback(path, paused=True)
    whole = Playback(file).duration
    assert 0 < source.duration < whole
    assert source.latest().text == "its end is not there"
    source.seek(source.duration)
    assert source.latest().plan is not None
    with pytest.raises(errors.FormatError, match="no states of session 5"):
        Playback(file, session=5)
