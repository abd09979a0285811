"""Clients of the planning server sinewd: all of its wire, ``proto/sinew.proto``.

`Client` waits for its answers, `AsyncClient` is for asyncio, `serve` starts a private daemon. pyzmq and protobuf are
imported when a client is made.
"""

from __future__ import annotations

from sinew.client.asynchronous import AsyncClient
from sinew.client.asynchronous_session import AsyncSession, AsyncStream
from sinew.client.blocking import Client
from sinew.client.blocking_session import Session, Stream
from sinew.client.messages import (
    Config,
    Device,
    Evaluation,
    Gradient,
    Health,
    Hello,
    Limits,
    LoadedModel,
    MeasureValue,
    ModelSummary,
    SessionStatistics,
    SettingInfo,
    Statistics,
    StreamReply,
    TaskSummary,
    Telemetry,
    TermGradient,
    TermSettings,
)
from sinew.client.plan import Plan
from sinew.client.quantities import ModelDescription, Quantity, Trajectory
from sinew.client.records import RecordSocket
from sinew.client.serving import Daemon, serve
from sinew.client.snapshot import Snapshot
from sinew.client.tasks import GateDescription, GateValue, MeasureDescription, TaskDescription, TermDescription

__all__ = [
    "AsyncClient",
    "AsyncSession",
    "AsyncStream",
    "Client",
    "Config",
    "Daemon",
    "Device",
    "Evaluation",
    "GateDescription",
    "GateValue",
    "Gradient",
    "Health",
    "Hello",
    "Limits",
    "LoadedModel",
    "MeasureDescription",
    "MeasureValue",
    "ModelDescription",
    "ModelSummary",
    "Plan",
    "Quantity",
    "RecordSocket",
    "Session",
    "SessionStatistics",
    "SettingInfo",
    "Snapshot",
    "Statistics",
    "Stream",
    "StreamReply",
    "TaskDescription",
    "TaskSummary",
    "Telemetry",
    "TermDescription",
    "TermGradient",
    "TermSettings",
    "Trajectory",
    "serve",
]
