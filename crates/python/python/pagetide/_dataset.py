"""The folder of a sweep: its plan, and a file for each chunk that has finished.

Here it is written with a temporary name, which is then changed; elsewhere in one request. Whoever writes a chunk
writes the same bytes, so nobody has to lock anything.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, cast

from ._errors import InputError, UsageError

PLAN = "plan.json"
RUNS = "runs"
SUFFIX = ".parquet"


class _Files(Protocol):
    """What a dataset asks of where it is; paths are relative to its folder."""

    def names(self, folder: str) -> list[str]:
        """Names in a folder; none where there is no folder."""
        ...

    def read(self, name: str) -> bytes | None: ...
    def write(self, name: str, data: bytes) -> None: ...


class _Here:
    def __init__(self, root: Path) -> None:
        self.root = root

    def names(self, folder: str) -> list[str]:
        try:
            return sorted(os.listdir(self.root / folder))
        except FileNotFoundError:
            return []
        except NotADirectoryError:
            raise InputError(f"`{self.root}` is not a folder") from None

    def read(self, name: str) -> bytes | None:
        try:
            return (self.root / name).read_bytes()
        except FileNotFoundError:
            return None
        except NotADirectoryError:
            raise InputError(f"`{self.root}` is not a folder") from None

    def write(self, name: str, data: bytes) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # Beside `runs`, so that a half file is never part of the table; whoever makes the chunk again takes its place.
        partial = self.root / f".{path.name}.{os.getpid()}.partial"
        with open(partial, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
        self._remove_left(f".{path.name}.")

    def _remove_left(self, beginning: str) -> None:
        for name in os.listdir(self.root):
            if name.startswith(beginning) and name.endswith(".partial"):
                (self.root / name).unlink(missing_ok=True)


class _Elsewhere:
    def __init__(self, url: str) -> None:
        try:
            import fsspec
        except ImportError:
            message = f"`{url}` needs the package fsspec"
            raise UsageError(message, hint="pip install pagetide[dask], and what fsspec needs for it") from None
        try:
            core: Any = fsspec.core
            self.files, self.root = core.url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise InputError(f"`{url}` cannot be reached: {error}") from error

    def _path(self, name: str) -> str:
        return f"{str(self.root).rstrip('/')}/{name}".rstrip("/")

    def names(self, folder: str) -> list[str]:
        self.files.invalidate_cache()
        try:
            listed = self.files.ls(self._path(folder), detail=False)
        except FileNotFoundError:
            return []
        return sorted(str(path).rstrip("/").rsplit("/", 1)[-1] for path in listed)

    def read(self, name: str) -> bytes | None:
        try:
            return bytes(self.files.cat_file(self._path(name)))
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        path = self._path(name)
        self.files.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
        self.files.pipe_file(path, data)


class Dataset:
    """A folder, or whatever a URL names."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self.files: _Files = _Elsewhere(self.path) if "://" in self.path else _Here(Path(self.path))

    def begin(self, described: Mapping[str, Any], *, may_exist: bool = True) -> set[str]:
        """Makes the folder, or goes on in it; returns the names of the chunks that have finished."""
        found = self.files.read(PLAN)
        if found is None:
            others = [name for name in self.files.names("") if not name.endswith(".partial")]
            if others:
                message = f"`{self.path}` is no dataset of a sweep: it has `{others[0]}`, and no `{PLAN}`"
                raise InputError(message, hint="name a new folder")
            self._write(PLAN, (json.dumps(described, indent=1) + "\n").encode())
            return set()
        if not may_exist:
            raise InputError(
                f"`{self.path}` has a sweep already", hint="add `--resume` to go on with it, or name a new folder"
            )
        differences = _differences(self._parsed(found), described)
        if differences:
            message = f"`{self.path}` has a sweep of another plan: {'; '.join(differences)}"
            raise InputError(message, hint="give the options that it was begun with, or name a new folder")
        return set(self._finished())

    def described(self) -> dict[str, Any]:
        """What its plan is."""
        found = self.files.read(PLAN)
        if found is None:
            raise InputError(f"`{self.path}` is no dataset of a sweep: it has no `{PLAN}`")
        return self._parsed(found)

    def write(self, chunk: str, data: bytes) -> None:
        """Keeps a chunk."""
        self._write(f"{RUNS}/{chunk}{SUFFIX}", data)

    def read(self) -> list[tuple[str, bytes]]:
        """Names and bytes of the chunks that have finished."""
        named = [f"{RUNS}/{name}{SUFFIX}" for name in self._finished()]
        read = ((f"{self.path}/{name}", self.files.read(name)) for name in named)
        return [(name, data) for name, data in read if data is not None]

    def _write(self, name: str, data: bytes) -> None:
        try:
            self.files.write(name, data)
        except OSError as error:
            raise InputError(f"cannot write `{self.path}/{name}`: {error}") from error

    def _finished(self) -> list[str]:
        return [name.removesuffix(SUFFIX) for name in self.files.names(RUNS) if name.endswith(SUFFIX)]

    def _parsed(self, text: bytes) -> dict[str, Any]:
        try:
            parsed: dict[str, Any] | None = json.loads(text)
        except ValueError as error:
            raise InputError(f"`{self.path}/{PLAN}` is damaged: {error}") from error
        if not isinstance(parsed, dict) or parsed.get("schema") != 1:
            raise InputError(f"`{self.path}/{PLAN}` is no plan that this pagetide reads")
        return parsed


def _differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """What differs, in words; the hash says something only where nothing else does."""
    differ = [key for key in {**there, **here} if there.get(key) != here.get(key)]
    telling = [key for key in differ if key not in ("hash", "size")] or differ
    return [f"{key}: {_shown(there.get(key))} there, {_shown(here.get(key))} here" for key in telling]


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"`{'; '.join(_axis(axis) for axis in cast('list[object]', value))}`"
    return "nothing" if value is None else f"`{value}`"


def _axis(axis: object) -> str:
    if not isinstance(axis, dict):
        return str(axis)
    told = cast("dict[str, Any]", axis)
    return f"{told['name']}={','.join(told['values'])}"
