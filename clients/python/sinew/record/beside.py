"""What a recording holds beside the daemon's records, so that other programs can show it."""

from __future__ import annotations

from typing import Any

import numpy as np

from sinew.client import schema
from sinew.client.quantities import ModelDescription
from sinew.errors import SinewError
from sinew.record import layout
from sinew.record.foxglove import Figures, Joints, Scene
from sinew.record.writer import RecordingWriter

__all__ = ["Beside"]


class Beside:
    """Scene, joints and figures of one session, so many times a second.

    Parameters
    ----------
    writer : RecordingWriter
    session : int
    opened : Message
        Its ``OpenRecord``.
    rate : float
        Most messages of a kind a second; 0: none.

    Attributes
    ----------
    text : str
        Why there is no scene; empty: there is one.
    """

    def __init__(self, writer: RecordingWriter, session: int, opened: Any, rate: float) -> None:
        self.text = ""
        self._writer, self._rate = writer, rate
        self._topics = {name: layout.beside(session, name) for name in ("scene", "frames", "joints", "figures")}
        self._due = {"begin": 0, "plan": 0}  # Unix time of the next message [ns]
        description = schema.convert(opened.description)
        self._figures = Figures(description.model.columns("ctrl"), description.model.columns("act"))
        self._act = np.empty(0)
        self._deadline = 0.0
        self._scene: Scene | None = None
        self._joints: Joints | None = None
        self._drawn = False
        self._session = session
        if rate > 0:
            self._load(description.model)

    def _load(self, described: ModelDescription) -> None:
        from sinew.loop.places import load_described

        try:
            model = load_described(described)
        except SinewError as error:
            self.text = f"no scene for other programs is written: {str(error).splitlines()[0]}"
            return
        self._scene = Scene(model, f"{self._session}/")
        self._joints = Joints(model)

    def take(self, kind: str, record: Any, time: int) -> None:
        """Write what a record shows, if it is time for it; `time` is Unix time [ns]."""
        if self._scene is not None and not self._drawn:
            self._drawn = True
            self._add("scene", self._scene.update_schema, self._scene.geometry(time), time)
        if kind not in self._due or time < self._due[kind] or self._rate <= 0:
            return
        self._due[kind] = time + round(1e9 / self._rate)
        if kind == "begin":
            self._begin(record.begin, time)
        elif record.plan.ctrl:
            figures = self._figures.of(record.plan, self._act, self._deadline)
            self._add("figures", self._figures.schema, figures, time)

    def _begin(self, begin: Any, time: int) -> None:
        """Write where the body is."""
        state = {name: schema.numbers(getattr(begin.state, name), name) for name in ("qpos", "qvel", "act", "mocap")}
        self._act, self._deadline = state["act"], begin.deadline
        if self._scene is not None and self._joints is not None:
            self._add(
                "frames", self._scene.transforms_schema, self._scene.poses(time, state["qpos"], state["mocap"]), time
            )
            self._add("joints", self._joints.schema, self._joints.states(time, state["qpos"], state["qvel"]), time)

    def _add(self, name: str, kind: tuple[str, str, bytes], data: bytes, time: int) -> None:
        self._writer.add_beside(self._topics[name], kind, data, time)
