"""A session at a daemon over two connections: one for the loop, one for those who steer."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sinew.client.blocking import Client
from sinew.client.blocking_session import Session
from sinew.client.session import Fallback

if TYPE_CHECKING:
    from sinew.client.keys import Access
    from sinew.client.messages import Config

__all__ = ["Link"]

PATIENCE = 3.0  # for an answer of a daemon that runs, on a busy machine [s]
_LOADING = 60.0  # for the first import of a large model [s]


class Link:
    """An open session.

    Parameters
    ----------
    endpoint : str or None
        Address of the daemon; None: that of this user's daemon.
    task : str
        Name of the task.
    seed : int
        Of the session.
    settings : mapping
        Of the planner.
    like : Config, optional
        Settings, weights and targets to go on with; `settings` are over them.
    fallback : ``"zero"``, ``"hold"``, callable or None
        As for `Client.open`.
    access : Access, optional
        Keys for the daemon.

    Attributes
    ----------
    session : Session
        The loop's, for one thread at a time.
    config : Config
        In force, as far as it is known here, with the table of all settings.
    """

    def __init__(
        self,
        endpoint: str | None,
        task: str,
        seed: int,
        settings: Mapping[str, Any],
        *,
        like: Config | None = None,
        fallback: Fallback = "zero",
        access: Access | None = None,
    ) -> None:
        keys: Access = access or {}
        self._lock = threading.Lock()
        self._clients = [Client(endpoint, PATIENCE, **keys)]
        try:
            with Client(endpoint, _LOADING, **keys) as loader:
                loader.describe_task(task)
            planner = {**(like.planner if like else {}), **settings}
            life = like.session.get("time_to_live") if like else None
            self.session: Session = self._clients[0].open(task, seed, planner, time_to_live=life, fallback=fallback)
            if like:
                _copy_terms(self.session, like)
            self._clients.append(Client(endpoint, PATIENCE, **keys))
            self._steered = self._clients[1].attach(self.session.id)
            self.config = self._steered.get_config()
        except BaseException:
            self.close()
            raise

    @property
    def endpoint(self) -> str:
        """Address of the daemon."""
        return self._clients[0].endpoint

    def tune(self, **changes: Any) -> Config:
        """Change settings, weights and targets, as `Session.tune` does, from any thread."""
        with self._lock:
            self.config = replace(self._steered.tune(**changes), table=self.config.table)
            return self.config

    def renew(self) -> bool:
        """Ask what is in force, which renews the session's lease, from any thread; returns whether it has changed."""
        with self._lock:
            version, self.config = self.config.version, self._steered.get_config()
            return self.config.version != version

    def close(self) -> None:
        """Close the session and the connections; no answer is waited for."""
        with self._lock:
            for client in self._clients:
                client.close()


def _copy_terms(session: Session, like: Config) -> None:
    """Give a session the weights and targets of a configuration."""
    session.tune(
        weights={x.name: x.weight for x in like.terms if x.weight is not None},
        terminal_weights={x.name: x.terminal_weight for x in like.terms if x.terminal_weight is not None},
        targets={x.name: x.target if x.target.size else None for x in like.terms},
    )
