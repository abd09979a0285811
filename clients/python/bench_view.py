#!/usr/bin/env python3
"""Measures the page's 3D view while a private daemon plans: what a frame costs, what is sent, what a browser draws.

  python clients/python/bench_view.py                         MyoHand with a ghost of 64 poses, in Debian's chromium
  python clients/python/bench_view.py --task arm_reach --json
  python clients/python/bench_view.py --no-browser            what this side costs, without anybody who looks

Needs the extra "view", Playwright and chromium for the browser, clients/setup.sh --models for MyoSuite's hand. Where
chromium draws in software, that takes the same cores as the daemon: the last lines say who used how much.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# The folder of this file has the sources of the package, without its module: the installed one is meant.
sys.path[:] = [x for x in sys.path if Path(x).resolve() != Path(__file__).resolve().parent]
import viser  # noqa: E402
from websockets.asyncio.server import ServerConnection  # noqa: E402

import sinew  # noqa: E402
from sinew.loop.driver import Driver  # noqa: E402
from sinew.view.scene import Scene  # noqa: E402

# Counts the frames in which a page draws anything.
COUNT = """
window.drawn = 0;
let dirty = false;
for (const name of ["drawElements", "drawArrays", "drawElementsInstanced", "drawArraysInstanced"]) {
  const draw = WebGL2RenderingContext.prototype[name];
  WebGL2RenderingContext.prototype[name] = function (...x) { dirty = true; return draw.apply(this, x); };
}
const tick = () => { if (dirty) { window.drawn++; dirty = false; } requestAnimationFrame(tick); };
requestAnimationFrame(tick);
"""
SWIFTSHADER = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]


@dataclass
class Counts:
    """What was seen in a while: times of `show` [s], of frames with a new plan and without; bytes; the browser."""

    plain: list[float] = field(default_factory=list)
    planned: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    bytes: int = 0
    seconds: float = 0.0
    cores: dict[str, float] = field(default_factory=dict)
    drawn: int = 0


@contextlib.contextmanager
def counted_bytes() -> Iterator[list[int]]:
    """Count what all websockets send meanwhile."""
    sent, send = [0], ServerConnection.send

    async def counting(self: ServerConnection, message: Any, *args: Any, **kwargs: Any) -> None:
        sent[0] += len(message)
        await send(self, message, *args, **kwargs)

    ServerConnection.send = counting  # type: ignore[method-assign]
    try:
        yield sent
    finally:
        ServerConnection.send = send  # type: ignore[method-assign]


def children(pid: int) -> Iterator[int]:
    """Return the processes that a process started, and theirs."""
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            yield int(child)
            yield from children(int(child))


def used() -> dict[str, float]:
    """Return the computing time [s] of this process, the daemon, and the parts of the browser, so far."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    times = {"this process": own.ru_utime + own.ru_stime}
    for pid in children(os.getpid()):
        with contextlib.suppress(OSError):
            command = Path(f"/proc/{pid}/cmdline").read_text()
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            kind = "browser"
            for mark, name in (
                ("--type=gpu", "browser: drawing"),
                ("--type=rend", "browser: page"),
                ("sinewd", "daemon"),
            ):
                if mark in command:
                    kind = name
            ticks = int(fields[11]) + int(fields[12])
            times[kind] = times.get(kind, 0.0) + ticks / os.sysconf("SC_CLK_TCK")
    return times


def run(scene: Scene, source: Driver, seconds: float, rate: float) -> Counts:
    """Show a source for a while, `rate` times a second at most."""
    counts, latest = Counts(), source.latest().predicted
    begin, before = time.monotonic(), used()
    due = begin
    while time.monotonic() < begin + seconds:
        frame = source.latest()
        start, cpu = time.monotonic(), time.thread_time()
        scene.show(frame)
        (counts.plain if frame.predicted is latest else counts.planned).append(time.thread_time() - cpu)
        counts.wall.append(time.monotonic() - start)
        latest = frame.predicted
        due = max(due + 1 / rate, time.monotonic())
        time.sleep(due - time.monotonic() if due > time.monotonic() else 0)
    counts.seconds = time.monotonic() - begin
    counts.cores = {name: (x - before.get(name, 0.0)) / counts.seconds for name, x in used().items()}
    return counts


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the figures by name."""
    with contextlib.ExitStack() as stack:
        source = Driver(arguments.task, start=sinew.serve, mode="lockstep", seed=1)
        stack.callback(source.close)
        server = viser.ViserServer(host="127.0.0.1", port=0, verbose=False)
        stack.callback(server.stop)
        start = time.monotonic()
        scene = Scene(server, source.model, source.task)
        made = time.monotonic() - start
        scene.poses = arguments.poses
        page = None if arguments.no_browser else stack.enter_context(opened(server, arguments.chromium))
        run(scene, source, arguments.warm, arguments.rate)
        drawn = 0 if page is None else page.evaluate("drawn")
        with counted_bytes() as sent:
            counts = run(scene, source, arguments.seconds, arguments.rate)
            counts.bytes = sent[0]
        counts.drawn = 0 if page is None else page.evaluate("drawn") - drawn
    return figures(counts, made, page is not None)


def figures(counts: Counts, made: float, seen: bool) -> dict[str, Any]:
    """Return what is printed."""
    frames = len(counts.wall)

    def milliseconds(times: list[float]) -> float | None:
        return round(1000 * statistics.median(times), 2) if times else None

    return {
        "making the scene [s]": round(made, 2),
        "frames a second, shown": round(frames / counts.seconds, 1),
        "frames a second, drawn by the browser": round(counts.drawn / counts.seconds, 1) if seen else None,
        "new plans a second": round(len(counts.planned) / counts.seconds, 1),
        "computing time of a frame with the plan of before [ms]": milliseconds(counts.plain),
        "computing time of a frame with a new plan [ms]": milliseconds(counts.planned),
        "time of a frame [ms]": milliseconds(counts.wall),
        "kB sent a frame": round(counts.bytes / frames / 1000, 1),
        "cores used": {name: round(x, 2) for name, x in counts.cores.items()},
        "cores": os.cpu_count(),
        "load of the machine": round(os.getloadavg()[0], 1),
    }


@contextlib.contextmanager
def opened(server: viser.ViserServer, chromium: str) -> Iterator[Any]:
    """Look at the page with a browser that has no window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=SWIFTSHADER)
        page = browser.new_page(viewport={"width": 800, "height": 500})
        page.add_init_script(COUNT)
        page.goto(f"http://127.0.0.1:{server.get_port()}")
        page.wait_for_function("drawn > 0", timeout=120_000)
        yield page
        browser.close()


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="hand_balls", help="of the daemon (hand_balls)")
    parser.add_argument("--poses", type=int, default=64, help="of the ghost (64)")
    parser.add_argument("--rate", type=float, default=30.0, help="frames a second at most (30)")
    parser.add_argument("--seconds", type=float, default=20.0, help="that are measured (20)")
    parser.add_argument("--warm", type=float, default=10.0, help="seconds before (10)")
    parser.add_argument("--no-browser", action="store_true", help="nobody looks")
    parser.add_argument("--chromium", default="/usr/bin/chromium", help="the browser's program")
    parser.add_argument("--json", action="store_true", help="one object, for machines")
    arguments = parser.parse_args()
    result = measure(arguments)
    if arguments.json:
        print(json.dumps(result))
        return 0
    for name, value in result.items():
        for part, x in value.items() if isinstance(value, dict) else ((None, value),):
            print(f"{name + (': ' + part if part else ''):60} {'' if x is None else x}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
