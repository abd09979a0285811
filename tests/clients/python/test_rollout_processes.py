"""sinew.rollout among threads, processes and signals, and the memory that its calls keep."""

from __future__ import annotations

import gc
import multiprocessing
import threading

import numpy as np
import pytest
import sinew
from sinew import _pool
from sinew.errors import ArgumentError, StateError

from bodies import body, controls
from processes import interrupt, resident


def test_threads_roll_out_at_once() -> None:
    b = body("cube")
    ctrl = controls(b, 4, 30, 19)
    want = sinew.rollout(b.model, None, ctrl)
    bar = np.ones((31, b.model.nv))
    back = sinew.rollout_vjp(want, qvel=bar).ctrl
    wrong: list[object] = []

    def work() -> None:
        try:
            for _ in range(20):
                got = sinew.rollout(b.model, None, ctrl, threads=1)
                if not np.array_equal(got.qpos, want.qpos):
                    wrong.append("qpos")
                for of in (got, want):
                    if not np.array_equal(sinew.rollout_vjp(of, qvel=bar).ctrl, back):
                        wrong.append("ctrl")
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not wrong


def _in_child(queue: multiprocessing.SimpleQueue, before: sinew.Rollout, ctrl: np.ndarray) -> None:
    try:
        sinew.rollout_vjp(before, qvel=np.ones_like(before.qvel))
        text = "no error"
    except StateError as error:
        text = str(error)
    queue.put((text, sinew.rollout(before.model, None, ctrl).qpos))


def test_a_child_of_fork_begins_anew() -> None:
    b = body("cube")
    ctrl = controls(b, 2, 5, 20)
    before = sinew.rollout(b.model, None, ctrl)
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=_in_child, args=(queue, before, ctrl))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    text, qpos = queue.get()
    assert "fork()" in text
    assert np.array_equal(qpos, before.qpos)


CALLS_UNTIL_INTERRUPTED = """
import sys
import numpy as np
import sinew
from bodies import body

b = body("reach")
ctrl = np.zeros((64, 2000, b.model.nu))
of = sinew.rollout(b.model, None, ctrl)
bar = np.ones(of.qpos.shape)
call = {
    "rollout": lambda: sinew.rollout(b.model, None, np.zeros((2000, 2000, b.model.nu)), outputs=()),
    "rollout_vjp": lambda: sinew.rollout_vjp(of, qpos=bar),
}[sys.argv[1]]


def check():
    assert np.array_equal(sinew.rollout(b.model, None, ctrl).qpos, of.qpos)
"""


@pytest.mark.parametrize("call", ["rollout", "rollout_vjp"])
def test_ctrl_c_ends_a_call(call: str) -> None:
    interrupt(CALLS_UNTIL_INTERRUPTED, call)


def test_ten_thousand_calls_leave_memory_where_it_was() -> None:
    b = body("cube")
    ctrl = controls(b, 3, 4, 21)
    bar = np.ones((5, b.model.nv))

    def work(calls: int) -> None:
        for i in range(calls):
            got = sinew.rollout(b.model, None, ctrl[:, : 1 + i % 4], threads=1)
            if i % 10 == 0:
                sinew.rollout_vjp(sinew.rollout(b.model, None, ctrl, threads=1), qvel=bar)
            if i % 50 == 0:
                with pytest.raises(ArgumentError):
                    sinew.rollout(b.model, {"qpos": [np.nan] * b.model.nq}, nstep=2)
            del got

    work(1000)
    gc.collect()
    before = resident()
    work(10000)
    gc.collect()
    assert resident() - before < 4 << 20


@pytest.mark.parametrize("kept", [False, True])
def test_a_hundred_models_leave_little_memory(kept: bool) -> None:
    model, models = body("cube").model, []

    def work(first: int) -> None:
        for i in range(first, first + 100):
            other = model.with_options(timestep=1e-3 + 1e-6 * i)
            sinew.rollout(other, None, np.zeros((2, model.nu)), threads=8)
            if kept:
                models.append(other)

    work(0)
    gc.collect()
    before = resident()
    work(100)
    gc.collect()
    assert resident() - before < 40 << 20  # their batches, were all of them kept, are five times as large


def test_models_in_turn_keep_their_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as bytes allow; where they do not, those of sixteen."""
    monkeypatch.setattr(_pool, "_cache", _pool._Cache())
    b = body("cube")
    models = [b.model.replace(dof_damping=b.model.dof_damping + 0.01 * i) for i in range(40)]
    for model in models:
        sinew.rollout(model, nstep=3, threads=1)
    assert {id(held.key.model) for held in _pool._cache.idle} == {id(model._native) for model in models}
    monkeypatch.setattr(_pool, "_MOST_BYTES", 5000)
    assert _pool._cache.idle[0].memory > 5000
    sinew.rollout(models[0], nstep=3, threads=1)
    assert len(_pool._cache.idle) == 16
    assert _pool._cache.idle[-1].key.model is models[0]._native
