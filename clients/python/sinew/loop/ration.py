"""How often predicted states are asked for: they cost the daemon a rollout, in which it could improve a plan."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sinew.client.plan import Plan

__all__ = ["Ration"]

_SHORTEST = 1 / 30  # between two plans with states [s]
_SHARE = 0.04  # of the time that states may cost
_COMPARED = 32  # one plan of so many has no states, to learn what an iteration takes
_WEIGHT = 0.2  # of the latest plan in a mean


class Ration:
    """Learns from plans what their states cost, and says when the next ones may be asked for."""

    def __init__(self) -> None:
        self._asked = -math.inf
        self._plans = 0
        self._iteration = self._cost = math.nan  # [s]

    def due(self, now: float) -> bool:
        """Return whether the plan that is asked for now [s] should have states."""
        self._plans += 1
        if self._plans % _COMPARED == 2 or now - self._asked < max(_SHORTEST, self._rest()):
            return False
        self._asked = now
        return True

    def learn(self, plan: Plan) -> None:
        """Take note of the time that a plan took."""
        if plan.iterations == 0:
            return
        if plan.states is None:
            self._iteration = _mean(self._iteration, plan.computing / plan.iterations)
        elif not math.isnan(self._iteration):
            self._cost = _mean(self._cost, max(plan.computing - plan.iterations * self._iteration, 0.0))

    def _rest(self) -> float:
        return 0.0 if math.isnan(self._cost) else self._cost / _SHARE


def _mean(before: float, latest: float) -> float:
    return latest if math.isnan(before) else before + _WEIGHT * (latest - before)
