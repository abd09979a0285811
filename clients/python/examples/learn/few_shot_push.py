"""A cube that is pushed against others: the velocity that stops the second one in a target, and an array of ten.

Read by few_shot.py. The same number is optimised in two ways: by the gradient of the network from first to last pose,
and by that of the engine. What a velocity comes to is always what the engine makes of it.
"""

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from few_shot_scenes import SIDE, STRIDE, SUBSTEPS, model_of, scene_of

import sinew
from sinew.learn.graph.poses import Pose, of_qpos
from sinew.learn.graph.simulator import Simulator
from sinew.torch import rollout

STEPS = 48  # of the network
STARTS = ((0.8, 0.1), (1.2, -0.2), (1.8, 0.15), (2.2, -0.1))  # first velocities [m/s]
RATE = 0.2  # of Adam, at first [m/s]
ROWS, STRIKE = (1, 2, 3, 4), 1.8  # cubes of the array; speed of the one that strikes it [m/s]


@dataclass
class Push:
    """Velocities of the first cube and how far from the target the second one ends, over the epochs of each start.

    ``thought`` [m] is what the way itself sees, ``real`` [m] what the engine makes of the same velocity.
    """

    velocity: list[Any] = field(default_factory=list)
    thought: list[Any] = field(default_factory=list)
    real: list[Any] = field(default_factory=list)
    seconds: float = 0.0


def state_of(velocity: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return positions and velocities of two cubes on the table, of which the first has these velocities (B, 2)."""
    qpos = torch.zeros(len(velocity), 2, 7, dtype=velocity.dtype)
    qpos[:, 1, 0], qpos[..., 2], qpos[..., 3] = 0.18, SIDE / 2, 1.0
    still = torch.zeros(len(velocity), 10, dtype=velocity.dtype)
    return qpos.flatten(1), torch.cat([velocity, still], 1)


def ends_of_engine(model: sinew.Model, velocity: torch.Tensor) -> torch.Tensor:
    """Return where the second cube ends, (B, 2), by the engine."""
    qpos, qvel = state_of(velocity)
    found = rollout(model, {"qpos": qpos, "qvel": qvel}, nstep=STEPS * STRIDE * SUBSTEPS)
    return found.qpos[:, -1, 7:9]


def ends_of_network(simulator: Simulator, velocity: torch.Tensor) -> torch.Tensor:
    """Return where the second cube ends, (B, 2), by the network."""
    start = simulator.start(*state_of(velocity), gravity=False)
    return simulator.rollout(scene_of([SIDE, SIDE]), *start, STEPS).place[:, -1, 1, :2]


def optimise(ends: Any, model: sinew.Model, target: torch.Tensor, epochs: int, dtype: torch.dtype) -> Push:
    """Return what Adam makes of the velocities of all starts in some epochs, with a derivative of ``ends``."""
    found, begin = Push(), time.process_time()
    velocity = torch.tensor(STARTS, dtype=dtype, requires_grad=True)
    adam = torch.optim.Adam([velocity], RATE, betas=(0.5, 0.9))
    for epoch in range(epochs + 1):
        for group in adam.param_groups:
            group["lr"] = RATE * (1 - epoch / (epochs + 1))
        adam.zero_grad()
        off = ends(velocity) - target.to(dtype)
        (off * off).sum().backward()
        with torch.no_grad():
            real = ends_of_engine(model, velocity.double()) - target
        for rows, numbers in (
            (found.velocity, velocity),
            (found.thought, off.norm(dim=1)),
            (found.real, real.norm(dim=1)),
        ):
            rows.append(numbers.detach().tolist())
        adam.step()
    found.seconds = time.process_time() - begin
    return found


def push(simulator: Simulator, contact: dict[str, float], epochs: int = 10) -> tuple[dict[str, Push], list[float]]:
    """Return the optimised pushes through the network and through the engine, and the target (2,) [m]."""
    model = model_of(contact, [SIDE, SIDE])
    with torch.no_grad():  # a target that can be reached: where a push of a velocity of its own ends
        target = ends_of_engine(model, torch.tensor([[1.5, 0.0]], dtype=torch.float64))[0]
    ways = {"network": lambda v: ends_of_network(simulator, v), "engine": lambda v: ends_of_engine(model, v)}
    kinds = {"network": torch.float32, "engine": torch.float64}
    return {name: optimise(of, model, target, epochs, kinds[name]) for name, of in ways.items()}, target.tolist()


def array(simulator: Simulator, contact: dict[str, float], steps: int = STEPS) -> tuple[Pose, Pose]:
    """Return how a cube strikes an array of ten, by the engine and by the network: places (steps + 1, 11, 3)."""
    places = [(-0.25, 0.0), *((0.13 * i, 0.13 * (j - i / 2)) for i, n in enumerate(ROWS) for j in range(n))]
    qpos, qvel = np.zeros((1, len(places), 7)), np.zeros((1, 6 * len(places)))
    qpos[0, :, :2], qpos[..., 2], qpos[..., 3], qvel[0, 0] = places, SIDE / 2, 1, STRIKE
    sides, flat = [SIDE] * len(places), qpos.reshape(1, -1)
    model, scene = model_of(contact, sides), scene_of(sides)
    made = sinew.rollout(
        model, {"qpos": flat, "qvel": qvel}, nstep=steps * STRIDE * SUBSTEPS, gradients=False, outputs=["qpos"]
    )
    engine = of_qpos(torch.from_numpy(np.ascontiguousarray(made.qpos[0, :: STRIDE * SUBSTEPS])))
    start = simulator.start(torch.from_numpy(flat).float(), torch.from_numpy(qvel).float(), gravity=False)
    with torch.no_grad():
        network = simulator.rollout(scene, *start, steps)
    return engine, Pose(network.place[0], network.turn[0])
