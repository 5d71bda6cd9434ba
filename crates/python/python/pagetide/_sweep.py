"""Sweeps: one workload, or one trace, with every combination of several values, to one dataset.

The plan is the lab's, the same as of `pagetide sweep`. Its runs are cut into chunks by the plan alone; each chunk
becomes one Parquet file, whose bytes follow from its runs. So who runs a chunk, and when, changes nothing: threads of
this process, or the workers of a Dask cluster (`_dask.py`). Plans and chunks are in `_plan.py`.

A dataset is a folder, here or anywhere that fsspec reaches:

    plan.json                   what was asked for
    runs/chunk-00017.parquet    a row for each fact of each run of the chunk

A file of `runs` is whole or not there. A sweep that was stopped, or killed, goes on with what is missing.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

from . import _native
from ._dataset import Dataset
from ._errors import Interrupted, UsageError
from ._native import Stop, Table
from ._plan import Chunk, Keep, Plan, Told
from ._progress import ProgressLike, watcher
from ._scenario import ScenarioLike, Size, Value, asked, text_of

if TYPE_CHECKING:
    from distributed import Client

Values = Value | Iterable[Value]
"""A value, or several: a list, a range, or a text as the command line takes it, such as "64M..1G"."""

LOOK_SECONDS = 0.1


class Sweep:
    """What is known of the runs of a sweep. `print` shows the table of the command line.

    Attributes:
        path: The dataset, if it is kept.
        planned: Runs of the plan.
    """

    def __init__(self, described: Mapping[str, Any], chunks: Sequence[tuple[str, bytes]], path: str | None) -> None:
        self.path = path
        self.planned: int = int(described["runs"])
        axes = [(axis["name"], axis["values"]) for axis in described["axes"]]
        self._axes = [name for name, _ in axes]
        self._native = _native.Sweep(described["workload"], axes, described["fixed"], self.planned, list(chunks))

    @property
    def axes(self) -> list[str]:
        """What has several values, the slowest first."""
        return list(self._axes)

    @property
    def table(self) -> Table:
        """A row for each run: its axes, all metrics, all counters of /proc/vmstat, and `error` where it failed."""
        return self._native.table

    @property
    def facts(self) -> Table:
        """A row for each fact of each run, as the files of the dataset have it; memory cgroups, too."""
        return self._native.facts

    @property
    def failures(self) -> dict[str, str]:
        """Why runs failed, by their labels."""
        return {label: why for _, label, _, why in self._native.failures}

    @property
    def exit_code(self) -> int:
        """With what the command line ends: 0 where all runs are over and none failed."""
        codes = [code for _, _, code, _ in self._native.failures]
        return max(codes, default=0)

    def report(self, format: str = "text", *, all: bool = False, width: int = 80) -> str:
        """The report of the command line: "text", "json", "csv" or "md"."""
        return self._native.report(format, all=all, width=width)

    def __len__(self) -> int:
        return len(self._native)

    def __str__(self) -> str:
        return self.report() if len(self) else repr(self)

    def __repr__(self) -> str:
        where = f" in {self.path}" if self.path else ""
        return f"<pagetide.Sweep: {len(self)} of {self.planned} runs{where}>"


def sweep(
    scenario: ScenarioLike,
    *,
    kernel: Values | None = None,
    machine: Values | None = None,
    mem: Size | Iterable[Size] | None = None,
    swap: Values | None = None,
    sysctls: Mapping[str, Values] | None = None,
    params: Mapping[str, Values] | None = None,
    policy: Values | None = None,
    capacity: Values | None = None,
    seed: int | Iterable[int] | None = None,
    seeds: int | None = None,
    interval: str | None = None,
    timing: str | None = None,
    warmup: str | None = None,
    trace_format: str | None = None,
    unsorted: bool = False,
    out: str | os.PathLike[str] | None = None,
    client: Client | None = None,
    jobs: int = 0,
    chunk_runs: int | None = None,
    progress: ProgressLike = None,
) -> Sweep:
    """Runs every combination of several values, on this machine or on a Dask cluster.

    What has several values is an axis; the first of the arguments below is the slowest.

    Args:
        scenario: As `run` takes it, or the path of a trace.
        kernel, machine, mem, swap, sysctls, params, seed: As of `run`, each with one value or several.
        policy, capacity: Of a trace, instead of kernels: replacement policies, and objects that fit.
        seeds: So many seeds, from `seed` on.
        interval: Time between two samples of all counters.
        timing, warmup, trace_format, unsorted: How a trace is read, as `replay` takes it.
        out: The dataset: a folder, or a URL that fsspec knows. What has finished there is kept and not run again.
        client: A `dask.distributed.Client`; its workers need this version of pagetide, and traces at the same path.
        jobs: Without a client, runs at a time; 0 is one for each CPU.
        chunk_runs: Runs of one file, and of one task; else 1 to 32, by the number of runs.
        progress: As of `run`.

    Raises:
        InputError: A value that cannot be; a folder with another plan; a run that ends its worker each time.
        Interrupted: Ctrl-C; its `result` has what had finished.
    """
    text = planned(scenario, locals(), points=False)
    return execute(Plan.of_text(text, chunk_runs), out, client=client, jobs=jobs, progress=progress)


def load_sweep(path: str | os.PathLike[str]) -> Sweep:
    """Reads the dataset of a sweep, finished or not."""
    dataset = Dataset(path)
    return Sweep(dataset.described(), dataset.read(), dataset.path)


_AXES = ("kernel", "machine", "mem", "swap")
_READING = ("timing", "warmup", "trace_format", "unsorted")


def planned(scenario: ScenarioLike, given: Mapping[str, Any], *, points: bool) -> str:
    """The lab's plan, JSON. With `points` a single combination will do."""
    scalars = {"interval": given.get("interval")}
    own = asked(scenario, scalars)
    what, subject = own["subject"]
    subject = subject if what != "text" else "scenario text"
    options: list[tuple[str, str]] = []
    for name in _AXES:
        options += [(name, text) for text in _several(_given(given, own, name))]
    for option, name in (("set", "sysctls"), ("param", "params")):
        merged: dict[str, Any] = dict(pair.split("=", 1) for pair in own[name])
        merged = {key: _quoted(value) for key, value in merged.items()} | dict(given.get(name) or {})
        options += [(option, f"{key}={','.join(_several(values))}") for key, values in merged.items()]
    for name in ("policy", "capacity"):
        options += [(name, text) for text in _several(given.get(name))]
    options += [("seed", text) for text in _several(_given(given, own, "seed"))]
    reading = {name: given.get(name) for name in _READING} | {"unsorted": bool(given.get("unsorted"))}
    return _native.plan_sweep(own, subject, options, given.get("seeds"), reading, points)


def _given(given: Mapping[str, Any], own: Mapping[str, Any], name: str) -> Any:
    """What is given, else the scenario's own, which is one value."""
    if given.get(name) is not None:
        return given[name]
    return None if own[name] is None else [own[name]]


def _several(values: Any) -> list[str]:
    """Values as the command line lists them."""
    if values is None:
        return []
    if isinstance(values, (str, int, float)):
        return [text_of(values)]
    return [_quoted(text_of(value)) for value in values]


def _quoted(text: str) -> str:
    return f'"{text}"' if "," in text or ".." in text else text


def execute(
    plan: Plan,
    out: str | os.PathLike[str] | None,
    *,
    client: Client | None = None,
    jobs: int = 0,
    progress: ProgressLike = None,
    may_exist: bool = True,
) -> Sweep:
    """Runs what is missing of `plan`."""
    for warning in plan.about["warnings"]:
        warnings.warn(warning, stacklevel=3)
    dataset = None if out is None else Dataset(out)
    finished: set[str] = set() if dataset is None else dataset.begin(plan.described, may_exist=may_exist)
    in_memory: dict[str, bytes] = {}
    missing = [chunk for chunk in plan.chunks if chunk.name not in finished]
    told = Told(len(plan), sum(len(chunk.runs) for chunk in missing), watcher(progress))

    def keep(chunk: Chunk, data: bytes) -> None:
        if dataset is None:
            in_memory[chunk.name] = data
        else:
            dataset.write(chunk.name, data)
        told.finished(len(chunk.runs))

    def result() -> Sweep:
        if dataset is None:
            return Sweep(plan.described, sorted(in_memory.items()), None)
        return Sweep(plan.described, dataset.read(), dataset.path)

    try:
        if client is None:
            run_here(plan, missing, jobs, keep, told)
        else:
            from ._dask import run_on

            if not hasattr(client, "submit"):
                raise UsageError(f"`client` is {client!r}: give a `dask.distributed.Client`")
            run_on(client, plan, missing, keep, told)
    except KeyboardInterrupt as interrupt:
        interrupted = Interrupted(f"interrupted: {told.done} of {told.total} runs have finished")
        interrupted.result = result()
        raise interrupted from interrupt
    finally:
        told.over()
    swept = result()
    if swept.failures:
        warnings.warn(f"{len(swept.failures)} of {len(swept)} runs failed: `failures` says why", stacklevel=3)
    return swept


def run_here(plan: Plan, missing: Sequence[Chunk], jobs: int, keep: Keep, told: Told) -> None:
    """Runs chunks on threads of this process."""
    if jobs < 0:
        raise UsageError("`jobs` is a number of runs at a time, or 0 for one for each CPU")
    stop = Stop()
    axes = plan.axes
    with ThreadPoolExecutor(jobs or os.cpu_count() or 1, "pagetide") as pool:
        chunks: dict[Future[bytes], Chunk] = {
            pool.submit(_native.run_chunk, axes, chunk.runs, stop): chunk for chunk in missing
        }
        left = set(chunks)
        try:
            while left:
                done, left = wait(left, LOOK_SECONDS, FIRST_COMPLETED)
                for future in done:
                    keep(chunks.pop(future), future.result())
                told.look()
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
