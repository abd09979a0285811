"""The side of a cube, found in recorded tosses: figure 9 of A. Paulus et al., 2025 (arXiv 2506.14186).

Four frames are predicted from each fifth. Four ways:

    steps       MuJoCo's steps of one frame, the side alone
    distance    the same with contacts from distance, places measured in centimetres first: they see the table
    chosen      chosen steps (Tsit5) with contacts from distance, the side alone: the paper's way, whose derivatives
                do not know that a touch moves in time
    all         the same, and then the contact's time constant, damping, impedance and friction, too

    python cube_identify.py tosses.csv.gz --picture cube_identify.svg
"""

import argparse
import time
from typing import Any

import numpy as np
from cube_tosses import SIDE, add_arguments, both, model_text, tosses_of, write

import sinew
from sinew.identify import Identification, Segments, StateLoss, identify

STARTS = (0.06, 0.08, 0.09, 0.11, 0.12, 0.14)  # sides [m]
SIDES = {"half side": sinew.Parameter("geom.cube.size", bounds=(0.02, 0.1))}
CONTACT = {
    "time constant": both("solref[0]", 0.005, 0.1, "log"),
    "damping ratio": both("solref[1]", 0.2, 3),
    "impedance": both("solimp[0]", 0.01, 0.9),
    "friction": both("friction[0]", 0.05, 1, "log"),
}


class Table:
    """The cube on its table."""

    def __init__(self, segments: Segments, iterations: int, tolerance: float, events: bool) -> None:
        self.segments, self.iterations = segments, iterations
        self.chosen = {"rtol": tolerance, "atol": tolerance, "events": events}

    def find(self, names: dict[str, Any], start: dict[str, float], **options: Any) -> Identification:
        """Identify parameters from values that may lack some."""
        parameters = sinew.Parameters(model_text(options.get("substeps", 1)), names)
        first = [start.get(name, value) for name, value in zip(parameters.names, parameters.values, strict=True)]
        options = {"iterations": self.iterations, "seed": 1} | options
        return identify(parameters, self.segments, start=first, **options)

    def steps(self, side: float) -> list[Identification]:
        """Return what steps of a frame find of the side."""
        return [self.find(SIDES, {"half side": side / 2})]

    def distance(self, side: float, **options: Any) -> list[Identification]:
        """Return the same with contacts from distance: places first, then turns, too."""
        options["cfd"] = sinew.CFD()
        far = self.find(SIDES, {"half side": side / 2}, loss=StateLoss(scale=0.01), **options)
        return [far, self.find(SIDES, {"half side": far.values[0]}, **options)]

    def chosen_steps(self, side: float) -> list[Identification]:
        """Return the same by chosen steps."""
        return self.distance(side, integrator=self.chosen)

    def all(self, side: float) -> list[Identification]:
        """Return what is found of the side and of the contact: from far by chosen steps, near by four steps a frame."""
        found = self.chosen_steps(side)
        options = {"iterations": 3 * self.iterations, "cfd": sinew.CFD(), "substeps": 4}
        return [*found, self.find(SIDES | CONTACT, {"half side": found[-1].values[0]}, **options)]


def errors(parts: list[Identification]) -> np.ndarray:
    """Return the error of the side over the evaluations [per cent]; the last is that of the value chosen."""
    sides = [2 * x["values"][0] for part in parts for x in part.history] + [2 * parts[-1].values[0]]
    return 100 * (np.array(sides) / SIDE - 1)


def draw(found: dict[str, dict[float, list[Identification]]], picture: str) -> None:
    """Draw the error of the side over the evaluations, for all starts."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(found), figsize=(3.4 * len(found), 3.4), sharey=True, layout="constrained")
    for axis, (name, runs) in zip(np.atleast_1d(axes), found.items(), strict=True):
        for start, parts in runs.items():
            axis.plot(errors(parts), lw=1.2, label=f"{1000 * start:.0f} mm")
        axis.axhspan(-1, 1, color="0.85", zorder=0)
        axis.set(title=name, xlabel="evaluation", ylim=(-45, 45))
    np.atleast_1d(axes)[0].set_ylabel("error of the side [%]")
    np.atleast_1d(axes)[0].legend(fontsize="small")
    figure.savefig(picture, dpi=80)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--starts", type=float, nargs="+", default=STARTS, help="first sides [m]")
    ways = ["steps", "distance", "chosen", "all"]
    parser.add_argument("--ways", nargs="+", choices=ways, default=ways, help="of the four above")
    parser.add_argument("--tosses", type=int, default=100, help="tosses that are read (default: 100)")
    parser.add_argument("--iterations", type=int, default=60, help="iterations of a part (default: 60)")
    parser.add_argument("--tolerance", type=float, default=1e-4, help="of chosen steps (default: 1e-4)")
    parser.add_argument(
        "--events", action="store_true", help="derivatives of chosen steps know that touches move in time"
    )
    arguments = parser.parse_args()
    segments = Segments.of(tosses_of(arguments, arguments.tosses), 4, 5)
    table = Table(segments, arguments.iterations, arguments.tolerance, arguments.events)
    find = {"steps": table.steps, "distance": table.distance, "chosen": table.chosen_steps, "all": table.all}
    print(f"{len(segments)} segments")
    found: dict[str, dict[float, list[Identification]]] = {name: {} for name in arguments.ways}
    numbers: dict[str, Any] = {name: {} for name in arguments.ways}
    for name in arguments.ways:
        for start in arguments.starts:
            begin = time.process_time()
            parts = found[name][start] = find[name](start)
            seconds = time.process_time() - begin
            error = errors(parts)
            last, text = parts[-1], ""
            for parameter, value in zip(last.names[1:], last.values[1:], strict=True):
                text += f", {parameter} {value:.4g}"
            print(
                f"{name:9} from {1000 * start:4.0f} mm: {2000 * last.values[0]:6.2f} mm, error "
                f"{error[0]:+5.1f} -> {error[-1]:+5.1f} % (mean of 20 evaluations {np.mean(error[-22:-2]):+5.1f} %), "
                f"loss {last.loss:.3e}, {seconds:.1f} s of processors{text}",
                flush=True,
            )
            values = dict(zip(last.names, last.values.tolist(), strict=True))
            numbers[name][f"{start:g}"] = {"error": error.tolist(), "seconds": seconds, "values": values}
    write(arguments, numbers)
    if arguments.picture:
        draw(found, arguments.picture)


if __name__ == "__main__":
    main()
