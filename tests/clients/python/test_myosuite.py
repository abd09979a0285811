"""Environments of MyoSuite on our steps against their own. Needs the package myosuite, which brings its models."""

from __future__ import annotations

import importlib.util
import warnings
from typing import Any

import numpy as np
import pytest
import sinew.mujoco

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("myosuite") is None,
    reason="the package myosuite is not installed: pip install myosuite==3.0.0",
)


def make(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import gymnasium
        import myosuite  # noqa: F401  (it registers its environments)

        return gymnasium.make(name)


def run(environment: Any, actions: np.ndarray, episodes: int) -> list[tuple[np.ndarray, float, bool]]:
    """Return observations, rewards and ends of a few episodes, each with the same actions from a start of its own."""
    seen = []
    for seed in range(episodes):
        if hasattr(environment.unwrapped, "seed"):  # MyoSuite 2 draws its targets from a seed of its own
            environment.unwrapped.seed(seed)
        environment.reset(seed=seed)
        for action in actions:
            observation, reward, terminated, truncated, _ = environment.step(action)
            seen.append((observation, reward, terminated))
            if terminated or truncated:
                break
    return seen


@pytest.mark.parametrize("fields", [True, False])
@pytest.mark.parametrize(
    "name",
    [
        "myoHandPoseRandom-v0",
        "myoElbowPose1D6MRandom-v0",
        "myoArmReachRandom-v0",
        "myoHandReorient8-v0",
        "myoLegWalk-v0",
    ],
)
def test_observations_are_those_of_its_own_steps(name: str, fields: bool) -> None:
    environment = make(name)
    if "Reorient" in name and hasattr(environment.unwrapped, "seed"):
        pytest.skip("in MyoSuite 2 its second episode meets a contact that noise of MuJoCo's nearest points decides")
    actions = np.random.default_rng(1).uniform(-1, 1, (12, *environment.action_space.shape)).astype(np.float32)
    own = run(environment, actions, 3)
    with sinew.mujoco.stepping(fields=fields), warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # that MuJoCo's own steps were made
        ours = run(environment, actions, 3)
    assert len(own) == len(ours) >= 12
    assert np.ptp([observation for observation, _, _ in own], axis=0).max() > 0.1
    for (a, reward, ended), (b, own_reward, own_ended) in zip(ours, own, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)  # in contact, of float32
        assert reward == pytest.approx(own_reward, rel=1e-4, abs=1e-4)
        assert ended == own_ended
