"""The client for asyncio. Names, arguments and errors are those of `sinew.Client`; what waits is awaited."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Any, TypeVar

from numpy.typing import ArrayLike

from sinew.client import calls, schema
from sinew.client.keys import PathOrKey
from sinew.client.messages import (
    Config,
    Evaluation,
    Health,
    Hello,
    LoadedModel,
    ModelDescription,
    ModelSummary,
    Opened,
    Statistics,
    StreamReply,
    TaskDescription,
    TaskSummary,
    Telemetry,
)
from sinew.client.plan import Plan
from sinew.client.records import milliseconds, subscribed
from sinew.client.session import (
    Applied,
    Fallback,
    Judge,
    Mailbox,
    SessionBase,
    StreamBase,
    is_gone,
    newest,
    session_settings,
    task_of,
)
from sinew.client.snapshot import Snapshot
from sinew.client.wire import LINGER, LONGEST, PAUSE, RECONNECT, Call, Wire, is_coming
from sinew.errors import ArgumentError, ProtocolError, RefusedError, StateError, TimedOutError
from sinew.state import State, StateLike

__all__ = ["AsyncClient", "AsyncSession", "AsyncStream"]

T = TypeVar("T")


class _Mailbox(Mailbox):
    """A mailbox whose task wakes up when something comes."""

    def __init__(self, channel: int) -> None:
        super().__init__(channel)
        self.arrived = asyncio.Event()
        self.closed = False  # nothing more will come

    def put(self, reply: Any) -> None:
        super().put(reply)
        self.arrived.set()


class _ConnectionLostError(Exception):
    """The connection has ended that a request was sent over."""


class AsyncClient:
    """A connection to a daemon, for asyncio. Any number of tasks of one loop may use it at the same time.

    Parameters are those of `sinew.Client`. A request that is sent again goes over a fresh connection where
    nobody else waits for an answer of the old one.

    Examples
    --------
    >>> async with sinew.AsyncClient() as client, await client.open("arm_reach", latency=0.02) as session:
    ...     plan = await session.plan(session.initial, deadline=0.02)
    """

    def __init__(
        self,
        endpoint: str | None = None,
        timeout: float = 10.0,
        retries: int = 0,
        *,
        server_key: PathOrKey | None = None,
        key_file: PathOrKey | None = None,
    ) -> None:
        self._wire = Wire(endpoint, timeout, retries, server_key, key_file)
        self._boxes: dict[int, Mailbox] = {}
        self._waiting: dict[int, asyncio.Future[Any]] = {}  # by id, in the order in which they were sent
        self._sessions: set[int] = set()
        self._context: Any = None
        self._socket: Any = None
        self._reader: asyncio.Task[None] | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._refused: RefusedError | None = None  # why this connection is not let in

    @classmethod
    async def connect(
        cls,
        endpoint: str | None = None,
        timeout: float = 10.0,
        retries: int = 0,
        *,
        server_key: PathOrKey | None = None,
        key_file: PathOrKey | None = None,
    ) -> AsyncClient:
        """Connect to a daemon; `close` ends the connection."""
        return await cls(endpoint, timeout, retries, server_key=server_key, key_file=key_file).__aenter__()

    async def __aenter__(self) -> AsyncClient:
        import zmq.asyncio

        if self._context is not None:
            raise StateError("the client is connected already, or closed")
        self._context = zmq.asyncio.Context()
        try:
            self._connect()
            self._wire.greet(await self._request(calls.hello()))
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    @property
    def endpoint(self) -> str:
        """Address of the daemon."""
        return self._wire.endpoint

    @property
    def hello(self) -> Hello:
        """What the daemon said when it was greeted."""
        if self._wire.hello is None:
            raise StateError("the client is not connected")
        return self._wire.hello

    async def close(self) -> None:
        """Close the connection; sessions that are still open are closed at the daemon."""
        if self._socket is None:
            return
        for session in list(self._sessions):
            await self._abandon(session)
        self._disconnect()
        self._socket = None
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(StateError("the client is closed"))
        self._context.destroy(linger=LINGER)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.endpoint}>"

    # -------------------------------------------------------------------------------------- the daemon

    async def health(self) -> Health:
        """Return how the daemon is."""
        return await self._request(calls.health())

    async def statistics(self, session: int = 0) -> Statistics:
        """Return counters of one session, or (0) of the whole daemon."""
        return await self._request(calls.statistics(session))

    async def telemetry(self, wait: float = 5.0) -> AsyncIterator[Telemetry]:
        """Iterate over what the daemon publishes, as `sinew.Client.telemetry`."""
        import zmq

        if self._socket is None:
            raise StateError("the client is closed")
        socket = self._context.socket(zmq.SUB)
        try:
            for option, value in ((zmq.LINGER, 0), (zmq.CONFLATE, 1), (zmq.SUBSCRIBE, b"")):
                socket.setsockopt(option, value)
            endpoint = self._wire.telemetry_endpoint()
            if (keys := self._wire.keys_for(endpoint)) is not None:
                keys.use(socket)
            socket.connect(endpoint)
            while await socket.poll(int(max(wait, 0.0) * 1e3)):
                yield schema.convert(self._wire.published(await socket.recv()))
            raise TimedOutError(f"no telemetry within {wait:g} s")
        except zmq.ZMQError as error:
            raise StateError(f"telemetry has ended: {error}") from None
        finally:
            socket.close()

    async def records(
        self, session: int | None = None, *, most: int = 0, wait: float = 5.0
    ) -> AsyncIterator[tuple[str, bytes]]:
        """Iterate over the records of a session, or of all: their topics, and what `sinew.client.records.parse` reads.

        Parameters
        ----------
        session : int, optional
            Its id; None: all sessions.
        most : int
            Messages that may wait here; 0: any number.
        wait : float
            The iteration ends when nothing comes for so long [s].
        """
        if self._socket is None:
            raise StateError("the client is closed")
        longest = milliseconds(wait)
        endpoint = self._wire.records_endpoint()
        socket = subscribed(self._context, endpoint, session, most, self._wire.keys_for(endpoint))
        try:
            while await socket.poll(longest):
                topic, frame = await socket.recv_multipart()
                yield topic.decode("ascii", "replace"), frame
        finally:
            socket.close()

    # -------------------------------------------------------------------------------- models and tasks

    async def list_models(self) -> tuple[ModelSummary, ...]:
        """Return the models that the daemon can load, by name."""
        return await self._request(calls.list_models())

    async def describe_model(self, model: str) -> ModelDescription:
        """Return sizes, names, units and ranges of a model, which is loaded if it is not."""
        return await self._request(calls.describe_model(model))

    async def load_model(self, model: str) -> LoadedModel:
        """Load a model."""
        return await self._request(calls.load_model(model))

    async def unload_model(self, model: str) -> None:
        """Free a model's memory. One that sessions use is refused."""
        await self._request(calls.unload_model(model))

    async def list_tasks(self) -> tuple[TaskSummary, ...]:
        """Return the tasks of the daemon, by name."""
        return await self._request(calls.list_tasks())

    async def describe_task(self, task: str) -> TaskDescription:
        """Return a task: its model, terms, measures and settings."""
        return await self._request(calls.describe_task(task))

    # ---------------------------------------------------------------------------------------- sessions

    async def open(
        self,
        task: str,
        seed: int = 0,
        settings: Mapping[str, Any] | None = None,
        *,
        latency: float | None = None,
        lease: float | None = None,
        time_to_live: float | None = None,
        fallback: Fallback = "zero",
        snapshot: Snapshot | None = None,
        name: str | None = None,
    ) -> AsyncSession:
        """Open a session on a task, as `sinew.Client.open`."""
        wanted = session_settings(latency, lease, time_to_live)
        opened = await self._request(calls.open_session(task, seed, settings or {}, wanted, snapshot, name))
        if name is None:
            self._sessions.add(opened.session)
        try:
            session = AsyncSession(self, opened, await self.describe_task(task), fallback, owned=True)
        except BaseException:
            if name is None:
                await self._abandon(opened.session)
            raise
        session.name = name
        return session

    async def attach(self, session: int, fallback: Fallback = "zero") -> AsyncSession:
        """Return a session that another client has opened, as `sinew.Client.attach`."""
        statistics = await self.statistics(session)
        task = await self.describe_task(task_of(statistics.sessions, session))
        config = await self._request(calls.get_config(session, 0))
        return AsyncSession(self, Opened(session, task.initial, config), task, fallback, owned=False)

    # ------------------------------------------------------------------------------------ the connection

    def _connect(self) -> None:
        import zmq

        self._disconnect()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.RECONNECT_IVL, RECONNECT)
        self._socket.setsockopt(zmq.MAXMSGSIZE, LONGEST)
        self._wire.handshakes.watch(self._socket)
        try:
            self._socket.connect(self._wire.endpoint)
        except zmq.ZMQError as error:
            raise ArgumentError(f"cannot connect to {self._wire.endpoint}: {error}") from None
        self._refused = None
        self._reader = asyncio.create_task(self._read(self._socket))
        if self._wire.handshakes.monitor is not None:
            self._watcher = asyncio.create_task(self._watch(self._wire.handshakes.monitor))

    def _disconnect(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
            self._reader = None
        if self._watcher is not None:
            self._watcher.cancel()
            self._watcher = None
        if self._socket is not None:
            self._wire.handshakes.close(self._socket)
            self._socket.close(LINGER)

    async def _watch(self, monitor: Any) -> None:
        """Tell those who wait when the daemon does not let this client in, and when the connection has ended."""
        while self._refused is None:
            frames = await monitor.recv_multipart()
            try:
                self._wire.handshakes.take(frames)
                if self._wire.handshakes.lost:
                    self._wire.handshakes.lost = False
                    for future in self._waiting.values():
                        if not future.done():
                            future.set_exception(_ConnectionLostError())
            except RefusedError as error:
                self._refused = error
                for future in self._waiting.values():
                    if not future.done():
                        future.set_exception(error)

    async def _read(self, socket: Any) -> None:
        """Hand out replies as long as the connection lasts."""
        while True:
            frame = await socket.recv()
            try:
                channel, reply = self._wire.decode(frame)
            except ProtocolError as error:
                for future in self._waiting.values():
                    if not future.done():
                        future.set_exception(error)
                continue
            # Id 0 answers a request that the daemon could not read: the oldest one.
            id = reply.id or next(iter(self._waiting), 0)
            waiting = self._waiting.get(id)
            if waiting is not None and not waiting.done():
                waiting.set_result(reply)
            elif channel in self._boxes:
                self._boxes[channel].put(reply)

    async def _request(self, call: Call[T], channel: int = 0) -> T:
        wait = self._wire.timeout + call.extra
        for attempt in range(self._wire.retries + 1):
            if self._socket is None:
                raise StateError("the client is closed, or was not connected")
            if (attempt or self._refused) and not self._waiting:
                self._connect()
            try:
                async with asyncio.timeout(wait):
                    reply = await self._exchange(call, channel)
            except TimeoutError:
                continue
            if reply is not None:
                return self._wire.result(call, reply)
        if self._refused is not None:
            raise self._refused
        raise TimedOutError(f"no answer from {self._wire.endpoint} within {wait:g} s")

    async def _exchange(self, call: Call[T], channel: int) -> Any:
        """Send a request and return its reply, None where it cannot be sent.

        It is sent again where its session is on its way, and where the connection ends meanwhile.
        """
        while True:
            id, data = self._wire.encode(call.request, channel)
            answer = asyncio.get_running_loop().create_future()
            self._waiting[id] = answer
            try:
                if not await self._pass_on(data):
                    return None
                reply = await answer
                if not is_coming(reply):
                    return reply
            except _ConnectionLostError:
                pass
            finally:
                del self._waiting[id]
            await asyncio.sleep(PAUSE)

    async def _send(self, message: Any, channel: int) -> int:
        if self._socket is None:
            raise StateError("the client is closed, or was not connected")
        id, data = self._wire.encode(message, channel)
        if not await self._pass_on(data):
            raise TimedOutError(f"cannot send to {self._wire.endpoint}: it takes nothing more")
        return id

    async def _pass_on(self, data: bytes) -> bool:
        """Send without waiting; returns whether the connection took it."""
        import zmq

        try:
            await self._socket.send(data, zmq.NOBLOCK)
        except zmq.Again:
            return False
        return True

    async def _abandon(self, session: int) -> None:
        self._sessions.discard(session)
        if self._socket is not None:
            await self._send(calls.close_session(session).request, 0)

    async def _fill(self, box: _Mailbox, wait: float) -> bool:
        """Wait until there is something in a mailbox; returns whether there is."""
        if not box.replies and not box.closed:
            box.arrived.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(wait, 0.0)):
                    await box.arrived.wait()
        return bool(box.replies)

    async def _receive(self, box: _Mailbox, judge: Judge, wait: float) -> Plan | None:
        """Return the newest plan of a mailbox, waiting for a first one."""
        await asyncio.sleep(0)  # what has come already is handed out
        loop = asyncio.get_running_loop()
        until = loop.time() + wait
        while await self._fill(box, until - loop.time()):
            plan = newest(box, judge)
            if plan is not None:
                return plan
        return None


class AsyncSession(SessionBase):
    """A session, for asyncio: `sinew.Session` with methods to await. `control` does not wait and is not awaited."""

    def __init__(
        self, client: AsyncClient, opened: Opened, task: TaskDescription, fallback: Fallback, owned: bool
    ) -> None:
        self._box: _Mailbox = _Mailbox(client._wire.open_channel())
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
        try:
            await self._client._request(calls.close_session(self.id))
        except RefusedError as error:
            if not is_gone(error):
                raise

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
        """Send a state and wait for its plan, as `sinew.Session.plan`."""
        call = self._plan_call(state, deadline, iterations, candidates, states, gains, applied)
        self._taken = self._sent
        return await self._client._request(call)

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
        return await self._client._request(self._evaluate_call(state, ctrl, gradient, states))

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
        return self._configured(await self._client._request(call))

    async def set_weight(self, term: str, weight: float | None = None, terminal: float | None = None) -> Config:
        """Change the running and the terminal weight of a term; None: as it is."""
        return self._configured(await self._client._request(calls.set_weight(self.id, term, weight, terminal)))

    async def set_target(self, term: str, target: ArrayLike | None) -> Config:
        """Give a term a constant target, or (None) the task's own one again."""
        return await self.tune(targets={term: target})

    async def get_config(self, version: int = 0) -> Config:
        """Return a version of the configuration, 0: the one in force, with the table of all settings."""
        config = await self._client._request(calls.get_config(self.id, version))
        return config if version else self._configured(config)

    async def revert(self, version: int) -> Config:
        """Put settings, weights and targets of an earlier version in force again, as a new version."""
        return self._configured(await self._client._request(calls.revert(self.id, version)))

    async def reset(self, seed: int | None = None) -> State:
        """Begin again, with a new seed if one is given; returns the initial state. There is no plan in force then."""
        return self._restarted(await self._client._request(calls.reset(self.id, seed)))

    async def snapshot(self) -> Snapshot:
        """Return where the session stands, as `sinew.Session.snapshot`."""
        return await self._client._request(calls.take_snapshot(self.id))

    async def restore(self, snapshot: Snapshot) -> Config:
        """Go on from a snapshot, as `sinew.Session.restore`."""
        return self._went_back(await self._client._request(calls.restore(self.id, snapshot)))

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
        self._box: _Mailbox = _Mailbox(session._wire.open_channel())
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
        return self._begun(await self._client._request(call, self._box.channel))

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
        reply = await self._client._request(calls.stop_stream(self.session.id), self._box.channel)
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
