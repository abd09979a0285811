"""Steps of a model beside MuJoCo's, and Jacobians of these steps beside its differences, by `sinew-check`."""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

STEPS = 14
LIMIT = 120  # for a model [s]
SOLVED = ("qacc", "efc_force", "qfrc_constraint")  # the first fields behind the rows of a step
OUTCOME = {0: "agrees", 2: "not supported", 3: "refused by MuJoCo", 4: "undecided"}


@dataclass
class Report:
    """What came of one model's steps."""

    outcome: str
    differs: dict[str, Any] = field(default_factory=dict)  # by field of the step


def compare_steps(xml: str, seed: int, program: Path, jacobians: bool) -> Report:
    """Compare the steps of a run that MuJoCo drives.

    Its outcome is "diverges" where a run has left the range of numbers: engines begin anew then or stop, and not in
    the same step. "undecided" is what the program's `--help` says. "solvers apart" is a step whose rows agree and whose
    accelerations do not: MuJoCo's iterations end at their number where rows are nearly dependent, with the larger cost
    of the two as far as it was looked at, but that is not asked here.

    Parameters
    ----------
    xml : str
        MJCF.
    seed : int
        Of the controls.
    program : Path
        The program `sinew-check`.
    jacobians : bool
        Compare the Jacobians of the steps, too: of a model without contacts that are searched for.

    Returns
    -------
    Report
        The outcome, "differs" among them, and the fields that differ.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{seed}.xml"
        path.write_text(xml)
        command = [str(program), "--json", f"--steps={STEPS}", f"--seed={seed}", str(path)]
        command += ["--gradient"] if jacobians else []
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, cwd=folder)
        except subprocess.TimeoutExpired:
            return Report("differs", {"time": f"more than {LIMIT} s"})
    if done.returncode in OUTCOME:
        return Report(OUTCOME[done.returncode])
    try:
        found = json.loads(done.stdout)
    except ValueError:
        return Report("differs", {"status": done.returncode, "words": done.stderr[-300:]})
    fields = {name: x for name, x in found["fields"].items() if not x["agrees"]}
    if found["restarts"] or "next_time" in fields:
        return Report("diverges")
    if "sensors_not_computed" in found:
        fields.pop("next_history", None)  # has their samples
    if next(iter(fields), None) in SOLVED:
        return Report("solvers apart")
    if jacobians and not found["gradient"]["agrees"]:
        fields["gradient"] = {name: x for name, x in found["gradient"].items() if x}
    return Report("differs" if fields else "agrees", fields)
