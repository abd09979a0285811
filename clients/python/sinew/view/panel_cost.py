"""The cost on the page: what its terms are now, their weights, and their targets."""

from __future__ import annotations

import html
from typing import Any

import numpy as np
import viser

from sinew._colors import BLUE
from sinew.client.messages import Config, GateDescription, TaskDescription, TermDescription
from sinew.client.plan import Plan
from sinew.client.quantities import Trajectory
from sinew.loop.source import Frame
from sinew.view.controls import Control, number, shown
from sinew.view.gate import gate_bar
from sinew.view.register import Register

__all__ = ["CostPanel"]

_LONGEST = 32  # numbers of a target that get a box each
_INTRODUCTION = """The cost says what the body shall do: the smaller, the better. It is a sum of terms, each times its
weight: *along the way* (at every step of the plan) and *at the end* (at its last step)."""


class CostPanel:
    """Terms of the cost of the latest plan, and a folder for each of them."""

    def __init__(self, gui: viser.GuiApi, register: Register, task: TaskDescription, config: Config) -> None:
        self._gui = gui
        self._register = register
        gui.add_markdown(_INTRODUCTION)
        self._table = gui.add_html(_table({}))
        self._targets: list[_Target] = []
        self._gates: list[_Gate] = []
        settings = {term.name: term for term in config.terms}
        for term in task.terms:
            in_force = settings[term.name]
            with gui.add_folder(term.name):
                self._add_weight(term, "weights", "along the way", in_force.weight, term.weight)
                terminal = in_force.terminal_weight
                self._add_weight(term, "terminal_weights", "at the end", terminal, term.terminal_weight)
                if term.gate is not None:
                    self._gates.append(_Gate(gui, term.name, term.gate))
                if 0 < term.target_size <= _LONGEST:
                    self._targets.append(_Target(gui, register, term))

    def refresh(self, frame: Frame) -> None:
        """Show the cost of the latest plan, whether gates are open, and where the targets are."""
        if frame.plan is not None:
            text = _table(frame.plan.terms)
            if self._table.content != text:
                self._table.content = text
            for gate in self._gates:
                gate.refresh(frame.plan)
        for target in self._targets:
            target.refresh(frame)

    def _add_weight(self, term: TermDescription, kind: str, label: str, value: float | None, own: float) -> None:
        where = "each step of the plan" if kind == "weights" else "the last step of the plan"
        hint = f"how much {term.name} counts at {where}; the task's own: {shown(own)}"
        first = own if value is None else value
        control = number(
            self._gui, label, float(first), 0.0, float("inf"), hint, self._register.changed(kind, term.name)
        )
        self._register.add(kind, term.name, control)


class _Gate:
    """Words and a bar: whether the gate of a term is open."""

    def __init__(self, gui: viser.GuiApi, term: str, gate: GateDescription) -> None:
        self._term = term
        self._gate = gate
        self._shown = gui.add_html(gate_bar(gate, None))

    def refresh(self, plan: Plan) -> None:
        """Show how it was in the state of a plan."""
        text = gate_bar(self._gate, next((now for now in plan.gates if now.name == self._term), None))
        if self._shown.content != text:
            self._shown.content = text


class _Target:
    """Boxes with the numbers of a target, and a way back to the task's own."""

    def __init__(self, gui: viser.GuiApi, register: Register, term: TermDescription) -> None:
        self._name = term.name
        self._register = register
        unit = term.unit
        hint = f"where {term.name} shall be{f' [{unit}]' if unit else ''}"
        changed = self._changed
        if term.target_size in (2, 3):
            add: Any = gui.add_vector2 if term.target_size == 2 else gui.add_vector3
            boxes: list[Any] = [add("target", (0.0,) * term.target_size, step=0.01, hint=hint)]
        else:
            with gui.add_folder("target", expand_by_default=term.target_size == 1):
                boxes = [gui.add_number(f"{i + 1}", 0.0, step=0.01, hint=hint) for i in range(term.target_size)]
        self._boxes = [Control(box, changed) for box in boxes]
        self._own = gui.add_button(
            "Back to the task's own target", hint="the target is then what the task says, which may move", visible=False
        )
        self._own.on_click(lambda event: register.tuner.change(("targets", self._name), None, event.client))

    def _changed(self, value: Any, client: Any) -> None:
        target = np.hstack([box.handle.value for box in self._boxes])
        self._register.tuner.change(("targets", self._name), target, client)

    def refresh(self, frame: Frame) -> None:
        """Show the target in force: the one that was set, or the task's own as the latest plan saw it."""
        config = frame.config
        if config is None or self._register.tuner.held(("targets", self._name)):
            return
        target = next((term.target for term in config.terms if term.name == self._name), np.empty(0))
        if self._own.visible != bool(target.size):
            self._own.visible = bool(target.size)
        if not target.size:
            target = _own_target(frame.predicted, self._name)
        if not target.size:
            return
        values = [tuple(np.round(target, 4).tolist())] if len(self._boxes) == 1 and target.size > 1 else None
        for box, value in zip(self._boxes, values or np.round(target, 4).tolist(), strict=True):
            box.show(value)


def _own_target(predicted: Trajectory | None, name: str) -> Any:
    """Return the task's own target at the begin of a plan; empty where it does not say."""
    rows = predicted.targets.get(name) if predicted is not None else None
    return rows[0] if rows is not None and len(rows) else np.empty(0)


def _table(terms: dict[str, float]) -> str:
    """Return a table of the terms with bars, for people."""
    total = sum(terms.values())
    rows = [
        f"<tr><td style='padding-right:1em'>{html.escape(name)}</td>"
        f"<td style='text-align:right;padding-right:1em'>{cost:.4g}</td>"
        f"<td style='width:45%'><div style='height:0.7em;width:{_percent(cost, total):.0f}%;background:{BLUE}'></div>"
        "</td></tr>"
        for name, cost in terms.items()
    ]
    rows.append(f"<tr><td>all</td><td style='text-align:right;padding-right:1em'>{total:.4g}</td><td></td></tr>")
    head = "<div style='padding:0 1em 0.5em;font-size:0.85em'><b>Cost of the latest plan</b>"
    return f"{head}<table style='width:100%'>{''.join(rows)}</table></div>"


def _percent(cost: float, total: float) -> float:
    part = 100 * cost / total if total > 0 else 0.0
    return min(max(part, 0.0), 100.0) if part == part else 0.0
