"""sinew.torch against differences of itself, sinew.rollout_vjp and sinew.jax, in Debian's environment with PyTorch."""

from __future__ import annotations

import gc
import os
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest
import sinew
from sinew.errors import ArgumentError, UnsupportedError

torch = pytest.importorskip("torch", reason="PyTorch is not there")

from sinew.torch import nearest_points, rollout  # noqa: E402

import processes  # noqa: E402
from bodies import body  # noqa: E402
from differentiable import MEMBERS, NAMES, Case, case  # noqa: E402

HERE = Path(__file__).parent
JAX_PYTHON = Path(os.environ.get("SINEW_JAX_PYTHON", HERE.parents[2] / "build" / "python-env" / "bin" / "python"))


def tensors(of: Case, dtype: object = None) -> tuple[dict, torch.Tensor]:
    """Return state and controls as tensors that require gradients."""
    made = {name: torch.tensor(x, dtype=dtype, requires_grad=True) for name, x in {**of.state, "ctrl": of.ctrl}.items()}
    ctrl = made.pop("ctrl")
    return made, ctrl


def number(of: Case, out: tuple) -> torch.Tensor:
    """Return the number whose derivatives by trajectories the case has."""
    return sum((getattr(out, name) * torch.tensor(bar)).sum() for name, bar in of.bars.items())


# ---- derivatives ----


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_those_of_numpy_to_the_bit(name: str) -> None:
    of = case(name)
    state, ctrl = tensors(of)
    number(of, rollout(of.model, state, ctrl)).backward()
    for by, want in of.gradient().items():
        got = ctrl.grad if by == "ctrl" else state[by].grad
        assert got.dtype == torch.float64
        assert np.array_equal(got.numpy(), want), by


def test_gradients_are_those_of_jax_to_the_bit(tmp_path: Path) -> None:
    if (
        not JAX_PYTHON.exists()
        or subprocess.run([JAX_PYTHON, "-c", "import sinew.jax"], capture_output=True).returncode
    ):
        pytest.skip(f"there is no JAX beside this environment: {JAX_PYTHON}")
    for name in NAMES:
        body(name)  # skips without its file
    subprocess.run([JAX_PYTHON, "differentiable.py", tmp_path / "jax.npz"], cwd=HERE, check=True, timeout=300)
    with np.load(tmp_path / "jax.npz") as want:
        for name in NAMES:
            of = case(name)
            state, ctrl = tensors(of)
            number(of, rollout(of.model, state, ctrl)).backward()
            for by, x in {**state, "ctrl": ctrl}.items():
                assert np.array_equal(x.grad.numpy(), want[f"{name} {by}"]), (name, by)


@pytest.mark.parametrize("name", NAMES)
def test_gradcheck(name: str) -> None:
    of = case(name, steps=3)
    state, ctrl = tensors(of)
    given = {by: x[0].detach().requires_grad_() for by, x in {**state, "ctrl": ctrl}.items() if x.numel() > 0}
    # A free joint is 0, a ball is 1: their quaternions.
    quaternions = [at + (3 if kind == 0 else 0)
                   for at, kind in zip(of.model.jnt_qposadr, of.model.jnt_type, strict=True) if kind < 2]  # fmt: skip

    def trajectories(*xs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        parts = dict(zip(given, xs, strict=True))
        for at in quaternions:  # a derivative is one on unit quaternions
            before, quaternion, after = parts["qpos"].split([at, 4, of.model.nq - at - 4])
            parts["qpos"] = torch.cat([before, torch.nn.functional.normalize(quaternion, dim=0), after])
        controls = parts.pop("ctrl", None)
        return tuple(x for x in rollout(of.model, parts, controls, nstep=3) if x.numel() > 0)

    assert torch.autograd.gradcheck(trajectories, tuple(given.values()), eps=1e-6, atol=1e-6, rtol=1e-5)


def test_a_state_and_controls_that_rollouts_share_have_the_sum_of_their_gradients() -> None:
    of = case("cube")
    state, ctrl = tensors(of)
    one_state = {name: x[0].detach().requires_grad_() for name, x in state.items()}
    number(of, rollout(of.model, one_state, ctrl)).backward()
    want = sinew.rollout_vjp(sinew.rollout(of.model, {k: v[0] for k, v in of.state.items()}, of.ctrl), **of.bars)
    for name, x in one_state.items():
        assert np.allclose(x.grad.numpy(), getattr(want, name).sum(axis=0), rtol=1e-13, atol=1e-13)
    for shape in (of.ctrl.shape[1:], (1, *of.ctrl.shape[1:])):
        one_ctrl = ctrl[0].detach().reshape(shape).requires_grad_()
        number(of, rollout(of.model, state, one_ctrl)).backward()
        want = sinew.rollout_vjp(sinew.rollout(of.model, of.state, of.ctrl[0]), **of.bars).ctrl.sum(axis=0)
        assert one_ctrl.grad.shape == shape
        assert np.allclose(one_ctrl.grad.numpy(), want, rtol=1e-13, atol=1e-13)


def test_without_a_batch_dimension_there_is_none() -> None:
    of = case("cube")
    state, ctrl = tensors(of)
    out = rollout(of.model, {name: x[0] for name, x in state.items()}, ctrl[0])
    assert [x.ndim for x in out] == [2] * 4
    (out.qpos * torch.tensor(of.bars["qpos"][0])).sum().backward()
    want = sinew.rollout_vjp(sinew.rollout(of.model, of.state, of.ctrl), qpos=of.bars["qpos"])
    assert np.array_equal(ctrl.grad[0].numpy(), want.ctrl[0])
    assert not ctrl.grad[1:].any()


def test_gradients_go_only_to_what_requires_them() -> None:
    of = case("reach")
    state, ctrl = tensors(of)
    fixed = {name: x.detach() for name, x in state.items()}
    out = rollout(of.model, fixed, ctrl)
    number(of, out).backward()
    assert ctrl.grad is not None
    assert all(x.grad is None for x in fixed.values())
    assert not rollout(of.model, fixed, ctrl.detach()).qpos.requires_grad
    with torch.no_grad():
        assert not rollout(of.model, state, ctrl).qpos.requires_grad


def test_the_rest_of_a_state_is_constant() -> None:
    of = case("cube")
    _, ctrl = tensors(of)
    mocap = torch.tensor([[0.1, 2, 1, 1, 0, 0, 0]], dtype=torch.float64)
    warm = np.ones(of.model.nv)
    out = rollout(of.model, sinew.State(of.state["qpos"], None, None, torch.ones(3), mocap, warm), ctrl)
    want = sinew.rollout(of.model, sinew.State(of.state["qpos"], None, None, 1.0, mocap.numpy(), warm), of.ctrl)
    for name in MEMBERS:
        assert np.array_equal(getattr(out, name).detach().numpy(), getattr(want, name), equal_nan=True)


def test_float32_is_computed_in_doubles() -> None:
    of = case("hand")
    state, ctrl = tensors(of, torch.float32)
    out = rollout(of.model, state, ctrl)
    assert {x.dtype for x in out} == {torch.float32}
    doubles = {name: x.detach().numpy().astype(np.float64) for name, x in {**state, "ctrl": ctrl}.items()}
    given = doubles.pop("ctrl")
    want = sinew.rollout(of.model, doubles, given)
    assert np.array_equal(out.qpos.detach().numpy(), want.qpos.astype(np.float32))
    bar = of.bars["qpos"].astype(np.float32)
    (out.qpos * torch.tensor(bar)).sum().backward()
    gradient = sinew.rollout_vjp(want, qpos=bar)
    assert np.array_equal(ctrl.grad.numpy(), gradient.ctrl.astype(np.float32))
    assert np.array_equal(state["qpos"].grad.numpy(), gradient.qpos.astype(np.float32))


def test_options_are_those_of_numpy() -> None:
    of = case("cube")
    state, ctrl = tensors(of)
    options = {"cfd": sinew.CFD(), "integrator": "implicitfast", "threads": 1}
    number(of, rollout(of.model, state, ctrl, **options)).backward()
    want = sinew.rollout_vjp(sinew.rollout(of.model, of.state, of.ctrl, **options), **of.bars)
    assert np.array_equal(ctrl.grad.numpy(), want.ctrl)
    assert not np.array_equal(want.qpos, of.gradient()["qpos"])


def test_a_rollout_that_diverges_is_nan_with_gradients_of_zero() -> None:
    of = case("reach")
    of.state["qvel"][1] = 1e9
    state, ctrl = tensors(of)
    out = rollout(of.model, state, ctrl)
    assert torch.isnan(out.qpos[1]).any()
    torch.nansum(out.qpos, dim=(1, 2)).sum().backward()
    assert not ctrl.grad[1].any()
    assert ctrl.grad[0].any()


# ---- what is refused ----


@pytest.mark.parametrize(
    ("ctrl", "text"),
    [
        (torch.zeros(5, 2, dtype=torch.int64), "ctrl: a tensor of torch.int64, expected torch.float32"),
        (torch.zeros(5, 2, dtype=torch.float16), "ctrl: a tensor of torch.float16"),
        (
            torch.zeros(5, 2, device="meta"),
            r"ctrl: a tensor on meta, expected one on the CPU, as ctrl.cpu\(\)",
        ),
        (torch.zeros(5, 2).to_sparse(), "ctrl: a tensor of layout torch.sparse_coo"),
        (torch.zeros(5, 3), r"ctrl: shape \(5, 3\), expected \(T, 2\) or \(N, T, 2\)"),
        (torch.full((5, 2), float("nan")), r"ctrl\[0\]\[0\] of rollout 0: nan"),
        (None, "ctrl: None"),
    ],
)
def test_wrong_tensors_are_refused_in_words(ctrl: object, text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        rollout(case("cube").model, None, ctrl)


def test_functions_of_numpy_refuse_tensors_that_require_gradients() -> None:
    model, ctrl = case("cube").model, torch.zeros(5, 2, requires_grad=True)
    with pytest.raises(ArgumentError, match=r"ctrl: .*requires grad"):
        sinew.rollout(model, None, ctrl)
    with pytest.raises(ArgumentError, match=r"option timestep: .*expected a number"):
        model.with_options(timestep=torch.tensor(0.001, requires_grad=True))


def test_a_device_of_torch_is_refused_in_words() -> None:
    with pytest.raises(ArgumentError, match=r"device: device\(type='cpu'\), expected a name"):
        rollout(case("cube").model, None, torch.zeros(5, 2), device=torch.device("cpu"))  # type: ignore[arg-type]


def test_the_cpu_has_no_threads_of_a_world() -> None:
    with pytest.raises(ArgumentError, match="block_threads: 1, with device 'cpu'"):
        rollout(case("cube").model, None, torch.zeros(5, 2), block_threads=1)


def test_a_second_derivative_is_refused_in_words() -> None:
    of = case("reach")
    state, ctrl = tensors(of)
    first = torch.autograd.grad(number(of, rollout(of.model, state, ctrl)), ctrl, create_graph=True)[0]
    assert np.array_equal(first.detach().numpy(), of.gradient()["ctrl"])
    with pytest.raises(UnsupportedError, match="second derivatives"):
        first.sum().backward()


def test_bars_that_are_not_finite_are_refused_in_words() -> None:
    of = case("reach")
    state, ctrl = tensors(of)
    with pytest.raises(ArgumentError, match="rollout 0"):
        (rollout(of.model, state, ctrl).qpos * float("nan")).sum().backward()


# ---- the graph's memory ----


def test_a_graph_may_be_used_again_and_in_any_order() -> None:
    of, want = case("hand"), case("hand").gradient()["ctrl"]
    graphs = []
    for _ in range(20):
        state, ctrl = tensors(of)
        graphs.append((ctrl, number(of, rollout(of.model, state, ctrl))))
    for ctrl, value in graphs[::-1]:
        for _ in range(2):
            assert np.array_equal(torch.autograd.grad(value, ctrl, retain_graph=True)[0].numpy(), want)


def test_graphs_give_back_their_memory() -> None:
    of = case("hand", steps=20)

    def resident() -> int:
        gc.collect()
        return processes.resident()

    def use(times: int) -> None:
        for _ in range(times):
            state, ctrl = tensors(of)
            out = rollout(of.model, state, ctrl)
            out.qpos.sum().backward()

    use(20)
    before = resident()
    use(60)
    assert resident() - before < 16 << 20


def test_threads_have_graphs_of_their_own() -> None:
    of, want = case("hand"), case("hand").gradient()["ctrl"]
    wrong: list[object] = []

    def use() -> None:
        for _ in range(10):
            state, ctrl = tensors(of)
            number(of, rollout(of.model, state, ctrl)).backward()
            if not np.array_equal(ctrl.grad.numpy(), want):
                wrong.append(ctrl)

    threads = [threading.Thread(target=use) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# ---- nearest points ----

ARM = """<mujoco><worldbody><geom name="wall" type="box" size=".1 .5 .5" pos=".8 0 0"/>
<body><joint type="ball"/><geom name="rod" type="capsule" size=".05" fromto="0 0 0 .5 0 0"/></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("derivative", ["exact", "surrogate"])
def test_nearest_points_are_those_of_numpy(dtype: torch.dtype, derivative: str) -> None:
    model = sinew.Model.from_string(ARM)
    turns = np.random.default_rng(2).standard_normal((5, 4)) * 0.2 + [1, 0, 0, 0]
    qpos = torch.tensor(turns, dtype=dtype, requires_grad=True)
    out = nearest_points(model, {"qpos": qpos}, [("rod", "wall")], derivative=derivative)
    want = sinew.nearest_points(model, {"qpos": qpos.detach().numpy()}, [("rod", "wall")])
    assert out.dist.dtype == dtype and out.fromto.shape == (5, 1, 2, 3)
    np.testing.assert_array_equal(out.normal.detach().numpy(), want.normal.astype(out.normal.detach().numpy().dtype))
    (out.dist.sum() + 2 * out.fromto[..., 0, 1].sum()).backward()
    bar = np.zeros_like(want.fromto)
    bar[..., 0, 1] = 2
    gradient = sinew.nearest_points_vjp(want, np.ones_like(want.dist), bar, derivative=derivative).qpos
    np.testing.assert_allclose(qpos.grad.numpy(), gradient, rtol=1e-6, atol=1e-7)


def test_one_state_of_nearest_points_serves_many_and_none_needs_gradients() -> None:
    model = sinew.Model.from_string(ARM)
    qpos = torch.tensor([1.0, 0.1, 0.2, 0.3], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda q: nearest_points(model, {"qpos": q / q.norm()}, [("rod", "wall"), ("wall", "rod")]), (qpos,), atol=1e-6
    )
    out = nearest_points(model, None, [("rod", "wall")])
    assert not out.dist.requires_grad and out.dist.shape == (1,)


def test_second_derivatives_of_nearest_points_are_refused() -> None:
    model = sinew.Model.from_string(ARM)
    with pytest.raises(ArgumentError, match="derivative: 'foo', expected 'exact' or 'surrogate'"):
        nearest_points(model, None, [("rod", "wall")], derivative="foo")  # type: ignore[arg-type]
    qpos = torch.tensor([1.0, 0.1, 0.2, 0.3], dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(
        nearest_points(model, {"qpos": qpos}, [("rod", "wall")]).dist.sum(), qpos, create_graph=True
    )
    with pytest.raises(UnsupportedError, match="second derivatives"):
        first.sum().backward()
