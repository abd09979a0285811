"""The closed loop of a body and its session, one step after another. All of it is one thread's."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from sinew.errors import BadPlanError, NoPlanError, NoSessionError, RefusedError
from sinew.loop.history import Recent
from sinew.loop.moving import POLL
from sinew.loop.pace import Pace
from sinew.loop.ration import Ration

if TYPE_CHECKING:
    from sinew.client.blocking_session import Session
    from sinew.client.plan import Plan
    from sinew.client.quantities import Trajectory
    from sinew.loop.body import Body

__all__ = ["ClosedLoop", "latency_of"]

_UNANSWERED = 5.0  # after which a state is sent again, beyond its deadline [s]
_WAY = 0.005  # from the daemon's plan to the body that moves by it [s]
_AGAIN = 0.5  # after which a state is sent again that was refused [s]


def latency_of(deadline: float, speed: float, longest: float) -> float:
    """Return the time from a state to its plan in force on the body's clock, at most the length of a plan [s]."""
    return min(speed * (deadline + _WAY), longest)


class ClosedLoop:
    """Steps a body under the plans of a session.

    In lockstep the body waits for each plan. In real time it goes on by the wall's clock, states are sent every
    `execute` steps once the one before is answered, and plans are taken when they come; a session's first plan is
    waited for.

    Attributes
    ----------
    waits : bool
        Whether it is in lockstep.
    execute : int
        Steps between two states.
    deadline : float
        For a plan in real time, and in lockstep where iterations do not bound its work [s].
    iterations : int
        Of each plan in lockstep; 0: as the settings say.
    bounded : bool
        Whether the settings bound the work of a plan.
    connected : bool
        Whether the daemon answers. In real time a body without a daemon goes on by the session's fallback.
    gone : bool
        The daemon does not know the session any more.
    plan, predicted : Plan, Trajectory or None
        The latest ones.
    age : float
        From sending the state of the latest plan to having it [s].
    asked : float
        Deadline of the latest plan [s]; 0: none.
    misses : int
        Plans after their deadline.
    always : bool
        Whether predicted states are wanted of each plan, whatever they cost.
    text : str
        What went wrong with the latest plan.
    """

    def __init__(self, body: Body, session: Session, *, execute: int, deadline: float, iterations: int) -> None:
        self.body = body
        self.session = session
        self.execute = execute
        self.deadline = deadline
        self.iterations = iterations
        self.waits = True
        self.bounded = False
        self.connected = True
        self.always = False
        self.pace = Pace()
        self.recent = Recent([term.name for term in session.task.terms], body.model.na)
        self.ctrl = np.zeros(body.model.nu)
        self.begin()

    def begin(self) -> None:
        """Forget what there was before a reset."""
        self.misses = 0
        self.recent.clear()
        self.take(self.session)
        self.plan: Plan | None = None
        self.predicted: Trajectory | None = None
        self.age = float("nan")

    def take(self, session: Session) -> None:
        """Go on with another session, or begin anew with this one, from the body's present state."""
        self.session = session
        self.gone = False
        self.asked = 0.0
        self.text = ""
        self._sent: float | None = None  # when the state was sent that waits for its plan
        self._stamp = -np.inf  # its time
        self._left = 0  # steps until the next state is sent
        self._ration = Ration()
        self._refused = -np.inf  # when the latest state was
        self.pace.restart(self.body.time)

    def set_waits(self, on: bool) -> None:
        """Change to lockstep, or to real time."""
        self.waits = on
        self._sent, self._left = None, 0
        self.pace.restart(self.body.time)

    # ------------------------------------------------------------------------------------------- time

    def advance(self) -> bool:
        """Take the next step, once it is due and has its plan; waits for both at most a moment.

        Returns
        -------
        bool
            Whether a step was taken, or a plan.
        """
        return self._lockstep() if self.waits else self._real_time()

    def idle(self) -> None:
        """Take the plan that was waited for when time stood still."""
        self._receive(0.0)

    def _lockstep(self) -> bool:
        if self._left <= 0:
            if self._sent is None:
                self._send(0.0 if self.bounded or self.iterations else self.deadline)
            came = self._receive(POLL)
            self.pace.skip(self.body.time)
            return came
        if not self.pace.wait(self.body.time, POLL):
            return False
        self.pace.skip(self.body.time)
        self._step()
        return True

    def _real_time(self) -> bool:
        first = self.session.current_plan is None and self.connected
        if not first and not self.pace.wait(self.body.time, POLL):
            return False
        came = self._receive(POLL if first else 0.0)
        if self._sent is None and self._left <= 0:
            self._send(self.deadline)
            self._left = self.execute
        if first:
            self.pace.restart(self.body.time)
            return came
        self._step()
        return True

    def _step(self) -> None:
        self.ctrl = self.session.control(self.body.time)
        self.body.step(self.ctrl)
        self._left -= 1
        self.pace.mark(self.body.time)

    # ------------------------------------------------------------------------------------------ plans

    @property
    def between_plans(self) -> bool:
        """Whether the next thing in lockstep is a plan."""
        return self._left <= 0

    def _send(self, deadline: float) -> None:
        now = time.monotonic()
        if now - self._refused < _AGAIN:
            time.sleep(POLL)
            return
        states = self.always or self._ration.due(now)
        state = self.body.state
        iterations = self.iterations if self.waits else 0
        self.session.send(state, deadline, iterations=iterations, states=states)
        self._sent, self._stamp, self.asked = now, self.body.time, deadline

    def _receive(self, wait: float) -> bool:
        """Take the answer to the state that was sent, if it has come; returns whether it has."""
        if self._sent is None:
            return False
        try:
            plan = self.session.receive(wait)
        except (NoPlanError, BadPlanError) as error:
            return self._answered(str(error))  # the plan before goes on
        except RefusedError as error:
            self.gone = isinstance(error, NoSessionError)
            self.text = str(error)
            self._sent, self._refused = None, time.monotonic()
            return False
        if plan is not None and plan.state_time >= self._stamp:
            self._take(plan, time.monotonic() - self._sent)
            return self._answered(plan.remark)
        if not self.waits and time.monotonic() - self._sent > _UNANSWERED + self.asked:
            self._sent = None
        return False

    def _answered(self, text: str) -> bool:
        self.text = text
        self._sent = None
        if self.waits:
            self._left = self.execute
        return True

    def _take(self, plan: Plan, age: float) -> None:
        self.plan, self.age = plan, age
        self._ration.learn(plan)
        self.predicted = plan.states or self.predicted
        self.misses += not plan.deadline_met
        self.recent.add(self.body.time, plan, age, self.asked, self.body.data.act)
