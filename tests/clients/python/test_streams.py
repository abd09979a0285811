"""The command where nobody reads what it prints: streams that are closed, and a terminal that is gone."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "sinew"]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_closed_stream_is_no_error(number: int) -> None:
    done = subprocess.run(
        [*COMMAND, "--version"],
        capture_output=True, text=True, timeout=60, check=False, preexec_fn=lambda: os.close(number),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert bool(done.stdout) == (number != 1)


def test_files_do_not_get_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    number = tmp_path / "number"
    program = f"""
from sinew import cli

def run(_):
    with open({str(number)!r}, "w") as file:
        file.write(str(file.fileno()))
    return 0

cli._run = run
cli.main([])
"""

    def close() -> None:
        for stream in range(3):
            os.close(stream)

    subprocess.run([sys.executable, "-c", program], timeout=60, check=True, preexec_fn=close)
    assert int(number.read_text()) > 2


def test_a_terminal_that_is_gone_ends_in_order() -> None:
    ours, theirs = pty.openpty()
    program = """
from sinew import cli

def run(_):
    print("ready", flush=True)
    input()
    print("late")
    return 0

cli._run = run
raise SystemExit(cli.main([]))
"""
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=theirs, stderr=theirs, text=True
    )
    try:
        os.close(theirs)
        assert os.read(ours, 100).startswith(b"ready")
        os.close(ours)
        child.communicate("go on\n", timeout=60)
    finally:
        child.kill()
    assert child.returncode == 141
