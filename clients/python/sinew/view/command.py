"""Show a body, its plan and its cost on a page in the browser, and tune the planner meanwhile.

Ways to use it:
  sinew view --task hand_balls                   with this user's daemon, or a private one where none answers
  sinew view --task arm_reach --mode realtime --set adam_rate=0.02
  sinew view hand.xml                            a model alone, moved by sliders
  sinew view run.mcap                            a recording

The page is for this machine alone. From another one, go through ssh:
  ssh -L 8080:localhost:8080 this-machine        and there open http://localhost:8080
"""

from __future__ import annotations

import argparse
import contextlib
import json
import secrets
import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sinew._extras import require
from sinew._interrupts import wait
from sinew.client.arguments import add_daemon_arguments, keys_of
from sinew.errors import ArgumentError, NotFoundError, SinewError

if TYPE_CHECKING:
    from sinew.client.serving import Daemon
    from sinew.loop.driver import Driver
    from sinew.loop.source import Mode, Source
    from sinew.view.guard import Server

__all__ = ["HELP", "add_arguments", "run"]

HELP = "see it move: a page in the browser with the body, its plan, and sliders for all settings"

_RECORDINGS = (".mcap",)
_GREETING = 1.0  # for which a daemon that may run is given time to answer [s]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("file", nargs="?", help="a model (.xml, .mjb) or a recording (.mcap)")
    parser.add_argument("--task", metavar="NAME", help="a task of the daemon, such as hand_balls")
    add_daemon_arguments(parser, "of a daemon that runs, such as tcp://127.0.0.1:5555")
    parser.add_argument(
        "--mode", choices=("lockstep", "realtime"), default="lockstep", help="whether the body waits for its plans"
    )
    parser.add_argument("--seed", type=int, default=0, help="another one is another start")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the planner")
    parser.add_argument("--paused", action="store_true", help="time stands still at first")
    parser.add_argument("--port", type=int, help="of the page; without it the first free one from 8080 on")
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to serve at, such as 0.0.0.0, for other machines: the page's address then has a token, which"
        " goes over the network in plain text",
    )
    parser.add_argument("--open", action=argparse.BooleanOptionalAction, default=False, help="open a browser")
    parser.add_argument("--no-browser", dest="open", action="store_false", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="print the address as one line of JSON")


def run(arguments: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C."""
    require("view")
    _check(arguments)
    with contextlib.ExitStack() as stack:
        server, address = _serve(arguments, stack)
        opened = _open(arguments, stack)
        _show(server, opened, stack)
        _announce(arguments, address, opened)
        if arguments.open:
            webbrowser.open(address)
        with contextlib.suppress(KeyboardInterrupt):
            wait()
    return 0


def _check(arguments: argparse.Namespace) -> None:
    if (arguments.file is None) == (arguments.task is None):
        raise ArgumentError("give either --task NAME or a file: a model (.xml, .mjb) or a recording (.mcap)")
    if arguments.file is not None and not Path(arguments.file).is_file():
        raise NotFoundError(f"{arguments.file}: there is no such file")
    if arguments.port is not None and not 0 <= arguments.port <= 65535:
        raise ArgumentError(f"--port {arguments.port}: allowed are 0 (any free one) to 65535")
    if arguments.file is not None and (arguments.set or arguments.endpoint or keys_of(arguments)):
        raise ArgumentError("--set and --endpoint are for --task alone: nobody plans for a file")


@dataclass(frozen=True)
class _Opened:
    """What is shown, its title, the task's driver where there is a task, and what should be said of its daemon."""

    source: Source
    title: str
    driver: Driver | None = None
    note: str = ""


def _open(arguments: argparse.Namespace, stack: contextlib.ExitStack) -> _Opened:
    """Return what is shown; it is closed in the end."""
    if arguments.file is None:
        return _open_task(arguments, stack)
    if Path(arguments.file).suffix in _RECORDINGS:
        require("record")
        from sinew.record.playback import Playback

        opened = _Opened(Playback(arguments.file, paused=arguments.paused), f"recording {Path(arguments.file).name}")
    else:
        from sinew.loop.passive import Passive

        opened = _Opened(Passive(arguments.file, arguments.paused), f"model {Path(arguments.file).name}")
    stack.callback(opened.source.close)
    return opened


def _open_task(arguments: argparse.Namespace, stack: contextlib.ExitStack) -> _Opened:
    """Return the task's driver, at the daemon asked for, at this user's, or at a private one."""
    import sinew
    from sinew.loop.driver import Driver

    mode: Mode = "real time" if arguments.mode == "realtime" else "lockstep"
    settings = dict(_setting(text) for text in arguments.set)
    options: Any = {"mode": mode, "seed": arguments.seed, "settings": settings, "paused": arguments.paused}
    started: list[int] = []

    def start() -> Daemon:
        daemon = sinew.serve()
        started.append(daemon.pid)
        return daemon

    if keys_of(arguments) or arguments.endpoint is not None or _answers():
        driver = Driver(arguments.task, endpoint=arguments.endpoint, **options, **keys_of(arguments))
        note = driver.endpoint
    else:
        driver = Driver(arguments.task, start=start, **options)
        note = f"none ran; a private one was started, process {started[0]}, and ends with this"
    stack.callback(driver.close)
    return _Opened(driver, driver.task.text or arguments.task, driver, note)


def _answers() -> bool:
    """Return whether this user's daemon is there."""
    import sinew

    with contextlib.suppress(SinewError), sinew.Client(timeout=_GREETING):
        return True
    return False


def _setting(text: str) -> tuple[str, Any]:
    """Return name and value of NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ArgumentError(f"--set {text!r}: expected NAME=VALUE, such as adam_rate=0.02")
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return name, kind(value)
    return name, value


def _serve(arguments: argparse.Namespace, stack: contextlib.ExitStack) -> tuple[Server, str]:
    """Start the server, with nothing on its page yet; returns its address, too."""
    from sinew.view.guard import is_loopback, start

    local = is_loopback(arguments.host)
    token = "" if local else secrets.token_urlsafe(24)
    server = start(arguments.host, arguments.port, token)
    stack.callback(server.stop)
    name = _name(arguments.host)
    return server, f"http://{name}:{server.get_port()}/" + (f"?token={token}" if token else "")


def _show(server: Server, opened: _Opened, stack: contextlib.ExitStack) -> None:
    from sinew.view.page import Page

    stack.callback(Page(server, opened.source, opened.title, opened.driver).close)


def _name(host: str) -> str:
    """Return an address of this machine that another one can use."""
    import socket

    if host in ("0.0.0.0", "::", ""):
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host


def _announce(arguments: argparse.Namespace, address: str, opened: _Opened) -> None:
    """Say where the page is."""
    if arguments.json:
        print(json.dumps({"address": address, "shows": opened.title, "daemon": opened.note}), flush=True)
        return
    from sinew.view.guard import FIRST_PORT

    lines = [f"shows: {opened.title}"]
    if opened.note:
        lines.append(f"daemon: {opened.note}")
    if arguments.port is None and f":{FIRST_PORT}/" not in address:
        lines.append(f"port {FIRST_PORT} is taken, so the page has another one")
    print("\n".join([*lines, f"page: {address}", "Ctrl-C ends it"]), flush=True)
