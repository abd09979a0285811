"""Rollouts on a device, which is the emulator of build/release, in a process whose linker finds it."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sinew
from sinew.errors import ArgumentError, LimitError, UnsupportedError

from bodies import body, controls, states

FOLDER = Path(__file__).resolve().parents[3] / "build" / "release" / "lib" / "sinew"
DEVICE = "emulator_double"
OUTPUTS = ("time", "qpos", "qvel", "act", "sensordata", "qacc_warmstart", "status", "good_states", "warnings")

On = Callable[..., Any]


@pytest.fixture(scope="module")
def there() -> Iterator[On]:
    """Give what calls a function in a process with a device."""
    if not (FOLDER / f"libsinew_{DEVICE}.so").is_file():
        pytest.skip("no build/release of the emulator")
    paths = [str(FOLDER), *os.environ.get("LD_LIBRARY_PATH", "").split(":")]
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process, pytest.MonkeyPatch.context() as patch:
        patch.setenv("LD_LIBRARY_PATH", ":".join(filter(None, paths)))  # which a process reads when it starts
        yield lambda f, *arguments: process.submit(f, *arguments).result(timeout=300)


def _case() -> tuple[sinew.Model, dict[str, np.ndarray], np.ndarray]:
    b = body("cube")
    return b.model, states(b, 5, 4), controls(b, 5, 20, 5)


def _moved(device: str, block_threads: int) -> dict[str, np.ndarray]:
    """Return what rollouts on a device come to, and derivatives of a sum."""
    model, state, ctrl = _case()
    got = sinew.rollout(model, state, ctrl, device=device, block_threads=block_threads)
    gradient = sinew.rollout_vjp(got, qpos=np.ones(got.qpos.shape))
    ways = {f"d{name}": getattr(gradient, name) for name in ("ctrl", "qpos", "qvel", "act")}
    return {name: getattr(got, name) for name in OUTPUTS} | ways


@pytest.mark.parametrize("block_threads", [0, 1, 8, 32])
def test_threads_of_a_world_do_not_change_results(there: On, block_threads: int) -> None:
    want = _moved("cpu", 0)
    got = there(_moved, DEVICE, block_threads)
    for name, numbers in want.items():
        assert np.array_equal(got[name], numbers, equal_nan=True), name
    assert want["dctrl"].any()


def _chain(block_threads: int) -> float:
    """Roll out many bodies on a device; returns the last of their angles."""
    links = 80
    link = '<body pos="0 0 -.1"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -.1" size=".01"/>'
    text = f"<mujoco><worldbody>{link * links}{'</body>' * links}</worldbody></mujoco>"
    state = {"qvel": np.ones(links)}
    moved = sinew.rollout(sinew.Model.from_string(text), state, nstep=2, device=DEVICE, block_threads=block_threads)
    return float(moved.qpos[-1, -1])


def test_a_world_too_large_for_a_thread_is_refused_in_words(there: On) -> None:
    assert there(_chain, 0) > 0
    with pytest.raises(LimitError, match="block threads: 1: a world takes"):
        there(_chain, 1)


@pytest.mark.parametrize(
    ("block_threads", "text"),
    [
        (33, "block threads: 33, allowed are 1, 8 and 32, and 0 for what is best"),
        (16, "block threads: 16, allowed are 1, 8 and 32,"),
        (64, "block threads: 64, allowed are 1, 8 and 32,"),
        (-1, "block_threads: -1, allowed is at least 0"),
    ],
)
def test_wrong_numbers_of_threads_are_refused_in_words(there: On, block_threads: int, text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        there(_moved, DEVICE, block_threads)


def _same_batches() -> tuple[bool, bool]:
    """Return whether a batch is used again by a call of other threads of a world, and by one of the same."""
    model, state, ctrl = _case()
    batches = []
    for block_threads in (1, 32, 1):
        with sinew.rollout(model, state, ctrl, device=DEVICE, block_threads=block_threads) as got:
            batches.append(got._lease.batch)
    return batches[1] is batches[0], batches[2] is batches[0]


def test_batches_are_kept_by_threads_of_a_world(there: On) -> None:
    assert there(_same_batches) == (False, True)


def _own_models() -> None:
    model, state, ctrl = _case()
    sinew.rollout(model, state, ctrl, device=DEVICE, models=[model] * 5)


def test_models_on_a_device_are_refused_in_words(there: On) -> None:
    with pytest.raises(UnsupportedError, match=DEVICE):
        there(_own_models)


@pytest.mark.parametrize(
    ("block_threads", "text"),
    [
        (1, "block_threads: 1, with device 'cpu' allowed is 0"),
        (-1, "block_threads: -1, with device 'cpu'"),
        (0.5, "block_threads: 0.5, expected a whole number"),
        (2**31, "block_threads: 2147483648 is out of range"),
    ],
)
def test_the_cpu_has_no_threads_of_a_world(block_threads: Any, text: str) -> None:
    model, state, ctrl = _case()
    with pytest.raises(ArgumentError, match=text):
        sinew.rollout(model, state, ctrl, block_threads=block_threads)
