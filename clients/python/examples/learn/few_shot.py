"""A simulator from three recorded tosses: identified contacts, data of the engine, a graph network that learns them.

After Z. Huang et al., "Few-Shot Neural Differentiable Simulator: Real-to-Sim Rigid-Contact Modeling": its figures 4, 5
and 7 on ContactNets' tosses, 6 and 1 on pushed cubes. Identification is cube_search.py's, in the ranges of table II;
physics is the engine's, whose contacts are MuJoCo's.

    python few_shot.py tosses.csv.gz --folder RUN --minutes 10      # goes on from what RUN has
    python few_shot.py --folder RUN --short                         # tosses of the model, small networks: seconds

Three networks are trained: on the three tosses turned about the vertical (`augmented`), on tosses that the engine makes
with the identified contact (`scaled`), and on pushed cubes (`pushes`), for more iterations of half as many windows
at three quarters of the rate, since few of these have a strike in them. `--minutes` ends each in a run.
"""

import argparse
import json
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import few_shot_pictures as pictures
import numpy as np
import torch
from few_shot_push import array, push
from few_shot_scenes import (
    RANGES,
    SIDE,
    STEP,
    STRIDE,
    SUBSTEPS,
    add_arguments,
    model_text,
    pose_errors,
    scaled_pushes,
    scaled_tosses,
    scene_of,
    search,
    tosses_of,
    write,
)

import sinew
from sinew.identify import Segments, predict
from sinew.learn.graph.data import Motions, about_vertical, recorded
from sinew.learn.graph.network import Sizes
from sinew.learn.graph.poses import qpos_of
from sinew.learn.graph.simulator import Simulator
from sinew.learn.graph.training import Options, Training

SEEN = 3  # tosses that identification and augmentation see
SHORT = {
    "others": 5, "generations": 6, "motions": 20, "iterations": 20, "push_iterations": 20, "width": 8, "layers": 2,
    "epochs": 2,
}  # fmt: skip


def identify(parameters: sinew.Parameters, seen: Segments, generations: int, folder: Path) -> dict[str, Any]:
    """Return values found by CMA-ES and by gradients, with seconds of processors; kept in a file of the folder."""
    file = folder / "contact.json"
    if file.exists():
        kept: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return kept
    ways: dict[str, Any] = {
        "CMA-ES": (generations, {"optimizer": "cmaes"}),
        "gradients": (max(generations // 4, 1), {"starts": 4, "rate": 0.1, "cfd": sinew.CFD()}),
    }
    found = {}
    for name, (iterations, options) in ways.items():
        begin = time.process_time()
        result = search(parameters, seen, iterations, options)
        found[name] = {
            "values": dict(zip(result.names, result.values.tolist(), strict=True)),
            "loss": result.loss,
            "seconds": time.process_time() - begin,
        }
    file.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return found


def train(
    name: str, motions: list[Motions], arguments: argparse.Namespace, reach: float = 0.04, **changes: Any
) -> tuple[Simulator, Training]:
    """Return a simulator that has learned from motions, by the options with changes, and its training."""
    a = arguments
    options = Options(rate=a.rate, iterations=a.iterations, batch=a.batch, horizon=a.horizon, seed=a.seed)
    options = replace(options, **changes)
    simulator = Simulator(Sizes(a.width, a.layers), step=STEP, reach=reach, seed=a.seed, threads=1)
    training = Training(simulator, motions, options, arguments.folder / f"{name}.pt")
    training.run(minutes=arguments.minutes)
    return simulator, training


def by_engine(model: sinew.Model, tosses: Segments) -> np.ndarray:
    """Return positions behind each step of the networks, (N, K, 7), by the engine."""
    return predict(model, tosses, substeps=SUBSTEPS)[0][:, STRIDE - 1 :: STRIDE]


def by_network(simulator: Simulator, tosses: Segments) -> np.ndarray:
    """Return the same by a network."""
    qpos, qvel = (torch.from_numpy(x).float() for x in (tosses.first["qpos"], tosses.first["qvel"]))
    steps = (tosses.qpos.shape[1] - 1) // STRIDE
    with torch.no_grad():
        poses = simulator.rollout(scene_of([SIDE]), *simulator.start(qpos, qvel), steps)
    return qpos_of(poses)[:, 1:]


def compare(found: dict[str, np.ndarray], tosses: Segments) -> dict[str, dict[str, float]]:
    """Return errors of predicted tosses, means over all rows: position [mm], angle [rad], the loss of equation 1."""
    goal, look = tosses.qpos[:, STRIDE::STRIDE], tosses.looked[:, STRIDE - 1 :: STRIDE]
    errors = {name: pose_errors(qpos, goal, look) for name, qpos in found.items()}
    return {name: x | {"loss": x["position"] / (1000 * SIDE) + x["angle"]} for name, x in errors.items()}


def ways_of(found: dict[str, np.ndarray], tosses: Segments, count: int = 3) -> list[dict[str, np.ndarray]]:
    """Return positions of the first tosses, recorded and predicted, each with its first row."""
    ways = []
    for i in range(min(count, len(tosses))):
        rows = int(tosses.looked[i, STRIDE - 1 :: STRIDE].sum())
        first = tosses.qpos[i, :1]
        way = {name: np.concatenate([first, qpos[i, :rows]]) for name, qpos in found.items()}
        ways.append({"recorded": tosses.qpos[i, ::STRIDE][: rows + 1], **way})
    return ways


def tossed(arguments: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    """Make figures 4, 5 and 7, and return their numbers and what was identified."""
    tosses = tosses_of(arguments, SEEN + arguments.others)
    seen, others = Segments.whole(tosses[:SEEN]), Segments.whole(tosses[SEEN:])
    parameters = sinew.Parameters(model_text(SUBSTEPS), RANGES)
    contacts = identify(parameters, seen, arguments.generations, arguments.folder)
    values = {name: list(x["values"].values()) for name, x in contacts.items()}
    found = {"before": by_engine(parameters.model(), others)}
    for name, of in values.items():
        found["identified" if name == "CMA-ES" else name] = by_engine(parameters.model(of), others)
    own = about_vertical(recorded(scene_of([SIDE]), tosses[:SEEN], STRIDE), max(arguments.motions // SEEN // STRIDE, 1))
    augmented, first = train("augmented", [own], arguments)
    scaled, second = train("scaled", scaled_tosses(contacts["CMA-ES"]["values"], arguments.motions), arguments)
    found |= {"augmented": by_network(augmented, others), "scaled": by_network(scaled, others)}
    rows = compare(found, others)
    for name, x in rows.items():
        print(f"{name:10} position {x['position']:6.1f} mm, angle {x['angle']:.3f} rad, equation 1 {x['loss']:.3f}")
    if arguments.pictures:
        pictures.errors(rows, arguments.folder / "few_shot_errors.png")
        drawn = {name: x for name, x in found.items() if name in pictures.COLORS}
        pictures.tosses(ways_of(drawn, others), arguments.folder / "few_shot_tosses.png")
    return {"errors": rows, "trainings": {"augmented": first.rows, "scaled": second.rows}}, contacts


def pushes(arguments: argparse.Namespace, contact: dict[str, float]) -> dict[str, Any]:
    """Make figures 6 and 1, and return their numbers."""
    a = arguments
    how = {"reach": 0.025, "rate": 0.75 * a.rate, "batch": max(a.batch // 2, 1), "iterations": a.push_iterations}
    simulator, training = train("pushes", scaled_pushes(contact, a.motions), a, **how)
    found, target = push(simulator, contact, arguments.epochs)
    for name, run in found.items():
        real, thought = 1000 * np.array(run.real), 1000 * np.array(run.thought)
        print(
            f"push by the {name}: off {np.round(real[0], 1)} mm -> {np.round(real[-1], 1)} mm in {arguments.epochs} "
            f"epochs, as it sees it {np.round(thought[-1], 1)} mm; {run.seconds:.1f} s of processors"
        )
    engine, network = array(simulator, contact)
    far = 1000 * (engine.place - network.place).norm(dim=-1)
    way = 1000 * (engine.place[-1] - engine.place[0]).norm(dim=-1)
    for name, of in (("cube that strikes", slice(1)), ("ten that stand", slice(1, None))):
        print(f"array, {name}: {far[-1, of].mean():.1f} mm off at the end, went {way[of].mean():.1f} mm (means)")
    if arguments.pictures:
        pictures.push(found, arguments.folder / "few_shot_push.png")
        pictures.array(engine, network, SIDE, arguments.folder / "few_shot_array.png")
    runs = {name: asdict(run) for name, run in found.items()}
    return {
        "push": runs, "target": target, "array": far.tolist(), "trainings": {"pushes": training.rows},
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--folder", type=Path, required=True, help="for networks, tables and pictures")
    parser.add_argument("--pictures", action="store_true", help="draw all figures into the folder")
    parser.add_argument(
        "--minutes", type=float, default=10, help="longest time of a training in this run (default: 10)"
    )
    parser.add_argument("--others", type=int, default=100, help="tosses that judge (default: 100)")
    parser.add_argument("--generations", type=int, default=100, help="of CMA-ES; a quarter as many steps of a start")
    parser.add_argument(
        "--motions", type=int, default=1000, help="of a training; of pushes 1.5 times as many (default: 1000)"
    )
    parser.add_argument("--iterations", type=int, default=1600, help="of a training (default: 1600)")
    parser.add_argument("--push-iterations", type=int, default=12000, help="of that on pushes (default: 12000)")
    parser.add_argument("--batch", type=int, default=32, help="windows of an iteration; of pushes half (default: 32)")
    parser.add_argument("--rate", type=float, default=4e-3, help="of Adam; of pushes three quarters (default: 0.004)")
    parser.add_argument("--horizon", type=int, default=1, help="steps that are compared (default: 1)")
    parser.add_argument("--width", type=int, default=32, help="of the networks (default: 32)")
    parser.add_argument("--layers", type=int, default=3, help="how often messages pass (default: 3)")
    parser.add_argument("--epochs", type=int, default=10, help="of the pushes (default: 10)")
    parser.add_argument("--seed", type=int, default=0, help="of networks and batches, not of the data (default: 0)")
    parser.add_argument("--short", action="store_true", help=f"small numbers: {SHORT}")
    arguments = parser.parse_args()
    if arguments.short:
        vars(arguments).update(SHORT)
    torch.set_num_threads(1)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    numbers, contacts = tossed(arguments)
    more = pushes(arguments, contacts["CMA-ES"]["values"])
    trainings = numbers.pop("trainings") | more.pop("trainings")
    if arguments.pictures:
        pictures.losses(trainings, arguments.folder / "few_shot_losses.png")
    write(arguments, numbers | more | {"contacts": contacts, "trainings": trainings})


if __name__ == "__main__":
    main()
