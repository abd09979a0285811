"""Processes in tests: their memory, examples, and Ctrl-C."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def resident() -> int:
    """Return the resident memory of this process [bytes]."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def run_example(
    script: Path, *arguments: str | Path, folder: Path | None = None, limit: float = 300.0
) -> subprocess.CompletedProcess[str]:
    """Run an example that draws without a screen, in a folder, for at most so long [s]; return what came of it."""
    return subprocess.run(
        [sys.executable, script, *arguments],
        cwd=folder,
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        timeout=limit,
        check=False,
    )


# Fewer looks than five may come before the call and behind it.
_INTERRUPTED = """
import signal

looks = 0


def look(*_):
    global looks
    looks += 1
    if looks == 5:
        raise KeyboardInterrupt


signal.signal(signal.SIGALRM, look)
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
try:
    call()
    signal.setitimer(signal.ITIMER_REAL, 0)
    raise SystemExit(f"the call went to its end, and the handler of the signal ran {looks} times")
except KeyboardInterrupt:
    signal.setitimer(signal.ITIMER_REAL, 0)
check()
"""


def interrupt(program: str, case: str) -> None:
    """Run a program whose `call()` lets a signal's handler run several times, and ends when that raises.

    The exception is that of Ctrl-C. After it the program's `check()` has to succeed.
    """
    done = subprocess.run(
        [sys.executable, "-c", program + _INTERRUPTED, case],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
