"""What the samples of a soak say: does memory grow, do files and threads stay, was a plan lost."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

LIMIT = 64.0  # KiB an hour
WARM_UP = 3600.0  # seconds of each piece that are not judged, or a quarter of it, where that is less
LEAST = 3600.0  # seconds behind that, in all pieces: of fewer no slope is judged
LASTING = 6  # times that clients ask for a session that outlasts a piece: controllers, tuner (twice), streamer, watcher
CONSTANT = ("descriptors", "threads", "sessions", "connections")

Sample = dict[str, float]


def settled(samples: Sequence[Sample]) -> list[list[Sample]]:
    """Split samples into pieces, and leave out the warm-up of each."""
    pieces = []
    for number in sorted({s["piece"] for s in samples}):
        piece = [s for s in samples if s["piece"] == number]
        begin = min(WARM_UP, 0.25 * piece[-1]["seconds"])
        pieces.append([s for s in piece if s["seconds"] >= begin])
    return [p for p in pieces if len(p) > 2]


def slope(pieces: Sequence[Sequence[Sample]], key: str) -> tuple[float, float]:
    """Fit one slope to all pieces, each with a level of its own, by least squares.

    Parameters
    ----------
    pieces : sequence of sequences of samples
    key : str
        Which number of the samples.

    Returns
    -------
    tuple of float
        The slope and twice its standard error, both an hour. Neighbouring samples resemble each other: by the
        correlation of neighbours, r, n of them say as much as n (1 - r) / (1 + r) independent ones.
    """
    points = []
    for piece in pieces:
        t0 = sum(s["seconds"] for s in piece) / len(piece) / 3600
        y0 = sum(s[key] for s in piece) / len(piece)
        points.append([(s["seconds"] / 3600 - t0, s[key] - y0) for s in piece])
    every = [p for piece in points for p in piece]
    n, spread = len(every) - len(points) - 1, sum(t * t for t, _ in every)
    if n < 1 or spread == 0:
        return math.nan, math.inf
    a = sum(t * y for t, y in every) / spread
    rest = [[y - a * t for t, y in piece] for piece in points]
    squares = sum(e * e for piece in rest for e in piece)
    if squares == 0:
        return a, 0.0
    r = sum(x * y for piece in rest for x, y in itertools.pairwise(piece)) / squares
    r = min(max(r, 0.0), 0.99)
    return a, 2 * math.sqrt(squares / n / spread * (1 + r) / (1 - r))


def judge_slope(pieces: Sequence[Sequence[Sample]], key: str) -> tuple[str, str]:
    """Judge the growth of a memory: "holds", "grows" or "undecided", and why."""
    seconds = sum(p[-1]["seconds"] - p[0]["seconds"] for p in pieces)
    a, error = slope(pieces, key)
    text = f"{a:+.1f} +- {error:.1f} KiB/h over {seconds / 3600:.2f} h behind the warm-up; allowed {LIMIT:g}"
    if seconds < LEAST:
        return "undecided", text + f", judged from {LEAST / 3600:g} h on"
    if a + error < LIMIT:
        return "holds", text
    return ("grows" if a - error > LIMIT else "undecided"), text


def judge_growth(pieces: Sequence[Sequence[Sample]], most: float) -> tuple[str, str]:
    """Judge what a short run has grown by since its warm-up, against `most` MiB."""
    grown = max((p[-1]["resident"] - p[0]["resident"] for p in pieces), default=math.nan) / 1024
    return "holds" if grown <= most else "grows", f"grown by {grown:.2f} MiB since the warm-up; allowed {most:g}"


def judge_constant(samples: Sequence[Sample], key: str) -> tuple[str, str]:
    """Judge a number that is to be the same in all samples of a piece."""
    seen = [sorted({int(s[key]) for s in samples if s["piece"] == n}) for n in sorted({s["piece"] for s in samples})]
    good = bool(seen) and all(len(x) == 1 for x in seen)
    return "holds" if good else "changes", "; ".join(", ".join(map(str, x)) for x in seen)


def judge_counts(counts: Sequence[dict[str, Any]], pieces: int) -> tuple[str, str]:
    """Judge what the clients counted: nothing lost, nothing wrong, sessions there again in each later piece."""
    total = {k: sum(c.get(k, 0) for c in counts) for k in ("asked", "planned", "answered", "refused", "lost", "wrong")}
    unanswered = total["asked"] - total["planned"] - total["answered"] - total["refused"]
    first = next((c["first"] for c in counts if c.get("first")), "")
    text = ", ".join(f"{v} {k}" for k, v in total.items()) + (f"; the first: {first}" if first else "")
    gone = [i + 1 for i, c in enumerate(counts) if 0 < i < pieces and c.get("restored", 0) != LASTING]
    if gone:
        text += f"; sessions were not there again in pieces {gone}"
    good = total["planned"] > 0 and total["lost"] == total["wrong"] == unanswered == 0 and not gone
    return "holds" if good else "fails", text


def judge(
    samples: Sequence[Sample], counts: Sequence[dict[str, Any]], failures: Sequence[str], memory: bool, growth: float
) -> dict[str, Any]:
    """Judge a soak.

    Parameters
    ----------
    samples, counts
        Of all pieces.
    failures
        What has ended a piece, in words.
    memory
        Whether the growth of memory is judged.
    growth
        MiB that a short run may grow by; 0: only the slope is judged.

    Returns
    -------
    dict
        `holds`; `verdicts` and `lines` by what was judged.
    """
    pieces = settled(samples)
    parts = {key: judge_constant(samples, key) for key in CONSTANT}
    parts["requests"] = judge_counts(counts, len({s["piece"] for s in samples}))
    if memory and pieces:
        parts["memory"] = judge_slope(pieces, "resident")
        parts["heap"] = judge_slope(pieces, "heap")
        if growth > 0:
            parts["growth"] = judge_growth(pieces, growth)
    parts["course"] = ("fails", "; ".join(failures)) if failures else ("holds", "all ended as they should")
    return {
        "holds": all(v in ("holds", "undecided") for v, _ in parts.values()),
        "samples": len(samples),
        "verdicts": {k: v for k, (v, _) in parts.items()},
        "lines": {k: f"{v}: {text}" for k, (v, text) in parts.items()},
        "counts": list(counts),
    }
