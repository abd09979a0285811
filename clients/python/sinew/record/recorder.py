"""Records sessions of a daemon into a file, in a thread of its own."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import sinew
from sinew._extras import require
from sinew.client import Client, records
from sinew.client.keys import Access, PathOrKey
from sinew.client.messages import Hello
from sinew.errors import FileError, NotFoundError, RefusedError, SinewError, StateError, TimedOutError
from sinew.record.beside import Beside
from sinew.record.writer import RecordingWriter

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Progress", "Recorder", "Which"]

Which = int | Literal["all", "next"]
"""A session by its number, all of them, or the next one that opens."""

_PAUSE = 0.05  # between looks at what has come: many records at a time cost less than one by one [s]
_QUIET = 1.0  # without a record before the daemon is asked whether it is there [s]
_PATIENCE = 5.0  # for its answer [s]
_FLUSH = 1.0  # between handing what there is to the system [s]


@dataclass(frozen=True)
class Progress:
    """How a recording goes.

    Attributes
    ----------
    running : bool
        Whether records are still written.
    sessions : tuple of int
        That something was recorded of.
    records, plans : int
        In the file.
    gaps, lost : int
        How often records were lost, and how many. After each a new snapshot follows.
    seconds : float
        From the first to the latest record [s].
    size : int
        Of the file [bytes].
    text : str
        What a user should know now, or how it ended.
    """

    running: bool = True
    sessions: tuple[int, ...] = ()
    records: int = 0
    plans: int = 0
    gaps: int = 0
    lost: int = 0
    seconds: float = 0.0
    size: int = 0
    text: str = ""


class Recorder:
    """Writes what happens in sessions of a daemon to a file, from `start` to `stop`. A context manager.

    Parameters
    ----------
    path : path
        A new file.
    which : int or str
        Number of a session, ``"all"``, or ``"next"``: the next one that opens.
    endpoint : str, optional
        Address of the daemon; by default that of this user's.
    task : str, optional
        Record sessions on this task alone.
    force : bool
        Whether a file that is there is replaced.
    rate : float
        Most messages a second and session for other programs (scene, joints, figures); 0: none.
    server_key, key_file : str or path, optional
        Keys, as of `sinew.Client`. The role must be admin: records tell of the sessions of all.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        which: Which = "next",
        endpoint: str | None = None,
        *,
        task: str | None = None,
        force: bool = False,
        rate: float = 30.0,
        server_key: PathOrKey | None = None,
        key_file: PathOrKey | None = None,
    ) -> None:
        require("record")
        self.path = os.fspath(path)
        self._which, self._endpoint, self._task = which, endpoint, task
        self._force, self._rate = force, rate
        self._keys: Access = {"server_key": server_key, "key_file": key_file}
        self._progress = Progress(running=False)
        self._error: SinewError | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def progress(self) -> Progress:
        """How it goes; any thread may look."""
        return self._progress

    @property
    def error(self) -> SinewError | None:
        """Why it ended before it was stopped: the disk is full, or the daemon is gone. None: all is well."""
        return self._error

    def start(self) -> None:
        """Begin.

        Raises
        ------
        NotFoundError
            There is no such session.
        FileError
            The file is there already or cannot be written.
        TimedOutError, RefusedError
            No daemon answers, or it has no records.
        """
        if self._thread is not None:
            raise StateError("a recorder starts once")
        client = Client(self._endpoint, timeout=_PATIENCE, **self._keys)
        try:
            if not client.hello.records:
                why = f": they need the role admin, this key has {client.hello.role}" if client._wire.keys else ""
                raise RefusedError(f"the daemon at {client.endpoint} has no records{why}")
            known = {session.session: session.task for session in client.statistics().sessions}
            if isinstance(self._which, int) and self._which not in known:
                there = ", ".join(f"{id} ({task})" for id, task in known.items()) or "none"
                raise NotFoundError(f"there is no session {self._which} at {client.endpoint}; open are: {there}")
            writer = RecordingWriter(self.path, _about(client), self._force)
            try:
                worker = _Worker(self, client, writer, known)
            except BaseException:
                writer.close()
                raise
        except BaseException:
            client.close()
            raise
        self._progress = Progress()
        self._thread = threading.Thread(target=self._run, args=(worker,), name="recorder", daemon=True)
        self._thread.start()

    def stop(self) -> Progress:
        """End and close the file; returns how it went. A second call does nothing."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        return self._progress

    def __enter__(self) -> Recorder:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self, worker: _Worker) -> None:
        try:
            worker.run()
        except SinewError as error:
            self._error = error
        except Exception as error:
            self._error = StateError(f"the recorder of {self.path} has failed: {type(error).__name__}: {error}")
            raise
        finally:
            self._progress = worker.close()
            if self._error is not None:
                self._progress = replace(self._progress, text=str(self._error))


def _about(client: Client) -> Mapping[str, str]:
    """Return versions of everything that takes part."""
    hello: Hello = client.hello
    return {
        "recorder": sinew.__version__,
        "daemon": hello.version,
        "protocol": str(hello.protocol),
        "number": hello.number,
        "backends": ", ".join(hello.backends),
        "endpoint": client.endpoint,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }


@functools.cache
def _whose(topic: str) -> tuple[int, str]:
    """Return the session and the kind of a record."""
    session, kind, _ = topic.split(" ")
    return int(session), kind


class _Worker:
    """What the thread does: takes records, writes them, and looks after what was lost."""

    def __init__(self, recorder: Recorder, client: Client, writer: RecordingWriter, known: Mapping[int, str]) -> None:
        self._recorder, self._client, self._writer = recorder, client, writer
        self._which, self._task = recorder._which, recorder._task
        self._known = set(known)  # open before: not the next one
        self._latest: dict[int, int] = {}  # number of the latest record by session
        self._beside: dict[int, Beside] = {}
        self._passed: set[int] = set()  # sessions on other tasks
        self._records = self._plans = self._gaps = self._lost = 0
        self._first = self._last = 0
        self._text = ""
        self._done = False
        self._missed = 0  # times in a row that the daemon did not know the session
        self._topic = self._which if isinstance(self._which, int) else None
        self._socket = client.records(self._topic)

    def run(self) -> None:
        """Take records until the end."""
        stopping = self._recorder._stopping
        heard = flushed = time.monotonic()
        while not self._done:
            last = stopping.wait(_PAUSE)  # one more look, for what came before
            batch = self._socket.receive_many()
            with self._writer.writing():
                for topic, data in batch:
                    self._take(topic, data)
            now = time.monotonic()
            if batch:
                heard = now
            elif now - heard > _QUIET and not last:
                self._ask()
                heard = time.monotonic()
            if now - flushed > _FLUSH:
                with self._writer.writing():
                    self._writer.flush()
                flushed = now
            self._recorder._progress = self._report(running=True)
            if last:
                return

    def close(self) -> Progress:
        """Close the file and the connections."""
        self._socket.close()
        with contextlib.suppress(SinewError):
            self._client.close()
        try:
            self._writer.close()
        except FileError as error:
            self._recorder._error = self._recorder._error or error
        return self._report(running=False)

    def _report(self, running: bool) -> Progress:
        return Progress(
            running,
            tuple(self._latest),
            self._records,
            self._plans,
            self._gaps,
            self._lost,
            (self._last - self._first) * 1e-9,
            self._writer.size,
            self._text,
        )

    # ------------------------------------------------------------------------------------------ records

    def _take(self, topic: str, data: bytes) -> None:
        """Write a record, if it is one that is wanted."""
        session, kind = _whose(topic)
        if session in self._passed or self._done:
            return
        record = records.parse(data)
        if session not in self._latest and not self._wants(session, kind, record):
            return
        number, time = record.number, round(record.time * 1e9)
        if number != self._latest.get(session, number - 1) + 1:
            self._lose(session, number)
        self._latest[session] = number
        self._first = self._first or time
        self._last = time
        self._writer.add(session, kind, data, number, time)
        self._records += 1
        self._plans += kind == "plan"
        if kind == "open" and session not in self._beside:
            self._describe(session, record.open)
        if session in self._beside:
            self._beside[session].take(kind, record, time)
        if kind == "close" and self._topic is not None:
            self._text, self._done = "the session was closed", True

    def _wants(self, session: int, kind: str, record: Any) -> bool:
        """Return whether a session is recorded of which this is the first record; that is one that says its task."""
        if kind != "open":
            return False
        known = self._which == "next" and session in self._known
        if known or (self._task is not None and record.open.task != self._task):
            self._passed.add(session)
            return False
        if self._which == "next" and self._topic is None:
            self._topic = session
            self._socket.subscribe(session)
            self._socket.unsubscribe(None)
        return True

    def _lose(self, session: int, number: int) -> None:
        """Count what was lost before a record, and subscribe anew: then a snapshot follows."""
        self._gaps += 1
        self._lost += number - self._latest[session] - 1
        self._text = f"{self._lost} records were lost; what follows begins with a new snapshot"
        self._socket.unsubscribe(self._topic)
        self._socket.subscribe(self._topic)

    def _describe(self, session: int, opened: Any) -> None:
        """Write what a session is, for people and for other programs."""
        names = ("task", "task_text", "model", "model_file", "checksum", "seed", "version", "number", "backend")
        self._writer.add_metadata(f"session {session}", {name: getattr(opened, name) for name in names})
        self._beside[session] = Beside(self._writer, session, opened, self._recorder._rate)
        self._text = self._beside[session].text or self._text

    # ------------------------------------------------------------------------------------------- silence

    def _ask(self) -> None:
        """Ask the daemon whether it is there, and the session open, when nothing comes."""
        try:
            sessions = {session.session for session in self._client.statistics().sessions}
        except TimedOutError:
            raise TimedOutError(
                f"the daemon at {self._client.endpoint} does not answer any more;"
                f" {self._recorder.path} is complete up to there"
            ) from None
        gone = self._topic is not None and self._topic not in sessions
        self._missed = self._missed + 1 if gone else 0
        if self._missed > 1:  # the record of its end may come after the daemon's answer
            raise NotFoundError(
                f"session {self._topic} is no more: the daemon was started anew, or its end was lost;"
                f" {self._recorder.path} is complete up to there"
            )
