"""sinew.jax against differences of itself and sinew.rollout_vjp, under jit, grad, vmap and scan."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sinew
from sinew.errors import ArgumentError, NotFoundError, UnsupportedError

jax = pytest.importorskip("jax", reason="JAX is not there")
jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402
import sinew.jax as sinew_jax  # noqa: E402
from jax.test_util import check_grads  # noqa: E402
from sinew.jax import rollout  # noqa: E402

import processes  # noqa: E402
from differentiable import MEMBERS, NAMES, Case, case, jax_gradient  # noqa: E402

HERE = Path(__file__).parent
OF_XLA = (jax.errors.JaxRuntimeError, ValueError)  # what JAX makes of an error while XLA computes


def number(of: Case, out: Any) -> Any:
    """Return the number whose derivatives by trajectories the case has."""
    return sum(jnp.vdot(getattr(out, name), bar) for name, bar in of.bars.items())


def remade() -> int:
    """Return how many rollouts were made again for their way back."""
    return int(sinew_jax._device("cpu", 0).remade)


# ---- trajectories and derivatives ----


@pytest.mark.parametrize("name", NAMES)
def test_trajectories_and_gradients_are_those_of_numpy_to_the_bit(name: str) -> None:
    of = case(name)
    out = jax.jit(lambda state, ctrl: rollout(of.model, state, ctrl))(of.state, of.ctrl)
    want = sinew.rollout(of.model, of.state, of.ctrl)
    for member in MEMBERS:
        assert np.array_equal(getattr(out, member), getattr(want, member), equal_nan=True)
    before = remade()
    got = jax_gradient(of)
    for by, x in of.gradient().items():
        assert got[by].dtype == np.float64
        assert np.array_equal(got[by], x), by
    assert remade() == before


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_those_of_differences(name: str) -> None:
    of = case(name, steps=3)
    free = [at + (3 if kind == 0 else 0)
            for at, kind in zip(of.model.jnt_qposadr, of.model.jnt_type, strict=True) if kind < 2]  # fmt: skip

    def trajectories(state: dict[str, Any], ctrl: Any) -> Any:
        qpos = jnp.asarray(state["qpos"])
        for at in free:  # a derivative is one on unit quaternions
            quaternion = qpos[at : at + 4]
            qpos = qpos.at[at : at + 4].set(quaternion / jnp.linalg.norm(quaternion))
        return rollout(of.model, {**state, "qpos": qpos}, ctrl)

    one = {name: jnp.asarray(x[0]) for name, x in of.state.items()}
    check_grads(trajectories, (one, jnp.asarray(of.ctrl[0])), order=1, modes=["rev"], eps=1e-6, atol=1e-5, rtol=1e-5)


def test_a_state_and_controls_that_rollouts_share_have_the_sum_of_their_gradients() -> None:
    of = case("cube")
    loss = lambda state, ctrl: number(of, rollout(of.model, state, ctrl))  # noqa: E731
    one = {name: x[0] for name, x in of.state.items()}
    by_state, _ = jax.grad(loss, (0, 1))(one, of.ctrl)
    want = sinew.rollout_vjp(sinew.rollout(of.model, one, of.ctrl), **of.bars)
    for name, x in by_state.items():
        assert np.allclose(x, getattr(want, name).sum(axis=0), rtol=1e-13, atol=1e-13)
    by_ctrl = jax.grad(loss, 1)(of.state, of.ctrl[0])
    want = sinew.rollout_vjp(sinew.rollout(of.model, of.state, of.ctrl[0]), **of.bars)
    assert np.allclose(by_ctrl, want.ctrl.sum(axis=0), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("many", [False, True])
def test_what_is_not_given_is_as_in_the_model(many: bool) -> None:
    of = case("cube")
    state = {
        "qvel": of.state["qvel"] if many else of.state["qvel"][0],
        "time": 0.5,
        "qacc_warmstart": np.ones(of.model.nv),
    }
    out = rollout(of.model, state, nstep=4)
    want = sinew.rollout(of.model, state, nstep=4)
    for member in MEMBERS:
        assert np.array_equal(getattr(out, member), getattr(want, member), equal_nan=True)
    gradient = jax.grad(lambda x: rollout(of.model, {**state, "qvel": x}, nstep=4).qpos.sum())(state["qvel"])
    bar = np.ones_like(want.qpos)
    assert np.array_equal(gradient, sinew.rollout_vjp(want, qpos=bar).qvel)


def test_options_are_those_of_numpy() -> None:
    of = case("cube")
    options = {"cfd": sinew.CFD(bodies=["cube"]), "integrator": "implicitfast", "threads": 1}
    got = jax.grad(lambda x: number(of, rollout(of.model, {**of.state, "qpos": x}, of.ctrl, **options)))(
        of.state["qpos"]
    )
    want = sinew.rollout_vjp(sinew.rollout(of.model, of.state, of.ctrl, **options), **of.bars)
    assert np.array_equal(got, want.qpos)
    assert not np.array_equal(want.qpos, of.gradient()["qpos"])


def test_float32_is_computed_in_doubles() -> None:
    of = case("hand")
    state = {name: np.float32(x) for name, x in of.state.items()}
    ctrl, bar = np.float32(of.ctrl), np.float32(of.bars["qpos"])
    out = rollout(of.model, state, ctrl)
    assert {x.dtype for x in out} == {np.dtype(np.float32)}
    want = sinew.rollout(of.model, state, ctrl)
    assert np.array_equal(out.qpos, np.float32(want.qpos))
    gradient = sinew.rollout_vjp(want, qpos=bar)
    by_state, by_ctrl = jax.grad(lambda s, c: jnp.vdot(rollout(of.model, s, c).qpos, bar), (0, 1))(state, ctrl)
    assert by_ctrl.dtype == np.float32
    assert np.array_equal(by_ctrl, np.float32(gradient.ctrl))
    assert np.array_equal(by_state["qpos"], np.float32(gradient.qpos))


# ---- batches of batches ----


@pytest.mark.parametrize(("of_state", "of_ctrl"), [(0, 0), (None, 0), (0, None)])
def test_vmap_adds_to_n(of_state: int | None, of_ctrl: int | None) -> None:
    of = case("hand")
    state = of.state if of_state == 0 else {name: x[0] for name, x in of.state.items()}
    ctrl = of.ctrl if of_ctrl == 0 else of.ctrl[0]
    want = sinew.rollout(of.model, state, ctrl)

    def loss(state: Any, ctrl: Any, bar: Any) -> Any:
        return jnp.vdot(rollout(of.model, state, ctrl).qpos, bar)

    out = jax.jit(jax.vmap(lambda s, c: rollout(of.model, s, c), (of_state, of_ctrl)))(state, ctrl)
    assert np.array_equal(out.qpos, want.qpos)
    before = remade()
    gradients = jax.jit(jax.vmap(jax.grad(loss, (0, 1)), (of_state, of_ctrl, 0)))(state, ctrl, of.bars["qpos"])
    numpy = sinew.rollout_vjp(want, qpos=of.bars["qpos"])
    assert np.array_equal(gradients[1], numpy.ctrl)
    for name, x in gradients[0].items():
        assert np.array_equal(x, getattr(numpy, name))
    assert remade() == before


def test_vmap_of_vmap_of_batches() -> None:
    of = case("cube")
    bars = np.random.default_rng(5).normal(size=(2, 4, 3, 5, of.model.nq))
    scale = np.linspace(0.5, 1, 2), np.linspace(0.1, 0.4, 4)

    def loss(velocity: Any, control: Any, bar: Any) -> Any:
        state = {**of.state, "qvel": velocity * of.state["qvel"]}
        return jnp.vdot(rollout(of.model, state, control * of.ctrl).qpos, bar)

    f = jax.jit(jax.value_and_grad(loss, (0, 1)))
    values, gradients = jax.jit(jax.vmap(jax.vmap(f, (None, 0, 0)), (0, None, 0)))(*scale, bars)
    for i, velocity in enumerate(scale[0]):
        for j, control in enumerate(scale[1]):
            value, gradient = f(velocity, control, bars[i, j])
            assert np.allclose(values[i, j], value, rtol=1e-12)
            assert np.allclose([g[i, j] for g in gradients], gradient, rtol=1e-10)


def test_a_jacobian_goes_back_through_one_rollout() -> None:
    of = case("hand")
    state = {name: x[0] for name, x in of.state.items()}
    before = remade()
    jacobian = jax.jit(jax.jacrev(lambda c: rollout(of.model, state, c).qvel[-1]))(of.ctrl[0])
    assert remade() == before
    bars = np.zeros((of.model.nv, 5, of.model.nv))
    bars[np.arange(of.model.nv), -1, np.arange(of.model.nv)] = 1
    repeated = np.broadcast_to(of.ctrl[0], (of.model.nv, *of.ctrl[0].shape))
    assert np.array_equal(jacobian, sinew.rollout_vjp(sinew.rollout(of.model, state, repeated), qvel=bars).ctrl)


def test_scan_over_rollouts() -> None:
    of = case("hand", steps=6)

    def loss(ctrl: Any) -> Any:
        def two_steps(state: Any, ctrl: Any) -> Any:
            out = rollout(of.model, state, ctrl)
            return {name: getattr(out, name)[:, -1] for name in state}, out.qpos[:, 1:]

        parts = jnp.moveaxis(ctrl.reshape(3, 3, 2, -1), 1, 0)
        _, qpos = jax.lax.scan(two_steps, of.state, parts)
        return jnp.vdot(jnp.moveaxis(qpos, 0, 1).reshape(3, 6, -1), of.bars["qpos"][:, 1:])

    got = jax.jit(jax.grad(loss))(jnp.asarray(of.ctrl))
    bar = of.bars["qpos"].copy()
    bar[:, 0] = 0
    want = sinew.rollout_vjp(sinew.rollout(of.model, of.state, of.ctrl), qpos=bar).ctrl
    # A rollout begins without the solver's warm start, so that parts are a little different from the whole.
    assert np.allclose(got, want, rtol=1e-4, atol=1e-6 * abs(want).max())


# ---- what is kept between there and back ----


def test_more_rollouts_than_are_kept_are_made_again() -> None:
    of = case("hand")
    bar = jnp.asarray(of.bars["qpos"])
    ctrls = [of.ctrl * (1 - 0.01 * i) for i in range(12)]
    ways_back = [jax.vjp(lambda c: rollout(of.model, of.state, c).qpos, ctrl)[1] for ctrl in ctrls]
    before = remade()
    for ctrl, way_back in zip(ctrls, ways_back, strict=True):
        want = sinew.rollout_vjp(sinew.rollout(of.model, of.state, ctrl), qpos=of.bars["qpos"]).ctrl
        for _ in range(2):
            assert np.array_equal(way_back(bar)[0], want)
    assert remade() > before
    assert sinew_jax._device("cpu", 0).batches <= 8


def test_a_part_of_a_way_back_is_not_taken_for_the_whole() -> None:
    of = case("hand")
    _, way_back = jax.vjp(lambda c: rollout(of.model, of.state, c).qpos, of.ctrl)
    turned = jax.tree.map(lambda x: x[::-1] if x.ndim > 0 and x.shape[0] == 3 else x, way_back)
    want = sinew.rollout_vjp(
        sinew.rollout(of.model, {name: x[::-1] for name, x in of.state.items()}, of.ctrl[::-1]), qpos=of.bars["qpos"]
    )
    assert np.array_equal(turned(jnp.asarray(of.bars["qpos"]))[0], want.ctrl)


def test_threads_have_rollouts_of_their_own() -> None:
    of, want = case("hand"), case("hand").gradient()["ctrl"]
    gradient = jax.jit(jax.grad(lambda c: number(of, rollout(of.model, of.state, c))))
    wrong: list[object] = []

    def use(i: int) -> None:
        other = of.ctrl * (1 - 0.01 * i)
        for _ in range(10):
            gradient(other).block_until_ready()
            got = np.asarray(gradient(of.ctrl))
            if not np.array_equal(got, want):
                wrong.append(got)

    threads = [threading.Thread(target=use, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_calls_leave_resident_memory_where_it_was() -> None:
    of = case("hand", steps=20)
    gradient = jax.jit(jax.grad(lambda c: rollout(of.model, of.state, c).qpos.sum()))

    def resident(times: int) -> int:
        for i in range(times):
            gradient(of.ctrl * (1 - 1e-3 * i)).block_until_ready()
        return processes.resident()

    before = resident(20)
    assert resident(60) - before < 16 << 20


# ---- what is refused ----


@pytest.mark.parametrize(
    ("ctrl", "state", "text"),
    [
        (np.zeros((5, 3)), None, r"ctrl: shape \(5, 3\), expected \(T, 2\) or \(N, T, 2\)"),
        (np.zeros((5, 2)), {"qpos": np.zeros((2, 3))}, r"qpos: shape \(2, 3\), expected \(12,\) or \(N, 12\)"),
        (np.zeros((2, 5, 2)), {"qvel": np.zeros((3, 10))}, "ctrl: 2 rows, expected 1 or 3 as qvel has"),
        (np.zeros((5, 2), np.float16), None, "ctrl: numbers of type float16, expected float32 or float64"),
        (np.zeros((5, 2), complex), None, "ctrl: numbers of type complex128"),
        (np.zeros((0, 2)), None, r"ctrl: shape \(0, 2\), expected at least one rollout of one step"),
        (None, None, "ctrl: None"),
    ],
)
def test_wrong_arrays_are_refused_in_words(ctrl: Any, state: Any, text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        rollout(case("cube").model, state, ctrl)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_errors_of_the_library_come_with_its_text(wrap: Callable) -> None:
    of = case("cube")
    ctrl = of.ctrl.copy()
    ctrl[1, 2, 0] = np.nan
    with pytest.raises(OF_XLA, match=r"ctrl\[2\]\[0\] of rollout 1: nan, allowed is a number"):
        wrap(lambda c: rollout(of.model, of.state, c))(ctrl).qpos.block_until_ready()
    with pytest.raises(OF_XLA, match="bars of rollout 0: bar of qpos"):
        wrap(jax.grad(lambda c: jnp.sum(rollout(of.model, of.state, c).qpos) * np.nan))(of.ctrl).block_until_ready()


@pytest.mark.parametrize("derivative", [jax.hessian, lambda f: jax.grad(lambda c: jax.grad(f)(c).sum())])
def test_second_derivatives_are_refused_in_words(derivative: Callable) -> None:
    of = case("reach")
    with pytest.raises(UnsupportedError, match="second derivatives"):
        derivative(lambda c: number(of, rollout(of.model, of.state, c)))(of.ctrl)


def test_forward_mode_is_refused_in_words() -> None:
    of = case("reach")
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(lambda c: rollout(of.model, of.state, c).qpos, (of.ctrl,), (of.ctrl,))


# ---- XLA's interface ----


def test_the_layout_is_that_of_the_installed_jaxlib(tmp_path: Path) -> None:
    compiler = shutil.which("c++") or shutil.which("g++")
    if not compiler:
        pytest.skip("there is no compiler of C++")
    status = subprocess.run(
        [compiler, "-std=c++17", "-fsyntax-only", f"-I{jax.ffi.include_dir()}", f"-I{HERE.parents[2]}",
         HERE / "xla_layout.cpp"], capture_output=True, text=True,
    )  # fmt: skip
    assert status.returncode == 0, status.stderr


def test_without_jax_the_words_say_what_to_install() -> None:
    program = "import sys; sys.modules['jax'] = None\nimport sinew\nimport sinew.jax"
    status = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "ImportError: sinew.jax needs JAX 0.6 or newer: pip install 'jax>=0.6'" in status.stderr


# ---- nearest points ----

ARM = """<mujoco><worldbody><geom name="wall" type="box" size=".1 .5 .5" pos=".8 0 0"/>
<body><joint type="ball"/><geom name="rod" type="capsule" size=".05" fromto="0 0 0 .5 0 0"/></body>
</worldbody></mujoco>"""
WALL = [("rod", "wall"), ("wall", "rod")]


def reached(model: sinew.Model, qpos: Any, **options: Any) -> Any:
    """Return a number of nearest points."""
    near = sinew_jax.nearest_points(model, {"qpos": qpos}, WALL, **options)
    return jnp.sum(near.dist**2) + jnp.sum(near.fromto[..., 0, 1]) + jnp.vdot(near.normal, near.normal + 1.0)


@pytest.mark.parametrize("derivative", ["exact", "surrogate"])
def test_nearest_points_are_those_of_numpy(derivative: Any) -> None:
    model = sinew.Model.from_string(ARM)
    qpos = np.random.default_rng(2).standard_normal((5, 4)) * 0.2 + [1, 0, 0, 0]
    near = jax.jit(lambda q: sinew_jax.nearest_points(model, {"qpos": q}, WALL))(qpos)
    want = sinew.nearest_points(model, {"qpos": qpos}, WALL)
    for name in ("dist", "fromto", "normal"):
        np.testing.assert_array_equal(getattr(near, name), getattr(want, name))
    back = jax.jit(jax.grad(lambda q: jnp.sum(reached(model, q, derivative=derivative))))(qpos)
    bar = np.zeros_like(want.fromto)
    bar[..., 0, 1] = 1
    gradient = sinew.nearest_points_vjp(want, 2 * want.dist, bar, 2 * want.normal + 1, derivative=derivative)
    np.testing.assert_allclose(back, gradient.qpos, rtol=1e-12, atol=1e-12)


def test_nearest_points_under_vmap_are_a_batch() -> None:
    model = sinew.Model.from_string(ARM)
    qpos = jnp.asarray(np.random.default_rng(3).standard_normal((3, 2, 4)) * 0.2 + [1, 0, 0, 0])
    whole = jax.grad(lambda q: reached(model, q.reshape(-1, 4)))(qpos)
    np.testing.assert_allclose(jax.vmap(jax.grad(lambda q: reached(model, q)))(qpos), whole, rtol=1e-12)
    np.testing.assert_allclose(jax.vmap(jax.vmap(jax.grad(lambda q: reached(model, q))))(qpos), whole, rtol=1e-12)
    check_grads(lambda q: reached(model, q / jnp.linalg.norm(q)), (qpos[0, 0],), 1, ["rev"], rtol=1e-5)


def test_nearest_points_refuse_what_they_have_not() -> None:
    model = sinew.Model.from_string(ARM)
    with pytest.raises(ArgumentError, match=r"qpos: shape \(3,\), expected \(4,\) or \(N, 4\)"):
        sinew_jax.nearest_points(model, {"qpos": jnp.ones(3)}, WALL)
    with pytest.raises(ArgumentError, match=r"mocap: shape \(2, 7\), expected \(0, 7\)"):
        sinew_jax.nearest_points(model, {"qpos": jnp.ones(4), "mocap": np.ones((2, 7))}, WALL)
    with pytest.raises(NotFoundError, match="the model has no geom 'ghost'"):
        sinew_jax.nearest_points(model, None, [("ghost", 0)])
    with pytest.raises(ArgumentError, match="derivative: 'foo', expected 'exact' or 'surrogate'"):
        sinew_jax.nearest_points(model, None, WALL, derivative="foo")  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match=r"second derivatives: sinew.jax.nearest_points"):
        jax.jacrev(jax.grad(lambda q: reached(model, q)))(jnp.asarray([1.0, 0.1, 0.2, 0.3]))
    single = sinew_jax.nearest_points(model, {"qpos": jnp.asarray([1, 0.1, 0.2, 0.3], jnp.float32)}, WALL)
    assert single.dist.dtype == jnp.float32 and single.dist.shape == (2,)
    assert sinew_jax.nearest_points(model, None, WALL).fromto.shape == (2, 2, 3)
