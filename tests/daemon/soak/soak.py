#!/usr/bin/env python3
"""A soak of sinewd: mixed clients for hours; whether memory, files and threads stay as they are and no plan is lost.

  tests/daemon/soak/soak.py BIN SOURCE --hours 2 --state FOLDER     programs of the build, folder of the sources

Clients want something, do harm, are slow, or are killed (soak_clients.c). Every so many seconds all of them rest, and
sinewd is looked at. FOLDER gets samples.csv, report.json, soak.svg (by gnuplot), the log and the sessions that sinewd
keeps; run again on the same folder it goes on, as one more piece of the soak. Status 1 when something does not hold.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from typing import Any

import judge

FIELDS = ["piece", "seconds", "resident", "proportional", "anonymous", "heap", "descriptors", "threads", "sessions",
          "connections", "planners", "processor", "planned", "lost", "wrong"]  # fmt: skip
PROGRAMS = ("sinewd", "sinewctl", "sinew-import", "soak_clients")
SETTLE = 3.5  # seconds after which sinewd has freed what killed clients left; orphan_seconds is 2
AT_REST = {"sessions": 3, "connections": 8}  # those of clients that stay connected, and sinewctl's
PATIENCE = 20.0  # seconds that descriptors and threads may take to be what they were


def parse() -> argparse.Namespace:
    """Read the command line."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("binaries", type=pathlib.Path)
    p.add_argument("source", type=pathlib.Path)
    p.add_argument("--hours", type=float, default=2.0, help="how long this piece lasts")
    p.add_argument("--every", type=float, default=30.0, help="seconds between two samples")
    p.add_argument("--state", type=pathlib.Path, help="folder of the soak; without one it leaves nothing")
    p.add_argument("--seed", type=int, help="of the clients; a soak that goes on keeps its own")
    p.add_argument("--share", type=float, default=0.2, help="of one processor, for clients and sinewd together")
    p.add_argument("--growth", type=float, default=0.0, help="MiB that a short run may grow by; 0: not judged")
    p.add_argument("--no-memory", action="store_true", help="do not judge memory: a sanitizer has its own")
    return p.parse_args()


def free_port() -> int:
    """Find a port of the loopback that was free a moment ago."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


class Daemon:
    """A sinewd with all that it can have: sessions that are kept, telemetry, records, metrics, the flight recorder."""

    def __init__(self, options: argparse.Namespace, folder: pathlib.Path) -> None:
        # The path of a socket is short.
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="sinew-soak-"))
        self.endpoint, self.tcp = f"ipc://{self.work}/s", f"tcp://127.0.0.1:{free_port()}"
        self.models = self.work / "models"
        self.models.mkdir()
        self.control = [options.binaries / "sinewctl", "--endpoint", self.endpoint, "--json"]
        source = options.source
        self.process = subprocess.Popen(
            [options.binaries / "sinewd", "--backend=cpu", f"--endpoint={self.endpoint}", f"--tcp={self.tcp}",
             f"--tasks={source}/planner/tasks", f"--models={source}/physics/models", f"--models={self.models}",
             f"--cache={self.work}/cache", f"--state={folder}/sessions", f"--flight-folder={self.work}/flight",
             f"--records={self.endpoint}.records", f"--telemetry={self.endpoint}.telemetry",
             "--flight-megabytes=1", "--orphan-seconds=2", "--message-bytes=200000", "--log=warning",
             f"--log-file={folder}/sinewd.log", f"--parent={os.getpid()}"], stderr=subprocess.PIPE, text=True
        )  # fmt: skip

    def await_ready(self) -> None:
        """Wait for its first answer."""
        for _ in range(1200):
            if self.process.poll() is not None:
                raise SystemExit(f"sinewd did not start: {self.process.communicate()[1]}")
            if self.ask("health"):
                return
            time.sleep(0.1)
        raise SystemExit("sinewd does not answer")

    def ask(self, word: str) -> dict[str, Any] | None:
        """Send a request by sinewctl; None where there is no answer."""
        done = subprocess.run([*self.control, word], capture_output=True, text=True)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def metrics(self) -> dict[str, float]:
        """What sinewd counts, without what has labels but for its connections."""
        text = (self.ask("metrics") or {}).get("text", "")
        lines = [line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#")]
        return {name: float(value) for name, value in lines if "{" not in name or "sinew_connections{" in name}

    def count(self, what: str) -> int:
        """Entries of a folder of /proc: fd, task."""
        return len(list(pathlib.Path(f"/proc/{self.process.pid}/{what}").iterdir()))

    def look(self) -> dict[str, float]:
        """Memory [KiB], files, threads, and what it says of itself."""
        memory = {}
        for line in pathlib.Path(f"/proc/{self.process.pid}/smaps_rollup").read_text().splitlines()[1:]:
            memory[line.split(":")[0]] = int(line.split()[1])
        self.metrics()  # has the heap read; a page is given again for 0.1 s
        time.sleep(0.3)
        said = self.metrics()
        return {
            "resident": memory["Rss"], "proportional": memory["Pss"], "anonymous": memory["Anonymous"],
            "descriptors": self.count("fd"), "threads": self.count("task"), "sessions": said.get("sinew_sessions", -1),
            "connections": sum(v for k, v in said.items() if k.startswith("sinew_connections{")),
            "heap": said.get("sinew_memory_heap_bytes", 0) / 1024,
            "planners": said.get("sinew_memory_planners_bytes", -1) / 1024,
        }  # fmt: skip

    def stop(self) -> str:
        """End it as an operator would; what was wrong with that, a sanitizer's words too."""
        self.process.send_signal(signal.SIGTERM)
        try:
            words = self.process.communicate(timeout=120)[1]
        except subprocess.TimeoutExpired:
            self.process.kill()
            words = self.process.communicate()[1] + "sinewd did not end within 120 s"
        shutil.rmtree(self.work, ignore_errors=True)
        return "" if self.process.returncode == 0 else f"sinewd ended with status {self.process.returncode}: {words}"


class Clients:
    """The processes of soak_clients."""

    def __init__(self, options: argparse.Namespace, daemon: Daemon, seed: int) -> None:
        self.process = subprocess.Popen(
            [options.binaries / "soak_clients", daemon.endpoint, daemon.tcp, daemon.models, str(seed),
             str(options.share), str(daemon.process.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )  # fmt: skip

    def say(self, word: str) -> None:
        """Tell them to rest, to go on, to end."""
        assert self.process.stdin
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(word + "\n")
            self.process.stdin.flush()

    def counts(self) -> dict[str, Any]:
        """What they have counted, once they rest or have ended."""
        assert self.process.stdout
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"failed": f"the clients ended, status {self.process.wait()}"}


class Soak:
    """A piece of a soak, in a folder that has those before it."""

    def __init__(self, options: argparse.Namespace, folder: pathlib.Path) -> None:
        self.options, self.folder = options, folder
        known = folder / "soak.json"
        record = json.loads(known.read_text()) if known.exists() else {}
        self.seed = record.get("seed", options.seed if options.seed is not None else random.randrange(1 << 32))
        self.piece = record.get("pieces", 0) + 1
        self.failures: list[str] = record.get("failures", [])
        self.counts: list[dict[str, Any]] = [*record.get("counts", []), {}]
        self.table = folder / "samples.csv"
        self.samples: list[dict[str, float]] = []
        if self.table.exists():
            self.samples = [{k: float(v) for k, v in row.items()} for row in csv.DictReader(self.table.open())]
        else:
            self.table.write_text(",".join(FIELDS) + "\n")
        print(
            f"seed {self.seed}, piece {self.piece}, {options.hours:g} h, {options.share:g} of a processor", flush=True
        )

    def save(self) -> None:
        """Keep what the next piece needs, also where this one is killed."""
        record = {"seed": self.seed, "pieces": self.piece, "failures": self.failures, "counts": self.counts}
        fresh = self.folder / "soak.json.new"
        fresh.write_text(json.dumps(record, indent=1) + "\n")
        fresh.rename(self.folder / "soak.json")

    def sample(self, daemon: Daemon, clients: Clients, began: float) -> bool:
        """Look at sinewd while all clients rest. False: it cannot go on."""
        clients.say("rest")
        counts = clients.counts()
        if "failed" in counts:
            self.failures.append(counts["failed"])
            return False
        self.counts[-1] = counts
        time.sleep(SETTLE)
        wanted = next((s for s in self.samples if s["piece"] == self.piece), AT_REST)
        until = time.monotonic() + PATIENCE
        while True:
            now = daemon.look()
            if time.monotonic() > until or all(now[k] == wanted.get(k, now[k]) for k in judge.CONSTANT):
                break
            time.sleep(0.5)
        now |= {k: counts[k] for k in ("processor", "planned", "lost", "wrong")}
        now |= {"piece": self.piece, "seconds": round(time.monotonic() - began, 1)}
        self.samples.append(now)
        with self.table.open("a") as f:
            f.write(",".join(f"{now[k]:g}" if isinstance(now[k], float) else str(now[k]) for k in FIELDS) + "\n")
        clients.say("go")
        return True

    def run(self) -> None:
        """Carry out the piece."""
        self.save()
        daemon = Daemon(self.options, self.folder)
        # At once: a session that is restored is closed when no client asks for it.
        clients = Clients(self.options, daemon, self.seed + self.piece)
        daemon.await_ready()
        began = time.monotonic()
        try:
            while time.monotonic() - began < 3600 * self.options.hours:
                time.sleep(self.options.every)
                if daemon.process.poll() is not None or not self.sample(daemon, clients, began):
                    break
                self.save()
        except KeyboardInterrupt:
            print("ended early", flush=True)
        clients.say("end")
        counts = clients.counts()
        if "failed" in counts:
            self.failures.append(counts["failed"])
        else:
            self.counts[-1] = counts
        clients.process.wait()
        words = daemon.stop()
        if words:
            self.failures.append(words)
        self.save()

    def draw(self) -> None:
        """Draw memory, files and threads over time, pieces one behind the other."""
        if not shutil.which("gnuplot"):
            print("no picture: gnuplot is missing")
            return
        lines, before = [], 0.0
        for piece in sorted({s["piece"] for s in self.samples}):
            rows = [s for s in self.samples if s["piece"] == piece]
            lines += [f"{(before + s['seconds']) / 3600} {s['resident'] / 1024} {s['anonymous'] / 1024} "
                      f"{s['descriptors']} {s['threads']}" for s in rows] + [""]  # fmt: skip
            before += rows[-1]["seconds"]
        data = self.folder / "soak.dat"
        data.write_text("\n".join(lines) + "\n")
        script = pathlib.Path(__file__).with_name("soak.gp")
        subprocess.run(["gnuplot", "-c", script, data, self.folder / "soak.svg"], check=True)
        data.unlink()

    def report(self) -> bool:
        """Print and keep what came of all pieces; whether it holds."""
        options = self.options
        verdict = judge.judge(self.samples, self.counts, self.failures, not options.no_memory, options.growth)
        (self.folder / "report.json").write_text(json.dumps(verdict, indent=1) + "\n")
        for name, line in verdict["lines"].items():
            print(f"{name}: {line}")
        return bool(verdict["holds"])


def main() -> int:
    """Run a piece and judge the whole."""
    options = parse()
    with contextlib.ExitStack() as stack:
        folder = options.state or pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sinew-soak-")))
        folder.mkdir(parents=True, exist_ok=True)
        folder = folder.resolve()
        # Copies: a build in the same tree does not change what runs for hours.
        copies = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sinew-soak-programs-")))
        shutil.copytree(options.binaries.parent / "share", copies / "share")
        (copies / "bin").mkdir()
        for name in PROGRAMS:
            shutil.copy2(options.binaries / name, copies / "bin")
        options.binaries = copies / "bin"
        soak = Soak(options, folder)
        soak.run()
        if options.state and soak.samples:
            soak.draw()
        return 0 if soak.report() else 1


if __name__ == "__main__":
    sys.exit(main())
