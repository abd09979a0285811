"""Reads recordings, of other versions and without their ends, too."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import sinew
from sinew._extras import require
from sinew.client import schema
from sinew.client.plan import Plan
from sinew.client.quantities import ModelDescription
from sinew.client.records import parse
from sinew.errors import FormatError
from sinew.files import share
from sinew.record import layout
from sinew.record.chunks import CUT, contents_at, opened, pieces

__all__ = ["Entry", "Recording", "plan_of"]


def plan_of(message: Any, model: ModelDescription) -> Plan:
    """Return a recorded plan as a client has it; one without controls has no rows."""
    fields = schema.values(message)
    fields["ctrl"] = fields["ctrl"].reshape(-1, model.nu) if model.nu else fields["ctrl"]
    return Plan(**fields, model=model)


@dataclass(frozen=True, eq=False)
class Entry:
    """A record of the daemon in a file.

    Attributes
    ----------
    session, kind : int, str
        Whose it is, and what: see `sinew.record.layout.KINDS`.
    time : float
        Unix time [s].
    data : bytes
        The serialised record.
    at : int
        Place of its chunk in the file.
    """

    session: int
    kind: str
    time: float
    data: bytes = field(repr=False)
    at: int

    @cached_property
    def record(self) -> Any:
        """The message ``Record``."""
        return parse(self.data)

    @property
    def body(self) -> Any:
        """The message in it."""
        return getattr(self.record, self.kind)


class Recording:
    """A file that `Recorder` wrote.

    Parameters
    ----------
    path : path

    Attributes
    ----------
    size : int
        Of the file [bytes].
    read : int
        How far the latest pass has come [bytes].
    cut : bool
        The end of the file is not there. Known after a pass through all of it.
    about : dict of str
        Versions of what took part in it.
    remark : str
        What one should know of a file of another version; empty: nothing.

    Raises
    ------
    FileError
        There is no such file.
    FormatError
        It is no recording.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        require("record")
        self.path = os.fspath(path)
        with opened(self.path) as file:
            self.size = os.fstat(file.fileno()).st_size
        self.read = 0
        self.cut = False
        self.about: dict[str, str] = {}
        self.remark = ""
        self._channels: dict[int, tuple[int, str]] = {}
        self._look()

    @property
    def opened(self) -> list[int]:
        """Sessions whose opening the passes so far have come to, in the order of the file."""
        return [session for session, kind in self._channels.values() if kind == "open"]

    def entries(self, kinds: Collection[str] = layout.KINDS, session: int | None = None) -> Iterator[Entry]:
        """Go through the records from the first to the last that is there.

        Parameters
        ----------
        kinds : collection of str
            That are wanted.
        session : int, optional
            Of this session alone.
        """
        from mcap.records import Channel, Message

        self.read = 0
        wanted: set[int] = set()
        with opened(self.path) as file:
            for at, piece in pieces(file, self.path):
                if isinstance(piece, Message):
                    if piece.channel_id in wanted:
                        yield self._entry(piece, at)
                elif isinstance(piece, Channel):
                    whose = layout.session_and_kind(piece.topic)
                    if whose is not None:
                        self._channels[piece.id] = whose
                        if whose[1] in kinds and session in (None, whose[0]):
                            wanted.add(piece.id)
                elif piece is CUT:
                    self.cut = True
                self.read = at
        self.read = self.size

    def entries_at(self, at: int) -> list[Entry]:
        """Return all records of a chunk, after a pass that came so far; `at` is `Entry.at` of one of them."""
        from mcap.records import Message

        with opened(self.path) as file:
            found = contents_at(file, at, self.path)
        return [self._entry(x, at) for x in found if isinstance(x, Message) and x.channel_id in self._channels]

    def _entry(self, message: Any, at: int) -> Entry:
        return Entry(*self._channels[message.channel_id], message.log_time * 1e-9, message.data, at)

    def _look(self) -> None:
        """Look at the begin of the file: who wrote it, by which schema."""
        from mcap.records import Header, Metadata, Schema

        with opened(self.path) as file:
            for _, piece in pieces(file, self.path):
                if isinstance(piece, Header) and piece.profile != layout.PROFILE:
                    profile = f"its profile is {piece.profile!r}" if piece.profile else "it has no profile"
                    raise FormatError(f"{self.path} is an MCAP file, but no recording of sinew: {profile}")
                if isinstance(piece, Metadata) and piece.name == "sinew":
                    self.about = dict(piece.metadata)
                if isinstance(piece, Schema) and piece.name == layout.RECORD:
                    self.remark = _difference(piece.data, self.about, self.path)
                    return
                if piece is CUT:
                    raise FormatError(f"{self.path} is cut off before its first record")
        raise FormatError(f"{self.path} holds no records")


def _difference(data: bytes, about: dict[str, str], path: str) -> str:
    """Return what the schema in a file has that ours has not, and the other way round, in words."""
    own, its = _fields(share("sinew.desc").read_bytes(), "sinew.desc"), _fields(data, path)
    wrote = about.get("recorder", "another version")
    text = "" if wrote == sinew.__version__ and own == its else f"written by sinew {wrote}, read by {sinew.__version__}"
    if its - own:
        text += f"; passed over, for they are not known here: {_listed(its - own)}"
    if own - its:
        text += f"; empty, for they were not known there: {_listed(own - its)}"
    return text


def _fields(data: bytes, path: str) -> set[str]:
    """Return the names of all fields of a schema."""
    from google.protobuf import descriptor_pb2
    from google.protobuf.message import DecodeError

    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(data).file
    except DecodeError:
        raise FormatError(f"{path}: the schema in it is damaged") from None
    return {
        f"{message.name}.{field.name}" for file in files for message in file.message_type for field in message.field
    }


def _listed(names: set[str]) -> str:
    few = sorted(names)[:6]
    return ", ".join(few) + (f" and {len(names) - len(few)} more" if len(few) < len(names) else "")
