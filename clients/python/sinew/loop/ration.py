"""How often predicted states are asked for: they cost the daemon a rollout, in which it could improve a plan."""

from __future__ import annotations

import math
from collections import deque
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sinew.client.plan import Plan

__all__ = ["Ration"]

_SHORTEST = 1 / 30  # between two plans with states [s]
_SHARE = 0.04  # of the time that states may cost
_COMPARED = 32  # one plan of so many has no states, to learn what an iteration takes
_LEARNT = 15  # latest plans of each kind that count


class Ration:
    """Learns from plans what their states cost, and says when the next ones may be asked for.

    Medians count: a machine that does other things, too, makes some plans far slower.
    """

    def __init__(self) -> None:
        self._asked = -math.inf
        self._plans = 0
        self._iterations: deque[float] = deque(maxlen=_LEARNT)  # time of one, of plans without states [s]
        self._costs: deque[float] = deque(maxlen=_LEARNT)  # time of states [s]

    def due(self, now: float) -> bool:
        """Return whether the plan that is asked for now [s] should have states."""
        self._plans += 1
        rest = median(self._costs) / _SHARE if self._costs else 0.0
        if self._plans % _COMPARED == 2 or now - self._asked < max(_SHORTEST, rest):
            return False
        self._asked = now
        return True

    def learn(self, plan: Plan) -> None:
        """Take note of the time that a plan took."""
        if plan.iterations == 0:
            return
        if plan.states is None:
            self._iterations.append(plan.computing / plan.iterations)
        elif self._iterations:
            self._costs.append(plan.computing - plan.iterations * median(self._iterations))
