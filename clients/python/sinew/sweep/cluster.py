"""Runs on a Ray cluster, whose nodes have the package installed; a run whose node dies begins again at another."""

from __future__ import annotations

import logging
from collections.abc import Generator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import ray

from sinew.errors import StateError
from sinew.sweep.job import Job

if TYPE_CHECKING:
    from sinew.sweep.play import Played

__all__ = ["play_on_ray"]

_RETRIES = 5  # of a run whose process or node has died


def play_on_ray(jobs: list[Job], address: str, keep: bool) -> Generator[tuple[Job, Played | str]]:
    """Run jobs, each on one core of the cluster, and yield each as it ends, as `play_here` does.

    Parameters
    ----------
    jobs : list of Job
        Their models go to the cluster once.
    address : str
        Of the cluster, HOST:PORT, or "auto" for the one of this machine.
    keep : bool
        Whether traces are wanted.

    Raises
    ------
    StateError
        There is no cluster.
    """
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise StateError(f"no Ray cluster at {address}: {' '.join(str(error).split())}") from None
    try:
        models = {model: ray.put(model) for model in dict.fromkeys(job.model for job in jobs)}
        begin = ray.remote(num_cpus=1, max_retries=_RETRIES)(_play)
        pending = {begin.remote(replace(job, model=b""), models[job.model], keep): job for job in jobs}
        while pending:
            for done in ray.wait(list(pending))[0]:
                yield pending.pop(done), _result(done)
    finally:
        ray.shutdown()


def _result(done: Any) -> Played | str:
    """Return what came of a run; the text of the error where its processes have died too often."""
    try:
        played: Played | str = ray.get(done)
    except ray.exceptions.RayError as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    return played


def _play(job: Job, model: bytes, keep: bool) -> Played | str:
    """Run a job at a node."""
    from sinew.sweep.play import attempt

    return attempt(replace(job, model=model), keep)
