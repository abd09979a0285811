"""What was identified, as a page with pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sinew.identify import Identification, Segments, predict
from sinew.model import Model
from sinew.parameters import Parameters

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["note_of", "text_of", "write_report"]

_KINDS = {
    "residuals": "Standard errors are those of the Gauss-Newton matrix of the residuals, with exact derivatives.",
    "losses": "Standard errors are those of the Gauss-Newton matrix of the roots of the segments' losses, by "
    "differences: they say a size, no more.",
    "": "Standard errors were not asked for.",
}
_UNSEEN = " Where they are inf the recordings do not show a parameter, or only together with others."
_MOST_PANELS = 12  # entries of qpos that are drawn


def note_of(model: Model, segments: Segments) -> str:
    """Return what should be known of the recordings; empty: nothing."""
    if not model.na or segments.act is not None:
        return ""
    return (
        "note: the recordings have no activations (act): in each segment muscles begin at 0, whatever they did before."
    )


def text_of(parameters: Parameters, found: Identification) -> str:
    """Return a table of the values, for a terminal and for a page."""
    lines = ["| parameter | start | found | standard error | bounds |", "| --- | --- | --- | --- | --- |"]
    for name, start, value, error in zip(
        found.names, found.history[0]["values"], found.values, found.errors, strict=True
    ):
        bounds = parameters[name].bounds
        at_bound = bounds is not None and min(abs(value - b) for b in bounds) <= 1e-6 * (bounds[1] - bounds[0])
        allowed = "" if bounds is None else f"{bounds[0]:g} to {bounds[1]:g}" + (" (at one)" if at_bound else "")
        lines.append(
            f"| {name} | {start:.6g} | {value:.6g} | {'' if np.isnan(error) else f'{error:.2g}'} | {allowed} |"
        )
    held = "" if np.isnan(found.held_out) else f", of held-out segments {found.held_out:.6g}"
    return "\n".join([*lines, "", f"loss: {found.loss:.6g}{held}; at the start {found.history[0]['loss']:.6g}"])


def write_report(
    folder: Path, parameters: Parameters, found: Identification, segments: Segments, settings: dict[str, Any]
) -> None:
    """Write ``report.md`` and its pictures.

    Parameters
    ----------
    folder : Path
        Where they go.
    parameters, found, segments
        What was sought, what was found, in what.
    settings : dict
        Those of `identify` by which segments are moved.
    """
    _draw_history(found).savefig(folder / "history.png", dpi=80)
    first, last = parameters.model(found.history[0]["values"]), parameters.model(found.values)
    moved = [predict(model, segments, **settings) for model in (first, last)]
    _draw_residuals(last, segments, [x[0] for x in moved]).savefig(folder / "residuals.png", dpi=80)
    _draw_motion(last, segments, [x[0] for x in moved]).savefig(folder / "motion.png", dpi=80)
    note = note_of(last, segments)
    lines = [
        "# What was identified", "", text_of(parameters, found), "",
        *([note, ""] if note else []),
        _KINDS[found.errors_of] + (_UNSEEN if np.any(np.isinf(found.errors)) else ""), "",
        "![loss and values over the evaluations of each start](history.png)", "",
        "How far positions are from the recorded ones, over the steps of a segment: root mean square.", "",
        "![distance of each entry of qpos over the steps, at the start and as found](residuals.png)", "",
        "The segment of median distance, recorded and predicted:", "",
        "![qpos over the steps of a segment](motion.png)", "",
    ]  # fmt: skip
    (folder / "report.md").write_text("\n".join(lines), encoding="utf-8")


def _grid(panels: int, height: float) -> tuple[Figure, Any]:
    """Return a figure, and at least so many axes of it in rows of up to four; those beyond are not seen."""
    from matplotlib.figure import Figure

    columns = min(panels, 4)
    rows = -(-panels // columns)
    figure = Figure(figsize=(3.2 * columns, height * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat[panels:]:
        axes.set_visible(False)
    return figure, grid


def _draw_history(found: Identification) -> Figure:
    names = ["loss", *found.names]
    figure, grid = _grid(len(names), 2.6)
    for axes, name in zip(grid.flat, names, strict=False):
        for start in sorted({x["start"] for x in found.history}):
            own = [x for x in found.history if x["start"] == start]
            y = [x["loss"] if name == "loss" else x["values"][found.names.index(name)] for x in own]
            axes.plot([x["iteration"] for x in own], y, lw=1)
        axes.set(title=name, xlabel="iteration")
        if name == "loss":
            axes.set_yscale("log")
    return figure


def _panels(model: Model, title: str) -> tuple[Figure, Any, list[str]]:
    from sinew.identification.recordings import column_names

    names = column_names(model)["qpos"][:_MOST_PANELS]
    figure, grid = _grid(len(names), 2.2)
    figure.supxlabel(title)
    return figure, grid, names


def _draw_residuals(model: Model, segments: Segments, moved: list[Any]) -> Figure:
    figure, grid, names = _panels(model, "step of a segment")
    looked = segments.looked[..., None]
    for qpos, label in zip(moved, ("at the start", "as found"), strict=True):
        off = np.where(looked & np.isfinite(qpos), qpos - segments.qpos[:, 1:], np.nan)
        size = np.sqrt(np.nanmean(off * off, axis=0))
        for i, axes in enumerate(grid.flat[: len(names)]):
            axes.plot(1 + np.arange(len(size)), size[:, i], label=label, lw=1.2)
            axes.set_title(names[i], fontsize="small")
    grid.flat[0].legend(fontsize="small")
    return figure


def _draw_motion(model: Model, segments: Segments, moved: list[Any]) -> Figure:
    figure, grid, names = _panels(model, "step of a segment")
    off = np.where(segments.looked[..., None], moved[-1] - segments.qpos[:, 1:], 0)
    far = np.nan_to_num(np.sum(off * off, axis=(1, 2)), nan=np.inf)
    k = int(np.argsort(far)[len(far) // 2])
    count = int(np.sum(segments.looked[k]))
    for i, axes in enumerate(grid.flat[: len(names)]):
        axes.plot(segments.qpos[k, : count + 1, i], "k.", ms=4, label="recorded")
        for qpos, label in zip(moved, ("at the start", "as found"), strict=True):
            axes.plot([segments.qpos[k, 0, i], *qpos[k, :count, i]], label=label, lw=1.2)
        axes.set_title(names[i], fontsize="small")
    grid.flat[0].legend(fontsize="small")
    return figure
