#!/bin/sh
# What: pandas, a CSV file of 2 million rows read, joined and grouped
# Debian: python3-venv
# PyPI: pandas==2.3.3
set -e
case $1 in
prepare)
    env/bin/python -c '
import numpy, pandas
random = numpy.random.default_rng(1)
count = 2_000_000
pandas.DataFrame({"key": random.integers(0, 50_000, count), "amount": random.random(count),
                  "word": random.integers(0, 1_000_000, count)}).to_csv("rows.csv", index=False)'
    ;;
run)
    env/bin/python -c '
import pandas
rows = pandas.read_csv("rows.csv")
means = rows.groupby("key").amount.mean().rename("mean")
joined = rows.join(means, on="key")
assert len(joined.sort_values("word")) == 2_000_000'
    ;;
esac
