"""A shot at billiard: cost and slope over the cue ball's sideways velocity, with and without contacts from distance.

Figures 8 and S3 of A. Paulus et al., 2025 (arXiv 2506.14186). A cue ball shall push another ball to a target. Where it
misses the cost is flat; contacts from distance give a slope that leads back to a hit. In the first row the balls
float, without a table. Where they miss each other chosen steps are large, since nothing happens in the motion: too
large for the contacts that derivatives see, and so large that they leap over a light touch. A bound of the steps mends
both. In the second row they roll on a table with hard contacts.

    python billiard_sweep.py --picture billiard_sweep.svg
"""

from pathlib import Path
from typing import Any

import numpy as np
from hard_contacts import Array, Curve, Motion, drawing, parser, progress, show

import sinew

SECONDS, BOUND = 0.6, 2e-3  # of motion; largest step [s]
FLOATING, ROLLING = (
    (1e-6, 1e-12, 1e-4),
    (1e-4, 1e-5, 5e-3),
)  # tolerances of steps and of what is exact; differences [m/s]
SPEED, TARGET = (
    2.0,
    np.array([0.1, 0.0]),
)  # of the cue ball forwards [m/s]; of the other ball [m]; it begins at (-0.2, 0)
OTHER, MISS = slice(7, 9), 1.15  # its place in qpos; sideways velocity beyond which balls do not touch [m/s]
CFD = sinew.CFD()
TABLE = '<worldbody><geom name="table" type="plane" size="2 2 0.1" pos="0 0 -0.042" contype="1" conaffinity="2"/>'


def far(qpos: Array) -> tuple[Array, Array]:
    """Return the squared distance of the other ball from its target [m^2], and the derivative."""
    error, bar = qpos[:, OTHER] - TARGET, np.zeros_like(qpos)
    bar[:, OTHER] = 2 * error
    return np.sum(error**2, axis=1), bar


def shot(table: bool) -> Motion:
    """Return the shot, with the sideways velocity as its number."""
    text = Path(sinew.share("models/billiard.xml")).read_text(encoding="utf-8")
    if table:
        text = text.replace('gravity="0 0 0"', 'gravity="0 0 -9.81"').replace("<worldbody>", TABLE)
        text = text.replace('solimp="0.01 0.95 0.1 0.5 2"', 'solimp="0.9 0.95 0.01 0.5 2" contype="7"')
        text = text.replace('solref="0.1 0.2"', 'solref="0.01 0.2"')
    model = sinew.Model.from_string(text)
    qvel = np.zeros(model.nv)
    qvel[0] = SPEED
    return Motion(model, SECONDS, {"qpos": model.key_qpos[0].copy(), "qvel": qvel}, ("qvel", 1), far)


def curves(table: bool, speeds: Array) -> tuple[dict[str, list[Curve]], Curve]:
    """Return curves by what is drawn together, and the exact one."""
    motion, (tolerance, tight, eps) = shot(table), ROLLING if table else FLOATING
    exact = motion.exact(speeds, eps, tight, largest_step=BOUND)
    progress("differences")
    steps, chosen = motion.steps(speeds, 1e-3), motion.chosen(speeds, tolerance)
    with_steps, unrolled = motion.steps(speeds, 1e-3, cfd=CFD), motion.chosen(speeds, tolerance, cfd=CFD)
    progress("contacts from distance")
    bounded = motion.chosen(speeds, tolerance, cfd=CFD, largest_step=BOUND)
    progress("bounded steps")
    return {
        "exact contacts": [steps, chosen],
        "contacts from distance": [with_steps, unrolled],
        "bounded steps": [bounded],
    }, exact


def at_misses(speeds: Array) -> list[dict[str, Any]]:
    """Return errors of the slope from distance where floating balls miss, beside steps of a tenth of the bound."""
    motion, missed, tolerance = shot(False), speeds[np.abs(speeds) > MISS], FLOATING[0]
    fine = motion.chosen(missed, tolerance, cfd=CFD, largest_step=BOUND / 10)
    found = [motion.chosen(missed, tolerance, cfd=CFD), motion.chosen(missed, tolerance, cfd=CFD, largest_step=BOUND)]
    return [{**x.row(fine), "slope": float(np.median(np.abs(x.slopes)))} for x in (*found, fine)]


def plot(speeds: Array, scenes: dict[str, tuple[dict[str, list[Curve]], Curve]], picture: str) -> None:
    """Draw costs and slopes over the sideways velocity, a row for each scene."""
    from sinew.plot.style import lines

    with drawing(picture, 2, 4, (11, 4.8)) as axes:
        for row, (scene, (groups, exact)) in zip(axes, scenes.items(), strict=True):
            row[0].plot(speeds, exact.values)
            row[0].set_ylabel(f"{scene}: cost [m$^2$]")
            for axis, (name, group) in zip(row[1:], groups.items(), strict=True):
                axis.plot(speeds, exact.slopes, color="#999999", lw=3, alpha=0.6, label="differences")
                for curve, style in zip(group, lines(len(group)), strict=True):
                    axis.plot(speeds, curve.slopes, lw=0.9, label=curve.name, **style)
                near = name != "exact contacts"  # what contacts from distance say of a miss is small
                reach = 0.04 if near else 1.5 * float(np.nanquantile(np.abs(exact.slopes), 0.95))
                axis.set(title=f"slope, {name}{', magnified' if near else ''}", ylim=(-reach, reach))
                axis.legend()
        for axis in axes[1]:
            axis.set_xlabel("sideways velocity [m/s]")


def main() -> None:
    arguments = parser(__doc__, 61).parse_args()
    speeds = np.linspace(-1.6, 1.6, arguments.points)
    scenes = {name: curves(table, speeds) for name, table in (("floating", False), ("on a table", True))}
    tables = {
        f"{scene}, {name}": [x.row(exact) for x in group]
        for scene, (groups, exact) in scenes.items()
        for name, group in groups.items()
    }
    show({**tables, "misses, from distance": at_misses(speeds)}, arguments.json)
    if arguments.picture:
        plot(speeds, scenes, arguments.picture)


if __name__ == "__main__":
    main()
