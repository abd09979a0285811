"""A task at a daemon, steered while it moves: modes, time, settings, pushes, and a daemon that is lost."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
import sinew
from sinew.client import Daemon
from sinew.errors import ArgumentError, RefusedError, StateError, TimedOutError
from sinew.loop.body import Body
from sinew.loop.driver import Driver
from sinew.loop.lockstep import lockstep

import scenes
from sources import LONGEST, wait

SETTINGS = {"adam_iterations": 6}
EXECUTE = 8


@pytest.fixture
def driver(daemon: Daemon) -> Iterator[Driver]:
    """Move the arm in lockstep, paused at first."""
    with Driver(
        "arm_reach", endpoint=daemon.endpoint, seed=3, settings=SETTINGS, execute=EXECUTE, paused=True
    ) as driver:
        driver.set_speed(100)
        yield driver


def test_steps_in_lockstep_are_those_of_the_loop(driver: Driver, client: sinew.Client) -> None:
    with client.open("arm_reach", 3, SETTINGS) as session:
        body = Body.of_task(session.task)
        body.reset(session.initial)
        moments = list(lockstep(body, session, 5 * EXECUTE, EXECUTE))
    for plan in range(5):
        assert np.array_equal(driver.latest().qpos, moments[plan * EXECUTE].state.qpos)
        driver.step()
        frame = wait(driver, lambda frame: frame.time > (plan + 0.9) * EXECUTE * body.timestep)  # noqa: B023
        assert frame.paused
        assert frame.mode == "lockstep"
        assert np.array_equal(frame.plan.ctrl, moments[plan * EXECUTE].plan.ctrl)
        assert np.array_equal(frame.act, moments[(plan + 1) * EXECUTE].state.act)
        assert np.array_equal(frame.ctrl, moments[(plan + 1) * EXECUTE - 1].ctrl)
    history = driver.history()
    costs = [moment.plan.cost_after for moment in moments if moment.plan]
    assert np.array_equal(history.series["cost"], costs)
    assert np.allclose(history.time, body.timestep * EXECUTE * np.arange(5))
    assert np.allclose(sum(history.series[f"term: {name}"] for name in scenes.REACH_TERMS), costs)
    assert history.activation.shape == (5, driver.model.na)


def test_a_seed_makes_the_motion_and_a_reset_begins_it_again(driver: Driver) -> None:
    ways = []
    for seed in (None, 3, 4):
        driver.reset(seed)
        wait(driver, lambda frame: frame.time == 0 and frame.plan is None)
        driver.step()
        ways.append(wait(driver, lambda frame: frame.time > 0.9 * EXECUTE * 0.005).qpos)
    assert np.array_equal(ways[0], ways[1])
    assert not np.array_equal(ways[0], ways[2])


def test_predicted_states_come_and_begin_at_the_body(driver: Driver) -> None:
    driver.step()
    frame = wait(driver, lambda frame: frame.time > 0)
    assert frame.predicted is frame.plan.states
    assert frame.predicted.qpos.shape == (frame.plan.steps + 1, driver.model.nq)
    initial = driver.task.initial.qpos
    assert np.allclose(frame.predicted.qpos[0], initial, atol=0.15 + 1e-9)  # of the task's perturbation [rad]


def test_a_page_gets_models_and_settings_of_its_own(driver: Driver) -> None:
    driver.model.opt.timestep = 1.0
    assert driver.model.opt.timestep == driver.task.model.timestep
    assert {"adam_rate", "horizon"} <= {info.name for info in driver.settings().table}


def test_tuning_is_in_force_while_plans_are_made(driver: Driver, client: sinew.Client) -> None:
    driver.pause(False)
    longest = 0.0
    for step in range(20):
        begun = time.monotonic()
        config = driver.tune(adam_rate=0.01 + 0.001 * step, weights={"reach": 1.0 + step})
        longest = max(longest, time.monotonic() - begun)
        there = client.attach(driver.session).get_config()
        assert there.version == config.version
        assert there.planner["adam_rate"] == 0.01 + 0.001 * step
        assert there.terms[0].weight == 1.0 + step
    print(f"longest time of a change: {1e3 * longest:.1f} ms")
    version = config.version
    assert wait(driver, lambda frame: frame.config.version == version).config.table
    wait(driver, lambda frame: frame.plan.config_version == version)
    assert config.table == driver.settings().table != ()
    driver.tune(targets={"reach": [0.4, 0, 1.2]})
    assert driver.settings().terms[0].target.tolist() == [0.4, 0, 1.2]
    with pytest.raises(RefusedError, match="adam_rate"):
        driver.tune(adam_rate=-1.0)
    with pytest.raises(ArgumentError, match="unknown setting 'rate'"):
        driver.tune(rate=1.0)
    assert driver.latest().connected


def test_what_another_client_changes_is_seen(driver: Driver, client: sinew.Client) -> None:
    client.attach(driver.session).tune(adam_rate=0.033)
    wait(driver, lambda frame: frame.config.planner["adam_rate"] == 0.033)


def test_many_threads_tune_at_once(driver: Driver) -> None:
    driver.pause(False)

    def tune(name: str) -> None:
        for _ in range(20):
            driver.tune(**{name: 0.5})

    threads = [threading.Thread(target=tune, args=(name,)) for name in ("adam_beta1", "adam_beta2", "noise_scale")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONGEST)
    planner = driver.settings().planner
    assert [planner[name] for name in ("adam_beta1", "adam_beta2", "noise_scale")] == [0.5] * 3


def test_reopening_keeps_settings_and_goes_on_from_the_body(driver: Driver) -> None:
    driver.tune(adam_rate=0.02, weights={"reach": 2.0}, targets={"reach": [0.4, 0, 1.2]})
    driver.step()
    before = wait(driver, lambda frame: frame.time > 0.9 * EXECUTE * 0.005)
    session = driver.session
    with pytest.raises(RefusedError, match="horizon"):
        driver.tune(horizon=24)
    driver.reopen(horizon=24)
    after = wait(driver, lambda frame: frame.config.planner["horizon"] == 24)
    assert driver.session != session
    assert after.config.planner["adam_rate"] == 0.02
    assert after.config.terms[0].weight == 2.0
    assert after.config.terms[0].target.tolist() == [0.4, 0, 1.2]
    assert np.array_equal(before.qpos, after.qpos)
    driver.step()
    later = wait(driver, lambda frame: frame.time > before.time)
    assert later.plan.session == driver.session
    assert later.plan.steps == 24
    assert later.plan.state_time == pytest.approx(before.time)
    with pytest.raises(RefusedError, match="horizon"):
        driver.reopen(horizon=0)
    assert driver.settings().planner["horizon"] == 24


def test_real_time_keeps_pace_and_counts_late_plans(daemon: Daemon) -> None:
    with Driver("arm_reach", endpoint=daemon.endpoint, mode="real time", deadline=1e-6, seed=1) as driver:
        assert driver.settings().session["latency"] == pytest.approx(0.005, rel=1e-3)
        wait(driver, lambda frame: frame.time > 0)
        driver.pause(True)
        begin = wait(driver, lambda frame: frame.paused)
        begun = time.monotonic()
        driver.pause(False)
        end = wait(driver, lambda frame: frame.time > begin.time + 0.6 and frame.misses > 2)
        gone = time.monotonic() - begun
        print(f"{end.time - begin.time:.3f} s of the body in {gone:.3f} s, rate {end.rate:.3f}, {end.misses} late")
        assert end.mode == "real time"
        assert end.time - begin.time < gone + 0.3  # never ahead of the clock, but for what it makes up for
        assert end.deadline == 1e-6
        assert end.misses <= end.plan.sequence
        assert end.age > 0
        driver.set_speed(0.25)
        assert driver.settings().session["latency"] == pytest.approx(0.00125, rel=1e-3)
        driver.pause(True)
        begin = wait(driver, lambda frame: frame.speed == 0.25 and frame.paused)
        begun = time.monotonic()
        driver.pause(False)
        frame = wait(driver, lambda frame: frame.time > begin.time + 0.4)
        assert frame.time - begin.time < 0.25 * (time.monotonic() - begun) + 0.1
        driver.set_mode("lockstep")
        wait(driver, lambda frame: frame.mode == "lockstep" and frame.time > 2 * EXECUTE * 0.005)
        assert driver.settings().session["latency"] == 0


def test_pause_and_one_step_in_real_time(driver: Driver) -> None:
    driver.set_mode("real time")
    driver.pause(False)
    wait(driver, lambda frame: frame.time > 0.1)
    driver.pause(True)
    still = wait(driver, lambda frame: frame.paused)
    time.sleep(0.1)
    assert driver.latest().time == still.time
    driver.step()
    frame = wait(driver, lambda frame: frame.time > still.time)
    assert frame.time == pytest.approx(still.time + driver.model.opt.timestep)
    time.sleep(0.1)
    assert driver.latest().time == frame.time


def test_a_mode_that_the_daemon_does_not_take_is_not_changed_to(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **changes: object) -> None:
        raise TimedOutError(f"no answer to {changes}")

    with monkeypatch.context() as patch:
        patch.setattr("sinew.loop.link.Link.tune", refuse)
        with pytest.raises(TimedOutError, match="latency"):
            driver.set_mode("real time")
    driver.reopen()
    driver.pause(False)
    frame = wait(driver, lambda frame: frame.time > 0.1)
    assert frame.mode == "lockstep"
    assert driver.settings().session["latency"] == 0


def test_a_push_moves_the_body(daemon: Daemon) -> None:
    ways = []
    for force in (None, [60.0, 0.0, 0.0]):
        with Driver("arm_reach", endpoint=daemon.endpoint, seed=3, settings=SETTINGS, paused=True) as driver:
            forearm = driver.model.nbody - 1
            driver.set_speed(100)
            driver.push(forearm, [0.0, 0.0, 0.0], force)
            driver.step()
            ways.append(wait(driver, lambda frame: frame.time > 15.5 * 0.005))
    plain, pushed = ways
    assert abs(plain.qpos - pushed.qpos).max() > 0.01
    with client_body(daemon) as (body, session):
        body.push(forearm, [0, 0, 0], [60, 0, 0])
        last = list(lockstep(body, session, 16))[-1]
    assert np.array_equal(pushed.qpos, last.state.qpos)


class client_body:  # noqa: N801
    """A body in the same initial state as a driver's, and a session for it."""

    def __init__(self, daemon: Daemon) -> None:
        self._client = daemon.client()

    def __enter__(self) -> tuple[Body, sinew.client.Session]:
        session = self._client.open("arm_reach", 3, SETTINGS)
        body = Body.of_task(session.task)
        body.reset(session.initial)
        return body, session

    def __exit__(self, *error: object) -> None:
        self._client.close()


def test_wrong_arguments_are_refused_where_they_are_given(driver: Driver) -> None:
    with pytest.raises(ArgumentError, match="body: 0"):
        driver.push(0, None, [1, 0, 0])
    with pytest.raises(ArgumentError, match="force"):
        driver.push(1, None, [1, 0])
    with pytest.raises(ArgumentError, match="speed: 0"):
        driver.set_speed(0)
    with pytest.raises(ArgumentError, match="mode: 'fast', expected one of 'lockstep', 'real time'"):
        driver.set_mode("fast")
    with pytest.raises(StateError, match="plans choose"):
        driver.set_ctrl({0: 1.0})
    with pytest.raises(StateError, match="recording"):
        driver.seek(1.0)


def test_a_daemon_that_is_killed_is_started_again() -> None:
    started: list[Daemon] = []

    def start() -> Daemon:
        started.append(sinew.serve())
        return started[-1]

    with Driver("arm_reach", start=start, seed=3, settings=SETTINGS) as driver:
        driver.tune(adam_rate=0.02, targets={"reach": [0.4, 0, 1.2]})
        before = wait(driver, lambda frame: frame.time > 0.1)
        os.kill(started[0].pid, signal.SIGKILL)
        lost = wait(driver, lambda frame: not frame.connected)
        assert "the daemon has ended, another one is started; the body waits" in lost.text
        found = wait(driver, lambda frame: frame.connected)
        assert len(started) == 2
        assert found.time >= before.time
        later = wait(driver, lambda frame: frame.time > found.time + 0.2)
        assert later.text == ""
        assert later.plan.session == driver.session
        assert later.config.planner["adam_rate"] == 0.02
        assert later.config.planner["adam_iterations"] == SETTINGS["adam_iterations"]
        assert later.config.terms[0].target.tolist() == [0.4, 0, 1.2]
    assert not started[1].running


def test_a_daemon_that_was_asleep_goes_on_with_its_session() -> None:
    with sinew.serve() as daemon, Driver("arm_reach", endpoint=daemon.endpoint, settings=SETTINGS) as driver:
        session = driver.session
        wait(driver, lambda frame: frame.time > 0.1)
        os.kill(daemon.pid, signal.SIGSTOP)
        try:
            lost = wait(driver, lambda frame: not frame.connected)
        finally:
            os.kill(daemon.pid, signal.SIGCONT)
        assert "no answer" in lost.text
        wait(driver, lambda frame: frame.connected and frame.time > lost.time + 0.1)
        assert driver.session == session
        assert driver.latest().text == ""


def test_another_daemon_at_the_address_gets_a_new_session(tmp_path: os.PathLike[str]) -> None:
    address = f"ipc://{tmp_path}/sinewd"
    with pytest.raises(TimedOutError, match="no answer"):
        Driver("arm_reach", endpoint=address)
    with sinew.serve(settings={"tcp": ""}) as first:
        link = first.folder / "sinewd.sock"
        os.symlink(link, f"{tmp_path}/sinewd")
        with Driver("arm_reach", endpoint=address, mode="real time", seed=1) as driver:
            wait(driver, lambda frame: frame.time > 0.1)
            os.kill(first.pid, signal.SIGKILL)
            lost = wait(driver, lambda frame: not frame.connected)
            print(lost.text)
            assert "the body goes on without plans" in lost.text
            with pytest.raises(StateError, match="no answer"):
                driver.tune(adam_rate=0.02)
            wait(driver, lambda frame: frame.time > lost.time + 0.1)
            with sinew.serve() as second:
                os.unlink(f"{tmp_path}/sinewd")
                os.symlink(second.folder / "sinewd.sock", f"{tmp_path}/sinewd")
                found = wait(driver, lambda frame: frame.connected and frame.plan.session == driver.session)
                assert found.time > lost.time


def test_what_cannot_be_opened_is_said(daemon: Daemon) -> None:
    with pytest.raises(RefusedError, match="no_task"):
        Driver("no_task", endpoint=daemon.endpoint)
    with pytest.raises(ArgumentError, match="planer"):
        Driver("arm_reach", endpoint=daemon.endpoint, settings={"planer": "adam"})
    with pytest.raises(ArgumentError, match="execute and deadline: 0"):
        Driver("arm_reach", endpoint=daemon.endpoint, execute=0)


def test_a_body_that_diverges_stops_and_a_reset_lets_it_go_on(driver: Driver) -> None:
    driver.push(driver.model.nbody - 1, [0, 0, 0], [1e12, 1e12, 1e12])
    driver.pause(False)
    frame = wait(driver, lambda frame: "range of numbers" in frame.text)
    assert frame.paused
    driver.reset()
    wait(driver, lambda frame: frame.text == "" and frame.time > 0.1)
