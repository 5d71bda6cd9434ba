//! Which events a recording keeps.

use clap::{Args, ValueEnum};
use lab::Detail;

/// For commands that keep recordings with `--out`.
#[derive(Debug, Clone, Args)]
pub(crate) struct EventsArgs {
    /// Events to keep with the recording, for `explain`, `trace` and heatmaps: those of reclaim, or of all pages
    #[arg(long = "events", value_enum, default_value_t = Events::None, value_name = "WHICH", requires = "out")]
    #[arg(help_heading = "Output")]
    pub(crate) which: Events,
}

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
