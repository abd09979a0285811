"""sinew.integrate_batch against runs of one body each, bit for bit; its way back; what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sinew
from sinew.errors import ArgumentError, DivergedError, LimitError, NotFoundError

from processes import interrupt

TOP = """
<mujoco><option timestep='0.004'/><worldbody><geom type='plane' size='1 1 .1'/><body pos='0 0 .4'><freejoint/>
<geom name='stick' type='capsule' size='.03' fromto='0 0 0 .3 .1 0' solimp='0 .95 .01'/>
<body pos='.3 0 0'><joint name='j' axis='0 1 0' stiffness='1'/>
<geom type='capsule' size='.02' fromto='0 0 0 .2 0 .1' contype='0' conaffinity='0'/></body></body></worldbody>
<actuator><general joint='j' dyntype='filter' dynprm='.05' gainprm='.4'/></actuator></mujoco>"""
TIME, KNOTS = [0.02, 0.1, 0.3], [0.0, 0.15]
N = 7


def states(seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    qpos = np.tile(sinew.Model.from_string(TOP).qpos0, (N, 1)) + 0.1 * random.standard_normal((N, 8))
    return {"qpos": qpos, "qvel": random.standard_normal((N, 7)), "act": random.uniform(0, 1, (N, 1))}


def one(rows: dict[str, np.ndarray], i: int) -> dict[str, np.ndarray]:
    return {name: x[i] for name, x in rows.items()}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("coordinates", ["array", "tangent"])
def test_each_is_a_run_of_its_own(threads: int, coordinates: Any) -> None:
    parameters = sinew.Parameters(TOP, {"size": "geom.stick.size", "stiffness": "joint.j.stiffness[0]"})
    model, tangents, start = parameters.model(), parameters.tangents(), states(1)
    random = np.random.default_rng(2)
    ctrl = random.standard_normal((N, 2, 1))
    bars = {"qpos": random.standard_normal((N, 3, 8 if coordinates == "array" else 7))}
    bars |= {"qvel": random.standard_normal((N, 3, 7)), "act": random.standard_normal((N, 3, 1))}
    settings: dict[str, Any] = {"ctrl_time": KNOTS, "linear": True, "rtol": 1e-6, "cfd": sinew.CFD()}
    many = sinew.integrate_batch(model, start, TIME, ctrl, threads=threads, **settings).raise_if_unfinished()
    back = sinew.integrate_batch_vjp(many, **bars, coordinates=coordinates, parameters=tangents)
    assert many.qpos.shape == (N, 3, 8)
    assert np.all(back.status == 0)
    for i in range(N):
        motion = sinew.integrate(model, one(start, i), TIME, ctrl[i], **settings)
        gradient = sinew.integrate_vjp(motion, **one(bars, i), coordinates=coordinates, parameters=tangents)
        for name in ("qpos", "qvel", "act", "reached", "accepted", "rejected", "evaluations", "warnings", "end"):
            np.testing.assert_array_equal(getattr(many, name)[i], getattr(motion, name))
        for name in ("ctrl", "qpos", "qvel", "act", "mocap", "parameters"):
            np.testing.assert_array_equal(getattr(back, name)[i], getattr(gradient, name), err_msg=name)


def test_one_state_and_controls_for_all() -> None:
    model, start = sinew.Model.from_string(TOP), states(3)
    rows = {"qpos": start["qpos"], "qvel": start["qvel"][0]}
    many = sinew.integrate_batch(model, rows, TIME, [0.3])
    each = sinew.integrate_batch(model, rows, TIME, np.full((N, 1), 0.3))
    np.testing.assert_array_equal(many.qpos, each.qpos)
    back = sinew.integrate_batch_vjp(many, qpos=np.ones((N, 3, 8)))
    assert back.ctrl.shape == (N, 1)
    assert back.parameters is None
    single = sinew.integrate_batch(model, None, TIME)
    assert single.qpos.shape == (1, 3, 8)


def test_how_a_run_ends_is_data() -> None:
    model, start = sinew.Model.from_string(TOP), states(4)
    start["qpos"][:, 2] += 5
    start["qpos"][2, 2] = 0.02  # in the floor: it needs more steps
    many = sinew.integrate_batch(model, start, [0.3], max_steps=60)
    assert list(np.flatnonzero(many.end != "done")) == [2]
    assert many.end[2] == "steps"
    assert np.all(np.isnan(many.qpos[2]))
    assert np.all(np.isfinite(many.qpos[[0, 1, 3]]))
    back = sinew.integrate_batch_vjp(many, qpos=np.ones((N, 1, 8)))
    assert list(np.flatnonzero(back.status)) == [2]
    assert np.all(back.qvel[2] == 0)
    assert np.all(back.qvel[3] != 0)
    with pytest.raises(LimitError, match=r"motion 2 ended at 0\.\d+ s, after \d+ steps: 'steps'; 1 of 7"):
        many.raise_if_unfinished()


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"rtol": 0}, ArgumentError, "rtol"),
        ({"method": "leapfrog"}, NotFoundError, "leapfrog"),
        ({"ctrl": np.zeros((4, 1))}, ArgumentError, "4 rows, expected 1 or 7"),
        ({"ctrl": np.zeros((N, 3))}, ArgumentError, r"shape \(7, 3\), expected \(1,\) or \(N, 1\)"),
        ({"ctrl": np.zeros((N, 3, 1)), "ctrl_time": KNOTS}, ArgumentError, "ctrl_time"),
        ({"ctrl_time": KNOTS}, ArgumentError, "given without ctrl"),
        ({"time": [0.2, 0.1]}, ArgumentError, r"time\[1\]"),
        ({"memory": 700}, ArgumentError, "memory is 100"),
        ({"threads": 0.5}, ArgumentError, "threads"),
    ],
)
def test_what_is_refused(change: dict[str, Any], kind: type[Exception], words: str) -> None:
    arguments: dict[str, Any] = {"time": TIME} | change
    with pytest.raises(kind, match=words):
        sinew.integrate_batch(sinew.Model.from_string(TOP), states(5), **arguments)


def test_refused_states_and_bars() -> None:
    model, start = sinew.Model.from_string(TOP), states(6)
    start["qvel"][3, 2] = np.nan
    with pytest.raises(DivergedError, match=r"qvel\[2\] is nan"):
        sinew.integrate_batch(model, start, TIME)
    with pytest.raises(ArgumentError, match="state: no rows, expected one or more"):
        sinew.integrate_batch(model, {"qpos": np.zeros((0, model.nq))}, TIME)
    with pytest.raises(ArgumentError, match=r"model: str, expected a sinew\.Model; Model\.from_xml reads a file"):
        sinew.integrate_batch("arm.xml", start, TIME)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="times differ"):
        sinew.integrate_batch(model, {"time": [0, 1.0]}, TIME)
    with pytest.raises(TypeError, match="steps"):
        sinew.integrate_batch(model, None, TIME, steps=3)
    many = sinew.integrate_batch(model, None, TIME)
    with pytest.raises(ArgumentError, match=r"qpos: shape \(3, 8\), expected \(1, 3, 8\)"):
        sinew.integrate_batch_vjp(many, qpos=np.ones((3, 8)))
    with pytest.raises(ArgumentError, match="expected sinew Integrations"):
        sinew.integrate_batch_vjp(sinew.integrate(model, None, TIME))  # type: ignore[arg-type]


CALLS_UNTIL_INTERRUPTED = """
import sys
import numpy as np
import sinew

model = sinew.Model.from_xml(sinew.share("models/cube_toss.xml"))
start = {"qvel": np.tile([0, -0.1, -2, 0, 0, 0.0], (64, 1))}
short = sinew.integrate_batch(model, start, [1.0], rtol=1e-8, atol=1e-8)
call = {
    "one": lambda: sinew.integrate(model, {"qvel": start["qvel"][0]}, [1e3], rtol=1e-8, atol=1e-8, gradients=False),
    "many": lambda: sinew.integrate_batch(model, start, [1e3], rtol=1e-8, atol=1e-8, gradients=False),
    "vjp": lambda: sinew.integrate_batch_vjp(short, qpos=np.ones(short.qpos.shape)),
}[sys.argv[1]]


def check():
    assert np.array_equal(sinew.integrate_batch(model, start, [1.0], rtol=1e-8, atol=1e-8).qpos, short.qpos)
"""


@pytest.mark.parametrize("call", ["one", "many", "vjp"])
def test_ctrl_c_ends_a_call(call: str) -> None:
    interrupt(CALLS_UNTIL_INTERRUPTED, call)
