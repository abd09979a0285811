"""``sinew view`` in a browser: it shows what moves, and what is changed there counts at the daemon."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sinew
from browser import Window, wait_until
from programs import Program, sinew_view
from sinew.files import program as program_file

ADAM = "Adam: descent along gradients"
SAMPLING = "Sampling: random tries"
COARSE = "?fixedDpr=0.25"  # a picture of few pixels: software draws it in time


@contextlib.contextmanager
def arm(*arguments: str) -> Iterator[tuple[Any, Any, Program]]:
    """A daemon, a client that looks on, and a page of an arm at that daemon."""
    with sinew.serve(threads=1) as daemon, daemon.client(timeout=60) as client:
        settings = ("--set", "adam_iterations=4", "--set", "adam_rate=0.02", *arguments)
        with sinew_view("--task", "arm_reach", "--endpoint", daemon.endpoint, *settings) as program:
            yield daemon, client, program


@pytest.fixture
def running() -> Iterator[tuple[Any, Any, Program]]:
    with arm() as parts:
        yield parts


@pytest.fixture
def paused() -> Iterator[tuple[Any, Any, Program]]:
    """The same while time stands still: a browser that draws in software has time for its controls."""
    with arm("--paused") as parts:
        yield parts


def session_of(client: Any) -> Any:
    """Return the page's session, as another client sees it."""
    return client.attach(client.statistics().sessions[0].session)


def test_page(look: Callable[[str], Window], running: tuple[Any, Any, Program]) -> None:
    """The arm is seen to move; sliders, planner and weights count at the daemon, and others' changes on the page."""
    _, client, program = running
    window = look(program.address + COARSE)
    window.wait_for_picture()
    wait_until(lambda: window.moves(2), "nothing moves")
    window.wait_for_text("lockstep: the body waits for each plan", "connected", "follows a moving point")
    window.click("Pause")  # the browser has more time for what follows
    window.wait_for_text("paused")
    session = session_of(client)
    _check_settings(window, session)
    _check_planner(window, client, session)

    window.open_tab("Cost")
    window.wait_for_text("Cost of the latest plan", "reach", "effort")
    weight = window.move_slider("along the way", times=2)
    wait_until(lambda: session.get_config().terms[0].weight == pytest.approx(weight), "the weight does not arrive")
    window.save("cost")
    window.open_tab("Plots")
    window.wait_for_text("Time for a plan", "Muscles")
    window.save("plots")
    window.open_tab("Show")
    window.wait_for_text("Ghost of the plan")


def _check_settings(window: Window, session: Any) -> None:
    window.open_tab("Plan")
    rate = window.move_slider("rate", times=3)
    wait_until(lambda: session.get_config().planner["adam_rate"] == pytest.approx(rate), "the rate does not arrive")
    session.tune(adam_rate=0.03)
    wait_until(lambda: window.slider_value("rate") == pytest.approx(0.03), "another's change is not shown")
    window.save("plan")


def _check_planner(window: Window, client: Any, session: Any) -> None:
    """Switch the planner: descent says how large the gradient is, sampling has none."""
    for planner, title, other in (("sampling", SAMPLING, ADAM), ("adam", ADAM, SAMPLING)):
        window.open_tab("Plan")
        window.choose("planner", planner)
        wait_until(lambda name=planner: session.get_config().planner["planner"] == name, "the planner stays")
        window.wait_for_text(title)
        wait_until(lambda title=other: title not in window.text(), "settings of the other planner are shown")
        plans = client.statistics().sessions[0].plans
        window.open_tab("Run")

        def planned(plans: int = plans) -> bool:
            window.click("One step")  # the first one goes on with the plan that was there when time stopped
            return bool(client.statistics().sessions[0].plans > plans)

        wait_until(planned, "there is no plan")
        assert (client.statistics().sessions[0].gradient_norm > 0) == (planner == "adam")


def test_time(look: Callable[[str], Window], running: tuple[Any, Any, Program]) -> None:
    """Buttons and keys stop time, take one step and begin again."""
    _, _, program = running
    window = look(program.address + COARSE)
    window.wait_for_text("as fast as reality")
    window.click("Pause")
    window.wait_for_text("paused", "Go on")

    def stands_still() -> bool:
        before = window_time(window)  # perhaps that of a moment before it was stopped
        time.sleep(1)
        return window_time(window) == before

    wait_until(stands_still, "time goes on")
    now = window_time(window)
    window.tab.locator("canvas").first.focus()
    window.tab.keyboard.press("n")
    wait_until(lambda: window_time(window) > now, "no step was taken")
    window.tab.keyboard.press("r")
    wait_until(lambda: window_time(window) <= now, "it does not begin again")
    began = window_time(window)
    window.tab.keyboard.press("Space")
    wait_until(lambda: window_time(window) > began + 0.1, "it does not go on")
    window.choose("mode", "real time")
    window.wait_for_text("real time: the body waits for nothing")


def window_time(window: Window) -> float:
    """Return the body's time that the page says [s]."""
    found = re.search(r"time\s+([0-9.]+) s", window.text())
    assert found, window.text()
    return float(found[1])


def test_two_pages(look: Callable[[str], Window], paused: tuple[Any, Any, Program]) -> None:
    """What one page changes, the other shows; when one is closed, nothing else ends."""
    _, client, program = paused
    one, other = look(program.address + COARSE), look(program.address + COARSE)
    for window in (one, other):
        window.open_tab("Plan")
    rate = one.move_slider("rate", times=3)
    wait_until(lambda: other.slider_value("rate") == pytest.approx(rate), "the other page shows another rate")
    wait_until(lambda: session_of(client).get_config().planner["adam_rate"] == pytest.approx(rate), "it is not set")
    one.tab.close()
    back = other.move_slider("rate", "ArrowLeft")
    wait_until(lambda: session_of(client).get_config().planner["adam_rate"] == pytest.approx(back), "it is not set")


def start_daemon(folder: Path) -> subprocess.Popen[bytes]:
    """Start a daemon at an address in a folder, and wait until it is there."""
    endpoint = folder / "sinewd"
    endpoint.unlink(missing_ok=True)
    process = subprocess.Popen([str(program_file("sinewd")), f"--endpoint=ipc://{endpoint}", "--threads=1"])
    wait_until(endpoint.exists, "the daemon does not start")
    return process


def test_daemon_lost(look: Callable[[str], Window]) -> None:
    """A daemon that is killed is missed in words; another one at its address goes on with the settings."""
    with tempfile.TemporaryDirectory() as name:
        daemon = start_daemon(Path(name))
        try:
            arguments = ("--task", "arm_reach", "--endpoint", f"ipc://{name}/sinewd")
            with sinew_view(*arguments, "--paused", "--set", "adam_iterations=4", "--set", "adam_rate=0.02") as program:
                window = look(program.address + COARSE)
                window.wait_for_text("connected")
                daemon.kill()
                daemon.wait()
                window.wait_for_text("lost; it is looked for")
                daemon = start_daemon(Path(name))
                window.wait_for_text("connected")
                window.open_tab("Plan")
                assert window.slider_value("rate") == pytest.approx(0.02)
        finally:
            daemon.kill()
            daemon.wait()


def test_ends() -> None:
    """Ctrl-C ends the program with status 0, and what it has started."""
    with sinew_view("--task", "arm_reach") as program:
        found = re.search(r"process (\d+)", program.output())
        began = time.monotonic()
        program.send(signal.SIGINT)
        assert program.wait() == 0
        print(f"ended after {time.monotonic() - began:.2f} s")
        if found is not None:
            assert not Path(f"/proc/{found[1]}").exists()


def test_model_alone(look: Callable[[str], Window], models: Path) -> None:
    """A model without a task is moved by sliders."""
    with sinew_view(models / "arm_reach.xml") as program:
        window = look(program.address + COARSE)
        window.wait_for_picture()
        window.wait_for_text("nobody plans for it")
        window.open_tab("Move")
        window.move_slider("biceps", times=60)
        wait_until(lambda: window.moves(2), "nothing moves")


def test_token(look: Callable[[str], Window], models: Path) -> None:
    """An address for other machines wants its token, and works with it."""
    with sinew_view(models / "arm_reach.xml", "--host", "0.0.0.0") as program:
        address = re.sub(r"//[^:/]+:", "//127.0.0.1:", program.address)
        window = look(address)
        window.wait_for_picture()
        assert "token" not in window.tab.url
        stranger = window.tab.context.browser.new_context().new_page()
        assert stranger.goto(address.partition("?")[0]).status == 403
        stranger.context.close()
