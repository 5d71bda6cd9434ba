#!/bin/sh
# What: DuckDB, three queries over a Parquet file of 10 million rows
# Debian: python3-venv
# PyPI: duckdb==1.4.2
set -e
case $1 in
prepare)
    env/bin/python -c '
import duckdb
duckdb.sql("""copy (select i, hash(i) % 100000 as customer, hash(i + 1) % 1000 / 7 as amount,
    (hash(i + 2) % 1000000)::varchar as note from range(10000000) t(i)) to "rows.parquet" (format parquet)""")'
    ;;
run)
    env/bin/python -c '
import duckdb
connection = duckdb.connect(config={"threads": 2})
for query in ("select customer, sum(amount), count(*) from \"rows.parquet\" group by customer",
              "select note, max(amount) from \"rows.parquet\" where i % 3 = 0 group by note",
              "select count(*) from \"rows.parquet\" a join \"rows.parquet\" b on a.i = b.customer where a.i < 100000"):
    connection.sql(query).fetchall()'
    ;;
esac
