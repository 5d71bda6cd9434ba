//! Reads what a task of a workload file does. A step is a table whose first word says what: `{ read = "hot" }`.
//!
//! Next: [`super::definition`] for what comes of it, [`super::act`] for what a task does then.

use std::collections::{BTreeMap, BTreeSet};

use toml::de::DeValue;

use crate::language::table::{Entry, Mistake, Table};
use crate::system::{Advice, FileAdvice};
use crate::written::definition::{Again, Deed, Much, Order, PASS, Step, When, Word, Work};
use crate::written::expression::{Expression, Unit};
use crate::written::scope::{Scope, check_word};

/// Steps in one another, at most.
const DEPTH_MAX: usize = 6;
/// Words that a step can begin with.
const VERBS: [&str; 32] = [
    "read",
    "write",
    "stat",
    "touch",
    "map",
    "unmap",
    "lock",
    "advise",
    "create",
    "unlink",
    "sync",
    "fsync",
    "sleep",
    "compute",
    "wait",
    "end",
    "repeat",
    "for",
    "until",
    "cgroup",
    "sysctl",
    "drop_caches",
    "buffer",
    "resident",
    "flush",
    "do",
    "time",
    "run",
    "turn",
    "fill",
    "reclaim",
    "steps",
];
const WORK_KEYS: [&str; 17] = [
    "when",
    "write_each",
    "draw",
    "own",
    "order",
    "block",
    "passes",
    "count",
    "bytes",
    "every",
    "think",
    "fsync",
    "label",
    "write",
    "in_turn",
    "writes",
    "at_most",
];
pub(super) const ORDERS: [&str; 5] = ["sequential", "random", "shuffled", "zipf", "zipf:0.9"];
/// Bytes of a call where nobody says: a readahead window.
const BLOCK: f64 = (128 << 10) as f64;

/// Advice by its name: on mappings, and on files.
const ADVICE: [(&str, Option<Advice>, Option<FileAdvice>); 11] = [
    ("normal", Some(Advice::Normal), Some(FileAdvice::Normal)),
    ("random", Some(Advice::Random), Some(FileAdvice::Random)),
    ("sequential", Some(Advice::Sequential), Some(FileAdvice::Sequential)),
    ("will-need", Some(Advice::WillNeed), Some(FileAdvice::WillNeed)),
    ("dont-need", Some(Advice::DontNeed), Some(FileAdvice::DontNeed)),
    ("no-reuse", None, Some(FileAdvice::NoReuse)),
    ("huge-page", Some(Advice::HugePage), None),
    ("no-huge-page", Some(Advice::NoHugePage), None),
    ("cold", Some(Advice::Cold), None),
    ("page-out", Some(Advice::PageOut), None),
    ("free", Some(Advice::Free), None),
];

/// The advice called `name` on a mapping.
pub(super) fn mapping_advice(name: &str) -> Option<Advice> {
    ADVICE.iter().find(|(own, ..)| *own == name)?.1
}

/// The advice called `name` on a file.
pub(super) fn file_advice(name: &str) -> Option<FileAdvice> {
    ADVICE.iter().find(|(own, ..)| *own == name)?.2
}

/// The order called `name`: `zipf:0.9` has its exponent behind the name.
pub(super) fn order(name: &str) -> Option<Order> {
    match name {
        "sequential" => Some(Order::Sequential),
        "random" => Some(Order::Random),
        "shuffled" => Some(Order::Shuffled),
        "zipf" => Some(Order::Zipf(100)),
        _ => {
            let skew: f64 = name.strip_prefix("zipf:")?.parse().ok()?;
            (0.0..=4.0).contains(&skew).then(|| Order::Zipf((skew * 100.0).round() as u32))
        }
    }
}

/// A step, and the keys that it can have.
type Read = (Step, &'static [&'static str]);

/// Whose steps are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    Task,
    Main,
    /// Of a task, in its turn.
    Turn,
}

/// Reads the steps of all tasks, and numbers them.
pub(super) struct Reader<'s, 't> {
    scope: &'s Scope<'t>,
    next: usize,
    /// What the task has mapped so far, anywhere in its steps.
    mappings: BTreeSet<String>,
    /// Directories that it creates files in.
    directories: BTreeSet<String>,
    /// Steps that have a name.
    named: Option<Table<'t>>,
    whose: Whose,
    /// What each task has mapped in its turns.
    mapped_in_turns: BTreeMap<usize, BTreeSet<String>>,
}

impl<'s, 't> Reader<'s, 't> {
    pub(super) fn new(scope: &'s Scope<'t>, named: Option<Table<'t>>) -> Self {
        Self {
            scope,
            next: 0,
            mappings: BTreeSet::new(),
            directories: BTreeSet::new(),
            named,
            whose: Whose::Task,
            mapped_in_turns: BTreeMap::new(),
        }
    }

    /// Fails at steps that have a name and that nobody does.
    pub(super) fn finish(&self) -> Result<(), Mistake> {
        let Some(named) = &self.named else { return Ok(()) };
        let names: Vec<String> = named.names().map(|(name, _)| name).collect();
        named.finish(&names.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The steps that let tasks go.
    pub(super) fn main(&mut self, main: &Table<'_>) -> Result<Vec<Step>, Mistake> {
        self.whose = Whose::Main;
        self.task(main)
    }

    /// The steps of a task.
    pub(super) fn task(&mut self, task: &Table<'_>) -> Result<Vec<Step>, Mistake> {
        self.mappings.clear();
        self.directories.clear();
        self.steps(task, 0)
    }

    fn steps(&mut self, of: &Table<'_>, depth: usize) -> Result<Vec<Step>, Mistake> {
        self.list(of, "steps", depth)
    }

    fn list(&mut self, of: &Table<'_>, key: &str, depth: usize) -> Result<Vec<Step>, Mistake> {
        let items = of.list(key)?;
        if items.is_empty() {
            let at = of.get("steps").map_or(of.at, |entry| entry.value_at);
            return Err(of.source.fail_hint(
                at,
                format!("{} has no steps", of.called),
                "write `steps = [{ read = \"hot\" }]`",
            ));
        }
        if depth > DEPTH_MAX {
            let message = format!("steps lie in one another {DEPTH_MAX} deep at most");
            return Err(of.source.fail(items[0].value_at, message));
        }
        items.iter().enumerate().map(|(number, item)| self.step(of, number, item, depth)).collect()
    }

    fn step(
        &mut self,
        of: &Table<'_>,
        number: usize,
        item: &Entry<'_>,
        depth: usize,
    ) -> Result<Step, Mistake> {
        let called = format!("step {} of {}", number + 1, of.called);
        let table = Table::of(of.source, called, item)?;
        let names: Vec<(String, usize)> = table.names().collect();
        let verb = names.iter().find(|(name, _)| VERBS.contains(&&**name)).or(names.first());
        let Some((verb, at)) = verb else {
            let message = format!("{} is empty", table.called);
            return Err(of.source.fail_hint(item.value_at, message, "write `{ read = \"hot\" }`"));
        };
        let entry = table.get(verb).expect("it is there");
        let when = self.scope.when(&table)?;
        let step = self.verb(&table, verb, *at, entry, depth)?;
        if when == When::default() {
            return Ok(step);
        }
        if matches!(step, Step::Wait(_) | Step::End(_)) {
            let message = format!("`{verb}` hangs on no parameter");
            return Err(table.source.fail_hint(*at, message, "leave `when` out"));
        }
        Ok(Step::Again { again: Again::When(when), steps: vec![step] })
    }

    /// What a step is without its condition.
    fn verb(
        &mut self,
        table: &Table<'_>,
        verb: &str,
        at: usize,
        entry: &Entry<'_>,
        depth: usize,
    ) -> Result<Step, Mistake> {
        let scope = self.scope;
        let (step, known): Read = match verb {
            "read" | "write" | "stat" | "touch" => {
                let step = self.work(table, verb, entry)?;
                table.finish(&[&[verb][..], &WORK_KEYS].concat())?;
                return Ok(step);
            }
            "map" => self.map(table, entry)?,
            "unmap" | "lock" | "fill" => self.of_mapping(table, entry)?,
            "reclaim" => self.reclaim(table, entry)?,
            "steps" => {
                // Phases end in what hangs on parameters where one task ends them all.
                let depth = depth + u32::from(self.whose != Whose::Main) as usize;
                (
                    Step::Again { again: Again::When(When::default()), steps: self.steps(table, depth)? },
                    &["steps"],
                )
            }
            "advise" => self.advise(table, entry)?,
            "create" => self.create(table, entry)?,
            "unlink" => self.unlink(table, entry)?,
            "sync" => (Step::Sync, &["sync"]),
            "fsync" => {
                let file = table.text_of(entry)?;
                scope.file(&file, entry.value_at)?;
                (Step::Fsync(file), &["fsync"])
            }
            "sleep" => (Step::Sleep(scope.amount(table, entry, Unit::Time)?), &["sleep"]),
            "compute" => (Step::Compute(scope.amount(table, entry, Unit::Time)?), &["compute"]),
            "wait" | "end" => self.of_phase(table, entry, depth)?,
            "repeat" | "for" | "until" => self.again(table, entry, depth)?,
            "cgroup" => self.cgroup(table, entry)?,
            "sysctl" => {
                let name = table.text_of(entry)?;
                let to = scope.setting(table, table.needed("to", "\"10\"")?)?;
                (Step::Sysctl { name, to }, &["sysctl", "to"])
            }
            "drop_caches" => (drop_caches(table, entry)?, &["drop_caches"]),
            "buffer" => (Step::Buffer(scope.amount(table, entry, Unit::Bytes)?), &["buffer"]),
            "resident" => self.resident(table, entry)?,
            "flush" => {
                let group = table.text_of(entry)?;
                scope.group(&group, entry.value_at)?;
                (Step::Flush(group), &["flush"])
            }
            "do" => self.named(table, entry, depth)?,
            "time" => {
                let label = self.label_of(table, entry)?;
                (
                    Step::Again { again: Again::Timed(label), steps: self.steps(table, depth)? },
                    &["time", "steps"],
                )
            }
            "run" | "turn" => self.of_task(table, entry, depth)?,
            other => return Err(table.source.unknown(at, "step", other, VERBS)),
        };
        table.finish(&[known, &["when"]].concat())?;
        Ok(step)
    }

    /// Tasks that are started, or have their turn.
    fn of_task(&mut self, table: &Table<'_>, entry: &Entry<'_>, depth: usize) -> Result<Read, Mistake> {
        if self.whose != Whose::Main {
            let message = format!("`{}` is no step of a task", entry.name);
            return Err(table.source.fail_hint(entry.key_at, message, "tasks are let go in `[main]`"));
        }
        let task = self.scope.task(&table.text_of(entry)?, entry.value_at)?;
        if entry.name == "run" {
            return Ok((Step::Run(task), &["run"]));
        }
        let mapped = self.mapped_in_turns.remove(&task).unwrap_or_default();
        let of_main = std::mem::replace(&mut self.mappings, mapped);
        self.whose = Whose::Turn;
        let steps = self.steps(table, depth + 1)?;
        self.whose = Whose::Main;
        self.mapped_in_turns.insert(task, std::mem::replace(&mut self.mappings, of_main));
        Ok((Step::Turn { task, steps }, &["turn", "steps"]))
    }

    /// Steps that have a name.
    fn named(&mut self, table: &Table<'_>, entry: &Entry<'_>, depth: usize) -> Result<Read, Mistake> {
        let name = table.text_of(entry)?;
        let Some(named) = self.named.take() else {
            let message = "there are no steps that have a name, or `do` stands in such steps itself";
            return Err(table.source.fail_hint(
                entry.value_at,
                message,
                "write `[steps]` and `NAME = [...]`",
            ));
        };
        if !named.names().any(|(own, _)| own == name) {
            let names: Vec<String> = named.names().map(|(own, _)| own).collect();
            return Err(table.source.unknown(
                entry.value_at,
                "steps",
                &name,
                names.iter().map(String::as_str),
            ));
        }
        let steps = self.list(&named, &name, depth + 1)?;
        self.named = Some(named);
        Ok((Step::Again { again: Again::When(When::default()), steps }, &["do"]))
    }

    /// A step about all of a mapping.
    fn of_mapping(&mut self, table: &Table<'_>, entry: &Entry<'_>) -> Result<Read, Mistake> {
        let name = table.text_of(entry)?;
        self.mapping(table, &name, entry.value_at)?;
        Ok(match &*entry.name {
            "lock" => (Step::Lock(name), &["lock"]),
            "unmap" => {
                self.mappings.remove(&name);
                (Step::Unmap(name), &["unmap"])
            }
            _ => {
                let compressed = self.scope.optional(table, "compressed", Unit::Bytes)?;
                let compressed = compressed.unwrap_or(Expression::Number(0.0));
                (Step::Fill { name, compressed }, &["fill", "compressed"])
            }
        })
    }

    fn reclaim(&self, table: &Table<'_>, entry: &Entry<'_>) -> Result<Read, Mistake> {
        let bytes = self.scope.amount(table, entry, Unit::Bytes)?;
        let group = match table.get("group") {
            Some(group) => {
                let name = table.text_of(group)?;
                self.scope.group(&name, group.value_at)?;
                Some(name)
            }
            None => None,
        };
        let swappiness = table.get("swappiness").map(|entry| self.scope.setting(table, entry)).transpose()?;
        let label = self.label_of(table, table.needed("label", "\"asked\"")?)?;
        Ok((Step::Reclaim { bytes, group, swappiness, label }, &["reclaim", "group", "swappiness", "label"]))
    }

    fn resident(&self, table: &Table<'_>, entry: &Entry<'_>) -> Result<Read, Mistake> {
        let on = table.text_of(entry)?;
        let is_file = !self.mappings.contains(&on);
        if is_file {
            self.scope.file(&on, entry.value_at)?;
        }
        let label = self.label_of(table, table.needed("label", "\"kept\"")?)?;
        Ok((Step::Count { on, is_file, label }, &["resident", "label"]))
    }

    fn of_phase(&self, table: &Table<'_>, entry: &Entry<'_>, depth: usize) -> Result<Read, Mistake> {
        let phase = table.text_of(entry)?;
        self.scope.phase(&phase, entry.value_at)?;
        let is_wait = entry.name == "wait";
        if self.whose == Whose::Turn || (is_wait && self.whose == Whose::Main) {
            let message = format!("`{}` means nothing here", entry.name);
            return Err(table.source.fail_hint(entry.key_at, message, "phases end in the steps of `[main]`"));
        }
        if is_wait {
            return Ok((Step::Wait(phase), &["wait"]));
        }
        if depth > 0 {
            let message = "a phase cannot end in steps that are made again";
            return Err(table.source.fail_hint(entry.key_at, message, "put `end` behind them"));
        }
        Ok((Step::End(phase), &["end"]))
    }

    fn again(&mut self, table: &Table<'_>, entry: &Entry<'_>, depth: usize) -> Result<Read, Mistake> {
        let scope = self.scope;
        let waits = entry.name == "until" && self.whose != Whose::Task;
        if waits || (entry.name == "for" && self.whose == Whose::Main) {
            let message = format!("`{}` means nothing here: `main` and turns have one order", entry.name);
            return Err(table.source.fail_hint(entry.key_at, message, "write `repeat`"));
        }
        let (again, known): (Again, &[&str]) = match &*entry.name {
            "repeat" => (Again::Times(scope.amount(table, entry, Unit::Count)?), &["repeat", "steps"]),
            "for" => (Again::For(scope.amount(table, entry, Unit::Time)?), &["for", "steps"]),
            _ => {
                let phase = table.text_of(entry)?;
                scope.phase(&phase, entry.value_at)?;
                (Again::Until(phase), &["until", "steps"])
            }
        };
        Ok((Step::Again { again, steps: self.steps(table, depth + 1)? }, known))
    }

    fn number(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }

    fn mapping(&self, table: &Table<'_>, name: &str, at: usize) -> Result<(), Mistake> {
        if self.mappings.contains(name) {
            return Ok(());
        }
        let mistake = table.source.unknown(at, "mapping", name, self.mappings.iter().map(String::as_str));
        let hint = match self.mappings.is_empty() {
            true => "map it before, in the same task: `{ map = \"heap\", size = \"100M\" }`".to_owned(),
            false => mistake.hint.clone().unwrap_or_default(),
        };
        Err(Mistake { hint: Some(hint), ..mistake })
    }

    fn single_file(&self, table: &Table<'_>, name: &str, at: usize) -> Result<(), Mistake> {
        self.scope.file(name, at)?;
        if self.scope.files.iter().any(|(own, is_many)| own == name && *is_many) {
            return Err(table.source.fail(at, format!("`{name}` is many files, and this is about one")));
        }
        Ok(())
    }

    fn work(&mut self, table: &Table<'_>, verb: &str, entry: &Entry<'_>) -> Result<Step, Mistake> {
        let scope = self.scope;
        let on = table.text_of(entry)?;
        if verb == "touch" {
            self.mapping(table, &on, entry.value_at)?;
        } else {
            scope.file(&on, entry.value_at)?;
        }
        let deed = match verb {
            "read" => Deed::Read,
            "write" => Deed::Write,
            "stat" => Deed::Stat,
            _ if table.flag("write")? => Deed::TouchWriting,
            _ => Deed::Touch,
        };
        let order_word = match table.get("order") {
            Some(entry) => scope.word(table, entry, |word, at| match order(word) {
                Some(_) => Ok(()),
                None => Err(table.source.unknown(at, "order", word, ORDERS)),
            })?,
            None => Word::Fixed("sequential".to_owned()),
        };
        if let (true, Some(own)) = (table.flag("in_turn")?, table.get("own")) {
            let hint = "leave one of them out; `own` keeps a task to whole files";
            return Err(table.source.fail_hint(own.key_at, "`own` and `in_turn` do not go together", hint));
        }
        let default = if matches!(deed, Deed::Touch | Deed::TouchWriting) { 4096.0 } else { BLOCK };
        let block = scope.optional(table, "block", Unit::Bytes)?.unwrap_or(Expression::Number(default));
        Ok(Step::Work(Box::new(Work {
            id: self.number(),
            deed,
            on,
            own: table.flag("own")?,
            order: order_word,
            block,
            much: self.much(table)?,
            in_turn: matches!(deed, Deed::Read | Deed::Write) && table.flag("in_turn")?,
            writes: if deed == Deed::Read { share_of_writes(table)? } else { 0 },
            at_most: scope.optional(table, "at_most", Unit::Time)?,
            every: scope.optional(table, "every", Unit::Time)?,
            think: scope.optional(table, "think", Unit::Time)?,
            fsync: match deed {
                Deed::Write | Deed::Read => scope.optional(table, "fsync", Unit::Count)?,
                _ => None,
            },
            write_each: match deed {
                Deed::Touch => scope.optional(table, "write_each", Unit::Count)?,
                _ => None,
            },
            draw: self.draw(table)?,
            label: self.label(table)?,
        })))
    }

    /// How much of it a step does.
    fn much(&self, table: &Table<'_>) -> Result<Much, Mistake> {
        let scope = self.scope;
        let given =
            ["passes", "count", "bytes"].into_iter().filter_map(|key| table.get(key)).collect::<Vec<_>>();
        Ok(match given[..] {
            [] => Much::Passes(Expression::Number(1.0)),
            [entry] => match &*entry.name {
                "passes" => Much::Passes(scope.amount(table, entry, Unit::Count)?),
                "count" => Much::Count(scope.amount(table, entry, Unit::Count)?),
                _ => Much::Bytes(scope.amount(table, entry, Unit::Bytes)?),
            },
            [_, second, ..] => {
                let message = format!("{} says twice how much it does", table.called);
                return Err(table.source.fail_hint(
                    second.key_at,
                    message,
                    "keep one of `passes`, `count`, `bytes`",
                ));
            }
        })
    }

    /// The name that an order is drawn by.
    fn draw(&self, table: &Table<'_>) -> Result<Option<String>, Mistake> {
        let Some(entry) = table.get("draw") else { return Ok(None) };
        let name = table.text_of(entry)?;
        for part in name.replace(PASS, "0").split('/') {
            check_word(table.source, part, entry.value_at)?;
        }
        Ok(Some(name))
    }

    fn label(&self, table: &Table<'_>) -> Result<Option<String>, Mistake> {
        table.get("label").map(|entry| self.label_of(table, entry)).transpose()
    }

    fn label_of(&self, table: &Table<'_>, entry: &Entry<'_>) -> Result<String, Mistake> {
        let label = table.text_of(entry)?;
        check_word(table.source, &label, entry.value_at)?;
        Ok(label)
    }

    fn map(&mut self, table: &Table<'_>, entry: &Entry<'_>) -> Result<Read, Mistake> {
        const KEYS: &[&str] = &["map", "size", "file", "own", "shared", "write", "execute"];
        let name = table.text_of(entry)?;
        check_word(table.source, &name, entry.value_at)?;
        self.mappings.insert(name.clone());
        let Some(file) = table.get("file") else {
            let size = self.scope.amount(table, table.needed("size", "\"100M\"")?, Unit::Bytes)?;
            return Ok((Step::Map { name, size }, &["map", "size"]));
        };
        let at = file.value_at;
        let file = table.text_of(file)?;
        let own = table.flag("own")?;
        self.scope.file(&file, at)?;
        if !own {
            self.single_file(table, &file, at)?;
        }
        let step = Step::MapFile {
            name,
            file,
            own,
            shared: self.scope.flag(table, "shared")?,
            writable: self.scope.flag(table, "write")?,
            executable: self.scope.flag(table, "execute")?,
        };
        Ok((step, KEYS))
    }

    fn advise(&mut self, table: &Table<'_>, entry: &Entry<'_>) -> Result<Read, Mistake> {
        let on = table.text_of(entry)?;
        let is_file = !self.mappings.contains(&on);
        if is_file {
            self.scope.file(&on, entry.value_at)?;
        }
        let advice = self.scope.word(table, table.needed("as", "\"random\"")?, |word, at| {
            let known = if is_file { file_advice(word).is_some() } else { mapping_advice(word).is_some() };
            let names = ADVICE
                .iter()
                .filter(|(_, mapping, file)| if is_file { file.is_some() } else { mapping.is_some() });
            if known {
                Ok(())
            } else {
                Err(table.source.unknown(at, "advice", word, names.map(|(name, ..)| *name)))
            }
        })?;
        Ok((Step::Advise { on, is_file, advice }, &["advise", "as"]))
    }

    fn create(&mut self, table: &Table<'_>, entry: &Entry<'_>) -> Result<Read, Mistake> {
        let directory = table.text_of(entry)?;
        check_word(table.source, &directory, entry.value_at)?;
        if self.scope.files.iter().any(|(name, _)| *name == directory) {
            let message = format!("`{directory}` is there already, as a file");
            return Err(table.source.fail_hint(
                entry.value_at,
                message,
                "create files in a directory of another name",
            ));
        }
        self.directories.insert(directory.clone());
        let step = Step::Create {
            directory,
            count: self.scope.optional(table, "count", Unit::Count)?.unwrap_or(Expression::Number(1.0)),
            size: self.scope.optional(table, "size", Unit::Bytes)?.unwrap_or(Expression::Number(0.0)),
            fsync: table.flag("fsync")?,
            label: self.label(table)?,
        };
        Ok((step, &["create", "count", "size", "fsync", "label"]))
    }

    fn unlink(&mut self, table: &Table<'_>, entry: &Entry<'_>) -> Result<Read, Mistake> {
        let directory = table.text_of(entry)?;
        if !self.directories.contains(&directory) {
            let known = self.directories.iter().map(String::as_str);
            let mistake = table.source.unknown(entry.value_at, "directory", &directory, known);
            let hint =
                "a task removes what it created before: `{ create = \"new\", count = 100 }`".to_owned();
            return Err(Mistake { hint: Some(hint), ..mistake });
        }
        let count = self.scope.optional(table, "count", Unit::Count)?;
        Ok((Step::Unlink { directory, count }, &["unlink", "count"]))
    }

    fn cgroup(&mut self, table: &Table<'_>, entry: &Entry<'_>) -> Result<Read, Mistake> {
        let path = table.text_of(entry)?;
        self.scope.group(&path, entry.value_at)?;
        let file_entry = table.needed("set", "\"memory.high\"")?;
        let file = table.text_of(file_entry)?;
        check_word(table.source, &file, file_entry.value_at)?;
        let to = self.scope.setting(table, table.needed("to", "\"50M\"")?)?;
        Ok((Step::Cgroup { path, file, to }, &["cgroup", "set", "to"]))
    }
}

fn drop_caches(table: &Table<'_>, entry: &Entry<'_>) -> Result<Step, Mistake> {
    match entry.value {
        DeValue::Integer(number) if matches!(number.as_str(), "1" | "2" | "3") => {
            Ok(Step::DropCaches(number.as_str().parse().expect("it is 1, 2 or 3")))
        }
        _ => Err(table.source.fail(entry.value_at, "`drop_caches` is 1, 2 or 3")),
    }
}

/// How many of ten thousand operations write.
fn share_of_writes(table: &Table<'_>) -> Result<u32, Mistake> {
    let Some(entry) = table.get("writes") else { return Ok(0) };
    let text = table.scalar_of(entry)?;
    let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    let share = share.ok_or_else(|| {
        table.source.fail(entry.value_at, format!("`writes` is a share from 0 to 1, not `{text}`"))
    })?;
    Ok((share * f64::from(WHOLE)).round() as u32)
}

/// All operations, in the parts that a share is told in.
pub(super) const WHOLE: u32 = 10_000;
