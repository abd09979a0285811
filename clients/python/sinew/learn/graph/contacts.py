"""Nearest points of triangles of different bodies, found by the engine, with surrogate derivatives.

Which triangles are near each other, and where their nearest points lie in the bodies, counts as fixed while a step is
made (Z. Huang et al., III-C.2). So a nearest point p on a body moves with the velocity v + omega x (p - x) of equation
5: p = x + R l with a fixed l, whose derivatives are J H of equation 7.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from sinew.errors import ArgumentError
from sinew.learn.graph.meshes import Scene
from sinew.learn.graph.poses import Pose, qpos_of
from sinew.nearest_points import nearest_points

__all__ = ["Contacts", "find"]


@dataclass(frozen=True, eq=False)
class Contacts:
    """Pairs of triangles within reach: M face-face edges, each from a sender to a receiver.

    Attributes
    ----------
    state : Tensor of int, (M,)
        The simulation.
    sender, receiver : Tensor of int, (M,)
        Triangles of the scene. A sender may be the floor; a receiver is not.
    sent, received : Tensor, (M, 3)
        The nearest points on them [m], carried by their bodies.
    """

    state: torch.Tensor
    sender: torch.Tensor
    receiver: torch.Tensor
    sent: torch.Tensor
    received: torch.Tensor

    def __len__(self) -> int:
        return len(self.state)


def _carried(scene: Scene, pose: Pose, state: torch.Tensor, face: torch.Tensor, point: torch.Tensor) -> torch.Tensor:
    """Return points (M, 3) as the bodies of their triangles carry them; those of the floor are fixed."""
    still = face == len(scene.faces)
    body = torch.from_numpy(scene.face_owner)[face.clamp_max(len(scene.faces) - 1)]
    place, turn = pose.place[state, body], pose.turn[state, body]
    local = turn.detach().mT @ (point - place.detach())[:, :, None]
    return torch.where(still[:, None], point, place + (turn @ local)[..., 0])


def find(scene: Scene, pose: Pose, reach: float, threads: int = 0) -> Contacts:
    """Find pairs of triangles that are nearer than ``reach`` [m], at all simulations in one call of the engine.

    Raises
    ------
    ArgumentError
        A reach that is not above 0.
    DivergedError
        A number of a pose that is NaN or beyond 1e10.
    """
    if not reach > 0:
        raise ArgumentError(f"reach: {reach}, expected a length above 0")
    near = nearest_points(scene.model, {"qpos": qpos_of(pose)}, scene.pairs, limit=reach, threads=threads)
    state, pair = np.nonzero(near.dist < reach)
    faces, points = scene.pair_faces[pair], near.fromto[state, pair]
    floor = scene.pairs[pair, 1] == 0 if scene.floor is not None else np.zeros(len(pair), bool)
    back = ~floor  # a triangle of a body receives from either side
    of = torch.from_numpy(np.concatenate([state, state[back]]))
    receiver = torch.from_numpy(np.concatenate([faces[:, 0], faces[back, 1]]))
    sender = torch.from_numpy(np.concatenate([faces[:, 1], faces[back, 0]]))
    ends = np.concatenate([points, points[back][:, ::-1]])
    received, sent = (torch.from_numpy(np.ascontiguousarray(ends[:, i])).to(pose.place.dtype) for i in (0, 1))
    return Contacts(
        of, sender, receiver, _carried(scene, pose, of, sender, sent), _carried(scene, pose, of, receiver, received)
    )
