"""The arm of arm_lbfgs.py in JAX: a compiled value and gradient, eight random starts by vmap, gradient descent.

python arm_jax.py --picture arm_jax.svg
"""

import argparse

import jax
import jax.numpy as jnp

import sinew
from sinew.jax import rollout

jax.config.update("jax_enable_x64", True)
STEPS, STARTS, EFFORT, RATE = 300, 8, 0.002, 0.1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=150, help="of descent with moments (default: 150)")
    parser.add_argument("--picture", type=sinew.files.writable, help="file to draw into, .svg or .png")
    arguments = parser.parse_args()

    model = sinew.Model.from_xml(sinew.share("models/arm_reach.xml"))
    start = {"qpos": jnp.asarray(model.key_qpos[0])}
    phase = 2 * jnp.pi * model.opt.timestep * jnp.arange(STEPS + 1) / 1.5
    target = jnp.stack([0.45 + 0.08 * jnp.sin(phase), 0 * phase, 1.35 + 0.1 * jnp.cos(phase)], axis=-1)

    def cost(free: jax.Array) -> jax.Array:
        ctrl = jax.nn.sigmoid(free)
        hand = rollout(model, start, ctrl).sensordata
        return ((hand - target) ** 2).sum() / STEPS + EFFORT * (ctrl**2).sum() / STEPS

    value_and_gradient = jax.jit(jax.vmap(jax.value_and_grad(cost)))

    @jax.jit
    def adam(i: jax.Array, free: jax.Array, m: jax.Array, v: jax.Array, g: jax.Array) -> tuple[jax.Array, ...]:
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        step = (m / (1 - 0.9**i)) / (jnp.sqrt(v / (1 - 0.999**i)) + 1e-8)
        return free - RATE * step, m, v

    free = jax.random.normal(jax.random.key(1), (STARTS, STEPS, model.nu)) - 3
    m = v = jnp.zeros_like(free)
    costs = []
    for i in range(arguments.iterations):
        value, gradient = value_and_gradient(free)
        free, m, v = adam(jnp.asarray(i + 1.0), free, m, v, gradient)
        costs.append(value)
    print(f"mean cost of {STARTS} starts {costs[0].mean():.6f} -> {costs[-1].mean():.6f}, best {costs[-1].min():.6f}")

    if arguments.picture:
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
        axes.semilogy(jnp.stack(costs))
        axes.set(title=f"{STARTS} starts, Adam", xlabel="iteration", ylabel="cost")
        figure.savefig(arguments.picture, dpi=80)


if __name__ == "__main__":
    main()
