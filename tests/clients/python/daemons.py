"""Daemons for tests: one that all of them share, and one in between that tells lies, answers late or not at all."""

from __future__ import annotations

import contextlib
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
import sinew
import zmq
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from sinew.client import Daemon

JOINTS = """
<mujoco>
  <option timestep="0.01"/>
  <worldbody>
    <body name="ball"><joint name="shoulder" type="ball" damping="1"/><geom size="0.1"/></body>
    <body name="cart" pos="1 0 0"><joint name="rail" type="slide" axis="1 0 0" damping="1"/><geom size="0.1"/>
      <body name="pole" pos="0 0 0.3"><joint type="hinge" axis="0 1 0" damping="1"/><geom size="0.1"/></body>
    </body>
    <body name="goal" mocap="true" pos="0 0 2"><geom size="0.05" contype="0" conaffinity="0"/></body>
  </worldbody>
  <actuator>
    <motor name="push" joint="rail" ctrlrange="-2 3" ctrllimited="true"/>
    <motor joint="shoulder" gear="0 0 1 0 0 0"/>
  </actuator>
</mujoco>
"""
TASK = """
description: joints of several kinds come to rest
model: joints.xml
settings: {planner: adam, horizon: 8, knots: 4, iterations: 2, adam_iterations: 2}
terms:
  - {name: speed, residual: {joint_velocity: all}, norm: squared, weight: 1}
"""


def write_joints(folder: Path) -> dict[str, Any]:
    """Write a model with joints of several kinds and its task "joints"; returns arguments of `sinew.serve`."""
    (folder / "joints.xml").write_text(JOINTS)
    (folder / "joints.yaml").write_text(TASK)
    share = sinew.share("sinew.desc").parent
    return {"tasks": [share / "tasks", folder], "models": [share / "models", folder]}


@pytest.fixture(scope="session")
def daemon() -> Iterator[Daemon]:
    """Start a daemon that all tests share, with the tasks of the package and "joints"."""
    with tempfile.TemporaryDirectory() as folder, sinew.serve(**write_joints(Path(folder))) as daemon:
        yield daemon


@pytest.fixture
def client(daemon: Daemon) -> Iterator[sinew.Client]:
    """Connect a client to the shared daemon."""
    with daemon.client(timeout=20) as client:
        yield client


def free_port() -> int:
    """Return a port of 127.0.0.1 that was free a moment ago."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


def keygen(path: Path) -> str:
    """Make a pair of keys as `sinewctl keygen` does; returns the public one."""
    public, secret = (key.decode() for key in zmq.curve_keypair())
    path.write_text(f"# secret key\n{secret}\n")
    path.chmod(0o600)
    path.with_name(f"{path.name}.pub").write_text(f"# public key\n{public}\n")
    return public


@dataclass
class Keyed:
    """A daemon with keys, the address where it asks for them, and the folder with the pairs."""

    daemon: Daemon
    endpoint: str
    folder: Path

    def key(self, name: str) -> dict[str, Path]:
        """Return the arguments of a client that shows this key."""
        return {"server_key": self.folder / "server.pub", "key_file": self.folder / name}


@contextlib.contextmanager
def serve_with_keys(folder: Path, roles: dict[str, str]) -> Iterator[Keyed]:
    """Start a daemon with a list of keys and their roles, by names; all pairs lie in a folder."""
    keygen(folder / "server")
    (folder / "allow").write_text("".join(f"{keygen(folder / name)} {role}\n" for name, role in roles.items()))
    ports = [f"tcp://127.0.0.1:{free_port()}" for _ in range(3)]
    settings = dict(zip(("tcp", "telemetry", "records"), ports, strict=True))
    settings |= {"curve_key": str(folder / "server"), "allow": str(folder / "allow")}
    with sinew.serve(threads=1, settings=settings) as daemon:
        yield Keyed(daemon, ports[0], folder)


def plain_messages() -> dict[str, Any]:
    """Return the classes of the schema as any program would make them, by name."""
    files = descriptor_pb2.FileDescriptorSet.FromString(sinew.share("sinew.desc").read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    names = [message.name for file in files.file for message in file.message_type]
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"sinew.v1.{name}")) for name in names}


class Liar:
    """Stands between a client and a daemon and changes the daemon's replies.

    Attributes
    ----------
    lie : callable
        Gets each reply and returns what is sent in its place: a reply, bytes, or None for nothing.
    requests : int
        Seen so far.
    peers : set of bytes
        The connections that they came by.
    """

    def __init__(self, endpoint: str) -> None:
        self.lie: Callable[[Any], Any] = lambda reply: reply
        self.requests = 0
        self.peers: set[bytes] = set()
        self._folder = tempfile.TemporaryDirectory()
        self.endpoint = f"ipc://{self._folder.name}/liar"
        self._reply = plain_messages()["Reply"]
        self._context = zmq.Context()
        self._front = self._context.socket(zmq.ROUTER)
        self._front.bind(self.endpoint)
        self._back = self._context.socket(zmq.DEALER)
        self._back.connect(endpoint)
        self._stopping = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        poller = zmq.Poller()
        poller.register(self._front, zmq.POLLIN)
        poller.register(self._back, zmq.POLLIN)
        peer = b""
        while not self._stopping:
            ready = dict(poller.poll(20))
            if self._front in ready:
                peer, data = self._front.recv_multipart()
                self.requests += 1
                self.peers.add(peer)
                self._back.send(data)
            if self._back in ready:
                said = self.lie(self._reply.FromString(self._back.recv()))
                if said is not None:
                    self._front.send_multipart([peer, said if isinstance(said, bytes) else said.SerializeToString()])

    def __enter__(self) -> Liar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping = True
        self._thread.join(10)
        self._context.destroy(linger=0)
        self._folder.cleanup()
