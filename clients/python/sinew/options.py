"""Options of a model: how it is stepped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from sinew.errors import ArgumentError
from sinew.names import did_you_mean

__all__ = ["Options"]


@dataclass(frozen=True)
class Options:
    """Options of a model, with the names and the meaning of MuJoCo's ``mjOption``.

    Attributes
    ----------
    timestep : float
        Length of a step [s].
    impratio : float
        Ratio of friction to normal impedance.
    tolerance, ls_tolerance : float
        Of the solver of constraints, and of its line search.
    ccd_tolerance : float
        Of convex collision.
    gravity : tuple of 3 floats
        [m/s^2].
    o_margin, o_solref, o_solimp, o_friction
        Parameters of all contacts, while `enableflags` has ``mjENBL_OVERRIDE``.
    integrator : int
        ``mjtIntegrator``: 0 Euler, 1 RK4, 2 implicit, 3 implicitfast, 4 discrete.
    cone : int
        ``mjtCone``: 0 pyramidal, 1 elliptic.
    iterations, ls_iterations : int
        Most iterations of the solver of constraints, and of its line search.
    ccd_iterations : int
        Most iterations of convex collision.
    disableflags, enableflags : int
        Bits of ``mjtDisableBit`` and ``mjtEnableBit``.
    disableactuator : int
        A bit for each group of actuators that is off.
    noslip_iterations : int
        Most sweeps of the noslip solver, 0 to 200; 0 turns it off.
    noslip_tolerance : float
        Gain of a sweep below which they end.
    density, viscosity : float
        Of the fluid around everything [kg/m^3, N s/m^2].
    wind : tuple of 3 floats
        Velocity of the fluid [m/s].
    magnetic : tuple of 3 floats
        Magnetic flux, which magnetometers measure.
    sleep_tolerance : float
        Velocity below which trees fall asleep under flag sleep [m/s].
    contact : int
        0 (``"mujoco"``): contacts are MuJoCo's. 1 (``"sigmoid"``): hard contacts of Moreau's time stepping, scaled by a
        sigmoid of their distance (C. Schwarke et al., 2024, arXiv 2404.02887), so that derivatives know of contacts to
        come. These four are not ``mjOption``'s. A sigmoid is not supported with integrator RK4, the flags sleep and
        speculative, adhesion, contacts from distance (`CFD`) and steps of chosen sizes (`integrate`).
    contact_width : float
        Width of the sigmoid [m]. Contacts begin 20 widths from touch.
    contact_stiffness : float
        Share of the depth that a step takes back, 0 to 1.
    contact_restitution : float
        Share of its velocity with which a contact opens again, 0 to 1.
    """

    timestep: float
    impratio: float
    tolerance: float
    ls_tolerance: float
    ccd_tolerance: float
    gravity: tuple[float, float, float]
    o_margin: float
    o_solref: tuple[float, float]
    o_solimp: tuple[float, float, float, float, float]
    o_friction: tuple[float, float, float, float, float]
    integrator: int
    cone: int
    iterations: int
    ls_iterations: int
    ccd_iterations: int
    disableflags: int
    enableflags: int
    disableactuator: int
    noslip_iterations: int
    noslip_tolerance: float
    density: float
    viscosity: float
    wind: tuple[float, float, float]
    magnetic: tuple[float, float, float]
    sleep_tolerance: float
    contact: int
    contact_width: float
    contact_stiffness: float
    contact_restitution: float


# Parameters of all contacts of a model that can be set, and that MuJoCo's options do not have.
_CONTACTS = ("contact_solref", "contact_solimp")
_NAMES = (*(field.name for field in fields(Options)), *_CONTACTS)
_WHOLE = {field.name for field in fields(Options) if field.type == "int"}
# Values by name, as MJCF writes them.
_CHOICES: dict[str, tuple[str, ...]] = {
    "integrator": ("euler", "rk4", "implicit", "implicitfast", "discrete"),
    "cone": ("pyramidal", "elliptic"),
    "contact": ("mujoco", "sigmoid"),
}


def integrator_number(integrator: str | int) -> int:
    """Return the number (``mjtIntegrator``) of an integrator that is given by name or number."""
    number = _value("integrator", integrator)
    if not isinstance(number, int):
        raise ArgumentError(f"option integrator: {integrator!r}, expected a name or a number")
    return number


def _unmasked(value: Any) -> Any:
    if np.ma.is_masked(value):
        raise ValueError
    return value


def _value(name: str, value: Any) -> Any:
    """Return the value of an option as the library takes it."""
    if isinstance(value, str):
        choices = _CHOICES.get(name, ())
        if value.lower() not in choices:
            raise ArgumentError(f"option {name}: {value!r}, expected {' or '.join(choices) or 'a number'}")
        return choices.index(value.lower())
    try:
        array = np.asarray(_unmasked(value), dtype=np.float64)
    except (TypeError, ValueError, RuntimeError):  # the last one: a tensor that requires a gradient
        raise ArgumentError(f"option {name}: {value!r}, expected a number or a few") from None
    if array.ndim > 0:
        return [float(x) for x in array.ravel()]
    if name not in _WHOLE:
        return float(array)
    if not float(array).is_integer() or abs(float(array)) >= 2**31:
        raise ArgumentError(f"option {name}: {value!r}, expected a whole number")
    return int(array)


def changes_of(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return changes of options as the library takes them; refuses names that are no options."""
    for name in changes:
        if name not in _NAMES:
            raise ArgumentError(f"there is no option {name!r}{did_you_mean(name, _NAMES)}")
    return {name: _value(name, value) for name, value in changes.items()}
