"""Recordings: what is written while a daemon plans, and what any reader finds in the file."""

from __future__ import annotations

import csv
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import sinew
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from sinew import errors
from sinew.client import Daemon

pytest.importorskip("mcap")
pytest.importorskip("foxglove_schemas_protobuf")

from foxglove_schemas_protobuf.FrameTransforms_pb2 import FrameTransforms
from foxglove_schemas_protobuf.JointStates_pb2 import JointStates
from foxglove_schemas_protobuf.SceneUpdate_pb2 import SceneUpdate
from mcap.reader import make_reader
from sinew.record import Entry, Recorder, Recording
from sinew.record.playback import Playback
from sinew.record.writer import RecordingWriter

from recordings import Arm, await_first, record, recorded_file, wait  # noqa: F401

GEOMS = """
<mujoco>
  <asset><mesh name="rock" vertex="0 0 0  0.1 0 0  0 0.2 0  0 0 0.3  0.1 0.1 0.1"/></asset>
  <worldbody>
    <geom name="floor" type="plane" size="2 3 0.1"/>
    <body pos="0 0 1"><freejoint/>
      <geom name="box" type="box" size="0.1 0.15 0.2" pos="0.1 0 0" euler="10 20 30"/>
      <geom name="ball" size="0.05" pos="0 0.1 0"/>
      <geom name="hidden" size="0.05" pos="0 0.1 0.3" group="3"/>
      <body pos="0 0 0.2" euler="0 40 0"><joint type="ball"/>
        <geom name="leg" type="capsule" size="0.03 0.2" pos="0 0 0.1" euler="30 0 20"/>
        <geom name="can" type="cylinder" size="0.1 0.3"/>
        <geom name="egg" type="ellipsoid" size="0.05 0.1 0.15" euler="5 0 0"/>
        <geom name="rock" type="mesh" mesh="rock" pos="0.3 0 0" euler="0 0 70"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""
BESIDE = {"scene", "frames", "joints", "figures"}


def plain(path: Path) -> Iterator[tuple[str, Any, int]]:
    """Read a file by mcap's own reader, and messages by the schema inside: topic, message, time."""
    classes: dict[int, Any] = {}
    with open(path, "rb") as file:
        for schema, channel, message in make_reader(file, validate_crcs=True).iter_messages():
            assert schema is not None
            if schema.encoding == "jsonschema":
                yield channel.topic, json.loads(message.data), message.log_time
                continue
            if schema.id not in classes:
                pool = descriptor_pool.DescriptorPool()
                for described in descriptor_pb2.FileDescriptorSet.FromString(schema.data).file:
                    pool.Add(described)
                classes[schema.id] = message_factory.GetMessageClass(pool.FindMessageTypeByName(schema.name))
            yield channel.topic, classes[schema.id].FromString(message.data), message.log_time


# ------------------------------------------------------------------------------------------ what is written


def test_any_reader_finds_all(file: Path) -> None:
    counts = Counter(topic.split("/")[-1] for topic, _, _ in plain(file))
    assert (counts["config"], counts["close"]) == (1, 1)
    assert counts["begin"] == counts["plan"] > 80
    assert counts["open"] == counts["snapshot"] == 1
    assert set(counts) >= BESIDE
    numbers = [record.number for topic, record, _ in plain(file) if topic.split("/")[-1] not in BESIDE]
    assert sorted(numbers) == list(range(min(numbers), min(numbers) + len(numbers)))
    with open(file, "rb") as opened:
        reader = make_reader(opened)
        assert reader.get_header().profile == "sinew"
        summary = reader.get_summary()
        assert summary is not None and summary.statistics is not None
        metadata = {x.name: x.metadata for x in reader.iter_metadata()}
    assert summary.statistics.message_count == sum(counts.values())
    assert summary.statistics.chunk_count == len(summary.chunk_indexes)
    assert metadata["sinew"]["daemon"] == metadata["sinew"]["recorder"] == sinew.__version__
    [session] = [value for name, value in metadata.items() if name.startswith("session ")]
    assert session["task"] == "arm_reach"
    assert "residual: {position: {site: hand}}" in session["task_text"]
    assert len(session["checksum"]) == 16


def test_records_are_unchanged(daemon: Daemon, client: sinew.Client, tmp_path: Path) -> None:
    """What a second subscriber gets is what stands in the file."""
    arm = Arm(client)
    heard: set[bytes] = set()
    with client.records(arm.session.id) as socket:
        until = time.monotonic() + 60
        while not heard:
            assert time.monotonic() < until
            arm.go(1)
            heard = {data for _, data in socket.receive_many(0.05)}
        record(arm, tmp_path / "x.mcap", 10, daemon)
        heard |= {data for _, data in socket.receive_many(1.0)}
    recording = Recording(tmp_path / "x.mcap")
    written = [entry.data for entry in recording.entries()]
    assert len(written) > 20
    assert set(written) <= heard
    assert all(abs(entry.time - entry.record.time) < 1e-6 for entry in recording.entries())


def test_poses_and_joints_are_those_of_mujoco(file: Path, models: Path) -> None:
    model = mujoco.MjModel.from_xml_path(str(models / "arm_reach.xml"))
    data = mujoco.MjData(model)
    states = {time: record.begin.state for topic, record, time in plain(file) if topic.endswith("/begin")}
    seen = 0
    for topic, message, stamp in plain(file):
        if topic.endswith("/frames"):
            shown = FrameTransforms.FromString(message.SerializeToString())
            data.qpos[:] = states[stamp].qpos
            mujoco.mj_kinematics(model, data)
            assert [x.parent_frame_id for x in shown.transforms] == ["world"] * model.nbody
            names = [x.child_frame_id.split("/")[1] for x in shown.transforms]
            assert names == [model.body(i).name for i in range(model.nbody)]
            xyz = [(x.translation.x, x.translation.y, x.translation.z) for x in shown.transforms]
            quat = [(x.rotation.w, x.rotation.x, x.rotation.y, x.rotation.z) for x in shown.transforms]
            np.testing.assert_array_equal(xyz, data.xpos)
            np.testing.assert_array_equal(quat, data.xquat)
            seen += 1
        if topic.endswith("/joints"):
            joints = JointStates.FromString(message.SerializeToString()).joints
            assert [x.name for x in joints] == [model.joint(i).name for i in range(model.njnt)]
            assert [x.position for x in joints] == list(states[stamp].qpos)
            assert [x.velocity for x in joints] == list(states[stamp].qvel)
    assert seen > 3


def test_geoms_are_drawn_where_mujoco_has_them() -> None:
    from sinew.record.foxglove import Scene

    model = mujoco.MjModel.from_xml_string(GEOMS)
    data = mujoco.MjData(model)
    data.qpos[:] += np.random.default_rng(1).normal(scale=0.3, size=model.nq)
    mujoco.mj_forward(model, data)
    scene = Scene(model, "7/")
    frames = {
        x.child_frame_id: x for x in FrameTransforms.FromString(scene.poses(10, data.qpos, np.empty(0))).transforms
    }
    update = SceneUpdate.FromString(scene.geometry(10**9 + 5))
    assert all(entity.frame_locked and entity.timestamp.nanos == 5 for entity in update.entities)

    def placed(entity: Any, pose: Any, points: Any) -> np.ndarray:
        """Return points of a primitive in the world."""
        made = np.atleast_2d(np.array(points, float))
        frame = frames[entity.frame_id]
        for x, q in ((pose.position, pose.orientation), (frame.translation, frame.rotation)):
            turn = np.empty(9)
            mujoco.mju_quat2Mat(turn, np.array([q.w, q.x, q.y, q.z]))
            made = made @ turn.reshape(3, 3).T + [x.x, x.y, x.z]
        return made

    drawn: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    for entity in update.entities:
        for kind in ("cubes", "spheres", "cylinders"):
            for part in getattr(entity, kind):
                size = np.array([part.size.x, part.size.y, part.size.z])
                drawn.setdefault(kind, []).append((placed(entity, part.pose, [0, 0, 0])[0], size))
        for part in entity.triangles:
            points = placed(entity, part.pose, [[p.x, p.y, p.z] for p in part.points])
            geom = model.geom("rock")
            mesh = model.mesh(geom.dataid[0])
            local = model.mesh_vert[mesh.vertadr[0] : mesh.vertadr[0] + mesh.vertnum[0]]
            turn = data.geom(geom.id).xmat.reshape(3, 3)
            np.testing.assert_allclose(points, local @ turn.T + data.geom(geom.id).xpos, atol=1e-12)
            assert len(part.indices) == 3 * mesh.facenum[0]
    up = data.geom("leg").xmat.reshape(3, 3)[:, 2] * 0.2
    wanted = {
        "cubes": [(data.geom("floor").xpos, [4, 6, 0.002]), (data.geom("box").xpos, [0.2, 0.3, 0.4])],
        "spheres": [
            (data.geom("ball").xpos, [0.1, 0.1, 0.1]),
            (data.geom("egg").xpos, [0.1, 0.2, 0.3]),
            (data.geom("leg").xpos - up, [0.06, 0.06, 0.06]),
            (data.geom("leg").xpos + up, [0.06, 0.06, 0.06]),
        ],
        "cylinders": [(data.geom("can").xpos, [0.2, 0.2, 0.6]), (data.geom("leg").xpos, [0.06, 0.06, 0.4])],
    }
    assert {kind: len(parts) for kind, parts in drawn.items()} == {kind: len(parts) for kind, parts in wanted.items()}
    for kind, parts in wanted.items():
        for place, size in parts:
            assert any(np.allclose(place, at, atol=2e-3) and np.allclose(size, sides) for at, sides in drawn[kind]), (
                kind,
                place,
            )


def test_figures_are_those_of_the_plans(file: Path) -> None:
    plans = {time: record.plan for topic, record, time in plain(file) if topic.endswith("/plan")}
    shown = [(message, stamp) for topic, message, stamp in plain(file) if topic.endswith("/figures")]
    assert len(shown) > 3
    for figures, stamp in shown:
        plan = plans[stamp]
        assert figures["cost_after"] == plan.cost_after
        assert figures["gradient_norm"] == plan.gradient_norm
        assert figures["latency"] == plan.age
        assert figures["terms"] == {term.name: term.cost for term in plan.terms}
        assert list(figures["ctrl"].values()) == list(plan.ctrl[:6])
        assert len(figures["act"]) == 6


# ------------------------------------------------------------------------------------------------ reading


def test_reads_what_comes_before_a_cut(file: Path, tmp_path: Path) -> None:
    whole = [entry.data for entry in Recording(file).entries()]
    with open(file, "rb") as opened:
        summary = make_reader(opened).get_summary()
    assert summary is not None
    data = file.read_bytes()
    complete = [  # records until the end of each chunk, and where that is
        (
            index.chunk_start_offset + index.chunk_length,
            sum(entry.at <= index.chunk_start_offset for entry in Recording(file).entries()),
        )
        for index in summary.chunk_indexes
    ]
    assert len(complete) >= 2
    inside = 0
    path = tmp_path / "cut.mcap"
    first = summary.chunk_indexes[0].chunk_start_offset
    for at in np.random.default_rng(5).integers(first + 60, len(data) - 1, 60):
        path.write_bytes(data[:at])
        recording = Recording(path)
        read = [entry.data for entry in recording.entries()]
        assert recording.cut
        assert read == whole[: len(read)]
        least = max((count for end, count in complete if end <= at), default=0)
        assert len(read) >= least
        inside += len(read) > least
    assert inside > 5  # chunks that are cut, too
    path.write_bytes(data[: first - 1])
    assert list(Recording(path).entries()) == []


def test_says_what_is_no_recording(file: Path, tmp_path: Path) -> None:
    with pytest.raises(errors.FileError, match="nothing"):
        Recording(tmp_path / "nothing")
    (tmp_path / "text").write_text("no recording at all")
    with pytest.raises(errors.FormatError, match="does not begin as MCAP"):
        Recording(tmp_path / "text")
    (tmp_path / "short").write_bytes(file.read_bytes()[:40])
    with pytest.raises(errors.FormatError, match="cut off before its first record"):
        Recording(tmp_path / "short")
    from mcap.writer import Writer

    with open(tmp_path / "other.mcap", "wb") as other:
        writer = Writer(other)
        writer.start("ros2", "somebody")
        writer.finish()
    with pytest.raises(errors.FormatError, match="no recording of sinew: its profile is 'ros2'"):
        Recording(tmp_path / "other.mcap")
    damaged = bytearray(file.read_bytes())
    with open(file, "rb") as opened:
        summary = make_reader(opened).get_summary()
    assert summary is not None
    second = summary.chunk_indexes[1]
    damaged[second.chunk_start_offset + second.chunk_length // 2] ^= 4
    (tmp_path / "damaged").write_bytes(damaged)
    with pytest.raises(errors.FormatError, match=f"is damaged at byte {second.chunk_start_offset}"):
        list(Recording(tmp_path / "damaged").entries())


def test_says_what_another_version_wrote(file: Path, tmp_path: Path) -> None:
    """A file whose schema has a field more and a field less: what is known is read."""
    described = descriptor_pb2.FileDescriptorSet.FromString(sinew.share("sinew.desc").read_bytes())
    [plan] = [message for message in described.file[0].message_type if message.name == "Plan"]
    plan.field[-1].name = "mood"
    path = tmp_path / "other.mcap"
    entries = list(Recording(file).entries())
    with pytest.MonkeyPatch.context() as patch:
        other = tmp_path / "sinew.desc"
        other.write_bytes(described.SerializeToString())
        patch.setattr("sinew.record.writer.share", lambda name: other)
        writer = RecordingWriter(path, {"recorder": "0.0.1"})
        for entry in entries:
            writer.add(entry.session, entry.kind, entry.data, entry.record.number, round(entry.time * 1e9))
        writer.close()
    recording = Recording(path)
    assert "written by sinew 0.0.1" in recording.remark
    assert "not known here: Plan.mood" in recording.remark
    assert "not known there: Plan." in recording.remark
    assert [entry.data for entry in recording.entries()] == [entry.data for entry in entries]
    assert Recording(file).remark == ""


# ---------------------------------------------------------------------------------------------- recording


def records_so_far(recorder: Recorder) -> list[Entry]:
    """Read what the recorder has written by now."""
    return list(Recording(recorder.path).entries())


def test_what_was_lost_is_said_and_mended(
    daemon: Daemon, client: sinew.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sinew.client.records import RecordSocket

    taken = RecordSocket.receive_many
    losing = [0]  # so many of those that come next

    def lose(self: RecordSocket, wait: float = 0.0, most: int = 4096) -> list[tuple[str, bytes]]:
        batch = taken(self, wait, most)
        gone = min(losing[0], len(batch))
        losing[0] -= gone
        return batch[gone:]

    monkeypatch.setattr(RecordSocket, "receive_many", lose)
    arm = Arm(client)
    path = tmp_path / "x.mcap"
    with Recorder(path, arm.session.id, daemon.endpoint) as recorder:
        await_first(arm, recorder)
        losing[0] = 3
        arm.go(5)
        wait(lambda: recorder.progress.gaps == 1)
        known = recorder.progress.records
        while [entry.kind for entry in records_so_far(recorder)].count("open") < 2:
            assert recorder.progress.records < known + 1000
            arm.go(1)
            time.sleep(0.02)
    assert recorder.progress.gaps == 1
    assert recorder.progress.lost == 3
    assert "3 records were lost" in recorder.progress.text
    kinds = [entry.kind for entry in Recording(path).entries()]
    assert kinds.count("open") == kinds.count("snapshot") == 2


def test_sessions_that_are_recorded(daemon: Daemon, client: sinew.Client, tmp_path: Path) -> None:
    before = Arm(client)
    recorders = {
        "all": Recorder(tmp_path / "all.mcap", "all", daemon.endpoint),
        "next": Recorder(tmp_path / "next.mcap", "next", daemon.endpoint, task="arm_reach", rate=0),
        "task": Recorder(tmp_path / "task.mcap", "all", daemon.endpoint, task="joints"),
    }
    for recorder in recorders.values():
        recorder.start()
    while recorders["all"].progress.plans == 0:
        before.go(1)
        time.sleep(0.02)
    time.sleep(2)  # the other two have subscribed, too
    joints = Arm(client, "joints")
    after = Arm(client)
    for arm in (before, joints, after):
        arm.go(6)
    after.session.close()
    wait(lambda: not recorders["next"].progress.running)
    wait(lambda: recorders["task"].progress.plans == 6)
    ids = {}
    for name, recorder in recorders.items():
        assert recorder.stop() == recorder.stop()
        assert recorder.error is None
        ids[name] = {entry.session for entry in Recording(recorder.path).entries()}
    assert {before.session.id, joints.session.id, after.session.id} <= ids["all"]
    assert ids["next"] == {after.session.id}
    assert ids["task"] == {joints.session.id}
    assert not any(topic.split("/")[-1] in BESIDE - {"figures"} for topic, _, _ in plain(tmp_path / "next.mcap"))


def test_refuses_in_words(daemon: Daemon, client: sinew.Client, tmp_path: Path) -> None:
    arm = Arm(client)
    with pytest.raises(errors.NotFoundError, match=rf"no session 12345.*{arm.session.id} \(arm_reach\)"):
        Recorder(tmp_path / "x.mcap", 12345, daemon.endpoint).start()
    (tmp_path / "there.mcap").write_text("mine")
    with pytest.raises(errors.FileError, match=r"there\.mcap is there already; --force"):
        Recorder(tmp_path / "there.mcap", arm.session.id, daemon.endpoint).start()
    assert (tmp_path / "there.mcap").read_text() == "mine"
    record(arm, tmp_path / "there.mcap", 3, daemon, force=True)
    assert len(list(Recording(tmp_path / "there.mcap").entries(["plan"]))) >= 3
    with pytest.raises(errors.FileError, match="cannot be written: No such file"):
        Recorder(tmp_path / "no" / "x.mcap", arm.session.id, daemon.endpoint).start()
    with pytest.raises(errors.TimedOutError):
        Recorder(tmp_path / "y.mcap", "all", f"ipc://{tmp_path}/nobody").start()


@pytest.mark.parametrize("arguments", [("--seconds", "nan"), ("--seconds", "-1"), ("--rate", "nan")])
def test_wrong_numbers_of_the_command(arguments: tuple[str, str], tmp_path: Path) -> None:
    child = sinew_command("record", "all", tmp_path / "x.mcap", *arguments)
    assert f"{arguments[0]} {arguments[1]}: expected a number from 0 on" in child.communicate(timeout=60)[1]
    assert child.returncode == 1
    assert not (tmp_path / "x.mcap").exists()


def test_daemon_that_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "x.mcap"
    with sinew.serve() as daemon, daemon.client() as client:
        arm = Arm(client)
        recorder = Recorder(path, arm.session.id, daemon.endpoint)
        recorder.start()
        await_first(arm, recorder)
        arm.go(10)
        wait(lambda: recorder.progress.plans > 10)
        os.kill(daemon.pid, signal.SIGKILL)
        wait(lambda: not recorder.progress.running)
        assert isinstance(recorder.stop().text, str)
        assert isinstance(recorder.error, errors.TimedOutError)
        assert "does not answer any more" in str(recorder.error)
    recording = Recording(path)
    assert len(list(recording.entries(["plan"]))) == recorder.progress.plans
    assert not recording.cut


def test_another_model_here_than_the_daemons(
    daemon: Daemon, client: sinew.Client, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records are written all the same, without a scene."""
    monkeypatch.setattr("sinew.loop.places.find_model", lambda name, file: models / "billiard.xml")
    arm, path = Arm(client), tmp_path / "x.mcap"
    with Recorder(path, arm.session.id, daemon.endpoint) as recorder:
        await_first(arm, recorder)
        arm.go(5)
    assert recorder.error is None
    assert "no scene for other programs is written: " in recorder.progress.text
    assert "billiard.xml is not the daemon's model arm_reach: nq is " in recorder.progress.text
    assert len(list(Recording(path).entries(["plan"]))) == recorder.progress.plans
    with pytest.raises(errors.ArgumentError, match=r"billiard\.xml is not the daemon's model"):
        Playback(path)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_fault_of_the_recorder_is_said(
    daemon: Daemon, client: sinew.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise ValueError("of the shape")

    monkeypatch.setattr("sinew.record.beside.Beside.take", fail)
    arm = Arm(client)
    with Recorder(tmp_path / "x.mcap", arm.session.id, daemon.endpoint) as recorder:
        until = time.monotonic() + 60
        while recorder.progress.running:
            assert time.monotonic() < until
            arm.go(1)
            time.sleep(0.02)
    assert isinstance(recorder.error, errors.StateError)
    assert "x.mcap has failed: ValueError: of the shape" in recorder.progress.text


# ------------------------------------------------------------------------------------------- the command


def sinew_command(*arguments: Any, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "sinew", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def recorded_by_command(arm: Arm, path: Path, *arguments: Any, **options: Any) -> subprocess.Popen[str]:
    """Start the command and wait until it records."""
    child = sinew_command("record", arm.session.id, path, *arguments, **options)
    until = time.monotonic() + 30
    while not path.exists() and child.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(0.3)
    return child


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_close_the_file(daemon: Daemon, client: sinew.Client, tmp_path: Path, how: signal.Signals) -> None:
    arm = Arm(client)
    path = tmp_path / "x.mcap"
    child = recorded_by_command(arm, path, "--endpoint", daemon.endpoint, "--json")
    try:
        until = time.monotonic() + 2
        while time.monotonic() < until:
            arm.go(1)
            time.sleep(0.02)
        child.send_signal(how)
        out, complaint = child.communicate(timeout=30)
    finally:
        child.kill()
    assert (child.returncode, complaint) == (0, "")
    said = json.loads(out)
    assert (said["lost"], said["sessions"]) == (0, [arm.session.id])
    plans = [message.plan.sequence for topic, message, _ in plain(path) if topic.endswith("/plan")]
    assert len(plans) == said["plans"] > 10
    assert plans == list(range(plans[0], plans[0] + len(plans)))


def test_nohup_outlasts_the_terminal(daemon: Daemon, client: sinew.Client, tmp_path: Path) -> None:
    arm = Arm(client)

    def ignore() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    child = recorded_by_command(arm, tmp_path / "x.mcap", "--endpoint", daemon.endpoint, preexec_fn=ignore)
    try:
        child.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(1)
        child.send_signal(signal.SIGTERM)
        assert child.wait(30) == 0
    finally:
        child.kill()
        child.communicate()


def test_full_disk_is_said(daemon: Daemon, client: sinew.Client, tmp_path: Path) -> None:
    arm = Arm(client)
    path = tmp_path / "x.mcap"
    most = 400_000

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    child = recorded_by_command(arm, path, "--endpoint", daemon.endpoint, preexec_fn=limit)
    try:
        until = time.monotonic() + 30
        while child.poll() is None and time.monotonic() < until:
            arm.go(20)
        _, complaint = child.communicate(timeout=10)
    finally:
        child.kill()
    assert child.returncode == 1
    assert f"{path} cannot be written any further: File too large" in complaint
    assert path.stat().st_size <= most
    assert len(list(Recording(path).entries(["plan"]))) > 5


# ---------------------------------------------------------------------------------------------- exporting


def test_a_table_does_not_replace_its_recording(file: Path, tmp_path: Path) -> None:
    before = file.read_bytes()
    (tmp_path / "same").symlink_to(file)
    child = sinew_command("export", file, "--csv", tmp_path / "same")
    assert "same is the recording itself" in child.communicate(timeout=60)[1]
    assert child.returncode == 1
    assert file.read_bytes() == before


def test_other_sessions_are_told(daemon: Daemon, client: sinew.Client, tmp_path: Path) -> None:
    """Whose table it is, where a recording has several sessions and none is asked for."""
    path = tmp_path / "all.mcap"
    first, second = Arm(client), Arm(client)
    with Recorder(path, "all", daemon.endpoint) as recorder:
        while recorder.progress.plans == 0:
            first.go(1)
            time.sleep(0.02)
        second.go(5)
        wait(lambda: recorder.progress.plans >= 6)
    ids = (first.session.id, second.session.id)
    said = sinew_command("export", path, "--what", "costs").communicate(timeout=60)[0]
    assert f"of session {ids[0]} alone; --session takes another: {ids[1]}" in said
    told = json.loads(sinew_command("export", path, "--what", "costs", "--json").communicate(timeout=60)[0])
    assert told["left_out"] == [ids[1]]
    said = sinew_command("export", path, "--what", "costs", "--session", ids[1]).communicate(timeout=60)[0]
    assert " costs: " in said
    assert "--session" not in said


def test_tables(file: Path, tmp_path: Path) -> None:
    plans = [record.plan for topic, record, _ in plain(file) if topic.endswith("/plan")]
    begins = [record.begin for topic, record, _ in plain(file) if topic.endswith("/begin")]

    def export(what: str) -> tuple[dict[str, np.ndarray], list[list[str]]]:
        arguments = ("--what", what, "--csv", tmp_path / "x.csv", "--npz", tmp_path / "x.npz", "--json")
        child = sinew_command("export", file, *arguments)
        out, complaint = child.communicate(timeout=60)
        assert (child.returncode, complaint) == (0, "")
        with open(tmp_path / "x.csv", newline="") as lines:
            rows = list(csv.reader(lines))
        assert json.loads(out)["rows"] == len(rows) - 1
        return dict(np.load(tmp_path / "x.npz")), rows

    arrays, rows = export("states")
    np.testing.assert_array_equal(arrays["qpos"], [begin.state.qpos for begin in begins])
    np.testing.assert_array_equal(arrays["time"], [begin.state.time for begin in begins])
    assert list(arrays["qpos_names"]) == ["shoulder", "elbow"]
    column = rows[0].index("qvel.elbow")
    assert [float(row[column]) for row in rows[1:]] == [begin.state.qvel[1] for begin in begins]
    arrays, rows = export("plans")
    np.testing.assert_array_equal(arrays["ctrl"].ravel(), np.concatenate([plan.ctrl for plan in plans]))
    np.testing.assert_array_equal(arrays["plan"], np.repeat([p.sequence for p in plans], [p.steps for p in plans]))
    assert rows[0][:3] == ["plan", "time", "ctrl.delt_ant"]
    arrays, rows = export("costs")
    np.testing.assert_array_equal(arrays["cost_after"], [plan.cost_after for plan in plans])
    column = rows[0].index("terms.effort")
    assert [float(row[column]) for row in rows[1:]] == [plan.terms[2].cost for plan in plans]
    arrays, _ = export("settings")
    weights = [(row[0], row[1]) for row in zip(arrays["version"], arrays["value"], arrays["name"], strict=True)
               if row[2] == "weight of speed"]  # fmt: skip
    assert weights == [(1, "0.0005"), (2, "0.002")]
