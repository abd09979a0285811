"""The package as pip installs it: what it carries, what importing it brings along, its exceptions."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import sinew
from sinew import errors

PACKAGE = Path(sinew.__file__).parent
TREE = Path(__file__).parents[3]


def test_import_brings_numpy_only() -> None:
    code = "import sys; import sinew; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "numpy" in loaded
    large = {"mujoco", "scipy", "torch", "jax", "gymnasium", "pandas", "zmq", "google", "matplotlib"}
    assert not large & set(loaded)


def test_version_is_that_of_the_tree() -> None:
    tree = re.search(r"project\(sinew VERSION ([0-9.]+)", (TREE / "CMakeLists.txt").read_text(encoding="utf-8"))
    assert tree and sinew.__version__ == tree[1] == importlib.metadata.version("sinew")


def test_package_carries_what_the_tree_has() -> None:
    share = PACKAGE / "share/sinew"
    assert (PACKAGE / "py.typed").is_file()
    assert (share / "sinew.proto").read_bytes() == (TREE / "proto/sinew.proto").read_bytes()
    for kind, folder in (("tasks", "planner/tasks"), ("models", "physics/models")):
        there = {path.name for path in (TREE / folder).iterdir() if path.suffix in (".yaml", ".xml")}
        assert there and there <= {path.name for path in (share / kind).iterdir()}


@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="a build with sanitizers has no stub")
def test_package_has_the_stub_of_its_module() -> None:
    assert "def version() -> str" in (PACKAGE / "_core.pyi").read_text(encoding="utf-8")


@pytest.mark.parametrize("program", ["sinewd", "sinew-import"])
def test_programs_start(program: str) -> None:
    path = PACKAGE / "bin" / program
    assert os.access(path, os.X_OK)
    done = subprocess.run([path, "--help"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert program in done.stdout


@pytest.mark.parametrize("words", [["--version"], ["plot", "--help"]])
def test_a_reader_that_goes_ends_the_program_quietly(words: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    code = f"import sys; from sinew.cli import main; sys.exit(main({words}))"
    with os.fdopen(write, "wb") as out:
        done = subprocess.run([sys.executable, "-c", code], stdout=out, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (141, "")


def test_errors_are_what_the_header_has() -> None:
    header = (TREE / "clients/include/sinew.h").read_text(encoding="utf-8")
    statuses = {int(value): name for name, value in re.findall(r"\bSINEW_ERR_(\w+) = (\d+)", header)}
    assert len(statuses) > 10
    for value, name in statuses.items():
        error = errors.from_status(value, "text")
        if name == "INTERRUPTED":
            assert isinstance(error, KeyboardInterrupt)
            continue
        assert isinstance(error, errors.SinewError) and type(error) is not errors.SinewError, name
        assert str(error) == "text"


def test_errors_are_caught_as_builtins() -> None:
    with pytest.raises(ValueError, match="mujoco"):
        sinew.Model.from_string("<mujoco>")
    with pytest.raises((LookupError, OSError), match=r"there_is_no\.xml"):
        sinew.Model.from_xml("there_is_no.xml")
