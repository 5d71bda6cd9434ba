//! A comparison as one page to look at, with figures.
//!
//! The order of a page: the question and what came out, the summary, a story over time, distributions, maps, details,
//! how to read it and how to make it again. Every figure has a finding as its title, units, how many runs it stands on,
//! how to read it, and the commands that reproduce it. Pure: the same recordings give the same page. Next:
//! [`crate::render`], which draws it.

mod ablation;
mod ecdf;
mod heatmaps;
mod matrix;
mod misses;
mod readings;
mod sections;
mod settings;
mod story;
mod summary;
mod verdict;
mod waited;
mod words;

pub use ablation::Factors;
pub use readings::Counts;
pub use sections::Page;
pub use settings::SettingGrid;
pub use story::{Story, StoryLine, StoryPanel, Tells};

use crate::document::Document;
use crate::document::figure::Figure;
use crate::judge::{Group, ReportError, by_seed, common_workload_of_groups};

/// The page. Its summary is a figure, too, for who wants it alone.
///
/// # Errors
/// No group, a group without recordings, different workloads.
pub fn page<'a>(page: &'a Page<'a>) -> Result<Document<'a>, ReportError> {
    let workload = common_workload_of_groups(page.groups)?;
    let groups = by_seed(page.groups);
    let summary = if sections::is_replay(workload) { None } else { summary::figure(&groups, &page.view) };
    Ok(sections::document(page, &groups, workload, figures(page, &groups)).alone(summary))
}

/// Every name that a figure can have, but for those of samples, which have the samples' name behind
/// [`FIGURE_OF_SAMPLES`].
pub const FIGURES: [&str; 9] =
    ["misses", "ablation", "grid", "story", "ages", "regions", "waits", "seeds", "changes"];
/// How names of figures of samples begin.
pub const FIGURE_OF_SAMPLES: &str = "ecdf-";

/// The figures that the recordings have something for, in their order.
fn figures(page: &Page<'_>, groups: &[Group<'_>]) -> Vec<Figure> {
    let first = [
        misses::figure(groups),
        ablation::figure(groups, &page.view, page.factors.as_ref()),
        page.grid.as_ref().and_then(|grid| settings::figure(grid, &page.view)),
        story::figure(groups, &page.story),
    ];
    let mut all: Vec<Figure> = first.into_iter().flatten().collect();
    all.extend(heatmaps::figures(groups, &page.heats));
    all.extend(ecdf::figures(groups, &page.view));
    all.extend([waited::figure(groups), matrix::figure(groups, &page.view)].into_iter().flatten());
    all
}

#[cfg(test)]
mod tests;
