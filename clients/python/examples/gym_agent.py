"""A Gymnasium agent: a linear policy learns to hold the hand of an arm at a point, by augmented random search.

The environment is sinew.gym.VectorEnv: 64 arms at once on threads. Each round tries a policy disturbed in 32
directions, both ways, and goes along the rewards (H. Mania et al., 2018).

    python gym_agent.py --picture gym_agent.svg
"""

import argparse

import numpy as np

import sinew
import sinew.gym

TASK = """
description: an arm of six muscles brings its hand to a point and stays there
model: arm_reach.xml
initial: {keyframe: forward}
terms:
  - name: reach
    residual: {position: {site: hand}}
    target: {value: [0.45, 0, 1.35]}
    norm: euclidean
    width: 0.005
    weight: 1
  - {name: speed, residual: {joint_velocity: all}, norm: squared, weight: 0.0005}
"""
DIRECTIONS, NOISE, RATE, LENGTH = 32, 0.3, 0.2, 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60, help="of learning (default: 60)")
    parser.add_argument("--picture", type=sinew.files.writable, help="file to draw into, .svg or .png")
    arguments = parser.parse_args()

    rng = np.random.default_rng(1)
    env = sinew.gym.VectorEnv(
        sinew.share("models/arm_reach.xml"),
        sinew.Task.parse(TASK),
        2 * DIRECTIONS,
        frame_skip=4,
        max_episode_steps=LENGTH + 1,
        reset_noise=0.05,
    )
    inputs, outputs = env.single_observation_space.shape[0] + 1, env.single_action_space.shape[0]
    policy = np.zeros((inputs, outputs))
    policy[-1] = -0.8  # muscles nearly at rest
    costs = []
    for k in range(arguments.rounds):
        direction = rng.normal(size=(DIRECTIONS, inputs, outputs))
        tried = policy + NOISE * np.concatenate([direction, -direction])
        observation, _ = env.reset(seed=k)
        total = np.zeros(2 * DIRECTIONS)
        for _ in range(LENGTH):
            seen = np.concatenate([observation, np.ones((2 * DIRECTIONS, 1))], axis=1)
            observation, reward, *_ = env.step(np.tanh(np.einsum("ni,nio->no", seen, tried)))
            total += reward
        better = (total[:DIRECTIONS] - total[DIRECTIONS:]) / total.std()
        policy += RATE / DIRECTIONS * np.einsum("n,nio->io", better, direction)
        costs.append(-total.mean() / LENGTH)
    env.close()
    print(f"mean cost of a step {costs[0]:.5f} -> {costs[-1]:.5f}, {arguments.rounds * LENGTH * 2 * DIRECTIONS} steps")

    if arguments.picture:
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
        axes.plot(costs)
        axes.set(title="linear policy, augmented random search", xlabel="round", ylabel="mean cost of a step")
        figure.savefig(arguments.picture, dpi=80)


if __name__ == "__main__":
    main()
