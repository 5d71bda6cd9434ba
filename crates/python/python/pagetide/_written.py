"""Workloads and machines of your own, from files or built here with the files' words."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Union, cast

from . import _native
from ._errors import UsageError

PathLike = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Workload:
    """A workload file (docs/workload-files.md): cgroups, files, tasks in steps, phases, metrics.

        Workload.from_toml("my-server.toml")
        Workload.from_fio("job.fio")
        Workload.build("scan", files={"data": {"size": "1G"}}, tasks={"reader": {"steps": [{"read": "data"}]}})

    It goes wherever a workload's name does: `run(workload, mem="512M", params={"hot": "50M"})`.

    Attributes:
        text: The file.
    """

    text: str

    def __post_init__(self) -> None:
        _native.check_workload(self.text)

    @property
    def name(self) -> str:
        """What reports call it."""
        return _native.check_workload(self.text)

    @classmethod
    def from_toml(cls, source: PathLike) -> Workload:
        """A workload file, or its text.

        Raises:
            InputError: It is none; the message names line and column.
        """
        return cls(_text_of(source))

    @classmethod
    def from_fio(cls, source: PathLike, *, name: str | None = None) -> Workload:
        """A job file of fio, or its text; `name` is what reports call it behind `fio-`.

        Raises:
            InputError: An option changes the result and is not supported.
        """
        text = _text_of(source)
        path: str = os.fspath(source)
        stem = "job" if text is source else os.path.splitext(os.path.basename(path))[0]
        return cls(_native.translate_fio(name or stem, text))

    @classmethod
    def build(cls, name: str, **tables: Any) -> Workload:
        """A workload in the file's words: `help`, `phases`, `params`, `groups`, `files`, `tasks`, `metrics`.

        Raises:
            InputError: A word is unknown, or somebody would wait for ever.
        """
        return cls(_toml({"name": name, **tables}))


@dataclass(frozen=True)
class Machine:
    """A machine file (docs/machine-files.md).

        Machine.from_toml("my-server.toml")
        Machine.build(nodes=2, cpus=32, memory="64G", disk={"class": "nvme"})
        Machine.probe()

    It goes wherever a machine's name does: `run("hot-and-stream", machine=machine)`.

    Attributes:
        text: The file.
    """

    text: str

    def __post_init__(self) -> None:
        _native.read_machine(self.text)

    @classmethod
    def from_toml(cls, source: PathLike) -> Machine:
        """A machine file, or its text.

        Raises:
            InputError: It is none; the message names line and column.
        """
        return cls(_text_of(source))

    @classmethod
    def build(cls, **keys: Any) -> Machine:
        """A machine in the file's words.

        These are `base`, `memory`, `nodes`, `cpus`, `hz`, `cpu_percent`, `protection_keys`, `disk`, `costs`, `sysctls`.

        Raises:
            InputError: A word is unknown, or a value makes no sense.
        """
        return cls(_toml(keys))

    @classmethod
    def probe(cls, directory: PathLike = ".") -> Machine:
        """This host; it takes some ten seconds and makes a file of 64 MiB in `directory`, which it removes."""
        return cls(_native.probe_machine(os.fspath(directory)))

    @property
    def parts(self) -> tuple[str, str | None, dict[str, str]]:
        """The machine as an option has it, its memory, its sysctls."""
        machine, memory, sysctls = _native.read_machine(self.text)
        return machine, memory, dict(sysctls)


def _text_of(source: PathLike) -> str:
    """A file's text; what has a line end is a text already."""
    if isinstance(source, str) and "\n" in source:
        return source
    try:
        with open(source, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"`{os.fspath(source)}` cannot be read: {error}") from None


def _toml(table: Mapping[str, Any]) -> str:
    """A table as TOML: what is nested stands in line."""
    return "".join(f"{_key(key)} = {_value(value)}\n" for key, value in table.items())


def _key(key: str) -> str:
    return json.dumps(key, ensure_ascii=False)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        table = cast("Mapping[str, Any]", value)
        return "{ " + ", ".join(f"{_key(key)} = {_value(inner)}" for key, inner in table.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(inner) for inner in cast("list[object]", value)) + "]"
    raise TypeError(f"a file has no {type(value).__name__}: {value!r}")
