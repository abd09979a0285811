"""Runs every example as a user does, in a folder of its own, and looks at what it says and draws."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import re
import runpy

import numpy as np
import pytest
import sinew

from processes import run_example

VALUE, SLOPE = r" +\S+" * 2 + r" +(\S+)", r" +\S+" * 4 + r" +(\S+)"  # medians of errors in a row of hard_contacts.py
FOLDER = pathlib.Path(__file__).resolve().parents[3] / "clients" / "python" / "examples"

SLOPES = r"tolerance 1e-8 \|\n[| -]+\n\| tossed cube \(figure 5\) \| (\S+), (?:[^|]+\|){3} (\S+),"

# Arguments of a short run, modules that it needs, and what it prints: the numbers of groups 1 and 2 fall to a part.
CASES: dict[str, tuple[list[str], list[str], str, float]] = {
    "gradient_in_ten_lines.py": ([], [], r"squared distance (\S+) m", 0),
    "arm_lbfgs.py": (["--iterations", "30"], ["scipy"], r"cost (\S+) -> (\S+) in", 0.1),
    "arm_torch.py": (["--iterations", "40"], ["torch"], r"starts (\S+) -> (\S+),", 0.5),
    "arm_jax.py": (["--iterations", "40"], ["jax"], r"starts (\S+) -> (\S+),", 0.5),
    "lqr.py": ([], ["scipy"], r"is (\S+), with it (\S+)", 0.99),
    "billiard_cfd.py": ([], [], r"from distance: +distance from (\S+) mm to (\S+) mm", 0.1),
    "cfd_wall.py": ([], [], r"nothing +0\.5 +\S+ +-?0\.000 +(\S+)[\s\S]*wall +0\.5 +\S+ +-?0\.000 +(\S+)", 0.5),
    "contact_force.py": (["--points", "201"], [], r"default +\S+ +(\S+)[\s\S]*hard, 0 at touch +\S+ +(\S+)", 1e-2),
    "bouncing_ball.py": (
        ["--points", "5"],
        [],
        r"1e\+04 +0\.001 +\S+ +\S+ +(\S+)[\s\S]*?\nchosen\n[\s\S]*?1e\+04 +1e-10 +\S+ +\S+ +(\S+)",
        1e-6,
    ),
    "cube_toss.py": (["--points", "3"], [], rf"tolerance 0.001 {VALUE}[\s\S]*tolerance 1e-10 {VALUE}", 1e-3),
    "tossed_shapes.py": (["--points", "5"], [], rf"box\n.*\n +steps of 0.002 s {SLOPE}[\s\S]*1e-06 {SLOPE}", 0.1),
    "box_slope.py": (["--points", "5"], [], rf"steps of 0.002 s {SLOPE}[\s\S]*tolerance 1e-08 {SLOPE}", 0.1),
    "billiard_sweep.py": (
        ["--points", "9"],
        [],
        rf"balls miss[\s\S]*?1e-06 {SLOPE}[\s\S]*at most 0.002 s {SLOPE}",
        0.5,
    ),
    # Through the touch of the box the slope of a sigmoid of 5 mm is nearer to that of hard contact than MuJoCo's.
    "smoothed_contact.py": (
        ["--points", "5"],
        [],
        rf"\nbox\n.*\n +MuJoCo {SLOPE}[\s\S]*?sigmoid, 5 mm {SLOPE}",
        0.5,
    ),
    "work_precision.py": (
        ["pendulum", "--points", "2"],
        [],
        rf"MuJoCo's euler {SLOPE}[\s\S]*dopri8 {SLOPE} +\S+ +chosen +1e-10",
        1e-4,
    ),
    "cube_identify.py": (
        ["--tosses", "20", "--iterations", "40", "--starts", "0.12", "--ways", "distance", "chosen"],
        [],
        r"chosen +from +120 mm: +\S+ mm, error +\+(\S+) -> +.(\S+) %",
        0.15,
    ),
    "cube_contact.py": (
        ["--tosses", "20", "--iterations", "10", "--starts", "0"],
        ["cmaes"],
        r"before: error (\S+),[\s\S]*tuned +error (\S+),[\s\S]*CMA-ES +error \S+,",
        0.98,
    ),
    "cube_search.py": (
        ["--others", "20", "--iterations", "20"],
        ["cmaes"],
        r"before .*equation 1 (\S+)\nCMA-ES .*equation 1 (\S+)\n",
        0.6,
    ),
    # Steps of a millisecond are far from the slope of the toss, those that end at events are not.
    "contact_gradients.py": (["--points", "4", "--converged", "3"], [], SLOPES, 1e-4),
    "muscle_strength.py": ([], [], r"0: error +(\S+) mrad[\s\S]*3: error +(\S+) mrad", 0.05),
    "sysid_arm.py": (
        ["--recordings", "2", "--steps", "200", "--iterations", "8"],
        ["plotly", "scipy", "tabulate"],
        r"sinew.sysid:[^\n]* cost (\S+) -> (\S+),",
        0.05,
    ),
    "gym_agent.py": (["--rounds", "6"], ["gymnasium"], r"mean cost of a step (\S+) -> (\S+),", 0.9),
    "controller.py": (["--seconds", "1"], ["zmq"], r"of the hand (\S+) mm at first, (\S+) mm", 0.5),
}
WITHOUT_PICTURE = {"gradient_in_ten_lines.py", "cfd_wall.py", "contact_gradients.py"}


def test_ten_lines_have_the_differences_of_mujoco(capsys: pytest.CaptureFixture[str]) -> None:
    """Where activations meet their controls these would not agree: the example goes past no such place."""
    mujoco = pytest.importorskip("mujoco")
    names = runpy.run_path(str(FOLDER / "gradient_in_ten_lines.py"))
    capsys.readouterr()
    m = mujoco.MjModel.from_xml_path(str(sinew.share("models/arm_reach.xml")))

    def squared_distance(ctrl: np.ndarray) -> float:
        d = mujoco.MjData(m)
        d.qpos = m.key_qpos[0]
        for row in ctrl:
            d.ctrl = row
            mujoco.mj_step(m, d)
        mujoco.mj_forward(m, d)
        return float(np.sum((d.sensordata - [0.45, 0, 1.35]) ** 2))

    assert squared_distance(names["ctrl"]) == pytest.approx(float(names["error"] @ names["error"]), rel=1e-9)
    for step, muscle in ((0, 0), (7, 1), (60, 2), (120, 3), (180, 4), (198, 5)):
        moved = np.zeros_like(names["ctrl"])
        moved[step, muscle] = 1e-6
        slope = (squared_distance(names["ctrl"] + moved) - squared_distance(names["ctrl"] - moved)) / 2e-6
        assert names["gradient"].ctrl[step, muscle] == pytest.approx(slope, rel=1e-4)


def test_every_example_has_a_case() -> None:
    # test_own_client.py runs the first; the others are shared by examples
    elsewhere = {"own_client.py", "hard_contacts.py", "cube_tosses.py"}
    assert {x.name for x in FOLDER.glob("*.py")} - elsewhere == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_example(name: str, tmp_path: pathlib.Path) -> None:
    arguments, modules, pattern, part = CASES[name]
    for module in modules:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed here")
    picture = tmp_path / "picture.svg"
    if name not in WITHOUT_PICTURE:
        if importlib.util.find_spec("matplotlib") is None:
            pytest.skip("matplotlib is not installed here")
        arguments = [*arguments, "--picture", str(picture)]
    run = run_example(FOLDER / name, *arguments, folder=tmp_path)
    assert run.returncode == 0, run.stderr
    found = re.search(pattern, run.stdout)
    assert found, run.stdout
    numbers = [float(x) for x in found.groups()]
    if part:
        assert numbers[1] < part * numbers[0], run.stdout
    if name not in WITHOUT_PICTURE:
        assert "<svg" in picture.read_text()


def test_ways_of_identification_that_there_are_not(tmp_path: pathlib.Path) -> None:
    run = run_example(FOLDER / "cube_identify.py", "--ways", "chosn", folder=tmp_path)
    assert run.returncode == 2 and "invalid choice: 'chosn'" in run.stderr


@pytest.mark.parametrize("name", ["contact_force.py", "tossed_shapes.py"])
def test_examples_on_hard_contacts_speak_to_machines(name: str, tmp_path: pathlib.Path) -> None:
    run = run_example(FOLDER / name, "--points", "2", "--json", folder=tmp_path)
    assert run.returncode == 0, run.stderr
    tables = json.loads(run.stdout)
    assert all(isinstance(row["name"], str) for rows in tables.values() for row in rows)


def test_the_notebook_runs(tmp_path: pathlib.Path) -> None:
    for module in ("nbclient", "ipykernel", "matplotlib"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed here")
    import nbclient
    import nbformat

    notebook = nbformat.read(FOLDER / "tour.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert sum(any("image/png" in x.get("data", {}) for x in cell.outputs) for cell in cells) >= 4
    stored = nbformat.read(FOLDER / "tour.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    assert all(cell.outputs == [] for cell in stored.cells if cell.cell_type == "code")  # kept without its outputs
