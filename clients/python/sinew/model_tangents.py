"""How parameters of one's own move a model, for derivatives by them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from sinew import _core
from sinew._arrays import Doubles
from sinew.errors import ArgumentError
from sinew.model import Model, not_a_model

__all__ = ["ModelTangents"]


class ModelTangents:
    """Directions in which P parameters move a model, from models in which each was moved up and down.

    Derivatives by the numbers of the model are exact. They are multiplied by central differences of these models: so
    whatever a compiler makes of a parameter counts, and costs nothing where a motion is gone through.

    >>> light, heavy = (model.replace(body_mass=model.body_mass * x).with_constants() for x in (1 - 1e-5, 1 + 1e-5))
    >>> mass = sinew.ModelTangents(model, [heavy], [light], [1e-5])  # by the logarithm of all masses
    >>> sinew.rollout_vjp(rollout, qpos=bar, parameters=mass).parameters  # (N, 1)

    Parameters
    ----------
    model : Model
        The model, or one of its structure.
    plus, minus : sequence of Model, (P,)
        The model with each parameter moved by ``steps``: compiled anew, or made by `Model.replace`. Constants at
        ``qpos0`` count as these models have them: `Model.with_constants` lets them follow.
    steps : array_like, (P,)
        How far they were moved, above 0. About 1e-5 of a parameter's size does.

    Raises
    ------
    ArgumentError
        A type, a number of models, a step, or a model of another structure.
    UnsupportedError
        A parameter moves an integer, or a number without a derivative; the text names it.
    """

    _native: _core.ModelTangents
    _steps: Doubles

    def __init__(self, model: Model, plus: Sequence[Model], minus: Sequence[Model], steps: ArrayLike) -> None:
        for name, x in (("model", model), *(("plus", x) for x in plus), *(("minus", x) for x in minus)):
            if not isinstance(x, Model):
                raise not_a_model(name, x)
        sizes = np.atleast_1d(np.asarray(steps, float))
        if sizes.shape != (len(plus),) or len(minus) != len(plus):
            raise ArgumentError(
                f"plus, minus, steps: {len(plus)} and {len(minus)} models and steps of shape {sizes.shape}, "
                "expected as many of each"
            )
        self._steps = sizes
        self._native = _core.ModelTangents(
            model._native, [x._native for x in plus], [x._native for x in minus], sizes.tolist()
        )

    def __len__(self) -> int:
        return len(self._steps)

    def __repr__(self) -> str:
        return f"<ModelTangents of {len(self)} parameters>"


def native_tangents(parameters: ModelTangents | None) -> _core.ModelTangents | None:
    """Return what the library takes."""
    if parameters is None:
        return None
    if not isinstance(parameters, ModelTangents):
        raise ArgumentError(f"parameters: {type(parameters).__name__}, expected a sinew.ModelTangents")
    return parameters._native
