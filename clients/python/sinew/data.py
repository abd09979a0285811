"""One body: its state, its steps, and all that is computed from them."""

from __future__ import annotations

import functools
from enum import IntFlag
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sinew import _core
from sinew._arrays import as_array, doubles, given, history_of, one_state, row, shape_text, whole
from sinew.cfd import CFD, checked_cfd
from sinew.distance import Distance, distance_of
from sinew.errors import ArgumentError
from sinew.model import Model, not_a_model
from sinew.named import Named, Table, data_table, object_id
from sinew.names import did_you_mean
from sinew.state import State, StateLike

__all__ = ["Data", "StepGradient", "Warnings"]

_Doubles = NDArray[np.float64]

# The layout of SinewContact in sinew.h.
_CONTACT = np.dtype(
    [
        ("dist", np.float64),
        ("pos", np.float64, 3),
        ("frame", np.float64, 9),
        ("friction", np.float64, 5),
        ("force", np.float64, 6),
        ("dim", np.intc),
        ("geom", np.intc, 2),
        ("efc_address", np.intc),
    ],
    align=True,
)
_TABLE = data_table()


class Warnings(IntFlag):
    """What happened in steps, ``SINEW_WARN_*``."""

    CONTACTS = 1  #: more contacts than the model allows; the last ones were dropped
    CONSTRAINTS = 2  #: more rows of constraints than it allows; the last ones were dropped
    BAD_STATE = 4  #: NaN or beyond 1e10
    NOT_CONVERGED = 8  #: the solver used all its iterations
    INERTIA = 16  #: the inertia matrix is not positive definite


class StepGradient(NamedTuple):
    """Derivatives of a number by the state and the controls that a step begins with."""

    qpos: _Doubles  # (nq,), or (nv,) as a tangent
    qvel: _Doubles  # (nv,)
    act: _Doubles  # (na,)
    ctrl: _Doubles  # (nu,)


class Data(Named):
    """A body: its state and controls, and all that is computed from them, under the names of MuJoCo's ``mjData``.

    `time`, `qpos`, `qvel`, `act`, `ctrl`, `history`, `mocap_pos`, `mocap_quat` and `qacc_warmstart` are inputs:
    live views that can be written. ``data.qpos = x`` copies `x` into them, and ``data.ctrl = 0.1`` sets all. All
    others (`fields` lists them) are outputs of the last `step` or `forward`: live views that cannot be written.
    `efc_*`, whose sizes change, are copies. As in MuJoCo a step computes outputs at the state before it.

    Under flag sleep trees fall asleep and wake as MuJoCo's do, and `tree_asleep` and `sleep_qpos`, the positions at
    which they sleep, are inputs, too: part of the state. (`sinew.rollout` and planners keep all trees awake.)

    A step leaves out what nothing reads, such as frames of geoms that touch nothing, and `sensordata`. When one of
    these arrays is asked for, the last step or forward is made once more to fill it, and from then on every step
    computes it; with all frames a step can take twice as long. For many steps there is `sinew.rollout`.

    A copy (`copy.copy`, `copy.deepcopy`, pickle) has the inputs and the contacts from distance; outputs are there after
    its next step or forward.

    A body belongs to one thread at a time: a call while another is under way raises `StateError`. Calls that compute
    release the interpreter's lock.

    Parameters
    ----------
    model : Model
        What moves. The body begins at ``qpos0``.

    Attributes
    ----------
    model : Model
        What moves.
    """

    model: Model
    _native: _core.Data
    _inputs: frozenset[str]
    _cfd: CFD | None

    def __init__(self, model: Model):
        if not isinstance(model, Model):
            raise not_a_model("model", model)
        native = _core.Data(model._native)
        inputs = frozenset(name for name, is_input in native.fields() if is_input)
        self.__dict__.update(model=model, _native=native, _inputs=inputs, _cfd=None)

    # ---- arrays ----

    def __getattr__(self, name: str) -> NDArray[Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        changing = name.startswith("efc_")
        array = self._native.array(name, changing)
        if array is None:
            raise AttributeError(f"a Data has no {name!r}{did_you_mean(name, dir(self))}")
        value: NDArray[Any] = array[:, 0] if array.shape[1] == 1 else array
        if changing:
            return value
        if name not in self._inputs:
            value.flags.writeable = False
        self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "time":
            super().__setattr__(name, value)
            return
        if name not in self._inputs:
            close = did_you_mean(name, self._inputs)
            what = "an output" if hasattr(type(self), name) or name in self.fields() else f"no array of a body{close}"
            raise AttributeError(f"{name}: {what}; inputs are {', '.join(sorted(self._inputs))}")
        array, numbers = getattr(self, name), doubles(name, value)
        try:
            array[...] = numbers
        except ValueError:
            wanted = shape_text(array.shape)
            raise ArgumentError(f"{name}: shape {shape_text(numbers.shape)}, expected {wanted}") from None

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.fields()})

    def __repr__(self) -> str:
        return f"<sinew.Data of {self.model!r} at {self.time:g} s>"

    def fields(self) -> list[str]:
        """Return the names of all arrays of the body."""
        return [name for name, _ in self._native.fields()]

    @functools.cached_property
    def _time(self) -> NDArray[Any]:
        return self.__getattr__("time")

    @property
    def time(self) -> float:
        """Time [s]."""
        return float(self._time[0])

    @time.setter
    def time(self, value: float) -> None:
        self._time[...] = row("time", np.reshape(value, -1), 1)

    @functools.cached_property
    def _counts(self) -> dict[str, NDArray[Any]]:
        return {name: self.__getattr__(name) for name in ("ncon", "ne", "nf", "nl", "nefc")}

    @property
    def ncon(self) -> int:
        """Number of contacts."""
        return int(self._counts["ncon"][0])

    @property
    def ne(self) -> int:
        """Number of rows of equalities."""
        return int(self._counts["ne"][0])

    @property
    def nf(self) -> int:
        """Number of rows of dry friction."""
        return int(self._counts["nf"][0])

    @property
    def nl(self) -> int:
        """Number of rows of limits."""
        return int(self._counts["nl"][0])

    @property
    def nefc(self) -> int:
        """Number of rows of constraints, of which the arrays ``efc_*`` have as many."""
        return int(self._counts["nefc"][0])

    @property
    def contacts(self) -> NDArray[np.void]:
        """Contacts of the last step or forward, a structured array with MuJoCo's names: a copy.

        `dist` [m], `pos` (3) [m], `frame` (9; rows: normal from the first geom to the second, two tangents),
        `friction` (5), `force` (6, in the frame: normal, tangents [N], moments [N m]), `dim`, `geom` (2) and
        `efc_address` (-1: none).
        """
        return np.frombuffer(bytearray(self._native.contacts()), _CONTACT)

    @property
    def _named_model(self) -> Model:
        return self.model

    def _named_table(self) -> Table:
        return _TABLE

    def _named_array(self, field: str, write: bool) -> NDArray[Any]:
        if write and field not in self._inputs:
            raise AttributeError(f"{field} is an output; inputs are {', '.join(sorted(self._inputs))}")
        array: NDArray[Any] = getattr(self, field)
        return array

    # ---- steps ----

    def step(self, nstep: int = 1) -> None:
        """Make `nstep` steps under the present controls, as ``mj_step``.

        Raises
        ------
        DivergedError
            A number is NaN or beyond 1e10: the step and the number. The body stays at the last good state.
        """
        self._native.step(whole("nstep", nstep))

    def forward(self) -> None:
        """Compute everything at the present state, `sensordata` included, without a step, as ``mj_forward``.

        Raises
        ------
        DivergedError
            A number is NaN or beyond 1e10.
        """
        self._native.forward()

    def reset(self, keyframe: str | int | None = None) -> None:
        """Go to ``qpos0`` at rest, or to a keyframe by name or index.

        At ``qpos0`` time and controls are zero; those that are a quaternion turn nothing, as MuJoCo has it.
        """
        self._native.reset(None if keyframe is None else object_id(self.model, "keyframe", keyframe))

    @property
    def plastic(self) -> NDArray[Any]:
        """Rests of springs that yield, ``MjData.plastic``: the end of `history`, live."""
        return self.history[self.model.nhistory - self.model.nplastic :]

    @property
    def state(self) -> State:
        """A copy of the state: time, qpos, qvel, act, the mocap bodies and the buffers of controls and sensors."""
        mocap = np.concatenate([self.mocap_pos, self.mocap_quat], axis=1) if self.model.nmocap else None
        history = self.history.copy() if self.model.nhistory else None
        return State(self.qpos.copy(), self.qvel.copy(), self.act.copy(), self.time, mocap, history=history)

    def set_state(self, state: StateLike | None) -> None:
        """Go to a state: a `State`, a mapping of some of its members, an ``MjData``; None: ``qpos0`` at rest.

        What it does not have is as in the model. Controls stay, and the solver's warm start is cleared.

        Raises
        ------
        ArgumentError
            A shape.
        DivergedError
            A number is NaN or beyond 1e10; the body stays as it is.
        """
        history = history_of(self.model, state)
        self._native.set_state(*one_state(self.model, state))
        if history is not None and self.model.nhistory:
            self.history = history

    def copy_state_from(self, other: Data) -> None:
        """Copy all that the next step depends on from a body of the same model: state, controls, warm start."""
        if not isinstance(other, Data):
            raise ArgumentError(f"other: {type(other).__name__}, expected a sinew.Data")
        self._native.copy_state(other._native)

    def __copy__(self) -> Data:
        copy = Data(self.model)
        copy.copy_state_from(self)
        copy.set_cfd(self._cfd)
        return copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Data:
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        inputs = {name: np.array(getattr(self, name)) for name in self._inputs}
        return Data, (self.model,), {"inputs": inputs, "cfd": self._cfd}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state["inputs"].items():
            setattr(self, name, value)
        self.set_cfd(state["cfd"])

    @property
    def warnings(self) -> Warnings:
        """What happened in all steps since `clear_warnings` or a reset."""
        return Warnings(self._native.warnings)

    def clear_warnings(self) -> None:
        """Forget the warnings."""
        self._native.clear_warnings()

    # ---- derivatives ----

    def set_cfd(self, cfd: CFD | None) -> None:
        """Set how contacts act from a distance, from now on; None: MuJoCo's contacts."""
        self._native.set_cfd(None if cfd is None else checked_cfd(cfd)._native())
        self.__dict__["_cfd"] = cfd

    @overload
    def jacobian(self, sensors: Literal[False] = False) -> tuple[_Doubles, _Doubles]: ...

    @overload
    def jacobian(self, sensors: Literal[True]) -> tuple[_Doubles, _Doubles, _Doubles, _Doubles]: ...

    def jacobian(self, sensors: bool = False) -> tuple[_Doubles, ...]:
        """Return the derivatives of a step from the present state and controls, which stay as they are.

        A state counts by its tangent (dqpos, dqvel, dact), n = ``model.nstate`` numbers, as in ``mjd_transitionFD``.

        Parameters
        ----------
        sensors : bool
            Whether derivatives of sensordata, at the begin of the step, are wanted, too.

        Returns
        -------
        A, B : array, (n, n) and (n, nu)
            Derivatives of the next state by the state and by the controls.
        C, D : array, (nsensordata, n) and (nsensordata, nu)
            Derivatives of sensordata, with `sensors`.

        Raises
        ------
        UnsupportedError
            A sensor has no derivative.
        DivergedError
            A number is NaN or beyond 1e10.
        """
        n, nu, sensed = self.model.nstate, self.model.nu, self.model.nsensordata
        a, b = np.empty((n, n)), np.empty((n, nu))
        if not sensors:
            self._native.jacobian(a, b, None, None)
            return a, b
        c, d = np.empty((sensed, n)), np.empty((sensed, nu))
        self._native.jacobian(a, b, c, d)
        return a, b, c, d

    def vjp(
        self,
        qpos: ArrayLike | None = None,
        qvel: ArrayLike | None = None,
        act: ArrayLike | None = None,
        sensordata: ArrayLike | None = None,
        coordinates: Literal["array", "tangent"] = "array",
    ) -> StepGradient:
        """Return a vector-Jacobian product of a step from the present state and controls, which stay as they are.

        Parameters
        ----------
        qpos, qvel, act : array_like, (nq,) or (nv,), (nv,), (na,)
            Derivatives of a number by the next state; None: zero.
        sensordata : array_like, (nsensordata,)
            Derivative of the number by sensordata at the begin of the step; None: zero.
        coordinates : str
            Whether derivatives by positions are by the entries of qpos ("array", nq numbers, the part along a
            quaternion being zero) or by its tangent ("tangent", nv numbers as qvel).

        Returns
        -------
        StepGradient
            Derivatives of the number by the present qpos, qvel, act and ctrl.

        Raises
        ------
        ArgumentError
            A shape, a number that is not finite.
        UnsupportedError
            A bar of a sensor without a derivative.
        """
        by_entries = as_array(coordinates)
        model = self.model
        nq = model.nq if by_entries else model.nv
        out = StepGradient(np.empty(nq), np.empty(model.nv), np.empty(model.na), np.empty(model.nu))
        self._native.vjp(
            by_entries,
            given("qpos", qpos, nq),
            given("qvel", qvel, model.nv),
            given("act", act, model.na),
            given("sensordata", sensordata, model.nsensordata),
            *out,
        )
        return out

    def distance(self, geom1: str | int, geom2: str | int, limit: float = np.inf, jacobian: bool = False) -> Distance:
        """Return the distance of two geoms at the poses of the last `forward` or `step`.

        The model's filters of contacts, margins and gaps play no role.

        Parameters
        ----------
        geom1, geom2 : str or int
            Names or indices.
        limit : float
            What is farther away is not looked for [m].
        jacobian : bool
            Whether derivatives by positions are wanted.

        Raises
        ------
        UnsupportedError
            There is no collider for the types of the geoms, or a mesh has no vertices because nothing can touch it.
        StateError
            Nothing has been computed yet.
        """
        found = np.empty(10)
        by = np.empty((10, self.model.nv)) if jacobian else None
        first, second = (object_id(self.model, "geom", geom) for geom in (geom1, geom2))
        self._native.distance(first, second, limit, found, by)
        return distance_of(found, by)
