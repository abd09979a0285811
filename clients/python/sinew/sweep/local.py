"""Runs on the cores of this machine: a process for each, so that none takes memory or its own crash to the next."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Generator, Iterable, Iterator
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any

from sinew.sweep.job import Job

if TYPE_CHECKING:
    from sinew.sweep.play import Played

__all__ = ["play_here"]

_LOOK = 1.0  # s between two looks whether a signal came


def play_here(jobs: Iterable[Job], processes: int, keep: bool) -> Generator[tuple[Job, Played | str]]:
    """Run jobs and yield each as it ends, with what came of it or the text of its error.

    The processes end with this one, and where the iterator is closed. Ctrl-C and SIGTERM, in the main thread, end it
    where it waits for the next run: a `KeyboardInterrupt` in the middle of a start may be lost, or end otherwise.
    A second one is raised at once.
    """
    context = multiprocessing.get_context("forkserver")
    with _signals_noted() as asked_to_end:
        _start_server()
        yield from _play_in(context, jobs, processes, keep, asked_to_end)
        if asked_to_end.poll():
            raise KeyboardInterrupt


def _play_in(
    context: multiprocessing.context.ForkServerContext,
    jobs: Iterable[Job],
    processes: int,
    keep: bool,
    asked_to_end: Connection,
) -> Generator[tuple[Job, Played | str]]:
    """Run jobs until all are done or something can be received from the last argument."""
    waiting, running = iter(jobs), dict[Any, tuple[BaseProcess, Job]]()
    try:
        while not asked_to_end.poll():
            while len(running) < processes and (job := next(waiting, None)) is not None:
                receiver, sender = context.Pipe(duplex=False)
                process: BaseProcess = context.Process(target=_work, args=(sender, job, keep), daemon=True)
                running[receiver] = process, job
                process.start()
                sender.close()
            if not running:
                return
            all_ready = wait([asked_to_end, *running], timeout=_LOOK)  # a signal may come just before it waits
            if asked_to_end in all_ready:
                return
            for ready in all_ready:
                process, job = running[ready]
                played = _receive(ready, process)
                del running[ready]
                yield job, played
    finally:
        for process, _ in running.values():
            if process.pid is not None:
                process.kill()
                process.join()


@contextlib.contextmanager
def _signals_noted() -> Iterator[Connection]:
    """Give the end of a pipe that has something to receive once SIGINT or SIGTERM came."""
    receiver, sender = multiprocessing.Pipe(duplex=False)

    def note(number: int, frame: object) -> None:
        if receiver.poll():
            raise KeyboardInterrupt
        sender.send_bytes(b"end")

    with receiver, sender:
        if threading.current_thread() is not threading.main_thread():  # others get no signals
            yield receiver
            return
        # A background job of a shell begins with SIGINT ignored: it stays so.
        heard = [x for x in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(x) not in (signal.SIG_IGN, None)]
        before = {number: signal.signal(number, note) for number in heard}
        try:
            yield receiver
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _start_server() -> None:
    """Start the process whose copies do the runs: it has imported what they need, and they begin within milliseconds.

    Signals of a terminal, or of `timeout`, go to all processes. This one and its copies begin with them blocked: they
    are the parent's alone, which ends its processes by SIGKILL.
    """
    resource_tracker.ensure_running()  # would unblock them
    forkserver.set_forkserver_preload(["sinew.sweep.play"])
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where another server than ours made it
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
