"""sinew.sysid beside mujoco.sysid: residuals, Jacobians, optima, reports, and what is refused."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray
from sinew import errors

_LACKING = [x for x in ("colorama", "jinja2", "plotly", "scipy", "tabulate") if importlib.util.find_spec(x) is None]
if _LACKING:
    pytest.skip(f"{', '.join(_LACKING)}: not installed here", allow_module_level=True)

import sinew.mujoco  # noqa: E402
import sinew.sysid  # noqa: E402
from mujoco import sysid  # noqa: E402

Doubles = NDArray[np.float64]
SEED = 20261126
ARM = """
<mujoco>
  <option timestep="0.004" integrator="implicitfast"><flag contact="disable"/></option>
  <worldbody>
    <body name="upper"><joint name="shoulder" axis="0 1 0" damping="0.3" armature="0.05"/>
      <geom name="bar" type="capsule" size="0.03" fromto="0 0 0 0 0 -0.4" mass="1"/>
      <body name="lower" pos="0 0 -0.4"><joint name="elbow" axis="0 1 0" damping="0.2" armature="0.02"/>
        <geom name="rod" type="capsule" size="0.03" fromto="0 0 0 0 0 -0.3" mass="0.6"/>
        <site name="end" pos="0 0 -0.3"/></body></body>
  </worldbody>
  <actuator><motor name="m1" joint="shoulder"/><motor name="m2" joint="elbow"/></actuator>
  <sensor><jointpos name="q1" joint="shoulder"/><jointpos name="q2" joint="elbow"/><jointvel name="v2" joint="elbow"/>
    <framepos name="place" objtype="site" objname="end"/></sensor>
</mujoco>
"""
TRUE = {"mass": 0.6, "damping": 0.2, "armature": 0.05, "radius": 0.03}
SETTERS: dict[str, Callable[[Any, Any], None]] = {
    "mass": lambda s, p: setattr(s.geom("rod"), "mass", p.value[0]),
    "damping": lambda s, p: s.joint("elbow").damping.__setitem__(0, p.value[0]),
    "armature": lambda s, p: setattr(s.joint("shoulder"), "armature", p.value[0]),
    "radius": lambda s, p: s.geom("rod").size.__setitem__(0, p.value[0]),
}


def parameters(names: list[str], off: float = 1.2) -> Any:
    params = sysid.ParameterDict()
    for name in names:
        params.add(sysid.Parameter(name, TRUE[name], 0.2 * TRUE[name], 3 * TRUE[name], modifier=SETTERS[name]))
        params[name].value[:] = off * TRUE[name]
    return params


def recorded(count: int = 2, noise: float = 1e-3, xml: str = ARM) -> Any:
    """Return recordings of different lengths."""
    print("seed", SEED)
    rng, spec = np.random.default_rng(SEED), mujoco.MjSpec.from_string(xml)
    m = spec.compile()
    data = mujoco.MjData(m)
    states, controls, sensors = [], [], []
    for i in range(count):
        times = m.opt.timestep * np.arange(120 + 30 * i)
        ctrl = 2 * np.sin(rng.uniform(3, 12, m.nu) * times[:, None] + rng.uniform(0, 6, m.nu))
        first = sysid.create_initial_state(m, data.qpos + 0.1 * i, data.qvel, data.act)
        state, seen = sinew.mujoco.rollout(m, data, first, ctrl[:-1])
        states.append(first)
        controls.append(sysid.TimeSeries(times, ctrl))
        noisy = seen[0] + noise * rng.standard_normal(seen[0].shape)
        sensors.append(sysid.TimeSeries.from_names(state[0, :, 0], noisy, m))
    return sysid.ModelSequences("arm", spec, [f"motion {i}" for i in range(count)], states, controls, sensors)


def with_first_rows(sequences: Any) -> Any:
    """Return recordings with a row for the initial state, at the times of the controls: nothing is resampled then."""
    series = [
        sysid.TimeSeries(np.append(0.0, x.times), np.concatenate([x.data[:1], x.data]), x.signal_mapping)
        for x in sequences.sensordata
    ]
    return sysid.ModelSequences(
        "arm", sequences.spec, sequences.sequence_name, sequences.initial_state, sequences.control, series
    )


def differences(residual_fn: Any, params: Any, step: float = 1e-6) -> Doubles:
    """Return the Jacobian by central differences."""
    x, columns = params.as_vector(), []
    for k in range(len(x)):
        way = step * max(abs(x[k]), 0.1) * (np.arange(len(x)) == k)
        ends = [np.concatenate(residual_fn(x + sign * way, params.copy())[0]) for sign in (1, -1)]
        columns.append((ends[0] - ends[1]) / (2 * way[k]))
    return np.stack(columns, axis=1)


def agree(found: Doubles, wanted: Doubles, share: float) -> None:
    scale = np.max(np.abs(wanted), axis=0)
    assert np.all(scale > 0) and np.max(np.abs(found - wanted) / scale) < share


def test_residuals_and_jacobians_are_those_of_mujoco() -> None:
    sequences, params = recorded(), parameters(list(TRUE))
    theirs = sysid.build_residual_fn(models_sequences=[sequences])
    ours = sinew.sysid.build_residual_fn(models_sequences=[sequences])
    x = params.as_vector()
    wanted, found = theirs(x, params.copy()), ours(x, params.copy())
    assert len(found[0]) == 2 and found[1][1][0].signal_mapping.keys() == wanted[1][1][0].signal_mapping.keys()
    for a, b in zip(found[0], wanted[0], strict=True):
        np.testing.assert_allclose(a, b, atol=1e-11)
    many = np.stack([x, 1.01 * x], axis=1)
    np.testing.assert_allclose(ours(many, params.copy())[0][1], theirs(many, params.copy())[0][1], atol=1e-11)
    agree(ours.jacobian(x, params), differences(theirs, params), 1e-6)
    assert ours.differences == set()


@pytest.mark.parametrize("options", [{"resample_true": False}, {"sensor_weights": {"q1": 3.0, "v2": 0.5}}, {}])
def test_options_of_residuals(options: dict[str, Any]) -> None:
    sequences, params = recorded(1), parameters(["mass", "damping"])
    if "resample_true" in options:
        sequences = with_first_rows(sequences)
    if not options:
        options = {"enabled_observations": [("q2", sysid.SignalType.MjSensor), ("place", sysid.SignalType.MjSensor)]}
    ours = sinew.sysid.build_residual_fn(models_sequences=[sequences], **options)
    theirs = sysid.build_residual_fn(models_sequences=[sequences], **options)
    agree(ours.jacobian(params.as_vector(), params), differences(theirs, params), 1e-6)


def test_states_as_signals() -> None:
    """A recording of positions and velocities of joints, by their names, at times of its own."""
    sequences, params = recorded(1), parameters(["mass", "armature"])
    m = sequences.gt_model
    state, _ = sinew.mujoco.rollout(m, mujoco.MjData(m), sequences.initial_state[0], sequences.control[0].data[:-1])
    series = sysid.TimeSeries.from_names(
        state[0, ::3, 0] + 1e-3, state[0, ::3, [1, 4]].T, m,
        [("shoulder", sysid.SignalType.MjStateQPos), ("elbow", sysid.SignalType.MjStateQVel)],
    )  # fmt: skip
    states = sysid.ModelSequences(
        "states", sequences.spec, "one", sequences.initial_state[0], sequences.control[0], series, True
    )
    ours = sinew.sysid.build_residual_fn(models_sequences=[states])
    theirs = sysid.build_residual_fn(models_sequences=[states])
    agree(ours.jacobian(params.as_vector(), params), differences(theirs, params), 1e-6)


def test_transforms_of_signals() -> None:
    """Delay, gain and bias are parameters without a model; the residual is a function of the user's own."""
    sequences, params = recorded(), parameters(["mass", "damping"])
    params.add(sysid.Parameter("delay", 0.003, 0.0, 0.02))
    params.add(sysid.Parameter("gain", 1.1, 0.5, 2.0))
    params.add(sysid.Parameter("bias", 0.02, -1.0, 1.0))
    transform = sysid.SignalTransform()
    transform.delay("q*", params["delay"])
    transform.gain("v*", params["gain"], target="predicted")
    transform.bias("place", params["bias"], target="predicted")
    transform.enable_sensors(["q1", "v2", "place"])
    given = {"models_sequences": [sequences], "modify_residual": transform.apply}
    ours, theirs = sinew.sysid.build_residual_fn(**given), sysid.build_residual_fn(**given)
    agree(ours.jacobian(params.as_vector(), params), differences(theirs, params, 1e-5), 1e-5)


def test_the_optimum_is_the_same(tmp_path: Path) -> None:
    sequences, params = recorded(), parameters(["mass", "damping", "armature"])
    theirs = sysid.build_residual_fn(models_sequences=[sequences])
    wanted, _ = sysid.optimize(params, theirs, verbose=False, x_scale="jac")
    ours = sinew.sysid.build_residual_fn(models_sequences=[sequences])
    for optimizer in ("mujoco", "scipy"):
        found, result = sinew.sysid.optimize(
            params, ours, optimizer, verbose=False, x_scale="jac", **({"gtol": 1e-14} if optimizer == "scipy" else {})
        )
        np.testing.assert_allclose(found.as_vector(), wanted.as_vector(), rtol=1e-5)
        np.testing.assert_allclose(found.as_vector(), [0.6, 0.2, 0.05], rtol=0.05)
        assert result.jac.shape == (sum(map(len, ours(result.x, found)[0])), 3) and result["differences"] == []
    report = sysid.default_report([sequences], params, found, ours, result, save_path=tmp_path, generate_videos=False)
    assert report is not None and "Covariance" in (tmp_path / "report.html").read_text(encoding="utf-8")
    sysid.save_results(tmp_path, [sequences], params, found, result, ours)
    assert (tmp_path / "confidence.pkl").exists()


def test_compiled_models_are_foretold() -> None:
    """What is linear is compiled for once; the mass of a geom by its size is not linear, and found anew."""
    count = 0

    def build(params: Any, spec: Any) -> Any:
        nonlocal count
        count += 1
        return sysid.apply_param_modifiers(params, spec)

    sequences, params = recorded(1), parameters(["damping", "mass", "radius"])
    ours = sinew.sysid.build_residual_fn(models_sequences=[sequences], build_model=build)
    theirs = sysid.build_residual_fn(models_sequences=[sequences])
    counts = []
    for value in ([0.2, 0.6, 0.03], [0.25, 0.6, 0.03], [0.25, 0.7, 0.04]):
        params.update_from_vector(np.array(value))
        count = 0
        found = ours.jacobian(params.as_vector(), params)
        counts.append(count)
        agree(found, differences(theirs, params), 1e-6)
    assert counts[:2] == [7, 5] and counts[2] == 5  # mass and radius move the same inertia: both are found anew


def test_a_parameter_without_a_derivative() -> None:
    """The time step moves no number that has a derivative: its column alone is made by differences."""
    sequences, params = with_first_rows(recorded(1)), parameters(["mass"])
    stepping = sysid.Parameter(
        "step", 0.004, 0.003, 0.005, modifier=lambda s, p: setattr(s.option, "timestep", p.value[0])
    )
    params.add(stepping)
    options = {"models_sequences": [sequences], "resample_true": False}
    ours, theirs = sinew.sysid.build_residual_fn(**options), sysid.build_residual_fn(**options)
    with pytest.warns(
        sinew.sysid.DifferencesWarning, match="step: by differences of whole motions, as it moves timestep"
    ):
        found = ours.jacobian(params.as_vector(), params)
    agree(found, differences(theirs, params, 1e-5), 1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is said once
        _, result = sinew.sysid.optimize(params, ours, verbose=False, max_iters=1)
    assert result["differences"] == ["step"]


def test_frozen_parameters_and_bounds() -> None:
    sequences, params = recorded(1), parameters(["mass", "damping", "armature"])
    params["damping"].frozen = True
    params["mass"].value[:] = params["mass"].max_value
    ours = sinew.sysid.build_residual_fn(models_sequences=[sequences])
    assert ours.jacobian(params.as_vector(), params).shape[1] == 2
    agree(ours.jacobian(params.as_vector(), params), differences(ours, params, 1e-6), 1e-4)
    params["damping"].value[:] = 0.5
    again = ours.jacobian(params.as_vector(), params)
    params["damping"].frozen = False
    assert ours.jacobian(params.as_vector(), params).shape == (again.shape[0], 3)


def test_which_one_is_frozen_and_other_modifiers() -> None:
    """Parameters of the same names are not those of the call before where another is frozen, or modifies otherwise."""
    sequences = recorded(1)
    ours, theirs = (x.build_residual_fn(models_sequences=[sequences]) for x in (sinew.sysid, sysid))

    def rod(spec: Any, p: Any) -> None:
        spec.geom("rod").mass = 0.6 * p.value[0]

    def bar(spec: Any, p: Any) -> None:
        spec.geom("bar").mass = p.value[0]

    x, seen = np.array([1.3]), []
    for modifiers, frozen in (((rod, bar), "a"), ((rod, bar), "b"), ((bar, rod), "b")):
        params = sysid.ParameterDict()
        for name, modifier in zip(("a", "b"), modifiers, strict=True):
            params.add(sysid.Parameter(name, 1.0, 0.2, 3, modifier=modifier))
        params[frozen].frozen = True
        params.update_from_vector(x)
        seen.append(np.concatenate(ours(x, params.copy())[0]))
        np.testing.assert_allclose(seen[-1], np.concatenate(theirs(x, params.copy())[0]), rtol=1e-9, atol=1e-12)
        agree(ours.jacobian(x, params), differences(ours, params, 1e-6), 1e-4)
    assert np.max(np.abs(seen[0] - seen[1])) > 1e-3


def test_refusals() -> None:
    sequences, params = recorded(1), parameters(["mass"])
    with pytest.raises(errors.UnsupportedError, match="custom_rollout: motions are made by the engine"):
        sinew.sysid.build_residual_fn(models_sequences=[sequences], custom_rollout=lambda **_: [])
    ours = sinew.sysid.build_residual_fn(models_sequences=[sequences])
    for option in ("build_model", "custom_rollout", "n_threads", "resample_true"):
        with pytest.raises(errors.UnsupportedError, match=f"{option}: not in a call, give it to"):
            ours(params.as_vector(), params, **{option: None})
    with pytest.raises(errors.ArgumentError, match="'scipy_parallel_fd', allowed are mujoco, scipy"):
        sinew.sysid.optimize(params, ours, "scipy_parallel_fd")  # type: ignore[arg-type]
    with pytest.raises(errors.ArgumentError, match=r"expected what sinew.sysid.build_residual_fn returns"):
        sinew.sysid.optimize(params, sysid.build_residual_fn(models_sequences=[sequences]))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sensor", "words"),
    [
        ('<user name="shake" dim="1"/>', "has no derivative of: shake"),
        ('<insidesite name="push" objtype="site" objname="end" site="end"/>', "has no derivative of: push"),
    ],
)
def test_sensors_without_a_derivative(sensor: str, words: str) -> None:
    """They are refused where residuals have them, and do no harm else."""
    limited = ARM.replace('name="elbow" axis', 'name="elbow" limited="true" range="-5 5" axis')
    sequences = recorded(1, xml=limited.replace("</sensor>", f"{sensor}</sensor>"))
    series = sequences.sensordata[0]
    clean = sysid.TimeSeries(series.times, np.nan_to_num(series.data), series.signal_mapping)
    sequences = sysid.ModelSequences(
        "limb", sequences.spec, "one", sequences.initial_state[0], sequences.control[0], clean
    )
    params = parameters(["mass"])
    transform = sysid.SignalTransform(normalize=False)
    transform.enable_sensors(["q1", "shake" if "shake" in sensor else "push"])
    ours = sinew.sysid.build_residual_fn(models_sequences=[sequences], modify_residual=transform.apply)
    with pytest.raises(errors.UnsupportedError, match=f"limb: residuals with sensors that the engine {words}"):
        ours(params.as_vector(), params)
        ours.jacobian(params.as_vector(), params)
    transform.enable_sensors(["q1", "v2"])
    agree(ours.jacobian(params.as_vector(), params), differences(ours, params), 1e-5)
