"""Learning in worlds that differ, through smoothed contact: motors, options, the quadruped, and its walks in MuJoCo."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import sinew
from sinew.errors import ArgumentError

from processes import run_example

torch = pytest.importorskip("torch", reason="PyTorch is not there")

from sinew.learn import Physics, Settings, Shac, Worlds, checkpoint  # noqa: E402
from sinew.learn.motors import ANYDRIVE, Motors  # noqa: E402
from sinew.learn.tasks.quadruped import FRICTION, GAIN, LOAD, STAND, Quadruped  # noqa: E402

EXAMPLES = Path(__file__).resolve().parents[3] / "clients" / "python" / "examples" / "learn"
SMOOTHED = {"contact": "sigmoid", "contact_width": 0.005}


@pytest.fixture(scope="module")
def task() -> Quadruped:
    return Quadruped(worlds=5, seed=7)


@pytest.fixture(scope="module")
def example() -> ModuleType:
    pytest.importorskip("mujoco")
    sys.path.insert(0, str(EXAMPLES))
    try:
        import quadruped
    finally:
        sys.path.remove(str(EXAMPLES))
    return quadruped


def drawn(task: Quadruped, count: int, seed: int = 1) -> tuple[Any, torch.Tensor]:
    """Return bodies at the start of episodes, and actions."""
    generator = torch.Generator().manual_seed(seed)
    bodies = task.start(count, generator)
    return bodies, 0.3 * torch.randn(count, 12, generator=generator, dtype=torch.float64)


# ---- motors ----


def test_torque_is_that_of_the_law() -> None:
    motors = Motors(stiffness=10.0, damping=2.0, effort=5.0, stall=8.0, fastest=4.0)
    row = torch.tensor([[0.1, 1.0, 1.0, 1.0, -1.0, -1.0, 1.0]], dtype=torch.float64)  # how far the target is
    qvel = torch.tensor([[0.2, 0.0, 1.0, 2.0, -2.0, 5.0, -9.0]], dtype=torch.float64)
    got = motors.torque(row + 0.5, torch.full_like(row, 0.5), qvel)
    # free; cut by the effort; the line is above it (6); on the line; the same backwards; backwards while it turns
    # forward faster than it can: braking is cut by the effort alone; and the same the other way
    assert torch.allclose(got, torch.tensor([[0.6, 5.0, 5.0, 4.0, -4.0, -5.0, 5.0]], dtype=torch.float64))
    half = torch.tensor([[0.5]], dtype=torch.float64)
    assert float(motors.torque(row, 0 * row, qvel, half, 2 * half)[0, 0]) == pytest.approx(0.5 - 0.4)
    assert torch.equal(motors.torque(row, 0 * row, 9 + 0 * qvel), -5 + 0 * row)  # none pushes beyond the greatest speed


def test_torque_has_the_derivative_of_differences() -> None:
    generator = torch.Generator().manual_seed(2)
    target, qpos, qvel = (s * torch.randn(40, 12, generator=generator, dtype=torch.float64) for s in (1.0, 1.0, 6.0))
    gains = 0.8 + 0.4 * torch.rand(2, 40, 1, generator=generator, dtype=torch.float64)
    free = [x.requires_grad_() for x in (target, qpos, qvel, *gains)]
    least, most = ANYDRIVE.limits(qvel)
    torque = ANYDRIVE.torque(*free)
    assert bool((torque == most).any() & (torque == least).any() & ((torque > least) & (torque < most)).any())
    assert torch.autograd.gradcheck(ANYDRIVE.torque, free)


def test_motors_without_torque_are_refused() -> None:
    for name in ("stiffness", "damping", "effort", "stall", "fastest"):
        with pytest.raises(ArgumentError, match=f"{name}: 0.0, allowed is more than 0"):
            dataclasses.replace(ANYDRIVE, **{name: 0.0})


# ---- contact as a setting ----


def test_policies_learn_in_the_contact_of_their_settings() -> None:
    task = Quadruped(worlds=2)
    small = {"worlds": 2, "horizon": 2, "iterations": 2, "actor_layers": (8,), "critic_layers": (8,)}
    ends = {}
    for contact, wanted in (
        ("model", {}),
        ("mujoco", {"contact": 0}),
        ("sigmoid", {"contact": 1, "contact_width": 0.01, "contact_stiffness": 0.3}),
    ):
        own = {"contact": contact, "contact_width": 0.01, "contact_stiffness": "0.3"}
        shac = Shac(task, Settings.of(small, own), Physics(1, options={"tolerance": 1e-9}))
        physics = shac.worlds.physics
        of = physics.model(task.model)
        assert of is physics.model(task.model) and of.opt.tolerance == 1e-9  # made once, beside other options
        assert {name: getattr(of.opt, name) for name in wanted} == wanted
        shac.worlds.bodies.qpos[:, 2] = 0.5  # on the ground
        shac.iterate()
        ends[contact] = shac.worlds.bodies.qpos
    assert torch.equal(ends["model"], ends["mujoco"]) and not torch.equal(ends["model"], ends["sigmoid"])


def test_an_option_may_be_an_array(task: Quadruped) -> None:
    physics = Physics(1, options={"gravity": np.array([0, 0, -1.0])})
    of = physics.model(task.model)
    assert of is physics.model(task.model) and tuple(of.opt.gravity) == (0, 0, -1)
    assert isinstance(hash(physics), int)


def test_checkpoints_from_before_a_setting_go_on(tmp_path: Path) -> None:
    task = Quadruped(worlds=2)
    shac = Shac(task, Settings(worlds=2, horizon=2, iterations=2), Physics(1))
    checkpoint.save(tmp_path / "now.pt", shac, {})
    content = torch.load(tmp_path / "now.pt", weights_only=True)
    for name in ("contact", "contact_width", "contact_stiffness"):
        del content["settings"][name]
    torch.save(content, tmp_path / "before.pt")
    checkpoint.load(tmp_path / "before.pt", shac)
    assert checkpoint.settings_of(tmp_path / "before.pt").contact == "model"


# ---- worlds that differ ----


def test_worlds_are_drawn_in_their_ranges(task: Quadruped) -> None:
    many = Quadruped(worlds=40, seed=3)
    for numbers, (low, high) in ((many.friction, FRICTION), (many.load, LOAD)):
        assert low <= numbers.min() < low + 0.2 * (high - low) and high - 0.2 * (high - low) < numbers.max() <= high
    bodies, _ = drawn(many, 200)
    gains = bodies.goal[:, 1:3]
    assert GAIN[0] <= float(gains.min()) < GAIN[0] + 0.02 and GAIN[1] - 0.02 < float(gains.max()) <= GAIN[1]
    assert len(set(bodies.goal[:, 0].tolist())) > 30
    for k, model in enumerate(task.models(drawn(task, 5)[0]._replace(goal=torch.arange(5.0)[:, None].double()))):
        assert model.geom_friction[:, 0].tolist() == [task.friction[k]] * model.ngeom
        assert model.body_mass.sum() == pytest.approx(task.model.body_mass.sum() + task.load[k])
        assert not np.array_equal(model.dof_invweight0, task.model.dof_invweight0)
    assert np.array_equal(Quadruped(worlds=5, seed=7).friction, task.friction)


@pytest.mark.parametrize("options", [{}, SMOOTHED])
def test_each_body_is_moved_in_its_own_world(task: Quadruped, options: dict[str, Any]) -> None:
    bodies, action = drawn(task, 6)
    bodies.qpos[:, 2] = 0.5
    physics = Physics(2, options=options)
    after, diverged = task.advance(bodies, action, physics)
    assert not diverged.any()
    for k in range(6):
        data = sinew.Data(physics.model(task.models(bodies)[k]))
        data.qpos[:], data.qvel[:] = bodies.qpos[k].numpy(), bodies.qvel[k].numpy()
        stiffness, damping = bodies.goal[k, 1:3].numpy()
        for _ in range(4):
            qpos, qvel = data.qpos[7:], data.qvel[6:]
            wanted = stiffness * 80 * ((STAND + 0.4 * action[k]).numpy() - qpos) - damping * 2 * qvel
            data.ctrl[:] = np.clip(wanted, np.clip(-120 - 16 * qvel, -80, 0), np.clip(120 - 16 * qvel, 0, 80))
            data.step()
        assert np.allclose(after.qpos[k], data.qpos, rtol=0, atol=1e-12)
    assert torch.equal(after.goal[:, 4:], action) and torch.equal(after.goal[:, :3], bodies.goal[:, :3])
    turned = torch.remainder(after.goal[:, 3] - bodies.goal[:, 3], 1.0)
    assert torch.allclose(turned, torch.full_like(turned, 0.02 / 0.64))


def test_who_diverges_stays_where_it_was(task: Quadruped) -> None:
    bodies, action = drawn(task, 3)
    bodies.qvel[1] = 9e9
    after, diverged = task.advance(bodies, action, Physics(1))
    assert diverged.tolist() == [False, True, False]
    assert torch.equal(after.qpos[1], bodies.qpos[1]) and torch.isfinite(after.qpos).all()
    step = Worlds(task, 3, 1, Physics(1)).step(action)
    assert torch.isfinite(step.reward).all() and torch.isfinite(step.seen).all()


def test_fallen_bodies_end_their_episodes(task: Quadruped) -> None:
    bodies, _ = drawn(task, 4)
    bodies.qpos[1, 2] = 0.29
    half = torch.tensor(0.5, dtype=torch.float64)  # of an angle: it leans by 1 rad
    bodies.qpos[2, 3:7] = torch.stack([half.cos(), half.sin(), 0 * half, 0 * half])
    assert task.terminated(bodies).tolist() == [False, True, True, False]


# ---- walks ----


def test_mujoco_moves_the_same_worlds_the_same_way(example: ModuleType, task: Quadruped) -> None:
    theirs = example.InMujoco(5, 7)
    bodies, action = drawn(task, 5)
    bodies.qpos[:, 2], bodies.goal[:, 0] = 0.54, torch.arange(5)  # feet are in the ground
    ours, other = bodies, bodies
    for _ in range(3):
        ours, _ = task.advance(ours, action, Physics(1))
        other, _ = theirs.advance(other, action, Physics())
    assert torch.allclose(ours.qpos, other.qpos, rtol=0, atol=1e-5)  # as near as MuJoCo's solver comes
    assert torch.allclose(ours.qvel, other.qvel, rtol=0, atol=1e-3)
    hard = example.InMujoco(5, 7, hard=True)
    assert hard.frame_skip == 20 and hard.dt == task.dt == 0.02
    moved, _ = hard.advance(bodies, action, Physics())
    other, _ = theirs.advance(bodies, action, Physics())
    assert 1e-3 < float((moved.qpos - other.qpos).abs().max()) < 0.1


def test_walks_are_counted(example: ModuleType, task: Quadruped) -> None:
    def stand(seen: torch.Tensor) -> torch.Tensor:
        return torch.zeros(len(seen), 12, dtype=torch.float64)

    def crouch(seen: torch.Tensor) -> torch.Tensor:
        bent = torch.tensor([0, 3, -3, 0, 3, -3, 0, -3, 3, 0, -3, 3], dtype=torch.float64)
        return bent.repeat(len(seen), 1)

    up = example.walk(task, stand, Physics(1), seconds=1.0)
    assert up.up.all() and up.seconds.tolist() == [1.0] * 5 and abs(up.speed).max() < 0.1
    down = example.walk(task, crouch, Physics(1), seconds=1.0)
    assert not down.up.any() and (down.seconds < 1).all() and np.isfinite(down.speed).all()


def test_the_example_runs(tmp_path: Path) -> None:
    for module in ("mujoco", "tqdm", "matplotlib"):
        pytest.importorskip(module)
    picture = tmp_path / "walks.svg"
    short = ["--short", "--threads", "1", "-o", tmp_path / "runs", "--picture", picture]
    for more in ([], ["--draw"]):
        done = run_example(EXAMPLES / "quadruped.py", *short, *more)
        assert done.returncode == 0, done.stderr
        walks = [line.split() for line in done.stdout.splitlines() if line.startswith(("sigmoid ", "mujoco "))]
        assert [x[0] for x in walks] == ["sigmoid"] * 4 + ["mujoco"] * 4
        assert [x[:9] for x in done.stdout.splitlines()[-3:-1]] == ["sigmoid,1", "mujoco,1,"]  # lifts of feet
        assert "<svg" in picture.read_text()
        picture.unlink()
