"""Tables go to other programs by Arrow's PyCapsule interface, without a copy."""

from __future__ import annotations

import pagetide
import pytest


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> pagetide.Recording:
    scenario = pagetide.Scenario("hot-and-stream", mem="256M", params={"hot": "10M", "stream": "256M"})
    return pagetide.run(scenario, interval="10ms", out=tmp_path_factory.mktemp("runs") / "run")


def test_a_table_is_that_of_the_file(recording: pagetide.Recording) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    pyarrow = pytest.importorskip("pyarrow")
    for name in ("series", "samples", "waits"):
        in_memory = pyarrow.table(getattr(recording, name))
        assert recording.path is not None
        on_disk = parquet.read_table(recording.path / f"{name}.parquet")
        assert in_memory.num_rows > 0
        assert in_memory.to_pydict() == on_disk.to_pydict()
        assert in_memory.schema.types == on_disk.schema.types


def test_what_is_handed_out_is_the_same_memory_each_time(recording: pagetide.Recording) -> None:
    pyarrow = pytest.importorskip("pyarrow")

    def addresses() -> list[int]:
        columns = pyarrow.table(recording.series).columns
        return [column.chunk(0).buffers()[1].address for column in columns]

    assert addresses() == addresses()


def test_memory_lives_as_long_as_its_last_reader() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    run = pagetide.run("hot-and-stream", mem="256M", params={"hot": "10M", "stream": "64M"})
    expected = run.series.to_dict()
    table = pyarrow.table(run.series)
    del run
    pagetide.run("hot-and-stream", mem="256M", params={"hot": "10M", "stream": "64M"})
    assert table.to_pydict() == expected


def test_polars_pandas_and_duckdb_read_it_as_it_is(recording: pagetide.Recording) -> None:
    polars = pytest.importorskip("polars")
    pandas = pytest.importorskip("pandas")
    pyarrow = pytest.importorskip("pyarrow")
    duckdb = pytest.importorskip("duckdb")
    rows = len(recording.series)
    frame = polars.DataFrame(recording.series)
    assert frame.shape == (rows, len(recording.series.columns))
    assert frame["time_ns"].to_list() == recording.series["time_ns"]
    assert isinstance(pyarrow.table(recording.series).to_pandas(), pandas.DataFrame)
    series = recording.series  # noqa: F841, the query names it
    assert duckdb.sql("select count(*), max(time_ns) from series").fetchall() == [(rows, frame["time_ns"].max())]


def test_without_any_of_them_a_table_is_lists(recording: pagetide.Recording) -> None:
    table = recording.waits
    assert table.to_rows()[0] == {name: cells[0] for name, cells in table.to_dict().items()}
    assert len(table.to_rows()) == len(table)
    assert None in table["requested_ns"]
    with pytest.raises(KeyError):
        table["nothing"]


def test_every_number_of_a_run_is_in_one_tidy_table(recording: pagetide.Recording) -> None:
    metrics = {row["name"]: row["value"] for row in recording.table.to_rows() if row["kind"] == "metric"}
    assert metrics == recording.metrics
