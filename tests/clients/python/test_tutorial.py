"""Runs the lines of the pages in clients/python, each block alone, in a program that has what the block names."""

from __future__ import annotations

import contextlib
import importlib.util
import pathlib
import re
import shutil
from typing import Any

import numpy as np
import pytest
import sinew

from daemons import serve_with_keys

PAGES = sorted((pathlib.Path(__file__).resolve().parents[3] / "clients" / "python").glob("*.md"))
BLOCKS = [b for p in PAGES for b in re.findall(r"^```python\n(.*?)^```$", p.read_text(), re.DOTALL | re.MULTILINE)]
FINGERS = """
<mujoco>
  <worldbody>
    <body><joint axis="1 0 0"/><geom name="thumb" size="0.01" pos="0 0.1 0"/></body>
    <body><joint axis="0 1 0"/><geom name="index" size="0.01" pos="0.1 0 0"/></body>
    <geom name="ball" size="0.02" pos="0.1 0.1 0.05"/>
  </worldbody>
</mujoco>
"""
SHORTER = {
    "deadline=0.02": "deadline=1.0",  # longer, rather: predicted states must be made in time
    "qvel), 60)": "qvel), 4)",
    "iterations=3000": "iterations=3, batch=4",
}
MODULES = {
    "sinew.sysid": "plotly",
    "sinew.torch": "torch",
    "import torch": "torch",
    "sinew.learn.graph": "torch",
    "sinew.mujoco": "mujoco",
    "from_mujoco": "mujoco",
    "sinew.gym": "gymnasium",
    "to_pandas": "pandas",
}


def of_mujoco(xml: str) -> dict[str, Any]:
    """Return MuJoCo's objects of a model, and an environment that steps them as others do."""
    import mujoco

    m = mujoco.MjModel.from_xml_string(xml)
    d = mujoco.MjData(m)
    start = np.zeros((3, mujoco.mj_stateSize(m, mujoco.mjtState.mjSTATE_FULLPHYSICS)))

    class Environment:
        def step(self, action: float) -> None:
            d.ctrl[:] = action
            mujoco.mj_step(m, d)

    names: dict[str, Any] = {"mj_model": m, "mj_data": d, "initial_state": start, "control": np.zeros((3, 5, m.nu))}
    return {**names, "env": Environment(), "action": 0.1}


def of_torch(model: sinew.Model) -> dict[str, Any]:
    """Return tensors of the names that a block has for arrays."""
    import torch

    ctrl = torch.full((2, 20, model.nu), 0.1, requires_grad=True)
    return {"ctrl": ctrl, "qpos": torch.tensor(model.key_qpos[0].copy()), "target": torch.tensor([0.45, 0, 1.35])}


def of_fingers() -> dict[str, Any]:
    """Return a model with the geoms of the block on nearest points, two states and bars of its distances."""
    model = sinew.Model.from_string(FINGERS)
    return {"model": model, "qpos": np.full((2, model.nq), 0.1), "bar": np.ones((2, 2))}


def of_cubes(training: bool) -> dict[str, Any]:
    """Return a cube's model and three states, and for training the scene and a small network of the block before."""
    import torch
    from sinew.learn.graph.meshes import Mesh, Scene
    from sinew.learn.graph.network import Sizes
    from sinew.learn.graph.simulator import Simulator

    qpos = torch.tensor([0, 0, 0.12, 0.9, 0.3, 0.3, 0.1]).repeat(3, 1)
    cubes = {"model": sinew.Model.load(sinew.share("models/cube_table.xml")), "qpos": qpos, "qvel": torch.ones(3, 6)}
    before = {"scene": Scene([Mesh.box([0.05] * 3)]), "simulator": Simulator(Sizes(8, 2), step=0.0135)}
    return {**cubes, **before} if training else cubes


def of_parameters() -> dict[str, Any]:
    """Return parameters of a cube, and a state, as the block before has them."""
    text = sinew.share("models/cube_table.xml").read_text()
    parameters = sinew.Parameters(text, {"half side": sinew.Parameter("geom.cube.size", start=0.04)})
    return {"parameters": parameters, "start": {"qpos": [0, 0, 0.12, 0.9, 0.3, 0.3, 0.1]}}


def of_sysid() -> dict[str, Any]:
    """Return recordings and parameters of mujoco.sysid."""
    import test_sysid

    return {
        "sequences": test_sysid.recorded(1),
        "params": test_sysid.parameters(["mass", "damping"]),
        "folder": pathlib.Path(),
    }


def named(block: str) -> dict[str, Any]:
    """Return what a reader of the block has already."""
    arm = sinew.share("models/arm_reach.xml")
    model = sinew.Model.from_xml(arm)
    names: dict[str, Any] = {"np": np, "sinew": sinew, "model": model, "task": sinew.Task("arm_reach"), "now": 0.0}
    names |= {"qpos": model.key_qpos[0], "qvel": np.zeros(model.nv)}
    names |= {"state": {"qpos": model.key_qpos[0]}, "ctrl": np.full((2, 20, model.nu), 0.1)}
    names |= {"bar": np.ones((2, 21, model.nq))}
    if "from_mujoco" in block or "sinew.mujoco" in block:
        names |= of_mujoco(arm.read_text())
    if "sinew.torch" in block:
        names |= of_torch(model)
    if "nearest_points" in block:
        names |= of_fingers()
    if "sinew.learn.graph" in block:
        names |= of_cubes(training="Training" in block)
    if "sensitivity" in block:
        names |= of_parameters()
    if "sinew.sysid" in block:
        names |= of_sysid()
    return names


def test_there_are_blocks() -> None:
    assert len(BLOCKS) >= 18
    assert all(any(long in block for block in BLOCKS) for long in SHORTER)


def test_tasks_of_the_page_are_tasks(tmp_path: pathlib.Path) -> None:
    """The files that planner/tasks/README.md shows whole, beside the task that they begin from."""
    page = (PAGES[0].parents[2] / "planner" / "tasks" / "README.md").read_text()
    shutil.copy(sinew.share("tasks/hand_balls.yaml"), tmp_path)
    whole = [
        b
        for b in re.findall(r"^```yaml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
        if re.match("base:|description:", b)
    ]
    assert len(whole) == 3
    for number, text in enumerate(whole):
        (tmp_path / f"{number}.yaml").write_text(text)
        sinew.Task(tmp_path / f"{number}.yaml")


def label(number: int) -> str:
    """Return what a run of some tests can select a block by, as that with PyTorch does."""
    words = [word for word in MODULES if word in BLOCKS[number]]
    return "-".join([*words, *sorted({MODULES[word] for word in words}), str(number)])


@pytest.mark.parametrize("number", range(len(BLOCKS)), ids=label)
def test_block(number: int, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    block = BLOCKS[number]
    for long, short in SHORTER.items():
        block = block.replace(long, short)
    for word, module in MODULES.items():
        if word in block and importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed here")
    monkeypatch.chdir(tmp_path)
    with contextlib.ExitStack() as stack:
        if "key_file" in block:
            keyed = stack.enter_context(serve_with_keys(tmp_path, {"left-arm": "plan"}))
            block = block.replace("tcp://192.168.1.10:7440", keyed.endpoint)
        exec(compile(block, f"block {number} of clients/python/*.md", "exec"), named(block))
