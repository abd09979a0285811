"""Requests and replies as bytes; nothing here waits or owns a socket.

A request that its caller waits for has an id of channel 0. What comes without being waited for (plans of
states that were sent on, plans of a stream) has an id of a channel of its own, so that a reply says by its id
where it belongs.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sinew.client import schema
from sinew.client.keys import Handshakes, Keys, PathOrKey
from sinew.client.messages import Hello
from sinew.errors import ArgumentError, LimitError, NoSessionError, ProtocolError, RefusedError

__all__ = ["LINGER", "LONGEST", "PAUSE", "RECONNECT", "Call", "Wire", "absence", "check", "is_coming", "is_stopping"]

PROTOCOL = 1
LONGEST = 64 << 20  # a longer message ends the connection [bytes]
RECONNECT = 20  # while the daemon is gone a connection is tried again so often [ms]
PAUSE = 0.01  # before a request is sent again [s]
LINGER = 100  # for what is still to be sent when a connection is closed [ms]
_CHANNEL_SHIFT = 40
_OF_SESSIONS = frozenset({"plan", "evaluate", "stream", "stream_state", "close", "statistics", "snapshot", "trace"})

T = TypeVar("T")


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request, and what its reply is made into.

    Attributes
    ----------
    body : str
        Name of the request among those of ``Request``, and of its reply among those of ``Reply``.
    request : Message
        The request without its id.
    take : callable
        Makes the result out of the reply's body.
    extra : float
        Time that the daemon has been given, in addition to the time-out [s].
    """

    body: str
    request: Any
    take: Callable[[Any], T]
    extra: float = 0.0


def request(body: str, fields: dict[str, Any]) -> Any:
    """Return a ``Request`` with that body, without its id."""
    message = schema.load().new("Request")
    part = getattr(message, body)
    part.SetInParent()
    schema.fill(part, fields, f"{body}: ")
    return message


def default_endpoint() -> str:
    """Return the address where this user's daemon listens unless it is told otherwise."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    folder = f"{runtime}/sinew" if runtime.startswith("/") else f"/tmp/sinew-{os.getuid()}"
    return f"ipc://{folder}/sinewd.sock"


def _checked(endpoint: str) -> str:
    """Return an address that may be one of a daemon."""
    match = re.fullmatch(r"ipc://.+|tcp://[^:].*:0*([0-9]{1,5})", endpoint, re.DOTALL)
    if match is None or (match[1] is not None and not 1 <= int(match[1]) <= 65535):
        wanted = "expected ipc://PATH or tcp://HOST:PORT with a port from 1 to 65535"
        raise ArgumentError(f"cannot connect to {endpoint!r}: {wanted}")
    return endpoint


def absence(endpoint: str) -> str:
    """Return words for an address where no daemon can be, since there is no such socket. Abstract ones have no file."""
    path = endpoint.removeprefix("ipc://")
    if path == endpoint or path.startswith("@"):
        return ""
    try:
        os.stat(path)
    except PermissionError:
        return ": its folder may not be looked into"
    except (OSError, ValueError):
        return ": there is no such socket; does sinewd run?"
    return ""


class Wire:
    """What a client knows of its daemon, whatever its sockets: address, numbers of requests, limits.

    Parameters
    ----------
    endpoint : str or None
        Address of the daemon; None: that of this user's daemon.
    timeout : float
        For the answer to a request [s].
    retries : int
        How many more times a request is sent that got no answer.
    server_key, key_file : str or path, optional
        As of `sinew.Client`.
    """

    def __init__(
        self,
        endpoint: str | None,
        timeout: float,
        retries: int,
        server_key: PathOrKey | None = None,
        key_file: PathOrKey | None = None,
    ) -> None:
        if not (timeout > 0 and math.isfinite(timeout)) or retries < 0:
            raise ArgumentError(f"timeout must be > 0 and retries >= 0, got {timeout:g} and {retries}")
        self.endpoint = default_endpoint() if endpoint is None else _checked(endpoint)
        self.timeout = timeout
        self.retries = retries
        self.keys = Keys.read(self.endpoint, server_key, key_file)
        self.handshakes = Handshakes(self.endpoint, self.keys)
        self.hello: Hello | None = None
        self.stale = False  # the connection has ended since the greeting: it may be another daemon
        self._reply: Any = type(schema.load().new("Reply"))
        self._telemetry: Any = type(schema.load().new("Telemetry"))
        self._counts = [0]

    def open_channel(self) -> int:
        """Return the number of a channel for replies that are not waited for."""
        self._counts.append(0)
        return len(self._counts) - 1

    def encode(self, message: Any, channel: int = 0) -> tuple[int, bytes]:
        """Give a request the next id of its channel; returns the id and the bytes to send."""
        self._counts[channel] += 1
        message.id = channel << _CHANNEL_SHIFT | self._counts[channel]
        data: bytes = message.SerializeToString()
        if self.hello is not None and len(data) > self.hello.limits.message_bytes:
            most = self.hello.limits.message_bytes
            raise LimitError(f"the request has {len(data)} bytes; the daemon takes at most {most}")
        return message.id, data

    def decode(self, frame: bytes) -> tuple[int, Any]:
        """Return the channel and the reply of a frame."""
        from google.protobuf.message import DecodeError

        try:
            reply: Any = self._reply.FromString(frame)
        except DecodeError:
            raise ProtocolError(f"the answer of {self.endpoint} is not a Reply") from None
        return reply.id >> _CHANNEL_SHIFT, reply

    def published(self, frame: bytes) -> Any:
        """Return the message of a frame of telemetry."""
        from google.protobuf.message import DecodeError

        try:
            return self._telemetry.FromString(frame)
        except DecodeError:
            raise ProtocolError("what came as telemetry is none") from None

    def result(self, call: Call[T], reply: Any) -> T:
        """Return what a reply says, or raise what it refuses."""
        check(reply, _seeks_session(call.request))
        if reply.WhichOneof("body") != call.body:
            raise ProtocolError(f"{self.endpoint} answers with another kind of message")
        return call.take(getattr(reply, call.body))

    def greet(self, hello: Hello) -> None:
        """Take the daemon's answer to the greeting."""
        if hello.protocol != PROTOCOL:
            raise ProtocolError(f"the daemon speaks protocol {hello.protocol}, this package {PROTOCOL}")
        if hello.limits is None:
            raise ProtocolError(f"{self.endpoint} does not say its limits")
        self.hello = hello
        self.stale = False

    def telemetry_endpoint(self) -> str:
        """Return the address of the daemon's telemetry."""
        address = self.hello.telemetry if self.hello is not None else ""
        if not address:
            raise RefusedError(f"the daemon at {self.endpoint} publishes no telemetry")
        return address

    def keys_for(self, endpoint: str) -> Keys | None:
        """Return the keys for an address of what is published: none at an ipc address."""
        return self.keys if endpoint.startswith("tcp://") else None

    def records_endpoint(self) -> str:
        """Return the address of the daemon's records."""
        address = self.hello.records if self.hello is not None else ""
        if not address:
            raise RefusedError(f"the daemon at {self.endpoint} publishes no records")
        return address


def is_coming(reply: Any) -> bool:
    """Return whether a reply says that the session is on its way, and to ask again."""
    return bool(reply.WhichOneof("body") == "error" and schema.values(reply.error)["code"] == "RESTORING")


def is_stopping(reply: Any) -> bool:
    """Return whether a reply, to a request or of a stream, says that the daemon stops."""
    body = reply.WhichOneof("body")
    if body == "stream":
        return bool(schema.values(reply.stream)["end"] == "SHUTTING_DOWN")
    return bool(body == "error" and schema.values(reply.error)["code"] == "SHUTTING_DOWN")


def check(reply: Any, seeks_session: bool = False) -> None:
    """Raise the error that a reply brings, if it does.

    `seeks_session` says that the request looks for its session and for nothing else that may be missing: daemons that
    are older than ``Error.no_session`` say no more than that something is.
    """
    if reply.WhichOneof("body") == "error":
        code = schema.values(reply.error)["code"]
        gone = reply.error.no_session or (seeks_session and code == "NOT_FOUND")
        kind = NoSessionError if gone else RefusedError
        raise kind(_printable(reply.error.text), code=code)


def _seeks_session(message: Any) -> bool:
    """Return whether a request looks for its session and for nothing else that may be missing."""
    body = message.WhichOneof("body")
    return body in _OF_SESSIONS or (body == "get_config" and not message.get_config.version)


def _printable(text: str) -> str:
    """Return a text without control characters other than ends of lines."""
    return re.sub(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", lambda m: f"\\x{ord(m[0]):02x}", text)
