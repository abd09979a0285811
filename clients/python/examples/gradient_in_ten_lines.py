"""The gradient of a MuJoCo model in ten lines: how muscles of an arm should change to bring its hand to a point."""

import numpy as np

import sinew

model = sinew.Model.from_xml(sinew.share("models/arm_reach.xml"))
ctrl = np.linspace([0.05] * model.nu, 0.2, 200)  # six muscles, more and more excited, 1 s
rollout = sinew.rollout(model, {"qpos": model.key_qpos[0]}, ctrl)
error = rollout.sensordata[-1] - [0.45, 0, 1.35]  # of the hand at the end [m]
bar = np.zeros_like(rollout.sensordata)
bar[-1] = 2 * error  # derivative of the squared distance by all sensors of all states
gradient = sinew.rollout_vjp(rollout, sensordata=bar)

print(f"squared distance {error @ error:.6f} m^2, gradient by {gradient.ctrl.shape} controls")
for i in range(model.nu):
    print(f"  {model.actuator(i).name:13}{gradient.ctrl[:, i].sum():+.6f}")
