//! How much memory a trace needs: its curve, the knee, and what to set, for people, programs and three systems.
//!
//! [`Sized`] (`size/found.rs`) holds all that was found; every form is a view of it. Bytes are bytes, ratios 0 to 1,
//! times seconds. Left out: how it was found (`pagetide-lab`, `size`). Neighbours: `size/text.rs` for sentences and
//! tables, `size/check.rs` for those of the program itself, `size/data.rs` for programs, `size/settings.rs` for lines
//! to paste, `size/patch.rs` for whole patches, `size/plot.rs` for the figure, `size/page.rs` for a page with it,
//! `size/own_cache.rs` for a program with own caches of several sizes, `size/watched.rs` for a series of memory use.

mod check;
mod data;
mod figures;
mod found;
mod own_cache;
mod page;
mod patch;
mod plot;
mod settings;
mod text;
mod watched;

use crate::document::{Block, Document, Mark, Section};
pub use found::{
    Advice, CheckedPoint, Ended, OtherDisk, Patch, PatchKind, Practice, ProgramCheck, SampleCheck, Sized,
    SizedKnee, SizedPoint, Spread, VerifiedPoint,
};
pub use own_cache::{OwnCache, OwnCaches, own_cache, own_cache_page};
pub use page::size_page;
use settings::settings;
use text::{advised, between, curve, extra, knee, rests_on, title};
pub use watched::{Watched, WatchedRule, watched};

/// How much memory a trace needs: what to set first, then the curve, then what it rests on.
///
/// JSON has everything. CSV has one record for each limit; no limit is `max`, as in `memory.max`. What has several
/// seeds has its mean, its least and its most.
pub fn size(sized: &Sized) -> Document<'_> {
    let (heading, sentences) = advised(sized);
    let first = Section::first(title(sized), None).line(format!("the trace: {}", sized.holds.join(", ")));
    let limits = Section::untitled()
        .with(curve(sized))
        .list(Mark::Sentence, [knee(sized)].into_iter().chain(between(sized)));
    let pasted = settings(sized);
    let beside = extra(sized)
        .into_iter()
        .map(|(heading, table, said)| Section::new(heading).with(table).list(Mark::Sentence, [said]));
    let commands = vec![(String::new(), sized.command.clone())];
    Document::new(&sized.trace)
        .section(first)
        .section(Section::new(heading).list(Mark::Sentence, sentences))
        .section(limits)
        .section(Section::new("to paste").with_all(pasted))
        .sections(beside)
        .section(Section::new("what it rests on").list(Mark::Dash, rests_on(sized)))
        .section(Section::untitled().with(Block::Commands { heading: "Make it again", commands }))
        .json(|| data::value(sized))
        .csv(|| data::records(sized))
}
