#!/usr/bin/env python3
"""Measures the Python package beside MuJoCo, MJX, PyTorch and JAX, as ratios taken in one run.

  python clients/python/bench.py                          all parts, as a table
  python clients/python/bench.py --json rollout overhead  two parts, for machines
  build/python-env/bin/python clients/python/bench.py --also build/python-torch/bin/python

What is compared takes turns; each figure is a median over the repetitions, or the ratio of two. A part that lacks
something says what. Environments with all that is needed: tests/clients/python/run.sh --install.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import os
import platform
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

# The folder of this file has the sources of the package, without its module: the installed one is meant.
sys.path[:] = [x for x in sys.path if Path(x).resolve() != Path(__file__).resolve().parent]
import numpy as np  # noqa: E402

import sinew  # noqa: E402

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "sinew"
MYOSUITE = CACHE / "myosuite-2.12.2"
HAND = MYOSUITE / "myosuite/simhive/myo_sim/hand/myohand.xml"
PENDULUM = (
    """<mujoco><worldbody><body><joint axis="0 1 0"/><geom size="0.1" pos="0 0 -1"/></body></worldbody></mujoco>"""
)
# A cube that falls flat and rests: MJX differentiates one iteration of its solver, not several.
CUBE = """
<mujoco>
  <option timestep="0.004" iterations="1" ls_iterations="8"/>
  <worldbody>
    <geom type="plane" size="5 5 0.1"/>
    <body name="cube" pos="0 0 0.12"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="1"/></body>
  </worldbody>
</mujoco>
"""


class SkipError(Exception):
    """Something that a part needs is not there; the text says what."""


@dataclass
class Figure:
    """A number that was measured, and the one to reach: at most, or at least."""

    part: str
    what: str
    value: float
    unit: str
    most: float | None = None
    least: float | None = None

    @property
    def verdict(self) -> str:
        """What is to be reached, and whether it is."""
        if self.most is not None:
            return f"at most {self.most:g}: {'yes' if self.value <= self.most else 'no'}"
        if self.least is not None:
            return f"at least {self.least:g}: {'yes' if self.value >= self.least else 'no'}"
        return ""


@dataclass
class Settings:
    """How much is measured."""

    repeats: int
    threads: int
    count: int
    steps: int


def medians(settings: Settings, calls: dict[str, Callable[[], Any]], repeats: int = 0) -> dict[str, float]:
    """Return the median time of each call [s]; they take turns, after one round that does not count."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    names = list(calls)
    for turn in range((repeats or settings.repeats) + 1):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            start = time.perf_counter()
            calls[name]()
            if turn:
                times[name].append(time.perf_counter() - start)
        tell(f"{turn}/{repeats or settings.repeats}")
    return {name: statistics.median(values) for name, values in times.items()}


def tell(text: str) -> None:
    """Show progress on a terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def package(name: str) -> Any:
    """Import a package, or skip the part."""
    try:
        return __import__(name, fromlist=["_"])
    except ImportError as error:
        raise SkipError(str(error)) from None


def hand() -> str:
    """Return the file of MyoHand, or skip the part."""
    if not HAND.is_file():
        raise SkipError("MyoSuite's models are not there: clients/setup.sh --models")
    return str(HAND)


def smooth_controls(settings: Settings, nu: int) -> np.ndarray:
    """Return controls of muscles within 0 and 1, (N, T, nu), each muscle at a frequency of its own."""
    random = np.random.default_rng(1)
    rate, phase = random.uniform(0.005, 0.05, (2, settings.count, 1, nu))
    rows = np.arange(settings.steps)[:, None]
    return 0.3 + 0.25 * np.sin(2 * np.pi * (rate * rows + 20 * phase))


class Timed:
    """A batch of the module whose calls of the library are timed."""

    inside = 0.0

    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._batch, name)
        if not callable(attribute):
            return attribute

        def call(*arguments: Any) -> Any:
            start = time.perf_counter()
            try:
                return attribute(*arguments)
            finally:
                Timed.inside += time.perf_counter() - start

        return call


@contextlib.contextmanager
def timed_batches() -> Iterator[None]:
    """Let batches that are made in a ``with`` be timed ones."""
    from sinew import _pool

    make = _pool._make

    def make_timed(*arguments: Any) -> Any:
        held = make(*arguments)
        held.batch = Timed(held.batch)
        return held

    _pool._make = make_timed
    try:
        yield
    finally:
        _pool._make = make


def inside(call: Callable[[], Any]) -> Callable[[], tuple[float, float]]:
    """Return a call that gives its whole time and that inside the library [s]."""

    def run() -> tuple[float, float]:
        Timed.inside = 0.0
        start = time.perf_counter()
        result = call()
        whole = time.perf_counter() - start
        del result
        return whole, Timed.inside

    return run


# ---- parts ----


def part_rollout(settings: Settings) -> Iterator[Figure]:
    """Roll out MyoHand many times, beside mujoco.rollout and mujoco.batch."""
    mujoco, mj_rollout, mj_batch = package("mujoco"), package("mujoco.rollout"), package("mujoco.batch")
    m = mujoco.MjModel.from_xml_path(hand())
    model = sinew.Model.from_mujoco(m)
    ctrl = smooth_controls(settings, m.nu)
    full = mujoco.mjtState.mjSTATE_FULLPHYSICS
    d = mujoco.MjData(m)
    start = np.zeros(mujoco.mj_stateSize(m, full))
    mujoco.mj_getState(m, d, start, full)
    initial = np.tile(start, (settings.count, 1))
    datas = [mujoco.MjData(m) for _ in range(settings.threads)]
    batch = mj_batch.Batch(m, settings.count, settings.threads)
    at_rest = batch.state.copy()

    def mujoco_batch() -> None:
        batch.state[:] = at_rest
        batch.rollout(settings.steps, ctrl, record=("qpos", "qvel", "act", "sensordata"))

    with mj_rollout.Rollout(nthread=settings.threads) as pool:
        calls: dict[str, Callable[[], Any]] = {
            "sinew": lambda: sinew.rollout(model, ctrl=ctrl, threads=settings.threads, gradients=False),
            "sinew kept": lambda: sinew.rollout(model, ctrl=ctrl, threads=settings.threads),
            "rollout": lambda: pool.rollout(m, datas, initial, ctrl),
            "batch": mujoco_batch,
        }
        took = medians(settings, calls)
    size = f"{settings.count} x {settings.steps} MyoHand, {settings.threads} threads"
    yield Figure("rollout", f"sinew.rollout, {size}", took["sinew"], "s")
    yield Figure("rollout", "its time over mujoco.rollout's", took["sinew"] / took["rollout"], "", most=0.42)
    yield Figure("rollout", "its time over mujoco.batch's", took["sinew"] / took["batch"], "", most=0.42)
    yield Figure(
        "rollout",
        "with what gradients need, over mujoco.rollout's",
        took["sinew kept"] / took["rollout"],
        "",
        most=0.42,
    )


def part_gradient(settings: Settings) -> Iterator[Figure]:
    """Go back through rollouts of MyoHand, beside the way there."""
    model = sinew.Model.from_xml(hand())
    ctrl = smooth_controls(settings, model.nu)
    bar = np.ones((settings.count, settings.steps + 1, model.nq))
    kept = sinew.rollout(model, ctrl=ctrl, threads=settings.threads)
    calls: dict[str, Callable[[], Any]] = {
        "rollout": lambda: sinew.rollout(model, ctrl=ctrl, threads=settings.threads, gradients=False),
        "back": lambda: sinew.rollout_vjp(kept, qpos=bar),
    }
    took = medians(settings, calls)
    yield Figure("gradient", "sinew.rollout_vjp of them", took["back"], "s")
    yield Figure("gradient", "value and gradient over the rollout", 1 + took["back"] / took["rollout"], "")


def part_overhead(settings: Settings) -> Iterator[Figure]:
    """Take the library's own time from that of a call and of a batch: what Python adds."""
    model = sinew.Model.from_string(PENDULUM)
    data = sinew.Data(model)
    many = 2000
    took = medians(
        settings, {"calls": lambda: [data.step() for _ in range(many)], "call": lambda: data.step(many)}, repeats=20
    )
    yield Figure(
        "overhead", "Data.step, one step of a pendulum", 1e6 * (took["calls"] - took["call"]) / many, "us", most=5
    )
    with timed_batches():
        # A bound of their own: these batches are not those of other parts.
        one = inside(lambda: sinew.rollout(model, nstep=1, threads=1, gradients=False, max_velocity=9e9))
        runs = [one() for _ in range(2000)][100:]
        yield Figure(
            "overhead", "sinew.rollout, one step of a pendulum", 1e6 * statistics.median(w - c for w, c in runs), "us"
        )
        model = sinew.Model.from_xml(hand())
        ctrl = smooth_controls(settings, model.nu)
        bar = np.ones((settings.count, settings.steps + 1, model.nq))
        forward = inside(lambda: sinew.rollout(model, ctrl=ctrl, threads=settings.threads, max_velocity=9e9))
        forward()
        runs = [forward() for _ in range(settings.repeats)]
        share = 100 * statistics.median(w / c - 1 for w, c in runs)
        size = f"{settings.count} x {settings.steps} MyoHand"
        yield Figure("overhead", f"sinew.rollout of {size}, of the C call", share, "%", most=2)
        kept = sinew.rollout(model, ctrl=ctrl, threads=settings.threads, max_velocity=9e9)
        back = inside(lambda: sinew.rollout_vjp(kept, qpos=bar))
        runs = [back() for _ in range(settings.repeats)]
        share = 100 * statistics.median(w / c - 1 for w, c in runs)
        yield Figure("overhead", "sinew.rollout_vjp of them, of the C call", share, "%", most=2)


def part_torch(settings: Settings) -> Iterator[Figure]:
    """Go back by PyTorch, beside the gradient in C."""
    torch, ours = package("torch"), package("sinew.torch")
    model = sinew.Model.from_xml(hand())
    numbers = smooth_controls(settings, model.nu)
    ctrl = torch.tensor(numbers, requires_grad=True)
    bar = torch.ones(settings.count, settings.steps + 1, model.nq, dtype=torch.float64)
    out = ours.rollout(model, None, ctrl, threads=settings.threads)
    yield from back_over_c(
        settings, "torch", model, numbers, lambda: torch.autograd.grad(out.qpos, ctrl, bar, retain_graph=True)
    )


def part_jax(settings: Settings) -> Iterator[Figure]:
    """Go back by JAX, beside the gradient in C."""
    jax, ours = package("jax"), package("sinew.jax")
    jax.config.update("jax_enable_x64", True)
    model = sinew.Model.from_xml(hand())
    numbers = smooth_controls(settings, model.nu)
    bar = jax.numpy.ones((settings.count, settings.steps + 1, model.nq))

    def loss(u: Any) -> Any:
        return (bar * ours.rollout(model, None, u, threads=settings.threads).qpos).sum()

    both, ctrl = jax.jit(jax.value_and_grad(loss)), jax.numpy.asarray(numbers)
    _, back = jax.vjp(lambda u: ours.rollout(model, None, u, threads=settings.threads).qpos, ctrl)
    yield from back_over_c(settings, "jax", model, numbers, lambda: jax.block_until_ready(back(bar)))
    kept_bar = np.asarray(bar)

    def in_numpy() -> None:
        sinew.rollout_vjp(sinew.rollout(model, ctrl=numbers, threads=settings.threads), qpos=kept_bar)

    took = medians(settings, {"jax": lambda: jax.block_until_ready(both(ctrl)), "sinew": in_numpy})
    yield Figure(
        "jax", "jit of value_and_grad over sinew.rollout and rollout_vjp", took["jax"] / took["sinew"], "", most=1.1
    )


def back_over_c(
    settings: Settings, part: str, model: sinew.Model, ctrl: np.ndarray, back: Callable[[], Any]
) -> Iterator[Figure]:
    """Measure a way back beside the time inside the library's."""
    bar = np.ones((settings.count, settings.steps + 1, model.nq))
    with timed_batches():
        kept = sinew.rollout(model, ctrl=ctrl, threads=settings.threads, max_velocity=9e9)
        ours = inside(lambda: sinew.rollout_vjp(kept, qpos=bar))
        times: list[float] = []
        took = medians(settings, {part: back, "c": lambda: times.append(ours()[1])})
    yield Figure(part, f"backward of {settings.count} x {settings.steps} MyoHand", took[part], "s")
    yield Figure(part, "its time over the C gradient's", took[part] / statistics.median(times[1:]), "", most=1.1)


def part_linearize(settings: Settings) -> Iterator[Figure]:
    """Linearize a step of MyoHand, beside MuJoCo's mjd_transitionFD, on one thread."""
    mujoco = package("mujoco")
    m = mujoco.MjModel.from_xml_path(hand())
    model = sinew.Model.from_mujoco(m)
    data, d = sinew.Data(model), mujoco.MjData(m)
    data.ctrl[:] = d.ctrl[:] = 0.3
    data.step(20)
    for name in ("qpos", "qvel", "act"):
        getattr(d, name)[:] = getattr(data, name)
    n = 2 * m.nv + m.na
    A, B = np.zeros((n, n)), np.zeros((n, m.nu))
    calls: dict[str, Callable[[], Any]] = {
        "sinew": lambda: [data.jacobian() for _ in range(10)],
        "mujoco": lambda: [mujoco.mjd_transitionFD(m, d, 1e-6, True, A, B, None, None) for _ in range(10)],
    }
    took = medians(settings, calls)
    yield Figure("linearize", "A and B of one step of MyoHand", 100 * took["sinew"], "ms")
    yield Figure("linearize", "mjd_transitionFD's time over ours", took["mujoco"] / took["sinew"], "")
    if hasattr(sinew, "linearize"):
        state = {name: getattr(data, name).copy() for name in ("qpos", "qvel", "act")}
        rows = {name: np.tile(x, (64, 1)) for name, x in state.items()}
        ctrl = np.full((64, 1, model.nu), 0.3)
        took = medians(
            settings, {"sinew": lambda: sinew.linearize(model, rows, ctrl, threads=1), "mujoco": calls["mujoco"]}
        )
        yield Figure("linearize", "the same by sinew.linearize of 64 states", took["mujoco"] * 6.4 / took["sinew"], "")


def part_mjx(settings: Settings) -> Iterator[Figure]:
    """Let cubes fall, beside MJX on this CPU; compile time apart."""
    mujoco, jax = package("mujoco"), package("jax")
    with contextlib.redirect_stdout(io.StringIO()):  # it tells that it has no Warp
        mjx = package("mujoco.mjx")
    jax.config.update("jax_enable_x64", False)  # MJX as it is used
    m = mujoco.MjModel.from_xml_string(CUBE)
    model = sinew.Model.from_mujoco(m)
    count, steps = 256, 64
    qvel = np.random.default_rng(1).uniform(-1, 1, (count, m.nv))
    on_device, data = mjx.put_model(m), mjx.put_data(m, mujoco.MjData(m))

    def final(speed: Any) -> Any:
        move = lambda d, _: (mjx.step(on_device, d), None)  # noqa: E731
        return jax.lax.scan(move, data.replace(qvel=speed), None, length=steps)[0].qpos.sum()

    there, back = jax.jit(jax.vmap(final)), jax.jit(jax.vmap(jax.value_and_grad(final)))
    speeds = jax.numpy.asarray(qvel, dtype=jax.numpy.float32)
    start = time.perf_counter()
    jax.block_until_ready((there(speeds), back(speeds)))
    compiled = time.perf_counter() - start
    bar = np.zeros((steps + 1, m.nq))
    bar[-1] = 1.0

    def ours() -> None:
        sinew.rollout_vjp(sinew.rollout(model, {"qvel": qvel}, nstep=steps), qpos=bar)

    calls: dict[str, Callable[[], Any]] = {
        "mjx": lambda: jax.block_until_ready(there(speeds)),
        "mjx back": lambda: jax.block_until_ready(back(speeds)),
        "sinew": lambda: sinew.rollout(model, {"qvel": qvel}, nstep=steps, gradients=False),
        "sinew back": ours,
    }
    took = medians(settings, calls)
    yield Figure("mjx", "MJX's compilation of rollout and gradient", compiled, "s")
    yield Figure(
        "mjx", f"MJX's time over ours, {count} x {steps} cubes, float to double", took["mjx"] / took["sinew"], ""
    )
    yield Figure("mjx", "the same, value and gradient", took["mjx back"] / took["sinew back"], "")


def part_myosuite(settings: Settings) -> Iterator[Figure]:
    """Step an environment of MyoSuite on our engine, beside its own."""
    package("mujoco")
    gymnasium = package("gymnasium")
    hand()
    if importlib.util.find_spec("myosuite") is None:  # version 3 makes all steps of an action in one call, 2 does not
        sys.path.insert(0, str(MYOSUITE))
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        package("myosuite")
        made = [gymnasium.make("myoHandPoseFixed-v0").unwrapped for _ in range(2)]
    stepping = package("sinew.mujoco").stepping
    random = np.random.default_rng(1)
    actions = random.uniform(-1, 1, (50, *made[0].action_space.shape)).astype(np.float32)

    def episode(env: Any) -> None:
        env.reset(seed=1)
        for action in actions:
            env.step(action)

    def on_ours() -> None:
        with stepping(fields=False):  # its environments call mj_forward after their steps
            episode(made[0])

    took = medians(settings, {"sinew": on_ours, "mujoco": lambda: episode(made[1])})
    yield Figure("myosuite", "steps of myoHandPoseFixed-v0 on ours", len(actions) / took["sinew"], "/s")
    yield Figure("myosuite", "over those on MuJoCo's", took["mujoco"] / took["sinew"], "", least=1.8)


PARTS: dict[str, Callable[[Settings], Iterator[Figure]]] = {
    name.removeprefix("part_"): part for name, part in list(globals().items()) if name.startswith("part_")
}


# ---- the program ----


def of_another(
    interpreter: str, parts: list[str], arguments: argparse.Namespace
) -> tuple[list[Figure], dict[str, str]]:
    """Let another interpreter measure parts."""
    options = [f"--{name}={getattr(arguments, name)}" for name in ("repeats", "threads", "count", "steps")]
    command = [interpreter, __file__, "--json", *options, *parts]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return [], dict.fromkeys(parts, f"{interpreter}: {done.stderr.strip().splitlines()[-1:] or done.returncode}")
    result = json.loads(done.stdout)
    return [Figure(**{k: v for k, v in x.items() if k != "verdict"}) for x in result["figures"]], result["skipped"]


def print_table(figures: list[Figure], skipped: dict[str, str]) -> None:
    """Print figures for people."""
    tell("")
    width = max((len(x.what) for x in figures), default=0)
    part = ""
    for x in figures:
        if x.part != part:
            part = x.part
            print(f"\n{part}: {(PARTS[part].__doc__ or '').strip()}")
        print(f"  {x.what:{width}}  {x.value:10.4g} {x.unit:3}  {x.verdict}".rstrip())
    for part, why in skipped.items():
        print(f"\n{part} skipped: {why}")


def main() -> int:
    """Read the arguments, measure, print."""
    parts = "\n".join(f"  {name:10} {(part.__doc__ or '').strip()}" for name, part in PARTS.items())
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, epilog=f"parts:\n{parts}"
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help="which parts; all without any")
    parser.add_argument("--json", action="store_true", help="one object: machine, figures, skipped")
    parser.add_argument(
        "--also", action="append", default=[], metavar="PYTHON", help="measures what is skipped here, as torch"
    )
    parser.add_argument("--repeats", type=int, default=7, help="repetitions of each (7)")
    parser.add_argument("--threads", type=int, default=2, help="threads of rollouts (2)")
    parser.add_argument("--count", type=int, default=64, help="rollouts (64)")
    parser.add_argument("--steps", type=int, default=256, help="steps of each (256)")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.parts if name not in PARTS]
    if unknown:
        parser.error(f"there is no part {unknown[0]!r}; there are {', '.join(PARTS)}")
    settings = Settings(arguments.repeats, arguments.threads, arguments.count, arguments.steps)
    figures: list[Figure] = []
    skipped: dict[str, str] = {}
    for name in arguments.parts or PARTS:
        tell(name)
        try:
            figures += PARTS[name](settings)
        except SkipError as why:
            skipped[name] = str(why)
    for interpreter in arguments.also:
        if skipped:
            more, skipped = of_another(interpreter, list(skipped), arguments)
            figures += more
    if arguments.json:
        machine = {
            "cpus": len(os.sched_getaffinity(0)),
            "machine": platform.machine(),
            "python": platform.python_version(),
        }
        listed = [{**asdict(x), "verdict": x.verdict} for x in figures]
        print(
            json.dumps(
                {"machine": machine, "settings": asdict(settings), "figures": listed, "skipped": skipped}, indent=1
            )
        )
    else:
        print_table(figures, skipped)
    return 0


if __name__ == "__main__":
    sys.exit(main())
