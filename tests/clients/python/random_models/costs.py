"""Costs of random tasks of random models, and their gradients.

A cost is compared with what `task_value` makes of MuJoCo's fields in the states of the same motion. Derivatives are
compared with differences of the cost, as in `differences`: by the controls for each way in which a planner computes
them, by the initial state those of a rollout. By steps of chosen sizes a motion has one cost, whatever the integrator
of the model.
"""

from __future__ import annotations

import mujoco
import numpy as np
import sinew
from numpy.typing import NDArray
from sinew import errors

from random_models.differences import FASTEST, SIZES, Difference, Report, central, judge, left_alone, random_start
from random_models.keyframe import compare_keyframe
from random_models.task import Map, may_look_at, random_task, task_text
from random_models.task_value import cost_parts

Doubles = NDArray[np.float64]
VALUE = 1e-6  # of the cost: sensors of forces are a solver's
# How a gradient is computed; a grid stands for one of the task's horizon.
CHOSEN: Map = {"integrator": "tsit5", "rtol": 1e-11, "atol": 1e-11}  # sizes of steps count as given
WAYS: tuple[Map, ...] = (
    {"gradient": "sweep"}, {"gradient": "products"},
    {"gradient": "sweep", "grid": "of two"}, {"gradient": "products", "grid": "of two"},
    {"gradient": "sweep", **CHOSEN},
)  # fmt: skip


def compare_costs(xml: str, seed: int) -> Report:
    """Compare cost and gradient of a random task.

    Parameters
    ----------
    xml : str
        MJCF.
    seed : int
        Of the task, the state, the controls and the direction.

    Returns
    -------
    Report
        Verdicts, counted, and what differs: the cost, or its derivative by the controls, by each way to compute it.
    """
    report = Report()
    try:
        ours, model = sinew.Model.from_string(xml), mujoco.MjModel.from_xml_string(xml)
    except (ValueError, errors.SinewError):
        return Report("refused by MuJoCo or not supported")
    if ours.nv == 0:
        return Report("nothing moves")
    left = left_alone(random_start(ours, np.random.default_rng(seed)))
    if left and model.opt.enableflags & mujoco.mjtEnableBit.mjENBL_DIAGEXACT:
        return Report(left)
    made = random_task(model, seed)
    task = sinew.Task.parse(task_text(made))
    try:
        start, ctrl = _compare_value(ours, model, made, task, seed, report)
    except (errors.DivergedError, errors.StateError):  # the latter: before it has settled
        return Report("diverges")
    for settings in WAYS if ctrl.size else ():
        _compare_gradient(ours, task, start, ctrl, settings, report)
    _compare_start(ours, task, start, ctrl, report)
    compare_keyframe(xml, model, seed, report)
    if model.opt.integrator != mujoco.mjtIntegrator.mjINT_EULER:
        _compare_integrators(ours, model, start, ctrl, report)
    return report


def _compare_value(
    ours: sinew.Model, model: mujoco.MjModel, made: Map, task: sinew.Task, seed: int, report: Report
) -> tuple[dict[str, Doubles], Doubles]:
    """Compare the cost of a motion; return what it begins with, and its controls."""
    planner = sinew.planner.Planner(ours, task, settings={"planner": "sampling"}, threads=1)
    rng = np.random.default_rng(seed)
    state = random_start(planner.model, rng).state
    ctrl = rng.uniform(0, 0.8, (made["settings"]["horizon"], ours.nu))
    found = planner.evaluate(state, ctrl).cost
    motion = sinew.rollout(planner.model, state, ctrl, gradients=False, threads=1)
    if not np.isfinite(found) or np.abs(motion.qvel).max() > FASTEST:
        raise errors.DivergedError("a motion that is left alone")
    if ours.nhistory:  # what buffers hold is no field that MuJoCo computes
        return state, ctrl
    states = []
    for k in range(len(ctrl) + 1):
        parts = {name: getattr(motion, name)[k] for name in ("time", "qpos", "qvel", "act")}
        now = sinew.State(**parts, mocap=state.get("mocap"))
        states.append(_data(model, now, ctrl[k] if k < len(ctrl) else None))
    start = _data(model, planner.initial)
    wanted = float(np.sum(cost_parts(model, made, start, states, ctrl)))
    relative = abs(found - wanted) / max(abs(wanted), 1e-9)
    report.verdicts["agrees" if relative <= VALUE else "differs"] += 1
    if relative > VALUE:
        report.differs.append(Difference("cost", "MuJoCo", found, (wanted,), relative))
    return state, ctrl


def _data(model: mujoco.MjModel, state: sinew.State, ctrl: Doubles | None = None) -> mujoco.MjData:
    data = mujoco.MjData(model)
    data.time = np.asarray(state.time).item()
    for name in ("qpos", "qvel", "act"):
        getattr(data, name)[:] = np.asarray(getattr(state, name)).ravel()
    if model.nmocap:
        poses = np.asarray(state.mocap).reshape(model.nmocap, 7)
        data.mocap_pos[:], data.mocap_quat[:] = poses[:, :3], poses[:, 3:]
    if ctrl is not None:
        data.ctrl[:] = ctrl
    mujoco.mj_forward(model, data)
    if model.opt.enableflags & mujoco.mjtEnableBit.mjENBL_ENERGY:
        mujoco.mj_forward(model, data)  # e_kinetic is that of the evaluation before
    return data


def _compare_gradient(
    model: sinew.Model, task: sinew.Task, state: dict[str, Doubles], ctrl: Doubles, settings: Map, report: Report
) -> None:
    """Compare the derivative of the cost by the controls along a direction."""
    horizon = len(ctrl)
    if settings.get("grid"):
        long = horizon // 3
        settings = settings | {"grid": f"{horizon - 2 * long}x1,{long}x2"}
    name = " ".join(map(str, settings.values()))
    try:
        planner = sinew.planner.Planner(model, task, settings={"planner": "adam"} | settings, threads=1)
        found = planner.evaluate(state, ctrl, gradient=True)
    except (errors.UnsupportedError, errors.ArgumentError) as error:  # the latter: a grid that contacts forbid
        report.refused[f"{name}: {str(error)[:60]}"] += 1
        return
    except errors.DivergedError:
        report.refused[f"{name}: diverges"] += 1
        return
    way = np.random.default_rng([horizon, model.nu]).standard_normal(ctrl.shape)
    steps = {h: h * way for size in SIZES for h in (size, -size)}
    values = {0.0: found.cost} | {h: planner.evaluate(state, ctrl + dx).cost for h, dx in steps.items()}
    assert found.gradient is not None
    slope = float(np.sum(found.gradient * way))
    verdict, relative = judge(slope, values, abs(found.cost))
    report.verdicts[verdict] += 1
    if verdict == "differs":
        report.differs.append(Difference("cost", f"ctrl ({name})", slope, central(values), relative))


def _compare_integrators(
    ours: sinew.Model, model: mujoco.MjModel, state: dict[str, Doubles], ctrl: Doubles, report: Report
) -> None:
    """Compare accelerations and forces along a motion by steps of chosen sizes with those of the model under Euler."""
    felt = [i for i in range(model.nsensor) if model.sensor_needstage[i] == mujoco.mjtStage.mjSTAGE_ACC]
    names = [model.sensor(i).name for i in felt if may_look_at(model, i)]
    terms = [{"name": name, "residual": {"sensor": name}, "weight": 1} for name in names]
    if not terms:
        return
    made = {"model": "model.xml", "terms": terms, "settings": {"horizon": len(ctrl), "knots": 4}}
    cost = []
    for options in ({}, {"options": {"integrator": "Euler"}}):
        task = sinew.Task.parse(task_text(made | options))
        try:
            planner = sinew.planner.Planner(ours, task, settings={"planner": "sampling"} | CHOSEN, threads=1)
            cost.append(planner.evaluate(state, ctrl).cost)
        except errors.UnsupportedError as error:
            report.refused[f"integrators: {str(error)[:60]}"] += 1
            return
    found, wanted = cost
    if not np.isfinite(wanted) and found == wanted:
        report.refused["integrators: diverges"] += 1
        return
    relative = abs(found - wanted) / max(abs(wanted), 1e-9)
    report.verdicts["agrees" if relative <= VALUE else "differs"] += 1
    if not relative <= VALUE:
        report.differs.append(Difference("cost", "Euler", found, (wanted,), relative))


def _compare_start(
    model: sinew.Model, task: sinew.Task, state: dict[str, Doubles], ctrl: Doubles, report: Report
) -> None:
    """Compare the derivatives of the cost of a rollout by its initial state, each along a direction."""

    def cost(name: str, change: Doubles) -> float:
        start = model.integrate(state[name], change) if name == "qpos" else state[name] + change
        rollout = sinew.rollout(model, state | {name: start}, ctrl, task=task, gradients=False, threads=1)
        return float(rollout.cost) if rollout.cost is not None else np.nan

    try:
        motion = sinew.rollout(model, state, ctrl, task=task, threads=1)
        found = sinew.rollout_vjp(motion, coordinates="tangent")
    except errors.UnsupportedError as error:
        report.refused[f"initial state: {str(error)[:60]}"] += 1
        return
    rng = np.random.default_rng([model.nv, model.nu])
    for name in ("qpos", "qvel", "act"):
        slopes = getattr(found, name)
        way = rng.standard_normal(slopes.shape)
        if not way.size:
            continue
        values = {h: cost(name, h * way) for size in (0.0, *SIZES) for h in {size, -size}}
        slope = float(np.sum(slopes * way))
        verdict, relative = judge(slope, values, abs(values[0.0]))
        report.verdicts[verdict] += 1
        if verdict == "differs":
            report.differs.append(Difference("cost", name, slope, central(values), relative))
