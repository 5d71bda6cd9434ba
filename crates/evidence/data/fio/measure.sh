#!/bin/sh
# The real fio in a guest of User-Mode Linux, whose root is this host's: what /proc/vmstat counts while a job runs, its
# files laid out before. Run it as root, with fio and mkfs installed:
#   measure.sh JOB.fio "$(echo ~/.cache/pagetide/uml/6.1.*/linux)" [ext4|xfs] [MEMORY]
# docs/workload-files.md has three jobs of examples/fio beside `pagetide run`.
set -eu
if [ "${1:-}" = --inside ]; then
    job=$2 filesystem=$3
    export PATH=/usr/sbin:/usr/bin:/sbin:/bin
    mount -t proc proc /proc
    mount -t tmpfs tmp /mnt
    mkdir /mnt/disk
    mount -t "$filesystem" /dev/ubda /mnt/disk
    cd /mnt/disk
    fio --create_only=1 "$job" >/dev/null 2>&1
    if grep -q create_on_open=1 "$job"; then find . -type f -delete; fi
    sync
    echo 3 >/proc/sys/vm/drop_caches
    cat /proc/vmstat >/mnt/before
    fio --minimal "$job" >/mnt/fio 2>&1
    cat /proc/vmstat >/mnt/after
    echo "COUNTED"
    awk 'NR == FNR { before[$1] = $2; next } $2 != before[$1] { print $1, $2 - before[$1] }' /mnt/before /mnt/after
    echo "END"
    mount -t sysfs sys /sys
    echo o >/proc/sysrq-trigger
    sleep 60
fi
job=$(realpath "$1") kernel=$2 filesystem=${3:-ext4} memory=${4:-512M}
disk=$(mktemp)
trap 'rm -f "$disk"' EXIT
truncate -s 4G "$disk"
"mkfs.$filesystem" -q "$disk"
"$kernel" "mem=$memory" rootfstype=hostfs rootflags=/ rw "init=$(realpath "$0")" "ubd0=$disk" \
    con=null con0=null,fd:1 quiet panic=-1 -- --inside "$job" "$filesystem" </dev/zero 2>/dev/null |
    sed -n '/COUNTED/,/END/p' | grep -v 'COUNTED\|END'
