#!/bin/sh
# What: LMDB, 400 MiB mapped, 2,000,000 reads by Zipf's law
# Debian: python3-lmdb
set -e
case $1 in
prepare)
    /usr/bin/python3 - << 'END'
import lmdb, random
random.seed(1)
environment = lmdb.open("db", map_size=1 << 30)
keys = list(range(100_000))
random.shuffle(keys)
for start in range(0, len(keys), 10_000):
    with environment.begin(write=True) as transaction:
        for key in keys[start:start + 10_000]:
            transaction.put(b"%08d" % key, random.randbytes(3_000))
END
    ;;
run)
    /usr/bin/python3 - << 'END'
import lmdb, random
random.seed(2)
environment = lmdb.open("db", map_size=1 << 30, readonly=True, lock=False)
ranks = [int(100_000 ** random.random()) - 1 for _ in range(2_000_000)]
total = 0
with environment.begin(buffers=True) as transaction:
    for rank in ranks:
        total += transaction.get(b"%08d" % (rank * 7_919 % 100_000))[1_500]
assert total > 0
END
    ;;
esac
