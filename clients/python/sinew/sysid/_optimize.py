"""Least squares of ``mujoco.sysid`` on exact Jacobians."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from mujoco import sysid
from scipy import optimize as scipy_optimize

from sinew._arrays import Doubles
from sinew.errors import ArgumentError
from sinew.sysid._residual import ResidualFunction

__all__ = ["optimize"]


def optimize(
    initial_params: Any,
    residual_fn: ResidualFunction,
    optimizer: Literal["mujoco", "scipy"] = "mujoco",
    verbose: bool = True,
    **optimizer_kwargs: Any,
) -> tuple[Any, Any]:
    """Find parameters as ``mujoco.sysid.optimize`` does, by the same method on exact Jacobians.

    Parameters
    ----------
    initial_params : sysid.ParameterDict
        First values and bounds.
    residual_fn : ResidualFunction
        What `build_residual_fn` returns.
    optimizer : {"mujoco", "scipy"}
        ``mujoco.minimize.least_squares``, or SciPy's.
    verbose : bool
        Log a table of the parameters.
    **optimizer_kwargs
        Handed to the optimiser, as by ``mujoco.sysid.optimize``: ``max_iters``, ``x_scale``, ``verbose``, ``loss``.

    Returns
    -------
    sysid.ParameterDict
        What was found.
    scipy.optimize.OptimizeResult
        With ``x``, ``jac``, ``grad``, as MuJoCo's report takes it; ``differences`` names parameters whose columns of
        the Jacobian were made by differences.

    Raises
    ------
    ArgumentError
        Residuals without a Jacobian, or an optimiser that makes Jacobians of its own.
    """
    if not isinstance(residual_fn, ResidualFunction):
        raise ArgumentError("residual_fn: expected what sinew.sysid.build_residual_fn returns")
    if optimizer not in ("mujoco", "scipy"):
        raise ArgumentError(f"optimizer: {optimizer!r}, allowed are mujoco, scipy: others make their own Jacobians")
    params = initial_params.copy()
    if optimizer == "mujoco" or params.size == 0:
        if params.size > 0:
            optimizer_kwargs["jacobian"] = lambda x, _: residual_fn.jacobian(x, params)
        found, result = sysid.optimize(initial_params, residual_fn, "mujoco", verbose, **optimizer_kwargs)
    else:
        found, result = _by_scipy(params, residual_fn, **optimizer_kwargs)
    result["differences"] = sorted(residual_fn.differences)
    return found, result


def _by_scipy(params: Any, residual_fn: ResidualFunction, **options: Any) -> tuple[Any, Any]:
    """Return what SciPy's least squares find, with the options of ``mujoco.sysid``."""
    shown = 2 if options.pop("verbose", True) else 0

    def residuals(x: Doubles) -> Doubles:
        return np.concatenate(residual_fn(x, params)[0])

    result = scipy_optimize.least_squares(
        residuals, params.as_vector(), lambda x: residual_fn.jacobian(x, params), bounds=params.get_bounds(),
        max_nfev=options.pop("max_iters", 200), verbose=shown, **options,
    )  # fmt: skip
    params.update_from_vector(result.x)
    return params, result
