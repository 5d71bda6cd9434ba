"""A person runs a workload, looks at what it left, and keeps it."""

from __future__ import annotations

import warnings
from pathlib import Path

import pagetide
import pytest
from conftest import PARAMS


def test_a_run_leaves_metrics_and_counters(small: pagetide.Scenario) -> None:
    recording = pagetide.run(small)
    assert recording.kernel == "linux-6.12" and recording.seed == 1
    assert 0 < recording.metrics["hot_pages_cached"] <= 2560
    assert recording.vmstat["pgscan_kswapd"] > 0
    assert recording.seconds is not None and recording.seconds > 0
    assert "hot_pages_cached" in str(recording)


def test_the_same_scenario_leaves_the_same_recording_however_it_is_written(
    small: pagetide.Scenario, tmp_path: Path
) -> None:
    by_hand = pagetide.run("hot-and-stream", kernel="linux-6.12", mem="256M", params=PARAMS)
    toml = pagetide.resolve(small)
    file = tmp_path / "scenario.toml"
    file.write_text(toml)
    fields = {"workload": "hot-and-stream", "kernel": "linux-6.12", "mem": 256 << 20, "params": PARAMS}
    others: list[pagetide.ScenarioLike] = [small, toml, file, str(file), fields]
    assert {pagetide.run(scenario).content_hash for scenario in others} == {by_hand.content_hash}


def test_what_is_given_beside_a_scenario_is_in_place_of_what_it_says(small: pagetide.Scenario) -> None:
    toml = pagetide.resolve(small, kernel="linux-5.4", seed=7, params={"hot": "12M"})
    for told in ['kernel = "linux-5.4"', "seed = 7", 'hot = "12M"', 'stream = "256M"', 'mem = "256M"']:
        assert told in toml
    assert pagetide.resolve(toml) == toml


def test_a_recording_that_is_kept_is_read_again(small: pagetide.Scenario, tmp_path: Path) -> None:
    kept = pagetide.run(small, out=tmp_path / "run")
    read = pagetide.load(tmp_path / "run")
    written = read.write(tmp_path / "again")
    assert kept.content_hash == read.content_hash == pagetide.load(tmp_path / "again").content_hash
    assert written.path == tmp_path / "again"
    with pytest.raises(pagetide.InputError, match="exists"):
        pagetide.run(small, out=tmp_path / "run")
    assert len(pagetide.load_all(tmp_path)) == 2
    with pytest.raises(pagetide.InputError, match="2 recordings"):
        pagetide.load(tmp_path)


def test_a_value_of_another_type_is_told_by_its_name() -> None:
    """It was `failed to extract field Asked.seed`."""
    with pytest.raises(TypeError, match=r"`kernel` is a text, not \['linux-5.4'\]"):
        pagetide.run("hot-and-stream", kernel=["linux-5.4"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="`seed` is a whole number, not 1.5"):
        pagetide.run("hot-and-stream", seed=1.5)  # type: ignore[arg-type]
    with pytest.raises(pagetide.UsageError, match="from 0 to .* not -1"):
        pagetide.run("hot-and-stream", seed=-1)


def test_one_name_is_a_list_of_one() -> None:
    """A text was taken letter by letter: `unknown kernel l`."""
    with pytest.raises(pagetide.InputError, match="only `linux-5.4`"):
        pagetide.compare("hot-and-stream", kernels="linux-5.4")
    with pytest.raises(pagetide.InputError, match="unknown feature `nix`"):
        pagetide.ablate("hot-and-stream", "root-aging,nix")


def test_a_mistake_is_told_as_on_the_command_line() -> None:
    with pytest.raises(pagetide.InputError) as raised:
        pagetide.run("hot-and-steam")
    assert raised.value.exit_code == 1
    assert "hot-and-steam" in raised.value.message
    assert raised.value.hint is not None and "hot-and-stream" in raised.value.hint
    with pytest.raises(pagetide.InputError, match=r"scenario text(?s:.)*line 2"):
        pagetide.run('workload = "hot-and-stream"\nkernel = "linux-9"\n')
    with pytest.raises(pagetide.UsageError, match="no field `memory`"):
        pagetide.run({"workload": "hot-and-stream", "memory": "1G"})
    with pytest.raises(pagetide.UsageError, match="format"):
        pagetide.run("hot-and-stream", mem="256M", params=PARAMS).report("pdf")


def test_names_that_can_be_given_are_listed() -> None:
    assert "hot-and-stream" in [row["workload"] for row in pagetide.list_workloads()]
    assert "linux-6.12" in [row["kernel"] for row in pagetide.list_kernels()]
    for rows in (
        pagetide.list_features(),
        pagetide.list_sysctls(),
        pagetide.list_counters(),
        pagetide.list_machines(),
        pagetide.list_policies(),
    ):
        assert rows
    assert [zone["zone"] for zone in pagetide.list_zones(mem="512M")][-1] in ("DMA32", "Normal")


def test_nothing_is_drawn_where_nobody_looks(small: pagetide.Scenario, capfd: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pagetide.run(small)
    assert capfd.readouterr() == ("", "")


def test_a_run_that_is_over_at_once_is_told_of_before_it_begins() -> None:
    seen: list[pagetide.Progress] = []
    scenario = pagetide.Scenario("hot-and-stream", mem="32M", params={"hot": "64k", "stream": "64k"})
    pagetide.run(scenario, progress=seen.append)
    assert (seen[0].done, seen[0].total, seen[0].is_over) == (0, 1, False)
    assert [one.is_over for one in seen].count(True) == 1 and seen[-1].is_over


def test_progress_that_is_wanted_is_drawn(small: pagetide.Scenario, capfd: pytest.CaptureFixture[str]) -> None:
    pagetide.compare(small, kernels=["linux-5.4", "linux-6.12"], seeds=8, progress=True)
    drawn = capfd.readouterr()
    assert drawn.out == "" and "/16" in drawn.err


def test_a_run_that_takes_too_long_is_stopped(small: pagetide.Scenario) -> None:
    for work in (
        lambda: pagetide.run("simoop", mem="128M", max_time="100ms"),
        lambda: pagetide.compare("simoop", mem="128M", max_time="100ms"),
        lambda: pagetide.ablate("simoop", "root-aging", mem="128M", max_time="100ms"),
    ):
        with pytest.raises(pagetide.InputError, match="stopped after 100 ms"):
            work()
    with pytest.raises(pagetide.InputError, match="`--max-time`: `soon` is not a duration"):
        pagetide.run(small, max_time="soon")
    with pytest.raises(TypeError, match="`max_time` is a text, not 60"):
        pagetide.run(small, max_time=60)  # type: ignore[arg-type]
