"""Many bodies as one Gymnasium environment: any model and task, stepped on threads.

>>> import sinew.gym
>>> env = sinew.gym.VectorEnv("arm_reach.xml", "arm_reach.yaml", num_envs=64)
>>> observations, info = env.reset(seed=1)
>>> observations, rewards, terminations, truncations, info = env.step(env.action_space.sample())

One call of `step` is one batch of rollouts: there is no loop over environments.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from sinew.data import Data
from sinew.errors import ArgumentError
from sinew.model import Model
from sinew.planner import Planner
from sinew.rollout import Rollout, rollout
from sinew.state import State
from sinew.task import Task

__all__ = ["VectorEnv"]

Array = NDArray[np.float64]


class VectorEnv(gymnasium.vector.VectorEnv[Array, Array, NDArray[Any]]):
    """N bodies of one model under one task.

    An observation is (qpos, qvel, act) of a body, and the time [s] as well where `observe_time` is set, which a task
    with moving targets needs. The reward of a step is minus the task's cost of its motion. An episode terminates when
    a body diverges, and is truncated after `max_episode_steps`.

    Parameters
    ----------
    model : Model or path
        The model, or the file to load it from.
    task : Task or path
        The task, or its YAML file. It says where an episode begins, and the cost.
    num_envs : int
        Number of bodies, N.
    frame_skip : int
        Steps of the model in a step of the environment, under one action.
    max_episode_steps : int
        Steps of the environment until an episode is truncated.
    reset_noise : float
        Half the width of the uniform noise that a reset adds to the entries of qpos and qvel.
    scale_actions : bool
        Whether actions are in [-1, 1], scaled to the ranges of the controls; else they are controls.
    observe_time : bool
        Whether observations end with the time.
    observation : callable, optional
        Makes other observations (N, k) of states: it gets a State with arrays of N rows.
    reward : callable, optional
        Makes other rewards (N,): it gets the Rollout of the step and the controls (N, nu).
    diverged_reward : float
        Reward of a step in which a body diverges, whose cost is infinite.
    autoreset_mode : gymnasium.vector.AutoresetMode
        Whether an episode that has ended is reset in the next step (NEXT_STEP), in the same one, whose last observation
        is then ``info["final_obs"]`` (SAME_STEP), or by the caller, `reset` with ``options={"reset_mask": ...}``.
    threads : int
        Threads of the CPU; 0: as many as this process may use.
    device : str
        "cpu" or "cuda".
    block_threads : int
        Threads of a world on a device, 1, 8, 32, or 0 for what is best, as `sinew.rollout` takes them: 1 is for twenty
        thousand bodies and more.
    """

    def __init__(
        self,
        model: Model | str | os.PathLike[str],
        task: Task | str | os.PathLike[str],
        num_envs: int = 1,
        *,
        frame_skip: int = 5,
        max_episode_steps: int = 200,
        reset_noise: float = 0.0,
        scale_actions: bool = True,
        observe_time: bool = False,
        observation: Callable[[State], Array] | None = None,
        reward: Callable[[Rollout, Array], Array] | None = None,
        diverged_reward: float = -100.0,
        autoreset_mode: AutoresetMode = AutoresetMode.NEXT_STEP,
        threads: int = 0,
        device: str = "cpu",
        block_threads: int = 0,
    ) -> None:
        for name, value in (
            ("num_envs", num_envs),
            ("frame_skip", frame_skip),
            ("max_episode_steps", max_episode_steps),
        ):
            if value < 1:
                raise ArgumentError(f"{name}: {value}, allowed is 1 and more")
        self.model = model if isinstance(model, Model) else Model.load(model)
        self.task = task if isinstance(task, Task) else Task(task)
        self.num_envs = num_envs
        self.frame_skip, self.max_episode_steps, self.reset_noise = frame_skip, max_episode_steps, reset_noise
        self._observation, self._reward, self._observe_time = observation, reward, observe_time
        self._options: dict[str, Any] = {"task": self.task, "threads": threads, "device": device, "gradients": False}
        self._options["block_threads"] = block_threads
        self.metadata = {"autoreset_mode": autoreset_mode, "render_modes": []}
        self._mode = autoreset_mode
        self._scale = scale_actions
        self._diverged_reward = diverged_reward
        self._initial = Planner(self.model, self.task, threads=1).initial
        self.single_action_space = self._action_box()
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._state = self._rows(num_envs)
        self._steps = np.zeros(num_envs, np.int64)
        self._ended = np.zeros(num_envs, bool)
        size = self._observe().shape[1]
        self.single_observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float64)
        self.observation_space = batch_space(self.single_observation_space, num_envs)

    def _action_box(self) -> gymnasium.spaces.Box:
        low, high = self.model.ctrl_range.T
        bounded = np.isfinite(low) & np.isfinite(high)
        if self._scale and not bounded.all():
            name = self.model.actuator(int(np.argmin(bounded))).name
            raise ArgumentError(f"scale_actions: actuator {name!r} has no ctrlrange to scale to")
        if self._scale:
            return gymnasium.spaces.Box(-1.0, 1.0, (self.model.nu,), np.float64)
        return gymnasium.spaces.Box(low, high, dtype=np.float64)

    def _rows(self, n: int) -> State:
        """Return n initial states, with noise."""
        parts: dict[str, Array] = {}
        for name in ("qpos", "qvel", "act", "mocap"):
            if getattr(self._initial, name) is None:
                continue  # without mocap bodies
            x = np.asarray(getattr(self._initial, name), np.float64)
            parts[name] = np.broadcast_to(x, (n, *x.shape)).copy()
        if self.model.nhistory:
            parts["history"] = np.tile(Data(self.model).history, (n, 1))
        for name in ("qpos", "qvel") if self.reset_noise else ():
            parts[name] += self.np_random.uniform(-self.reset_noise, self.reset_noise, parts[name].shape)
        return State(time=np.zeros(n), qacc_warmstart=np.zeros((n, self.model.nv)), **parts)

    def _observe(self) -> Array:
        if self._observation:
            return np.asarray(self._observation(self._state), np.float64)
        s = self._state
        parts = [np.asarray(s.qpos), np.asarray(s.qvel), np.asarray(s.act)]
        if self._observe_time:
            parts.append(np.asarray(s.time)[:, None])
        return np.concatenate(parts, axis=1)

    def _begin(self, which: NDArray[np.bool_]) -> None:
        """Put some bodies into initial states."""
        fresh = self._rows(int(which.sum()))
        for field in dataclasses.fields(State):
            rows = getattr(self._state, field.name)
            if rows is not None:
                rows[which] = getattr(fresh, field.name)
        self._steps[which] = 0
        self._ended[which] = False

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begin episodes: all, or those of ``options["reset_mask"]`` (N,).

        Parameters
        ----------
        seed : int, optional
            Seed of the noise of this and of later resets.
        options : dict, optional
            "reset_mask": which environments.

        Returns
        -------
        observations : ndarray, (N, k)
        info : dict
        """
        if isinstance(seed, list):
            raise ArgumentError("seed: a list, expected one number: the environments share one generator")
        super().reset(seed=seed)
        mask = np.asarray((options or {}).get("reset_mask", np.ones(self.num_envs)), bool)
        if mask.shape != (self.num_envs,):
            raise ArgumentError(f"reset_mask: shape {mask.shape}, expected ({self.num_envs},)")
        self._begin(mask)
        return self._observe(), {}

    def step(self, actions: Array) -> tuple[Array, Array, NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Make `frame_skip` steps of all bodies.

        Parameters
        ----------
        actions : array_like, (N, nu)

        Returns
        -------
        observations : ndarray, (N, k)
        rewards : ndarray, (N,)
        terminations : ndarray of bool, (N,)
            Bodies that have diverged. Their observation is that before the step.
        truncations : ndarray of bool, (N,)
            Episodes that are as long as they may be.
        info : dict
            With SAME_STEP: "final_obs" (N, k), and "_final_obs" (N,), which of its rows count.
        """
        ctrl = self._controls(actions)
        fresh = self._ended.copy() if self._mode is AutoresetMode.NEXT_STEP else np.zeros(self.num_envs, bool)
        held = np.broadcast_to(ctrl[:, None], (self.num_envs, self.frame_skip, self.model.nu))
        motion = rollout(self.model, self._state, held, **self._options)
        rewards = self._rewards(motion, ctrl)
        terminations = motion.status != 0
        self._advance(motion, ~terminations)
        self._steps += 1
        truncations = (self._steps >= self.max_episode_steps) & ~terminations
        for x in (terminations, truncations):
            x[fresh] = False
        rewards = np.where(fresh, 0.0, rewards)
        self._ended = terminations | truncations
        info: dict[str, Any] = {}
        if self._mode is AutoresetMode.SAME_STEP and self._ended.any():
            info = {"final_obs": self._observe(), "_final_obs": self._ended.copy()}
            self._begin(self._ended)
        elif fresh.any():
            self._begin(fresh)
        return self._observe(), rewards, terminations, truncations, info

    def _rewards(self, motion: Rollout, ctrl: Array) -> Array:
        if self._reward:
            return np.asarray(self._reward(motion, ctrl), np.float64)
        assert motion.cost is not None  # there is a task
        return np.where(motion.status == 0, -motion.cost, self._diverged_reward)

    def _controls(self, actions: Array) -> Array:
        x = np.asarray(actions, np.float64)
        if x.shape != (self.num_envs, self.model.nu):
            raise ArgumentError(f"actions: shape {x.shape}, expected ({self.num_envs}, {self.model.nu})")
        if not self._scale:
            return x
        low, high = self.model.ctrl_range.T
        return np.asarray(low + (np.clip(x, -1, 1) + 1) * (high - low) / 2)

    def _advance(self, motion: Rollout, good: NDArray[np.bool_]) -> None:
        """Take the last states of bodies that are well; others stay where they were."""
        last = motion.last
        for name in ("qpos", "qvel", "act", "time", "qacc_warmstart", *(("history",) if self.model.nhistory else ())):
            getattr(self._state, name)[good] = getattr(last, name)[good]

    def close_extras(self, **kwargs: Any) -> None:
        """Do nothing: there is nothing to close."""
