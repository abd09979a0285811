"""Time on the page: pause, one step, beginning again, slow motion, the mode, a recording's time line."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import viser

from sinew.errors import SinewError
from sinew.loop.source import Frame, Source
from sinew.view.controls import notify

__all__ = ["RunPanel"]

_SPEEDS = {"1/20": 0.05, "1/10": 0.1, "1/4": 0.25, "1/2": 0.5, "1 (as in reality)": 1.0, "2": 2.0, "4": 4.0}
_HOLD = 0.5  # for which a slider that somebody drags is left alone [s]
_PUSH = "Push the body: hold **Ctrl** (on a Mac **Cmd**) and drag a part of it with the mouse."


class RunPanel:
    """Buttons and keys for time."""

    def __init__(self, gui: viser.GuiApi, source: Source, pushing: bool) -> None:
        self._gui = gui
        self._source = source
        self._pause = gui.add_button("Pause", icon=viser.Icon.PLAYER_PAUSE, hint="time stands still; key: space")
        self._pause.on_click(self._attempt(self._toggle))
        step = gui.add_button("One step", icon=viser.Icon.PLAYER_TRACK_NEXT, hint="while paused; key: N")
        step.on_click(self._attempt(self._step))
        self._timeline = self._add_timeline() if source.duration is not None else None
        self._seed: Any = None
        self._keyframe: Any = None
        self._keyframes = ["zero", *getattr(source, "keyframes", ())]
        if source.duration is None:
            self._add_reset()
        self._speed = gui.add_dropdown(
            "speed", list(_SPEEDS), initial_value="1 (as in reality)", hint="the body's seconds in a second"
        )
        self._speed.on_update(self._set(lambda: source.set_speed(_SPEEDS[self._speed.value])))
        self._mode: Any = None
        if len(source.modes) > 1:
            self._add_mode()
        if pushing:
            gui.add_markdown(_PUSH)
        self._add_keys()

    def refresh(self, frame: Frame) -> None:
        """Show whether it is paused, how fast it is, and where."""
        self._pause.label = "Go on" if frame.paused else "Pause"
        icon = viser.Icon.PLAYER_PLAY if frame.paused else viser.Icon.PLAYER_PAUSE
        if self._pause.icon != icon:
            self._pause.icon = icon
        nearest = min(_SPEEDS, key=lambda name: abs(_SPEEDS[name] - frame.speed))
        _show(self._speed, nearest)
        if self._mode is not None:
            _show(self._mode, frame.mode)
        if self._timeline is not None:
            _show(self._timeline, min(max(round(frame.time, 2), 0.0), self._timeline.max))

    def _toggle(self) -> None:
        now, end = self._source.latest(), self._source.duration
        if end is not None and now.paused and now.time >= end:
            self._source.seek(0.0)
        self._source.pause(not now.paused)

    def _step(self) -> None:
        if not self._source.latest().paused:
            self._source.pause(True)
        else:
            self._source.step()

    def _reset(self) -> None:
        if self._keyframe is not None:
            number = self._keyframes.index(self._keyframe.value) - 1
            self._source.reset(number if number >= 0 else None)
        else:
            self._source.reset(self._seed.value if self._seed is not None else None)

    def _add_reset(self) -> None:
        reset = self._gui.add_button("Begin again", icon=viser.Icon.REWIND_BACKWARD_5, hint="key: R")
        reset.on_click(self._attempt(self._reset))
        if self._source.task is not None:
            hint = "number of the random numbers: another one is another start, the same one the same start"
            self._seed = self._gui.add_number("seed", 0, min=0, max=2**31 - 1, step=1, hint=hint)
        elif len(self._keyframes) > 1:
            hint = "the pose in which it begins; the model has names for some"
            self._keyframe = self._gui.add_dropdown("pose", self._keyframes, hint=hint)

    def _add_timeline(self) -> Any:
        duration = max(float(self._source.duration or 0.0), 0.01)
        line = self._gui.add_slider("moment", 0.0, duration, 0.01, 0.0, hint="of the recording [s]")
        line.on_update(self._set(lambda: self._source.seek(line.value)))
        return line

    def _add_mode(self) -> None:
        modes = self._source.modes
        self._mode = self._gui.add_dropdown(
            "mode", modes, initial_value=self._source.latest().mode, hint="whether the body waits for each plan"
        )
        self._mode.on_update(self._set(lambda: self._source.set_mode(self._mode.value)))

    def _add_keys(self) -> None:
        keys: list[tuple[str, Any, Callable[[], None]]] = [
            ("Pause or go on", "space", self._toggle),
            ("One step while paused", "N", self._step),
        ]
        if self._source.duration is None:
            keys.append(("Begin again", "R", self._reset))
        for label, key, action in keys:
            self._gui.add_command(label, hotkey=key).on_trigger(self._attempt(action))

    def _attempt(self, action: Callable[[], None]) -> Callable[[Any], None]:
        """Return what does something for a page, which is told where that fails."""

        def attempt(event: Any) -> None:
            try:
                action()
            except SinewError as error:
                if event.client is not None:
                    notify(event.client, str(error))

        return attempt

    def _set(self, action: Callable[[], None]) -> Callable[[Any], None]:
        """Return the same for a handle, which this program sets, too."""
        attempt = self._attempt(action)
        return lambda event: attempt(event) if event.client is not None else None


def _show(handle: Any, value: Any) -> None:
    """Show a value unless somebody has just changed it."""
    if handle.value != value and time.time() - handle.update_timestamp > _HOLD:
        handle.value = value
