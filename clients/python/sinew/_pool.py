"""Keeps backends and batches that are idle, so that a call does not open threads and allocate each time.

A batch that a result needs for its way back is leased; it comes back here when the result goes. Lists change by single
operations that the interpreter's lock makes whole, so that a result may go at any moment, in any thread.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import ReferenceType, ref

from sinew import _core
from sinew.cfd import CFD
from sinew.errors import StateError
from sinew.model import Model

__all__ = ["Key", "Lease", "lease", "threads_of_cpu"]

_MOST_IDLE = 256  # batches: a return over a short horizon has one for each of its calls
_MOST_NUMBERS = 32 << 20  # doubles of trajectories that idle batches may hold
_MODELS = 16  # so many may have idle batches, whatever worlds these have for every thread
_MOST_BYTES = 128 << 20  # of idle batches, where more models have some; a device's own memory is not in it
_SLACK = 4  # an idle batch serves calls that need at least this part of it


@dataclass(eq=False)
class _Backend:
    """Threads, or a device, which serve one call at a time."""

    native: _core.Backend
    lock: threading.RLock = field(default_factory=threading.RLock)
    in_call: bool = False  # a signal's handler may come back in the same thread
    dead: list[Any] = field(default_factory=list)  # batches to be freed by who has the lock

    def enter(self, wait: bool) -> bool:
        if not self.lock.acquire(blocking=wait):
            return False
        if self.in_call:
            self.lock.release()
            if wait:
                raise StateError("a call on the same threads is under way in this thread")
            return False
        self.in_call = True
        return True

    def leave(self) -> None:
        self.dead.clear()
        self.in_call = False
        self.lock.release()

    def drop(self, batch: _core.Batch) -> None:
        """Free a batch, now or when the call under way ends."""
        self.dead.append(batch)
        if self.enter(wait=False):
            self.leave()


class Key(NamedTuple):
    """What a batch is made of, but for its size."""

    model: _core.Model
    device: str
    threads: int
    block_threads: int
    task: _core.Task | None
    cfd: tuple[Any, ...] | None
    gradients: bool
    max_velocity: float


@dataclass(eq=False)
class _Held:
    key: Key
    backend: _Backend
    batch: _core.Batch
    capacity: int
    steps: int
    numbers: int  # about how many doubles of trajectories it holds
    memory: int  # about how many bytes it takes at most, with worlds for every thread
    model: ReferenceType[Model]  # whose death ends its use: nobody else can ask for a batch of this key


class _Cache:
    def __init__(self) -> None:
        self.backends: dict[tuple[str, int, int], list[_Backend]] = {}
        self.idle: list[_Held] = []

    def take(self, key: Key, count: int, steps: int) -> _Held | None:
        """Return an idle batch that fits, and whose backend is entered."""
        most = _SLACK * count * steps
        fitting = [
            held
            for held in self.idle
            if held.capacity >= count and held.steps >= steps and held.capacity * held.steps <= most and held.key == key
        ]
        for held in sorted(fitting, key=lambda held: held.memory) if len(fitting) > 1 else fitting:
            if not held.backend.enter(wait=False):
                continue
            try:
                self.idle.remove(held)
            except ValueError:  # another thread has taken it
                held.backend.leave()
                continue
            return held
        return None

    def backend(self, device: str, threads: int, block_threads: int) -> _Backend:
        """Return a backend that is entered."""
        found = self.backends.setdefault((device, threads, block_threads), [])
        for backend in list(found):
            if backend.enter(wait=False):
                return backend
        backend = _Backend(_core.Backend(device, threads, block_threads))
        backend.enter(wait=True)
        found.append(backend)
        return backend

    def give(self, held: _Held) -> None:
        """Take back a batch; the ones that have been idle for longest go where there are too many."""
        self.idle.append(held)
        if held.model() is None:
            self.forget(held.model)
        while _too_many(list(self.idle)):
            try:
                oldest = self.idle.pop(0)
            except IndexError:
                return
            oldest.backend.drop(oldest.batch)

    def forget(self, model: ReferenceType[Model]) -> None:
        """Free the idle batches of a model that is no more."""
        for held in [held for held in list(self.idle) if held.model is model]:
            try:
                self.idle.remove(held)
            except ValueError:  # another thread has taken it
                continue
            held.backend.drop(held.batch)


def _too_many(idle: list[_Held]) -> bool:
    if len(idle) > _MOST_IDLE or sum(held.numbers for held in idle) > _MOST_NUMBERS:
        return True
    if len(idle) <= _MODELS or len({id(held.key.model) for held in idle}) <= _MODELS:
        return False
    return any(held.key.device != "cpu" for held in idle) or sum(held.memory for held in idle) > _MOST_BYTES


_cache = _Cache()


def _model_died(model: ReferenceType[Model]) -> None:
    _cache.forget(model)


def _forget() -> None:
    """Begin anew: threads do not come along in fork()."""
    global _cache
    _cache = _Cache()


os.register_at_fork(after_in_child=_forget)
atexit.register(_forget)


class Lease:
    """A batch that belongs to a result until it is given back."""

    __slots__ = ("_backend", "_cache", "_held")

    def __init__(self, held: _Held) -> None:
        self._held: _Held | None = held
        self._backend = held.backend
        self._cache = _cache

    @property
    def batch(self) -> _core.Batch:
        """The batch."""
        return self._entered().batch

    def _entered(self) -> _Held:
        if self._held is None:
            raise StateError("the rollout was closed, or made without gradients")
        return self._held

    def leave(self) -> None:
        """Let other calls have the backend."""
        self._backend.leave()

    def give_back(self) -> None:
        """Give the batch back; more than once does nothing."""
        held, self._held = self._held, None
        if held is not None and self._cache is _cache:
            self._cache.give(held)

    def __reduce__(self) -> Any:
        raise TypeError("a rollout is neither copied nor pickled: take its arrays")

    def __del__(self) -> None:
        self.give_back()

    @contextmanager
    def use(self) -> Iterator[_core.Batch]:
        """Enter the backend of the batch, once it is free."""
        held = self._entered()
        held.backend.enter(wait=True)
        try:
            yield self._entered().batch  # which another thread may have given back meanwhile
        finally:
            held.backend.leave()


def _make(key: Key, model: Model, cfd: CFD | None, count: int, steps: int) -> _Held:
    backend = _cache.backend(key.device, key.threads, key.block_threads)
    try:
        native = None if cfd is None else cfd._native()
        batch = _core.Batch(key.model, backend.native, key.task, count, steps, key.gradients, key.max_velocity, native)
    except BaseException:
        backend.leave()
        raise
    numbers = count * (steps + 1) * (model.nq + model.nv + 2 * model.nu)
    return _Held(key, backend, batch, count, steps, numbers, batch.memory, ref(model, _model_died))


def lease(key: Key, model: Model, cfd: CFD | None, count: int, steps: int) -> Lease:
    """Return a batch for `count` rollouts of `steps` steps, whose backend is entered: the caller leaves it."""
    return Lease(_cache.take(key, count, steps) or _make(key, model, cfd, count, steps))


@contextmanager
def threads_of_cpu(threads: int) -> Iterator[_core.Backend]:
    """Enter an idle backend with so many threads of the CPU; 0: as many as this process may use."""
    backend = _cache.backend("cpu", threads, 0)
    try:
        yield backend.native
    finally:
        backend.leave()
