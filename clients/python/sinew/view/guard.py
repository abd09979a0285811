"""Who may open the page: its own addresses alone, and from other machines whoever has the token."""

from __future__ import annotations

import contextlib
import hmac
import http
import secrets
import socket
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import rich
import viser
import websockets.asyncio.server
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from sinew.errors import ArgumentError, StateError

__all__ = ["FIRST_PORT", "Guard", "Server", "free_port", "is_loopback", "start"]

FIRST_PORT = 8080
_PORTS = 100  # that are tried, from the first one on
_LOOPBACK = ("localhost", "127.0.0.1", "::1")

Hook = Callable[[Any, Request], Response | None]


def is_loopback(host: str) -> bool:
    """Return whether an address is of this machine alone."""
    return host in _LOOPBACK


class Server(viser.ViserServer):
    """viser's server without its way to publish a page on the internet."""

    def request_share_url(self, verbose: bool = True) -> None:
        """Do nothing: a page asks for it by a message, and no page may."""


class Guard:
    """Judges requests before viser's server sees them.

    A page of another site could open a connection to a server on loopback: such a one says where it comes from.
    With a token, the address that has it sets a cookie, and nothing is answered without that cookie.

    Parameters
    ----------
    host : str
        That the server listens at.
    token : str
        Empty: none is wanted.
    """

    def __init__(self, host: str, token: str = "") -> None:
        self._names = None if token else {*_LOOPBACK, host}
        self._token = token
        self._cookie = f"sinew-{secrets.token_hex(4)}"

    def judge(self, request: Request) -> Response | None:
        """Return an answer for a request that viser shall not see; None lets it through."""
        host = request.headers.get("Host", "")
        name = urlsplit(f"//{host}").hostname or ""
        if self._names is not None and name not in self._names:
            return _refusal(f"This page is not served as {name!r}.")
        origin = request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return _refusal(f"A page of {origin} may not use this one.")
        return self._judge_token(request) if self._token else None

    def _judge_token(self, request: Request) -> Response | None:
        given = parse_qs(urlsplit(request.path).query).get("token", [""])[0]
        if given and self._same(given):
            cookie = f"{self._cookie}={self._token}; HttpOnly; SameSite=Lax; Path=/"
            return _answer(http.HTTPStatus.SEE_OTHER, "", {"Location": "/", "Set-Cookie": cookie})
        cookies = (part.strip().partition("=") for part in request.headers.get("Cookie", "").split(";"))
        if any(name == self._cookie and self._same(value) for name, _, value in cookies):
            return None
        return _refusal("This page wants the whole address that `sinew view` printed, with its token.")

    def _same(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())


def _answer(status: http.HTTPStatus, text: str, headers: dict[str, str]) -> Response:
    body = text.encode()
    fields = {"Content-Type": "text/plain; charset=utf-8", "Content-Length": str(len(body)), **headers}
    return Response(status, status.phrase, Headers(**fields), body)


def _refusal(text: str) -> Response:
    return _answer(http.HTTPStatus.FORBIDDEN, text + "\n", {})


@contextlib.contextmanager
def _guarded(guard: Guard) -> Iterator[list[bool]]:
    """Put a guard before the server that viser starts meanwhile; the list is empty if it could not be put there.

    viser has no place for one: it passes a hook of its own to `websockets`, which is wrapped here.
    """
    serve = websockets.asyncio.server.serve
    done: list[bool] = []

    def serve_guarded(*arguments: Any, process_request: Hook, **options: Any) -> Any:
        def judge(connection: Any, request: Request) -> Response | None:
            refused = guard.judge(request)
            return process_request(connection, request) if refused is None else refused

        done.append(True)
        return serve(*arguments, process_request=judge, **options)

    websockets.asyncio.server.serve = serve_guarded  # type: ignore
    try:
        yield done
    finally:
        websockets.asyncio.server.serve = serve  # type: ignore


def free_port(host: str, port: int | None) -> int:
    """Return a port to listen at.

    Parameters
    ----------
    host : str
    port : int or None
        That alone, 0: any; None: the first free one from 8080 on.

    Raises
    ------
    ArgumentError
        The port is taken, or the address is none of this machine.
    """
    wanted = range(FIRST_PORT, FIRST_PORT + _PORTS) if port is None else (port,)
    why: OSError | None = None
    for candidate in wanted:
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(host, candidate, type=socket.SOCK_STREAM)[0]
            with socket.socket(family, kind, protocol) as trial:
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                trial.bind(address)
                return int(trial.getsockname()[1])
        except (OSError, OverflowError) as error:
            why = error if isinstance(error, OSError) else OSError(str(error))
    where = f"port {port}" if port is not None else f"ports {wanted[0]} to {wanted[-1]}"
    raise ArgumentError(f"{where} of {host} cannot be used: {why.strerror or why if why else 'none is left'}")


def start(host: str, port: int | None, token: str) -> Server:
    """Start viser's server behind a guard.

    Raises
    ------
    ArgumentError
        As `free_port` does.
    StateError
        The guard could not be put before it, or another program took the port meanwhile.
    """
    chosen = free_port(host, port)
    rich.get_console().quiet = True  # by which viser says what this program says itself
    with _guarded(Guard(host, token)) as done:
        server = Server(host=host, port=chosen, label="sinew", verbose=False)
    if not done:
        server.stop()
        raise StateError("this version of viser cannot be guarded; pip install 'sinew[view]' brings one that can")
    if server.get_port() != chosen:
        server.stop()
        raise StateError(f"port {chosen} of {host} was taken by another program meanwhile; try again")
    return server
