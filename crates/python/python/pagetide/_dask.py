"""Chunks of a sweep on a Dask cluster.

# Theory of operation
A chunk is a task, named after the plan and its number. The client keeps the bytes of each as soon as it has them; what
a worker held when it died is run again by another, as Dask does it. A task that Dask gives up, because each worker that
had it died, is taken apart: its runs become tasks of their own, and those that end their workers again are tried once
more, each alone, so that a neighbour is not blamed. What is left is named in the error; all else is in the dataset.

Left out: how a cluster is started. Neighbours: `_plan.py`, `_sweep.py`.
"""

from __future__ import annotations

import asyncio
import queue
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any

from . import _native
from ._errors import Error, InputError, InternalError, UsageError
from ._plan import Axis, Chunk, Keep, PlacedRun, Plan, Told, names

if TYPE_CHECKING:
    from distributed import Client

Future = Any
"""Of distributed, which says little of its types."""

LOOK_SECONDS = 0.1
NO_WORKERS_SECONDS = 10.0
TO_HAND_OVER_SECONDS = 5.0
INSTALL = "pip install pagetide[dask]"


def connect(address: str) -> Client:
    """A client of the scheduler at `address`."""
    distributed = _imported()
    try:
        client: Client = distributed.Client(address, timeout="10s")
    except (OSError, ValueError) as error:
        raise InputError(
            f"there is no Dask scheduler at `{address}`: {error}",
            hint="start one with `dask scheduler`, and workers with `dask worker ADDRESS`",
        ) from error
    return client


def _imported() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise UsageError("sweeps on a cluster need Dask", hint=INSTALL) from error
    return distributed


def work(version: str, axes: list[Axis], runs: list[PlacedRun]) -> bytes:
    """A task: runs a chunk on a worker."""
    if _native.__version__ != version:
        message = f"the client is pagetide {version}, and this worker has {_native.__version__}"
        raise UsageError(message, hint="install the same version everywhere, workers included")
    return _native.run_chunk(axes, runs)


class _Killed(Exception):
    """Each worker that had the task died."""


class _Tasks:
    """Tasks on their way, and what becomes of them, in the order in which they end."""

    def __init__(self, client: Any, plan: Plan, told: Told) -> None:
        self.client, self.plan, self.told = client, plan, told
        self.ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.of: dict[Future, Any] = {}

    def submit(self, what: Any, key: str, runs: list[PlacedRun]) -> None:
        key = f"pagetide-{self.plan.hash}-{self.plan.chunk_runs}-{key}"
        future = self.client.submit(work, self.plan.version, self.plan.axes, runs, key=key, pure=True)
        self.of[future] = what
        future.add_done_callback(self.ended.put)

    def results(self) -> Iterator[tuple[Any, bytes | _Killed]]:
        """What was submitted, with its bytes."""
        looked = time.monotonic()
        while self.of:
            try:
                future = self.ended.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                looked = self._look(looked)
                continue
            self.told.look()
            if future not in self.of:
                continue
            data = _result(future)
            if data is None:  # The worker died with it: it is made again.
                future.add_done_callback(self.ended.put)
            else:
                yield self.of.pop(future), data

    def _look(self, looked: float) -> float:
        self.told.look()
        if time.monotonic() - looked < NO_WORKERS_SECONDS:
            return looked
        if self.client.status == "running" and not self.client.scheduler_info()["workers"]:
            self.told.look("the cluster has no workers: waiting for one")
        return time.monotonic()

    def cancel(self) -> None:
        """Of what is still on its way."""
        self.client.cancel(list(self.of), force=True)
        self.of.clear()


def _result(future: Future, timeout: float | None = TO_HAND_OVER_SECONDS) -> bytes | _Killed | None:
    """What a task that has ended came to; none where that cannot be had in time."""
    distributed = _imported()
    try:
        data = future.result(timeout)
    except (TimeoutError, asyncio.TimeoutError):  # One and the same from Python 3.11 on.
        return None
    except distributed.KilledWorker:
        return _Killed()
    except CancelledError as error:
        hint = "what has finished is kept: start the cluster, and the same sweep goes on"
        raise InternalError("the cluster has gone away", hint=hint) from error
    except Error:
        raise
    except ImportError as error:
        hint = "pip install pagetide, in the same version, on all workers"
        raise UsageError(f"a worker has no pagetide: {error}", hint=hint) from error
    future.release()
    return bytes(data)


class Remote:
    """A task on its own, as a future of the standard library."""

    def __init__(self, future: Future, run: PlacedRun) -> None:
        self.future, self.run = future, run

    def result(self) -> bytes:
        """The bytes of its chunk."""
        data = _result(self.future, None)
        if isinstance(data, bytes):
            return data
        raise _ends_workers([self.run])

    def cancel(self) -> None:
        """Nobody needs it."""
        self.future.cancel()


def run_on(client: Client, plan: Plan, missing: Sequence[Chunk], keep: Keep, told: Told) -> None:
    """Runs chunks on a cluster."""
    if client.asynchronous:
        raise UsageError("an asynchronous client cannot be waited for: give one made without `asynchronous=True`")
    tasks = _Tasks(client, plan, told)
    killed: list[Chunk] = []
    try:
        for chunk in missing:
            tasks.submit(chunk, chunk.name, chunk.runs)
        for chunk, data in tasks.results():
            if isinstance(data, _Killed):
                killed.append(chunk)
            else:
                keep(chunk, data)
        guilty = [run for chunk in killed for run in _taken_apart(tasks, plan, chunk, keep)]
    except BaseException:
        tasks.cancel()
        raise
    if guilty:
        raise _ends_workers(guilty)


def _taken_apart(tasks: _Tasks, plan: Plan, chunk: Chunk, keep: Keep) -> list[PlacedRun]:
    """Runs a chunk one run a task; returns the runs that end their workers."""
    parts: dict[int, bytes] = {}
    suspects: list[PlacedRun] = []
    for run in chunk.runs:
        tasks.submit(run, f"run-{run[0]}", [run])
    for run, data in tasks.results():
        if isinstance(data, _Killed):
            suspects.append(run)
        else:
            parts[run[0]] = data
    guilty: list[PlacedRun] = []
    for suspect in sorted(suspects):
        tasks.submit(suspect, f"alone-{suspect[0]}", [suspect])
        for run, data in tasks.results():
            if isinstance(data, _Killed):
                guilty.append(run)
            else:
                parts[run[0]] = data
    if not guilty:
        keep(chunk, _native.join_chunks(plan.axes, [parts[place] for place in sorted(parts)]))
    return guilty


def _ends_workers(guilty: Sequence[PlacedRun]) -> InputError:
    message = f"each worker that had it died: {names(guilty)}"
    hint = (
        "what has finished is kept. A worker that the system kills has too little memory for the run: "
        "give workers more, or fewer threads"
    )
    return InputError(message, hint=hint)
