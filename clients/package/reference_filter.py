#!/usr/bin/env python3
"""Turns the plain // comments of a public header into those of Doxygen, on standard output.

  clients/package/reference_filter.py HEADER

- The comment before a declaration is its description, also of those that follow it without a line between. A comment
  behind a declaration describes that. The comment at the top describes the file.
- `// ---- name ----` begins a group; what follows it in the same comment describes it.
- A line of its own within a structure heads the members that follow it.
- Lines that are indented by three or more: a list where each has a word, two spaces and a text (names of statuses), else code.
- A member needs no comment of its own that is `size`, whose type is one of ours, that is of a structure none of whose members has
  one, or of one whose own comment speaks of MuJoCo's names. All others are left without, of which Doxygen complains.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

SECTION = re.compile(r"// ---- (.*) ----$")
ROW = re.compile(r" {3,}(\S(?:[^ ]| (?! ))*) {2,}(\S.*)$")
OPENING = re.compile(r"(typedef struct|typedef enum|enum)\b.*\{$")


def linked(text: str) -> str:
    """Text with its signs kept from Doxygen, and with links to functions and constants.

    >>> linked("Free it with sinew_task_free; SINEW_ERR_IO: `a` < b, sinew_default_*, sinew.h")
    'Free it with sinew_task_free(); #SINEW_ERR_IO: <code>a</code> \\\\< b, sinew_default_\\\\*, sinew.h'
    """
    text = re.sub(r"([\\\\@<>&*%|#])", r"\\\1", text)
    text = re.sub(r"\b([A-Z])\. ", r"\1.&nbsp;", text)  # of a name: else the short description would end there
    text = re.sub(r"`([^`]*)`", r"<code>\1</code>", text)
    text = re.sub(r"\b(sinew_[a-z0-9_]*[a-z0-9])\b(?!\(|:|\.[a-z]|\\\*|_)", r"\1()", text)
    return re.sub(r"(?<!\w)(SINEW_[A-Z0-9_]*[A-Z0-9])\b(?!\\\*|_)", r"#\1", text)


def body(lines: list[str]) -> str:
    """The text of a comment, whose lines come without their slashes: paragraphs, lists, code.

    >>> print(body([" One", " two.", "", "   A_B  first", "   C    second", "   x = 1;"]))
    One two.
    <BLANKLINE>
    - A_B: first
    - C: second
    \\code{.c}
    x = 1;
    \\endcode
    """
    out: list[str] = []
    code = False
    for line in lines:
        indented, row = line.startswith("   "), ROW.match(line)
        row = None if row and ";" in row[1] else row
        if code and (not indented or row):
            out.append("\\endcode")
            code = False
        if row:
            out.append(f"- {linked(row[1])}: {linked(row[2])}")
        elif indented:
            if not code:
                out.append("\\code{.c}")
                code = True
            out.append(line[3:])
        elif line.strip() and out and out[-1] and not out[-1].startswith(("- ", "\\endcode")):
            out[-1] += linked(line)
        else:
            out.append(linked(line.strip()))
    if code:
        out.append("\\endcode")
    return "\n".join(out).strip()


def single(declared: str) -> list[str]:
    """Declarations of one member each: Doxygen gives the comment of a line to its last alone.

    >>> single("const double *qvel, *act;") + single("double x[3];") + single("SINEW_OK = 0,")
    ['const double *qvel;', 'const double *act;', 'double x[3];', 'SINEW_OK = 0,']
    """
    several = re.match(r"((?:const )?\w+) (.*,.*);$", declared)
    return [f"{several[1]} {name.strip()};" for name in several[2].split(",")] if several else [declared]


def members(lines: list[str], about: str) -> Iterator[str]:
    """The members of a structure or constants of an enumeration, with their comments."""
    constants = lines[0].find("enum") >= 0
    bare = not any("//" in line for line in lines)
    heading = False
    yield lines[0]
    for line in lines[1:-1]:
        declared, _, said = (part.strip() for part in line.partition("//"))
        if not declared:
            if said and not constants:
                yield "/** \\} */" if heading else ""
                yield f"/** \\name {said.rstrip('.')} \n\\{{ */"
                heading = True
            continue
        if not said and re.match(r"size_t size;", declared):
            said = "Size of this structure, as the function sets it that gives its defaults."
        elif not said and (ours := re.match(r"(?:const )?(Sinew\w+) ", declared)):
            said = f"See {ours[1]}."
        elif not said and (bare or "MuJoCo's" in about):
            said = "See the description above." if bare else "As MuJoCo's."
        for one in single(declared):
            yield f"  {one}" + (f"  ///< {linked(said)}" if said else "")
    if heading:
        yield "/** \\} */"
    yield lines[-1]


def convert(text: str, name: str) -> Iterator[str]:
    """The lines of a header for Doxygen."""
    lines = [line for line in text.splitlines() if not line.startswith("#") and line not in ('extern "C" {', "}  // extern")]
    top = next(i for i, line in enumerate(lines) if not line.startswith("//"))
    yield f"/** \\file\n{body([line[2:] for line in lines[:top]])} */"
    group, about, i = "", "", top
    while i < len(lines):
        line = lines[i]
        if line.startswith("//"):
            begin = i
            while i < len(lines) and lines[i].startswith("//"):
                i += 1
            block = [other[2:] for other in lines[begin:i]]
            if section := SECTION.match(line):
                if group:
                    yield "/** \\} */"
                group = re.sub(r"\W+", "_", f"{name}_{section[1]}")
                yield f"/** \\defgroup {group} {section[1][0].upper() + section[1][1:]}\n{body(block[1:])}\n\\{{ */"
            else:
                about = body(block)
        elif OPENING.match(line):
            begin = i
            while not lines[i].startswith("}"):
                i += 1
            yield f"/** {about} */"
            yield from members(lines[begin : i + 1], about)
            i += 1
        elif re.match(r"[A-Za-z]", line):
            declared, _, said = (part.strip() for part in line.partition("//"))
            yield (f"/** {linked(said)} */\n" if said else f"/** {about} */\n") + declared
            i += 1
            while i < len(lines) and lines[i].startswith((" ", "}")):
                yield lines[i]
                i += 1
        else:
            about = "" if not line else about
            i += 1
    if group:
        yield "/** \\} */"


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as header:
        print("\n".join(convert(header.read(), sys.argv[1].rpartition("/")[2].partition(".")[0])))
