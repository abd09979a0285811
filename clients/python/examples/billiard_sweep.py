"""A shot at billiard: cost and slope over the cue ball's sideways velocity, with and without contacts from distance.

Figure S3 of A. Paulus et al., 2025 (arXiv 2506.14186). A cue ball shall push another ball to a target; the balls float.
Where it misses the cost is flat; contacts from distance give a slope that leads back to a hit. There chosen steps are
large, since nothing happens in the motion: too large for the contacts that derivatives see, and so large that they leap
over a light touch. A bound of the steps mends both; an adjoint with steps of its own mends the former for less.

    python billiard_sweep.py --picture billiard_sweep.svg
"""

from typing import Any

import numpy as np
from hard_contacts import Array, Curve, Motion, drawing, parser, progress, show

import sinew

SECONDS, STEP, TOLERANCE, BOUND = 0.6, 1e-3, 1e-6, 2e-3  # of motion; of fixed steps; of chosen ones; the largest [s]
SPEED, TARGET = 2.0, np.array([0.1, 0.0])  # of the cue ball [m/s]; of the other ball [m], which begins at (-0.2, 0)
OTHER, MISS = slice(7, 9), 1.15  # its place in qpos; sideways velocity beyond which balls do not touch [m/s]
CFD = sinew.CFD()


def far(qpos: Array) -> tuple[Array, Array]:
    """Return the squared distance of the other ball from its target [m^2], and the derivative."""
    error, bar = qpos[:, OTHER] - TARGET, np.zeros_like(qpos)
    bar[:, OTHER] = 2 * error
    return np.sum(error**2, axis=1), bar


def shot() -> Motion:
    """Return the shot, with the sideways velocity as its number."""
    model = sinew.Model.from_xml(sinew.share("models/billiard.xml"))
    qvel = np.zeros(model.nv)
    qvel[0] = SPEED
    return Motion(model, SECONDS, {"qpos": model.key_qpos[0].copy(), "qvel": qvel}, ("qvel", 1), far)


def curves(motion: Motion, speeds: Array) -> dict[str, list[Curve]]:
    """Return curves by what is drawn together."""
    return {
        "exact contacts": [
            motion.steps(speeds, STEP),
            motion.chosen(speeds, TOLERANCE),
            motion.chosen(speeds, TOLERANCE, largest_step=BOUND),
        ],
        "from distance": [motion.steps(speeds, STEP, cfd=CFD), motion.chosen(speeds, TOLERANCE, cfd=CFD)],
        "from distance, mended": [
            motion.chosen(speeds, TOLERANCE, cfd=CFD, largest_step=BOUND),
            motion.chosen(speeds, TOLERANCE, cfd=CFD, adjoint="backsolve"),
        ],
    }


def at_misses(motion: Motion, speeds: Array) -> list[dict[str, Any]]:
    """Return errors of the slope from distance where the balls miss, beside steps of a tenth of the bound."""
    missed = speeds[np.abs(speeds) > MISS]
    fine = motion.chosen(missed, TOLERANCE, cfd=CFD, largest_step=BOUND / 10)
    found = [
        motion.chosen(missed, TOLERANCE, cfd=CFD),
        motion.chosen(missed, TOLERANCE, cfd=CFD, largest_step=BOUND),
        motion.chosen(missed, TOLERANCE, cfd=CFD, adjoint="backsolve"),
    ]
    return [{**x.row(fine), "slope": float(np.median(np.abs(x.slopes)))} for x in (*found, fine)]


def plot(speeds: Array, groups: dict[str, list[Curve]], exact: Curve, picture: str) -> None:
    """Draw cost and slopes over the sideways velocity."""
    from sinew.plot.style import lines

    with drawing(picture, 1, 4, (11, 2.8)) as axes:
        axes[0, 0].plot(speeds, exact.values)
        axes[0, 0].set_title("cost [m$^2$]")
        for axis, (name, group) in zip(axes[0, 1:], groups.items(), strict=True):
            axis.plot(speeds, exact.slopes, color="#999999", lw=3, alpha=0.6, label="differences")
            for curve, style in zip(group, lines(len(group)), strict=True):
                axis.plot(speeds, curve.slopes, lw=0.9, label=curve.name, **style)
            near = name != "exact contacts"  # what contacts from distance say of a miss is small
            reach = 0.04 if near else 2.5 * float(np.nanquantile(np.abs(exact.slopes), 0.95))
            axis.set(title=f"slope, {name}", ylim=(-reach, reach))
            axis.legend()
        for axis in axes[0]:
            axis.set_xlabel("sideways velocity [m/s]")


def main() -> None:
    arguments = parser(__doc__, 161).parse_args()
    motion, speeds = shot(), np.linspace(-1.6, 1.6, arguments.points)
    exact = motion.exact(speeds, largest_step=BOUND)
    progress("differences")
    groups = curves(motion, speeds)
    tables = {name: [x.row(exact) for x in group] for name, group in groups.items()}
    show({**tables, "from distance, where balls miss": at_misses(motion, speeds)}, arguments.json)
    if arguments.picture:
        plot(speeds, groups, exact, arguments.picture)


if __name__ == "__main__":
    main()
