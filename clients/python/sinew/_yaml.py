"""Files of settings, in YAML."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sinew._files import reason
from sinew.errors import FileError, FormatError

__all__ = ["read_map"]


def read_map(path: Path, keys: Sequence[str]) -> dict[Any, Any]:
    """Read a map from a file; ``keys`` are those that the text of an error names.

    Raises
    ------
    FileError, FormatError
        It cannot be read, or is no map in YAML.
    """
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{path}: {reason(error)}") from None
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise FormatError(f"{path}: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise FormatError(f"{path}: expected a map with some of {', '.join(keys)}")
    return content
