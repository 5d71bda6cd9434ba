"""A person runs a workload, looks at what it left, and keeps it."""

from __future__ import annotations

from pathlib import Path

import pagetide
import pytest

SMALL = pagetide.Scenario("hot-and-stream", kernel="linux-6.12", mem="256M", params={"hot": "10M", "stream": "256M"})


def test_a_run_leaves_metrics_and_counters() -> None:
    recording = pagetide.run(SMALL)
    assert recording.kernel == "linux-6.12"
    assert recording.metrics["hot_pages_cached"] <= 2560
    assert recording.vmstat["pgscan_kswapd"] > 0
    assert len(recording.series) > 1 and recording.series.columns[0] == "time_ns"


def test_the_same_scenario_leaves_the_same_recording_however_it_is_written(tmp_path: Path) -> None:
    by_hand = pagetide.run("hot-and-stream", kernel="linux-6.12", mem="256M", params={"hot": "10M", "stream": "256M"})
    toml = pagetide.resolve(SMALL)
    file = tmp_path / "scenario.toml"
    file.write_text(toml)
    fields = {"workload": "hot-and-stream", "kernel": "linux-6.12", "mem": 256 << 20, "params": dict(SMALL.params)}
    others: list[pagetide.ScenarioLike] = [SMALL, toml, file, str(file), fields]
    assert {pagetide.run(scenario).content_hash for scenario in others} == {by_hand.content_hash}


def test_a_mistake_is_told_as_on_the_command_line() -> None:
    with pytest.raises(pagetide.InputError) as raised:
        pagetide.run("hot-and-steam")
    assert raised.value.exit_code == 1
    assert "hot-and-steam" in raised.value.message
    assert raised.value.hint is not None and "hot-and-stream" in raised.value.hint
