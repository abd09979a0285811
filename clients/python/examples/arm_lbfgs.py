"""Trajectory optimisation of an arm of six muscles by SciPy's L-BFGS: its hand follows an ellipse.

python arm_lbfgs.py --picture arm_lbfgs.svg
"""

import argparse

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

import sinew

Array = NDArray[np.float64]
STEPS, EFFORT = 300, 0.002


def ellipse(time: Array) -> Array:
    """Return where the hand shall be (len(time), 3) [m], one round in 1.5 s."""
    phase = 2 * np.pi * time / 1.5
    return np.stack([0.45 + 0.08 * np.sin(phase), 0 * time, 1.35 + 0.1 * np.cos(phase)], axis=-1)


class Reaching:
    """The cost of controls and its gradient, as SciPy asks for them."""

    def __init__(self) -> None:
        self.model = sinew.Model.from_xml(sinew.share("models/arm_reach.xml"))
        self.start = {"qpos": self.model.key_qpos[0]}
        self.target = ellipse(self.model.opt.timestep * np.arange(STEPS + 1))
        self.costs: list[float] = []

    def __call__(self, x: Array) -> tuple[float, Array]:
        """Return the mean squared distance [m^2] plus effort, and its gradient."""
        ctrl = x.reshape(STEPS, self.model.nu)
        rollout = sinew.rollout(self.model, self.start, ctrl)
        error = rollout.sensordata - self.target
        cost = (error**2).sum() / STEPS + EFFORT * (ctrl**2).sum() / STEPS
        gradient = sinew.rollout_vjp(rollout, sensordata=2 * error / STEPS, ctrl=2 * EFFORT * ctrl / STEPS)
        self.costs.append(float(cost))
        return float(cost), gradient.ctrl.ravel()


def draw(problem: Reaching, x: Array, file: str) -> None:
    """Draw how the cost fell, the way of the hand, and the controls."""
    import matplotlib.pyplot as plt

    ctrl = x.reshape(STEPS, -1)
    rollout = sinew.rollout(problem.model, problem.start, ctrl)
    hand = rollout.sensordata
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    left.semilogy(problem.costs)
    left.set(title="cost", xlabel="evaluation")
    middle.plot(problem.target[:, 0], problem.target[:, 2], "k--", label="target")
    middle.plot(hand[:, 0], hand[:, 2], label="hand")
    middle.set(title="in the plane of the arm", xlabel="x [m]", ylabel="z [m]", aspect="equal")
    middle.legend()
    for i in range(problem.model.nu):
        right.plot(rollout.time[:-1], ctrl[:, i], label=problem.model.actuator(i).name)
    right.set(title="controls", xlabel="time [s]")
    right.legend(fontsize="small")
    figure.savefig(file, dpi=80)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=200, help="at most (default: 200)")
    parser.add_argument("--picture", type=sinew.files.writable, help="file to draw into, .svg or .png")
    arguments = parser.parse_args()

    problem = Reaching()
    x = np.full(STEPS * problem.model.nu, 0.05)
    result = minimize(
        problem,
        x,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, 1)] * x.size,
        options={"maxiter": arguments.iterations},
    )
    distance = np.linalg.norm(
        sinew.rollout(problem.model, problem.start, result.x.reshape(STEPS, -1)).sensordata - problem.target, axis=1
    )
    print(f"cost {problem.costs[0]:.6f} -> {result.fun:.6f} in {len(problem.costs)} evaluations")
    print(f"distance of the hand after 0.5 s: mean {1000 * distance[100:].mean():.1f} mm")
    if arguments.picture:
        draw(problem, result.x, arguments.picture)


if __name__ == "__main__":
    main()
