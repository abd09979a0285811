"""The browser and what is measured of its pictures, on pages of mjviser and viser alone."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from browser import Window, differ, shows_something, wait_until
from programs import Program

ARM = """
import math, sys, mujoco, mjviser, viser
model = mujoco.MjModel.from_xml_path(sys.argv[1])
data = mujoco.MjData(model)
mujoco.mj_resetDataKeyframe(model, data, 0)
server = viser.ViserServer(host="127.0.0.1", port=0, verbose=False)
print(f"http://127.0.0.1:{server.get_port()}", flush=True)
def step(model, data):
    data.ctrl[:] = 0.3 + 0.3 * math.sin(3 * data.time)
    mujoco.mj_step(model, data)
mjviser.Viewer(model, data, step_fn=step, server=server).run()
"""
NOTHING = """
import time, viser
server = viser.ViserServer(host="127.0.0.1", port=0, verbose=False)
server.gui.configure_theme(control_layout="fixed")
slider = server.gui.add_slider("width", 0, 10, 1, 3)
chosen = server.gui.add_dropdown("colour", ("red", "green"))
said = server.gui.add_markdown("")
slider.on_update(lambda _: setattr(said, "content", f"width is {slider.value}"))
chosen.on_update(lambda _: setattr(said, "content", f"colour is {chosen.value}"))
print(f"http://127.0.0.1:{server.get_port()}", flush=True)
time.sleep(600)
"""


def test_arm(look: Callable[[str], Window], models: Path) -> None:
    """An arm that swings is seen, and is seen to move; paused it rests."""
    with Program(sys.executable, "-c", ARM, models / "arm_reach.xml") as program:
        window = look(program.address)
        window.wait_for_picture()
        wait_until(lambda: window.moves(2), "nothing moves")
        window.save("mjviser")
        window.click("Pause")
        window.wait_for_text("Paused")
        wait_until(lambda: not window.moves(2), "it moves while it is paused")
        assert window.hosts == {program.address.split("/")[2]}


def test_nothing(look: Callable[[str], Window]) -> None:
    """A page without a scene is blank and stays so; its controls are found and moved."""
    with Program(sys.executable, "-c", NOTHING) as program:
        window = look(program.address)
        window.wait_for_text("width")
        pixels = window.pixels()
        assert not shows_something(pixels)
        assert not window.moves(2)
        assert window.labels() == ["width", "colour"]
        assert window.move_slider("width", times=4) == 7
        window.wait_for_text("width is 7")
        window.choose("colour", "green")
        window.wait_for_text("colour is green")
        assert window.chosen("colour") == "green"
        assert not differ(pixels, window.pixels())
