"""sinew.learn: SHAC's loss, targets and gradients, trainings that go on, refusals; beside Debian's PyTorch."""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
import math
import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import sinew
from sinew.errors import ArgumentError, DivergedError, FormatError, NotFoundError

from processes import run_example

torch = pytest.importorskip("torch", reason="PyTorch is not there")

from sinew.learn import (  # noqa: E402
    Bodies,
    Physics,
    Settings,
    Shac,
    Task,
    Worlds,
    checkpoint,
    evaluate,
    make_task,
    task_names,
    train,
)
from sinew.learn.networks import Normalizer  # noqa: E402
from sinew.learn.tasks import models  # noqa: E402
from sinew.learn.training import CHECKPOINT, LOG, STOPPED  # noqa: E402
from sinew.torch import rollout_and_ends  # noqa: E402

EXAMPLES = Path(__file__).resolve().parents[3] / "clients" / "python" / "examples" / "learn"

PUCK = """<mujoco>
  <option timestep="0.01" integrator="implicitfast"/>
  <worldbody>
    <geom type="plane" size="3 3 .1"/>
    <body name="puck" pos="0 0 .11">
      <joint name="x" type="slide" axis="1 0 0" damping=".2"/><joint name="z" type="slide" axis="0 0 1"/>
      <joint name="turn" type="hinge" axis="0 1 0" pos="0 0 .2"/>
      <geom type="capsule" fromto="-.1 0 0 .1 0 0" size=".1" mass="1"/><site name="middle"/>
    </body>
  </worldbody>
  <actuator><motor joint="x" gear="8" ctrlrange="-1 1"/></actuator>
  <sensor><framepos objtype="site" objname="middle"/></sensor>
</mujoco>"""


class Puck(Task):
    """A body that touches the ground is to come to x = 0.5 m. It fails beyond 0.9 m."""

    name = "puck"
    frame_skip = 4
    episode = 40

    def __init__(self, xml: str = PUCK) -> None:
        super().__init__(sinew.Model.from_string(xml))

    def pose(self, count: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        qpos = torch.zeros(count, 3, dtype=torch.float64)
        qpos[:, 0] = 0.6 * torch.rand(count, generator=generator, dtype=torch.float64) - 0.3
        return qpos, torch.zeros(count, 3, dtype=torch.float64)

    def observe(self, bodies: Bodies) -> torch.Tensor:
        return torch.cat([bodies.qpos, bodies.qvel, bodies.sensordata], dim=1)

    def reward(self, before: Bodies, after: Bodies, action: torch.Tensor) -> torch.Tensor:
        return 1 - (after.qpos[:, 0] - 0.5).square() - 0.01 * action.square().sum(1)

    def terminated(self, bodies: Bodies) -> torch.Tensor:
        return bodies.qpos[:, 0].detach() > 0.9


class Blind(Puck):
    """A task whose reward knows nothing of the actions."""

    name = "blind"

    def reward(self, before: Bodies, after: Bodies, action: torch.Tensor) -> torch.Tensor:
        return torch.ones(len(action), dtype=torch.float64)


class Broken(Puck):
    """A task whose return is NaN from the third iteration on."""

    name = "broken"
    calls = 0

    def reward(self, before: Bodies, after: Bodies, action: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return super().reward(before, after, action) * (math.nan if self.calls > 16 else 1.0)


SMALL = {"worlds": 6, "horizon": 8, "iterations": 6, "actor_layers": (16,), "critic_layers": (16,)}


def small(task: Task | None = None, threads: int = 1, **changes: object) -> Shac:
    return Shac(task or Puck(), Settings.of(SMALL, changes), Physics(threads))


def parameters(shac: Shac) -> torch.Tensor:
    return torch.cat([x.detach().flatten() for module in (shac.actor, shac.critic) for x in module.parameters()])


# ---- the loss, its gradient, the targets ----


def loss_at(shac: Shac, values: torch.Tensor, state: dict) -> torch.Tensor:
    """Return the actor's loss at values of its parameters, from the same states and with the same noise."""
    shac._load_moving(state)
    torch.nn.utils.vector_to_parameters(values, shac.actor.parameters())
    return shac.loss()[0]


@pytest.mark.parametrize(
    ("name", "contact"),
    [(name, "model") for name in ("puck", "hopper", "ant", "humanoid_stand", "myo_elbow_reach")]
    + [("quadruped", "mujoco"), ("quadruped", "sigmoid"), ("ant", "sigmoid")],
)
def test_the_gradient_of_the_return_is_that_of_differences(name: str, contact: str) -> None:
    task = Puck() if name == "puck" else make(name)
    shac = small(task, horizon=16, seed=3, contact=contact)
    physics = shac.worlds.physics  # whose solver does not stop before rounding
    shac.worlds.physics = dataclasses.replace(physics, options={**physics.options, "tolerance": 1e-14})
    for _ in range(2):
        shac.iterate()  # away from the first weights, and into episodes' ends
    state = shac._moving()
    values = torch.nn.utils.parameters_to_vector(shac.actor.parameters()).detach()
    with torch.no_grad():
        for x in shac.target.parameters():  # values of the future count
            x += 0.1 * torch.randn(x.shape, generator=torch.Generator().manual_seed(1), dtype=x.dtype)
    loss = loss_at(shac, values, state)
    gradient = torch.cat([x.flatten() for x in torch.autograd.grad(loss, shac.actor.parameters())])
    h = 1e-7 if name == "ant" else 1e-5  # farther off a foot of the ant lands elsewhere, and the return bends
    for seed in range(3):
        way = torch.randn(len(values), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        way /= way.norm()
        with torch.no_grad():
            sides = [float(loss_at(shac, values + x * way, state)) for x in (h, -h)]
        want = (sides[0] - sides[1]) / (2 * h)
        assert float(gradient @ way) == pytest.approx(want, rel=2e-4, abs=1e-7 * float(gradient.norm()) + 1e-9)


def make(name: str) -> Task:
    """Return a task whose model may not be on this machine."""
    try:
        return make_task(name)
    except NotFoundError as error:
        pytest.skip(str(error))


def test_loss_and_targets_are_those_of_their_formulas() -> None:
    shac = small(horizon=20, discount=0.9, trace=0.7, worlds=16)
    shac.worlds.steps = torch.arange(16) * 2  # some episodes are truncated in the horizon, others fail
    shac.worlds.bodies.qpos[:4, 0], shac.worlds.bodies.qvel[:4, 0] = 0.8, 1.0
    with torch.no_grad():
        for x in shac.target.parameters():
            x += 0.3
    loss, pieces = shac.loss()
    reward, value, ended = (
        np.stack([np.asarray(getattr(x, name)) for x in pieces]) for name in ("reward", "value", "ended")
    )
    assert 4 < ended.sum() < 100 and (value[ended] == 0).any() and (value[ended] != 0).any()
    targets = shac._targets(pieces).numpy()
    total = 0.0
    for world in range(16):
        begin = 0
        for end in [*np.flatnonzero(ended[:, world]).tolist(), 19]:
            if end < begin:
                continue
            weights = 0.9 ** np.arange(end - begin + 1)
            total += weights @ reward[begin : end + 1, world] + 0.9 * weights[-1] * value[end, world]
            for t in range(begin, end + 1):  # all lengths of looking ahead
                ahead = [
                    0.9 ** np.arange(n) @ reward[t : t + n, world] + 0.9**n * value[t + n - 1, world]
                    for n in range(1, end - t + 2)
                ]
                mixed = 0.3 * sum(0.7**k * x for k, x in enumerate(ahead[:-1])) + 0.7 ** (len(ahead) - 1) * ahead[-1]
                assert targets[t, world] == pytest.approx(mixed, rel=1e-12)
            begin = end + 1
    assert float(loss) == pytest.approx(-total / (20 * 16), rel=1e-12)


def test_derivatives_by_states_are_shortened() -> None:
    norms = []
    for limit in (0.0, 1e-3, 1e9):
        shac = small(state_gradient_limit=limit, seed=2)
        loss = shac.loss()[0]
        gradient = torch.autograd.grad(loss, shac.actor.parameters())
        norms.append(float(torch.cat([x.flatten() for x in gradient]).norm()))
    assert norms[1] < 0.9 * norms[0] and norms[2] == pytest.approx(norms[0], rel=1e-12)


def test_observations_are_normalised_by_all_that_were_seen() -> None:
    normalizer, rng = Normalizer(3), torch.Generator().manual_seed(1)
    parts = [torch.randn(n, 3, generator=rng, dtype=torch.float64) * 3 + 5 for n in (4, 100, 1)]
    for x in parts:
        normalizer.update(x)
    of = torch.cat(parts)
    assert torch.allclose(normalizer.mean, of.mean(0)) and torch.allclose(
        normalizer.variance, of.var(0, unbiased=False)
    )
    assert torch.allclose(normalizer(of).std(0, unbiased=False), torch.ones(3, dtype=torch.float64), atol=1e-4)


def test_rollouts_go_on_from_their_ends_to_the_bit() -> None:
    model = Puck().model
    ctrl = torch.tensor(np.random.default_rng(1).uniform(-1, 1, (3, 20, 1)))
    whole = rollout_and_ends(model, None, ctrl)[0]
    first, ends = rollout_and_ends(model, None, ctrl[:, :8])
    rest, after = rollout_and_ends(model, ends.state, ctrl[:, 8:])
    assert torch.equal(rest.qpos, whole.qpos[:, 8:]) and torch.equal(first.qvel, whole.qvel[:, :9])
    assert not after.diverged.any()
    qvel = torch.zeros(3, 3, dtype=torch.float64)
    qvel[1] = 9e9
    assert rollout_and_ends(model, {"qvel": qvel}, ctrl)[1].diverged.tolist() == [False, True, False]


# ---- worlds ----


def test_episodes_end_and_begin() -> None:
    worlds = Worlds(Puck(), 8, 1)
    worlds.bodies.qpos[0, 0], worlds.bodies.qvel[0, 0] = 0.89, 3.0  # fails at once
    worlds.bodies.qvel[1] = 9e9  # diverges
    worlds.steps[2] = 39  # is truncated
    first = worlds.step(torch.zeros(8, 1, dtype=torch.float64))
    assert first.terminated.tolist() == [True, True] + 6 * [False] and first.truncated.tolist() == [
        False,
        False,
        True,
    ] + 5 * [False]
    assert float(first.reward[1]) == Puck.diverged_reward
    assert torch.equal(first.seen[3:], first.last_seen[3:]) and not torch.equal(first.seen[0], first.last_seen[0])
    assert float(first.last_seen[0, 0]) > 0.9 > float(first.seen[0, 0])
    assert worlds.steps.tolist() == [0, 0, 0, 1, 1, 1, 1, 1] and [n for _, n in worlds.ended] == [1, 1, 40]
    assert torch.isfinite(worlds.observe()).all()


def test_any_number_of_threads_gives_the_same_bits() -> None:
    one, two = small(threads=1), small(threads=2)
    assert [one.iterate() for _ in range(3)][-1].actor_loss == [two.iterate() for _ in range(3)][-1].actor_loss
    assert torch.equal(parameters(one), parameters(two))


def test_it_learns() -> None:
    shac = small(worlds=16, horizon=16, iterations=30, actor_rate=0.01)
    before = evaluate(shac.task, shac.policy, 16, physics=Physics(1))[0].mean()
    for _ in range(30):
        shac.iterate()
    returns, lengths = evaluate(shac.task, shac.policy, 16, physics=Physics(1))
    assert float(returns.mean()) > max(float(before) + 4, 33) and int(lengths.min()) == 40  # 40 at most


@pytest.mark.parametrize("name", task_names())
def test_tasks_have_rewards_with_slopes(name: str) -> None:
    shac = small(make(name), worlds=3, horizon=4)
    figures = shac.iterate()
    assert math.isfinite(figures.actor_loss) and figures.gradient_norm > 1e-6
    assert shac.worlds.observe().shape[0] == 3 and torch.isfinite(shac.worlds.observe()).all()


def test_bounds_of_the_hand_are_earned_smoothly() -> None:
    task = make("myo_hand_pose")
    distance = torch.tensor([0.0, 0.7, 1.05, 3.0], dtype=torch.float64, requires_grad=True)
    earned = task.near(distance, 0.7)
    steps = torch.tensor([8.0, 6.0, 2.0, 0.0], dtype=torch.float64)  # MyoSuite's, and half of a step where it is
    assert torch.allclose(earned, steps, atol=0.13)
    slope = torch.autograd.grad(earned.sum(), distance)[0]
    assert torch.allclose(slope[1:3], torch.tensor(-10.0, dtype=torch.float64), atol=1.3)


def dm_control_rewards(folder: Path) -> ModuleType:
    """Return dm_control's own functions of rewards, which need NumPy alone."""
    spec = spec_from_file_location("dm_control_rewards", folder.parent / "utils" / "rewards.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_humanoid_earns_what_dm_control_gives() -> None:
    mujoco = pytest.importorskip("mujoco")
    task, rng = make("humanoid_stand"), torch.Generator().manual_seed(2)
    file = models.find("dm_control", "suite/humanoid.xml")
    tolerance = dm_control_rewards(file.parent).tolerance
    model = mujoco.MjModel.from_xml_path(str(file))
    data = mujoco.MjData(model)
    qpos, qvel = task.pose(60, rng)
    qpos, qvel = qpos + torch.randn(qpos.shape, generator=rng) * 0.4, 30 * qvel
    qpos[:, 2] = torch.linspace(0.7, 1.6, 60)
    bodies = Bodies(qpos, qvel, qpos[:, :0], task.seen(qpos, qvel), torch.zeros_like(qvel), qpos[:, :0])
    action = 2 * torch.rand(60, task.actions, generator=rng, dtype=torch.float64) - 1
    want, low = [], []
    for k in range(60):
        data.qpos[:], data.qvel[:] = qpos[k], qvel[k]
        mujoco.mj_forward(model, data)
        height, up = data.body("head").xpos[2], data.body("torso").xmat[8]
        speed = data.sensor("torso_subtreelinvel").data[:2]
        stands = tolerance(height, (1.4, math.inf), 0.35) * tolerance(up, (0.9, math.inf), 1.9, "linear", 0)
        little = (4 + tolerance(action[k].numpy(), margin=1, sigmoid="quadratic", value_at_margin=0).mean()) / 5
        want.append(stands * little * tolerance(speed, margin=2).mean())
        low.append(height < 1)
    assert np.ptp(want) > 0.5 and 0 < sum(low) < 60
    assert task.reward(bodies, bodies, action).numpy() == pytest.approx(np.array(want), rel=1e-9, abs=1e-12)
    assert task.terminated(bodies).tolist() == low


def test_the_humanoid_learns_to_fall_later() -> None:
    task = make("humanoid_stand")
    shac = Shac(task, Settings.of(task.settings), Physics(1))
    still = evaluate(task, lambda seen: torch.zeros(len(seen), task.actions, dtype=torch.float64), 16)[0].mean()
    for _ in range(10):
        shac.iterate()
    assert 20 < float(still) < 30 and float(evaluate(task, shac.policy, 16)[0].mean()) > float(still) + 10


def test_the_ant_earns_what_gymnasium_gives_and_less_for_its_posture() -> None:
    pytest.importorskip("glfw")
    gymnasium = pytest.importorskip("gymnasium")
    task, environment = make("ant"), gymnasium.make("Ant-v5", contact_cost_weight=0).unwrapped
    environment.reset(seed=1)
    rng, data = np.random.default_rng(3), environment.data

    def bodies() -> Bodies:
        qpos, qvel = torch.tensor(data.qpos)[None], torch.tensor(data.qvel)[None]
        return Bodies(qpos, qvel, *[qpos[:, :0]] * 4)

    for height, tilt, posture in (
        (0.6, 0.0, 1.0), (0.36, 0.0, 1.0), (0.275, 0.0, 0.75), (0.9, 0.0, 0.75),
        (0.6, math.pi / 3, 0.5), (0.6, math.pi / 2, 0.0),
    ):  # fmt: skip
        axis = rng.normal(size=2)
        quat = [math.cos(tilt / 2), *(math.sin(tilt / 2) * axis / np.linalg.norm(axis)), 0]
        environment.set_state(np.array([0, 0, height, *quat, 0, 0.7, 0, -0.7, 0, -0.7, 0, 0.7]), np.zeros(14))
        before, action = bodies(), rng.uniform(-1, 1, 8)
        seen, given, terminated, _, info = environment.step(action)
        after = bodies()
        given += data.qpos[0] / environment.dt - info["reward_forward"]  # that one lags by a step of the model
        assert torch.allclose(task.observe(after)[0], torch.tensor(seen[:27])) and not terminated
        # The posture counts where the action has led to: put it back to the one that is meant.
        meant = after._replace(qpos=torch.cat([after.qpos[:, :2], before.qpos[:, 2:]], 1))
        earned = float(task.reward(before, meant, torch.tensor(action)[None])[0])
        assert earned == pytest.approx(given - 1 + posture, rel=1e-9, abs=1e-9)
    ends = before._replace(qpos=torch.tensor(task.model.qpos0).repeat(6, 1))
    ends.qpos[:4, 2] = torch.tensor([0.19, 0.21, 0.99, 1.01])
    ends.qpos[4:, 5] = torch.tensor([0.99, 1.01])  # turned by nearly a right angle, and by more
    assert task.terminated(ends).tolist() == [True, False, False, True, False, True]


def test_the_ant_learns_to_walk() -> None:
    task = make("ant")
    shac = Shac(task, Settings.of(task.settings, {"contact": "sigmoid"}), Physics(1))  # quicker than in its own contact

    def earned() -> float:
        """Return what an action earns without noise, of which 1 is for standing."""
        worlds = Worlds(task, 16, 5, shac.worlds.physics)
        with torch.no_grad():
            return float(torch.stack([worlds.step(shac.policy(worlds.observe())).reward for _ in range(100)]).mean())

    first = earned()
    for _ in range(10):
        shac.iterate()
    assert 0.85 < first < 1.1 and earned() > first + 0.1


def test_a_model_that_is_not_there_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(models, "find_spec", lambda name: None)
    with pytest.raises(NotFoundError, match=r"dm_control/suite/humanoid.xml: pip install dm_control brings it"):
        make_task("humanoid_stand")


# ---- trainings ----


def test_a_training_goes_on_to_the_bit(tmp_path: Path) -> None:
    straight = small()
    train(straight, tmp_path / "straight")
    halfway = small()
    for _ in range(3):
        halfway.iterate()
    (tmp_path / "resumed").mkdir()
    checkpoint.save(tmp_path / "resumed" / CHECKPOINT, halfway, {"seconds": 10.0, "cpu_seconds": 5.0})
    halfway.iterate()  # what is behind the checkpoint does not count
    resumed = small()
    row = train(resumed, tmp_path / "resumed")
    assert torch.equal(parameters(straight), parameters(resumed))
    assert row is not None and row.iteration == 6 and row.samples == 6 * 48 and row.seconds > 10 and row.cpu_seconds > 5
    with (tmp_path / "straight" / LOG).open(newline="") as a, (tmp_path / "resumed" / LOG).open(newline="") as b:
        rows = list(csv.DictReader(a)), list(csv.DictReader(b))
    assert [x["iteration"] for x in rows[1]] == ["4", "5", "6"]
    assert [x["actor_loss"] for x in rows[1]] == [x["actor_loss"] for x in rows[0][3:]]
    assert train(small(), tmp_path / "resumed") is None  # nothing is left


def test_what_is_no_number_stops_with_the_state_saved(tmp_path: Path) -> None:
    shac = small(Broken())
    with pytest.raises(DivergedError, match=r"iteration 3: the return of task broken is .*nan; .*stopped.pt has"):
        train(shac, tmp_path)
    assert shac.iteration == 2 and torch.isfinite(parameters(shac)).all()
    mended, good = small(Broken()), small(Broken())
    mended.task.calls = good.task.calls = -1000  # type: ignore[attr-defined]
    checkpoint.load(tmp_path / STOPPED, mended)
    for _ in range(3):
        good.iterate()
    assert mended.iterate().iteration == 3
    assert torch.equal(parameters(mended), parameters(good))


def test_checkpoints_of_something_else_are_refused(tmp_path: Path) -> None:
    path = tmp_path / CHECKPOINT
    checkpoint.save(path, small(), {})
    with pytest.raises(ArgumentError, match=r"checkpoint of task 'puck', not of 'blind'"):
        checkpoint.load(path, small(Blind()))
    with pytest.raises(ArgumentError, match=r"task 'puck' with another model"):
        checkpoint.load(path, small(Puck(PUCK.replace('mass="1"', 'mass="1.1"'))))
    with pytest.raises(ArgumentError, match="other settings: contact was model, is sigmoid"):
        checkpoint.load(path, small(contact="sigmoid"))
    with pytest.raises(ArgumentError, match=r"other settings: seed was 1, is 2; discount was 0.99, is 0.5"):
        checkpoint.load(path, small(seed=2, discount=0.5))
    with pytest.raises(NotFoundError, match="no such checkpoint"):
        checkpoint.read(tmp_path / "none.pt")
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(FormatError, match=r"checkpoint.pt: no checkpoint of sinew, or damaged"):
        checkpoint.read(path)
    torch.save({"format": "something"}, path)
    with pytest.raises(FormatError, match="expected one with the mark"):
        checkpoint.read(path)


def test_what_cannot_be_learned_is_refused() -> None:
    with pytest.raises(ArgumentError, match="task blind: its rewards have no derivative by the actions"):
        small(Blind()).iterate()
    with pytest.raises(ArgumentError, match=r"actuator '.*' has no ctrlrange"):
        Puck(PUCK.replace('ctrlrange="-1 1"', ""))
    with pytest.raises(NotFoundError, match="no task 'hoper'"):
        make_task("hoper")
    for changes, text in (
        ({"horizn": 3}, "no setting 'horizn'"),
        ({"horizon": 0}, "horizon: 0, allowed is 1 and more"),
        ({"discount": "2"}, "discount: 2.0, allowed is 0 to 1"),
        ({"contact": "soft"}, "contact: 'soft', allowed is model, mujoco or sigmoid"),
        ({"worlds": "many"}, "worlds: 'many', expected a whole number"),
        ({"actor_layers": "64,x"}, "actor_layers: '64,x', expected whole numbers"),
        ({"actor_rate": "nan"}, "actor_rate: nan, allowed is more than 0"),
    ):
        with pytest.raises(ArgumentError, match=text):
            Settings.of(changes)


# ---- policies that are given ----


def given(outputs: int = 1, inputs: int = 9) -> torch.nn.Module:
    """Return a small network in doubles."""
    torch.manual_seed(4)
    return torch.nn.Sequential(torch.nn.Linear(inputs, 5), torch.nn.ELU(), torch.nn.Linear(5, outputs)).double()


def begun(policy: torch.nn.Module) -> Shac:
    return Shac(Puck(), Settings.of(SMALL), Physics(1), policy)


def test_a_policy_that_is_given_is_gone_on_from(tmp_path: Path) -> None:
    policy, same = given(), given()
    shac = begun(policy)
    for _ in range(2):  # observations are not normalised, whatever was seen
        seen = shac.worlds.observe()
        assert torch.equal(shac.policy(seen), torch.tanh(policy(seen)))
        shac.iterate()
    assert not torch.equal(policy[0].weight, same[0].weight)
    path = tmp_path / CHECKPOINT
    checkpoint.save(path, shac, {})
    again = begun(given())
    checkpoint.load(path, again)
    shac.iterate()
    again.iterate()
    assert torch.equal(parameters(shac), parameters(again))
    with pytest.raises(ArgumentError, match="began with a policy that was given, not with a new policy"):
        checkpoint.load(path, small())
    wide = torch.nn.Sequential(torch.nn.Linear(9, 7), torch.nn.ELU(), torch.nn.Linear(7, 1)).double()
    with pytest.raises(ArgumentError, match=r"checkpoint.pt: a checkpoint of other networks: .*size mismatch"):
        checkpoint.load(path, begun(wide))


def test_policies_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"policy: it takes no observations \(6, 9\) in doubles"):
        begun(given(inputs=8))
    with pytest.raises(ArgumentError, match=r"policy: it takes no observations \(6, 9\) in doubles"):
        begun(given().float())
    with pytest.raises(ArgumentError, match=r"policy: it makes \(6, 2\) of torch.float64, expected \(6, 1\)"):
        begun(given(outputs=2))


# ---- the command ----


def test_the_command_learns_goes_on_and_evaluates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    make("myo_elbow_reach")
    from sinew.cli import main

    run = ["learn", "myo_elbow_reach", "-o", str(tmp_path), "--iterations", "2", "--worlds", "4", "--horizon", "4"]
    assert main(["learn"]) == 0 and "myo_hand_pose" in capsys.readouterr().out.split()
    assert main(["learn", "hopper", "--settings", "--set", "trace=0.5"]) == 0
    assert "trace=0.5" in capsys.readouterr().out
    assert main(run) == 0
    said = capsys.readouterr().out
    assert "32 samples in" in said and "no episode has ended" in said and "nan" not in said
    assert main(run) == 0 and "all 2 iterations are done" in capsys.readouterr().out
    assert main([*run, "--json"]) == 0
    assert {"iteration": 2, "samples": 32}.items() <= json.loads(capsys.readouterr().out).items()
    assert main([*run, "--evaluate", "--json"]) == 0 and '"episodes": 32' in capsys.readouterr().out
    assert main([*run, "--seed", "2"]) == 1 and "seed was 1, is 2" in capsys.readouterr().err
    assert main([*run, "--set", "seed"]) == 1 and "--set: 'seed', expected NAME=VALUE" in capsys.readouterr().err
    assert main(["learn", "hopper"]) == 1 and "-o FOLDER" in capsys.readouterr().err


def test_the_comparison_with_ppo_runs(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    make("myo_elbow_reach")
    picture = tmp_path / "curves.svg"
    short = ["--short", "--threads", "1", "-o", tmp_path / "runs", "--picture", picture]
    done = run_example(EXAMPLES / "compare.py", "myo_elbow_reach", *short)
    assert done.returncode == 0, done.stderr
    assert re.search(r"\nppo-1 +2048 .*\nshac-1 +1280 ", done.stdout), done.stdout
    assert "<svg" in picture.read_text()
    log = tmp_path / "runs" / "ppo-1" / "progress.csv"
    whole = log.read_text()
    log.write_text(whole.splitlines()[0] + "\n1024,1,1,-90,100\n")  # as an interrupt leaves it
    assert run_example(EXAMPLES / "compare.py", "myo_elbow_reach", *short).returncode == 0
    assert log.read_text().splitlines()[-1].split(",")[0] == whole.splitlines()[-1].split(",")[0] == "2048"


def test_curves_of_few_points_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    logs = {"shac-1": [math.nan] * 3 + list(range(30)), "shac-2": [math.nan] * 30 + [4, 5], "ppo-1": [math.nan] * 2}
    for name, returns in logs.items():
        (tmp_path / name).mkdir()
        rows = [f"{k},{k},{k},{x}" for k, x in enumerate(returns, 1)]
        (tmp_path / name / "progress.csv").write_text("\n".join(["samples,seconds,cpu_seconds,episode_return", *rows]))
    spec = spec_from_file_location("compare", EXAMPLES / "compare.py")
    assert spec and spec.loader
    compare = module_from_spec(spec)
    spec.loader.exec_module(compare)
    compare.draw(argparse.Namespace(out=tmp_path, task="hopper", picture=tmp_path / "curves.svg"))
    import matplotlib.pyplot as plt

    for axes in plt.gcf().axes:
        marks = [(len(x.get_xdata()), x.get_marker()) for x in axes.get_lines()]
        assert marks == [(33, ""), (32, "o"), (2, "o")]
        assert [x.get_label() for x in axes.get_lines()][::2] == ["SHAC", "PPO: no episode has ended"]
    plt.close()


def test_ppo_is_judged_by_its_last_return(tmp_path: Path) -> None:
    logs = {"ppo-1": [1, 9, 4], "ppo-2": [0, 1, 3], "ppo-3": [math.nan]}
    for name, returns in (logs | {"shac-1": [0, 3, 5], "shac-2": [0, 1, 2], "shac-3": [1]}).items():
        (tmp_path / name).mkdir()
        rows = [f"{100 * k},{k},{k},{x}" for k, x in enumerate(returns, 1)]
        (tmp_path / name / "progress.csv").write_text("\n".join(["samples,seconds,cpu_seconds,episode_return", *rows]))
    done = run_example(EXAMPLES / "compare.py", "hopper", "--draw", "-o", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "shac-3 cannot be compared: no episode of PPO has ended" in done.stdout
    assert "shac-1 has PPO's last return, 4, after 1.00 of PPO's samples" in done.stdout
    assert "shac-2 does not come to PPO's last return, 3" in done.stdout


def test_a_policy_runs_in_gymnasium(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    pytest.importorskip("glfw")
    train(Shac(make("ant"), Settings.of(SMALL), Physics(1)), tmp_path)
    done = run_example(EXAMPLES / "in_gymnasium.py", "ant", "-o", tmp_path, "--episodes", "2", "--limit", "5")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^Ant-v5: return .* of 2 episodes, 2 of them whole; speed ", done.stdout, re.M), done.stdout
