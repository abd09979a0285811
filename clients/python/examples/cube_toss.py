"""A tossed cube with hard contacts: what fixed steps and steps that keep to a tolerance say of where it ends.

The scene is that of figure 5 of A. Paulus et al., 2025 (arXiv 2506.14186): a cube falls onto an edge, and its place
after a second is a function of the velocity with which it falls. Fixed steps are MuJoCo's Euler steps. The reference is
a run at tolerance 1e-12, and its central differences.

    python cube_toss.py --picture cube_toss.svg
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import sinew

Array = NDArray[np.float64]
SECONDS, FALL = 1.0, -2.0  # of motion; velocity of the fall where errors and times are taken [m/s]
FIXED, TOLERANCES = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4), tuple(10.0**-k for k in range(3, 11))
METHODS = ("bosh3", "tsit5", "dopri5", "dopri8")


class Toss:
    """Where the cube ends, sideways, and the derivative of that by the velocity of its fall."""

    def __init__(self) -> None:
        self.model = sinew.Model.from_xml(sinew.share("models/cube_toss.xml"))

    def start(self, falls: Array) -> dict[str, Array]:
        """Return a state for each velocity."""
        qpos = np.tile(self.model.qpos0, (len(falls), 1))
        qvel = np.zeros((len(falls), self.model.nv))
        qpos[:, 2], qvel[:, 1], qvel[:, 2] = 0.2, -0.1, falls
        return {"qpos": qpos, "qvel": qvel}

    def fixed(self, falls: Array, step: float) -> tuple[Array, Array]:
        """Return places [m] and slopes [s] by steps of one size."""
        model = self.model.with_options(timestep=step)
        motion = sinew.rollout(model, self.start(falls), nstep=round(SECONDS / step), outputs=["qpos"])
        bar = np.zeros_like(motion.qpos[0])
        bar[-1, 1] = 1
        return motion.qpos[:, -1, 1], sinew.rollout_vjp(motion, qpos=bar).qvel[:, 2]

    def chosen(self, fall: float, tolerance: float, method: str = "tsit5") -> tuple[float, float]:
        """Return place [m] and slope [s] by steps that keep to a tolerance."""
        state = {name: x[0] for name, x in self.start(np.array([fall])).items()}
        motion = sinew.integrate(self.model, state, [SECONDS], method=method, rtol=tolerance, atol=tolerance)
        bar = np.zeros((1, self.model.nq))
        bar[0, 1] = 1
        return float(motion.raise_if_unfinished().qpos[0, 1]), float(sinew.integrate_vjp(motion, qpos=bar).qvel[2])

    def reference(self, fall: float, eps: float = 1e-4) -> tuple[float, float]:
        """Return place and slope at tolerance 1e-12, the slope by a central difference."""
        value, up, down = (self.chosen(fall + d, 1e-12)[0] for d in (0, eps, -eps))
        return value, (up - down) / (2 * eps)


def measure(toss: Toss) -> list[tuple[str, float, float, float, float]]:
    """Return name, step or tolerance, time [s], errors of place and slope; the least time of five."""
    value, slope = toss.reference(FALL)
    rows = []
    at = np.array([FALL])
    runs: list[tuple[str, float, Callable[[], tuple[float, float]]]] = []
    runs += [("fixed steps", x, lambda x=x: tuple(float(a[0]) for a in toss.fixed(at, x))) for x in FIXED]
    runs += [(m, x, lambda x=x, m=m: toss.chosen(FALL, x, m)) for m in METHODS for x in TOLERANCES]
    for name, size, run in runs:
        times = []
        for _ in range(5):
            begin = time.perf_counter()
            found = run()
            times.append(time.perf_counter() - begin)
        rows.append((name, size, min(times), abs(found[0] - value), abs(found[1] - slope)))
    return rows


def draw(toss: Toss, rows: list[tuple[str, float, float, float, float]], points: int, picture: str) -> None:
    """Draw place and slope over the velocity of the fall, and errors over time."""
    import matplotlib.pyplot as plt

    falls = np.linspace(-2.2, -1.8, points)
    curves = [(f"fixed steps, {x:g} s", *toss.fixed(falls, x)) for x in (1e-2, 1e-3, 1e-4)]
    for tolerance in (1e-4, 1e-8):
        found = np.array([toss.chosen(fall, tolerance) for fall in falls])
        curves.append((f"tolerance {tolerance:g}", found[:, 0], found[:, 1]))
    exact = np.array([toss.reference(fall) for fall in falls])
    curves.append(("reference", exact[:, 0], exact[:, 1]))
    figure, axes = plt.subplots(2, 2, figsize=(11, 7.5), layout="constrained")
    for name, places, slopes in curves:
        style = "k--" if name == "reference" else "-"
        axes[0, 0].plot(falls, places, style, lw=1, label=name)
        axes[0, 1].plot(falls, slopes, style, lw=1, label=name)
    bound, middle = 4 * np.max(np.abs(exact[:, 1])), np.mean(exact[:, 0])
    axes[0, 0].set(title="place after 1 s [m]", xlabel="velocity of the fall [m/s]", ylim=(middle - 0.3, middle + 0.3))
    axes[0, 1].set(title="its slope [s]", xlabel="velocity of the fall [m/s]", ylim=(-bound, bound))
    axes[0, 0].legend(fontsize="small")
    for name in dict.fromkeys(row[0] for row in rows):
        own = np.array([row[2:] for row in rows if row[0] == name])
        axes[1, 0].loglog(1000 * own[:, 0], own[:, 1], "o-", ms=3, label=name)
        axes[1, 1].loglog(1000 * own[:, 0], own[:, 2], "o-", ms=3, label=name)
    axes[1, 0].set(title="error of the place [m]", xlabel="time of place and slope [ms]")
    axes[1, 1].set(title="error of the slope [s]", xlabel="time of place and slope [ms]")
    axes[1, 1].legend(fontsize="small")
    figure.savefig(picture, dpi=80)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=201, help="velocities that are drawn (default: 201)")
    parser.add_argument("--picture", help="file to draw into, .svg or .png")
    arguments = parser.parse_args()
    toss = Toss()
    rows = measure(toss)
    print(f"{'steps':12} {'size':>7} {'time [ms]':>10} {'error [m]':>10} {'of the slope [s]':>17}")
    for name, size, seconds, value, slope in rows:
        print(f"{name:12} {size:7.0e} {1000 * seconds:10.2f} {value:10.1e} {slope:17.1e}")
    if arguments.picture:
        draw(toss, rows, arguments.points, arguments.picture)


if __name__ == "__main__":
    main()
