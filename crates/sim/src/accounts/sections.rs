//! How long tasks were in which parts of the kernel: the stack of an allocation stall.
//!
//! A task enters a site (an allocation stall, kswapd's work) and in it a shrinker; every wait that ends there
//! is kept apart from the same wait elsewhere ([`Within`]), and the time between entering and leaving is summed
//! up, whatever it went by: computing, waiting for a CPU, waits. CPU time that is charged and has not passed
//! counts to where it was charged. As with waits, a section belongs to the phase in which it ended.
//!
//! Nothing is allocated but for the first of each kind. Left out: whom the one waits for on whom a task
//! waits (the holder of a lock waits for a write). Neighbours: `waits.rs` for the waits,
//! [`kernel::section`] for the drivers' side.

use kernel::machine::{TaskId, WaitReason};
use kernel::section::{Section, Shrinker, Site, Whom};
use units::Nanos;

/// What a task is in the middle of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Within {
    /// Who reclaims, and for whom; none: nobody.
    pub site: Option<Site>,
    /// The shrinker within.
    pub shrinker: Option<Shrinker>,
    /// Who could end the wait; none: what its reason says.
    pub whom: Option<Whom>,
}

impl Within {
    /// The names of site and shrinker, outermost first.
    pub fn path(&self) -> impl Iterator<Item = &'static str> {
        self.site.map(site_name).into_iter().chain(self.shrinker.map(shrinker_name))
    }
}

/// A site as reports call it.
pub const fn site_name(site: Site) -> &'static str {
    match site {
        Site::AllocationStall => "allocation stall",
        Site::AllocationPause => "allocation pause",
        Site::LimitReclaim => "limit reclaim",
        Site::DirectCompaction => "direct compaction",
        Site::OverHigh => "sleep above memory.swap.high",
        Site::Kswapd => "kswapd",
    }
}

/// A shrinker as reports call it.
pub const fn shrinker_name(shrinker: Shrinker) -> &'static str {
    match shrinker {
        Shrinker::ShadowNodes => "shadow node shrinker",
        Shrinker::ExtentStatus => "extent status shrinker",
        Shrinker::SuperBlock => "super-block shrinker",
        Shrinker::XfsBuffers => "XFS buffer shrinker",
        Shrinker::Zswap => "zswap shrinker",
    }
}

/// On whom a task waited in a wait for `reason` that blames `whom`.
pub const fn whom_name(reason: WaitReason, whom: Option<Whom>) -> &'static str {
    match whom {
        Some(Whom::OwnInodeWrite) => "own inode write",
        Some(Whom::ReclaimersInodeWrite) => "inode write of another reclaimer",
        Some(Whom::AilInodeWrite) => "inode write of xfsaild",
        Some(Whom::InodeRead) => "inode read",
        Some(Whom::Log) => "log force",
        Some(Whom::GroupLock(holder)) => match holder {
            Some(Site::AllocationStall) => "group lock held by an allocation stall",
            Some(Site::Kswapd) => "group lock held by kswapd",
            Some(Site::LimitReclaim) => "group lock held by limit reclaim",
            Some(Site::AllocationPause | Site::DirectCompaction | Site::OverHigh) | None => {
                "group lock held by the worker"
            }
        },
        None => by_reason(reason),
    }
}

const fn by_reason(reason: WaitReason) -> &'static str {
    match reason {
        WaitReason::Congestion | WaitReason::ThrottleWriteback => "any write to a disk",
        WaitReason::DirectReclaimThrottle | WaitReason::FragmentStall => "kswapd",
        WaitReason::ThrottleNoProgress | WaitReason::PressureWait => "progress of others in reclaim",
        WaitReason::PageRead => "read of a page",
        WaitReason::PageWriteback => "write of a page",
        WaitReason::RequestQueue => "the disk's queue",
        WaitReason::LogWrite => "log force",
        WaitReason::LogSpace => "xfsaild",
        WaitReason::InodeReclaim => "an inode cluster",
        WaitReason::DirtyThrottle | WaitReason::OverHigh => "nobody: a pause",
        WaitReason::OomLock => "the task that runs the OOM killer",
        WaitReason::FileLock => "another writer of the file",
        WaitReason::ListDrain => "workers that drain lists",
        WaitReason::KswapdIdle
        | WaitReason::KswapdDoze
        | WaitReason::KcompactdIdle
        | WaitReason::KhugepagedIdle
        | WaitReason::FlusherIdle
        | WaitReason::UserSleep
        | WaitReason::Join
        | WaitReason::Periodic => "nobody",
    }
}

/// Time of one task in one section in one phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionTime {
    /// The number of phases that were over when it ended.
    pub phase: usize,
    /// The task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// The section; it blames nobody.
    pub within: Within,
    /// How often the task was there.
    pub count: u64,
    /// How long altogether; where it is there still, up to now.
    pub spent: Nanos,
    /// The longest stay.
    pub longest: Nanos,
    /// How often the task waited there, at least once in the same stay.
    pub waited: u64,
}

/// Where a task is, and since when.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Inside {
    pub(crate) within: Within,
    site: Stay,
    shrinker: Stay,
}

/// A stay in a section that goes on.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stay {
    since: u64,
    waited: bool,
}

impl Stay {
    const fn begin(since: u64) -> Self {
        Self { since, waited: false }
    }
}

/// Stays of a task in one section.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SectionTotal {
    pub(crate) within: Within,
    pub(crate) count: u64,
    pub(crate) spent: u64,
    pub(crate) longest: u64,
    pub(crate) waited: u64,
}

impl Inside {
    pub(crate) fn enter(&mut self, now: u64, section: Section) {
        match section {
            Section::Site(site) => {
                assert!(self.within == Within::default(), "{site:?} is entered within {:?}", self.within);
                (self.within.site, self.site) = (Some(site), Stay::begin(now));
            }
            Section::Shrinker(shrinker) => {
                assert!(self.within.shrinker.is_none(), "{shrinker:?} is called by {:?}", self.within);
                (self.within.shrinker, self.shrinker) = (Some(shrinker), Stay::begin(now));
            }
        }
    }

    /// A wait is over.
    pub(crate) fn note_wait(&mut self) {
        (self.site.waited, self.shrinker.waited) = (true, true);
    }

    /// Returns the section that was left.
    pub(crate) fn leave(&mut self, section: Section) -> (Within, Stay) {
        let left = Within { whom: None, ..self.within };
        let (innermost, stay) = match left.shrinker {
            Some(shrinker) => (Some(Section::Shrinker(shrinker)), self.shrinker),
            None => (left.site.map(Section::Site), self.site),
        };
        assert!(innermost == Some(section), "{section:?} is left within {left:?}");
        self.within = match section {
            Section::Site(_) => Within::default(),
            Section::Shrinker(_) => Within { shrinker: None, whom: None, ..left },
        };
        (left, stay)
    }

    /// The sections that it is in.
    pub(crate) fn open(&self) -> impl Iterator<Item = (Within, Stay)> {
        let site = Within { site: self.within.site, ..Within::default() };
        let shrinker = Within { whom: None, ..self.within };
        let in_site = site.site.map(|_| (site, self.site));
        in_site.into_iter().chain(shrinker.shrinker.map(|_| (shrinker, self.shrinker)))
    }
}

impl SectionTotal {
    /// One stay that lasted up to `now`.
    pub(crate) fn of(within: Within, stay: Stay, now: u64) -> Self {
        // CPU time that it owes when it enters has not passed.
        let spent = now.saturating_sub(stay.since);
        Self { within, count: 1, spent, longest: spent, waited: stay.waited.into() }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.count += other.count;
        self.spent += other.spent;
        self.longest = self.longest.max(other.longest);
        self.waited += other.waited;
    }
}
