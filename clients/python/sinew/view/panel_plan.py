"""Settings of the planner on the page: one control each, made from the daemon's own table of them."""

from __future__ import annotations

from typing import Any

import viser

from sinew.client.messages import Config, SettingInfo
from sinew.loop.source import Source
from sinew.view.controls import Control, notify, number, text
from sinew.view.register import Register

__all__ = ["PlanPanel"]

_SAMPLING = ("candidates", "iterations", "knots", "interpolation", "noise", "noise_scale")
_SHARED = {"sampling": ("sampling", "mppi", "cem", "hybrid"), "adam": ("adam", "hybrid")}  # who has settings of whom
_SELDOM = (
    *("gradient", "contact_gradient", "tail", "shift", "patience", "max_velocity"),
    *("adam_beta1", "adam_beta2", "adam_epsilon", "adam_clip", "adam_clip_norm", "adam_interpolation"),
    *("adam_moments", "adam_warm_start"),
    *("cfd_far", "cfd_touch", "cfd_midpoint", "cfd_power", "cfd_softplus", "cfd_friction", "cfd_smooth"),
)
_TITLES = {
    "adam": "Adam: descent along gradients",
    "ilqg": "iLQG: second order, with feedback",
    "sampling": "Sampling: random tries",
    "lbfgs": "L-BFGS: descent with a memory",
    "mppi": "MPPI: mean of tries by their costs",
    "cem": "CEM: mean of the best tries",
    "hybrid": "Hybrid: the best tries, refined",
    "cfd": "Contacts from distance",
}
_SESSION = {
    "latency": "from a state to the moment that its plan is in force [s]; 0: the body waits for its plans",
    "time_to_live": "a plan is not used any more when it is so much older than its state [s]",
}
_INTRODUCTION = """The planner looks for muscle controls that make the cost small over the next steps.
Changes count at once. Rest the mouse on a name to read what it is."""


class PlanPanel:
    """Controls of all settings, in folders by planner; the ones that are seldom changed are folded away."""

    def __init__(self, gui: viser.GuiApi, source: Source, register: Register, config: Config) -> None:
        self._gui = gui
        self._source = source
        self._register = register
        self._config = config
        self._titles = tuple(next((info.choices for info in config.table if info.name == "planner"), ()))
        self._folders: dict[str, Any] = {}
        gui.add_markdown(_INTRODUCTION)
        groups: dict[str, list[SettingInfo]] = {}
        for info in config.table:
            groups.setdefault(self._group(info), []).append(info)
        for name in ("", *self._titles, "cfd", "seldom"):
            self._add_group(name, groups.pop(name, []))

    def refresh(self, config: Config | None) -> None:
        """Show the folder of the planner in use."""
        planner = (config or self._config).planner.get("planner")
        for name in self._titles:
            if name in self._folders:
                folder = self._folders[name]
                wanted = planner in _SHARED.get(name, (name,))
                if folder.visible != wanted:
                    folder.visible = wanted

    def _group(self, info: SettingInfo) -> str:
        if info.name in _SELDOM:
            return "seldom"
        if info.name in _SAMPLING:
            return "sampling"
        prefix = info.name.partition("_")[0]
        return prefix if prefix in (*self._titles, "cfd") else ""

    def _add_group(self, name: str, table: list[SettingInfo]) -> None:
        if not name:
            for info in table:
                self._add(info, "")
            return
        if not table and name != "seldom":
            return
        title = "Seldom changed" if name == "seldom" else _TITLES.get(name, name)
        with self._gui.add_folder(title, expand_by_default=name in self._titles) as self._folders[name]:
            for info in table:
                self._add(info, name)
            if name == "seldom":
                for session in _SESSION.keys() & self._config.session.keys():
                    self._add_session(session)

    def _add(self, info: SettingInfo, group: str) -> None:
        value = self._config.planner[info.name]
        label = info.name.removeprefix(group + "_").replace("_", " ") if group else info.name.replace("_", " ")
        if not info.live:
            self._add_anew(info, label, value)
            return
        changed = self._register.changed("settings", info.name)
        if info.choices:
            handle = self._gui.add_dropdown(label, info.choices, initial_value=value, hint=_hint(info))
            control = Control(handle, changed)
        elif isinstance(value, str):
            control = text(self._gui, label, value, _hint(info), changed)
        else:
            control = number(self._gui, label, value, info.min, info.max, _hint(info), changed)
        self._register.add("settings", info.name, control)

    def _add_session(self, name: str) -> None:
        value, changed = self._config.session[name], self._register.changed("settings", name)
        control = number(
            self._gui, name.replace("_", " "), value, 0.0, float("inf"), f"{_SESSION[name]} ({name})", changed
        )
        self._register.add("settings", name, control)

    def _add_anew(self, info: SettingInfo, label: str, value: Any) -> None:
        """Add a setting that a running session keeps: it is set by a button, which begins a new session."""
        if info.choices:
            box: Any = self._gui.add_dropdown(label, info.choices, initial_value=value, hint=_hint(info))
        else:
            box = self._gui.add_number(
                label, value, min=type(value)(info.min), max=type(value)(info.max), hint=_hint(info)
            )
        button = self._gui.add_button(f"Begin anew with this {label}", hint="it cannot change while it runs")

        @button.on_click
        def _(event: viser.GuiEvent[Any]) -> None:
            try:
                self._source.reopen(**{info.name: box.value})
            except Exception as error:
                notify(event.client, str(error))

        shown = Control(box, lambda value, client: None)
        self._register.add("anew", info.name, shown)


def _hint(info: SettingInfo) -> str:
    """Return the help of a setting, with its unit, its bounds and the name that files and `--set` know it by."""
    unit = f" [{info.unit}]" if info.unit else ""
    bounds = "" if info.choices or info.min == info.max else f"; {info.min:g} to {info.max:g}"
    return f"{info.text}{unit}{bounds} ({info.name})"
