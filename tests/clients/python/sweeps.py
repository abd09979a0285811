"""Folders of sweeps, as tests compare them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from sinew.sweep import read

# Numbers of a row that depend on how fast the machine is.
TIMES = ("latency_p50", "latency_p90", "latency_p99", "latency_max", "wall")


def numbers(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of a table, in its order, without what depends on the machine's speed."""
    rows = read(folder).drop(columns=list(TIMES)).to_dict("records")
    return [{name: str(np.asarray(x).tolist()) for name, x in row.items()} for row in rows]


def keys(folder: Path) -> list[str]:
    """Return the keys of the runs that are written by now, in their order."""
    path = folder / "runs.jsonl"
    return [json.loads(line)["key"] for line in path.read_text().splitlines()] if path.exists() else []
