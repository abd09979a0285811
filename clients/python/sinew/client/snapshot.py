"""Snapshots of sessions: all that the next plan depends on beside its request."""

from __future__ import annotations

from typing import Any

from sinew.client import schema
from sinew.errors import ProtocolError

__all__ = ["Snapshot"]


class Snapshot:
    """Where a session stands between two plans, to go on from, bit for bit, here or at another daemon.

    It is the message ``Snapshot`` of ``proto/sinew.proto``, which is also in records. Another daemon must be of the
    same build, and have the same model and task.

    Parameters
    ----------
    data : bytes
        The message, serialised: what ``bytes(snapshot)`` gave.

    Attributes
    ----------
    version : int
        Of the message.
    task : str
        Name of the task.
    checksum : str
        Of the compiled model with the task's changes.
    number : str
        Number type of the engine, ``"double"`` or ``"float"``.
    seed, plan : int
        The session's seed, and the number of its latest plan; 0: none yet.
    time : float
        Stamp of the latest state [s].

    Raises
    ------
    ProtocolError
        The bytes are no snapshot.
    """

    def __init__(self, data: bytes) -> None:
        from google.protobuf.message import DecodeError

        message: Any = schema.load().new("Snapshot")
        try:
            message.ParseFromString(data)
        except DecodeError:
            message = None
        if message is None or not message.version:
            raise ProtocolError(f"{len(data)} bytes are no Snapshot")
        self._data = bytes(data)
        self.version: int = message.version
        self.task: str = message.task
        self.checksum: str = message.checksum
        self.number: str = message.number
        self.seed: int = message.seed
        self.plan: int = message.plan
        self.time: float = message.state.time

    def __bytes__(self) -> bytes:
        return self._data

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Snapshot) and self._data == other._data

    def __hash__(self) -> int:
        return hash(self._data)

    def __repr__(self) -> str:
        return f"<Snapshot of {self.task} after plan {self.plan}, {len(self._data)} bytes>"
