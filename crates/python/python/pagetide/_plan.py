"""A plan of runs, cut into chunks, and how far it is: what threads and clusters have in common.

Neighbours: `_sweep.py`, which makes plans and runs them here, and `_dask.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ._errors import UsageError
from ._progress import Watcher

CHUNKS_WISHED = 64
RUNS_OF_CHUNK_MAX = 32

Axis = tuple[str, list[str]]
PlacedRun = tuple[int, str, list[str], str]


@dataclass(frozen=True)
class Chunk:
    """A part of a plan: its number, and its runs, each with its place, label, values and scenario."""

    number: int
    runs: list[PlacedRun]

    @property
    def name(self) -> str:
        return f"chunk-{self.number:05}"


@dataclass(frozen=True)
class Plan:
    """What a sweep runs: the lab's plan, cut into chunks."""

    text: str
    about: dict[str, Any]
    chunk_runs: int

    @classmethod
    def of_text(cls, text: str, chunk_runs: int | None = None) -> Plan:
        """A plan of the lab as JSON."""
        about = json.loads(text)
        wished = -(-len(about["runs"]) // CHUNKS_WISHED)
        chosen = chunk_runs if chunk_runs is not None else min(wished, RUNS_OF_CHUNK_MAX)
        if chosen < 1:
            raise UsageError("a chunk has at least one run")
        return cls(text, about, chosen)

    @property
    def axes(self) -> list[Axis]:
        return [(axis["name"], axis["values"]) for axis in self.about["axes"]]

    @property
    def version(self) -> str:
        return str(self.about["version"])

    @property
    def hash(self) -> str:
        return str(self.about["hash"])

    def __len__(self) -> int:
        return len(self.about["runs"])

    @property
    def chunks(self) -> Iterator[Chunk]:
        """The parts, by the plan alone."""
        runs = self.about["runs"]
        for number, begin in enumerate(range(0, len(runs), self.chunk_runs)):
            part = runs[begin : begin + self.chunk_runs]
            placed = [(begin + at, run["label"], run["values"], run["scenario"]) for at, run in enumerate(part)]
            yield Chunk(number, placed)

    @property
    def described(self) -> dict[str, Any]:
        """What a dataset keeps of it: all but the runs, which the hash stands for."""
        kept = {key: value for key, value in self.about.items() if key not in ("runs", "warnings")}
        return {"schema": 1, **kept, "runs": len(self), "chunk_runs": self.chunk_runs}


class Told:
    """How far a sweep is, for whoever watches."""

    def __init__(self, total: int, missing: int, watch: Watcher | None) -> None:
        self.total = total
        self.done = total - missing
        self.text = ""
        self.watch = watch

    def finished(self, runs: int) -> None:
        self.done += runs

    def look(self, *notes: str) -> None:
        if self.watch is not None:
            self.watch(self.done, self.total, self.text, 0.0, notes, False)

    def over(self) -> None:
        if self.watch is not None:
            self.watch(self.done, self.total, self.text, 0.0, (), True)


Keep = Callable[[Chunk, bytes], None]


def names(runs: Iterable[PlacedRun]) -> str:
    """Runs in words, for messages."""
    return "; ".join(f"run {place + 1} ({label})" for place, label, _, _ in runs)
