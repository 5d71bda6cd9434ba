//! A program's own cache beside the page cache: which split of memory is best, for people and programs.
//!
//! [`OwnCaches`] holds a curve for each size of the own cache, all compared with the fastest of them without a limit,
//! and the whole size of the one that is recommended. Left out: how it was found (`pagetide-lab`, `size/own_cache.rs`).
//! Next: the parent's [`super::size`], whose sentences and tables this has, too.

use serde_json::{Value, json};

use super::data;
use super::figures::{limit, mib, places, ranged};
use super::found::{Sized, SizedPoint, Spread};
use super::settings::settings;
use super::text::{advised, extra, rests_on};
use crate::document::axis::Axis;
use crate::document::figure::{Column, Figure, Key, Mark as Drawn, NamedLine, Panel};
use crate::document::{Block, Cell, Document, Mark, Records, Section, Table, row};
use units::Bytes;

#[cfg(test)]
mod tests;

/// A program with an own cache of one size.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnCache {
    /// The size, in bytes.
    pub bytes: u64,
    /// The command with it.
    pub command: String,
    /// Bytes that it holds where nothing limits it.
    pub held: u64,
    /// What of these is of no file: the most at a time.
    pub own: u64,
    /// Whether that is as much as its own cache, about.
    pub is_filled: bool,
    /// The least limit run that keeps the target, in bytes; none where none does.
    pub enough: Option<u64>,
    /// Limits that were run, smallest first, and none at the end; slowdowns are from the fastest of all sizes.
    pub points: Vec<SizedPoint>,
}

/// A program with own caches of several sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnCaches {
    /// The command, with a place for the size.
    pub command: String,
    /// By size, smallest first.
    pub caches: Vec<OwnCache>,
    /// The size that is recommended, or the fastest where none is.
    pub of: u64,
    /// The size with which it is fastest without a limit.
    pub fastest: u64,
    /// Limits at which all sizes were run, smallest first.
    pub limits: Vec<u64>,
    /// What a reader must know of the sizes, a sentence each.
    pub notes: Vec<String>,
    /// All that was found of that size.
    pub sized: Sized,
}

/// Slowdowns that are this near are alike, in percent: the smaller own cache is as good.
const ALIKE: f64 = 0.5;

impl OwnCaches {
    /// The own cache that is fastest at a limit; none where all are killed.
    fn best_at(&self, limit: Option<u64>) -> Option<&OwnCache> {
        let slowdown =
            |cache: &OwnCache| cache.at(limit).filter(|point| point.killed == 0)?.slowdown.map(|of| of.mean);
        let least = self.caches.iter().filter_map(slowdown).min_by(f64::total_cmp)?;
        self.caches.iter().find(|cache| slowdown(cache).is_some_and(|of| of <= least + ALIKE))
    }

    fn title(&self) -> String {
        let Sized { kernel, machine, seeds, runs, .. } = &self.sized;
        let seeds = match &seeds[..] {
            [only] => format!("seed {only}"),
            [first, .., last] => format!("seeds {first} to {last}"),
            [] => "no seed".to_owned(),
        };
        format!(
            "`{}` with {} own caches on {kernel} ({machine}, {seeds}), {runs} runs",
            self.command,
            self.caches.len()
        )
    }

    /// What to set, and sentences that found it.
    fn advised(&self) -> (String, Vec<String>) {
        let (heading, mut sentences) = advised(&self.sized);
        let size = Bytes(self.of);
        let fastest = Bytes(self.fastest);
        let from = format!("slowdowns are from the fastest without a limit: an own cache of {fastest}");
        if self.sized.advice.is_none() {
            sentences.push(from);
            return (heading, sentences);
        }
        sentences.insert(
            0,
            format!(
                "an own cache of {size} keeps the target with the least memory of all that were run; {from}"
            ),
        );
        (format!("own cache {size}: {heading}"), sentences)
    }

    /// A row for each size.
    fn sizes(&self) -> Table {
        let mut table = Table::new()
            .amounts(["own cache", "holds, MiB", "of no file, MiB", "run, s", "slower, %", "enough"])
            .texts([""]);
        for cache in &self.caches {
            let free = cache.at(None);
            let cell = |spread: Option<Spread>, digits: Option<usize>| {
                spread.map(|spread| ranged(spread, 1.0, digits.unwrap_or_else(|| places(spread.most))))
            };
            table.push(row![
                Bytes(cache.bytes).to_string(),
                whole_mib(cache.held),
                whole_mib(cache.own),
                cell(free.and_then(|point| point.run), None),
                cell(free.and_then(|point| point.slowdown), Some(1)),
                cache.enough.map_or("none".to_owned(), mib),
                self.marks(cache),
            ]);
        }
        table
    }

    fn marks(&self, cache: &OwnCache) -> String {
        let marks = [
            (cache.bytes == self.of && self.sized.advice.is_some(), "recommended"),
            (cache.bytes == self.fastest, "fastest"),
            (!cache.is_filled, "not filled"),
        ];
        marks.iter().filter(|(is_so, _)| *is_so).map(|(_, mark)| *mark).collect::<Vec<_>>().join(", ")
    }

    /// A row for each limit, a column for each size.
    fn splits(&self) -> Table {
        let sizes = self.caches.iter().map(|cache| Bytes(cache.bytes).to_string());
        let mut table = Table::new().amounts(["limit"]).amounts(sizes).amounts(["best own cache"]);
        let cell = |point: &SizedPoint| match point.slowdown {
            _ if point.killed > 0 => Cell::from("killed"),
            slowdown => slowdown.map_or_else(String::new, |slowdown| ranged(slowdown, 1.0, 1)).into(),
        };
        for at in self.limits.iter().map(|limit| Some(*limit)).chain([None]) {
            let cells = self.caches.iter().map(|cache| cache.at(at).map_or_else(|| Cell::from(""), cell));
            let best = self.best_at(at).map_or_else(String::new, |cache| Bytes(cache.bytes).to_string());
            table.push([limit(at)].into_iter().chain(cells).chain(row![best]));
        }
        table
    }

    fn rests_on(&self) -> Vec<String> {
        let mut notes = rests_on(&self.sized);
        // The first is what it holds, which the table has for each.
        notes.splice(0..1, self.notes.iter().cloned());
        notes
    }

    /// The curves beside each other.
    fn figure(&self) -> Option<Figure> {
        let mebibytes = |bytes: u64| bytes as f64 / 1_048_576.0;
        let points = |cache: &OwnCache| -> Vec<(f64, f64)> {
            let of = |point: &SizedPoint| {
                Some((mebibytes(point.limit?), point.slowdown.filter(|_| point.killed == 0)?.mean))
            };
            cache.points.iter().filter_map(of).collect()
        };
        let all: Vec<(f64, f64)> = self.caches.iter().flat_map(points).collect();
        let most = |of: fn(&(f64, f64)) -> f64| all.iter().map(of).fold(0.0, f64::max);
        let (x, y) = (Axis::from_zero(most(|point| point.0), 4), Axis::from_zero(most(|point| point.1), 4));
        let column = |cache: &OwnCache| {
            let points = points(cache);
            let dots = points.iter().map(|&(x, y)| (x, y, format!("{x:.1} MiB: {y:.2} %"))).collect();
            let mut marks = vec![
                Drawn::Line { class: "line base".to_owned(), points: points.clone(), steps: false },
                Drawn::Dots { class: "dot base".to_owned(), points: dots },
            ];
            let enough = cache.enough.map(|enough| Drawn::Moment {
                x: mebibytes(enough),
                label: "keeps the target".to_owned(),
                row: 0,
            });
            marks.extend(enough);
            let heading = format!("own cache {}", Bytes(cache.bytes));
            let lines = vec![NamedLine { label: heading.clone(), class: "line base".to_owned(), points }];
            let (caption, x_label) = ("slower, %".to_owned(), "memory.max, MiB".to_owned());
            Column {
                heading,
                panels: vec![Panel {
                    caption,
                    height: 180.0,
                    x: x.clone(),
                    y: y.clone(),
                    x_label,
                    marks,
                    lines,
                }],
            }
        };
        let fastest = Bytes(self.fastest);
        (!all.is_empty()).then(|| Figure {
            name: "own-cache".to_owned(),
            finding: self.advised().0,
            n: format!("{} runs, {} own caches", self.sized.runs, self.caches.len()),
            axes: "x: memory.max in MiB, from 0; y: percent, from 0; the same in all".to_owned(),
            keys: vec![Key::line("line base", "limits that were run, joined by straight lines")],
            columns: self.caches.iter().map(column).collect(),
            read: format!(
                "Each curve is of one capture. Slowdowns are from the fastest of all without a limit: an own cache of {fastest}. \
                 Where a run was killed there is no point."
            ),
            commands: vec![("all captures and runs".to_owned(), self.sized.command.clone())],
        })
    }

    fn value(&self) -> Value {
        let cache = |cache: &OwnCache| {
            json!({
                "own_cache_bytes": cache.bytes,
                "command": cache.command,
                "held_bytes": cache.held,
                "own_memory_bytes": cache.own,
                "is_filled": cache.is_filled,
                "memory_high_bytes": cache.enough,
                "points": cache.points.iter().map(data::point).collect::<Vec<_>>(),
            })
        };
        let best = |limit: Option<u64>| json!({ "limit_bytes": limit, "best_own_cache_bytes": self.best_at(limit).map(|cache| cache.bytes) });
        let limits = self.limits.iter().map(|limit| Some(*limit)).chain([None]);
        json!({
            "command": self.command,
            "own_cache_bytes": self.sized.advice.as_ref().map(|_| self.of),
            "fastest_own_cache_bytes": self.fastest,
            "own_caches": self.caches.iter().map(cache).collect::<Vec<_>>(),
            "limits": limits.map(best).collect::<Vec<_>>(),
            "notes": self.notes,
            "size": data::value(&self.sized),
        })
    }

    fn records(&self) -> Records {
        let header = std::iter::once("own_cache_bytes".to_owned()).chain(data::header()).collect();
        let of_cache = |cache: &OwnCache| {
            let size = cache.bytes.to_string();
            let record = move |point| std::iter::once(size.clone()).chain(data::record(point)).collect();
            cache.points.iter().map(record).collect::<Records>()
        };
        std::iter::once(header).chain(self.caches.iter().flat_map(of_cache)).collect()
    }
}

impl OwnCache {
    fn at(&self, limit: Option<u64>) -> Option<&SizedPoint> {
        self.points.iter().find(|point| point.limit == limit)
    }
}

fn whole_mib(bytes: u64) -> String {
    format!("{:.0}", bytes as f64 / 1_048_576.0)
}

const SIZES: &str = "without a limit, by own cache";
const SPLITS: &str = "slower than the fastest without a limit, in percent, by limit and own cache";
const READ: [&str; 2] = [
    "a limit is split best with the own cache at the end of its row",
    "nothing was run where nothing stands: below a limit at which it was killed or took four times as long",
];

/// Which split is best: what to set, then each own cache, then each limit.
///
/// JSON has everything. CSV has one record for each own cache and limit.
pub fn own_cache(found: &OwnCaches) -> Document<'_> {
    let (heading, sentences) = found.advised();
    let beside = extra(&found.sized)
        .into_iter()
        .map(|(heading, table, said)| Section::new(heading).with(table).list(Mark::Sentence, [said]));
    let commands = vec![(String::new(), found.sized.command.clone())];
    Document::new(&found.command)
        .section(Section::first(found.title(), None))
        .section(Section::new(heading).list(Mark::Sentence, sentences))
        .section(Section::new(SIZES).with(found.sizes()))
        .section(Section::new(SPLITS).with(found.splits()).list(Mark::Sentence, READ.map(str::to_owned)))
        .sections(beside)
        .section(Section::new("to paste").with_all(settings(&found.sized)))
        .section(Section::new("what it rests on").list(Mark::Dash, found.rests_on()))
        .section(Section::untitled().with(Block::Commands { heading: "Make it again", commands }))
        .json(|| found.value())
        .csv(|| found.records())
}

/// The same as a page, with its figure.
pub fn own_cache_page(found: &OwnCaches) -> Document<'_> {
    let (heading, sentences) = found.advised();
    let beside = extra(&found.sized).into_iter().enumerate().map(|(number, (heading, table, text))| {
        Section::new(heading).at(format!("beside{number}")).with(table).list(Mark::Sentence, [text])
    });
    let commands = vec![("this page and its runs".to_owned(), found.sized.command.clone())];
    let pasted = settings(&found.sized);
    Document::new(&found.command)
        .section(Section::first(found.title(), None).with(Block::Verdict(format!("{heading}."))))
        .section(Section::untitled().with_all(found.figure()))
        .section(Section::new("Without a limit, by own cache").at("sizes").with(found.sizes()))
        .section(
            Section::new("Slower than the fastest without a limit, in percent")
                .at("limits")
                .with(found.splits())
                .list(Mark::Sentence, READ.map(str::to_owned)),
        )
        .section(
            Section::new("How the recommendation was found").at("advice").list(Mark::Sentence, sentences),
        )
        .section(Section::new("To paste").at("settings").with_all(pasted))
        .sections(beside)
        .section(
            Section::new("What it rests on, and how to make it again")
                .at("reading")
                .list(Mark::Sentence, found.rests_on())
                .with(Block::Commands { heading: "Make it again", commands }),
        )
        .json(|| json!({ "own_cache": found.value() }))
}
