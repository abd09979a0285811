"""The example that distils a policy, short: recorded, trained, better than no plan at all, and refined."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import sinew

torch = pytest.importorskip("torch", reason="PyTorch is not there")
pytest.importorskip("mcap", reason="mcap is not there")
pytest.importorskip("yaml", reason="PyYAML is not there")

pytest.importorskip("tqdm", reason="tqdm is not there")

from sinew.learn import Physics, Worlds  # noqa: E402
from sinew.planner import Planner  # noqa: E402

EXAMPLE = Path(__file__).resolve().parents[3] / "clients" / "python" / "examples" / "learn" / "distill.py"
PENDULUM = """<mujoco>
  <option timestep="0.01" integrator="implicitfast"/>
  <worldbody>
    <body><joint name="a" axis="0 1 0" damping=".1"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/>
      <body pos=".3 0 0"><joint name="b" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .2 0 0" size=".02"/></body>
    </body>
  </worldbody>
  <actuator><motor name="one" joint="a" ctrlrange="-2 2"/><motor name="two" joint="b" ctrlrange="-1 3"/></actuator>
</mujoco>"""
SWING = """description: two links
model: none.xml
settings: {planner: adam, horizon: 12, knots: 4, iterations: 1}
terms:
  - {name: place, residual: {joint_position: [b, a]}, target: [0.3, -0.2], weight: 2, terminal: 3}
  - {name: speed, residual: {joint_velocity: all}, weight: 0.1, terminal: 0.2}
  - {name: effort, residual: {control: two}, target: 0.5, weight: 0.01}
"""


def run(folder: Path, *arguments: str) -> str:
    """Run a step and return what it prints."""
    command = [sys.executable, EXAMPLE, *arguments, "--folder", folder]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
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
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "no recordings with plans" in done.stderr


@pytest.mark.parametrize(("step", "ending"), [("measure", "onnx"), ("refine", "pt")])
def test_without_a_network(step: str, ending: str, tmp_path: Path) -> None:
    command = [sys.executable, EXAMPLE, step, "arm_reach", "--folder", tmp_path / "none"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert done.stderr == f"{tmp_path}/none/arm_reach.{ending}: there is no such network; train one first\n"


# ---- refine ----


@pytest.fixture
def refine(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(EXAMPLE.parent))
    return importlib.import_module("refine")


def planner_of(text: str) -> Planner:
    return Planner(sinew.Model.from_string(PENDULUM), sinew.Task(text))


def test_rewards_of_a_plan_add_up_to_its_cost(refine: ModuleType) -> None:
    planner, rng = planner_of(SWING), np.random.default_rng(1)
    plans = refine.Plans(planner, rng.uniform(-1, 1, (7, 4)), range(1, 4))
    worlds = Worlds(plans, 5, 1, Physics(1))
    begin, earned = worlds.bodies, torch.zeros(5, dtype=torch.float64)
    actions = torch.tensor(rng.uniform(-1, 1, (12, 5, 2)))
    for row in actions:
        assert not bool(worlds.steps.eq(12).any())
        step = worlds.step(row)
        earned += step.reward
    assert step.terminated.all()
    for k in range(5):
        state = {"qpos": begin.qpos[k].numpy(), "qvel": begin.qvel[k].numpy()}
        cost = planner.evaluate(state, plans.controls(actions[:, k]).numpy()).cost
        assert float(earned[k]) == pytest.approx(-cost, rel=1e-9)


def test_starts_are_those_of_seeds_and_of_recordings_pushed_or_not(refine: ModuleType) -> None:
    plans = refine.Plans(planner_of(SWING), np.full((2, 4), 0.7), range(1, 4))
    bodies = plans.start(400, torch.Generator().manual_seed(1))
    moving = bodies.qpos[:, 0] == 0.7
    pushed = moving & (bodies.qvel[:, 0] != 0.7)
    assert 150 < int(moving.sum()) < 250 and 60 < int(pushed.sum()) < 140
    assert float(bodies.qvel.abs()[~moving].max()) == 0 and 2 < float(bodies.qvel.abs()[pushed].max()) < 3.7


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("{joint_velocity: all}, weight: 0.1, terminal: 0.2", "{control_rate: all}", "term speed: refine knows states"),
        ("target: 0.5,", "target: 0.5, norm: smooth_abs, width: 1,", "term effort: refine knows squares"),
        ("terminal: 3}", "terminal: 3, side: above}", "term place: refine knows squares"),
    ],
)
def test_costs_that_it_does_not_know_are_refused(refine: ModuleType, old: str, new: str, why: str) -> None:
    with pytest.raises(SystemExit, match=why):
        refine.Plans(planner_of(SWING.replace(old, new)), np.zeros((2, 4)), range(1, 3))


def test_refined_in_short(tmp_path: Path) -> None:
    run(tmp_path, "record", "hand_pose", "--seeds", "1:2", "--seconds", "0.1", "--iterations", "4")
    run(tmp_path, "train", "hand_pose", "--epochs", "3", "--width", "16")
    told = run(tmp_path, "refine", "hand_pose", "--updates", "4")
    costs = re.search(r"hand_pose-refined.onnx: a plan of the policy costs (\S+), (\S+) before", told)
    assert costs and float(costs[1]) < float(costs[2]), told
    rows = json.loads(run(tmp_path, "measure", "hand_pose", "--seeds", "101:102", "--json"))
    first = {row["start"]: row for row in rows if not row["pushed"]}
    assert list(first) == ["shifted", "policy", "better", "refined"]
    assert first["refined"]["from_policy"] and first["refined"]["before"] != first["policy"]["before"]


def test_nothing_to_refine(tmp_path: Path) -> None:
    command = [sys.executable, EXAMPLE, "refine", "hand_pose", "--folder", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "hand_pose.pt: there is no such network; train one first" in done.stderr
