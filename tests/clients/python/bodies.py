"""Bodies that tests of rollouts move, each as a model of sinew and of MuJoCo."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import NamedTuple

import mujoco
import numpy as np
import pytest
import sinew

CUBE = """<mujoco>
  <option timestep="0.005"/>
  <worldbody>
    <geom type="plane" size="3 3 .1"/>
    <body name="cube" pos="0 0 .11"><freejoint/><geom type="box" size=".1 .1 .1" mass="1"/><site name="top"/></body>
    <body pos="1 0 1"><joint name="ball" type="ball" damping=".01"/>
      <geom type="capsule" fromto="0 0 0 .3 .1 -.2" size=".03"/>
      <body pos=".3 .1 -.2"><joint name="hinge" axis="0 1 0" damping=".05"/>
        <geom type="capsule" fromto="0 0 0 .2 0 0" size=".02"/></body></body>
    <body mocap="true" pos="0 2 1"><geom type="sphere" size=".1"/></body>
  </worldbody>
  <actuator><motor joint="hinge"/><general joint="hinge" dyntype="filter" dynprm=".1" gainprm="2"/></actuator>
  <sensor><jointpos joint="hinge"/><framepos objtype="site" objname="top"/><framelinvel objtype="site" objname="top"/>
  </sensor>
</mujoco>"""

# Falls on a plane and rolls; nothing moves it.
BALL = """<mujoco>
  <worldbody>
    <geom type="plane" size="3 3 .1"/>
    <body pos="0 0 .099"><freejoint/><geom type="sphere" size=".1" mass="1"/></body>
  </worldbody>
</mujoco>"""

MOCAP = """<mujoco>
  <worldbody>
    <body name="hand" mocap="true" pos="0 0 1"><geom type="sphere" size=".05" contype="0" conaffinity="0"/></body>
    <body name="load" pos="0 0 1"><freejoint/><geom type="box" size=".05 .05 .05" mass=".5"/></body>
  </worldbody>
  <equality><weld body1="hand" body2="load"/></equality>
</mujoco>"""


class Body(NamedTuple):
    """A model, loaded by both."""

    model: sinew.Model
    reference: mujoco.MjModel


_MYOSUITE = {"hand": "simhive/myo_sim/hand/myohand.xml", "arm": "simhive/myo_sim/arm/myoarm.xml"}
_TEXTS = {"cube": CUBE, "ball": BALL, "mocap": MOCAP}


@functools.cache
def body(name: str) -> Body:
    """Load a body: cube, ball, mocap, reach; hand and arm of MyoSuite, where its models are there."""
    model, reference = _load(name)
    # Motions are compared with MuJoCo's solvers at their solutions: where they stop, contacts spread what is left.
    reference.opt.tolerance, reference.opt.ls_tolerance, reference.opt.iterations = 0, 1e-12, 200
    reference.opt.ccd_tolerance, reference.opt.ccd_iterations = 1e-12, 200
    return Body(model, reference)


def _load(name: str) -> tuple[sinew.Model, mujoco.MjModel]:
    if name in _TEXTS:
        return sinew.Model.from_string(_TEXTS[name]), mujoco.MjModel.from_xml_string(_TEXTS[name])
    path = Path(__file__).parents[3] / "physics" / "models" / "arm_reach.xml"
    if name in _MYOSUITE:
        cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
        path = cache / "sinew" / "myosuite-2.12.2" / "myosuite" / _MYOSUITE[name]
        if not path.exists():
            pytest.skip("MyoSuite's models are not there: clients/setup.sh --models")
    return sinew.Model.from_xml(str(path)), mujoco.MjModel.from_xml_path(str(path))


def states(b: Body, count: int, seed: int) -> dict[str, np.ndarray]:
    """Return states near the model's own."""
    rng, m = np.random.default_rng(seed), b.reference
    qpos = np.tile(m.qpos0, (count, 1))
    for row in qpos:
        mujoco.mj_integratePos(m, row, rng.normal(size=m.nv), 0.05)
    qvel = 0.2 * rng.normal(size=(count, m.nv))
    return {"qpos": qpos, "qvel": qvel, "act": rng.uniform(0, 0.5, (count, m.na)), "time": rng.uniform(0, 1, count)}


def controls(b: Body, count: int, steps: int, seed: int) -> np.ndarray:
    """Return controls between 0 and 1."""
    return np.random.default_rng(seed).uniform(0.05, 0.95, (count, steps, b.model.nu))


def mujoco_states(b: Body, state: dict[str, np.ndarray], ctrl: np.ndarray) -> dict[str, np.ndarray]:
    """Return the trajectories of MuJoCo, stepping one MjData per rollout."""
    m, n, steps = b.reference, *ctrl.shape[:2]
    widths = {"time": 1, "qpos": m.nq, "qvel": m.nv, "act": m.na, "sensordata": m.nsensordata}
    out = {name: np.empty((n, steps + 1, width)) for name, width in widths.items()}
    for i in range(n):
        d = mujoco.MjData(m)
        d.time, d.qpos[:], d.qvel[:], d.act[:] = (state[name][i] for name in ("time", "qpos", "qvel", "act"))
        if "mocap" in state:
            d.mocap_pos[:], d.mocap_quat[:] = state["mocap"][i, :, :3], state["mocap"][i, :, 3:]
        for t in range(steps + 1):
            d.ctrl[:] = ctrl[i, min(t, steps - 1)]
            for name, rows in out.items():
                rows[i, t] = getattr(d, name)
            keep = d.qacc_warmstart.copy()
            mujoco.mj_forward(m, d)
            out["sensordata"][i, t] = d.sensordata
            d.qacc_warmstart[:] = keep
            mujoco.mj_step(m, d)
    out["time"] = out["time"][..., 0]
    return out
