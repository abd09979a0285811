"""The page's 3D view: what it draws is where MuJoCo says that it is; what the mouse does comes back in numbers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import pytest
import sinew
from sinew.client.messages import ObjectName, TermDescription
from sinew.loop.source import Frame

viser = pytest.importorskip("viser")
pytest.importorskip("mjviser")
pytest.importorskip("fast_simplification")

from sinew.view.colors import activation_colors  # noqa: E402
from sinew.view.scene import Scene  # noqa: E402

ARM = str(sinew.share("models/arm_reach.xml"))
ROWS = 49

# Things that a page cannot draw, or only with care.
ODD = """
<mujoco>
  <asset>
    <hfield name="hills" nrow="4" ncol="5" size="1 1 0.2 0.1"/>
    <texture name="cube" type="cube" builtin="flat" rgb1="0.2 0.4 0.8" width="8" height="8"/>
    <material name="blue" texture="cube"/>
  </asset>
  <worldbody>
    <geom type="hfield" hfield="hills"/>
    <body name="ball" pos="0 0 1"><freejoint/><geom size="0.1"/></body>
    <body name="hidden" pos="0 0 2"><joint/><geom size="0.1" rgba="1 0 0 0"/></body>
    <body name="goal" mocap="true" pos="1 0 1"><geom size="0.05" contype="0" conaffinity="0"/></body>
    <flexcomp name="cloth" type="grid" count="3 3 1" spacing="0.1 0.1 0.1" pos="0 0 3" radius="0.01" rigid="true"/>
  </worldbody>
</mujoco>
"""


@pytest.fixture
def server() -> Iterator[Any]:
    server = viser.ViserServer(host="127.0.0.1", port=0, verbose=False)
    yield server
    server.stop()


def term(**fields: Any) -> TermDescription:
    ready: dict[str, Any] = {
        "name": "",
        "weight": 1.0,
        "terminal_weight": 0.0,
        "target_size": 0,
        "quantity": "position",
        "objects": (),
        "norm": "squared",
        "width": 0.0,
        "target_kind": "value",
        "target_follows": False,
        "target_objects": (),
        "frame": "",
        "unit": "m",
        "axis": "",
        "side": "both",
        "weights": (),
        "gate": None,
    }
    return TermDescription(**{**ready, **fields})


def reach(**fields: Any) -> Any:
    """Return a task whose hand shall be somewhere in the frame of the upper arm."""
    one = {
        "name": "reach",
        "quantity": "position",
        "objects": (ObjectName("site", "hand"),),
        "target_size": 3,
        "frame": "upper_arm",
    }
    return SimpleNamespace(initial=SimpleNamespace(qpos=[0.5, 1.2], act=None), terms=(term(**{**one, **fields}),))


def states(model: mujoco.MjModel, targets: Any = None, rows: int = ROWS) -> Any:
    time = 0.005 * np.arange(rows)
    qpos = np.tile(model.qpos0, (rows, 1))
    qpos[:, : model.nq] += 0.5 + 0.8 * time[:, None] * np.arange(1, model.nq + 1)
    return SimpleNamespace(time=time, qpos=qpos, targets=targets or {})


def frame(model: mujoco.MjModel, number: int = 1, **fields: Any) -> Frame:
    ready = {
        "qpos": model.qpos0 + 0.3,
        "qvel": np.zeros(model.nv),
        "act": np.linspace(0, 1, model.na),
        "ctrl": np.zeros(model.nu),
        "mocap": np.tile([1.0, 2, 3, 1, 0, 0, 0], (model.nmocap, 1)),
        "time": 0.0,
    }
    return Frame(number, **{**ready, **fields})


def forward(model: mujoco.MjModel, qpos: Any) -> mujoco.MjData:
    data = mujoco.MjData(model)
    data.qpos[:] = qpos
    mujoco.mj_forward(model, data)
    return data


def drag(handle: Any, modifier: str | None, **event: Any) -> None:
    """Do what the server does when a browser tells of a drag."""
    for entry in handle._impl.drag_cb:
        if entry.modifier == modifier and entry.button == "left":
            asyncio.run(entry.callback(SimpleNamespace(instance_index=0, target=handle, **event)))


def moving(scene: Scene, body: int) -> Any:
    return next(handle for handle, bodies in scene._body.meshes() if body in bodies)


def test_bodies_are_where_mujoco_has_them(server: Any) -> None:
    model = mujoco.MjModel.from_xml_path(ARM)
    scene = Scene(server, mujoco.MjModel.from_xml_path(ARM), reach())
    shown = frame(model)
    scene.show(shown)
    data = forward(model, shown.qpos)
    seen = set()
    for handle, bodies in scene._body.meshes():
        np.testing.assert_allclose(handle.batched_positions, data.xpos[bodies], atol=1e-6)
        np.testing.assert_allclose(handle.batched_wxyzs, data.xquat[bodies], atol=1e-6)
        seen.update(bodies)
    assert seen == {model.body("upper_arm").id, model.body("forearm").id}
    assert scene.notes == ()


def test_tendons_go_through_mujocos_wrap_points(server: Any) -> None:
    model = mujoco.MjModel.from_xml_path(ARM)
    scene = Scene(server, model, None)
    shown = frame(model)
    scene.show(shown)
    data = forward(model, shown.qpos)
    points = data.wrap_xpos.reshape(-1, 3)
    expected, activation = [], []
    for tendon in range(model.ntendon):
        for j in range(data.ten_wrapadr[tendon], data.ten_wrapadr[tendon] + data.ten_wrapnum[tendon] - 1):
            expected.append((points[j], points[j + 1]))
            activation.append(shown.act[tendon])
    handle = server.scene.get_handle_by_name("/tendons")
    assert handle.visible
    np.testing.assert_allclose(handle.points[: len(expected)], expected, atol=1e-6)
    assert (handle.points[len(expected) :] == handle.points[len(expected) - 1, 1]).all(), "what is left over is a point"
    np.testing.assert_array_equal(handle.colors[: len(expected), 0], activation_colors(np.array(activation)))
    lengths = np.linalg.norm(handle.points[:, 1] - handle.points[:, 0], axis=1).sum()
    assert lengths == pytest.approx(data.ten_length.sum(), abs=0.02), "but for the arcs, which MuJoCo's lengths have"


def test_activation_is_told_by_lightness_alone() -> None:
    colors = activation_colors(np.linspace(0, 1, 9))
    lightness = colors @ np.array([0.2126, 0.7152, 0.0722])
    assert lightness[-1] < lightness[0] - 60
    assert (np.abs(np.diff(colors.astype(float), axis=0)).sum(axis=1) > 20).all()


def test_the_ghost_is_the_plan(server: Any) -> None:
    model = mujoco.MjModel.from_xml_path(ARM)
    scene = Scene(server, model, reach())
    scene.poses = 8
    plan = states(model)
    scene.show(frame(model, predicted=plan))
    rows = np.linspace(0, ROWS - 1, 9).round().astype(int)
    data = [forward(model, plan.qpos[row]) for row in rows]
    for body in ("upper_arm", "forearm"):
        id = model.body(body).id
        handle = server.scene.get_handle_by_name(f"/ghost/{id}")
        np.testing.assert_allclose(handle.batched_positions, [d.xpos[id] for d in data[1:]], atol=1e-6)
        np.testing.assert_allclose(handle.batched_wxyzs, [d.xquat[id] for d in data[1:]], atol=1e-6)
        assert (np.diff(handle.batched_opacities) < 0).all(), "it fades"
    assert server.scene.get_handle_by_name(f"/ghost/{model.body('torso').id}") is None, "the torso stands"
    trace = server.scene.get_handle_by_name("/traces")
    np.testing.assert_allclose(trace.points[:, 1], [d.site("hand").xpos for d in data[1:]], atol=1e-6)


def test_bodies_that_a_plan_does_not_move_have_no_ghost(server: Any) -> None:
    model = mujoco.MjModel.from_xml_path(ARM)
    scene = Scene(server, model, reach())
    plan = states(model)
    plan.qpos[:, 0] = 0.5  # the shoulder
    scene.show(frame(model, predicted=plan))
    assert server.scene.get_handle_by_name(f"/ghost/{model.body('upper_arm').id}") is None
    assert server.scene.get_handle_by_name(f"/ghost/{model.body('forearm').id}").visible


def test_options_hide_and_show(server: Any) -> None:
    model = mujoco.MjModel.from_xml_path(ARM)
    scene = Scene(server, model, reach())
    shown = frame(model, predicted=states(model, {"reach": np.tile([0.1, 0, -0.2], (ROWS, 1))}))
    scene.show(shown)
    names = {
        "ghost": f"/ghost/{model.body('forearm').id}",
        "traces": "/traces",
        "tendons": "/tendons",
        "targets": "/targets/0/target",
    }
    for option, node in names.items():
        assert server.scene.get_handle_by_name(node).visible, option
        setattr(scene, option, False)
        scene.show(shown)
        assert not server.scene.get_handle_by_name(node).visible, option
        setattr(scene, option, True)
        scene.show(shown)
        assert server.scene.get_handle_by_name(node).visible, option
    scene.show(frame(model, 2))
    assert not server.scene.get_handle_by_name(names["ghost"]).visible, "no plan, no ghost"


def test_the_number_of_poses_may_change(server: Any) -> None:
    model = mujoco.MjModel.from_xml_path(ARM)
    scene = Scene(server, model, reach())
    shown = frame(model, predicted=states(model))
    for asked, drawn in ((1, 1), (16, 16), (1000, ROWS - 1), (64, ROWS - 1), (4, 4)):
        scene.poses = asked
        scene.show(shown)
        handle = server.scene.get_handle_by_name(f"/ghost/{model.body('forearm').id}")
        assert len(handle.batched_positions) == drawn
    scene.poses = 64
    scene.show(frame(model, 2, predicted=states(model, rows=200)))
    assert len(server.scene.get_handle_by_name(f"/ghost/{model.body('forearm').id}").batched_positions) == 64


def test_components_of_a_place_have_no_marker(server: Any) -> None:
    model = mujoco.MjModel.from_xml_path(ARM)
    for fields in ({"axis": "z", "target_size": 1}, {"quantity": "velocity"}):
        scene = Scene(server, model, reach(**fields))
        scene.show(frame(model, predicted=states(model, {"reach": np.tile([0.1, 0, -0.2], (ROWS, 1))})))
        assert server.scene.get_handle_by_name("/targets/0/target") is None, fields


def test_a_target_stands_in_its_frame_and_comes_back_from_the_mouse(server: Any) -> None:
    model = mujoco.MjModel.from_xml_path(ARM)
    scene = Scene(server, model, reach())
    wishes: list[tuple[str, np.ndarray]] = []
    scene.on_target = lambda term, value: wishes.append((term, value))
    rows = np.array([0.1, 0.02, -0.2]) + 0.01 * np.arange(ROWS)[:, None]
    plan = states(model, {"reach": rows})
    shown = frame(model, time=0.0126, predicted=plan)
    scene.show(shown)
    upper = forward(model, shown.qpos).body("upper_arm")
    turn = upper.xmat.reshape(3, 3)
    marker = server.scene.get_handle_by_name("/targets/0/target")
    wish = server.scene.get_handle_by_name("/targets/0/wish")
    np.testing.assert_allclose(marker.position, upper.xpos + turn @ rows[2], atol=1e-9)
    assert not wish.visible
    assert wishes == []

    grip, way = np.add(marker.position, [0.01, 0, 0]), np.array([0.1, -0.2, 0.3])
    drag(marker, None, phase="start", start_position=grip, end_position=grip)
    drag(marker, None, phase="update", start_position=grip, end_position=grip + way)
    scene.show(shown)
    (told,) = wishes
    assert told[0] == "reach"
    np.testing.assert_allclose(upper.xpos + turn @ told[1], marker.position + way, atol=1e-9)
    assert wish.visible and marker.visible, "the old and the new one, until the daemon has it"
    np.testing.assert_allclose(wish.position, marker.position + way, atol=1e-9)

    drag(marker, None, phase="end", start_position=grip, end_position=grip + way)
    plan = states(model, {"reach": np.tile(told[1], (ROWS, 1))})
    scene.show(frame(model, 2, predicted=plan))
    assert not wish.visible
    np.testing.assert_allclose(marker.position, upper.xpos + turn @ told[1], atol=1e-9)


def test_a_target_that_follows_is_where_the_other_is(server: Any) -> None:
    model = mujoco.MjModel.from_xml_path(ARM)
    scene = Scene(server, model, reach(target_follows=True, target_objects=(ObjectName("geom", "ulna"),)))
    shown = frame(model)
    scene.show(shown)
    marker = server.scene.get_handle_by_name("/targets/0/target")
    np.testing.assert_allclose(marker.position, forward(model, shown.qpos).geom("ulna").xpos, atol=1e-9)


def test_an_orientation_is_turned_by_its_handle(server: Any) -> None:
    model = mujoco.MjModel.from_xml_path(ARM)
    scene = Scene(server, model, reach(quantity="orientation", target_size=4))
    wishes: list[np.ndarray] = []
    scene.on_target = lambda term, value: wishes.append(value)
    shown = frame(model, predicted=states(model, {"reach": np.tile([1.0, 0, 0, 0], (ROWS, 1))}))
    scene.show(shown)
    data = forward(model, shown.qpos)
    marker = server.scene.get_handle_by_name("/targets/0/target")
    np.testing.assert_allclose(marker.position, data.site("hand").xpos, atol=1e-9)
    np.testing.assert_allclose(marker.wxyz, data.body("upper_arm").xquat, atol=1e-9)
    handle = server.scene.get_handle_by_name("/targets/0/handle")
    wanted = np.array([0.6, 0.8, 0, 0])
    (told,) = handle._impl_aux.update_cb
    turned = SimpleNamespace(position=np.zeros(3), wxyz=wanted)
    asyncio.run(told(SimpleNamespace(phase="update", target=turned)))
    scene.show(shown)
    back = np.empty(4)
    mujoco.mju_mulQuat(back, data.body("upper_arm").xquat, wishes[0])
    np.testing.assert_allclose(back, wanted, atol=1e-9)


def test_a_push_is_mujocos_spring(server: Any) -> None:
    model = mujoco.MjModel.from_xml_path(ARM)
    scene = Scene(server, model, reach())
    pushes: list[tuple[int, Any, Any]] = []
    scene.on_push = lambda *push: pushes.append(push)
    shown = frame(model)
    scene.show(shown)
    data = forward(model, shown.qpos)
    body = model.body("forearm").id
    handle, start = moving(scene, body), data.site("hand").xpos
    for way in (0.1, 0.2):
        end = start + np.array([0, 0, way])
        drag(handle, "cmd/ctrl", phase="start", start_position=start, end_position=end)
        scene.show(shown)
        pushed, point, force = pushes[-1]
        assert pushed == body
        held = data.xpos[body] + data.xmat[body].reshape(3, 3) @ point
        np.testing.assert_allclose(held, start, atol=1e-9)
        np.testing.assert_allclose(force, _spring(model, data, body, point, end), rtol=1e-9)
        assert force[2] > 0
    arrow = server.scene.get_handle_by_name("/push")
    assert arrow.visible
    np.testing.assert_allclose(arrow.points[0], [start, end], atol=1e-6)
    drag(handle, "cmd/ctrl", phase="end", start_position=start, end_position=end)
    scene.show(shown)
    assert pushes[-1] == (body, None, None)
    assert not arrow.visible
    count = len(pushes)
    scene.show(shown)
    assert len(pushes) == count, "that it is over is said once"


def _spring(model: mujoco.MjModel, data: mujoco.MjData, body: int, point: Any, end: Any) -> np.ndarray:
    """Return the force of MuJoCo's own viewer, whose setup wants a camera."""
    perturb, view, camera = mujoco.MjvPerturb(), mujoco.MjvScene(model, 100), mujoco.MjvCamera()
    perturb.select, perturb.active = body, mujoco.mjtPertBit.mjPERT_TRANSLATE
    perturb.localpos[:] = point
    mujoco.mjv_updateScene(model, data, mujoco.MjvOption(), perturb, camera, mujoco.mjtCatBit.mjCAT_ALL, view)
    mujoco.mjv_initPerturb(model, data, view, perturb)
    perturb.refselpos[:] = end
    data.xfrc_applied[:] = 0
    mujoco.mjv_applyPerturbForce(model, data, perturb)
    return data.xfrc_applied[body, :3].copy()


def test_states_that_are_not_finite_are_not_drawn(server: Any) -> None:
    model = mujoco.MjModel.from_xml_path(ARM)
    scene = Scene(server, model, reach())
    scene.show(frame(model, predicted=states(model)))
    handle = moving(scene, model.body("forearm").id)
    before = handle.batched_positions.copy()
    plan = states(model)
    plan.qpos[-1] = np.inf
    scene.show(frame(model, 2, qpos=np.full(model.nq, np.nan), predicted=plan))
    np.testing.assert_array_equal(handle.batched_positions, before)
    assert not server.scene.get_handle_by_name(f"/ghost/{model.body('forearm').id}").visible


def test_what_cannot_be_drawn_is_said(server: Any) -> None:
    trimesh = pytest.importorskip("trimesh")
    spec, fine = mujoco.MjSpec.from_string(ODD), trimesh.creation.icosphere(6, 0.1)
    spec.add_mesh(name="fine", uservert=fine.vertices.ravel(), userface=fine.faces.ravel())
    spec.body("ball").add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="fine", material="blue")
    model = spec.compile()
    assert model.nmeshface > 60_000, "more than a page is sent"
    scene = Scene(server, model, None)
    shown = frame(model, qpos=model.qpos0)
    scene.contacts = True
    scene.show(shown)
    assert any("flex" in note for note in scene.notes)
    goal = moving(scene, model.body("goal").id)
    np.testing.assert_allclose(goal.batched_positions, [[1, 2, 3]], atol=1e-6)
    assert scene._body.mj_model.mesh_facenum.sum() <= 60_000


def test_a_geom_that_breaks_the_drawing_is_left_out(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from mjviser import conversions

    make = conversions.create_primitive_mesh

    def fail(model: mujoco.MjModel, geom: int) -> Any:
        if model.geom(geom).name == "palm":
            raise ValueError("of no known type")
        return make(model, geom)

    monkeypatch.setattr(conversions, "create_primitive_mesh", fail)
    scene = Scene(server, mujoco.MjModel.from_xml_path(ARM), reach())
    assert scene.notes == ("Geom palm is not drawn: of no known type.",)
    scene.show(frame(scene._model))
