"""Every subset of features of a kernel, as `pagetide ablate` makes them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from . import _native
from ._native import Ablation
from ._progress import ProgressLike, warn, watcher
from ._scenario import ScenarioLike, Size, Value, asked, listed
from ._written import Machine


def ablate(
    scenario: ScenarioLike,
    features: str | Sequence[str],
    *,
    kernel: str | None = None,
    seeds: int = 1,
    machine: str | Machine | None = None,
    mem: Size | None = None,
    swap: str | None = None,
    params: Mapping[str, Value] | None = None,
    sysctls: Mapping[str, Value] | None = None,
    seed: int | None = None,
    interval: str | None = None,
    max_time: str | None = None,
    jobs: int = 0,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: ProgressLike = None,
) -> Ablation:
    """Switches features of a kernel, every subset of them: what each does, and each pair together.

    Args:
        features: Names of features, with or without sign: "root-aging", "-shared-memcg-walk".
        kernel: The kernel in which nothing is switched; else the first of the workload's source.
        seeds: So many runs of each kernel.
        out: A folder for the recordings.
        resume: Go on with what was begun in `out`.

    The other arguments are those of `run`.

    Raises:
        InputError: As `run`; features that do not go together, or too many.
        Interrupted: Ctrl-C; its `result` is the ablation of what had finished.
    """
    given = {name: value for name, value in locals().items() if name not in ("scenario", "features")}
    folder = None if out is None else os.fspath(out)
    return _native.ablate_features(
        asked(scenario, given), listed(features), seeds, jobs, folder, resume, warn, watcher(progress)
    )
