"""The client that waits for its answers."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from sinew.client import calls, schema
from sinew.client.alone import alone
from sinew.client.blocking_session import Session
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
from sinew.client.records import RecordSocket
from sinew.client.session import (
    Fallback,
    Judge,
    Mailbox,
    newest,
    session_settings,
    task_of,
)
from sinew.client.snapshot import Snapshot
from sinew.client.wire import LINGER, LONGEST, PAUSE, RECONNECT, Call, Wire, absence, is_coming, is_stopping
from sinew.errors import ArgumentError, LimitError, StateError, TimedOutError

__all__ = ["Client"]

_LOOK = 0.05  # a wait looks so often whether the connection has ended [s]

T = TypeVar("T")


class Client:
    """A connection to a daemon.

    A client and its sessions belong to one thread at a time; several clients are independent. Ctrl-C ends any
    wait. It is a context manager, which closes it.

    Parameters
    ----------
    endpoint : str, optional
        Address of the daemon, ``"ipc:///path"`` or ``"tcp://127.0.0.1:port"``. By default that of this user's
        daemon.
    timeout : float
        For the answer to a request [s], in addition to the time that a request itself gives the daemon.
    retries : int
        How many more times a request without an answer is sent, each over a fresh connection.
    server_key : str or path, optional
        The daemon's public key, or its file, where an address of tcp asks for keys.
    key_file : str or path, optional
        File of the client's own secret key, as ``sinewctl keygen`` makes it; nobody else may read it.

    Attributes
    ----------
    hello : Hello
        Version, planners, backends and limits of the daemon.

    Raises
    ------
    ArgumentError
        The time-out, the retries, or an address that is none.
    TimedOutError
        No answer in time.
    ProtocolError
        The daemon speaks another protocol.
    RefusedError
        The daemon does not let this key in, has another key than `server_key`, or asks for keys.

    Examples
    --------
    >>> with sinew.Client() as client, client.open("arm_reach", seed=3, latency=0.02) as session:
    ...     plan = session.plan(session.initial, deadline=0.02)
    ...     ctrl = session.control(now=0.01)
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
        import zmq

        self._wire = Wire(endpoint, timeout, retries, server_key, key_file)
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._boxes: dict[int, Mailbox] = {}
        self._sessions: set[int] = set()
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket: zmq.Socket[bytes] | None = None
        self._wait = -1  # time-out of the socket [ms]
        try:
            self._connect()
            self._wire.greet(self._request(calls.hello()))
        except BaseException:
            self.close()
            raise

    @property
    def endpoint(self) -> str:
        """Address of the daemon."""
        return self._wire.endpoint

    @property
    def hello(self) -> Hello:
        """What the daemon said when it was greeted."""
        assert self._wire.hello is not None
        return self._wire.hello

    def close(self) -> None:
        """Close the connection; sessions that are still open are closed at the daemon."""
        if self._pid != os.getpid() or self._context.closed:
            return
        if self._socket is not None:
            for session in list(self._sessions):
                self._abandon(session)
        if not self._lock.acquire(blocking=False):
            raise StateError("another thread uses the client: it cannot be closed")
        try:
            if self._socket is not None:
                self._wire.handshakes.close(self._socket)
                self._socket.close(LINGER)
                self._socket = None
            self._context.destroy(linger=LINGER)
        finally:
            self._lock.release()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.endpoint}>"

    # -------------------------------------------------------------------------------------- the daemon

    def health(self) -> Health:
        """Return how the daemon is."""
        return self._request(calls.health())

    def statistics(self, session: int = 0) -> Statistics:
        """Return counters of one session, or (0) of the whole daemon."""
        return self._request(calls.statistics(session))

    def telemetry(self, wait: float = 5.0) -> Iterator[Telemetry]:
        """Return an iterator over what the daemon publishes, each time the newest.

        Parameters
        ----------
        wait : float
            `TimedOutError` is raised when nothing comes for so long [s].
        """
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
            while socket.poll(int(max(wait, 0.0) * 1e3)):
                yield schema.convert(self._wire.published(socket.recv()))
            raise TimedOutError(f"no telemetry within {wait:g} s")
        except zmq.ZMQError as error:
            raise StateError(f"telemetry has ended: {error}") from None
        finally:
            socket.close()

    def records(self, session: int | None = None, *, most: int = 0) -> RecordSocket:
        """Subscribe to the records of a session, by its id, or of all.

        Parameters
        ----------
        session : int, optional
            None: all sessions.
        most : int
            Messages that may wait here; 0: any number.

        Returns
        -------
        RecordSocket
            To be closed, or used with ``with``.
        """
        endpoint = self._wire.records_endpoint()
        return RecordSocket(endpoint, session, most=most, keys=self._wire.keys_for(endpoint))

    # -------------------------------------------------------------------------------- models and tasks

    def list_models(self) -> tuple[ModelSummary, ...]:
        """Return the models that the daemon can load, by name."""
        return self._request(calls.list_models())

    def describe_model(self, model: str) -> ModelDescription:
        """Return sizes, names, units and ranges of a model, which is loaded if it is not."""
        return self._request(calls.describe_model(model))

    def load_model(self, model: str) -> LoadedModel:
        """Load a model."""
        return self._request(calls.load_model(model))

    def unload_model(self, model: str) -> None:
        """Free a model's memory. One that sessions use is refused."""
        self._request(calls.unload_model(model))

    def list_tasks(self) -> tuple[TaskSummary, ...]:
        """Return the tasks of the daemon, by name."""
        return self._request(calls.list_tasks())

    def describe_task(self, task: str) -> TaskDescription:
        """Return a task: its model, terms, measures and settings."""
        return self._request(calls.describe_task(task))

    # ---------------------------------------------------------------------------------------- sessions

    def open(
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
    ) -> Session:
        """Open a session on a task and wait for its initial state.

        Parameters
        ----------
        task : str
            Name of the task.
        seed : int
            Perturbs the initial pose and plan, and seeds the planner.
        settings : mapping, optional
            Settings of the planner by name, such as ``{"planner": "adam", "adam_rate": 0.02}``; others are
            the task's.
        latency : float, optional
            From a state to its plan in force [s]. The daemon's default is 0: the body waits for its plans.
            For a robot, choose the worst case from measuring a state to the tick that first applies its plan.
        lease : float, optional
            The daemon closes the session after so long without a request [s].
        time_to_live : float, optional
            Life of a plan after its state's time [s].
        fallback : ``"zero"``, ``"hold"``, callable or None
            What `Session.control` gives without a usable plan: zeros (muscles relax), the latest controls,
            what a function of the time and the latest controls returns, or an exception.
        snapshot : Snapshot, optional
            Go on from there, with its seed, whatever `seed` says, and its settings where nothing else is given.
        name : str, optional
            The session outlasts the daemon (where that has a folder `state`), and this client: only `Session.close`
            ends it, or its lease. Where there is one of that name already it is meant, as it is: `resumed`.

        Raises
        ------
        RefusedError
            There is no such task, or a setting that the daemon does not take.
        ArgumentError
            A setting that does not exist.
        """
        wanted = session_settings(latency, lease, time_to_live)
        opened = self._request(
            calls.open_session(task, seed, settings or {}, wanted, snapshot, name), outlasts=name is not None
        )
        if name is None:
            self._sessions.add(opened.session)
        try:
            session = Session(self, opened, self.describe_task(task), fallback, owned=True)
        except BaseException:
            if name is None:
                self._abandon(opened.session)
            raise
        session.name = name
        return session

    def attach(self, session: int, fallback: Fallback = "zero") -> Session:
        """Return a session that another client has opened, to watch and to tune it.

        Closing it here leaves it open at the daemon. `Session.initial` is the task's own initial state.

        Parameters
        ----------
        session : int
            Its number, as `Session.id` says.
        fallback : ``"zero"``, ``"hold"``, callable or None
            As for `open`.
        """
        task = self.describe_task(task_of(self.statistics(session).sessions, session))
        config = self._request(calls.get_config(session, 0))
        return Session(self, Opened(session, task.initial, config), task, fallback, owned=False)

    # ------------------------------------------------------------------------------------ the connection

    def _connect(self) -> None:
        """Open a fresh socket: replies to what the old one sent can no longer arrive."""
        import zmq

        if self._socket is not None:
            handshakes = self._wire.handshakes
            if not handshakes.refused:
                handshakes.check()
            self._wire.stale = self._wire.stale or handshakes.lost or handshakes.refused
            handshakes.close(self._socket)
            self._socket.close(0)
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.RECONNECT_IVL, RECONNECT)
        self._socket.setsockopt(zmq.MAXMSGSIZE, LONGEST)
        self._wire.handshakes.watch(self._socket)
        self._wait = -1
        try:
            self._socket.connect(self._wire.endpoint)
        except zmq.ZMQError as error:
            raise ArgumentError(f"cannot connect to {self._wire.endpoint}: {error}") from None

    @alone
    def _request(self, call: Call[T], channel: int = 0, outlasts: bool = False) -> T:
        """Send a request and wait for its answer, again over fresh connections where none comes.

        `outlasts` says that the request is about a session that outlasts the daemon.
        """
        waited = self._wire.timeout + call.extra
        for attempt in range(self._wire.retries + 1):
            if attempt or self._wire.handshakes.refused:
                self._connect()
            reply = self._exchange(call, channel, outlasts, time.monotonic() + waited)
            if reply is not None:
                return self._wire.result(call, reply)
        self._wire.handshakes.check()
        endpoint = self._wire.endpoint
        raise TimedOutError(f"no answer from {endpoint} within {waited:g} s{absence(endpoint)}")

    def _exchange(self, call: Call[T], channel: int, outlasts: bool, until: float) -> Any:
        """Send a request and return its reply, None when none has come by then.

        It is sent again where its session is on its way or outlasts a daemon that stops, and where the connection ends
        meanwhile: a daemon that was started again does not know of the first one.
        """
        handshakes = self._wire.handshakes
        asked = False  # whether the limit that the request exceeds is of the daemon that is there now
        while True:
            handshakes.check()
            if handshakes.lost:  # it may swallow what is sent until libzmq has made the next one
                self._connect()
            if self._wire.stale and call.body != "hello" and not self._greet(until):
                return None
            try:
                id, data = self._wire.encode(call.request, channel)
            except LimitError:
                if asked:
                    raise
                asked = self._wire.stale = True
                continue
            if not _send(self._socket, data):
                return None
            self._await_handshake(until)
            reply = self._await_reply(id, until)
            if time.monotonic() + PAUSE > until or (reply is None and not handshakes.lost):
                return reply
            if reply is not None and not is_coming(reply) and not (outlasts and is_stopping(reply)):
                return reply
            time.sleep(PAUSE)

    def _greet(self, until: float) -> bool:
        """Greet the daemon again, whose limits may be others; returns whether it has answered by then."""
        call = calls.hello()
        reply = self._exchange(call, 0, False, until)
        if reply is not None:
            self._wire.greet(self._wire.result(call, reply))
        return reply is not None

    def _await_reply(self, id: int, until: float) -> Any:
        """Return the reply with this id; None when the time is over or the connection has ended."""
        reply = None
        while reply is None and not self._wire.handshakes.lost and (left := until - time.monotonic()) > 0:
            reply = self._take(min(left, _LOOK), id)
            self._wire.handshakes.check()
        return reply

    def _await_handshake(self, until: float) -> None:
        """Wait until the daemon has let the latest connection in; raises when it does not."""
        handshakes = self._wire.handshakes
        while handshakes.pending and (left := until - time.monotonic()) > 0:
            handshakes.monitor.poll(int(left * 1e3) + 1)
            handshakes.check()

    @alone
    def _send(self, message: Any, channel: int) -> int:
        """Send a request without waiting; returns its id."""
        id, data = self._wire.encode(message, channel)
        if not _send(self._socket, data):
            raise TimedOutError(f"cannot send to {self._wire.endpoint}: it takes nothing more")
        return id

    def _abandon(self, session: int) -> None:
        """Close a session at the daemon without waiting for the answer."""
        self._sessions.discard(session)
        if self._socket is not None:
            self._send(calls.close_session(session).request, 0)

    @alone
    def _fill(self, box: Mailbox, wait: float) -> bool:
        """Put what has come into its mailboxes, waiting for this one; returns whether there is something in it."""
        until = time.monotonic() + wait
        self._take(0.0)
        while not box.replies and (left := until - time.monotonic()) > 0:
            self._take(left)
        return bool(box.replies)

    def _receive(self, box: Mailbox, judge: Judge, wait: float) -> Plan | None:
        """Return the newest plan of a mailbox, waiting for a first one."""
        until = time.monotonic() + wait
        while self._fill(box, until - time.monotonic()):
            plan = newest(box, judge)
            if plan is not None:
                return plan
        return None

    def _take(self, wait: float, id: int | None = None) -> Any:
        """Return the reply with this id, or None when the wait is over; others go to mailboxes and end it, too."""
        import zmq

        assert self._socket is not None
        flags = zmq.NOBLOCK if wait <= 0 else 0
        if not flags and (milliseconds := int(min(wait * 1e3 + 1, 2**31 - 1))) != self._wait:
            self._socket.setsockopt(zmq.RCVTIMEO, milliseconds)
            self._wait = milliseconds
        while True:
            try:
                channel, reply = self._wire.decode(self._socket.recv(flags))
            except zmq.Again:
                return None
            if id is not None and reply.id in (id, 0):
                return reply
            if channel in self._boxes:
                self._boxes[channel].put(reply)
            flags = zmq.NOBLOCK


def _send(socket: Any, data: bytes) -> bool:
    """Send without waiting; returns whether the connection took it."""
    import zmq

    try:
        socket.send(data, zmq.NOBLOCK)
    except zmq.Again:
        return False
    return True
