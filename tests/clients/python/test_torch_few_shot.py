"""The script of the few-shot simulator in its short form: all figures, of tosses that the model makes."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from processes import run_example

pytest.importorskip("torch", reason="PyTorch is not there")
SCRIPT = Path(__file__).parents[3] / "clients" / "python" / "examples" / "learn" / "few_shot.py"


def run(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    arguments = ["--short", "--folder", str(folder), "--pictures", "--json", str(folder / "numbers.json"), *more]
    return run_example(SCRIPT, *arguments, limit=600.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for module in ("tqdm", "cmaes", "matplotlib"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed here")
    made = tmp_path_factory.mktemp("few_shot")
    done = run(made)
    assert done.returncode == 0, done.stderr
    assert "array, ten that stand: " in done.stdout
    return made


@pytest.fixture(scope="module")
def numbers(folder: Path) -> Any:
    return json.loads((folder / "numbers.json").read_text())


def test_all_figures_are_drawn(folder: Path) -> None:
    drawn = {x.name for x in folder.glob("*.png")}
    assert drawn == {f"few_shot_{x}.png" for x in ("errors", "tosses", "array", "push", "losses")}


def test_errors_are_those_of_all_ways(numbers: Any) -> None:
    assert set(numbers["errors"]) == {"before", "identified", "gradients", "augmented", "scaled"}
    assert all(np.isfinite(list(x.values())).all() for x in numbers["errors"].values())
    assert numbers["errors"]["identified"]["loss"] < numbers["errors"]["scaled"]["loss"]  # which has hardly learned


def test_identification_lowers_its_loss(numbers: Any) -> None:
    errors = numbers["errors"]
    assert min(errors["identified"]["loss"], errors["gradients"]["loss"]) < errors["before"]["loss"]


def test_the_engine_pushes_nearer_to_the_target(numbers: Any) -> None:
    network, engine = (numbers["push"][x] for x in ("network", "engine"))
    assert np.allclose(network["velocity"][0], engine["velocity"][0])
    assert np.allclose(network["real"][0], engine["real"][0], rtol=1e-3)
    assert np.mean(engine["real"][-1]) < np.mean(engine["real"][0])
    assert np.allclose(engine["real"], engine["thought"])


@pytest.mark.parametrize("option", ["--batch", "--seed"])
def test_a_folder_with_networks_of_other_options_is_refused(folder: Path, option: str) -> None:
    other = run(folder, option, "7")
    assert other.returncode != 0
    assert "augmented.pt: options is" in other.stderr


def test_centres_of_pushed_cubes_are_apart_and_they_are_struck(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Centres are at least 0.9 sides apart; that cubes are not inside each other is not held: some of the data are."""
    monkeypatch.syspath_prepend(SCRIPT.parent)
    scenes = importlib.import_module("few_shot_scenes")
    contact = json.loads((folder / "contact.json").read_text())["CMA-ES"]["values"]
    made = scenes.scaled_pushes(contact, 40)
    assert [(len(x.scene), *x.pose.place.shape[:2]) for x in made] == [(2, 28, 26), (3, 12, 26), (4, 20, 26)]
    for motions in made:
        first, way = motions.pose.place[:, 0].numpy(), (motions.pose.place[:, -1] - motions.pose.place[:, 0]).numpy()
        far = [np.linalg.norm(first[:, i] - first[:, k], axis=1) for i in range(len(motions.scene)) for k in range(i)]
        assert np.min(far) > 0.9 * scenes.SIDE and np.allclose(first[..., 2], scenes.SIDE / 2)
        moved = np.linalg.norm(way, axis=2) > 0.01
        assert moved[:, 0].mean() > 0.9 and moved[:, 1:].any(axis=1).mean() > 0.4  # slow cubes stop before the others
