"""Files of the daemon's flight recorder: by another reader of MCAP and by the schema inside, and asked again."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcap")
import sinew
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from mcap.reader import make_reader
from sinew import cli
from sinew.client import Daemon
from sinew.client.wire import Call, request
from sinew.errors import ArgumentError, FileError, FormatError, RefusedError, SinewError

pytest.importorskip("foxglove_schemas_protobuf")
from sinew.record import flight
from sinew.record.flight import Flight, repeat

from recordings import recorded_file  # noqa: F401

PLANS = 20


def test_a_crash_is_read_by_mcap(tmp_path: Path) -> None:
    """What was asked before a crash stands in the file, in order, with the stages of what was answered."""
    folder = tmp_path / "flight"
    with (
        sinew.serve(settings={"flight_folder": folder, "flight_megabytes": 1}) as daemon,
        daemon.client(timeout=20) as client,
    ):
        session = client.open("arm_reach", seed=1)
        for k in range(PLANS):
            session.plan({"time": 0.01 * k, "qpos": [0.35, 1.3], "qvel": [0, 0]}, deadline=0.02)
        number = session.id
        client.health()  # whatever was to be noted of the plans has been
        os.kill(daemon.pid, signal.SIGABRT)
        while daemon.running:
            time.sleep(0.01)
    [path] = folder.glob("flight-*-crash.mcap")
    assert path.stat().st_mode & 0o777 == 0o600
    requests, plans, times = [], [], []
    with path.open("rb") as file:
        for schema, channel, message in make_reader(file, validate_crcs=True).iter_messages():
            assert schema is not None
            pool = descriptor_pool.DescriptorPool()
            for described in descriptor_pb2.FileDescriptorSet.FromString(schema.data).file:
                pool.Add(described)
            found = message_factory.GetMessageClass(pool.FindMessageTypeByName(schema.name)).FromString(message.data)
            (requests if channel.topic == "requests" else plans).append(found)
            times.append(message.log_time)
    asked = [request.plan for request in requests if request.WhichOneof("body") == "plan"]
    assert [plan.state.time for plan in asked] == pytest.approx([0.01 * k for k in range(PLANS)])
    assert {plan.session for plan in asked} == {number}
    assert [trace.sequence for trace in plans] == list(range(1, PLANS + 1))
    assert times == sorted(times) and abs(times[-1] / 1e9 - time.time()) < 60


# ------------------------------------------------------------------------------------------- asked again

STATE = {"qpos": [0.35, 1.3], "qvel": [0.0, 0.0]}


def write_flight(client: sinew.Client) -> Path:
    """Let the recorder write what it has; returns the file."""
    client.health()  # whatever was to be noted of the plans has been
    return Path(client._request(Call("flight", request("flight", {}), lambda reply: reply.path)))


@pytest.fixture(name="flown", scope="module")
def flown_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two sessions on bodies of other sizes asked, by turns, from their openings on; and a stream."""
    with (
        sinew.serve(settings={"flight_folder": tmp_path_factory.mktemp("flown"), "flight_seconds": 600}) as daemon,
        daemon.client(20) as client,
    ):
        swing = client.open("cart_pole", seed=2)
        arm = client.open("arm_reach", seed=1)
        for k in range(PLANS):
            arm.plan({"time": 0.01 * k} | STATE, iterations=2)
            swing.plan({"time": 0.01 * k, "qpos": swing.initial.qpos, "qvel": swing.initial.qvel}, iterations=3)
            if k == PLANS // 2:
                arm.tune(weights={"speed": 0.002}, lease=20)
                with pytest.raises(RefusedError):
                    arm.tune(weights={"speedy": 1.0})
                arm.revert(1)
        with arm.stream(lease=5, deadline=2) as stream:
            for k in range(PLANS):
                stream.send({"time": 1 + 0.01 * k} | STATE)
                stream.receive(5)
        swing.close()
        return write_flight(client)


def ask_again(client: sinew.Client, path: Path, **options: Any) -> flight.FlightOutcome:
    """Repeat a file and leave no session behind."""
    before = client.health().sessions
    try:
        return repeat(Flight(path), client, **options)
    finally:
        assert client.health().sessions == before


def test_asked_again(client: sinew.Client, flown: Path) -> None:
    """Each request is sent again to sessions opened as they were, and the plans come to what they came to."""
    file = Flight(flown)
    assert (len(file.sessions), file.version, file.cut) == (2, sinew.__version__, False)
    outcome = ask_again(client, flown, speed=20.0)
    assert (outcome.remarks, outcome.first, outcome.different) == ([], None, 0)
    assert outcome.plans == 2 * PLANS
    assert outcome.answered == outcome.requests
    assert outcome.passed == {"flight concerns the daemon": 1, "sessions are closed at the end": 1}
    assert len(outcome.refused) == 1 and next(iter(outcome.refused)).startswith("set_config: ")
    assert outcome.then.plans > 2 * PLANS and outcome.now.plans > 2 * PLANS  # the stream's, too
    assert len(outcome.then.ages) >= 2 * PLANS


def test_one_session_and_a_part(client: sinew.Client, flown: Path) -> None:
    file = Flight(flown)
    for session, iterations in zip(file.sessions, (2, 3), strict=True):
        outcome = ask_again(client, flown, session=session, end=0.0)
        assert outcome.plans <= 1
        outcome = ask_again(client, flown, session=session, speed=20.0)
        assert outcome.plans == PLANS
        assert outcome.now.iterations >= iterations * PLANS
    with pytest.raises(ArgumentError, match="has no session 5; there are: "):
        ask_again(client, flown, session=5)
    with pytest.raises(ArgumentError, match="expected a number above 0"):
        ask_again(client, flown, speed=0.0)


def test_opened_before_the_file_begins(client: sinew.Client, tmp_path: Path) -> None:
    """Such a session begins anew, on a task that is given and fits."""
    with (
        sinew.serve(settings={"flight_folder": tmp_path / "f", "flight_seconds": 0.3}) as daemon,
        daemon.client(20) as other,
    ):
        arm = other.open("arm_reach", seed=1)
        arm.tune(adam_rate=0.02)
        time.sleep(0.5)
        for k in range(3):
            arm.plan({"time": 0.01 * k} | STATE, iterations=2)
        arm.revert(1)
        path = write_flight(other)
        number = arm.id
    with pytest.raises(RefusedError, match=f"session {number} was opened before the file begins.* --task says"):
        ask_again(client, path)
    with pytest.raises(RefusedError, match="has states of other sizes than joints"):
        ask_again(client, path, task="joints")
    outcome = ask_again(client, path, task="arm_reach")
    assert outcome.remarks == [f"session {number} was opened before the file begins: it begins anew, on arm_reach"]
    assert (outcome.plans, outcome.different) == (3, 0)
    assert outcome.passed["versions of before the file begins are not there"] == 1


def test_command(daemon: Daemon, flown: Path, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rest = ["--endpoint", daemon.endpoint, "--speed", "20"]
    assert cli.main(["replay", str(flown), *rest]) == 0
    said = capsys.readouterr().out
    assert f"note: of the flight recorder of sinewd {sinew.__version__}: requests and times, no plans" in said
    assert said.endswith(f"\n{2 * PLANS} plans, all with the status that they had\n")
    assert cli.main(["replay", str(flown), *rest, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["flight"] and told["plans"] == 2 * PLANS and told["then"]["late"] == 0
    for wrong, words in (
        ([str(flown), *rest, "--anyway"], "--anyway is for recordings"),
        ([str(file), *rest], "--speed is for files of the flight recorder"),
        ([str(file), "--task", "arm_reach"], "--task is for files of the flight recorder"),
    ):
        assert cli.main(["replay", *wrong]) == 1
        assert words in capsys.readouterr().err


def test_what_is_no_flight(tmp_path: Path, flown: Path, file: Path) -> None:
    assert flight.is_flight(flown) and not flight.is_flight(file)
    with pytest.raises(FileError, match="cannot be read"):
        Flight(tmp_path / "none.mcap")
    (tmp_path / "text.mcap").write_text("no file of this kind")
    with pytest.raises(FormatError, match="does not begin as MCAP files do"):
        flight.is_flight(tmp_path / "text.mcap")
    with pytest.raises(FormatError, match="holds no requests"):
        Flight(file)


def test_damaged(tmp_path: Path, flown: Path) -> None:
    """A file that is cut off or has other bytes is read as far as it goes, or refused in words."""
    whole, damaged = flown.read_bytes(), tmp_path / "damaged.mcap"
    damaged.write_bytes(whole[: len(whole) * 3 // 4])
    assert Flight(damaged).cut
    chance = random.Random(1)
    refused = 0
    for number in range(60):
        bytes = bytearray(whole[: chance.randrange(len(whole))] if number % 2 else whole)
        for _ in range(30):
            if bytes:
                bytes[chance.randrange(len(bytes))] = chance.randrange(256)
        damaged.write_bytes(bytes)
        try:
            if flight.is_flight(damaged):
                Flight(damaged)
        except SinewError as error:
            refused += 1
            assert str(damaged) in str(error)
    assert refused > 10
