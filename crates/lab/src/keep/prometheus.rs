//! What Prometheus has of containers' memory, by cAdvisor's names: text of the exposition format with times, one scrape
//! after the other, and answers of `query_range` (JSON), one or several.
//!
//! [`read`] gives one [`Watched`] for each set of labels. Times are seconds: those of the exposition format are
//! milliseconds, those of OpenMetrics seconds, told by their size. Left out: names of others than cAdvisor, samples
//! without a time, results of functions, which have lost their names.

use std::collections::BTreeMap;

use serde_json::{Deserializer, Value};

use crate::error::LabError;

/// A quantity of a container's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Quantity {
    /// All that is charged, bytes.
    Usage,
    /// That without inactive file pages, bytes.
    WorkingSet,
    /// Anonymous memory, bytes.
    Anonymous,
    /// Inactive file pages, bytes.
    InactiveFile,
    /// What is swapped out, bytes.
    Swap,
    /// `memory.max`, bytes; 0 is none.
    Limit,
    /// Seconds in which some task waited for memory, counted up.
    Waiting,
    /// Tasks that were killed for want of memory, counted up.
    Kills,
}

impl Quantity {
    const fn is_memory(self) -> bool {
        !matches!(self, Self::Limit | Self::Waiting | Self::Kills)
    }
}

/// cAdvisor's names, as its page on Prometheus lists them; on cgroup v2 `rss` is `anon` of `memory.stat`.
const NAMES: [(&str, Quantity); 8] = [
    ("container_memory_usage_bytes", Quantity::Usage),
    ("container_memory_working_set_bytes", Quantity::WorkingSet),
    ("container_memory_rss", Quantity::Anonymous),
    ("container_memory_total_inactive_file_bytes", Quantity::InactiveFile),
    ("container_memory_swap", Quantity::Swap),
    ("container_spec_memory_limit_bytes", Quantity::Limit),
    ("container_pressure_memory_waiting_seconds_total", Quantity::Waiting),
    ("container_oom_events_total", Quantity::Kills),
];
/// Times beyond this are no seconds: it is the year 5138.
const SECONDS_MAX: f64 = 1e11;
/// No memory is larger than an EiB. A limit may be: it stands for none.
const BYTES_MAX: f64 = (1_u64 << 60) as f64;
/// Samples of all series together: more is no file of a few containers.
const SAMPLES_MAX: usize = 50_000_000;

/// Labels of a container, by name.
pub(crate) type Labels = BTreeMap<String, String>;

/// A container, by its labels, and what was seen of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Watched {
    pub(crate) labels: Labels,
    /// Seconds and values, by time.
    pub(crate) series: BTreeMap<Quantity, Vec<(f64, f64)>>,
}

/// Whether bytes begin as such a file does, whatever comes behind.
pub(crate) fn is_one(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let text = text.trim_start();
    let is_answer =
        text.starts_with('{') && ["\"resultType\"", "\"errorType\""].iter().any(|key| text.contains(key));
    let is_line = |line: &str| {
        let line = line.trim_start();
        let name = line.strip_prefix("# HELP ").or_else(|| line.strip_prefix("# TYPE ")).unwrap_or(line);
        name.starts_with("container_") && (name.contains('{') || line.starts_with('#'))
    };
    is_answer || text.lines().any(is_line)
}

/// All containers in it that have a memory usage or a working set.
///
/// # Errors
/// What is wrong, with its place; none of cAdvisor's names is in it.
pub(crate) fn read(name: &str, bytes: &[u8]) -> Result<Vec<Watched>, LabError> {
    let wrong = |(place, problem): (String, String)| {
        LabError::refused(
            format!("`{name}`, {place}: {problem}"),
            "write what Prometheus says as JSON of its HTTP API (`/api/v1/query_range?query=...`, without functions), or \
             cAdvisor's own text, whose lines have times",
        )
    };
    let text = String::from_utf8_lossy(bytes);
    let mut all = All::default();
    match text.trim_start().starts_with('{') {
        true => all.answers(&text),
        false => all.lines(&text),
    }
    .map_err(wrong)?;
    let watched: Vec<Watched> = all.finish();
    if watched.is_empty() {
        let names = [NAMES[0].0, NAMES[1].0, NAMES[2].0].join("`, `");
        return Err(LabError::refused(
            format!("`{name}` has no memory of a container"),
            format!("cAdvisor's names are `{names}` and others; docs/size.md lists them"),
        ));
    }
    Ok(watched)
}

/// A problem and its place.
type Wrong = (String, String);

#[derive(Default)]
struct All {
    by_labels: BTreeMap<Labels, Watched>,
    samples: usize,
}

impl All {
    fn add(&mut self, labels: &Labels, quantity: Quantity, at: f64, value: f64) -> Result<(), String> {
        if !at.is_finite() || at < 0.0 {
            return Err(format!("`{at}` is no time"));
        }
        // What Prometheus writes where there is nothing; and no memory is negative.
        if !value.is_finite() || value < 0.0 {
            return Ok(());
        }
        if quantity.is_memory() && value > BYTES_MAX {
            return Err(format!("`{value:e}` is no amount of memory"));
        }
        self.samples += 1;
        if self.samples > SAMPLES_MAX {
            return Err(format!("there are more than {SAMPLES_MAX} samples"));
        }
        let at = if at > SECONDS_MAX { at / 1000.0 } else { at };
        if !self.by_labels.contains_key(labels) {
            self.by_labels.insert(labels.clone(), Watched { labels: labels.clone(), ..Watched::default() });
        }
        let watched = self.by_labels.get_mut(labels).expect("it was just put there");
        watched.series.entry(quantity).or_default().push((at, value));
        Ok(())
    }

    fn lines(&mut self, text: &str) -> Result<(), Wrong> {
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            let end = line.find(|c: char| c == '{' || c.is_ascii_whitespace()).unwrap_or(line.len());
            let Some(quantity) = quantity(&line[..end]) else { continue };
            let at = |problem| (format!("line {}", number + 1), problem);
            let (labels, rest) = labels(&line[end..]).map_err(at)?;
            let mut words = rest.split_ascii_whitespace();
            let value = words.next().and_then(number_of).ok_or_else(|| at("there is no value".to_owned()))?;
            let time = match words.next() {
                Some(word) => number_of(word).ok_or_else(|| at(format!("`{word}` is no time")))?,
                None => {
                    return Err(at("there is no time, so what comes before what is not known".to_owned()));
                }
            };
            self.add(&labels, quantity, time, value).map_err(at)?;
        }
        Ok(())
    }

    fn answers(&mut self, text: &str) -> Result<(), Wrong> {
        for (number, answer) in Deserializer::from_str(text).into_iter::<Value>().enumerate() {
            let at = |problem: String| (format!("answer {}", number + 1), problem);
            let answer = answer.map_err(|error| at(error.to_string()))?;
            if answer["status"] == "error" {
                return Err(at(format!(
                    "Prometheus says: {}",
                    answer["error"].as_str().unwrap_or("an error")
                )));
            }
            let kind = answer["data"]["resultType"].as_str().unwrap_or("nothing");
            if kind != "matrix" {
                return Err(at(format!(
                    "its result is a {kind}, not a matrix: a series has more than one time"
                )));
            }
            let series = answer["data"]["result"].as_array().map(Vec::as_slice).unwrap_or_default();
            for (place, one) in series.iter().enumerate() {
                let at = |problem: String| at(format!("series {}: {problem}", place + 1));
                self.series(one).map_err(at)?;
            }
        }
        Ok(())
    }

    fn series(&mut self, one: &Value) -> Result<(), String> {
        let metric = one["metric"].as_object().ok_or("it has no labels")?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let name = metric
            .get("__name__")
            .map(text)
            .ok_or("it has no name: functions such as rate() take it away")?;
        let Some(quantity) = quantity(&name) else { return Ok(()) };
        let labels = metric.iter().filter(|(name, _)| *name != "__name__");
        let labels = labels.map(|(name, value)| (name.clone(), text(value))).collect();
        for sample in one["values"].as_array().map(Vec::as_slice).unwrap_or_default() {
            let (time, value) = (sample[0].as_f64(), sample[1].as_str().and_then(number_of));
            let (time, value) =
                time.zip(value).ok_or_else(|| format!("`{sample}` is no time with a value"))?;
            self.add(&labels, quantity, time, value)?;
        }
        Ok(())
    }

    /// By time; of two samples of one time the first.
    fn finish(self) -> Vec<Watched> {
        let has_memory = |watched: &Watched| {
            [Quantity::Usage, Quantity::WorkingSet].iter().any(|of| watched.series.contains_key(of))
        };
        let mut all: Vec<Watched> = self.by_labels.into_values().filter(has_memory).collect();
        for series in all.iter_mut().flat_map(|watched| watched.series.values_mut()) {
            series.sort_by(|a, b| a.0.total_cmp(&b.0));
            series.dedup_by(|a, b| a.0 == b.0);
        }
        all
    }
}

fn quantity(name: &str) -> Option<Quantity> {
    NAMES.into_iter().find(|(known, _)| *known == name).map(|(_, quantity)| quantity)
}

/// As both formats write them: also `NaN`, `+Inf`.
fn number_of(text: &str) -> Option<f64> {
    text.parse().ok()
}

/// `{a="b",c="d"}`, if it is there, and what comes behind.
fn labels(text: &str) -> Result<(Labels, &str), String> {
    let mut labels = Labels::new();
    let Some(mut rest) = text.strip_prefix('{') else { return Ok((labels, text)) };
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(behind) = rest.strip_prefix('}') {
            return Ok((labels, behind));
        }
        let (name, behind) = rest.split_once("=\"").ok_or("a label is not of the form `name=\"value\"`")?;
        let (value, behind) = quoted(behind).ok_or("a label's value has no end")?;
        labels.insert(name.trim().to_owned(), value);
        rest = behind;
    }
}

/// Up to the quote that ends it, without the backslashes before `"`, `\` and `n`.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((place, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[place + 1..])),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}
