"""Recordings that are repeated at a daemon: the same plans, to the bit, or the first that is another."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sinew
from sinew import errors
from sinew.client import Daemon

pytest.importorskip("mcap")
pytest.importorskip("foxglove_schemas_protobuf")

from sinew.record import Entry, Outcome, Recorder, Recording, replay
from sinew.record.writer import RecordingWriter

from recordings import Arm, await_first, recorded_file, wait  # noqa: F401


def recorded(arm: Arm, path: Path, daemon: Daemon, act: Callable[[], None]) -> Path:
    """Record what an arm does, and close its session."""
    with Recorder(path, arm.session.id, daemon.endpoint, rate=0) as recorder:
        await_first(arm, recorder)
        act()
        arm.session.close()
        wait(lambda: not recorder.progress.running)
    assert recorder.error is None
    assert recorder.progress.lost == 0
    return path


def rewritten(source: Path, target: Path, change: Callable[[Entry, Any], Any]) -> Path:
    """Write a recording anew; `change` gets each record and returns it, another, or None to leave it out."""
    writer = RecordingWriter(target, {"recorder": sinew.__version__})
    for entry in Recording(source).entries():
        record = change(entry, entry.record)
        if record is not None:
            data = record.SerializeToString()
            writer.add(entry.session, entry.kind, data, record.number, round(entry.time * 1e9))
    writer.close()
    return target


def repeat(path: Path, client: sinew.Client, **options: Any) -> Outcome:
    """Replay a file and leave no session behind."""
    before = client.health().sessions
    try:
        return replay(Recording(path), client, **options)
    finally:
        assert client.health().sessions == before


def assert_same(outcome: Outcome, plans: int) -> None:
    assert (outcome.first, outcome.different, outcome.skipped, outcome.remarks) == (None, 0, {}, [])
    assert outcome.same == outcome.plans >= plans


def count(path: Path, kind: str) -> int:
    return sum(entry.kind == kind for entry in Recording(path).entries())


# ------------------------------------------------------------------------------------------ the same bits


def test_session_from_its_middle(client: sinew.Client, file: Path) -> None:
    outcome = repeat(file, client)
    assert_same(outcome, 80)
    assert outcome.plans == count(file, "plan")
    assert outcome.computing > 0
    assert not outcome.cut


@pytest.mark.parametrize(
    "settings",
    [
        {"planner": "sampling", "candidates": 12, "iterations": 3},
        {"planner": "sampling", "noise": "pink", "interpolation": "cubic", "knots": 5},
        {"adam_moments": "kept", "adam_starts": 2, "adam_knots": 8},
        {"cfd": "cfd", "adam_clip": "step"},
        {"grid": "16x1,16x2", "adam_moments": "kept"},
        {"adam_warm_start": "last", "adam_moments": "kept", "adam_iterations": 2},
        {"planner": "ilqg", "ilqg_iterations": 3},
        {"planner": "lbfgs", "lbfgs_iterations": 6},
        {"planner": "mppi", "candidates": 8, "iterations": 2},
        {"planner": "cem", "candidates": 8, "iterations": 3, "cem_elites": 3},
        {"planner": "hybrid", "candidates": 6, "iterations": 2, "hybrid_refined": 2, "hybrid_gradients": 3},
    ],
    ids=lambda settings: "-".join(map(str, settings.values())),
)
def test_planners(daemon: Daemon, client: sinew.Client, tmp_path: Path, settings: dict[str, Any]) -> None:
    arm = Arm(client, **settings)
    arm.go(7)
    path = recorded(arm, tmp_path / "x.mcap", daemon, lambda: arm.go(25))
    assert_same(repeat(path, client), 25)


@pytest.mark.parametrize("planner", ["adam", "ilqg", "lbfgs", "mppi", "cem", "hybrid"])
def test_latency_deadlines_and_estimated_activations(
    daemon: Daemon, client: sinew.Client, tmp_path: Path, planner: str
) -> None:
    arm = Arm(client, planner=planner, iterations=0, adam_iterations=0, ilqg_iterations=0, lbfgs_iterations=0)
    arm.session.tune(latency=0.03)
    rng = np.random.default_rng(4)

    def act() -> None:
        for number in range(40):
            state = {"time": 0.01 * (arm.data.time + number), "qpos": arm.data.qpos, "qvel": arm.data.qvel}
            applied = ([state["time"] - 0.005, state["time"] - 0.002], rng.uniform(0, 1, (2, 6)))
            arm.session.plan(state, deadline=0.004 + 0.02 * rng.random(), applied=applied if number % 2 else None)

    def start() -> None:
        arm.session.reset()
        act()

    arm.go = lambda plans, **options: arm.session.plan(arm.data, deadline=0.02)  # type: ignore[method-assign]
    path = recorded(arm, tmp_path / "x.mcap", daemon, start)
    outcome = repeat(path, client)
    assert outcome.first is None
    assert outcome.same == outcome.plans > 10
    assert set(outcome.skipped) <= {"their deadline left no time for an iteration"}
    assert outcome.plans + sum(outcome.skipped.values()) == count(path, "plan")


def test_tuning_and_resets_between_plans(daemon: Daemon, client: sinew.Client, tmp_path: Path) -> None:
    arm = Arm(client)

    def act() -> None:
        arm.go(5)
        arm.session.tune(planner="sampling", targets={"reach": [0.4, 0.1, 1.3]}, noise_scale=0.2)
        arm.go(5)
        arm.session.tune(planner="adam", targets={"reach": None}, weights={"reach": 2.0, "effort": 0.0})
        arm.go(5)
        arm.session.revert(1)
        arm.go(5)
        for seed in (8, None):
            arm.session.reset(seed)
            arm.data.time = 0
            arm.go(5)

    path = recorded(arm, tmp_path / "x.mcap", daemon, act)
    assert (count(path, "config"), count(path, "reset")) == (3, 2)
    assert_same(repeat(path, client), 30)


def test_stream_that_is_tuned(daemon: Daemon, client: sinew.Client, tmp_path: Path) -> None:
    """In continuous mode settings change within plans: those cannot be repeated, all others are the same."""
    arm = Arm(client, adam_iterations=0, iterations=0)
    done = threading.Event()

    def tune() -> None:
        with daemon.client(20) as other:
            watcher = other.attach(arm.session.id)
            for number in range(6):
                if done.wait(0.25):
                    return
                watcher.tune(weights={"effort": 0.001 * number})

    def act() -> None:
        tuner = threading.Thread(target=tune)
        tuner.start()
        with arm.session.stream(lease=2.0, deadline=0.05) as stream:
            for number in range(150):
                stream.send(
                    {"time": 1 + 0.01 * number, "qpos": arm.data.qpos, "qvel": arm.data.qvel, "act": arm.data.act}
                )
                stream.receive(0.01)
                time.sleep(0.008)
        done.set()
        tuner.join()

    arm.go = lambda plans, **options: arm.session.plan(arm.data, iterations=2)  # type: ignore[method-assign]
    path = recorded(arm, tmp_path / "x.mcap", daemon, act)
    streamed = [entry.body.streamed for entry in Recording(path).entries(["begin"])]
    outcome = repeat(path, client)
    print(outcome, Counter(streamed))
    assert sum(streamed) > 10
    assert outcome.first is None
    assert outcome.same == outcome.plans > 10
    allowed = {"settings changed while they were made", "their deadline left no time for an iteration"}
    assert set(outcome.skipped) <= allowed
    assert outcome.plans + sum(outcome.skipped.values()) == count(path, "plan")


# -------------------------------------------------------------------------------------------- differences


@pytest.mark.parametrize("bit", [0, 17, 51])
def test_flipped_bit(file: Path, client: sinew.Client, tmp_path: Path, bit: int) -> None:
    where = 31  # plan of the file
    row, control = 5, 2
    seen: list[Any] = []

    def flip(entry: Entry, record: Any) -> Any:
        if entry.kind == "plan":
            seen.append(record.plan)
            if len(seen) == where:
                bits = np.frombuffer(record.plan.ctrl, np.uint64).copy()
                bits[row * 6 + control] ^= np.uint64(1 << bit)
                record.plan.ctrl = bits.tobytes()
        return record

    outcome = repeat(rewritten(file, tmp_path / "x.mcap", flip), client)
    assert (outcome.different, outcome.same) == (1, outcome.plans - 1)
    first = outcome.first
    assert first is not None
    plan = seen[where - 1]
    assert (first.sequence, first.time, first.count) == (plan.sequence, plan.state_time, 1)
    assert first.what == "ctrl[5, brachialis]"
    assert first.recorded == np.frombuffer(plan.ctrl)[row * 6 + control]
    assert first.recorded != first.repeated
    assert abs(first.recorded - first.repeated) < 1


@pytest.mark.parametrize("what", ["cost_after", "cost_before", "terms[speed]", "iterations", "states.qvel[3, elbow]"])
def test_every_figure_counts(file: Path, client: sinew.Client, tmp_path: Path, what: str) -> None:
    done: list[bool] = []

    def change(entry: Entry, record: Any) -> Any:
        plan = record.plan if entry.kind == "plan" and not done else None
        if plan is not None and plan.HasField("states"):
            done.append(True)
            if what.startswith("terms"):
                plan.terms[1].cost = np.nextafter(plan.terms[1].cost, 1)
            elif what.startswith("states"):
                rows = np.frombuffer(plan.states.qvel).copy()
                rows[3 * 2 + 1] = np.nextafter(rows[3 * 2 + 1], 1e9)
                plan.states.qvel = rows.tobytes()
            elif what == "iterations":
                plan.iterations -= 1
            else:
                setattr(plan, what, np.nextafter(getattr(plan, what), 1e9))
        return record

    outcome = repeat(rewritten(file, tmp_path / "x.mcap", change), client)
    assert outcome.first is not None
    if what != "iterations":  # the plan that was asked for is then another one, and so are all after it
        assert (outcome.first.what, outcome.different) == (what, 1)


def test_another_model(file: Path, tmp_path: Path) -> None:
    """A model of which one number differs by 1e-15."""
    share = sinew.share("sinew.desc").parent
    text = (share / "models" / "arm_reach.xml").read_text()
    assert text.count('mass="2.0"') == 1
    (tmp_path / "arm_reach.xml").write_text(text.replace('mass="2.0"', 'mass="2.000000000000001"'))
    (tmp_path / "arm_reach.yaml").write_text("# mine\n" + (share / "tasks" / "arm_reach.yaml").read_text())
    with sinew.serve(tasks=tmp_path, models=tmp_path) as daemon, daemon.client(20) as client:
        with pytest.raises(errors.RefusedError, match="model"):
            repeat(file, client)
        outcome = repeat(file, client, anyway=True)
    assert outcome.different > 0
    assert outcome.first is not None
    difference = abs(outcome.first.recorded - outcome.first.repeated)
    assert 0 < difference < 1e-6
    assert any("the model is another one" in remark for remark in outcome.remarks)
    assert any("text of task arm_reach is another one" in remark for remark in outcome.remarks)


# --------------------------------------------------------------------------------------------- incomplete


def test_lost_records(file: Path, client: sinew.Client, tmp_path: Path) -> None:
    """After a gap nothing is repeated until the next snapshot, which here comes never."""
    number: list[int] = []

    def lose(entry: Entry, record: Any) -> Any:
        number.append(record.number)
        return None if len(number) == 50 else record

    path = rewritten(file, tmp_path / "x.mcap", lose)
    outcome = repeat(path, client)
    assert outcome.same == outcome.plans > 15
    assert list(outcome.skipped) == ["records before them are missing"]
    assert outcome.plans + outcome.skipped["records before them are missing"] == count(path, "plan")

    def headless(entry: Entry, record: Any) -> Any:
        return None if entry.kind == "snapshot" else record

    with pytest.raises(errors.FormatError, match="no snapshot"):
        repeat(rewritten(file, tmp_path / "y.mcap", headless), client)


def test_second_snapshot(daemon: Daemon, client: sinew.Client, tmp_path: Path) -> None:
    """A recorder that comes later has a snapshot made: --from begins there, and what is lost before it is mended."""
    arm = Arm(client)

    def act() -> None:
        arm.go(10)
        with client.records(arm.session.id) as socket:
            until = time.monotonic() + 60
            while not socket.receive_many(0.05):
                assert time.monotonic() < until
                arm.go(1)
            time.sleep(0.05)  # from what was planned before the snapshot
            arm.go(10)

    path = recorded(arm, tmp_path / "x.mcap", daemon, act)
    assert count(path, "snapshot") == 2
    entries = list(Recording(path).entries())
    at = [number for number, entry in enumerate(entries) if entry.kind == "snapshot"][1]
    second = entries[at].time - entries[0].time
    behind = sum(entry.kind == "plan" for entry in entries[at:])
    assert behind >= 10
    late = repeat(path, client, begin=second)
    assert late.same == late.plans == behind
    early = repeat(path, client, end=second - 0.01)
    assert early.same == early.plans == count(path, "plan") - behind
    dropped: list[Any] = []

    def lose(entry: Entry, record: Any) -> Any:
        if entry.kind == "plan" and not dropped:
            dropped.append(record)
            return None
        return record

    mended = repeat(rewritten(path, tmp_path / "y.mcap", lose), client)
    assert mended.first is None
    assert mended.same == mended.plans == behind
    assert sum(mended.skipped.values()) == count(path, "plan") - 1 - behind


def test_sessions_begin_at_snapshots_of_their_own(daemon: Daemon, client: sinew.Client, tmp_path: Path) -> None:
    path = tmp_path / "x.mcap"
    with Recorder(path, "all", daemon.endpoint, task="arm_reach") as recorder:
        await_first(Arm(client), recorder)
        known = recorder.progress.plans
        first = Arm(client)
        first.go(5)
        time.sleep(0.1)
        second = Arm(client)
        second.go(5)
        time.sleep(0.1)
        for arm in (first, second):
            arm.go(10)
        wait(lambda: recorder.progress.plans >= known + 30)
    entries = list(Recording(path).entries(["plan"]))
    ours = [entry for entry in entries if entry.session in (first.session.id, second.session.id)]
    begin = ours[10].time - 0.05 - next(iter(Recording(path).entries())).time
    assert {entry.session for entry in ours[10:]} == {first.session.id, second.session.id}
    outcome = repeat(path, client, begin=begin)
    assert outcome.skipped == {}
    assert outcome.same == outcome.plans == sum(entry.time >= ours[10].time for entry in entries)


def test_cut_file(file: Path, client: sinew.Client, tmp_path: Path) -> None:
    path = tmp_path / "cut.mcap"
    path.write_bytes(file.read_bytes()[: int(file.stat().st_size * 0.7)])
    outcome = repeat(path, client)
    assert outcome.cut
    assert outcome.first is None
    assert 0 < outcome.same == outcome.plans < count(file, "plan")


def test_plan_that_never_came(daemon: Daemon, client: sinew.Client, tmp_path: Path) -> None:
    """The request in which a daemon dies is in the file."""
    path = tmp_path / "x.mcap"
    with sinew.serve() as mortal, mortal.client() as other:
        arm = Arm(other)
        with Recorder(path, arm.session.id, mortal.endpoint, rate=0) as recorder:
            await_first(arm, recorder)
            last = recorder.progress.records
            arm.session.send(arm.data, iterations=1_000_000)
            wait(lambda: recorder.progress.records > last)
            os.kill(mortal.pid, signal.SIGKILL)
            wait(lambda: not recorder.progress.running)
    begun = [entry.body for entry in Recording(path).entries(["begin"])]
    outcome = repeat(path, client)
    assert outcome.same == outcome.plans == len(begun) - 1
    assert outcome.remarks == [
        f"plan {begun[-1].sequence} of the state at {begun[-1].state.time:g} s began and has no end in the file"
    ]


# -------------------------------------------------------------------------------------------- the command


def command(*arguments: Any) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "sinew", "replay", *map(str, arguments)], capture_output=True, text=True, timeout=120
    )
    return done.returncode, done.stdout, done.stderr


def test_command(file: Path, client: sinew.Client, tmp_path: Path) -> None:
    plans = count(file, "plan")
    assert command(file) == (0, f"{plans} plans, all the same bits\n", "")
    status, out, complaint = command(file, "--endpoint", client.endpoint, "--json")
    assert (status, complaint) == (0, "")
    assert json.loads(out)["same"] == plans

    def change(entry: Entry, record: Any) -> Any:
        if entry.kind == "plan" and record.plan.config_version == 2:
            record.plan.cost_after = 1.0
        return record

    path = rewritten(file, tmp_path / "x.mcap", change)
    status, out, complaint = command(path, "--endpoint", client.endpoint)
    assert (status, complaint) == (1, "")
    assert f"40 of {plans} plans differ; the first one:\nplan " in out
    assert "cost_after was 1.0, is 0." in out
    status, out, complaint = command(tmp_path / "none.mcap")
    assert (status, out) == (1, "")
    assert "none.mcap cannot be read: No such file" in complaint
