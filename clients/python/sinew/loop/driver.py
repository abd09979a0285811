"""A task at a daemon, as a page shows and steers it: a thread moves the body under the plans of a session."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from sinew.client.keys import Access, PathOrKey
from sinew.client.session import Fallback
from sinew.errors import ArgumentError, NoSessionError, SinewError, StateError, TimedOutError
from sinew.loop.body import Body
from sinew.loop.closed import ClosedLoop, latency_of
from sinew.loop.link import Link
from sinew.loop.moving import POLL, Moving
from sinew.loop.pace import check_speed
from sinew.loop.source import History, Mode

if TYPE_CHECKING:
    from sinew.client.messages import Config, TaskDescription
    from sinew.client.serving import Daemon

__all__ = ["Driver"]

_WATCH = 0.5  # between two looks at the daemon [s]


class Driver(Moving):
    """A closed loop that any thread may look at and steer: a `Source`.

    One thread steps the body and talks to its session; it never waits for those who look. A second one looks after
    the daemon: where that does not answer, `Frame.connected` is False and the body holds (lockstep), or goes on by the
    fallback (real time). Once a daemon answers at the same address, or the private one was started again, a new
    session goes on from the body's present state with the same settings, weights and targets.

    Parameters
    ----------
    task : str
        Name of the task at the daemon.
    endpoint : str, optional
        Address of the daemon; None: that of this user's daemon.
    start : callable, optional
        Starts a private daemon in its place, and again when it has died; it is stopped at the end.
    mode : str
        ``"lockstep"`` or ``"real time"``.
    seed : int
        Of the session.
    settings : mapping, optional
        Of the planner.
    execute : int
        Steps between two states that are sent.
    deadline : float
        For a plan [s]. In lockstep it counts only where neither settings nor `iterations` bound a plan's work.
    iterations : int
        Of each plan in lockstep; 0: as the settings say.
    fallback : ``"zero"``, ``"hold"`` or callable
        What acts without a usable plan, as for `Client.open`.
    paused : bool
        Whether time stands still at first.
    server_key, key_file : str or path, optional
        Keys, as of `sinew.Client`. The role must be tune or admin.

    Raises
    ------
    TimedOutError
        There is no daemon.
    RefusedError
        There is no such task, or a setting that the daemon does not take.
    NotFoundError
        The body's model is not on this machine.
    """

    modes: tuple[Mode, ...] = ("lockstep", "real time")
    duration: float | None = None

    def __init__(
        self,
        task: str,
        *,
        endpoint: str | None = None,
        start: Callable[[], Daemon] | None = None,
        mode: Mode = "lockstep",
        seed: int = 0,
        settings: Mapping[str, Any] | None = None,
        execute: int = 16,
        deadline: float = 0.04,
        iterations: int = 0,
        fallback: Fallback = "zero",
        paused: bool = False,
        server_key: PathOrKey | None = None,
        key_file: PathOrKey | None = None,
    ) -> None:
        if execute < 1 or not deadline > 0:
            raise ArgumentError(f"execute and deadline: {execute} and {deadline:g}, expected both to be more than 0")
        self._name, self._seed, self._fallback = task, seed, fallback
        self._endpoint, self._serve = endpoint, start
        self.access: Access = {"server_key": server_key, "key_file": key_file}
        self._daemon: Daemon | None = None
        self._deadline, self._mode, self._speed = deadline, _mode_of(mode), 1.0
        self._changed = threading.Lock()  # held for moments: of what several threads change
        self._attention = threading.Event()
        self._next: Link | None = None
        self._links: list[Link] = []  # that are open
        self._lost = ""
        try:
            self._start_daemon()
            self._link = self._open(settings or {}, None)
            self._links.append(self._link)
            session = self._link.session
            body = Body.of_task(session.task)
            body.reset(session.initial)
            self._loop = ClosedLoop(body, session, execute=execute, deadline=deadline, iterations=iterations)
            self._loop.set_waits(self._mode == "lockstep")
            super().__init__(body, self._loop.pace, paused)
        except BaseException:
            self._release()
            raise
        self._start(self._watch)

    # ---------------------------------------------------------------------------------- what there is

    @property
    def task(self) -> TaskDescription:
        """What the body shall do."""
        return self._link.session.task

    @property
    def endpoint(self) -> str:
        """Address of the daemon."""
        return self._link.endpoint

    @property
    def session(self) -> int:
        """Number of the session at the daemon; another one after `reopen` and where the daemon was lost."""
        return self._link.session.id

    def history(self) -> History:
        """Return how the latest seconds were."""
        return self._loop.recent.history()

    def settings(self) -> Config:
        """Return settings, weights and targets in force, with the table of all settings."""
        return self._link.config

    def close(self) -> None:
        """End the threads, the session and a private daemon; a second call does nothing."""
        with self._changed:
            self._closing = True
        self._attention.set()
        super().close()
        self._release()

    def _release(self) -> None:
        for link in self._links:
            link.close()
        self._links = []
        if self._daemon is not None:
            self._daemon.stop()

    # ------------------------------------------------------------------------------------------- time

    def set_speed(self, speed: float) -> None:
        """Set the body's seconds in a second, such as 0.25 for slow motion; lockstep may be slower."""
        self._retime(self._mode, check_speed(speed))
        super().set_speed(speed)

    def set_mode(self, mode: Mode) -> None:
        """Change between ``"lockstep"`` and ``"real time"``."""
        self._retime(_mode_of(mode), self._speed)
        self._ask(lambda: self._loop.set_waits(mode == "lockstep"))

    def reset(self, seed: int | None = None) -> None:
        """Begin again, with another seed if one is given."""

        def do() -> None:
            if not self._lost:
                self._link.session.reset(seed)
            self._paused = self._paused and not self._body.diverged
            self._body.reset(self._link.session.initial)
            self._loop.begin()

        self._seed = self._seed if seed is None else seed
        self._ask(do)

    # ------------------------------------------------------------------------------------------ steering

    def set_ctrl(self, ctrl: Mapping[int, float]) -> None:
        """Raise `StateError`: plans choose the controls."""
        raise StateError("plans choose the controls of this body")

    def tune(
        self,
        *,
        weights: Mapping[str, float] | None = None,
        terminal_weights: Mapping[str, float] | None = None,
        targets: Mapping[str, ArrayLike | None] | None = None,
        **settings: Any,
    ) -> Config:
        """Change settings, weights and targets at the daemon, as `Session.tune` does; returns what is in force.

        It goes over a connection of its own: no plan is waited for.
        """
        if self._lost:
            raise StateError(self._lost)
        link = self._next or self._link
        config = link.tune(weights=weights, terminal_weights=terminal_weights, targets=targets, **settings)
        self._dirty = True
        return config

    def reopen(self, **settings: Any) -> None:
        """Begin a new session with settings that cannot change in a running one, such as ``horizon=128``.

        Other settings, weights and targets stay, and the body goes on from where it is. It is ready when this returns;
        on errors the session before goes on.
        """
        if self._lost:
            raise StateError(self._lost)
        self._hand_over(self._open(settings, (self._next or self._link).config))

    # ------------------------------------------------------------------------------------------ the loop

    def _obey(self) -> None:
        """Do what was asked for, and take over a new session."""
        super()._obey()
        with self._changed:
            link, self._next = self._next, None
            self._link = link or self._link
        if link is not None:
            self._loop.take(link.session)
            self._dirty = True
        self._loop.bounded = _bounded(self._link.config)

    def _move(self) -> bool:
        before = self._loop.text
        self._loop.always = self._single  # who looks step by step sees each plan
        try:
            moved = self._loop.advance()
        except TimedOutError:  # the connection takes nothing more
            time.sleep(POLL)
            return False
        if self._loop.gone:
            self._attention.set()
        self._dirty = self._dirty or self._loop.text != before
        return moved

    def _still(self) -> None:
        self._loop.idle()

    def _stepped(self) -> bool:
        return not self._loop.waits or self._loop.between_plans

    def _about(self) -> dict[str, Any]:
        loop = self._loop
        return {
            "mode": "lockstep" if loop.waits else "real time",
            "plan": loop.plan,
            "predicted": loop.predicted,
            "age": loop.age,
            "deadline": loop.asked,
            "misses": loop.misses,
            "cost": loop.plan.cost_now if loop.plan else float("nan"),
            "connected": not self._lost,
            "text": self._lost or self._said or loop.text,
            "config": self._link.config,
        }

    # ---------------------------------------------------------------------------------------- the daemon

    def _start_daemon(self) -> None:
        """Start the private daemon, if there shall be one and none runs."""
        if self._serve is not None and (self._daemon is None or not self._daemon.running):
            if self._daemon is not None:
                self._daemon.stop()
            self._daemon = self._serve()
            self._endpoint = self._daemon.endpoint

    def _open(self, settings: Mapping[str, Any], like: Config | None) -> Link:
        link = Link(
            self._endpoint, self._name, self._seed, settings, like=like, fallback=self._fallback, access=self.access
        )
        try:
            self._set_latency(link, self._mode, self._speed)
        except BaseException:
            link.close()
            raise
        return link

    def _set_latency(self, link: Link, mode: Mode, speed: float) -> None:
        """Tell the daemon how long after a state its plan is in force."""
        latency = 0.0
        if mode != "lockstep":
            longest = link.config.planner["horizon"] * link.session.model.timestep
            latency = latency_of(self._deadline, speed, longest)
        if link.config.session["latency"] != latency:
            link.tune(latency=latency)

    def _retime(self, mode: Mode, speed: float) -> None:
        """Tell the daemon of another mode or speed, if it answers: the next session is told anyway.

        Where it fails, both stay as they were.
        """
        if not self._lost:
            self._set_latency(self._next or self._link, mode, speed)
        self._mode, self._speed = mode, speed

    def _hand_over(self, link: Link) -> None:
        """Let the loop go on with a new session."""
        with self._changed:
            closing = self._closing
            if not closing:
                self._links.append(link)
                self._next = link
        if closing:
            link.close()
            return
        self._found()
        self._wake.set()

    def _found(self) -> None:
        self._lost = ""
        self._loop.connected = self._dirty = True

    def _lose(self, why: str) -> None:
        waits = "the body waits" if self._mode == "lockstep" else "the body goes on without plans"
        self._lost = f"{why}; {waits}"
        self._loop.connected = False
        self._dirty = True

    def _watch(self) -> None:
        """Look after the daemon until the end."""
        while not self._closing:
            self._attention.wait(_WATCH)
            self._attention.clear()
            self._close_links()
            try:
                if not self._closing:
                    self._look()
            except SinewError as error:
                self._lose(str(error))

    def _close_links(self) -> None:
        """Close those that the loop does not use any more."""
        with self._changed:
            old = [link for link in self._links if link not in (self._link, self._next)]
            self._links = [link for link in self._links if link not in old]
        for link in old:
            link.close()

    def _look(self) -> None:
        """Ask the daemon for the settings in force; go on with a new session where the one before is lost."""
        link = self._next or self._link
        if self._daemon is not None and not self._daemon.running:
            self._lose("the daemon has ended, another one is started")
            self._start_daemon()
        elif not self._loop.gone:
            with contextlib.suppress(NoSessionError):
                self._dirty = link.renew() or self._dirty
                if self._lost:
                    self._found()
                return
        if not self._lost:
            self._lose("the daemon has lost the session, another one is opened")
        self._hand_over(self._open({}, link.config))


def _mode_of(mode: str) -> Mode:
    for known in Driver.modes:
        if mode == known:
            return known
    raise ArgumentError(f"mode: {mode!r}, expected one of {', '.join(map(repr, Driver.modes))}")


def _bounded(config: Config) -> bool:
    """Return whether settings bound the work of a plan without a deadline, as the daemon sees it."""
    planner = config.planner
    own = f"{planner.get('planner')}_iterations"
    return bool(planner.get(own if own in planner else "iterations", 0))
