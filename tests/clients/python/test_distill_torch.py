"""The example that distils a policy, short: recorded, trained, and better than no plan at all."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not there")
pytest.importorskip("mcap", reason="mcap is not there")

EXAMPLE = Path(__file__).resolve().parents[3] / "clients" / "python" / "examples" / "learn" / "distill.py"


def run(folder: Path, *arguments: str) -> str:
    """Run a step and return what it prints."""
    command = [sys.executable, EXAMPLE, *arguments, "--folder", folder]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_short_form(tmp_path: Path) -> None:
    assert "arm_reach-2.mcap: cost at the end" in run(
        tmp_path, "record", "arm_reach", "--seeds", "1:3", "--seconds", "1"
    )
    assert "of 2 recordings" in run(tmp_path, "train", "arm_reach", "--epochs", "30")
    rows = json.loads(run(tmp_path, "measure", "arm_reach", "--seeds", "101:103", "--json"))
    assert len(rows) == 2 * 2 * 3
    first = {(row["seed"], row["start"]): row for row in rows if not row["pushed"]}
    for seed in (101, 102):
        shifted, policy, better = (first[seed, start] for start in ("shifted", "policy", "better"))
        assert policy["from_policy"] and not shifted["from_policy"]
        assert policy["before"] < 0.8 * shifted["before"]
        assert better["before"] == policy["before"] and better["from_policy"]
        assert policy["after"] <= policy["before"]


def test_without_recordings(tmp_path: Path) -> None:
    command = [sys.executable, EXAMPLE, "train", "arm_reach", "--folder", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "no recordings with plans" in done.stderr
