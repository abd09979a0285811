"""The example of a client of one's own: it is short, knows nothing of the package, and works."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import sinew
from sinew.client import Daemon

EXAMPLE = Path(__file__).parents[3] / "clients" / "python" / "examples" / "own_client.py"


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLE), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_it_is_alone() -> None:
    tree = ast.parse(EXAMPLE.read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert imported == {"math", "sys", "zmq", "google.protobuf"}
    body = EXAMPLE.read_text().split('"""', 2)[2]
    lines = [line for line in body.splitlines() if line.strip() and "import" not in line]
    assert len(lines) <= 40, "it is an example for reading"


def test_it_plans(daemon: Daemon) -> None:
    with daemon.client() as client:
        before = client.health().sessions
    done = run(sinew.share("sinew.desc"), daemon.endpoint, "arm_reach")
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^t (\S+)  cost (\S+) -> (\S+)  control (\S+)$", done.stdout, re.MULTILINE)
    assert [float(row[0]) for row in rows] == [round(0.02 * (k + 1), 3) for k in range(10)]
    assert float(rows[-1][2]) < float(rows[0][1])
    with daemon.client() as client:
        assert client.health().sessions == before, "it has closed its session"


def test_it_says_what_is_wrong(daemon: Daemon) -> None:
    done = run(sinew.share("sinew.desc"), daemon.endpoint, "nowhere")
    assert done.returncode == 1
    assert "nowhere" in done.stderr
