"""Values that JSON has."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["finite"]


def finite(x: Any) -> Any:
    """Return a value with None for NaN and infinity, in lists and maps, too; numbers of NumPy become plain ones."""
    if isinstance(x, dict):
        return {name: finite(value) for name, value in x.items()}
    if isinstance(x, list):
        return [finite(value) for value in x]
    x = x.item() if hasattr(x, "item") else x
    return None if isinstance(x, float) and not math.isfinite(x) else x
