"""One thread at a time in a client."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from sinew.errors import StateError

if TYPE_CHECKING:
    from sinew.client.blocking import Client

__all__ = ["alone"]

T = TypeVar("T")
P = ParamSpec("P")


def alone(method: Callable[Concatenate[Client, P], T]) -> Callable[Concatenate[Client, P], T]:
    """Let one thread at a time into a method, and none of a closed client or of a child of fork()."""

    @functools.wraps(method)
    def enter(client: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if client._pid != os.getpid():
            raise StateError("the client is another process's: connect anew after fork()")
        if not client._lock.acquire(blocking=False):
            raise StateError("another thread uses the client: give each thread its own")
        try:
            if client._socket is None:
                raise StateError("the client is closed")
            return method(client, *args, **kwargs)
        finally:
            client._lock.release()

    return enter
