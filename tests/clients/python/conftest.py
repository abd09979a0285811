"""Fixtures of all tests of the Python package."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest

from daemons import client, daemon  # noqa: F401

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "sinew"
MYOSUITE = CACHE / "myosuite-2.12.2"

# MyoSuite is in the cache as its wheel has it; what it imports is in tests/clients/python/requirements-extras.txt.
if all(map(importlib.util.find_spec, ("gymnasium", "flatten_dict", "git", "imageio", "termcolor"))):
    sys.path.append(str(MYOSUITE))


@pytest.fixture(scope="session")
def models() -> Path:
    """Folder of the models that the tree has: arm_reach.xml, billiard.xml."""
    return Path(__file__).parents[3] / "physics" / "models"


@pytest.fixture(scope="session")
def myosuite() -> Path:
    """Folder of MyoSuite's models, as clients/setup.sh fetches them."""
    folder = MYOSUITE / "myosuite"
    if not folder.is_dir():
        pytest.skip("MyoSuite's models are not there: clients/setup.sh --models")
    return folder
