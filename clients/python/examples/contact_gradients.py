"""Derivatives through contacts: exact, by the surrogate, and with smooth collision, beside central differences.

Boxes and a can are thrown onto a floor, a slope, another box. Where they are at the end is a function of one number of
the start, a velocity; its slope comes out of the way back through the motion in several ways:

- exact: distance, point and frame of each contact move as they do;
- surrogate: points are carried rigidly by the bodies (the few-shot simulator's J H);
- smooth: boxes, and cylinders on planes, collide without choices, smoothed over some length, on the way back alone;
- distance: with contacts from distance, and with these and smooth collision.

Printed is how far slopes are from central differences of the same motion by fixed steps, relative to these: the median
over the starts, and the nine tenths. Then, of two scenes, how far slopes are from the converged one, a difference of
motions at tolerance 1e-11: by fixed steps, and by steps that keep to a tolerance and end at events. Of other models,
`--model FILE.xml` prints how far the surrogate's derivative of the next velocity by the positions is from the exact
one, in the Frobenius norm, along motions with random controls.

    python contact_gradients.py --model hand.xml
"""

import argparse
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import sinew

Array = NDArray[np.float64]
STEP, EPS = 1e-3, 1e-6
SCENE = """
<mujoco>
  <option timestep="0.001" gravity="GRAVITY"><flag refsafe="disable" eulerdamp="disable"/></option>
  <default><geom solref="0.01 1" solimp="0 0.95 0.001 0.5 2" friction="0.6 0.005 0.0001"/></default>
  <worldbody>GROUND<body name="thrown"><freejoint/><geom GEOM density="200"/></body></worldbody>
</mujoco>
"""
FLOOR = '<geom type="plane" size="20 20 .1"/>'
SLOPE = "3 0 -9"  # gravity on a slope of 18 degrees, in the frame of the slope


@dataclass
class Scene:
    """What is thrown, and which number of the start is turned."""

    name: str
    model: sinew.Model
    height: float  # of the body [m]
    qvel: Array  # (6,)
    dof: int  # of qvel that is turned
    ends: tuple[float, float]  # its least and largest value
    place: int  # of qpos, at the end
    steps: int = 1000
    turn: tuple[float, float, float] = (0.0, 0.0, 0.0)  # of the body at first [rad]

    def start(self, values: Array) -> dict[str, Array]:
        """Return a state for each value."""
        qpos, qvel = np.tile(self.model.qpos0, (len(values), 1)), np.tile(self.qvel, (len(values), 1))
        qpos[:, 2], qvel[:, self.dof] = self.height, values
        angle = np.linalg.norm(self.turn)
        qpos[:, 3:] = (np.cos(angle / 2), *(np.sinc(angle / 2 / np.pi) / 2 * np.array(self.turn)))
        return {"qpos": qpos, "qvel": qvel}

    def slopes(self, values: Array, cfd: sinew.CFD | None) -> Array:
        """Return the derivatives of the place by each value."""
        motion = sinew.rollout(self.model, self.start(values), nstep=self.steps, cfd=cfd, outputs=["qpos"])
        bar = np.zeros_like(motion.qpos[0])
        bar[-1, self.place] = 1
        return sinew.rollout_vjp(motion, qpos=bar).qvel[:, self.dof]

    def differences(self, values: Array) -> Array:
        """Return central differences."""
        ends = []
        for sign in (EPS, -EPS):
            start = self.start(values + sign)
            motion = sinew.rollout(self.model, start, nstep=self.steps, gradients=False, outputs=["qpos"])
            ends.append(motion.qpos[:, -1, self.place])
        return (ends[0] - ends[1]) / (2 * EPS)

    def chosen(self, value: float, tolerance: float, cfd: sinew.CFD | None = None) -> tuple[float, float]:
        """Return the place and its derivative by steps that keep to a tolerance."""
        state = {name: x[0] for name, x in self.start(np.array([value])).items()}
        motion = sinew.integrate(
            self.model, state, [STEP * self.steps], rtol=tolerance, atol=tolerance, cfd=cfd
        ).raise_if_unfinished()
        bar = np.zeros((1, self.model.nq))
        bar[0, self.place] = 1
        return motion.qpos[0, self.place], sinew.integrate_vjp(motion, qpos=bar).qvel[self.dof]

    def converged(self, value: float) -> float:
        """Return the slope of motions with ever smaller steps."""
        up, down = (self.chosen(value + sign * 1e-4, 1e-11)[0] for sign in (1, -1))
        return (up - down) / 2e-4


def scenes() -> list[Scene]:
    def model(geom: str, ground: str = FLOOR, gravity: str = "0 0 -9.81") -> sinew.Model:
        text = SCENE.replace("GEOM", geom).replace("GROUND", ground).replace("GRAVITY", gravity)
        return sinew.Model.from_string(text)

    toss = sinew.Model.from_xml(sinew.share("models/cube_toss.xml")).with_options(timestep=STEP)
    box, can = 'type="box" size=".05 .04 .03"', 'type="cylinder" size=".04 .06"'
    table = '<geom type="box" size="2 2 .1" pos="0 0 -.1"/>'
    along, still = np.array([0.8, 0.1, 0, 0, 0, 0]), np.zeros(6)
    askew, lying = (0.4, 0.3, 0.2), (np.pi / 2, 0.0, 0.0)
    box_on_slope, can_on_slope = model(box, gravity=SLOPE), model(can, gravity=SLOPE)
    return [
        Scene("tossed cube (figure 5)", toss, 0.2, np.array([0, -0.1, -2, 0, 0, 0]), 2, (-2.2, -1.8), 1),
        Scene("box that slides down a slope", box_on_slope, 0.03, along, 0, (0.5, 1.0), 0),
        Scene("box that tumbles down a slope", box_on_slope, 0.15, along, 0, (0.5, 1.0), 0, 600, askew),
        Scene("can that rolls down a slope", can_on_slope, 0.041, still, 0, (0.1, 0.6), 0, 1000, lying),
        Scene("can that is pushed, upright", model(can), 0.06, still, 0, (0.3, 0.8), 0, 500),
        Scene("box that slides on a box", model(box, table), 0.03, along, 0, (0.5, 1.0), 0, 300, (0, 0, 0.3)),
        Scene("box that tumbles on a box", model(box, table), 0.12, along, 0, (0.5, 1.0), 0, 400, askew),
    ]


def ways() -> dict[str, sinew.CFD | None]:
    """Return what differentiates. A reach of a micrometre leaves contacts as they are but for what is asked."""
    touch = (0.0, 1e-12, 1e-6, 1.0, 4.0)
    near = (0.0, 0.01, 0.05, 1.0, 2.0)
    return {
        "exact": None,
        "surrogate": sinew.CFD(touch, softplus=1e-9, surrogate=True),
        "smooth, 1 mm": sinew.CFD(touch, softplus=1e-9, smooth=0.001),
        "smooth, 5 mm": sinew.CFD(touch, softplus=1e-9, smooth=0.005),
        "distance": sinew.CFD(near, softplus=1e-4),
        "distance, smooth": sinew.CFD(near, softplus=1e-4, smooth=0.001),
    }


def step_errors(model: sinew.Model, steps: int = 400, count: int = 8) -> Array:
    """Return the surrogate's errors along motions with random controls."""
    ctrl = 0.3 * np.random.default_rng(1).random((count, 1, model.nu)).repeat(steps, axis=1)
    velocity, rows = slice(model.nv, 2 * model.nv), []
    for cfd in (ways()["exact"], ways()["surrogate"]):
        rows.append(sinew.linearize(model, None, ctrl, cfd=cfd).A[:, steps // 4 :: 10, velocity, : model.nv])
    exact, carried = rows
    return np.linalg.norm(carried - exact, axis=(2, 3)) / np.linalg.norm(exact, axis=(2, 3))


def errors(found: Array, want: Array) -> str:
    """Return the median and the nine tenths of relative errors."""
    error = np.abs(found - want) / np.maximum(np.abs(want), 0.1 * np.median(np.abs(want)))
    return "{:.2g}, {:.2g}".format(*np.quantile(error, (0.5, 0.9)))


def table(names: list[str]) -> None:
    print("| scene | " + " | ".join(names) + " |\n|" + " --- |" * (1 + len(names)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=100, help="starts of each scene (default: 100)")
    parser.add_argument("--converged", type=int, default=20, help="starts of the second table (default: 20)")
    parser.add_argument("--model", action="append", default=[], help="a file of MJCF, for the surrogate alone")
    arguments = parser.parse_args()
    for file in arguments.model:
        found = np.quantile(step_errors(sinew.Model.from_xml(file)), (0.1, 0.5, 0.9))
        print(f"steps of {file}: the surrogate is off by {found[0]:.0%}, {found[1]:.0%}, {found[2]:.0%}")
    table(list(ways()))
    for scene in scenes():
        values = np.linspace(*scene.ends, arguments.points)
        want = scene.differences(values)
        cells = [errors(scene.slopes(values, cfd), want) for cfd in ways().values()]
        print(f"| {scene.name} | " + " | ".join(cells) + " |", flush=True)
    print()
    own = {name: ways()[name] for name in ("exact", "smooth, 1 mm", "smooth, 5 mm")}
    table([f"{name}, {steps}" for steps in ("steps of 1 ms", "tolerance 1e-8") for name in own])
    for scene in [scenes()[k] for k in (0, 2)]:
        values = np.linspace(*scene.ends, arguments.converged)
        want = np.array([scene.converged(value) for value in values])
        cells = [errors(scene.slopes(values, cfd), want) for cfd in own.values()]
        cells += [
            errors(np.array([scene.chosen(value, 1e-8, cfd)[1] for value in values]), want) for cfd in own.values()
        ]
        print(f"| {scene.name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
