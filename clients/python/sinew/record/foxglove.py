"""A body and its figures in the messages of Foxglove, which PlotJuggler and others read, too.

The geoms of a body are written once, each in the frame of its body (``SceneUpdate``); then the frames move
(``FrameTransforms``). Poses are those that MuJoCo computes of recorded states.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import mujoco

__all__ = ["Figures", "Joints", "Scene", "schema_of"]

Array = NDArray[np.float64]
Schema = tuple[str, str, bytes]

WORLD = "world"
_HIDDEN = 3  # groups of geoms from here on are not shown, as in MuJoCo's viewer
_PLANE = (20.0, 0.002)  # side of a plane without bounds, and thickness of all planes [m]


def schema_of(message: Any) -> Schema:
    """Return name, encoding and text of the schema of a class of messages."""
    from google.protobuf import descriptor_pb2

    files = descriptor_pb2.FileDescriptorSet()
    seen = set()

    def add(file: Any) -> None:
        if file.name not in seen:
            seen.add(file.name)
            for needed in file.dependencies:
                add(needed)
            file.CopyToProto(files.file.add())

    add(message.DESCRIPTOR.file)
    return message.DESCRIPTOR.full_name, "protobuf", files.SerializeToString()


def _stamp(stamp: Any, time: int) -> None:
    stamp.seconds, stamp.nanos = divmod(time, 10**9)


class Scene:
    """A body that is drawn.

    Parameters
    ----------
    model : mujoco.MjModel
    prefix : str
        Begins the names of the bodies' frames.
    """

    def __init__(self, model: mujoco.MjModel, prefix: str) -> None:
        import mujoco
        from foxglove_schemas_protobuf.FrameTransforms_pb2 import FrameTransforms
        from foxglove_schemas_protobuf.SceneUpdate_pb2 import SceneUpdate

        self.update_schema, self.transforms_schema = schema_of(SceneUpdate), schema_of(FrameTransforms)
        self._model, self._data = model, mujoco.MjData(model)
        self._frames = [f"{prefix}{model.body(i).name or f'body{i}'}" for i in range(model.nbody)]
        self._update = SceneUpdate()
        self._transforms = FrameTransforms()
        for frame in self._frames:
            transform = self._transforms.transforms.add(parent_frame_id=WORLD, child_frame_id=frame)
            transform.translation.SetInParent()
        shown = np.flatnonzero(model.geom_group < _HIDDEN)
        for body in np.unique(model.geom_bodyid[shown]):
            entity = self._update.entities.add(id=self._frames[body], frame_id=self._frames[body], frame_locked=True)
            for geom in shown[model.geom_bodyid[shown] == body]:
                _add_geom(entity, model, int(geom))

    def geometry(self, time: int) -> bytes:
        """Return the geoms of all bodies, each in its body's frame; `time` is Unix time [ns]."""
        for entity in self._update.entities:
            _stamp(entity.timestamp, time)
        data: bytes = self._update.SerializeToString()
        return data

    def poses(self, time: int, qpos: Array, mocap: Array) -> bytes:
        """Return the frames of all bodies.

        Parameters
        ----------
        time : int
            Unix time [ns].
        qpos, mocap : array, (nq,), (nmocap * 7,)
            Of the state; where `mocap` is empty, mocap bodies stay where they were.
        """
        import mujoco

        data = self._data
        data.qpos[:] = qpos
        if mocap.size:
            data.mocap_pos[:], data.mocap_quat[:] = np.split(mocap.reshape(-1, 7), [3], axis=1)
        mujoco.mj_kinematics(self._model, data)
        for transform, xyz, wxyz in zip(
            self._transforms.transforms, data.xpos.tolist(), data.xquat.tolist(), strict=True
        ):
            _stamp(transform.timestamp, time)
            to, turn = transform.translation, transform.rotation
            to.x, to.y, to.z = xyz
            turn.w, turn.x, turn.y, turn.z = wxyz
        result: bytes = self._transforms.SerializeToString()
        return result


def _add_geom(entity: Any, model: mujoco.MjModel, geom: int) -> None:
    """Add what a geom looks like; height fields and signed distance fields are left out."""
    import mujoco

    kind, size = mujoco.mjtGeom(model.geom_type[geom]), model.geom_size[geom]
    place, turn = model.geom_pos[geom], model.geom_quat[geom]
    material = model.geom_matid[geom]
    color = model.geom_rgba[geom] if material < 0 else model.mat_rgba[material]

    def add(primitives: Any, sides: Sequence[float], up: float = 0.0) -> Any:
        """Add a primitive with sides [m], moved along the geom's axis."""
        part = primitives.add()
        part.size.x, part.size.y, part.size.z = map(float, sides)
        _place(part, place + up * _axis(turn), turn, color)
        return part

    if kind == mujoco.mjtGeom.mjGEOM_PLANE:
        sides = [2 * side or _PLANE[0] for side in size[:2]]
        add(entity.cubes, (*sides, _PLANE[1]), -_PLANE[1] / 2)
    elif kind == mujoco.mjtGeom.mjGEOM_BOX:
        add(entity.cubes, 2 * size)
    elif kind == mujoco.mjtGeom.mjGEOM_SPHERE:
        add(entity.spheres, 3 * (2 * size[0],))
    elif kind == mujoco.mjtGeom.mjGEOM_ELLIPSOID:
        add(entity.spheres, 2 * size)
    elif kind in (mujoco.mjtGeom.mjGEOM_CYLINDER, mujoco.mjtGeom.mjGEOM_CAPSULE):
        wide = 2 * size[0]
        part = add(entity.cylinders, (wide, wide, 2 * size[1]))
        part.bottom_scale = part.top_scale = 1.0
        if kind == mujoco.mjtGeom.mjGEOM_CAPSULE:
            for up in (-size[1], size[1]):
                add(entity.spheres, (wide, wide, wide), up)
    elif kind == mujoco.mjtGeom.mjGEOM_MESH:
        part = entity.triangles.add()
        _place(part, place, turn, color)
        _add_mesh(part, model, int(model.geom_dataid[geom]))


def _axis(quat: Array) -> Array:
    """Return the third axis of a frame."""
    import mujoco

    axis = np.empty(3)
    mujoco.mju_rotVecQuat(axis, np.array([0.0, 0.0, 1.0]), quat)
    return axis


def _place(part: Any, place: Array, turn: Array, color: Array) -> None:
    position, orientation = part.pose.position, part.pose.orientation
    position.x, position.y, position.z = place.tolist()
    orientation.w, orientation.x, orientation.y, orientation.z = turn.tolist()
    part.color.r, part.color.g, part.color.b, part.color.a = color.tolist()


def _add_mesh(part: Any, model: mujoco.MjModel, mesh: int) -> None:
    vertices = slice(model.mesh_vertadr[mesh], model.mesh_vertadr[mesh] + model.mesh_vertnum[mesh])
    faces = slice(model.mesh_faceadr[mesh], model.mesh_faceadr[mesh] + model.mesh_facenum[mesh])
    for x, y, z in model.mesh_vert[vertices].tolist():
        part.points.add(x=x, y=y, z=z)
    part.indices.extend(model.mesh_face[faces].ravel().tolist())


class Joints:
    """Joints with one coordinate, as ``JointStates``."""

    def __init__(self, model: mujoco.MjModel) -> None:
        import mujoco
        from foxglove_schemas_protobuf.JointStates_pb2 import JointStates

        self.schema = schema_of(JointStates)
        single = np.isin(model.jnt_type, (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE))
        self._qpos, self._qvel = model.jnt_qposadr[single], model.jnt_dofadr[single]
        self._message = JointStates()
        for joint in np.flatnonzero(single):
            self._message.joints.add(name=model.joint(joint).name or f"joint{joint}")

    def states(self, time: int, qpos: Array, qvel: Array) -> bytes:
        """Return positions [rad, m] and velocities; `time` is Unix time [ns]."""
        _stamp(self._message.timestamp, time)
        rows = zip(self._message.joints, qpos[self._qpos].tolist(), qvel[self._qvel].tolist(), strict=True)
        for joint, position, velocity in rows:
            joint.position, joint.velocity = position, velocity
        data: bytes = self._message.SerializeToString()
        return data


class Figures:
    """Scalars of a plan in JSON, for curves."""

    schema: Schema = (
        "sinew.Figures",
        "jsonschema",
        json.dumps(
            {
                "type": "object",
                "properties": {
                    **{
                        name: {"type": "number"}
                        for name in (
                            *("state_time", "cost_now", "cost_before", "cost_after", "gradient_norm", "latency"),
                            *("computing", "deadline", "iterations", "candidates"),
                        )
                    },
                    "terms": {"type": "object", "additionalProperties": {"type": "number"}},
                    "ctrl": {"type": "object", "additionalProperties": {"type": "number"}},
                    "act": {"type": "object", "additionalProperties": {"type": "number"}},
                },
            }
        ).encode(),
    )

    def __init__(self, ctrl: Sequence[str], act: Sequence[str]) -> None:
        self._ctrl, self._act = ctrl, act

    def of(self, plan: Any, act: Array, deadline: float) -> bytes:
        """Return the figures of a plan; `ctrl` is its first row of its own. What is not finite is left out."""
        from sinew.client.schema import numbers

        first = numbers(plan.ctrl, "ctrl")[plan.lead * len(self._ctrl) :]
        named = {
            **{name: getattr(plan, name) for name in ("state_time", "cost_now", "cost_before", "cost_after")},
            **{name: getattr(plan, name) for name in ("gradient_norm", "computing", "iterations", "candidates")},
            "latency": plan.age,
            "deadline": deadline,
        }
        figures: dict[str, Any] = {name: value for name, value in named.items() if math.isfinite(value)}
        figures["terms"] = {term.name: term.cost for term in plan.terms if math.isfinite(term.cost)}
        figures["ctrl"] = dict(zip(self._ctrl, first.tolist(), strict=False))
        figures["act"] = dict(zip(self._act, act.tolist(), strict=False))
        return json.dumps(figures).encode()
