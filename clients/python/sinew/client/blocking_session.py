"""Sessions and streams of the client that waits for its answers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
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
    from sinew.client.blocking import Client

__all__ = ["Session", "Stream"]

T = TypeVar("T")


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
        with contextlib.suppress(NoSessionError):
            self._ask(calls.close_session(self.id))

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

    def _ask(self, call: Call[T], channel: int = 0) -> T:
        """Send a request about the session and wait for its answer."""
        return self._client._request(call, channel, self.name is not None)

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
        return self._ask(call)

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
        return self._ask(self._evaluate_call(state, ctrl, gradient, states))

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
        return self._configured(self._ask(call))

    def set_weight(self, term: str, weight: float | None = None, terminal: float | None = None) -> Config:
        """Change the running and the terminal weight of a term; None: as it is."""
        return self._configured(self._ask(calls.set_weight(self.id, term, weight, terminal)))

    def set_target(self, term: str, target: ArrayLike | None) -> Config:
        """Give a term a constant target, or (None) the task's own one again."""
        return self.tune(targets={term: target})

    def get_config(self, version: int = 0) -> Config:
        """Return a version of the configuration, 0: the one in force, with the table of all settings."""
        config = self._ask(calls.get_config(self.id, version))
        return config if version else self._configured(config)

    def revert(self, version: int) -> Config:
        """Put settings, weights and targets of an earlier version in force again, as a new version."""
        return self._configured(self._ask(calls.revert(self.id, version)))

    def reset(self, seed: int | None = None) -> State:
        """Begin again, with a new seed if one is given; returns the initial state. There is no plan in force then."""
        return self._restarted(self._ask(calls.reset(self.id, seed)))

    def snapshot(self) -> Snapshot:
        """Return where the session stands: what its next plan depends on beside the request.

        It is taken between two plans: while one is in progress the call waits for its end.
        """
        return self._ask(calls.take_snapshot(self.id))

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
        return self._went_back(self._ask(calls.restore(self.id, snapshot)))

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
        return self._begun(self.session._ask(call, self._box.channel))

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
        reply = self.session._ask(calls.stop_stream(self.session.id), self._box.channel)
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
