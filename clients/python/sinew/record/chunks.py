"""Reads a file in the format MCAP piece by piece, whether its end is there or not."""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

from sinew.errors import FileError, FormatError

__all__ = ["CUT", "contents_at", "opened", "pieces"]

CUT = object()
"""What is found where a file that was cut off ends."""


def opened(path: str) -> BinaryIO:
    """Open a file to be read; raises `FileError` where it cannot be."""
    try:
        return open(path, "rb")
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from None


class _Within:
    """A file that is asked for no more than it has: Python reserves what a length in a damaged one says."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._size = os.fstat(file.fileno()).st_size

    def read(self, size: int = -1) -> bytes:
        left = max(self._size - self._file.tell(), 0)
        return self._file.read(min(size, left) if size >= 0 else left)


def _within(file: BinaryIO) -> BinaryIO:
    return cast("BinaryIO", _Within(file))


def _records(file: BinaryIO) -> Iterator[Any]:
    """Go through the records of a file from where it is; chunks are whole."""
    from mcap.stream_reader import StreamReader

    return StreamReader(_within(file), skip_magic=True, emit_chunks=True).records


def _faults() -> tuple[type[Exception], ...]:
    """Return what the packages that read such files raise where one is damaged."""
    import zstandard
    from mcap.exceptions import McapError

    return McapError, zstandard.ZstdError, struct.error, ValueError, RuntimeError, OverflowError, MemoryError


def pieces(file: BinaryIO, path: str) -> Iterator[tuple[int, Any]]:
    """Go through a file from its begin.

    Yields
    ------
    tuple of int and object
        A place in the file, and a thing of `mcap.records` out of the piece that begins there; all messages of a chunk
        have the chunk's place. The last one is `CUT` where the end of the file is not there.

    Raises
    ------
    FormatError
        It is no such file, or is damaged before its end.
    """
    from mcap.data_stream import ReadDataStream
    from mcap.records import Chunk, Footer
    from mcap.stream_reader import read_magic

    faults = _faults()
    try:
        read_magic(ReadDataStream(file))
    except faults:
        raise FormatError(f"{path} is no recording: it does not begin as MCAP files do") from None
    found, at, piece = _records(file), file.tell(), None
    while not isinstance(piece, Footer):
        try:
            piece = next(found)
        except StopIteration:
            return
        except faults as error:
            if file.read(1):  # it is not the end of the file that stopped it
                raise _damaged(path, at, error) from None
            yield from ((at, message) for message in _contents_of_rest(file, at))
            yield at, CUT
            return
        if isinstance(piece, Chunk):
            yield from ((at, message) for message in _contents(piece, at, path))
        else:
            yield at, piece
        at = file.tell()


def contents_at(file: BinaryIO, at: int, path: str) -> list[Any]:
    """Return what is in the chunk that begins at a place of the file, also where its end is missing."""
    file.seek(at)
    try:
        chunk = next(_records(file))
    except _faults():
        return list(_contents_of_rest(file, at))
    return _contents(chunk, at, path)


def _contents(chunk: Any, at: int, path: str) -> list[Any]:
    from mcap.stream_reader import breakup_chunk

    try:
        return breakup_chunk(chunk, validate_crc=True)
    except _faults() as error:
        raise _damaged(path, at, error) from None


def _contents_of_rest(file: BinaryIO, at: int) -> Iterator[Any]:
    """Give what can be read of a chunk whose end is missing."""
    from mcap.data_stream import ReadDataStream
    from mcap.opcode import Opcode
    from mcap.records import Chunk
    from mcap.stream_reader import StreamReader

    file.seek(at)
    stream = ReadDataStream(_within(file))
    try:
        kind, _ = stream.read1(), stream.read8()
        if kind != Opcode.CHUNK:
            return
        chunk = Chunk.read(stream)
        yield from StreamReader(io.BytesIO(_unpacked(chunk)), skip_magic=True).records
    except _faults():
        return


def _unpacked(chunk: Any) -> bytes:
    """Return as much of a chunk's data as can be unpacked."""
    import lz4.frame
    import zstandard

    data: bytes = chunk.data
    if chunk.compression == "lz4":
        data = lz4.frame.LZ4FrameDecompressor().decompress(data)
    elif chunk.compression == "zstd":
        data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    return data


def _damaged(path: str, at: int, error: Exception) -> FormatError:
    return FormatError(f"{path} is damaged at byte {at}: {error or type(error).__name__}")
