"""A file of evaluations, from which an identification that was interrupted goes on."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sinew._arrays import Doubles
from sinew._files import reason
from sinew.errors import ArgumentError, FileError

__all__ = ["Journal", "digest_of"]


def digest_of(*parts: Any) -> str:
    """Return a digest of arrays, bytes, and of what is made of them: objects count by their types and attributes."""
    found = hashlib.sha256()

    def feed(x: Any) -> None:
        if isinstance(x, np.ndarray):
            found.update(f"array {x.dtype} {x.shape}".encode())
            found.update(np.ascontiguousarray(x).tobytes())
        elif isinstance(x, bytes):
            found.update(b"bytes %d " % len(x) + x)
        elif isinstance(x, Mapping):
            feed([(str(key), x[key]) for key in sorted(x, key=str)])
        elif isinstance(x, list | tuple):
            found.update(f"list {len(x)} ".encode())
            for part in x:
                feed(part)
        elif hasattr(x, "__qualname__"):
            feed(f"{x.__module__}.{x.__qualname__}")
        elif hasattr(x, "__dict__"):
            feed([type(x), vars(x)])
        else:
            feed(repr(x).encode())

    feed(parts)
    return found.hexdigest()


class Journal:
    """Keeps what evaluations returned, in their order.

    An optimiser that asks the same questions again gets the same answers from the file, bit for bit, until that ends.
    So it need not be able to stop and go on itself.

    Parameters
    ----------
    path : path, optional
        The file, made where there is none. None: nothing is kept.
    digest : str
        Of all that the answers depend on. The first line of the file has it.

    Raises
    ------
    ArgumentError
        The file is no journal, or has another digest.
    """

    def __init__(self, path: str | os.PathLike[str] | None, digest: str = "") -> None:
        self.path = None if path is None else Path(path)
        self._kept: list[dict[str, Any]] = []
        self._next = 0
        if self.path is None:
            return
        try:
            text = self.path.read_bytes() if self.path.exists() else b""
            whole = text[: text.rfind(b"\n") + 1]  # a line that was cut off when a process ended does not count
            self._check(text, whole, digest)
            if len(whole) < len(text):
                self.path.write_bytes(whole)
            if not whole:
                self._write({"digest": digest})
        except OSError as error:
            raise FileError(f"{self.path}: {reason(error)}") from None

    def _check(self, text: bytes, whole: bytes, digest: str) -> None:
        """Read the lines of a file, which stays as it is; refuse one that is no journal of these evaluations."""
        first = json.dumps({"digest": digest}).encode()
        if not whole and first.startswith(text):
            return
        try:
            head, *self._kept = [json.loads(line) for line in (whole or text).splitlines()]
        except ValueError as error:
            raise ArgumentError(f"{self.path}: no journal of evaluations: {error}") from None
        if not isinstance(head, dict) or "digest" not in head:
            raise ArgumentError(f"{self.path}: no journal of evaluations: its first line has no digest")
        if head["digest"] != digest:
            raise ArgumentError(
                f"{self.path}: belongs to another identification (other recordings, another model, loss, seed or "
                "settings): remove it, or take another file"
            )

    def __len__(self) -> int:
        return len(self._kept)

    def ask(self, what: str, values: Doubles, evaluate: Callable[[], Any]) -> Any:
        """Return the answer to the next question, from the file or, behind its end, by ``evaluate``.

        Raises
        ------
        ArgumentError
            The file has another question here: the optimiser is another one, or somebody has changed the file.
        """
        if self.path is None:
            return evaluate()
        at = values.tolist()
        if self._next < len(self._kept):
            kept = self._kept[self._next]
            if not isinstance(kept, dict) or kept.get("what") != what or kept.get("values") != at:
                raise ArgumentError(
                    f"{self.path}: line {self._next + 2} is not the evaluation that comes here ({what} at {at}): "
                    "another version of the optimiser wrote it, or it was changed; remove it, or take another file"
                )
            self._next += 1
            return kept["answer"]
        answer = evaluate()
        line = {"what": what, "values": at, "answer": answer}
        self._write(line)
        self._kept.append(line)
        self._next += 1
        return answer

    def _write(self, line: dict[str, Any]) -> None:
        assert self.path is not None
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
