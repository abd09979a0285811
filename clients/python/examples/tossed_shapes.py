"""Five shapes fall onto a plane: how far each is thrown, by the velocity of its fall, and what steps make of the slope.

Figures 5 and S5 of A. Paulus et al., 2025 (arXiv 2506.14186): contacts as hard as those of `cube_toss.py`, steps of 2
ms beside steps that keep to a tolerance, with events and without, and central differences.

    python tossed_shapes.py --picture tossed_shapes.svg
"""

import re
from pathlib import Path

import numpy as np
from hard_contacts import Curve, Motion, draw, drawing, last, parser, progress, show

import sinew

SECONDS, STEP, TOLERANCE = 1.0, 2e-3, 1e-6
SHAPES = {
    "sphere": "0.05",
    "ellipsoid": "0.06 0.05 0.04",
    "capsule": "0.04 0.05",
    "cylinder": "0.04 0.05",
    "box": "0.05 0.05 0.05",
}


def toss(shape: str, size: str) -> Motion:
    """Return the motion of a shape in place of the tossed cube, with the velocity of its fall as its number."""
    text = Path(sinew.share("models/cube_toss.xml")).read_text(encoding="utf-8")
    model = sinew.Model.from_string(re.sub(r'type="box" size="[^"]*"', f'type="{shape}" size="{size}"', text))
    qpos, qvel = model.qpos0.copy(), np.zeros(model.nv)
    qpos[2], qvel[1] = 0.2, -0.1
    return Motion(model, SECONDS, {"qpos": qpos, "qvel": qvel}, ("qvel", 2), last(1))


def main() -> None:
    arguments = parser(__doc__, 61).parse_args()
    falls = np.linspace(-2.4, -1.6, arguments.points)
    found: dict[str, tuple[list[Curve], Curve]] = {}
    for shape, size in SHAPES.items():
        motion = toss(shape, size)
        chosen = [motion.chosen(falls, TOLERANCE, events=x) for x in (True, False)]
        found[shape] = [motion.steps(falls, STEP), *chosen], motion.exact(falls)
        progress(shape)
    tables = {shape: [x.row(exact) for x in curves] for shape, (curves, exact) in found.items()}
    show(tables, arguments.json)
    if arguments.picture:
        with drawing(arguments.picture, 3, len(SHAPES), (10, 4.8)) as axes:
            for column, (shape, (curves, exact)) in zip(axes.T, found.items(), strict=True):
                draw(column[:2], falls, curves[:2], exact)
                draw((column[0], column[2]), falls, curves[1:], exact, 2)
                column[0].set_title(shape)
                column[2].set_xlabel("velocity of the fall [m/s]")
            for axis, text in zip(
                axes[:, 0], ("place after 1 s [m]", "its slope [s]", "chosen steps alone [s]"), strict=True
            ):
                axis.set_ylabel(text)
            axes[1, 0].legend()
            axes[2, 1].legend()


if __name__ == "__main__":
    main()
