#!/usr/bin/env python3
"""A configuration that is read again while sinewd runs: all of it counts, or none of it, and a check without a start.

  tests/daemon/test_reload.py BIN SOURCE     programs of the build, folder of the sources; status 1 on failure
"""

from __future__ import annotations

import atexit
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

BINARIES, SOURCE = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
GOOD = "log_rate: 1000\nidle_seconds: 20\n"
BAD = [
    ("log_rate: fast\n", "log_rate is 'fast'"),
    ("log_rate: [1\n", "a sequence is allowed only for models and tasks"),
    ("no_such_setting: 1\n", "unknown setting 'no_such_setting'"),
    ("tcp: tcp://0.0.0.0:7440\n", "needs keys"),
    ("metrics: http://0.0.0.0:9464\n", "allowed are http://127.0.0.1:PORT"),
    ("curve_key: /nowhere\n", "allow is not set"),
    ("curve_key: /nowhere\nallow: /nowhere\n", "curve_key: "),
    ("telemetry: here\n", "telemetry: 'here' is no address"),
    ("records: tcp://127.0.0.1:0\n", "records: tcp://127.0.0.1:0: a tcp address needs a port"),
    ("users: root\n", "users is 'root'"),
]
# Of settings that the daemon of these checks has from its command line.
MISSING = [
    ("--importer=/nowhere", "importer: the program /nowhere cannot be run"),
    ("--state=/dev/null/kept", "state: cannot make or write /dev/null/kept: Not a directory"),
    ("--state=NOWHERE", "/nowhere: No such file or directory"),
    ("--flight-folder=/dev/null", "flight_folder: cannot make or write /dev/null: Not a directory"),
    ("--planner-processors=1023", "planner_processors is '1023': this process can have none of them"),
    ("--planner-processors=first", "planner_processors is 'first'"),
    ("--backend=abacus", "backend is 'abacus', which cannot be opened: there is no backend 'abacus'"),
    ("--backend-folder=/nowhere --backend=cuda", "backend is 'cuda', which cannot be opened: backend 'cuda': its library"),
    ("--cache=/dev/null/cache", "cache: cannot make or write /dev/null/cache: Not a directory"),
    ("--log-file=/nowhere/log", "log_file: /nowhere/log: No such file or directory"),
    ("--log-file=/", "log_file: /: Is a directory"),
    ("--endpoint=ipc:///nowhere/s", "endpoint: /nowhere/s: No such file or directory"),
    ("--endpoint=here", "endpoint: 'here' is no address"),
    ("--config=/", "'/' is a folder; a YAML file of settings is expected"),
    ("--config=", "'': No such file or directory"),
]


class Daemon:
    """A sinewd with a file of settings, and a supervisor that hears what it says."""

    def __init__(self, folder: pathlib.Path, *options: str) -> None:
        self.folder, self.log = folder, folder / "log"
        self.supervisor = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.supervisor.bind(str(folder / "notify"))
        self.supervisor.settimeout(60)
        self.process = subprocess.Popen(
            [BINARIES / "sinewd", "--backend=cpu", f"--endpoint=ipc://{folder}/s", f"--tasks={SOURCE}/planner/tasks",
             f"--models={SOURCE}/physics/models", f"--cache={folder}/cache", f"--log-file={self.log}", *options],
            env={**os.environ, "NOTIFY_SOCKET": str(folder / "notify")}, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        atexit.register(self.process.kill)  # where a check fails
        assert self.hear() == "READY=1\nSTATUS=ready"

    def hear(self) -> str:
        """The next word to the supervisor."""
        return self.supervisor.recv(4096).decode()

    def reload(self) -> str:
        """Send SIGHUP; what the supervisor hears when it is done."""
        self.process.send_signal(signal.SIGHUP)
        while not (said := self.hear()).startswith("RELOADING=1\nMONOTONIC_USEC="):
            assert said.startswith("STATUS="), said
        done = self.hear()
        assert done.startswith("READY=1\n"), done
        return done

    def ask(self, *words: str) -> dict:
        """Send a request by sinewctl, which must be answered."""
        done = subprocess.run(
            [BINARIES / "sinewctl", "--endpoint", f"ipc://{self.folder}/s", "--json", *words], capture_output=True
        )
        assert done.returncode == 0, done.stdout
        return json.loads(done.stdout)

    def version(self) -> tuple[int, int]:
        """Version of the configuration, and reloads that failed."""
        time.sleep(0.15)
        text = self.ask("metrics")["text"]
        names = ("sinew_configuration_version", "sinew_reload_failures_total")
        return tuple(int(re.search(rf"^{name} (\d+)$", text, re.M)[1]) for name in names)

    def stop(self) -> None:
        """End it as a supervisor would."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(20) == 0


def check_file(file: pathlib.Path, *options: str) -> subprocess.CompletedProcess:
    """Let sinewd check a file without a start."""
    return subprocess.run([BINARIES / "sinewd", f"--config={file}", "--check", *options], capture_output=True, text=True)


def check_reload(folder: pathlib.Path) -> None:
    """What may change does at once; what may not is named; a mistake changes nothing, wherever it stands."""
    file = folder / "sinewd.yaml"
    file.write_text(GOOD)
    d = Daemon(folder, f"--config={file}")
    session = d.ask("open", "arm_reach", "lease=100")["session"]
    assert check_file(file).returncode == 0
    assert d.version() == (1, 0)
    assert "event=hello" not in d.log.read_text()
    file.write_text(GOOD + "log: debug\ntelemetry_period: 0.5\nthreads: 1\nsessions: 3\n")
    assert d.reload() == "READY=1\nSTATUS=reloaded"
    assert d.version() == (2, 0)
    text = d.log.read_text()
    assert re.search(r'event=reloaded text="version 2, settings telemetry_period, log"', text), text
    assert re.search(r'event=restart-needed text="changed, but not in force: threads, sessions"', text), text
    assert "event=hello" in text, "the level of the log has changed"
    for i, (line, words) in enumerate(BAD):
        file.write_text(GOOD + "log: error\n" + line)
        done = check_file(file)
        assert done.returncode == 1 and words in done.stderr, (line, done.stderr)
        assert d.reload() == "READY=1\nSTATUS=reload failed, nothing has changed"
        assert d.version() == (2, i + 1)
        failed = [line for line in d.log.read_text().splitlines() if "event=reload-failed" in line]
        assert len(failed) == i + 1 and words in failed[-1], failed
    text = d.log.read_text()
    d.ask("health")
    assert d.log.read_text().count("event=hello") > text.count("event=hello"), "the level is what it was"
    file.unlink()
    assert d.reload() == "READY=1\nSTATUS=reload failed, nothing has changed"
    file.write_text(GOOD)
    assert d.reload() == "READY=1\nSTATUS=reloaded"
    assert d.ask("stats", str(session))["sessions"], "sessions go on"
    d.stop()


def check_missing(folder: pathlib.Path) -> None:
    """What a start would not find is found before it, and nothing is made meanwhile."""
    file = folder / "sinewd.yaml"
    file.write_text(GOOD)
    below = f"{folder}/a/b"
    good = check_file(file, f"--state={below}/kept", f"--cache={below}/cache", f"--flight-folder={below}/flight")
    assert good.returncode == 0, good.stderr
    assert not (folder / "a").exists()
    (folder / "nowhere").symlink_to(folder / "nothing")
    for options, words in MISSING:
        done = check_file(file, *options.replace("NOWHERE", f"{folder}/nowhere").split())
        assert done.returncode == 1 and words in done.stderr, (options, done.stderr)
        if "--endpoint=here" not in options and "--config" not in options:
            done = check_file(file, "--check=configuration", *options.replace("NOWHERE", f"{folder}/nowhere").split())
            assert done.returncode == 0, (options, done.stderr)
    done = check_file(file, "--check=everything")
    assert done.returncode and "allowed is --check or --check=configuration" in done.stderr, done.stderr
    done = subprocess.run(
        ["bash", "-c", f"ulimit -n 64; '{BINARIES}/sinewd' --config='{file}' --check"], capture_output=True, text=True
    )
    assert done.returncode == 1 and "only 64 files may be open" in done.stderr, done.stderr
    for setting in ("state", "flight-folder") if os.geteuid() == 0 else ():
        strange = folder / setting
        strange.mkdir(0o755)
        os.chown(strange, 54321, 54321)
        done = check_file(file, f"--{setting}={strange}")
        assert done.returncode == 1 and "others may write into" in done.stderr, done.stderr


def check_runtime_folder(folder: pathlib.Path) -> None:
    """The folder of the user's sockets is looked at by a check, and made by a start alone."""
    runtime = folder / "sinew"
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(folder)}
    command = [BINARIES / "sinewd", f"--cache={folder}/cache", "--check"]

    def words() -> str:
        return subprocess.run(command, env=environment, capture_output=True, text=True).stderr

    assert words() == "" and not runtime.exists()
    runtime.mkdir(0o755)
    assert "is open to other users (mode 755)" in words()
    runtime.rmdir()
    runtime.symlink_to("/tmp")
    assert "is not a folder that belongs to user" in words()
    runtime.unlink()
    environment["XDG_RUNTIME_DIR"] = f"{folder}/nowhere"
    assert "nowhere/sinew: No such file or directory" in words()


def check_machine(folder: pathlib.Path) -> None:
    """What a start would lack keeps nobody from a reload, which takes keys away, too."""
    file = folder / "sinewd.yaml"
    file.write_text(GOOD)
    (folder / "far").mkdir()
    d = Daemon(folder, f"--config={file}", f"--models=far={folder}/far")
    (folder / "far").rmdir()
    assert d.reload() == "READY=1\nSTATUS=reloaded"
    done = check_file(file, f"--models=far={folder}/far", f"--tasks={folder}/far")
    assert done.returncode == 1 and "models is 'far=" in done.stderr
    assert check_file(file, "--check=configuration", f"--models={folder}/far").returncode == 0
    lacking = "importer: /nowhere\nstate: /dev/null/kept\nflight_folder: /dev/null\nplanner_processors: '1023'\n"
    file.write_text(GOOD + "log: debug\n" + lacking)
    assert check_file(file).returncode == 1
    assert d.reload() == "READY=1\nSTATUS=reloaded"
    assert re.search(r'event=restart-needed text=".*: state, importer, planner_processors', d.log.read_text())
    (folder / "cache").rename(folder / "moved")
    (folder / "cache").write_text("no folder")
    file.write_text(GOOD)
    assert d.reload() == "READY=1\nSTATUS=reloaded"
    d.stop()


def check_command_line(folder: pathlib.Path) -> None:
    """What the command line says goes on to stand above the file."""
    file = folder / "sinewd.yaml"
    file.write_text("log: debug\n")
    d = Daemon(folder, f"--config={file}", "--log=warning")
    file.write_text("log: info\nidle_seconds: 7\n")
    assert d.reload() == "READY=1\nSTATUS=reloaded"
    d.ask("health")
    assert "level=info" not in d.log.read_text()
    d.stop()


def check_no_file(folder: pathlib.Path) -> None:
    """Where there is no file to be read again SIGHUP ends the process in order, as a terminal that is closed means it."""
    d = Daemon(folder)
    d.process.send_signal(signal.SIGHUP)
    assert d.process.wait(20) == 0
    assert "event=stopped" in d.log.read_text() and not (folder / "s").exists()


def check_nohup(folder: pathlib.Path) -> None:
    """What is started by nohup outlasts that terminal; where there is a file it is read again."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    file = folder / "sinewd.yaml"
    file.write_text(GOOD)
    try:
        d, other = Daemon(folder), folder / "other"
        other.mkdir()
        reloads = Daemon(other, f"--config={file}")
    finally:
        signal.signal(signal.SIGHUP, before)
    d.process.send_signal(signal.SIGHUP)
    d.ask("health")
    assert reloads.reload() == "READY=1\nSTATUS=reloaded"
    d.stop()
    reloads.stop()


def check_status(folder: pathlib.Path) -> None:
    """The supervisor is told how it goes, when that has changed: of no session first, where opening one takes long."""
    d = Daemon(folder)
    d.ask("open", "arm_reach", "lease=100")
    said = d.hear()
    if said == "STATUS=0 sessions, 0 states answered, 0 of them late":
        said = d.hear()
    assert said == "STATUS=1 sessions, 0 states answered, 0 of them late", said
    d.stop()


def main() -> None:
    """Run all checks, each with a folder of its own."""
    checks = (check_reload, check_missing, check_runtime_folder, check_machine, check_command_line, check_no_file, check_nohup, check_status)
    for check in checks:
        with tempfile.TemporaryDirectory(prefix="sinew-reload.") as name:
            check(pathlib.Path(name))


if __name__ == "__main__":
    main()
