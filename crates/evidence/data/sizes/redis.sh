#!/bin/sh
# What: redis, writes to 300,000 keys, a snapshot in the middle of them
# Debian: redis-server redis-tools
set -e
case $1 in
prepare) ;;
run)
    rm -f dump.rdb
    redis-server --port 7781 --save '' --appendonly no --dir . --daemonize no > /dev/null 2>&1 &
    until redis-cli -p 7781 ping > /dev/null 2>&1; do sleep 0.05; done
    set_all="redis-benchmark -p 7781 -t set -n 300000 -r 300000 -d 200 -c 20 -P 16 -q"
    $set_all > /dev/null
    redis-cli -p 7781 bgsave > /dev/null
    $set_all > /dev/null
    redis-cli -p 7781 shutdown nosave
    wait
    ;;
esac
