"""The summary of a sweep as a text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sinew.sweep.summary import GROUP

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["text_of"]


def text_of(groups: pd.DataFrame) -> str:
    """Return a table for people; what is the same in all groups has no column, but for task and planner."""
    names = [name for name in GROUP if name in ("task", "planner") or groups[name].nunique() > 1]
    head = [*names, "solved", "95 %", "mean cost", "95 %", "cost at end", "to success", "iterations", "ms p50", "p99"]
    rows = [head, *([*(_word(row[name]) for name in names), *_figures(row)] for _, row in groups.iterrows())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = len(names)
    lines = (
        [
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        for row in rows
    )
    said = "Solved: Wilson's interval. Costs: means, Student's interval. Medians: s to success, iterations, ms a plan"
    if diverged := int(groups["diverged"].sum()):
        said += f". Runs that diverged, whose costs are infinite: {diverged}"
    return "\n".join(["  ".join(line).rstrip() for line in lines]) + f"\n\n{said}."


def _figures(row: pd.Series[Any]) -> list[str]:
    return [
        f"{row['successes']}/{row['runs']}",
        f"{row['success_low']:.2f}..{row['success_high']:.2f}",
        _number(row["cost_mean"]),
        _range(row["cost_mean_low"], row["cost_mean_high"]),
        _number(row["cost_end"]),
        _number(row["time_to_success"]),
        _number(row["iterations_mean"]),
        _number(1e3 * row["latency_p50"]),
        _number(1e3 * row["latency_p99"]),
    ]


def _word(x: object) -> str:
    return f"{x:g}" if isinstance(x, float) else str(x) or "-"


def _number(x: float) -> str:
    return "-" if math.isnan(x) else f"{x:.3g}"


def _range(low: float, high: float) -> str:
    return f"{low:.3g}..{high:.3g}" if math.isfinite(low) else "-"
