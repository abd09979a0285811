"""Rollouts whose derivatives are compared between NumPy, PyTorch and JAX.

``python differentiable.py OUT.npz`` writes what JAX computes of all of them, for the tests of PyTorch, which live in
another environment.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import sinew

from bodies import body

NAMES = ["reach", "hand", "cube", "ball"]
MEMBERS = ("qpos", "qvel", "act", "sensordata")  # of trajectories


@dataclass
class Case:
    """Three rollouts of a few steps, and derivatives of a number by their trajectories."""

    model: sinew.Model
    state: dict[str, np.ndarray]  # (N, .)
    ctrl: np.ndarray  # (N, T, nu)
    bars: dict[str, np.ndarray]

    def gradient(self) -> dict[str, np.ndarray]:
        """Return the gradient as NumPy's functions give it."""
        of = sinew.rollout_vjp(sinew.rollout(self.model, self.state, self.ctrl), **self.bars)
        return {name: getattr(of, name) for name in ("ctrl", *self.state)}


def _qpos(name: str, model: sinew.Model, rng: np.random.Generator) -> np.ndarray:
    """Return three poses. Cube and ball touch the ground; in the first of the hand, capsules touch at five places."""
    if name == "hand":
        low, high = model.jnt_range.T
        return low + np.random.default_rng(69).uniform(0.05, 0.25, (3, model.nq)) * (high - low)
    noise = rng.normal(scale=0.01, size=(3, model.nv))
    if name in ("cube", "ball"):
        noise[:, 2] = -0.0005 if name == "ball" else -0.011
    return np.stack([model.integrate(model.qpos0, x) for x in noise])


def case(name: str, steps: int = 4) -> Case:
    """Make a case by the name of its body."""
    model, rng = body(name).model, np.random.default_rng(NAMES.index(name))
    state = {
        "qpos": _qpos(name, model, rng),
        "qvel": rng.normal(scale=0.3, size=(3, model.nv)),
        "act": rng.uniform(0.1, 0.2, (3, model.na)),
    }
    widths = (model.nq, model.nv, model.na, model.nsensordata)
    bars = {member: rng.normal(size=(3, steps + 1, n)) for member, n in zip(MEMBERS, widths, strict=True)}
    return Case(model, state, rng.uniform(0.3, 0.6, (3, steps, model.nu)), bars)


def jax_gradient(of: Case) -> dict[str, np.ndarray]:
    """Return the gradient as JAX computes it."""
    import jax
    import jax.numpy as jnp
    from sinew.jax import rollout

    jax.config.update("jax_enable_x64", True)

    def number(state: dict[str, Any], ctrl: Any) -> Any:
        out = rollout(of.model, state, ctrl)
        return sum(jnp.vdot(getattr(out, member), bar) for member, bar in of.bars.items())

    by_state, by_ctrl = jax.jit(jax.grad(number, (0, 1)))(of.state, of.ctrl)
    return {name: np.asarray(x) for name, x in {**by_state, "ctrl": by_ctrl}.items()}


if __name__ == "__main__":
    gradients = {name: jax_gradient(case(name)) for name in NAMES}
    np.savez(sys.argv[1], **{f"{name} {by}": x for name, of in gradients.items() for by, x in of.items()})
