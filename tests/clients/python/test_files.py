"""Files that are to be written: what is wrong with their names is said before anything is computed."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path

import pytest
from sinew.files import writable

from processes import run_example

PYTHON = Path(__file__).resolve().parents[3] / "clients" / "python"
EXAMPLES = PYTHON / "examples"


def test_a_file_that_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = tmp_path / "old.svg", tmp_path / "new.svg"
    old.write_text("")
    monkeypatch.chdir(tmp_path)
    for name in (str(old), str(new), "old.svg", "new.svg", os.devnull):
        assert writable(name) == name
    assert not new.exists()


def test_what_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in [
        (f"{tmp_path}/no/new.svg", f"there is no folder '{tmp_path}/no'"),
        (str(tmp_path), "is a folder"),
        ("", "is a folder"),
    ]:
        with pytest.raises(argparse.ArgumentTypeError, match=re.escape(text)):
            writable(name)
    old = tmp_path / "old.svg"
    old.write_text("")
    for locked, name in ((old, old), (tmp_path, tmp_path / "new.svg")):  # root may write anything
        monkeypatch.setattr(os, "access", lambda path, mode, locked=locked: Path(path) != locked)
        with pytest.raises(argparse.ArgumentTypeError, match="may not be written"):
            writable(str(name))


def test_every_picture_is_asked_for_before_the_work() -> None:
    found = [
        (script.name, line.strip())
        for script in (*EXAMPLES.rglob("*.py"), PYTHON / "animate.py")
        for line in script.read_text().splitlines()
        if 'add_argument("--picture"' in line
    ]
    assert len(found) > 10
    assert [x for x in found if "type=sinew.files.writable" not in x[1]] == []


@pytest.mark.parametrize("script", ["billiard_cfd.py", "cube_toss.py"])
def test_an_example_ends_at_once_where_there_is_no_folder(script: str, tmp_path: Path) -> None:
    done = run_example(EXAMPLES / script, "--picture", "no/picture.svg", folder=tmp_path)
    assert done.returncode == 2 and done.stdout == ""
    assert "argument --picture: 'no/picture.svg': there is no folder 'no'" in done.stderr
