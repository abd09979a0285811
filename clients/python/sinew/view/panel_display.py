"""What is drawn beside the body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import viser

if TYPE_CHECKING:
    from sinew.view.scene import Scene

__all__ = ["DisplayPanel"]

_PLAN = {
    "ghost": ("Ghost of the plan", "where the body will be if the plan is right, as transparent copies", "G"),
    "traces": ("Traces", "lines along which the plan moves what the cost looks at", "T"),
    "targets": ("Targets", "where the cost wants what it looks at; drag one to move it", None),
}
_BODY = {
    "tendons": ("Tendons and muscles", "coloured by how active the muscle is", "M"),
    "contacts": ("Contacts", "points and forces where bodies touch", "C"),
}


class DisplayPanel:
    """Check boxes for what the scene shows."""

    def __init__(self, gui: viser.GuiApi, scene: Scene, planned: bool) -> None:
        self._gui = gui
        self._scene = scene
        if planned:
            for name, (label, hint, key) in _PLAN.items():
                self._add(name, label, hint, key)
            poses = gui.add_slider("poses of the ghost", 1, 64, 1, scene.poses, hint="how many copies")
            poses.on_update(lambda event: setattr(scene, "poses", poses.value))
        for name, (label, hint, key) in _BODY.items():
            self._add(name, label, hint, key)
        for note in scene.notes:
            gui.add_markdown(note)

    def _add(self, name: str, label: str, hint: str, key: Any) -> None:
        text = f"{hint}; key: {key}" if key else hint
        box: Any = self._gui.add_checkbox(label, bool(getattr(self._scene, name)), hint=text)
        box.on_update(lambda event: setattr(self._scene, name, box.value))
        if key:
            command = self._gui.add_command(f"Show or hide: {label}", hotkey=key)

            @command.on_trigger
            def _(event: viser.CommandEvent) -> None:
                box.value = not box.value
