"""A box slides down a slope and stops: how far, by the speed of the push, and what steps make of that slope.

The box rests on four hard contacts all the time, so there is no jump of the velocity, and no moment at which the box is
free: what changes are the rows of friction, which begin to hold. A rigid box goes v^2 / (2 a) with a = g (f cos - sin).

    python box_slope.py --picture box_slope.svg
"""

from itertools import product
from typing import Any

import numpy as np
from hard_contacts import Array, Curve, Motion, draw, drawing, last, parser, progress, show

import sinew

SECONDS = 1.0
STEPS, TOLERANCES = (1e-2, 2e-3, 1e-3, 1e-4), (1e-3, 1e-4, 1e-6, 1e-8)
FRICTION = 0.5


def slide() -> Motion:
    """Return the box, with the speed along the slope as its number, from where it rests."""
    model = sinew.Model.from_xml(sinew.share("models/box_slope.xml"))
    start = {"qpos": model.qpos0.copy(), "qvel": np.zeros(model.nv)}
    rest = sinew.rollout(model, start, nstep=500, gradients=False).qpos[-1]
    return Motion(model, SECONDS, {"qpos": rest, "qvel": np.zeros(model.nv)}, ("qvel", 0), lambda x: way(x, rest))


def way(qpos: Array, rest: Array) -> tuple[Array, Array]:
    """Return how far boxes went down the slope [m], and the derivative of that."""
    value, bar = last(0)(qpos)
    return value - rest[0], bar


def rigid(motion: Motion, speeds: Array) -> Curve:
    """Return the way of a rigid box and its slope."""
    gravity = motion.model.opt.gravity
    braking = -FRICTION * gravity[2] - gravity[0]
    return Curve("rigid box", speeds**2 / (2 * braking), speeds / braking)


def by_friction(motion: Motion, speed: float) -> list[dict[str, Any]]:
    """Return the derivative of the way by the coefficient of friction [m], and its error."""
    names = ["geom.box.friction[0]", "geom.slope.friction[0]"]
    parameters = sinew.Parameters(sinew.share("models/box_slope.xml"), {"friction": sinew.Parameter(names)})
    state = {name: x[0] for name, x in motion.states(np.array([speed])).items()}
    bar = last(0)(np.zeros((1, motion.model.nq)))[1]

    def place(friction: float) -> float:
        run = sinew.integrate(parameters.model([friction]), state, [SECONDS], rtol=1e-10, atol=1e-10, gradients=False)
        return float(run.raise_if_unfinished().qpos[0, 0])

    eps = 1e-5
    exact = (place(FRICTION + eps) - place(FRICTION - eps)) / (2 * eps)
    found = []
    for events, tolerance in product((True, False), TOLERANCES):
        run = sinew.integrate(parameters.model(), state, [SECONDS], rtol=tolerance, atol=tolerance, events=events)
        slope = sinew.integrate_vjp(run, qpos=bar, parameters=parameters.tangents()).parameters
        assert slope is not None
        name, value = f"tolerance {tolerance:g}{'' if events else ', no events'}", float(slope[0])
        found.append({"name": name, "slope": value, "error": abs(value - exact)})
    return found


def main() -> None:
    arguments = parser(__doc__, 41).parse_args()
    motion, speeds = slide(), np.linspace(0.05, 1.2, arguments.points)
    exact = motion.exact(speeds)
    progress("differences")
    fixed = [motion.steps(speeds, x) for x in STEPS]
    chosen = []
    for tolerance in TOLERANCES:
        chosen.append(motion.chosen(speeds, tolerance))
        progress(chosen[-1].name)
    plain = [motion.chosen(speeds, x, events=False) for x in TOLERANCES]
    progress("no events")
    body = rigid(motion, speeds)
    rows = [x.row(exact) for x in (*fixed, *chosen, *plain, body)]
    show({"by the speed": rows, "by friction, at 1 m/s": by_friction(motion, 1.0)}, arguments.json)
    if arguments.picture:
        columns = {"steps of one size": [*fixed, body], "chosen steps": chosen, "chosen steps, no events": plain}
        with drawing(arguments.picture, 2, len(columns), (10, 4.4)) as axes:
            for column, (title, curves) in enumerate(columns.items()):
                draw(axes[:, column], speeds, curves, exact, 2)
                axes[0, column].set_title(title)
                axes[1, column].set_xlabel("speed of the push [m/s]")
                axes[0, column].legend()
            axes[0, 0].set_ylabel("way after 1 s [m]")
            axes[1, 0].set_ylabel("its slope [s]")


if __name__ == "__main__":
    main()
