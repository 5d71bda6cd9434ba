//! Samples of the kernel's counters, taken without disturbing what they count.
//!
//! Ground rules. Files are opened once and read with `pread` into a locked buffer; numbers go
//! straight into rows whose memory was touched before; nothing is written anywhere until the run
//! is over. So a sample neither allocates nor dirties page cache. The monitor's process is outside
//! of the cgroup under pressure. One thing a sample does change: reading `memory.stat` makes the
//! kernel flush its batched statistics, which reclaim decides by.
//!
//! Columns are fixed by the first look at a file. A column that vanishes (a cgroup is removed)
//! keeps its last value. Left out: raw text. Next: [`crate::parse`] for the formats,
//! [`crate::run`] for who samples when.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::cgroup::Tree;
use crate::memory::LockedBuffer;
use crate::parse::{self, Parser};
use crate::spec::{LaidOut, PhaseSample, Row};

/// The files that everybody can read first, then those of root.
const MACHINE_FILES: [(&str, Parser); 5] = [
    ("/proc/meminfo", parse::meminfo),
    ("/proc/zoneinfo", parse::zoneinfo),
    ("/proc/buddyinfo", parse::buddyinfo),
    ("/proc/pagetypeinfo", parse::pagetypeinfo),
    ("/proc/slabinfo", parse::slabinfo),
];

/// First size of the buffer that a file is read into.
const TEXT_LEN: usize = 64 << 10;
/// No file of the kernel is larger than this; what is gets cut at a line.
const TEXT_LEN_MAX: usize = 8 << 20;
/// Rows that are made ready ahead of time.
const ROWS_AHEAD: usize = 64;

/// Whose numbers a source has.
#[derive(Debug, PartialEq, Eq)]
enum Owner {
    Vmstat,
    Group(String),
    Other,
}

#[derive(Debug)]
struct Source {
    file: File,
    parser: Parser,
    prefix: String,
    owner: Owner,
    columns: Range<usize>,
}

#[derive(Debug)]
struct RowIndex {
    at_ns: u64,
    values: Range<usize>,
}

/// Everything that is sampled, and all samples so far.
#[derive(Debug)]
pub(crate) struct Monitor {
    sources: Vec<Source>,
    columns: Vec<String>,
    text: LockedBuffer,
    values: Vec<u64>,
    used: usize,
    rows: Vec<RowIndex>,
    phases: Vec<(String, usize)>,
    /// Tasks that lay out files now, and the samples before and after all that have.
    laying_out: usize,
    laid_out: Vec<(usize, Option<usize>)>,
    notes: Vec<String>,
}

/// All samples, by name.
#[derive(Debug)]
pub(crate) struct Samples {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Row>,
    pub(crate) phases: Vec<PhaseSample>,
    pub(crate) laid_out: Vec<LaidOut>,
    pub(crate) vmstat_before: BTreeMap<String, u64>,
    pub(crate) vmstat: BTreeMap<String, u64>,
    pub(crate) memcg: BTreeMap<String, BTreeMap<String, u64>>,
    pub(crate) notes: Vec<String>,
}

impl Monitor {
    /// A monitor of what the whole machine counts. Files that this user cannot read are named in
    /// the notes.
    pub(crate) fn of_machine() -> Self {
        let mut monitor = Self {
            sources: Vec::new(),
            columns: Vec::new(),
            text: LockedBuffer::new(TEXT_LEN),
            values: Vec::new(),
            used: 0,
            rows: Vec::new(),
            phases: Vec::new(),
            laying_out: 0,
            laid_out: Vec::new(),
            notes: Vec::new(),
        };
        monitor.add_noted(Path::new("/proc/vmstat"), parse::pairs, String::new(), Owner::Vmstat);
        // Its totals count over a run and its phases as those of vmstat do.
        let pressure = Path::new("/proc/pressure/memory");
        monitor.add_noted(pressure, parse::pressure, String::new(), Owner::Vmstat);
        for (path, parser) in MACHINE_FILES {
            monitor.add_noted(Path::new(path), parser, String::new(), Owner::Other);
        }
        if !monitor.text.is_locked() {
            monitor.note("the monitor's buffer could not be locked into memory".to_owned());
        }
        monitor
    }

    fn add_noted(&mut self, path: &Path, parser: Parser, prefix: String, owner: Owner) {
        if let Err(error) = self.add(path, parser, prefix, owner) {
            self.note(format!("{} is not sampled: {error}", path.display()));
        }
    }

    /// Samples `path` from now on, its columns behind all others.
    fn add(&mut self, path: &Path, parser: Parser, prefix: String, owner: Owner) -> io::Result<()> {
        let file = File::open(path)?;
        while read_text(&file, self.text.bytes())?.1 && self.text.bytes().len() < TEXT_LEN_MAX {
            self.text = LockedBuffer::new(2 * self.text.bytes().len());
        }
        let (text, _) = read_text(&file, self.text.bytes())?;
        let first = self.columns.len();
        let columns = &mut self.columns;
        parser(text, &mut |name, _| columns.push(format!("{prefix}{}", name.concat())));
        let columns = first..self.columns.len();
        self.sources.push(Source { file, parser, prefix, owner, columns });
        self.make_room();
        Ok(())
    }

    /// Samples the cgroup at `path` of `tree`; the empty path is the root, `cg_root_*`.
    pub(crate) fn add_group(&mut self, tree: &Tree, path: &str) {
        let Some((directory, files)) = tree.sampled(path) else { return };
        for file in files {
            let prefix = format!("{}{}", group_prefix(path), file.prefix);
            // Which of them there are depends on the kernel: what is absent is not a column.
            let _ = self.add(&directory.join(file.file), file.parser, prefix, Owner::Group(path.to_owned()));
        }
    }

    /// Samples the hits of a trace event.
    pub(crate) fn add_trace_event(&mut self, event: &str, hist: &Path, parser: Parser) {
        self.add_noted(hist, parser, format!("trace_{event}"), Owner::Other);
    }

    /// Keeps a remark for the reader of the results, once.
    pub(crate) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Takes a sample.
    pub(crate) fn sample(&mut self, at_ns: u64) {
        let row = self.used..self.used + self.columns.len();
        let (before, now) = self.values[..row.end].split_at_mut(row.start);
        if let Some(last) = self.rows.last() {
            now[..last.values.len()].copy_from_slice(&before[last.values.clone()]);
        }
        for source in &self.sources {
            let Ok((text, _)) = read_text(&source.file, self.text.bytes()) else { continue };
            let names = &self.columns[source.columns.clone()];
            let values = &mut now[source.columns.clone()];
            let mut expected = 0;
            (source.parser)(text, &mut |name, value| {
                let is_it = |column: &String| is_named(column, &source.prefix, name);
                let found = match names.get(expected) {
                    Some(column) if is_it(column) => Some(expected),
                    _ => names.iter().position(is_it),
                };
                if let Some(found) = found {
                    values[found] = value;
                    expected = found + 1;
                }
            });
        }
        self.used = row.end;
        self.rows.push(RowIndex { at_ns, values: row });
        self.make_room();
    }

    /// Takes a sample at the end of a phase.
    pub(crate) fn mark(&mut self, phase: String, at_ns: u64) {
        self.sample(at_ns);
        self.phases.push((phase, self.rows.len() - 1));
    }

    /// A task begins to lay out files, or has done so. One that dies meanwhile leaves the time without an end, and
    /// then it counts as any other.
    pub(crate) fn lays_out(&mut self, begins: bool, at_ns: u64) {
        let was = self.laying_out;
        self.laying_out = if begins { was + 1 } else { was.saturating_sub(1) };
        if (was == 0) == (self.laying_out == 0) {
            return;
        }
        self.sample(at_ns);
        let now = self.rows.len() - 1;
        match self.laid_out.last_mut() {
            Some((_, end)) if !begins => *end = Some(now),
            _ => self.laid_out.push((now, None)),
        }
    }

    /// Makes the next row's memory ready: written to, so that no page of it is missing.
    fn make_room(&mut self) {
        let needed = self.used + self.columns.len();
        if self.values.len() < needed {
            self.values.resize(needed + ROWS_AHEAD * self.columns.len(), 0);
        }
        if self.rows.len() == self.rows.capacity() {
            self.rows.reserve(ROWS_AHEAD);
        }
    }

    /// Ends sampling and gives everything its name.
    pub(crate) fn finish(self) -> Samples {
        let phases = self.phases.iter().map(|(name, row)| {
            let row = &self.rows[*row];
            PhaseSample {
                name: name.clone(),
                at_ns: row.at_ns,
                vmstat: self.vmstat_of(row),
                memcg: self.memcg_of(row),
            }
        });
        let rows = self.rows.iter().map(|row| {
            let mut values = self.values[row.values.clone()].to_vec();
            values.resize(self.columns.len(), 0);
            (row.at_ns, values)
        });
        let laid_out = self.laid_out.iter().filter_map(|&(begin, end)| {
            let ends = [&self.rows[begin], &self.rows[end?]];
            Some(LaidOut { ns: ends.map(|row| row.at_ns), vmstat: ends.map(|row| self.vmstat_of(row)) })
        });
        let (phases, rows, laid_out) = (phases.collect(), rows.collect(), laid_out.collect());
        let vmstat_before = self.rows.first().map(|row| self.vmstat_of(row)).unwrap_or_default();
        let vmstat = self.rows.last().map(|row| self.vmstat_of(row)).unwrap_or_default();
        let memcg = self.rows.last().map(|row| self.memcg_of(row)).unwrap_or_default();
        Samples {
            columns: self.columns,
            rows,
            phases,
            laid_out,
            vmstat_before,
            vmstat,
            memcg,
            notes: self.notes,
        }
    }

    fn named<'a>(&'a self, row: &'a RowIndex, source: &'a Source) -> impl Iterator<Item = (&'a str, u64)> {
        let values = &self.values[row.values.clone()];
        let names = source.columns.clone().map(|column| self.columns[column].as_str());
        names.zip(values.get(source.columns.clone()).unwrap_or_default().iter().copied())
    }

    fn vmstat_of(&self, row: &RowIndex) -> BTreeMap<String, u64> {
        let sources = self.sources.iter().filter(|source| source.owner == Owner::Vmstat);
        sources
            .flat_map(|source| self.named(row, source))
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    fn memcg_of(&self, row: &RowIndex) -> BTreeMap<String, BTreeMap<String, u64>> {
        let mut groups = BTreeMap::<String, BTreeMap<String, u64>>::new();
        for source in &self.sources {
            let Owner::Group(path) = &source.owner else { continue };
            let prefix = group_prefix(path);
            for (name, value) in self.named(row, source) {
                let stat = name.strip_prefix(&prefix).unwrap_or(name);
                groups.entry(path.clone()).or_default().insert(stat.to_owned(), value);
            }
        }
        groups
    }
}

/// What precedes a group's numbers in the names of columns.
fn group_prefix(path: &str) -> String {
    let name = if path.is_empty() { "root".to_owned() } else { path.replace('/', "_") };
    format!("cg_{name}_")
}

/// Whether `column` is `prefix` and all parts one after the other.
fn is_named(column: &str, prefix: &str, parts: &[&str]) -> bool {
    let whole = column.strip_prefix(prefix);
    let rest = parts.iter().fold(whole, |rest, part| rest?.strip_prefix(part));
    rest == Some("")
}

/// Reads a file from its start; says whether the buffer was too small, which loses the last lines.
fn read_text<'a>(file: &File, buffer: &'a mut [u8]) -> io::Result<(&'a str, bool)> {
    let mut len = 0;
    while len < buffer.len() {
        match file.read_at(&mut buffer[len..], len as u64)? {
            0 => break,
            count => len += count,
        }
    }
    let full = len == buffer.len();
    if full {
        len = buffer.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    }
    let text = std::str::from_utf8(&buffer[..len]);
    Ok((text.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?, full))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn watching(path: &Path, prefix: &str, owner: Owner) -> Monitor {
        let mut monitor = Monitor::of_machine();
        monitor.sources.clear();
        monitor.columns.clear();
        monitor.add(path, parse::pairs, prefix.to_owned(), owner).unwrap();
        monitor
    }

    #[test]
    fn numbers_are_told_as_they_were_first_at_each_phase_and_last() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "nr_free_pages 100\npgfault 7\n").unwrap();
        let mut monitor = watching(file.path(), "", Owner::Vmstat);
        monitor.sample(0);
        fs::write(file.path(), "nr_free_pages 90\npgfault 9\n").unwrap();
        monitor.mark("ready".to_owned(), 5);
        // A kernel that reorders its lines, drops one and adds another does not confuse columns.
        fs::write(file.path(), "new 1\npgfault 12\n").unwrap();
        monitor.sample(8);
        let samples = monitor.finish();
        assert_eq!(samples.columns, ["nr_free_pages", "pgfault"]);
        assert_eq!(samples.rows, [(0, vec![100, 7]), (5, vec![90, 9]), (8, vec![90, 12])]);
        let numbers = |map: &BTreeMap<String, u64>| map.values().copied().collect::<Vec<_>>();
        assert_eq!(numbers(&samples.vmstat_before), [100, 7]);
        assert_eq!(numbers(&samples.vmstat), [90, 12]);
        assert_eq!((samples.phases[0].name.as_str(), samples.phases[0].at_ns), ("ready", 5));
        assert_eq!(numbers(&samples.phases[0].vmstat), [90, 9]);
    }

    #[test]
    fn the_time_in_which_tasks_lay_out_files_is_told_from_the_first_to_the_last() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut monitor = watching(file.path(), "", Owner::Vmstat);
        fs::write(file.path(), "nr_dirtied 7\n").unwrap();
        monitor.add(file.path(), parse::pairs, String::new(), Owner::Vmstat).unwrap();
        for (at_ns, begins) in
            [(1, true), (2, true), (3, false), (4, false), (6, true), (8, false), (9, true)]
        {
            fs::write(file.path(), format!("nr_dirtied {}\n", 10 * at_ns)).unwrap();
            monitor.lays_out(begins, at_ns);
        }
        let told = |one: &LaidOut| (one.ns, one.vmstat.each_ref().map(|counters| counters["nr_dirtied"]));
        let times = monitor.finish().laid_out.iter().map(told).collect::<Vec<_>>();
        assert_eq!(times, [([1, 4], [10, 40]), ([6, 8], [60, 80])], "the last never ended");
    }

    #[test]
    fn a_group_that_comes_later_has_nothing_before() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "file 4096\n").unwrap();
        let mut monitor = watching(file.path(), "", Owner::Vmstat);
        monitor.sample(0);
        monitor.add(file.path(), parse::pairs, group_prefix("P/A"), Owner::Group("P/A".to_owned())).unwrap();
        monitor.mark("end".to_owned(), 1);
        let samples = monitor.finish();
        assert_eq!(samples.columns, ["file", "cg_P_A_file"]);
        assert_eq!(samples.rows, [(0, vec![4096, 0]), (1, vec![4096, 4096])]);
        assert_eq!(samples.memcg["P/A"], BTreeMap::from([("file".to_owned(), 4096)]));
        assert_eq!(samples.phases[0].memcg, samples.memcg);
    }

    #[test]
    fn a_text_larger_than_the_buffer_ends_at_a_whole_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "pgfault 123\npgfree 456\n").unwrap();
        let text = read_text(file.as_file(), &mut [0; 20]).map(|(text, full)| (text.to_owned(), full));
        assert_eq!(text.unwrap(), ("pgfault 123\n".to_owned(), true));
    }

    #[test]
    fn a_sample_of_this_machine_does_not_move_memory() {
        let mut monitor = Monitor::of_machine();
        let text = monitor.text.bytes().as_ptr();
        monitor.sample(0);
        let (values, len) = (monitor.values.as_ptr(), monitor.values.len());
        for at in 1..10 {
            monitor.sample(at);
        }
        assert_eq!((monitor.values.as_ptr(), monitor.values.len()), (values, len));
        assert_eq!(monitor.text.bytes().as_ptr(), text);
        assert!(monitor.columns.iter().any(|column| column == "nr_free_pages"));
    }
}
