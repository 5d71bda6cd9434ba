//! What a block device can do, and the devices that have a name, each with its source.
//!
//! Left out: barriers, writes to fast cells that are being emptied, errors. Read
//! next: `devices/device.rs`, which puts a model to work.

use units::{Bytes, Nanos};

/// How fast a device is in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Speed {
    /// From leaving the channel to completion.
    pub latency: Nanos,
    /// The least that a request occupies the channel: 1 / (operations per second).
    pub op: Nanos,
    /// The same for a request that does not begin where the one before it ended.
    pub random_op: Nanos,
    /// Bytes per second through the channel; at least 1.
    pub bandwidth: u64,
}

impl Speed {
    pub(crate) fn occupancy(&self, len: Bytes, sequential: bool) -> u64 {
        let op = if sequential { self.op } else { self.random_op };
        op.0.max(transfer_time(len, self.bandwidth))
    }
}

/// How long `len` bytes take.
pub(crate) fn transfer_time(len: Bytes, bandwidth: u64) -> u64 {
    let nanos = u128::from(len.0) * 1_000_000_000 / u128::from(bandwidth);
    u64::try_from(nanos).expect("a request moves within 584 years")
}

/// In which order a device serves the requests that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As they came, each begun at once.
    Arrival,
    /// As they lie on a disk that turns (native command queueing).
    Position,
}

/// What sorts and merges requests before the device has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoScheduler {
    /// Nothing (`none`).
    None,
    /// `mq-deadline`.
    MqDeadline,
}

/// What a device can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceModel {
    /// The model's name.
    pub name: &'static str,
    /// Reading.
    pub read: Speed,
    /// Writing.
    pub write: Speed,
    /// Fast cells that writes fill first, if it has such.
    pub burst: Option<Burst>,
    /// Requests that the device works on at a time; at least 1.
    pub depth: u32,
    /// How long a [`kernel::IoKind::DurableWrite`] holds the channel beside its bytes: until the device has written
    /// out its own memory. 0 where no source has a figure.
    pub flush: Nanos,
    /// How long each run of adjacent frames in a request occupies the channel, beside its bytes. With 0
    /// it cannot matter in which order pages are allocated. No source has a figure: for sweeps.
    pub segment: Nanos,
    /// The log that `mkfs.xfs` makes on a disk of its size: 64 MiB up to 128 GB, from there on
    /// 1/2048 of the disk.
    pub xfs_log: Bytes,
    /// Requests to write that a task gathers before it sends them off; pages join whichever they follow
    /// (`BLK_MAX_REQUEST_COUNT`: 16). 0: what the machine's kernel does, which it sets.
    pub gathers: u16,
    /// In which order it serves what it has.
    pub order: Order,
    /// The I/O scheduler before it. No source says which it had: what Linux gives a SATA disk from 4.19 on, when SCSI
    /// came to have one queue of blk-mq; before that it was CFQ, which sorts and merges, too. A disk that does
    /// not turn has `none` here, as with no head to move there is nothing to gain.
    pub scheduler: IoScheduler,
    /// A disk's own memory, if it matters.
    pub track_buffer: Option<TrackBuffer>,
    /// Whether a thread of the CPU's host serves it, which has that CPU when a program leaves the kernel, when there is
    /// nothing to do, when as many writes were sent off as a task gathers, and at the latest after 10 ms.
    pub by_host_thread: bool,
}

/// The part of an SSD that it writes fast: cells with one bit each. Data in them is moved to the others
/// when the device has nothing else to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Burst {
    /// Bytes that they hold.
    pub cells: Bytes,
    /// How fast writes are while they are full.
    pub behind: Speed,
    /// The device begins to empty them when it has rested for so long.
    pub rest: Nanos,
    /// Bytes per second that it then moves, until the next request.
    pub drain: u64,
}

/// The memory of a disk: a read that has to move the head brings the whole track along, and reads
/// from the tracks last brought neither move it nor wait for the platter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrackBuffer {
    /// Bytes of a track; at least 1.
    pub track: Bytes,
    /// Tracks that it keeps, the least recently used one goes first.
    pub tracks: usize,
    /// How fast reads from it are.
    pub read: Speed,
}

/// Bytes per second of a device whose transfers are the CPU's time.
const ALL_AT_ONCE: u64 = 1_000_000_000 * MB;

const fn micros(n: u64) -> Nanos {
    Nanos::from_micros(n)
}

pub(crate) const fn even(latency: Nanos, op: Nanos, bandwidth: u64) -> Speed {
    Speed { latency, op, random_op: op, bandwidth }
}

const MB: u64 = 1_000_000;

/// The platter of a disk: the same to read and to write.
const HDD_PLATTER: Speed =
    Speed { latency: micros(100), op: Nanos(0), random_op: Nanos::from_millis(8), bandwidth: 105 * MB };

impl DeviceModel {
    /// How large it is: as much as its log of XFS tells, see [`DeviceModel::xfs_log`]. At the least log that is the
    /// most that such a disk can have.
    pub fn size(&self) -> Bytes {
        const LEAST_LOG: u64 = 64 << 20;
        Bytes(self.xfs_log.get().max(LEAST_LOG).saturating_mul(2048))
    }

    /// Whether it turns, so that the kernel's queue for it is `rotational`.
    pub fn turns(&self) -> bool {
        self.order == Order::Position
    }

    /// What most have in common; it takes no time.
    const PLAIN: Self = Self {
        name: "",
        read: even(Nanos(0), Nanos(0), u64::MAX),
        write: even(Nanos(0), Nanos(0), u64::MAX),
        burst: None,
        depth: 32,
        flush: Nanos(0),
        segment: Nanos(0),
        xfs_log: Bytes(64 << 20),
        gathers: 16,
        order: Order::Arrival,
        scheduler: IoScheduler::None,
        track_buffer: None,
        by_host_thread: false,
    };
    /// One LUN behind a storage controller of 2010, all reads from its cache: 0.5 ms (0.25 to
    /// 0.6) and 100 MB/s. Source 1; 16 such LUNs share a host adapter of 1.4 GB/s.
    pub const S390_FCP_2010: Self = Self {
        name: "s390_fcp_2010",
        read: even(micros(500), Nanos(0), 100 * MB),
        write: even(micros(500), Nanos(0), 100 * MB),
        gathers: 1, // nothing is merged (MECHANISMS 16)
        ..Self::PLAIN
    };
    /// A SATA SSD of 2014: read of 4 KiB 90 us and 98k per second, write 35 us and 88k per second until 6 GB
    /// are written, then 300 MB/s and 8k random writes per second; 2 ms for a flush (MECHANISMS 16). Assumed: its
    /// fast cells get empty at the speed of the others, after a second of rest. Inferred from source 0's rate: each
    /// file is a request of its own.
    pub const SATA_EVO: Self = Self {
        name: "sata_evo",
        read: even(Nanos(79_800), Nanos(10_200), 540 * MB),
        write: even(Nanos(23_640), Nanos(11_360), 520 * MB),
        burst: Some(Burst {
            cells: Bytes(6_000 * MB),
            behind: Speed {
                latency: Nanos(23_640),
                op: Nanos(11_360),
                random_op: micros(125),
                bandwidth: 300 * MB,
            },
            rest: Nanos::from_secs(1),
            drain: 300 * MB,
        }),
        flush: Nanos::from_millis(2),
        gathers: 1,
        ..Self::PLAIN
    };
    /// An NVMe SSD: 85 us and 450k reads, 25 us and 250k writes per second, 3.0 and 1.8 GB/s.
    pub const NVME: Self = Self {
        name: "nvme",
        read: even(Nanos(82_780), Nanos(2_220), 3_000 * MB),
        write: even(micros(21), micros(4), 1_800 * MB),
        depth: 1024,
        ..Self::PLAIN
    };
    /// Two SATA SSDs, striped: twice the bandwidth and the requests of `sata_evo` as long as it writes into its
    /// fast cells, which source 3's runs do not fill: assumed. The log is the largest that XFS makes, as for
    /// any disk from 4 TiB on.
    pub const SATA_STRIPE: Self = Self {
        name: "sata_stripe",
        read: even(Nanos(84_900), Nanos(5_100), 1_080 * MB),
        write: even(Nanos(29_320), Nanos(5_680), 1_040 * MB),
        depth: 64,
        flush: Nanos::from_millis(2),
        xfs_log: Bytes(2 << 30),
        ..Self::PLAIN
    };
    /// A RAID 6 of slow disks: 50 random read-modify-writes per second (source 3); 8 ms for a
    /// random read and 200 and 100 MB/s in sequence are inferred.
    pub const SLOW_RAID6: Self = Self {
        name: "slow_raid6",
        read: Speed {
            latency: micros(500),
            op: Nanos(0),
            random_op: Nanos::from_millis(8),
            bandwidth: 200 * MB,
        },
        write: Speed {
            latency: micros(500),
            op: Nanos(0),
            random_op: Nanos::from_millis(20),
            bandwidth: 100 * MB,
        },
        ..Self::PLAIN
    };
    /// A disk of 7200 revolutions per minute: 8 ms for a random request, half of it the revolution;
    /// a buffer of 32 tracks of 1 MiB, as disks of 2014 had. The bandwidth is calibrated to source 4's run of
    /// 16 minutes.
    pub const SATA_HDD: Self = Self {
        name: "sata_hdd",
        read: HDD_PLATTER,
        write: HDD_PLATTER,
        xfs_log: Bytes(512 << 20),
        order: Order::Position,
        scheduler: IoScheduler::MqDeadline,
        track_buffer: Some(TrackBuffer {
            track: Bytes(1 << 20),
            tracks: 32,
            read: even(micros(100), micros(10), 300 * MB),
        }),
        ..Self::PLAIN
    };
    /// A volume of a cloud, over the network: 3,000 requests and 125 MiB a second, which is what the common class of
    /// one provider gives without extra pay (Amazon EBS gp3); 0.8 ms is assumed, documented are "single-digit
    /// milliseconds".
    pub const NETWORK: Self = Self {
        name: "network",
        read: even(micros(800), micros(333), 125 << 20),
        write: even(micros(800), micros(333), 125 << 20),
        ..Self::PLAIN
    };
    /// A virtual disk whose image lies in the host's page cache: 8 us, 12 GB/s. Inferred from source
    /// 2, whose disk held nobody up.
    pub const VIRTIO_RAM: Self = Self {
        name: "virtio_ram",
        read: even(micros(7), micros(1), 12_000 * MB),
        write: even(micros(7), micros(1), 12_000 * MB),
        depth: 128,
        ..Self::PLAIN
    };
    /// `ubd` of User-Mode Linux, whose file lies in the host's page cache: a thread on the guest's own CPU copies, one
    /// request after the other, so that nearly all of it is that CPU's time ([`crate::machines`], `guest-uml`). It has
    /// that CPU when the kernel leaves it, and once as many writes were sent off as a task gathers: up to 33 bios were
    /// on their way in guests of 5.10 and 6.1, up to 129 in those of 6.12 and 7.2, where half of them wait for the
    /// other half; then all were complete before the next one.
    pub const UBD: Self = Self {
        name: "ubd",
        read: even(Nanos(1_000), Nanos(0), ALL_AT_ONCE),
        write: even(Nanos(1_000), Nanos(0), ALL_AT_ONCE),
        depth: 128,
        gathers: 0,
        by_host_thread: true,
        ..Self::PLAIN
    };
    /// A device that takes no time: for tests.
    pub const INSTANT: Self = Self { name: "instant", depth: 1024, ..Self::PLAIN };
    /// Every model that has a name.
    pub const ALL: [&Self; 10] = [
        &Self::S390_FCP_2010,
        &Self::SATA_EVO,
        &Self::SATA_STRIPE,
        &Self::NVME,
        &Self::SLOW_RAID6,
        &Self::SATA_HDD,
        &Self::NETWORK,
        &Self::VIRTIO_RAM,
        &Self::UBD,
        &Self::INSTANT,
    ];

    /// The slowest that it writes: random requests, and with its fast cells full.
    pub fn slowest_write(&self) -> Speed {
        self.burst.map_or(self.write, |burst| burst.behind)
    }

    /// What people call a disk that they have not measured.
    pub fn of_class(class: &str) -> Option<Self> {
        let model = match class {
            "nvme" => Self::NVME,
            "ssd" => Self::SATA_EVO,
            "hdd" => Self::SATA_HDD,
            "network" => Self::NETWORK,
            _ => return None,
        };
        Some(model)
    }

    /// A disk of which reads were timed: `latency` of one page alone, `between` two of many that were asked for at
    /// once, and bytes a second in sequence. Writes are taken to be as fast.
    pub fn measured(latency: Nanos, between: Nanos, bandwidth: u64) -> Self {
        let speed = even(Nanos(latency.0 - between.0), between, bandwidth);
        Self { name: "measured", read: speed, write: speed, ..Self::PLAIN }
    }

    /// The model of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|model| model.name == name).cloned()
    }
}
