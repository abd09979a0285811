"""Models: all of a body that stays the same while it moves."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sinew import _core

__all__ = ["Model"]


class Model:
    """A model of a body, read-only: any number of threads may use one at once.

    Sizes (`nq`, `nu`, ...) and arrays (`qpos0`, `jnt_range`, `body_mass`, ...) are attributes under MuJoCo's names.
    """

    _native: _core.Model

    def __init__(self) -> None:
        raise TypeError("use Model.from_xml, from_string, from_mujoco, load or read")

    @classmethod
    def _wrap(cls, native: _core.Model) -> Model:
        model = cls.__new__(cls)
        model._native = native
        model.__dict__.update(native.sizes())
        return model

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """Load a model from a file: MJCF, a compiled model (.mjb), or an image of `save`."""
        return cls._wrap(_core.Model.load(os.fspath(path)))

    from_xml = load

    @classmethod
    def read(cls, data: bytes, folder: str | os.PathLike[str] | None = None) -> Model:
        """Load a model from bytes of any of the three forms."""
        return cls._wrap(_core.Model.read(data, None if folder is None else os.fspath(folder)))

    @classmethod
    def from_string(cls, xml: str, folder: str | os.PathLike[str] | None = None) -> Model:
        """Load a model from a text of MJCF."""
        return cls.read(xml.encode(), folder)

    def __getattr__(self, name: str) -> NDArray[Any]:
        """Return an array of the model under MuJoCo's name."""
        if name.startswith("_"):
            raise AttributeError(name)
        array = self._native.array(name)
        if array is None:
            raise AttributeError(f"a Model has no array {name!r}")
        value: NDArray[Any] = array[:, 0] if array.shape[1] == 1 else array
        self.__dict__[name] = value
        return value

    @property
    def ctrl_range(self) -> NDArray[np.float64]:
        """Ranges of the controls, (nu, 2); infinite where a control has none."""
        return self._native.ctrl_range()
