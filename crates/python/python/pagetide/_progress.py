"""How far the work is: a line on standard error, or below the cell of a notebook."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

WIDTH = 24
REDRAW_SECONDS = 0.1


@dataclass(frozen=True)
class Progress:
    """How far some work is.

    Attributes:
        done: Runs that are over.
        total: Runs that there are, as far as is known; 0 if nothing is.
        text: What goes on, in words.
        simulated_seconds: Simulated time of the run that told last.
        notes: Sentences that came up since the last time.
        is_over: Whether this is the last time.
    """

    done: int
    total: int
    text: str
    simulated_seconds: float
    notes: Sequence[str]
    is_over: bool


ProgressLike = bool | Callable[[Progress], object] | None
"""None draws where somebody looks, True always, False never; a function is called about ten times a second."""

Watcher = Callable[[int, int, str, float, Sequence[str], bool], None]


def watcher(progress: ProgressLike) -> Watcher | None:
    """What the lab calls while it works."""
    if callable(progress):
        told = progress

        def tell(*seen: Any) -> None:
            told(Progress(*seen))

        return tell
    if progress is None:
        progress = in_notebook() or sys.stderr.isatty()
    if not progress:
        return None
    return _Cell() if in_notebook() else _Line()


def warn(text: str) -> None:
    """Tells what the reader of a result has to know."""
    warnings.warn(text, stacklevel=4)


def in_notebook() -> bool:
    """Whether a notebook's kernel runs this."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return type(shell).__name__ == "ZMQInteractiveShell"


class _Drawn:
    """A bar that is drawn again as the work goes on."""

    def __init__(self) -> None:
        self.begun = time.monotonic()

    def __call__(self, done: int, total: int, text: str, simulated: float, notes: Sequence[str], is_over: bool) -> None:
        for note in notes:
            self.note(note)
        if is_over:
            self.clear()
        else:
            self.draw(self.line(done, total, text, simulated))

    def line(self, done: int, total: int, text: str, simulated: float) -> str:
        share = done / total if total else 0.0
        bar = ("#" * round(share * WIDTH)).ljust(WIDTH, "-")
        passed = time.monotonic() - self.begun
        left = f", {passed / share - passed:.0f} s left" if 0 < done < total and passed > 3 else ""
        simulated_time = f", {simulated:.1f} s simulated" if simulated else ""
        return f"[{bar}] {done}/{total} {text}{simulated_time}{left}"

    def note(self, text: str) -> None:
        raise NotImplementedError

    def draw(self, line: str) -> None:
        raise NotImplementedError

    def clear(self) -> None:
        raise NotImplementedError


class _Line(_Drawn):
    """On a terminal."""

    CLEAR = "\r\x1b[K"

    def note(self, text: str) -> None:
        self._write(f"{self.CLEAR}{text}\n")

    def draw(self, line: str) -> None:
        self._write(f"{self.CLEAR}{line[:119]}")

    def clear(self) -> None:
        self._write(self.CLEAR)

    @staticmethod
    def _write(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


class _Cell(_Drawn):
    """Below the cell of a notebook."""

    def __init__(self) -> None:
        super().__init__()
        self.handle: Any = None

    def note(self, text: str) -> None:
        print(text, file=sys.stderr)

    def draw(self, line: str) -> None:
        display = sys.modules["IPython"].display.display

        shown = {"text/plain": line}
        if self.handle is None:
            self.handle = display(shown, raw=True, display_id=True)
        else:
            self.handle.update(shown, raw=True)

    def clear(self) -> None:
        if self.handle is not None:
            self.handle.update({"text/plain": ""}, raw=True)
