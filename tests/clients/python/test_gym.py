"""sinew.gym.VectorEnv beside bodies that are stepped one by one, and the rules of Gymnasium's vector environments."""

from __future__ import annotations

import numpy as np
import pytest
import sinew
from sinew.errors import ArgumentError

gymnasium = pytest.importorskip("gymnasium")
import sinew.gym  # noqa: E402
from gymnasium.vector import AutoresetMode  # noqa: E402

ARM, TASK = sinew.share("models/arm_reach.xml"), sinew.share("tasks/arm_reach.yaml")
N = 3


def environment(**options: object) -> sinew.gym.VectorEnv:
    return sinew.gym.VectorEnv(ARM, TASK, N, **{"frame_skip": 4, "reset_noise": 0.02, **options})  # type: ignore[arg-type]


def test_motions_and_rewards_are_those_of_single_bodies() -> None:
    env = environment(observe_time=True)
    first, info = env.reset(seed=3)
    assert info == {} and env.observation_space.contains(first)
    assert len(np.unique(first[:, 0])) == N  # each has noise of its own
    planner = sinew.planner.Planner(env.model, env.task)
    nq, nv = env.model.nq, env.model.nv
    bodies = []
    for row in first:
        data = sinew.Data(planner.model)
        data.set_state(sinew.State(qpos=row[:nq], qvel=row[nq : nq + nv], act=row[nq + nv : -1]))
        bodies.append(data)
    rng = np.random.default_rng(4)
    for _ in range(5):
        action = rng.uniform(-1, 1, (N, env.model.nu))
        states = [data.state for data in bodies]
        seen, reward, terminated, truncated, _ = env.step(action)
        ctrl = (action + 1) / 2  # muscles: from [-1, 1] to [0, 1]
        assert not terminated.any() and not truncated.any()
        for i, data in enumerate(bodies):
            cost = planner.evaluate(states[i], np.tile(ctrl[i], (4, 1))).cost
            assert reward[i] == pytest.approx(-cost, rel=1e-12)
            data.ctrl = ctrl[i]
            data.step(4)
            assert np.array_equal(seen[i], [*data.qpos, *data.qvel, *data.act, data.time])


def test_the_same_seed_gives_the_same_episode() -> None:
    a, b = environment(), environment(threads=1)
    assert np.array_equal(a.reset(seed=7)[0], b.reset(seed=7)[0])
    assert not np.array_equal(a.reset()[0], b.reset(seed=8)[0])


def test_an_episode_that_has_ended_is_reset_in_the_next_step() -> None:
    env = environment(max_episode_steps=2)
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    env.reset(seed=1)
    action = np.zeros((N, env.model.nu))
    assert not env.step(action)[3].any()
    last, _, _, truncated, _ = env.step(action)
    assert truncated.all()
    fresh, reward, terminated, truncated, _ = env.step(action)
    assert (reward == 0).all() and not truncated.any() and not terminated.any()
    start = sinew.planner.Planner(env.model, env.task).initial
    assert np.abs(fresh[:, :2] - start.qpos).max() <= 0.02 and np.abs(last[:, :2] - start.qpos).max() > 0.02


def test_or_in_the_same_step() -> None:
    env = environment(max_episode_steps=1, autoreset_mode=AutoresetMode.SAME_STEP)
    env.reset(seed=1)
    seen, _, _, truncated, info = env.step(np.zeros((N, env.model.nu)))
    assert truncated.all() and info["_final_obs"].all()
    assert info["final_obs"].shape == seen.shape and not np.array_equal(info["final_obs"], seen)


def test_or_by_the_caller() -> None:
    env = environment(max_episode_steps=1, autoreset_mode=AutoresetMode.DISABLED)
    env.reset(seed=1)
    seen = env.step(np.zeros((N, env.model.nu)))[0]
    mask = np.array([True, False, True])
    after, _ = env.reset(options={"reset_mask": mask})
    assert np.array_equal(after[1], seen[1]) and not np.array_equal(after[0], seen[0])


def test_a_body_that_diverges_terminates_alone() -> None:
    env = environment(reset_noise=0.0)
    env.reset(seed=1)
    env._state.qvel[1] = 9e9  # type: ignore[index, union-attr, call-overload]
    before = env._observe()
    seen, reward, terminated, _, _ = env.step(np.zeros((N, env.model.nu)))
    assert terminated.tolist() == [False, True, False]
    assert np.array_equal(seen[1], before[1]) and np.isfinite(seen).all() and reward[1] == -100
    assert not env.step(np.zeros((N, env.model.nu)))[2].any()  # it has begun anew


def test_observations_and_rewards_of_the_callers() -> None:
    env = environment(
        observation=lambda state: state.qpos * 2, reward=lambda motion, ctrl: motion.qvel[:, -1, 0] + ctrl[:, 0]
    )
    first, _ = env.reset(seed=1)
    assert first.shape == (N, env.model.nq) and env.observation_space.shape == first.shape
    action = np.zeros((N, env.model.nu))
    _, reward, *_ = env.step(action)
    assert np.allclose(reward, np.asarray(env._state.qvel)[:, 0] + 0.5)


@pytest.mark.parametrize(
    ("options", "text"),
    [({"frame_skip": 0}, "frame_skip"), ({"max_episode_steps": 0}, "max_episode_steps")],
)
def test_bad_options_are_refused(options: dict[str, object], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        environment(**options)


def test_the_cpu_has_no_threads_of_a_world() -> None:
    env = environment(block_threads=1)
    env.reset(seed=1)
    with pytest.raises(ArgumentError, match="block_threads: 1, with device 'cpu'"):
        env.step(np.zeros((N, env.model.nu)))


def test_bad_calls_are_refused() -> None:
    env = environment()
    env.reset(seed=1)
    with pytest.raises(ArgumentError, match=r"actions: shape \(2,\)"):
        env.step(np.zeros(2))
    with pytest.raises(ArgumentError, match=r"NaN|nan"):
        env.step(np.full((N, env.model.nu), np.nan))
    with pytest.raises(ArgumentError, match="reset_mask"):
        env.reset(options={"reset_mask": np.ones(N + 1, bool)})
    with pytest.raises(ArgumentError, match="seed"):
        env.reset(seed=[1, 2, 3])
    free = """<mujoco><worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody>
      <actuator><motor name="m" joint="j"/></actuator></mujoco>"""
    task = "model: x\nterms: [{name: v, residual: {joint_velocity: all}, norm: squared, weight: 1}]"
    with pytest.raises(ArgumentError, match="'m' has no ctrlrange"):
        sinew.gym.VectorEnv(sinew.Model.from_string(free), sinew.Task.parse(task), 2)
