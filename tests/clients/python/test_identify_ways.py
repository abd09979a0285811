"""Identification by chosen steps, on whole motions, from several starts, by CMA-ES, and going on after an interrupt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sinew
from sinew import errors
from sinew.identify import Motion, Segments, identify
from sinew.parameters import Parameter, Parameters

SEED = 20261125
FRAME = 0.02
TEXT = """<mujoco><option timestep="0.02"/><worldbody><body><joint name="j" axis="0 1 0" damping="{}"/>
  <geom name="g" size="0.05" pos="0 0 -0.4" mass="{}"/></body></worldbody><actuator><motor joint="j"/></actuator>
  </mujoco>"""
NAMES = {
    "damping": Parameter("joint.j.damping[0]", bounds=(0.02, 0.5)),
    "mass": Parameter("geom.g.mass", bounds=(0.3, 3), transform="log"),
}


def swings(rows: list[int]) -> list[Motion]:
    """Return swings of a pendulum with these numbers of rows, moved by chosen steps."""
    rng = np.random.default_rng(SEED)
    model = sinew.Model.from_string(TEXT.format(0.13, 0.7))
    motions = []
    for n in rows:
        ctrl, time = rng.standard_normal((n, 1)), FRAME * np.arange(n)
        made = sinew.integrate(
            model, {"qpos": rng.standard_normal(1)}, time, ctrl, ctrl_time=time, rtol=1e-9, atol=1e-9, gradients=False
        )
        motions.append(Motion(made.qpos, made.qvel, ctrl, time))
    return motions


def parameters() -> Parameters:
    return Parameters(TEXT.format(0.05, 1.0), NAMES)


TIGHT = {"rtol": 1e-8, "atol": 1e-8}


def test_chosen_steps_find_what_steps_cannot() -> None:
    found = identify(
        parameters(), swings([41, 41]), steps=10, stride=10, optimizer="lbfgs", integrator=TIGHT, uncertainty=True
    )
    np.testing.assert_allclose(found.values, [0.13, 0.7], rtol=1e-4)
    coarse = identify(parameters(), swings([41, 41]), steps=10, stride=10, optimizer="lbfgs")
    assert coarse.loss > 100 * found.loss
    assert np.all(found.errors < 1e-3)


def evaluations(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_slopes_of_chosen_steps_are_those_of_differences(tmp_path: Path) -> None:
    segments, at = Segments.whole(swings([21, 13])), np.array([0.2, 0.9])

    def first(values: np.ndarray, name: str) -> Any:
        settings = {"rtol": 1e-10, "atol": 1e-10}
        identify(parameters(), segments, start=values, iterations=1, integrator=settings, journal=tmp_path / name)
        return evaluations(tmp_path / name)[0]["answer"]

    slope = first(at, "here")[1]
    for k, way in enumerate(1e-5 * np.eye(2)):
        ends = [first(at + sign * way, f"{k} {sign}")[0] for sign in (1, -1)]
        assert slope[k] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-4)


def test_whole_motions_count_what_was_recorded() -> None:
    """A shorter motion is as long as the longest by its last row, which is not looked at."""
    motions = swings([21, 13])
    both = Segments.whole(motions)
    assert both.qpos.shape == (2, 21, 1)
    assert list(both.length) == [20, 12]
    assert np.all(both.qpos[1, 12:] == motions[1].qpos[12])
    settings: dict[str, Any] = {"iterations": 1, "integrator": TIGHT}
    together = identify(parameters(), both, **settings).history[0]["loss"]
    alone = [identify(parameters(), Segments.whole([x]), **settings).history[0]["loss"] for x in motions]
    assert together == pytest.approx(np.mean(alone), rel=1e-9)
    with pytest.raises(errors.ArgumentError, match="single row"):
        Segments.whole([Motion([[0.0]], [[0.0]])])


@pytest.mark.parametrize("optimizer", ["adam", "lbfgs", "cmaes"])
def test_what_was_interrupted_goes_on(optimizer: Any, tmp_path: Path) -> None:
    if optimizer == "cmaes":
        pytest.importorskip("cmaes")
    settings: dict[str, Any] = {"steps": 5, "optimizer": optimizer, "iterations": 6, "batch": 4, "starts": 2, "seed": 3}
    motions, path = swings([31]), tmp_path / "journal"
    whole = identify(parameters(), motions, **settings)
    count = 0

    def stop(step: Mapping[str, Any]) -> None:
        nonlocal count
        count += 1
        if count == 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        identify(parameters(), motions, **settings, progress=stop, journal=path)
    before = evaluations(path)
    with path.open("a", encoding="utf-8") as file:
        file.write('{"what": "slo')  # a line that a process did not finish
    found = identify(parameters(), motions, **settings, journal=path)
    after = evaluations(path)
    assert after[: len(before)] == before
    assert len(after) > len(before)
    np.testing.assert_array_equal(found.values, whole.values)
    assert found.history == whole.history
    path.write_text("nothing\n", encoding="utf-8")
    with pytest.raises(errors.ArgumentError, match="no journal of evaluations"):
        identify(parameters(), motions, **settings, journal=path)


def test_a_journal_of_something_else_is_refused(tmp_path: Path) -> None:
    identify(parameters(), swings([31]), iterations=2, journal=tmp_path / "journal")
    with pytest.raises(errors.ArgumentError, match="line 1 is not the evaluation that comes here"):
        identify(parameters(), swings([31]), iterations=2, start=[0.1, 0.5], journal=tmp_path / "journal")


def test_cmaes_and_several_starts() -> None:
    pytest.importorskip("cmaes")
    seen = []
    found = identify(
        parameters(), swings([41]), steps=10, optimizer="cmaes", iterations=40, integrator=TIGHT, starts=2, seed=1,
        progress=seen.append,
    )  # fmt: skip
    np.testing.assert_allclose(found.values, [0.13, 0.7], rtol=2e-2)
    assert {x["start"] for x in found.history} == {0, 1}
    assert len(seen) == 80
    first = [x["values"] for x in found.history if x["iteration"] == 0]
    assert first[0] != first[1]


def test_bad_ways() -> None:
    free = Parameters(TEXT.format(0.05, 1.0), {"damping": "joint.j.damping[0]"})
    motions = swings([13])
    with pytest.raises(errors.ArgumentError, match="damping: has no bounds"):
        identify(free, motions, starts=2, iterations=1)
    with pytest.raises(errors.ArgumentError, match="starts 0"):
        identify(free, motions, starts=0)
    with pytest.raises(errors.ArgumentError, match="rtol"):
        identify(free, motions, integrator={"rtol": 0})
    with pytest.raises(TypeError, match="speed"):
        identify(free, motions, integrator={"speed": 0})


def test_shares_of_the_way_between_bounds() -> None:
    p = parameters()
    np.testing.assert_allclose(p.between([0.25, 0.5]), [0.14, np.sqrt(0.9)])
    np.testing.assert_allclose(p.to_shares(p.between([0.3, 0.8])), [0.3, 0.8])
