"""A tossed cube with hard contacts: what fixed steps and steps that keep to a tolerance say of where it ends.

The scene is that of figure 5 of A. Paulus et al., 2025 (arXiv 2506.14186): a cube falls onto an edge, and its place
after a second is a function of the velocity with which it falls. Fixed steps are MuJoCo's Euler steps. Chosen steps end
where a contact begins or ends (`events` of `sinew.integrate`); beside them are some that do not. The reference is
a run at tolerance 1e-12, and its central differences; beside it stands one by RK4 steps of 1e-5 s.

    python cube_toss.py --picture cube_toss.svg
"""

from typing import Any

import numpy as np
from hard_contacts import Motion, draw, drawing, last, parser, progress, show

import sinew

STEPS, TOLERANCES = (1e-2, 2e-3, 1e-3, 2e-4, 1e-4), (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10)
DRAWN, PLAIN = (1e-3, 1e-5), (1e-3, 1e-5, 1e-7, 1e-10)  # tolerances; those of steps that know of no events
FALL, EPS = -2.0, 1e-4  # velocity at which two references are compared, and how far it is moved for a slope [m/s]


def toss() -> Motion:
    """Return the cube's motion, with the velocity of its fall as its number, and its last place sideways [m]."""
    model = sinew.Model.from_xml(sinew.share("models/cube_toss.xml"))
    qpos, qvel = model.qpos0.copy(), np.zeros(model.nv)
    qpos[2], qvel[1] = 0.2, -0.1
    return Motion(model, 1.0, {"qpos": qpos, "qvel": qvel}, ("qvel", 2), last(1))


def references(motion: Motion) -> list[dict[str, Any]]:
    """Return place and slope at one velocity by differences of RK4 steps and of chosen ones."""
    at = np.array([FALL, FALL + EPS, FALL - EPS])
    small = sinew.rollout(
        motion.model.with_options(timestep=1e-5, integrator="rk4"), motion.states(at), nstep=100_000, gradients=False,
        outputs=["qpos"],
    )  # fmt: skip
    places = small.qpos[:, -1, 1]
    exact = motion.exact(at[:1], EPS)
    return [
        {"name": "RK4, 1e-5 s", "place": float(places[0]), "slope": float(places[1] - places[2]) / (2 * EPS)},
        {"name": exact.name, "place": float(exact.values[0]), "slope": float(exact.slopes[0])},
    ]


def main() -> None:
    arguments = parser(__doc__, 201).parse_args()
    motion, falls = toss(), np.linspace(-2.2, -1.8, arguments.points)
    exact = motion.exact(falls)
    progress("differences")
    fixed, chosen = [], []
    for step in STEPS:
        fixed.append(motion.steps(falls, step))
        progress(fixed[-1].name)
    for tolerance in TOLERANCES:
        chosen.append(motion.chosen(falls, tolerance))
        progress(chosen[-1].name)
    plain = [motion.chosen(falls, x, events=False) for x in PLAIN]
    progress("no events")
    tables = {
        f"at a fall of {-FALL:g} m/s": references(motion),
        "place [m] and slope [s]": [x.row(exact) for x in (*fixed, *chosen, *plain)],
    }
    show(tables, arguments.json)
    if arguments.picture:
        columns = {
            "steps of one size": fixed[::2],
            "chosen steps": [x for x, size in zip(chosen, TOLERANCES, strict=True) if size in DRAWN],
            "chosen steps, no events": [x for x, size in zip(plain, PLAIN, strict=True) if size in DRAWN],
        }
        with drawing(arguments.picture, 2, len(columns), (10, 4.6)) as axes:
            for column, (title, curves) in enumerate(columns.items()):
                draw(axes[:, column], falls, curves, exact)
                axes[0, column].set_title(title)
                axes[0, column].legend()
                axes[1, column].set_xlabel("velocity of the fall [m/s]")
            axes[0, 0].set_ylabel("place after 1 s [m]")
            axes[1, 0].set_ylabel("its slope [s]")


if __name__ == "__main__":
    main()
