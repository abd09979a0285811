"""Residuals of rollouts with exact Jacobians, for mujoco.minimize.least_squares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from sinew.data import Data
from sinew.errors import ArgumentError, UnsupportedError
from sinew.model import Model
from sinew.mujoco._models import model_of
from sinew.rollout import rollout
from sinew.state import State, StateLike

__all__ = ["Tracking"]

Doubles = NDArray[np.float64]
_DIVERGED = 1e10  # residual of a motion that diverges: no step of a solver is taken there


class Tracking:
    """Weighted differences of a motion from targets, and their exact Jacobian.

    >>> motion = sinew.mujoco.Tracking(m, state, ctrl, {"sensordata": (target, weight), "ctrl": (0, 0.1)})
    >>> x, log = mujoco.minimize.least_squares(motion.x0, motion.residual, bounds, motion.jacobian)
    >>> motion.controls(x)

    The variables x are the controls of all steps, or what these are combined of (`basis`), or the initial state.

    Parameters
    ----------
    model : Model or mujoco.MjModel
        What moves; an MjModel with its present numbers.
    state : State, mapping or MjData
        Initial state, one row.
    ctrl : array_like, (T, nu)
        Controls that x begins with.
    targets : mapping
        Pairs of a target and a weight by name: "qpos", "qvel", "act", "sensordata" of the states 0 to T,
        (T + 1, .), and "ctrl", (T, nu). Both broadcast; what has the weight 0 is left out. The residual is
        weight * (quantity - target), in the order of the mapping, state by state. Of sensordata the rows belong to
        the states; at the last one the controls of the last step stand.
    by : {"ctrl", "state"}
        Whether x is the controls, or (qpos, qvel, act) of the initial state.
    basis : array_like, (T, nu, nx), optional
        With it controls are ctrl + basis @ x, e.g. those of a spline or constant ones; x begins at zero.
    threads : int
        Threads of the CPU for the columns of a call; 0: as many as this process may use.

    Raises
    ------
    UnsupportedError
        Positions with quaternions are no variables, and are tracked by sensors alone; a sensor has no derivative.
    """

    def __init__(
        self,
        model: Model | mujoco.MjModel,
        state: StateLike,
        ctrl: ArrayLike,
        targets: Mapping[str, tuple[ArrayLike, ArrayLike]],
        *,
        by: Literal["ctrl", "state"] = "ctrl",
        basis: ArrayLike | None = None,
        threads: int = 0,
    ) -> None:
        self._model = model if isinstance(model, Model) else model_of(model)
        self._ctrl = np.array(ctrl, dtype=np.float64)
        if self._ctrl.ndim != 2 or self._ctrl.shape[1] != self._model.nu or len(self._ctrl) == 0:
            raise ArgumentError(f"ctrl: shape {self._ctrl.shape}, expected (T, {self._model.nu})")
        if by not in ("ctrl", "state") or (by == "state" and basis is not None):
            raise ArgumentError(f"by: {by!r}, expected 'ctrl', or 'state' without a basis")
        self._by, self._threads = by, threads
        self._qpos_of_scalars, self._dof_of_scalars = _scalars(self._model)
        self._data = Data(self._model)
        self._data.set_state(State.of(state))
        self._basis = None if basis is None else np.asarray(basis, dtype=np.float64)
        if self._basis is not None and (self._basis.ndim != 3 or self._basis.shape[:2] != self._ctrl.shape):
            raise ArgumentError(f"basis: shape {self._basis.shape}, expected {(*self._ctrl.shape, 'nx')}")
        self._begin = self._data.state
        if by == "state":
            self._refuse_quaternions(range(self._model.nq))
        self._targets = {name: self._target(name, *pair) for name, pair in targets.items()}

    @property
    def x0(self) -> Doubles:
        """The variables at the begin, (nx,)."""
        if self._by == "state":
            return np.concatenate([np.asarray(getattr(self._begin, name)) for name in ("qpos", "qvel", "act")])
        return self._ctrl.ravel().copy() if self._basis is None else np.zeros(self._basis.shape[2])

    def controls(self, x: ArrayLike) -> Doubles:
        """Return the controls (T, nu) of variables (nx,) or (nx, 1)."""
        first: Doubles = self._controls(self._columns(x))[0].copy()
        return first

    def residual(self, x: ArrayLike) -> Doubles:
        """Return the residuals (nr,) of variables (nx,), or (nr, k) of the k columns of (nx, k), which move at once."""
        columns = self._columns(x)
        moved = self._roll(columns)
        parts = []
        for name, (target, weight, used) in self._targets.items():
            quantity = self._controls(columns) if name == "ctrl" else getattr(moved, name)
            parts.append(((quantity - target) * weight)[:, used])
        r: Doubles = np.nan_to_num(np.concatenate(parts, axis=1).T, nan=_DIVERGED)
        return r if np.ndim(x) == 2 else r[:, 0]

    def jacobian(self, x: ArrayLike, r: Any = None) -> Doubles:
        """Return the Jacobian (nr, nx) at variables (nx,) or (nx, 1); `r`, the residual there, is not needed."""
        del r
        columns = self._columns(x)
        ctrl = self._controls(columns)[0]
        moved = self._roll(columns).raise_if_diverged()
        n, steps, nx = self._model.nstate, len(ctrl), columns.shape[1]
        parts = {name: np.empty((np.count_nonzero(used), nx)) for name, (_, _, used) in self._targets.items()}
        filled = dict.fromkeys(parts, 0)
        state = np.eye(n) if self._by == "state" else np.zeros((n, nx))
        for t in range(steps + 1):
            A, B, *CD = self._step_jacobian(moved, ctrl, t)
            by_ctrl = self._by_ctrl(min(t, steps - 1), nx)
            for name, part in parts.items():
                if name == "ctrl" and t == steps:
                    continue
                _, weight, used = self._targets[name]
                rows = self._rows(name, state, by_ctrl, CD)[used[t]] * weight[t, used[t], None]
                part[filled[name] : filled[name] + len(rows)] = rows
                filled[name] += len(rows)
            state = A @ state + B @ by_ctrl
        return np.concatenate(list(parts.values()))

    # ---- parts ----

    def _target(self, name: str, target: ArrayLike, weight: ArrayLike) -> tuple[Doubles, Doubles, NDArray[np.bool_]]:
        m, states = self._model, len(self._ctrl) + 1
        shapes = {
            "qpos": (states, m.nq),
            "qvel": (states, m.nv),
            "act": (states, m.na),
            "sensordata": (states, m.nsensordata),
            "ctrl": self._ctrl.shape,
        }
        if name not in shapes:
            raise ArgumentError(f"targets: {name!r} is not one of {', '.join(shapes)}")
        try:
            full = [np.broadcast_to(np.asarray(x, dtype=np.float64), shapes[name]) for x in (target, weight)]
        except ValueError as error:
            raise ArgumentError(f"targets: {name}: {error}; expected {shapes[name]}") from None
        used = full[1] != 0
        if name == "qpos":
            self._refuse_quaternions(np.flatnonzero(used.any(axis=0)))
        return full[0], full[1], used

    def _refuse_quaternions(self, entries: Any) -> None:
        bad = np.setdiff1d(entries, self._qpos_of_scalars)
        if len(bad):
            raise UnsupportedError(f"qpos[{bad[0]}] is of a quaternion: it is no variable; track a sensor instead")

    def _columns(self, x: ArrayLike) -> Doubles:
        """Return variables as (k, nx)."""
        columns = np.atleast_2d(np.asarray(x, dtype=np.float64).T)
        if columns.shape[1] != len(self.x0):
            raise ArgumentError(f"x: {columns.shape[1]} variables, expected {len(self.x0)}")
        return columns

    def _controls(self, columns: Doubles) -> Doubles:
        if self._by == "state":
            return np.broadcast_to(self._ctrl, (len(columns), *self._ctrl.shape))
        if self._basis is None:
            return columns.reshape(-1, *self._ctrl.shape)
        combined: Doubles = self._ctrl + np.einsum("tux,kx->ktu", self._basis, columns)
        return combined

    def _roll(self, columns: Doubles) -> Any:
        m, begin = self._model, self._begin
        if self._by == "state":
            qpos, qvel, act = np.split(columns, (m.nq, m.nq + m.nv), axis=1)
            begin = State(qpos, qvel, act, begin.time, begin.mocap)
        return rollout(m, begin, self._controls(columns), threads=self._threads, gradients=False)

    def _by_ctrl(self, t: int, nx: int) -> Doubles:
        """Return the derivatives of the controls of step t by x."""
        nu = self._model.nu
        if self._by == "state":
            return np.zeros((nu, nx))
        return np.eye(nu, nx, t * nu) if self._basis is None else self._basis[t]

    def _rows(self, name: str, state: Doubles, by_ctrl: Doubles, CD: list[Doubles]) -> Doubles:
        """Return the derivatives of a quantity by x, given those of the state, as its tangent, and of the controls."""
        m = self._model
        if name == "ctrl":
            return by_ctrl
        if name == "sensordata":
            rows: Doubles = CD[0] @ state + CD[1] @ by_ctrl
            return rows
        if name == "qpos":
            rows = np.zeros((m.nq, state.shape[1]))
            rows[self._qpos_of_scalars] = state[self._dof_of_scalars]
            return rows
        return state[m.nv : 2 * m.nv] if name == "qvel" else state[2 * m.nv :]

    def _step_jacobian(self, moved: Any, ctrl: Doubles, t: int) -> tuple[Doubles, ...]:
        d = self._data
        d.set_state(State(moved.qpos[0, t], moved.qvel[0, t], moved.act[0, t], moved.time[0, t], self._begin.mocap))
        d.ctrl[:] = ctrl[min(t, len(ctrl) - 1)]
        return d.jacobian(sensors=True) if "sensordata" in self._targets else d.jacobian()


def _scalars(m: Model) -> tuple[list[int], list[int]]:
    """Return the entries of qpos that are no quaternion's, and the degrees of freedom that move them."""
    qpos: list[int] = []
    dof: list[int] = []
    for kind, q, v in zip(m.jnt_type, m.jnt_qposadr, m.jnt_dofadr, strict=True):
        count = {0: 3, 1: 0}.get(int(kind), 1)  # of free joints the position, of balls nothing
        qpos.extend(range(q, q + count))
        dof.extend(range(v, v + count))
    return qpos, dof
