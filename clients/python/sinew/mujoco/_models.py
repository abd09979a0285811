"""Models of MjModels, made once and kept as long as these."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import fields
from typing import Any
from weakref import WeakKeyDictionary

import mujoco
import numpy as np
from numpy.typing import NDArray

from sinew import _core
from sinew.errors import ArgumentError, SinewError, UnsupportedError
from sinew.model import Model
from sinew.options import Options

__all__ = ["forget", "model_of"]


_MOST_VERSIONS = 16


class _Known:
    """What an MjModel has been converted to."""

    def __init__(self, m: mujoco.MjModel) -> None:
        self.refusal: UnsupportedError | None = None
        self.versions: dict[bytes, Model] = {}  # those that came of the whole MjModel, by the numbers it then had
        try:
            self.model = Model.from_mujoco(m)
        except UnsupportedError as error:
            self.refusal = error
            return
        self.watch = _core.MujocoWatch(m, self.model._native)  # has the numbers that the model was made of
        self._keep(self.model)

    def _keep(self, model: Model) -> None:
        if len(self.versions) == _MOST_VERSIONS:
            del self.versions[next(iter(self.versions))]
        self.versions[self._digest()] = model

    def _digest(self) -> bytes:
        return hashlib.blake2b(self.watch.numbers()).digest()

    def update(self, m: mujoco.MjModel) -> None:
        """Take over edits of the MjModel."""
        changes = self.watch.changes(m)
        if not changes:
            return
        edited = _edited(self.model, m, changes) or self.versions.get(self._digest())
        if edited is None:
            edited = Model.from_mujoco(m)
            self._keep(edited)
        self.model = edited


_known: WeakKeyDictionary[mujoco.MjModel, _Known] = WeakKeyDictionary()
_lock = threading.Lock()
_OPTIONS = {field.name for field in fields(Options)}


def model_of(m: mujoco.MjModel) -> Model:
    """Return the Model with the present numbers of an MjModel.

    It is the same object as long as the MjModel is not edited. A call compares all numbers that the engine uses, but
    for those of meshes, which takes some microseconds. An edit costs a millisecond, one of what the model consists of
    (``geom_type``) a conversion of the whole.

    Raises
    ------
    UnsupportedError
        The MjModel uses what the engine does not have: a list of all of it.
    """
    if not isinstance(m, mujoco.MjModel):
        raise ArgumentError(f"m: {type(m).__name__}, expected a mujoco.MjModel")
    with _lock:
        known = _known.get(m)
        if known is None:
            known = _known[m] = _Known(m)
        if known.refusal:
            raise UnsupportedError(str(known.refusal))
        try:
            known.update(m)
        except BaseException:
            del _known[m]
            raise
        return known.model


def forget(m: mujoco.MjModel) -> None:
    """Convert an MjModel anew in the next call.

    For who has edited vertices of meshes in place, or what made a model one that the engine does not have.
    """
    with _lock:
        _known.pop(m, None)


def _edited(model: Model, m: mujoco.MjModel, changes: list[str]) -> Model | None:
    """Return the model with the numbers of `m` that have changed; None: it has to be converted anew."""
    options: dict[str, Any] = {}
    arrays: dict[str, NDArray[Any]] = {}
    for name in changes:
        if name.startswith("opt."):
            options[name[4:]] = getattr(m.opt, name[4:])
        else:
            arrays[name] = np.asarray(getattr(m, name))
    if "geom_size" in arrays:  # what would be derived from it is as the MjModel has it
        arrays.update(geom_rbound=m.geom_rbound, geom_aabb=m.geom_aabb)
    if not set(options) <= _OPTIONS:
        return None
    try:
        if arrays:
            model = model.replace(**arrays)
        return model.with_options(**options) if options else model
    except SinewError:
        return None
