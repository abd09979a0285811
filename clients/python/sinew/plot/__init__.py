"""Pictures of closed loops and of tables of them, by matplotlib: `sinew plot` is the program for it."""

from sinew.plot.loop import Loop, read_loop

__all__ = ["Loop", "read_loop"]
