"""For programs that use MuJoCo's Python package: the same objects, moved by our engine.

>>> import mujoco
>>> import sinew.mujoco
>>> m = mujoco.MjModel.from_xml_path("hand.xml")
>>> d = mujoco.MjData(m)
>>> sinew.mujoco.step(m, d, nstep=10)  # as mujoco.mj_step
>>> with sinew.mujoco.stepping():  # in environments, too
...     environment.step(action)
>>> state, sensordata = sinew.mujoco.rollout(m, [d, mujoco.MjData(m)], initial_state, control)  # as mujoco.rollout

Models are converted once and kept as long as their ``MjModel``. An edit of an ``MjModel`` takes effect in the next
call, but for the numbers of its meshes: see `forget`.
"""

from sinew.mujoco._models import forget, model_of
from sinew.mujoco._rollout import Rollout, rollout, shutdown_persistent_pool
from sinew.mujoco._stepping import step, stepping, use
from sinew.mujoco._tracking import Tracking

__all__ = [
    "Rollout",
    "Tracking",
    "forget",
    "model_of",
    "rollout",
    "shutdown_persistent_pool",
    "step",
    "stepping",
    "use",
]
