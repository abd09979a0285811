"""Strengths of three muscles, found from a recorded motion.

How a motion depends on a parameter p follows from two derivatives of each step x' = f(x, u, p):

    dx'/dp = A dx/dp + df/dp

A is exact (`sinew.linearize`). df/dp is a difference of single steps, one from every state of the motion, of two models
that differ in p (`Model.replace`). Both are batches. Gauss and Newton's rule then fits the motion.

    python muscle_strength.py --picture muscle_strength.svg
"""

import argparse

import numpy as np
from numpy.typing import NDArray

import sinew

Array = NDArray[np.float64]
STEPS, STEP, MUSCLES = 200, 1e-4, ["brachialis", "biceps", "triceps_lat"]


def with_strength(model: sinew.Model, scale: Array) -> sinew.Model:
    """Return a model whose muscles of the list are stronger by factors (3,)."""
    gain, bias = model.actuator_gainprm.copy(), model.actuator_biasprm.copy()
    ids = [model.actuator(name).id for name in MUSCLES]
    gain[ids, 2] *= scale  # peak active and passive force
    bias[ids, 2] *= scale
    return model.replace(actuator_gainprm=gain, actuator_biasprm=bias)


def states_of(x: sinew.Rollout) -> Array:
    """Return the states of a rollout, (T + 1, 2 nv + na): joints are hinges, so positions are their own tangent."""
    return np.concatenate([x.qpos, x.qvel, x.act], axis=-1)


def sensitivity(model: sinew.Model, scale: Array, start: sinew.StateLike, ctrl: Array) -> tuple[Array, Array]:
    """Return the states (T + 1, n) of a motion and their derivatives by the strengths, (T + 1, n, 3)."""
    now = with_strength(model, scale)
    motion = sinew.rollout(now, start, ctrl)
    A, _ = sinew.linearize(now, start, ctrl)
    every = {"qpos": motion.qpos[:-1], "qvel": motion.qvel[:-1], "act": motion.act[:-1]}
    by_p = np.zeros((STEPS + 1, A.shape[-1], len(MUSCLES)))
    direct = np.empty((STEPS, A.shape[-1], len(MUSCLES)))
    for k in range(len(MUSCLES)):
        more, less = scale.copy(), scale.copy()
        more[k] += STEP
        less[k] -= STEP
        ends = [states_of(sinew.rollout(with_strength(model, p), every, ctrl[:, None]))[:, 1] for p in (more, less)]
        direct[:, :, k] = (ends[0] - ends[1]) / (2 * STEP)
    for t in range(STEPS):
        by_p[t + 1] = A[t] @ by_p[t] + direct[t]
    return states_of(motion), by_p


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", type=sinew.files.writable, help="file to draw into, .svg or .png")
    arguments = parser.parse_args()

    rng = np.random.default_rng(1)
    model = sinew.Model.from_xml(sinew.share("models/arm_reach.xml"))
    start = {"qpos": model.key_qpos[0]}
    ctrl = np.repeat(rng.uniform(0, 0.4, (10, model.nu)), STEPS // 10, axis=0)
    truth = np.array([0.7, 1.3, 0.9])
    recorded = sinew.rollout(with_strength(model, truth), start, ctrl).qpos
    recorded = recorded + rng.normal(0, 0.001, recorded.shape)  # measured with an error of 1 mrad

    scale, history = np.ones(3), [np.ones(3)]
    for i in range(4):
        x, by_p = sensitivity(model, scale, start, ctrl)
        error = (x[:, : model.nq] - recorded).ravel()
        jacobian = by_p[:, : model.nq].reshape(error.size, -1)
        scale = np.maximum(scale - np.linalg.lstsq(jacobian, error, rcond=None)[0], 0.2)
        history.append(scale)
        print(f"{i}: error {1000 * np.sqrt((error**2).mean()):7.3f} mrad, strengths {scale.round(4)}")
    print("true:", truth)

    if arguments.picture:
        import matplotlib.pyplot as plt

        figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
        left.plot(history, "o-", label=MUSCLES)
        left.set_prop_cycle(None)
        left.plot([0, len(history) - 1], [truth, truth], "--")
        left.set(title="strengths (dashed: true)", xlabel="iteration")
        left.legend()
        fitted = sinew.rollout(with_strength(model, scale), start, ctrl)
        before = sinew.rollout(model, start, ctrl)
        right.plot(fitted.time, recorded, ".", markersize=2, label=["shoulder, recorded", "elbow, recorded"])
        right.set_prop_cycle(None)
        right.plot(fitted.time, fitted.qpos)
        right.set_prop_cycle(None)
        right.plot(fitted.time, before.qpos, ":")
        right.set(title="joints [rad] (line: fitted, dotted: before)", xlabel="time [s]")
        right.legend()
        figure.savefig(arguments.picture, dpi=80)


if __name__ == "__main__":
    main()
