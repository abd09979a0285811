"""Rollouts with the arguments and results of mujoco.rollout."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from sinew.errors import ArgumentError, StateError, UnsupportedError
from sinew.model import Model
from sinew.mujoco._models import model_of
from sinew.rollout import rollout as sinew_rollout
from sinew.state import State

__all__ = ["Rollout", "rollout", "shutdown_persistent_pool"]

Doubles = NDArray[np.float64]
_FULL = int(mujoco.mjtState.mjSTATE_FULLPHYSICS)
_USER = int(mujoco.mjtState.mjSTATE_USER)
_CTRL = int(mujoco.mjtState.mjSTATE_CTRL)


class Rollout:
    """Rolls out on `nthread` threads; 0 or None: on one. As ``mujoco.rollout.Rollout``."""

    def __init__(self, *, nthread: int | None = None) -> None:
        self.nthread = 0 if nthread is None else operator.index(nthread)
        self._closed = False

    def __enter__(self) -> Rollout:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Take no more calls."""
        self._closed = True

    def rollout(
        self,
        model: mujoco.MjModel | Sequence[mujoco.MjModel],
        data: mujoco.MjData | Sequence[mujoco.MjData],
        initial_state: ArrayLike,
        control: ArrayLike | None = None,
        *,
        control_spec: int = _CTRL,
        skip_checks: bool = False,
        nstep: int | None = None,
        initial_warmstart: ArrayLike | None = None,
        state: Doubles | None = None,
        sensordata: Doubles | None = None,
        chunk_size: int | None = None,
    ) -> tuple[Doubles | None, Doubles | None]:
        """Roll out: see the function `rollout`."""
        if self._closed:
            raise StateError("rollout requested after thread pool shutdown")
        control_spec = int(control_spec)
        if control_spec & ~_USER:
            raise ArgumentError("control_spec can only contain bits in mjSTATE_USER")
        data = [data] if isinstance(data, mujoco.MjData) else list(data)
        _check_data(data, self.nthread)
        if chunk_size is not None and _whole("chunk_size", chunk_size) <= 0:
            raise ArgumentError("chunk_size must be a positive integer")
        models = [model] if isinstance(model, mujoco.MjModel) else list(model)
        _check_models(models, [d.model for d in data])
        if control is None:  # it stays as it is in the data
            control = np.empty(mujoco.mj_stateSize(models[0], control_spec))
            mujoco.mj_getState(models[0], data[0], control, control_spec)
        call = _Call(
            models, initial_state, control, control_spec, nstep, initial_warmstart, state, sensordata, skip_checks
        )
        call.compute(max(1, self.nthread))
        return call.state, call.sensordata


def rollout(
    model: mujoco.MjModel | Sequence[mujoco.MjModel],
    data: mujoco.MjData | Sequence[mujoco.MjData],
    initial_state: ArrayLike,
    control: ArrayLike | None = None,
    *,
    control_spec: int = _CTRL,
    skip_checks: bool = False,
    nstep: int | None = None,
    initial_warmstart: ArrayLike | None = None,
    state: Doubles | None = None,
    sensordata: Doubles | None = None,
    chunk_size: int | None = None,
    persistent_pool: bool = False,
) -> tuple[Doubles | None, Doubles | None]:
    """Roll out models under open-loop controls by our engine, as ``mujoco.rollout.rollout``.

    Inputs with one row stand for all; nbatch and nstep follow from shapes. Sensors that the engine does not have are
    NaN. A rollout that diverges repeats its last good state, and what sensors were before it.

    Parameters
    ----------
    model : MjModel, or sequence of nbatch MjModel of the same sizes
        What is rolled out. Rollouts of one model are one call of the engine.
    data : MjData, or sequence of MjData
        Their number is that of the threads. They are not written, and read only where `control` is not given.
    initial_state : array_like, ([nbatch or 1,] nstate)
        ``mjSTATE_FULLPHYSICS``: time, qpos, qvel, act.
    control : array_like, ([[nbatch or 1,] nstep or 1,] ncontrol), optional
        Inputs of each step. Without them they are as in the data, the first of several.
    control_spec : int
        What `control` consists of, bits of ``mjtState``. Mocap poses must not change during a rollout; applied forces
        must be zero, and equalities as in the model.
    skip_checks : bool
        Compute `state` and `sensordata` only where they are given. Shapes are checked all the same.
    nstep : int, optional
        Number of steps, where no array tells it.
    initial_warmstart : array_like, ([nbatch or 1,] nv), optional
        What the solver of constraints starts from. Default: zero.
    state : ndarray, (nbatch, nstep, nstate), optional
        Where states after the steps go.
    sensordata : ndarray, (nbatch, nstep, nsensordata), optional
        Where sensors go: those of the states before the steps, as ``mj_step`` leaves them.
    chunk_size, persistent_pool
        Have no effect: threads are kept between calls, and take one rollout after the other.

    Returns
    -------
    state : ndarray, (nbatch, nstep, nstate)
    sensordata : ndarray, (nbatch, nstep, nsensordata)

    Raises
    ------
    ArgumentError
        A shape, a type, a number that is NaN. It is a ValueError.
    UnsupportedError
        The model, or inputs that the engine does not have.
    """
    del persistent_pool
    threads = 0 if isinstance(data, mujoco.MjData) or len(data) == 1 else len(data)
    return Rollout(nthread=threads).rollout(
        model,
        data,
        initial_state,
        control,
        control_spec=control_spec,
        skip_checks=skip_checks,
        nstep=nstep,
        initial_warmstart=initial_warmstart,
        state=state,
        sensordata=sensordata,
        chunk_size=chunk_size,
    )


def shutdown_persistent_pool() -> None:
    """Do nothing: for programs that call it."""


class _Call:
    """One call: arguments as the engine takes them, arrays that results go into."""

    def __init__(
        self,
        models: list[mujoco.MjModel],
        initial_state: ArrayLike,
        control: ArrayLike,
        control_spec: int,
        nstep: int | None,
        initial_warmstart: ArrayLike | None,
        state: Doubles | None,
        sensordata: Doubles | None,
        only_given: bool,
    ) -> None:
        self.models, first = models, models[0]
        parts = _parts(first, control_spec)
        widths = (first.nq, first.nv, first.na, first.nhistory + first.nplastic)
        nstate, ncontrol = 1 + sum(widths), sum(width for _, width in parts)
        if mujoco.mj_stateSize(first, _FULL) != nstate:
            raise UnsupportedError(
                "mjSTATE_FULLPHYSICS of this model has more than time, qpos, qvel, act, history and plastic"
            )
        begin = _array("initial_state", initial_state, 2, nstate)
        warmstart = _array("initial_warmstart", initial_warmstart, 2, first.nv)
        inputs = _array("control", control, 3, ncontrol)
        self.state = _array("state", state, 3, nstate)
        self.sensordata = _array("sensordata", sensordata, 3, first.nsensordata)
        named = {"control": inputs, "state": self.state, "sensordata": self.sensordata}
        self.count = _common(0, 1, {"initial_state": begin, "initial_warmstart": warmstart, **named})
        if len(self.models) > 1 and self.count == 1:
            self.count = len(self.models)
        if len(self.models) not in (1, self.count):
            raise ArgumentError(f"nbatch inferred as {self.count} but model is length {len(self.models)}")
        self.steps = _common(1, 1 if nstep is None else _nstep(nstep), named)
        if not only_given:
            rows = (self.count, self.steps)
            self.state = np.empty((*rows, nstate)) if self.state is None else self.state
            self.sensordata = np.empty((*rows, first.nsensordata)) if self.sensordata is None else self.sensordata
        for name, out in (("state", self.state), ("sensordata", self.sensordata)):
            if out is not None and out.shape[:2] != (self.count, self.steps):
                raise ArgumentError(f"{name} has the rows {out.shape[:2]}, expected {(self.count, self.steps)}")
        assert begin is not None and inputs is not None
        self.begin = np.broadcast_to(begin, (self.count, nstate))
        self.warmstart = None if warmstart is None else np.broadcast_to(warmstart, (self.count, first.nv))
        self.ctrl, self.mocap = self._inputs(first, inputs, parts)

    def _inputs(
        self, m: mujoco.MjModel, inputs: Doubles, parts: list[tuple[int, int]]
    ) -> tuple[Doubles | None, Doubles | None]:
        """Return controls and mocap poses of each rollout; refuse the rest unless it is without effect."""
        columns = np.split(inputs, np.cumsum([width for _, width in parts])[:-1], axis=2)
        values = {bit: column for (bit, _), column in zip(parts, columns, strict=True)}
        kinds = mujoco.mjtState
        for bit in (kinds.mjSTATE_QFRC_APPLIED, kinds.mjSTATE_XFRC_APPLIED):
            if np.any(values.get(int(bit), 0)):
                raise UnsupportedError(f"control: {bit.name} is not zero: the engine has no input for it")
        active = values.get(int(kinds.mjSTATE_EQ_ACTIVE))
        if active is not None and np.any((active != 0) != (m.eq_active0 != 0)):
            raise UnsupportedError("control: mjSTATE_EQ_ACTIVE differs from eq_active0: the engine has no input for it")
        ctrl = values.get(int(kinds.mjSTATE_CTRL))
        if ctrl is not None:
            ctrl = np.broadcast_to(ctrl, (self.count, self.steps, m.nu))
        return ctrl, self._mocap(m, values)

    def _mocap(self, m: mujoco.MjModel, values: dict[int, Doubles]) -> Doubles | None:
        """Return mocap poses (count, nmocap, 7), those of the model where `control` has none."""
        pose, given = np.empty((self.count, m.nmocap, 7)), False
        bodies = np.flatnonzero(m.body_mocapid >= 0)
        bodies = bodies[np.argsort(m.body_mocapid[bodies])]
        for kind, columns, default in (
            (mujoco.mjtState.mjSTATE_MOCAP_POS, slice(0, 3), m.body_pos),
            (mujoco.mjtState.mjSTATE_MOCAP_QUAT, slice(3, 7), m.body_quat),
        ):
            pose[:, :, columns] = default[bodies]
            value = values.get(int(kind))
            if value is None or m.nmocap == 0:
                continue
            if np.any(value != value[:, :1]):
                raise UnsupportedError(f"control: {kind.name} changes during a rollout: the engine has no input for it")
            pose[:, :, columns] = value[:, 0].reshape(len(value), m.nmocap, -1)
            given = True
        return pose if given else None

    def compute(self, threads: int) -> None:
        """Fill in the results: one call of the engine for the rollouts of each model, side by side."""
        if self.steps == 0 or self.count == 0:
            return
        converted = [model_of(m) for m in self.models]
        if len(converted) == 1:
            self._compute_rows(converted[0], slice(None), threads)
            return
        rows: dict[int, list[int]] = {}
        for i, model in enumerate(converted):
            rows.setdefault(id(model), []).append(i)
        with ThreadPoolExecutor(threads) as pool:
            calls = [pool.submit(self._compute_rows, converted[r[0]], np.array(r), 1) for r in rows.values()]
            for call in calls:
                call.result()

    def _compute_rows(self, model: Model, rows: Any, threads: int) -> None:
        def of(x: Doubles | None) -> Doubles | None:
            return None if x is None else x[rows]

        begin = self.begin[rows]
        qpos, qvel, act, history = np.split(begin[:, 1:], np.cumsum((model.nq, model.nv, model.na)), axis=1)
        start = State(qpos, qvel, act, begin[:, 0], of(self.mocap), of(self.warmstart), history)
        names = [] if self.state is None else ["time", "qpos", "qvel", "act", "history"]
        if self.sensordata is not None and model.nsensordata:
            names.append("sensordata")
        result = sinew_rollout(
            model,
            start,
            of(self.ctrl),
            nstep=self.steps,
            threads=threads,
            gradients=False,
            outputs=names,
        )
        bad = bool(np.any(result.status))
        last = np.minimum(np.arange(1, self.steps + 1), np.maximum(result.good_states[:, None] - 1, 0))[..., None]
        if self.state is not None:
            at = 0
            for part in (result.time[..., None], result.qpos, result.qvel, result.act, result.history):
                columns = slice(at, at := at + part.shape[2])
                if bad:
                    part[:, 0] = begin[:, columns]  # also where the first step could not be made
                    self.state[rows, :, columns] = np.take_along_axis(part, last, axis=1)
                else:
                    self.state[rows, :, columns] = part[:, 1:]
        if self.sensordata is not None and model.nsensordata:
            sensors = result.sensordata
            self.sensordata[rows] = (
                np.take_along_axis(sensors, np.maximum(last - 1, 0), axis=1) if bad else sensors[:, :-1]
            )


# ---- arguments ----


def _check_data(data: list[Any], nthread: int) -> None:
    count = len(data)
    if not all(isinstance(d, mujoco.MjData) for d in data):
        raise ArgumentError("data: expected an MjData or a sequence of them")
    if count == 0:
        raise ArgumentError("The list of data instances is empty")
    if nthread == 0 and count > 1:
        raise ArgumentError("More than one data instance passed but rollout is configured to run on main thread")
    if nthread > 0 and count != nthread:
        raise ArgumentError(f"Length of data: {count} not equal to nthread: {nthread}")


def _check_models(models: list[Any], of_data: list[mujoco.MjModel]) -> None:
    """Refuse models of different sizes, and what is no model."""
    if not models or not all(isinstance(m, mujoco.MjModel) for m in models):
        raise ArgumentError("model: expected an MjModel or a sequence of them")

    def sizes(m: mujoco.MjModel) -> tuple[int, ...]:
        return m.nq, m.nv, m.na, m.nu, m.nbody, m.nmocap, m.neq, m.nsensordata

    if any(sizes(m) != sizes(models[0]) for m in (*models, *of_data)):
        raise ArgumentError("models are not compatible")


def _parts(m: mujoco.MjModel, spec: int) -> list[tuple[int, int]]:
    """Return the bits of a specification, in the order of their numbers in a control, and how many each has."""
    bits = [1 << i for i in range(spec.bit_length()) if spec >> i & 1]
    return [(bit, mujoco.mj_stateSize(m, bit)) for bit in bits]


def _whole(name: str, x: Any) -> int:
    if isinstance(x, bool):
        raise ArgumentError(f"{name} must be an integer")
    try:
        return operator.index(x)
    except TypeError:
        raise ArgumentError(f"{name} must be an integer") from None


def _nstep(x: Any) -> int:
    if _whole("nstep", x) < 0:
        raise ArgumentError("nstep must be non-negative")
    return operator.index(x)


def _array(name: str, x: Any, ndim: int, width: int) -> Doubles | None:
    """Return an argument with `ndim` dimensions, the last of `width`: the same memory where that is possible."""
    if x is None and name not in ("initial_state", "control"):
        return None
    if not isinstance(x, np.ndarray | float):
        raise ArgumentError(f"{name} must be a numpy array or float")
    if np.ndim(x) > ndim:
        raise ArgumentError(f"{name} can have at most {ndim} dimensions")
    array = np.asarray(x, dtype=np.float64)
    array = array.reshape((1,) * (ndim - array.ndim) + array.shape)
    if array.shape[-1] != width:
        raise ArgumentError(f"trailing dimension of {name} must be {width}, got {array.shape[-1]}")
    return array


def _common(axis: int, size: int, arrays: dict[str, Doubles | None]) -> int:
    """Return the common length of arrays along an axis; a length of 1 fits all."""
    for name, array in arrays.items():
        if array is None or array.shape[axis] in (1, size):
            continue
        if size != 1:
            raise ArgumentError(f"dimension {axis} inferred as {size} but {name} has {array.shape[axis]}")
        size = array.shape[axis]
    return size
