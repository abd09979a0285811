"""A quadruped learns to walk in smoothed contact and in MuJoCo's, and walks in other contacts unchanged.

Each policy is trained by `sinew learn quadruped`, in a folder of its own, and goes on where it was interrupted. Then it
walks 20 worlds that it has not seen, without noise, in four kinds of contact: smoothed, MuJoCo's as this engine
computes them, as MuJoCo computes them, and harder ones with short steps, by MuJoCo.

    python quadruped.py -o RUNS --seeds 1 2 3 --threads 1 --picture quadruped.png
    python quadruped.py -o RUNS --short                                      # seconds, to see that it runs
    python quadruped.py -o RUNS --seeds 1 2 3 --picture quadruped.png --draw # what has been evaluated already
"""

import argparse
import csv
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import mujoco.rollout
import numpy as np
import torch
from compare import options_of_runs, plot_returns, read

from sinew.learn import Bodies, Physics, Shac, checkpoint
from sinew.learn.tasks.quadruped import MODEL, SPEED, Quadruped
from sinew.learn.training import CHECKPOINT, LOG

CONTACTS = ("sigmoid", "mujoco")  # that policies are trained in
WORLDS, SEED, SECONDS = 20, 1000, 10.0  # of the evaluation
TABLE, LIFTS = "walks.csv", "lifts.csv"
FEET = ("LF", "RF", "LH", "RH")
HARD: dict[str, Any] = {"contact_solref": (0.004, 1.0), "contact_solimp": (0.99, 0.999, 0.001, 0.5, 2.0)}
STEP = 0.001  # of hard contacts [s]
COLORS = {"sigmoid": "#d1495b", "mujoco": "#30638e"}

Policy = Callable[[torch.Tensor], torch.Tensor]


class InMujoco(Quadruped):
    """The same worlds, which MuJoCo steps. Nothing of it has a derivative."""

    def __init__(self, worlds: int, seed: int, hard: bool = False) -> None:
        super().__init__(worlds, seed)
        if hard:
            self.frame_skip = round(self.dt / STEP)
        self.mujoco = np.empty(worlds, object)
        self.mujoco[:] = [self._of_mujoco(k, hard) for k in range(worlds)]
        self._scratch = mujoco.MjData(self.mujoco[0])

    def _of_mujoco(self, k: int, hard: bool) -> mujoco.MjModel:
        """Return MuJoCo's model of a world, changed by MuJoCo's own means."""
        spec = mujoco.MjSpec.from_file(str(MODEL))
        model = spec.compile()
        trunk = model.body("trunk").id
        model.geom_friction[:, 0] = self.friction[k]
        model.body_inertia[trunk] *= (model.body_mass[trunk] + self.load[k]) / model.body_mass[trunk]
        model.body_mass[trunk] += self.load[k]
        if hard:
            model.opt.timestep = STEP
            model.geom_solref[:], model.geom_solimp[:] = HARD["contact_solref"], HARD["contact_solimp"]
        mujoco.mj_setConst(model, mujoco.MjData(model))
        return model

    @property
    def dt(self) -> float:
        """Time of an action [s]: the same for steps of any length."""
        return Quadruped.frame_skip * self.model.opt.timestep

    def stepped(self, bodies: Bodies, ctrl: torch.Tensor, physics: Physics) -> tuple[Bodies, torch.Tensor]:
        """Return the bodies after the steps of controls (N, T, nu), and which of them are NaN, (N,)."""
        models = self.mujoco[bodies.goal[:, 0].numpy().astype(int)].tolist()
        time = torch.zeros(len(models), 1, dtype=torch.float64)
        state = torch.cat([time, bodies.qpos, bodies.qvel, bodies.act], 1).numpy()
        motion, _ = mujoco.rollout.rollout(
            models, self._scratch, state, ctrl.numpy(), initial_warmstart=bodies.qacc_warmstart.numpy()
        )
        end = torch.tensor(motion[:, -1])
        _, qpos, qvel, act = end.split([1, self.model.nq, self.model.nv, self.model.na], 1)
        diverged = ~torch.isfinite(end).all(1)
        return bodies._replace(qpos=qpos, qvel=qvel, act=act), diverged


class Walk(NamedTuple):
    """What bodies came to, one in each world.

    Attributes
    ----------
    up : ndarray of bool, (N,)
        Whether it neither fell nor diverged.
    speed : ndarray, (N,)
        Mean forward speed until the end, or until it fell [m/s].
    seconds : ndarray, (N,)
        How long it was up [s].
    """

    up: np.ndarray
    speed: np.ndarray
    seconds: np.ndarray

    @property
    def walked(self) -> np.ndarray:
        """Whether it stayed up and was at least half as fast as it should be, (N,): what counts as success."""
        return self.up.astype(bool) & (self.speed > SPEED / 2)


def walk(
    task: Quadruped,
    policy: Policy,
    physics: Physics,
    seconds: float = SECONDS,
    look: Callable[[Bodies], None] | None = None,
) -> Walk:
    """Let a body walk in each of a task's worlds, without noise of actions; `look` gets the bodies after each."""
    generator = torch.Generator()
    generator.manual_seed(SEED)
    count = len(task.friction)
    bodies = task.start(count, generator)
    bodies.goal[:, 0] = torch.arange(count)
    up, actions = torch.ones(count, dtype=torch.bool), torch.zeros(count, dtype=torch.int64)
    with torch.no_grad():
        for _ in range(round(seconds / task.dt)):
            after, diverged = task.advance(bodies, policy(task.observe(bodies)), physics)
            bodies = after.where(~up | diverged, bodies)
            actions += up
            up &= ~(diverged | task.terminated(bodies))
            if look:
                look(bodies)
    passed = actions.numpy() * task.dt
    return Walk(up.numpy(), bodies.qpos[:, 0].numpy() / passed, passed)


def lifts(task: InMujoco, policy: Policy, seconds: float) -> np.ndarray:
    """Return how high each foot is lifted [m], (4,): the mean over worlds of the most in the second half of a walk."""
    seen: list[np.ndarray] = []
    walk(task, policy, Physics(), seconds, lambda bodies: seen.append(bodies.qpos.numpy()))
    model = task.mujoco[0]
    data, feet = mujoco.MjData(model), [model.geom(name).id for name in FEET]
    heights = []
    for qpos in np.stack(seen[len(seen) // 2 :]).reshape(-1, model.nq):
        data.qpos[:] = qpos
        mujoco.mj_kinematics(model, data)
        heights.append(data.geom_xpos[feet, 2] - model.geom_size[feet, 0])
    return np.reshape(heights, (-1, len(task.friction), 4)).max(0).mean(0)


def policy_of(folder: Path) -> Policy:
    """Return the policy of a training."""
    path = folder / CHECKPOINT
    shac = Shac(Quadruped(), checkpoint.settings_of(path), Physics(1))
    checkpoint.load(path, shac)
    return shac.policy


def places(threads: int, worlds: int = WORLDS) -> dict[str, tuple[Quadruped, Physics]]:
    """Return where policies walk: worlds that no training has drawn, and how they are stepped."""
    ours = Quadruped(worlds, SEED)
    return {
        "smoothed": (ours, Physics(threads, options={"contact": "sigmoid"})),
        "MuJoCo's": (ours, Physics(threads)),
        "by MuJoCo": (InMujoco(worlds, SEED), Physics()),
        "hard, by MuJoCo": (InMujoco(worlds, SEED, hard=True), Physics()),
    }


# ---- runs, table, picture ----


def train(arguments: argparse.Namespace, contact: str, seed: int) -> None:
    """Train a policy, or go on with it."""
    made = ["--seed", str(seed), "--iterations", str(arguments.iterations), "--threads", str(arguments.threads)]
    small = ["--worlds", "4", "--horizon", "4"] if arguments.short else []
    command = [sys.executable, "-m", "sinew", "learn", "quadruped", *made, *small, "--set", f"contact={contact}"]
    subprocess.run([*command, "-o", arguments.out / f"{contact}-{seed}"], check=True)


def evaluate(arguments: argparse.Namespace) -> None:
    """Let all policies walk everywhere; write a row for each world."""
    worlds, seconds = (2, 0.2) if arguments.short else (WORLDS, SECONDS)
    everywhere = places(arguments.threads, worlds)
    with (arguments.out / TABLE).open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["contact", "seed", "place", "world", "friction", "load", "up", "speed", "seconds"])
        for contact in CONTACTS:
            for seed in arguments.seeds:
                policy = policy_of(arguments.out / f"{contact}-{seed}")
                for place, (task, physics) in everywhere.items():
                    found = walk(task, policy, physics, seconds)
                    each = zip(task.friction, task.load, found.up.astype(int), found.speed, found.seconds, strict=True)
                    for world, numbers in enumerate(each):
                        rows.writerow([contact, seed, place, world, *(f"{x:.6g}" for x in numbers)])


def measure_lifts(arguments: argparse.Namespace) -> None:
    """Write how high each policy lifts its feet in MuJoCo's contact."""
    worlds, seconds = (2, 0.2) if arguments.short else (WORLDS, 4.0)
    task = InMujoco(worlds, SEED)
    with (arguments.out / LIFTS).open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["contact", "seed", *FEET])
        for contact in CONTACTS:
            for seed in arguments.seeds:
                found = lifts(task, policy_of(arguments.out / f"{contact}-{seed}"), seconds)
                rows.writerow([contact, seed, *(f"{x:.4f}" for x in found)])


def results(path: Path) -> dict[tuple[str, str], dict[str, list[Walk]]]:
    """Return walks by (training, seed), then by place."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    made: dict[tuple[str, str], dict[str, list[Walk]]] = {}
    for row in rows:
        walks = made.setdefault((row["contact"], row["seed"]), {}).setdefault(row["place"], [])
        walks.append(Walk(*(np.array(float(row[name])) for name in Walk._fields)))
    return made


def table(found: dict[tuple[str, str], dict[str, list[Walk]]]) -> None:
    """Print success and speed of each policy in each place."""
    print("trained in  seed  walks in         up  walked  of  speed [m/s], least   s")
    for (contact, seed), of in found.items():
        for place, walks in of.items():
            w = Walk(*(np.array([getattr(x, name) for x in walks]) for name in Walk._fields))
            print(
                f"{contact:11} {seed:4}  {place:16} {w.up.sum():2.0f} {w.walked.sum():7}  {len(walks):2}  "
                f"{w.speed.mean():5.3f} +- {w.speed.std():.3f}, {w.speed.min():6.3f}  {w.seconds.mean():5.2f}"
            )


def draw(arguments: argparse.Namespace, found: dict[tuple[str, str], dict[str, list[Walk]]]) -> None:
    """Draw returns over samples, and success and speed by place."""
    import matplotlib.pyplot as plt

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
    for contact in CONTACTS:
        logs = [read(arguments.out / f"{contact}-{seed}" / LOG) for seed in arguments.seeds]
        plot_returns(left, "samples", logs, contact, color=COLORS[contact])
    left.xaxis.set_major_formatter(lambda samples, _: f"{samples / 1e3:g}")
    left.set(xlabel="samples [1000]", ylabel="return, mean of 100 episodes", title="training", xlim=(0, None))
    left.legend(title="trained in", loc="lower right")
    names = list(next(iter(found.values())))
    for offset, contact in zip((-0.2, 0.2), CONTACTS, strict=True):
        for at, place in enumerate(names):
            walks = [x for (trained, _), of in found.items() if trained == contact for x in of[place]]
            speed = np.array([x.speed for x in walks])
            middle.bar(at + offset, 100 * np.mean([x.walked for x in walks]), 0.36, color=COLORS[contact])
            right.bar(at + offset, speed.mean(), 0.36, color=COLORS[contact], alpha=0.5)
            right.plot(np.full(len(speed), at + offset), speed, ".", color=COLORS[contact], markersize=3)
    right.axhline(SPEED, color="black", linewidth=0.8, linestyle=":")
    middle.set(ylabel="worlds in which it walks [%]", title="walks unchanged: success", ylim=(0, 105))
    right.set(ylabel="forward speed, each world [m/s]", title="and speed", ylim=(0, None))
    for axes in (middle, right):
        axes.set_xticks(range(len(names)), [x.replace(" ", "\n", 1) for x in names])
    figure.savefig(arguments.picture, dpi=80)


def main() -> None:
    arguments = options_of_runs(__doc__).parse_args()

    if arguments.short:
        arguments.iterations = 2
    if not arguments.draw:
        for seed in arguments.seeds:
            for contact in CONTACTS:
                train(arguments, contact, seed)
        evaluate(arguments)
        measure_lifts(arguments)
    found = results(arguments.out / TABLE)
    table(found)
    print(f"feet are lifted by [m]:\n{(arguments.out / LIFTS).read_text()}")
    if arguments.picture:
        draw(arguments, found)


if __name__ == "__main__":
    main()
