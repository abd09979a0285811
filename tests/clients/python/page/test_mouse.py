"""Hands on the 3D view: a drag pushes a body or moves a target, for all who look."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import mujoco
import numpy as np
import pytest
import sinew
import viser
from browser import Window, wait_until
from sinew.client import schema
from sinew.client.messages import Trajectory
from sinew.loop.source import Frame
from sinew.view.scene import Scene

TARGET = np.array([0.45, 0.0, 1.45])


class Shown:
    """An arm that stands, on a page, and what came back from those who look."""

    def __init__(self) -> None:
        self.server = viser.ViserServer(host="127.0.0.1", port=0, verbose=False)
        self.model = mujoco.MjModel.from_xml_path(str(sinew.share("models/arm_reach.xml")))
        self.data = mujoco.MjData(self.model)
        self.data.qpos[:] = 0.5, 1.2
        mujoco.mj_forward(self.model, self.data)
        filled = schema.load().new("TaskDescription")
        term = {"name": "reach", "quantity": "position", "objects": [{"kind": "site", "name": "hand"}]}
        schema.fill(filled, {"initial": {"qpos": self.data.qpos}, "terms": [{**term, "target_size": 3}]})
        self.scene = Scene(self.server, self.model, schema.convert(filled))
        self.pushes: list[tuple[int, Any, Any]] = []
        self.wishes: list[tuple[str, Any]] = []
        self.scene.on_push = lambda *push: self.pushes.append(push)
        self.scene.on_target = lambda *wish: self.wishes.append(wish)
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        m, rows = self.model, np.tile(self.data.qpos, (2, 1))
        states = Trajectory(np.array([0, 1.0]), rows, 0 * rows, np.zeros((2, m.na)), {"reach": np.tile(TARGET, (2, 1))})
        zeros = (np.zeros(m.nv), np.zeros(m.na), np.zeros(m.nu), np.zeros((0, 7)))
        frame = Frame(1, 0.0, self.data.qpos.copy(), *zeros, predicted=states)
        while not self.over.wait(0.05):
            self.scene.show(frame)

    def close(self) -> None:
        self.over.set()
        self.thread.join()
        self.server.stop()

    def place(self, window: Window, point: Any) -> tuple[float, float]:
        """Return where a point of the world is in a window, by the camera that its page tells."""
        (client,) = self.server.get_clients().values()
        camera = client.camera
        turn = np.empty(9)
        mujoco.mju_quat2Mat(turn, camera.wxyz)
        x, y, z = turn.reshape(3, 3).T @ (np.asarray(point) - camera.position)
        box = window.tab.locator("canvas").first.bounding_box()
        assert box is not None
        scale = box["height"] / 2 / np.tan(camera.fov / 2) / z
        return box["x"] + box["width"] / 2 + scale * x, box["y"] + box["height"] / 2 + scale * y


@pytest.fixture
def shown() -> Iterator[Shown]:
    shown = Shown()
    yield shown
    shown.close()


def drag(window: Window, start: tuple[float, float], way: tuple[float, float], done: Callable[[], bool]) -> None:
    """Drag by the left button until it has come through."""
    mouse = window.tab.mouse
    mouse.move(*start)
    mouse.down()

    def moved() -> bool:
        for part in (0.5, 1.0):
            mouse.move(start[0] + part * way[0], start[1] + part * way[1])
        return done()

    wait_until(moved, "the drag does not come through")
    mouse.up()


def test_the_mouse_pushes_and_moves_targets(shown: Shown, look: Callable[[str], Window]) -> None:
    window = look(f"http://127.0.0.1:{shown.server.get_port()}")
    window.wait_for_picture()

    window.tab.keyboard.down("Control")
    middle = shown.data.geom("ulna").xpos
    drag(window, shown.place(window, middle), (0, -80), lambda: bool(shown.pushes))
    wait_until(lambda: shown.pushes[-1][1] is None, "the push does not end")
    window.tab.keyboard.up("Control")
    body, point, force = next(x for x in reversed(shown.pushes) if x[1] is not None)
    assert body == shown.model.body("forearm").id
    held = shown.data.xpos[body] + shown.data.xmat[body].reshape(3, 3) @ point
    assert np.linalg.norm(held - middle) < 0.03, "where the mouse took it, which is on the surface"
    assert force[2] > 0 and abs(force[0]) < 0.5 * force[2], "upwards on the screen"
    assert shown.wishes == []

    drag(window, shown.place(window, TARGET), (0, 60), lambda: bool(shown.wishes))
    begin = np.array(shown.place(window, TARGET))

    def there() -> bool:
        way = np.array(shown.place(window, shown.wishes[-1][1])) - begin
        return bool(np.allclose(way, (0, 60), atol=6))

    wait_until(there, "the target is not where the mouse let it go")
    name, value = shown.wishes[-1]
    assert name == "reach"
    assert value[2] < TARGET[2] - 0.02, "downwards on the screen"
