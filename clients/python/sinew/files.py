"""Files that come with the package: models, tasks, the daemon and its schema; files that are to be written."""

from __future__ import annotations

import argparse
import os
import pathlib

from sinew.errors import NotFoundError

__all__ = ["program", "share", "writable"]

_BIN = pathlib.Path(__file__).resolve().parent / "bin"
_SHARE = pathlib.Path(__file__).resolve().parent / "share" / "sinew"


def share(name: str) -> pathlib.Path:
    """Return the path of a file that comes with the package.

    Parameters
    ----------
    name : str
        Its name under the package's folder: "models/arm_reach.xml", "tasks/arm_reach.yaml", "sinew.proto".

    Raises
    ------
    NotFoundError
        There is none of this name; the text lists those that are there.
    """
    path = _SHARE / name
    if path.is_file() and path.resolve().is_relative_to(_SHARE.resolve()):
        return path
    known = sorted(str(x.relative_to(_SHARE)) for x in _SHARE.rglob("*") if x.is_file())
    raise NotFoundError(f"share: no file {name!r}; there are {', '.join(known)}")


def program(name: str) -> pathlib.Path:
    """Return the path of a program that comes with the package.

    Parameters
    ----------
    name : str
        ``"sinewd"`` or ``"sinew-import"``.

    Raises
    ------
    NotFoundError
        There is none of this name.
    """
    path = _BIN / name
    if path.is_file():
        return path
    raise NotFoundError(f"program: there is no {path}")


def writable(name: str) -> str:
    """Return the name of a file that can be written: the type of options of argparse, which ask before a long work.

    Parameters
    ----------
    name : str
        Of a file that is there, or of a new one.

    Raises
    ------
    argparse.ArgumentTypeError
        Its folder is not there, it is a folder itself, or it may not be written.
    """
    path = pathlib.Path(name)
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{name!r}: there is no folder {str(path.parent)!r}")
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"{name!r} is a folder; expected the name of a file")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"{name!r} may not be written")
    return name
