"""What the stories share."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import pagetide
import pytest

PARAMS = {"hot": "10M", "stream": "256M"}


def timeless(told: Any) -> Any:
    """What is told, as JSON or CSV, but for what a run took on this machine's clock."""
    if isinstance(told, str) and told.startswith("{"):
        return timeless(json.loads(told))
    if isinstance(told, str) and "\n" in told:
        return [line for line in told.splitlines() if "wall_seconds" not in line]
    if isinstance(told, dict):
        return {name: timeless(value) for name, value in told.items() if name != "wall_seconds"}
    return [timeless(part) for part in told] if isinstance(told, list) else told


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
