#!/usr/bin/env python3
"""Tries the check of the binary interface (clients/package/abi.py) with copies of sinew.h that were edited: what breaks
programs must fail, what does not must pass.

  tests/clients/test_abi.py      prints what each edit came to; exit status 1 where one was judged wrongly, 77 (skipped)
"""

from __future__ import annotations

import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "clients" / "package"))
sys.dont_write_bytecode = True
import abi  # noqa: E402

TIME = "SINEW_API double sinew_data_time(const SinewData *data);\n"
END_OF_REQUEST = "} SinewPlanRequest;"
LAST_OF_CONTACT = "  int efc_address;"
LAST_OF_SIZES = "  int nplastic;"
ITERATIONS = "  int max_iterations;"
# What an edit is, whether programs break, and pairs of text before and after it.
EDITS = [
    ("nothing", False, []),
    ("a comment", False, [("// Frees a body.", "// Frees it.")]),
    ("a new function", False, [(TIME, TIME + TIME.replace("time", "clock"))]),
    ("a new last constant", False, [("  SINEW_EQUALITY\n", "  SINEW_EQUALITY,\n  SINEW_SKIN\n")]),
    ("a structure with a size grows at its end", False, [(END_OF_REQUEST, "  double extra;\n" + END_OF_REQUEST)]),
    ("a structure of the library grows at its end", False, [(LAST_OF_SIZES, LAST_OF_SIZES + " int extra;")]),
    ("a structure that does not grow grows", True, [(LAST_OF_CONTACT, LAST_OF_CONTACT + " int extra;")]),
    ("a structure with a size grows in between", True, [(ITERATIONS, "  double extra;" + ITERATIONS)]),
    ("a member changes its type", True, [(ITERATIONS, ITERATIONS.replace("int ", "long "))]),
    ("a member changes its type while another is added", True,
     [(ITERATIONS, ITERATIONS.replace("int ", "long ")), (END_OF_REQUEST, "  double extra;\n" + END_OF_REQUEST)]),
    ("a member goes", True, [(ITERATIONS, "")]),
    ("a function goes", True, [(TIME, "")]),
    ("a function gets a parameter", True, [(TIME, TIME.replace("data)", "data, int unit)"))]),
    ("a function returns something else", True, [(TIME, TIME.replace("double", "float"))]),
    ("a constant has another value", True, [("SINEW_ERR_TIMEOUT = 8", "SINEW_ERR_TIMEOUT = 30")]),
    ("a constant is put before others", True, [("  SINEW_EQUALITY\n", "  SINEW_SKIN,\n  SINEW_EQUALITY\n")]),
    ("a bit without a type has another value", True, [("SINEW_WARN_INERTIA = 16", "SINEW_WARN_INERTIA = 32")]),
]  # fmt: skip


def edited(header: str, edit: list[tuple[str, str]]) -> str:
    """The header after an edit, each of whose texts occurs once."""
    for before, after in edit:
        assert header.count(before) == 1, f"sinew.h has not once: {before}"
        header = header.replace(before, after)
    return header


def main() -> None:
    if why := abi.missing():
        print(f"skipped: {why}")
        sys.exit(77)
    header = (ROOT / "clients" / "include" / "sinew.h").read_text()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        kept, now = work / "kept.xml", work / "now.xml"
        abi.dump_header("sinew", kept)
        for name, expected, edit in EDITS:
            (work / "sinew.h").write_text(edited(header, edit))
            abi.dump_header("sinew", now, work)
            text = abi.breaks(kept, now, (work / "sinew.h").read_text())
            verdict = "breaks programs" if text else "passes"
            print(f"{name}: {verdict}" + ("" if bool(text) == expected else f", which is wrong:\n{text}{abi.differences(kept, now)}"))
            wrong += bool(text) != expected
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
