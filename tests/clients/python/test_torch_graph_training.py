"""Training of the graph simulator: motions, loss, files from which it goes on, refusals. Where PyTorch is."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sinew
from sinew.errors import ArgumentError, DivergedError, FileError, FormatError
from sinew.segments import Motion

torch = pytest.importorskip("torch", reason="PyTorch is not there")
pytest.importorskip("tqdm", reason="tqdm is not there")

from sinew.learn.graph.data import Motions, about_vertical, made, recorded  # noqa: E402
from sinew.learn.graph.meshes import Mesh, Scene  # noqa: E402
from sinew.learn.graph.network import Sizes  # noqa: E402
from sinew.learn.graph.poses import Pose, qpos_of  # noqa: E402
from sinew.learn.graph.simulator import Simulator  # noqa: E402
from sinew.learn.graph.training import Options, Training, load  # noqa: E402

STEP, ROWS = 0.013534, 20
SHORT = Options(iterations=40, batch=4, horizon=2)


@pytest.fixture(scope="module")
def motions() -> Motions:
    model = sinew.Model.load(sinew.share("models/cube_table.xml"))
    rng = np.random.default_rng(1)
    qpos, qvel = np.zeros((6, 7)), rng.standard_normal((6, 6)) * [1, 1, 0.3, 3, 3, 3]
    qpos[:, 2], qpos[:, 3:] = 0.12, rng.standard_normal((6, 4))
    return made(Scene([Mesh.box([0.05] * 3)]), model, qpos, qvel, ROWS, substeps=2)


def small(seed: int = 0, **ways: Any) -> Simulator:
    return Simulator(Sizes(8, 2), step=STEP, seed=seed, **ways)


def weights(simulator: Simulator) -> torch.Tensor:
    return torch.cat([x.flatten() for x in simulator.state_dict().values()])


# ---- motions ----


def test_motions_of_the_engine_are_its_rollouts(motions: Motions) -> None:
    assert motions.pose.place.shape == (6, ROWS, 1, 3)
    assert motions.pose.place.dtype == torch.float32
    assert 0.04 < float(motions.pose.place[:, -1, 0, 2].min()) < 0.09  # on the table, on a face or an edge
    model, qpos = sinew.Model.load(sinew.share("models/cube_table.xml")), np.array([0, 0, 0.2, 0.8, 0.6, 0, 0])
    alone = made(motions.scene, model, qpos, np.ones(6), 5, substeps=3)
    own = sinew.rollout(model, {"qpos": qpos, "qvel": np.ones(6)}, nstep=12, gradients=False).qpos[::3]
    assert np.allclose(qpos_of(alone.pose)[0, :, :3], own[:, :3], atol=1e-6)
    assert np.allclose(np.abs(np.sum(qpos_of(alone.pose)[0, :, 3:] * own[:, 3:], axis=1)), 1, atol=1e-6)


def test_recorded_motions_are_cut_by_a_stride(motions: Motions) -> None:
    qpos = qpos_of(motions.pose)
    given = [Motion(qpos[0], np.zeros((ROWS, 6))), Motion(qpos[1, :7], np.zeros((7, 6)))]
    cut = recorded(motions.scene, given, 3)
    assert cut.length.tolist() == [7, 7, 6, 3]
    windows = cut.windows(1)
    assert len(windows) == 5 + 5 + 4 + 1
    taken = cut.take(np.array([[1, 2], [3, 0]]), 1)
    assert torch.allclose(taken.place[0, :, 0], motions.pose.place[0, [7, 10, 13], 0])
    assert torch.allclose(taken.place[1, :, 0], motions.pose.place[1, [0, 3, 6], 0])


def test_copies_about_the_vertical_keep_heights_and_inner_motion(motions: Motions) -> None:
    more = about_vertical(motions, 3, seed=4)
    assert len(more) == 18
    assert torch.allclose(more.pose.place[..., 2], motions.pose.place[..., 2].repeat(3, 1, 1))
    assert torch.allclose(more.pose.turn[..., 2, :], motions.pose.turn[..., 2, :].repeat(3, 1, 1, 1), atol=1e-6)
    inner, of = (x.turn[:, :1].mT @ x.turn for x in (more.pose, motions.pose))
    assert torch.allclose(inner, of.repeat(3, 1, 1, 1, 1), atol=1e-5)
    assert not torch.allclose(more.pose.place[:6], more.pose.place[6:12], atol=1e-2)


# ---- training ----


def test_training_lowers_the_loss_of_steps(motions: Motions) -> None:
    simulator = small()
    training = Training(simulator, [motions], Options(rate=1e-2, iterations=150, batch=16, noise=0))
    whole = motions.take(motions.windows(1), 1)
    first = float(training.loss(motions, whole))
    training.run(progress=False)
    assert float(training.loss(motions, whole)) < 0.9 * first


def test_units_are_those_of_the_motions(motions: Motions) -> None:
    simulator = small()
    Training(simulator, [motions], SHORT)
    owner, rest = torch.from_numpy(motions.scene.owner), torch.from_numpy(motions.scene.rest).float()
    nodes = torch.stack([Pose(*(x[:, t] for x in motions.pose)).points(owner, rest) for t in range(ROWS)], 1)
    change = (nodes[:, 2:] - 2 * nodes[:, 1:-1] + nodes[:, :-2]).reshape(-1, 3)
    assert float(simulator.spread) == pytest.approx(float(change.std()), rel=1e-4)
    assert simulator.mean.tolist() == pytest.approx(change.mean(0).tolist(), rel=1e-3, abs=1e-7)
    assert float(simulator.length) == pytest.approx(0.05 * np.sqrt(3))


def test_the_gradient_of_the_loss_is_its_difference(motions: Motions) -> None:
    """In flight: there collision fixes nothing."""
    simulator = small(reach=1e-3).double()
    training = Training(simulator, [motions], Options(batch=4, horizon=3))
    high = Pose(motions.pose.place[:, :5].double() + torch.tensor([0.0, 0, 1]), motions.pose.turn[:, :5].double())
    torch.nn.init.normal_(simulator.network.decoder[-1].weight, std=0.1)
    training.loss(motions, high).backward()
    parameter = simulator.network.layers[0].mesh.own.weight
    slope, way = parameter.grad.clone(), torch.randn(parameter.shape, dtype=torch.float64)
    ends = []
    for eps in (1e-5, -1e-5):
        with torch.no_grad():
            parameter += eps * way
            ends.append(float(training.loss(motions, high)))
            parameter -= eps * way
    assert float((slope * way).sum()) == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5, abs=1e-10)


def test_training_that_goes_on_has_the_same_bits(motions: Motions, tmp_path: Path) -> None:
    whole, part = small(), small()
    Training(whole, [motions], SHORT, tmp_path / "whole.pt").run(20, every=5, progress=False)
    Training(part, [motions], SHORT, tmp_path / "part.pt").run(10, every=5, progress=False)
    again = small(seed=9)
    training = Training(again, [motions], SHORT, tmp_path / "part.pt")
    assert training.iteration == 10
    assert torch.equal(weights(again), weights(part))
    training.run(20, every=5, progress=False)
    assert torch.equal(weights(again), weights(whole))
    assert not torch.equal(weights(part), weights(whole))
    tables = [list(csv.DictReader((tmp_path / f"{x}.csv").open())) for x in ("whole", "part")]
    first, second = ([row["loss"] for row in x] for x in tables)
    assert first == second
    assert [int(row["iteration"]) for row in tables[0]] == [5, 10, 15, 20]


def test_a_saved_simulator_moves_as_it_did(motions: Motions, tmp_path: Path) -> None:
    simulator = small()
    Training(simulator, [motions], SHORT, tmp_path / "a.pt").run(3, progress=False)
    now, before = (Pose(*(x[:, t] for x in motions.pose)) for t in (1, 0))
    with torch.no_grad():
        first, second = (x.rollout(motions.scene, now, before, 3) for x in (simulator, load(tmp_path / "a.pt")))
    assert torch.equal(first.place, second.place)


def test_time_ends_a_run(motions: Motions, tmp_path: Path) -> None:
    training = Training(small(), [motions], SHORT, tmp_path / "a.pt")
    training.run(minutes=0, progress=False)
    assert training.iteration == 0
    assert (tmp_path / "a.pt").exists()


# ---- refusals ----


def test_a_loss_that_is_not_finite_stops_in_words_and_saves(motions: Motions, tmp_path: Path) -> None:
    simulator, file = small(), tmp_path / "a.pt"
    training = Training(simulator, [motions], SHORT, file)
    training.run(2, progress=False)
    kept = weights(simulator).clone()
    training.motions = [Motions(motions.scene, Pose(motions.pose.place * 1e30, motions.pose.turn), motions.length)]
    with pytest.raises(DivergedError, match=r"iteration 2: .*a\.pt has the state before it"):
        training.run(3, progress=False)
    assert torch.equal(weights(load(file)), kept)


@pytest.mark.parametrize(
    ("of", "options", "text"),
    [
        (lambda: Simulator(Sizes(9, 2), step=STEP), SHORT, r"sizes is \[8, 2\], here it is \[9, 2\]"),
        (lambda: Simulator(Sizes(8, 3), step=STEP), SHORT, r"sizes is \[8, 2\]"),
        (lambda: small(reach=0.03), SHORT, "reach is 0.04, here it is 0.03"),
        (lambda: Simulator(Sizes(8, 2), step=0.02), SHORT, "step is"),
        (small, Options(iterations=40, batch=5, horizon=2), "options is"),
    ],
)
def test_files_of_others_are_refused_by_name(
    motions: Motions, tmp_path: Path, of: Callable[[], Simulator], options: Options, text: str
) -> None:
    Training(small(), [motions], SHORT, tmp_path / "a.pt").save()
    with pytest.raises(ArgumentError, match=text):
        Training(of(), [motions], options, tmp_path / "a.pt")


def test_files_that_are_none_are_refused(motions: Motions, tmp_path: Path) -> None:
    (tmp_path / "bytes.pt").write_bytes(b"no file of torch")
    torch.save({"kind": "another"}, tmp_path / "other.pt")
    for name, error in (("bytes.pt", FormatError), ("other.pt", FormatError), ("missing.pt", FileError)):
        with pytest.raises(error, match=name):
            load(tmp_path / name)
    with pytest.raises(FileError, match="folder"):
        Training(small(), [motions], SHORT, tmp_path / "folder" / "a.pt").save()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda m: Training(small(), [], SHORT), "motions: there are none"),
        (lambda m: Training(small(), [m], Options(horizon=ROWS)), f"fewer than {ROWS + 2} poses"),
        (lambda m: Options(rate=0.0), "options: .*a rate above 0"),
        (lambda m: about_vertical(m, 0), "copies: 0"),
        (lambda m: recorded(m.scene, [Motion(np.ones((2, 7)), np.zeros((2, 6)))]), "none has three rows"),
        (lambda m: recorded(m.scene, [Motion(np.ones((5, 14)), np.zeros((5, 12)))]), "14 positions a row, expected 7"),
        (lambda m: recorded(m.scene, [], 0), "stride: 0"),
    ],
)
def test_bad_input_is_refused_in_words(motions: Motions, call: Callable[[Motions], Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        call(motions)
