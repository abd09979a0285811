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
    text = sinew.Task(file.text)
    for task in (bundled, file, text):
        assert task.model == said(name, "model")
        assert task.measures == file.measures
    assert bundled.name == file.name == name
    assert name in repr(bundled)


def said(name: str, field: str) -> str:
    """Return what a file says of a field, or the one that it begins from."""
    lines = (TASKS / f"{name}.yaml").read_text().splitlines()
    found = {x.partition(":")[0]: x.partition(":")[2].strip() for x in lines if x.startswith((field, "base:"))}
    return found[field] if field in found else said(found["base"], field)


def test_a_task_that_begins_from_another(tmp_path: Path) -> None:
    (tmp_path / "arm_reach.yaml").write_text((TASKS / "arm_reach.yaml").read_text())
    (tmp_path / "mine.yaml").write_text(
        "base: arm_reach\nplant: {solref: [0.03, 1]}\nsuccess: [{name: still, term: speed, below: 1}]\n"
    )
    task = sinew.Task(tmp_path / "mine.yaml")
    parsed = sinew.Task.parse("base: arm_reach\nplant: {solref: [0.03, 1]}\n", str(tmp_path / "own"))
    (tmp_path / "arm_reach.yaml").unlink()
    other = pickle.loads(pickle.dumps(task))
    for x in (task, other):
        assert (x.name, x.model, x.measures, x.plant.solref) == (
            "mine",
            "arm_reach.xml",
            (("still", 1.0, 0.0),),
            (0.03, 1),
        )
    assert parsed.name == "own" and parsed.measures == (("hand_at_target", 0.02, 1.0),)
    assert other.text == task.text and "base" not in task.text
    with pytest.raises(FormatError, match=r"mine.yaml:1:7: base: .*arm_reach.yaml: No such file"):
        sinew.Task(tmp_path / "mine.yaml")


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
        ("no_such_task", NotFoundError, "no_such_task.yaml: No such file or directory; there are .*arm_reach"),
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
