"""Names in a recording: its channels and metadata."""

from __future__ import annotations

__all__ = ["KINDS", "PROFILE", "RECORD", "beside", "channel", "session_and_kind"]

PROFILE = "sinew"
"""The profile that a file's header names."""

RECORD = "sinew.v1.Record"
"""The message of the daemon's own records."""

KINDS = ("open", "snapshot", "begin", "plan", "config", "reset", "close")
"""Kinds of records, as in the ``oneof`` of the schema."""

_BEGIN = "/sinew/"


def channel(session: int, kind: str) -> str:
    """Return the name of a channel of the daemon's records."""
    return f"{_BEGIN}{session}/{kind}"


def beside(session: int, name: str) -> str:
    """Return the name of a channel that is there for other programs: no kind of record has its name."""
    assert name not in KINDS
    return f"{_BEGIN}{session}/{name}"


def session_and_kind(topic: str) -> tuple[int, str] | None:
    """Return whose records a channel holds, and which; None for any other channel."""
    session, _, kind = topic.removeprefix(_BEGIN).partition("/")
    if not topic.startswith(_BEGIN) or not session.isdecimal() or kind not in KINDS:
        return None
    return int(session), kind
