"""Poses of bodies as places and rotation matrices: from positions and velocities of free joints, and back.

Shape matching (M. Müller et al. 2005): of nodes p_i and their places q_i in the body, each less its mean, the rotation
is the orthogonal factor of A = sum p_i q_i^T. With A = U S V^T it is R = U D V^T, where D = diag(1, 1, d) has the sign
that makes it no reflection. A = R P with the symmetric P = V D S V^T. Of a change dA the turn R^T dR = W is skew, and

    W P + P W = R^T dA - dA^T R.

In the basis of V this is entry by entry a division by s_i + s_j, where s are the entries of D S: it is stable for equal
singular values, as those of a cube are, where derivatives of U and V alone are not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from sinew.errors import ArgumentError

__all__ = ["Pose", "match", "of_qpos", "polar", "qpos_of", "turned"]


class Pose(NamedTuple):
    """Poses of n bodies in B simulations.

    Attributes
    ----------
    place : Tensor, (B, n, 3)
        Where they are [m].
    turn : Tensor, (B, n, 3, 3)
        Rotation matrices, from the body to the world.
    """

    place: torch.Tensor
    turn: torch.Tensor

    def points(self, body: torch.Tensor, local: torch.Tensor) -> torch.Tensor:
        """Return points (P, 3) of bodies (P,) in the world, (B, P, 3)."""
        return self.place[:, body] + (self.turn[:, body] @ local[:, :, None])[..., 0]


def _polar_back(ctx: Any, bar: torch.Tensor) -> torch.Tensor:
    """Return the derivative by the matrix, of one by the rotation."""
    turn, right, sizes = ctx.saved_tensors
    skew = right @ turn.mT @ bar @ right.mT
    skew = skew - skew.mT
    sums = sizes[..., :, None] + sizes[..., None, :]
    least = 1e-6 * sizes[..., :1, None]  # where two rotations are as near, none of their derivatives counts
    inside = torch.where(sums > least, skew / torch.maximum(sums, least.clamp_min(1e-30)), torch.zeros_like(sums))
    found: torch.Tensor = turn @ right.mT @ inside @ right
    return found


class _Polar(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrix: torch.Tensor) -> torch.Tensor:
        left, sizes, right = torch.linalg.svd(matrix)
        sign = torch.ones_like(sizes)
        sign[..., 2] = torch.sign(torch.linalg.det(left @ right))
        turn = left @ (sign[..., None] * right)
        ctx.save_for_backward(turn, right, sign * sizes)
        return turn

    backward = staticmethod(torch.autograd.function.once_differentiable(_polar_back))


def polar(matrix: torch.Tensor) -> torch.Tensor:
    """Return the rotations nearest to matrices (..., 3, 3); once differentiable, where they are unique."""
    found: torch.Tensor = _Polar.apply(matrix)
    return found


def match(nodes: torch.Tensor, rest: torch.Tensor, owner: torch.Tensor, count: int) -> Pose:
    """Return the poses whose nodes are nearest to given ones, in the sense of least squares.

    Parameters
    ----------
    nodes : Tensor, (B, V, 3)
        Where the nodes are [m].
    rest : Tensor, (V, 3)
        Where they are in their bodies [m].
    owner : Tensor of int, (V,)
        Their bodies.
    count : int
        How many bodies there are.
    """
    share = torch.zeros(count, dtype=rest.dtype).index_add(0, owner, torch.ones_like(rest[:, 0]))
    middle = nodes.new_zeros(len(nodes), count, 3).index_add(1, owner, nodes) / share[:, None]
    inner = rest.new_zeros(count, 3).index_add(0, owner, rest) / share[:, None]
    products = (nodes - middle[:, owner])[..., :, None] * (rest - inner[owner])[:, None, :]
    turn = polar(nodes.new_zeros(len(nodes), count, 3, 3).index_add(1, owner, products))
    return Pose(middle - (turn @ inner[:, :, None])[..., 0], turn)


def of_qpos(qpos: torch.Tensor) -> Pose:
    """Return poses of positions of free joints, (B, 7 n). Differentiable; lengths of quaternions do not count."""
    if qpos.ndim != 2 or qpos.shape[1] % 7 or not qpos.shape[1]:
        raise ArgumentError(f"qpos: shape {tuple(qpos.shape)}, expected (B, 7 n), positions of n free joints")
    parts = qpos.reshape(len(qpos), -1, 7)
    w, x, y, z = torch.nn.functional.normalize(parts[..., 3:], dim=-1).unbind(-1)
    rows = [
        1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
        2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
        2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
    ]  # fmt: skip
    return Pose(parts[..., :3], torch.stack(rows, -1).unflatten(-1, (3, 3)))


def qpos_of(pose: Pose) -> NDArray[np.float64]:
    """Return poses (..., n) as positions of free joints, (..., 7 n). Not differentiable.

    The quaternion is the column of the largest diagonal entry of the matrix 4 q q^T, whose entries are sums of those of
    the rotation.
    """
    place, r = (np.asarray(x.detach().numpy(), float) for x in pose)
    trace = r[..., 0, 0] + r[..., 1, 1] + r[..., 2, 2]
    square = np.empty((*trace.shape, 4, 4))
    square[..., 0, 0] = 1 + trace
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        square[..., 1 + i, 1 + i] = 1 + 2 * r[..., i, i] - trace
        square[..., 0, 1 + i] = square[..., 1 + i, 0] = r[..., k, j] - r[..., j, k]
        square[..., 1 + i, 1 + j] = square[..., 1 + j, 1 + i] = r[..., i, j] + r[..., j, i]
    best = np.argmax(np.diagonal(square, axis1=-2, axis2=-1), axis=-1)
    q = np.take_along_axis(square, best[..., None, None], axis=-1)[..., 0]
    q /= np.linalg.norm(q, axis=-1, keepdims=True)
    return np.concatenate([place, q], axis=-1).reshape(*place.shape[:-2], -1)


def turned(turn: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
    """Return rotations (..., 3, 3) turned by rotation vectors in their own frames, (..., 3) [rad]. Differentiable."""
    x, y, z = by.unbind(-1)
    zero = torch.zeros_like(x)
    cross = torch.stack([zero, -z, y, z, zero, -x, -y, x, zero], -1).unflatten(-1, (3, 3))
    return turn @ torch.linalg.matrix_exp(cross)
