"""A page in a real browser: its picture, its texts, its controls by their labels."""

from __future__ import annotations

import base64
import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import Error, Locator, expect
from playwright.sync_api import Page as Tab

BUILD = Path(__file__).parents[4] / "build"
SIZE = {"width": 1000, "height": 620}
PATIENCE = 60.0  # [s]: how long a change may take on a machine with much else to do

# For pages that are drawn in software, where a frame takes a second: a canvas is drawn when somebody asks for its
# picture, which it then keeps; what a page does beside that goes on.
PATIENT = """
window.drawing = false;
window.drawn = 0;
Object.defineProperty(window, "devicePixelRatio", { get: () => 0.5 });
const request = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = act => setTimeout(() => request(act), 100);
window.cancelAnimationFrame = id => clearTimeout(id);
for (const name of ["clear", "drawArrays", "drawArraysInstanced", "drawElements", "drawElementsInstanced"]) {
  const draw = WebGL2RenderingContext.prototype[name];
  WebGL2RenderingContext.prototype[name] = function (...what) {
    if (window.drawing) window.drawn++, draw.apply(this, what);
  };
}
const get = HTMLCanvasElement.prototype.getContext;
HTMLCanvasElement.prototype.getContext = function (kind, options) {
  return get.call(this, kind, kind.startsWith("webgl") ? { ...options, preserveDrawingBuffer: true } : options);
};
"""

# Lets the largest canvas be drawn once, within 10 s; returns its picture, as the address of its data.
GRAB = """async () => {
  window.drawn = 0, window.drawing = true;
  for (let i = 0; i < 500 && !window.drawn; i++) await new Promise(done => setTimeout(done, 20));
  window.drawing = false;
  const larger = (a, b) => a.width * a.height > b.width * b.height ? a : b;
  const canvas = [...document.querySelectorAll("canvas")].reduce(larger);
  const copy = document.createElement("canvas");
  copy.width = 500, copy.height = 310;
  copy.getContext("2d").drawImage(canvas, 0, 0, copy.width, copy.height);
  return copy.toDataURL("image/png");
}"""


def wait_until(condition: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """Wait until a condition holds; returns its value."""
    until = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < until, f"after {seconds:g} s: {what}"
        time.sleep(0.05)
    return value


def shows_something(pixels: NDArray[np.uint8]) -> bool:
    """Return whether a picture (height, width, 3) is more than its background: many colours on many pixels."""
    colours, counts = np.unique(pixels.reshape(-1, 3), axis=0, return_counts=True)
    return bool(len(colours) > 50 and counts.max() < 0.995 * counts.sum())


def differ(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> bool:
    """Return whether two pictures (height, width, 3) differ on more than one in a thousand of their pixels."""
    change = np.abs(one.astype(int) - other.astype(int)).max(axis=-1)
    return bool((change > 24).mean() > 1e-3)


class Window:
    """A window of a browser with a page that viser serves.

    Attributes
    ----------
    tab
        Playwright's page.
    problems : list of str
        Exceptions of the page's scripts.
    hosts : set of str
        That the page has asked for anything.
    """

    def __init__(self, tab: Tab, address: str) -> None:
        self.tab = tab
        self.problems: list[str] = []
        self.hosts: set[str] = set()
        tab.set_default_timeout(1000 * PATIENCE)
        tab.on("pageerror", lambda error: self.problems.append(str(error)))
        tab.on("request", lambda request: self.hosts.add(request.url.split("/")[2] if "://" in request.url else ""))
        tab.goto(address)
        tab.locator("canvas").first.wait_for(state="attached")
        self._close_warning()

    def _close_warning(self) -> None:
        """Close what viser says where a browser draws in software."""
        try:
            warning = self.tab.get_by_role("alert").filter(has_text="Software WebGL")
            warning.get_by_role("button").click(timeout=5000)
        except Error:
            pass  # this browser has a GPU

    # The picture.

    def pixels(self) -> NDArray[np.uint8]:
        """Return what the canvas shows, without what lies over it (310, 500, 3)."""
        data = base64.b64decode(self.tab.evaluate(GRAB).partition(",")[2])
        seen = Image.open(io.BytesIO(data)).convert("RGBA")
        return np.asarray(Image.alpha_composite(Image.new("RGBA", seen.size, "white"), seen).convert("RGB"))

    def wait_for_picture(self) -> NDArray[np.uint8]:
        """Return a picture once there is something to be seen."""
        pixels: list[NDArray[np.uint8]] = []

        def seen() -> bool:
            pixels.append(self.pixels())
            return shows_something(pixels[-1])

        wait_until(seen, "the canvas is blank")
        return pixels[-1]

    def differs_from(self, before: NDArray[np.uint8]) -> bool:
        """Return whether the picture is another one now."""
        return differ(before, self.pixels())

    def moves(self, seconds: float) -> bool:
        """Return whether the picture changes within a time."""
        first, until = self.pixels(), time.monotonic() + seconds
        while time.monotonic() < until:
            if differ(first, self.pixels()):
                return True
            time.sleep(0.1)
        return False

    def save(self, name: str) -> None:
        """Save a screenshot as build/page-NAME.png, for people."""
        BUILD.mkdir(exist_ok=True)
        self.pixels()
        self.tab.screenshot(path=BUILD / f"page-{name}.png")

    # Texts.

    def text(self) -> str:
        """Return all text that can be seen."""
        return self.tab.locator("body").inner_text()

    def wait_for_text(self, *texts: str, seconds: float = PATIENCE) -> None:
        """Wait until texts can be seen."""
        for text in texts:
            wait_until(lambda text=text: text in self.text(), f"{text!r} is not in:\n{self.text()}", seconds)

    # Controls.

    def labels(self) -> list[str]:
        """Return the labels of the controls that can be seen."""
        return [label.inner_text() for label in self.tab.locator("label[for]").all() if label.is_visible()]

    def control(self, label: str) -> Locator:
        """Return the control with a label."""
        tag = self.tab.locator("label[for]:visible").get_by_text(label, exact=True).first
        tag.wait_for()
        return self.tab.locator(f'[id="{tag.get_attribute("for")}"]')

    def open_tab(self, name: str) -> None:
        """Bring a tab of the panel to the front."""
        self.tab.get_by_role("tab", name=name, exact=True).click()

    def unfold(self, name: str) -> None:
        """Click at the title of a folder."""
        self.tab.get_by_text(name, exact=True).first.click()

    def click(self, name: str) -> None:
        """Click at a button."""
        self.tab.get_by_role("button", name=name, exact=True).first.click()

    def slider(self, label: str) -> Locator:
        """Return the thumb of a slider."""
        return self.control(label).get_by_role("slider")

    def slider_value(self, label: str) -> float:
        """Return what a slider shows."""
        return float(self.slider(label).get_attribute("aria-valuenow") or "nan")

    def move_slider(self, label: str, key: str = "ArrowRight", times: int = 1) -> float:
        """Move a slider by keys and return what it shows then."""
        thumb = self.slider(label)
        thumb.focus()
        before = self.slider_value(label)
        for _ in range(times):
            thumb.press(key)
        wait_until(lambda: self.slider_value(label) != before, f"{label} stays at {before}")
        return self.slider_value(label)

    def choose(self, label: str, option: str) -> None:
        """Choose an option of a list."""
        self.control(label).click()
        self.tab.get_by_role("option", name=option, exact=True).click()
        expect(self.control(label)).to_have_value(option)

    def chosen(self, label: str) -> str:
        """Return the option of a list that is chosen."""
        return self.control(label).input_value()
