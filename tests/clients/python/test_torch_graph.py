"""The graph simulator of sinew.learn.graph: meshes, poses, contacts, network and steps, where PyTorch is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sinew
from sinew.errors import ArgumentError, DivergedError

torch = pytest.importorskip("torch", reason="PyTorch is not there")

from sinew.learn.graph.contacts import find  # noqa: E402
from sinew.learn.graph.meshes import Mesh, Scene  # noqa: E402
from sinew.learn.graph.network import Sizes  # noqa: E402
from sinew.learn.graph.poses import Pose, match, of_qpos, polar, qpos_of, turned  # noqa: E402
from sinew.learn.graph.simulator import GRAVITY, Simulator  # noqa: E402

HALF, STEP = 0.05, 0.0135
TETRAHEDRON = Mesh(
    np.array([[0.06, 0, -0.02], [-0.03, 0.05, -0.02], [-0.03, -0.05, -0.02], [0, 0, 0.06]]),
    np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]]),
)


@pytest.fixture(scope="module")
def cube() -> Scene:
    return Scene([Mesh.box([HALF] * 3)])


@pytest.fixture(scope="module")
def two() -> Scene:
    return Scene([Mesh.box([HALF] * 3), TETRAHEDRON])


def states(bodies: int, count: int = 4, seed: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    """Return positions and velocities near each other and the floor."""
    rng = np.random.default_rng(seed)
    qpos, qvel = np.zeros((count, bodies, 7)), rng.standard_normal((count, bodies, 6)) * [1, 1, 1, 5, 5, 5]
    qpos[..., 0], qpos[..., 2] = 0.13 * np.arange(bodies), 0.08
    qpos[..., 3:] = rng.standard_normal((count, bodies, 4))
    return torch.tensor(qpos.reshape(count, -1)), torch.tensor(qvel.reshape(count, -1))


def lively(**ways: Any) -> Simulator:
    """Return a simulator in doubles whose network does something."""
    simulator = Simulator(Sizes(8, 2), step=STEP, **ways).double()
    with torch.no_grad():
        for seed, x in enumerate(simulator.network.decoder[-1].parameters()):
            x.copy_(0.3 * torch.randn(x.shape, generator=torch.Generator().manual_seed(seed), dtype=x.dtype))
    return simulator


def slope(of: Callable[[torch.Tensor], torch.Tensor], at: torch.Tensor, way: torch.Tensor, eps: float) -> float:
    """Return a central difference along a way."""
    with torch.no_grad():
        return float(of(at + eps * way) - of(at - eps * way)) / (2 * eps)


# ---- meshes and scenes ----


def test_box_is_closed_and_looks_outwards(cube: Scene) -> None:
    mesh = cube.meshes[0]
    assert np.sum(np.linalg.norm(mesh.crosses, axis=1)) / 2 == pytest.approx(6 * (2 * HALF) ** 2)
    assert np.sum(mesh.crosses * mesh.vertices[mesh.faces].mean(1)) / 6 == pytest.approx((2 * HALF) ** 3)
    assert len(mesh.edges) == 2 * 18
    assert {tuple(x) for x in mesh.edges} == {tuple(x[::-1]) for x in mesh.edges}


def test_scene_numbers_bodies_through(two: Scene) -> None:
    assert two.rest.shape == (12, 3)
    assert two.faces[12:].min() == 8
    assert len(two.pairs) == 12 * 4 + 16
    assert np.all(two.owner[two.edges[:, 0]] == two.owner[two.edges[:, 1]])
    assert np.all(two.owner[two.faces] == two.face_owner[:, None])


# ---- poses ----


def test_shape_matching_recovers_rotations_and_places(two: Scene) -> None:
    qpos, _ = states(2, 32)
    pose = of_qpos(qpos)
    owner, rest = torch.from_numpy(two.owner), torch.from_numpy(two.rest)
    found = match(pose.points(owner, rest), rest, owner, 2)
    assert torch.allclose(found.place, pose.place, atol=1e-14, rtol=0)
    assert torch.allclose(found.turn, pose.turn, atol=1e-13, rtol=0)


def test_shape_matching_gives_no_reflection(cube: Scene) -> None:
    rest = torch.from_numpy(cube.rest)
    found = match((rest * torch.tensor([1.0, 1.0, -1.0]))[None], rest, torch.zeros(8, dtype=torch.int64), 1)
    assert float(torch.linalg.det(found.turn)) == pytest.approx(1)


def test_positions_come_back() -> None:
    qpos, _ = states(3, 200)
    at = qpos.reshape(-1, 7)
    at[:, 3:] /= at[:, 3:].norm(dim=1, keepdim=True)
    half_turns = torch.tensor([[0, 1.0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0.6, 0.8, 0]], dtype=torch.float64)
    at[:4, 3:] = half_turns
    back = qpos_of(of_qpos(at))
    same = np.sum(back[:, 3:] * at[:, 3:].numpy(), axis=1)
    assert np.abs(np.abs(same) - 1).max() < 1e-14
    assert np.array_equal(back[:, :3], at[:, :3].numpy())


@pytest.mark.parametrize("sizes", [[1, 1, 1], [3, 2, 1], [1, 1, 0.5], [2, 1, 0], [2, 1, -0.5]])
def test_polar_rotation_has_its_derivative_also_at_equal_singular_values(sizes: list[float]) -> None:
    generator = torch.Generator().manual_seed(3)
    left, right = (torch.linalg.qr(torch.randn(3, 3, generator=generator, dtype=torch.float64))[0] for _ in range(2))
    left, right = left * torch.linalg.det(left), right * torch.linalg.det(right)
    matrix = (left @ torch.diag(torch.tensor(sizes, dtype=torch.float64)) @ right).requires_grad_()
    weights, way = torch.randn(2, 3, 3, generator=generator, dtype=torch.float64)
    (polar(matrix) * weights).sum().backward()
    want = slope(lambda x: (polar(x) * weights).sum(), matrix.detach(), way, 1e-6)
    assert float((matrix.grad * way).sum()) == pytest.approx(want, rel=1e-7, abs=1e-8)


def test_a_turn_goes_about_the_axes_of_the_body() -> None:
    rest = torch.eye(3, dtype=torch.float64)
    quarter = turned(turned(rest, np.pi / 2 * rest[2]), np.pi / 2 * rest[0])
    assert torch.allclose(quarter @ rest[1], rest[2], atol=1e-14)


# ---- contacts ----


def test_contacts_are_those_of_nearest_points_of_the_bodies(two: Scene) -> None:
    pose = of_qpos(states(2, 16)[0])
    contacts = find(two, pose, 0.5)
    floor = contacts.sender == len(two.faces)
    assert floor.sum() == 16 * 16
    assert len(contacts) == 16 * (16 + 2 * 48)
    assert torch.all(contacts.sent[floor, 2].abs() < 1e-15)
    lowest = pose.points(torch.from_numpy(two.owner), torch.from_numpy(two.rest))[..., 2].min(1).values
    found = torch.full((16,), np.inf, dtype=torch.float64)
    for state, height in zip(contacts.state[floor], contacts.received[floor, 2], strict=True):
        found[state] = min(found[state], height)
    assert torch.allclose(found, lowest, atol=1e-8, rtol=0)  # a model's vertices are floats


def test_each_pair_of_bodies_sends_both_ways(two: Scene) -> None:
    contacts = find(two, of_qpos(states(2, 8)[0]), 0.05)
    ways = {}
    for k in range(len(contacts)):
        if contacts.sender[k] < len(two.faces):
            ends = int(contacts.state[k]), int(contacts.sender[k]), int(contacts.receiver[k])
            ways[ends] = contacts.sent[k], contacts.received[k]
    assert len(ways) > 20
    for (state, sender, receiver), (sent, received) in ways.items():
        assert torch.equal(ways[state, receiver, sender][0], received)
        assert torch.equal(ways[state, receiver, sender][1], sent)


def test_surrogate_gradient_of_a_gap_is_its_difference_at_a_face() -> None:
    """A corner over a face: the gap along the normal has the derivative that differences have, whatever moves."""
    scene = Scene([TETRAHEDRON, Mesh.box([0.1, 0.1, HALF])], None)
    qpos = torch.tensor([[0.01, 0.02, 0.09, 0.1, 0.95, 0.05, -0.1, 0, 0, 0, 0.99, 0.1, 0.05, 0]], dtype=torch.float64)

    def gap(at: torch.Tensor) -> torch.Tensor:
        contacts = find(scene, of_qpos(at), 0.1)
        apart = (contacts.sent - contacts.received).norm(dim=1)
        return apart.min()

    at = qpos.clone().requires_grad_()
    gap(at).backward()
    assert 0.001 < float(gap(qpos)) < 0.05
    for i in range(14):
        way = torch.eye(14, dtype=torch.float64)[i]
        assert float(at.grad[0, i]) == pytest.approx(slope(gap, qpos, way, 1e-6), rel=1e-6, abs=1e-8), i


def test_surrogate_gradients_are_those_of_the_engine(two: Scene) -> None:
    from sinew.torch import nearest_points

    qpos = states(2, 3)[0]
    qpos = qpos.reshape(3, 2, 7)
    qpos[..., 3:] /= qpos[..., 3:].norm(dim=-1, keepdim=True)
    qpos = qpos.reshape(3, 14)
    weights = torch.randn(3, len(two.pairs), 2, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    own, engine = qpos.clone().requires_grad_(), qpos.clone().requires_grad_()
    contacts, count = find(two, of_qpos(own), 9.0), len(two.pairs)
    ends = torch.stack([contacts.received, contacts.sent], 1)[: 3 * count].reshape(3, count, 2, 3)
    (ends * weights).sum().backward()
    near = nearest_points(two.model, {"qpos": engine}, two.pairs, derivative="surrogate")
    assert torch.allclose(near.fromto.detach(), ends.detach(), atol=1e-12)
    (near.fromto * weights).sum().backward()
    assert torch.allclose(own.grad, engine.grad, atol=1e-10)


# ---- steps ----


def test_verlet_of_a_free_flight_is_exact(cube: Scene) -> None:
    qpos, qvel = states(1)
    qpos[:, 2], qvel[:, 3:] = 5.0, 0
    simulator = Simulator(Sizes(8, 2), step=STEP).double()
    simulator.mean = torch.tensor(GRAVITY, dtype=torch.float64) * STEP**2
    poses = simulator.rollout(cube, *simulator.start(qpos, qvel), 30)
    time = STEP * torch.arange(31, dtype=torch.float64)[:, None]
    want = qpos[:, None, :3] + time * qvel[:, None, :3] + time**2 / 2 * torch.tensor(GRAVITY, dtype=torch.float64)
    assert torch.allclose(poses.place[:, :, 0], want, atol=1e-12, rtol=0)
    assert torch.allclose(poses.turn, poses.turn[:, :1], atol=1e-12, rtol=0)


def test_a_simulation_elsewhere_over_the_floor_is_the_same(two: Scene) -> None:
    simulator, (qpos, qvel) = lively(), states(2)
    here = simulator.rollout(two, *simulator.start(qpos, qvel), 8)
    shift = torch.tensor([3.0, -7.0, 0.0], dtype=torch.float64)
    there = simulator.rollout(two, *simulator.start(moved(qpos, shift), qvel), 8)
    assert torch.allclose(there.place, here.place + shift, atol=1e-9, rtol=0)
    assert torch.allclose(there.turn, here.turn, atol=1e-9, rtol=0)
    assert not torch.allclose(here.place[:, -1], here.place[:, 0], atol=1e-3)


def test_a_floor_elsewhere_is_the_same(two: Scene) -> None:
    simulator, (qpos, qvel) = lively(), states(2)
    up = torch.tensor([0.0, 0.0, 2.0], dtype=torch.float64)
    here = simulator.rollout(two, *simulator.start(qpos, qvel), 4)
    raised = simulator.rollout(Scene(two.meshes, 2.0), *simulator.start(moved(qpos, up), qvel), 4)
    assert torch.allclose(raised.place, here.place + up, atol=1e-9, rtol=0)


def moved(qpos: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
    """Return positions with all bodies elsewhere."""
    parts = qpos.reshape(len(qpos), -1, 7).clone()
    parts[..., :3] += by
    return parts.reshape(len(qpos), -1)


def test_simulations_of_a_batch_do_not_know_of_each_other(two: Scene) -> None:
    simulator, (qpos, qvel) = lively(), states(2)
    together = simulator.rollout(two, *simulator.start(qpos, qvel), 3)
    for i in range(len(qpos)):
        alone = simulator.rollout(two, *simulator.start(qpos[i : i + 1], qvel[i : i + 1]), 3)
        assert torch.allclose(alone.place[0], together.place[i], atol=1e-12, rtol=0)


def test_the_order_of_corners_does_not_count(cube: Scene) -> None:
    simulator, (qpos, qvel) = lively(), states(1)
    mesh = cube.meshes[0]
    other = Scene([replace(mesh, faces=np.roll(mesh.faces, 1, axis=1))])
    now, before = simulator.start(qpos, qvel)
    first, second = (simulator.nodes(x, now, before) for x in (cube, other))
    assert torch.allclose(first, second, atol=1e-12, rtol=0)


def test_gradients_from_first_to_last_pose_are_differences(cube: Scene) -> None:
    """In free flight all is smooth. Through contacts what is fixed in a step is not seen by differences."""
    simulator, (qpos, qvel) = lively(reach=1e-3), states(1)
    qpos[:, 2] = 1.0
    weights = torch.randn(4, 1, 3, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)

    def number(speed: torch.Tensor) -> torch.Tensor:
        last = simulator.rollout(cube, *simulator.start(qpos, speed), 6)
        return last.place[:, -1].sum() + (last.turn[:, -1] * weights).sum()

    speed = qvel.clone().requires_grad_()
    number(speed).backward()
    way = torch.randn(qvel.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    assert float((speed.grad * way).sum()) == pytest.approx(slope(number, qvel, way, 1e-5), rel=1e-6)


def test_gradients_through_contacts_are_differences_of_carried_points(cube: Scene) -> None:
    """With points that lie fixed in the bodies, as equations 5 to 7 have them, differences are the derivative."""
    simulator = lively(reach=0.2)
    qpos, qvel = states(1)
    base, before = simulator.start(qpos, qvel)
    fixed = find(cube, base, 0.2)
    face = torch.from_numpy(cube.face_owner)[fixed.receiver]
    local = base.turn[fixed.state, face].mT @ (fixed.received - base.place[fixed.state, face])[..., None]

    def number(place: torch.Tensor, carried: bool = True) -> torch.Tensor:
        pose = Pose(place, base.turn)
        contacts = find(cube, pose, 0.2)
        if carried:
            points = place[fixed.state, face] + (base.turn[fixed.state, face] @ local)[..., 0]
            contacts = replace(fixed, received=points)
        found = simulator.network(simulator.graph(cube, pose, before, contacts))
        return (found * found).sum()

    place = base.place.clone().requires_grad_()
    number(place, carried=False).backward()
    way = torch.randn(place.shape, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    assert float((place.grad * way).sum()) == pytest.approx(slope(number, base.place, way, 1e-6), rel=1e-6)
    assert float(place.grad.abs().max()) > 1e-3


# ---- refusals ----


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: Mesh(np.zeros((3, 3)), np.zeros((1, 3), int)), "vertices: shape"),
        (lambda: Mesh(np.full((4, 3), np.nan), np.array([[0, 1, 2]])), "not finite"),
        (lambda: Mesh(TETRAHEDRON.vertices, np.array([[0, 1, 4]])), r"faces\[0\].*corners are 0 to 3"),
        (lambda: Mesh(TETRAHEDRON.vertices, np.array([[0, 1, 1]])), "has no area"),
        (lambda: Mesh(TETRAHEDRON.vertices, np.array([[0.0, 1, 2]])), "of integers"),
        (lambda: Mesh.box([1, 1]), "half: .*three lengths"),
        (lambda: Scene([]), "meshes: none"),
        (lambda: Scene([TETRAHEDRON], np.nan), "floor: nan"),
        (lambda: Simulator(step=0.0), "step: 0.0"),
        (lambda: Simulator(step=STEP, reach=-1), "reach: -1"),
        (lambda: Simulator(Sizes(0, 3), step=STEP), "sizes: .*1 and more"),
        (lambda: of_qpos(torch.zeros(2, 8)), r"qpos: shape \(2, 8\)"),
        (lambda: Simulator(step=STEP).start(torch.zeros(2, 7), torch.zeros(2, 7)), r"qvel: shape \(2, 7\)"),
        (
            lambda: Simulator(step=STEP).start(torch.ones(1, 7), torch.ones(1, 6).double()),
            "qvel: a tensor of .*float64",
        ),
        (lambda: find(Scene([TETRAHEDRON]), of_qpos(states(1)[0]), 0.0), "reach: 0.0"),
    ],
)
def test_bad_input_is_refused_in_words(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        call()


def test_poses_of_another_scene_are_refused(two: Scene) -> None:
    simulator = Simulator(Sizes(8, 2), step=STEP)
    with pytest.raises(ArgumentError, match=r"expected \(B, 2, 3\)"):
        simulator.rollout(two, *simulator.start(*states(1)), 1)


def test_numbers_that_are_not_finite_end_a_rollout_in_words(cube: Scene) -> None:
    simulator = lively()
    with torch.no_grad():
        simulator.network.decoder[-1].bias.fill_(np.nan)
    with pytest.raises(DivergedError, match="simulation 0: the network's accelerations"):
        simulator.rollout(cube, *simulator.start(*states(1)), 1)
    qpos, qvel = states(1)
    with pytest.raises(DivergedError, match="qpos"):
        simulator.rollout(cube, *simulator.start(qpos * np.nan, qvel), 1)


def test_importing_sinew_imports_no_torch() -> None:
    import subprocess
    import sys

    code = "import sinew, sinew.learn, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    assert sinew.Model
