"""The client that waits for its answers."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, TypeVar

from numpy.typing import ArrayLike

from sinew.client import calls, schema
from sinew.client.alone import alone
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
from sinew.client.records import RecordSocket
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
from sinew.errors import ArgumentError, RefusedError, StateError, TimedOutError
from sinew.state import State, StateLike

__all__ = ["Client", "Session", "Stream"]

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
        opened = self._request(calls.open_session(task, seed, settings or {}, wanted, snapshot, name))
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
            self._wire.handshakes.close(self._socket)
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
    def _request(self, call: Call[T], channel: int = 0) -> T:
        """Send a request and wait for its answer, again over fresh connections where none comes."""
        for attempt in range(self._wire.retries + 1):
            if attempt or self._wire.handshakes.refused:
                self._connect()
            reply = self._exchange(call, channel)
            if reply is not None:
                return self._wire.result(call, reply)
        self._wire.handshakes.check()
        raise TimedOutError(f"no answer from {self._wire.endpoint} within {self._wire.timeout + call.extra:g} s")

    def _exchange(self, call: Call[T], channel: int) -> Any:
        """Send a request and return its reply, None when none has come in time.

        It is sent again where its session is on its way, and where the connection ends meanwhile: a daemon that was
        started again does not know of the first one.
        """
        handshakes = self._wire.handshakes
        until = time.monotonic() + self._wire.timeout + call.extra
        while True:
            handshakes.check()
            if handshakes.lost:  # it may swallow what is sent until libzmq has made the next one
                self._connect()
            id, data = self._wire.encode(call.request, channel)
            if not _send(self._socket, data):
                return None
            self._await_handshake(until)
            reply = self._await_reply(id, until)
            if time.monotonic() + PAUSE > until or (reply is None and not handshakes.lost):
                return reply
            if reply is not None and not is_coming(reply):
                return reply
            time.sleep(PAUSE)

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


class Session(SessionBase):
    """A session: one task, its planner at the daemon, and the plan in force. `Client.open` makes it.

    It is a context manager, which closes it. Sessions of one client do not disturb each other.
    """

    def __init__(self, client: Client, opened: Opened, task: TaskDescription, fallback: Fallback, owned: bool) -> None:
        self._box = Mailbox(client._wire.open_channel())
        super().__init__(client._wire, opened, task, fallback, owned)
        self._client = client
        client._boxes[self._box.channel] = self._box

    def close(self) -> None:
        """Close the session at the daemon, unless another client has opened it."""
        self._client._boxes.pop(self._box.channel, None)
        if not self._owned:
            return
        self._owned = False
        self._client._sessions.discard(self.id)
        try:
            self._client._request(calls.close_session(self.id))
        except RefusedError as error:
            if not is_gone(error):
                raise

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        elif self._owned and self.name is None:  # the daemon may be what has failed: its answer is not waited for
            self._owned = False
            self._client._abandon(self.id)

    # ------------------------------------------------------------------------------------------- plans

    def plan(
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
        """Send a state and wait for its plan, which is then in force for `control`.

        Parameters
        ----------
        state : State, mapping or MjData
            As measured: time, qpos and qvel are needed. The daemon estimates act where it is left out, and
            leaves mocap bodies where they were.
        deadline : float
            The daemon's time to plan, from the arrival of the request [s]; 0: none, then iterations must
            bound the work.
        iterations, candidates : int
            Stop after so many iterations, and so many candidates of the last one: reproduces a plan bit for
            bit. 0: as the settings say.
        states : bool
            Whether the predicted states are wanted.
        gains : int
            Rows behind the lead whose feedback gains are wanted, with the predicted states: `feedback`.
            Planners that make none refuse it.
        applied : pair of array_like, (rows,) and (rows, nu), optional
            Times [s] and controls that were applied since the last state: improves the estimate of act.

        Raises
        ------
        ArgumentError
            The state: a shape, or a number that is not finite.
        NoPlanError
            Every candidate diverged, or a newer state took this one's place.
        BadPlanError
            The plan must not be used.

        Notes
        -----
        On every error the plan before stays in force.
        """
        call = self._plan_call(state, deadline, iterations, candidates, states, gains, applied)
        self._taken = self._sent  # answers to states that were sent on are of no use from here on
        return self._client._request(call)

    def send(
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
        self._sent = self._client._send(call.request, self._box.channel)

    def receive(self, wait: float = 0.0) -> Plan | None:
        """Take the newest plan that has come for a state that was sent; it is then in force.

        Parameters
        ----------
        wait : float
            How long to wait for one [s]; 0: look only.

        Returns
        -------
        Plan or None
            None when none has come. Answers to states that a newer one replaced are dropped.
        """
        return self._client._receive(self._box, self._judge, wait)

    def evaluate(
        self,
        state: StateLike,
        ctrl: ArrayLike | None = None,
        *,
        gradient: bool = False,
        states: bool = False,
    ) -> Evaluation:
        """Return the cost of controls that are applied from a state, under the session's weights and targets.

        Parameters
        ----------
        state : State, mapping or MjData
        ctrl : array_like, (steps, nu), optional
            Without controls only the state is judged.
        gradient, states : bool
            Whether derivatives of the cost, and the states, are wanted.
        """
        return self._client._request(self._evaluate_call(state, ctrl, gradient, states))

    # ---------------------------------------------------------------------------------------- settings

    def tune(
        self,
        *,
        weights: Mapping[str, float] | None = None,
        terminal_weights: Mapping[str, float] | None = None,
        targets: Mapping[str, ArrayLike | None] | None = None,
        **settings: Any,
    ) -> Config:
        """Change settings, weights and targets while the session runs.

        One message: all of it takes effect between two iterations, or nothing does.

        Parameters
        ----------
        weights, terminal_weights : mapping of float, optional
            By the names of terms.
        targets : mapping of array_like, optional
            By the names of terms: a constant in place of the task's own target; None: the task's own.
        **settings
            Of the planner and of the session by name, such as ``adam_rate=0.02, latency=0.03``.

        Returns
        -------
        Config
            Now in force, with its version.
        """
        call = calls.tune(self.id, settings, weights or {}, terminal_weights or {}, targets or {})
        return self._configured(self._client._request(call))

    def set_weight(self, term: str, weight: float | None = None, terminal: float | None = None) -> Config:
        """Change the running and the terminal weight of a term; None: as it is."""
        return self._configured(self._client._request(calls.set_weight(self.id, term, weight, terminal)))

    def set_target(self, term: str, target: ArrayLike | None) -> Config:
        """Give a term a constant target, or (None) the task's own one again."""
        return self.tune(targets={term: target})

    def get_config(self, version: int = 0) -> Config:
        """Return a version of the configuration, 0: the one in force, with the table of all settings."""
        config = self._client._request(calls.get_config(self.id, version))
        return config if version else self._configured(config)

    def revert(self, version: int) -> Config:
        """Put settings, weights and targets of an earlier version in force again, as a new version."""
        return self._configured(self._client._request(calls.revert(self.id, version)))

    def reset(self, seed: int | None = None) -> State:
        """Begin again, with a new seed if one is given; returns the initial state. There is no plan in force then."""
        return self._restarted(self._client._request(calls.reset(self.id, seed)))

    def snapshot(self) -> Snapshot:
        """Return where the session stands: what its next plan depends on beside the request.

        It is taken between two plans: while one is in progress the call waits for its end.
        """
        return self._client._request(calls.take_snapshot(self.id))

    def restore(self, snapshot: Snapshot) -> Config:
        """Go on from a snapshot of this or another session: its seed, settings, weights, targets, warm start.

        The next plans are those that the session of the snapshot made or makes of the same states with the same
        iterations, bit for bit. There is no plan in force until the first one comes. A snapshot that does not fit
        is refused and changes nothing.

        Returns
        -------
        Config
            In force now: a new version of this session's.
        """
        return self._went_back(self._client._request(calls.restore(self.id, snapshot)))

    def statistics(self) -> Statistics:
        """Return the counters of this session."""
        return self._client.statistics(self.id)

    # --------------------------------------------------------------------------------- continuous mode

    def stream(
        self,
        lease: float = 0.5,
        deadline: float = 0.04,
        period: float = 0.0,
        iterations: int = 0,
        states: bool = False,
        gains: int = 0,
    ) -> Stream:
        """Begin continuous mode: the daemon refines the newest state that it has and sends every better plan.

        Parameters
        ----------
        lease : float
            The daemon ends the mode after so long without a state [s]; at least 0.05.
        deadline : float
            From a state to its first plan; later is a miss [s].
        period : float
            Refinement of a state before a newer one takes its place [s]; 0: one iteration.
        iterations : int
            Most iterations for one state; 0: until a newer one comes.
        states : bool
            Ask for the predicted states of each plan; each costs the daemon the time of a rollout.
        gains : int
            Rows behind the lead whose feedback gains are wanted, with the predicted states: `feedback`. A planner
            that makes none refuses it; where the session changes to such a one its plans have none.

        Examples
        --------
        >>> with session.stream(lease=0.5, deadline=0.02) as stream:
        ...     while running:
        ...         stream.send(measured())
        ...         stream.receive()  # the newest plan, if one has come, is now in force
        ...         apply(session.control(now()))
        """
        stream = Stream(self)
        stream.renew(lease, deadline, period, iterations, states, gains)
        return stream


class Stream(StreamBase):
    """Continuous mode of a session; nothing here waits for a plan. A context manager, which stops it.

    As an iterator it gives plan after plan, waiting for each at most the client's time-out, until it is
    stopped.
    """

    def __init__(self, session: Session) -> None:
        self._box = Mailbox(session._wire.open_channel())
        super().__init__(session)
        self.session = session
        self._client = session._client

    def renew(
        self,
        lease: float = 0.5,
        deadline: float = 0.04,
        period: float = 0.0,
        iterations: int = 0,
        states: bool = False,
        gains: int = 0,
    ) -> StreamReply:
        """Begin the mode, or change the terms of what runs; parameters as for `Session.stream`."""
        self._terms = (lease, deadline, period, iterations, states, gains)
        call = calls.stream(self.session.id, *self._terms)
        self._client._boxes[self._box.channel] = self._box
        return self._begun(self._client._request(call, self._box.channel))

    def _begin_again(self) -> None:
        self._client._send(calls.stream(self.session.id, *self._terms).request, self._box.channel)

    def send(self, state: StateLike, applied: Applied | None = None) -> None:
        """Send a state, as `Session.plan` takes it, and go on. Renews the lease."""
        self._client._send(self._state(state, applied), self._box.channel)

    def receive(self, wait: float = 0.0) -> Plan | None:
        """Take all that has come; the newest plan is then in force.

        Parameters
        ----------
        wait : float
            How long to wait for a first plan [s]; 0: look only.

        Returns
        -------
        Plan or None
            None when none has come.

        Raises
        ------
        EndedError
            There will be no more.
        NoPlanError
            The latest answer is that every candidate diverged.
        BadPlanError, RefusedError
            A plan, or a state, was refused; there may be more to take.
        """
        return self._client._receive(self._box, self._judge, wait)

    def stop(self) -> StreamReply:
        """End the mode and wait for the daemon's answer. The plan in force stays until it expires."""
        reply = self._client._request(calls.stop_stream(self.session.id), self._box.channel)
        self._client._boxes.pop(self._box.channel, None)
        return self._begun(reply)

    def __iter__(self) -> Iterator[Plan]:
        while self.running:
            plan = self.receive(self._client._wire.timeout)
            if plan is None:
                raise TimedOutError(f"no plan has come within {self._client._wire.timeout:g} s")
            yield plan

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self.running:
            self.stop()
        elif self.running:
            self.running = False
            self._client._send(calls.stop_stream(self.session.id).request, self._box.channel)
