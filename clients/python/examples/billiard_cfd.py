"""Contacts from distance on the billiard: a gradient that knows of a contact which has not happened.

A cue ball shall push another ball a little way forward. As long as it misses, the way of the other ball does not depend
on the shot, and the exact gradient is zero. With contacts from distance the gradient says where to aim; the motion is
the same.

    python billiard_cfd.py --picture billiard_cfd.svg
"""

import argparse

import numpy as np
from numpy.typing import NDArray

import sinew

Array = NDArray[np.float64]
STEPS, LENGTH, SHRINK = 600, 0.08, 0.97
TARGET = np.array([0.1, 0.0])  # of the other ball [m]; it begins at (-0.2, 0)
CUE, OTHER = slice(0, 2), slice(7, 9)  # their places in qpos; of the cue ball's velocity in qvel


class Shot:
    """Where the other ball ends, by the cue ball's velocity."""

    def __init__(self) -> None:
        self.model = sinew.Model.from_xml(sinew.share("models/billiard.xml"))

    def play(self, velocity: Array, cfd: sinew.CFD | None = None) -> sinew.Rollout:
        """Return the motion after a shot (2,) [m/s]."""
        qvel = np.zeros(self.model.nv)
        qvel[CUE] = velocity
        return sinew.rollout(self.model, {"qpos": self.model.key_qpos[0], "qvel": qvel}, nstep=STEPS, cfd=cfd)

    def gradient(self, velocity: Array, cfd: sinew.CFD | None) -> tuple[float, Array]:
        """Return the squared distance of the other ball from its target [m^2], and its derivative by the velocity."""
        motion = self.play(velocity, cfd)
        error = motion.qpos[-1, OTHER] - TARGET
        bar = np.zeros_like(motion.qpos)
        bar[-1, OTHER] = 2 * error
        return float(error @ error), sinew.rollout_vjp(motion, qpos=bar).qvel[CUE]


def descend(shot: Shot, cfd: sinew.CFD | None, iterations: int) -> tuple[list[float], Array]:
    """Return the distances [m] on the way, and the last velocity."""
    velocity, distances = np.array([2.0, 1.5]), []
    for i in range(iterations):
        value, gradient = shot.gradient(velocity, cfd)
        distances.append(value**0.5)
        velocity = velocity - LENGTH * SHRINK**i * gradient / max(float(np.linalg.norm(gradient)), 1e-12)
    return distances, velocity


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=150, help="of descent (default: 150)")
    parser.add_argument("--picture", type=sinew.files.writable, help="file to draw into, .svg or .png")
    arguments = parser.parse_args()

    shot = Shot()
    found = {}
    for name, cfd in (("exact", None), ("from distance", sinew.CFD(solimp=(0.0, 0.01, 0.1, 1.0, 2.0)))):
        distances, velocity = found[name] = descend(shot, cfd, arguments.iterations)
        first, last = 1000 * distances[0], 1000 * distances[-1]
        print(f"{name + ':':15} distance from {first:.1f} mm to {last:.1f} mm, velocity {velocity.round(3)} m/s")

    if arguments.picture:
        import matplotlib.pyplot as plt

        figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
        for name, (distances, velocity) in found.items():
            left.plot(distances, label=name)
            motion = shot.play(velocity).qpos
            for ball, style in ((CUE, "-"), (OTHER, "--")):
                colour = left.lines[-1].get_color()
                right.plot(
                    *motion[:, ball].T, style, color=colour, label=f"{name}, {'cue' if ball is CUE else 'other'}"
                )
        left.set(title="distance of the other ball from its target [m]", xlabel="iteration")
        left.legend()
        right.plot(*TARGET, "k+", markersize=12)
        right.set(title="the last shots", xlabel="x [m]", ylabel="y [m]", aspect="equal")
        right.legend(fontsize="small")
        figure.savefig(arguments.picture, dpi=80)


if __name__ == "__main__":
    main()
