"""Tables of runs: what a run is, that each is there once, whatever ends in between, and the figures."""

from __future__ import annotations

import argparse
import csv
import json
import multiprocessing
import os
import resource
import signal
import struct
import subprocess
import sys
import time
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import sinew
from sinew.errors import ArgumentError, FileError, FormatError, NotFoundError, SinewError, StateError

for name in ("pandas", "pyarrow", "scipy", "tqdm", "yaml"):
    pytest.importorskip(name)

import scipy.stats  # noqa: E402
from sinew import cli  # noqa: E402
from sinew.sweep import Table, read  # noqa: E402
from sinew.sweep.command import _table, add_arguments  # noqa: E402
from sinew.sweep.job import Job, jobs_of  # noqa: E402
from sinew.sweep.judge import met, time_to_success, worst  # noqa: E402
from sinew.sweep.local import _receive, play_here  # noqa: E402
from sinew.sweep.play import attempt, play  # noqa: E402
from sinew.sweep.report import text_of  # noqa: E402
from sinew.sweep.store import Store  # noqa: E402
from sinew.sweep.summary import mean_interval, success_interval, summary  # noqa: E402
from sinew.task import Measure  # noqa: E402

import scenes  # noqa: E402
from sweeps import keys, numbers  # noqa: E402

# A ball that a motor presses on a floor, which yields more in the robot than in the planner.
PRESS = """<mujoco>
  <option timestep="0.005"/>
  <worldbody>
    <geom type="plane" size="1 1 .1"/>
    <body name="ball" pos="0 0 .099"><joint name="lift" type="slide" axis="0 0 1"/><geom size=".1" mass="1"/>
      <site name="top" pos="0 0 .1"/></body>
  </worldbody>
  <actuator><motor joint="lift" gear="50" ctrllimited="true" ctrlrange="-1 1"/></actuator>
</mujoco>"""
PRESS_TASK = """
description: a ball is pressed on the floor
model: press.xml
plant: {solref: [0.05, 1], solimp: [0.2, 0.9, 0.01, 0.5, 2]}
perturb: {joints: 0.01, plan: 0.2}
settings: {planner: adam, horizon: 16, adam_iterations: 3, adam_rate: 0.1}
terms:
  - {name: depth, residual: {position: {site: top}}, target: [0, 0, 0.19], norm: euclidean, width: 0.01}
  - {name: effort, residual: {control: all}, weight: 0.001}
success:
  - {name: pressed, term: depth, below: 0.02, during: 0.05}
"""


@pytest.fixture(scope="module")
def press(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("press")
    (folder / "press.xml").write_text(PRESS)
    (folder / "press.yaml").write_text(PRESS_TASK)
    return {"tasks": [str(folder / "press.yaml")], "models": [str(folder)]}


def one_job(**content: Any) -> Job:
    (job,) = jobs_of(Table.of(content))
    return job


# ---- one run ----


@pytest.mark.parametrize("name", ["arm_reach", "press"])
def test_a_run_is_the_loop_written_out(name: str, press: dict[str, Any]) -> None:
    settings = {"planner": "adam", "horizon": 24, "adam_iterations": 2}
    own = press if name == "press" else {"tasks": "arm_reach"}
    job = one_job(**own, planners={"p": settings}, seconds=0.4, execute=10, seeds=3, iterations=4)
    result = play(job).result

    # The same by MuJoCo and a planner.
    path = own["tasks"][0] if name == "press" else "arm_reach"
    file = Path(press["models"][0], "press.xml") if name == "press" else sinew.share("models/arm_reach.xml")
    task = sinew.Task(path)
    planner = sinew.planner.Planner(sinew.Model.from_xml(file), task, threads=2, settings=settings, seed=3)
    m = mujoco.MjModel.from_xml_path(str(file))
    m.opt.timestep = 0.005
    if name == "press":
        m.geom_solref[:], m.geom_solimp[:] = (0.05, 1), (0.2, 0.9, 0.01, 0.5, 2)
    d = mujoco.MjData(m)
    d.qpos, d.qvel, d.act = planner.initial.qpos, planner.initial.qvel, planner.initial.act
    mujoco.mj_forward(m, d)
    cost, values, inner = [], [], []
    for step in range(80):
        if step % 10 == 0:
            inner.append(planner.plan(d, iterations=4).iterations)
        cost.append(planner.evaluate(d, np.zeros((0, m.nu))).cost)
        values += planner.measure(d).values()
        d.ctrl = planner.control(d.time)
        mujoco.mj_step(m, d)
    cost.append(planner.evaluate(d, np.zeros((0, m.nu))).cost)
    values += planner.measure(d).values()

    assert result["cost_mean"] == np.mean(cost) and result["cost_end"] == cost[-1]
    (measure,) = task.measures
    assert result[f"end: {measure.name}"] == values[-1]
    latest = values[-1 - round(measure.during / 0.005) :]
    assert result["success"] == (measure.during < 0.4 and max(latest) <= measure.below)
    assert result["success"] == (name == "press")  # both happen
    assert result["iterations_mean"] == np.mean(inner) == 4 and result["plans"] == 8
    assert result["simulated"] == d.time and not result["diverged"]


def test_the_contacts_of_the_robot_count(press: dict[str, Any]) -> None:
    job = one_job(**press, seconds=0.3)
    firm = replace(job, text=job.text.replace("plant:", "# plant:"))
    assert play(job).result["cost_mean"] != play(firm).result["cost_mean"]


@pytest.mark.parametrize("name", sinew.planner.settings()["planner"].choices or ())
def test_a_budget_of_time_is_the_only_bound_of_each_planner(name: str) -> None:
    # Of so short a horizon every planner makes more iterations in 0.3 s than its own setting allows.
    bounds = {x: 2 for x, known in sinew.planner.settings().items() if x.endswith("iterations") and known.lowest == 0}
    planner = {name: {"planner": name, "horizon": 8, "candidates": 4, **bounds}}
    result = play(one_job(tasks="arm_reach", planners=planner, seconds=0.005, budget=0.3)).result
    assert result["plans"] == 1 and result["iterations_mean"] > 2


def test_plans_that_failed_are_those_that_were_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    job = one_job(tasks="arm_reach", seconds=0.2, execute=10, iterations=1)  # 40 steps: none is wanted at the end
    result = play(job).result
    assert result["plans"] == 4 and result["plans_failed"] == 0
    monkeypatch.setattr("sinew.loop.lockstep._plan", lambda *_: None)
    result = play(job).result
    assert result["plans"] == 0 and result["plans_failed"] == 4


def test_a_run_within_a_budget_of_time() -> None:
    result = play(one_job(tasks="arm_reach", planners="adam", seconds=0.1, budget=0.02)).result
    assert result["plans"] == 2 and result["plans_failed"] == 0
    assert np.isfinite(result["latency_max"]) and result["iterations_mean"] >= 0


@pytest.mark.parametrize("limits", [{"budget": 0.001}, {"iterations": 2}])
def test_a_trace_has_what_plans_expected(limits: dict[str, Any]) -> None:
    """MuJoCo's motion under them is it, whatever the limit: a budget leaves the planner no time for its states."""
    job = one_job(tasks="arm_reach", planners="adam", seconds=0.16, **limits)
    trace = play(job, keep=True).trace
    assert trace is not None and trace["ghost_places"].shape == (2, 49, 1, 3)
    m = mujoco.MjModel.from_xml_path(str(sinew.share("models/arm_reach.xml")))
    d = mujoco.MjData(m)
    for plan, start in enumerate((0, 16)):
        d.qpos, d.qvel, d.act = (trace[name][start] for name in ("qpos", "qvel", "act"))
        for step in range(16):  # these controls of the plan are in force
            np.testing.assert_allclose(trace["ghost_qpos"][plan, step], d.qpos, atol=1e-12)
            d.ctrl = trace["ctrl"][start + step]
            mujoco.mj_step(m, d)


def test_a_trace_has_what_happened() -> None:
    job = one_job(tasks="arm_reach", seconds=0.2, iterations=2, planners="adam")
    played = play(job, keep=True)
    trace = played.trace
    assert trace is not None and play(job).result["cost_mean"] == played.result["cost_mean"]
    m = mujoco.MjModel.from_xml_path(str(sinew.share("models/arm_reach.xml")))
    d = mujoco.MjData(m)
    assert trace["time"].shape == (41,) and trace["act"].shape == (41, 6)
    np.testing.assert_allclose(trace["time"], 0.005 * np.arange(41), atol=1e-12)
    d.qpos = trace["qpos"][17]
    mujoco.mj_kinematics(m, d)
    np.testing.assert_array_equal(trace["places"][17, 0], d.site("hand").xpos)
    assert list(trace["place_names"]) == ["hand"]
    assert list(trace["term_names"]) == list(scenes.REACH_TERMS)
    np.testing.assert_allclose(trace["plan_terms"].sum(axis=1), trace["plan_cost"], rtol=1e-12)
    assert trace["ghost_places"].shape == (3, 49, 1, 3)
    np.testing.assert_array_equal(trace["ghost_qpos"][0, 0], trace["qpos"][0])


# ---- judging ----


def test_success_and_its_time_against_the_words() -> None:
    rng = np.random.default_rng(1)
    outcomes = set()
    for _ in range(300):
        time = np.arange(1, 30) * 0.1 - 0.1
        measures = [Measure("a", 0.7, rng.choice([0, 0.2, 0.35, 1.0])), Measure("b", 0.8, 0.1)]
        values = rng.uniform(0, 1, (29, 2)) ** 2
        values[rng.integers(29), 0] = np.nan if rng.random() < 0.2 else 0
        good = met(time, values, measures)
        for i in range(29):
            window = [
                values[j, k] <= x.below and time[i] >= x.during
                for k, x in enumerate(measures)
                for j in range(i + 1)
                if time[j] >= time[i] - x.during - 1e-9
            ]
            assert good[i] == all(window)
        first = time_to_success(time, good)
        assert np.isnan(first) if not good.any() else first == min(time[good])
        last = values[time >= time[-1] - measures[0].during - 1e-9, 0]
        np.testing.assert_equal(worst(time, values[:, 0], measures[0]), np.max(last))
        outcomes.add(bool(good[-1]))
    assert outcomes == {True, False}
    assert not met(time, np.zeros((29, 0)), []).any()


def test_intervals_against_scipy_and_the_formula() -> None:
    for k, n in [(0, 1), (1, 1), (3, 7), (16, 16), (99, 200)]:
        low, high = success_interval(k, n)
        z = scipy.stats.norm.ppf(0.975)
        for p in (low, high):  # Wilson's limits: where the observed share is z standard errors away
            assert abs(abs(k / n - p) - z * np.sqrt(p * (1 - p) / n)) < 1e-12
        assert low <= k / n <= high
    rng = np.random.default_rng(2)
    for n in (2, 3, 30):
        x = rng.normal(3, 2, n)
        expected = scipy.stats.ttest_1samp(x, 0).confidence_interval(0.95)
        np.testing.assert_allclose(mean_interval(x), (x.mean(), expected.low, expected.high), rtol=1e-12)
    assert np.isnan(mean_interval([1.0])[1:]).all() and np.isnan(mean_interval([])[0])
    with pytest.raises(ArgumentError, match="2 successes of 1 runs"):
        success_interval(2, 1)


# ---- tables ----


def test_a_table_is_the_product_and_the_rows_beside_it(tmp_path: Path) -> None:
    (tmp_path / "table.yaml").write_text("""
tasks: [arm_reach, own/task.yaml]
planners: {a: {planner: adam, cfd_friction: on}, sampling-8: {candidates: 8}}
settings: {horizon: [32, 48], adam_rate: 1e-2}
seeds: 1-3
iterations: 2
runs:
  - {tasks: billiard, planners: [sampling-16, task], seeds: [7, "9,11-12"], settings: {}}
  - {seeds: 2, planners: {a: {planner: adam, cfd_friction: on}}}
""")
    runs = Table.load(tmp_path / "table.yaml").runs
    assert len(runs) == 2 * 2 * 2 * 3 + 2 * 4 == len(set(runs))
    assert {x.task for x in runs} == {"arm_reach", str(tmp_path / "own/task.yaml"), "billiard"}
    assert runs[0].all_settings == {"planner": "adam", "cfd_friction": "on", "horizon": 32, "adam_rate": 0.01}
    assert {x.seed for x in runs if x.task == "billiard"} == {7, 9, 11, 12}
    assert dict(runs[-8].planner_settings) == {"planner": "sampling", "candidates": 16, "noise": "brown"}
    assert {x.seed for x in Table.load(tmp_path / "table.yaml", {"seeds": 5}).runs if x.task != "billiard"} == {2, 5}


def test_every_planner_is_known() -> None:
    kinds = sinew.planner.settings()["planner"].choices or ()
    assert len(kinds) > 6
    runs = Table.of({"tasks": "arm_reach", "planners": [*kinds, "task", "adam+cfd"]}).runs
    own = {run.planner: dict(run.planner_settings) for run in runs}
    assert own["adam"] == {"planner": "adam", "cfd": "none"} and own["task"] == {}
    assert all(own[kind] == {"planner": kind} for kind in kinds if kind != "adam")


def test_a_time_grid_has_commas() -> None:
    (run,) = _table(_arguments(["--tasks", "arm_reach", "--set", "grid=16x1,16x2", "--out", "x"])).runs
    assert run.all_settings == {"grid": "16x1,16x2"}
    runs = Table.of({"tasks": "arm_reach", "settings": {"grid": ["16x1,16x2", ""]}}).runs
    assert [run.all_settings["grid"] for run in runs] == ["16x1,16x2", ""]


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(words)


@pytest.mark.parametrize(
    ("content", "error", "text"),
    [
        ({}, ArgumentError, "tasks: none is named"),
        ({"task": "arm_reach"}, ArgumentError, "there is no 'task'; did you mean 'tasks'"),
        ({"tasks": 3}, ArgumentError, "tasks: 3"),
        ({"tasks": "a", "seeds": "3-1"}, ArgumentError, "seeds: '3-1'"),
        ({"tasks": "a", "seeds": []}, ArgumentError, "seeds: none"),
        ({"tasks": "a", "seeds": -1}, ArgumentError, "seeds: -1"),
        ({"tasks": "a", "planners": "newton"}, NotFoundError, "'newton', expected task, adam"),
        ({"tasks": "a", "planners": {"p": 3}}, ArgumentError, "planners, p: 3"),
        ({"tasks": "a", "settings": {"horizn": 3}}, NotFoundError, "did you mean 'horizon'"),
        ({"tasks": "a", "settings": {"horizon": [8, 1]}}, ArgumentError, "horizon: 1, expected a number from 2"),
        ({"tasks": "a", "settings": {"noise": "green"}}, ArgumentError, "one of white, pink"),
        ({"tasks": "a", "settings": [3]}, ArgumentError, "settings"),
        ({"tasks": "a", "seconds": "long"}, ArgumentError, "seconds: 'long'"),
        ({"tasks": "a", "execute": 1.5}, ArgumentError, "execute: 1.5"),
        ({"tasks": "a", "iterations": 2, "budget": 0.1}, ArgumentError, "not both"),
        ({"tasks": "a", "runs": [3]}, ArgumentError, "runs, row 1"),
        ({"tasks": "a", "seconds": []}, ArgumentError, "seconds: none is named"),
        ({"tasks": "a", "planners": {}}, ArgumentError, "planners: none is named"),
        ({"tasks": "a", "settings": {"horizon": []}}, ArgumentError, "settings, horizon: no value"),
        ({"runs": [{"tasks": "a", "sedes": 3}]}, ArgumentError, "did you mean 'seeds'"),
    ],
)
def test_wrong_tables(content: dict[str, Any], error: type[SinewError], text: str) -> None:
    with pytest.raises(error, match=text):
        Table.of(content)


def test_a_run_that_diverges_costs_infinity() -> None:
    """What it cost until then may be less than what whole runs cost."""
    pd = pytest.importorskip("pandas")
    group = {"task": "t", "planner": "p", "settings": "", "seconds": 1.0, "execute": 16, "iterations": 1, "budget": 0.0}
    whole = {**group, "error": "", "success": False, "diverged": False, "cost_mean": 1.0, "cost_end": 1.0}
    runs = pd.DataFrame([whole, {**whole, "diverged": True, "cost_mean": 0.1, "cost_end": 0.1}])
    figures = summary(runs)
    assert figures["diverged"].tolist() == [1] and figures["cost_mean"].tolist() == [np.inf]
    text = text_of(figures)
    assert " inf " in text and text.endswith("Runs that diverged, whose costs are infinite: 1.")
    text = text_of(summary(runs.head(1)))
    assert "inf" not in text.replace("infinite", "") and "diverged" not in text


def test_wrong_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "table.yaml"
    with pytest.raises(FileError, match=r"^[^ ]*table\.yaml: No such file or directory$"):
        Table.load(table)
    for text, error in [("tasks: [", FormatError), ("- 1", FormatError), ("tasks: a\nseeds: x", ArgumentError)]:
        table.write_text(text)
        with pytest.raises(error, match=r"table\.yaml: "):
            Table.load(table)
    out = ["-o", str(tmp_path / "run")]
    for arguments, text in [
        (["--tasks", "arm_raech"], "arm_raech"),
        ([], "a table or --tasks is needed"),
        (["--tasks", "arm_reach", "--set", "horizon"], "--set horizon"),
        (["--tasks", "arm_reach", "--jobs", "-1"], "--jobs -1"),
        (
            ["--tasks", "arm_reach", "--set", "horizon=8", "--set", "horizon=16"],
            "horizon is set twice",
        ),
    ]:
        assert cli.main(["sweep", *out, *arguments]) == 1
        said = capsys.readouterr().err
        assert said.startswith("sinew sweep: ") and text in said and said.count("\n") == 1
    with pytest.raises(NotFoundError, match=r"no runs\.parquet"):
        read(tmp_path)


# ---- many runs ----


ARGUMENTS = "--tasks arm_reach --planners adam,sampling-8 --set horizon=8,16 --seeds 1-4 --seconds 0.2 --iterations 2"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a sweep that nothing has disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    assert cli.main(["sweep", "-o", str(folder), *ARGUMENTS.split(), "--jobs", "1", "--csv"]) == 0
    return folder


def test_every_run_is_there_once(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = read(whole)
    assert len(table) == 16 == len(set(table["key"])) == len(keys(whole)) and set(table["key"]) == set(keys(whole))
    assert sorted(zip(table["planner"], table["set: horizon"], table["seed"], strict=True)) == sorted(
        (p, h, s) for p in ("adam", "sampling-8") for h in (8, 16) for s in range(1, 5)
    )
    with open(whole / "runs.csv") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["cost_end"]) for row in rows] == list(table["cost_end"])
    assert table["cost_end"].nunique() == 16  # no two of them are the same run
    for job in jobs_of(Table.of({"tasks": "arm_reach", "planners": "adam", "settings": {"horizon": 16}, "seeds": 2})):
        row = table[(table["planner"] == "adam") & (table["set: horizon"] == 16) & (table["seed"] == 2)].iloc[0]
        same = attempt(replace(job, run=replace(job.run, seconds=0.2, iterations=2)), False)
        assert not isinstance(same, str) and same.result["cost_mean"] == row["cost_mean"]
        assert same.curve["cost"] == list(row["curve_cost"]) and same.curve["time"] == list(row["curve_time"])

    # The same command again runs nothing, and says as much; with more seeds it runs those.
    written = (whole / "runs.jsonl").stat().st_size
    assert cli.main(["sweep", "-o", str(whole), *ARGUMENTS.split(), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["runs"], said["done_before"], said["errors"]) == (16, 16, 0)
    assert written == (whole / "runs.jsonl").stat().st_size
    assert {row["settings"] for row in said["summary"]} == {"horizon=8", "horizon=16"}
    for row in said["summary"]:
        part = table[(table["planner"] == row["planner"]) & (table["settings"] == row["settings"])]
        np.testing.assert_allclose(row["cost_mean"], part["cost_mean"].mean(), rtol=1e-14)
        assert (row["runs"], row["successes"], row["time_to_success"]) == (4, 0, None)
    assert cli.main(["sweep", "-o", str(whole), *ARGUMENTS.split()]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:4] == ["task", "planner", "settings", "solved"] and len(lines[1:5]) == 4
    assert all("0/4" in line for line in lines[1:5]) and "16 runs, 16 of them done before" in lines[-1]


def test_errors_of_runs_are_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "table.yaml").write_text(
        "{tasks: arm_reach, seconds: 0.1, planners: {ends: {planner: adam, adam_iterations: 1},"
        " endless: {planner: adam, adam_iterations: 0}}, seeds: 1-2}"
    )
    for _ in range(2):  # what has an error is tried again
        assert cli.main(["sweep", str(tmp_path / "table.yaml"), "-o", str(tmp_path / "run")]) == 1
        said = capsys.readouterr()
        assert "2 of 4 runs have an error" in said.err and said.err.count("ArgumentError") == 2
    table = read(tmp_path / "run")
    assert list(table["error"] != "") == [False, False, True, True] and len(keys(tmp_path / "run")) == 6
    good, bad = summary(table).to_dict("records")
    assert (good["errors"], bad["errors"], bad["runs"]) == (0, 2, 2) and np.isnan(bad["cost_mean"])


class Bomb:
    """Ends the process that gets it."""

    def __reduce__(self) -> Any:
        return os._exit, (3,)


def test_a_process_that_ends_takes_no_other_run_along() -> None:
    jobs = jobs_of(Table.of({"tasks": "arm_reach", "seconds": 0.05, "seeds": "1-3", "iterations": 1}))
    jobs[1] = replace(jobs[1], run=Bomb())  # type: ignore[arg-type]
    got = {job.key: played for job, played in play_here(jobs, 2, keep=False)}
    assert len(got) == 3 and got[jobs[1].key] == "the process ended with status 3"
    for job in (jobs[0], jobs[2]):
        played = got[job.key]
        assert not isinstance(played, str) and played.result["cost_mean"] == play(job).result["cost_mean"]


def test_a_process_that_ends_while_it_says_what_came(monkeypatch: pytest.MonkeyPatch) -> None:
    process = multiprocessing.get_context("spawn").Process(target=os._exit, args=(9,))
    process.start()
    receiver, sender = multiprocessing.Pipe(duplex=False)
    os.write(sender.fileno(), struct.pack("!i", 1000) + b"the begin")
    sender.close()
    assert _receive(receiver, process) == "the process ended with status 9"
    assert receiver.closed


def test_a_full_disk_is_said(tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))

    command = [sys.executable, "-m", "sinew", "sweep", "-o", str(tmp_path), *ARGUMENTS.split(), "--jobs", "2"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, preexec_fn=limit)
    assert ended.returncode == 1
    assert f"sinew sweep: {tmp_path}/runs." in ended.stderr and "cannot be written: " in ended.stderr
    assert "File too large" in ended.stderr and "Traceback" not in ended.stderr
    assert cli.main(["sweep", "-o", str(tmp_path), *ARGUMENTS.split()]) == 0
    assert len(read(tmp_path)) == 16


def start(folder: Path, mark: str) -> subprocess.Popen[bytes]:
    """Start a sweep, wait until a few runs are done."""
    command = [sys.executable, "-m", "sinew", "sweep", "-o", str(folder), *ARGUMENTS.split(), "--jobs", "2"]
    environment = {**os.environ, "SINEW_TEST": mark}
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # where it is ignored, the child would do so, too
    child = subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, start_new_session=True)
    signal.signal(signal.SIGINT, before)
    until = time.monotonic() + 60
    lines = folder / "runs.jsonl"
    while not (lines.exists() and lines.read_bytes().count(b"\n") >= 3):
        assert child.poll() is None and time.monotonic() < until
        time.sleep(0.005)
    return child


def marked(mark: str) -> list[int]:
    """Return the processes that have the mark in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except (OSError, PermissionError):
            continue
    return found


def wait_until_gone(mark: str) -> None:
    until = time.monotonic() + 20
    while marked(mark):
        assert time.monotonic() < until, f"processes {marked(mark)} are still there"
        time.sleep(0.05)


@pytest.mark.parametrize("with_signal", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM], ids=lambda x: x.name)
def test_a_sweep_that_ended_early_goes_on(with_signal: signal.Signals, whole: Path, tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    child = start(tmp_path, mark)
    if with_signal == signal.SIGKILL:
        child.kill()
    else:
        os.killpg(child.pid, with_signal)  # as a terminal does, or `timeout`
    _, said = child.communicate(timeout=60)
    assert child.returncode == (-9 if with_signal == signal.SIGKILL else 130), said.decode()
    wait_until_gone(mark)
    if with_signal == signal.SIGKILL:  # while a line was written
        text = (tmp_path / "runs.jsonl").read_bytes()
        (tmp_path / "runs.jsonl").write_bytes(text[: -len(text.splitlines()[-1]) // 2])
    else:
        assert len(read(tmp_path)) == len(keys(tmp_path)) < 16
    with Store(tmp_path) as store:
        before = set(store.done)
        assert 2 <= len(before) < 16
        with pytest.raises(StateError, match="another sweep writes there"):
            Store(tmp_path)
    assert cli.main(["sweep", "-o", str(tmp_path), *ARGUMENTS.split()]) == 0
    lines = [line for line in (tmp_path / "runs.jsonl").read_bytes().splitlines() if line.endswith(b"}")]
    written = [json.loads(line)["key"] for line in lines if line.startswith(b'{"key"')]
    assert sorted(written) == sorted(set(keys(whole))) and set(written[: len(before)]) == before
    assert numbers(tmp_path) == numbers(whole)


def test_without_a_run_there_is_no_table(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        assert len(store.table([])) == 0
    with pytest.raises(NotFoundError, match=r"no runs\.parquet"):
        read(tmp_path)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="file"):
        Store(tmp_path / "file")
