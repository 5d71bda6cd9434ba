"""Reads the tables of a recording with each data frame library that is there, and prints what they found.

Every library must find the same; those that are absent are named. Used by the tests beside it.
"""

import sys

folder = sys.argv[1]
TABLES = ["series.parquet", "samples.parquet", "waits.parquet", "events/*.parquet"]


def with_pandas():
    import glob

    import pandas

    for table in TABLES:
        frame = pandas.concat([pandas.read_parquet(path) for path in sorted(glob.glob(f"{folder}/{table}"))])
        yield table, len(frame), list(frame.columns), frame
    # A folder is a table, too.
    assert len(pandas.read_parquet(f"{folder}/events")) == len(frame)


def with_polars():
    import polars

    for table in TABLES:
        frame = polars.read_parquet(f"{folder}/{table}")
        yield table, frame.height, frame.columns, frame


def with_duckdb():
    import duckdb

    for table in TABLES:
        found = duckdb.sql(f"select * from read_parquet('{folder}/{table}')")
        yield table, len(found.fetchall()), found.columns, found.fetchnumpy()


def total(column):
    return int(sum(int(value) for value in column if value is not None and value == value))


told = {}
for library in [with_pandas, with_polars, with_duckdb]:
    name = library.__name__.removeprefix("with_")
    lines = []
    try:
        for table, rows, columns, frame in library():
            numbers = [column for column in ["time_ns", "spent_ns", "pages"] if column in columns]
            totals = [f"{column} {total(frame[column])}" for column in numbers]
            texts = [f"{column} {sorted(set(frame[column]))}" for column in ["event"] if column in columns]
            lines.append(f"{table}: {rows} rows, {len(columns)} columns; {'; '.join(totals + texts)}")
    except ImportError as error:
        print(f"MISSING {error.name}")
        continue
    told[name] = "\n".join(lines)
if len(set(told.values())) > 1:
    sys.exit(f"they differ: {told}")
for text in list(told.values())[:1]:
    print(f"{', '.join(told)}\n{text}")
