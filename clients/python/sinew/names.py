"""Names that were misspelt."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["did_you_mean"]


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """Return the end of a message: the names that are close to one that is wrong, if there are any."""
    close = difflib.get_close_matches(str(name), list(names), n=3)
    return f"; did you mean {' or '.join(repr(x) for x in close)}?" if close else ""
