#!/bin/sh
# What: sort with a buffer of 64 MiB, a file of 150 MiB
# Debian: coreutils
set -e
case $1 in
prepare)
    /usr/bin/python3 -c '
import random
random.seed(1)
with open("lines", "w") as file:
    for _ in range(150):
        file.write("".join(f"{random.getrandbits(120):031x}\n" for _ in range(32_768)))'
    ;;
run)
    LC_ALL=C sort -S 64M --parallel=1 -T . -o sorted lines
    rm sorted
    ;;
esac
