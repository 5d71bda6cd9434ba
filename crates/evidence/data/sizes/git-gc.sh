#!/bin/sh
# What: git gc of a repository with 1,500 commits of a growing file, one thread
# Debian: git
set -e
case $1 in
prepare)
    git init -q -b main kept
    /usr/bin/python3 - << 'END' | git -C kept fast-import --quiet
import random, sys
random.seed(1)
lines = [f"{random.getrandbits(400):x}\n" for _ in range(100)]
for number in range(1_500):
    lines[random.randrange(len(lines))] = f"{random.getrandbits(400):x}\n"
    if number % 10 == 0:
        lines.append(f"{random.getrandbits(400):x}\n")
    text = "".join(lines)
    print(f"commit refs/heads/main\ncommitter a <a@a> {1_700_000_000 + number} +0000\ndata 1\nx\nM 644 inline f{number % 7}")
    print(f"data {len(text)}\n{text}")
END
    ;;
run)
    rm -rf work && cp -r kept work
    git -C work -c pack.threads=1 -c pack.windowMemory=0 gc -q --aggressive --prune=now
    rm -rf work
    ;;
esac
