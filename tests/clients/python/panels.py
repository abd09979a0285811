"""A page's panel without a browser: what is added to it, and what a user does to that."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any


class Visitor:
    """A page that looks on; it keeps the notifications that it gets."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def add_notification(self, title: str, body: str, **options: Any) -> None:
        self.told.append(body)


class Handle:
    """A control as viser's: its value, its properties, and who is called when a page changes it."""

    def __init__(self, kind: str, label: str, value: Any, properties: dict[str, Any]) -> None:
        self.kind, self.label, self._value = kind, label, value
        self.update_timestamp = time.time() - 10
        self.shown = [value]
        self._callbacks: list[Any] = []
        self.__dict__.update({"visible": True, "precision": 0, "icon": None, **properties})

    @property
    def value(self) -> Any:
        return self._value

    @value.setter
    def value(self, value: Any) -> None:
        self._value = value
        self.shown.append(value)
        self._call(None)

    def on_update(self, callback: Any) -> Any:
        self._callbacks.append(callback)
        return callback

    on_click = on_update

    def change(self, value: Any, visitor: Visitor, ago: float = 0.0) -> None:
        """Change it as a user does on a page, some time ago [s]."""
        self.arrive(value, ago)
        self._call(visitor)

    def arrive(self, value: Any, ago: float = 0.0) -> None:
        """Hold a user's change that nobody has been told of yet."""
        self._value, self.update_timestamp = value, time.time() - ago

    def click(self, visitor: Visitor) -> None:
        """Press it."""
        self._call(visitor)

    def _call(self, visitor: Visitor | None) -> None:
        for callback in self._callbacks:
            callback(SimpleNamespace(client=visitor, target=self))


class Command:
    """An entry of the page's list of commands."""

    def __init__(self, label: str, hotkey: str | None) -> None:
        self.label, self.hotkey = label, hotkey
        self.trigger: Any = None

    def on_trigger(self, callback: Any) -> Any:
        self.trigger = lambda visitor: callback(SimpleNamespace(client=visitor))
        return callback


class Gui:
    """Stands for viser's: `handles` by their labels, `commands` by their keys, `texts`."""

    def __init__(self) -> None:
        self.handles: dict[str, Handle] = {}
        self.commands: dict[str, Command] = {}
        self.texts: list[Any] = []
        self._folders: list[str] = []

    def _add(self, kind: str, label: str, value: Any, **properties: Any) -> Handle:
        name = "/".join([*self._folders, label])
        assert name not in self.handles, f"two controls are called {name}"
        self.handles[name] = Handle(kind, label, value, properties)
        return self.handles[name]

    def add_slider(self, label: str, min: Any, max: Any, step: Any, initial_value: Any, **more: Any) -> Handle:
        assert min <= initial_value <= max and step > 0
        return self._add("slider", label, initial_value, min=min, max=max, step=step, **more)

    def add_dropdown(self, label: str, options: Any, *, initial_value: Any, **more: Any) -> Handle:
        assert initial_value in options
        return self._add("dropdown", label, initial_value, options=options, **more)

    def add_number(self, label: str, initial_value: Any, **more: Any) -> Handle:
        return self._add("number", label, initial_value, **more)

    def add_text(self, label: str, initial_value: str, **more: Any) -> Handle:
        return self._add("text", label, initial_value, **more)

    def add_vector3(self, label: str, initial_value: Any, **more: Any) -> Handle:
        return self._add("vector", label, initial_value, **more)

    add_vector2 = add_vector3

    def add_button(self, label: str, **more: Any) -> Handle:
        return self._add("button", label, None, **more)

    def add_html(self, content: str) -> SimpleNamespace:
        self.texts.append(SimpleNamespace(content=content))
        return self.texts[-1]

    add_markdown = add_html

    def add_command(self, label: str, *, hotkey: str | None = None, **more: Any) -> Command:
        self.commands[hotkey or label] = Command(label, hotkey)
        return self.commands[hotkey or label]

    def add_folder(self, label: str, **more: Any) -> _Folder:
        return _Folder(self, label)


class _Folder:
    def __init__(self, gui: Gui, label: str) -> None:
        self._gui, self._label, self.visible = gui, label, True

    def __enter__(self) -> _Folder:
        self._gui._folders.append(self._label)
        return self

    def __exit__(self, *error: object) -> None:
        self._gui._folders.pop()
