"""What the operations of PyTorch and JAX return."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

__all__ = ["Nearest", "Trajectory"]

Array = TypeVar("Array")


class Trajectory(NamedTuple, Generic[Array]):
    """Trajectories of T + 1 states.

    The first dimension, N, is there when the initial state or the controls had one. Rows of a rollout that has
    diverged are NaN from the state that is bad on; derivatives through it are zero.

    Attributes
    ----------
    qpos : array, (N, T + 1, nq)
        Positions.
    qvel : array, (N, T + 1, nv)
        Velocities.
    act : array, (N, T + 1, na)
        Activations.
    sensordata : array, (N, T + 1, nsensordata)
        Sensors of each state under its controls; at the last state those of the last step stand. NaN where the
        engine does not have the sensor.
    """

    qpos: Array
    qvel: Array
    act: Array
    sensordata: Array


class Nearest(NamedTuple, Generic[Array]):
    """Nearest points of K pairs of geoms at N states, as `sinew.NearestPoints` has them.

    Attributes
    ----------
    dist : array, (N, K)
        Signed distances [m].
    fromto : array, (N, K, 2, 3)
        Nearest points [m].
    normal : array, (N, K, 3)
        Directions from the first geom to the second.
    """

    dist: Array
    fromto: Array
    normal: Array
