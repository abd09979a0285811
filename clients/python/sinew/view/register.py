"""Which control of a page stands for which setting, weight or target."""

from __future__ import annotations

from typing import Any

from sinew.client.messages import Config
from sinew.loop.source import Source
from sinew.view.controls import Changed, Control, notify
from sinew.view.tuner import Key, Tuner

__all__ = ["Register"]


class Register:
    """Controls by what they change: takes changes to the daemon, and shows what is in force on every page."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._controls: dict[Key, Control] = {}
        self.tuner = Tuner(source, self._refused)

    def changed(self, *key: str) -> Changed:
        """Return what a control of this setting calls when a page changes it."""
        name: Key = (key[0], key[1])
        return lambda value, client: self.tuner.change(name, value, client)

    def add(self, kind: str, name: str, control: Control) -> Control:
        """Note a control."""
        self._controls[kind, name] = control
        return control

    def refresh(self, config: Config | None) -> None:
        """Show what is in force, except where somebody is just changing it."""
        for key, control in self._controls.items():
            control.rest()
            value = in_force(config, key)
            if value is not None and not self.tuner.held(key):
                control.show(value)

    def _refused(self, key: Key, text: str, client: Any) -> None:
        """Show what is in force in place of what was refused, and the daemon's words."""
        value = in_force(self._source.latest().config, key)
        if key in self._controls and value is not None:
            self._controls[key].show(value)
        if client is not None:
            notify(client, text)


def in_force(config: Config | None, key: Key) -> Any:
    """Return what a configuration says of a setting or weight; None where it says nothing."""
    if config is None:
        return None
    kind, name = key
    if kind == "settings":
        return config.planner.get(name, config.session.get(name))
    if kind not in ("weights", "terminal_weights"):
        return None
    terms = [term for term in config.terms if term.name == name]
    if not terms:
        return None
    return terms[0].weight if kind == "weights" else terms[0].terminal_weight
