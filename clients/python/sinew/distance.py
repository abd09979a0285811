"""Distances of geoms, and their derivatives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Distance", "DistanceJacobian"]

_Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DistanceJacobian:
    """Derivatives of a distance by positions, as their tangent; zero beyond the limit.

    At a kink, where another feature of a geom is as near, they are those of the features found.

    Attributes
    ----------
    dist : array, (nv,)
        Of the distance.
    fromto : array, (2, 3, nv)
        Of the nearest points.
    normal : array, (3, nv)
        Of the normal.
    """

    dist: _Doubles
    fromto: _Doubles
    normal: _Doubles


@dataclass(frozen=True, eq=False)
class Distance:
    """Distance of two geoms.

    Attributes
    ----------
    dist : float
        Signed distance [m]; negative: depth of the penetration. The limit, where they are no nearer.
    fromto : array, (2, 3)
        Nearest points on the first and the second geom [m]; zero beyond the limit.
    normal : array, (3,)
        Direction from the first geom to the second, of unit length; zero beyond the limit.
    jacobian : DistanceJacobian, optional
        Derivatives, where they were asked for.
    """

    dist: float
    fromto: _Doubles
    normal: _Doubles
    jacobian: DistanceJacobian | None = None


def distance_of(found: _Doubles, by: _Doubles | None) -> Distance:
    """Return a distance of the ten numbers that the library has found, and of their derivatives (10, nv)."""
    jacobian = None if by is None else DistanceJacobian(by[0], by[1:7].reshape(2, 3, -1), by[7:])
    return Distance(float(found[0]), found[1:7].reshape(2, 3), found[7:], jacobian)
