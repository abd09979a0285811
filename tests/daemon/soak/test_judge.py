#!/usr/bin/env python3
"""The judge of a soak: what leaks grows, what wavers holds, a short run is undecided, and nothing lost is passed over.

tests/daemon/soak/test_judge.py     status 1 on failure
"""

from __future__ import annotations

import random
from typing import Any

import judge

GOOD = {"asked": 12, "planned": 8, "answered": 3, "refused": 1, "lost": 0, "wrong": 0, "restored": 6}


def samples(hours: float, rate: float, noise: float, pieces: int = 1, **other: float) -> list[judge.Sample]:
    """Pieces of so many hours that grow by `rate` KiB/h, from another level each, after a warm-up of 5 MiB."""
    dice = random.Random(5)
    rows = []
    for piece in range(1, pieces + 1):
        wave = 0.0
        for i in range(int(120 * hours)):
            wave = 0.8 * wave + dice.gauss(0, noise)
            t = 30.0 * (i + 1)
            level = 20000 * piece + 5120 * min(1, t / min(3600, 900 * hours)) + rate * t / 3600 + wave
            rows.append(
                {"piece": piece, "seconds": t, "resident": level, "heap": level}
                | dict.fromkeys(judge.CONSTANT, 9)
                | other
            )
    return rows


def verdict(
    rows: list[judge.Sample],
    counts: list[dict[str, Any]] | None = None,
    failures: tuple[str, ...] = (),
    growth: float = 0,
) -> dict[str, Any]:
    """Judge with memory."""
    return judge.judge(rows, counts or [GOOD], list(failures), True, growth)


def check_slopes() -> None:
    """A leak of twice what is allowed is found, none is not, and what cannot be told is not told."""
    assert verdict(samples(8, 0, 20))["verdicts"]["memory"] == "holds"
    assert verdict(samples(8, 128, 20))["verdicts"]["memory"] == "grows"
    assert not verdict(samples(8, 128, 20))["holds"]
    assert verdict(samples(8, 60, 2000))["verdicts"]["memory"] == "undecided"
    assert verdict(samples(0.5, 0, 1))["verdicts"]["memory"] == "undecided"
    assert verdict(samples(2, 0, 5, pieces=4))["verdicts"]["memory"] == "holds"
    assert verdict(samples(2, 128, 5, pieces=4))["verdicts"]["memory"] == "grows"
    for rate in (0.0, 50.0, -300.0):
        a, error = judge.slope(judge.settled(samples(8, rate, 20)), "resident")
        assert abs(a - rate) < 1.5 * error and 0 < error < 40, (rate, a, error)


def check_correlation() -> None:
    """Samples that resemble their neighbours say less: of 40 series without a trend few slopes are beyond the error."""
    beyond = 0
    for seed in range(40):
        dice = random.Random(seed)
        wave, rows = 0.0, []
        for i in range(400):
            wave = 0.9 * wave + dice.gauss(0, 1)
            rows.append({"piece": 1.0, "seconds": 30.0 * i, "resident": wave})
        a, error = judge.slope([rows], "resident")
        beyond += abs(a) > error
    assert beyond <= 6, beyond


def check_growth() -> None:
    """A short run is judged by what it has grown by since its warm-up."""
    rows = samples(0.2, 0, 1)
    assert verdict(rows, growth=1)["verdicts"]["growth"] == "holds"
    rows[-1]["resident"] += 2048
    assert verdict(rows, growth=1)["verdicts"]["growth"] == "grows"


def check_rest() -> None:
    """One descriptor more, one answer less, a session that did not come back, an end by itself: each fails."""
    rows = samples(2, 0, 1)
    assert verdict(rows)["holds"]
    for key in judge.CONSTANT:
        assert not verdict([*rows[:-1], rows[-1] | {key: 10}])["holds"]
    both = samples(1, 0, 1) + [r | {"piece": 2, "descriptors": 11} for r in samples(1, 0, 1)]
    assert verdict(both, [GOOD, GOOD])["holds"], "each piece is constant"
    assert not verdict(both, [GOOD, GOOD | {"restored": 5}])["holds"]
    for broken in ({"lost": 1}, {"wrong": 1}, {"planned": 0}, {"asked": 13}):
        assert not verdict(rows, [GOOD | broken])["holds"]
    assert not verdict(rows, failures=("sinewd ended with status 1",))["holds"]
    assert not verdict([])["holds"]


check_slopes()
check_correlation()
check_growth()
check_rest()
