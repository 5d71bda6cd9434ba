"""Runs, comparisons and recordings: what `pagetide run`, `compare` and `report` do."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TypeGuard, Union, overload

from . import _native
from ._errors import InputError, UsageError
from ._native import Comparison, Recording
from ._progress import ProgressLike, warn, watcher
from ._scenario import ScenarioLike, Size, Value, VirtualMachine, asked, listed
from ._written import Machine

Path = Union[str, "os.PathLike[str]"]


def resolve(
    scenario: ScenarioLike,
    *,
    kernel: str | None = None,
    machine: str | Machine | None = None,
    mem: Size | None = None,
    swap: str | None = None,
    params: Mapping[str, Value] | None = None,
    sysctls: Mapping[str, Value] | None = None,
    seed: int | None = None,
    interval: str | None = None,
    backend: str | None = None,
    vm: VirtualMachine | None = None,
) -> str:
    """The scenario with every value that decides the run, as TOML: what `pagetide run --dry-run` prints.

    It is a scenario again, for `run` and for the command line. The arguments are those of `run`.

    Raises:
        InputError: A name or value that cannot be, told with the nearest one that can.
    """
    toml, told = _native.resolve(asked(scenario, locals()))
    if told is not None:
        warnings.warn(told, stacklevel=2)
    return toml


def run(
    scenario: ScenarioLike,
    *,
    kernel: str | None = None,
    machine: str | Machine | None = None,
    mem: Size | None = None,
    swap: str | None = None,
    params: Mapping[str, Value] | None = None,
    sysctls: Mapping[str, Value] | None = None,
    seed: int | None = None,
    interval: str | None = None,
    backend: str | None = None,
    vm: VirtualMachine | None = None,
    max_time: str | None = None,
    out: Path | None = None,
    progress: ProgressLike = None,
) -> Recording:
    """Runs one workload on one kernel.

    Args:
        scenario: A workload's name, a `Scenario`, a dictionary with its fields, the path of a TOML file, or TOML.
        kernel: The kernel with its features, such as "linux-5.4+root-aging"; else the newest of long support.
        machine: The simulated machine, by name; else the workload's own.
        mem: Its memory, such as "512M", or bytes.
        swap: What it swaps to, such as "zram:256M,disk:1G".
        params: Parameters of the workload; a size is a text such as "2G", or bytes.
        sysctls: Sysctls, by dotted name.
        seed: Of all randomness in the run.
        interval: Time between two samples of all counters, such as "20ms"; else 100 ms of simulated time.
        backend: Where it runs: "sim", "host" or "vm:VERSION".
        vm: The shape of a guest.
        max_time: How long it may take on the clock, such as "60s"; a run that takes longer is stopped.
        out: A new folder that the recording is written to while the run goes.
        progress: None draws where somebody looks, True always, False never; or a function.

    Raises:
        InputError: A name or value that cannot be, told with the nearest one that can; a run past `max_time`.
        Interrupted: Ctrl-C.
    """
    return _native.run(asked(scenario, locals()), _path(out), warn, watcher(progress))


def compare(
    *subjects: ScenarioLike,
    kernels: str | Sequence[str] = (),
    backends: str | Sequence[str] = (),
    seeds: int = 1,
    machine: str | Machine | None = None,
    mem: Size | None = None,
    swap: str | None = None,
    params: Mapping[str, Value] | None = None,
    sysctls: Mapping[str, Value] | None = None,
    seed: int | None = None,
    interval: str | None = None,
    vm: VirtualMachine | None = None,
    max_time: str | None = None,
    jobs: int = 0,
    out: Path | None = None,
    resume: bool = False,
    progress: ProgressLike = None,
) -> Comparison:
    """Puts kernels side by side on one workload, or recordings that were made earlier.

    Args:
        subjects: One scenario as `run` takes it, or folders of recordings.
        kernels: The kernels, the baseline first; else the two of the workload's source.
        backends: Where they run: "sim", "host", "vm:VERSION", several to put the model beside a kernel.
        seeds: So many runs of each, with seeds from `seed` on.
        jobs: Runs at a time; 0 is one for each CPU.
        out: A folder for the recordings.
        resume: Go on with what was begun in `out`.

    The other arguments are those of `run`.

    Raises:
        InputError: As `run`; or a single kernel and nothing to compare it with.
        Interrupted: Ctrl-C; its `result` is the comparison of what had finished.
    """
    given = locals()
    folders = [os.fspath(subject) for subject in subjects if _is_folder(subject)]
    if folders:
        if len(folders) < len(subjects):
            raise UsageError("folders are compared with folders")
        return _told(_native.compare_folders(folders))
    if len(subjects) != 1:
        raise UsageError("name one workload or scenario, or folders with recordings")
    return _native.compare_kernels(
        asked(subjects[0], given),
        listed(kernels),
        listed(backends),
        seeds,
        jobs,
        _path(out),
        resume,
        warn,
        watcher(progress),
    )


def load(path: Path) -> Recording:
    """Reads the recording in a folder, whoever wrote it.

    Raises:
        InputError: There is none, it is damaged, or there are several, which `load_all` and `compare` take.
    """
    recordings = load_all(path)
    if len(recordings) > 1:
        hint = "pagetide.load_all reads all of them, pagetide.compare puts them side by side"
        raise InputError(f"`{os.fspath(path)}` has {len(recordings)} recordings", hint=hint)
    return recordings[0]


def load_all(path: Path) -> list[Recording]:
    """Reads all recordings in a folder, in the order of their names."""
    return _native.load(os.fspath(path))


def _is_folder(subject: ScenarioLike) -> TypeGuard[Path]:
    return isinstance(subject, (str, os.PathLike)) and os.path.isdir(subject)


@overload
def _path(path: None) -> None: ...
@overload
def _path(path: Path) -> str: ...
def _path(path: Path | None) -> str | None:
    return None if path is None else os.fspath(path)


def _told(comparison: Comparison) -> Comparison:
    for warning in comparison.warnings:
        warnings.warn(warning, stacklevel=3)
    return comparison
