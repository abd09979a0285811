"""Steps of a model beside MuJoCo's, and Jacobians of these steps beside its differences, by `sinew-check`."""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

STEPS = 14
LIMIT = 600  # for a model [s]: one that takes it hangs
SOLVED = ("qacc", "efc_force", "qfrc_constraint")  # the first fields behind the rows of a step
OUTCOME = {0: "agrees", 2: "not supported", 3: "refused by MuJoCo", 4: "undecided"}


@dataclass
class Report:
    """What came of one model's steps."""

    outcome: str
    differs: dict[str, Any] = field(default_factory=dict)  # by field of the step


def compare_steps(xml: str, seed: int, program: Path, jacobians: bool) -> Report:
    """Compare the steps of a run that MuJoCo drives.

    Its outcome is "diverges" where MuJoCo's run has left the range of numbers and begun anew. "undecided" is what the
    program's `--help` says. "solvers apart" is a step whose rows agree and whose accelerations do not: MuJoCo's
    iterations end at their number where rows are nearly dependent, with the larger cost of the two as far as it was
    looked at, but that is not asked here. "a row that nothing softens" leaves no digits to Jacobians, "a singular
    inertia", of joints along one line, none to accelerations; a model that has one and agrees counts as that.

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
    if found["restarts"]:
        return Report("diverges")
    if found["singular_steps"] and (fields or (jacobians and not found["gradient"]["agrees"])):
        return Report("a singular inertia")
    if next(iter(fields), None) in SOLVED:
        return Report("solvers apart")
    if jacobians and not fields and found["stiff_rows"]:
        return Report("a row that nothing softens")
    if jacobians and not found["gradient"]["agrees"]:
        fields["gradient"] = {name: x for name, x in found["gradient"].items() if x}
    return Report("differs" if fields else "agrees", fields)
