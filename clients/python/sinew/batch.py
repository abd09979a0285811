"""Many simulations that are stepped together, with live arrays of all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sinew import _core
from sinew._arrays import Doubles, check_out, doubles, whole
from sinew.cfd import CFD
from sinew.data import Data
from sinew.errors import ArgumentError, NotFoundError, SimulationError, SinewError, StateError, UnsupportedError
from sinew.linearize import Linearization, SensorLinearization, linearize_rollout
from sinew.model import Model, not_a_model
from sinew.named import Named, Table, View, data_table, model_table, object_id
from sinew.names import did_you_mean
from sinew.rollout import Gradient, rollout, rollout_vjp
from sinew.state import State

__all__ = ["Batch"]

_OPTION = "opt."


class Batch(Named):
    """`nsim` simulations of a model, stepped on threads; they look like those of ``mujoco.batch.Batch``.

    >>> batch = sinew.Batch(model, nsim=1024)
    >>> qpos, ctrl, xpos = batch.bind("qpos"), batch.bind("ctrl"), batch.bind("xpos")
    >>> for _ in range(1000):
    ...     ctrl[:] = policy(qpos)
    ...     batch.step()

    Fields of a body are attributes, live arrays (nsim, ...) with the names of ``mjData``. Inputs (time, qpos, qvel,
    act, ctrl, history, mocap_pos, mocap_quat, qacc_warmstart; under flag sleep tree_asleep and sleep_qpos) can be
    written, and are each simulation's state at its next call; ``batch.ctrl = u`` writes those of all. Others are
    refreshed by every call, at the state before its last step as in MuJoCo, and are zero between the moment that they
    are bound and the next call. Each simulation has the numbers of a `Data` of its own, bit for bit, whatever the
    number of threads. A batch belongs to one thread at a time.

    Parameters
    ----------
    model : Model
        The model.
    nsim : int
        Number of simulations. They begin at `qpos0`.
    threads : int
        Threads of the CPU; 0: as many as this process may use.
    device : str
        "cpu". Batches on a device have no steps yet; `sinew.rollout` runs there.

    Attributes
    ----------
    model : Model
        The model that simulations have where they have none of their own.
    nsim, threads : int
        Sizes.
    status : ndarray of int, (nsim,)
        0, or 10 where the last call of the simulation diverged. Read-only.
    warnings : ndarray of int, (nsim,)
        Bits of what happened in the last call, ``SINEW_WARN_*``. Read-only.
    """

    _named_batch = True
    model: Model
    nsim: int
    threads: int
    status: NDArray[np.int32]
    warnings: NDArray[np.int32]
    _native: _core.Bodies
    _fields: dict[str, tuple[bool, bool, tuple[int, ...]]]  # whether of ints, whether an input, shape of a row
    _rows: dict[str, NDArray[Any]]  # of all bound fields, as they are handed out
    _expanded: dict[str, tuple[NDArray[Any], NDArray[Any]]]  # values now, and those that models were made of
    _own: dict[int, Model]  # of simulations that have one of their own
    _models: Model | tuple[Model, ...] | None  # of set_models
    _table: Table

    def __init__(self, model: Model, nsim: int, threads: int = 0, device: str = "cpu") -> None:
        if not isinstance(model, Model):
            raise not_a_model("model", model)
        if device != "cpu":
            raise UnsupportedError(f"device: {device!r}, a Batch steps on 'cpu'; sinew.rollout runs on devices")
        nsim = whole("nsim", nsim)
        native = _core.Bodies(model._native, nsim, whole("threads", threads))
        fields = {
            name: (integer, given, () if rows * cols == 1 and name in _NUMBERS else (rows, cols)[: 1 + (cols > 1)])
            for name, integer, given, rows, cols in native.fields()
        }
        of_model, of_data = model_table(model.fields()), data_table()
        own: dict[str, Any] = {
            "model": model, "nsim": nsim, "threads": native.threads, "status": native.status,
            "warnings": native.warnings, "_native": native, "_fields": fields, "_rows": {}, "_expanded": {},
            "_own": {}, "_models": None, "_table": {kind: {**of_model[kind], **of_data[kind]} for kind in of_data},
        }  # fmt: skip
        self.__dict__.update(own)
        for name in self._inputs():
            self._bind(name)
        self._put(np.arange(nsim), None)

    def __repr__(self) -> str:
        return f"<sinew.Batch of {self.nsim} x {self.model!r}>"

    def __reduce__(self) -> Any:
        raise TypeError("a Batch is neither copied nor pickled: make another one, and write `state` into its arrays")

    # ---- fields ----

    def _inputs(self) -> list[str]:
        return [name for name, (_, given, _) in self._fields.items() if given]

    def _bind(self, name: str) -> NDArray[Any]:
        integer, given, shape = self._fields[name]
        rows = np.zeros((self.nsim, *shape), np.int32 if integer else np.float64)
        self._native.bind(name, rows)
        view = rows.view()
        view.flags.writeable = given
        self._rows[name] = view
        return view

    def bind(self, name: str) -> NDArray[Any]:
        """Return the live array, (nsim, ...), of a field of all simulations: the same one each time.

        Raises
        ------
        NotFoundError
            A body has no such field, or one whose size changes from step to step (``efc_*``).
        """
        if name in self._rows:
            return self._rows[name]
        if name not in self._fields:
            hint = did_you_mean(name, self._fields)
            if name in self.model.fields():
                hint = f"; it is one of the model: expand({name!r})"
            elif name.startswith("efc_"):
                hint = ": the sizes of efc_* change from step to step"
            raise NotFoundError(f"a Batch cannot bind {name!r}{hint}")
        return self._bind(name)

    def __getattr__(self, name: str) -> NDArray[Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self.bind(name)
        except NotFoundError as error:
            raise AttributeError(str(error)) from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._fields:
            raise AttributeError(f"{name}: a Batch has no such input{did_you_mean(name, self._inputs())}")
        rows = self._writable(name)
        numbers = value if self._fields[name][0] else doubles(name, value)
        try:
            rows[...] = numbers
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"{name}: {error}") from None

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._fields})

    def _writable(self, name: str) -> NDArray[Any]:
        if not self._fields[name][1]:
            raise AttributeError(f"{name} is an output of every call; inputs are {', '.join(self._inputs())}")
        return self._rows[name]

    @property
    def plastic(self) -> NDArray[Any]:
        """Rests of springs that yield, ``MjData.plastic``: the end of `history`, live."""
        rests: NDArray[Any] = self.history[:, self.model.nhistory - self.model.nplastic :]
        return rests

    @property
    def state(self) -> State:
        """A copy of the states of all simulations."""
        mocap = np.concatenate([self._rows["mocap_pos"], self._rows["mocap_quat"]], axis=-1)
        names = ("qpos", "qvel", "act", "time", "qacc_warmstart", "history")
        parts = {name: self._rows[name].copy() for name in names}
        return State(**parts, mocap=mocap.reshape(self.nsim, self.model.nmocap, 7))

    # ---- named views ----

    @property
    def _named_model(self) -> Model:
        return self.model

    def _named_table(self) -> Table:
        return self._table

    def _named_array(self, field: str, write: bool) -> NDArray[Any]:
        if field in self._fields:
            return self._writable(field) if write else self.bind(field)
        if write:
            return self.expand(field)
        return self._values(field)

    def keyframe(self, key: str | int) -> View:
        """Return the numbers of the keyframe of this name or index."""
        return View(self, "keyframe", key)

    def equality(self, key: str | int) -> View:
        """Return the numbers of the equality of this name or index."""
        return View(self, "equality", key)

    def _values(self, field: str) -> NDArray[Any]:
        """Return what the models of all simulations have, read-only unless expanded."""
        if field in self._expanded:
            return self._expanded[field][0]
        if self._models is None or isinstance(self._models, Model):
            of = getattr(self._models or self.model, field)
            return np.broadcast_to(of, (self.nsim, *of.shape))
        rows = np.stack([getattr(self._own.get(sim, self.model), field) for sim in range(self.nsim)])
        rows.flags.writeable = False
        return rows

    # ---- models ----

    def expand(self, name: str) -> NDArray[Any]:
        """Give each simulation its own values of an array of the model; return them, (nsim, ...), live.

        They count from the next call on. A simulation whose values have changed gets a model of its own there, which
        takes about a millisecond and the memory of a body. Constants that follow from them stay until `set_const`.

        Parameters
        ----------
        name : str
            An array of the model ("body_mass"), or an option as "opt.timestep".

        Raises
        ------
        NotFoundError
            There is no such array or option.
        UnsupportedError
            It cannot differ between simulations.
        """
        if name in self._expanded:
            return self._expanded[name][0]
        if self._models is not None:
            raise StateError("set_models: simulations have models of the caller, whose fields are not expanded")
        template = np.asarray(self._template(name))
        self._model_with({name: template})  # refuses what cannot be changed
        now = np.repeat(template[np.newaxis], self.nsim, axis=0)
        self._expanded[name] = now, now.copy()
        return now

    def expanded(self, name: str) -> NDArray[Any] | None:
        """Return the values of an array of the model that was expanded, read-only; None: it was not."""
        self._template(name)
        if name not in self._expanded:
            return None
        view = self._expanded[name][0].view()
        view.flags.writeable = False
        return view

    def _template(self, name: str) -> Any:
        """Return an array or an option of the model."""
        if name.startswith(_OPTION):
            options = self.model.opt
            if not hasattr(options, name[len(_OPTION) :]):
                raise NotFoundError(f"a Model has no option {name[len(_OPTION) :]!r}")
            return getattr(options, name[len(_OPTION) :])
        if name not in self.model.fields():
            hint = f"; it is one of a body: bind({name!r})" if name in self._fields else ""
            raise NotFoundError(f"a Model has no array {name!r}{hint or did_you_mean(name, self.model.fields())}")
        return getattr(self.model, name)

    def _model_with(self, values: Mapping[str, Any]) -> Model:
        """Return the batch's model with other arrays and options."""
        arrays = {name: value for name, value in values.items() if not name.startswith(_OPTION)}
        options = {name[len(_OPTION) :]: value for name, value in values.items() if name.startswith(_OPTION)}
        model = self.model.replace(**arrays) if arrays else self.model
        return model.with_options(**options) if options else model

    def _refresh_models(self) -> None:
        """Give a model of its own to each simulation whose values have changed since the last call."""
        changed = np.zeros(self.nsim, np.bool_)
        for now, used in self._expanded.values():
            changed |= (now != used).reshape(self.nsim, -1).any(axis=1)
        for sim in np.flatnonzero(changed).tolist():
            model = self._model_with({name: now[sim] for name, (now, _) in self._expanded.items()})
            self._native.set_model(sim, model._native)
            self._own[sim] = model
            for now, used in self._expanded.values():
                used[sim] = now[sim]

    def set_models(self, models: Model | Sequence[Model] | None) -> None:
        """Run each simulation on a model of the caller.

        Parameters
        ----------
        models : Model, sequence of Model, or None
            One for all simulations, one for each, or the batch's model again. They have the sizes of the batch's.

        Raises
        ------
        ArgumentError
            Their number, or the sizes of one.
        StateError
            Fields of the model are expanded.
        """
        if self._expanded:
            raise StateError("set_models: fields of the model are expanded: " + ", ".join(self._expanded))
        given = [models] * self.nsim if models is None or isinstance(models, Model) else list(models)
        if len(given) != self.nsim:
            raise ArgumentError(f"models: {len(given)} of them, expected {self.nsim}")
        for sim, model in enumerate(given):
            if model is not None and not isinstance(model, Model):
                raise not_a_model(f"models[{sim}]", model)
        try:
            self._use_models(given)
        except SinewError:
            self._use_models([self._own.get(sim) for sim in range(self.nsim)])
            raise
        self._own.clear()
        self._own.update({sim: model for sim, model in enumerate(given) if model is not None})
        kept = models if models is None or isinstance(models, Model) else tuple(models)
        self.__dict__["_models"] = kept

    def _use_models(self, models: Sequence[Model | None]) -> None:
        for sim, model in enumerate(models):
            self._native.set_model(sim, None if model is None else model._native)

    @property
    def models(self) -> Model | tuple[Model, ...] | None:
        """The models of `set_models`."""
        return self._models

    def get_model(self, sim: int) -> Model:
        """Return the model of a simulation, with its own values."""
        sim = self._sim(sim)
        self._refresh_models()
        return self._own.get(sim, self.model)

    def set_const(self, ids: ArrayLike | None = None) -> None:
        """Make the constants that follow from other numbers of the models at `qpos0` anew, as ``mj_setConst``.

        They become fields with values for each simulation, as `expand` makes them.

        Parameters
        ----------
        ids : array_like, optional
            Simulations; None: all.
        """
        of = self._ids(ids)
        rows = {name: self.expand(name) for name in _CONSTANTS if self._values(name).size}
        for sim in range(self.nsim) if of is None else of.tolist():
            model = self.get_model(sim).with_constants()
            for name, values in rows.items():
                values[sim] = getattr(model, name)

    def _groups(self) -> Iterator[tuple[Model, NDArray[np.int32]]]:
        """Yield each model with the simulations that it has."""
        self._refresh_models()
        sims: dict[int, list[int]] = {}
        for sim in range(self.nsim) if self._own else ():
            sims.setdefault(id(self._own.get(sim, self.model)), []).append(sim)
        for same in sims.values() or [range(self.nsim)]:
            yield self._own.get(same[0], self.model), np.asarray(same, np.int32)

    # ---- calls ----

    def _sim(self, sim: int) -> int:
        number = whole("sim", sim)
        if not 0 <= number < self.nsim:
            raise ArgumentError(f"simulation {number}, allowed is 0 to {self.nsim - 1}")
        return number

    def _ids(self, ids: ArrayLike | None) -> NDArray[np.int32] | None:
        """Return sorted, unique indices of simulations, or of a mask; None: all."""
        if ids is None:
            return None
        array = np.asarray(ids)
        if array.dtype == np.bool_:
            if array.shape != (self.nsim,):
                raise ArgumentError(f"ids: a mask of shape {array.shape}, expected ({self.nsim},)")
            return np.flatnonzero(array).astype(np.int32)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise ArgumentError("ids: expected indices of simulations (n,), or a mask")
        bad = array[(array < 0) | (array >= self.nsim)]
        if bad.size:
            raise ArgumentError(f"ids: {bad[0]}, allowed is 0 to {self.nsim - 1}")
        if (array[1:] <= array[:-1]).any():
            raise ArgumentError("ids: expected indices that are sorted and unique")
        return array.astype(np.int32)

    def _run(self, ids: NDArray[np.int32] | None, nstep: int, ctrl: Doubles | None, record: dict[str, Any]) -> int:
        self._refresh_models()
        return self._native.run(ids, nstep, ctrl, ctrl is not None and ctrl.ndim == 2, list(record.items()))

    def _check(self, ids: NDArray[np.int32] | None, failed: int) -> None:
        if not failed:
            return
        of = np.arange(self.nsim) if ids is None else ids
        raise SimulationError.of(of[self.status[of] != 0], self._native.error, len(of))

    def step(self, ids: ArrayLike | None = None, nstep: int = 1) -> None:
        """Make `nstep` steps of each simulation, or of those in `ids`: sorted indices, or a mask.

        Raises
        ------
        SimulationError
            Simulations have diverged: they keep the state of before the call, and the others are done.
        """
        of, steps = self._ids(ids), whole("nstep", nstep)
        if steps > 0:
            self._check(of, self._run(of, steps, None, {}))
        elif steps < 0:
            raise ArgumentError(f"nstep: {steps}, allowed is at least 0")

    def forward(self, ids: ArrayLike | None = None) -> None:
        """Compute everything at the present states, without a step. Raises as `step`."""
        of = self._ids(ids)
        self._check(of, self._run(of, 0, None, {}))

    def reset(self, ids: ArrayLike | None = None, keyframe: str | ArrayLike = -1) -> None:
        """Go to `qpos0`, or to a keyframe, and compute everything there.

        Parameters
        ----------
        ids : array_like, optional
            Simulations; None: all.
        keyframe : str or array_like of int, (n,)
            A keyframe for all, or one for each; -1: `qpos0`.
        """
        of = self._ids(ids)
        sims = np.arange(self.nsim, dtype=np.int32) if of is None else of
        keys = np.asarray(object_id(self.model, "keyframe", keyframe) if isinstance(keyframe, str) else keyframe)
        if keys.dtype.kind not in "iu" or keys.shape not in ((), sims.shape):
            raise ArgumentError(f"keyframe: expected an index, or {sims.shape} of them")
        bad = keys[(keys < -1) | (keys >= self.model.nkey)]
        if bad.size:
            raise ArgumentError(f"keyframe: {bad.flat[0]}, allowed is -1 to {self.model.nkey - 1}")
        keys = np.broadcast_to(keys, sims.shape)
        for key in np.unique(keys).tolist():
            self._put(sims[keys == key], None if key < 0 else key)
        self.forward(of)

    def _put(self, sims: NDArray[Any], keyframe: int | None) -> None:
        """Write the inputs of simulations as a reset makes them, for each of their models."""
        for model, same in self._groups():
            of = np.intersect1d(sims, same)
            if of.size == 0:
                continue
            data = Data(model)
            data.reset(keyframe)
            for name in self._inputs():
                self._rows[name][of] = getattr(data, name)

    def error(self, sim: int) -> str:
        """Return the text of the error of a simulation's last call, "" without one."""
        return self._native.error(self._sim(sim))

    def rollout(
        self,
        nstep: int,
        control: ArrayLike | None = None,
        record: Sequence[str] = ("qpos",),
        ids: ArrayLike | None = None,
        out: Mapping[str, NDArray[Any]] | None = None,
    ) -> dict[str, NDArray[Any]]:
        """Make `nstep` steps of each simulation under given controls, and record fields after each.

        A simulation that diverges stays at its last good state, which the rest of its record repeats; `status` and
        `error` tell which and why.

        Parameters
        ----------
        nstep : int
            Number of steps.
        control : array_like, (nstep, nu) or (n, nstep, nu), optional
            Controls of each step. Without them `ctrl` stays.
        record : sequence of str
            Names of fields, as `bind` knows them. A state is that after a step, an output that of its begin.
        ids : array_like, optional
            Simulations; None: all.
        out : mapping of arrays, optional
            Arrays to record into, by name.

        Returns
        -------
        dict
            For each name the record, (n, nstep, ...).
        """
        of, steps = self._ids(ids), whole("nstep", nstep)
        if steps < 1:
            raise ArgumentError(f"nstep: {steps}, allowed is at least 1")
        n = self.nsim if of is None else len(of)
        ctrl = None if control is None else self._control(control, n, steps)
        names = (record,) if isinstance(record, str) else tuple(record)
        unknown = [name for name in out or () if name not in names]
        if unknown:
            raise ArgumentError(f"out: {unknown[0]!r} is not recorded: {', '.join(names)}")
        result = {name: self._record(name, (n, steps), out or {}) for name in names}
        self._run(of, steps, ctrl, result or {"time": self._record("time", (n, steps), {})})
        return result

    def _control(self, control: ArrayLike, n: int, steps: int) -> Doubles:
        array, nu = doubles("control", control), self.model.nu
        if array.shape not in ((steps, nu), (n, steps, nu)):
            expected = f"({steps}, {nu}) or ({n}, {steps}, {nu})"
            raise ArgumentError(f"control: shape {array.shape}, expected {expected}")
        return array

    def _record(self, name: str, rows: tuple[int, int], out: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        of = self.bind(name)
        shape = (*rows, *of.shape[1:])
        if name not in out:
            return np.empty(shape, of.dtype)
        check_out(name, out[name], shape, of.dtype)
        return out[name]

    # ---- derivatives ----

    def _state_of(self, sims: NDArray[np.int32]) -> State:
        return State(**{name: np.asarray(rows)[sims] for name, rows in vars(self.state).items()})

    def vjp(
        self,
        control: ArrayLike,
        qpos: ArrayLike | None = None,
        qvel: ArrayLike | None = None,
        act: ArrayLike | None = None,
        sensordata: ArrayLike | None = None,
        ctrl: ArrayLike | None = None,
        coordinates: Literal["array", "tangent"] = "array",
        cfd: CFD | None = None,
    ) -> Gradient:
        """Return derivatives of a number of motions from the present states, which stay as they are.

        Parameters
        ----------
        control : array_like, (T, nu) or (nsim, T, nu)
            Controls of the T steps of the motions.
        qpos, qvel, act, sensordata, ctrl : array_like, optional
            Derivatives of the number by the motions, as `sinew.rollout_vjp` takes them.
        coordinates : {"array", "tangent"}
            How derivatives by positions are given.
        cfd : CFD, optional
            Contacts from distance.

        Returns
        -------
        Gradient
            Derivatives by controls and present states of each simulation, (nsim, ...).
        """
        given = doubles("control", control)
        bars = {"qpos": qpos, "qvel": qvel, "act": act, "sensordata": sensordata, "ctrl": ctrl}
        arrays = {name: doubles(name, x) for name, x in bars.items() if x is not None}
        parts = []
        for model, sims in self._groups():
            state = self._state_of(sims)
            of: dict[str, Any] = {
                name: x[sims] if x.ndim == 3 and len(x) == self.nsim else x for name, x in arrays.items()
            }
            part = given[sims] if given.ndim == 3 and len(given) == self.nsim else given
            with rollout(model, state, part, threads=self.threads, cfd=cfd, outputs=()) as motions:
                parts.append((sims, rollout_vjp(motions, **of, coordinates=coordinates)))
        order = np.argsort(np.concatenate([sims for sims, _ in parts]))
        names = ("ctrl", "qpos", "qvel", "act", "status")
        whole_parts = {name: np.concatenate([getattr(part, name) for _, part in parts])[order] for name in names}
        return Gradient(**whole_parts)

    def linearize(self, sensors: bool = False, cfd: CFD | None = None) -> Linearization | SensorLinearization:
        """Return the Jacobians of the next step of each simulation under its present controls; nothing moves.

        Parameters
        ----------
        sensors : bool
            Whether those of sensordata are wanted, too.
        cfd : CFD, optional
            Contacts from distance.

        Returns
        -------
        Linearization or SensorLinearization
            A (nsim, n, n) and B (nsim, n, nu), with sensors C (nsim, nsensordata, n) and D (nsim, nsensordata, nu).
        """
        parts, order = [], []
        for model, sims in self._groups():
            ctrl = self._rows["ctrl"][sims, np.newaxis]
            with rollout(model, self._state_of(sims), ctrl, threads=self.threads, cfd=cfd, outputs=()) as motions:
                parts.append(linearize_rollout(motions, sensors))
            order.append(sims)
        back = np.argsort(np.concatenate(order))
        kind = SensorLinearization if sensors else Linearization
        return kind(*(np.concatenate(matrices)[back, 0] for matrices in zip(*parts, strict=True)))


# What Model.with_constants makes.
_CONSTANTS = (
    "dof_M0", "dof_invweight0", "body_invweight0", "tendon_length0", "tendon_invweight0", "actuator_acc0", "eq_data",
)  # fmt: skip
# Fields that are one number: an axis less.
_NUMBERS = frozenset({"time", "ncon", "ne", "nf", "nl", "nefc", "solver_niter"})
