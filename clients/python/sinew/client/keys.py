"""Keys of a client (CURVE), and what became of its handshakes: ZeroMQ tells that to a monitor alone.

`sinewctl keygen FILE` makes a pair of keys. A file of a key has it on its first line that is no comment.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

from sinew.errors import ArgumentError, RefusedError

__all__ = ["Access", "Handshakes", "Keys", "PathOrKey"]

PathOrKey = str | os.PathLike[str]

_ALPHABET = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#")
_LENGTH = 40
_MECHANISM_MISMATCH = 0x11000002  # ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH of zmq.h
_ENDED_MOST = 2  # a daemon that stops breaks a handshake off, too: only the second one in a row is a refusal


class Access(TypedDict, total=False):
    """Keys as `sinew.Client` takes them; empty: none."""

    server_key: PathOrKey | None
    key_file: PathOrKey | None


@dataclass(frozen=True)
class Keys:
    """The daemon's public key, and the pair of the client, in Z85.

    Attributes
    ----------
    server, public, secret : str
    """

    server: str
    public: str
    secret: str = field(repr=False)

    @classmethod
    def read(cls, endpoint: str, server_key: PathOrKey | None, key_file: PathOrKey | None) -> Keys | None:
        """Return the keys for an address; None where none are given.

        Parameters
        ----------
        endpoint : str
            Address of the daemon, which asks for keys at ``tcp://`` alone.
        server_key : str or path, optional
            The daemon's public key, or its file.
        key_file : str or path, optional
            File of the client's secret key, which nobody else may read.
        """
        import zmq

        if server_key is None and key_file is None:
            return None
        if server_key is None or key_file is None:
            missing = "server_key" if server_key is None else "key_file"
            raise ArgumentError(f"server_key and key_file go together; {missing} is missing")
        if not endpoint.startswith("tcp://"):
            raise ArgumentError(f"{endpoint} takes no keys; a daemon asks for them at tcp addresses alone")
        if not zmq.has("curve"):
            raise ArgumentError("this libzmq has no encryption (CURVE)")
        public = str(server_key)
        server = public if _is_key(public) else _read(server_key, "server_key", secret=False)
        secret = _read(key_file, "key_file", secret=True)
        try:
            return cls(server, zmq.curve_public(secret.encode()).decode(), secret)
        except (ValueError, zmq.ZMQError):
            raise ArgumentError(f"key_file: {key_file} has no secret key") from None

    def use(self, socket: Any) -> None:
        """Give a socket the keys, before it connects."""
        socket.curve_serverkey = self.server.encode()
        socket.curve_publickey = self.public.encode()
        socket.curve_secretkey = self.secret.encode()


def _is_key(text: str) -> bool:
    return len(text) == _LENGTH and _ALPHABET.issuperset(text)


def _read(path: PathOrKey, name: str, *, secret: bool) -> str:
    """Return the key of a file."""
    try:
        mode = os.stat(path)
        if not stat.S_ISREG(mode.st_mode):
            raise ArgumentError(f"{name}: {path} is no file of a key")
        if secret and (mode.st_mode & 0o77 or mode.st_uid not in (os.geteuid(), 0)):
            rights = f"mode {mode.st_mode & 0o777:03o}, user {mode.st_uid}"
            raise ArgumentError(f"{name}: {path} is open to others ({rights}); a secret key must have mode 600")
        text = Path(path).read_text("ascii", "replace")
    except OSError as error:
        raise ArgumentError(f"{name}: {path}: {error.strerror}") from None
    lines = [line for line in text.splitlines() if line != "#" and not line.startswith("# ")]
    if not lines or not _is_key(lines[0]):
        raise ArgumentError(f"{name}: {path} has no key: 40 characters in Z85 on a line of their own")
    return lines[0]


class Handshakes:
    """Says why a daemon does not let a client in, and whether a connection has ended.

    Parameters
    ----------
    endpoint : str
        Address of the daemon.
    keys : Keys, optional
        That the client shows.
    """

    def __init__(self, endpoint: str, keys: Keys | None) -> None:
        self.endpoint = endpoint
        self.keys = keys
        self.monitor: Any = None
        self.pending = False  # no handshake of the latest socket has succeeded yet
        self.refused = False  # the latest socket is of no use any more
        self.lost = False  # the connection of the latest socket has ended
        self._ended = 0

    def watch(self, socket: Any) -> None:
        """Give a socket that is to connect the keys, and watch it: the end of its connection, of tcp its handshake."""
        import zmq

        if self.refused:  # else handshakes of the socket before count on: in a row
            self._ended = 0
        self.refused = self.lost = False
        self.pending = self.endpoint.startswith("tcp://")
        if self.keys is not None:
            self.keys.use(socket)
        event = zmq.Event
        shaken = (
            event.HANDSHAKE_SUCCEEDED
            | event.HANDSHAKE_FAILED_NO_DETAIL
            | event.HANDSHAKE_FAILED_PROTOCOL
            | event.HANDSHAKE_FAILED_AUTH
        )
        events = event.DISCONNECTED | shaken if self.pending else event.DISCONNECTED
        self.monitor = socket.get_monitor_socket(events)

    def close(self, socket: Any) -> None:
        """End the watch of a socket that is to be closed."""
        if self.monitor is not None:
            socket.disable_monitor()
            self.monitor.close(0)  # it is another socket, of which the context would wait for the end
        self.monitor = None

    def check(self) -> None:
        """Take what has come, without waiting; raises when the daemon does not let this client in."""
        import zmq

        while self.monitor is not None:
            try:
                frames = self.monitor.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            self.take(frames)

    def take(self, frames: list[bytes]) -> None:
        """Take one message of the monitor; raises when the daemon does not let this client in."""
        import zmq
        from zmq.utils.monitor import parse_monitor_message

        message = parse_monitor_message(frames)
        event, value = message["event"], message["value"]
        if event == zmq.Event.DISCONNECTED:
            self.lost = True
        elif event == zmq.Event.HANDSHAKE_SUCCEEDED:
            self.pending, self._ended = False, 0
        elif event == zmq.Event.HANDSHAKE_FAILED_NO_DETAIL:
            self._ended += 1
            if self._ended >= _ENDED_MOST:
                raise self._refused(f"ends the connection during the handshake: {self._guess()}")
        elif event == zmq.Event.HANDSHAKE_FAILED_AUTH and self.keys is not None:
            raise self._refused(
                f"does not let the key {self.keys.public} in: "
                "it is not on the daemon's allow-list, or its role is too low"
            )
        elif value == _MECHANISM_MISMATCH:
            raise self._refused("takes no keys" if self.keys else "needs keys: server_key and key_file")
        else:
            raise self._refused("breaks the rules of the handshake: it is no sinewd, or has another server_key")

    def _guess(self) -> str:
        if self.keys is not None:
            return "server_key is not its key, it takes no keys, or it is stopping"
        return "it needs keys (server_key, key_file), is no sinewd, or is stopping"

    def _refused(self, text: str) -> RefusedError:
        self.refused = True
        return RefusedError(f"{self.endpoint} {text}", code="PERMISSION")
