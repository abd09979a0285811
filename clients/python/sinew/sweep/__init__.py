"""Tables of closed loops: every combination of tasks, planners, settings and seeds, with figures and their intervals.

`sinew sweep` is the program for it; `read` gives its table back.

>>> runs = sinew.sweep.read("RUN")
>>> sinew.sweep.summary(runs)
"""

from sinew.sweep.store import read
from sinew.sweep.summary import summary
from sinew.sweep.table import Run, Table

__all__ = ["Run", "Table", "read", "summary"]
