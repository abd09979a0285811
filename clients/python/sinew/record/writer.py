"""A file of records, in the format MCAP."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Mapping
from typing import Any

import sinew
from sinew.errors import FileError
from sinew.files import share
from sinew.record import layout
from sinew.record.chunked import ChunkedFile

__all__ = ["RecordingWriter"]


class RecordingWriter:
    """Writes records as they come, unchanged, and what other programs need beside them.

    Parameters
    ----------
    path : path
        A new file.
    about : mapping of str
        Versions of what takes part.
    force : bool
        Whether a file that is there is replaced.

    Raises
    ------
    FileError
        It is there already, or cannot be written; from all methods: no space is left, say.
    """

    def __init__(self, path: str | os.PathLike[str], about: Mapping[str, str], force: bool = False) -> None:
        self.path = os.fspath(path)
        try:
            self._file = open(path, "wb" if force else "xb")  # noqa: SIM115  # closed by `close`
        except FileExistsError:
            raise FileError(f"{self.path} is there already; --force replaces it") from None
        except OSError as error:
            raise FileError(f"{self.path} cannot be written: {error.strerror}") from None
        self._size = 0
        self._channels: dict[tuple[int, str] | str, int] = {}
        self._schemas: dict[str, int] = {}
        with self.writing():
            self._chunked = ChunkedFile(self._file, layout.PROFILE, f"sinew {sinew.__version__}")
            self._chunked.add_metadata("sinew", about)
            self._schema = self._schema_of(layout.RECORD, "protobuf", share("sinew.desc").read_bytes())

    @property
    def size(self) -> int:
        """Bytes in the file so far."""
        if not self._file.closed:
            self._size = self._file.tell()
        return self._size

    def add(self, session: int, kind: str, data: bytes, number: int, time: int) -> None:
        """Add a record of the daemon.

        Parameters
        ----------
        session, kind : int, str
            Whose it is, and what.
        data : bytes
            The serialised record.
        number : int
            Its number in the session.
        time : int
            Unix time [ns].
        """
        channel = self._channels.get((session, kind))
        if channel is None:
            topic = layout.channel(session, kind)
            channel = self._channels[session, kind] = self._chunked.add_channel(topic, "protobuf", self._schema)
        self._chunked.add(channel, time, number, data)

    def add_beside(self, topic: str, schema: tuple[str, str, bytes], data: bytes, time: int) -> None:
        """Add a message for other programs.

        Parameters
        ----------
        topic : str
            Name of its channel.
        schema : tuple
            Name, encoding (``"protobuf"``, ``"jsonschema"``) and text.
        data : bytes
            The message.
        time : int
            Unix time [ns].
        """
        channel = self._channels.get(topic)
        if channel is None:
            encoding = "json" if schema[1] == "jsonschema" else schema[1]
            channel = self._channels[topic] = self._chunked.add_channel(topic, encoding, self._schema_of(*schema))
        self._chunked.add(channel, time, 0, data)

    def add_metadata(self, name: str, values: Mapping[str, Any]) -> None:
        """Add metadata; values become texts."""
        self._chunked.add_metadata(name, {key: str(value) for key, value in values.items()})

    def flush(self) -> None:
        """Hand all that was added to the system."""
        self._chunked.flush()

    def close(self) -> None:
        """Write the file's index and close it. A second call does nothing."""
        if self._file.closed:
            return
        with self.writing():
            self._chunked.finish()
            self.size  # noqa: B018  # is known from here on
        self._abandon()

    def _schema_of(self, name: str, encoding: str, data: bytes) -> int:
        if name not in self._schemas:
            self._schemas[name] = self._chunked.add_schema(name, encoding, data)
        return self._schemas[name]

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Say in words what the system refuses within this block. What was written before can be read."""
        try:
            yield
        except OSError as error:
            self._abandon()
            why = "no space is left" if error.errno == errno.ENOSPC else error.strerror
            raise FileError(f"{self.path} cannot be written any further: {why}") from None

    def _abandon(self) -> None:
        """Close the file as it is."""
        with contextlib.suppress(OSError):
            self._file.close()
