#!/usr/bin/env python3
"""The log of a sinewd: ids of what a line is about, floods, files that are moved away, readers that are slow or gone.

  tests/daemon/test_log.py BIN SOURCE     programs of the build, folder of the sources; status 1 on failure
"""

from __future__ import annotations

import atexit
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

LINE = re.compile(
    r"time=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z level=(error|warning|info|debug) event=(?P<event>[a-z-]+)"
    r'( session=(?P<session>\d+))?( plan=\d+)?( request=\d+)?( lines=\d+( of=[a-z-]+)?)?( text="([^"\\\x00-\x1f]|\\.)*")?'
)
BINARIES, SOURCE = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])


def start(folder: pathlib.Path, stderr: int, *options: str) -> subprocess.Popen:
    """Start a sinewd that answers at FOLDER/s."""
    process = subprocess.Popen(
        [BINARIES / "sinewd", "--backend=cpu", f"--endpoint=ipc://{folder}/s", f"--tasks={SOURCE}/planner/tasks",
         f"--models={SOURCE}/physics/models", f"--cache={folder}/cache", *options], stderr=stderr
    )  # fmt: skip
    atexit.register(process.kill)  # where a check fails
    for _ in range(600):
        if ask(folder, "health") is not None:
            return process
        time.sleep(0.05)
    raise SystemExit("sinewd does not answer")


def ask(folder: pathlib.Path, *words: str) -> dict | None:
    """Send a request by sinewctl; None where it is refused."""
    done = subprocess.run(
        [BINARIES / "sinewctl", "--endpoint", f"ipc://{folder}/s", "--timeout", "20", "--json", *words],
        capture_output=True, text=True,
    )  # fmt: skip
    return json.loads(done.stdout) if done.returncode == 0 else None


def stop(process: subprocess.Popen) -> None:
    """End it as an operator would."""
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0


def wait_for(file: pathlib.Path, word: str) -> str:
    """The file's text, as soon as it has that word."""
    for _ in range(600):
        if file.exists() and word in file.read_text():
            return file.read_text()
        time.sleep(0.05)
    raise SystemExit(f"{file} has no {word}: {file.read_text()}")


def check_file(folder: pathlib.Path) -> None:
    """All lines are logfmt; a session's have its id; SIGUSR1 opens the file again, or leaves it where it is."""
    log, old = folder / "log", folder / "old"
    d = start(folder, subprocess.DEVNULL, f"--log-file={log}", "--log-rate=0.5")
    opened = ask(folder, "open", "arm_reach")
    assert opened
    assert ask(folder, "close", str(opened["session"])) is not None
    began = time.monotonic()
    for _ in range(15):
        assert ask(folder, "close", "5") is None
    log.rename(old)
    d.send_signal(signal.SIGUSR1)
    wait_for(log, "event=log-opened")
    wait_for(log, "event=log-suppressed lines=")
    log.rename(folder / "older")
    folder.chmod(0o500)
    log.mkdir() if not log.exists() else None  # root may write everywhere: a folder in its place refuses it
    folder.chmod(0o700)
    d.send_signal(signal.SIGUSR1)
    wait_for(folder / "older", "event=log-failed")
    stop(d)
    text = old.read_text() + (folder / "older").read_text()
    for line in text.splitlines():
        assert LINE.fullmatch(line), line
    events = [m["event"] for m in map(LINE.fullmatch, text.splitlines()) if m["session"] == str(opened["session"])]
    assert events == ["opened", "closed"], events
    # Five seconds' worth at once, which is two lines and a half, and what came since.
    assert 2 <= text.count("event=refused") <= 3 + 0.5 * (time.monotonic() - began), text
    assert "event=stopped" in text


def check_readers(folder: pathlib.Path) -> None:
    """A reader that does not read, and then is gone, stops nothing."""
    d = start(folder, subprocess.PIPE, "--log-rate=1000000", "--log=debug")
    for _ in range(400):
        ask_fast(folder)
    assert ask(folder, "health") is not None
    text = ask(folder, "metrics")["text"]
    d.stderr.close()
    ask_fast(folder)
    assert ask(folder, "health") is not None
    time.sleep(0.15)  # a page is given again for so long
    lost = float(re.search(r'sinew_log_lines_total\{outcome="lost"\} (\d+)', ask(folder, "metrics")["text"])[1])
    assert lost > float(re.search(r'sinew_log_lines_total\{outcome="lost"\} (\d+)', text)[1])
    stop(d)


def check_terminal(folder: pathlib.Path) -> None:
    """A terminal that stands still, as by Ctrl+S or when its connection hangs, stops nothing, nor the end."""
    reader, terminal = os.openpty()
    d = start(folder, terminal, "--log-rate=1000000", "--log=debug")
    for _ in range(150):
        ask_fast(folder)
    assert ask(folder, "health") is not None
    assert not re.search(r'sinew_log_lines_total\{outcome="lost"\} 0\n', ask(folder, "metrics")["text"])
    stop(d)
    os.close(terminal)
    os.close(reader)


def ask_fast(folder: pathlib.Path) -> None:
    """A request that has a long line of the log."""
    subprocess.run(
        [BINARIES / "sinewctl", "--endpoint", f"ipc://{folder}/s", "load", "no_such_" + 150 * "x"], capture_output=True
    )


def main() -> None:
    """Run all checks, each with a folder of its own."""
    for check in (check_file, check_readers, check_terminal):
        with tempfile.TemporaryDirectory(prefix="sinew-log.") as name:
            check(pathlib.Path(name))


if __name__ == "__main__":
    main()
