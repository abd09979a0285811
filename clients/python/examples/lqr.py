"""LQR around a pose: a pole on a cart, balanced by a gain that is made of the exact A and B of a step.

python lqr.py --picture lqr.svg
"""

import argparse

import numpy as np
from scipy.linalg import solve_discrete_are

import sinew

CART_POLE = """
<mujoco model="cart_pole">
  <option timestep="0.01"/>
  <worldbody>
    <body name="cart">
      <joint name="slide" type="slide" axis="1 0 0" damping="0.5"/>
      <geom type="box" size="0.1 0.05 0.05" mass="1"/>
      <body name="pole">
        <joint name="hinge" axis="0 1 0" damping="0.002"/>
        <geom type="capsule" fromto="0 0 0 0 0 0.6" size="0.015" mass="0.1"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="push" joint="slide" gear="10" ctrlrange="-3 3"/></actuator>
</mujoco>
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", type=sinew.files.writable, help="file to draw into, .svg or .png")
    arguments = parser.parse_args()

    model = sinew.Model.from_string(CART_POLE)
    A, B = sinew.linearize(model, None, np.zeros((1, model.nu)))  # of the step at qpos0, upright at rest
    Q, R = np.diag([10.0, 10.0, 1.0, 1.0]), np.eye(model.nu)
    P = solve_discrete_are(A[0], B[0], Q, R)
    gain = np.linalg.solve(R + B[0].T @ P @ B[0], B[0].T @ P @ A[0])
    radius = np.abs(np.linalg.eigvals(A[0] - B[0] @ gain)).max()
    print(
        f"without control the largest eigenvalue is {np.abs(np.linalg.eigvals(A[0])).max():.4f}, with it {radius:.4f}"
    )

    data = sinew.Data(model)
    data.qpos = [0.3, 0.35]  # 0.3 m aside, leaning by 20 degrees
    states, lowest, highest = [], *model.ctrl_range.T
    for _ in range(500):
        states.append([*data.qpos, *data.qvel])
        data.ctrl = np.clip(-gain @ states[-1], lowest, highest)
        data.step()
    print(f"after 5 s: cart at {1000 * data.qpos[0]:.2f} mm, pole at {np.degrees(data.qpos[1]):.3f} degrees")

    if arguments.picture:
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
        axes.plot(model.opt.timestep * np.arange(500), np.array(states)[:, :2], label=["cart [m]", "pole [rad]"])
        axes.set(title="LQR by exact Jacobians", xlabel="time [s]")
        axes.legend()
        figure.savefig(arguments.picture, dpi=80)


if __name__ == "__main__":
    main()
