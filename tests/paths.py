#!/usr/bin/env python3
"""Checks that the files, functions, types and macros are there which documents and comments name.

  tests/paths.py              complaints, one a line; exit status 1 if there are any
  tests/paths.py README.md    those about these files

Looked at are, of all files that git knows:

- in pages (*.md): words in `backticks` and targets of links that end like a file of ours. With a slash they are looked for from
  the top and from the page's folder; without one (`step.c`) anywhere under the page's folder and under that of its tests.
- in pages, too: headings that a link leads to, of this page or of another one.
- in drawings and commands of pages (```): names of sources, anywhere in the tree, and as in all other files
- in all other files: words that begin with a folder of the top level ("physics/step/step.c"), or of their own.

A star stands for any letters. Words in capitals (NAME.yaml) are place holders; what lies under build/ is made, under share/ installed.
What stands in the first column of a table headed "| was |" is gone. In `backticks` and code of pages, and in comments of C, words
that begin as ours do (sn_, Sn, SN_, sinew_, Sinew, SINEW_) must occur in code; comments do not count.
"""

from __future__ import annotations

import argparse
import fnmatch
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOP = r"(?:physics|planner|cuda|proto|daemon|clients|tests)"
END = r"\.(?:c|cpp|h|inc|cu|sh|py|md|txt|gp|svg|proto|map|cmake|mutations|yaml|xml|in|ipynb|toml)\b(?![\w-]|\.\w)"
SPAN = re.compile(r"`([^`\n]+)`|\]\(([^)#\s]+)[^)]*\)")
WORD = re.compile(r"(?<![\w/.$~:*}-])([\w.*-]+(?:/[\w.*-]+)*" + END + ")")
NAME = re.compile(r"[\w*-]+" + END)
PLACE = re.compile(r"(?<![\w/.$~-])(" + TOP + r"/[\w./-]*" + END + ")")
EXAMPLES = {"tests/paths.py", "tests/rooms.py", "tests/comments.py"}  # what these name are examples
JUMP = re.compile(r"\]\(([^)#\s:]*)#([\w-]+)\)")
OURS = re.compile(r"\b(?:sn_|Sn[A-Z]|SN_|sinew_|Sinew[A-Z]|SINEW_)\w+\b")
C = (".c", ".cpp", ".h", ".inc", ".cu")
LOOSE = (".c", ".cpp", ".h", ".inc", ".cu", ".sh", ".py", ".gp")  # looked for by name alone; others may be anybody's


def skipped(word: str) -> bool:
    """Whether a word names no file of the tree: a place holder, something made, something of others.

    >>> [skipped(w) for w in ("tasks/NAME.yaml", "build/x.c", "MODEL.xml", "sinew.pb-c.h", "physics/step/step.c", "MODELS.md")]
    [True, True, True, True, False, False]
    """
    held = bool(re.search(r"NAME|PATH|FILE|FOLDER|\bMODEL\b|\bTASK\b", word))
    return held or word.startswith(("build/", "share/", "/", "http")) or "..." in word or word.endswith((".pb-c.h", "device_text.inc"))


def found(word: str, folder: str, files: list[str]) -> bool:
    """Whether the tree has a file of this name, for a page in this folder ("" for the top).

    >>> tree = ["README.md", "physics/README.md", "physics/step/step.c", "physics/models/arm.xml"]
    >>> [found(w, "physics", tree) for w in ("step.c", "step/step.c", "physics/step/*.c", "../README.md", "gone.c", "x/step.c")]
    [True, True, True, True, False, False]
    """
    if "/" not in word:
        below = (folder + "/" if folder else "", f"tests/{folder}/")
        return any(fnmatch.fnmatchcase(pathlib.PurePath(f).name, word) for f in files if f.startswith(below))
    parts: list[str] = folder.split("/") if folder else []
    for part in word.split("/"):
        parts = parts[:-1] if part == ".." else parts + [part] if part != "." else parts
    return any(fnmatch.fnmatchcase(f, w) for w in (word, "/".join(parts)) for f in files)


def words(line: str, page: bool, fence: bool = False) -> Iterator[str]:
    """Names of files in a line of a page, or of another file.

    >>> list(words("`a/b.c` and `tests/run.sh --list`, [x](../y.md), z.c", True))
    ['a/b.c', 'tests/run.sh', '../y.md']
    >>> list(words('// See physics/world/world.h and world.c.', False))
    ['physics/world/world.h']
    >>> list(words("   |  dynamics/inertia.c   crb, M;  tendon.c -> x.json", True, True))
    ['inertia.c', 'tendon.c']
    """
    if not page or fence:
        yield from PLACE.findall(line)
        if fence:
            yield from (name for name in NAME.findall(line) if name.endswith(LOOSE))
        return
    for span, link in SPAN.findall(line):
        for word in [link] if link else WORD.findall(span):
            if "/" in word or word.endswith(LOOSE):
                yield word


def anchors(text: str) -> set[str]:
    """What links to the headings of a page are called.

    >>> sorted(anchors("# A b\\n```\\n# no\\n```\\n## The `x` of [y](z.md), again\\n## A b\\n"))
    ['a-b', 'a-b-1', 'the-x-of-y-again']
    """
    names: list[str] = []
    for line in re.sub(r"^```.*?^```", "", text, flags=re.M | re.S).splitlines():
        if not re.match("#+ ", line):
            continue
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line.lstrip("#").strip()).lower()
        names.append(re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", words)))
    return {name if k == names.index(name) else f"{name}-{names[:k].count(name)}" for k, name in enumerate(names)}


def jumps(text: str, page: str) -> Iterator[str]:
    """Links of a page to headings that are not there."""
    for target, anchor in JUMP.findall(text):
        file = (ROOT / page).parent / target if target else ROOT / page
        if file.suffix == ".md" and file.is_file() and anchor not in anchors(file.read_text(encoding="utf-8")):
            yield f"{target}#{anchor}"


def identifiers(line: str, page: bool, fence: bool = False) -> list[str]:
    """Functions, types and macros of ours that a line of a page, or the comment of a line of C, names.

    >>> identifiers("`sn_step(m, w)` takes an `SnWorld`; sn_no is no code", True)
    ['sn_step', 'SnWorld']
    >>> identifiers("sn_step(m, w, lane);  // as sn_forward, SN_WARN_*", False)
    ['sn_forward', 'SN_WARN_']
    """
    spans = [span for span, _ in SPAN.findall(line)] if page and not fence else [line if page else line.partition("//")[2]]
    return [word for span in spans for word in OURS.findall(span)]


def names_in_code(files: list[str]) -> set[str]:
    """Functions, types and macros of ours in all sources, without comments."""
    known: set[str] = set()
    for file in files:
        if file.endswith((".md", ".svg", ".xml")) or not (ROOT / file).is_file():
            continue
        text = (ROOT / file).read_text(encoding="utf-8", errors="ignore")
        known.update(OURS.findall(re.sub(r"//.*", "", text) if file.endswith(C) else text))
    return known


def main() -> int:
    """Reads the arguments and prints complaints."""
    parser = argparse.ArgumentParser(
        prog="tests/paths.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="files to look at; all without any")
    arguments = parser.parse_args()
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = listed.stdout.splitlines()
    known = names_in_code(files)
    bad = 0
    for file in arguments.files or [f for f in files if f not in EXAMPLES]:
        page, fence, history = file.endswith(".md"), False, False
        folder = str(pathlib.PurePath(file).parent) if "/" in file else ""
        if folder.startswith("."):  # pages about the whole tree
            folder = ""
        try:
            lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
        except (UnicodeDecodeError, FileNotFoundError):
            continue
        for link in jumps("\n".join(lines), file) if page else ():
            print(f"{file}: there is no heading for {link}")
            bad += 1
        for number, line in enumerate(lines, 1):
            fence ^= page and line.startswith("```")
            history = line.startswith("| was |") or (history and line.startswith("|"))
            line = line.split("|", 2)[2] if history else line
            for word in dict.fromkeys(words(line, page, fence)):
                if not skipped(word) and not found(word, "" if fence else folder, files):
                    print(f"{file}:{number}: there is no {word}")
                    bad += 1
            for word in identifiers(line, page, fence) if page or file.endswith(C) else ():
                if word not in known and not (word.endswith("_") and any(name.startswith(word) for name in known)):
                    print(f"{file}:{number}: no code has {word}")
                    bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
