//! What a series of a container's memory says of its size: bounds, a guess between them, and what rules of others
//! make of the same series.
//!
//! Left out: how it was found (`pagetide-lab`, `size/watched.rs`); a curve, which no series has.

use serde_json::{Value, json};

use super::data::pastes;
use super::figures::mib;
use super::found::{Advice, Patch};
use super::settings::pasted;
use crate::document::{Block, Document, Mark, Records, Section, Table, row};
use crate::views::trace_info::counted;

/// What a rule that people use takes from a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedRule {
    /// The rule.
    pub rule: String,
    /// The limit that it gives, in bytes.
    pub limit: u64,
}

/// What was seen of a container, or of replicas of one, and what it says. Bytes are peaks.
#[derive(Debug, Clone, PartialEq)]
pub struct Watched {
    /// The file.
    pub series: String,
    /// The container.
    pub of: String,
    /// How many there are of it.
    pub replicas: usize,
    /// Samples of all.
    pub samples: usize,
    /// From the first sample to the last.
    pub seconds: f64,
    /// All that was charged; none where the series has it not.
    pub usage: Option<u64>,
    /// What of it was anonymous; none where the series has it not.
    pub anonymous: Option<u64>,
    /// What of it was no inactive file page; none where the series has it not.
    pub working: Option<u64>,
    /// What was swapped out; none where nothing was, or nobody says.
    pub swapped: Option<u64>,
    /// Its limit; none where it had none, or nobody says.
    pub limit: Option<u64>,
    /// The part of the time that some task waited for memory; none where the series has it not.
    pub waited: Option<f64>,
    /// Tasks that were killed for want of memory.
    pub kills: u64,
    /// No less will do; none where nothing says so.
    pub least: Option<u64>,
    /// The limit that was too small, if one was.
    pub too_small: Option<u64>,
    /// So much is enough; none where it is not known.
    pub enough: Option<u64>,
    /// What to set; none where it is not known what is enough.
    pub advice: Option<Advice>,
    /// What rules of others give.
    pub rules: Vec<WatchedRule>,
    /// Patches that are wanted of the advice.
    pub patches: Vec<Patch>,
    /// The command that says this again.
    pub command: String,
}

impl Watched {
    fn title(&self) -> String {
        let replicas =
            if self.replicas > 1 { format!(", {} replicas", self.replicas) } else { String::new() };
        let length = match self.seconds {
            seconds if seconds >= 172_800.0 => format!("{:.1} days", seconds / 86_400.0),
            seconds if seconds >= 7_200.0 => format!("{:.1} hours", seconds / 3_600.0),
            seconds => format!("{seconds:.0} s"),
        };
        let samples = counted(self.samples as u64, "sample", "s");
        format!("{} ({}{replicas}): {samples} over {length}", self.series, self.of)
    }

    fn advised(&self) -> (String, Vec<String>) {
        let mut sentences = Vec::new();
        let heading = match &self.advice {
            None => "no recommendation".to_owned(),
            Some(Advice { high, max, low, .. }) => {
                format!("memory.high {}, memory.max {}, memory.low {}", mib(*high), mib(*max), mib(*low))
            }
        };
        sentences.push(match (self.least, self.enough) {
            (Some(least), Some(enough)) => {
                format!("what is enough lies between {} and {}", mib(least), mib(enough))
            }
            (Some(least), None) => format!("what is enough lies above {}; how far is not known", mib(least)),
            (None, Some(enough)) => format!("{} is enough; the least is not known", mib(enough)),
            (None, None) => "what is enough is not known".to_owned(),
        });
        if let Some(anonymous) = self.anonymous {
            sentences.push(format!("{} was anonymous: without swap a lesser limit kills", mib(anonymous)));
        }
        sentences.push(self.why_enough());
        if let Some(advice) = &self.advice {
            sentences.extend(self.founded(advice));
        }
        sentences.push(
            "nearer no series tells: `pagetide capture --attach PID`, and `pagetide size` of that, give the curve".to_owned(),
        );
        (heading, sentences)
    }

    /// Why so much is enough, or why that is not known.
    fn why_enough(&self) -> String {
        match (self.too_small, self.enough, self.usage) {
            (Some(limit), ..) => format!("its limit of {} was too small: {}", mib(limit), self.short()),
            (None, Some(enough), _) => format!("with {} nothing was missing: it used no more", mib(enough)),
            (None, None, None) => {
                "its usage is not in it (`container_memory_usage_bytes`), and a working set leaves inactive files out"
                    .to_owned()
            }
            (None, None, Some(usage)) => match (self.beyond(usage), self.limit) {
                (Some((part, bytes)), _) => format!(
                    "the series contradict each other: usage is {} at most, and its {part} {}",
                    mib(usage),
                    mib(bytes)
                ),
                (None, Some(limit)) => format!(
                    "it was at its limit of {}, and nothing says whether it waited for memory there \
                     (`container_pressure_memory_waiting_seconds_total`)",
                    mib(limit)
                ),
                (None, None) => "tasks were killed or waited for memory, and its limit is not in it \
                                 (`container_spec_memory_limit_bytes`)"
                    .to_owned(),
            },
        }
    }

    /// What was missing at a limit that was too small.
    fn short(&self) -> String {
        let killed = match self.kills {
            0 => None,
            1 => Some("1 task was killed there".to_owned()),
            kills => Some(format!("{kills} tasks were killed there")),
        };
        let waited = self.waited.filter(|part| *part > 0.0);
        let waited = waited.map(|part| format!("{:.1} % of the time some waited for memory", 100.0 * part));
        killed.into_iter().chain(waited).collect::<Vec<_>>().join(", and ")
    }

    /// A part of usage that is larger than all of it.
    fn beyond(&self, usage: u64) -> Option<(&'static str, u64)> {
        let parts = [("anonymous memory", self.anonymous), ("working set", self.working)];
        parts.into_iter().find_map(|(part, bytes)| Some((part, bytes.filter(|bytes| *bytes > usage)?)))
    }

    /// Where the settings come from.
    fn founded(&self, advice: &Advice) -> [String; 2] {
        let high = match self.working {
            Some(_) => {
                "memory.high is the peak of its working set: what the kernel called active, not what reads would \
                        cost without it"
            }
            None => {
                "memory.high is what is enough: its working set is not in it \
                     (`container_memory_working_set_bytes`)"
            }
        };
        let low = match self.anonymous {
            Some(_) => ", memory.low what was anonymous",
            None => "; memory.low is memory.high, as what was anonymous is not in it",
        };
        let max = format!("memory.max is {} % above what is enough (--headroom)", advice.headroom);
        [high.to_owned(), format!("{max}{low}")]
    }

    fn seen(&self) -> Vec<(&'static str, Option<u64>)> {
        vec![
            ("usage", self.usage),
            ("working set (cAdvisor)", self.working),
            ("anonymous memory", self.anonymous),
            ("swapped out", self.swapped),
            ("limit", self.limit),
        ]
    }

    fn peaks(&self) -> Table {
        let mut table = Table::new().texts(["peak of"]).amounts(["amount"]);
        for (name, bytes) in self.seen() {
            table.push(row![name, bytes.map(mib)]);
        }
        table
    }

    /// What a limit means by these bounds.
    fn verdict(&self, limit: u64) -> String {
        match (self.least, self.enough) {
            (Some(least), _) if limit < least => "too small".to_owned(),
            (_, Some(enough)) if limit >= enough => {
                format!("enough, {} more than it used", mib(limit - enough))
            }
            _ => "not known".to_owned(),
        }
    }

    fn rules(&self) -> Option<Table> {
        let mut table = Table::new().texts(["rule"]).amounts(["limit"]).texts([""]);
        for rule in &self.rules {
            table.push(row![&rule.rule, mib(rule.limit), self.verdict(rule.limit)]);
        }
        (!table.is_empty()).then_some(table)
    }

    fn rests_on(&self) -> Vec<String> {
        let mut notes = vec![
            "Peaks of samples: what rose and fell between two of them was not seen.".to_owned(),
            "Nothing was run: it holds for the load of that time.".to_owned(),
        ];
        if self.swapped.is_some() {
            notes.push("Some of it was swapped out: that comes on top of what is anonymous.".to_owned());
        }
        if self.limit.is_none() && self.enough.is_some() {
            notes.push("It has no limit there (`container_spec_memory_limit_bytes`): usage is taken for all that it wants.".to_owned());
        }
        if self.anonymous.is_none() {
            notes.push(
                "What was anonymous is not in it (`container_memory_rss`), so nothing says what would kill."
                    .to_owned(),
            );
        }
        notes
    }

    fn value(&self) -> Value {
        let advice = self.advice.as_ref().map(|advice| {
            let lines = pastes(&pasted(Some(advice), &self.patches));
            json!({
                "memory_max_bytes": advice.max,
                "memory_high_bytes": advice.high,
                "memory_low_bytes": advice.low,
                "headroom_percent": advice.headroom,
                "settings": lines,
            })
        });
        let rule = |rule: &WatchedRule| json!({ "rule": rule.rule, "limit_bytes": rule.limit, "verdict": self.verdict(rule.limit) });
        json!({
            "series": self.series,
            "container": self.of,
            "replicas": self.replicas,
            "samples": self.samples,
            "seconds": self.seconds,
            "usage_bytes": self.usage,
            "working_set_bytes": self.working,
            "anonymous_bytes": self.anonymous,
            "swapped_bytes": self.swapped,
            "limit_bytes": self.limit,
            "waited_ratio": self.waited,
            "killed": self.kills,
            "least_bytes": self.least,
            "enough_bytes": self.enough,
            "advice": advice,
            "rules": self.rules.iter().map(rule).collect::<Vec<_>>(),
            "command": self.command,
        })
    }

    fn records(&self) -> Records {
        let bounds = [("least", self.least), ("enough", self.enough)];
        let advice = self.advice.as_ref();
        let set = [
            ("memory.high", advice.map(|of| of.high)),
            ("memory.max", advice.map(|of| of.max)),
            ("memory.low", advice.map(|of| of.low)),
        ];
        let rows = self.seen().into_iter().chain(bounds).chain(set);
        let row = |(name, bytes): (&str, Option<u64>)| {
            vec![name.to_owned(), bytes.map_or_else(String::new, |bytes| bytes.to_string())]
        };
        std::iter::once(vec!["quantity".to_owned(), "bytes".to_owned()]).chain(rows.map(row)).collect()
    }
}

/// What a series says: what to set and between which bounds, what was seen, and the rules of others.
///
/// JSON has everything. CSV has one record for each amount.
pub fn watched(of: &Watched) -> Document<'_> {
    let (heading, sentences) = of.advised();
    let commands = vec![(String::new(), of.command.clone())];
    Document::new(&of.series)
        .section(Section::first(of.title(), None))
        .section(Section::new(heading).list(Mark::Sentence, sentences))
        .section(Section::new("what was seen").at("seen").with(of.peaks()))
        .section(Section::new("what others set by the same series").at("rules").with_all(of.rules()))
        .section(Section::new("to paste").at("settings").with_all(pasted(of.advice.as_ref(), &of.patches)))
        .section(Section::new("what it rests on").at("reading").list(Mark::Dash, of.rests_on()))
        .section(Section::untitled().with(Block::Commands { heading: "Make it again", commands }))
        .json(|| of.value())
        .csv(|| of.records())
}
