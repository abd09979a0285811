"""A policy that SHAC has learned runs in Gymnasium's own environment, which MuJoCo steps, without noise.

    pip install "gymnasium[mujoco]" mujoco==4.0.0
    python in_gymnasium.py ant -o RUN              # RUN/checkpoint.pt, as `sinew learn ant -o RUN` leaves it

Returns are Gymnasium's: of its own reward, starts and ends, and of its own integrator unless told otherwise.
"""

import argparse
from pathlib import Path

import gymnasium
import numpy as np
import torch

from sinew.learn import Bodies, Physics, Shac, Task, checkpoint, make_task
from sinew.learn.training import CHECKPOINT

ENVIRONMENTS = {"hopper": "Hopper-v5", "half_cheetah": "HalfCheetah-v5", "ant": "Ant-v5"}  # of tasks


def seen(task: Task, data: object) -> torch.Tensor:
    """Return what a task observes at a state of MuJoCo, (1, k)."""
    qpos, qvel = (torch.tensor(x)[None] for x in (data.qpos, data.qvel))
    none = qpos[:, :0]
    return task.observe(Bodies(qpos, qvel, none, none, none, none))


def episode(environment: gymnasium.Env, shac: Shac, seed: int) -> tuple[float, int, float]:
    """Return the return of an episode, its length, and how far the body came [m]."""
    environment.reset(seed=seed)
    data = environment.unwrapped.data
    start, earned, length, ended = data.qpos[0], 0.0, 0, False
    while not ended:
        with torch.no_grad():
            action = shac.policy(seen(shac.task, data))[0]
        _, reward, terminated, truncated, _ = environment.step(action.numpy())
        earned, length, ended = earned + reward, length + 1, terminated or truncated
    return earned, length, data.qpos[0] - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=ENVIRONMENTS, help="that was learned")
    parser.add_argument("-o", "--out", type=Path, required=True, help="folder of the training")
    parser.add_argument("--episodes", type=int, default=32, help="(default: 32)")
    parser.add_argument("--limit", type=int, help="actions of an episode at most (default: Gymnasium's, 1000)")
    parser.add_argument("--integrator", action="store_true", help="the one that the task learns with, by MuJoCo")
    arguments = parser.parse_args()

    path = arguments.out / CHECKPOINT
    shac = Shac(make_task(arguments.task), checkpoint.settings_of(path), Physics(1))
    checkpoint.load(path, shac)
    environment = gymnasium.make(ENVIRONMENTS[arguments.task], max_episode_steps=arguments.limit)
    if arguments.integrator:
        environment.unwrapped.model.opt.integrator = shac.task.model.opt.integrator
    earned, length, way = np.array([episode(environment, shac, 1000 + k) for k in range(arguments.episodes)]).T
    speed = way / (length * environment.unwrapped.dt)
    whole = (length == environment.spec.max_episode_steps).sum()
    print(
        f"{ENVIRONMENTS[arguments.task]}: return {earned.mean():.6g} +- {earned.std():.3g}, "
        f"least {earned.min():.4g}, of {len(earned)} episodes, {whole} of them whole; speed {speed.mean():.3g} m/s"
    )


if __name__ == "__main__":
    main()
