"""What the stories share."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable

import pagetide
import pytest

PARAMS = {"hot": "10M", "stream": "256M"}


@pytest.fixture
def small() -> pagetide.Scenario:
    """A run of a fraction of a second."""
    return pagetide.Scenario("hot-and-stream", kernel="linux-6.12", mem="256M", params=PARAMS)


@pytest.fixture(scope="session")
def command() -> Callable[..., str]:
    """The command line: runs it and returns what it printed."""
    path = os.environ.get("PAGETIDE_COMMAND") or shutil.which("pagetide")
    if not path or not os.path.exists(path):
        pytest.skip("the command `pagetide` is not there: name it in PAGETIDE_COMMAND")

    def run(*arguments: str) -> str:
        return subprocess.run([path, *arguments], check=True, capture_output=True, text=True).stdout

    return run
