"""The closed loop in which the body waits for each plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sinew.errors import DivergedError, NoPlanError
from sinew.loop.body import Body
from sinew.state import State

if TYPE_CHECKING:
    from sinew.client import Plan, Session
    from sinew.planner import Plan as LocalPlan
    from sinew.planner import Planner

__all__ = ["Moment", "lockstep"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Moment:
    """The body before a step.

    Attributes
    ----------
    state : State
        A copy.
    ctrl : array, (nu,)
        Applied from here on; at the end of a run those of the last step.
    plan : Plan or None
        That was made for this state; None: none was, the one before goes on.
    """

    state: State = field(repr=False)
    ctrl: Array = field(repr=False)
    plan: Plan | LocalPlan | None = field(repr=False)


def lockstep(body: Body, planner: Session | Planner, steps: int, execute: int = 16, **limits: Any) -> Iterator[Moment]:
    """Move a body under plans; it waits for each.

    The run depends on the planner's seed alone where iterations bound each plan, here or by its settings.

    Parameters
    ----------
    body : Body
        In its initial state.
    planner : Session or Planner
        At a daemon, or in this process.
    steps : int
        Time steps.
    execute : int
        Time steps between two plans.
    **limits
        Of each plan, as ``planner.plan`` takes them: ``iterations=8``, ``deadline=0.04`` (a session's) or
        ``budget=0.04``.

    Yields
    ------
    Moment
        ``steps + 1``: before each step, and at the end. Fewer where the body diverges, which ends it
        (`Body.diverged`).
    """
    ctrl = np.zeros(body.model.nu)
    for step in range(steps):
        state = body.state
        plan = _plan(planner, state, limits) if step % execute == 0 else None
        ctrl = _control(planner, body.time, ctrl)
        yield Moment(state, ctrl, plan)
        if not body.step(ctrl):
            return
    yield Moment(body.state, ctrl, None)


def _plan(planner: Session | Planner, state: State, limits: dict[str, Any]) -> Plan | LocalPlan | None:
    """Return a plan; None where every candidate diverged."""
    try:
        return planner.plan(state, **limits)
    except (DivergedError, NoPlanError):
        return None


def _control(planner: Session | Planner, now: float, before: Array) -> Array:
    """Return the controls of the plan in force; without one, those before."""
    try:
        return planner.control(now)
    except NoPlanError:
        return before
