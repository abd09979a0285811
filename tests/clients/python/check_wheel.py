"""What a wheel must be able to do where it was installed: `clients/python/wheel.sh --test` runs it, without pytest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import sinew


def check_gradient(models: Path) -> None:
    """Compile MJCF by MuJoCo, roll out, and compare the gradient with differences of rollouts."""
    model = sinew.Model.from_xml(models / "arm_reach.xml")
    ctrl = np.linspace(0.1, 0.5, 20 * model.nu).reshape(20, model.nu)
    rollout = sinew.rollout(model, ctrl=ctrl)
    bar = np.zeros_like(rollout.qpos)
    bar[-1] = 1.0
    gradient = sinew.rollout_vjp(rollout, qpos=bar).ctrl
    step = 1e-6
    for row, column in ((0, 0), (10, model.nu - 1)):
        ends = []
        for sign in (1.0, -1.0):
            moved = ctrl.copy()
            moved[row, column] += sign * step
            ends.append(float(sinew.rollout(model, ctrl=moved, gradients=False).qpos[-1].sum()))
        difference = (ends[0] - ends[1]) / (2 * step)
        assert abs(gradient[row, column] - difference) < 1e-6 * max(1.0, abs(difference)), (row, column, difference)


def check_daemon() -> None:
    """Start the daemon of the package, which plans from the initial state of a task."""
    with sinew.serve() as daemon, daemon.client() as client, client.open("arm_reach") as session:
        plan = session.plan(session.initial, 0.5, iterations=2)
        assert plan.ctrl.size > 0 and np.isfinite(plan.ctrl).all()


if __name__ == "__main__":
    check_gradient(Path(sinew.__file__).parent / "share/sinew/models")
    check_daemon()
    print(f"sinew {sinew.__version__} in {Path(sinew.__file__).parent}: a rollout, its gradient and a daemon's plan")
