"""What is shown and how it goes, in words, above all other panels."""

from __future__ import annotations

import html
import math

import viser

from sinew._colors import VERMILION
from sinew.loop.source import Frame, Source

__all__ = ["StatusPanel", "words"]

_MODES = {
    "lockstep": "lockstep: the body waits for each plan",
    "real time": "real time: the body waits for nothing, plans come when they are ready",
    "model": "the body alone: nobody plans for it",
    "recording": "a recording: it has all happened",
}


_STYLE = "padding:0.2em 1em 0.4em;font-size:0.85em;line-height:1.35"


class StatusPanel:
    """A few lines of text."""

    def __init__(self, gui: viser.GuiApi, source: Source, title: str) -> None:
        self._title = title
        self._planned = source.task is not None and source.duration is None
        self._html = gui.add_html(_lines(words(source.latest(), title, self._planned)))

    def refresh(self, frame: Frame) -> None:
        """Show how it goes now."""
        text = _lines(words(frame, self._title, self._planned))
        if self._html.content != text:
            self._html.content = text


def words(frame: Frame, title: str, planned: bool) -> dict[str, str]:
    """Return what is to be said of a frame, by its subject; the title has none.

    Parameters
    ----------
    frame : Frame
    title : str
        What is shown.
    planned : bool
        Whether a daemon makes plans for it now.
    """
    said = {"": title, "mode": _MODES[frame.mode]}
    rate = "paused" if frame.paused else "" if math.isnan(frame.rate) else f"{frame.rate:.2f} x as fast as reality"
    said["time"] = f"{frame.time:.2f} s" + (f", {rate}" if rate else "")
    if not math.isnan(frame.cost):
        said["cost"] = f"{frame.cost:.4g} now"
        if frame.plan is not None:
            said["cost"] += f", {frame.plan.cost_after:.4g} over the plan"
    if frame.plan is not None:
        said["plan"] = _plan(frame)
    if planned:
        said["daemon"] = "connected" if frame.connected else "lost; it is looked for again and again"
    if frame.text:
        said["note"] = frame.text
    return said


def _plan(frame: Frame) -> str:
    assert frame.plan is not None
    iterations = frame.plan.iterations
    text = f"{iterations} iteration{'' if iterations == 1 else 's'}"
    if not math.isnan(frame.age):
        text += f" in {1e3 * frame.age:.0f} ms"
    if frame.deadline > 0:
        text += f" of {1e3 * frame.deadline:.0f} ms allowed; {frame.misses} came late"
    return text


def _lines(said: dict[str, str]) -> str:
    head = f"<div style='font-weight:bold;padding-bottom:0.2em'>{html.escape(said.pop(''))}</div>"
    rows = [
        f"<tr><td style='padding-right:0.8em;opacity:0.65;vertical-align:top'>{html.escape(name)}</td>"
        f"<td{_alarm(name, text)}>{html.escape(text)}</td></tr>"
        for name, text in said.items()
    ]
    return f"<div style='{_STYLE}'>{head}<table>{''.join(rows)}</table></div>"


def _alarm(name: str, text: str) -> str:
    return f" style='color:{VERMILION};font-weight:bold'" if name == "note" or text.startswith("lost") else ""
