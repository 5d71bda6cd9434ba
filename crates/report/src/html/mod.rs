//! A comparison as one page to look at: HTML with its pictures, style and data in it.
//!
//! Start with [`Page::html`]; [`Page::figure`] is one of its figures as a file. The order of a page: the
//! question and what came out, the summary, a story over time, distributions, maps, details, how to read it and
//! how to make it again. Every figure has a finding as its title, units, how many runs it stands on, how to
//! read it, and the commands that reproduce it.
//!
//! Pictures are SVG from a small builder of our own ([`markup`], [`chart`]): plotting libraries write colours
//! and sizes into every element, so that a page could be neither light and dark nor narrow and wide without a
//! script. A page works printed and without JavaScript, which only adds values under the pointer. Pure: the
//! same recordings give the same bytes.

mod ablation;
mod chart;
mod ecdf;
mod figure;
mod heatmaps;
mod markup;
mod matrix;
mod misses;
mod page;
mod readings;
mod scale;
mod settings;
mod story;
mod summary;
mod verdict;
mod waited;
mod words;

pub use ablation::Factors;
pub use page::MARKS_OF_OURS;
pub use readings::Counts;
pub use settings::SettingGrid;
pub use story::{Story, StoryLine, StoryPanel, Tells};

use crate::compared::by_seed;
use crate::heat::Heat;
use crate::view::View;
use crate::{Group, ReportError, common_workload_of_groups};
pub(crate) use chart::{Mark, NamedLine, Panel};
pub(crate) use figure::{Column, Figure, Key, commands};
pub(crate) use markup::Element;
pub(crate) use page::{framed, plain_table, style_of_figures};
pub(crate) use scale::Axis;

/// What a page is made of.
#[derive(Debug, Clone)]
pub struct Page<'a> {
    /// The variants, the baseline first.
    pub groups: &'a [Group<'a>],
    /// Which measures matter most, and what the reader has to know.
    pub view: View,
    /// What the reader wants to know.
    pub question: String,
    /// What the workload's story shows.
    pub story: Story,
    /// For each group where memory was warm in its first run, if its events tell.
    pub heats: Vec<Option<Heat>>,
    /// What distinguishes the kernels, if they are an ablation.
    pub factors: Option<Factors>,
    /// All settings of all kernels, if there are several; `groups` may be those of one setting only.
    pub grid: Option<SettingGrid<'a>>,
    /// The program and its version.
    pub made_by: String,
    /// The command that makes the page again.
    pub command: String,
}

impl Page<'_> {
    /// The page.
    ///
    /// # Errors
    /// No group, a group without recordings, different workloads.
    pub fn html(&self) -> Result<String, ReportError> {
        let workload = common_workload_of_groups(self.groups)?;
        let groups = by_seed(self.groups);
        Ok(page::text(self, &groups, workload, &self.figures_of(&groups)))
    }

    /// Names of the figures that the recordings have something for, in the order of the page.
    ///
    /// # Errors
    /// As [`Page::html`].
    pub fn figures(&self) -> Result<Vec<String>, ReportError> {
        common_workload_of_groups(self.groups)?;
        Ok(self.single_figures().iter().map(|figure| figure.name.clone()).collect())
    }

    /// One figure as an SVG file: the one of this name, or the first; `None` where there is none.
    ///
    /// # Errors
    /// As [`Page::html`].
    pub fn figure(&self, name: Option<&str>) -> Result<Option<String>, ReportError> {
        common_workload_of_groups(self.groups)?;
        let figures = self.single_figures();
        let figure = figures.iter().find(|figure| name.is_none_or(|name| figure.name == name));
        Ok(figure.map(|figure| figure.svg(&page::style_of_figures())))
    }

    /// The figures of the page, and behind them its summary as one.
    fn single_figures(&self) -> Vec<Figure> {
        let groups = by_seed(self.groups);
        let is_replay = common_workload_of_groups(&groups).is_ok_and(page::is_replay);
        let summary = if is_replay { None } else { summary::figure(&groups, &self.view) };
        self.figures_of(&groups).into_iter().chain(summary).collect()
    }

    fn figures_of(&self, groups: &[Group<'_>]) -> Vec<Figure> {
        let first = [
            misses::figure(groups),
            ablation::figure(groups, &self.view, self.factors.as_ref()),
            self.grid.as_ref().and_then(|grid| settings::figure(grid, &self.view)),
            story::figure(groups, &self.story),
        ];
        let maps = heatmaps::figures(groups, &self.heats);
        let last = [waited::figure(groups), matrix::figure(groups, &self.view)];
        let distributions = ecdf::figures(groups, &self.view);
        first
            .into_iter()
            .flatten()
            .chain(maps)
            .chain(distributions)
            .chain(last.into_iter().flatten())
            .collect()
    }
}

#[cfg(test)]
mod tests;
