"""Fixtures of tests with a browser: Debian's chromium, headless, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from browser import Window

pytest.importorskip("mujoco")
pytest.importorskip("mjviser")
playwright = pytest.importorskip("playwright.sync_api")

# Drawn in software, which any machine can, but for what lies over the canvas: that takes the same software ten times as
# long as the browser's own. Nothing but this machine's own addresses is found.
ARGUMENTS = [
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-gpu-compositing",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Start a browser that all tests share."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("there is no chromium: clients/setup.sh knows how Debian calls it")
    # As root it has no sandbox, and says so.
    alone = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as drive:
        browser = drive.chromium.launch(executable_path=program, args=ARGUMENTS + alone)
        yield browser
        browser.close()


@pytest.fixture
def look(chromium: Any) -> Iterator[Callable[[str], Window]]:
    """Open windows: ``look(address)``. Each is a user of its own; at the end none may have had an exception."""
    from browser import PATIENT, SIZE, Window

    windows: list[Window] = []

    def open_window(address: str) -> Window:
        context = chromium.new_context(viewport=SIZE)
        context.add_init_script(PATIENT)
        windows.append(Window(context.new_page(), address))
        return windows[-1]

    yield open_window
    for window in windows:
        window.tab.context.close()
        assert window.problems == []
