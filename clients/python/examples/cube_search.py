"""Contact parameters from three tosses, by CMA-ES and by gradients.

After Z. Huang et al., "Few-Shot Neural Differentiable Simulator: Real-to-Sim Rigid-Contact Modeling". The ranges are
those of its table II for MuJoCo, the loss is that of its equation 1: distance of the cube over its side plus the angle
of its turn, over whole tosses. Other tosses judge what was found, by the means of both over all frames.

    python cube_search.py tosses.csv.gz --picture cube_search.svg
"""

import argparse
import time
from typing import Any

import numpy as np
from cube_tosses import SIDE, add_arguments, both, distances, model_text, tosses_of, write

import sinew
from sinew.identify import Identification, PoseLoss, Segments, identify

SUBSTEPS = 4
RANGES = {
    "friction": both("friction[0]", 0, 1, "none", 0.5),
    "solimp d0": both("solimp[0]", 0.9, 0.95, "none", 0.925),
    "solimp dwidth": both("solimp[1]", 0.95, 0.99, "none", 0.97),
    "solimp width": both("solimp[2]", 0.0001, 0.01, "log", 0.001),
    "solimp midpoint": both("solimp[3]", 0.001, 0.1, "log", 0.01),
    "solimp power": both("solimp[4]", 1, 5, "none", 3),
    "solref time constant": both("solref[0]", 0.001, 0.1, "log", 0.01),
    "solref damping ratio": both("solref[1]", 0.1, 10, "log", 1),
}


def judge(model: sinew.Model, tosses: Segments) -> dict[str, float]:
    """Return position [mm], angle [rad] and the loss of equation 1 a frame, means over all frames."""
    far = distances(model, tosses, substeps=SUBSTEPS)
    return far | {"loss": far["position"] / (1000 * SIDE) + far["angle"]}


def search(parameters: sinew.Parameters, tosses: Segments, iterations: int, ways: dict[str, Any]) -> Identification:
    """Return what is found, first from the middles of the ranges."""
    return identify(
        parameters, tosses, loss=PoseLoss(SIDE), substeps=SUBSTEPS, iterations=iterations, seed=1,
        **ways,
    )  # fmt: skip


def draw(found: dict[str, Identification], rollouts: dict[str, int], judged: dict[str, Any], picture: str) -> None:
    """Draw the least loss over the rollouts, and the errors of other tosses."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
    for name, result in found.items():
        least = np.minimum.accumulate([x["loss"] for x in result.history])
        axes[0].plot(rollouts[name] * (1 + np.arange(len(least))) / len(least), least, label=name)
    axes[0].set(xlabel="rollouts of a toss", ylabel="least loss, tosses seen", xscale="log")
    axes[0].legend(fontsize="small")
    for axis, what, unit in ((axes[1], "position", "mm"), (axes[2], "angle", "rad")):
        axis.bar(list(judged), [x[what] for x in judged.values()], color=["0.6", "C0", "C1"])
        axis.set(ylabel=f"{what}, tosses not seen [{unit}]")
    figure.savefig(picture, dpi=80)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--tosses", type=int, default=3, help="tosses that are seen (default: 3)")
    parser.add_argument("--others", type=int, default=100, help="tosses that judge (default: 100)")
    parser.add_argument(
        "--iterations", type=int, default=100, help="generations, and a quarter as many steps of a start"
    )
    arguments = parser.parse_args()
    tosses = tosses_of(arguments, arguments.tosses + arguments.others)
    seen, others = Segments.whole(tosses[: arguments.tosses]), Segments.whole(tosses[arguments.tosses :])
    parameters = sinew.Parameters(model_text(SUBSTEPS), RANGES)
    starts = 4
    ways = {
        "CMA-ES": (arguments.iterations, {"optimizer": "cmaes"}),
        "gradients": (max(arguments.iterations // starts, 1), {"starts": starts, "rate": 0.1, "cfd": sinew.CFD()}),
    }
    judged = {"before": judge(parameters.model(), others)}
    found, rollouts = {}, {}
    for name, (iterations, options) in ways.items():
        begin = time.process_time()
        result = found[name] = search(parameters, seen, iterations, options)
        seconds = time.process_time() - begin
        evaluations = len(result.history) if name == "gradients" else iterations * (4 + int(3 * np.log(len(RANGES))))
        rollouts[name] = evaluations * len(seen)
        judged[name] = judge(parameters.model(result.values), others)
        print(f"{name}: {rollouts[name]} rollouts, {seconds:.1f} s of processors, loss {result.loss:.4f}")
        print("   " + ", ".join(f"{n} {v:.4g}" for n, v in zip(result.names, result.values, strict=True)), flush=True)
    for name, far in judged.items():
        print(
            f"{name:10} {len(others)} other tosses: position {far['position']:5.1f} mm, angle {far['angle']:.3f} rad, "
            f"equation 1 {far['loss']:.3f}"
        )
    write(arguments, {"judged": judged, "values": {n: x.values.tolist() for n, x in found.items()}})
    if arguments.picture:
        draw(found, rollouts, judged, arguments.picture)


if __name__ == "__main__":
    main()
