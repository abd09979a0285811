"""Derivatives of random models and costs of random tasks: a few seeds of what tests/random_models.sh does with any."""

from __future__ import annotations

import doctest
import re

import pytest

from random_models import costs, differences, random_model

DISCRETE = (43, 56, 58, 59, 80, 152, 164, 260)  # the integrator, and most of what it treats in its own way; so has 1
# Sensors of limits, welded cameras, sensors under noslip; an upright capsule, a replaced solref, equal impedances.
CHOSEN = (44, 47, 84, 9019, 10030, 10232)
COSTS = sorted({*range(48), *DISCRETE, *range(10000, 10006), 261})  # the last: a quaternion that comes late
SEEDS = (*range(24), *CHOSEN, *DISCRETE)


@pytest.mark.parametrize("seed", SEEDS)
def test_derivatives(seed: int) -> None:
    model = random_model(seed, exact=True)
    report = differences.compare_derivatives(model, seed)
    print(f"seed {seed}: {report.outcome}, {dict(report.verdicts)}")
    assert not report.differs, f"tests/random_models.sh --only derivatives --seeds {seed}"
    # What says nothing would hide what differs, and so would what is refused.
    print(f"refused: {report.refused}")
    least = 12 if 'integrator="discrete"' in model else 30  # no derivatives by the model's numbers there
    assert report.verdicts["agrees"] >= (least if report.outcome == "compared" else 0)
    assert report.verdicts["rough"] + report.verdicts["kink"] <= 0.15 * report.verdicts.total()


def test_most_models_are_compared() -> None:
    outcomes = [differences.compare_derivatives(random_model(seed, exact=True), seed, "qvel").outcome for seed in SEEDS]
    assert outcomes.count("compared") >= 0.8 * len(outcomes)


@pytest.mark.parametrize("seed", COSTS)
def test_costs(seed: int) -> None:
    report = costs.compare_costs(random_model(seed, exact=True), seed)
    print(f"seed {seed}: {report.outcome}, {dict(report.verdicts)}, refused: {report.refused}")
    assert not report.differs, f"tests/random_models.sh --only costs --seeds {seed}"


def test_most_costs_are_compared() -> None:
    reports = [costs.compare_costs(random_model(seed, exact=True), seed) for seed in range(24)]
    assert [report.outcome for report in reports].count("compared") >= 0.7 * len(reports)
    assert sum(report.verdicts["agrees"] for report in reports) >= 2.5 * len(reports)


def test_some_models_have_the_integrator_discrete() -> None:
    models = {seed: random_model(seed) for seed in range(300)}
    chosen = [seed for seed, model in models.items() if 'integrator="discrete"' in model]
    assert 30 <= len(chosen) <= 70
    assert {1, *DISCRETE} <= set(chosen)
    for seed in chosen:  # what the engine refuses with it would be compared with nothing
        options = models[seed].split("<asset", 1)[0]
        assert not re.findall("PGS|noslip_iterations|diagexact|sleep", options), seed


def test_a_seed_gives_one_model() -> None:
    assert random_model(3) == random_model(3) != random_model(4)


def test_verdicts() -> None:
    assert doctest.testmod(differences).failed == 0
