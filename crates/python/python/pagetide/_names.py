"""Every name that can be given, with what is known of it: `pagetide list`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import _native
from ._scenario import Size, Value, text_of

Rows = list[dict[str, Any]]


def list_workloads() -> Rows:
    """Workloads, each followed by its parameters: `workload`, `parameter`, `default`, `help`."""
    return _native.list_names("workloads")


def list_kernels() -> Rows:
    """Named kernels: `kernel`, `help`."""
    return _native.list_names("kernels")


def list_features() -> Rows:
    """Features that a kernel can have or not: `feature`, `first in`, `help`."""
    return _native.list_names("features")


def list_sysctls() -> Rows:
    """Sysctls that the model reads, with their defaults."""
    return _native.list_names("sysctls")


def list_counters() -> Rows:
    """Counters in recordings, where each comes from, and whether it counts up."""
    return _native.list_names("counters")


def list_machines() -> Rows:
    """Simulated machines."""
    return _native.list_names("machines")


def list_policies() -> Rows:
    """Replacement policies for replays: `policy`, `parameters`, `help`."""
    return _native.list_names("policies")


def list_zones(
    *,
    kernel: str | None = None,
    machine: str | None = None,
    mem: Size | None = None,
    sysctls: Mapping[str, Value] | None = None,
) -> Rows:
    """The zones of a machine after boot: managed and free pages, watermarks and reserves, all in pages.

    The arguments are those of `run`.
    """
    pairs = [f"{name}={text_of(value)}" for name, value in (sysctls or {}).items()]
    return _native.list_zones(kernel, machine, None if mem is None else text_of(mem), pairs)
