"""For programs that use ``mujoco.sysid``: the same parameters, residuals and reports, on exact Jacobians.

>>> from mujoco import sysid
>>> import sinew.sysid
>>> residual_fn = sinew.sysid.build_residual_fn(models_sequences=sequences)  # as sysid.build_residual_fn
>>> found, result = sinew.sysid.optimize(params, residual_fn)  # as sysid.optimize
>>> sysid.default_report(sequences, params, found, residual_fn, result, save_path=folder)

Motions are made by our engine, all sequences of a model at once. What the residuals make of them is MuJoCo's own code.
"""

from sinew._extras import require

require("sysid")

from sinew.sysid._compiled import DifferencesWarning  # noqa: E402
from sinew.sysid._optimize import optimize  # noqa: E402
from sinew.sysid._residual import ResidualFunction, build_residual_fn  # noqa: E402

__all__ = ["DifferencesWarning", "ResidualFunction", "build_residual_fn", "optimize"]
