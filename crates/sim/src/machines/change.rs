//! Changes to a machine, as a person writes them behind its name: `s390-fcp+cpus=16+segment=2us`.
//!
//! For what a source does not say of its machine, and for sweeps over it. Left out: memory, which has
//! an option of its own, and zones. Next: [`MachineSpec::parse`].

use units::{Bytes, Nanos, PAGE_SIZE, parse_nanos, parse_size};
use workload::scenario::UML_MACHINE;

use crate::hardware::device::{DeviceModel, IoScheduler};
use crate::machines::server::SERVER;
use crate::machines::spec::{MachineError, MachineSpec};

/// Something of a machine that can be changed.
pub(super) struct Change {
    pub(super) name: &'static str,
    /// Values that make sense, for messages.
    takes: &'static str,
    /// Sets it; `None` when the text is no such value.
    set: fn(&mut MachineSpec, &str) -> Option<()>,
}

/// The most CPUs and disks of a machine.
const CPUS_MAX: u16 = 1024;
/// Two of them may have a zone more than the others, and 32 zones are modelled.
const NODES_MAX: u16 = 30;
const DISKS_MAX: u16 = 256;
const CPU_PERCENT_MAX: u32 = 100_000;
const READAHEAD_MAX: u64 = 64 << 20;
const BANDWIDTH_MAX: u64 = 1 << 40;
/// What `mkfs.xfs` ever made by itself, and the largest log that there is.
const LOG_MIN: u64 = 4 << 20;
const LOG_MAX: u64 = 2 << 30;
/// As many requests as a disk's queue holds.
const GATHERS_MAX: u16 = 128;

pub(super) const CHANGES: [Change; 16] = [
    Change {
        name: "disk",
        takes: "`nvme`, `ssd`, `hdd`, `network`, or LATENCY:BETWEEN:BANDWIDTH:READAHEAD of a measured one, such as 92us:9us:2G:128k",
        set: |spec, text| {
            let (disk, readahead) =
                DeviceModel::of_class(text).map(|disk| (disk, None)).or_else(|| measured(text))?;
            (spec.rotational, spec.readahead, spec.disk) = (disk.turns(), readahead, disk);
            Some(())
        },
    },
    Change {
        name: "nodes",
        takes: "a number of memory nodes from 1 to 30, of `x86-64` alone; write it before `cpus`",
        set: |spec, text| {
            spec.nodes =
                number(text).filter(|nodes| spec.name == SERVER && (1..=NODES_MAX).contains(nodes))?;
            spec.cpus = spec.cpus.max(spec.nodes);
            Some(())
        },
    },
    Change {
        name: "hz",
        takes: "ticks a second that kernels are built with: 100, 250, 300 or 1000",
        set: |spec, text| {
            spec.hz = text.parse().ok().filter(|hz| [100, 250, 300, 1000].contains(hz))?;
            Some(())
        },
    },
    Change {
        name: "costs",
        takes: "costs of operations with commas between, such as syscall:120ns,minor_fault:700ns",
        set: |spec, text| {
            for pair in text.split(',') {
                let (name, cost) = pair.split_once(':')?;
                let cost = if cost == "0" { Nanos::ZERO } else { parse_nanos(cost).ok()? };
                spec.costs.set(name, cost).ok()?;
            }
            Some(())
        },
    },
    Change {
        name: "cpus",
        takes: "a number from the machine's nodes to 1024",
        set: |spec, text| {
            spec.cpus = number(text).filter(|cpus| (spec.nodes..=CPUS_MAX).contains(cpus))?;
            Some(())
        },
    },
    Change {
        name: "cpu_percent",
        takes: "the CPU time of an operation in percent of the cost table, from 1 to 100000",
        set: |spec, text| {
            let percent = text.parse().ok().filter(|percent| (1..=CPU_PERCENT_MAX).contains(percent));
            spec.cpu_percent = percent?;
            Some(())
        },
    },
    Change {
        name: "disks",
        takes: "a number from 1 to 256",
        set: |spec, text| {
            spec.disks = number(text).filter(|disks| (1..=DISKS_MAX).contains(disks))?;
            Some(())
        },
    },
    Change {
        name: "readahead",
        takes: "a size from 0 to 64M in whole pages",
        set: |spec, text| {
            let size = parse_size(text).ok().filter(|size| size.get().is_multiple_of(PAGE_SIZE))?;
            spec.readahead = Some(Some(size).filter(|size| size.get() <= READAHEAD_MAX)?);
            Some(())
        },
    },
    Change {
        name: "bandwidth",
        takes: "bytes a second of each disk, such as 100M",
        set: |spec, text| {
            let Bytes(bytes) = parse_size(text).ok()?;
            let bandwidth = Some(bytes).filter(|bytes| (1..=BANDWIDTH_MAX).contains(bytes))?;
            (spec.disk.read.bandwidth, spec.disk.write.bandwidth) = (bandwidth, bandwidth);
            Some(())
        },
    },
    Change {
        name: "adapter",
        takes: "bytes a second that all disks share, such as 1G, or `none` for no limit",
        set: |spec, text| {
            let limit = |Bytes(bytes): &Bytes| (1..=BANDWIDTH_MAX).contains(bytes);
            spec.host_bandwidth = match text {
                "none" => None,
                _ => Some(parse_size(text).ok().filter(limit)?.get()),
            };
            Some(())
        },
    },
    Change {
        name: "segment",
        takes: "a time for each run of adjacent frames in a request, such as 2us",
        set: |spec, text| {
            spec.disk.segment = if text == "0" { Nanos::ZERO } else { parse_nanos(text).ok()? };
            Some(())
        },
    },
    Change {
        name: "log",
        takes: "the size of the log that a disk has as XFS, from 4M to 2G",
        set: |spec, text| {
            let size = parse_size(text).ok()?;
            spec.disk.xfs_log = Some(size).filter(|size| (LOG_MIN..=LOG_MAX).contains(&size.get()))?;
            Some(())
        },
    },
    Change {
        name: "flush",
        takes: "how long the disk takes to write its own memory out, such as 2ms, or 0",
        set: |spec, text| {
            spec.disk.flush = if text == "0" { Nanos::ZERO } else { parse_nanos(text).ok()? };
            Some(())
        },
    },
    Change {
        name: "gathers",
        takes: "how many writes a task gathers, and merges with what follows them, from 1 to 128",
        set: |spec, text| {
            spec.disk.gathers = number(text).filter(|requests| (1..=GATHERS_MAX).contains(requests))?;
            Some(())
        },
    },
    Change {
        name: "protection_keys",
        takes: "whether the host's CPU has them, `true` or `false` (`ospke` in its /proc/cpuinfo), of `guest-uml` alone",
        set: |spec, text| {
            spec.protection_keys = text.parse().ok().filter(|_| spec.name == UML_MACHINE)?;
            Some(())
        },
    },
    Change {
        name: "scheduler",
        takes: "what sorts and merges the requests before each disk: `none` or `mq-deadline`",
        set: |spec, text| {
            spec.disk.scheduler = match text {
                "none" => IoScheduler::None,
                "mq-deadline" => IoScheduler::MqDeadline,
                _ => return None,
            };
            Some(())
        },
    },
];

/// A disk of which a random read of a page was timed, alone and many at a time, and reads in sequence, and its
/// readahead, if that was read.
fn measured(text: &str) -> Option<(DeviceModel, Option<Bytes>)> {
    let mut parts = text.split(':');
    let [latency, between, bandwidth] = [parts.next()?, parts.next()?, parts.next()?];
    let readahead = match parts.next() {
        None => None,
        Some(text) => {
            let size = parse_size(text).ok().filter(|size| size.get().is_multiple_of(PAGE_SIZE))?;
            Some(Some(size).filter(|size| size.get() <= READAHEAD_MAX)?)
        }
    };
    let limit = |Bytes(bytes): &Bytes| (1..=BANDWIDTH_MAX).contains(bytes);
    let bandwidth = parse_size(bandwidth).ok().filter(limit)?.get();
    let (latency, between) = (parse_nanos(latency).ok()?, parse_nanos(between).ok()?);
    let is_one = parts.next().is_none() && between <= latency;
    is_one.then(|| (DeviceModel::measured(latency, between, bandwidth), readahead))
}

fn number(text: &str) -> Option<u16> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

impl Change {
    /// Applies `text`, which is `name=value`, to a machine.
    pub(super) fn apply(text: &str, spec: &mut MachineSpec) -> Result<&'static str, MachineError> {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let change = CHANGES
            .iter()
            .find(|change| change.name == name)
            .ok_or_else(|| MachineError::UnknownChange { change: name.to_string(), known: names() })?;
        (change.set)(spec, value).ok_or_else(|| MachineError::Value {
            change: change.name,
            value: value.to_string(),
            takes: change.takes,
        })?;
        Ok(change.name)
    }
}

/// All names, for a hint.
fn names() -> String {
    CHANGES.map(|change| format!("`{}`", change.name)).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machines::build;
    use mm::version::presets::Version;

    #[test]
    fn a_machine_is_changed_where_its_name_says_so_and_nowhere_else() {
        let plain = MachineSpec::parse("s390-fcp").unwrap();
        let text = "s390-fcp+cpus=16+cpu_percent=50+disks=2+readahead=128k+bandwidth=50M+adapter=none+segment=2us+log=16M+flush=3ms";
        let changed = MachineSpec::parse(text).unwrap();
        assert_eq!((changed.cpus, changed.disks, changed.readahead), (16, 2, Some(Bytes(128 << 10))));
        assert_eq!((changed.disk.read.bandwidth, changed.disk.segment), (50 << 20, Nanos(2_000)));
        assert_eq!(changed.cpu_percent, 50);
        let disk = |text: &str| MachineSpec::parse(&format!("vm-2cpu+disk={text}")).map(|spec| spec.disk);
        assert_eq!(disk("hdd").unwrap(), DeviceModel::SATA_HDD);
        let measured = disk("92us:9us:2G:64k").unwrap().read;
        assert_eq!(
            (measured.latency, measured.op, measured.bandwidth),
            (Nanos(83_000), Nanos(9_000), 2 << 30)
        );
        assert_eq!(changed.disk.flush, Nanos::from_millis(3));
        assert_eq!((changed.name, changed.least_mem), (plain.name, plain.least_mem));

        let kernel = Version::parse("linux-2.6.32").unwrap();
        let (hardware, layout) = build(text, Bytes(256 << 20), &kernel).unwrap();
        assert_eq!((hardware.cpus, layout.cpus, hardware.devices.len()), (16, 16, 2));
        assert_eq!(hardware.host_bandwidth, None);
        assert_eq!((hardware.readahead_pages, hardware.devices[1].segment), (32, Nanos(2_000)));
        assert_eq!(hardware.devices[0].xfs_log, Bytes(16 << 20));
    }

    #[test]
    fn every_mistake_names_the_change_and_what_it_takes() {
        let said = [
            "s390-fpc",
            "s390-fcp+cpu=16",
            "s390-fcp+cpus",
            "s390-fcp+cpus=0",
            "haswell-2s+cpus=1",
            "s390-fcp+cpus=4+cpus=16",
            "s390-fcp+segment=2",
            "s390-fcp+readahead=5k",
            "s390-fcp+log=1M",
            "vm-2cpu+disk=floppy",
            "vm-2cpu+disk=1us:2us:1G",
            "s390-fcp+",
        ]
        .map(|text| {
            let error = MachineSpec::parse(text).unwrap_err();
            format!("{error}; {}", error.hint())
        });
        insta::assert_snapshot!(said.join("\n"), @"
        unknown machine `s390-fpc`; `pagetide list machines` shows the names
        machines have no `cpu` to change; it is one of `disk`, `nodes`, `hz`, `costs`, `cpus`, `cpu_percent`, `disks`, `readahead`, `bandwidth`, `adapter`, `segment`, `log`, `flush`, `gathers`, `protection_keys`, `scheduler`, as in `s390-fcp+cpus=16`
        `cpus` of a machine cannot be ``; it takes a number from the machine's nodes to 1024
        `cpus` of a machine cannot be `0`; it takes a number from the machine's nodes to 1024
        `cpus` of a machine cannot be `1`; it takes a number from the machine's nodes to 1024
        `cpus` of a machine is changed twice; leave one of them out
        `segment` of a machine cannot be `2`; it takes a time for each run of adjacent frames in a request, such as 2us
        `readahead` of a machine cannot be `5k`; it takes a size from 0 to 64M in whole pages
        `log` of a machine cannot be `1M`; it takes the size of the log that a disk has as XFS, from 4M to 2G
        `disk` of a machine cannot be `floppy`; it takes `nvme`, `ssd`, `hdd`, `network`, or LATENCY:BETWEEN:BANDWIDTH:READAHEAD of a measured one, such as 92us:9us:2G:128k
        `disk` of a machine cannot be `1us:2us:1G`; it takes `nvme`, `ssd`, `hdd`, `network`, or LATENCY:BETWEEN:BANDWIDTH:READAHEAD of a measured one, such as 92us:9us:2G:128k
        machines have no `` to change; it is one of `disk`, `nodes`, `hz`, `costs`, `cpus`, `cpu_percent`, `disks`, `readahead`, `bandwidth`, `adapter`, `segment`, `log`, `flush`, `gathers`, `protection_keys`, `scheduler`, as in `s390-fcp+cpus=16`
        ");
    }
}
