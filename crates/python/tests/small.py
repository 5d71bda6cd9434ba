"""A sweep of runs that are over in a moment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

WORKLOAD = "hot-and-stream"
SMALL: dict[str, Any] = {"mem": "64M", "params": {"hot": "4M", "stream": "8M"}}


def files(dataset: Path) -> dict[str, bytes]:
    """Everything that a dataset consists of."""
    return {str(path.relative_to(dataset)): path.read_bytes() for path in dataset.rglob("*") if path.is_file()}
