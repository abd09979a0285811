"""Runs on a Ray cluster, whose nodes have the package installed; a run whose node dies begins again at another."""

from __future__ import annotations

import logging
import socket
from collections.abc import Generator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import ray

from sinew.errors import ArgumentError, StateError
from sinew.sweep.job import Job

if TYPE_CHECKING:
    from sinew.sweep.play import Played

__all__ = ["play_on_ray"]

_RETRIES = 5  # of a run whose process or node has died
_PATIENCE = 5.0  # for an answer of the cluster [s]


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
    ArgumentError
        It is no such address.
    StateError
        There is no cluster.
    """
    _look_for(address)
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


def _look_for(address: str) -> None:
    """Say at once where nobody answers: Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if address == "auto":
        return
    if not host or "/" in host or not port.isdecimal() or int(port) > 65535:
        raise ArgumentError(f"--ray {address}: expected HOST:PORT, or auto")
    # Ray takes this machine's address in place of its loopback.
    host = ray.util.get_node_ip_address() if host in ("127.0.0.1", "localhost") else host
    try:
        socket.create_connection((host, int(port)), _PATIENCE).close()
    except OSError as error:
        raise StateError(f"no Ray cluster at {address}: {host}:{port}: {error.strerror or error}") from None


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
