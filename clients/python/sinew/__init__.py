"""sinew: exact gradients of MuJoCo's models.

>>> import sinew
>>> model = sinew.Model.from_xml("hand.xml")
>>> rollout = sinew.rollout(model, ctrl=ctrl)  # ctrl (T, nu) or (N, T, nu)
>>> gradient = sinew.rollout_vjp(rollout, qpos=bar)  # bar: derivative of a number by all positions
>>> gradient.ctrl

Names, units, frames and orders are MuJoCo's. Importing this package imports NumPy and nothing else that is large.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sinew import planner
from sinew._core import version as _version
from sinew.batch import Batch
from sinew.cfd import CFD
from sinew.data import Data
from sinew.errors import SimulationError, SinewError
from sinew.files import share
from sinew.identify import Identification, identify
from sinew.integrate import Controller, Integration, IntegrationGradient, integrate, integrate_vjp
from sinew.integrate_batch import IntegrationGradients, Integrations, integrate_batch, integrate_batch_vjp
from sinew.linearize import Linearization, SensorLinearization, linearize
from sinew.model import Model
from sinew.model_tangents import ModelTangents
from sinew.nearest_points import NearestGradient, NearestPoints, nearest_points, nearest_points_vjp
from sinew.parameters import Parameter, Parameters
from sinew.rollout import Gradient, Rollout, rollout, rollout_vjp
from sinew.sensitivity import Sensitivity, sensitivity
from sinew.state import State, StateLike
from sinew.task import Task

if TYPE_CHECKING:
    from sinew.client import AsyncClient as AsyncClient
    from sinew.client import Client as Client
    from sinew.client import serve as serve

__version__ = _version()
__all__ = [
    "CFD",
    "Batch",
    "Controller",
    "Data",
    "Gradient",
    "Identification",
    "Integration",
    "IntegrationGradient",
    "IntegrationGradients",
    "Integrations",
    "Linearization",
    "Model",
    "ModelTangents",
    "NearestGradient",
    "NearestPoints",
    "Parameter",
    "Parameters",
    "Rollout",
    "Sensitivity",
    "SensorLinearization",
    "SimulationError",
    "SinewError",
    "State",
    "StateLike",
    "Task",
    "identify",
    "integrate",
    "integrate_batch",
    "integrate_batch_vjp",
    "integrate_vjp",
    "linearize",
    "nearest_points",
    "nearest_points_vjp",
    "planner",
    "rollout",
    "rollout_vjp",
    "sensitivity",
    "share",
]

# What needs more than NumPy is imported when it is first asked for.
_LAZY: dict[str, str] = {"AsyncClient": "sinew.client", "Client": "sinew.client", "serve": "sinew.client"}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'sinew' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
