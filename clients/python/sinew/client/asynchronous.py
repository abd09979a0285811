"""The client for asyncio. Names, arguments and errors are those of `sinew.Client`; what waits is awaited."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any, TypeVar

from sinew.client import calls, schema
from sinew.client.asynchronous_session import AsyncMailbox, AsyncSession, AsyncStream
from sinew.client.keys import PathOrKey
from sinew.client.messages import (
    Health,
    Hello,
    LoadedModel,
    ModelDescription,
    ModelSummary,
    Opened,
    Statistics,
    TaskDescription,
    TaskSummary,
    Telemetry,
)
from sinew.client.plan import Plan
from sinew.client.records import milliseconds, subscribed
from sinew.client.session import Fallback, Judge, Mailbox, newest, session_settings, task_of
from sinew.client.snapshot import Snapshot
from sinew.client.wire import LINGER, LONGEST, PAUSE, RECONNECT, Call, Wire, absence, is_coming, is_stopping
from sinew.errors import ArgumentError, LimitError, ProtocolError, RefusedError, StateError, TimedOutError

__all__ = ["AsyncClient", "AsyncSession", "AsyncStream"]

T = TypeVar("T")


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
        opened = await self._request(
            calls.open_session(task, seed, settings or {}, wanted, snapshot, name), outlasts=name is not None
        )
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
        self._wire.stale = self._wire.stale or self._refused is not None
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
                    self._wire.stale = True
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

    async def _request(self, call: Call[T], channel: int = 0, outlasts: bool = False) -> T:
        wait = self._wire.timeout + call.extra
        for attempt in range(self._wire.retries + 1):
            if self._socket is None:
                raise StateError("the client is closed, or was not connected")
            if (attempt or self._refused) and not self._waiting:
                self._connect()
            try:
                async with asyncio.timeout(wait):
                    reply = await self._exchange(call, channel, outlasts)
            except TimeoutError:
                continue
            if reply is not None:
                return self._wire.result(call, reply)
        if self._refused is not None:
            raise self._refused
        raise TimedOutError(f"no answer from {self._wire.endpoint} within {wait:g} s{absence(self._wire.endpoint)}")

    async def _exchange(self, call: Call[T], channel: int, outlasts: bool) -> Any:
        """Send a request and return its reply, None where it cannot be sent.

        It is sent again where its session is on its way or outlasts a daemon that stops, and where the connection ends
        meanwhile.
        """
        asked = False  # whether the limit that the request exceeds is of the daemon that is there now
        while True:
            if self._wire.stale and call.body != "hello":
                greeting = calls.hello()
                reply = await self._exchange(greeting, 0, False)
                if reply is None:
                    return None
                self._wire.greet(self._wire.result(greeting, reply))
            try:
                id, data = self._wire.encode(call.request, channel)
            except LimitError:
                if asked:
                    raise
                asked = self._wire.stale = True
                continue
            answer = asyncio.get_running_loop().create_future()
            self._waiting[id] = answer
            try:
                if not await self._pass_on(data):
                    return None
                reply = await answer
                if not is_coming(reply) and not (outlasts and is_stopping(reply)):
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

    async def _fill(self, box: AsyncMailbox, wait: float) -> bool:
        """Wait until there is something in a mailbox; returns whether there is."""
        if not box.replies and not box.closed:
            box.arrived.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(wait, 0.0)):
                    await box.arrived.wait()
        return bool(box.replies)

    async def _receive(self, box: AsyncMailbox, judge: Judge, wait: float) -> Plan | None:
        """Return the newest plan of a mailbox, waiting for a first one."""
        await asyncio.sleep(0)  # what has come already is handed out
        loop = asyncio.get_running_loop()
        until = loop.time() + wait
        while await self._fill(box, until - loop.time()):
            plan = newest(box, judge)
            if plan is not None:
                return plan
        return None
