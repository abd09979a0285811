"""A file of evaluations, from which an identification that was interrupted goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sinew._arrays import Doubles
from sinew.errors import ArgumentError

__all__ = ["Journal"]


class Journal:
    """Keeps what evaluations returned, in their order.

    An optimiser that asks the same questions again gets the same answers from the file, bit for bit, until that ends.
    So it need not be able to stop and go on itself.

    Parameters
    ----------
    path : path, optional
        The file, made where there is none. None: nothing is kept.
    """

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self.path = None if path is None else Path(path)
        self._kept: list[dict[str, Any]] = []
        self._next = 0
        if self.path is None or not self.path.exists():
            return
        text = self.path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]  # a line that was cut off when a process ended does not count
        if len(whole) < len(text):
            self.path.write_bytes(whole)
        try:
            self._kept = [json.loads(line) for line in whole.splitlines()]
        except ValueError as error:
            raise ArgumentError(f"{self.path}: no journal of evaluations: {error}") from None

    def __len__(self) -> int:
        return len(self._kept)

    def ask(self, what: str, values: Doubles, evaluate: Callable[[], Any]) -> Any:
        """Return the answer to the next question, from the file or, behind its end, by ``evaluate``.

        Raises
        ------
        ArgumentError
            The file has another question here: it is that of another identification.
        """
        if self.path is None:
            return evaluate()
        at = values.tolist()
        if self._next < len(self._kept):
            kept = self._kept[self._next]
            if not isinstance(kept, dict) or kept.get("what") != what or kept.get("values") != at:
                raise ArgumentError(
                    f"{self.path}: line {self._next + 1} is not the evaluation that comes here ({what} at {at}): it "
                    "belongs to another identification; remove it, or take another folder"
                )
            self._next += 1
            return kept["answer"]
        answer = evaluate()
        line = {"what": what, "values": at, "answer": answer}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self._kept.append(line)
        self._next += 1
        return answer
