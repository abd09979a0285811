#!/usr/bin/env python3
"""The flight recorder of a sinewd: files on request, after missed deadlines and after a crash, as sinewctl reads them.

  tests/daemon/test_flight.py BIN SOURCE     programs of the build, folder of the sources; status 1 on failure
"""

from __future__ import annotations

import atexit
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

BINARIES, SOURCE = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
STATE = json.dumps({"time": 0.25, "qpos": [0.35, 1.3], "qvel": [0, 0]})


class Daemon:
    """A sinewd with a flight recorder, unless it is told otherwise."""

    def __init__(self, folder: pathlib.Path, *options: str) -> None:
        self.folder = folder
        self.control = [BINARIES / "sinewctl", "--endpoint", f"ipc://{folder}/s", "--json"]
        self.process = subprocess.Popen(
            [BINARIES / "sinewd", "--backend=cpu", f"--endpoint=ipc://{folder}/s", f"--tasks={SOURCE}/planner/tasks",
             f"--models={SOURCE}/physics/models", f"--cache={folder}/cache", f"--log-file={folder}/log", *options]
        )  # fmt: skip
        atexit.register(self.process.kill)  # where a check fails
        for _ in range(600):
            if self.ask("health")[0] == 0:
                return
            time.sleep(0.05)
        raise SystemExit("sinewd does not answer")

    def ask(self, *words: str, text: str | None = None) -> tuple[int, dict]:
        """Send a request by sinewctl; its status, and what it printed."""
        done = subprocess.run([*self.control, *words], input=text, capture_output=True, text=True)
        return done.returncode, json.loads(done.stdout)

    def plan(self, session: str, deadline: str) -> None:
        """Ask for a plan and wait for it."""
        assert self.ask("--deadline", deadline, "plan", session, text=STATE)[0] == 0

    def files(self, reason: str) -> list[pathlib.Path]:
        """Files that were written for that reason."""
        return sorted((self.folder / "flight").glob(f"flight-*-{reason}.mcap"))

    def stop(self) -> None:
        """End it as an operator would."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(20) == 0


def read(path: pathlib.Path) -> list[dict]:
    """What sinewctl says of a file, to its end."""
    done = subprocess.run([BINARIES / "sinewctl", "--json", "flight", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    return [json.loads(line) for line in done.stdout.splitlines()]


def check_request(folder: pathlib.Path) -> None:
    """A file has what was asked, bit for bit, and the stages of what was answered; nothing that came too long ago."""
    d = Daemon(folder, f"--flight-folder={folder}/flight", "--flight-seconds=6")
    session = str(d.ask("open", "arm_reach", "lease=100")[1]["session"])
    time.sleep(6.5)
    began = time.time()
    for _ in range(3):
        d.plan(session, "0.05")
    status, reply = d.ask("flight")
    assert status == 0 and d.files("request") == [pathlib.Path(reply["path"])], reply
    got = read(d.files("request")[0])
    kinds = [next(iter(m["message"].keys() - {"id"})) if m["topic"] == "requests" else "sent" for m in got]
    kinds = [k for k in kinds if k not in ("hello", "health")]
    assert kinds == ["plan", "sent"] * 3 + ["flight"], kinds
    plans = [m["message"]["plan"] for m in got if "plan" in m["message"]]
    assert all(p["state"]["qpos"] == [0.35, 1.3] and p["deadline"] == 0.05 for p in plans)
    traces = [m["message"] for m in got if m["topic"] == "plans"]
    assert [t["sequence"] for t in traces] == [1, 2, 3] and {t["session"] for t in traces} == {int(session)}
    assert all(began - 0.01 < m["time"] < time.time() for m in got if m["topic"] == "plans")
    text = subprocess.run([BINARIES / "sinewctl", "flight", reply["path"]], capture_output=True, text=True).stdout
    assert f"session {session}, state at 0.25 s, within 0.05 s" in text and text.endswith(f"{len(got)} messages\n"), text
    check_damage(d.files("request")[0], folder / "damaged")
    metrics = d.ask("metrics")[1]["text"]
    assert 'sinew_flight_files_total{outcome="written"} 1\n' in metrics, metrics
    d.stop()


def check_damage(path: pathlib.Path, damaged: pathlib.Path) -> None:
    """A file that is cut off or has other bytes ends the reader with words, not by a signal."""
    whole = path.read_bytes()
    random.seed(1)
    for i in range(60):
        bytes = bytearray(whole[: random.randrange(len(whole))] if i % 2 else whole)
        for _ in range(random.choice((0, 1, 30)) if i % 2 else 30):
            if bytes:
                bytes[random.randrange(len(bytes))] = random.randrange(256)
        damaged.write_bytes(bytes)
        done = subprocess.run([BINARIES / "sinewctl", "flight", damaged], capture_output=True, text=True, errors="replace")
        assert done.returncode in (0, 1), done
        assert done.returncode == 0 or "damaged: " in done.stderr, done
    damaged.write_bytes(whole[: len(whole) // 2])
    assert "it ends too early" in subprocess.run(
        [BINARIES / "sinewctl", "flight", damaged], capture_output=True, text=True
    ).stderr  # fmt: skip


def check_misses(folder: pathlib.Path) -> None:
    """So many late plans in a second are written, once a minute."""
    d = Daemon(folder, f"--flight-folder={folder}/flight", "--flight-misses=3", "--slice=0.05")
    sessions = [str(d.ask("open", "arm_reach", "lease=100")[1]["session"]) for _ in range(4)]
    d.plan(sessions[0], "30")
    assert not d.files("misses")
    # Several at once: where each process takes long, they are late in the same second all the same.
    late = [
        subprocess.Popen(
            ["bash", "-c", 'for i in 1 2 3 4 5 6; do "$@" <<<"$STATE" >/dev/null; done', "-", *d.control,
             "--deadline", "0.00001", "plan", session], env=os.environ | {"STATE": STATE}
        )
        for session in sessions
    ]  # fmt: skip
    assert [process.wait(120) for process in late] == [0] * len(late)
    for _ in range(600):
        if d.files("misses"):
            break
        time.sleep(0.05)
    assert len(d.files("misses")) == 1
    assert sum(m["topic"] == "plans" and not m["message"]["deadline_met"] for m in read(d.files("misses")[0])) >= 3
    d.stop()


def check_crash(folder: pathlib.Path) -> None:
    """A crash leaves what came last; the process ends by its signal all the same."""
    d = Daemon(folder, f"--flight-folder={folder}/flight")
    session = str(d.ask("open", "arm_reach", "lease=100")[1]["session"])
    d.plan(session, "0.05")
    assert d.ask("health")[0] == 0  # whatever was to be noted of the plan has been
    d.process.send_signal(signal.SIGSEGV)
    assert d.process.wait(20) == -signal.SIGSEGV
    got = read(d.files("crash")[0])
    assert [m["message"]["plan"]["session"] for m in got if "plan" in m["message"]] == [int(session)]
    assert [m["message"]["sequence"] for m in got if m["topic"] == "plans"] == [1]


def check_none(folder: pathlib.Path) -> None:
    """Without a folder there is no recorder."""
    d = Daemon(folder)
    status, reply = d.ask("flight")
    assert status == 1 and "flight_folder is empty" in reply["error"], reply
    d.stop()


def main() -> None:
    """Run all checks, each with a folder of its own."""
    for check in (check_request, check_misses, check_crash, check_none):
        with tempfile.TemporaryDirectory(prefix="sinew-flight.") as name:
            check(pathlib.Path(name))


if __name__ == "__main__":
    main()
