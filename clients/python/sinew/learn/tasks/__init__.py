"""Tasks of learning, by name."""

from __future__ import annotations

from importlib import import_module

from sinew.errors import NotFoundError
from sinew.learn.task import Task
from sinew.names import did_you_mean

__all__ = ["make_task", "task_names"]

# The module and class of each.
_TASKS = {
    "hopper": ("hopper", "Hopper"),
    "half_cheetah": ("half_cheetah", "HalfCheetah"),
    "ant": ("ant", "Ant"),
    "quadruped": ("quadruped", "Quadruped"),
    "humanoid_stand": ("humanoid_stand", "HumanoidStand"),
    "myo_hand_pose": ("myo_pose", "MyoHandPose"),
    "myo_elbow_reach": ("myo_pose", "MyoElbowReach"),
}


def task_names() -> list[str]:
    """Return the names of all tasks."""
    return list(_TASKS)


def make_task(name: str) -> Task:
    """Return a task by its name.

    Raises
    ------
    NotFoundError
        There is no such task, or its model is not on this machine.
    """
    if name not in _TASKS:
        raise NotFoundError(f"there is no task {name!r}{did_you_mean(name, _TASKS)}; there are {', '.join(_TASKS)}")
    module, kind = _TASKS[name]
    task: Task = getattr(import_module(f"sinew.learn.tasks.{module}"), kind)()
    return task
