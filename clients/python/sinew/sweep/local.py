"""Runs on the cores of this machine: a process for each, so that none takes memory or its own crash to the next."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Generator, Iterable
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any

from sinew.sweep.job import Job

if TYPE_CHECKING:
    from sinew.sweep.play import Played

__all__ = ["play_here"]


def play_here(jobs: Iterable[Job], processes: int, keep: bool) -> Generator[tuple[Job, Played | str]]:
    """Run jobs and yield each as it ends, with what came of it or the text of its error.

    The processes end with this one, and where the iterator is closed.
    """
    # Processes are copies of one that has imported what a run needs: they begin within milliseconds.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["sinew.sweep.play"])
    waiting, running = iter(jobs), dict[Any, tuple[BaseProcess, Job]]()
    try:
        while True:
            while len(running) < processes and (job := next(waiting, None)) is not None:
                receiver, sender = context.Pipe(duplex=False)
                process: BaseProcess = context.Process(target=_work, args=(sender, job, keep), daemon=True)
                running[receiver] = process, job
                process.start()
                sender.close()
            if not running:
                return
            for ready in wait(list(running)):
                process, job = running[ready]
                played = _receive(ready, process)
                del running[ready]
                yield job, played
    finally:
        for process, _ in running.values():
            if process.pid is not None:
                process.kill()
                process.join()


def _receive(receiver: Any, process: BaseProcess) -> Played | str:
    """Return what a process says at its end."""
    with receiver:
        try:
            played: Played | str = receiver.recv()
        except (EOFError, OSError):  # before it said anything, or in the middle
            process.join()
            return f"the process ended with status {process.exitcode}"
    process.join()
    return played


def _work(sender: Connection, job: Job, keep: bool) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    threading.Thread(target=_end_with_parent, daemon=True).start()
    from sinew.sweep.play import attempt

    played = attempt(job, keep)
    with contextlib.suppress(BrokenPipeError):
        sender.send(played)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
