"""A performance engineer lets the machine find the sysctls, and looks at the evidence."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pagetide
import pytest
from small import SMALL, WORKLOAD

optuna = pytest.importorskip("optuna", reason="SKIPPED: Optuna is not installed, so nothing was tuned")

SPACE: dict[str, pagetide.Range] = {"vm.watermark_scale_factor": (10, 1000, "log"), "mem": ["48M", "64M"]}
FIXED: dict[str, Any] = {"params": SMALL["params"], "kernel": "linux-6.12"}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A loop that is a bit longer than the small machines have memory for, and a hot part."""
    path = tmp_path / "trace.csv"
    lines = (f"{at},{at % 9000 if at % 3 else at % 300},4096\n" for at in range(30_000))
    path.write_text("".join(lines))
    return path


def test_the_best_trial_is_the_best_and_its_evidence_is_a_comparison() -> None:
    tuned = pagetide.tune(WORKLOAD, SPACE, "reread_seconds", trials=6, seeds=2, **FIXED)
    values = [row["reread_seconds"] for row in tuned.trials.to_rows() if row["number"] >= 0]
    assert len(values) == 6 and tuned.best.values == (min(values),)
    assert tuned.directions == ["minimize"]
    evidence = tuned.evidence()
    assert len(evidence.labels) == 2 and len(evidence.recordings) == 4
    mem = tuned.best.settings["mem"]
    again = pagetide.run(
        WORKLOAD,
        **{**FIXED, "mem": mem},
        sysctls={"vm.watermark_scale_factor": tuned.best.settings["vm.watermark_scale_factor"]},
    )
    assert evidence.recordings[2].metrics == again.metrics
    assert "default" in str(tuned) and f"trial {tuned.best.number}" in str(tuned)


def test_the_same_study_has_the_same_trials_whatever_the_jobs() -> None:
    def trials(jobs: int, batch: int) -> list[dict[str, object]]:
        tuned = pagetide.tune(WORKLOAD, SPACE, "reread_seconds", trials=6, seeds=2, jobs=jobs, batch=batch, **FIXED)
        rows: list[dict[str, object]] = tuned.trials.to_rows()
        return rows

    assert trials(1, 1) == trials(3, 1)
    assert trials(1, 3) == trials(4, 3)


def test_several_objectives_are_a_front() -> None:
    ways = ["minimize", "minimize"]

    def objective(run: Mapping[str, float]) -> tuple[float, float]:
        return run["reread_seconds"], run["pgscan_kswapd"] + run["pgscan_direct"]

    tuned = pagetide.tune(WORKLOAD, SPACE, objective, trials=8, directions=ways, **FIXED)
    points = [trial.values for trial in tuned.front]
    assert points == sorted(points)
    for one, other in itertools.permutations(points, 2):
        assert one == other or not all(a <= b for a, b in zip(one, other, strict=True))


def test_a_pruner_stops_a_trial_after_its_first_seeds() -> None:
    pruner = optuna.pruners.ThresholdPruner(upper=-1.0)
    with pytest.raises(pagetide.InputError, match="all were pruned"):
        pagetide.tune(WORKLOAD, SPACE, "reread_seconds", trials=2, seeds=3, pruner=pruner, **FIXED)
    with pytest.raises(pagetide.UsageError, match="several seeds"):
        pagetide.tune(WORKLOAD, SPACE, "reread_seconds", trials=2, pruner=pruner, **FIXED)


def test_a_study_in_a_storage_goes_on(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/studies.db"
    first = pagetide.tune(WORKLOAD, SPACE, "reread_seconds", trials=2, storage=storage, name="mine", **FIXED)
    more = pagetide.tune(WORKLOAD, SPACE, "reread_seconds", trials=3, storage=storage, name="mine", **FIXED)
    assert more.trials.to_rows()[:3] == first.trials.to_rows() and len(more.trials) == 4
    with pytest.raises(pagetide.InputError, match="study `mine` is of something else: space"):
        pagetide.tune(WORKLOAD, {"mem": ["64M"]}, "reread_seconds", trials=3, storage=storage, name="mine", **FIXED)


def test_a_mistake_is_told() -> None:
    with pytest.raises(
        pagetide.InputError,
        match="the default itself has no value: there is no metric `reread_second`: did you mean `reread_seconds`",
    ):
        pagetide.tune(WORKLOAD, SPACE, "reread_second", trials=1, **FIXED)
    with pytest.raises(pagetide.UsageError, match="more of `pgscan_kswapd` is better or less"):
        pagetide.tune(WORKLOAD, SPACE, "pgscan_kswapd", trials=1, **FIXED)
    with pytest.raises(pagetide.InputError, match="vm.swapiness"):
        pagetide.tune(WORKLOAD, {"vm.swapiness": (0, 100)}, "reread_seconds", trials=1, **FIXED)
    wrong: list[tuple[Any, str]] = [
        ({}, "empty"),
        ({"mem": "64M"}, "one value"),
        ({"vm.swappiness": (9, 1)}, "tuple is"),
    ]
    for space, told in wrong:
        with pytest.raises(pagetide.UsageError, match=told):
            pagetide.tune(WORKLOAD, space, "reread_seconds", trials=1, **FIXED)


def test_a_trace_is_tuned(trace: Path) -> None:
    space: dict[str, pagetide.Range] = {"policy": ["lru", "s3fifo", "lirs"], "capacity": range(1000, 4001, 1000)}
    with pytest.raises(pagetide.InputError, match="the default itself cannot run"):
        pagetide.tune(trace, space, "miss_ratio", trials=5)
    tuned = pagetide.tune(trace, space, "miss_ratio", trials=8, default={"policy": "lru", "capacity": 1000})
    assert tuned.is_better and tuned.best.values[0] < tuned.default.values[0]


def test_it_finds_what_a_grid_of_the_same_size_finds_on_a_real_trace() -> None:
    folder = os.environ.get("PAGETIDE_TRACES")
    if folder is None:
        pytest.skip("SKIPPED: PAGETIDE_TRACES is not set, so no real trace was tuned")
    trace = Path(folder) / "cloudPhysicsIO.csv"
    at: dict[str, Any] = {"mem": "256M", "kernel": "linux-6.12"}
    values: dict[str, list[Any]] = {
        "vm.watermark_scale_factor": [10, 100, 1000],
        "vm.dirty_background_ratio": [5, 10, 20],
        "vm.dirty_expire_centisecs": [500, 3000, 12000],
    }
    best = min(pagetide.sweep(trace, sysctls=values, **at).table["replay_seconds"])
    space: dict[str, pagetide.Range] = {
        "vm.watermark_scale_factor": (10, 1000, "log"),
        "vm.dirty_background_ratio": (1, 50),
        "vm.dirty_expire_centisecs": (100, 12000, "log"),
    }
    tuned = pagetide.tune(trace, space, "replay_seconds", trials=27, **at)
    assert tuned.best.values[0] <= best
