"""sinew.rollout and sinew.rollout_vjp against MuJoCo's steps, and differences of them."""

from __future__ import annotations

import copy
import pickle
import threading
import time
from typing import Any

import mujoco
import numpy as np
import pytest
import sinew
from numpy.typing import NDArray
from sinew.errors import ArgumentError, DivergedError, SinewError, StateError

from bodies import body, controls, mujoco_states, states

OUTPUTS = ("time", "qpos", "qvel", "act", "sensordata")
NAMES = ["hand", "cube", "ball", "mocap", "reach"]


def largest(a: np.ndarray, b: np.ndarray) -> float:
    """Return the largest difference relative to numbers above 1."""
    return float(np.max(np.abs(a - b) / np.maximum(1, np.abs(b)), initial=0))


# ---- motions ----


# MuJoCo's nearest points of the arm's ellipsoids are not exact.
@pytest.mark.parametrize(("name", "tolerance"), [*((name, 1e-6) for name in NAMES), ("arm", 1e-4)])
def test_trajectories_are_those_of_mujoco(name: str, tolerance: float) -> None:
    b = body(name)
    state, ctrl = states(b, 3, 1), controls(b, 3, 25, 2)
    got = sinew.rollout(b.model, state, ctrl, threads=2)
    want = mujoco_states(b, state, ctrl)
    supported = ~np.isnan(got.sensordata).all(axis=(0, 1))
    for output in OUTPUTS:
        ours, theirs = getattr(got, output), want[output]
        if output == "sensordata":
            ours, theirs = ours[..., supported], theirs[..., supported]
        assert ours.shape == theirs.shape
        assert largest(ours, theirs) < tolerance, output
    assert not got.status.any()
    assert (got.good_states == 26).all()


def test_mocap_moves_the_body() -> None:
    b = body("mocap")
    state, ctrl = states(b, 2, 3), np.zeros((2, 40, 0))
    state["mocap"] = np.array([[[0.1, 0, 1, 1, 0, 0, 0]], [[0, 0.2, 1.1, 0.9, 0.1, 0, 0]]])
    got = sinew.rollout(b.model, state, ctrl)
    want = mujoco_states(b, state, ctrl)
    assert largest(got.qpos, want["qpos"]) < 1e-6
    assert abs(got.qpos[0] - got.qpos[1]).max() > 0.01


@pytest.mark.parametrize("name", ["hand", "cube"])
def test_numbers_do_not_depend_on_threads_or_the_batch(name: str) -> None:
    b = body(name)
    state, ctrl = states(b, 5, 4), controls(b, 5, 10, 5)
    one = sinew.rollout(b.model, state, ctrl, threads=1, gradients=False)
    two = sinew.rollout(b.model, state, ctrl, threads=2)
    alone = sinew.rollout(b.model, {k: v[2] for k, v in state.items()}, ctrl[2])
    for output in OUTPUTS:
        assert np.array_equal(getattr(one, output), getattr(two, output), equal_nan=True)
        assert np.array_equal(getattr(one, output)[2], getattr(alone, output), equal_nan=True)


# ---- shapes ----


@pytest.mark.parametrize("many_states", [None, 1, 3])
@pytest.mark.parametrize("many_ctrl", [None, 1, 3])
def test_one_or_many(many_states: int | None, many_ctrl: int | None) -> None:
    b = body("cube")
    state = {k: v[0] if many_states is None else v for k, v in states(b, many_states or 1, 6).items()}
    ctrl = controls(b, many_ctrl or 1, 7, 7)
    got = sinew.rollout(b.model, state, ctrl[0] if many_ctrl is None else ctrl)
    n = max(many_states or 1, many_ctrl or 1)
    rows = () if many_states is None and many_ctrl is None else (n,)
    assert got.qpos.shape == (*rows, 8, b.model.nq)
    assert got.time.shape == (*rows, 8)
    assert got.status.shape == got.good_states.shape == got.warnings.shape == rows
    gradient = sinew.rollout_vjp(got, qvel=np.ones((8, b.model.nv)))
    assert gradient.ctrl.shape == (*rows, 7, b.model.nu)
    assert gradient.qpos.shape == (*rows, b.model.nq)
    assert gradient.status.shape == rows
    if rows:
        i = n - 1
        alone = sinew.rollout(
            b.model, {k: np.atleast_1d(v)[min(i, len(v) - 1)] if many_states else v for k, v in state.items()},
            ctrl[min(i, len(ctrl) - 1)],
        )  # fmt: skip
        assert np.array_equal(alone.qpos, got.qpos[i])


def test_members_of_a_state_with_one_row_stand_for_all() -> None:
    b = body("cube")
    state = states(b, 4, 8)
    mixed = {**state, "qvel": state["qvel"][0], "act": state["act"][:1], "time": 0.5}
    same = {**state, "qvel": np.tile(state["qvel"][0], (4, 1)), "act": np.tile(state["act"][0], (4, 1)),
            "time": np.full(4, 0.5)}  # fmt: skip
    a, c = (sinew.rollout(b.model, x, nstep=5) for x in (mixed, same))
    assert np.array_equal(a.qpos, c.qpos)
    assert np.array_equal(a.time, c.time)


def test_without_state_and_controls_it_begins_at_qpos0_at_rest() -> None:
    b = body("hand")
    got = sinew.rollout(b.model, nstep=3)
    assert np.array_equal(got.qpos[0], b.reference.qpos0)
    assert not got.qvel[0].any()
    assert np.array_equal(got.qpos, sinew.rollout(b.model, None, np.zeros((3, b.model.nu))).qpos)


def test_the_last_state_is_that_of_the_rollout_whatever_becomes_of_the_arrays_of_its_call() -> None:
    model = body("mocap").model
    mocap = np.array([[0, 0, 1, 1, 0, 0, 0.0]])
    motion = sinew.rollout(model, {"mocap": mocap}, nstep=3)
    mocap[0, 2] = 5
    assert motion.last.mocap[0, 2] == 1


def test_states_come_as_state_mapping_or_mjdata() -> None:
    b = body("mocap")
    d = mujoco.MjData(b.reference)
    d.qvel[:] = 0.1
    d.time = 2.5
    d.mocap_pos[0, 0] = 0.3
    mocap = np.concatenate([d.mocap_pos, d.mocap_quat], axis=1)
    of = sinew.State(d.qpos, d.qvel, None, 2.5, mocap)
    results = [sinew.rollout(b.model, x, nstep=4) for x in (d, of, {"qvel": d.qvel, "time": 2.5, "mocap": mocap})]
    for got in results:
        assert np.array_equal(got.qpos, results[0].qpos)
        assert got.time[0] == 2.5


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, list, "strided"])
def test_numbers_are_converted(dtype: object) -> None:
    b = body("cube")
    ctrl = np.ones((4, 6, b.model.nu))
    strided = np.ones((4, 6, 5))[..., :2]
    other = ctrl.tolist() if dtype is list else strided if dtype == "strided" else ctrl.astype(dtype)
    assert np.array_equal(sinew.rollout(b.model, None, ctrl).qpos, sinew.rollout(b.model, None, other).qpos)


# ---- wrong input ----

X = np.zeros


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"state": {"qpos": X(3)}}, r"qpos: shape \(3,\), expected \(12,\) or \(N, 12\)"),
        ({"state": {"qpos": X((2, 2, 12))}}, r"qpos: shape \(2, 2, 12\)"),
        ({"state": {"qvel": X((3, 10)), "act": X((2, 1))}}, "act: 2 rows, expected 1 or 3 as qvel has"),
        ({"state": {"qvel": X((3, 10))}, "ctrl": X((2, 5, 2))}, "ctrl: 2 rows, expected 1 or 3 as qvel has"),
        ({"state": {"qpos": ["a"] * 12}}, "qpos: numbers of type"),
        ({"state": {"qpos": X(12, complex)}}, "qpos: numbers of type complex128, expected real numbers"),
        ({"state": {"qpos": [[1, 2], [3]]}}, "qpos: "),
        ({"state": {"speed": X(10)}}, "'speed' is not one of"),
        ({"state": 3}, "state: int"),
        ({"state": {"qpos": np.full(12, np.nan)}}, r"qpos\[0\] of rollout 0: "),
        ({"state": {"time": np.inf}}, "time"),
        ({"state": {"mocap": X(7)}}, r"mocap: shape \(7,\), expected \(1, 7\) or \(N, 1, 7\)"),
        ({"ctrl": X(2)}, r"ctrl: shape \(2,\), expected \(T, 2\) or \(N, T, 2\)"),
        ({"ctrl": X((5, 3))}, r"ctrl: shape \(5, 3\), expected \(T, 2\) or \(N, T, 2\)"),
        ({"ctrl": X((5, 2)) + np.nan}, r"ctrl\[0\]\[0\] of rollout 0: "),
        ({"ctrl": X((0, 2))}, r"ctrl: shape \(0, 2\), expected at least one rollout of one step"),
        ({"ctrl": X((0, 5, 2))}, r"ctrl: shape \(0, 5, 2\), expected at least one rollout of one step"),
        ({"state": {"qpos": X((0, 12))}}, "state: no rows, expected one or more"),
        ({"ctrl": None}, "ctrl: None"),
        ({"ctrl": None, "nstep": 2.5}, "nstep: 2.5, expected a whole number"),
        ({"ctrl": None, "nstep": -1}, "steps: -1"),
        ({"ctrl": None, "nstep": 1 << 40}, "nstep: 1099511627776 is out of range"),
        ({"nstep": 4}, "nstep: 4, but ctrl has 5 rows"),
        ({"threads": -1}, "threads: -1, allowed is 0 to"),
        ({"threads": "2"}, "threads: '2', expected a whole number"),
        ({"cfd": True}, "cfd: bool, expected a sinew.CFD"),
        ({"task": "reach"}, "task: str, expected a sinew.Task"),
        ({"outputs": ("xpos",)}, "outputs: 'xpos' is not one of"),
        ({"out": {"xpos": X(3)}}, "out: 'xpos' is not one of"),
        ({"out": {"qpos": X((6, 11))}}, r"out: 'qpos' must be .* of shape \(6, 12\)"),
        ({"out": {"qpos": X((6, 12), np.float32)}}, "out: 'qpos' must be"),
        ({"max_velocity": -1.0}, "max_velocity: -1"),
        ({"max_velocity": "fast"}, "max_velocity: numbers of type"),
        ({"device": None}, "device: None, expected a name"),
        ({"integrator": 1.5}, "integrator: 1.5, expected a whole number"),
        ({"integrator": ["rk4"]}, r"integrator: \['rk4'\], expected a n"),
        ({"ctrl": np.ma.masked_greater(np.eye(5, 2), 0)}, "ctrl: 2 of its numbers are masked"),
        ({"model": "hand.xml"}, "model: str, expected a sinew.Model; Model.from_xml reads a file"),
    ],
)  # fmt: skip
def test_wrong_input_is_refused_in_words(arguments: dict, text: str) -> None:
    given = {"model": body("cube").model, "ctrl": X((5, 2)), **arguments}
    with pytest.raises(ArgumentError, match=text):
        sinew.rollout(given.pop("model"), **given)


def test_unknown_devices_are_not_found() -> None:
    with pytest.raises(SinewError, match="abacus"):
        sinew.rollout(body("cube").model, nstep=2, device="abacus")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"qpos": X((6, 11))}, r"qpos: shape \(6, 11\), expected \(6, 12\) or \(2, 6, 12\)"),
        ({"qpos": X((3, 6, 12))}, r"qpos: shape \(3, 6, 12\)"),
        ({"qpos": X((2, 6, 12)), "coordinates": "tangent"}, r"expected \(6, 10\)"),
        ({"qvel": np.full((6, 10), np.inf)}, "qvel"),
        ({"ctrl": X((6, 2))}, r"ctrl: shape \(6, 2\), expected \(5, 2\)"),
        ({"cost": 1.0}, "cost: the rollouts have no task"),
        ({"coordinates": "angles"}, "coordinates: 'angles'"),
        ({"rollout": 3}, "rollout: int"),
    ],
)  # fmt: skip
def test_wrong_derivatives_are_refused_in_words(arguments: dict, text: str) -> None:
    of = sinew.rollout(body("cube").model, None, X((2, 5, 2)))
    with pytest.raises(ArgumentError, match=text):
        sinew.rollout_vjp(**{"rollout": of, **arguments})


def test_divergence_is_data() -> None:
    b = body("cube")
    state = states(b, 3, 9)
    state["qvel"][1, -1] = 1e9
    got = sinew.rollout(b.model, state, nstep=20)
    assert got.status.tolist() == [0, 10, 0]
    good = got.good_states[1]
    assert good < 21
    assert np.isnan(got.qpos[1, good:]).all()
    assert np.isfinite(got.qpos[1, :good]).all()
    with pytest.raises(DivergedError, match=r"1 of 3 rollouts diverged \(1\); rollout 1 at state"):
        got.raise_if_diverged()
    gradient = sinew.rollout_vjp(got, qpos=np.ones((21, b.model.nq)))
    assert gradient.status.tolist() == [0, 10, 0]
    assert not gradient.ctrl[1].any()
    fine = sinew.rollout(b.model, nstep=2)
    assert fine.raise_if_diverged() is fine


# ---- results into the caller's arrays ----


def test_results_go_into_arrays_of_the_caller() -> None:
    b = body("cube")
    ctrl = controls(b, 2, 5, 10)
    want = sinew.rollout(b.model, None, ctrl)
    out = {"qpos": np.empty_like(want.qpos)}
    got = sinew.rollout(b.model, None, ctrl, outputs=("qpos", "qvel"), out=out)
    assert np.array_equal(out["qpos"], want.qpos)
    assert np.shares_memory(got.qpos, out["qpos"])
    with pytest.raises(StateError, match="act was not asked for"):
        got.act  # noqa: B018
    again = sinew.rollout(b.model, None, ctrl, outputs=("qpos",), out=got)
    assert again.qpos.base is got.qpos.base or np.shares_memory(again.qpos, got.qpos)
    rows = np.zeros((2, b.model.nq))
    with pytest.raises(ArgumentError, match="'qpos' shares memory with an input"):
        sinew.rollout(b.model, {"qpos": rows[0]}, nstep=1, out={"qpos": rows})


# ---- the way back ----


def number(b, state: dict, ctrl: np.ndarray, weights: dict) -> float:
    """Return the weighted sum of MuJoCo's states that the derivatives are of."""
    want = mujoco_states(b, {k: v[None] for k, v in state.items()}, ctrl[None])
    return float(sum((weights[k] * want[k][0]).sum() for k in weights))


@pytest.mark.parametrize(("name", "steps"), [("hand", 8), ("arm", 6), ("cube", 8), ("ball", 8), ("reach", 20)])
def test_gradients_are_those_of_differences_of_mujoco(name: str, steps: int) -> None:
    b = body(name)
    rng = np.random.default_rng(11)
    m = b.reference
    state = {k: v[0] for k, v in states(b, 1, 12).items()}
    ctrl = controls(b, 1, steps, 13)[0]
    weights = {k: rng.normal(size=(steps + 1, n)) for k, n in (("qpos", m.nq), ("qvel", m.nv), ("act", m.na))}
    got = sinew.rollout(b.model, state, ctrl)
    gradient = sinew.rollout_vjp(got, **weights)
    tangent = rng.normal(size=m.nv)
    moves = {"ctrl": rng.normal(size=ctrl.shape), "qvel": rng.normal(size=m.nv), "act": rng.normal(size=m.na)}
    h = 1e-6
    for part, move in [*moves.items(), ("qpos", tangent)]:
        values = []
        for sign in (h, -h):
            s, c = {k: v.copy() for k, v in state.items()}, ctrl.copy()
            if part == "ctrl":
                c += sign * move
            elif part == "qpos":
                mujoco.mj_integratePos(m, s["qpos"], move, sign)
            else:
                s[part] += sign * move
            values.append(number(b, s, c, weights))
        wanted = (values[0] - values[1]) / (2 * h)
        if part == "qpos":
            ahead, behind = state["qpos"].copy(), state["qpos"].copy()
            mujoco.mj_integratePos(m, ahead, move, h)
            mujoco.mj_integratePos(m, behind, move, -h)
            move = (ahead - behind) / (2 * h)
        found = float((getattr(gradient, part) * move).sum())
        scale = np.abs(getattr(gradient, part)).max(initial=0) + 1
        assert abs(found - wanted) < 1e-4 * scale, (part, found, wanted)


def test_derivatives_along_tangents_agree_with_those_of_arrays() -> None:
    b = body("cube")
    state, ctrl = states(b, 2, 14), controls(b, 2, 6, 15)
    got = sinew.rollout(b.model, state, ctrl)
    bar = np.random.default_rng(16).normal(size=got.qvel.shape)
    array, tangent = (sinew.rollout_vjp(got, qvel=bar, coordinates=c) for c in ("array", "tangent"))
    assert tangent.qpos.shape == (2, b.model.nv)
    assert np.array_equal(array.ctrl, tangent.ctrl)
    for i in range(2):
        move = np.random.default_rng(17).normal(size=b.model.nv)
        ahead, behind = state["qpos"][i].copy(), state["qpos"][i].copy()
        mujoco.mj_integratePos(b.reference, ahead, move, 1e-6)
        mujoco.mj_integratePos(b.reference, behind, move, -1e-6)
        assert tangent.qpos[i] @ move == pytest.approx(array.qpos[i] @ (ahead - behind) / 2e-6, rel=1e-6)


def test_the_way_back_outlasts_other_rollouts() -> None:
    b = body("cube")
    ctrl = controls(b, 2, 5, 18)
    bar = np.ones((6, b.model.nq))
    first = sinew.rollout(b.model, None, ctrl)
    want = sinew.rollout_vjp(first, qpos=bar).ctrl
    others = [sinew.rollout(b.model, None, ctrl * k) for k in range(3)]
    assert np.array_equal(sinew.rollout_vjp(first, qpos=bar).ctrl, want)
    assert not np.array_equal(sinew.rollout_vjp(others[0], qpos=bar).ctrl, want)


def test_closed_rollouts_keep_arrays_and_refuse_the_way_back() -> None:
    b = body("cube")
    with sinew.rollout(b.model, nstep=3) as got:
        pass
    got.close()
    assert got.qpos.shape == (4, b.model.nq)
    for closed in (got, sinew.rollout(b.model, nstep=3, gradients=False)):
        with pytest.raises(StateError, match="closed, or made without gradients"):
            sinew.rollout_vjp(closed, qpos=np.ones((4, b.model.nq)))


def test_rollouts_that_are_closed_while_the_way_back_waits_for_threads() -> None:
    b = body("cube")
    got = sinew.rollout(b.model, nstep=3)
    errors: list[BaseException] = []

    def work() -> None:
        try:
            sinew.rollout_vjp(got, qpos=np.ones((4, b.model.nq)))
        except SinewError as error:
            errors.append(error)

    waiting = threading.Thread(target=work)
    with got._lease.use():
        waiting.start()
        time.sleep(0.1)
        got.close()
    waiting.join(60)
    assert len(errors) == 1 and isinstance(errors[0], StateError)


def test_rollouts_are_not_copied() -> None:
    got = sinew.rollout(body("cube").model, nstep=3)
    for copied in (copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="take its arrays"):
            copied(got)


def test_arrays_need_not_be_aligned() -> None:
    b = body("cube")
    ctrl = controls(b, 1, 5, 10)[0]
    odd = np.frombuffer(bytearray(4 + ctrl.nbytes), np.float64, ctrl.size, offset=4).reshape(ctrl.shape)
    odd[...] = ctrl
    assert not odd.flags.aligned
    assert np.array_equal(sinew.rollout(b.model, None, odd).qpos, sinew.rollout(b.model, None, ctrl).qpos)
    qpos = np.frombuffer(bytearray(4 + 8 * 6 * b.model.nq), np.float64, 6 * b.model.nq, offset=4)
    with pytest.raises(ArgumentError, match="'qpos' must be"):
        sinew.rollout(b.model, None, ctrl, out={"qpos": qpos.reshape(6, b.model.nq)})


def test_bodies_of_contacts_from_distance_are_a_sequence() -> None:
    with pytest.raises(ArgumentError, match="bodies: 'cube', expected a sequence of names"):
        sinew.CFD(bodies="cube")
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"friction": "yes"}, "friction: 'yes', expected True or False"),
        ({"solimp": (0, 0.1)}, r"solimp: shape \(2,\), expected \(5,\)"),
        ({"softplus": "wide"}, "softplus: numbers of type"),
    ]
    for settings, text in wrong:
        with pytest.raises(ArgumentError, match=text):
            sinew.CFD(**settings)
    names = ["cube"]
    cfd = sinew.CFD(bodies=names)
    names.append("ghost")
    assert cfd.bodies == ("cube",)


def test_contacts_from_distance_change_derivatives_alone() -> None:
    b = body("ball")
    state = {"qpos": [0, 0, 0.15, 1, 0, 0, 0]}
    bar = np.zeros((11, 6))
    bar[-1, 2] = 1
    near, far = (sinew.rollout(b.model, state, nstep=10, cfd=cfd) for cfd in (None, sinew.CFD()))
    assert np.array_equal(near.qpos, far.qpos)
    assert not np.array_equal(sinew.rollout_vjp(near, qvel=bar).qpos, sinew.rollout_vjp(far, qvel=bar).qpos)


BOXES = """<mujoco><option timestep=".002"/><default><geom solimp=".1 .9 .01 .5 2" solref=".02 1"/></default><worldbody>
<geom name="floor" type="plane" size="5 5 .1"/>
<body pos="0 0 .1" euler="10 5 20"><freejoint/><geom name="low" type="box" size=".1 .12 .08"/></body>
<body pos=".02 .03 .3" euler="3 8 5"><freejoint/><geom name="high" type="box" size=".07 .06 .05"/></body>
<body pos=".4 0 .11" euler="5 0 0"><freejoint/><geom name="can" type="cylinder" size=".06 .1"/></body>
</worldbody></mujoco>"""


def test_smooth_collision_changes_derivatives_alone() -> None:
    model = sinew.Model.from_string(BOXES)
    bar = np.ones((31, model.nv))
    exact, smooth = (
        sinew.rollout(model, None, nstep=30, cfd=sinew.CFD(smooth=length, solimp=(0, 0.1, 0.05, 1, 4)))
        for length in (0.0, 0.01)
    )
    assert np.array_equal(exact.qpos, smooth.qpos)
    assert not np.array_equal(sinew.rollout_vjp(exact, qvel=bar).qpos, sinew.rollout_vjp(smooth, qvel=bar).qpos)
    for length in (-1.0, 2.0, np.nan):
        with pytest.raises(ArgumentError, match=r"SinewCfd\.smooth: "):
            sinew.rollout(model, None, nstep=1, cfd=sinew.CFD(smooth=length))


def test_derivatives_with_smooth_collision_are_those_of_motions_with_it() -> None:
    names = ["geom.low.size[0]", "geom.high.size[2]", "geom.can.size[0]", "geom.can.size[1]"]
    parameters = sinew.Parameters(BOXES, dict(zip(names, names, strict=True)))
    cfd = sinew.CFD(solimp=(0, 0.1, 0.05, 0.5, 2), softplus=0.01, friction=True, forward=True, smooth=0.01)
    state = {"qpos": parameters.model().qpos0}

    def ends(model: sinew.Model, qvel: np.ndarray) -> sinew.Rollout:
        return sinew.rollout(model, {**state, "qvel": qvel}, nstep=25, cfd=cfd)

    motion = ends(parameters.model(), np.zeros(18))
    bar = np.zeros_like(motion.qpos)
    bar[-1] = np.random.default_rng(3).standard_normal(bar.shape[1])
    gradient = sinew.rollout_vjp(motion, qpos=bar, parameters=parameters.tangents())
    value = lambda motion: np.sum(bar[-1] * motion.qpos[-1])  # noqa: E731
    for k in range(18):
        step = 1e-6 * np.eye(18)[k]
        pair = [value(ends(parameters.model(), sign * step)) for sign in (1, -1)]
        assert gradient.qvel[k] == pytest.approx((pair[0] - pair[1]) / 2e-6, rel=1e-4, abs=1e-5)
    assert gradient.parameters is not None
    for k, moved in enumerate(1e-6 * np.eye(len(names))):
        pair = [value(ends(parameters.model(parameters.values + sign * moved), np.zeros(18))) for sign in (1, -1)]
        assert gradient.parameters[k] == pytest.approx((pair[0] - pair[1]) / 2e-6, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("name", ["hand", "cube", "mocap"])
def test_rollouts_go_on_where_others_have_ended(name: str, many: bool) -> None:
    b = body(name)
    state, ctrl = states(b, 3, 1), controls(b, 3, 60, 2)
    if not many:
        state = {key: x[0] for key, x in state.items()}
        ctrl = ctrl[0]
    whole = sinew.rollout(b.model, state, ctrl)
    first = sinew.rollout(b.model, state, ctrl[..., :40, :])
    second = sinew.rollout(b.model, first.last, ctrl[..., 40:, :])
    for key in OUTPUTS:
        x = getattr(whole, key)
        assert np.array_equal(getattr(second, key), x[:, 40:] if many else x[40:]), key
    assert np.array_equal(whole.qacc_warmstart, second.qacc_warmstart)
    # Without the warm start the bits differ.
    cold = first.last
    cold.qacc_warmstart = None
    assert name == "mocap" or not np.array_equal(sinew.rollout(b.model, cold, ctrl[..., 40:, :]).qvel, second.qvel)


# ---- the cost of a task ----


def test_the_cost_of_a_task_and_its_gradient() -> None:
    task = sinew.Task(str(sinew.share("tasks/arm_reach.yaml")))
    model = body("reach").model
    ctrl = controls(body("reach"), 2, 12, 30)
    got = sinew.rollout(model, None, ctrl, task=task)
    assert got.cost is not None
    assert got.terms is not None
    assert got.terms.sum(axis=1) == pytest.approx(got.cost)
    gradient = sinew.rollout_vjp(got)
    twice = sinew.rollout_vjp(got, cost=[1.0, 2.0])
    assert np.allclose(twice.ctrl, gradient.ctrl * np.array([1.0, 2.0])[:, None, None], rtol=1e-12)
    move = np.random.default_rng(31).normal(size=ctrl.shape)
    ahead, behind = (sinew.rollout(model, None, ctrl + h * move, task=task).cost for h in (1e-6, -1e-6))
    assert (gradient.ctrl * move).sum(axis=(1, 2)) == pytest.approx((ahead - behind) / 2e-6, rel=1e-5)
    alone = sinew.rollout(model, None, ctrl[0], task=task)
    assert alone.cost == got.cost[0]
    assert alone.terms.shape == got.terms.shape[1:]
    assert sinew.rollout_vjp(alone, cost=2.0).status == 0


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast"])
def test_accelerations_behind_noslip(integrator: str) -> None:
    """A step that hands bars of accelerations and of its next state back, where sweeps have changed the former."""
    model = sinew.Model.from_string(f"""
        <mujoco><option integrator="{integrator}" noslip_iterations="4" noslip_tolerance="0" tolerance="1e-15"/>
          <worldbody><body><joint type="ball" frictionloss="0.98"/><inertial pos="0.02 0.03 -0.03" mass="1.4"
            fullinertia="0.032 0.031 0.02 0.0014 -0.0015 -0.0016"/><site name="s"/></body></worldbody>
          <sensor><torque site="s"/><accelerometer site="s"/></sensor></mujoco>""")
    rng = np.random.default_rng(5)
    qvel, way = 0.3 * rng.standard_normal((2, 3))
    bars = {"sensordata": rng.standard_normal((5, 6)), "qvel": rng.standard_normal((5, 3))}

    def number(qpos: NDArray[np.float64]) -> float:
        made = sinew.rollout(model, {"qpos": qpos, "qvel": qvel}, nstep=4, gradients=False)
        return sum(float(np.sum(bar * getattr(made, name))) for name, bar in bars.items())

    def turned(h: float) -> NDArray[np.float64]:
        return np.array([1, *(0.3 + h * way)]) / np.linalg.norm([1, *(0.3 + h * way)])

    found = sinew.rollout_vjp(sinew.rollout(model, {"qpos": turned(0), "qvel": qvel}, nstep=4), **bars).qpos
    slope = found @ (turned(1e-6) - turned(-1e-6)) / 2e-6
    assert slope == pytest.approx((number(turned(1e-6)) - number(turned(-1e-6))) / 2e-6, rel=1e-7)
