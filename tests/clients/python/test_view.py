"""The page's panels, its server and its command, without a browser; with one: page/test_view_page.py."""

from __future__ import annotations

import http.client
import math
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sinew
from sinew.errors import ArgumentError, RefusedError

pytest.importorskip("viser")

from sinew import cli
from sinew.client.messages import GateValue, ObjectName
from sinew.view import guard
from sinew.view.controls import number
from sinew.view.gate import gate_bar, gate_words
from sinew.view.panel_cost import CostPanel
from sinew.view.panel_plan import PlanPanel
from sinew.view.panel_plots import thinned
from sinew.view.panel_run import RunPanel
from sinew.view.panel_status import words
from sinew.view.register import Register

from panels import Gui, Visitor
from sources import FakeSource


def wait(done: Callable[[], Any]) -> None:
    """Wait until something is so."""
    until = time.monotonic() + 60
    while not done():
        assert time.monotonic() < until
        time.sleep(0.005)


class SlowSource(FakeSource):
    """A source whose daemon takes its time, and refuses a rate of 0.5."""

    def __init__(self) -> None:
        super().__init__()
        self.free = threading.Event()
        self.free.set()
        self.asked = threading.Event()

    def tune(self, **changes: Any) -> Any:
        self.asked.set()
        assert self.free.wait(60)
        if changes.get("adam_rate") == 0.5:
            self.calls.append(("refused", (), changes))
            raise RefusedError("adam_rate: 0.5 is too much", "INVALID")
        return super().tune(**changes)

    def tuned(self) -> list[dict[str, Any]]:
        """Return what was asked for, without what was left as it is."""
        calls = [arguments for name, _, arguments in self.calls if name == "tune"]
        return [{name: value for name, value in call.items() if value is not None} for call in calls]


@pytest.fixture
def source() -> SlowSource:
    return SlowSource()


@pytest.fixture
def register(source: SlowSource) -> Iterator[Register]:
    register = Register(source)
    yield register
    register.tuner.close()


@pytest.fixture
def gui(source: SlowSource, register: Register) -> Gui:
    """A page's panels of plan and cost."""
    gui = Gui()
    PlanPanel(gui, source, register, source.settings())
    CostPanel(gui, register, source.task, source.settings())
    return gui


def test_every_setting_has_a_control(gui: Gui, source: SlowSource) -> None:
    """Each has one, with the daemon's choices, bounds, value and help."""
    for info in source.settings().table:
        label = info.name.removeprefix("adam_")
        found = [handle for handle in gui.handles.values() if handle.label == label]
        assert len(found) == 1, info.name
        assert found[0].value == source.settings().planner[info.name]
        assert info.text in found[0].hint and info.name in found[0].hint
        if info.choices:
            assert found[0].options == info.choices
    assert gui.handles["Adam: descent along gradients/rate"].max <= 1
    assert gui.handles["reach/along the way"].value == 1.0


def test_changes_reach_the_source(gui: Gui, source: SlowSource) -> None:
    visitor = Visitor()
    gui.handles["Adam: descent along gradients/rate"].change(0.25, visitor)
    gui.handles["planner"].change("sampling", visitor)
    gui.handles["effort/along the way"].change(0.004, visitor)
    gui.handles["effort/at the end"].change(0.5, visitor)
    gui.handles["reach/target"].change((0.1, 0.2, 0.3), visitor)
    wait(lambda: source.settings().planner["adam_rate"] == 0.25)
    wait(lambda: any("targets" in call for call in source.tuned()))
    asked: dict[str, Any] = {}
    for call in source.tuned():
        asked.update(call)
    assert asked["planner"] == "sampling"
    assert asked["weights"] == {"effort": 0.004} and asked["terminal_weights"] == {"effort": 0.5}
    np.testing.assert_array_equal(asked["targets"]["reach"], [0.1, 0.2, 0.3])
    assert not visitor.told


WHAT = "counts while position of site hand, z is above 1.25 m (opens within 0.02)"


def test_gates_are_said_and_drawn(source: SlowSource, register: Register) -> None:
    """The panel says what a gate looks at, then whether it is open in the state of the latest plan."""
    gui = Gui()
    panel = CostPanel(gui, register, source.task, source.settings())
    said = next(text for text in gui.texts if WHAT in text.content)
    assert "<b>" not in said.content  # no plan yet
    for factor, state in ((0.96, "open"), (0.5, "open by 50 %"), (0.04, "closed")):
        now = GateValue("effort", 1.2345678, factor)
        panel.refresh(replace(source.latest(), plan=replace(source.latest().plan, gates=(now,))))
        assert f"<b>Gate {state}</b>: 1.235 m; {WHAT}" in said.content
        assert f"width:{100 * factor:.0f}%" in said.content
    panel.refresh(replace(source.latest(), plan=replace(source.latest().plan, gates=())))  # of an older daemon
    assert "<b>" not in said.content


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"side": "below"}, "counts while position of site hand, z is below 1.25 m (opens within 0.02)"),
        ({"side": "", "norm": "squared", "axis": ""}, "multiplied by the squared norm of position of site hand"),
        (
            {"objects": tuple(ObjectName("joint", name) for name in ("a", "b", "c", "", "e")), "axis": "xz"},
            "position of joint a, joint b, joint c and 2 more, x and z is above 1.25 m",
        ),
        ({"target_kind": "element", "unit": ""}, "of site hand, z from its target is above 1.25 (opens within 0.02)"),
        ({"quantity": "orientation", "norm": "euclidean", "unit": "quaternion"}, "is above 1.25 rad (opens"),
        ({"norm": "squared"}, "is above 1.25 (opens"),
        ({"unit": "rad, m"}, "is above 1.25 (opens"),
        ({"objects": (ObjectName("site", ""),)}, "counts while position of a site, z is"),
    ],
)
def test_words_of_gates(source: SlowSource, change: dict[str, Any], words: str) -> None:
    gate = replace(source.task.terms[1].gate, **change)
    assert words in gate_words(gate)
    bar = gate_bar(gate, GateValue("effort", 3.0, 3.0))
    assert ("times 3</b>" in bar) == (not gate.side) and ("height" in bar) == bool(gate.side)


def test_newest_value_wins(gui: Gui, source: SlowSource, register: Register) -> None:
    """What a slider passed while the daemon was busy never leaves."""
    rate = gui.handles["Adam: descent along gradients/rate"]
    source.free.clear()
    for value in np.linspace(0.1, 0.4, 50):
        rate.change(float(value), Visitor())
    time.sleep(0.02)
    source.free.set()
    wait(lambda: source.settings().planner["adam_rate"] == 0.4)
    assert len(source.tuned()) <= 2


def test_refused_value_goes_back(gui: Gui, source: SlowSource) -> None:
    """The daemon's words are shown, the old value comes back, and nothing else is lost."""
    rate, visitor = gui.handles["Adam: descent along gradients/rate"], Visitor()
    source.free.clear()
    source.asked.clear()
    gui.handles["planner"].change("sampling", visitor)
    assert source.asked.wait(60)
    rate.change(0.5, visitor)
    gui.handles["reach/along the way"].change(3.0, visitor)
    source.free.set()
    wait(lambda: visitor.told)
    assert visitor.told == ["adam_rate: 0.5 is too much"]
    assert rate.value == 0.01
    wait(lambda: source.settings().terms[0].weight == 3.0)


def test_shows_what_others_change(gui: Gui, source: SlowSource, register: Register) -> None:
    """Another client's change appears, but not under the mouse of somebody who is changing it."""
    rate = gui.handles["Adam: descent along gradients/rate"]
    source.tune(adam_rate=0.125)
    register.refresh(source.latest().config)
    assert rate.value == 0.125
    source.free.clear()
    rate.change(0.3, Visitor())
    register.refresh(source.latest().config)
    assert rate.value == 0.3
    source.free.set()
    wait(lambda: source.settings().planner["adam_rate"] == 0.3)


def test_session_setting_begins_anew(gui: Gui, source: SlowSource) -> None:
    gui.handles["horizon"].change(128, Visitor())
    assert ("reopen", (), {"horizon": 128}) not in source.calls
    gui.handles["Begin anew with this horizon"].click(Visitor())
    assert ("reopen", (), {"horizon": 128}) in source.calls


@pytest.mark.parametrize(
    ("value", "low", "high", "kind"),
    [
        (0.9, 0.0, 1.0, "slider"),
        (0.01, 1e-9, 10.0, "slider"),
        (1e-8, 1e-15, 1.0, "text"),
        (1.0, 1e-12, 1e12, "slider"),
        (32, 0.0, 10000.0, "slider"),
        (0, 0.0, 4096.0, "slider"),
        (0.0, 0.0, math.inf, "slider"),
    ],
)
def test_slider_is_of_use(value: float, low: float, high: float, kind: str) -> None:
    """A value stands neither at the begin nor at the end of its slider, unless it is a bound."""
    gui = Gui()
    number(gui, "x", value, low, high, "", lambda value, client: None)
    handle = gui.handles["x"]
    assert handle.kind == kind
    if kind == "slider":
        assert low <= handle.min <= value < handle.max <= high
        assert value in (low, high) or 0.05 < value / handle.max < 0.95
        assert handle.step <= (handle.max - handle.min) / 20
        assert type(handle.value) is type(value)


def test_slider_follows_its_value() -> None:
    gui = Gui()
    control = number(gui, "x", 1.0, 0.0, math.inf, "", lambda value, client: None)
    handle = gui.handles["x"]
    handle.change(handle.max, Visitor())
    control.rest()
    end = handle.max
    assert handle.value == end, "it must not run away under the mouse"
    handle.change(end, Visitor(), ago=5)
    control.rest()
    assert handle.max >= 3 * end
    control.show(1e6)
    assert handle.value == 1e6 < handle.max
    handle.change(2.0, Visitor(), ago=5)
    control.rest()
    assert 2 < handle.max < 20


def test_a_change_on_its_way_stays() -> None:
    """What a page has set is not overwritten by what was in force before anybody was told."""
    gui, changes = Gui(), []
    control = number(gui, "rate", 0.25, 0.0, 1.0, "", lambda value, client: changes.append(value))
    handle = gui.handles["rate"]
    handle.arrive(0.5)
    control.show(0.25)
    assert handle.value == 0.5
    handle.change(0.5, Visitor())
    assert changes == [0.5]
    control.show(0.75)
    assert handle.value == 0.75
    handle.arrive(0.5, ago=60)  # its page has gone
    control.show(0.75)
    assert handle.value == 0.75


def test_written_number() -> None:
    """A number counts once nobody writes any more; what is none comes back, with words."""
    gui, visitor, got = Gui(), Visitor(), []
    control = number(gui, "epsilon", 1e-8, 1e-15, 1.0, "", lambda value, client: got.append(value))
    handle = gui.handles["epsilon"]
    handle.change("1e-", visitor)
    control.rest()
    assert got == [] and visitor.told == []
    handle.change("1e-6", visitor, ago=5)
    control.rest()
    assert got == [1e-6]
    for wrong, word in (("nonsense", "no number"), ("7", "allowed are"), ("nan", "allowed are")):
        handle.change(wrong, visitor, ago=5)
        control.rest()
        assert word in visitor.told[-1] and handle.value == "1e-06"
    assert got == [1e-6]


def test_time(source: SlowSource) -> None:
    gui, visitor = Gui(), Visitor()
    panel = RunPanel(gui, source, pushing=True)
    gui.handles["Pause"].click(visitor)
    panel.refresh(source.latest())
    assert source.latest().paused and gui.handles["Pause"].label == "Go on"
    gui.commands["N"].trigger(visitor)
    assert source.calls[-1][0] == "step"
    gui.commands["space"].trigger(visitor)
    assert not source.latest().paused
    gui.handles["seed"].change(7, visitor)
    gui.commands["R"].trigger(visitor)
    assert source.calls[-1] == ("reset", (7,), {})
    gui.handles["speed"].change("1/4", visitor)
    gui.handles["mode"].change("real time", visitor)
    assert source.calls[-2:] == [("set_speed", (0.25,), {}), ("set_mode", ("real time",), {})]


def test_words(source: SlowSource) -> None:
    said = words(source.latest(), "an arm", planned=True)
    assert said["daemon"] == "connected" and "waits for each plan" in said["mode"]
    assert said["plan"] == "8 iterations in 20 ms of 40 ms allowed; 0 came late"
    source.broken = True
    said = words(replace(source.latest(), paused=True), "an arm", planned=True)
    assert said["daemon"].startswith("lost") and said["note"] == "the daemon does not answer"
    assert "paused" in said["time"]


@pytest.mark.parametrize("rows", [0, 1, 199, 200, 201, 5000])
def test_plots_are_bounded(rows: int) -> None:
    kept = thinned(rows)
    assert len(kept) <= 200 and len(kept) >= min(rows, 100)
    assert rows == 0 or kept[-1] == rows - 1
    assert np.all(np.diff(kept) > 0)


# ---------------------------------------------------------------------------------------------- the server


def ask(port: int, path: str = "/", **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    return connection.getresponse()


UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec_WebSocket_Version": "13",
    "Sec_WebSocket_Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}


def test_only_its_own_pages_are_served() -> None:
    server = guard.start("127.0.0.1", 0, "")
    try:
        port = server.get_port()
        assert ask(port).status == 200
        assert ask(port, Host="evil.example").status == 403
        assert ask(port, Origin="http://evil.example").status == 403
        own = f"http://localhost:{port}"
        assert ask(port, Host=f"localhost:{port}", Origin=own, **UPGRADE).status == 101
        assert ask(port, Host=f"localhost:{port}", Origin="http://localhost:1", **UPGRADE).status == 403
    finally:
        server.stop()


def test_token() -> None:
    server = guard.start("127.0.0.1", 0, "secret")
    try:
        port = server.get_port()
        for path in ("/", "/index.html", "/?token=wrong", "/?token="):
            assert ask(port, path).status == 403
        assert ask(port, **UPGRADE).status == 403
        assert ask(port, Cookie="sinew=secret", **UPGRADE).status == 403
        given = ask(port, "/?token=secret")
        assert given.status == 303 and given.headers["Location"] == "/"
        cookie = given.headers["Set-Cookie"].partition(";")[0]
        assert "HttpOnly" in given.headers["Set-Cookie"]
        assert ask(port, Cookie=cookie).status == 200
        assert ask(port, Cookie=f"other=1; {cookie}", **UPGRADE).status == 101
        assert ask(port, Cookie=cookie.replace("secret", "secreT")).status == 403
    finally:
        server.stop()


def test_page_cannot_be_published() -> None:
    server = guard.start("127.0.0.1", 0, "")
    try:
        assert server.request_share_url() is None
    finally:
        server.stop()


def test_ports() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ArgumentError, match=f"port {port} of 127.0.0.1 cannot be used"):
            guard.start("127.0.0.1", port, "")
    with pytest.raises(ArgumentError, match=r"192\.0\.2\.1 cannot be used"):
        guard.start("192.0.2.1", 0, "")
    assert guard.FIRST_PORT <= guard.free_port("127.0.0.1", None) < guard.FIRST_PORT + 100


# --------------------------------------------------------------------------------------------- the command


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "give either --task NAME or a file"),
        (["--task", "arm_reach", "run.mcap"], "give either --task NAME or a file"),
        (["nowhere.xml"], "nowhere.xml: there is no such file"),
        (["--task", "arm_reach", "--port", "70000"], "--port 70000: allowed are 0"),
        (["--task", "arm_reach", "--set", "adam_rate"], "expected NAME=VALUE"),
        (["--task", "arm_reach", "--endpoint", "nonsense", "--port", "0"], "nonsense"),
    ],
)
def test_command_line_errors(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["view", *arguments]) == 1
    said = capsys.readouterr().err
    assert text in said and said.startswith("sinew view: ") and said.count("\n") == 1


PASSED_OVER = """
import os, signal, sys, time
from sinew import cli
from sinew.view import command

def import_of_another(*_):
    try:
        os.kill(os.getpid(), signal.{name})
        time.sleep(60)
    except BaseException:
        print("passed over", flush=True)

signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
command._show = import_of_another
sys.exit(cli.main(["view", {model!r}, "--no-open", "--port", "0"]))
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_an_interrupt_that_others_pass_over_ends_it(name: str) -> None:
    """As trimesh does while it is imported, by `except BaseException`."""
    text = PASSED_OVER.format(name=name, model=str(sinew.share("models/cart_pole.xml")))
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert (done.returncode, "passed over" in done.stdout) == (0, True), done.stderr
