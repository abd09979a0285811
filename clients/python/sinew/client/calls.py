"""The requests of the wire that concern no state: what is asked, and what the answer becomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from sinew.client import schema
from sinew.client.messages import (
    Config,
    Health,
    Hello,
    LoadedModel,
    ModelDescription,
    ModelSummary,
    Opened,
    Plant,
    Statistics,
    StreamReply,
    TaskDescription,
    TaskSummary,
)
from sinew.client.snapshot import Snapshot
from sinew.client.wire import PROTOCOL, Call, request
from sinew.errors import ArgumentError, ProtocolError
from sinew.names import did_you_mean
from sinew.state import State


def _call(body: str, fields: dict[str, Any], part: str | None = None) -> Call[Any]:
    """Return a call whose result is what stands for the reply, or for one part of it."""

    def take(reply: Any) -> Any:
        return schema.values(reply)[part] if part else schema.convert(reply)

    return Call(body, request(body, fields), take)


def _nothing(body: str, fields: dict[str, Any]) -> Call[None]:
    return Call(body, request(body, fields), lambda reply: None)


def hello() -> Call[Hello]:
    """Greet the daemon."""
    return _call("hello", {"protocol": PROTOCOL, "client": "sinew for Python"})


def health() -> Call[Health]:
    """Ask how the daemon is."""
    return _call("health", {})


def statistics(session: int) -> Call[Statistics]:
    """Ask for counters of a session, or of all."""
    return _call("statistics", {"session": session})


def list_models() -> Call[tuple[ModelSummary, ...]]:
    """Ask for all models."""
    return _call("list_models", {}, "models")


def describe_model(model: str) -> Call[ModelDescription]:
    """Ask what a model is."""
    return _call("describe_model", {"model": model})


def load_model(model: str) -> Call[LoadedModel]:
    """Load a model."""
    return _call("load_model", {"model": model})


def unload_model(model: str) -> Call[None]:
    """Free a model."""
    return _nothing("unload_model", {"model": model})


def list_tasks() -> Call[tuple[TaskSummary, ...]]:
    """Ask for all tasks."""
    return _call("list_tasks", {}, "tasks")


def describe_task(task: str) -> Call[TaskDescription]:
    """Ask what a task is."""
    call = _call("describe_task", {"task": task})

    def take(reply: Any) -> TaskDescription:
        described: TaskDescription = call.take(reply)
        if described.model is None or described.initial is None:
            raise ProtocolError("incomplete description of a task")
        if described.plant is None:  # the daemon is older than this field
            return replace(described, plant=Plant(np.empty(0), np.empty(0)))
        return described

    return Call(call.body, call.request, take)


def open_session(
    task: str,
    seed: int,
    settings: Mapping[str, Any],
    session: Mapping[str, float | None],
    snapshot: Snapshot | None = None,
    name: str | None = None,
) -> Call[Opened]:
    """Open a session; what is None is the daemon's choice, or that of the snapshot."""
    if name == "":
        raise ArgumentError('name: "", expected a name, or None for a session without one')
    fields = {"task": task, "seed": seed, "planner": dict(settings), "session": dict(session), "name": name or ""}
    call = _call("open", fields)
    if snapshot is not None:
        call.request.open.snapshot.ParseFromString(bytes(snapshot))

    def take(reply: Any) -> Opened:
        opened: Opened = call.take(reply)
        if opened.initial is None or opened.config is None:
            raise ProtocolError("incomplete answer to open")
        return opened

    return Call(call.body, call.request, take)


def close_session(session: int) -> Call[None]:
    """Close a session."""
    return _nothing("close", {"session": session})


def reset(session: int, seed: int | None) -> Call[State]:
    """Begin a session again."""
    return _call("reset", {"session": session, "seed": seed}, "initial")


def take_snapshot(session: int) -> Call[Snapshot]:
    """Ask where a session stands."""
    fields = {"session": session}
    return Call("snapshot", request("snapshot", fields), lambda reply: Snapshot(reply.SerializeToString()))


def restore(session: int, snapshot: Snapshot) -> Call[dict[str, Any]]:
    """Let a session go on from a snapshot; returns the initial state and the configuration by name."""
    call = Call("reset", request("reset", {"session": session}), _take_restored)
    call.request.reset.snapshot.ParseFromString(bytes(snapshot))
    return call


def _take_restored(reply: Any) -> dict[str, Any]:
    restored = schema.values(reply)
    if restored["initial"] is None or restored["config"] is None:
        raise ProtocolError("incomplete answer to reset")
    return restored


def get_config(session: int, version: int) -> Call[Config]:
    """Ask for a version of a configuration."""
    return _call("get_config", {"session": session, "version": version})


def revert(session: int, version: int) -> Call[Config]:
    """Put a version of a configuration in force again."""
    return _call("revert", {"session": session, "version": version})


def tune(
    session: int,
    settings: Mapping[str, Any],
    weights: Mapping[str, float],
    terminal_weights: Mapping[str, float],
    targets: Mapping[str, Any],
) -> Call[Config]:
    """Return the one message that changes settings, weights and targets together."""
    names = {name: _names_of(name) for name in ("PlannerSettings", "SessionSettings")}
    unknown = [name for name in settings if not any(name in known for known in names.values())]
    if unknown:
        known = ", ".join(sorted(names["PlannerSettings"] | names["SessionSettings"]))
        near = did_you_mean(unknown[0], names["PlannerSettings"] | names["SessionSettings"])
        raise ArgumentError(f"unknown setting {unknown[0]!r}; known are {known}{near}")
    terms = []
    for name in dict.fromkeys([*weights, *terminal_weights, *targets]):
        term = {"name": name, "weight": weights.get(name), "terminal_weight": terminal_weights.get(name)}
        if name in targets:
            term.update({"own_target": True} if targets[name] is None else {"target": targets[name]})
        terms.append(term)
    fields = {
        "session": session,
        "planner": {name: x for name, x in settings.items() if name in names["PlannerSettings"]},
        "settings": {name: x for name, x in settings.items() if name in names["SessionSettings"]},
        "terms": terms,
    }
    return Call("set_config", request("set_config", fields), schema.convert)


def set_weight(session: int, term: str, weight: float | None, terminal: float | None) -> Call[Config]:
    """Change the weights of one term."""
    weights = {} if weight is None else {term: weight}
    return tune(session, {}, weights, {} if terminal is None else {term: terminal}, {})


def _names_of(message: str) -> set[str]:
    return set(schema.load().fields(message))


def stream(
    session: int, lease: float, deadline: float, period: float, iterations: int, states: bool, gains: int
) -> Call[StreamReply]:
    """Begin continuous mode, or change its terms."""
    fields = {
        "session": session,
        "lease": lease,
        "deadline": deadline,
        "period": period,
        "iterations": iterations,
        "want_states": states,
        "gain_rows": gains,
    }
    return _call("stream", fields)


def stop_stream(session: int) -> Call[StreamReply]:
    """End continuous mode."""
    return _call("stream", {"session": session, "stop": True})
