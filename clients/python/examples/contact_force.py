"""What a contact of MuJoCo's does at a depth: its impedance, its spring, the acceleration that it gives.

Figure 3 of A. Paulus et al., 2025 (arXiv 2506.14186), from the rows of constraints that the engine makes of a ball at a
depth in a plane. Its velocity is that of a fall, which is damped: so the acceleration jumps at touch by as much as the
impedance there lets through, `solimp[0]`. Where it jumps, the moment of the touch counts in a derivative.

    python contact_force.py --picture contact_force.svg
"""

import numpy as np
from hard_contacts import Array, drawing, parser, show

import sinew

SOLREF, FALL = (0.005, 1.0), -1.0  # time constant [s] and damping ratio; velocity [m/s]
CONTACTS = {
    "MuJoCo's default": (0.9, 0.95, 0.001, 0.5, 2.0),
    "hard, 0 at touch": (0.0, 0.95, 0.001, 0.5, 2.0),
    "0.1 at touch": (0.1, 0.95, 0.001, 0.5, 2.0),
}


def rows(solimp: tuple[float, ...], depths: Array) -> Array:
    """Return impedance, reference acceleration of the position, and acceleration, (3, N), at depths [m]."""
    model = sinew.Model.from_xml(sinew.share("models/bouncing_ball.xml"))
    body = sinew.Data(model.with_options(contact_solref=SOLREF, contact_solimp=solimp))
    found = np.zeros((3, len(depths)))
    for k, depth in enumerate(depths):
        body.qpos, body.qvel = [-depth], [FALL]
        body.forward()
        if body.nefc:
            stiffness, _, impedance, _ = body.efc_KBIP[0]
            found[:2, k] = impedance, stiffness * impedance * depth
        found[2, k] = body.qacc[0]
    return found


def main() -> None:
    arguments = parser(__doc__, 401).parse_args()
    depths = np.linspace(-0.0005, 0.0015, arguments.points)
    found = {name: rows(solimp, depths) for name, solimp in CONTACTS.items()}
    first = int(np.argmax(depths > 0))
    table = [
        {"name": name, "impedance at touch": x[0, first], "acceleration there": x[2, first]}
        for name, x in found.items()
    ]
    for row, x in zip(table, found.values(), strict=True):
        row["at 1 mm"] = float(np.interp(0.001, depths, x[2]))
    show({"contacts": table}, arguments.json)
    if arguments.picture:
        from sinew.plot.style import lines

        with drawing(arguments.picture, 1, 3, (9, 2.6)) as axes:
            for (name, x), style in zip(found.items(), lines(len(found)), strict=True):
                for axis, y in zip(axes[0], x, strict=True):
                    axis.plot(1000 * depths, y, label=name, **style)
            titles = "impedance", "acceleration of the spring [m/s$^2$]", "acceleration at 1 m/s inwards [m/s$^2$]"
            for axis, title in zip(axes[0], titles, strict=True):
                axis.set(title=title, xlabel="depth [mm]")
            axes[0, 0].legend()


if __name__ == "__main__":
    main()
