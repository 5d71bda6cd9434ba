"""Traces: replays on kernels and policies, and how much memory one needs, as `pagetide replay` and `size` do it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from . import _native
from ._native import Replay, Size
from ._progress import ProgressLike, warn, watcher
from ._scenario import Scenario, Value, VirtualMachine, asked, text_of
from ._scenario import Size as MemorySize

_SIZE_OPTIONS = (
    "points",
    "resolution",
    "slowdown",
    "headroom",
    "sample",
    "check_sample",
    "verify",
    "program",
    "allow_host_pressure",
    "disk",
    "kernel",
    "machine",
    "seed",
    "seeds",
    "interval",
)


def replay(
    trace: str | os.PathLike[str],
    *,
    mem: MemorySize | Sequence[MemorySize] = (),
    kernel: str | Sequence[str] = (),
    policy: str | Sequence[str] = (),
    capacity: Value | Sequence[Value] = (),
    limit: MemorySize | Sequence[MemorySize] = (),
    high: MemorySize | None = None,
    low: MemorySize | None = None,
    pace: str | None = None,
    backend: str | Sequence[str] = (),
    machine: str | None = None,
    swap: str | None = None,
    sysctls: Mapping[str, Value] | None = None,
    seed: int | None = None,
    interval: str | None = None,
    vm: VirtualMachine | None = None,
    timing: str | None = None,
    warmup: str | None = None,
    trace_format: str | None = None,
    unsorted: bool = False,
    jobs: int = 0,
    progress: ProgressLike = None,
) -> Replay:
    """Replays a recorded trace through page cache and reclaim, or on plain policies.

    Args:
        trace: A file of requests, perhaps compressed, or the trace of a program (`pagetide capture`).
        mem: Memory of the simulated machine, one size or several; texts, or bytes.
        kernel: Kernels of that machine, one or several; else the newest of long support.
        policy: Plain policies such as "lru" or "s3fifo:small=0.2", each at each `capacity`.
        capacity: Objects that fit: 10000 or "10k".
        limit: memory.max of the cgroup that it runs in, one or several, "none" for no limit.
        high: memory.high of that cgroup. `low` likewise.
        pace: Of a program's trace: "think", "recorded" or "asap".
        backend: Of a program's trace: where it runs, one or several.
        timing: When requests are made: "asap" or "recorded".
        warmup: What is not counted: "10%", a number of requests, or a time such as "60s".
        trace_format: "block-csv", "msr", "object-csv" or "oracle-general"; else by content.
        unsorted: Take requests in the order of the trace though its times decrease.
        jobs: Kernels at a time; 0 is one for each CPU.

    The other arguments are those of `run`.

    Raises:
        InputError: A trace that cannot be read, or no cache to replay it on.
        Interrupted: Ctrl-C; its `result` is the replay on those caches that were done.
    """
    given = locals()
    of = {
        "trace": os.fspath(trace),
        "policies": _texts(policy),
        "capacities": _texts(capacity),
        "mems": _texts(mem),
        "kernels": _texts(kernel),
        "backends": _texts(backend),
        "limits": _texts(limit),
        "high": None if high is None else text_of(high),
        "low": None if low is None else text_of(low),
        "pace": pace,
    }
    own = {name: given[name] for name in ("machine", "swap", "sysctls", "seed", "interval", "vm")}
    return _native.replay_trace(asked(Scenario(""), own), of, reading(given), jobs, warn, watcher(progress))


def size(
    trace: str | os.PathLike[str],
    *,
    slowdown: str | None = None,
    fail_if: Sequence[str] = (),
    headroom: str | None = None,
    limits: MemorySize | Sequence[MemorySize] | None = None,
    points: int | None = None,
    resolution: str | None = None,
    sample: str | None = None,
    check_sample: bool = False,
    verify: str | None = None,
    program: Sequence[str] = (),
    allow_host_pressure: bool = False,
    disk: str | None = None,
    kernel: str | None = None,
    machine: str | None = None,
    mem: MemorySize | None = None,
    sysctls: Mapping[str, Value] | None = None,
    seed: int | None = None,
    seeds: int | None = None,
    interval: str | None = None,
    timing: str | None = None,
    warmup: str | None = None,
    trace_format: str | None = None,
    unsorted: bool = False,
    jobs: int = 0,
    out: str | os.PathLike[str] | None = None,
    progress: ProgressLike = None,
) -> Size:
    """How much memory a trace needs: its hits at several limits, where they bend, and what to set.

    Args:
        trace: As `replay` takes it.
        slowdown: How much slower it may be than without a limit: "5%".
        fail_if: What must not be so at a limit that is enough, such as "refaults > 1000".
        headroom: How far memory.max is above memory.high: "10%".
        limits: These limits and no others, such as "64M..1G"; else those that the curve needs.
        points: So many limits at most.
        resolution: How near the limits are between which the knee and the target lie: "5%".
        sample: A hashed part of the trace's addresses instead of all: "1/16".
        check_sample: Run all of the trace at the same limits, too.
        verify: "program" runs the program itself at the recommendation and around it, in a memory cgroup of this host;
            "uml:6.12" replays three points on a real kernel.
        program: The command to run for that, word by word; else that of the trace.
        allow_host_pressure: Drop inodes and dentries of this whole host before each run of the program.
        disk: "nvme", "ssd", "hdd", "network" or "measured", several after commas; else this host's, measured where
            the files of a captured program lie.
        seeds: So many runs of each limit.
        out: A new folder for the recordings.

    The other arguments are those of `run` and `replay`.

    Raises:
        InputError: A trace that cannot be read or sized.
        Interrupted: Ctrl-C; its `result` is what was found by then.
    """
    given = locals()
    of = {name: given[name] for name in _SIZE_OPTIONS}
    of["trace"] = os.fspath(trace)
    of["mem"] = None if mem is None else text_of(mem)
    of["limits"] = None if limits is None else _listed(limits)
    of["fail_if"] = list(fail_if)
    of["program"] = list(program)
    of["sysctls"] = [f"{name}={text_of(value)}" for name, value in (sysctls or {}).items()]
    folder = None if out is None else os.fspath(out)
    return _native.size_trace(of, reading(given), jobs, folder, watcher(progress))


def _texts(values: Value | Sequence[Value]) -> list[str]:
    if isinstance(values, (str, bool, int, float)):
        return [part.strip() for part in text_of(values).split(",")]
    return [text_of(value) for value in values]


def _listed(values: Value | Sequence[Value]) -> str:
    """Values in one text, as the command line takes them; a text is one already, perhaps a range."""
    return values if isinstance(values, str) else ",".join(_texts(values))


def reading(given: Mapping[str, Any]) -> dict[str, Any]:
    """How a trace is read."""
    return {name: given[name] for name in ("timing", "warmup", "trace_format", "unsorted")}
