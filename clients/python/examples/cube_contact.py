"""Side, mass and contact of a cube together, found in recorded tosses: figure S7 of A. Paulus et al., 2025.

What is sought: side, mass, solref, solimp, friction. Twenty frames are predicted from each tenth of a hundred tosses by
two steps a frame, and the mean absolute difference of states is made small: from the tuned start of the paper, from
random ones, and by CMA-ES, which has ten times the rollouts of a gradient's start. Forty other tosses, the first ones,
judge: whole tosses are predicted from their first frames.

    python cube_contact.py tosses.csv.gz --picture cube_contact.svg
"""

import argparse
import time
from typing import Any

import numpy as np
from cube_tosses import add_arguments, both, distances, model_text, tosses_of, write
from numpy.typing import NDArray

import sinew
from sinew.identify import Identification, Segments, identify

SUBSTEPS, JUDGES = 2, 40
SOUGHT = {
    "half side": sinew.Parameter("geom.cube.size", (0.03, 0.08), None, "softclip"),
    "mass": sinew.Parameter("geom.cube.mass", (0.1, 1), None, "log"),
    "time constant": both("solref[0]", 0.005, 0.1, "log"),
    "damping ratio": both("solref[1]", 0.05, 3, "log"),
    "d0": both("solimp[0]", 0.001, 0.9, "softclip"),
    "dwidth": both("solimp[1]", 0.9, 0.999, "softclip"),
    "width": both("solimp[2]", 0.001, 0.1, "log"),
    "midpoint": both("solimp[3]", 0.1, 0.9, "softclip"),
    "power": both("solimp[4]", 1, 5, "softclip"),
    "friction": both("friction[0]", 0.05, 1.5, "log"),
    "torsional friction": both("friction[1]", 0.0005, 0.1, "log"),
}


class AbsoluteLoss:
    """Mean absolute difference of the 13 numbers of states, smooth near zero."""

    width = 0.02

    def __call__(
        self, model: sinew.Model, qpos: NDArray[Any], qvel: NDArray[Any], wanted: Segments
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return the loss of each segment (N,), and its derivatives by the states after the first (N, K, .)."""
        goal = wanted.qpos[:, 1:].copy()
        goal[..., 3:] *= np.where(np.sum(qpos[..., 3:] * goal[..., 3:], axis=-1, keepdims=True) < 0, -1, 1)
        share = 1 / (13 * qpos.shape[1])
        off = qpos - goal, qvel - wanted.qvel[:, 1:]
        size = [np.sqrt(x * x + self.width**2) for x in off]
        loss = sum(np.sum(x - self.width, axis=(1, 2)) for x in size)
        return share * loss, share * off[0] / size[0], share * off[1] / size[1]


class Search:
    """Parameters, the tosses in which they are sought, and those that judge."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        tosses = tosses_of(arguments, JUDGES + arguments.tosses)
        self.seen = Segments.of(tosses[JUDGES:], 20, 10)
        self.judges = Segments.whole(tosses[:JUDGES])
        self.parameters = sinew.Parameters(model_text(SUBSTEPS), SOUGHT)
        self.iterations, self.batch = arguments.iterations, arguments.batch

    def far(self, values: Any = None) -> dict[str, float]:
        """Return how far predictions of the judges are off."""
        return distances(self.parameters.model(values), self.judges, substeps=SUBSTEPS)

    def find(self, start: NDArray[Any] | None, optimizer: Any = "adam", iterations: int = 0) -> Identification:
        """Return what is found from a start."""
        return identify(
            self.parameters, self.seen, loss=AbsoluteLoss(), substeps=SUBSTEPS, start=start, optimizer=optimizer,
            iterations=iterations or self.iterations, batch=self.batch, rate=0.03, seed=1,
        )  # fmt: skip


def draw(found: dict[str, Identification], curves: dict[str, Any], picture: str) -> None:
    """Draw the error of the judges and some values over the evaluations."""
    import matplotlib.pyplot as plt

    names = ["half side", "time constant", "damping ratio", "friction"]
    figure, axes = plt.subplots(1, 1 + len(names), figsize=(15, 3.2), layout="constrained")
    for name, result in found.items():
        along = np.linspace(0, 1, len(result.history))
        axes[0].plot(np.linspace(0, 1, len(curves[name])), curves[name], label=name)
        for axis, parameter in zip(axes[1:], names, strict=True):
            k = result.names.index(parameter)
            axis.plot(along, [x["values"][k] for x in result.history], lw=1)
            axis.set(title=parameter, xlabel="part of the search")
    axes[0].axhline(0.26, color="0.6", lw=1, ls=":")
    axes[0].set(title="error of 40 other tosses", xlabel="part of the search")
    axes[0].legend(fontsize="x-small")
    axes[1].axhline(0.05, color="0.6", lw=1, ls=":")
    figure.savefig(picture, dpi=80)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--starts", type=int, default=3, help="random ones (default: 3)")
    parser.add_argument("--tosses", type=int, default=100, help="tosses that are seen (default: 100)")
    parser.add_argument("--iterations", type=int, default=120, help="iterations of a start (default: 120)")
    parser.add_argument("--batch", type=int, default=64, help="segments of an iteration (default: 64)")
    parser.add_argument("--without-cmaes", action="store_true", help="leave out CMA-ES, which needs the package cmaes")
    arguments = parser.parse_args()
    search, rng = Search(arguments), np.random.default_rng(1)
    size = len(search.parameters)
    ways: dict[str, tuple[Any, ...]] = {"tuned": (None,)}
    for k in range(arguments.starts):
        ways[f"random {k + 1}"] = (search.parameters.between(rng.uniform(size=size)),)
    if not arguments.without_cmaes:
        asked = 4 + int(3 * np.log(size))  # rollouts of a segment in a generation
        ways["CMA-ES"] = (None, "cmaes", -(-10 * arguments.iterations // asked))
    print(f"{len(search.seen)} segments; before: {text_of(search.far())}")
    found, curves, numbers = {}, {}, {}
    for name, way in ways.items():
        begin = time.process_time()
        result = found[name] = search.find(*way)
        seconds = time.process_time() - begin
        shown = result.history[:: max(len(result.history) // 12, 1)]
        curves[name] = [search.far(x["values"])["state"] for x in shown] + [search.far(result.values)["state"]]
        far = search.far(result.values)
        print(f"{name:9} {text_of(far)}, loss {result.loss:.4f}, {seconds:.0f} s of processors")
        print("   " + ", ".join(f"{n} {v:.4g}" for n, v in zip(result.names, result.values, strict=True)), flush=True)
        values = dict(zip(result.names, result.values.tolist(), strict=True))
        numbers[name] = {"far": far, "loss": result.loss, "seconds": seconds, "values": values, "curve": curves[name]}
    write(arguments, numbers)
    if arguments.picture:
        draw(found, curves, arguments.picture)


def text_of(far: dict[str, float]) -> str:
    return f"error {far['state']:.4f}, position {far['position']:.1f} mm, angle {far['angle']:.3f} rad"


if __name__ == "__main__":
    main()
