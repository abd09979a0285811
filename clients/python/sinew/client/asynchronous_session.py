"""Sessions and streams of the client for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from numpy.typing import ArrayLike

from sinew.client import calls
from sinew.client.messages import Config, Evaluation, Opened, Statistics, StreamReply, TaskDescription
from sinew.client.plan import Plan
from sinew.client.session import Applied, Fallback, Mailbox, SessionBase, StreamBase
from sinew.client.snapshot import Snapshot
from sinew.client.wire import Call
from sinew.errors import NoSessionError, TimedOutError
from sinew.state import State, StateLike

if TYPE_CHECKING:
    from sinew.client.asynchronous import AsyncClient

__all__ = ["AsyncMailbox", "AsyncSession", "AsyncStream"]

T = TypeVar("T")


class AsyncMailbox(Mailbox):
    """A mailbox whose task wakes up when something comes."""

    def __init__(self, channel: int) -> None:
        super().__init__(channel)
        self.arrived = asyncio.Event()
        self.closed = False  # nothing more will come

    def put(self, reply: Any) -> None:
        """Add a reply and wake up the task that waits for it."""
        super().put(reply)
        self.arrived.set()


class AsyncSession(SessionBase):
    """A session, for asyncio: `sinew.Session` with methods to await. `control` does not wait and is not awaited."""

    def __init__(
        self, client: AsyncClient, opened: Opened, task: TaskDescription, fallback: Fallback, owned: bool
    ) -> None:
        self._box: AsyncMailbox = AsyncMailbox(client._wire.open_channel())
        super().__init__(client._wire, opened, task, fallback, owned)
        self._client = client
        client._boxes[self._box.channel] = self._box

    async def close(self) -> None:
        """Close the session at the daemon, unless another client has opened it."""
        self._client._boxes.pop(self._box.channel, None)
        if not self._owned:
            return
        self._owned = False
        self._client._sessions.discard(self.id)
        with contextlib.suppress(NoSessionError):
            await self._ask(calls.close_session(self.id))

    async def __aenter__(self) -> AsyncSession:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            await self.close()
        elif self._owned and self.name is None:
            self._owned = False
            await self._client._abandon(self.id)

    async def _ask(self, call: Call[T], channel: int = 0) -> T:
        """Send a request about the session and wait for its answer."""
        return await self._client._request(call, channel, self.name is not None)

    # ------------------------------------------------------------------------------------------- plans

    async def plan(
        self,
        state: StateLike,
        deadline: float = 0.0,
        *,
        iterations: int = 0,
        candidates: int = 0,
        states: bool = False,
        gains: int = 0,
        applied: Applied | None = None,
    ) -> Plan:
        """Send a state and wait for its plan, as `sinew.Session.plan`.

        A task may wait for a plan while another one sends a state. Where that one is earlier the clock was set back,
        and the plan that was waited for ends in `NoPlanError`.
        """
        call = self._plan_call(state, deadline, iterations, candidates, states, gains, applied)
        self._taken = self._sent
        return await self._ask(call)

    async def send(
        self,
        state: StateLike,
        deadline: float = 0.0,
        *,
        iterations: int = 0,
        candidates: int = 0,
        states: bool = False,
        gains: int = 0,
        applied: Applied | None = None,
    ) -> None:
        """Send a state as `plan` does and go on; `receive` takes its plan later."""
        call = self._plan_call(state, deadline, iterations, candidates, states, gains, applied)
        self._sent = await self._client._send(call.request, self._box.channel)

    async def receive(self, wait: float = 0.0) -> Plan | None:
        """Take the newest plan that has come for a state that was sent, as `sinew.Session.receive`."""
        return await self._client._receive(self._box, self._judge, wait)

    async def evaluate(
        self,
        state: StateLike,
        ctrl: ArrayLike | None = None,
        *,
        gradient: bool = False,
        states: bool = False,
    ) -> Evaluation:
        """Return the cost of controls that are applied from a state, as `sinew.Session.evaluate`."""
        return await self._ask(self._evaluate_call(state, ctrl, gradient, states))

    # ---------------------------------------------------------------------------------------- settings

    async def tune(
        self,
        *,
        weights: Mapping[str, float] | None = None,
        terminal_weights: Mapping[str, float] | None = None,
        targets: Mapping[str, ArrayLike | None] | None = None,
        **settings: Any,
    ) -> Config:
        """Change settings, weights and targets while the session runs, as `sinew.Session.tune`."""
        call = calls.tune(self.id, settings, weights or {}, terminal_weights or {}, targets or {})
        return self._configured(await self._ask(call))

    async def set_weight(self, term: str, weight: float | None = None, terminal: float | None = None) -> Config:
        """Change the running and the terminal weight of a term; None: as it is."""
        return self._configured(await self._ask(calls.set_weight(self.id, term, weight, terminal)))

    async def set_target(self, term: str, target: ArrayLike | None) -> Config:
        """Give a term a constant target, or (None) the task's own one again."""
        return await self.tune(targets={term: target})

    async def get_config(self, version: int = 0) -> Config:
        """Return a version of the configuration, 0: the one in force, with the table of all settings."""
        config = await self._ask(calls.get_config(self.id, version))
        return config if version else self._configured(config)

    async def revert(self, version: int) -> Config:
        """Put settings, weights and targets of an earlier version in force again, as a new version."""
        return self._configured(await self._ask(calls.revert(self.id, version)))

    async def reset(self, seed: int | None = None) -> State:
        """Begin again, with a new seed if one is given; returns the initial state. There is no plan in force then."""
        return self._restarted(await self._ask(calls.reset(self.id, seed)))

    async def snapshot(self) -> Snapshot:
        """Return where the session stands, as `sinew.Session.snapshot`."""
        return await self._ask(calls.take_snapshot(self.id))

    async def restore(self, snapshot: Snapshot) -> Config:
        """Go on from a snapshot, as `sinew.Session.restore`."""
        return self._went_back(await self._ask(calls.restore(self.id, snapshot)))

    async def statistics(self) -> Statistics:
        """Return the counters of this session."""
        return await self._client.statistics(self.id)

    # --------------------------------------------------------------------------------- continuous mode

    async def stream(
        self,
        lease: float = 0.5,
        deadline: float = 0.04,
        period: float = 0.0,
        iterations: int = 0,
        states: bool = False,
        gains: int = 0,
    ) -> AsyncStream:
        """Begin continuous mode, as `sinew.Session.stream`."""
        stream = AsyncStream(self)
        await stream.renew(lease, deadline, period, iterations, states, gains)
        return stream


class AsyncStream(StreamBase):
    """Continuous mode of a session, for asyncio. ``async for plan in stream`` gives plan after plan."""

    def __init__(self, session: AsyncSession) -> None:
        self._box: AsyncMailbox = AsyncMailbox(session._wire.open_channel())
        super().__init__(session)
        self.session = session
        self._client = session._client

    async def renew(
        self,
        lease: float = 0.5,
        deadline: float = 0.04,
        period: float = 0.0,
        iterations: int = 0,
        states: bool = False,
        gains: int = 0,
    ) -> StreamReply:
        """Begin the mode, or change the terms of what runs; parameters as for `sinew.Session.stream`."""
        self._terms = (lease, deadline, period, iterations, states, gains)
        call = calls.stream(self.session.id, *self._terms)
        self._client._boxes[self._box.channel] = self._box
        self._box.closed = False
        return self._begun(await self.session._ask(call, self._box.channel))

    def _begin_again(self) -> None:
        message = calls.stream(self.session.id, *self._terms).request
        self._again = asyncio.ensure_future(self._client._send(message, self._box.channel))

    async def send(self, state: StateLike, applied: Applied | None = None) -> None:
        """Send a state, as `AsyncSession.plan` takes it, and go on. Renews the lease."""
        await self._client._send(self._state(state, applied), self._box.channel)

    async def receive(self, wait: float = 0.0) -> Plan | None:
        """Take all that has come, as `sinew.client.Stream.receive`."""
        return await self._client._receive(self._box, self._judge, wait)

    async def stop(self) -> StreamReply:
        """End the mode and wait for the daemon's answer. The plan in force stays until it expires."""
        reply = await self.session._ask(calls.stop_stream(self.session.id), self._box.channel)
        self._client._boxes.pop(self._box.channel, None)
        self._box.closed = True
        self._box.arrived.set()
        return self._begun(reply)

    async def __aiter__(self) -> AsyncIterator[Plan]:
        while self.running:
            plan = await self.receive(self._client._wire.timeout)
            if plan is not None:
                yield plan
            elif self.running:
                raise TimedOutError(f"no plan has come within {self._client._wire.timeout:g} s")

    async def __aenter__(self) -> AsyncStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self.running:
            await self.stop()
        elif self.running:
            self.running = False
            await self._client._send(calls.stop_stream(self.session.id).request, self._box.channel)
