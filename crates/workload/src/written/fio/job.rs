//! One job of a job file: what it says, and the files, tasks and metrics that it becomes.
//!
//! Next: [`super`], which splits the file into jobs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use units::{Nanos, parse_size};

use crate::language::table::{Mistake, Position};
use language::names::UnknownName;

/// Engines whose calls wait for what they ask.
const PLAIN: [&str; 5] = ["sync", "psync", "vsync", "pvsync", "pvsync2"];
/// Engines that have requests in flight; with page cache and a depth of 1 they are as plain ones.
const QUEUED: [&str; 3] = ["libaio", "io_uring", "posixaio"];
/// Clones of one job, and files of one, at most.
const CLONES_MAX: u64 = 1024;

/// A section of the file.
#[derive(Clone)]
pub(super) struct Job {
    pub(super) name: String,
    pub(super) line: u32,
    /// Value and line of each option.
    pub(super) options: BTreeMap<String, (String, u32)>,
}

/// Parts of a workload file.
#[derive(Default)]
pub(super) struct Out {
    pub(super) files: String,
    pub(super) tasks: String,
    pub(super) metrics: String,
}

/// A mistake in a line.
pub(super) fn at(line: u32, message: impl Into<String>, hint: Option<String>) -> Mistake {
    Mistake { position: Some(Position { line, column: 1 }), message: message.into(), hint }
}

/// A number or size. With `i` in its suffix it is in powers of 1000 to fio, and no size of ours.
fn amount(value: &str) -> Option<u64> {
    parse_size(value).ok().filter(|_| !value.contains(['i', 'I'])).map(|size| size.get())
}

/// These steps, so many times.
fn looped(loops: u64, steps: Vec<String>) -> Vec<String> {
    if loops < 2 { steps } else { vec![format!("{{ repeat = {loops}, steps = [{}] }}", steps.join(", "))] }
}

/// A name as workload files have them.
pub(super) fn word(name: &str) -> String {
    let fine = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '-' };
    let word: String = name.chars().map(fine).take(40).collect();
    if word.is_empty() { "job".to_owned() } else { word }
}

/// The files of a clone, each of this size.
struct Files<'a> {
    set: &'a str,
    count: u64,
    size: u64,
}

/// How a job goes over its files.
#[derive(Clone, Copy)]
struct Way {
    reads: bool,
    writes: bool,
    random: bool,
}

impl Job {
    fn get(&self, option: &str) -> Option<(&str, u32)> {
        self.options.get(option).map(|(value, line)| (value.as_str(), *line))
    }

    pub(super) fn flag(&self, option: &str) -> Result<bool, Mistake> {
        match self.get(option) {
            None | Some(("0", _)) => Ok(false),
            Some(("1" | "", _)) => Ok(true),
            Some((other, line)) => Err(at(line, format!("`{option}` is 0 or 1, not `{other}`"), None)),
        }
    }

    fn count(&self, option: &str, otherwise: u64) -> Result<u64, Mistake> {
        let Some((value, line)) = self.get(option) else { return Ok(otherwise) };
        amount(value).ok_or_else(|| at(line, format!("`{option}`: `{value}` is no number"), None))
    }

    fn size(&self, option: &str) -> Result<Option<u64>, Mistake> {
        let Some((value, line)) = self.get(option) else { return Ok(None) };
        let hint = if value.contains(['i', 'I']) {
            "to fio `Ki` and `KiB` are 1000 bytes, and 1024 are `k`: write `64k` or `4g`, or bytes"
        } else {
            "a size without range, list or share, such as `64k` or `4g`"
        };
        let read = amount(value).map(Some);
        read.ok_or_else(|| at(line, format!("`{option}` cannot be `{value}`"), Some(hint.to_owned())))
    }

    /// A time; a bare number is in `unit`.
    fn time(&self, option: &str, unit: Nanos) -> Result<Option<Nanos>, Mistake> {
        let Some((value, line)) = self.get(option) else { return Ok(None) };
        let end = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
        let (digits, suffix) = value.split_at(end);
        let factor = match suffix.trim() {
            "" => unit.get(),
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => 0,
        };
        let time =
            digits.parse::<u64>().ok().and_then(|digits| digits.checked_mul(factor)).filter(|_| factor > 0);
        time.map(|time| Some(Nanos(time)))
            .ok_or_else(|| at(line, format!("`{option}`: `{value}` is no time"), None))
    }

    /// Refuses what cannot be had.
    fn check(&self) -> Result<(), Mistake> {
        let refuse = |option: &str, why: &str| {
            let line = self.get(option).map_or(self.line, |(_, line)| line);
            Err(at(line, format!("option `{option}`: {why}"), Some("leave it out".to_owned())))
        };
        if self.flag("direct")? || self.get("buffered").is_some_and(|(value, _)| value == "0") {
            return refuse("direct", "direct I/O goes past the page cache, which is all that this is about");
        }
        let engine = self.engine();
        if !PLAIN.contains(&engine) && !QUEUED.contains(&engine) && engine != "mmap" {
            return refuse(
                "ioengine",
                &format!("`{engine}` is none of {}, {}, mmap", PLAIN.join(", "), QUEUED.join(", ")),
            );
        }
        if self.count("iodepth", 1)? > 1 && QUEUED.contains(&engine) {
            return refuse("iodepth", "several requests in flight are not modelled");
        }
        if let Some((kind, _)) = self.get("random_distribution")
            && kind != "random"
            && !kind.starts_with("zipf:")
        {
            return refuse(
                "random_distribution",
                &format!("`{kind}` is neither `random` nor `zipf:EXPONENT`"),
            );
        }
        Ok(())
    }

    fn engine(&self) -> &str {
        self.get("ioengine").map_or("psync", |(engine, _)| engine)
    }

    /// Whether it reads, writes, and in random order.
    fn direction(&self) -> Result<Way, Mistake> {
        const KINDS: [&str; 6] = ["read", "write", "randread", "randwrite", "rw", "randrw"];
        let (rw, line) = self.get("rw").or_else(|| self.get("readwrite")).unwrap_or(("read", self.line));
        let rw = if rw == "readwrite" { "rw" } else { rw };
        if !KINDS.contains(&rw) {
            let unknown = UnknownName::new("kind", rw, KINDS);
            return Err(at(line, format!("`rw` cannot be `{rw}`"), Some(unknown.hint())));
        }
        let mixed = rw.ends_with("rw");
        let random = rw.starts_with("rand");
        Ok(Way { reads: mixed || rw.ends_with("read"), writes: mixed || rw.ends_with("write"), random })
    }

    pub(super) fn translate(&self, phase: usize, out: &mut Out) -> Result<(), Mistake> {
        self.check()?;
        let name = word(&self.name);
        let clones = self.count("numjobs", 1)?;
        let names = self.get("filename").map(|(names, _)| names.split(':').map(word).collect::<Vec<_>>());
        let files = match &names {
            Some(names) => names.len() as u64,
            None => self.count("nrfiles", 1)?,
        };
        if !(1..=CLONES_MAX).contains(&clones) || files == 0 {
            return Err(at(
                self.line,
                format!("job `{}` has {clones} clones of {files} files", self.name),
                Some(format!("1 to {CLONES_MAX} clones, and a file at least")),
            ));
        }
        let one = match (self.size("filesize")?, self.size("size")?) {
            (Some(one), _) => one,
            (None, Some(all)) => all / files,
            (None, None) => {
                return Err(at(
                    self.line,
                    format!("job `{}` has no `size`", self.name),
                    Some("add `size=1g`".to_owned()),
                ));
            }
        };
        let way = self.direction()?;
        let state = match (way.reads, way.random) {
            (false, false) if self.flag("create_on_open")? => "absent",
            (false, false) if !self.flag("overwrite")? => "empty",
            _ => "laid-out",
        };
        for clone in 0..clones {
            let task = if clones == 1 { name.clone() } else { format!("{name}-{clone}") };
            let set = if names.is_some() { format!("{name}-shared") } else { format!("{task}-files") };
            if clone == 0 || names.is_none() {
                let count = if files == 1 { String::new() } else { format!(", count = {files}") };
                writeln!(out.files, "{set} = {{ size = {one}{count}, state = \"{state}\" }}")
                    .expect("text can be written to");
            }
            let own = Files { set: &set, count: files, size: one };
            let steps = self.steps(&own, way, &name)?;
            writeln!(out.tasks, "[tasks.{task}]\nsteps = [").expect("text can be written to");
            let wait = (phase > 1).then(|| format!("{{ wait = \"stage{}\" }}", phase - 1));
            for step in wait.into_iter().chain(steps).chain([format!("{{ end = \"stage{phase}\" }}")]) {
                writeln!(out.tasks, "  {step},").expect("text can be written to");
            }
            out.tasks.push_str("]\n\n");
        }
        writeln!(out.metrics, "{name}_mib_per_second = {{ rate = \"{name}\", help = \"all clones of {name}\" }}\n\
             {name}_p99_us = {{ latency = \"{name}\", percentile = 99, help = \"slowest hundredth of its calls\" }}")
            .expect("text can be written to");
        Ok(())
    }

    /// What each clone does.
    fn steps(&self, files: &Files<'_>, way: Way, label: &str) -> Result<Vec<String>, Mistake> {
        let set = files.set;
        let mut steps = Vec::new();
        if let Some(delay) = self.time("startdelay", Nanos::from_secs(1))? {
            steps.push(format!("{{ sleep = \"{}ns\" }}", delay.get()));
        }
        if self.flag("pre_read")? {
            steps.push(format!("{{ read = \"{set}\" }}"));
        }
        let mut each = self.opening(files, way)?;
        let keys = self.keys(files, way, label)?;
        let Way { reads, writes, .. } = way;
        if self.engine() == "mmap" {
            if files.count > 1 || (reads && writes) {
                let hint = Some("add `nrfiles=1`, or take `rw=read` or `rw=write`".to_owned());
                return Err(at(
                    self.line,
                    "`ioengine=mmap` is for jobs of one file that read or write",
                    hint,
                ));
            }
            each.push(format!("{{ map = \"mapping\", file = \"{set}\", shared = true, write = {writes} }}"));
            each.push(format!("{{ touch = \"mapping\"{keys}, write = {writes} }}"));
        } else {
            let verb = if reads { "read" } else { "write" };
            each.push(format!("{{ {verb} = \"{set}\"{keys}{} }}", self.keys_of_calls(files, way)?));
        }
        steps.extend(looped(self.count("loops", 1)?, each));
        if writes && (self.flag("end_fsync")? || self.flag("fsync_on_close")?) {
            steps.push(format!("{{ fsync = \"{set}\" }}"));
        }
        Ok(steps)
    }

    /// What fio does each time that it opens the files.
    fn opening(&self, files: &Files<'_>, way: Way) -> Result<Vec<String>, Mistake> {
        let mut steps = Vec::new();
        let is_there = way.reads || way.random || self.flag("overwrite")?;
        if !is_there || files.count > CLONES_MAX {
            return Ok(steps);
        }
        let has = |option: &str| self.get(option).is_none_or(|(value, _)| value != "0");
        let hint = if way.random { "random" } else { "sequential" };
        let advice = [has("invalidate").then_some("dont-need"), has("fadvise_hint").then_some(hint)];
        let step = |advice| format!("{{ advise = \"{}\", as = \"{advice}\" }}", files.set);
        steps.extend(advice.into_iter().flatten().map(step));
        Ok(steps)
    }

    fn block(&self) -> Result<u64, Mistake> {
        match self.size("bs")? {
            Some(block) => Ok(block),
            None => Ok(self.size("blocksize")?.unwrap_or(4096)),
        }
    }

    /// Order, length and pace of its calls, as keys of a step.
    fn keys(&self, files: &Files<'_>, way: Way, label: &str) -> Result<String, Mistake> {
        let block = self.block()?;
        let order = match self.get("random_distribution") {
            Some((kind, _)) if way.random && kind.starts_with("zipf:") => kind,
            _ if way.random && self.flag("norandommap")? => "random",
            _ if way.random => "shuffled",
            _ => "sequential",
        };
        let calls = self.calls(files, block)?;
        let mut keys =
            format!(", order = \"{order}\", block = {block}, count = {calls}, label = \"{label}\"");
        let times = [
            ("at_most", self.time("runtime", Nanos::from_secs(1))?),
            ("every", self.every(block)?),
            ("think", self.time("thinktime", Nanos::from_micros(1))?),
        ];
        for (key, time) in times {
            if let Some(time) = time {
                write!(keys, ", {key} = \"{}ns\"", time.get()).expect("text can be written to");
            }
        }
        Ok(keys)
    }

    /// What of a step only calls have.
    fn keys_of_calls(&self, files: &Files<'_>, way: Way) -> Result<String, Mistake> {
        let mut keys = String::new();
        if self.in_turn(files.count)? {
            keys.push_str(", in_turn = true");
        }
        let fsync = self.count("fsync", 0)?.max(self.count("fdatasync", 0)?);
        if way.writes && fsync > 0 && files.count > 1 && !self.in_turn(files.count)? {
            let message = "`fsync` while files are written one after the other is not supported";
            return Err(at(self.line, message, Some("take `end_fsync=1`, or leave it out".to_owned())));
        }
        if way.writes && fsync > 0 {
            write!(keys, ", fsync = {fsync}").expect("text can be written to");
        }
        if way.reads && way.writes {
            let read = self.count("rwmixread", 100 - self.count("rwmixwrite", 50)?.min(100))?.min(100);
            write!(keys, ", writes = {}", (100 - read) as f64 / 100.0).expect("text can be written to");
        }
        Ok(keys)
    }

    /// How many calls it makes; of files one after the other a call is a whole file.
    fn calls(&self, files: &Files<'_>, block: u64) -> Result<u64, Mistake> {
        if self.flag("time_based")? {
            if self.get("runtime").is_none() {
                let message = format!("job `{}` is time_based and has no `runtime`", self.name);
                return Err(at(self.line, message, Some("add `runtime=60`".to_owned())));
            }
            return Ok(1_000_000_000);
        }
        let total = files.size.saturating_mul(files.count);
        let moved = match self.size("io_size")? {
            Some(moved) => moved,
            // With `filesize`, `size` says how much is moved.
            None if self.get("filesize").is_some() => self.size("size")?.unwrap_or(total),
            None => total,
        };
        let one_by_one = files.count > 1 && !self.in_turn(files.count)?;
        Ok(moved.div_ceil(if one_by_one { files.size } else { block }.max(1)))
    }

    /// Whether blocks of its files come in turn; otherwise one file after the other.
    fn in_turn(&self, files: u64) -> Result<bool, Mistake> {
        let (service, line) = self.get("file_service_type").unwrap_or(("roundrobin", self.line));
        let open = self.count("openfiles", files)?;
        if open > 1 && open < files && !service.starts_with("sequential") {
            let hint = format!("`openfiles=1`, or {files} or more");
            return Err(at(
                line,
                format!("`openfiles={open}` of {files} files is not supported"),
                Some(hint),
            ));
        }
        match service.split(':').next().unwrap_or(service) {
            "roundrobin" | "random" => Ok(files > 1 && open > 1),
            "sequential" => Ok(false),
            other => Err(at(
                line,
                format!("`file_service_type` cannot be `{other}`"),
                Some("roundrobin, random or sequential".to_owned()),
            )),
        }
    }

    /// Nanoseconds from one call to the next, where it is held to a rate.
    fn every(&self, block: u64) -> Result<Option<Nanos>, Mistake> {
        if let Some(rate) = self.size("rate")? {
            return Ok(Some(Nanos((block as f64 * 1e9 / rate.max(1) as f64) as u64)));
        }
        let iops = self.count("rate_iops", 0)?;
        Ok((iops > 0).then(|| Nanos(1_000_000_000 / iops)))
    }
}
