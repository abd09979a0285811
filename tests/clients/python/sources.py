"""Sources for tests of what shows them: a body that moves by a formula, and what was asked of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import mujoco
import numpy as np
import sinew
from sinew.client import schema
from sinew.errors import RefusedError
from sinew.loop.source import Frame, History, Source

PERIOD = 2.0  # of the motion [s]
ROWS = 49  # of the predicted states
LONGEST = 30.0  # that anything is waited for [s]


def wait(source: Source, until: Callable[[Frame], bool]) -> Frame:
    """Return the first frame that is as wanted."""
    end = time.monotonic() + LONGEST
    while not until(source.latest()):
        assert time.monotonic() < end, source.latest()
        time.sleep(0.001)
    return source.latest()


def message(name: str, **fields: Any) -> Any:
    """Return what stands for a message of the wire; fields that are not given are empty."""
    filled = schema.load().new(name)
    schema.fill(filled, fields)
    return schema.convert(filled)


TABLE = (
    {"name": "planner", "text": "how plans are improved", "live": True},
    {"name": "horizon", "text": "steps of a plan", "min": 1, "max": 4096, "live": False},
    {"name": "adam_rate", "text": "learning rate", "min": 0, "max": 1, "live": True, "unit": "halves of a range"},
    {"name": "cfd", "text": "contacts from distance", "live": True},
)
CHOICES = {"planner": ("sampling", "adam"), "cfd": ("none", "cfd", "cfd_forward")}


class FakeSource:
    """A source whose arm swings by a sine of its clock, which goes on by 10 ms a frame.

    Attributes
    ----------
    calls : list of (str, tuple, dict)
        What was asked of it, in its order: name and arguments.
    broken : bool
        Whether its daemon is lost.
    """

    modes = ("lockstep", "real time")
    duration = None

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.broken = False
        self.closed = False
        self._model = mujoco.MjModel.from_xml_path(str(sinew.share("models/arm_reach.xml")))
        self._number = 0
        self._plan: Any = None
        self._frame = self._make(0.0)
        terms = [{"name": name, "weight": weight} for name, weight in (("reach", 1.0), ("effort", 0.002))]
        settings = {"planner": "adam", "horizon": ROWS - 1, "adam_rate": 0.01, "cfd": "none"}
        config = message("Config", version=1, planner=settings, session={"latency": 0.0}, terms=terms, table=TABLE)
        self._config = replace(config, table=tuple(replace(x, choices=CHOICES.get(x.name, ())) for x in config.table))
        described = [{**term, "target_size": size} for term, size in zip(terms, (3, 6), strict=True)]
        tip = {"quantity": "position", "objects": [{"kind": "site", "name": "hand"}], "axis": "z", "unit": "m"}
        described[1]["gate"] = {**tip, "side": "above", "value": 1.25, "width": 0.02}
        m = self._model
        model = {"model": "arm_reach.xml", "timestep": m.opt.timestep, "nq": m.nq, "nv": m.nv, "na": m.na, "nu": m.nu}
        self.task = message(
            "TaskDescription", task="arm_reach", text="an arm", model=model, initial={}, plant={}, terms=described
        )

    @property
    def model(self) -> mujoco.MjModel:
        return mujoco.MjModel.from_xml_path(str(sinew.share("models/arm_reach.xml")))

    def qpos(self, time: np.ndarray) -> np.ndarray:
        """Return positions (rows, nq) at times (rows,)."""
        return 0.5 + 0.5 * np.sin(2 * np.pi * np.asarray(time)[:, None] / PERIOD + np.arange(self._model.nq))

    def _make(self, time: float) -> Frame:
        m = self._model
        times = time + m.opt.timestep * np.arange(ROWS)
        predicted = {
            "time": times,
            "qpos": self.qpos(times),
            "qvel": np.zeros((ROWS, m.nv)),
            "act": np.zeros((ROWS, m.na)),
        }
        fields = {
            "session": 1, "status": 1, "state_time": time, "start": time, "step": m.opt.timestep, "time_to_live": 1.0,
            "steps": ROWS - 1, "ctrl": np.zeros((ROWS - 1, m.nu)), "states": predicted, "age": 0.02, "iterations": 8,
            "cost_now": 2.0, "cost_before": 2.0, "cost_after": 1.5 + np.sin(time), "gradient_norm": 0.1,
            "gates": [{"name": "effort", "number": 1.25 + 0.1 * np.sin(time), "factor": 0.5 + 0.5 * np.sin(time)}],
            "terms": [{"name": "reach", "cost": 1.5}, {"name": "effort", "cost": np.sin(time)}],
        }  # fmt: skip
        filled = schema.load().new("Plan")
        schema.fill(filled, fields)
        values = {**schema.values(filled), "ctrl": fields["ctrl"]}
        plan = sinew.client.Plan(**values, model=None)
        self._number += 1
        return Frame(
            self._number, time, self.qpos(np.array([time]))[0], np.zeros(m.nv), np.full(m.na, 0.5 + 0.5 * np.sin(time)),
            np.zeros(m.nu), np.zeros((0, 7)), "lockstep", plan=plan, predicted=plan.states, age=0.02, deadline=0.04,
            cost=2.0, rate=1.0,
        )  # fmt: skip

    def latest(self) -> Frame:
        if not self._frame.paused and not self.broken:
            made = self._make(self._frame.time + 0.01)
            self._frame = replace(made, speed=self._frame.speed, mode=self._frame.mode)
        self._number += 1
        text = "the daemon does not answer" if self.broken else ""
        return replace(self._frame, number=self._number, connected=not self.broken, text=text, config=self._config)

    def history(self) -> History:
        time = np.arange(0.0, self._frame.time, 0.08)
        names = ("cost", "gradient norm", "iterations", "latency", "deadline", "term: reach", "term: effort")
        series = {name: 1.0 + i + np.sin(time) for i, name in enumerate(names)}
        return History(time, series, 0.5 + 0.5 * np.sin(time[:, None] + np.arange(self._model.na)))

    def settings(self) -> Any:
        return self._config

    def _note(self, name: str, *args: Any, **kwargs: Any) -> None:
        self.calls.append((name, args, kwargs))

    def close(self) -> None:
        self.closed = True

    def pause(self, on: bool) -> None:
        self._note("pause", on)
        self._frame = replace(self._frame, paused=on)

    def step(self) -> None:
        self._note("step")
        self._frame = replace(self._make(self._frame.time + 0.01), paused=True)

    def set_speed(self, speed: float) -> None:
        self._note("set_speed", speed)
        self._frame = replace(self._frame, speed=speed)

    def set_mode(self, mode: str) -> None:
        self._note("set_mode", mode)
        self._frame = replace(self._frame, mode=mode)

    def seek(self, time: float) -> None:
        self._note("seek", time)

    def reset(self, seed: int | None = None) -> None:
        self._note("reset", seed)
        self._frame = replace(self._make(0.0), paused=self._frame.paused)

    def push(self, body: int, point: Any, force: Any) -> None:
        self._note("push", body, point, force)

    def set_ctrl(self, ctrl: dict[int, float]) -> None:
        self._note("set_ctrl", ctrl)

    def tune(self, *, weights: Any = None, terminal_weights: Any = None, targets: Any = None, **settings: Any) -> Any:
        self._note("tune", weights=weights, terminal_weights=terminal_weights, targets=targets, **settings)
        if "horizon" in settings:
            raise RefusedError("horizon: fixed when the session opens", "INVALID")
        terms = tuple(replace(x, weight=(weights or {}).get(x.name, x.weight)) for x in self._config.terms)
        planner = {**self._config.planner, **settings}
        self._config = replace(self._config, version=self._config.version + 1, planner=planner, terms=terms)
        return self._config

    def reopen(self, **settings: Any) -> None:
        self._note("reopen", **settings)
        self._config = replace(self._config, version=1, planner={**self._config.planner, **settings})
