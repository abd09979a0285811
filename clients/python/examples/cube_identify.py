"""The side of a cube, found in recorded tosses: figure 9 of A. Paulus et al., 2025 (arXiv 2506.14186).

The recordings are the ContactNets tosses of a cube of 100 mm (S. Pfrommer et al., 2020), one row a frame: toss, frame,
x, y, z, qw, qx, qy, qz, vx, vy, vz, wx, wy, wz. Without a file the model makes tosses. Four frames are predicted from
each fifth. Three ways:

    steps       MuJoCo's steps of one frame, the side alone
    distance    the same with contacts from distance, places measured in centimetres first: they see the table
    all         four steps a frame, and behind that the contact's time constant, damping, impedance and friction, too

    python cube_identify.py tosses.csv.gz --picture cube_identify.svg
"""

import argparse
import gzip
import time
from pathlib import Path
from typing import Any

import numpy as np

import sinew
from sinew.identify import Identification, Motion, Segments, StateLoss, identify

FRAME, SIDE = 0.006767, 0.1  # between frames [s]; of the cube [m]
STARTS = (0.06, 0.08, 0.09, 0.11, 0.12, 0.14)  # sides [m]
SIDES = {"half side": sinew.Parameter("geom.cube.size", bounds=(0.02, 0.1))}


def both(attribute: str, low: float, high: float, transform: Any = "none") -> sinew.Parameter:
    """Return a parameter that cube and table share."""
    return sinew.Parameter([f"geom.{name}.{attribute}" for name in ("cube", "table")], (low, high), None, transform)


CONTACT = {
    "time constant": both("solref[0]", 0.005, 0.1, "log"),
    "damping ratio": both("solref[1]", 0.2, 3),
    "impedance": both("solimp[0]", 0.01, 0.9),
    "friction": both("friction[0]", 0.05, 1, "log"),
}


def read(file: Path, tosses: int) -> list[Motion]:
    """Return the first tosses of a file."""
    with gzip.open(file, "rt") if file.suffix == ".gz" else file.open() as text:
        rows = np.genfromtxt(text, delimiter=",", skip_header=1)
    motions = [rows[rows[:, 0] == toss] for toss in np.unique(rows[:, 0])[:tosses]]
    return [Motion(x[:, 2:9], x[:, 9:15], time=FRAME * x[:, 1], name=f"toss {int(x[0, 0])}") for x in motions]


def make(tosses: int) -> list[Motion]:
    """Return tosses that the model itself makes."""
    rng, model = np.random.default_rng(1), sinew.Model.load(sinew.share("models/cube_table.xml"))
    qpos, qvel = np.zeros((tosses, 7)), rng.standard_normal((tosses, 6)) * [1, 1, 0.5, 4, 4, 4]
    qpos[:, 2], qpos[:, 3:] = 0.12, rng.standard_normal((tosses, 4))
    qpos[:, 3:] /= np.linalg.norm(qpos[:, 3:], axis=1, keepdims=True)
    made = sinew.rollout(model, {"qpos": qpos, "qvel": qvel}, nstep=60, gradients=False).raise_if_diverged()
    return [Motion(made.qpos[i], made.qvel[i]) for i in range(tosses)]


class Table:
    """The cube on its table, with steps of a part of a frame."""

    def __init__(self, segments: Segments, iterations: int) -> None:
        self.text = Path(sinew.share("models/cube_table.xml")).read_text(encoding="utf-8")
        self.segments, self.iterations = segments, iterations

    def find(self, names: dict[str, Any], start: dict[str, float], substeps: int, **options: Any) -> Identification:
        """Identify parameters from values that may lack some."""
        text = self.text.replace(f'timestep="{FRAME}"', f'timestep="{FRAME / substeps}"')
        parameters = sinew.Parameters(text, names)
        first = [start.get(name, value) for name, value in zip(parameters.names, parameters.values, strict=True)]
        options = {"iterations": self.iterations, "seed": 1} | options
        return identify(parameters, self.segments, start=first, substeps=substeps, **options)

    def steps(self, side: float) -> list[Identification]:
        """Return what steps of a frame find of the side."""
        return [self.find(SIDES, {"half side": side / 2}, 1)]

    def distance(self, side: float, substeps: int = 1) -> list[Identification]:
        """Return the same with contacts from distance: places first, then turns, too."""
        far = self.find(SIDES, {"half side": side / 2}, substeps, loss=StateLoss(scale=0.01), cfd=sinew.CFD())
        return [far, self.find(SIDES, {"half side": far.values[0]}, substeps, cfd=sinew.CFD())]

    def all(self, side: float) -> list[Identification]:
        """Return what shorter steps find of the side, and then of the contact, too."""
        found = self.distance(side, 4)
        start = {"half side": found[-1].values[0]}
        return [*found, self.find(SIDES | CONTACT, start, 4, iterations=3 * self.iterations)]


def errors(parts: list[Identification]) -> np.ndarray:
    """Return the error of the side over the evaluations [per cent]; the last is that of the value chosen."""
    sides = [2 * x["values"][0] for part in parts for x in part.history] + [2 * parts[-1].values[0]]
    return 100 * (np.array(sides) / SIDE - 1)


def draw(found: dict[str, dict[float, list[Identification]]], picture: str) -> None:
    """Draw the error of the side over the evaluations, for all starts."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(found), figsize=(4.2 * len(found), 3.6), sharey=True, layout="constrained")
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
    parser.add_argument("data", type=Path, nargs="?", help="the tosses, a CSV file or a gzipped one")
    parser.add_argument("--starts", type=float, nargs="+", default=STARTS, help="first sides [m]")
    parser.add_argument("--tosses", type=int, default=100, help="tosses that are read (default: 100)")
    parser.add_argument("--iterations", type=int, default=100, help="iterations of a part (default: 100)")
    parser.add_argument("--picture", help="file to draw into, .svg or .png")
    arguments = parser.parse_args()
    motions = read(arguments.data, arguments.tosses) if arguments.data else make(arguments.tosses)
    table = Table(Segments.of(motions, 4, 5), arguments.iterations)
    print(f"{len(table.segments)} segments")
    found: dict[str, dict[float, list[Identification]]] = {}
    for name, way in (("steps", table.steps), ("distance", table.distance), ("all", table.all)):
        found[name] = {}
        for start in arguments.starts:
            begin = time.perf_counter()
            parts = found[name][start] = way(start)
            text = ", ".join(f"{n} {v:.4g}" for n, v in zip(parts[-1].names[1:], parts[-1].values[1:], strict=True))
            print(
                f"{name:9} from {1000 * start:4.0f} mm: {2000 * parts[-1].values[0]:6.2f} mm, error "
                f"{errors(parts)[0]:+5.1f} -> {errors(parts)[-1]:+5.1f} %, loss {parts[-1].loss:.3e}, "
                f"{time.perf_counter() - begin:.1f} s  {text}",
                flush=True,
            )
    if arguments.picture:
        draw(found, arguments.picture)


if __name__ == "__main__":
    main()
