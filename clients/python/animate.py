#!/usr/bin/env python3
"""Makes an animated picture of a task: the body under plans of a private daemon that it waits for (lockstep).

  python clients/python/animate.py --picture hand_balls.webp
  python clients/python/animate.py --task arm_reach --seconds 3 --speed 1 --picture arm.webp
  python clients/python/animate.py --task walker --execute 4 --strip 4 --costs walker.txt --picture walker.webp

With --strip the picture is still: so many moments of the run side by side, from its start to its end. --costs keeps the
cost over time, two columns for gnuplot.

Muscles are coloured by their activation, from blue at rest to dark red; thin lines are where the plan moves what the
cost looks at. MuJoCo draws it: without a screen, MUJOCO_GL=egl or osmesa says by what (Debian: libegl1 or libosmesa6).
The same arguments make the same motion. Needs the extra "view", and clients/setup.sh --models for MyoSuite's hand.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

# The folder of this file has the sources of the package, without its module: the installed one is meant.
sys.path[:] = [x for x in sys.path if Path(x).resolve() != Path(__file__).resolve().parent]
if not os.environ.get("DISPLAY"):
    os.environ.setdefault("MUJOCO_GL", "egl")
import mujoco  # noqa: E402
import numpy as np  # noqa: E402
from PIL import Image  # noqa: E402

import sinew  # noqa: E402
from sinew.loop.body import Body  # noqa: E402
from sinew.loop.lockstep import lockstep  # noqa: E402
from sinew.view.camera import Sight  # noqa: E402
from sinew.view.colors import term_color  # noqa: E402
from sinew.view.motion import Kinematics, Motion, find_elements  # noqa: E402
from sinew.view.tendons import tendon_colors  # noqa: E402

if TYPE_CHECKING:
    from sinew.client.messages import TaskDescription

POSES = 24  # of a line along the plan
SMOOTH = 2  # pixels of the drawing for one of the picture, each way


class Painter:
    """Draws a body and its plan."""

    def __init__(self, arguments: argparse.Namespace, task: TaskDescription, body: Body) -> None:
        self.model = body.model
        found = [(i, x) for i, term in enumerate(task.terms) for x in find_elements(self.model, term.objects)]
        self.colors = [np.append(np.array(term_color(i)) / 255, 1.0) for i, _ in found]
        self.kinematics = Kinematics(self.model, [x for _, x in found])
        points = np.array([x.position(body.data) for _, x in found]).reshape(-1, 3)
        sight = Sight(self.model, body.data, points)
        self._clear(body, sight)
        width, height = arguments.size
        visual = self.model.vis.global_
        visual.offwidth, visual.offheight = SMOOTH * width, SMOOTH * height
        self.renderer = mujoco.Renderer(self.model, SMOOTH * height, SMOOTH * width, max_geom=5000)
        self.size = (width, height)
        self.width = 0.0022 * arguments.distance * sight.size  # as thick in every picture
        self.camera = mujoco.MjvCamera()
        self.camera.lookat[:] = sight.center
        self.elements = [x for _, x in found]
        self.ahead = sight.center - self._middle(body.data)
        self.camera.distance = arguments.distance * sight.size
        self.camera.azimuth, self.camera.elevation = arguments.azimuth, arguments.elevation
        self.follow = arguments.follow
        self.has_sky = bool((self.model.tex_type == mujoco.mjtTexture.mjTEXTURE_SKYBOX).any())

    def _clear(self, body: Body, sight: Sight) -> None:
        """Leave out what stands far away, and paint the sky white."""
        model = self.model
        for fixed in np.flatnonzero(model.body_weldid == 0):
            if not sight.has(model, body.data, int(fixed)):
                model.geom_rgba[model.geom_bodyid == fixed, 3] = 0
                model.geom_matid[model.geom_bodyid == fixed] = -1
        for texture in np.flatnonzero(model.tex_type == mujoco.mjtTexture.mjTEXTURE_SKYBOX):
            first = int(model.tex_adr[texture])
            count = int(model.tex_width[texture] * model.tex_height[texture] * model.tex_nchannel[texture])
            model.tex_data[first : first + count] = 255
        model.tendon_matid[:] = -1
        model.tendon_width[:] *= 1.5

    def _middle(self, data: mujoco.MjData) -> np.ndarray:
        """Return the middle of what the cost looks at, or the centre of mass of all where that is no place."""
        places = [x.position(data) for x in self.elements]
        return np.asarray(np.mean(places, axis=0) if places else data.subtree_com[0])

    def draw(self, data: mujoco.MjData, motion: Motion | None) -> Image.Image:
        """Return a picture of a body and of where its plan goes."""
        self.model.tendon_rgba[:, :3] = tendon_colors(self.model, data) / 255
        self.camera.lookat[:] += self.follow * (self._middle(data) + self.ahead - self.camera.lookat)
        self.renderer.update_scene(data, self.camera)
        scene = self.renderer.scene
        scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
        scene.flags[mujoco.mjtRndFlag.mjRND_HAZE] = 0
        if motion is not None:
            for i, color in enumerate(self.colors):
                self._line(scene, motion.points[:, i], color)
        pixels = self.renderer.render().copy()
        if not self.has_sky:
            pixels[self._is_empty()] = 255
        return Image.fromarray(pixels).resize(self.size, Image.Resampling.LANCZOS)

    def _is_empty(self) -> np.ndarray:
        """Return where the scene shows nothing: (height, width), true there."""
        self.renderer.enable_depth_rendering()
        depth = self.renderer.render()
        self.renderer.disable_depth_rendering()
        far = self.model.vis.map.zfar * self.model.stat.extent
        return np.asarray(depth > 0.99 * far)

    def _line(self, scene: mujoco.MjvScene, points: np.ndarray, color: np.ndarray) -> None:
        """Add a line through points (n, 3) to a scene."""
        for start, end in itertools.pairwise(points):
            geom = scene.geoms[scene.ngeom]
            shape = mujoco.mjtGeom.mjGEOM_CAPSULE
            mujoco.mjv_initGeom(geom, shape, np.zeros(3), np.zeros(3), np.eye(3).ravel(), color.astype(np.float32))
            mujoco.mjv_connector(geom, shape, self.width, start, end)
            scene.ngeom += 1


def pictures(arguments: argparse.Namespace, costs: TextIO | None) -> Iterator[Image.Image]:
    """Return the pictures of a run, `fps` a second of the animation or `strip` in all; write the cost over time."""
    with sinew.serve() as daemon, daemon.client(timeout=300) as client:
        task = client.describe_task(arguments.task)
        body = Body.of_task(task)
        painter = Painter(arguments, task, body)
        with client.open(arguments.task, seed=arguments.seed) as session:
            body.reset(session.initial)
            steps = round(arguments.seconds / body.timestep)
            apart = arguments.seconds / (arguments.strip - 1) if arguments.strip else arguments.speed / arguments.fps
            motion, due, end = None, 0.0, steps * body.timestep
            for step, moment in enumerate(lockstep(body, session, steps, arguments.execute, states=True)):
                if moment.plan is not None:
                    motion = painter.kinematics.along(moment.plan.states, POSES, moment.state.mocap)
                    if costs is not None:
                        print(f"{step * body.timestep:.6g} {moment.plan.cost_now:.6g}", file=costs)
                if step * body.timestep >= due - 1e-9:
                    due = min(due + apart, end) if due < end else float("inf")
                    mujoco.mj_forward(body.model, body.data)
                    yield painter.draw(body.data, motion)
                    print(f"\r{step * body.timestep:.2f} s of {arguments.seconds:g} s", end="", file=sys.stderr)
    print(file=sys.stderr)


def side_by_side(images: list[Image.Image]) -> Image.Image:
    """Return one picture of several, from left to right."""
    strip = Image.new("RGB", (sum(x.width for x in images), images[0].height))
    for i, image in enumerate(images):
        strip.paste(image, (i * image.width, 0))
    return strip


def two_or_more(text: str) -> int:
    """Return a count of two or more."""
    if (value := int(text)) < 2:
        raise argparse.ArgumentTypeError(f"{value}, at least 2 is wanted")
    return value


def main() -> int:
    """Make the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", type=sinew.files.writable, required=True, help="file to write: .webp or .gif")
    parser.add_argument("--task", default="hand_balls", help="of the daemon (hand_balls)")
    parser.add_argument("--seed", type=int, default=2, help="of the run (2)")
    parser.add_argument("--seconds", type=float, default=2.2, help="of the body's time (2.2)")
    parser.add_argument("--speed", type=float, default=0.5, help="the body's seconds in a second (0.5)")
    parser.add_argument("--fps", type=int, default=20, help="pictures a second (20)")
    parser.add_argument("--size", type=int, nargs=2, default=(480, 360), metavar="PIXELS", help="width, height")
    parser.add_argument("--azimuth", type=float, default=150.0, help="of the camera [degrees]")
    parser.add_argument("--elevation", type=float, default=-50.0, help="of the camera [degrees]")
    parser.add_argument("--distance", type=float, default=2.7, help="of the camera, in radii of what moves")
    parser.add_argument(
        "--follow",
        type=float,
        default=0.1,
        help="part of the camera's way to what the cost looks at, in one picture (0.1)",
    )
    parser.add_argument("--execute", type=int, default=16, help="time steps between two plans (16)")
    parser.add_argument(
        "--strip", type=two_or_more, default=0, metavar="N", help="N moments side by side, a still picture"
    )
    parser.add_argument("--costs", type=Path, help="file to write the cost over time to")
    parser.add_argument("--quality", type=int, default=70, help="of the file, 0 to 100 (70)")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        costs = stack.enter_context(arguments.costs.open("w")) if arguments.costs else None
        first, *others = pictures(arguments, costs)
    if arguments.strip:
        side_by_side([first, *others]).save(arguments.picture, quality=arguments.quality)
        return 0
    first.save(
        arguments.picture,
        save_all=True,
        append_images=others,
        duration=round(1000 / arguments.fps),
        loop=0,
        quality=arguments.quality,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
