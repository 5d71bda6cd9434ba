//! What a run on a real kernel may take of this host, computed before anything is written.
//!
//! A workload says what it makes on a machine of a given size ([`Footprint`]); here that
//! is held against the memory it may use and against the free disk. Free is what the filesystem
//! leaves to users (`f_bavail`), and a run may fill half of it unless told otherwise: others write,
//! too, while it runs. All but [`Disk::at`] is plain arithmetic.
//!
//! Left out: quotas, which the kernel checks itself; what a filesystem keeps beside the files, for
//! which the other half is large enough.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use thiserror::Error;
use units::Bytes;
use units::text::parse_size;
use workload::{Footprint, MachineSize, Workload};

/// How much of the free disk a run may fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskShare {
    /// Of what is free when it begins: 1 to 100.
    Percent(u8),
    /// This much, if it is free.
    Size(Bytes),
}

/// The share of a run that names none.
pub const DEFAULT_SHARE: DiskShare = DiskShare::Percent(50);

/// What a process needs besides the workload's own mappings: its buffer, page tables, stacks, and page cache that is
/// locked while it is read. 65 processes that write small files run in a guest of 131 MiB.
const PROCESS: Bytes = Bytes(1 << 20);
/// What the first of them needs more.
const FIRST_PROCESS: Bytes = Bytes(4 << 20);

/// Why a run does not begin.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BoundsError {
    /// The files, or what holds them, are larger than what they may take.
    #[error("{made} {room}")]
    Disk {
        /// What is made, with figures.
        made: String,
        /// Where, and what room is there.
        room: String,
        /// Room that it needs.
        size: Bytes,
        /// What the filesystem has left.
        free: Bytes,
        /// What makes it fit, besides a larger share.
        instead: String,
    },
    /// The filesystem has too few inodes.
    #[error("`{workload}` makes {count} files in `{}`, where {free} more can be made", path.display())]
    Inodes {
        /// The workload.
        workload: &'static str,
        /// Files that it makes.
        count: u64,
        /// Where.
        path: PathBuf,
        /// Inodes left.
        free: u64,
    },
    /// More memory than there is.
    #[error(
        "`{what} {asked}` is more than the {} of memory that {}",
        Rounded::down(*.memory), whose(.cgroup.as_deref())
    )]
    BeyondMemory {
        /// The option that asks for it.
        what: &'static str,
        /// How much.
        asked: Bytes,
        /// What the host, or the cgroup that we are in, has.
        memory: Bytes,
        /// That cgroup, where it has less than the host.
        cgroup: Option<PathBuf>,
    },
    /// Too little memory for the workload.
    #[error(
        "`{option} {limit}`{} is too little for `{workload}`, which needs {}: {} for {processes} processes{}",
        swapped(*.swap), Rounded::up(*.needs), Rounded::up(Bytes(.needs.get() - .anonymous.get())),
        mapped(*.anonymous)
    )]
    TooLittleMemory {
        /// The workload.
        workload: &'static str,
        /// The option that sets the limit.
        option: &'static str,
        /// The limit, or the guest's memory.
        limit: Bytes,
        /// Room to swap beside it.
        swap: Bytes,
        /// What it needs there.
        needs: Bytes,
        /// Anonymous memory that it touches.
        anonymous: Bytes,
        /// Processes at the same time.
        processes: u64,
        /// What makes it fit.
        instead: String,
    },
    /// Files on several disks, and a run has one.
    #[error("`{workload}` puts its files on {disks} disks, and a run on this host has one folder")]
    Disks {
        /// The workload.
        workload: &'static str,
        /// The disks.
        disks: u16,
    },
    /// The data disk of a guest is too small.
    #[error("`{workload}` makes {count} files of {} together, and the guest's disk of {disk} holds {room}",
        Rounded::up(*.files))]
    GuestDisk {
        /// The workload.
        workload: &'static str,
        /// Its files.
        count: u64,
        /// Their size.
        files: Bytes,
        /// The disk.
        disk: Bytes,
        /// What fits on it, in words.
        room: String,
        /// What makes it fit.
        instead: String,
    },
}

fn whose(cgroup: Option<&Path>) -> String {
    cgroup.map_or_else(|| "this host has".to_owned(), |path| format!("the cgroup {} may use", path.display()))
}

fn swapped(swap: Bytes) -> String {
    if swap == Bytes(0) { String::new() } else { format!(" with {} of swap", Rounded::down(swap)) }
}

fn mapped(anonymous: Bytes) -> String {
    if anonymous == Bytes(0) {
        return String::new();
    }
    format!(" and {} that they fill", Rounded::up(anonymous))
}

impl BoundsError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Disk { size, free, instead, .. } if size <= free => {
                format!("`--host-disk {}` allows it; {instead}", in_mib(*size))
            }
            Self::Disk { instead, .. } => instead.clone(),
            Self::Inodes { .. } => {
                "name a folder on another filesystem with `--host-dir`, or make fewer files with `--param`; see \
                 `pagetide list workloads NAME`"
                    .to_owned()
            }
            Self::BeyondMemory { what, memory, .. } => {
                let part = Bytes(1 << memory.get().checked_ilog2()?.saturating_sub(1));
                format!("give it a part of that, as in `{what} {part}`")
            }
            Self::Disks { .. } => {
                "put all on one with `--param disks=1`, or give it a guest with as many, `--on vm:VERSION`"
                    .to_owned()
            }
            Self::TooLittleMemory { instead, .. } | Self::GuestDisk { instead, .. } => instead.clone(),
        })
    }
}

/// A filesystem's room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Disk {
    pub(crate) path: PathBuf,
    pub(crate) free: Bytes,
    /// Files that can be made; none where the filesystem sets no limit.
    pub(crate) inodes: Option<u64>,
}

impl Disk {
    /// The filesystem of `path`, or of the nearest folder above that is there already.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        let is_there = |path: &&Path| !path.as_os_str().is_empty() && path.exists();
        let stat = rustix::fs::statvfs(path.ancestors().find(is_there).unwrap_or(Path::new(".")))?;
        Ok(Self {
            path: path.to_owned(),
            free: Bytes(stat.f_bavail.saturating_mul(stat.f_frsize)),
            inodes: (stat.f_files > 0).then_some(stat.f_favail),
        })
    }

    /// What of it may be used.
    pub(crate) fn allowed(&self, share: DiskShare) -> Bytes {
        match share {
            DiskShare::Percent(percent) => {
                Bytes((u128::from(self.free.get()) * u128::from(percent) / 100) as u64)
            }
            DiskShare::Size(size) => size.min(self.free),
        }
    }

    /// Refuses what does not fit. `made` says what needs `size`; `instead`, given the room that there
    /// is, what would.
    pub(crate) fn check(
        &self,
        made: &str,
        size: Bytes,
        share: DiskShare,
        instead: impl FnOnce(Bytes) -> String,
    ) -> Result<(), BoundsError> {
        let allowed = self.allowed(share);
        if size <= allowed {
            return Ok(());
        }
        let (made, room, free) = (made.to_owned(), self.room(share), self.free);
        Err(BoundsError::Disk { made, room, size, free, instead: instead(allowed) })
    }

    /// Refuses more files than can be made.
    pub(crate) fn check_inodes(&self, workload: &'static str, count: u64) -> Result<(), BoundsError> {
        match self.inodes {
            Some(free) if free < count => {
                Err(BoundsError::Inodes { workload, count, path: self.path.clone(), free })
            }
            _ => Ok(()),
        }
    }

    /// What is free and what of it may be used, for a person.
    pub(crate) fn room(&self, share: DiskShare) -> String {
        let (free, allowed) = (Rounded::down(self.free), Rounded::down(self.allowed(share)));
        format!("in {}, where {free} are free and {allowed} may be used ({share})", self.path.display())
    }
}

/// The memory that a workload may use, and the option that says so.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    pub(crate) option: &'static str,
    pub(crate) size: MachineSize,
    /// Room for anonymous memory beside it.
    pub(crate) swap: Bytes,
}

impl Memory {
    fn with(self, bytes: Bytes) -> Self {
        Self { size: MachineSize { memory: bytes.to_pages_floor(), ..self.size }, ..self }
    }

    fn bytes(self) -> Bytes {
        self.size.memory.to_bytes()
    }

    /// What the workload makes here.
    pub(crate) fn footprint(self, workload: &Workload) -> Footprint {
        workload.footprint(self.size)
    }

    /// What the workload needs here.
    fn needs(self, workload: &Workload) -> Bytes {
        let made = self.footprint(workload);
        Bytes(processes(made.tasks).get().saturating_add(made.anonymous.get()))
    }

    fn suffices(self, workload: &Workload) -> bool {
        let room = Bytes(self.bytes().get().saturating_add(self.swap.get()));
        self.needs(workload) <= room && processes(self.footprint(workload).tasks) <= self.bytes()
    }

    /// Refuses a workload that needs more. `most` is what the option can give.
    pub(crate) fn check(self, workload: &Workload, most: Bytes) -> Result<(), BoundsError> {
        if self.suffices(workload) {
            return Ok(());
        }
        let mut more = powers_of_two().filter(|&bytes| bytes > self.bytes() && bytes <= most);
        let instead = match more.find(|&bytes| self.with(bytes).suffices(workload)) {
            Some(bytes) => format!("give it more, as in `{} {bytes}`", self.option),
            None => smaller(),
        };
        let Footprint { anonymous, tasks, .. } = self.footprint(workload);
        Err(BoundsError::TooLittleMemory {
            workload: workload.name(),
            option: self.option,
            limit: self.bytes(),
            swap: self.swap,
            needs: self.needs(workload),
            anonymous,
            processes: tasks + 1,
            instead,
        })
    }

    /// What makes the files fit into `allowed`: less memory, where that decides how large they are.
    pub(crate) fn smaller_files(self, workload: &Workload, allowed: Bytes) -> String {
        let files = |memory: Self| memory.footprint(workload).files;
        let fits = |memory: &Self| memory.suffices(workload) && files(*memory) <= allowed;
        let less = powers_of_two().filter(|&bytes| bytes < self.bytes()).map(|bytes| self.with(bytes));
        // Of a workload whose files are as large on any machine, none fits.
        match less.filter(fits).last() {
            Some(memory) => {
                let (option, size, made) = (self.option, memory.bytes(), Rounded::up(files(memory)));
                format!("`{option} {size}` makes {made} of files; {}", smaller())
            }
            None => smaller(),
        }
    }
}

/// What `tasks` processes and the one that starts them need, besides what they map.
fn processes(tasks: u64) -> Bytes {
    Bytes(tasks.saturating_mul(PROCESS.get()).saturating_add(FIRST_PROCESS.get()))
}

/// Sizes of memory that are worth naming, the smallest first.
fn powers_of_two() -> impl Iterator<Item = Bytes> {
    (20..44).map(|shift| Bytes(1 << shift))
}

fn smaller() -> String {
    "`--param` makes the workload smaller, see `pagetide list workloads NAME`".to_owned()
}

impl fmt::Display for DiskShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Percent(percent) => write!(f, "{percent} %"),
            Self::Size(size) => write!(f, "{size}"),
        }
    }
}

/// A text that is no share of a disk.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is neither a size nor 1 % to 100 %")]
pub struct NotAShare(String);

impl FromStr for DiskShare {
    type Err = NotAShare;

    /// `10G`, or `80%`.
    fn from_str(text: &str) -> Result<Self, NotAShare> {
        let wrong = || NotAShare(text.to_owned());
        match text.trim().strip_suffix('%') {
            Some(percent) => {
                let percent = percent.trim_end().parse().ok().filter(|percent| (1..=100).contains(percent));
                percent.map(Self::Percent).ok_or_else(wrong)
            }
            None => match parse_size(text) {
                Ok(size) if size > Bytes(0) => Ok(Self::Size(size)),
                _ => Err(wrong()),
            },
        }
    }
}

/// The next whole number of MiB, as an option takes it.
fn in_mib(size: Bytes) -> Bytes {
    Bytes(size.get().next_multiple_of(1 << 20))
}

/// A size with about three digits. What is needed is rounded up and what is there down, so that two
/// figures of a refusal never look equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rounded {
    /// In powers of ten of `unit`: of minus as many as there are decimals.
    number: u128,
    decimals: usize,
    unit: &'static str,
}

impl Rounded {
    pub(crate) fn up(size: Bytes) -> Self {
        Self::new(size, u128::div_ceil)
    }

    pub(crate) fn down(size: Bytes) -> Self {
        Self::new(size, |number, divisor| number / divisor)
    }

    fn new(size: Bytes, divided: fn(u128, u128) -> u128) -> Self {
        let units = [(40, "TiB"), (30, "GiB"), (20, "MiB")];
        let (shift, unit) =
            units.into_iter().find(|(shift, _)| size.get() >> shift > 0).unwrap_or((10, "KiB"));
        let (decimals, scale) = match size.get() >> shift {
            100.. => (0, 1),
            10.. => (1, 10),
            _ => (2, 100),
        };
        Self { number: divided(u128::from(size.get()) * scale, 1 << shift), decimals, unit }
    }
}

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, decimals, unit } = *self;
        let scale = 10_u128.pow(decimals as u32);
        let (whole, rest) = (number / scale, number % scale);
        if rest == 0 { write!(f, "{whole} {unit}") } else { write!(f, "{whole}.{rest:0decimals$} {unit}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;

    fn workload(name: &str, pairs: &[(&'static str, &'static str)]) -> Workload {
        Workload::new(name, pairs.iter().copied()).unwrap()
    }

    fn memory(bytes: u64) -> Memory {
        let size = MachineSize { memory: Bytes(bytes).to_pages_floor(), nodes: 1, cpus: 2, disks: 1 };
        Memory { option: "--host-limit", size, swap: Bytes(0) }
    }

    fn shown(result: Result<(), BoundsError>) -> String {
        match result {
            Ok(()) => "fits".to_owned(),
            Err(error) => format!("{error}\nhint: {}", error.hint().unwrap_or_default()),
        }
    }

    fn on_disk(free: u64, share: DiskShare, limit: u64, workload: &Workload) -> String {
        let disk = Disk { path: "/data".into(), free: Bytes(free), inodes: Some(100_000) };
        let (memory, made) = (memory(limit), memory(limit).footprint(workload));
        let check =
            disk.check("it makes files", made.files, share, |room| memory.smaller_files(workload, room));
        shown(check.and_then(|()| disk.check_inodes(workload.name(), made.file_count)))
    }

    #[test]
    fn files_beyond_the_share_of_the_free_disk_are_refused_with_every_figure_and_a_size_that_fits() {
        let faults = workload("huge-faults", &[]);
        let half = DEFAULT_SHARE;
        insta::assert_snapshot!(on_disk(2 * GIB, half, GIB, &faults), @"
        it makes files in /data, where 2 GiB are free and 1 GiB may be used (50 %)
        hint: `--host-disk 1536M` allows it; `--host-limit 512M` makes 768 MiB of files; `--param` makes the workload smaller, see `pagetide list workloads NAME`
        ");
        // More than is free is not allowed by any option.
        insta::assert_snapshot!(on_disk(2 * GIB, DiskShare::Percent(100), 4 * GIB, &faults), @"
        it makes files in /data, where 2 GiB are free and 2 GiB may be used (100 %)
        hint: `--host-limit 1G` makes 1.50 GiB of files; `--param` makes the workload smaller, see `pagetide list workloads NAME`
        ");
        assert_eq!(on_disk(2 * GIB, half, 512 * MIB, &faults), "fits");
        assert_eq!(on_disk(2 * GIB, DiskShare::Percent(80), GIB, &faults), "fits");
        assert_eq!(on_disk(2 * GIB, DiskShare::Size(Bytes(1536 * MIB)), GIB, &faults), "fits");
    }

    #[test]
    fn less_memory_is_no_remedy_for_files_that_do_not_depend_on_it() {
        let stream = workload("hot-and-stream", &[]);
        insta::assert_snapshot!(on_disk(30 * GIB, DEFAULT_SHARE, GIB, &stream), @"
        it makes files in /data, where 30 GiB are free and 15 GiB may be used (50 %)
        hint: `--host-disk 18499M` allows it; `--param` makes the workload smaller, see `pagetide list workloads NAME`
        ");
    }

    #[test]
    fn more_files_than_inodes_are_refused() {
        let small = workload("huge-faults", &[("file_size", "4k")]);
        insta::assert_snapshot!(on_disk(20 * GIB, DEFAULT_SHARE, GIB, &small), @"
        `huge-faults` makes 393217 files in `/data`, where 100000 more can be made
        hint: name a folder on another filesystem with `--host-dir`, or make fewer files with `--param`; see `pagetide list workloads NAME`
        ");
    }

    #[test]
    fn a_limit_that_the_workload_cannot_run_in_is_refused_with_one_that_is_enough() {
        let check = |bytes, workload: &Workload| shown(memory(bytes).check(workload, Bytes(16 * GIB)));
        let stream = workload("hot-and-stream", &[]);
        insta::assert_snapshot!(check(0, &stream), @"
        `--host-limit 0` is too little for `hot-and-stream`, which needs 5 MiB: 5 MiB for 2 processes
        hint: give it more, as in `--host-limit 8M`
        ");
        assert_eq!(check(8 * MIB, &stream), "fits");
        insta::assert_snapshot!(check(16 * MIB, &workload("huge-faults", &[])), @"fits");
        // Mappings that grow with the limit beyond it fit into none.
        insta::assert_snapshot!(check(GIB, &workload("huge-faults", &[("scale", "300")])), @"
        `--host-limit 1G` is too little for `huge-faults`, which needs 1.14 GiB: 9 MiB for 6 processes and 1.13 GiB that they fill
        hint: `--param` makes the workload smaller, see `pagetide list workloads NAME`
        ");
    }

    /// A guest of 128 MiB was refused 150 MiB of anonymous memory, whatever room it had to swap.
    #[test]
    fn what_fits_into_swap_is_not_refused() {
        let faults = workload("huge-faults", &[("scale", "300")]);
        let with = |swap| Memory { swap: Bytes(swap), ..memory(GIB) };
        let check = |swap| shown(with(swap).check(&faults, Bytes(16 * GIB)));
        assert_eq!(check(256 * MIB), "fits");
        insta::assert_snapshot!(check(64 * MIB), @"
        `--host-limit 1G` with 64 MiB of swap is too little for `huge-faults`, which needs 1.14 GiB: 9 MiB for 6 processes and 1.13 GiB that they fill
        hint: `--param` makes the workload smaller, see `pagetide list workloads NAME`
        ");
        let many = workload("small-files", &[("processes", "200")]);
        let check = |memory: Memory| shown(memory.check(&many, Bytes(16 * GIB)));
        insta::assert_snapshot!(check(Memory { swap: Bytes(GIB), ..memory(128 * MIB) }), @"
        `--host-limit 128M` with 1 GiB of swap is too little for `small-files`, which needs 240 MiB: 204 MiB for 201 processes and 35.4 MiB that they fill
        hint: give it more, as in `--host-limit 256M`
        ");
    }

    #[test]
    fn more_memory_than_there_is_is_refused_with_whose_it_is() {
        let beyond = |cgroup: Option<&str>| {
            let (asked, memory, cgroup) = (Bytes(64 * GIB), Bytes(24 * GIB - 5), cgroup.map(PathBuf::from));
            shown(Err(BoundsError::BeyondMemory { what: "--host-limit", asked, memory, cgroup }))
        };
        insta::assert_snapshot!([beyond(None), beyond(Some("/sys/fs/cgroup/box"))].join("\n"), @"
        `--host-limit 64G` is more than the 23.9 GiB of memory that this host has
        hint: give it a part of that, as in `--host-limit 8G`
        `--host-limit 64G` is more than the 23.9 GiB of memory that the cgroup /sys/fs/cgroup/box may use
        hint: give it a part of that, as in `--host-limit 8G`
        ");
    }

    #[test]
    fn a_share_is_a_size_or_a_percentage() {
        let read = |text: &str| text.parse::<DiskShare>().map_err(|error| error.to_string());
        assert_eq!(read("80%"), Ok(DiskShare::Percent(80)));
        assert_eq!(read("100 %"), Ok(DiskShare::Percent(100)));
        assert_eq!(read("10G"), Ok(DiskShare::Size(Bytes(10 * GIB))));
        for wrong in ["0%", "101%", "-5%", "0", "", "%", "half", "-1G"] {
            assert_eq!(read(wrong), Err(format!("`{wrong}` is neither a size nor 1 % to 100 %")));
        }
    }

    #[test]
    fn a_size_that_is_needed_never_looks_like_the_smaller_one_that_is_there() {
        let shown = |bytes| (Rounded::up(Bytes(bytes)).to_string(), Rounded::down(Bytes(bytes)).to_string());
        let pair = |up: &str, down: &str| (up.to_owned(), down.to_owned());
        assert_eq!(shown(GIB + 1), pair("1.01 GiB", "1 GiB"));
        assert_eq!(shown(0), pair("0 KiB", "0 KiB"));
        assert_eq!(shown(1), pair("0.01 KiB", "0 KiB"));
        assert_eq!(shown(1_555 * MIB), pair("1.52 GiB", "1.51 GiB"));
        assert_eq!(shown(78 * GIB + GIB / 3), pair("78.4 GiB", "78.3 GiB"));
        assert_eq!(shown(261 * MIB - 1), pair("261 MiB", "260 MiB"));
        assert_eq!(shown(10 * GIB - 1), pair("10 GiB", "9.99 GiB"));
    }

    #[test]
    fn a_folder_that_is_not_there_yet_is_on_the_filesystem_of_the_one_above() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::at(&folder.path().join("a/b")).unwrap();
        assert!(disk.free > Bytes(0));
        assert_eq!(disk.path, folder.path().join("a/b"));
    }
}
