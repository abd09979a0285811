#!/usr/bin/env python3
"""sinewd on a device: two closed loops at once, then the loss of the device under them.

  check_daemon.py BIN LIBRARIES SOURCE BACKEND OUT [--lose LIBRARY]

Programs, folder of backends' libraries, folder with planner/tasks and physics/models, backend, file that lines of JSON
are added to. LIBRARY (built from lose_device.cu) is preloaded, and breaks the device by a kernel that traps. Without it
the backend is on the host: the emulator, or device_cuda.c on a CUDA runtime of its own (device/fake_runtime.c), which
break by themselves at the same sign. Status 1 when something is not as it should be.
"""

from __future__ import annotations

import argparse
import calendar
import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
import typing

SECONDS = 8.0  # that a body moves
LONGEST = 2000.0  # without a new plan, on a device that is lost [ms]
QUIET = 0.7  # without a plan that long, nothing goes on [s]
MANY = 4096  # candidates, more than a device needs to win


@dataclasses.dataclass(frozen=True)
class Places:
    """Where things are, and what makes plans."""

    binaries: pathlib.Path
    libraries: pathlib.Path
    source: pathlib.Path
    backend: str
    lose: str  # a library that is preloaded; "": none is needed

    @property
    def real(self) -> bool:
        """Whether it is a device, whose speed counts."""
        return bool(self.lose)


STARTED: list[subprocess.Popen[str]] = []  # what is ended where a check fails


class Daemon:
    """A sinewd in a folder of its own, whose device can be lost."""

    def __init__(self, places: Places, folder: pathlib.Path, *options: str) -> None:
        """Start it and wait until it answers."""
        self.places, self.folder, self.file = places, folder, folder / "lose"
        self.endpoint, self.log = f"ipc://{folder}/s", folder / "log"
        self.lost_at = 0.0
        for name in (self.file, pathlib.Path(f"{self.file}.told")):
            name.unlink(missing_ok=True)
        words = [
            f"{places.binaries}/sinewd", f"--endpoint={self.endpoint}", f"--backend-folder={places.libraries}",
            f"--tasks={places.source}/planner/tasks", f"--models={places.source}/physics/models",
            f"--cache={folder}/cache", *options,
        ]  # fmt: skip
        preload = ":".join(x for x in (os.environ.get("LD_PRELOAD"), places.lose) if x)
        environment = os.environ | {"LD_PRELOAD": preload, "SINEW_LOSE_DEVICE": str(self.file)}
        began = time.monotonic()
        with self.log.open("a") as log:
            self.process = subprocess.Popen(words, stderr=log, env=environment, text=True)
        STARTED.append(self.process)
        while self.ask("health") is None:
            if self.process.poll() is not None or time.monotonic() - began > 60:
                raise SystemExit(f"sinewd does not answer:\n{self.log.read_text()}")
            time.sleep(0.02)
        self.start_seconds = time.monotonic() - began

    def control(self, *words: str | pathlib.Path, text: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run sinewctl."""
        return subprocess.run(
            [self.places.binaries / "sinewctl", "--endpoint", self.endpoint, "--timeout", "30", *words],
            input=text, capture_output=True, text=True,
        )  # fmt: skip

    def ask(self, *words: str, text: str | None = None) -> typing.Any:
        """Send a request by sinewctl; None where it is refused."""
        done = self.control("--json", *words, text=text)
        return json.loads(done.stdout) if done.returncode in (0, 2) and done.stdout else None

    def open(self, task: str, *settings: str) -> dict[str, typing.Any]:
        """Open a session; its OpenReply."""
        opened = self.ask("open", task, *settings)
        assert opened is not None, f"{task} cannot be opened: {self.log.read_text()}"
        return typing.cast("dict[str, typing.Any]", opened)

    def plan(self, opened: dict[str, typing.Any], iterations: int = 3) -> dict[str, typing.Any]:
        """Ask for a plan of so many iterations from the state where a session begins."""
        request = {"state": opened["initial"], "iterations": iterations}
        made = self.ask("--deadline=30", "plan", str(opened["session"]), "-", text=json.dumps(request))
        assert made is not None and made["status"] == "OK", made and made["status"]
        return typing.cast("dict[str, typing.Any]", made)

    def expect(self, opened: dict[str, typing.Any], backend: str, *, lost: bool) -> None:
        """Ask for a plan, which must be made there."""
        made = self.plan(opened)
        found = made["backend"], made.get("device_lost", False)
        assert found == (backend, lost), f"a plan by {found}, expected was {(backend, lost)}"

    def break_device(self, *, wait: bool = False) -> None:
        """Let a kernel fail; wait until it has."""
        until = time.monotonic() + 60
        self.lost_at = time.time()
        self.file.touch()
        while wait and not self.told():
            assert time.monotonic() < until, "no kernel has failed"
            time.sleep(0.01)

    def lose(self, work: typing.Callable[[], object]) -> str:
        """Break the device, if it is not, under what `work` makes of it, until the daemon knows; what CUDA said."""
        self.break_device()
        until = time.monotonic() + 60
        while not self.is_lost():
            assert time.monotonic() < until, f"the device is not lost: {self.told()}"
            work()
        while self.places.real and not self.told() and time.monotonic() < until:
            time.sleep(0.01)
        return self.told()

    def told(self) -> str:
        """What CUDA said to the kernel that failed."""
        file = pathlib.Path(f"{self.file}.told")
        return file.read_text().strip() if file.exists() else ""

    def is_lost(self) -> bool:
        """Whether the log says that the device is lost."""
        return "event=device-lost" in self.log.read_text()

    def seen_lost(self) -> float:
        """When the log says that the device is lost [s since 1970]."""
        found = re.findall(r"time=(\S+)\.(\d+)Z level=error event=device-lost ", self.log.read_text())
        assert len(found) == 1, f"{len(found)} lines say that the device is lost"
        day, part = found[0]
        return calendar.timegm(time.strptime(day, "%Y-%m-%dT%H:%M:%S")) + float(f"0.{part}")

    def wait(self) -> int:
        """Its status, when it has ended by itself."""
        return self.process.wait(20)

    def end(self) -> None:
        """End it as an operator would."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(20)
        assert status == 0, f"sinewd ended with status {status}"
        print(f"sinewd ended in {time.monotonic() - began:.2f} s")


def plant(d: Daemon, seed: int, *settings: str) -> subprocess.Popen[str]:
    """Begin a closed loop of arm_reach in real time."""
    words = [f"{d.places.binaries}/sinew-plant", "--endpoint", d.endpoint, "--task=arm_reach", "--mode=realtime"]
    words += ["--xml", f"{d.places.source}/physics/models/arm_reach.xml", f"--seed={seed}", f"--seconds={SECONDS}"]
    words += [f"--set={s}" for s in settings]
    pipe = subprocess.PIPE
    STARTED.append(subprocess.Popen([*words, "--json", "--quiet"], stdout=pipe, stderr=pipe, text=True))
    return STARTED[-1]


def metrics(d: Daemon) -> dict[str, float]:
    """All counters, by name and labels as they stand there."""
    lines = [line for line in d.control("metrics").stdout.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def check_counters(page: dict[str, float], failovers: int) -> int:
    """Nothing was lost or refused; how many plans were sent."""
    wrong = [k for k, v in page.items() if v and k.startswith("sinew_replies_total") and 'code="OK"' not in k]
    wrong += [
        k for k, v in page.items()
        if v and re.match(r"sinew_(invalid|refused|replies_dropped|connections_refused|memory_drops|denied)", k)
    ]  # fmt: skip
    assert not wrong, {k: page[k] for k in wrong}
    assert page['sinew_plans_total{status="DIVERGED"}'] == 0
    assert page["sinew_failovers_total"] == failovers, page["sinew_failovers_total"]
    # A plan under way is neither.
    asked, sent = (page.get(f"sinew_{k}", 0) for k in
                   ('requests_total{request="plan"}', 'replies_total{request="plan",code="OK"}'))  # fmt: skip
    assert 0 <= asked - sent <= 3, f"{asked:g} plans were asked for, {sent:g} answered"
    return int(sent)


def sent_times(d: Daemon, folder: pathlib.Path) -> dict[int, list[float]]:
    """When the plans of each session were sent [s since 1970], from the flight recorder."""
    times: dict[int, list[float]] = {}
    assert d.ask("flight") is not None
    newest = max(folder.glob("*.mcap"), key=lambda p: p.stat().st_mtime)
    for line in d.control("--json", "flight", newest).stdout.splitlines():
        record = json.loads(line)
        if record["topic"] == "plans":
            times.setdefault(int(record["message"]["session"]), []).append(record["time"])
    return times


def gaps(times: list[float], lost: float, seen: float) -> dict[str, float | None]:
    """The time without a plan that the loss made, and what it is before and after [ms]; None: there were no plans."""
    pairs = list(itertools.pairwise(times))
    parts = {
        "before": [b - a for a, b in pairs if b < lost],
        "gap": [b - a for a, b in pairs if b >= lost and a <= seen + QUIET],
        "after": [b - a for a, b in pairs if a > seen + QUIET],
    }
    most = {name: round(1e3 * max(part), 2) if part else None for name, part in parts.items()}
    half = {f"{name}_p50": round(1e3 * statistics.median(part), 2) for name, part in parts.items() if part}
    return most | half


def wait_sessions(d: Daemon, count: int) -> list[dict[str, typing.Any]]:
    """The sessions, as soon as there are so many, each with a plan."""
    until = time.monotonic() + 60
    while True:
        found: list[dict[str, typing.Any]] = d.ask("stats")["sessions"]
        if len(found) >= count and all(s["plans"] > 0 for s in found):
            return found
        assert time.monotonic() < until, found
        time.sleep(0.02)


def check_loss(intervals: dict[str, dict[str, float | None]], reports: dict[str, dict[str, typing.Any]]) -> None:
    """Loops on a device have not suffered from its loss: all are solved, no step or long time was without a plan."""
    for name, report in reports.items():
        assert report["success"], f"{name} is not solved"
        assert report["steps_without_plan"] == 0, f"{name}: {report['steps_without_plan']} steps without a plan"
    for name, found in intervals.items():
        gap = found["gap"]
        assert gap is not None and gap < LONGEST, f"{name}: {gap} ms without a new plan"


def check_loops(places: Places, folder: pathlib.Path) -> dict[str, typing.Any]:
    """Closed loops by Adam and by sampling at once, on the device, then without it."""
    flights = folder / "flights"
    flights.mkdir(mode=0o700)
    d = Daemon(
        places, folder, f"--backend={places.backend}", f"--flight-folder={flights}", "--flight-seconds=60",
        "--flight-megabytes=64", "--flight-misses=0",
    )  # fmt: skip
    idle = d.open("arm_reach", "planner=adam")
    d.expect(idle, places.backend, lost=False)
    loops = {name: plant(d, seed, f"planner={name}") for seed, name in enumerate(("adam", "sampling"), 1)}
    before = wait_sessions(d, 3)
    opened = re.findall(r"event=opened session=(\d+) .*seed ([12]),", d.log.read_text())
    names = {int(session): list(loops)[int(seed) - 1] for session, seed in opened}
    time.sleep(SECONDS / 2 - 1)
    view = d.ask("stats")
    sent = check_counters(metrics(d), 0)
    assert {s["backend"] for s in before} == {places.backend}, before
    assert view["sessions_on_device"] == 3 and not view["device"]["lost"], view
    misses = view["misses"]
    said = d.lose(lambda: time.sleep(0.02))
    lost, seen = d.lost_at, d.seen_lost()
    reports = {}
    for name, loop in loops.items():
        if name == "adam":  # sessions are looked at while they plan
            after = d.ask("stats")["sessions"]
            assert {s["backend"] for s in after} == {"cpu"} and len(after) == 3, after
            late = d.open("arm_reach", "planner=adam")
            d.expect(late, "cpu", lost=True)
            d.expect(idle, "cpu", lost=True)
            assert d.control("health").returncode == 2
        out, err = loop.communicate(timeout=SECONDS + 60)
        assert loop.returncode == 0, f"{name}: {err}"
        reports[name] = json.loads(out)
        assert not reports[name]["diverged"], out
    intervals = {names[i]: gaps(t, lost, seen) for i, t in sent_times(d, flights).items() if i in names}
    assert all(None not in x.values() for x in intervals.values()), intervals
    print(f"lost: {said}; the log says so after {1e3 * (seen - lost):.1f} ms; {json.dumps(intervals)}")
    if places.real:
        check_loss(intervals, reports)
    total = check_counters(metrics(d), 1)
    view = d.ask("stats")
    assert view["device"]["lost"] and view["sessions_on_cpu"] == 2, view
    d.end()
    return {
        "backend": places.backend, "text": view["device"]["text"], "said": said, "reason": view["device"]["reason"],
        "start_seconds": round(d.start_seconds, 2), "plans_before": sent, "plans": total, "misses_before": misses,
        "misses": view["misses"], "seen_after_ms": round(1e3 * (seen - lost), 2),
        "intervals_ms": intervals,
        "solved": {name: r["success"] for name, r in reports.items()},
        "steps_without_plan": {name: r["steps_without_plan"] for name, r in reports.items()},
    }  # fmt: skip


def check_exit(places: Places, folder: pathlib.Path) -> dict[str, typing.Any]:
    """A daemon that ends with its device, and the one after it."""
    options = f"--backend={places.backend}", "--device-loss=exit"
    d = Daemon(places, folder, *options)
    opened = d.open("arm_reach", "planner=adam")
    d.expect(opened, places.backend, lost=False)
    request = json.dumps({"state": opened["initial"], "iterations": 3})
    said = d.lose(lambda: d.ask("--timeout=3", "plan", str(opened["session"]), "-", text=request))
    status = d.wait()
    assert status == 1 and "device_loss is 'exit'" in d.log.read_text(), (status, d.log.read_text())
    ended = time.time()
    d = Daemon(places, folder, *options)
    d.expect(d.open("arm_reach", "planner=adam"), places.backend, lost=False)
    assert d.control("health").returncode == 0
    again = time.time() - ended
    d.end()
    return {"said": said, "status": status, "plans_again_seconds": round(again, 2)}


def check_automatic(places: Places, folder: pathlib.Path) -> dict[str, typing.Any]:
    """What measures models at their opening, before and after the loss; the emulator is there under the name cuda."""
    if places.backend != "cuda":
        (folder / "lib").mkdir()
        (folder / "lib/libsinew_cuda.so").symlink_to(places.libraries / f"libsinew_{places.backend}.so")
        places = dataclasses.replace(places, libraries=folder / "lib")
    d = Daemon(places, folder, "--backend=auto")
    candidates = f"candidates={MANY if places.real else 64}"
    began = time.monotonic()
    many = d.open("arm_reach", "planner=sampling", candidates)
    seconds = time.monotonic() - began
    few = d.open("arm_reach", "planner=adam")
    where = {"many": d.plan(many)["backend"], "few": d.plan(few)["backend"]}  # by speeds that say nothing on the host
    assert not places.real or where == {"many": places.backend, "few": "cpu"}, where
    text = re.findall(r"event=device-measured text=\"(.*)\"", d.log.read_text())
    d.break_device(wait=places.real)
    # Nobody but who measures has called the device meanwhile.
    d.expect(d.open("cart_pole", "planner=sampling", candidates), "cpu", lost=False)
    assert "cannot be measured, it plans on the CPU" in d.log.read_text()
    said = d.lose(lambda: time.sleep(0.02))
    assert d.control("health").returncode == 2
    for name, opened in (("many", many), ("few", few)):
        d.expect(opened, "cpu", lost=where[name] != "cpu")
    d.end()
    return {"measured": text, "opened_seconds": round(seconds, 2), "where": where, "said": said}


def run(name: str, check: typing.Callable[..., dict[str, typing.Any]], places: Places, out: pathlib.Path) -> bool:
    """Run a check and add its line; whether it holds. What it started ends with it."""
    result: dict[str, typing.Any] = {"check": "daemon", "run": name, "holds": True}
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sinew-daemon.") as folder:
        try:
            result |= check(places, pathlib.Path(folder))
        except (AssertionError, LookupError, OSError, SystemExit, TypeError, ValueError, subprocess.SubprocessError):
            result |= {"holds": False, "why": traceback.format_exc(limit=-3)}
            with contextlib.suppress(OSError):
                print((pathlib.Path(folder) / "log").read_text(), file=sys.stderr)
        finally:
            for process in STARTED:
                process.kill()
                process.wait()
            STARTED.clear()
    line = json.dumps(result | {"seconds": round(time.monotonic() - began, 1)})
    print(line)
    with out.open("a") as f:
        f.write(line + "\n")
    return bool(result["holds"])


CHECKS = {"loops": check_loops, "exit": check_exit, "auto": check_automatic}


def main() -> int:
    """Run all checks; each adds its line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("binaries", "libraries", "source"):
        parser.add_argument(name, type=lambda x: pathlib.Path(x).resolve())
    parser.add_argument("backend")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--lose", default="", metavar="LIBRARY")
    a = parser.parse_args()
    places = Places(a.binaries, a.libraries, a.source, a.backend, a.lose and str(pathlib.Path(a.lose).resolve()))
    held = [run(name, check, places, a.out) for name, check in CHECKS.items()]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
