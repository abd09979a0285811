"""CMA-ES by the package cmaes, for comparison with gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sinew._arrays import Doubles
from sinew._extras import require

if TYPE_CHECKING:
    from sinew.identify import _Problem

__all__ = ["cma"]

SPREAD = 0.25  # first standard deviation, as a share of the width between bounds


def cma(
    problem: _Problem, start: Doubles, generations: int, batch: int, rng: np.random.Generator,
    note: Callable[[Mapping[str, Any]], None],
) -> None:  # fmt: skip
    """Search between the bounds by CMA-ES (N. Hansen 2016), a batch of segments a generation.

    Notes the best of each generation. A loss that is not finite counts as the worst.
    """
    require("cmaes")
    from cmaes import CMA

    parameters, segments = problem.parameters, problem.segments
    share = parameters.to_shares(start)
    search = CMA(share, SPREAD, bounds=np.tile([0.0, 1.0], (len(share), 1)), seed=int(rng.integers(2**31)))
    for k in range(generations):
        rows = rng.permutation(len(segments))[:batch] if batch < len(segments) else slice(None)
        told = []
        for _ in range(search.population_size):
            asked = search.ask()
            loss = problem.value(parameters.between(asked), segments.take(rows))
            told.append((asked, loss if np.isfinite(loss) else np.inf))
        search.tell(told)
        best, loss = min(told, key=lambda x: x[1])
        note({"iteration": k, "loss": loss, "values": parameters.between(best).tolist()})
