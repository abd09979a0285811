"""Contacts from distance: settings of derivatives that know of contacts to come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sinew import _core
from sinew._arrays import number, row, switch
from sinew.errors import ArgumentError

__all__ = ["CFD", "checked_cfd"]

_BACKWARD, _FORWARD = 1, 2  # SinewCfdUse


@dataclass(frozen=True)
class CFD:
    """Contacts from distance (A. Paulus et al., 2025, arXiv 2506.14186).

    Bodies that do not touch push each other a little in derivatives, so that these know of contacts to come. Motions
    stay as they are.

    Attributes
    ----------
    solimp : tuple of 5 floats
        Impedance at the reach and at touch, reach [m], midpoint and power.
    softplus : float
        Width of the softplus that replaces the depth [m].
    friction : bool
        Whether contacts at a distance have rows of friction.
    surrogate : bool
        Whether derivatives carry contact points rigidly with the bodies, for comparison.
    bodies : sequence of str, optional
        Bodies that take part, with all that hangs on them; None: all.
    forward : bool
        Whether they act in motions, too: bodies hover. For study.
    smooth : float
        Length over which contacts of boxes, and of cylinders on planes, are smoothed, so that none is chosen [m]; 0:
        they are as they are.
    """

    solimp: tuple[float, float, float, float, float] = (0.0, 0.1, 1.0, 1.0, 4.0)
    softplus: float = 0.002
    friction: bool = False
    surrogate: bool = False
    bodies: Sequence[str] | None = None
    forward: bool = False
    smooth: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.bodies, str):
            raise ArgumentError(f"bodies: {self.bodies!r}, expected a sequence of names, such as [{self.bodies!r}]")
        for name in ("friction", "surrogate", "forward"):
            switch(name, getattr(self, name))
        row("solimp", self.solimp, 5)
        for name in ("softplus", "smooth"):
            number(name, getattr(self, name))
        if self.bodies is not None:
            object.__setattr__(self, "bodies", tuple(self.bodies))  # its own: the caller's list may change

    def _native(self) -> _core.Cfd:
        bodies = None if self.bodies is None else list(self.bodies)
        use = _FORWARD if self.forward else _BACKWARD
        solimp = [float(x) for x in self.solimp]
        return _core.Cfd(
            use, solimp, float(self.softplus), bool(self.friction), bool(self.surrogate), bodies, float(self.smooth)
        )


def checked_cfd(cfd: CFD) -> CFD:
    """Return settings of contacts from distance; refuse what is something else."""
    if not isinstance(cfd, CFD):
        raise ArgumentError(f"cfd: {type(cfd).__name__}, expected a sinew.CFD")
    return cfd
