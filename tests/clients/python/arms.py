"""Sessions of an arm of six muscles, for tests of clients."""

from __future__ import annotations

from typing import Any

import numpy as np
import sinew
from sinew.client import AsyncSession, Session

SETTINGS = {"adam_iterations": 3, "iterations": 3}


def arm(client: sinew.Client, seed: int = 3, **options: Any) -> Session:
    return client.open("arm_reach", seed, {**SETTINGS, **options.pop("settings", {})}, **options)


def qpos(state: sinew.State) -> Any:
    return np.asarray(state.qpos)


def state_at(session: AsyncSession | Session, time: float) -> dict[str, Any]:
    return {"time": time, "qpos": session.initial.qpos, "qvel": session.initial.qvel}
