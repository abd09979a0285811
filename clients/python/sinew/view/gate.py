"""The gate of a term on the page: what it looks at, where it opens, and whether it is open now."""

from __future__ import annotations

import html

from sinew._colors import GREEN
from sinew.client.messages import GateDescription, GateValue

__all__ = ["gate_bar", "gate_words"]

_OPEN = 0.95  # of a factor from 0 to 1: from here on a gate is open, and closed below the rest
_MOST = 3  # objects that are named


def gate_words(gate: GateDescription) -> str:
    """Return what a gate looks at and where it is open, for people."""
    names = [f"{x.kind} {x.name}" if x.name else f"a {x.kind}" for x in gate.objects]
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    axis = f", {' and '.join(gate.axis)}" if gate.axis else ""
    norm = f"the {gate.norm} norm of " if gate.norm else ""
    target = " from its target" if gate.target_kind else ""
    looks = f"{norm}{gate.quantity.replace('_', ' ')} of {', '.join(names[:_MOST])}{more}{axis}{target}"
    if not gate.side:
        return f"multiplied by {looks}"
    return f"counts while {looks} is {gate.side} {gate.value:.4g}{_unit(gate)} (opens within {gate.width:.4g})"


def gate_bar(gate: GateDescription, now: GateValue | None) -> str:
    """Return how a gate is now, as a bar with words; in words alone before the first plan."""
    words = html.escape(gate_words(gate))
    if now is None:
        return f"<div style='padding:0 1em 0.5em;font-size:0.85em'>Gate: {words}</div>"
    part = now.factor if gate.side else 0.0
    bar = f"<div style='height:0.4em;width:{100 * min(max(part, 0.0), 1.0):.0f}%;background:{GREEN}'></div>"
    return (
        f"<div style='padding:0 1em 0.5em;font-size:0.85em'><b>Gate {_state(gate, now)}</b>: "
        f"{html.escape(f'{now.number:.4g}{_unit(gate)}')}; {words}{bar if gate.side else ''}</div>"
    )


def _state(gate: GateDescription, now: GateValue) -> str:
    """Return whether a gate is open."""
    if not gate.side:
        return f"times {now.factor:.4g}"
    if now.factor >= _OPEN:
        return "open"
    return "closed" if now.factor <= 1 - _OPEN else f"open by {100 * now.factor:.0f} %"


def _unit(gate: GateDescription) -> str:
    """Return the unit of the number behind a space; empty for several units, a square, and where it is not known."""
    if gate.norm == "squared" or "," in gate.unit or gate.unit in ("", "1"):
        return ""
    return " rad" if gate.unit == "quaternion" else f" {gate.unit}"
