"""Models of bodies: where their files are, and MuJoCo's compiler in sinew's words."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from sinew.errors import ArgumentError, FormatError, NotFoundError
from sinew.files import share

if TYPE_CHECKING:
    import mujoco

    from sinew.client.quantities import ModelDescription

__all__ = ["find_model", "load_described", "load_model", "take_warnings"]

# What clients/setup.sh fetches: how names begin, and the folder that has them.
_FETCHED = {"myosuite": "myosuite-2.12.2", "dm_control": "dm_control-1.0.50", "gymnasium": "gymnasium-1.4.0"}
_SIZES = ("nq", "nv", "na", "nu", "nmocap")


def find_model(name: str, file: str = "") -> Path:
    """Return the MJCF or .mjb file of a model on this machine.

    Parameters
    ----------
    name : str
        Of the model, as tasks have it.
    file : str
        Where the daemon has it, which may be another machine's path; empty: not known.

    Raises
    ------
    NotFoundError
        It is neither there, nor among the models of the package, nor among fetched ones.
    """
    places = [Path(file)] if file else []
    places.append(share("models/arm_reach.xml").parent / name)
    fetched = _FETCHED.get(name.partition("/")[0])
    if fetched:
        places.append(_cache() / fetched / name)
    for place in places:
        for path in (place, place.with_name(place.name + ".xml")):
            if path.is_file() and os.access(path, os.R_OK):
                return path
    looked = ", ".join(map(str, places))
    raise NotFoundError(f"model {name!r} is in none of {looked}; clients/setup.sh --models fetches those of others")


def load_model(path: str | os.PathLike[str]) -> mujoco.MjModel:
    """Load a model as MuJoCo does, from MJCF or a compiled model (.mjb).

    Raises
    ------
    NotFoundError
        There is no such file.
    FormatError
        What MuJoCo's compiler says of it.
    """
    import mujoco

    take_warnings()
    path = Path(path)
    if not path.is_file():
        raise NotFoundError(f"{path}: there is no such file")
    try:
        if path.suffix == ".mjb":
            return mujoco.MjModel.from_binary_path(str(path))
        return mujoco.MjModel.from_xml_path(str(path))
    except (ValueError, mujoco.FatalError) as error:
        raise FormatError(f"{path}: {' '.join(str(error).split())}") from None


def load_described(described: ModelDescription) -> mujoco.MjModel:
    """Load the file of a model that a daemon has described.

    Raises
    ------
    NotFoundError
        It is not on this machine.
    FormatError
        What MuJoCo's compiler says of it.
    ArgumentError
        The file is another model than the daemon's: its sizes differ.
    """
    path = find_model(described.model, described.file)
    model = load_model(path)
    sizes = {name: (getattr(model, name), getattr(described, name)) for name in _SIZES}
    wrong = [f"{name} is {here}, not {there}" for name, (here, there) in sizes.items() if here != there]
    if wrong:
        raise ArgumentError(f"{path} is not the daemon's model {described.model}: {', '.join(wrong)}")
    return model


def take_warnings() -> None:
    """Let MuJoCo's warnings go to the log; of itself it writes MUJOCO_LOG.TXT into the working folder."""
    import mujoco

    if mujoco.get_mju_user_warning() is None:
        mujoco.set_mju_user_warning(lambda text: logging.getLogger("sinew").warning("MuJoCo warns: %s", text))


def _cache() -> Path:
    """Return the user's cache folder, as the daemon has it."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(cache) if cache.startswith("/") else Path.home() / ".cache") / "sinew"
