"""Where contacts from distance help, and where they mislead: a pusher, a ball, and a wall between them or not.

The pusher glides along the floor towards the ball. Printed is the derivative of the ball's place after one second by
the pusher's speed: exact, and with contacts from distance. Before a touch the exact one is zero, and the other says
"faster", which is right where nothing is in between. It says so through a wall, too, where no speed is of use.

    python cfd_wall.py
"""

import numpy as np

import sinew

STEPS = 400  # 1 s
WALL = '<geom name="wall" type="box" size=".02 .4 .3" pos="-.35 0 .3"/>'
SCENE = """
<mujoco>
  <option timestep="0.0025"/>
  <default><geom solref="0.02 1" solimp="0.1 0.95 0.001 0.5 2"/></default>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    WALL
    <body name="pusher" pos="-1 0 .1">
      <joint type="slide" axis="1 0 0"/>
      <joint type="slide" axis="0 1 0"/>
      <geom size=".1" mass="1"/>
    </body>
    <body name="ball" pos="0 0 .1"><freejoint/><geom size=".1" mass="1"/></body>
  </worldbody>
</mujoco>
"""


def slope(model: sinew.Model, speed: float, cfd: sinew.CFD | None) -> tuple[float, float]:
    """Return where the ball is at the end [m], and the derivative of that by the pusher's speed [s]."""
    qvel = np.zeros(model.nv)
    qvel[0] = speed
    motion = sinew.rollout(model, {"qpos": model.qpos0, "qvel": qvel}, nstep=STEPS, cfd=cfd)
    bar = np.zeros_like(motion.qpos)
    bar[-1, 2] = 1  # x of the ball
    return float(motion.qpos[-1, 2]), float(sinew.rollout_vjp(motion, qpos=bar).qvel[0])


def main() -> None:
    print("between   speed [m/s]   ball at [m]   exact slope [s]   with contacts from distance [s]")
    for between, wall in (("nothing", ""), ("a wall", WALL)):
        model = sinew.Model.from_string(SCENE.replace("WALL", wall))
        for speed in (0.3, 0.5, 0.9, 2.0):
            place, exact = slope(model, speed, None)
            _, distant = slope(model, speed, sinew.CFD())
            print(f"{between:8} {speed:11.1f} {place:14.3f} {exact:15.3f} {distant:20.3f}")


if __name__ == "__main__":
    main()
