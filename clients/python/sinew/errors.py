"""The exceptions of sinew, one class for each status of the library.

All derive from :class:`SinewError`, and each also from the built-in exception that it is a kind of, so that
``except ValueError`` catches a wrong argument. Texts name the place, the value and what is allowed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = [
    "ArgumentError",
    "BadPlanError",
    "DeviceError",
    "DivergedError",
    "EndedError",
    "ExpiredError",
    "FileError",
    "FormatError",
    "LimitError",
    "NoPlanError",
    "NoSessionError",
    "NotFoundError",
    "OutOfMemoryError",
    "ProtocolError",
    "RefusedError",
    "SimulationError",
    "SinewError",
    "StateError",
    "TimedOutError",
    "UnsupportedError",
]


class SinewError(Exception):
    """Base of all exceptions of sinew."""


class ArgumentError(SinewError, ValueError):
    """The call itself is wrong: a shape, a type, a value out of range."""


class OutOfMemoryError(SinewError, MemoryError):
    """There is no memory."""


class FileError(SinewError, OSError):
    """A file could not be read or written."""


class FormatError(SinewError, ValueError):
    """Malformed input: XML, an image of a model, YAML."""


class UnsupportedError(SinewError, NotImplementedError):
    """The model uses what the engine does not have, or has no derivative of."""


class LimitError(SinewError, ValueError):
    """A documented limit is exceeded."""


class NotFoundError(SinewError, LookupError):
    """There is no such name, file or device."""


class TimedOutError(SinewError, TimeoutError):
    """It took too long."""


class StateError(SinewError, RuntimeError):
    """It is not possible now: a handle was closed, or two threads use it at once."""


class DivergedError(SinewError, ArithmeticError):
    """A state or an acceleration is NaN or beyond 1e10."""


class SimulationError(DivergedError, RuntimeError):
    """Some simulations of a batch have diverged; `ids` lists them."""

    ids: Any  # (n,) indices

    @classmethod
    def of(cls, ids: Any, text_of: Callable[[int], str], count: int) -> SimulationError:
        """Return the error of simulations `ids` out of `count`, with the text of the first."""
        named = ", ".join(str(sim) for sim in ids[:5]) + (", ..." if len(ids) > 5 else "")
        first = int(ids[0])
        error = cls(f"{len(ids)} of {count} simulations failed ({named}); simulation {first}: {text_of(first)}")
        error.ids = ids
        return error


class DeviceError(SinewError, RuntimeError):
    """The device is lost for this process."""


class RefusedError(SinewError, RuntimeError):
    """The daemon answered with an error, whose text this is.

    Attributes
    ----------
    code : str
        The daemon's own word for it, such as ``"NOT_FOUND"`` or ``"INVALID"`` (``Error.Code`` of the schema).
    """

    def __init__(self, text: str = "", code: str = "UNSPECIFIED") -> None:
        super().__init__(text)
        self.code = code


class NoSessionError(RefusedError):
    """The daemon has no such session: it was closed, its lease ran out, or its daemon ended. Open another one."""


class ProtocolError(SinewError, RuntimeError):
    """The daemon's answer could not be understood."""


class NoPlanError(SinewError, RuntimeError):
    """There is no plan for this state: a newer one replaced it, or every candidate diverged."""


class ExpiredError(SinewError, RuntimeError):
    """The plan at hand is too old to be used."""


class EndedError(SinewError, RuntimeError):
    """The daemon has ended continuous mode."""


class BadPlanError(SinewError, RuntimeError):
    """A plan that must not be used was refused; the one before stays in force."""


# By the values of SinewStatus in sinew.h.
_CLASSES: dict[int, type[SinewError]] = {
    1: ArgumentError,
    2: OutOfMemoryError,
    3: FileError,
    4: FormatError,
    5: UnsupportedError,
    6: LimitError,
    7: NotFoundError,
    8: TimedOutError,
    9: StateError,
    10: DivergedError,
    11: DeviceError,
    32: RefusedError,
    33: ProtocolError,
    34: NoPlanError,
    35: ExpiredError,
    36: EndedError,
    37: BadPlanError,
    38: NoSessionError,
}
_INTERRUPTED = 12


def from_status(status: int, text: str) -> BaseException:
    """Return the exception that belongs to a status of the library.

    Parameters
    ----------
    status : int
        A value of ``SinewStatus``. That of an interrupted call gives a `KeyboardInterrupt`.
    text : str
        What the library says.
    """
    if status == _INTERRUPTED:
        return KeyboardInterrupt()
    return _CLASSES.get(status, SinewError)(text)
