"""Residuals of ``mujoco.sysid`` on motions of our engine, and their exact Jacobians."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import mujoco
import numpy as np
from mujoco import sysid

from sinew._arrays import Doubles
from sinew.errors import ArgumentError, UnsupportedError
from sinew.model import Model
from sinew.rollout import Rollout, rollout
from sinew.sensitivity import entry_changes, sensitivity
from sinew.sysid._compiled import Compiled, Compiler, steps_of

__all__ = ["ResidualFunction", "build_residual_fn"]

_OWN = ("models_sequences", "build_model", "custom_rollout", "n_threads")  # what is not handed on to MuJoCo's code
_ONCE = (*_OWN, "resample_true")  # what a call cannot change


@dataclass(eq=False)
class _Predicted:
    """What sequences of a model do: T states after the first, sensors of the T states before them."""

    rows: list[int]  # which sequences
    rollout: Rollout
    state: Doubles  # (N, T, 1 + nq + nv + na)
    sensordata: Doubles  # (N, T, nsensordata)


@dataclass(eq=False)
class _Evaluation:
    """Models and motions for one vector of values."""

    x: Doubles
    compiled: list[Compiled]
    predicted: list[list[_Predicted]]


@dataclass(eq=False)
class _Motion:
    """Predictions of a sequence, for K cases (K, T, .), or their derivatives (T, ., P)."""

    state: Doubles
    sensordata: Doubles


class _Shared(sysid.ParameterDict):
    """Parameters that are not copied for each case: nobody looks at the copies."""

    def __deepcopy__(self, _: Any) -> _Shared:
        return self


@dataclass(eq=False)
class _Group:
    """A specification and its recorded sequences."""

    sequences: sysid.ModelSequences
    compiler: Compiler
    controls: dict[tuple[int, float], Doubles] = field(default_factory=dict)

    def control(self, i: int, timestep: float, resample: bool) -> Doubles:
        """Return the controls of sequence i at the steps of the model, (T, nu)."""
        key = (i, timestep)
        if key not in self.controls:
            recorded = self.sequences.measured_rollout[i].control
            series = recorded.resample(target_dt=timestep) if resample else recorded
            self.controls[key] = np.asarray(series.data, float)[:-1]
        return self.controls[key]


def _parts(model: Model, state: Doubles, what: str) -> dict[str, Doubles]:
    """Return the members of states (..., 1 + nq + nv + na) as MuJoCo has them in one vector."""
    ends = np.cumsum([1, model.nq, model.nv, model.na])
    if state.shape[-1] != ends[-1]:
        raise UnsupportedError(
            f"{what}: {state.shape[-1]} numbers, the engine has {ends[-1]}: time, qpos, qvel and act"
        )
    names = ("time", "qpos", "qvel", "act")
    parts = np.split(state, ends[:-1], axis=-1)
    return {name: part[..., 0] if name == "time" else part for name, part in zip(names, parts, strict=True)}


class ResidualFunction:
    """Residuals of recorded sequences, as ``mujoco.sysid.build_residual_fn`` makes them; see `build_residual_fn`.

    Attributes
    ----------
    differences : set of str
        Names of parameters whose columns of the Jacobian were made by differences of motions.
    """

    def __init__(self, models_sequences: Sequence[sysid.ModelSequences], **options: Any) -> None:
        if options.get("custom_rollout") is not None:
            raise UnsupportedError("custom_rollout: motions are made by the engine; leave it out")
        self._sequences = list(models_sequences)
        self._build = options.get("build_model", sysid.apply_param_modifiers)
        self._resample = bool(options.get("resample_true", True))
        self._options = {name: value for name, value in options.items() if name not in _OWN}
        self._threads = int(options.get("n_threads") or 0)
        self._params: Any = None
        self._told: list[Any] | None = None  # what of the parameters the models depend on, beside the values
        self._groups: list[_Group] = []
        self._kept: list[_Evaluation] = []

    @property
    def differences(self) -> set[str]:
        """Names of parameters whose columns of the Jacobian were made by differences of motions."""
        return set().union(*(group.compiler.differences for group in self._groups))

    # ---- motions ----

    def _prepare(self, params: Any) -> None:
        """Take the parameters along: the models are compiled with copies of them."""
        told = [
            (name, p.frozen, p.modifier, p.size, p.as_vector().tolist() if p.frozen else None)
            for name, p in params.items()
        ]
        if told == self._told:
            return
        self._told = told
        own = self._params = _Shared(params.copy().parameters)
        self._kept = []

        def builder(spec: mujoco.MjSpec) -> Callable[[Doubles], mujoco.MjModel]:
            def build(x: Doubles) -> mujoco.MjModel:
                own.update_from_vector(x)
                return self._build(own, spec)

            return build

        names = params.get_non_frozen_parameter_names()
        self._groups = [_Group(s, Compiler(builder(s.spec), names)) for s in self._sequences]

    def _evaluate(self, x: Doubles, params: Any) -> _Evaluation:
        """Return models and motions at x; those of the last two vectors are kept."""
        self._prepare(params)
        for known in self._kept:
            if np.array_equal(known.x, x):
                return known
        compiled = [group.compiler.compile(x) for group in self._groups]
        pairs = zip(self._groups, compiled, strict=True)
        predicted = [self._predict(group, c.model, range(len(group.sequences.measured_rollout))) for group, c in pairs]
        self._kept = [*self._kept[-1:], _Evaluation(x.copy(), compiled, predicted)]
        return self._kept[-1]

    def _predict(self, group: _Group, model: Model, rows: Sequence[int], gradients: bool = True) -> list[_Predicted]:
        """Return the motions of sequences, those of one length at once."""
        timestep = float(model.opt.timestep)
        controls = {i: group.control(i, timestep, self._resample) for i in rows}
        made = []
        for steps in sorted({len(x) for x in controls.values()}):
            these = [i for i in rows if len(controls[i]) == steps]
            first = np.stack([group.sequences.measured_rollout[i].initial_state for i in these])
            begin = _parts(model, first, f"initial_state of {group.sequences.name}")
            ctrl = np.stack([controls[i] for i in these])
            r = rollout(model, begin, ctrl, threads=self._threads, gradients=gradients)
            state = np.concatenate([r.time[:, 1:, None], r.qpos[:, 1:], r.qvel[:, 1:], r.act[:, 1:]], axis=-1)
            made.append(_Predicted(these, r, state, r.sensordata[:, :-1]))
        return made

    # ---- residuals ----

    def _residual(self, group: int, i: int, x: Doubles, m: mujoco.MjModel, made: _Motion, options: Any) -> Any:
        """Return what MuJoCo's code makes of predictions of sequence i, one for each column of x."""
        sequence = self._groups[group].sequences.measured_rollout[i]

        def predictions(**given: Any) -> list[Any]:
            times = made.state[..., 0]
            control = given["control_signal"][0]
            applied = sysid.TimeSeries(control.times[:-1], control.data[:-1], given["ctrl_mapping"])
            maps = given["rollout_signal_mapping"], given["rollout_state_mapping"]
            return [
                sysid.SystemTrajectory(
                    m, applied, sysid.TimeSeries(t, sensors, maps[0]), sequence.initial_state,
                    sysid.TimeSeries(t, state, maps[1]),
                )
                for t, sensors, state in zip(times, made.sensordata, made.state, strict=True)
            ]  # fmt: skip

        handed = {"resample_true": self._resample} | self._options | options
        handed |= {"build_model": lambda _: m, "custom_rollout": predictions, "n_threads": 0}
        return sysid.model_residual(x, self._params, traj_measured=sequence, **handed)

    def __call__(self, x: Any, params: Any, **options: Any) -> tuple[list[Doubles], list[Any], list[Any]]:
        """Return residuals, predictions and recordings, a list entry for each sequence, as ``sysid.residual`` does.

        Parameters
        ----------
        x : array_like, (P,) or (P, K)
            Values of the parameters that are not frozen; of K vectors residuals are (R, K).
        params : sysid.ParameterDict
            The parameters.
        **options
            Of ``sysid.residual``, instead of those that the function was made with, but for ``build_model``,
            ``custom_rollout``, ``n_threads``, ``models_sequences`` and ``resample_true``: these stay.

        Raises
        ------
        UnsupportedError
            A sensor in the residuals that the engine does not compute, a model that it does not have, or an option
            that has to be given to `build_residual_fn`.
        """
        fixed = [name for name in _ONCE if name in options]
        if fixed:
            raise UnsupportedError(f"{', '.join(fixed)}: not in a call, give it to sinew.sysid.build_residual_fn")
        x = np.asarray(x, float)
        if x.ndim == 2:
            columns = [self(column, params, **options) for column in x.T]
            stacked = [np.stack(parts, axis=1) for parts in zip(*(c[0] for c in columns), strict=True)]
            pairs = [[list(chain(*parts)) for parts in zip(*(c[k] for c in columns), strict=True)] for k in (1, 2)]
            return stacked, pairs[0], pairs[1]
        at = self._evaluate(x, params)
        params.update_from_vector(x)
        out: tuple[list[Doubles], list[Any], list[Any]] = ([], [], [])
        for g, group in enumerate(self._groups):
            places = {i: (p, n) for p in at.predicted[g] for n, i in enumerate(p.rows)}
            for i in range(len(group.sequences.measured_rollout)):
                p, n = places[i]
                made = _Motion(p.state[n : n + 1], p.sensordata[n : n + 1])
                found = self._residual(g, i, x, at.compiled[g].mjmodel, made, options)
                if np.any(np.isnan(found[0])) and p.rollout.status[n] == 0:
                    raise UnsupportedError(f"{group.sequences.name}: {_lacking(at.compiled[g], False)}")
                for to, part in zip(out, found, strict=True):
                    to.append(part)
        return out

    # ---- Jacobians ----

    def jacobian(self, x: Any, params: Any) -> Doubles:
        """Return the Jacobian of all residuals, (R, P), by the values x of the parameters that are not frozen.

        Derivatives of motions are exact. What the residuals make of motions and parameters, as delays and gains, is
        differentiated by central differences of that alone.

        Raises
        ------
        UnsupportedError
            A sensor in the residuals that has no derivative.
        """
        x = np.asarray(x, float).reshape(-1)
        at = self._evaluate(x, params)
        centre, steps = steps_of(x, *params.get_bounds())
        plain = self._options.get("modify_residual") is None
        rows = []
        for g, group in enumerate(self._groups):
            made, by = self._derivatives(g, at, centre, steps)
            for i in range(len(group.sequences.measured_rollout)):
                block = self._plain_block if plain else self._block
                rows.append(block(g, i, at, made[i], by[i], steps))
                if np.any(np.isnan(rows[-1])):
                    raise UnsupportedError(f"{group.sequences.name}: {_lacking(at.compiled[g], True)}")
        return np.concatenate(rows)

    def _block(self, g: int, i: int, at: _Evaluation, made: _Motion, by: _Motion, steps: Doubles) -> Doubles:
        """Return the rows of sequence i, (R, P): what the residuals make of motions and parameters, by differences."""
        ways = np.diag(steps)
        columns = np.concatenate([at.x[:, None] + ways, at.x[:, None] - ways], axis=1)
        moved = _Motion(_both(made.state, by.state, steps), _both(made.sensordata, by.sensordata, steps))
        ends = self._residual(g, i, columns, at.compiled[g].mjmodel, moved, {})[0]
        return np.asarray((ends[:, : len(steps)] - ends[:, len(steps) :]) / (2 * steps))

    def _plain_block(self, g: int, i: int, at: _Evaluation, made: _Motion, by: _Motion, _: Doubles) -> Doubles:
        """Return the rows of sequence i without a residual of the user's own.

        Then residuals are those numbers of the motions between whose times the recorded ones lie, times factors: these
        are what a motion gives that is off by one everywhere.
        """
        two = _Motion(*(np.concatenate([x, x + 1]) for x in (made.state, made.sensordata)))
        two.state[1, :, 0] = two.state[0, :, 0]  # but for its time
        found, _, measured = self._residual(g, i, np.tile(at.x[:, None], 2), at.compiled[g].mjmodel, two, {})
        series = measured[0]
        recorded = self._groups[g].sequences.measured_rollout[i].sensordata
        wanted = [_columns(at.compiled[g].mjmodel, recorded, name) for name in series.signal_mapping]
        parts = [(by.sensordata if sensors else by.state)[:, columns] for sensors, columns in wanted]
        order = np.argsort(np.concatenate([series.signal_mapping[name][1] for name in series.signal_mapping]))
        changes = np.concatenate(parts, axis=1)[:, order]
        times = made.state[0, :, 0]
        if self._resample:
            after = np.clip(np.searchsorted(times, series.times), 1, len(times) - 1)
            share = np.clip((series.times - times[after - 1]) / (times[after] - times[after - 1]), 0, 1)
            share = share[:, None, None]
            changes = (1 - share) * changes[after - 1] + share * changes[after]
        factors = (found[:, 1] - found[:, 0]).reshape(changes.shape[:2])
        return np.asarray(factors[..., None] * changes).reshape(-1, changes.shape[-1])

    def _free(self) -> list[int]:
        """Return the components of parameters that may move a model."""
        plain = self._build is sysid.apply_param_modifiers
        taken = [p for p in self._params.values() if not p.frozen]
        moving = np.concatenate([np.full(p.size, p.modifier is not None or not plain) for p in taken])
        return [int(k) for k in np.flatnonzero(moving)]

    def _derivatives(
        self, g: int, at: _Evaluation, centre: Doubles, steps: Doubles
    ) -> tuple[dict[int, _Motion], dict[int, _Motion]]:
        """Return the motion of each sequence of a group, and its derivatives by the parameters."""
        group, model = self._groups[g], at.compiled[g].model
        tangents, refused = group.compiler.tangents(at.compiled[g], centre, steps, self._free())
        known = _differentiable(model)
        made: dict[int, _Motion] = {}
        by: dict[int, _Motion] = {}
        for p in at.predicted[g]:
            found = sensitivity(p.rollout, tangents, sensors=known)
            assert found.sensordata is not None
            entries = entry_changes(model, p.rollout.qpos, found.state[:, :, : model.nv])
            time = np.zeros((*entries.shape[:2], 1, entries.shape[-1]))
            by_state = np.concatenate([time, entries, found.state[:, :, model.nv :]], axis=2)[:, 1:]
            by_sensors = found.sensordata[:, :-1]
            by_sensors[:, :, ~known] = np.where(np.any(by_state != 0, axis=(0, 1, 2)), np.nan, 0)
            for k in refused:
                by_state[..., k], by_sensors[..., k] = self._differences(group, p, k, centre, float(steps[k]))
            for n, i in enumerate(p.rows):
                made[i] = _Motion(p.state[n : n + 1], p.sensordata[n : n + 1])
                by[i] = _Motion(by_state[n], by_sensors[n])
        return made, by

    def _differences(
        self, group: _Group, p: _Predicted, k: int, centre: Doubles, step: float
    ) -> tuple[Doubles, Doubles]:
        """Return the derivatives of motions by parameter k from motions of the model moved both ways."""
        models = group.compiler.ends(k, centre, step)
        up, down = (self._predict(group, model, p.rows, gradients=False)[0] for model in models)
        if up.state.shape != p.state.shape or down.state.shape != p.state.shape:
            raise ArgumentError("a parameter of the time step changes the number of steps: freeze it")
        return (up.state - down.state) / (2 * step), (up.sensordata - down.sensordata) / (2 * step)


def _both(at: Doubles, by: Doubles, steps: Doubles) -> Doubles:
    """Return numbers (1, T, .) moved along their derivatives (T, ., P), up and then down: (2 P, T, .)."""
    way = np.moveaxis(by * steps, -1, 0)
    return np.concatenate([at + way, at - way])


def _columns(m: mujoco.MjModel, recorded: Any, name: str) -> tuple[bool, Any]:
    """Return whether a recorded signal is one of sensors, and its columns there, or in the state after the time."""
    kind, columns = recorded.signal_mapping[name]
    if kind == sysid.SignalType.MjSensor:
        return True, columns  # as MuJoCo's code takes them
    maps = sysid.TimeSeries.compute_all_state_mappings(m)
    return False, 1 + (maps[0] | maps[1] | maps[2])[name][1]


def _differentiable(model: Model) -> Any:
    """Return which numbers of sensordata have a derivative, (nsensordata,)."""
    known = np.zeros(model.nsensordata, bool)
    for i, (adr, dim) in enumerate(zip(model.sensor_adr, model.sensor_dim, strict=True)):
        known[adr : adr + dim] = model.sensor_support(i).differentiable
    return known


def _lacking(compiled: Compiled, derivative: bool) -> str:
    """Return words about sensors without a value, or without a derivative."""
    infos = [
        (compiled.mjmodel.sensor(i).name, compiled.model.sensor_support(i)) for i in range(compiled.mjmodel.nsensor)
    ]
    names = [name or "?" for name, info in infos if not (info.differentiable if derivative else info.supported)]
    what = "has no derivative of" if derivative else "does not compute"
    return f"residuals with sensors that the engine {what}: {', '.join(names)}; leave them out of the residuals"


def build_residual_fn(models_sequences: Sequence[sysid.ModelSequences], **options: Any) -> ResidualFunction:
    """Return residuals as ``mujoco.sysid.build_residual_fn`` does, which know their Jacobian.

    >>> residual_fn = sinew.sysid.build_residual_fn(models_sequences=[sequences], modify_residual=transform.apply)
    >>> found, result = sinew.sysid.optimize(params, residual_fn)

    Parameters
    ----------
    models_sequences : sequence of sysid.ModelSequences
        Specifications and what was recorded of them.
    **options
        As ``mujoco.sysid.residual`` has them: ``build_model``, ``modify_residual``, ``resample_true``,
        ``sensor_weights``, ``enabled_observations``, ``return_pred_all``; ``n_threads`` of the engine (default: all).

    Returns
    -------
    ResidualFunction
        Callable as MuJoCo's, for ``sysid.optimize``, ``sysid.default_report`` and ``sysid.save_results``; its method
        `ResidualFunction.jacobian` is what `sinew.sysid.optimize` uses.

    Raises
    ------
    UnsupportedError
        ``custom_rollout``: motions are the engine's.
    """
    return ResidualFunction(models_sequences, **options)
