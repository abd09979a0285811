"""Where the models of tasks are: in packages that are installed, or in the folder that clients/setup.sh fills."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from sinew.errors import NotFoundError
from sinew.model import Model

__all__ = ["find", "load", "load_with_sensors"]


def _folders(package: str) -> list[Path]:
    """Return folders of a package, those of the cache first: their versions are pinned."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "sinew"
    found = [folder / package for folder in sorted(cache.glob(f"{package}-*"))]
    spec = find_spec(package)
    return [*found, *map(Path, (spec.submodule_search_locations or ()) if spec else ())]


def find(package: str, path: str) -> Path:
    """Return the file at a path of a package.

    Raises
    ------
    NotFoundError
        It is neither in the cache nor in a package that is installed.
    """
    for folder in _folders(package):
        if (folder / path).is_file():
            return folder / path
    raise NotFoundError(f"{package}/{path}: pip install {package} brings it, and so does clients/setup.sh --models")


def load(package: str, path: str) -> Model:
    """Load the model at a path of a package. Raises as `find`."""
    return Model.from_xml(find(package, path))


def load_with_sensors(package: str, path: str, sensors: str) -> Model:
    """Load a model with sensors, as MJCF has them, behind its own. Raises as `find`."""
    file = find(package, path)
    return Model.from_string(f'<mujoco><include file="{file.name}"/><sensor>{sensors}</sensor></mujoco>', file.parent)
