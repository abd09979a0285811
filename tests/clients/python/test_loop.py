"""The body that plans move, and the closed loop in which it waits for them."""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
import sinew
from sinew.client import Daemon
from sinew.errors import ArgumentError, FormatError, NotFoundError
from sinew.loop.body import Body
from sinew.loop.lockstep import lockstep
from sinew.loop.places import find_model, load_model
from sinew.loop.ration import Ration
from sinew.task import Plant

from scenes import ROOT, ZOO
from sources import FakeSource

PLANT = ROOT / "build/release/bin/sinew-plant"


def zoo() -> mujoco.MjModel:
    """Return a model with something of every kind."""
    return mujoco.MjModel.from_xml_string(ZOO)


def test_model_files(tmp_path: Path, models: Path) -> None:
    file = models / "arm_reach.xml"
    assert find_model("arm_reach.xml", str(file)) == file
    assert find_model("arm_reach") == find_model("arm_reach.xml", "/elsewhere/arm_reach.xml")
    with pytest.raises(NotFoundError, match=r"'none\.xml' is in none of /elsewhere/none\.xml, "):
        find_model("none.xml", "/elsewhere/none.xml")
    with pytest.raises(NotFoundError, match="no such file"):
        load_model(tmp_path / "none.xml")
    (tmp_path / "bad.xml").write_text("<mujoco><worldbody><bodi/></worldbody></mujoco>")
    with pytest.raises(FormatError, match=r"(?s)bad\.xml: .*bodi.*line 1"):
        load_model(tmp_path / "bad.xml")
    (tmp_path / "bad.mjb").write_bytes(b"no model")
    with pytest.raises(FormatError, match=r"bad\.mjb"):
        load_model(tmp_path / "bad.mjb")
    mujoco.mj_saveModel(zoo(), str(tmp_path / "zoo.mjb"))
    assert load_model(tmp_path / "zoo.mjb").nq == zoo().nq


def test_myosuite_models_are_found(myosuite: Path) -> None:
    name = "myosuite/envs/myo/assets/hand/myohand_baoding.xml"
    assert find_model(name, "/elsewhere") == myosuite.parent / name


@pytest.mark.parametrize("name", ["dm_control/suite/walker.xml", "gymnasium/envs/mujoco/assets/ant.xml"])
def test_models_of_fetched_packages_are_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(NotFoundError, match=r"clients/setup\.sh --models"):
        find_model(name)
    version = {"dm_control": "dm_control-1.0.50", "gymnasium": "gymnasium-1.4.0"}[name.partition("/")[0]]
    file = tmp_path / "sinew" / version / name
    file.parent.mkdir(parents=True)
    file.touch()
    assert find_model(name) == file


def test_a_body_steps_as_mujoco(models: Path) -> None:
    model = load_model(models / "arm_reach.xml")
    body, data = Body(model, timestep=0.004), mujoco.MjData(model)
    model.opt.timestep = 0.004
    mujoco.mj_resetDataKeyframe(model, data, 0)
    body.reset(sinew.State.of(data))
    rng = np.random.default_rng(3)
    for ctrl in rng.uniform(0, 1, (50, model.nu)):
        data.ctrl = ctrl
        mujoco.mj_step(model, data)
        assert body.step(ctrl)
    state = body.state
    assert state.time == pytest.approx(0.2)
    for name in ("qpos", "qvel", "act"):
        assert np.array_equal(getattr(state, name), getattr(data, name))
    body.step()
    assert np.array_equal(body.data.ctrl, data.ctrl)  # as before
    assert np.array_equal(state.qpos, data.qpos)  # a copy


def test_all_of_a_state_is_set() -> None:
    body = Body(zoo())
    rng = np.random.default_rng(1)
    m = body.model
    state = sinew.State(m.qpos0, rng.normal(size=m.nv), rng.uniform(size=m.na), 1.5, rng.normal(size=(m.nmocap, 7)))
    body.reset(state)
    for name in ("qpos", "qvel", "act", "time", "mocap"):
        assert np.array_equal(getattr(body.state, name), getattr(state, name)), name


def test_contacts_of_the_plant() -> None:
    nan = float("nan")
    model = zoo()
    body = Body(model, plant=Plant((0.03, nan), (nan, 0.9, nan, nan, 3)))
    assert (body.model.geom_solref[:, 0] == 0.03).all()
    assert np.array_equal(body.model.geom_solref[:, 1], model.geom_solref[:, 1])
    assert (body.model.geom_solimp[:, [1, 4]] == [0.9, 3]).all()
    assert np.array_equal(body.model.geom_solimp[:, [0, 2, 3]], model.geom_solimp[:, [0, 2, 3]])


def test_the_body_of_a_task_has_the_tasks_contacts_and_time_step(myosuite: Path) -> None:
    with sinew.serve() as daemon, daemon.client(timeout=120) as client:
        task = client.describe_task("hand_balls")
    assert Path(task.model.file).is_relative_to(myosuite)
    body = Body.of_task(task)
    own = load_model(find_model(task.model.model))
    assert body.timestep == task.model.timestep == 0.0025
    assert np.array_equal(body.model.geom_solimp, np.tile(task.plant.solimp, (own.ngeom, 1)))
    assert not np.array_equal(own.geom_solimp, body.model.geom_solimp)
    assert np.array_equal(body.state.qpos, task.initial.qpos)


def test_a_push_is_a_force_at_a_point() -> None:
    body = Body(zoo())
    model = body.model
    crate = model.body("crate").id
    data = mujoco.MjData(model)
    point, force = np.array([0.1, 0.15, 0.2]), np.array([3.0, -2.0, 9.0])
    body.push(crate, point, force)
    for _ in range(40):
        mujoco.mj_forward(model, data)
        at = data.xpos[crate] + data.xmat[crate].reshape(3, 3) @ point
        data.qfrc_applied[:] = 0
        mujoco.mj_applyFT(model, data, force, np.zeros(3), at, crate, data.qfrc_applied)
        mujoco.mj_step(model, data)
        body.step()
    assert abs(data.qvel).max() > 0.5
    assert np.allclose(body.data.qpos, data.qpos, atol=1e-9, rtol=0)
    assert np.allclose(body.data.qvel, data.qvel, atol=1e-7, rtol=0)
    body.push(crate)
    assert not body.data.xfrc_applied.any()
    for wrong in (
        (0, point, force),
        (model.nbody, point, force),
        (crate, [1, 2], force),
        (crate, point, [0, 0, np.inf]),
    ):
        with pytest.raises(ArgumentError):
            body.push(*wrong)


def test_a_body_that_diverges_says_so(
    caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    body = Body(zoo())
    body.data.qvel[:] = 1e12
    assert not body.step()
    assert body.diverged
    assert "MuJoCo warns: " in caplog.text
    assert not list(tmp_path.iterdir())
    body.reset()
    assert body.step()
    assert not body.diverged


def test_another_model_than_the_daemons_is_refused(client: sinew.Client, models: Path) -> None:
    task = client.describe_task("arm_reach")
    other = replace(task, model=replace(task.model, file=str(models / "billiard.xml")))
    with pytest.raises(ArgumentError, match=r"billiard\.xml is not the daemon's model arm_reach: nq is "):
        Body.of_task(other)


def test_lockstep_reaches_the_target_and_depends_on_the_seed_alone(client: sinew.Client) -> None:
    settings = {"adam_iterations": 12}
    runs = []
    for seed in (1, 1, 2):
        with client.open("arm_reach", seed, settings) as session:
            body = Body.of_task(session.task)
            body.reset(session.initial)
            moments = list(lockstep(body, session, 500))
            assert len(moments) == 501
            assert [i for i, moment in enumerate(moments) if moment.plan] == list(range(0, 500, 16))
            first, last = (session.evaluate(moment.state) for moment in (moments[0], moments[-1]))
            print(f"seed {seed}: cost {first.cost:.4f} to {last.cost:.4f}, {last.measures[0]}")
            assert last.measures[0].value < 0.04
            assert last.cost < 0.2 * first.cost
            runs.append(np.array([moment.state.qpos for moment in moments]))
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


def test_lockstep_with_a_planner_in_the_process_is_the_daemons(client: sinew.Client) -> None:
    model, task = sinew.Model.from_xml(sinew.share("models/arm_reach.xml")), sinew.Task("arm_reach")
    planner = sinew.planner.Planner(model, task, seed=4)
    with client.open("arm_reach", 4) as session:
        one, other = Body.of_task(session.task), Body.of_task(session.task)
        one.reset(planner.initial)
        other.reset(session.initial)
        for here, there in zip(
            lockstep(one, planner, 64, 8, iterations=4), lockstep(other, session, 64, 8, iterations=4), strict=True
        ):
            assert np.array_equal(here.ctrl, there.ctrl)
            assert np.array_equal(here.state.qpos, there.state.qpos)


@pytest.mark.skipif(not PLANT.exists(), reason="no build/release of sinew-plant")
def test_the_body_moves_as_that_of_sinew_plant(daemon: Daemon, client: sinew.Client, tmp_path: Path) -> None:
    data = tmp_path / "run.data"
    command = [PLANT, f"--endpoint={daemon.endpoint}", "--task=arm_reach", "--seed=3", "--set=adam_iterations=6"]
    subprocess.run([*command, "--execute=8", "--seconds=1", f"--data={data}", "--quiet", "--json"], check=True)
    names = shlex.split(data.read_text().partition("\n")[0])
    columns = dict(zip(names, np.loadtxt(data, skiprows=1).T, strict=True))  # with at least six digits
    with client.open("arm_reach", 3, {"adam_iterations": 6}) as session:
        body = Body.of_task(session.task)
        body.reset(session.initial)
        moments = list(lockstep(body, session, 200, 8))
        judged = [session.evaluate(moment.state) for moment in moments]
    costs = [[x.cost, x.measures[0].value] for x in judged]
    assert np.allclose(columns["time"], [moment.state.time for moment in moments], rtol=1e-5)
    assert np.allclose(np.transpose([columns["cost"], columns["hand_at_target"]]), costs, rtol=1e-8)
    controls = np.transpose([columns[f"ctrl{i}"] for i in range(len(moments[0].ctrl))])
    assert np.allclose(controls, [moment.ctrl for moment in moments], rtol=1e-5, atol=1e-12)


def test_a_fake_source_moves() -> None:
    source = FakeSource()
    first, second = source.latest(), source.latest()
    assert first.number != second.number
    assert not np.array_equal(first.qpos, second.qpos)
    assert source.tune(weights={"reach": 3.0}, adam_rate=0.5).planner["adam_rate"] == 0.5
    assert source.latest().config.terms[0].weight == 3.0
    assert source.history().time.shape == source.history().series["cost"].shape


@pytest.mark.parametrize(("cost", "share"), [(0.0005, 1 / 30), (0.02, 0.5)])
def test_states_are_asked_for_as_often_as_they_may_cost(cost: float, share: float) -> None:
    ration, times, now, plan = Ration(), [], 0.0, FakeSource().latest().plan
    for _ in range(2000):
        states = ration.due(now)
        times += [now] if states else []
        taken = 4 * 0.003 + (cost if states else 0.0)
        now += taken
        ration.learn(replace(plan, iterations=4, computing=taken, states=plan.states if states else None))
    gaps = np.diff(times)[10:]
    print(f"states cost {cost:g} s: every {gaps.mean():.3f} s")
    assert gaps.min() > 1 / 30 - 1e-9
    assert gaps.mean() == pytest.approx(share, rel=0.4)
