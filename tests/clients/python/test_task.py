"""Tasks: where they come from, what they say, what is refused."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import sinew
from sinew.errors import ArgumentError, FileError, FormatError, NotFoundError

import scenes

TASKS = scenes.ROOT / "planner" / "tasks"


@pytest.mark.parametrize("name", [path.stem for path in sorted(TASKS.glob("*.yaml"))])
def test_tasks_that_come_with_the_package(name: str) -> None:
    bundled, file = sinew.Task(name), sinew.Task(TASKS / f"{name}.yaml")
    text = sinew.Task((TASKS / f"{name}.yaml").read_text())
    model = next(x for x in (TASKS / f"{name}.yaml").read_text().splitlines() if x.startswith("model:"))
    for task in (bundled, file, text):
        assert task.model == model.removeprefix("model:").strip()
        assert task.measures == file.measures
    assert bundled.name == file.name == name
    assert name in repr(bundled)


def test_what_a_task_says() -> None:
    task = sinew.Task.parse((TASKS / "arm_reach.yaml").read_text(), "reach")
    assert task.name == "reach"
    assert task.measures == (("hand_at_target", 0.02, 1.0),)
    assert np.all(np.isnan(task.plant.solref)) and len(task.plant.solimp) == 5
    other = pickle.loads(pickle.dumps(task))
    assert (other.name, other.model, other.measures) == (task.name, task.model, task.measures)
    with pytest.raises(AttributeError, match="cannot be changed"):
        task.name = "x"


def test_a_file_goes_before_a_task_of_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "arm_reach").write_text("model: mine.xml\n" + "terms: [{name: a, residual: {joint_velocity: all}}]\n")
    assert sinew.Task("arm_reach").model == "arm_reach.xml"
    monkeypatch.chdir(tmp_path)
    assert sinew.Task("arm_reach").model == "mine.xml"


@pytest.mark.parametrize(
    "source,error,text",
    [
        ("no_such_task", NotFoundError, "no_such_task"),
        (Path("no/such.yaml"), NotFoundError, "such.yaml"),
        ("", NotFoundError, "arm_reach"),
        (".", FileError, ""),
        ("model: a.xml\nterms: [\n", FormatError, r"task:\d+:\d+"),
        ("model: a.xml\nterm: 3\n", FormatError, "term"),
        (3, ArgumentError, "int"),
        (None, ArgumentError, "NoneType"),
    ],
)
def test_what_is_no_task(source: object, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text or None):
        sinew.Task(source)  # type: ignore[arg-type]
