"""Recordings of sessions: written while a daemon plans, read, repeated bit for bit, and exported.

A file is of the format MCAP. It holds the daemon's records unchanged, with their schema, and beside them what Foxglove
and PlotJuggler show.
"""

from __future__ import annotations

from sinew.record.reader import Entry, Recording
from sinew.record.recorder import Progress, Recorder
from sinew.record.replay import Difference, Outcome, replay

__all__ = ["Difference", "Entry", "Outcome", "Progress", "Recorder", "Recording", "replay"]
