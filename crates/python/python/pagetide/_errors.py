"""What can go wrong, as exceptions: one class for each of the command line's exit codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar


def _told(message: str, causes: Sequence[str], hint: str | None) -> str:
    lines = [message, *(f"  caused by: {cause}" for cause in causes)]
    return "\n".join(lines if hint is None else [*lines, f"hint: {hint}"])


class Error(Exception):
    """Something went wrong: what the command line says of it, and what to do about it.

    Attributes:
        message: What went wrong, one sentence.
        causes: Why, the nearest cause first; mostly empty.
        hint: What to do about it, if that is known.
        exit_code: With what the command line ends in such a case.
    """

    exit_code: ClassVar[int] = 2

    def __init__(self, message: str, causes: Sequence[str] = (), hint: str | None = None) -> None:
        super().__init__(message, tuple(causes), hint)
        self.message = message
        self.causes: tuple[str, ...] = tuple(causes)
        self.hint = hint

    def __str__(self) -> str:
        return _told(self.message, self.causes, self.hint)


class InputError(Error):
    """The plan or an input is wrong: something to change and try again."""

    exit_code: ClassVar[int] = 1


class UsageError(Error):
    """Arguments that do not go together."""


class InternalError(Error):
    """This program cannot go on through no fault of the plan."""


class InvariantError(Error):
    """An invariant of the model is violated: a bug of pagetide; the hint has the command that shows it."""

    exit_code: ClassVar[int] = 3


class LimitError(Error):
    """A limit that was set is not kept."""

    exit_code: ClassVar[int] = 5


class Interrupted(KeyboardInterrupt):
    """Ctrl-C stopped the work.

    It is a KeyboardInterrupt and no Error: what catches errors of a run lets it pass.

    Attributes:
        result: What had finished by then, as the function would have returned it; None if that is nothing.
    """

    exit_code: ClassVar[int] = 130

    def __init__(self, message: str, causes: Sequence[str] = (), hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.causes: tuple[str, ...] = tuple(causes)
        self.hint = hint
        self.result: Any = None

    def __str__(self) -> str:
        return _told(self.message, self.causes, self.hint)
