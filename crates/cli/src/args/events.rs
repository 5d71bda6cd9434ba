//! Which events a recording keeps.

use clap::ValueEnum;
use lab::Detail;

/// How much of what happened is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Events {
    /// Nothing.
    None,
    /// What reclaimers and the allocator did, waits, requests to disks.
    Reclaim,
    /// The life of every page, too.
    Pages,
}

impl Events {
    /// As the lab takes it.
    pub(crate) const fn detail(self) -> Option<Detail> {
        match self {
            Self::None => None,
            Self::Reclaim => Some(Detail::Reclaim),
            Self::Pages => Some(Detail::Page),
        }
    }
}
