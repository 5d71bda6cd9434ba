"""What to run, as a person writes it: a workload's name, a scenario, a file of one, or its text."""

from __future__ import annotations

import dataclasses
import operator
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Union, cast

from ._errors import UsageError
from ._written import Machine, Workload

Value = str | int | float | bool
"""A value of a parameter or sysctl. Sizes are texts such as "512M", or whole numbers of bytes."""

Size = str | int
"""A size of memory: a text such as "1016336kB", or a whole number of bytes."""


@dataclass(frozen=True)
class VirtualMachine:
    """The shape of a guest, for the backend "vm:VERSION"; what is None is the backend's own.

    Attributes:
        cpus: CPUs.
        numa_nodes: NUMA nodes, which share CPUs and memory evenly.
        lru_gen: The multi-gen LRU: "on", "off", or bits of its file "enabled".
        xfs_log: Size of the log of XFS in MiB.
    """

    cpus: int | None = None
    numa_nodes: int | None = None
    lru_gen: str | None = None
    xfs_log: int | None = None


@dataclass(frozen=True)
class Scenario:
    """A run: a workload, and what shall differ from its defaults. The names are those of a scenario file.

    Attributes:
        workload: Its name, of which pagetide.list_workloads() has all, or one of your own.
        kernel: The kernel with its features, such as "linux-5.4+root-aging".
        machine: The simulated machine, by name, or one of your own.
        mem: Its memory, such as "512M", or bytes.
        swap: What it swaps to, such as "zram:256M,disk:1G".
        params: Parameters of the workload; a size is a text such as "2G".
        sysctls: Sysctls, by dotted name.
        seed: Of all randomness in the run.
        interval: Time between two samples of all counters, such as "100ms".
        backend: Where it runs: "sim", "host" or "vm:VERSION".
        vm: The shape of a guest.
    """

    workload: str | Workload
    kernel: str | None = None
    machine: str | Machine | None = None
    mem: Size | None = None
    swap: str | None = None
    params: Mapping[str, Value] = field(default_factory=dict[str, Value])
    sysctls: Mapping[str, Value] = field(default_factory=dict[str, Value])
    seed: int | None = None
    interval: str | None = None
    backend: str | None = None
    vm: VirtualMachine | None = None


ScenarioLike = Union[Scenario, Workload, Mapping[str, Any], str, "os.PathLike[str]"]
"""A scenario, a dictionary with its fields, a workload or its name, the path of a file, or TOML itself."""

_OPTIONS = ("kernel", "machine", "mem", "swap", "seed", "interval", "backend")


def asked(scenario: ScenarioLike, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the lab is asked for: `scenario`, with what is `given` and not None in place of what it says."""
    subject, own = _subject(scenario)
    options = {name: _first(given.get(name), own.get(name)) for name in _OPTIONS}
    options["max_time"] = given.get("max_time")
    of_machine: Mapping[str, Value] = {}
    if isinstance(options["machine"], Machine):
        options["machine"], memory, of_machine = options["machine"].parts
        options["mem"] = _first(options["mem"], memory)
    vm = _first(given.get("vm"), own.get("vm"))
    if isinstance(vm, Mapping):
        vm = _of_mapping(VirtualMachine, cast("Mapping[str, Any]", vm))
    vm = vm or VirtualMachine()
    _check(options)
    return {
        **options,
        "subject": subject,
        "mem": _text(options["mem"]),
        "params": _pairs(own.get("params"), given.get("params")),
        "sysctls": _pairs({**of_machine, **(own.get("sysctls") or {})}, given.get("sysctls")),
        "vm_cpus": vm.cpus,
        "vm_nodes": vm.numa_nodes,
        "vm_lru_gen": vm.lru_gen,
        "vm_xfs_log": vm.xfs_log,
        "max_time": options["max_time"],
    }


def _check(options: Mapping[str, Any]) -> None:
    """Refuses values of another type in words of whoever gave them."""
    for name in ("kernel", "machine", "swap", "interval", "backend", "max_time"):
        value = options[name]
        if value is not None and not isinstance(value, str):
            raise TypeError(f"`{name}` is a text, not {value!r}")
    seed = options["seed"]
    if seed is None:
        return
    try:
        seed = operator.index(seed)
    except TypeError:
        raise TypeError(f"`seed` is a whole number, not {seed!r}") from None
    if not 0 <= seed < 2**64:
        raise UsageError(f"`seed` is a whole number from 0 to 2^64 - 1, not {seed}")


def listed(names: str | Sequence[str]) -> list[str]:
    """Several names; a text is one of them, or has commas between them, as on the command line."""
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)


def text_of(value: Value) -> str:
    """A value as the command line takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _subject(scenario: ScenarioLike) -> tuple[tuple[str, str], Mapping[str, Any]]:
    if isinstance(scenario, Mapping):
        return _subject(_of_mapping(Scenario, {key: value for key, value in scenario.items() if key != "schema"}))
    if isinstance(scenario, Scenario):
        return _subject(scenario.workload)[0], vars(scenario)
    if isinstance(scenario, Workload):
        return ("text", scenario.text), {}
    if isinstance(scenario, str) and ("\n" in scenario or "=" in scenario):
        return ("text", scenario), {}
    path: str = os.fspath(scenario)
    if not isinstance(scenario, str) or path.endswith((".toml", ".fio")):
        return ("file", path), {}
    return ("workload", path), {}


def _of_mapping(kind: type, given: Mapping[str, Any]) -> Any:
    known = [known.name for known in dataclasses.fields(kind)]
    for name in given:
        if name not in known:
            raise UsageError(f"a {kind.__name__} has no field `{name}`: it has {', '.join(known)}")
    if kind is Scenario and "workload" not in given:
        raise UsageError("a scenario needs a `workload`")
    return kind(**given)


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _text(value: Value | None) -> str | None:
    return None if value is None else text_of(value)


def _pairs(own: Mapping[str, Value] | None, given: Mapping[str, Value] | None) -> list[str]:
    merged = {**(own or {}), **(given or {})}
    return [f"{name}={text_of(value)}" for name, value in merged.items()]
