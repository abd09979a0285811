"""Keyframes of a model: a random one, and the states that come of it."""

from __future__ import annotations

import mujoco
import numpy as np
import sinew
from numpy.typing import NDArray

from random_models.differences import Difference, Report
from random_models.task import task_text

Doubles = NDArray[np.float64]
EXACT = 1e-14  # of quaternions, which are normalized


def compare_keyframe(xml: str, model: mujoco.MjModel, seed: int, report: Report) -> None:
    """Compare a reset to a random keyframe, and what a planner makes of it, with MuJoCo's reset.

    Parameters
    ----------
    xml : str
        MJCF without a keyframe.
    model : mujoco.MjModel
        Its model.
    seed : int
        Of the keyframe.
    report : Report
        Gets verdicts, and what differs.
    """
    key = random_key(model, seed)
    numbers = " ".join(f'{name}="{" ".join(map(repr, np.ravel(x).tolist()))}"' for name, x in key.items())
    xml = xml.replace("</mujoco>", f'<keyframe><key name="start" {numbers}/></keyframe></mujoco>')
    model = mujoco.MjModel.from_xml_string(xml)
    wanted = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, wanted, 0)
    ours = sinew.Model.from_string(xml)
    found = sinew.Data(ours)
    _compare("reset: ctrl", found.ctrl, mujoco.MjData(model).ctrl, report)
    found.reset("start")
    for name in ("time", "qpos", "qvel", "act", "ctrl", "mocap_pos", "mocap_quat"):
        _compare(f"keyframe: {name}", getattr(found, name), getattr(wanted, name), report)
    _compare("keyframe: history", found.history, np.concatenate([wanted.history, wanted.plastic]), report)
    term = {"name": "still", "residual": {"joint_velocity": "all"}, "weight": 1}
    task = {"model": "model.xml", "initial": {"keyframe": "start"}, "settings": {"horizon": 8, "knots": 4}}
    planner = sinew.planner.Planner(ours, sinew.Task.parse(task_text(task | {"terms": [term]})), threads=1)
    initial = planner.initial
    for name in ("qpos", "qvel", "act"):
        _compare(f"initial keyframe: {name}", getattr(initial, name), getattr(wanted, name), report)
    if model.nmocap:
        poses = np.concatenate([wanted.mocap_pos, wanted.mocap_quat], axis=1)
        _compare("initial keyframe: mocap", initial.mocap, poses, report)


def random_key(model: mujoco.MjModel, seed: int) -> dict[str, Doubles]:
    """Return a random keyframe: some of its arrays, in which quaternions have any length."""
    rng = np.random.default_rng([seed, model.nq, model.nu])
    qpos = model.qpos0.copy()
    mujoco.mj_integratePos(model, qpos, rng.standard_normal(model.nv), 0.5)
    for j in range(model.njnt):
        free = model.jnt_type[j] == mujoco.mjtJoint.mjJNT_FREE
        if free or model.jnt_type[j] == mujoco.mjtJoint.mjJNT_BALL:
            first = model.jnt_qposadr[j] + 3 * free
            qpos[first : first + 4] *= rng.uniform(0.5, 2)
    key = {
        "time": rng.uniform(0, 1, 1),
        "qpos": qpos,
        "qvel": rng.standard_normal(model.nv),
        "act": rng.uniform(0, 1, model.na),
        "ctrl": rng.uniform(-1, 1, model.nu),
        "mpos": rng.standard_normal(3 * model.nmocap),
        "mquat": rng.standard_normal(4 * model.nmocap),
    }
    return {name: x for name, x in key.items() if x.size and rng.random() < 0.8}


def _compare(name: str, found: object, wanted: object, report: Report) -> None:
    """Compare arrays number by number."""
    ours, mujocos = np.ravel(np.asarray(found, float)), np.ravel(np.asarray(wanted, float))
    if ours.shape != mujocos.shape:
        report.verdicts["differs"] += 1
        report.differs.append(Difference("size", name, ours.size, (mujocos.size,), np.inf))
        return
    if not ours.size:
        return
    apart = np.abs(ours - mujocos)
    worst = int(np.argmax(np.where(np.isnan(apart), np.inf, apart)))
    verdict = "agrees" if apart[worst] <= EXACT * max(1, abs(mujocos[worst])) else "differs"
    report.verdicts[verdict] += 1
    if verdict == "differs":
        report.differs.append(Difference(str(worst), name, ours[worst], (mujocos[worst],), apart[worst]))
