"""Writes a file in the format MCAP by chunks, for thousands of messages a second.

The pieces are those of the library `mcap`, whose own writer needs five times as long for a message.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

if TYPE_CHECKING:
    from mcap.records import McapRecord

__all__ = ["ChunkedFile"]

_CHUNK = 1 << 18  # of messages [bytes]
_MESSAGE = struct.Struct("<BQHIQQ")  # what it is, length, channel, number, times
_FIXED = _MESSAGE.size - 9  # bytes of a message that are no data


class ChunkedFile:
    """A file that is written from the begin to the end.

    Parameters
    ----------
    file : file
        Open for writing, at its begin.
    profile, library : str
        Who writes it.
    """

    def __init__(self, file: BinaryIO, profile: str, library: str) -> None:
        from mcap.records import Header
        from mcap.writer import MCAP0_MAGIC

        self._file, self._magic = file, MCAP0_MAGIC
        self._summary: list[McapRecord] = []
        self._counts: dict[str, int] = {"Schema": 0, "Channel": 0, "MetadataIndex": 0, "ChunkIndex": 0}
        self._messages: dict[int, int] = {}  # by channel
        self._first, self._last = 2**64 - 1, 0  # times of messages [ns]
        self._parts: list[bytes] = []  # of the chunk in progress
        self._length = 0
        self._index: dict[int, list[int]] = {}  # by channel: time and place of each of its messages
        file.write(MCAP0_MAGIC)
        file.write(_packed(Header(profile, library)))

    def add_schema(self, name: str, encoding: str, data: bytes) -> int:
        """Add a schema; returns its number."""
        from mcap.records import Schema

        number = self._counts["Schema"] + 1
        self._add(Schema(number, data, encoding, name))
        return number

    def add_channel(self, topic: str, encoding: str, schema: int) -> int:
        """Add a channel; returns its number."""
        from mcap.records import Channel

        number = self._counts["Channel"] + 1
        self._add(Channel(number, topic, encoding, {}, schema))
        self._messages[number] = 0
        return number

    def add_metadata(self, name: str, values: Mapping[str, str]) -> None:
        """Add metadata."""
        from mcap.records import Metadata, MetadataIndex

        data = _packed(Metadata(name, dict(values)))
        self._note(MetadataIndex(self._file.tell(), len(data), name))
        self._file.write(data)

    def add(self, channel: int, time: int, number: int, data: bytes) -> None:
        """Add a message; its time is Unix time [ns]."""
        index = self._index.get(channel)
        if index is None:
            index = self._index[channel] = []
        index.append(time)
        index.append(self._length)
        self._parts.append(_MESSAGE.pack(5, _FIXED + len(data), channel, number & 0xFFFFFFFF, time, time))
        self._parts.append(data)
        self._length += _MESSAGE.size + len(data)
        if self._length > _CHUNK:
            self._end_chunk()

    def flush(self) -> None:
        """End the chunk in progress and hand everything to the system."""
        self._end_chunk()
        self._file.flush()

    def finish(self) -> None:
        """Write the end of the file: what is in it, and where."""
        from mcap.records import DataEnd, Footer, Statistics

        self._end_chunk()
        counts = self._counts
        self._summary.append(
            Statistics(
                attachment_count=0,
                channel_count=counts["Channel"],
                channel_message_counts=self._messages,
                chunk_count=counts["ChunkIndex"],
                message_count=sum(self._messages.values()),
                message_end_time=self._last,
                message_start_time=min(self._first, self._last),
                metadata_count=counts["MetadataIndex"],
                schema_count=counts["Schema"],
            )
        )
        self._file.write(_packed(DataEnd(0)))
        start = self._file.tell()
        # The checksum is that of the summary and of the footer before it.
        self._summary.sort(key=lambda piece: type(piece).__name__)
        summary = b"".join(map(_packed, self._summary))
        footer = _packed(Footer(start, 0, 0))
        check = zlib.crc32(footer[:-4], zlib.crc32(summary))
        self._file.write(summary + _packed(Footer(start, 0, check)) + self._magic)
        self._file.flush()

    def _add(self, piece: McapRecord) -> None:
        self._note(piece)
        self._file.write(_packed(piece))

    def _note(self, piece: McapRecord) -> None:
        """Keep a piece for the summary."""
        self._counts[type(piece).__name__] += 1
        self._summary.append(piece)

    def _end_chunk(self) -> None:
        import lz4.frame
        from mcap.records import Chunk, ChunkIndex

        if not self._parts:
            return
        rows = {channel: np.array(index, "<u8").reshape(-1, 2) for channel, index in self._index.items()}
        first = min(int(row[:, 0].min()) for row in rows.values())
        last = max(int(row[:, 0].max()) for row in rows.values())
        plain = b"".join(self._parts)
        data = lz4.frame.compress(plain)
        at = self._file.tell()
        chunk = _packed(Chunk("lz4", data, last, first, zlib.crc32(plain), len(plain)))
        offsets, indexes = {}, b""
        for channel, row in rows.items():
            offsets[channel] = at + len(chunk) + len(indexes)
            table = row.tobytes()
            indexes += struct.pack("<BQHI", 7, len(table) + 6, channel, len(table)) + table
            self._messages[channel] += len(row)
        self._file.write(chunk + indexes)
        self._note(ChunkIndex(len(chunk), at, "lz4", len(data), last, len(indexes), offsets, first, len(plain)))
        self._first, self._last = min(self._first, first), max(self._last, last)
        self._parts, self._length, self._index = [], 0, {}


def _packed(piece: McapRecord) -> bytes:
    """Return a piece as it stands in a file."""
    from mcap.data_stream import RecordBuilder

    builder = RecordBuilder()
    piece.write(builder)
    data: bytes = builder.end()  # type: ignore[no-untyped-call]
    return data
