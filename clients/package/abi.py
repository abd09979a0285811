#!/usr/bin/env python3
"""Compares the binary interface of the shared libraries with what was kept of it (clients/package/abi), by abidiff.

  clients/package/abi.py FOLDER      headers, and libsinew.so and libsinew_client.so in FOLDER, with what was kept
  clients/package/abi.py --accept    keeps the interface of the headers as it is now, and says what that changes

What is kept is the interface of a header: abidw reads it from a library of empty functions made of that header, so that it
holds all public types and constants and nothing else. The libraries themselves are compared with it, too, by their debug
information. Programs that were built before go on to work, and the check passes, after these changes alone:

- a new function, a new last constant of an enumeration
- a structure grows at its end that begins with `size_t size`, or whose comment says "New members come at the end"

Exit status: 0; 1 where an interface breaks; 77 (skipped) where it cannot be compared. What breaks on purpose is accepted
together with another SOVERSION and another name in exports.map (package.cmake).
"""

from __future__ import annotations

import argparse
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as tree

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = HERE.parent / "include"
KEPT = HERE / "abi"
NAMES = ("sinew", "sinew_client")
DUMP = ["--no-show-locs", "--no-corpus-path", "--no-comp-dir-path", "--no-elf-needed", "--type-id-style", "hash", "--drop-private-types"]


def unit(header: str) -> str:
    """A header with a body for each function.

    >>> print(unit("int x_y(void);\\nSINEW_API int sinew_f(int a,\\n    int b);\\nstatic inline int sinew_g(void) {"))
    int x_y(void);
    SINEW_API int sinew_f(int a,
        int b) { __builtin_trap(); }
    static inline int sinew_g(void) {
    """
    body = r"^((?!static|typedef)[A-Za-z][^\n;(]*\bsinew_[a-z0-9_]+\([^;{]*\));"
    return re.sub(body, r"\1 { __builtin_trap(); }", header, flags=re.M)


def growing(header: str) -> set[str]:
    """Structures that may grow at their end.

    >>> sorted(growing("// New members come at the end.\\ntypedef struct A {\\n int x;\\n} A;\\ntypedef struct B {\\n  size_t size;\\n} B;\\n"
    ...                "typedef struct C {\\n int x;\\n} C;\\n// Returns it. New members come at the end.\\nSINEW_API const C *f(void);"))
    ['A', 'B', 'C']
    """
    said = re.findall(r"New members come at the end\.\n(?:typedef struct (\w+)|SINEW_API const (\w+))", header)
    return {a or b for a, b in said} | set(re.findall(r"^typedef struct (\w+) \{\n\s*size_t size;", header, flags=re.M))


def dump(library: pathlib.Path, headers: list[str], to: pathlib.Path) -> None:
    """Writes the interface of a library, of types those of the headers."""
    subprocess.run(["abidw", *DUMP, *headers, "--out-file", str(to), str(library)], check=True)


def dump_header(name: str, to: pathlib.Path, include: pathlib.Path = INCLUDE) -> None:
    """Writes the interface of a header."""
    with tempfile.TemporaryDirectory() as work:
        source, library = pathlib.Path(work) / f"{name}.c", pathlib.Path(work) / f"lib{name}.so"
        source.write_text(unit((include / f"{name}.h").read_text()))
        subprocess.run(
            ["cc", "-std=c17", "-g", "-fno-eliminate-unused-debug-types", "-O0", "-shared", "-fPIC", f"-I{include}", "-o", library.name]
            + [source.name, f"-Wl,-soname,lib{name}.so.0", f"-Wl,--version-script={HERE / 'exports.map'}"],
            check=True,
            cwd=work,
        )
        dump(library, ["--load-all-types", "--header-file", str(source), "--headers-dir", str(include)], to)


def spelled(types: dict[str, tree.Element], one: str | None) -> str:
    """A type by its name, as in C but from the right to the left: the numbers that abidw gives to types are its own."""
    node = types[one or ""]
    inner = node.get("type-id")
    if node.tag in ("pointer-type-def", "qualified-type-def", "array-type-def"):
        what = {"pointer-type-def": "*", "qualified-type-def": "const", "array-type-def": f"[{node.get('size-in-bits')} bits]"}[node.tag]
        return f"{what} {spelled(types, inner)}"
    return f"{node.get('name')}"


def members(kept: pathlib.Path) -> dict[str, list[tuple[str | None, ...]]]:
    """Places, types and names of the members of each structure."""
    root = tree.parse(kept).getroot()
    types = {node.get("id", ""): node for node in root.iter() if node.get("id")}
    found = {}
    for struct in root.iter("class-decl"):
        rows: list[tuple[str | None, ...]] = []
        for member in struct.iter("data-member"):
            variable = member.find("var-decl")
            assert variable is not None
            rows.append((member.get("layout-offset-in-bits"), spelled(types, variable.get("type-id")), variable.get("name")))
        found[struct.get("name", "")] = rows
    return found


def breaks(kept: pathlib.Path, now: pathlib.Path, header: str, unreachable: bool = True) -> str:
    """What in `now` breaks programs that were built with `kept`; "" when nothing does."""
    may_grow = growing(header)
    with tempfile.NamedTemporaryFile("w", suffix=".ini") as rule:
        # abidiff forgives all changes of such a structure: those of its earlier members are looked for below.
        rule.write(f"[suppress_type]\n type_kind = struct\n name_regexp = ^({'|'.join(sorted(may_grow)) or ' '})$\n")
        rule.write(" has_data_member_inserted_at = end\n")
        # The C library's own types, which another version of it may have others of.
        rule.write("[suppress_type]\n type_kind = typedef\n name_regexp = ^(__.*|u?int.*_t|wchar_t|locale_t|max_align_t)$\n")
        rule.flush()
        flags = ["--no-added-syms", "--suppressions", rule.name] + (["--non-reachable-types"] if unreachable else [])
        run = subprocess.run(["abidiff", *flags, str(kept), str(now)], text=True, capture_output=True, check=False)
    text = run.stdout + run.stderr if run.returncode else ""
    before, after = members(kept), members(now)
    for name in sorted(may_grow & set(before) & set(after)):
        if after[name][: len(before[name])] != before[name]:
            text += f"members of {name} that were there before have changed\n"
    return text


def differences(kept: pathlib.Path, now: pathlib.Path) -> str:
    """All that has changed, for people."""
    flags = ["--harmless", "--non-reachable-types"]
    return subprocess.run(["abidiff", *flags, str(kept), str(now)], text=True, capture_output=True, check=False).stdout


def check(folder: pathlib.Path) -> int:
    """Compares headers and libraries; returns the exit status."""
    status = 0
    with tempfile.TemporaryDirectory() as work:
        for name in NAMES:
            kept, of_header, of_library = KEPT / f"{name}.xml", pathlib.Path(work) / "header.xml", pathlib.Path(work) / "library.xml"
            header = (INCLUDE / f"{name}.h").read_text()
            dump_header(name, of_header)
            dump(folder / f"lib{name}.so", ["--headers-dir", str(INCLUDE)], of_library)
            for what, now in ((f"{name}.h", of_header), (f"lib{name}.so", of_library)):
                text = breaks(kept, now, header, unreachable=now == of_header)
                if text:
                    print(f"{what} breaks programs that were built before:\n{text}")
                    status = 1
            if not status and differences(kept, of_header):
                print(f"{name}.h has grown since its interface was kept (clients/package/abi.py --accept keeps it as it is now)")
    if status:
        print("On purpose? See clients/package/abi.py --help.")
    else:
        print("programs that were built before go on to work with " + " and ".join(f"lib{name}.so" for name in NAMES))
    return status


def accept() -> None:
    """Keeps the interfaces of the headers."""
    KEPT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        for name in NAMES:
            kept, now = KEPT / f"{name}.xml", pathlib.Path(work) / f"{name}.xml"
            dump_header(name, now)
            print(f"{name}.h: {differences(kept, now) or 'no change'}" if kept.exists() else f"{name}.h: kept for the first time")
            shutil.copyfile(now, kept)


def missing() -> str:
    """Why interfaces cannot be compared here, "" when they can."""
    if platform.machine() != "x86_64":
        return f"what was kept is of x86_64, this machine is {platform.machine()}"
    return "" if shutil.which("abidiff") else "abidiff is not installed (Debian package abigail-tools)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accept", action="store_true")
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.accept == bool(arguments.folder):
        parser.error("either FOLDER or --accept")
    if why := missing():
        print(f"skipped: {why}")
        sys.exit(77)
    if arguments.accept:
        accept()
    else:
        sys.exit(check(arguments.folder))


if __name__ == "__main__":
    main()
