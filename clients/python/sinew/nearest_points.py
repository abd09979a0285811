"""Nearest points of pairs of geoms at many states, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sinew import _core
from sinew._arrays import Doubles, as_array, doubles, inputs, number, shape_text, whole
from sinew._pool import threads_of_cpu
from sinew.errors import ArgumentError
from sinew.model import Model, not_a_model
from sinew.model_tangents import ModelTangents, native_tangents
from sinew.named import object_id
from sinew.state import StateLike

__all__ = ["NearestGradient", "NearestPoints", "check_derivative", "nearest_points", "nearest_points_vjp"]


@dataclass(frozen=True, eq=False)
class NearestPoints:
    """Nearest points of K pairs of geoms at N states.

    The first dimension, N, is there when the state had one.

    Attributes
    ----------
    dist : ndarray, (N, K)
        Signed distances [m]; negative: depth of the penetration. The limit, where they are no nearer.
    fromto : ndarray, (N, K, 2, 3)
        Nearest points on the first and the second geom [m]; zero beyond the limit.
    normal : ndarray, (N, K, 3)
        Directions from the first geom to the second, of unit length; zero beyond the limit.
    """

    dist: Doubles
    fromto: Doubles
    normal: Doubles
    _model: Model
    _count: int
    _many: bool
    _qpos: Doubles | None
    _mocap: Doubles | None
    _pairs: NDArray[np.int32]
    _limit: float
    _threads: int

    def __repr__(self) -> str:
        return f"<NearestPoints of {len(self._pairs)} pairs at {self._count} states>"


@dataclass(eq=False)
class NearestGradient:
    """Derivatives of a number by what nearest points depend on.

    Attributes
    ----------
    qpos : ndarray, (N, nq), or (N, nv) as tangents
        By the positions.
    mocap : ndarray, (N, nmocap, 6)
        By displacements of the mocap bodies, and by their turns about the world's axes.
    parameters : ndarray, (N, P), or None
        By parameters of the model, where they were given.
    """

    qpos: Doubles
    mocap: Doubles
    parameters: Doubles | None = None


def pair_indices(model: Model, pairs: Sequence[tuple[str | int, str | int]] | NDArray[np.integer]) -> NDArray[np.int32]:
    """Return pairs of geoms as indices, (K, 2). Arrays of indices that all are geoms take no loop."""
    given: NDArray[Any] = np.asarray(pairs if isinstance(pairs, np.ndarray) else ())
    whole_numbers = given.ndim == 2 and given.shape[1] == 2 and np.issubdtype(given.dtype, np.integer)
    if whole_numbers and np.all((given >= 0) & (given < model.ngeom)):
        return np.array(given, np.int32, order="C")  # a copy: the caller may write into its array before the way back
    found = [[object_id(model, "geom", geom) for geom in pair] for pair in pairs]
    if any(len(pair) != 2 for pair in found):
        raise ArgumentError("pairs: expected two geoms each")
    return np.asarray(found, np.int32).reshape(-1, 2)


def nearest_points(
    model: Model,
    state: StateLike | None = None,
    pairs: Sequence[tuple[str | int, str | int]] | NDArray[np.integer] = (),
    *,
    limit: float = np.inf,
    threads: int = 0,
) -> NearestPoints:
    """Find nearest points of any pairs of geoms at one state, or at N.

    The model's filters of contacts, margins and gaps play no role.

    >>> near = sinew.nearest_points(model, {"qpos": qpos}, [("thumb", "ball"), ("index", "ball")])  # qpos (N, nq)
    >>> gradient = sinew.nearest_points_vjp(near, dist=near.dist)  # of half the squared distances

    Parameters
    ----------
    model : Model
        The model.
    state : State, mapping or MjData, optional
        States, of which `qpos` and `mocap` count. Default: `qpos0`.
    pairs : sequence of pairs of str or int, (K, 2)
        Geoms, by names or indices.
    limit : float
        What is farther away is not looked for [m].
    threads : int
        Threads of the CPU; 0: as many as this process may use. Results do not depend on it.

    Returns
    -------
    NearestPoints
        Distances, points and normals.

    Raises
    ------
    NotFoundError
        A geom that the model does not have.
    ArgumentError
        A shape, a type.
    DivergedError
        A number of a state that is NaN or beyond 1e10.
    UnsupportedError
        There is no collider for the types of two geoms, or a mesh has no vertices because nothing can touch it.
    """
    if not isinstance(model, Model):
        raise not_a_model("model", model)
    given = inputs(model, state, None, 0)
    _, qpos, _, _, mocap, _, _, _ = (None if x is None else x.copy() for x in given.arrays)
    of, n, far = pair_indices(model, pairs), given.count, number("limit", limit)
    if far == 0:
        raise ArgumentError("limit: 0, expected a distance other than 0")
    dist, points = np.empty((n, len(of))), np.empty((3, n, len(of), 3))
    with threads_of_cpu(whole("threads", threads)) as backend:
        _core.nearest_points(backend, model._native, n, qpos, mocap, of, far, dist, points)
    fromto, normal = np.stack((points[0], points[1]), axis=2), points[2]
    if not given.many:
        dist, fromto, normal = dist[0], fromto[0], normal[0]
    return NearestPoints(dist, fromto, normal, model, n, given.many, qpos, mocap, of, far, threads)


def _bar(name: str, x: ArrayLike | None, like: Doubles) -> Doubles | None:
    """Return a derivative by a result, in the shape of that."""
    if x is None:
        return None
    array = doubles(name, x)
    if array.shape != like.shape:
        raise ArgumentError(f"{name}: shape {shape_text(array.shape)}, expected {shape_text(like.shape)}")
    return array


def check_derivative(derivative: str) -> None:
    """Refuse another way to differentiate than those that there are."""
    if derivative not in ("exact", "surrogate"):
        raise ArgumentError(f"derivative: {derivative!r}, expected 'exact' or 'surrogate'")


def nearest_points_vjp(
    points: NearestPoints,
    dist: ArrayLike | None = None,
    fromto: ArrayLike | None = None,
    normal: ArrayLike | None = None,
    *,
    coordinates: Literal["array", "tangent"] = "array",
    derivative: Literal["exact", "surrogate"] = "exact",
    parameters: ModelTangents | None = None,
) -> NearestGradient:
    """Return the derivatives of a number by states, given those by nearest points.

    At a kink, where another feature of a geom is as near, they are those of the features found.

    Parameters
    ----------
    points : NearestPoints
        What `nearest_points` has found. May be used any number of times.
    dist, fromto, normal : array_like, optional
        Derivatives of the number by these, in their shapes. None: zero.
    coordinates : {"array", "tangent"}
        How derivatives by positions are given: by the entries of `qpos` (nq), or along tangents (nv).
    derivative : {"exact", "surrogate"}
        Whether points and normals move as they do, or, for comparison, are carried rigidly by their geoms.
    parameters : ModelTangents, optional
        Parameters of the model by which derivatives are wanted, too.

    Returns
    -------
    NearestGradient
        Derivatives by positions, mocap bodies and parameters.

    Raises
    ------
    ArgumentError
        A shape, a type, or a number that is not finite.
    """
    if not isinstance(points, NearestPoints):
        raise ArgumentError(f"points: {type(points).__name__}, expected a sinew.NearestPoints")
    check_derivative(derivative)
    by_entries, model, n = as_array(coordinates), points._model, points._count
    both = _bar("fromto", fromto, points.fromto)
    first, second = (None if both is None else np.ascontiguousarray(both[..., i, :]) for i in (0, 1))
    qpos, mocap = np.empty((n, model.nq if by_entries else model.nv)), np.empty((n, model.nmocap, 6))
    native = native_tangents(parameters)
    moved = None if parameters is None else np.empty((n, len(parameters)))
    with threads_of_cpu(whole("threads", points._threads)) as backend:
        _core.nearest_points_vjp(
            backend, model._native, n, points._qpos, points._mocap, points._pairs, points._limit, by_entries,
            derivative == "surrogate", _bar("dist", dist, points.dist), first, second,
            _bar("normal", normal, points.normal), qpos, mocap, native, moved,
        )  # fmt: skip
    if points._many:
        return NearestGradient(qpos, mocap, moved)
    return NearestGradient(qpos[0], mocap[0], None if moved is None else moved[0])
