"""Tables of runs on a Ray cluster of two nodes, one of which dies in the middle."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

# Before its import: Ray then takes the loopback for the address of this machine.
os.environ.update(
    RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0", RAY_USAGE_STATS_ENABLED="0", RAY_raylet_start_wait_time_s="200"
)
for name in ("pandas", "pyarrow", "scipy", "tqdm", "yaml"):
    pytest.importorskip(name)
pytest.importorskip("ray", reason="Ray is not installed: runs on a cluster are not tested")

from ray.cluster_utils import Cluster  # noqa: E402
from sinew.sweep import read  # noqa: E402
from sinew.sweep.job import jobs_of  # noqa: E402
from sinew.sweep.table import Table  # noqa: E402

from sweeps import keys, numbers  # noqa: E402

ARGUMENTS = "--tasks arm_reach --planners adam,sampling-8 --seeds 1-12 --seconds 0.5 --iterations 4"
NODE = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "include_dashboard": False, "object_store_memory": 100 << 20}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Start a cluster of one node, on the loopback."""
    cluster = Cluster(initialize_head=True, head_node_args=NODE)
    yield cluster
    cluster.shutdown()


def sweep(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program: a driver of Ray ends the other children of its process."""
    command = [sys.executable, "-m", "sinew", "sweep", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=240)


def test_a_node_dies_in_the_middle(cluster: Cluster, tmp_path: Path) -> None:
    victim = cluster.add_node(**NODE)
    cluster.wait_for_nodes()
    killed_after = []

    def kill() -> None:
        """Kill the second node once a few runs are done, while others are under way."""
        until = time.monotonic() + 120
        while len(keys(tmp_path / "ray")) < 3 and time.monotonic() < until:
            time.sleep(0.02)
        killed_after.append(len(keys(tmp_path / "ray")))
        cluster.remove_node(victim, allow_graceful=False)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        on_ray = sweep("-o", str(tmp_path / "ray"), *ARGUMENTS.split(), "--ray", cluster.address)
    finally:
        killer.join()
    assert on_ray.returncode == 0, on_ray.stderr
    assert 3 <= killed_after[0] < 24
    assert len(cluster.list_all_nodes()) == 1
    assert len(keys(tmp_path / "ray")) == len(set(keys(tmp_path / "ray"))) == 24
    assert sweep("-o", str(tmp_path / "here"), *ARGUMENTS.split()).returncode == 0
    assert numbers(tmp_path / "ray") == numbers(tmp_path / "here")


def test_errors_and_traces_come_back(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "table.yaml").write_text(
        "{tasks: arm_reach, seconds: 0.1, planners: {ends: {planner: adam, adam_iterations: 1},"
        " endless: {planner: adam, adam_iterations: 0}}}"
    )
    out = tmp_path / "run"
    ended = sweep(str(tmp_path / "table.yaml"), "-o", str(out), "--keep", "--ray", cluster.address)
    assert ended.returncode == 1 and "ArgumentError" in ended.stderr
    assert list(read(out)["error"] != "") == [False, True]
    (trace,) = (out / "traces").iterdir()
    (job,) = jobs_of(
        Table.of({"tasks": "arm_reach", "seconds": 0.1, "planners": {"p": {"planner": "adam", "adam_iterations": 1}}})
    )
    assert trace.stem == job.key and np.load(trace)["qpos"].shape == (21, 2)


def test_no_cluster_is_said_at_once(tmp_path: Path) -> None:
    with socket.socket() as free:  # a port at which nobody listens
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    for wrong in (address, "nowhere", "127.0.0.1:x", f"ray://{address}"):
        ended = sweep("-o", str(tmp_path), "--tasks", "arm_reach", "--ray", wrong)
        assert ended.returncode == 1 and wrong in ended.stderr and ended.stderr.count("\n") == 1
