"""A policy distilled from the daemon's plans, as the warm start of its planner.

Four steps, each of which can be run alone:

    python distill.py record hand_pose --seeds 1:9 --seconds 2     closed loops at a private daemon, an MCAP file a seed
    python distill.py train hand_pose                              a network that imitates these plans, as an ONNX file
    python distill.py refine hand_pose --updates 100               the same by the gradient of what plans cost (SHAC)
    python distill.py measure hand_pose --seeds 101:111 --picture hand_pose.svg

`measure` asks for plans from starts that were not trained on, and in the midst of a motion that is pushed. It compares
what the plan costs before any gradient and after one: from the shifted plan, the policy, the better of both, and the
refined policy where there is one. `all` makes the steps one after the other, but for `refine`, which knows costs that
are squares of joints, activations and controls, with fixed targets. Files lie in --folder (./distilled).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sinew
from sinew.client import Client, Session
from sinew.loop.body import Body
from sinew.planner import Planner
from sinew.record import Recorder, Recording
from sinew.record.reader import plan_of
from sinew.state import State

Floats = NDArray[np.float64]

# What plans begin with: the name, the setting warm_start, and what is behind a task's name in those of its files.
STARTS = (("shifted", "shifted", ""), ("policy", "policy", ""), ("better", "better", ""))
REFINED = ("refined", "policy", "-refined")


def span(text: str) -> range:
    """Return the seeds of "A:B": A, A + 1, ..., B - 1."""
    first, _, end = text.partition(":")
    return range(int(first), int(end or int(first) + 1))


def planner_of(session: Session) -> Planner:
    """Return a planner of a session's task in this process: it knows targets, and the order of a policy's inputs."""
    return Planner(sinew.Model.load(session.model.file), sinew.Task(session.task.task))


def moved(session: Session, seconds: float, arguments: argparse.Namespace) -> Body:
    """Return MuJoCo's body after it has moved under plans, with their states, in lockstep."""
    body = Body.of_task(session.task)
    body.reset(session.initial)
    for step in range(round(seconds / body.timestep)):
        if step % arguments.execute == 0:
            session.plan(body.state, iterations=arguments.iterations, states=True)
        body.step(session.control(body.time))
    return body


# ---- record ----


def record(arguments: argparse.Namespace) -> None:
    """Record a closed loop for each seed."""
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with sinew.serve() as daemon, daemon.client() as client:
        for seed in arguments.seeds:
            path = arguments.folder / f"{arguments.task}-{seed}.mcap"
            with (
                Recorder(path, "next", daemon.endpoint, force=True, rate=0),
                client.open(arguments.task, seed, {"planner": "adam"}) as session,
            ):
                moved(session, arguments.seconds, arguments)
                cost = session.current_plan.cost_now
            print(f"{path}: cost at the end {cost:.4g}", flush=True)


# ---- train ----


@dataclass
class Samples:
    """Inputs of a policy, and the controls that plans have there."""

    inputs: Floats
    ctrl: Floats
    ctrl_range: Floats


def plans_of(path: Path, model: Any) -> Iterator[Any]:
    """Go through the plans of a recording that have states."""
    for entry in Recording(path).entries({"plan"}):
        plan = plan_of(entry.body, model)
        if plan.refined and plan.states is not None:
            yield plan


def read_samples(paths: list[Path], session: Session, share: float) -> Samples:
    """Read states and controls along the first part of each recorded plan."""
    planner, inputs, controls = planner_of(session), [], []
    for path in paths:
        for plan in plans_of(path, session.model):
            rows = max(1, round(share * len(plan.ctrl)))
            states = [np.asarray(x)[:rows] for x in (plan.states.qpos, plan.states.qvel, plan.states.act)]
            inputs.append(np.concatenate([*states, planner.targets(plan.time[:rows])], axis=1))
            controls.append(plan.ctrl[:rows])
    if not inputs:
        raise SystemExit(f"no recordings with plans among {', '.join(map(str, paths)) or 'none'}; record some first")
    return Samples(np.concatenate(inputs), np.concatenate(controls), session.ctrl_range)


def recorded_samples(session: Session, arguments: argparse.Namespace) -> tuple[list[Path], Samples]:
    """Return the recordings of the task in the folder, and their samples."""
    paths = sorted(arguments.folder.glob(f"{arguments.task}-*.mcap"))
    return paths, read_samples(paths, session, arguments.share)


def make_network(inputs: int, ctrl_range: Floats, width: int) -> Any:
    """Return a network of two hidden layers, between scales of its inputs (1, until they are set) and of controls."""
    import torch

    class Policy(torch.nn.Module):
        """Controls within their ranges."""

        def __init__(self) -> None:
            super().__init__()
            self.chain = torch.nn.Sequential(
                torch.nn.Linear(inputs, width),
                torch.nn.ELU(),
                torch.nn.Linear(width, width),
                torch.nn.ELU(),
                torch.nn.Linear(width, len(ctrl_range)),
                torch.nn.Tanh(),
            )
            low, high = torch.tensor(ctrl_range.T, dtype=torch.float32)
            self.register_buffer("mean", torch.zeros(inputs))
            self.register_buffer("spread", torch.ones(inputs))
            self.register_buffer("middle", (low + high) / 2)
            self.register_buffer("reach", (high - low) / 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            """Return controls (batch, nu)."""
            return self.middle + self.reach * self.chain((x - self.mean) / self.spread)

    return Policy()


def set_scales(network: Any, inputs: Floats) -> None:
    """Scale a network's inputs by means and deviations of these; what never changes stays 0."""
    import torch

    network.mean.copy_(torch.tensor(inputs.mean(axis=0)))
    network.spread.copy_(torch.tensor(np.maximum(inputs.std(axis=0), 1e-3)))


def save(network: Any, path: Path) -> None:
    """Write a network as ONNX, for planners, and beside it as PyTorch has it, to go on from."""
    import torch

    torch.onnx.export(network, torch.zeros(1, len(network.mean)), str(path), input_names=["state"])
    torch.save(network.state_dict(), path.with_suffix(".pt"))


def fit(network: Any, samples: Samples, epochs: int, seed: int) -> tuple[float, float]:
    """Fit by Adam; return the mean square errors of training and of a tenth that was left out, in halves of a range."""
    import torch
    from tqdm import trange

    generator = torch.Generator().manual_seed(seed)
    x = torch.tensor(samples.inputs, dtype=torch.float32)
    u = torch.tensor(samples.ctrl, dtype=torch.float32)
    cut = len(x) - len(x) // 10
    order = torch.randperm(len(x), generator=generator)
    train, held = order[:cut], order[cut:]
    optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)

    def loss(rows: Any) -> Any:
        return (((network(x[rows]) - u[rows]) / network.reach) ** 2).mean()

    for _ in trange(epochs, desc="epochs", leave=False):
        for rows in train[torch.randperm(len(train), generator=generator)].split(256):
            optimizer.zero_grad()
            loss(rows).backward()
            optimizer.step()
        schedule.step()
    with torch.no_grad():
        return float(loss(train)), float(loss(held))


def train(arguments: argparse.Namespace) -> None:
    """Train a network on all recordings of the task in the folder."""
    import torch

    torch.manual_seed(arguments.seed)
    with sinew.serve() as daemon, daemon.client() as client, client.open(arguments.task) as session:
        paths, samples = recorded_samples(session, arguments)
    network = make_network(samples.inputs.shape[1], samples.ctrl_range, arguments.width)
    set_scales(network, samples.inputs)
    started = time.perf_counter()
    errors = fit(network, samples, arguments.epochs, arguments.seed)
    path = arguments.folder / f"{arguments.task}.onnx"
    save(network, path)
    for old in arguments.folder.glob(f"{arguments.task}-refined.*"):  # of the network before this one
        old.unlink()
    print(
        f"{path}: {len(samples.inputs)} samples of {len(paths)} recordings, root of the mean square error "
        f"{errors[0] ** 0.5:.3f}, {errors[1] ** 0.5:.3f} of what was left out, in halves of a control's range; "
        f"{time.perf_counter() - started:.0f} s"
    )


def network_file(arguments: argparse.Namespace, ending: str) -> Path:
    """Return the file of the network that was trained."""
    path: Path = arguments.folder / f"{arguments.task}{ending}"
    if not path.exists():
        raise SystemExit(f"{path}: there is no such network; train one first")
    return path


# ---- refine ----


def refine(arguments: argparse.Namespace) -> None:
    """Refine the network on the gradient of what its plans cost."""
    import torch
    from refine import Plans, refined

    path = network_file(arguments, ".pt")
    with sinew.serve() as daemon, daemon.client() as client, client.open(arguments.task) as session:
        planner, (_, samples) = planner_of(session), recorded_samples(session, arguments)
    weights = torch.load(path, weights_only=True)
    network = make_network(samples.inputs.shape[1], samples.ctrl_range, len(weights["chain.0.bias"]))
    network.load_state_dict(weights)
    started = time.perf_counter()
    first, last = refined(network, Plans(planner, samples.inputs, range(1, 65)), arguments)
    save(network, path.with_name(f"{arguments.task}-refined.onnx"))
    print(
        f"{path.with_name(f'{arguments.task}-refined.onnx')}: a plan of the policy costs {last:.4g}, "
        f"{first:.4g} before, means of 32 starts; {time.perf_counter() - started:.0f} s"
    )


# ---- measure ----


def tasks_with_policies(folder: Path, name: str, starts: tuple[tuple[str, str, str], ...]) -> Path:
    """Write the task with its policies into a folder of its own, and return that."""
    tasks = folder / "tasks"
    tasks.mkdir(exist_ok=True)
    for suffix in {suffix for _, _, suffix in starts}:
        (tasks / f"{name}{suffix}.yaml").write_text(f"policy: {name}{suffix}.onnx\n{sinew.Task(name).text}")
        (tasks / f"{name}{suffix}.onnx").write_bytes((folder / f"{name}{suffix}.onnx").read_bytes())
    return tasks


def pushed_state(session: Session, arguments: argparse.Namespace, seed: int) -> State:
    """Return the state of a body that has moved for 0.3 s and is pushed: its velocities change at once."""
    body = moved(session, 0.3, arguments)
    body.data.qvel += np.random.default_rng(seed).uniform(-3, 3, body.model.nv)
    return body.state


def try_start(
    client: Client, arguments: argparse.Namespace, seed: int, start: tuple[str, str, str], pushed: bool
) -> dict[str, Any]:
    """Make one plan of one gradient; return its costs, and the time that all of it took."""
    name, warm_start, suffix = start
    with client.open(arguments.task + suffix, seed, {"planner": "adam"}) as session:
        state = session.initial
        if pushed:
            state = pushed_state(session, arguments, seed)
        session.tune(warm_start=warm_start)
        plan = session.plan(state, iterations=2)  # the first gradient measures the start, the second what it led to
        return {
            "seed": seed,
            "start": name,
            "pushed": pushed,
            "before": plan.cost_before,
            "after": plan.cost_after,
            "from_policy": plan.from_policy,
            "seconds": plan.computing,
        }


def draw(rows: list[dict[str, Any]], arguments: argparse.Namespace) -> None:
    """Draw what each start costs, before a gradient and after one."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    starts = list(dict.fromkeys(row["start"] for row in rows))
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
    for axis, pushed in zip(axes, (False, True), strict=True):
        for k, start in enumerate(starts):
            of = [row for row in rows if row["start"] == start and row["pushed"] == pushed]
            for row in of:
                axis.plot([k - 0.15, k + 0.15], [row["before"], row["after"]], "o-", color=f"C{k}", alpha=0.6)
        axis.set_xticks(range(len(starts)), starts)
        axis.set_yscale("log")
        axis.set_title(f"{arguments.task}, " + ("pushed while it moves" if pushed else "first plan"))
    axes[0].yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes[0].yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes[0].yaxis.set_minor_formatter(NullFormatter())
    axes[0].set_ylabel("cost of a plan: start, one gradient later")
    figure.savefig(arguments.picture, dpi=90)


def report(rows: list[dict[str, Any]]) -> None:
    """Print medians over the seeds."""
    print(f"{'':>22}  {'start':>8}  {'cost of it':>10}  {'one gradient later':>18}  {'ms':>6}")
    for pushed in (False, True):
        for start in dict.fromkeys(row["start"] for row in rows):
            of = [row for row in rows if row["start"] == start and row["pushed"] == pushed]
            before, after, seconds = (np.median([row[x] for row in of]) for x in ("before", "after", "seconds"))
            when = "pushed while it moves" if pushed else "first plan"
            print(f"{when:>22}  {start:>8}  {before:10.4g}  {after:18.4g}  {1000 * seconds:6.1f}")


def measure(arguments: argparse.Namespace) -> None:
    """Compare plans by where they begin."""
    network_file(arguments, ".onnx")
    refined = (arguments.folder / f"{arguments.task}{REFINED[2]}.onnx").exists()
    starts = (*STARTS, REFINED) if refined else STARTS
    tasks = tasks_with_policies(arguments.folder, arguments.task, starts)
    with sinew.serve(tasks=tasks) as daemon, daemon.client() as client:
        rows = [
            try_start(client, arguments, seed, start, pushed)
            for pushed in (False, True)
            for seed in arguments.seeds
            for start in starts
        ]
    if arguments.json:
        print(json.dumps(rows, indent=1))
    else:
        report(rows)
    if arguments.picture:
        draw(rows, arguments)


def parse() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("record", "train", "refine", "measure", "all"))
    parser.add_argument("task", help="such as arm_reach or hand_pose")
    parser.add_argument("--folder", type=Path, default=Path("distilled"), help="of the files (default: ./distilled)")
    parser.add_argument("--seeds", type=span, help="A:B (default: 1:9 to record, 101:111 to measure)")
    parser.add_argument("--seconds", type=float, default=2.0, help="of motion for each seed (default: 2)")
    parser.add_argument("--execute", type=int, default=8, help="steps between two plans (default: 8)")
    parser.add_argument("--iterations", type=int, default=16, help="of Adam for each recorded plan (default: 16)")
    parser.add_argument("--share", type=float, default=0.5, help="of a plan's rows that are imitated (default: 0.5)")
    parser.add_argument("--width", type=int, default=64, help="of the hidden layers (default: 64)")
    parser.add_argument("--epochs", type=int, default=200, help="of training (default: 200)")
    parser.add_argument("--updates", type=int, default=100, help="of the policy, to refine it (default: 100)")
    parser.add_argument("--rate", type=float, default=1e-3, help="of Adam, to refine it (default: 0.001)")
    parser.add_argument("--seed", type=int, default=0, help="of the training (default: 0)")
    parser.add_argument("--picture", type=sinew.files.writable, help="file to draw into, .svg or .png")
    parser.add_argument("--json", action="store_true", help="print what was measured as JSON")
    return parser.parse_args()


def main() -> None:
    """Run what was asked for."""
    arguments = parse()
    steps = {"record": record, "train": train, "refine": refine, "measure": measure}
    seeds = arguments.seeds
    for step in ("record", "train", "measure") if arguments.step == "all" else (arguments.step,):
        recorded = span("1:9") if step == "record" else span("101:111")
        arguments.seeds = seeds if seeds is not None and arguments.step != "all" else recorded
        steps[step](arguments)


if __name__ == "__main__":
    main()
