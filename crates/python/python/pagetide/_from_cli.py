"""`pagetide sweep --dask`: the command line hands its plan over on standard input, and this runs it on a cluster.

A JSON object with `plan` (the lab's), `scheduler`, `out`, `resume`, `chunk_runs`, `format`, `all`, `width`, `quiet`.
The result goes to standard output, everything else to standard error; the exit code is the command line's.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any, TextIO, cast

from . import _dask, _native
from ._errors import Error, Interrupted
from ._plan import Plan
from ._progress import Progress
from ._sweep import Sweep, execute


def main(source: TextIO) -> int:
    """Runs the sweep that `source` asks for; returns the exit code."""
    request = json.load(source)
    quiet = bool(request["quiet"])
    warnings.showwarning = cast(Any, _no_warning if quiet else _warning)
    plan_text = json.dumps(request["plan"])
    try:
        _native.read_plan(plan_text)
        plan = Plan.of_text(plan_text, request["chunk_runs"])
        client: Any = _dask.connect(request["scheduler"])
        try:
            swept = execute(
                plan,
                request["out"],
                client=client,
                progress=False if quiet else (None if sys.stderr.isatty() else _Lines()),
                may_exist=request["resume"],
            )
        finally:
            client.close()
        _show(swept, request)
        return swept.exit_code
    except Interrupted as interrupted:
        if interrupted.result:
            _show(interrupted.result, request)
        return _failed(interrupted)
    except Error as error:
        return _failed(error)


class _Lines:
    """A line for each tenth of the way, where nobody looks at a bar."""

    def __init__(self) -> None:
        self.told = -1

    def __call__(self, progress: Progress) -> None:
        for note in progress.notes:
            print(note, file=sys.stderr)
        tenth = 10 * progress.done // progress.total if progress.total else 0
        if tenth > self.told:
            self.told = tenth
            print(f"{progress.done} of {progress.total} runs", file=sys.stderr)


def _show(swept: Sweep, request: dict[str, Any]) -> None:
    if len(swept):
        sys.stdout.write(swept.report(request["format"], all=request["all"], width=request["width"]))


def _failed(error: Error | Interrupted) -> int:
    print(f"error: {error.message}", file=sys.stderr)
    for cause in error.causes:
        print(f"  caused by: {cause}", file=sys.stderr)
    if error.hint is not None:
        print(f"\nhint: {error.hint}", file=sys.stderr)
    return error.exit_code


def _warning(message: Warning | str, *_: Any) -> None:
    print(f"warning: {message}", file=sys.stderr)


def _no_warning(*_: Any) -> None:
    """Said by nobody."""


if __name__ == "__main__":
    sys.exit(main(sys.stdin))
