"""Packages that only some commands need."""

from __future__ import annotations

from importlib.util import find_spec

from sinew.errors import NotFoundError

__all__ = ["require"]

_EXTRAS = {
    "view": ("mujoco", "viser", "mjviser", "fast_simplification"),
    "record": ("foxglove_schemas_protobuf", "mcap", "mujoco", "tqdm"),
    "sweep": ("matplotlib", "mujoco", "pandas", "pyarrow", "scipy", "tqdm", "yaml"),
    "identify": ("matplotlib", "mujoco", "scipy", "tqdm", "yaml"),
    "learn": ("torch", "tqdm"),
    "ray": ("ray",),
    "cmaes": ("cmaes",),
    "sysid": (
        "absl",
        "colorama",
        "imageio",
        "jinja2",
        "matplotlib",
        "mujoco",
        "plotly",
        "scipy",
        "tabulate",
        "typing_extensions",
        "yaml",
    ),
}


def require(extra: str) -> None:
    """Raise `NotFoundError`, with the command that mends it, where a package of an extra is missing."""
    missing = [name for name in _EXTRAS[extra] if find_spec(name) is None]
    if missing:
        raise NotFoundError(f"{', '.join(missing)}: not installed; pip install 'sinew[{extra}]' brings it")
