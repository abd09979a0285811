"""Parameters of an arm by ``mujoco.sysid``, once as it is and once on exact Jacobians.

The same parameters, residuals and optimiser: ``mujoco.sysid`` makes its Jacobians by differences of motions, and
compiles the model anew for each; ``sinew.sysid`` hands it exact ones. Recordings are motions of the true model with
noise, and the first values are up to a third off, of the MyoArm up to a tenth.

``--problem arm`` has five joints: armature, damping and friction loss of each, masses, a spring. ``--problem myoarm``
is the MyoArm of MyoSuite, whose models are in FOLDER: strengths of muscles, damping of joints, masses, stiffness and
length of tendons.

    python sysid_arm.py --picture sysid_arm.png
    python sysid_arm.py --problem myoarm --models FOLDER
"""

import argparse
import io
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from mujoco import sysid
from numpy.typing import NDArray

import sinew.mujoco
import sinew.sysid

Array = NDArray[np.float64]
NOISE = {"arm": 2e-3, "myoarm": 1e-4}  # of the recordings [rad, rad/s]
MUSCLES = ["DELT1", "DELT2", "DELT3", "PECM1", "TRIlong", "BIClong", "BRA", "BRD"]
JOINTS = ["shoulder_elv", "shoulder_rot", "elbow_flexion", "pro_sup", "deviation", "flexion"]
BODIES = ["humerus", "ulna", "radius"]
TENDONS = {"BIClong_tendon": "stiffness", "TRIlong_tendon": "stiffness", "BRA_tendon": "springlength"}


def arm() -> str:
    """Return five links in a chain, each turned by a motor."""
    parts, ends = [], ""
    for i in range(1, 6):
        parts.append(
            f'<body name="link{i}" pos="0 0 0.1"><joint name="j{i}" axis="{"0 0 1" if i in (1, 4) else "0 1 0"}" '
            f'armature="{0.12 - 0.02 * i:.2f}" damping="{1.2 - 0.2 * i:.1f}" frictionloss="{0.6 - 0.1 * i:.1f}" '
            f'stiffness="{float(i == 1)}"/>'
            f'<geom name="g{i}" type="capsule" fromto="0 0 0 0 0 0.1" size="{0.045 - 0.005 * i:.3f}" '
            f'mass="{1.2 - 0.2 * i:.1f}"/>'
        )
        ends += "</body>"
    motors = "".join(f'<motor joint="j{i}"/>' for i in range(1, 6))
    sensors = "".join(f'<jointpos name="q{i}" joint="j{i}"/><jointvel name="v{i}" joint="j{i}"/>' for i in range(1, 6))
    return (
        '<mujoco><option integrator="implicitfast"><flag contact="disable"/></option>'
        f"<worldbody>{''.join(parts)}{ends}</worldbody><actuator>{motors}</actuator><sensor>{sensors}</sensor></mujoco>"
    )


def turn(kind: str, name: str, attribute: str, index: Any, spec: Any, p: Any) -> None:
    """Write a parameter into an attribute of an element."""
    element = getattr(spec, kind)(name)
    if index is None:
        setattr(element, attribute, p.value[0])
    else:
        getattr(element, attribute)[index] = p.value[0]


def strengthen(name: str, spec: Any, p: Any) -> None:
    """Write the peak force of a muscle, active and passive."""
    spec.actuator(name).gainprm[2] = spec.actuator(name).biasprm[2] = p.value[0]


def parameters(true: dict[str, tuple[float, Callable[[Any, Any], None]]], off: float, rng: np.random.Generator) -> Any:
    """Return parameters of these true values, which begin off by a share of them."""
    params = sysid.ParameterDict()
    for name, (value, modifier) in true.items():
        params.add(sysid.Parameter(name, value, 0.4 * value, 2.5 * value, modifier=modifier))
        params[name].value[:] = value * np.exp(rng.uniform(-off, off))
    return params


def arm_problem() -> tuple[Any, dict[str, Any]]:
    """Return the specification of the arm, and its parameters with their true values."""
    spec, true = mujoco.MjSpec.from_string(arm()), {}
    for i in range(1, 6):
        for attribute, index in (("armature", None), ("damping", 0), ("frictionloss", None)):
            value = np.ravel(getattr(spec.joint(f"j{i}"), attribute))[0]
            true[f"{attribute} {i}"] = (float(value), partial(turn, "joint", f"j{i}", attribute, index))
        if i > 1:  # the first link turns about its own axis
            true[f"mass {i}"] = (spec.geom(f"g{i}").mass, partial(turn, "geom", f"g{i}", "mass", None))
    true["stiffness 1"] = (1.0, partial(turn, "joint", "j1", "stiffness", 0))
    return spec, true


def myoarm_problem(folder: str) -> tuple[Any, dict[str, Any]]:
    """Return the specification of the MyoArm, with sensors of joints, and its parameters with their true values."""
    spec, true = mujoco.MjSpec.from_file(str(Path(folder) / "simhive/myo_sim/arm/myoarm.xml")), {}
    spec.option.tolerance = 1e-14  # a solver that stops early has no derivative, and so has a search for contacts
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    for name in JOINTS:
        spec.add_sensor(name=f"q {name}", type=mujoco.mjtSensor.mjSENS_JOINTPOS, objtype=mujoco.mjtObj.mjOBJ_JOINT)
        spec.add_sensor(name=f"v {name}", type=mujoco.mjtSensor.mjSENS_JOINTVEL, objtype=mujoco.mjtObj.mjOBJ_JOINT)
        spec.sensor(f"q {name}").objname = spec.sensor(f"v {name}").objname = name
        spec.joint(name).damping[0] = 0.5
        true[f"damping {name}"] = (0.5, partial(turn, "joint", name, "damping", 0))
    model = spec.compile()
    for name in MUSCLES:
        true[f"force {name}"] = (float(model.actuator(name).gainprm[2]), partial(strengthen, name))
    for name in BODIES:
        true[f"mass {name}"] = (float(spec.body(name).mass), partial(turn, "body", name, "mass", None))
    for name, attribute in TENDONS.items():
        tendon = spec.tendon(name)
        tendon.stiffness[0] = 500
        tendon.springlength[:] = length = float(0.95 * model.tendon_length0[model.tendon(name).id])
        indices = slice(None) if attribute == "springlength" else 0
        value = 500.0 if attribute == "stiffness" else length
        true[f"{attribute} {name}"] = (value, partial(turn, "tendon", name, attribute, indices))
    return spec, true


def record(spec: Any, noise: float, count: int, steps: int, rng: np.random.Generator) -> Any:
    """Return recordings of motions under smooth random controls."""
    m = spec.compile()
    data = mujoco.MjData(m)
    times = m.opt.timestep * np.arange(steps)
    low, high = (0, 1) if m.na else (-4, 4)
    waves = rng.uniform(2, 9, (2, count, m.nu))
    ctrl = np.sin(waves[0][:, None] * times[:, None] / times[-1] * 2 + 6 * waves[1][:, None])
    ctrl = low + (high - low) * (0.5 + 0.5 * ctrl) * (0.4 if m.na else 1)
    first = sysid.create_initial_state(m, data.qpos, data.qvel, data.act)
    state, sensors = sinew.mujoco.rollout(m, data, np.tile(first, (count, 1)), ctrl[:, :-1])
    sensors = sensors + noise * rng.standard_normal(sensors.shape)
    return sysid.ModelSequences(
        "arm",
        spec,
        [f"recording {i}" for i in range(count)],
        [first] * count,
        [sysid.TimeSeries(times, x) for x in ctrl],
        [sysid.TimeSeries.from_names(s[:, 0], x, m) for s, x in zip(state, sensors, strict=True)],
    )


def timed(optimize: Any, residual_fn: Any, params: Any, iterations: int) -> dict[str, Any]:
    """Find the parameters; return these, the half sum of squares over time, and the Jacobian at the end."""
    begin, processor, seconds = time.perf_counter(), time.process_time(), []
    found, result = optimize(
        params, residual_fn, "mujoco", verbose=False, max_iters=iterations, x_scale="jac",
        iter_callback=lambda trace: seconds.append(time.perf_counter() - begin), output=io.StringIO(),
    )  # fmt: skip
    return {
        "seconds": time.perf_counter() - begin,
        "processor": time.process_time() - processor,
        "at": seconds,
        "cost": [float(x) for x in result.extras["objective"]],
        "values": found.as_vector(),
        "result": result,
        "found": found,
    }


def draw(runs: dict[str, dict[str, Any]], picture: str) -> None:
    """Draw the costs over time."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6, 3.2), layout="constrained")
    for (name, run), style in zip(runs.items(), ("o--", "s-"), strict=True):
        axis.plot(run["at"], run["cost"], style, markersize=4, label=f"{name}: {run['seconds']:.2f} s")
    axis.set(yscale="log", xlabel="time [s]", ylabel="cost: half sum of squares")
    axis.legend()
    figure.savefig(picture, dpi=80)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problem", choices=["arm", "myoarm"], default="arm")
    parser.add_argument("--models", metavar="FOLDER", help="of the package myosuite")
    parser.add_argument("--recordings", type=int, default=8)
    parser.add_argument("--steps", type=int, default=500, help="of each recording")
    parser.add_argument("--iterations", type=int, default=30, help="at most")
    parser.add_argument("--alone", action="store_true", help="leave out mujoco.sysid as it is")
    parser.add_argument("--report", help="folder for the report of mujoco.sysid")
    parser.add_argument("--json", action="store_true", help="print what was measured for programs")
    parser.add_argument("--picture", type=sinew.files.writable, help="file to draw into, .svg or .png")
    arguments = parser.parse_args()
    if arguments.problem == "myoarm" and not arguments.models:
        parser.error("--problem myoarm needs --models")

    rng = np.random.default_rng(1)
    spec, true = arm_problem() if arguments.problem == "arm" else myoarm_problem(arguments.models)
    sequences = [record(spec, NOISE[arguments.problem], arguments.recordings, arguments.steps, rng)]
    params = parameters(true, 0.3 if arguments.problem == "arm" else 0.1, rng)
    ours = sinew.sysid.build_residual_fn(models_sequences=sequences)
    runs = {}
    if not arguments.alone:
        theirs = sysid.build_residual_fn(models_sequences=sequences)
        runs["mujoco.sysid"] = timed(sysid.optimize, theirs, params, arguments.iterations)
    runs["sinew.sysid"] = timed(sinew.sysid.optimize, ours, params, arguments.iterations)

    values = params.as_nominal_vector()
    off = {name: np.max(np.abs(run["values"] / values - 1)) for name, run in runs.items()}
    apart = np.max(np.abs(np.diff([run["values"] for run in runs.values()], axis=0) / values), initial=0)
    told = {
        name: {"iterations": len(run["cost"]) - 1, "off": off[name]}
        | {x: run[x] for x in ("seconds", "processor", "at", "cost")}
        for name, run in runs.items()
    }
    if arguments.json:
        print(json.dumps({"problem": arguments.problem, "parameters": len(values), "apart": apart, "runs": told}))
    else:
        print(f"{len(values)} parameters, {arguments.recordings} recordings of {arguments.steps} steps")
        for name, x in told.items():
            print(
                f"{name + ':':14}{x['iterations']:3} iterations, {x['seconds']:.2f} s ({x['processor']:.2f} s of "
                f"processors), cost {x['cost'][0]:.6g} -> {x['cost'][-1]:.10g}, {100 * x['off']:.2f} % off the truth"
            )
        if len(runs) == 2:
            ratio = [runs["mujoco.sysid"][x] / runs["sinew.sysid"][x] for x in ("seconds", "processor")]
            print(f"ratio {ratio[0]:.1f} ({ratio[1]:.1f} of processors), parameters at most {apart:.1e} of them apart")
    if arguments.report:
        Path(arguments.report).mkdir(parents=True, exist_ok=True)
        run = runs["sinew.sysid"]
        sysid.default_report(
            sequences,
            params,
            run["found"],
            ours,
            run["result"],
            save_path=Path(arguments.report),
            generate_videos=False,
        )
    if arguments.picture:
        draw(runs, arguments.picture)


if __name__ == "__main__":
    main()
