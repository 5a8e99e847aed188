"""The vendors' own programs, where they can be had: on PATH, or in the folder that `RELAY_TEST_PROGRAMS` names."""

import os
import shutil
from functools import cache
from pathlib import Path
from typing import Final

import pytest

_FOLDER: Final = os.environ.get("RELAY_TEST_PROGRAMS", "")
"""Read once, at the beginning: a test has an environment of its own."""


@cache
def folder(name: str) -> Path:
    """Return the folder with the program of that name in it; the test is skipped aloud where there is none."""
    found = shutil.which(name, path=_FOLDER) if _FOLDER else shutil.which(name)
    if found is None:
        pytest.skip(f"`{name}` is not installed: put it on PATH, or its folder into RELAY_TEST_PROGRAMS")
    return Path(found).absolute().parent
