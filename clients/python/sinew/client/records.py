"""Records of what happens in sessions, as the daemon publishes them: ``Record`` in ``proto/sinew.proto``.

A message has a topic, ``"SESSION KIND "``, and a serialised ``Record``. Whoever keeps records can pass them on
without reading them; `parse` reads one.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from sinew.client import schema
from sinew.client.keys import Keys
from sinew.client.wire import LONGEST
from sinew.errors import ArgumentError, ProtocolError, StateError

__all__ = ["RecordSocket", "milliseconds", "parse", "subscribed", "topic_of"]


def topic_of(session: int | None = None, kind: str | None = None) -> str:
    """Return the topic of a session's records of one kind, of all kinds (None), or of all sessions (None)."""
    if session is None:
        if kind is not None:
            raise ArgumentError("records of one kind can be asked for of one session alone")
        return ""
    return f"{session} " if kind is None else f"{session} {kind} "


def subscribed(context: Any, endpoint: str, session: int | None, most: int, keys: Keys | None = None) -> Any:
    """Return a socket of one of ZeroMQ's contexts that gets records; parameters are those of `RecordSocket`."""
    import zmq

    if not endpoint:
        raise ArgumentError("the daemon has no address of records")
    if most < 0:
        raise ArgumentError(f"most is {most}; allowed are 0 and more")
    socket = context.socket(zmq.SUB)
    try:
        for option, value in ((zmq.LINGER, 0), (zmq.RCVHWM, most), (zmq.MAXMSGSIZE, LONGEST)):
            socket.setsockopt(option, value)
        socket.setsockopt(zmq.SUBSCRIBE, topic_of(session).encode())
        if keys is not None:
            keys.use(socket)
        socket.connect(endpoint)
    except zmq.ZMQError as error:
        socket.close()
        raise ArgumentError(f"{endpoint}: {error}") from None
    return socket


def milliseconds(wait: float) -> int:
    """Return a time to wait [s] as ZeroMQ takes it."""
    if math.isnan(wait):
        raise ArgumentError("wait is nan; allowed is a time [s]")
    return int(min(max(wait, 0.0), 1e6) * 1e3)


class RecordSocket:
    """A subscription to records. A context manager, which ends it.

    Parameters
    ----------
    endpoint : str
        Address of the daemon's records: ``client.hello.records``.
    session : int, optional
        Id of the session; None: all of the daemon.
    most : int
        Messages that may wait here to be taken; 0: any number. The daemon drops what has no place, and a gap in
        ``Record.number`` says so.
    keys : Keys, optional
        Where the address asks for them; those of a role ``admin``.

    Notes
    -----
    A session makes itself known to a new subscriber by its next plan, with the kinds ``open`` and ``snapshot``.
    What comes before these two is to be passed over.
    """

    def __init__(self, endpoint: str, session: int | None = None, *, most: int = 0, keys: Keys | None = None) -> None:
        import zmq

        self.endpoint = endpoint
        self._zmq = zmq
        self._context: Any = zmq.Context()
        try:
            self._socket: Any = subscribed(self._context, endpoint, session, most, keys)
        except BaseException:
            self._context.term()
            raise

    def receive_many(self, wait: float = 0.0, most: int = 4096) -> list[tuple[str, bytes]]:
        """Take all that has come, waiting for the first message if there is none.

        Parameters
        ----------
        wait : float
            How long [s].
        most : int
            Messages at most.

        Returns
        -------
        list of (str, bytes)
            Topics and serialised records, oldest first; empty when none came.
        """
        if self._socket is None:
            raise StateError("the subscription is closed")
        if most < 1:
            raise ArgumentError(f"most is {most}; allowed is at least 1")
        longest = milliseconds(wait)
        messages: list[tuple[str, bytes]] = []
        receive, at_once = self._socket.recv, self._zmq.NOBLOCK
        try:
            if wait > 0 and not self._socket.poll(longest):
                return messages
            while len(messages) < most:
                topic, record = receive(at_once), receive(at_once)
                if topic[-1:] != b" ":
                    raise ProtocolError(f"{self.endpoint} sends what is no record: its topic is {topic[:40]!r}")
                messages.append((topic.decode("ascii", "replace"), record))
        except self._zmq.Again:
            pass
        return messages

    def subscribe(self, session: int | None) -> None:
        """Subscribe to a session, or to all, as well. After `unsubscribe` they make themselves known again."""
        self._option(self._zmq.SUBSCRIBE, session)

    def unsubscribe(self, session: int | None) -> None:
        """End the subscription to a session, or to all."""
        self._option(self._zmq.UNSUBSCRIBE, session)

    def _option(self, option: int, session: int | None) -> None:
        if self._socket is None:
            raise StateError("the subscription is closed")
        self._socket.setsockopt(option, topic_of(session).encode())

    def messages(self, wait: float = 5.0) -> Iterator[tuple[str, bytes]]:
        """Iterate over what comes; ends when nothing came for `wait` seconds."""
        until = time.monotonic() + wait
        while time.monotonic() < until:
            for message in self.receive_many(until - time.monotonic()):
                yield message
                until = time.monotonic() + wait

    def close(self) -> None:
        """End the subscription; a second call does nothing."""
        if self._socket is not None:
            self._socket.close()
            self._context.term()
        self._socket = None

    def __enter__(self) -> RecordSocket:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def parse(frame: bytes) -> Any:
    """Return the message ``Record`` of a frame; `sinew.client.schema.values` makes its parts into Python's."""
    from google.protobuf.message import DecodeError

    try:
        return _record().FromString(frame)
    except DecodeError:
        raise ProtocolError(f"{len(frame)} bytes are no Record") from None


@functools.cache
def _record() -> Any:
    return type(schema.load().new("Record"))
