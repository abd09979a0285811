"""Controls of a body that nobody plans for: a slider for each of its actuators."""

from __future__ import annotations

from typing import Any

import mujoco
import viser

from sinew.loop.source import Frame, Source
from sinew.view.controls import Control

__all__ = ["ControlsPanel"]

_INTRODUCTION = "Nobody plans for this body: move it by these sliders, one for each of its actuators."


class ControlsPanel:
    """Sliders of controls within their ranges."""

    def __init__(self, gui: viser.GuiApi, source: Source, model: mujoco.MjModel) -> None:
        gui.add_markdown(_INTRODUCTION)
        self._controls = []
        for number in range(model.nu):
            low, high = model.actuator_ctrlrange[number] if model.actuator_ctrllimited[number] else (-1.0, 1.0)
            name = model.actuator(number).name or f"actuator {number}"
            first = min(max(0.0, float(low)), float(high))
            handle = gui.add_slider(name, float(low), float(high), (float(high) - float(low)) / 100, first)
            self._controls.append(Control(handle, self._changed(source, number)))

    def refresh(self, frame: Frame) -> None:
        """Show the controls in force, but where somebody drags a slider."""
        for control, value in zip(self._controls, frame.ctrl, strict=True):
            if control.rests():
                control.show(float(min(max(value, control.handle.min), control.handle.max)))

    @staticmethod
    def _changed(source: Source, number: int) -> Any:
        return lambda value, client: source.set_ctrl({number: value})
