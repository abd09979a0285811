"""What goes wrong with files, in words."""

from __future__ import annotations

__all__ = ["reason"]


def reason(error: Exception) -> str:
    """Return what went wrong, without the number and the path that an OSError says, too."""
    return getattr(error, "strerror", None) or str(error)
