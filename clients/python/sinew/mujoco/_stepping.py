"""Steps of an MjData by our engine, and programs that make them without knowing."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import mujoco
import numpy as np

from sinew import _core
from sinew.errors import ArgumentError, DivergedError, UnsupportedError
from sinew.model import Model
from sinew.mujoco._models import model_of

__all__ = ["step", "stepping", "use"]

_mj_step = mujoco.mj_step
_RK4 = int(mujoco.mjtIntegrator.mjINT_RK4)
_STATE = int(mujoco.mjtState.mjSTATE_INTEGRATION)
_ENERGY = int(mujoco.mjtEnableBit.mjENBL_ENERGY)


@dataclass
class _Moved:
    """What moves an MjData."""

    model: Model
    m: mujoco.MjModel
    stepper: _core.MujocoStepper


_moved: WeakKeyDictionary[mujoco.MjData, _Moved] = WeakKeyDictionary()


def step(m: mujoco.MjModel, d: mujoco.MjData, nstep: int = 1, *, fields: bool = True) -> None:
    """Advance an MjData by `nstep` steps of our engine, as ``mujoco.mj_step``.

    Inputs are time, qpos, qvel, act, ctrl, the mocap poses and qacc_warmstart. Written are the state after the last
    step, and, of the state before it, what ``mj_step`` leaves there: frames, tendons, actuators, velocities, forces,
    accelerations, contacts, rows of constraints, sensors (which MuJoCo's functions compute of all this), energy.

    Not written, and without meaning afterwards, are: ``crb``, ``qH``, ``qHDiagInv``, ``qDeriv``, ``qLU``, ``efc_b``
    (NaN); ``efm_*`` of the integrator discrete, which MuJoCo's inverse dynamics reads; the arrays of islands and of the
    dual problem (empty); of contacts ``solref``, ``solreffriction``,
    ``solimp``, ``mu``, ``H`` (0); statistics but for ``solver_niter``. ``mujoco.mj_forward`` fills in all of them. With
    RK4 ``qacc`` and ``act_dot`` are those of the whole step, ``energy`` that of its begin; MuJoCo's are of the last
    stage.

    Parameters
    ----------
    m, d : mujoco.MjModel, mujoco.MjData
        Of MuJoCo 4.0.0.
    nstep : int
        Number of steps. Several in one call cost less than one at a time.
    fields : bool
        Write the state alone where this is False: for who calls ``mujoco.mj_forward`` afterwards anyway.

    Raises
    ------
    UnsupportedError
        The model uses what the engine does not have, or flag sleep; qfrc_applied or xfrc_applied is not zero;
        eq_active is not as in the model; a callback is set.
    DivergedError
        A number is NaN or beyond 1e10. The MjData stays as it was: nothing is reset.
    """
    if nstep < 1:
        if nstep < 0:
            raise ArgumentError(f"nstep: {nstep}, expected at least 0")
        return
    moved = _moved_by(m, d)
    stepper = moved.stepper
    if not fields:
        stepper.advance(m, d, nstep)
        return
    if m.nsensor and m.opt.integrator == _RK4:
        _step_with_sensors_first(m, d, nstep, stepper)
        return
    stepper.step(m, d, nstep)
    _complete(m, d)
    _sense(m, d)
    stepper.finish(m, d)


def _moved_by(m: mujoco.MjModel, d: mujoco.MjData) -> _Moved:
    """Return what moves an MjData, of the present numbers of the model."""
    if not isinstance(d, mujoco.MjData):
        raise ArgumentError(f"d: {type(d).__name__}, expected a mujoco.MjData")
    if mujoco.get_mjcb_control() or mujoco.get_mjcb_passive() or mujoco.get_mjcb_contactfilter():
        raise UnsupportedError("a callback of control, passive forces or contacts is set: the engine calls none")
    model = model_of(m)
    if m.opt.enableflags & mujoco.mjtEnableBit.mjENBL_SLEEP:
        raise UnsupportedError("flag sleep: an MjData keeps more of sleeping trees than its arrays; use sinew.Data")
    moved = _moved.get(d)
    if moved is None or moved.model is not model or moved.m is not m:
        moved = _Moved(model, m, _core.MujocoStepper(model._native, m, d))
        _moved[d] = moved
    return moved


def _complete(m: mujoco.MjModel, d: mujoco.MjData) -> None:
    """Compute what follows from frames of bodies alone and the engine does not have: cinert, cameras, lights."""
    mujoco.mj_comPos(m, d)
    if m.ncam or m.nlight:
        mujoco.mj_camlight(m, d)


def _sense(m: mujoco.MjModel, d: mujoco.MjData) -> None:
    """Compute sensors and energy of the state that the MjData is in."""
    if m.nsensor:
        mujoco.mj_sensorPos(m, d)
        mujoco.mj_sensorVel(m, d)
        mujoco.mj_sensorAcc(m, d)
    if m.opt.enableflags & _ENERGY:
        mujoco.mj_energyPos(m, d)
        mujoco.mj_energyVel(m, d)


def _step_with_sensors_first(m: mujoco.MjModel, d: mujoco.MjData, nstep: int, stepper: _core.MujocoStepper) -> None:
    """Step where fields are of the last stage of RK4, but sensors of the first."""
    before = np.empty(mujoco.mj_stateSize(m, _STATE))
    mujoco.mj_getState(m, d, before, _STATE)
    try:
        stepper.evaluate(m, d, nstep)
        _complete(m, d)
        _sense(m, d)
        stepper.step(m, d, 1)
        _complete(m, d)
        stepper.finish(m, d)
    except BaseException:
        mujoco.mj_setState(m, d, before, _STATE)
        raise


_told: set[str] = set()


def _step_or_fall_back(m: mujoco.MjModel, d: mujoco.MjData, nstep: int, fields: bool) -> None:
    """Step by our engine, or as before where it cannot."""
    try:
        step(m, d, nstep, fields=fields)
    except DivergedError:
        _mj_step(m, d, nstep)  # counts a warning and resets, as programs expect
    except UnsupportedError as error:
        text = str(error)
        if text not in _told:
            _told.add(text)
            warnings.warn(f"MuJoCo's own mj_step is used: {text}", RuntimeWarning, stacklevel=3)
        _mj_step(m, d, nstep)


def _step_all(m: mujoco.MjModel, d: mujoco.MjData, nstep: int = 1) -> None:
    _step_or_fall_back(m, d, nstep, True)


def _step_state(m: mujoco.MjModel, d: mujoco.MjData, nstep: int = 1) -> None:
    _step_or_fall_back(m, d, nstep, False)


def use(on: bool = True, *, fields: bool = True) -> None:
    """Let ``mujoco.mj_step`` be ours in this process from now on, or MuJoCo's again.

    Programs that call ``mujoco.mj_step`` by that name, as MyoSuite, Gymnasium and dm_control do, then run on our
    steps; ``mj_step1``, ``mj_step2`` and ``mj_forward`` stay MuJoCo's. What the engine does not have is stepped by
    MuJoCo, with one RuntimeWarning that says why. So is a call that diverges: MuJoCo counts its warning and resets.

    Parameters
    ----------
    on : bool
        False: MuJoCo's again.
    fields : bool
        As in `step`. False suits MyoSuite 3, whose environments call ``mj_forward`` after their steps.
    """
    mujoco.mj_step = (_step_all if fields else _step_state) if on else _mj_step


@contextmanager
def stepping(*, fields: bool = True) -> Iterator[None]:
    """Let ``mujoco.mj_step`` be ours inside a ``with``: see `use`, which `fields` is for, too."""
    before = mujoco.mj_step
    use(fields=fields)
    try:
        yield
    finally:
        mujoco.mj_step = before
