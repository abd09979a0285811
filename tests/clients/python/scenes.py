"""Models that the tests of the Python package share."""

from __future__ import annotations

import re
from pathlib import Path

import mujoco

ROOT = Path(__file__).parents[3]

# Names of the terms of the task arm_reach, in their order.
_COST = (ROOT / "planner/tasks/arm_reach.yaml").read_text().partition("\nsuccess:")[0]
REACH_TERMS = tuple(re.findall(r"^  - name: (\w+)", _COST, re.MULTILINE))

PENDULUM = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <body pos="0 0 1">
      <joint name="hinge" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.02"/>
    </body>
  </worldbody>
  <actuator><motor name="motor" joint="hinge" ctrlrange="-1 1"/></actuator>
</mujoco>
"""

# Something of every kind: free, ball, hinge and slide joints, a mocap body, tendons of both kinds, sensors, keyframes,
# an equality, activations, contacts.
ZOO = """
<mujoco>
  <option timestep="0.003" integrator="implicitfast" iterations="50" gravity="0 0.1 -9.8"/>
  <default><geom density="700"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 0.1"/>
    <body name="pointer" mocap="true" pos="0 1 2"><geom size="0.05" contype="0" conaffinity="0"/></body>
    <body name="crate" pos="0 0 0.3">
      <freejoint name="float"/>
      <geom name="box" type="box" size="0.1 0.15 0.2" friction="0.7 0.01 0.001"/>
      <site name="corner" pos="0.1 0.1 0.2"/>
    </body>
    <body name="upper" pos="1 0 1.2">
      <joint name="shoulder" type="ball" damping="0.3"/>
      <geom name="bone" type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
      <site name="insertion" pos="0.2 0 0.05"/>
      <body name="lower" pos="0.3 0 0">
        <joint name="elbow" axis="0 1 0" range="-60 100" limited="true" damping="0.2" armature="0.01"/>
        <joint name="rail" type="slide" axis="1 0 0" stiffness="20" springref="0.02"/>
        <geom name="fist" pos="0.2 0 0" size="0.06"/>
        <site name="tip" pos="0.3 0 0"/>
      </body>
    </body>
  </worldbody>
  <tendon>
    <fixed name="coupling"><joint joint="elbow" coef="0.5"/><joint joint="rail" coef="2"/></fixed>
    <spatial name="rope" limited="true" range="0 2"><site site="insertion"/><site site="tip"/></spatial>
  </tendon>
  <equality><joint name="geared" joint1="elbow" joint2="rail" polycoef="0 0.1 0 0 0"/></equality>
  <actuator>
    <motor name="direct" joint="elbow" gear="3" ctrllimited="true" ctrlrange="-2 2"/>
    <general name="filtered" tendon="coupling" dyntype="filter" dynprm="0.05" gainprm="4"/>
    <position name="servo" joint="rail" kp="30"/>
    <muscle name="muscle" tendon="rope" lengthrange="0.1 0.6"/>
  </actuator>
  <sensor>
    <jointpos name="angle" joint="elbow"/>
    <framepos name="where" objtype="site" objname="tip"/>
    <framequat name="turned" objtype="body" objname="crate"/>
  </sensor>
  <keyframe>
    <key name="bent" time="0.5" qpos="0 0 0.19 1 0 0 0 0.9 0.1 0.2 0.3 0.4 0.02"
         qvel="0.1 0 0 0 0 0.3 0.2 0.1 0 0.4 -0.1" act="0.2 0.3" ctrl="0.1 0.2 0.3 0.4" mpos="0.1 0.2 0.3"/>
    <key name="straight"/>
  </keyframe>
</mujoco>
"""


def models() -> list[tuple[str, mujoco.MjModel]]:
    """Return models of MuJoCo of every kind, by name."""
    files = {
        "arm_reach": ROOT / "physics/models/arm_reach.xml",
        "billiard": ROOT / "physics/models/billiard.xml",
    }
    texts = {"pendulum": PENDULUM, "zoo": ZOO}
    return [
        *((name, mujoco.MjModel.from_xml_string(text)) for name, text in texts.items()),
        *((name, mujoco.MjModel.from_xml_path(str(file))) for name, file in files.items()),
    ]
