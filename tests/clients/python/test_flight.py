"""Files of the daemon's flight recorder, by another reader of MCAP and by the schema inside."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

pytest.importorskip("mcap")
import sinew
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from mcap.reader import make_reader

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
