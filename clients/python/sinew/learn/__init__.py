"""Policies learned by the gradients of rollouts: SHAC, on bodies that are stepped together.

>>> from sinew.learn import Settings, Shac, make_task
>>> shac = Shac(make_task("hopper"), Settings(seed=1, worlds=64, horizon=32, iterations=300))
>>> for _ in range(300):
...     print(shac.iterate().episode_return)

``sinew learn hopper -o FOLDER`` does the same with a log and checkpoints. PyTorch, which it needs, is imported with the
first of these names: ``pip install sinew[learn]``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sinew.learn.settings import Settings
    from sinew.learn.shac import Figures, Shac
    from sinew.learn.task import Bodies, Physics, Task
    from sinew.learn.tasks import make_task, task_names
    from sinew.learn.training import train
    from sinew.learn.worlds import Step, Worlds, evaluate

__all__ = [
    "Bodies", "Figures", "Physics", "Settings", "Shac", "Step", "Task", "Worlds", "evaluate", "make_task",
    "task_names", "train",
]  # fmt: skip

_MODULES = {
    "settings": ("Settings",),
    "shac": ("Figures", "Shac"),
    "task": ("Bodies", "Physics", "Task"),
    "tasks": ("make_task", "task_names"),
    "training": ("train",),
    "worlds": ("Step", "Worlds", "evaluate"),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"sinew.learn.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
