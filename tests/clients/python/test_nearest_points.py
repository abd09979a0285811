"""Nearest points of pairs at many states, and the way back through them."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest
import sinew
from sinew.errors import ArgumentError, DivergedError, NotFoundError, UnsupportedError

from processes import interrupt

XML = """<mujoco><worldbody>
<body name="table" mocap="true" pos="0 0 .1"><geom name="table" type="box" size=".5 .5 .05"/></body>
<body name="arm" pos="0 0 .6"><joint name="turn" type="ball"/>
 <geom name="upper" type="capsule" size=".04" fromto="0 0 0 .3 0 0"/>
 <body name="fore" pos=".3 0 0"><joint name="bend" axis="0 1 0"/><geom name="fore" type="capsule" size=".03 .1"/></body>
</body>
<body name="ball" pos=".1 .2 .4"><freejoint/><geom name="ball" type="ellipsoid" size=".05 .07 .04"/></body>
<body name="can" pos="-.2 .2 .4"><freejoint/><geom name="can" type="cylinder" size=".04 .08" pos=".01 .02 0"/></body>
<geom name="floor" type="plane" size="2 2 1"/></worldbody></mujoco>"""
PAIRS = [("table", "fore"), ("ball", "can"), ("upper", "ball"), ("can", "table"), ("floor", "fore"), ("fore", "ball")]


@pytest.fixture(scope="module")
def model() -> sinew.Model:
    return sinew.Model.from_string(XML)


@pytest.fixture(scope="module")
def theirs() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(XML)


@pytest.fixture
def states(theirs: mujoco.MjModel) -> np.ndarray:
    rng = np.random.default_rng(4)
    qpos = np.tile(theirs.qpos0, (9, 1))
    for row in qpos:
        mujoco.mj_integratePos(theirs, row, 0.3 * rng.standard_normal(theirs.nv), 1)
    return qpos


def bars(near: sinew.NearestPoints) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    return {name: rng.standard_normal(getattr(near, name).shape) for name in ("dist", "fromto", "normal")}


def value(near: sinew.NearestPoints, weights: dict[str, Any]) -> np.ndarray:
    """Return the number of each state whose derivatives the weights are."""
    parts = [(weights[name] * getattr(near, name)).reshape(len(near.dist), -1).sum(axis=1) for name in weights]
    return np.sum(parts, axis=0)


def test_distances_are_mujocos(model: sinew.Model, theirs: mujoco.MjModel, states: np.ndarray) -> None:
    near = sinew.nearest_points(model, {"qpos": states}, PAIRS)
    data, fromto = mujoco.MjData(theirs), np.empty(6)
    assert near.dist.shape == (9, 6) and near.fromto.shape == (9, 6, 2, 3) and near.normal.shape == (9, 6, 3)
    for i, qpos in enumerate(states):
        data.qpos = qpos
        mujoco.mj_forward(theirs, data)
        for k, pair in enumerate(PAIRS):
            dist = mujoco.mj_geomDistance(theirs, data, *(theirs.geom(name).id for name in pair), 10, fromto)
            assert near.dist[i, k] == pytest.approx(dist, abs=1e-6)
    np.testing.assert_allclose(near.fromto[..., 1, :] - near.fromto[..., 0, :], near.dist[..., None] * near.normal)


def test_one_state_has_no_dimension_of_states(model: sinew.Model, states: np.ndarray) -> None:
    many = sinew.nearest_points(model, {"qpos": states}, PAIRS)
    one = sinew.nearest_points(model, {"qpos": states[2]}, PAIRS)
    assert one.dist.shape == (6,)
    np.testing.assert_array_equal(one.dist, many.dist[2])
    gradient = sinew.nearest_points_vjp(one, dist=np.ones(6))
    assert gradient.qpos.shape == (model.nq,) and gradient.mocap.shape == (1, 6)
    by_number = sinew.nearest_points(
        model, {"qpos": states[2]}, np.array([[model.names("geom").index(name) for name in PAIRS[0]]])
    )
    assert by_number.dist[0] == one.dist[0]


def test_data_counts_as_its_state(theirs: mujoco.MjModel, model: sinew.Model) -> None:
    data = mujoco.MjData(theirs)
    data.mocap_pos[0] = (0, 0, 0.3)
    near = sinew.nearest_points(model, data, PAIRS)
    mujoco.mj_forward(theirs, data)
    expected = mujoco.mj_geomDistance(theirs, data, theirs.geom("table").id, theirs.geom("fore").id, 10, None)
    assert near.dist[0] == pytest.approx(expected, abs=1e-6)
    assert near.dist[0] != sinew.nearest_points(model, None, PAIRS).dist[0]


@pytest.mark.parametrize("coordinates", ["array", "tangent"])
def test_derivatives_by_positions(
    model: sinew.Model, theirs: mujoco.MjModel, states: np.ndarray, coordinates: Any
) -> None:
    near = sinew.nearest_points(model, {"qpos": states}, PAIRS, threads=2)
    weights = bars(near)
    gradient = sinew.nearest_points_vjp(near, **weights, coordinates=coordinates).qpos
    width = model.nv if coordinates == "tangent" else model.nq
    for k in range(width):
        ends = []
        for sign in (1e-6, -1e-6):
            moved = states.copy()
            for row in moved:
                if coordinates == "tangent":
                    mujoco.mj_integratePos(theirs, row, sign * np.eye(width)[k], 1)
                else:
                    row[k] += sign
            ends.append(value(sinew.nearest_points(model, {"qpos": moved}, PAIRS), weights))
        np.testing.assert_allclose(gradient[:, k], (ends[0] - ends[1]) / 2e-6, atol=2e-6, rtol=2e-6)


def test_derivatives_by_mocap_bodies(model: sinew.Model, states: np.ndarray) -> None:
    mocap = np.array([[0.02, 0.1, 0.15, 0.9, 0.1, 0.2, -0.1]])
    near = sinew.nearest_points(model, {"qpos": states, "mocap": mocap}, PAIRS)
    weights = bars(near)
    gradient = sinew.nearest_points_vjp(near, **weights).mocap
    for k in range(3):
        ends = [
            value(sinew.nearest_points(model, {"qpos": states, "mocap": mocap + step * np.eye(7)[k]}, PAIRS), weights)
            for step in (1e-6, -1e-6)
        ]
        np.testing.assert_allclose(gradient[:, 0, k], (ends[0] - ends[1]) / 2e-6, atol=2e-6, rtol=2e-6)
    turned = []
    for angle in (1e-6, -1e-6):
        pose, turn = mocap[0].copy(), np.array([np.cos(angle / 2), 0, 0, np.sin(angle / 2)])
        mujoco.mju_mulQuat(pose[3:], turn, mocap[0, 3:])
        turned.append(value(sinew.nearest_points(model, {"qpos": states, "mocap": pose[None]}, PAIRS), weights))
    np.testing.assert_allclose(gradient[:, 0, 5], (turned[0] - turned[1]) / 2e-6, atol=2e-6, rtol=2e-6)


def test_derivatives_by_parameters(states: np.ndarray) -> None:
    names = ["geom.can.size[0]", "geom.ball.size[1]", "geom.upper.size[0]", "body.fore.pos[0]", "geom.can.pos[1]"]
    names += ["joint.bend.pos[2]", "geom.table.size[2]"]
    parameters = sinew.Parameters(XML, dict(zip(names, names, strict=True)))
    near = sinew.nearest_points(parameters.model(), {"qpos": states}, PAIRS)
    weights = bars(near)
    gradient = sinew.nearest_points_vjp(near, **weights, parameters=parameters.tangents()).parameters
    assert gradient is not None and gradient.shape == (9, len(names))
    for k in range(len(names)):
        ends = [
            value(
                sinew.nearest_points(
                    parameters.model(parameters.values + step * np.eye(len(names))[k]), {"qpos": states}, PAIRS
                ),
                weights,
            )
            for step in (1e-6, -1e-6)
        ]
        np.testing.assert_allclose(gradient[:, k], (ends[0] - ends[1]) / 2e-6, atol=1e-5, rtol=1e-5)


def test_surrogate_is_right_for_distances_alone(model: sinew.Model, states: np.ndarray) -> None:
    near = sinew.nearest_points(model, {"qpos": states}, PAIRS)
    weights = bars(near)
    exact = sinew.nearest_points_vjp(near, dist=weights["dist"]).qpos
    np.testing.assert_allclose(
        sinew.nearest_points_vjp(near, dist=weights["dist"], derivative="surrogate").qpos, exact, atol=1e-12
    )
    exact = sinew.nearest_points_vjp(near, **weights).qpos
    carried = sinew.nearest_points_vjp(near, **weights, derivative="surrogate").qpos
    assert np.linalg.norm(carried - exact) > 0.1 * np.linalg.norm(exact)


def test_results_do_not_depend_on_threads_or_later_changes(model: sinew.Model, states: np.ndarray) -> None:
    near = sinew.nearest_points(model, {"qpos": states}, PAIRS, threads=1)
    first = sinew.nearest_points_vjp(near, **bars(near)).qpos
    states += 1
    again = sinew.nearest_points_vjp(near, **bars(near)).qpos
    np.testing.assert_array_equal(first, again)
    states -= 1
    other = sinew.nearest_points(model, {"qpos": near._qpos}, PAIRS, threads=3)
    np.testing.assert_array_equal(other.fromto, near.fromto)
    np.testing.assert_array_equal(sinew.nearest_points_vjp(other, **bars(other)).qpos, first)


def test_pairs_as_an_array_are_those_by_name(model: sinew.Model, states: np.ndarray) -> None:
    names = list(model.names("geom"))
    indices = np.array([[names.index(a), names.index(b)] for a, b in PAIRS])
    by_name, by_index = (sinew.nearest_points(model, {"qpos": states}, x) for x in (PAIRS, indices))
    assert np.array_equal(by_name.dist, by_index.dist)
    assert np.array_equal(by_name.fromto, by_index.fromto)


def test_pairs_may_be_written_over_before_the_way_back(model: sinew.Model, states: np.ndarray) -> None:
    names = list(model.names("geom"))
    indices = np.array([[names.index(a), names.index(b)] for a, b in PAIRS], np.int32)
    near = sinew.nearest_points(model, {"qpos": states}, indices)
    first = sinew.nearest_points_vjp(near, **bars(near)).qpos
    indices[:] = indices[::-1].copy()
    np.testing.assert_array_equal(sinew.nearest_points_vjp(near, **bars(near)).qpos, first)


def test_no_pairs_and_limits(model: sinew.Model, states: np.ndarray) -> None:
    none = sinew.nearest_points(model, {"qpos": states})
    assert none.dist.shape == (9, 0)
    assert not sinew.nearest_points_vjp(none).qpos.any()
    near = sinew.nearest_points(model, {"qpos": states}, PAIRS, limit=0.01)
    assert (near.dist[near.dist > 0] <= 0.01).all() and (near.dist == 0.01).any()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda m, q: sinew.nearest_points(m, {"qpos": q}, [("tabel", "can")]), NotFoundError, "geom 'tabel'"),
        (lambda m, q: sinew.nearest_points(m, {"qpos": q}, [(0, 99)]), NotFoundError, "geom 99"),
        (lambda m, q: sinew.nearest_points(m, {"qpos": q}, np.array([[0, 1], [2, 99]])), NotFoundError, "geom 99"),
        (lambda m, q: sinew.nearest_points(m, {"qpos": q}, np.array([[0, -1]])), NotFoundError, "geom -1"),
        (lambda m, q: sinew.nearest_points(m, {"qpos": q}, np.array([[0, 1, 2]])), ArgumentError, "two geoms each"),
        (lambda m, q: sinew.nearest_points(m, {"qpos": q}, [("can",)]), ArgumentError, "two geoms each"),
        (lambda m, q: sinew.nearest_points(m, {"qpos": q[:, 1:]}, PAIRS), ArgumentError, "qpos: shape"),
        (lambda m, q: sinew.nearest_points(m, {"qpos": q * np.nan}, PAIRS), DivergedError, r"state 0.*qpos\[0\] is"),
        (lambda m, q: sinew.nearest_points(m, {"qpos": q}, PAIRS, limit=0), ArgumentError, "limit: 0"),
        (lambda m, q: sinew.nearest_points(m, {"qpos": q}, PAIRS, limit=np.nan), ArgumentError, "limit"),
        (lambda m, q: sinew.nearest_points(m, {"qpos": q}, PAIRS, limit="x"), ArgumentError, "limit: numbers of type"),
        (lambda m, q: sinew.nearest_points(m, {"qpos": q}, [("floor", "floor")]), UnsupportedError, "no collider"),
        (lambda m, q: sinew.nearest_points("m", {"qpos": q}, PAIRS), ArgumentError, "model"),  # type: ignore[arg-type]
        (lambda m, q: back(m, q, dist=np.ones((9, 5))), ArgumentError, r"dist: shape \(9, 5\), expected \(9, 6\)"),
        (lambda m, q: back(m, q, dist=np.full((9, 6), np.inf)), ArgumentError, "finite"),
        (lambda m, q: back(m, q, derivative="rough"), ArgumentError, "expected 'exact' or 'surrogate'"),
        (lambda m, q: back(m, q, coordinates="polar"), ArgumentError, "expected 'array' or 'tangent'"),
        (lambda m, q: back(m, q, parameters=3), ArgumentError, "ModelTangents"),
        (lambda m, q: sinew.nearest_points_vjp(q), ArgumentError, "NearestPoints"),
    ],
)
def test_bad_input_is_refused_in_words(
    model: sinew.Model, states: np.ndarray, call: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        call(model, states)


def back(model: sinew.Model, states: np.ndarray, **arguments: Any) -> sinew.NearestGradient:
    return sinew.nearest_points_vjp(sinew.nearest_points(model, {"qpos": states}, PAIRS), **arguments)


INTERRUPTED = """
import sys
import numpy as np
import sinew
from test_nearest_points import PAIRS, XML

model = sinew.Model.from_string(XML)
one = sinew.nearest_points(model, None, PAIRS)
if sys.argv[1] == "pairs":
    many = np.tile([[1, 2], [0, 4]], (1_000_000, 1))
else:
    found = sinew.nearest_points(model, {"qpos": np.tile(model.qpos0, (200_000, 1))}, PAIRS)
    bar = np.ones_like(found.dist)


def call():
    if sys.argv[1] == "pairs":
        sinew.nearest_points(model, None, many, threads=1)
    else:
        sinew.nearest_points_vjp(found, dist=bar)


def check():
    assert np.array_equal(sinew.nearest_points(model, None, PAIRS).dist, one.dist)
"""


@pytest.mark.parametrize("call", ["pairs", "states"])
def test_ctrl_c_ends_a_call(call: str) -> None:
    interrupt(INTERRUPTED, call)
