//! Reads a workload file: its head, parameters, groups, files and tasks. Each mistake is told where it stands.
//!
//! Next: [`super::steps`] reads what a task does, [`super::measure`] the metrics; [`super::order`] checks that no task
//! waits for ever.

use std::cell::Cell;

use toml::de::{DeTable, DeValue};
use units::{Bytes, parse_size};

use crate::language::table::{Entry, Mistake, Source, Table};
use crate::written::definition::{
    Definition, FileSet, FileState, Group, Head, Place, Refusal, Step, TaskGroup, Word,
};
use crate::written::expression::{Expression, MEMORY, TASK, Unit};
use crate::written::scope::{NAME_LEN_MAX, Scope, check_word};
use crate::written::{measure, order, steps};
use language::params::{ParamKind, ParamSpec, Share};

const KEYS: [&str; 14] = [
    "name",
    "help",
    "params",
    "phases",
    "prepares",
    "keep_caches",
    "groups",
    "files",
    "tasks",
    "metrics",
    "varies",
    "refuse",
    "steps",
    "main",
];
const PARAM_KEYS: [&str; 7] = ["size", "count", "share", "choice", "help", "least", "most"];
const FILE_KEYS: [&str; 8] = ["when", "beyond", "size", "up_to", "count", "state", "disk", "in_memory"];
const TASK_KEYS: [&str; 6] = ["when", "count", "group", "cpu", "begins_within", "steps"];
const STATES: [&str; 4] = ["laid-out", "written", "empty", "absent"];
/// Where the machine puts the files: every workload has it.
const FILESYSTEM: ParamSpec =
    ParamSpec::choice("filesystem", &["ext4", "xfs"], "filesystem that the machine puts the files on");
/// The last phase of a file that names none.
const ONLY_PHASE: &str = "done";

/// The text of a workload file, told from that of a scenario: it has tasks, and names no workload.
pub fn is_one(text: &str) -> bool {
    DeTable::parse(text).is_ok_and(|table| {
        let has = |key: &str| table.get_ref().iter().any(|(own, _)| own.get_ref() == key);
        !has("workload") && (has("tasks") || has("files") || has("phases"))
    })
}

/// Reads a workload file.
pub(super) fn read(text: &str) -> Result<(Definition, Head), Mistake> {
    let source = Source(text);
    let table = source.parse()?;
    let top = Table::new(source, "the file".to_owned(), 0, table.get_ref());
    let name_entry = top.needed("name", "\"my-server\"")?;
    let name = top.text_of(name_entry)?;
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > NAME_LEN_MAX || !name.chars().all(is_name) {
        let message = format!("`{}` is no name of a workload", name.escape_debug());
        let hint = "a name has small letters, digits and `-`";
        return Err(source.fail_hint(name_entry.value_at, message, hint));
    }
    let help = top.text("help")?.unwrap_or_default();
    let phases = names(&top, "phases")?;
    let prepares = names(&top, "prepares")?;
    let keeps_caches = top.flag("keep_caches")?;
    let mut scope = Scope {
        source,
        params: params(&top)?,
        phases: phases.iter().map(|(name, _)| name.clone()).collect(),
        files: Vec::new(),
        groups: Vec::new(),
        tasks: Vec::new(),
        of_task: Cell::new(false),
    };
    if scope.phases.is_empty() {
        scope.phases.push(ONLY_PHASE.to_owned());
    }
    for (phase, at) in &prepares {
        scope.phase(phase, *at)?;
    }
    let groups = groups(&top, &mut scope)?;
    let files = files(&top, &mut scope)?;
    let refusals = refusals(&top, &scope)?;
    let (tasks, main) = tasks(&top, &mut scope)?;
    let text = text.to_owned();
    let metrics = Vec::new();
    let phases = scope.phases.clone();
    let read = Definition { text, name, phases, keeps_caches, groups, files, tasks, main, metrics, refusals };
    let metrics = measure::read(&top, &scope, &read)?;
    let varies = top.texts("varies")?.into_iter().map(|(line, _)| line).collect();
    top.finish(&KEYS)?;
    order::check(&scope, &read)?;
    let prepares = prepares.into_iter().map(|(name, _)| name).collect();
    Ok((Definition { metrics, ..read }, Head { help, params: scope.params, prepares, varies }))
}

/// Parameters that do not go together, and what is said of them.
fn refusals(top: &Table<'_>, scope: &Scope<'_>) -> Result<Vec<Refusal>, Mistake> {
    let read = |item: &Entry<'_>| {
        let own = Table::of(top.source, "what is refused".to_owned(), item)?;
        let entry = own.needed("param", "\"limit\"")?;
        let name = own.text_of(entry)?;
        let known = scope.params.iter().map(|param| param.name);
        let param = known.clone().find(|known| *known == name);
        let param = param.ok_or_else(|| own.source.unknown(entry.value_at, "parameter", &name, known))?;
        own.needed("when", "\"order = random\"")?;
        let problem = own.text_of(own.needed("problem", "\"what is wrong\"")?)?;
        let hint = own.text_of(own.needed("hint", "\"what to write instead\"")?)?;
        let when = scope.when(&own)?;
        own.finish(&["when", "param", "problem", "hint"])?;
        Ok(Refusal { when, param, problem, hint })
    };
    top.list("refuse")?.iter().map(read).collect()
}

/// Names of a list, each once.
fn names(top: &Table<'_>, key: &str) -> Result<Vec<(String, usize)>, Mistake> {
    let names = top.texts(key)?;
    for (number, (name, at)) in names.iter().enumerate() {
        check_word(top.source, name, *at)?;
        if names[..number].iter().any(|(other, _)| other == name) {
            return Err(top.source.fail_hint(
                *at,
                format!("`{name}` is named twice"),
                "leave one of them out",
            ));
        }
    }
    Ok(names)
}

fn params(top: &Table<'_>) -> Result<Vec<ParamSpec>, Mistake> {
    let mut params = Vec::new();
    if let Some(entry) = top.get("params") {
        let table = Table::of(top.source, "`params`".to_owned(), entry)?;
        for entry in table.all() {
            params.push(param(top.source, entry)?);
        }
    }
    if !params.iter().any(|param| param.name == FILESYSTEM.name) {
        params.push(FILESYSTEM);
    }
    Ok(params)
}

/// One parameter. Its texts live as long as the program: few workloads are ever named.
fn param(source: Source<'_>, entry: &Entry<'_>) -> Result<ParamSpec, Mistake> {
    check_word(source, &entry.name, entry.key_at)?;
    if [MEMORY, TASK].contains(&&*entry.name) || entry.name.contains(['-', '.']) {
        let message = format!("`{}` is no name of a parameter", entry.name);
        let hint = "letters, digits and `_`; `$memory` is the machine's memory, `$task` a task's number";
        return Err(source.fail_hint(entry.key_at, message, hint));
    }
    let table = Table::of(source, format!("parameter `{}`", entry.name), entry)?;
    let help = table.text("help")?.unwrap_or_default();
    let (kind, default) = kind(&table)?;
    table.finish(&PARAM_KEYS)?;
    let leaked = |text: String| -> &'static str { text.leak() };
    let spec = ParamSpec {
        name: leaked(entry.name.clone()),
        kind,
        default: default.map(leaked),
        help: leaked(help),
    };
    spec.check_default().map_err(|message| source.fail(entry.value_at, message))?;
    Ok(spec)
}

/// What values a parameter has, and the one where nobody gives one.
fn kind(table: &Table<'_>) -> Result<(ParamKind, Option<String>), Mistake> {
    let kinds = ["size", "count", "share", "choice"];
    let given: Vec<&Entry<'_>> = kinds.iter().filter_map(|kind| table.get(kind)).collect();
    let [entry] = given[..] else {
        let message = format!("{} needs one of `size`, `count`, `share`, `choice`", table.called);
        let hint = "write what it is where nobody gives it: `hot = { size = \"50M\" }`";
        return Err(table.source.fail_hint(table.at, message, hint));
    };
    if entry.name == "choice" {
        let words = table.texts("choice")?;
        let Some((first, _)) = words.first().cloned() else {
            return Err(table.source.fail(entry.value_at, "`choice` is an empty list"));
        };
        for (word, at) in &words {
            check_word(table.source, &word.replace([':', '/'], "-"), *at)?;
        }
        let words: Vec<&'static str> = words.into_iter().map(|(word, _)| &*word.leak()).collect();
        return Ok((ParamKind::Choice(words.leak()), Some(first)));
    }
    let default = table.scalar_of(entry)?;
    let bounds =
        ["least", "most"].map(|key| table.get(key).map(|entry| (table.scalar_of(entry), entry.value_at)));
    let mut texts = Vec::new();
    for bound in bounds {
        texts.push(match bound {
            Some((text, at)) => Some((text?, at)),
            None => None,
        });
    }
    let bad = |at: usize, message: String| table.source.fail(at, message);
    let size = |bound: &Option<(String, usize)>, otherwise: Bytes| match bound {
        Some((text, at)) => parse_size(text).map_err(|error| bad(*at, error.to_string())),
        None => Ok(otherwise),
    };
    let count = |bound: &Option<(String, usize)>, otherwise: u64| match bound {
        Some((text, at)) => text.parse().map_err(|_| bad(*at, format!("`{text}` is no whole number"))),
        None => Ok(otherwise),
    };
    let kind = match &*entry.name {
        "size" => ParamKind::Size { min: size(&texts[0], Bytes(0))?, max: size(&texts[1], Bytes(16 << 40))? },
        "count" => ParamKind::Count { min: count(&texts[0], 0)?, max: count(&texts[1], 1 << 40)? },
        _ => ParamKind::Share { min: Share::ZERO, max: Share::ALL },
    };
    Ok((kind, (default != "none").then_some(default)))
}

fn groups(top: &Table<'_>, scope: &mut Scope<'_>) -> Result<Vec<Group>, Mistake> {
    let Some(entry) = top.get("groups") else { return Ok(Vec::new()) };
    let table = Table::of(top.source, "`groups`".to_owned(), entry)?;
    let mut groups: Vec<Group> = Vec::new();
    for entry in table.all() {
        let own = Table::of(top.source, format!("cgroup `{}`", entry.name), entry)?;
        let path = own.text("path")?.unwrap_or_else(|| entry.name.clone());
        for part in path.split('/') {
            check_word(top.source, part, entry.key_at)?;
        }
        if let Some((above, _)) = path.rsplit_once('/')
            && !groups.iter().any(|group| group.path == above)
        {
            let message = format!("cgroup `{path}` lies in `{above}`, which is not there before it");
            let hint = format!("write `[groups.\"{above}\"]` above it");
            return Err(top.source.fail_hint(entry.key_at, message, hint));
        }
        let mut settings = Vec::new();
        for setting in own.all().filter(|setting| !["path", "when"].contains(&&*setting.name)) {
            check_word(top.source, &setting.name, setting.key_at)?;
            settings.push((setting.name.clone(), scope.setting(&own, setting)?));
        }
        groups.push(Group { name: entry.name.clone(), path, when: scope.when(&own)?, settings });
    }
    scope.groups = groups.iter().map(|group| group.name.clone()).collect();
    Ok(groups)
}

fn files(top: &Table<'_>, scope: &mut Scope<'_>) -> Result<Vec<FileSet>, Mistake> {
    let Some(entry) = top.get("files") else { return Ok(Vec::new()) };
    let table = Table::of(top.source, "`files`".to_owned(), entry)?;
    let mut files = Vec::new();
    for entry in table.all() {
        check_word(top.source, &entry.name, entry.key_at)?;
        let own = Table::of(top.source, format!("file `{}`", entry.name), entry)?;
        let set = file_set(&own, entry, scope)?;
        own.finish(&FILE_KEYS)?;
        scope.files.push((set.name.clone(), set.count.is_some()));
        files.push(set);
    }
    Ok(files)
}

fn file_set(own: &Table<'_>, entry: &Entry<'_>, scope: &Scope<'_>) -> Result<FileSet, Mistake> {
    let state = match own.text("state")?.as_deref() {
        None | Some("laid-out") => FileState::LaidOut,
        Some("written") => FileState::Written,
        Some("empty") => FileState::Empty,
        Some("absent") => FileState::Absent,
        Some(other) => {
            let at = own.get("state").map_or(own.at, |entry| entry.value_at);
            return Err(own.source.unknown(at, "state", other, STATES));
        }
    };
    let smallest = scope.amount(own, own.needed("size", "\"1G\"")?, Unit::Bytes)?;
    let place = match own.get("disk") {
        _ if own.flag("in_memory")? => Place::Memory,
        None => Place::Disk(Expression::Number(0.0)),
        Some(Entry { value: DeValue::String(word), .. }) if word == "all" => Place::AllDisks,
        Some(entry) => Place::Disk(scope.amount(own, entry, Unit::Count)?),
    };
    if state == FileState::LaidOut && matches!(place, Place::Memory) {
        let hint = "add `state = \"written\"`: what lies in memory was written there";
        return Err(own.source.fail_hint(
            entry.key_at,
            "a file in memory cannot be laid out on a disk",
            hint,
        ));
    }
    Ok(FileSet {
        name: entry.name.clone(),
        when: scope.when(own)?,
        smallest,
        largest: scope.optional(own, "up_to", Unit::Bytes)?,
        beyond: scope.optional(own, "beyond", Unit::Bytes)?,
        count: scope.optional(own, "count", Unit::Count)?,
        state,
        place,
    })
}

/// The tasks, and what lets them go.
fn tasks(top: &Table<'_>, scope: &mut Scope<'_>) -> Result<(Vec<TaskGroup>, Vec<Step>), Mistake> {
    let entry = top.needed("tasks", "{ reader = { steps = [...] } }")?;
    let table = Table::of(top.source, "`tasks`".to_owned(), entry)?;
    let main = top.get("main").map(|entry| Table::of(top.source, "`main`".to_owned(), entry)).transpose()?;
    scope.tasks = table.names().map(|(name, _)| name).collect();
    let scope = &*scope;
    let mut tasks = Vec::new();
    let named =
        top.get("steps").map(|entry| Table::of(top.source, "`steps`".to_owned(), entry)).transpose()?;
    let mut reader = steps::Reader::new(scope, named);
    for entry in table.all() {
        check_word(top.source, &entry.name, entry.key_at)?;
        let own = Table::of(top.source, format!("task `{}`", entry.name), entry)?;
        let groups = match own.get("group") {
            Some(Entry { value: DeValue::String(word), .. }) if word.starts_with('$') => {
                let entry = own.needed("group", "")?;
                vec![scope.word(&own, entry, |word, at| scope.group(word, at))?]
            }
            Some(entry) => scope.groups_of(&own, entry)?.into_iter().map(Word::Fixed).collect(),
            None => Vec::new(),
        };
        let count = scope.optional(&own, "count", Unit::Count)?;
        let begins_within = scope.optional(&own, "begins_within", Unit::Time)?;
        if main.is_none() {
            own.needed("steps", "[{ read = \"hot\" }]")?;
        }
        scope.of_task.set(true);
        let cpu = scope.optional(&own, "cpu", Unit::Count)?;
        let steps = if own.get("steps").is_some() { reader.task(&own)? } else { Vec::new() };
        scope.of_task.set(false);
        let when = scope.when(&own)?;
        tasks.push(TaskGroup { name: entry.name.clone(), when, count, groups, cpu, begins_within, steps });
        own.finish(&TASK_KEYS)?;
    }
    if tasks.is_empty() {
        return Err(top.source.fail_hint(entry.value_at, "there is no task", "write `[tasks.reader]`"));
    }
    let steps = match main {
        None => Vec::new(),
        Some(main) => {
            let steps = reader.main(&main)?;
            main.finish(&["steps"])?;
            steps
        }
    };
    reader.finish()?;
    Ok((tasks, steps))
}
