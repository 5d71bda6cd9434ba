"""An engineer sweeps over kernels and sysctls, stops, goes on, and reads the dataset with the tools at hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pagetide
import pytest
from small import SMALL, WORKLOAD, files

AXES: dict[str, Any] = {"kernel": ["linux-5.4", "linux-6.12"], "sysctls": {"vm.watermark_scale_factor": [10, 200]}}


def test_every_row_is_the_run_that_its_label_names() -> None:
    swept = pagetide.sweep(WORKLOAD, **SMALL, **AXES, seeds=2)
    assert swept.axes == ["kernel", "vm.watermark_scale_factor", "seed"] and len(swept) == 8
    row = swept.table.to_rows()[5]
    alone = pagetide.run(WORKLOAD, **SMALL, kernel="linux-6.12", sysctls={"vm.watermark_scale_factor": 10}, seed=2)
    assert (row["label"], row["seed"]) == ("kernel=linux-6.12, vm.watermark_scale_factor=10, seed=2", 2)
    assert row["vm.watermark_scale_factor"] == 10
    for figures in (alone.metrics, alone.vmstat):
        assert {name: row[name] for name in figures} == pytest.approx(figures, nan_ok=True)
    assert row["command"] == alone.command
    facts = [fact for fact in swept.facts.to_rows() if fact["run"] == 5 and fact["kind"] == "memcg"]
    assert {fact["name"]: fact["value"] for fact in facts} == {
        f"{path}:{name}": value for path, counters in alone.memcg.items() for name, value in counters.items()
    }


def test_the_table_is_that_of_the_command_line() -> None:
    swept = pagetide.sweep(WORKLOAD, **SMALL, **AXES)
    text = str(swept)
    assert text.startswith(f"{WORKLOAD}, mem=64M, hot=4M, stream=8M: 4 of 4 runs")
    assert "--seeds 5" in text
    table = json.loads(swept.report("json"))
    assert [run["axes"]["kernel"] for run in table["runs"]] == ["linux-5.4"] * 2 + ["linux-6.12"] * 2


def test_a_dataset_has_the_same_bytes_whatever_the_jobs_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    pagetide.sweep(WORKLOAD, **SMALL, **AXES, seeds=2, out=one, jobs=1, chunk_runs=2)
    pagetide.sweep(WORKLOAD, **SMALL, **AXES, seeds=2, out=two, jobs=3, chunk_runs=2)
    assert files(one) == files(two)
    assert sorted(files(one)) == ["plan.json"] + [f"runs/chunk-{number:05}.parquet" for number in range(4)]

    whole = files(one)
    (one / "runs/chunk-00002.parquet").unlink()
    (one / ".chunk-00002.parquet.7.partial").write_bytes(b"half")
    kept = (one / "runs/chunk-00001.parquet").stat().st_mtime_ns
    told: list[pagetide.Progress] = []
    again = pagetide.sweep(WORKLOAD, **SMALL, **AXES, seeds=2, out=one, chunk_runs=2, progress=told.append)
    assert files(one) == whole and len(again) == 8
    assert (one / "runs/chunk-00001.parquet").stat().st_mtime_ns == kept
    assert told[-1].is_over and (told[-1].done, told[-1].total) == (8, 8)
    assert str(pagetide.load_sweep(one)) == str(again)


def test_another_plan_and_a_foreign_folder_are_refused(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    pagetide.sweep(WORKLOAD, **SMALL, kernel=["linux-5.4", "linux-6.12"], out=mine)
    before = files(mine)
    with pytest.raises(pagetide.InputError, match="another plan: axes: `kernel=linux-5.4,linux-6.12` there"):
        pagetide.sweep(WORKLOAD, **SMALL, kernel=["linux-5.4", "linux-6.1"], out=mine)
    with pytest.raises(pagetide.InputError, match="another plan: hash"):
        pagetide.sweep(WORKLOAD, **SMALL, kernel=["linux-5.4", "linux-6.12"], interval="20ms", out=mine)
    assert files(mine) == before
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "thesis.tex").touch()
    with pytest.raises(pagetide.InputError, match=r"no dataset of a sweep: it has `thesis.tex`"):
        pagetide.sweep(WORKLOAD, **SMALL, kernel=["linux-5.4", "linux-6.12"], out=tmp_path / "foreign")
    with pytest.raises(pagetide.InputError, match="is not a folder"):
        pagetide.sweep(WORKLOAD, **SMALL, kernel=["linux-5.4", "linux-6.12"], out=tmp_path / "foreign/thesis.tex")
    (mine / "plan.json").write_text("{")
    with pytest.raises(pagetide.InputError, match="plan.json` is damaged"):
        pagetide.load_sweep(mine)


def test_a_damaged_chunk_is_told_with_its_place(tmp_path: Path) -> None:
    out = tmp_path / "out"
    pagetide.sweep(WORKLOAD, **SMALL, kernel=["linux-5.4", "linux-6.12"], out=out, chunk_runs=1)
    chunk = out / "runs/chunk-00001.parquet"
    chunk.write_bytes(chunk.read_bytes()[:-9])
    with pytest.raises(pagetide.InputError, match="chunk-00001.parquet"):
        pagetide.load_sweep(out)


def test_what_had_finished_outlives_an_interruption(tmp_path: Path) -> None:
    out = tmp_path / "out"

    def impatient(progress: pagetide.Progress) -> None:
        if progress.done >= 2 and not progress.is_over:
            raise KeyboardInterrupt

    with pytest.raises(pagetide.Interrupted, match=r"of 60 runs have finished") as raised:
        pagetide.sweep(WORKLOAD, **SMALL, seeds=60, out=out, jobs=1, chunk_runs=1, progress=impatient)
    finished = len(raised.value.result)
    assert 2 <= finished < 60
    assert len(files(out)) == 1 + finished
    assert len(pagetide.load_sweep(out)) == finished


def test_a_mistake_is_told_before_anything_runs(tmp_path: Path) -> None:
    out = tmp_path / "out"
    mistakes: list[tuple[dict[str, Any], str]] = [
        ({"kernel": ["linux-6.12", "linux-9"]}, "linux-9"),
        ({"sysctls": {"vm.swapiness": [1, 2]}}, "vm.swapiness"),
        ({"mem": "64M"}, "nothing to sweep over"),
        ({"mem": [f"{size}M" for size in range(64, 1064)], "seeds": 1000}, "100000 at most"),
        ({"kernel": ["linux-5.4", "linux-6.12"], "policy": "lru"}, "for traces"),
    ]
    for wrong, told in mistakes:
        with pytest.raises(pagetide.InputError, match=told):
            pagetide.sweep(WORKLOAD, **wrong, out=out)
    assert not out.exists()
    with pytest.raises(pagetide.UsageError, match="at least one run"):
        pagetide.sweep(WORKLOAD, kernel=["linux-5.4", "linux-6.12"], chunk_runs=0)


def test_a_trace_is_swept_over_policies(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("".join(f"{time},{time * time % 37},4096\n" for time in range(500)))
    swept = pagetide.sweep(trace, policy=["lru", "s3fifo:small=0.2"], capacity=[5, 20], chunk_runs=3)
    rows = swept.table.to_rows()
    assert [row["capacity"] for row in rows] == [5, 20, 5, 20]
    assert rows[0]["miss_ratio"] > rows[1]["miss_ratio"]


def test_the_tools_at_hand_read_the_folder_as_one_table(tmp_path: Path) -> None:
    out = tmp_path / "out"
    swept = pagetide.sweep(WORKLOAD, **SMALL, **AXES, seeds=2, out=out, chunk_runs=3)
    rows = len(swept.facts)
    duckdb = pytest.importorskip("duckdb")
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    assert len(pandas.read_parquet(out / "runs")) == rows
    frame = polars.read_parquet(out / "runs")
    assert frame.height == rows and frame["vm.watermark_scale_factor"].dtype == polars.Int64
    query = f"select kernel, avg(value) from '{out}/runs/*.parquet' where name = 'hot_pages_cached' group by kernel"
    assert len(duckdb.sql(query).fetchall()) == 2
    assert polars.DataFrame(swept.table).height == 8


def test_a_dataset_can_be_wherever_fsspec_reaches(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    url = f"memory://{tmp_path.name}/sweep"
    pagetide.sweep(WORKLOAD, **SMALL, **AXES, out=tmp_path / "here", chunk_runs=2)
    pagetide.sweep(WORKLOAD, **SMALL, **AXES, out=url, chunk_runs=2)
    memory = fsspec.filesystem("memory")
    chunk = f"/{tmp_path.name}/sweep/runs/chunk-00000.parquet"
    assert memory.cat_file(chunk) == (tmp_path / "here/runs/chunk-00000.parquet").read_bytes()
    memory.rm_file(chunk)
    assert len(pagetide.load_sweep(url)) == 2
    assert len(pagetide.sweep(WORKLOAD, **SMALL, **AXES, out=url, chunk_runs=2)) == 4
    with pytest.raises(pagetide.InputError, match="cannot be reached"):
        pagetide.sweep(WORKLOAD, **SMALL, **AXES, out="gopher://nowhere/sweep")
