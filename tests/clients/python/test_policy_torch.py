"""Policies that PyTorch has written as ONNX files, in a planner: the rollout is that of the network, step by step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sinew
from sinew.errors import ArgumentError, FormatError, NotFoundError, UnsupportedError
from sinew.files import share
from sinew.planner import Planner

torch = pytest.importorskip("torch", reason="PyTorch is not there")

TASK = """\
base: arm_reach
policy: net.onnx
settings: {horizon: 24, warm_start: policy}
"""


class Scaled(torch.nn.Module):
    """A network whose inputs and outputs are scaled."""

    def __init__(self, *layers: torch.nn.Module, ninput: int) -> None:
        super().__init__()
        self.chain = torch.nn.Sequential(*layers)
        self.mean, self.scale = torch.linspace(-0.3, 0.4, ninput), torch.linspace(0.5, 2, ninput)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return controls."""
        return 0.5 + 0.5 * self.chain((x - self.mean) / self.scale)


def make(folder: Path, model: sinew.Model, ninput: int, act: type[torch.nn.Module]) -> Scaled:
    """Write net.onnx, and the task that names it."""
    torch.manual_seed(3)
    layers = [torch.nn.Linear(ninput, 16), act(), torch.nn.Linear(16, model.nu), torch.nn.Tanh()]
    net = Scaled(*layers, ninput=ninput)
    torch.onnx.export(net, torch.zeros(1, ninput), str(folder / "net.onnx"), input_names=["state"])
    return net


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the task and what it begins from."""
    (tmp_path / "arm_reach.yaml").write_text(sinew.Task("arm_reach").text)
    (tmp_path / "reach.yaml").write_text(TASK)
    return tmp_path


@pytest.mark.parametrize("act", [torch.nn.ELU, torch.nn.ReLU, torch.nn.LeakyReLU, torch.nn.Softplus, torch.nn.Sigmoid])
def test_rollout_is_the_networks(folder: Path, act: type[torch.nn.Module]) -> None:
    model = sinew.Model.load(share("models/arm_reach.xml"))
    ninput = model.nq + model.nv + model.na + 3
    net = make(folder, model, ninput, act)
    planner = Planner(model, sinew.Task.load(folder / "reach.yaml"), seed=2)
    planner.set(planner="sampling", candidates=1)
    plan = planner.plan(planner.initial, iterations=1, states=True)
    assert plan.from_policy and planner.targets(plan.time).shape == (24, 3)
    want = np.array([0.45, 0, 1.35]) + np.array([0.08, 0, 0.10]) * np.sin(
        2 * np.pi * plan.time[:, None] / 4 + [0, 0, 1.5708]
    )
    np.testing.assert_allclose(planner.targets(plan.time), want, atol=1e-6)
    assert planner.targets(0.5).shape == (3,)
    x = np.concatenate([plan.qpos[:-1], plan.qvel[:-1], plan.act[:-1], planner.targets(plan.time)], axis=1)
    with torch.no_grad():
        u = net(torch.tensor(x, dtype=torch.float32)).double().numpy()
    np.testing.assert_allclose(plan.ctrl, np.clip(u, 0, 1), atol=2e-6)


def test_refusals(folder: Path) -> None:
    model = sinew.Model.load(share("models/arm_reach.xml"))
    task = sinew.Task.load(folder / "reach.yaml")
    with pytest.raises(NotFoundError, match=r"reach.yaml:2:9: policy .*net.onnx: No such file"):
        Planner(model, task)
    make(folder, model, 7, torch.nn.Tanh)
    with pytest.raises(ArgumentError, match=r"7 inputs, this task has \d+: \d+ of qpos, \d+ of qvel, 6 of act, 3 of t"):
        Planner(model, task)
    torch.onnx.export(torch.nn.Softmax(dim=1), torch.zeros(1, 7), str(folder / "net.onnx"))
    with pytest.raises(FormatError, match=r"Softmax.*: this operation is not known; known are Gemm, MatMul"):
        Planner(model, task)
    (folder / "reach.yaml").write_text("base: arm_reach\npolicy: ../net.onnx\n")
    with pytest.raises(FormatError, match=r"policy: '../net\.onnx', allowed is the name of a file beside"):
        sinew.Task.load(folder / "reach.yaml")
    with pytest.raises(UnsupportedError, match="warm_start: 'policy' wants a policy, and task 'arm_reach' names none"):
        Planner(model, sinew.Task("arm_reach")).set(warm_start="policy")
