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
from sinew._journal import Journal
from sinew._moved import Ways
from sinew.identify import Identification, Motion, Segments, StateLoss, _Problem, identify
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
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()[1:]]  # the first is a digest


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
    path, motions = tmp_path / "journal", swings([31])
    identify(parameters(), motions, iterations=2, journal=path)
    before = path.read_bytes()
    moved = Motion(np.asarray(motions[0].qpos) + 1e-12, motions[0].qvel, motions[0].ctrl)
    heavier = Parameters(TEXT.format(0.05, 1.0).replace("0.4", "0.5"), NAMES)
    wider = Parameters(TEXT.format(0.05, 1.0), NAMES | {"mass": Parameter("geom.g.mass", (0.3, 4), transform="log")})
    changes: list[tuple[Parameters, Any, dict[str, Any]]] = [
        (parameters(), [moved], {}),
        (heavier, motions, {}),
        (wider, motions, {}),
        (parameters(), motions, {"loss": StateLoss(velocity=0.1)}),
        (parameters(), motions, {"seed": 1}),
        (parameters(), motions, {"rate": 0.03}),
        (parameters(), motions, {"start": [0.1, 0.5]}),
        (parameters(), motions, {"integrator": TIGHT}),
    ]
    for sought, recorded, settings in changes:
        with pytest.raises(errors.ArgumentError, match="belongs to another identification"):
            identify(sought, recorded, journal=path, **({"iterations": 2} | settings))
    assert path.read_bytes() == before
    identify(parameters(), motions, iterations=2, threads=1, journal=path)  # answers do not depend on threads
    assert path.read_bytes() == before
    path.write_text(before.decode().replace('"what": "slope"', '"what": "value"', 1), encoding="utf-8")
    with pytest.raises(errors.ArgumentError, match="line 2 is not the evaluation that comes here"):
        identify(parameters(), motions, iterations=2, journal=path)
    path.write_bytes(before[before.index(b"\n") + 1 :])
    with pytest.raises(errors.ArgumentError, match="its first line has no digest"):
        identify(parameters(), motions, iterations=2, journal=path)
    with pytest.raises(errors.FileError, match="journal"):
        identify(parameters(), motions, iterations=2, journal=tmp_path / "none" / "journal")


@pytest.mark.parametrize("text", [b"\x00\x01 numbers", b"time,qpos\n0,1\n0.1,2", b'{"digest": "0"}\n{"what": '])
def test_a_file_that_is_no_journal_of_it_stays_as_it_is(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "recording"
    path.write_bytes(text)
    with pytest.raises(errors.ArgumentError, match=r"no journal of evaluations|belongs to another"):
        identify(parameters(), swings([31]), iterations=2, journal=path)
    assert path.read_bytes() == text


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"parameters": None}, "parameters: NoneType, expected a sinew.Parameters"),
        ({"motions": swings([31])[0]}, "motions: one Motion, expected a sequence"),
        ({"motions": [(np.ones((5, 1)), np.ones((5, 1)))]}, r"motions\[0\]: tuple, expected a Motion"),
        ({"loss": "state"}, "loss: 'state', expected a StateLoss"),
        ({"integrator": "rk4"}, "integrator: 'rk4', expected a mapping"),
    ],
)
def test_wrong_input_is_refused_in_words(changes: dict[str, Any], text: str) -> None:
    given = {"parameters": parameters(), "motions": swings([31]), "iterations": 2} | changes
    with pytest.raises(errors.ArgumentError, match=text):
        identify(given.pop("parameters"), given.pop("motions"), **given)


def test_levenberg_marquardt_begins_anew(tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    settings: dict[str, Any] = {"optimizer": "lm", "iterations": 20, "journal": tmp_path / "journal"}
    first = identify(parameters(), swings([31]), **settings)
    assert {x["what"] for x in evaluations(tmp_path / "journal")} == {"value"}
    again = identify(parameters(), swings([31]), **settings)
    np.testing.assert_array_equal(again.values, first.values)


@pytest.mark.parametrize("optimizer", ["lm", "lbfgs"])
def test_small_residuals_are_followed_to_the_end(optimizer: Any) -> None:
    """A damping of 2e-3 that hardly slows a pendulum: nothing of it is lost in a limit that knows no scale."""
    pytest.importorskip("scipy")
    rng, ctrl = np.random.default_rng(SEED), np.random.default_rng(SEED).standard_normal((4, 60, 1))
    model = sinew.Model.from_string(TEXT.format(0.002, 0.7))
    made = sinew.rollout(model, {"qpos": 0.3 * rng.standard_normal((4, 1))}, ctrl, gradients=False)
    motions = [Motion(q[:-1], v[:-1], c) for q, v, c in zip(made.qpos, made.qvel, ctrl, strict=True)]
    at = Parameters(TEXT.format(0.01, 0.7), {"damping": Parameter("joint.j.damping[0]", bounds=(1e-4, 0.5))})
    found = identify(at, motions, optimizer=optimizer, iterations=60, steps=8, stride=20, loss=StateLoss(velocity=0.01))
    assert found.values[0] == pytest.approx(0.002, rel=1e-5)


@pytest.mark.parametrize("optimizer", ["lm", "lbfgs"])
def test_an_active_bound(optimizer: Any) -> None:
    """The true mass, 0.7, is beyond the bound: damping ends where it is best for the bound, however mass is turned."""
    pytest.importorskip("scipy")
    settings: dict[str, Any] = {"steps": 10, "stride": 5, "iterations": 60, "loss": StateLoss(velocity=0.01)}
    motions, found = swings([61]), {}
    for transform in ("none", "log", "softplus"):
        names: dict[str, Any] = {
            "damping": NAMES["damping"],
            "mass": Parameter("geom.g.mass", (0.3, 0.6), 0.5, transform),  # type: ignore[arg-type]
        }
        at = Parameters(TEXT.format(0.05, 1.0), names)
        found[transform] = identify(at, motions, optimizer=optimizer, **settings)
    for transform in ("log", "softplus"):
        np.testing.assert_allclose(found[transform].values, found["none"].values, rtol=1e-4)
        assert found[transform].loss == pytest.approx(found["none"].loss, rel=1e-6)
    assert found["none"].values[1] == pytest.approx(0.6, rel=1e-6)


def test_bounds_of_what_is_turned() -> None:
    names: dict[str, Any] = {
        "a": Parameter("geom.g.mass", (0.5, 2), 1),
        "b": Parameter("geom.g.mass", (0.5, 2), 1, "log"),
        "c": Parameter("geom.g.mass", (0.5, 2), 1, "softplus"),
        "d": Parameter("geom.g.mass", (0.5, 2), 1, "softclip"),
        "e": Parameter("geom.g.mass", None, 1, "log"),
    }
    p = Parameters(TEXT.format(0.05, 1.0), names)
    low, high = p.free_bounds()
    np.testing.assert_allclose(low, [0.5, np.log(0.5), np.log(np.expm1(0.5)), -np.inf, -np.inf])
    np.testing.assert_allclose(high, [2, np.log(2), np.log(np.expm1(2)), np.inf, np.inf])
    np.testing.assert_allclose(p.inside([0.5, 0.5, 0.5, 0.5, 0.5]), [0.5, 0.5, 0.5, 0.5015, 0.5])
    for name in names:
        for free in (-1e4, 1e4):
            assert np.isfinite(p[name].to_value(free)) and np.isfinite(p[name].slope(free))


def test_standard_errors_at_a_bound() -> None:
    """They are made of differences on one side there, and are as large as where there is room on both sides."""
    pytest.importorskip("scipy")
    rng, motions = np.random.default_rng(SEED), swings([61])
    noisy = [Motion(np.asarray(x.qpos) + 1e-3 * rng.standard_normal((61, 1)), x.qvel, x.ctrl) for x in motions]
    errors_of = []
    for high in (0.6, 0.61):
        p = Parameters(TEXT.format(0.05, 0.5), {"mass": Parameter("geom.g.mass", bounds=(0.3, high))})
        problem = _Problem(p, Segments.of(noisy, 10, 5), StateLoss(), Ways(1, TIGHT, None, 0), Journal(None))
        found, kind = problem.standard_errors(np.array([0.6]))
        assert kind == "losses"
        errors_of.append(found[0])
    assert errors_of[0] == pytest.approx(errors_of[1], rel=1e-2)
    exact = identify(p, noisy, iterations=1, uncertainty=True)
    assert exact.errors_of == "residuals"
    assert identify(p, noisy, iterations=1).errors_of == ""


def test_standard_errors_of_what_recordings_do_not_show(tmp_path: Path) -> None:
    """Of gear and gain only the product shows; of the mass of a body that is welded to the world nothing does."""
    pytest.importorskip("scipy")
    rng, ctrl = np.random.default_rng(SEED), np.random.default_rng(SEED).standard_normal((60, 1))
    text = """<mujoco><option timestep="0.01"/><worldbody><body><joint name="j" axis="0 1 0" damping="0.1"/>
      <geom name="g" size="0.05" pos="0 0 -0.4" mass="1"/></body>
      <body><geom name="idle" size="0.05" pos="1 0 0" mass="1"/></body></worldbody>
      <actuator><general name="m" joint="j" gainprm="2 0 0" gear="1.5"/></actuator></mujoco>"""
    made = sinew.rollout(sinew.Model.from_string(text), {"qpos": [0.3]}, ctrl, gradients=False)
    motions = [Motion(made.qpos[:-1] + 1e-3 * rng.standard_normal((60, 1)), made.qvel[:-1], ctrl)]
    gear, gain = Parameter("actuator.m.gear[0]", bounds=(0.5, 4)), Parameter("actuator.m.gainprm[0]", bounds=(0.5, 4))

    def found(names: dict[str, Parameter], start: list[float]) -> Identification:
        return identify(
            Parameters(text, names), motions, start=start, iterations=20, steps=4, optimizer="lm", uncertainty=True
        )

    alone = found({"gear": gear}, [1.2])
    assert 0 < alone.errors[0] < 0.1
    both = found({"gear": gear, "gain": gain}, [1.2, 2.2])
    np.testing.assert_array_equal(both.errors, np.inf)
    mixed = found({"gear": gear, "idle": Parameter("geom.idle.mass")}, [1.2, 1.0])
    assert mixed.errors[0] == pytest.approx(alone.errors[0], rel=1e-2) and mixed.errors[1] == np.inf
    mixed.save(tmp_path / "result.json")
    assert "Infinity" not in (tmp_path / "result.json").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))["errors"][1] is None


def test_adam_stays_where_nothing_is_to_be_mended() -> None:
    made = sinew.rollout(sinew.Model.from_string(TEXT.format(0.05, 1.0)), {"qpos": [0.0]}, nstep=9, gradients=False)
    found = identify(parameters(), [Motion(made.qpos, made.qvel)], steps=4, iterations=3, optimizer="adam")
    np.testing.assert_array_equal(found.values, [0.05, 1.0])


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
    with pytest.raises(errors.ArgumentError, match=r"held_out: 0.9 of 1 segments leaves none"):
        identify(free, motions, steps=12, held_out=0.9)
    with pytest.raises(errors.ArgumentError, match=r"mass: -1.0 is not above 0, as transform log wants it"):
        names = {"mass": Parameter("geom.g.mass", transform="log")}
        identify(Parameters(TEXT.format(0.05, 1.0), names), motions, start=[-1])
    with pytest.raises(errors.ArgumentError, match="rtol"):
        identify(free, motions, integrator={"rtol": 0})
    with pytest.raises(TypeError, match="speed"):
        identify(free, motions, integrator={"speed": 0})


def test_shares_of_the_way_between_bounds() -> None:
    p = parameters()
    np.testing.assert_allclose(p.between([0.25, 0.5]), [0.14, np.sqrt(0.9)])
    np.testing.assert_allclose(p.to_shares(p.between([0.3, 0.8])), [0.3, 0.8])
