"""A baseline for SHAC: PPO of stable-baselines3 on the tasks of sinew.learn, the same bodies on the same threads.

    pip install stable-baselines3
    python ppo.py hopper -o RUN --samples 500000 --seed 1

RUN/progress.csv gets a row for each update: samples, seconds, and the mean return of the last hundred episodes, as
SHAC's log has them.
"""

import argparse
import csv
import math
import time
from pathlib import Path

import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from sinew.learn import Physics, Task, Worlds, evaluate, make_task


class Bodies(VecEnv):
    """Worlds as the environments of stable-baselines3, whose names these are."""

    def __init__(self, task: Task, count: int, seed: int, threads: int) -> None:
        self.worlds = Worlds(task, count, seed, Physics(threads))
        space = gymnasium.spaces.Box(-np.inf, np.inf, (self.worlds.observe().shape[1],), np.float64)
        super().__init__(count, space, gymnasium.spaces.Box(-1, 1, (task.actions,), np.float32))

    def reset(self) -> np.ndarray:
        return self.worlds.observe().numpy()

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = torch.as_tensor(actions, dtype=torch.float64)

    def step_wait(self) -> tuple:
        with torch.no_grad():
            step = self.worlds.step(self._actions)
        ended = step.terminated | step.truncated
        infos = [{} for _ in range(self.num_envs)]
        for k in torch.nonzero(ended).flatten().tolist():
            infos[k] = {
                "terminal_observation": step.last_seen[k].numpy(),
                "TimeLimit.truncated": bool(step.truncated[k]),
            }
        return step.seen.numpy(), step.reward.numpy(), ended.numpy(), infos

    def close(self) -> None:
        pass

    def get_attr(self, attr_name: str, indices: object = None) -> list:
        return [getattr(self, attr_name, None)] * self.num_envs

    def set_attr(self, attr_name: str, value: object, indices: object = None) -> None:
        raise NotImplementedError

    def env_method(self, method_name: str, *args: object, indices: object = None, **kwargs: object) -> list:
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: type, indices: object = None) -> list:
        return [False] * self.num_envs


class Log(BaseCallback):
    """Writes a row for each update."""

    def __init__(self, worlds: Worlds, file: Path) -> None:
        super().__init__()
        self.worlds, self.path = worlds, file

    def _on_training_start(self) -> None:
        self.begin, self.cpu = time.monotonic(), time.process_time()
        self.file = self.path.open("w", newline="")
        self.rows = csv.writer(self.file)
        self.rows.writerow(["samples", "seconds", "cpu_seconds", "episode_return", "episode_length"])

    def _on_rollout_end(self) -> None:
        ended = np.array(self.worlds.ended).reshape(-1, 2)
        means = ended.mean(0) if len(ended) else [np.nan, np.nan]
        spent = time.monotonic() - self.begin, time.process_time() - self.cpu
        self.rows.writerow([self.num_timesteps, *(f"{x:.6g}" for x in (*spent, *means))])
        self.file.flush()

    def _on_step(self) -> bool:
        return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", help="as `sinew learn` lists them")
    parser.add_argument("-o", "--out", type=Path, required=True, help="folder for the log")
    parser.add_argument("--samples", type=int, default=500_000, help="actions of all bodies (default: 500000)")
    parser.add_argument("--worlds", type=int, default=32, help="bodies (default: 32)")
    parser.add_argument("--seed", type=int, default=1, help="(default: 1)")
    parser.add_argument(
        "--deviation", type=float, default=1.0, help="of the noise of actions at first (default: 1, as in its package)"
    )
    parser.add_argument("--threads", type=int, default=0, help="(default: as many as this process may use)")
    arguments = parser.parse_args()
    if not 0 < arguments.deviation < math.inf:
        parser.error(f"--deviation: {arguments.deviation}, allowed is a finite number above 0")

    arguments.out.mkdir(parents=True, exist_ok=True)
    task = make_task(arguments.task)
    bodies = Bodies(task, arguments.worlds, arguments.seed, arguments.threads)
    env = VecNormalize(bodies)
    length = max(2048 // arguments.worlds, 1)
    noise = {"log_std_init": math.log(arguments.deviation)}
    ppo = PPO(
        "MlpPolicy", env, n_steps=length, batch_size=256, seed=arguments.seed, device="cpu", policy_kwargs=noise
    )  # fmt: skip
    begin, cpu = time.monotonic(), time.process_time()
    ppo.learn(arguments.samples, callback=Log(bodies.worlds, arguments.out / "progress.csv"))
    spent = time.monotonic() - begin, time.process_time() - cpu

    def policy(seen: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(ppo.predict(env.normalize_obs(seen.numpy()), deterministic=True)[0], dtype=torch.float64)

    returns, lengths = evaluate(task, policy, physics=bodies.worlds.physics)
    print(
        f"{ppo.num_timesteps} samples in {spent[0]:.1f} s ({spent[1]:.1f} s of the CPU), return without noise "
        f"{returns.mean():.6g} +- {returns.std():.3g} over {len(returns)} episodes, of "
        f"{lengths.double().mean():.0f} actions"
    )


if __name__ == "__main__":
    main()
