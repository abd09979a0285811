"""The page: a 3D view and panels of one source, on a server that any number of browsers may look at."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import viser

from sinew.errors import SinewError
from sinew.loop.source import Source
from sinew.view.panel_controls import ControlsPanel
from sinew.view.panel_cost import CostPanel
from sinew.view.panel_display import DisplayPanel
from sinew.view.panel_plan import PlanPanel
from sinew.view.panel_plots import PlotsPanel
from sinew.view.panel_record import Recordable, RecordPanel
from sinew.view.panel_run import RunPanel
from sinew.view.panel_status import StatusPanel
from sinew.view.register import Register

if TYPE_CHECKING:
    from sinew.view.scene import Scene

__all__ = ["Page"]

_FRAMES = 30.0  # a second, in the 3D view
_REFRESHES = 6.0  # a second, of the panels
_WIDTH = 400  # of the panels, in pixels
_COMPLAINTS = 5  # that are printed of what goes wrong again and again


class Page:
    """Shows a source and takes what its users want to it.

    Two threads do so: one draws, one keeps the panels up to date. They do nothing while nobody looks, and the
    source never waits for them.

    Parameters
    ----------
    server : viser.ViserServer
    source : Source
    title : str
        What is shown, for people.
    recordable : Recordable, optional
        The session that can be recorded.
    """

    def __init__(
        self, server: viser.ViserServer, source: Source, title: str, recordable: Recordable | None = None
    ) -> None:
        from sinew.view.scene import Scene

        self._server = server
        self._source = source
        self._closing = threading.Event()
        self._complaints = 0
        server.gui.configure_theme(show_logo=False, show_share_button=False)
        server.gui.main_panel.dock_right()
        server.gui.main_panel.set_width(_WIDTH)
        server.gui.set_panel_label("sinew")
        model = source.model
        self.scene: Scene = Scene(server, model, source.task)
        self.scene.on_push = self._push
        self.scene.on_target = self._target
        self.register = Register(source)
        self._refreshed: list[Callable[[], None]] = []
        self._record: RecordPanel | None = None
        self._add_panels(title, model, recordable)
        self._threads = [
            threading.Thread(target=self._repeat, args=(_FRAMES, self._draw), name="sinew-draw", daemon=True),
            threading.Thread(target=self._repeat, args=(_REFRESHES, self.refresh), name="sinew-panels", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End the threads, and what is recorded. The server and the source go on."""
        self._closing.set()
        self.register.tuner.close()
        for thread in self._threads:
            thread.join(1.0)
        if self._record is not None:
            self._record.close()

    def refresh(self) -> None:
        """Bring the panels up to date."""
        frame = self._source.latest()
        self.register.refresh(frame.config)
        for refresh in self._refreshed:
            refresh()

    def _add_panels(self, title: str, model: Any, recordable: Recordable | None) -> None:
        gui, source, task = self._server.gui, self._source, self._source.task
        config = source.settings() if source.duration is None else None
        status = StatusPanel(gui, source, title)
        self._refreshed.append(lambda: status.refresh(source.latest()))
        tabs = gui.add_tab_group()
        with tabs.add_tab("Run", icon=viser.Icon.PLAYER_PLAY):
            run = RunPanel(gui, source, pushing=source.duration is None)
            self._refreshed.append(lambda: run.refresh(source.latest()))
            if recordable is not None:
                self._record = RecordPanel(gui, recordable)
                self._refreshed.append(self._record.refresh)
        if config is not None and task is not None:
            with tabs.add_tab("Plan", icon=viser.Icon.ADJUSTMENTS):
                plan = PlanPanel(gui, source, self.register, config)
                self._refreshed.append(lambda: plan.refresh(source.latest().config))
            with tabs.add_tab("Cost", icon=viser.Icon.TARGET):
                cost = CostPanel(gui, self.register, task, config)
                self._refreshed.append(lambda: cost.refresh(source.latest()))
        if task is None and source.duration is None and model.nu:
            with tabs.add_tab("Move", icon=viser.Icon.ADJUSTMENTS):
                move = ControlsPanel(gui, source, model)
                self._refreshed.append(lambda: move.refresh(source.latest()))
        if task is not None:
            with tabs.add_tab("Plots", icon=viser.Icon.CHART_LINE):
                self._refreshed.append(PlotsPanel(gui, source).refresh)
        with tabs.add_tab("Show", icon=viser.Icon.EYE):
            DisplayPanel(gui, self.scene, task is not None)

    def _draw(self) -> None:
        self.scene.show(self._source.latest())

    def _push(self, body: int, point: Any, force: Any) -> None:
        with contextlib.suppress(SinewError):
            self._source.push(body, point, force)

    def _target(self, term: str, target: Any) -> None:
        self.register.tuner.change(("targets", term), target)

    def _repeat(self, rate: float, action: Callable[[], None]) -> None:
        """Do something so many times a second while somebody looks; what goes wrong is printed, not fatal."""
        while not self._closing.is_set():
            began = time.monotonic()
            if self._server.get_clients():
                try:
                    action()
                except Exception:  # one bad frame is no reason to show nothing any more
                    self._complain()
            self._closing.wait(max(1 / rate - (time.monotonic() - began), 0.002))

    def _complain(self) -> None:
        self._complaints += 1
        if self._complaints <= _COMPLAINTS and not self._closing.is_set():
            print("sinew view: something could not be shown:", file=sys.stderr)
            traceback.print_exc()
