"""Recording what happens, from the page: on, off, and how it goes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import viser

from sinew.errors import ArgumentError, SinewError
from sinew.view.controls import notify

if TYPE_CHECKING:
    from sinew.client.keys import Access
    from sinew.record.recorder import Progress, Recorder

__all__ = ["RecordPanel", "Recordable"]


class Recordable(Protocol):
    """A session at a daemon."""

    @property
    def endpoint(self) -> str:
        """Address of the daemon."""

    @property
    def access(self) -> Access:
        """Keys for it."""

    @property
    def session(self) -> int:
        """Number of the session there."""


class RecordPanel:
    """A name and a button. Files are written into the folder in which the program runs, nowhere else."""

    def __init__(self, gui: viser.GuiApi, recordable: Recordable) -> None:
        self._recordable = recordable
        self._recorder: Recorder | None = None
        folder = gui.add_folder("Record", expand_by_default=False)
        with folder:
            hint = f"a new file in {Path.cwd()}; `sinew replay` repeats it, Foxglove opens it"
            self._name: Any = gui.add_text("file", _free_name(), hint=hint)
            self._button = gui.add_button("Record", icon=viser.Icon.PLAYER_RECORD)
            self._said = gui.add_markdown("", visible=False)
        self._button.on_click(self._click)

    def refresh(self) -> None:
        """Show how it goes."""
        if self._recorder is None:
            return
        progress = self._recorder.progress
        text = f"{'Records' if progress.running else 'Recorded'} {_words(progress)}"
        if self._said.content != text:
            self._said.content = text
        if not progress.running:
            self._end()

    def close(self) -> None:
        """End a recording."""
        if self._recorder is not None:
            self._recorder.stop()

    def _click(self, event: viser.GuiEvent[Any]) -> None:
        try:
            if self._recorder is None:
                self._begin()
            else:
                self._recorder.stop()
        except SinewError as error:
            if event.client is not None:
                notify(event.client, str(error))

    def _begin(self) -> None:
        from sinew.record.recorder import Recorder

        name = self._name.value.strip()
        if not name or Path(name).name != name:
            raise ArgumentError(f"{name!r}: expected the name of a file, without a folder, such as {_free_name()}")
        of = self._recordable
        recorder = Recorder(Path.cwd() / name, of.session, of.endpoint, **of.access)
        recorder.start()
        self._recorder = recorder
        self._said.visible = True
        self._button.label, self._button.color = "Stop recording", "red"

    def _end(self) -> None:
        self._recorder = None
        self._button.label, self._button.color = "Record", None
        self._name.value = _free_name()


def _free_name() -> str:
    """Return a name that no file here has."""
    number = 1
    while (name := Path(f"sinew-{number}.mcap")).exists():
        number += 1
    return name.name


def _words(progress: Progress) -> str:
    plans = f"{progress.plans} plans, {progress.seconds:.1f} s, {progress.size / 1e6:.1f} MB"
    return f"{plans}. {progress.text}" if progress.text else plans
