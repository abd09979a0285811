"""clients/python/bench.py runs, and its JSON can be read; what it measures is nobody's criterion."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[3] / "clients/python/bench.py"
SMALL = ["--repeats=1", "--count=2", "--steps=3", "--threads=1"]


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, BENCH, *arguments], capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("part", ["rollout", "gradient", "overhead", "linearize", "torch", "jax"])
def test_part(part: str) -> None:
    done = bench("--json", *SMALL, part)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["settings"]["steps"] == 3
    if result["skipped"]:
        pytest.skip(result["skipped"][part])
    assert result["figures"]
    for figure in result["figures"]:
        assert figure["part"] == part
        assert math.isfinite(figure["value"])


def test_table_and_unknown_part() -> None:
    done = bench(*SMALL, "gradient")
    assert done.returncode == 0, done.stderr
    assert "gradient" in done.stdout
    assert "there is no part 'gradients'" in bench("gradients").stderr
