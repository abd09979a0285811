"""Answers of a daemon are checked here before a robot moves by them, as ``libsinew_client`` does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sinew.client.quantities import ModelDescription
from sinew.errors import BadPlanError, ProtocolError
from sinew.state import State

__all__ = ["accept_gain", "accept_plan", "accept_session"]

Array = NDArray[np.float64]

# Far above what sinewd serves: rows of a plan, entries of a vector; the engine's bound on any number.
_ROWS, _ENTRIES, _CONTROL = 1 << 16, 1 << 20, 1e10
_TIME_TO_LIVE, _STEP = 86400.0, 1e-9  # longest and shortest [s]


def first_not_finite(x: Array) -> tuple[int, ...] | None:
    """Return the index of the first number that is NaN or infinite; None when all are finite."""
    if math.isfinite(np.vdot(x, x)):  # one pass where all is well; what overflows is looked at in the next
        return None
    bad = np.argwhere(~np.isfinite(x))
    return tuple(int(i) for i in bad[0]) if len(bad) else None


def accept_session(model: ModelDescription, initial: State) -> None:
    """Refuse a session that cannot be used: sizes, ranges of controls, the initial state.

    Raises
    ------
    ProtocolError
        What is wrong.
    """
    sizes = (model.nq, model.nv, model.na, model.nu, model.nmocap, model.nhistory)
    if max(sizes) > _ENTRIES:
        raise ProtocolError(f"the model has a vector of {max(sizes)} entries; at most {_ENTRIES} are allowed")
    if not (model.timestep > 0 and math.isfinite(model.timestep)):
        raise ProtocolError(f"the model has a time step of {model.timestep:g} s")
    wanted = {"qpos": model.nq, "qvel": model.nv, "act": model.na, "mocap": 7 * model.nmocap}
    wanted["history"] = model.nhistory
    for name, size in wanted.items():
        x = np.asarray(getattr(initial, name), float).ravel()
        if x.size != size:
            text = f"the initial state has the wrong size: {x.size} numbers of {name}, the model has {size}"
            raise ProtocolError(text)
        if (bad := first_not_finite(x)) is not None:
            raise ProtocolError(f"the initial state has {name}[{bad[0]}] = {x[bad]:g}")
    if len(model.ctrl) != model.nu:
        raise ProtocolError(f"the model has {model.nu} controls and describes {len(model.ctrl)}")
    for i, control in enumerate(model.ctrl):
        if control.address != i or control.size != 1:
            raise ProtocolError(f"control {i} is described as {control.size} entries from {control.address} on")
        finite = math.isfinite(control.min) and math.isfinite(control.max)
        if control.limited and not (finite and control.min <= control.max):
            raise ProtocolError(f"control {i} ranges from {control.min:g} to {control.max:g}")


def accept_plan(plan: dict[str, Any], session: int, nu: int, latest: float) -> None:
    """Refuse a plan that must not move a robot.

    Parameters
    ----------
    plan : dict
        Fields of the plan.
    session, nu : int
        Number and controls of the session that it is for.
    latest : float
        Stamp of the latest state that it may answer [s].

    Raises
    ------
    BadPlanError
        What is wrong.
    """
    why = _fault_of_plan(plan, session, nu, latest) or _fault_of_times(plan, latest)
    if why is None:
        why = _fault_of_controls(plan["ctrl"].reshape(plan["steps"], nu))
    if why is not None:
        raise BadPlanError(f"a plan of the daemon is refused: {why}")


def accept_gain(plan: dict[str, Any], model: ModelDescription) -> None:
    """Refuse feedback gains that must not move a robot: sizes, states that are missing, numbers.

    Raises
    ------
    BadPlanError
        What is wrong.
    """
    why = _fault_of_gain(plan, model) if plan["gain_rows"] or plan["gain"].size else None
    if why is not None:
        raise BadPlanError(f"a plan of the daemon is refused: {why}")


def _fault_of_gain(plan: dict[str, Any], model: ModelDescription) -> str | None:
    rows, states = plan["gain_rows"], plan["states"]
    if rows > plan["steps"] - plan["lead"] or plan["gain"].size != rows * model.nu * (2 * model.nv + model.na):
        return "its gains have the wrong size"
    wanted = {"qpos": model.nq, "qvel": model.nv, "act": model.na}
    if states is None or any(getattr(states, name).size != (plan["steps"] + 1) * n for name, n in wanted.items()):
        return "its gains come without the states that they refer to"
    if sum(q.size for q in model.qpos) != model.nq or sum(q.size - (q.size > 1) for q in model.qpos) != model.nv:
        return "its gains are for a model whose positions are not described"
    numbers = (plan["gain"], states.qpos, states.qvel, states.act)
    if any(first_not_finite(np.ravel(x)) is not None for x in numbers):
        return "its gains, or the states that they refer to, are not finite"
    return None


def _fault_of_plan(plan: dict[str, Any], session: int, nu: int, latest: float) -> str | None:
    if plan["session"] != session:
        return f"it is of session {plan['session']}, this is session {session}"
    if plan["status"] not in ("OK", "WARM_START"):
        return f"its status is {plan['status']}, which is unknown"
    if not 0 < plan["steps"] <= _ROWS:
        return f"it has {plan['steps']} rows; allowed are 1 to {_ROWS}"
    if plan["ctrl"].size != plan["steps"] * nu:
        return f"it has the wrong size: {plan['ctrl'].size} controls, not {plan['steps']} rows of {nu}"
    if plan["lead"] > plan["steps"]:
        return f"{plan['lead']} of its {plan['steps']} rows are those of the plan before"
    return None


def _fault_of_controls(rows: Array) -> str | None:
    if rows.size == 0 or np.abs(rows).max() <= _CONTROL:
        return None
    row, control = np.argwhere(~(np.abs(rows) <= _CONTROL))[0]
    return f"control {control} of row {row} is {rows[row, control]:g}"


def _fault_of_times(plan: dict[str, Any], latest: float) -> str | None:
    state, live, step, start = (plan[name] for name in ("state_time", "time_to_live", "step", "start"))
    if not (math.isfinite(state) and state <= latest):
        return f"it answers a state of {state:g} s, the latest that it may answer is of {latest:g} s"
    if not 0 < live <= _TIME_TO_LIVE:
        return f"its time to live is {live:g} s; allowed is more than 0, at most {_TIME_TO_LIVE:g} s"
    if not _STEP <= step <= _TIME_TO_LIVE:
        return f"its time step is {step:g} s; allowed is {_STEP:g} to {_TIME_TO_LIVE:g} s"
    if not (start <= state + live and start + plan["steps"] * step >= state):
        rows = f"its {plan['steps']} rows of {step:g} s from {start:g} s on"
        return f"{rows} are not of the time for which it may be used"
    return None
