"""Four ways to a gradient before touch and through it: MuJoCo's soft contact, CFD, a sigmoid, randomised smoothing.

Three motions begin with one number, and end in a cost; hard contact has a slope of its own for each:

    ball     falls freely at some speed and bounces, or does not reach the floor in time: its height at the end
    box      is pushed by a ball of some speed, or the ball does not reach it in time: how far the box slides
    hopper   a mass on a leg with a spring lands with its leg at some angle: how far it has come after the hop

The ways: MuJoCo's contact as it is; the same with contacts from distance on the way back (`sinew.CFD`); hard contacts
scaled by a sigmoid of their distance (option `contact`), of several widths; and means over normal numbers around each,
of MuJoCo's motions, whose slope is that of the mean. Printed is how far cost and slope are from those of hard contact,
what they take, and how far the cost is off over the size of the steps.

    python smoothed_contact.py --picture smoothed_contact.png
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hard_contacts import Array, Curve, Motion, drawing, last, parser, progress, show

import sinew

STEP = 2e-3  # [s]
STEPS = (5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2)
WIDTHS = (1e-3, 5e-3)  # of sigmoids [m]
FINE = (1e-5, 2e-5)  # width [m] and step [s] of what stands for hard contact where there is no formula
SAMPLES = 100
RESTITUTION = 0.7  # of the ball

HEAD = (
    '<mujoco><option timestep="0.002" gravity="0 0 {gravity}"/><default><geom friction="0.5 0.005 0.0001"/></default>'
)
FLOOR = '<worldbody><geom type="plane" size="9 9 1"/>'
BALL = """<body pos="0 0 0.1"><joint type="slide" axis="0 0 1"/><geom size="0.1" mass="1" condim="1"/></body>
</worldbody></mujoco>"""
BOX = """<body pos="0 0 0.1"><joint type="slide" axis="1 0 0"/><geom size="0.05" mass="1" contype="2" conaffinity="2"
condim="1"/></body>
<body pos="0 0 0.1"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>
<geom type="box" size="0.1 0.1 0.1" mass="1" contype="3" conaffinity="3"/></body></worldbody></mujoco>"""
HOPPER = """<body pos="0 0 0"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>
<geom size="0.1" mass="3" contype="0" conaffinity="0"/>
<body><joint axis="0 1 0" armature="0.02" damping="0.05"/>
<geom type="capsule" fromto="0 0 0 0 0 -0.2" size="0.02" mass="0.2" contype="0" conaffinity="0"/>
<body pos="0 0 -0.5"><joint type="slide" axis="0 0 1" stiffness="1500" damping="4"/>
<geom size="0.03" mass="0.1"/></body></body></body></worldbody></mujoco>"""


@dataclass
class Scene:
    """A motion, the numbers it begins with, and what hard contact makes of them.

    Attributes
    ----------
    motion : Motion
        With MuJoCo's contacts.
    numbers : ndarray, (N,)
        What it begins with.
    label : str
        What they are, with their unit.
    spread : float
        Standard deviation of the numbers of randomised smoothing.
    restitution : float
        Of its contacts.
    formula : callable, optional
        Gets numbers, returns the costs of hard contact.
    """

    motion: Motion
    numbers: Array
    label: str
    spread: float
    restitution: float = 0.0
    formula: Callable[[Array], Array] | None = None

    def sigmoid(self, width: float, stiffness: float = 0.2) -> Motion:
        """Return the motion with contacts of the sigmoid."""
        options = {"contact_width": width, "contact_stiffness": stiffness, "contact_restitution": self.restitution}
        own = self.motion
        return Motion(own.model.with_options(contact="sigmoid", **options), own.seconds, own.start, own.where, own.loss)

    def hard(self) -> Curve:
        """Return costs and slopes of hard contact: by the formula, else by a fine sigmoid and fine steps."""
        fine = self.formula or (lambda x: self.sigmoid(FINE[0], 0.05).steps(x, FINE[1]).values)
        eps = 1e-5 if self.formula else self.spread
        return Curve(
            "hard contact", fine(self.numbers), (fine(self.numbers + eps) - fine(self.numbers - eps)) / (2 * eps)
        )

    def sampled(self, step: float, generator: np.random.Generator) -> Curve:
        """Return means over normal numbers around each, and the slopes of the means."""
        begin = time.process_time()
        count, motion = len(self.numbers), self.motion
        noise = generator.standard_normal((count, SAMPLES // 2))
        noise = np.concatenate([noise, -noise], axis=1)
        all_numbers = (self.numbers[:, None] + self.spread * noise).reshape(-1)
        model = motion.model.with_options(timestep=step)
        values = []
        for part in np.array_split(all_numbers, -(-len(all_numbers) // 500)):
            moved = sinew.rollout(
                model, motion.states(part), nstep=round(motion.seconds / step), outputs=["qpos"], gradients=False
            )
            values.append(motion.loss(moved.qpos[:, -1])[0])
        costs = np.concatenate(values).reshape(count, -1)
        slopes = (costs * noise).mean(axis=1) / self.spread
        seconds = (time.process_time() - begin) / count
        return Curve("sampling", costs.mean(axis=1), slopes, seconds, SAMPLES * motion.seconds / step)


def soft(restitution: float, stiffness: float = 1e4) -> dict[str, Any]:
    """Return options of MuJoCo's contact as a spring whose damping leaves this restitution."""
    decay = -np.log(restitution) / np.pi if restitution > 0 else 1.0
    ratio = decay / np.sqrt(1 + decay**2) if restitution > 0 else 1.0
    return {
        "contact_solref": (-stiffness, -2 * ratio * np.sqrt(stiffness)),
        "contact_solimp": (0.95, 0.95, 0.001, 0.5, 2),
    }


def bounced(speeds: Array) -> Array:
    """Return the heights of hard balls 1 s after they were 1 m high: they touch from 1 m/s on."""
    return np.where(speeds > 1, RESTITUTION * (speeds - 1), 1 - speeds)


def pushed(speeds: Array) -> Array:
    """Return how far hard boxes slide in 1 s: both masses are 1 kg, the gap is 0.4 m, friction acts on the box."""
    late = np.maximum(1 - 0.4 / speeds, 0)
    speed, brake = speeds / 2, 0.5 * 9.81 / 2
    braked = np.minimum(late, speed / brake)
    return speed * braked - 0.5 * brake * braked**2


def scenes(points: int) -> dict[str, Scene]:
    """Return the three scenes with so many numbers each."""
    ball = sinew.Model.from_string(HEAD.format(gravity=0) + FLOOR + BALL).with_options(**soft(RESTITUTION))
    box = sinew.Model.from_string(HEAD.format(gravity=-9.81) + FLOOR + BOX)
    hopper = sinew.Model.from_string(HEAD.format(gravity=-9.81) + FLOOR + HOPPER)
    falls = {"qpos": np.array([1.0]), "qvel": np.zeros(1)}
    rolls = {"qpos": np.array([-0.55, 0.0, 0.0]), "qvel": np.zeros(3)}
    hops = {"qpos": np.array([0.0, 0.85, 0.0, 0.0]), "qvel": np.array([1.0, 0.0, 0.0, 0.0])}
    speeds = np.linspace(-1.6, -0.4, points)
    return {
        "ball": Scene(
            Motion(ball, 1.0, falls, ("qvel", 0), last(0)),
            speeds,
            "velocity [m/s]",
            0.05,
            RESTITUTION,
            lambda x: bounced(-x),
        ),
        "box": Scene(
            Motion(box, 1.0, rolls, ("qvel", 0), last(1)),
            np.linspace(0.2, 2.0, points),
            "speed of the ball [m/s]",
            0.05,
            formula=pushed,
        ),
        "hopper": Scene(
            Motion(hopper, 0.8, hops, ("qpos", 2), last(0)),
            np.linspace(-0.3, 0.5, points),
            "angle of the leg [rad]",
            0.02,
        ),
    }


def ways(scene: Scene, step: float) -> list[Curve]:
    """Return costs and slopes of all ways at steps of this size [s]."""
    reach = sinew.CFD(solimp=(0.0, 0.9, 0.1, 0.5, 2.0), softplus=0.002, friction=True)
    soft_curve = scene.motion.steps(scene.numbers, step)
    soft_curve.name = "MuJoCo"
    far = scene.motion.steps(scene.numbers, step, cfd=reach)
    far.name = "CFD"
    found = [soft_curve, far]
    for width in WIDTHS:
        curve = scene.sigmoid(width).steps(scene.numbers, step)
        curve.name = f"sigmoid, {1000 * width:g} mm"
        found.append(curve)
    found.append(scene.sampled(step, np.random.default_rng(1)))
    return found


def over_steps(scene: Scene, exact: Curve) -> list[dict[str, Any]]:
    """Return how far the cost is from that of hard contact, as shares of its range, over the size of steps."""
    rows = []
    span = float(np.ptp(exact.values))
    for step in STEPS:
        row: dict[str, Any] = {"step": step}
        motions = {"MuJoCo": scene.motion} | {f"sigmoid, {1000 * w:g} mm": scene.sigmoid(w) for w in WIDTHS}
        for name, motion in motions.items():
            row[name] = motion.steps(scene.numbers, step).errors(exact)["value_90%"] / span
        rows.append(row)
    return rows


def plot(found: dict[str, tuple[Scene, list[Curve], Curve, list[dict[str, Any]]]], picture: str) -> None:
    """Draw cost, slope and the error over steps, a column for each scene."""
    from sinew.plot.style import lines

    with drawing(picture, 3, len(found), (10, 7)) as axes:
        for column, (title, (scene, curves, exact, steps)) in enumerate(found.items()):
            styles = dict(zip((curve.name for curve in curves), lines(len(curves)), strict=True))
            for axis, name in zip(axes[:2, column], ("values", "slopes"), strict=True):
                axis.plot(scene.numbers, getattr(exact, name), color="#999999", lw=3, alpha=0.6, label=exact.name)
                for curve in curves:
                    axis.plot(scene.numbers, getattr(curve, name), lw=0.9, label=curve.name, **styles[curve.name])
                axis.set(xlabel=scene.label)
            most = 2.5 * float(np.nanquantile(np.abs(exact.slopes), 0.9))
            axes[1, column].set_ylim(-most, most)
            axes[0, column].set_title(title)
            for name in steps[0]:
                if name != "step":
                    errors = [row[name] for row in steps]
                    axes[2, column].loglog(STEPS, errors, marker="o", ms=3, label=name, **styles[name])
            axes[2, column].set(xlabel="step [s]")
        axes[0, 0].legend(loc="upper center")
        axes[2, 1].legend(loc="lower right")
        for axis, text in zip(axes[:, 0], ("cost [m]", "its slope", "error of the cost by its range"), strict=True):
            axis.set_ylabel(text)


def main() -> None:
    arguments = parser(__doc__, 61).parse_args()
    found, tables = {}, {}
    for name, scene in scenes(arguments.points).items():
        exact = scene.hard()
        curves = ways(scene, STEP)
        steps = over_steps(scene, exact)
        found[name] = (scene, curves, exact, steps)
        tables[name] = [curve.row(exact) for curve in curves]
        tables[f"{name}: error of the cost over steps, share of its range"] = steps
        progress(name)
    show(tables, arguments.json)
    if arguments.picture:
        plot(found, arguments.picture)


if __name__ == "__main__":
    main()
