"""A ball bounces off a plane: its place at the end by the height where it began, and what steps make of the slope.

Figure 4 of A. Paulus et al., 2025 (arXiv 2506.14186). Without gravity and damping the ball leaves as fast as it came,
so the slope of its place is -1 whatever the contact's stiffness. Three contacts:

    ideal    the velocity turns round at the first step below the plane: a few lines here, differentiated by hand
    spring   MuJoCo's contact, by steps of one size
    chosen   the same, by steps that keep to a tolerance, and end where the contact begins or ends, or do not (`events`)

    python bouncing_ball.py --picture bouncing_ball.svg
"""

from itertools import product
from typing import Any

import numpy as np
from hard_contacts import Array, Curve, Motion, draw, drawing, last, parser, progress, show

import sinew

SECONDS, SPEED, TARGET = 2.0, -1.0, 1.0  # of motion; at the start [m/s]; where the ball shall end [m]
STEPS = (1e-2, 1e-3, 1e-4)  # [s]
FINE = (2e-2, 1e-2, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4, 5e-5)
TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10)
DRAWN = 1e-5  # tolerance
STIFFNESS = (1e3, 1e4, 1e5, 1e6)  # [1/s^2]


def distance(qpos: Array) -> tuple[Array, Array]:
    """Return how far balls are from the target [m], and the derivative of that."""
    return np.abs(qpos[:, 0] - TARGET), np.sign(qpos - TARGET)


def bounce(stiffness: float, damping: float = 0.0, impedance: float = 0.0) -> Motion:
    """Return the ball's motion with a contact of a stiffness [1/s^2], a damping [1/s] and an impedance at touch."""
    model = sinew.Model.from_xml(sinew.share("models/bouncing_ball.xml"))
    model = model.with_options(contact_solref=(-stiffness, -damping), contact_solimp=(impedance, 0.95, 0.001, 0.5, 2))
    return Motion(model, SECONDS, {"qpos": np.zeros(1), "qvel": np.array([SPEED])}, ("qpos", 0), last(0))


def ideal(heights: Array, step: float) -> Curve:
    """Return the distance from the target with an ideal contact, whose discrete motion has a slope of its own."""
    place, velocity = heights.copy(), np.full_like(heights, SPEED)
    for _ in range(round(SECONDS / step)):
        velocity = np.where(place < 0, np.abs(velocity), velocity)
        place = place + step * velocity
    # The number of steps with either velocity does not change with the height, so the place moves as the height does.
    return Curve(f"steps of {step:g} s", np.abs(place - TARGET), np.sign(place - TARGET))


def slopes(heights: Array) -> dict[str, list[dict[str, float]]]:
    """Return the median and the error of place and slope, by stiffness, step and tolerance."""
    found: dict[str, list[dict[str, float]]] = {"steps": [], "chosen": [], "chosen, no events": []}
    for stiffness in STIFFNESS:
        motion = bounce(stiffness)
        exact = Curve("exact", motion.exact(heights).values, -np.ones_like(heights))
        for step in FINE:
            errors = motion.steps(heights, step).errors(exact)
            found["steps"].append({"stiffness": stiffness, "size": step, **errors})
        for tolerance in TOLERANCES:
            for name, events in (("chosen", True), ("chosen, no events", False)):
                errors = motion.chosen(heights, tolerance, events=events).errors(exact)
                found[name].append({"stiffness": stiffness, "size": tolerance, **errors})
        progress(f"stiffness {stiffness:g}")
    return found


def impedances(heights: Array) -> list[dict[str, Any]]:
    """Return errors of the slope with a damped contact, by its impedance at touch: from it the force jumps."""
    found = []
    for impedance in (0.0, 0.01, 0.1, 0.9):
        motion = bounce(1e4, 40.0, impedance)
        exact = motion.exact(heights)
        for tolerance, events in product((1e-4, 1e-6, 1e-8), (True, False)):
            errors = motion.chosen(heights, tolerance, events=events).errors(exact)
            found.append(
                {
                    "impedance": impedance,
                    "tolerance": tolerance,
                    "events": "yes" if events else "no",
                    "slope": float(np.median(exact.slopes)),
                    **errors,
                }
            )
        progress(f"impedance {impedance:g}")
    return found


def plot(heights: Array, table: dict[str, list[dict[str, float]]], picture: str) -> None:
    """Draw distance and slope over the height for three contacts, and errors of slopes over the size of steps."""
    from sinew.plot.style import lines

    motion = bounce(1e4)
    motion.loss = distance
    reflected = SECONDS * -SPEED - heights - TARGET
    rigid, exact = Curve("exact", np.abs(reflected), -np.sign(reflected)), motion.exact(heights, 1e-6)
    columns = [
        ("ideal contact", [ideal(heights, x) for x in STEPS], rigid),
        ("spring, steps of one size", [motion.steps(heights, x) for x in STEPS], exact),
        ("spring, chosen steps", [motion.chosen(heights, DRAWN, events=x) for x in (True, False)], exact),
    ]
    with drawing(picture, 2, 4, (10, 4.4)) as axes:
        for column, (title, curves, best) in enumerate(columns):
            draw(axes[:, column], heights, curves, best)
            axes[0, column].set(title=title, ylim=(0, 0.8))
            axes[1, column].set(xlabel="height at the start [m]", ylim=(-4, 4))
            axes[0, column].legend(loc="upper center")
        axes[0, 0].set_ylabel("distance from the target [m]")
        axes[1, 0].set_ylabel("its slope")
        for axis, name in zip(axes[:, 3], ("steps", "chosen"), strict=True):
            for stiffness, style in zip(STIFFNESS, lines(len(STIFFNESS)), strict=True):
                own = [x for x in table[name] if x["stiffness"] == stiffness]
                sizes, errors = [x["size"] for x in own], [x["slope_90%"] for x in own]
                axis.loglog(sizes, errors, marker="o", ms=3, label=f"{stiffness:.0e}", **style)
            axis.set(title=f"error of the slope, {name}", xlabel="step [s]" if name == "steps" else "tolerance")
        axes[1, 3].legend(loc="lower right", title="stiffness [1/s$^2$]")


def main() -> None:
    arguments = parser(__doc__, 201).parse_args()
    heights = np.linspace(0.5, 1.5, arguments.points)
    few = 0.5 + np.arange(1, min(25, arguments.points) + 1) * 0.618034 % 1  # nowhere on the grid of the steps
    table = slopes(few)
    show({**table, "damped": impedances(few)}, arguments.json)
    if arguments.picture:
        plot(heights, table, arguments.picture)


if __name__ == "__main__":
    main()
