"""The simulator: a graph of poses, accelerations by the network, Verlet steps, shape matching.

All features are differences of places, so that a simulation that begins elsewhere over the floor is the same. The floor
has one node, and its triangle has no corners: where nearest points lie on it alone counts.

A step of Verlet is p(t + 1) = a(t) + 2 p(t) - p(t - 1), with accelerations in lengths a squared step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from sinew.errors import ArgumentError, DivergedError
from sinew.learn.graph.contacts import Contacts, find
from sinew.learn.graph.meshes import Scene
from sinew.learn.graph.network import Graph, GraphNetwork, Sizes
from sinew.learn.graph.poses import Pose, match, of_qpos, turned

__all__ = ["GRAVITY", "Simulator"]

GRAVITY = (0.0, 0.0, -9.81)  # [m/s^2]


class Simulator(nn.Module):
    """Moves bodies by steps of one size, differentiable from the first poses to the last ones.

    Parameters
    ----------
    sizes : Sizes
        Of the network.
    step : float
        Length of a step [s].
    reach : float
        How near triangles are that count as a possible contact [m].
    seed : int
        Of the network's first weights.
    threads : int
        Of the engine's collision; 0: as many as this process may use.

    Attributes
    ----------
    length, speed, spread : Tensor, ()
        What lengths of a body, velocities and accelerations are measured in [m], [m a step], [m a squared step].
    mean : Tensor, (3,)
        Acceleration to which the network adds. At first that of gravity.
    """

    length: torch.Tensor
    speed: torch.Tensor
    spread: torch.Tensor
    mean: torch.Tensor

    def __init__(
        self, sizes: Sizes | None = None, *, step: float, reach: float = 0.04, seed: int = 0, threads: int = 0
    ) -> None:
        super().__init__()
        for name, value in (("step", step), ("reach", reach)):
            if not 0 < value < np.inf:
                raise ArgumentError(f"{name}: {value}, expected a number above 0")
        self.sizes, self.step, self.reach, self.threads = sizes or Sizes(), step, reach, threads
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = GraphNetwork(self.sizes)
        fall = torch.tensor(GRAVITY) * step**2
        for name, number in (("length", 0.1), ("speed", 0.01), ("spread", 0.005)):
            self.register_buffer(name, torch.tensor(number))
        self.register_buffer("mean", fall)

    # ---- the graph ----

    def graph(self, scene: Scene, now: Pose, before: Pose, contacts: Contacts | None = None) -> Graph:
        """Return the graph of B scenes. Without contacts they are looked for.

        Features are: of a mesh node its displacement since the step before, and whether it is the floor's; of an object
        node its displacement; of an edge of a mesh, or from its object, the difference of its ends and their distance;
        of a corner of a face-face edge the difference of the nearest points, the corner less the nearest point, both
        normals, and both distances.
        """
        if contacts is None:
            contacts = find(scene, now, self.reach, self.threads)
        dtype, count, bodies = now.place.dtype, len(now.place), len(scene)
        owner, rest = torch.from_numpy(scene.owner), torch.from_numpy(scene.rest).to(dtype)
        size = len(rest)
        nodes = now.points(owner, rest)
        moved = (nodes - before.points(owner, rest)).flatten(0, 1) / self.speed
        floor = torch.tensor([[0.0, 0.0, 0.0, 1.0]], dtype=dtype)
        each = torch.arange(count)
        ends = torch.from_numpy(scene.edges)
        across = nodes[:, ends[:, 1]] - nodes[:, ends[:, 0]]
        from_object = nodes - now.place[:, owner]
        corners, touch = self._contacts(scene, now, nodes, contacts)
        return Graph(
            torch.cat([torch.cat([moved, torch.zeros_like(moved[:, :1])], 1), floor]),
            (now.place - before.place).flatten(0, 1) / self.speed,
            _with_norm(across.flatten(0, 1) / self.length),
            _with_norm(from_object.flatten(0, 1) / self.length),
            touch,
            (ends + size * each[:, None, None]).flatten(0, 1),
            (owner + bodies * each[:, None]).flatten(),
            *corners,
        )

    def _contacts(self, scene: Scene, now: Pose, nodes: torch.Tensor, contacts: Contacts) -> tuple[Any, torch.Tensor]:
        """Return corners of senders and receivers among all nodes, and the features of face-face edges (M, 3, 14)."""
        dtype, (count, size) = now.place.dtype, nodes.shape[:2]
        faces = torch.from_numpy(np.concatenate([scene.faces, np.zeros((1, 3), np.int64)]))
        receivers = faces[contacts.receiver] + size * contacts.state[:, None]
        still = contacts.sender == len(scene.faces)
        senders = torch.where(
            still[:, None], torch.tensor(count * size), faces[contacts.sender] + size * contacts.state[:, None]
        )
        normals = torch.from_numpy(np.concatenate([scene.normals, [[0.0, 0.0, 1.0]]])).to(dtype)
        body = torch.from_numpy(np.concatenate([scene.face_owner, [0]]))

        def normal(face: torch.Tensor) -> torch.Tensor:
            return (now.turn[contacts.state, body[face]] @ normals[face][..., None])[..., 0]

        gap = _with_norm((contacts.received - contacts.sent) / self.reach)
        across = torch.where(still[:, None], normals[-1], normal(contacts.sender))
        same = torch.cat([gap, across, normal(contacts.receiver)], 1)[:, None].expand(-1, 3, -1)
        corner = nodes.flatten(0, 1)[receivers] - contacts.received[:, None]
        return (senders, receivers), torch.cat([same, _with_norm(corner / self.length)], -1)

    # ---- steps ----

    def accelerations(self, scene: Scene, now: Pose, before: Pose) -> torch.Tensor:
        """Return accelerations of the nodes, (B, V, 3) [m a squared step]."""
        found = self.network(self.graph(scene, now, before))
        return self.mean + self.spread * found.unflatten(0, (len(now.place), -1))

    def nodes(self, scene: Scene, now: Pose, before: Pose) -> torch.Tensor:
        """Return where Verlet moves the nodes, (B, V, 3) [m]: bodies are not rigid yet."""
        owner, rest = torch.from_numpy(scene.owner), torch.from_numpy(scene.rest).to(now.place.dtype)
        went = 2 * now.points(owner, rest) - before.points(owner, rest)
        moved = self.accelerations(scene, now, before) + went
        bad = ~torch.isfinite(moved).flatten(1).all(1)
        if bad.any():
            raise DivergedError(f"simulation {int(bad.nonzero()[0])}: the network's accelerations are not finite")
        return moved

    def rigid(self, scene: Scene, nodes: torch.Tensor) -> Pose:
        """Return the poses that nodes (B, V, 3) come nearest to."""
        rest = torch.from_numpy(scene.rest).to(nodes.dtype)
        return match(nodes, rest, torch.from_numpy(scene.owner), len(scene))

    def rollout(self, scene: Scene, now: Pose, before: Pose, steps: int) -> Pose:
        """Return the poses now and after each step, places (B, steps + 1, n, 3) and turns (B, steps + 1, n, 3, 3)."""
        if now.place.ndim != 3 or now.place.shape[1] != len(scene) or now.place.shape != before.place.shape:
            raise ArgumentError(
                f"poses: places {tuple(now.place.shape)} and {tuple(before.place.shape)}, expected (B, {len(scene)}, 3)"
            )
        poses = [now]
        for _ in range(steps):
            now, before = self.rigid(scene, self.nodes(scene, now, before)), now
            poses.append(now)
        return Pose(*(torch.stack(x, 1) for x in zip(*poses, strict=True)))

    def start(self, qpos: torch.Tensor, qvel: torch.Tensor, gravity: bool = True) -> tuple[Pose, Pose]:
        """Return the poses now and a step before, of positions (B, 7 n) and velocities (B, 6 n) of free joints.

        Parameters
        ----------
        qpos, qvel : Tensor
            As MuJoCo has them [m, 1], [m/s, rad/s]: angular velocities are in the frames of the bodies.
        gravity : bool
            Whether bodies fell freely before. Otherwise they moved with these velocities.
        """
        now = of_qpos(qpos)
        if qvel.shape != (len(qpos), 6 * now.place.shape[1]):
            raise ArgumentError(f"qvel: shape {tuple(qvel.shape)}, expected {(len(qpos), 6 * now.place.shape[1])}")
        if qvel.dtype != qpos.dtype:
            raise ArgumentError(f"qvel: a tensor of {qvel.dtype}, expected {qpos.dtype}, as qpos is")
        speed = qvel.unflatten(1, (-1, 6))
        fall = self.step**2 / 2 * torch.tensor(GRAVITY, dtype=qpos.dtype) * gravity
        place = now.place - self.step * speed[..., :3] + fall
        return now, Pose(place, turned(now.turn, -self.step * speed[..., 3:]))


def _with_norm(x: torch.Tensor) -> torch.Tensor:
    """Return vectors (..., 3) and their lengths, (..., 4). The slope of the length of zero is zero."""
    return torch.cat([x, torch.sqrt((x * x).sum(-1, keepdim=True) + 1e-12)], -1)
