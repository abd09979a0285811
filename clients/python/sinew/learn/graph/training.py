"""Training of the graph simulator, which goes on from its file to the same bits."""

from __future__ import annotations

import csv
import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sinew._extras import require
from sinew._files import reason
from sinew.errors import ArgumentError, DivergedError, FileError, FormatError
from sinew.learn.graph.data import Motions
from sinew.learn.graph.network import FEATURES, Sizes
from sinew.learn.graph.poses import Pose, turned
from sinew.learn.graph.simulator import Simulator

__all__ = ["Options", "Training", "load"]

KIND = "sinew.learn.graph 1"
LOG = ("iteration", "samples", "seconds", "loss", "rate")


@dataclass(frozen=True)
class Options:
    """What training depends on beside simulator and motions.

    Parameters
    ----------
    rate : float
        Of Adam, at first. It falls to a hundredth by a cosine.
    iterations : int
        Over which it falls.
    batch : int
        Windows of an iteration.
    horizon : int
        Steps that are rolled out and compared: their gradient goes through collision and shape matching.
    noise : float
        Standard deviation by which first poses are off [m]; turns over the length of a body. Steps shall mend it.
    seed : int
        Of windows and noise.
    """

    rate: float = 2e-3
    iterations: int = 2000
    batch: int = 32
    horizon: int = 1
    noise: float = 3e-5
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.iterations, self.batch, self.horizon) < 1 or not self.rate > 0 or not self.noise >= 0:
            raise ArgumentError(
                f"options: {asdict(self)}, expected counts of 1 and more, a rate above 0, noise from 0 on"
            )


class Training:
    """Fits a simulator to motions.

    >>> training = Training(simulator, [motions], Options(iterations=4000), "toss.pt")
    >>> training.run(minutes=5)  # the same call goes on from the file

    Parameters
    ----------
    simulator : Simulator
        What learns. Its units are set from the motions, but where it goes on from a file.
    motions : sequence of Motions
        What it learns from. Groups count by their windows.
    options : Options
        How.
    file : path, optional
        Where the state is kept, with a table of losses beside it (.csv). If it is there, training goes on from it.

    Raises
    ------
    ArgumentError
        No motions, motions that are too short, a file of another simulator or other options.
    FileError, FormatError
        A file that cannot be read, or is none of these.
    """

    def __init__(
        self, simulator: Simulator, motions: Sequence[Motions], options: Options,
        file: str | os.PathLike[str] | None = None,
    ) -> None:  # fmt: skip
        self.simulator, self.motions, self.options = simulator, list(motions), options
        self.windows = [x.windows(options.horizon) for x in self.motions]
        if not self.motions or min(map(len, self.windows)) == 0:
            raise ArgumentError(f"motions: there are none, or some have fewer than {options.horizon + 2} poses")
        self.file = None if file is None else Path(file)
        self.iteration, self.seconds = 0, 0.0
        self.rows: list[list[float]] = []
        self.optimizer = torch.optim.Adam(simulator.parameters(), options.rate)
        self.rng = np.random.default_rng(options.seed)
        if self.file is not None and self.file.exists():
            self._resume(self.file)
        else:
            self._measure()

    def _measure(self) -> None:
        """Set the units of the simulator from the motions."""
        speeds, changes, lengths = [], [], []
        for group in self.motions:
            owner, rest = torch.from_numpy(group.scene.owner), torch.from_numpy(group.scene.rest).float()
            whole = group.take(group.windows(1), 1)
            flat = Pose(*(x.flatten(0, 1) for x in whole))
            nodes = flat.points(owner, rest).unflatten(0, whole.place.shape[:2])
            speeds.append((nodes[:, 1] - nodes[:, 0]).reshape(-1, 3))
            changes.append((nodes[:, 2] - 2 * nodes[:, 1] + nodes[:, 0]).reshape(-1, 3))
            lengths.append(rest.norm(dim=1))
        with torch.no_grad():
            self.simulator.length.copy_(torch.cat(lengths).mean())
            self.simulator.speed.copy_(torch.cat(speeds).std())
            self.simulator.spread.copy_(torch.cat(changes).std())
            self.simulator.mean.copy_(torch.cat(changes).mean(0))

    # ---- iterations ----

    def _batch(self) -> tuple[Motions, Pose]:
        """Return a random batch of windows of one group, with noise on the first two poses."""
        options, sizes = self.options, np.array([len(x) for x in self.windows], float)
        group = int(self.rng.choice(len(sizes), p=sizes / sizes.sum()))
        chosen = self.windows[group][self.rng.integers(len(self.windows[group]), size=options.batch)]
        place, turn = self.motions[group].take(chosen, options.horizon)
        off = self.rng.standard_normal((2, *place[:, :2].shape)) * options.noise
        moved, about = (torch.from_numpy(x).to(place.dtype) for x in off)
        about = about / self.simulator.length
        return self.motions[group], Pose(
            torch.cat([place[:, :2] + moved, place[:, 2:]], 1), torch.cat([turned(turn[:, :2], about), turn[:, 2:]], 1)
        )

    def loss(self, motions: Motions, poses: Pose) -> torch.Tensor:
        """Return the loss of windows: Huber's of the nodes' distances in units of accelerations, less for later steps.

        In k steps an acceleration moves by k (k + 1) / 2, by which distances behind k steps are divided.
        """
        scene, simulator = motions.scene, self.simulator
        owner, rest = torch.from_numpy(scene.owner), torch.from_numpy(scene.rest).to(poses.place.dtype)
        before, now = (Pose(poses.place[:, k], poses.turn[:, k]) for k in (0, 1))
        total = poses.place.new_zeros(())
        for k in range(1, self.options.horizon + 1):
            nodes = simulator.nodes(scene, now, before)
            want = Pose(poses.place[:, k + 1], poses.turn[:, k + 1]).points(owner, rest)
            off = (nodes - want) / (simulator.spread * k * (k + 1) / 2)
            total = total + torch.nn.functional.smooth_l1_loss(off, torch.zeros_like(off), beta=0.1)
            if k < self.options.horizon:
                now, before = simulator.rigid(scene, nodes), now
        return total / self.options.horizon

    def _step(self) -> float:
        """Make an iteration and return its loss. Weights are as they were where that is not finite."""
        options = self.options
        share = min(self.iteration / options.iterations, 1.0)
        rate = options.rate * (0.01 + 0.99 * (1 + np.cos(np.pi * share)) / 2)
        self.optimizer.param_groups[0]["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(*self._batch())
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.simulator.parameters(), 1.0)
        if not (torch.isfinite(loss) and torch.isfinite(norm)):
            raise DivergedError(f"loss {float(loss)}, norm of its gradient {float(norm)}")
        self.optimizer.step()
        self.iteration += 1
        return float(loss)

    def run(
        self, iterations: int | None = None, minutes: float = np.inf, every: int = 50, progress: bool = True
    ) -> None:
        """Train on, up to an iteration or for some minutes, whichever ends first, and save.

        Parameters
        ----------
        iterations : int, optional
            The iteration to end at. Default: that of the options.
        minutes : float
            Longest time of this call.
        every : int
            Iterations of a row of the table, and between savings; the end of a call has one, too.
        progress : bool
            Whether a bar shows it on a terminal, with windows a second.

        Raises
        ------
        DivergedError
            A loss or its gradient is not finite. The state before is saved.
        """
        require("learn")
        from tqdm import tqdm

        end = self.options.iterations if iterations is None else iterations
        begin, losses = time.perf_counter(), []
        kept, batch = self.seconds, self.options.batch
        with tqdm(
            total=end * batch, initial=self.iteration * batch, unit="window", disable=None if progress else True
        ) as bar:
            while self.iteration < end and time.perf_counter() - begin < 60 * minutes:
                try:
                    losses.append(self._step())
                except DivergedError as error:
                    self.save()
                    where = "" if self.file is None else f"; {self.file} has the state before it"
                    raise DivergedError(f"iteration {self.iteration}: {error}{where}") from None
                self.seconds = kept + time.perf_counter() - begin
                bar.update(batch)
                if self.iteration % every == 0:
                    self._note(losses)
                    bar.set_postfix(loss=f"{self.rows[-1][3]:.4g}")
                    losses = []
        if losses:
            self._note(losses)
        self.save()

    def _note(self, losses: list[float]) -> None:
        """Add a row to the table, and save."""
        rate = self.optimizer.param_groups[0]["lr"]
        samples = self.iteration * self.options.batch
        self.rows.append([self.iteration, samples, round(self.seconds, 2), float(np.mean(losses)), rate])
        self.save()

    # ---- files ----

    def _identity(self) -> dict[str, Any]:
        """Return what a file must agree with."""
        simulator = self.simulator
        of_simulator = {"sizes": list(simulator.sizes), "step": simulator.step, "reach": simulator.reach}
        return {"features": FEATURES, **of_simulator, "options": asdict(self.options)}

    def save(self) -> None:
        """Write the state into the file, and the table beside it; in place of the old ones when they are whole."""
        if self.file is None:
            return
        about = {
            "kind": KIND, "identity": self._identity(), "iteration": self.iteration, "seconds": self.seconds,
            "rows": self.rows, "rng": self.rng.bit_generator.state,
        }  # fmt: skip
        moments = self.optimizer.state_dict()["state"]
        state = {"about": json.dumps(about), "model": self.simulator.state_dict(), "optimizer": moments}
        part, table = self.file.with_name(self.file.name + ".part"), self.file.with_suffix(".csv")
        try:
            torch.save(state, part)
            part.replace(self.file)
            with table.open("w", newline="", encoding="utf-8") as text:
                csv.writer(text).writerows([LOG, *self.rows])
        except (OSError, RuntimeError) as error:
            raise FileError(f"{self.file}: {reason(error)}") from None

    def _resume(self, file: Path) -> None:
        about, state = _read(file)
        for name, value in self._identity().items():
            if about["identity"][name] != value:
                raise ArgumentError(f"{file}: {name} is {about['identity'][name]}, here it is {value}")
        self.simulator.load_state_dict(state["model"])
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": state["optimizer"], "param_groups": groups})
        self.rng.bit_generator.state = about["rng"]
        self.iteration, self.seconds, self.rows = about["iteration"], about["seconds"], about["rows"]


def _read(file: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a file of a training says of itself, and its tensors. No code is read."""
    try:
        state = torch.load(file, map_location="cpu", weights_only=True)
    except OSError as error:
        raise FileError(f"{file}: {reason(error)}") from None
    except Exception as error:  # whatever torch makes of bytes that are none of its own
        raise FormatError(f"{file}: no file of a training: {error}") from None
    about = json.loads(state["about"]) if isinstance(state, dict) and "about" in state else {}
    if about.get("kind") != KIND:
        raise FormatError(f"{file}: no file of a training of a graph simulator ({KIND})")
    return about, state


def load(file: str | os.PathLike[str], threads: int = 0) -> Simulator:
    """Return the simulator of a file that a training has saved.

    Raises
    ------
    FileError, FormatError
        A file that cannot be read, or is no such file.
    """
    about, state = _read(Path(file))
    of = about["identity"]
    simulator = Simulator(Sizes(*of["sizes"]), step=of["step"], reach=of["reach"], threads=threads)
    simulator.load_state_dict(state["model"])
    return simulator
