#!/bin/sh
# What: PostgreSQL, pgbench of scale 25 (370 MiB), 64 MiB of shared buffers, selects and updates
# Debian: postgresql
set -e
PATH=$(echo /usr/lib/postgresql/*/bin | tr ' ' '\n' | tail -1):$PATH
as() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
case $1 in
prepare)
    chmod 755 . && mkdir data && chown postgres data
    as initdb -D data -A trust > /dev/null
    printf 'port = 7783\nshared_buffers = 64MB\nunix_socket_directories = %s\nfsync = off\nautovacuum = off\n' \
        "'$PWD/data'" >> data/postgresql.conf
    as pg_ctl -D data -w -l data/log start > /dev/null
    as pgbench -h "$PWD/data" -p 7783 -i -s 25 -q postgres 2> /dev/null
    as pg_ctl -D data -w stop > /dev/null
    ;;
run)
    as pg_ctl -D data -w -l data/log start > /dev/null
    as pgbench -h "$PWD/data" -p 7783 -n -S -c 2 -t 15000 postgres > /dev/null 2>&1
    as pgbench -h "$PWD/data" -p 7783 -n -c 2 -t 2000 postgres > /dev/null 2>&1
    as pg_ctl -D data -w stop > /dev/null
    ;;
esac
