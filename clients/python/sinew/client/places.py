"""Where the installed package keeps what is not Python: programs and the schema."""

from __future__ import annotations

import os
from pathlib import Path

from sinew.errors import NotFoundError

__all__ = ["default_endpoint", "program", "shared"]


def _prefix() -> Path:
    """Return the folder with ``bin`` and ``share``: the package's, or that which ``SINEW_PREFIX`` names."""
    return Path(os.environ.get("SINEW_PREFIX") or Path(__file__).absolute().parent.parent)


def _find(path: Path) -> Path:
    if path.is_file():
        return path
    raise NotFoundError(f"{path} is not there; SINEW_PREFIX may name a folder with bin and share/sinew")


def program(name: str) -> Path:
    """Return the path of an installed program, such as ``sinewd``."""
    return _find(_prefix() / "bin" / name)


def shared(name: str) -> Path:
    """Return the path of an installed file of data, such as ``sinew.desc``."""
    return _find(_prefix() / "share" / "sinew" / name)


def default_endpoint() -> str:
    """Return the address where this user's daemon listens unless it is told otherwise."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    folder = f"{runtime}/sinew" if runtime.startswith("/") else f"/tmp/sinew-{os.getuid()}"
    return f"ipc://{folder}/sinewd.sock"
