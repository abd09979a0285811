"""What value and slope cost by each integrator: errors over evaluations of the dynamics and over computing time.

Figure S6 of A. Paulus et al., 2025 (arXiv 2506.14186), of the tossed cube and of a motion without contacts. MuJoCo's
Euler and RK4 steps have one size, seven Runge-Kutta methods keep to a tolerance. Errors are medians over a few starts,
beside runs at tolerance 1e-12 and their central differences; evaluations do not depend on the machine, times do.

    python work_precision.py cube --picture work_precision_cube.svg
"""

from typing import Any

import numpy as np
from cube_toss import toss
from hard_contacts import Array, Curve, Motion, drawing, last, parser, progress, show

import sinew

METHODS = ("heun", "midpoint", "ralston", "bosh3", "tsit5", "dopri5", "dopri8")
STEPS = (1e-2, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4, 5e-5)  # [s]
TOLERANCES = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10)
MOST = 200_000  # evaluations of a run: slower methods end there


def swing() -> Motion:
    """Return a double pendulum that falls, with the speed of its first joint as the number."""
    model = sinew.Model.from_xml(sinew.share("models/acrobot.xml"))
    start = {"qpos": np.array([0.5, 0.3]), "qvel": np.zeros(2)}
    return Motion(model, 1.0, start, ("qvel", 0), last(0))


SCENES = {"cube": (toss, (-2.1, -1.9)), "pendulum": (swing, (-0.5, 0.5))}


def measure(motion: Motion, numbers: Array) -> list[dict[str, Any]]:
    """Return rows of errors and costs, by integrator and size."""
    exact, found = motion.exact(numbers), []

    def add(method: str, kind: str, size: float, curve: Curve) -> None:
        found.append({**curve.row(exact), "name": method, "steps": kind, "size": size})

    for integrator in ("euler", "rk4"):
        for step in STEPS:
            add(f"MuJoCo's {integrator}", "one size", step, motion.steps(numbers, step, integrator))
        progress(f"MuJoCo's {integrator}")
    for method in ("euler", "rk4", "tsit5"):
        for step in STEPS:
            add(method, "one size", step, motion.curve(method, numbers, method=method, fixed_step=step))
        progress(f"{method}, steps of one size")
    for method, events in [*((x, True) for x in METHODS), ("tsit5", False)]:
        for tolerance in TOLERANCES:
            curve = motion.chosen(numbers, tolerance, method=method, events=events)
            add(method, "chosen" if events else "no events", tolerance, curve)
            if curve.evaluations > MOST:
                break
        progress(f"{method}, chosen steps")
    return found


def plot(rows: list[dict[str, Any]], picture: str) -> None:
    """Draw errors of value and slope over evaluations and over time."""
    from sinew.plot.style import lines

    groups = dict.fromkeys((x["name"], x["steps"]) for x in rows)
    with drawing(picture, 2, 2, (8, 5.6)) as axes:
        for (name, kind), style in zip(groups, lines(len(groups)), strict=True):
            own = [x for x in rows if (x["name"], x["steps"]) == (name, kind)]
            marker = {"marker": "x" if kind == "one size" else "o", "ms": 3, "lw": 0.9, **style}
            for line, error in zip(axes, ("value_median", "slope_median"), strict=True):
                for axis, cost in zip(line, ("evaluations", "ms"), strict=True):
                    label = name if kind == "chosen" else f"{name}, {kind}"
                    axis.loglog([x[cost] for x in own], [x[error] for x in own], label=label, **marker)
        for axis, text in zip(axes[1], ("evaluations", "time of value and slope [ms]"), strict=True):
            axis.set_xlabel(text)
        axes[0, 0].set_ylabel("error of the value")
        axes[1, 0].set_ylabel("error of the slope")
        axes[0, 1].legend(loc="upper left", bbox_to_anchor=(1.02, 1))  # "outside right" needs Matplotlib 3.7


def main() -> None:
    arguments_of = parser(__doc__, 5)
    arguments_of.add_argument("scene", choices=SCENES, help="the tossed cube, or a pendulum without contacts")
    arguments = arguments_of.parse_args()
    make, (low, high) = SCENES[arguments.scene]
    rows = measure(make(), np.linspace(low, high, arguments.points))
    show({arguments.scene: rows}, arguments.json)
    if arguments.picture:
        plot(rows, arguments.picture)


if __name__ == "__main__":
    main()
