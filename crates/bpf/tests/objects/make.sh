#!/bin/sh
# Makes the objects beside this file anew, with clang and llvm-strip 14 or newer. Without paths of this machine in them.
set -eu
cd "$(dirname "$0")"
for policy in fifo mru trial; do
    clang -g -O2 -target bpf -fdebug-compilation-dir=. -c "$policy.bpf.c" -o "$policy.bpf.o"
    llvm-strip -g "$policy.bpf.o"
done
