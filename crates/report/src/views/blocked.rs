//! Who blocks on whom: where allocation stalls, kswapd and limit reclaim spent their time, down to the wait
//! and to who could have ended it.
//!
//! ```text
//!   allocation stall                           all of it, computing and waiting for a CPU too
//!     super-block shrinker                     of that
//!       xfs_reclaim_inode                      of that, in this wait
//!         own inode write        on whom
//! ```
//! Recordings before schema 4, and those of real kernels, tell none of it. Next: [`crate::views::waits`] has all
//! waits, wherever they were.

use std::collections::{BTreeMap, BTreeSet};

use recording::{Recording, SectionTime, WITHIN, Wait, WaitKind};
use serde_json::{Value, json};

use crate::document::number::{duration, plain, seconds};
use crate::document::{Align, Cell, Section, Table, row};
use crate::judge::{Group, Side, absent, is_modelled};
use crate::views::findings::{beside_each_other, change_of};
use crate::views::waits::{share, without_number};

/// What is less of its site than this is shown on demand.
const SHARE_MIN: f64 = 0.01;
/// Where less was waited than this in all sites nobody blocks on anybody.
const BLOCKED_MIN_NS: u128 = 10_000_000;
/// The site that programs suffer from, and what it is called with a number.
const STALL: (&str, &str) = ("allocation stall", "allocation stalls");

/// Where an allocation waits between two tries.
const PAUSE: &str = "allocation pause";

/// Names from a site inwards: sections, then perhaps a wait, then whom it was on.
type Path<'a> = Vec<&'a str>;

/// What a path ends in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum End {
    #[default]
    Section,
    Wait,
    Whom,
}

#[derive(Debug, Clone, Default)]
struct Time<'a> {
    end: End,
    tasks: BTreeSet<&'a str>,
    count: u64,
    /// Of these, with a wait; of sections only.
    waited: u64,
    spent_ns: u128,
}

impl Time<'_> {
    fn is_wait(&self) -> bool {
        self.end == End::Wait
    }
}

/// Time by path, a whole before its parts.
type Tree<'a> = BTreeMap<Path<'a>, Time<'a>>;

fn tree(recording: &Recording) -> Tree<'_> {
    let mut tree = Tree::new();
    for SectionTime { task, within, count, spent_ns, waited, .. } in &recording.sections {
        let path: Path<'_> = within.split(WITHIN).collect();
        add(&mut tree, path, End::Section, task, [*count, *spent_ns]).waited += waited;
    }
    let within = |wait: &&Wait| !wait.within.is_empty() && wait.kind != WaitKind::Idle;
    for wait in recording.waits.iter().filter(within) {
        let mut path: Path<'_> = wait.within.split(WITHIN).collect();
        for (part, end) in [(&wait.wait, End::Wait), (&wait.on, End::Whom)] {
            path.push(part);
            add(&mut tree, path.clone(), end, &wait.task, [wait.count, wait.spent_ns]);
        }
    }
    tree
}

fn add<'t, 'a>(
    tree: &'t mut Tree<'a>,
    path: Path<'a>,
    end: End,
    task: &'a str,
    [count, spent_ns]: [u64; 2],
) -> &'t mut Time<'a> {
    let time = tree.entry(path).or_default();
    time.end = end;
    time.tasks.insert(task);
    time.count += count;
    time.spent_ns += u128::from(spent_ns);
    time
}

fn site_ns(tree: &Tree<'_>, path: &[&str]) -> u128 {
    tree.get(&path[..1]).map_or(0, |site| site.spent_ns)
}

/// The paths that a table of these shows: what programs suffer from first, a whole before its parts, the
/// longest in any first.
fn shown<'a>(trees: &[Tree<'a>], all: bool) -> Vec<Path<'a>> {
    let paths: BTreeSet<&Path<'a>> = trees.iter().flat_map(BTreeMap::keys).collect();
    let most = |path: &[&str]| {
        let spent = |tree: &Tree<'a>| tree.get(path).map_or(0, |time| time.spent_ns);
        trees.iter().map(spent).max().unwrap_or(0)
    };
    let matters = |path: &[&str]| {
        let of = |tree: &Tree<'a>| {
            let spent = tree.get(path).map_or(0, |time| time.spent_ns);
            spent > 0 && spent as f64 >= SHARE_MIN * site_ns(tree, path) as f64
        };
        all || trees.iter().any(of)
    };
    // A sibling that took longer comes first, with all of its parts.
    let order = |path: &Path<'a>| -> Vec<(std::cmp::Reverse<u128>, &'a str)> {
        (1..=path.len()).map(|end| (std::cmp::Reverse(most(&path[..end])), path[end - 1])).collect()
    };
    let mut shown: Vec<Path<'a>> = paths.into_iter().filter(|path| matters(path)).cloned().collect();
    shown.sort_by_key(|path| (path[0] != STALL.0, order(path)));
    shown
}

/// Each path with the name of its row: a wait that was on one only shares its row.
fn rows<'a>(paths: Vec<Path<'a>>, is_wait: impl Fn(&[&str]) -> bool) -> Vec<(Path<'a>, String)> {
    let only_part = |whole: &[&str]| -> Option<&'a str> {
        let mut parts = paths.iter().filter(|path| path.len() > whole.len() && path.starts_with(whole));
        let first = parts.next().filter(|_| is_wait(whole))?;
        if parts.next().is_none() { first.last().copied() } else { None }
    };
    let row = |path: &Path<'a>| {
        let (&name, whole) = path.split_last()?;
        if !whole.is_empty() && only_part(whole).is_some() {
            return None;
        }
        Some((path.clone(), only_part(path).map_or_else(|| name.to_owned(), |on| format!("{name}: {on}"))))
    };
    paths.iter().filter_map(row).collect()
}

fn named(path: &Path<'_>, name: &str) -> Cell {
    Cell::part(&path[..path.len() - 1], name)
}

/// Whether a run's waits in sections are worth a table.
fn blocks(recording: &Recording) -> bool {
    let within = recording.waits.iter().filter(|wait| !wait.within.is_empty());
    within.map(|wait| u128::from(wait.spent_ns)).sum::<u128>() >= BLOCKED_MIN_NS
}

/// What allocation stalls came to, in a sentence; `None` where nobody knows.
fn sentence(recording: &Recording) -> Option<String> {
    if recording.sections.is_empty() {
        return None;
    }
    let tree = tree(recording);
    let lasted = |ns: u128| duration(ns as f64);
    let paused = tree.get(&vec![PAUSE]).map_or_else(String::new, |pause| {
        format!("; {} pauses before another try, {}", pause.count, lasted(pause.spent_ns))
    });
    let Some(stall) = tree.get(&vec![STALL.0]) else { return Some(format!("{}: none{paused}", STALL.1)) };
    let waits = || tree.iter().filter(|(path, time)| path[0] == STALL.0 && time.is_wait());
    let waited: u128 = waits().map(|(_, wait)| wait.spent_ns).sum();
    let tasks = match stall.tasks.len() {
        1 => stall.tasks.first().map_or_else(String::new, |&name| name.to_owned()),
        tasks => format!("{tasks} tasks"),
    };
    let mut text = format!("{}: {} of {tasks}, {} in all", STALL.1, stall.count, lasted(stall.spent_ns));
    if waited == 0 {
        text += ", none of it waiting";
    }
    if let Some((path, longest)) = waits().max_by_key(|(_, wait)| wait.spent_ns).filter(|_| waited > 0) {
        let inside = match path[..] {
            [_, shrinker, name] => format!("{name} inside the {shrinker}"),
            _ => path.last().copied().unwrap_or_default().to_owned(),
        };
        let part = share(waited, stall.spent_ns);
        text += &format!("; {} of them waited, {} ({part})", stall.waited, lasted(waited));
        text += &format!(", {} of that in {inside}", lasted(longest.spent_ns));
    }
    Some(text + &paused)
}

/// The section of a run; empty where nothing of it is known.
pub(crate) fn who_blocks(recording: &Recording, all: bool) -> Section {
    let Some(sentence) = sentence(recording).filter(|_| all || blocks(recording)) else {
        return Section::untitled();
    };
    let tree = tree(recording);
    let mut table =
        Table::new().texts(["who blocks on whom", "who"]).numbers(["times"]).amounts(["in all", "of it"]);
    let paths = shown(std::slice::from_ref(&tree), all);
    for (path, name) in rows(paths, |path| tree.get(path).is_some_and(Time::is_wait)) {
        let time = &tree[&path];
        table.push(row![
            named(&path, &name),
            who(&time.tasks),
            time.count,
            Cell::Time(time.spent_ns as f64),
            share(time.spent_ns, site_ns(&tree, &path)),
        ]);
    }
    Section::untitled().line(sentence).with(table)
}

/// A task by its name, several by what their names have in common.
pub(crate) fn who(tasks: &BTreeSet<&str>) -> String {
    let stems: BTreeSet<String> = tasks.iter().map(|task| without_number(task)).collect();
    match (tasks.first(), stems.first()) {
        (Some(&only), _) if tasks.len() == 1 => only.to_owned(),
        (_, Some(stem)) if stems.len() == 1 => format!("{stem} ({} tasks)", tasks.len()),
        _ => format!("{} tasks", tasks.len()),
    }
}

/// What allocation stalls came to in each group's first run, a line for each.
fn stall_lines(groups: &[Group<'_>]) -> Vec<String> {
    let line = |group: &Group<'_>| {
        let first = group.recordings.first()?;
        let told = sentence(first)?;
        let of = if group.recordings.len() > 1 { format!(" (seed {})", first.seed) } else { String::new() };
        Some(format!("{}{of}: {told}", group.label))
    };
    groups.iter().filter_map(line).collect()
}

/// Who blocks on whom, and what stalls came to; empty where nobody knows.
pub(crate) fn blocked(groups: &[Group<'_>], all: bool) -> Section {
    let table = blocked_table(groups, all);
    let lines = if table.is_empty() { Vec::new() } else { stall_lines(groups) };
    Section::untitled().with(table).lines_of(lines)
}

/// Time by path in each group, and how often tasks were in each site; empty where nobody knows, or nobody waits to
/// speak of unless `all` is asked for.
fn blocked_table(groups: &[Group<'_>], all: bool) -> Table {
    let recordings = || groups.iter().flat_map(|group| group.recordings.iter().copied());
    let any = all || recordings().any(blocks);
    let trees: Vec<Tree<'_>> = if any { recordings().map(tree).collect() } else { Vec::new() };
    let mut table = beside_each_other("who blocks on whom", Align::Right, groups);
    let modelled: Vec<bool> = groups.iter().map(is_modelled).collect();
    let mut push = |name: Cell, of: &dyn Fn(&Tree<'_>) -> f64, write: fn(f64) -> String| {
        let value = |recording: &Recording| (!recording.sections.is_empty()).then(|| of(&tree(recording)));
        let sides: Vec<Side> = groups.iter().map(|group| Side::of(group, value)).collect();
        let absent = absent(&sides, &modelled);
        let cell = |index: usize| sides[index].mean().map_or_else(|| absent[index].to_owned(), write);
        let mut cells = vec![name, cell(0).into()];
        for index in 1..sides.len() {
            cells.extend(row![cell(index), change_of(&sides[0], &sides[index], write)]);
        }
        table.push(cells);
    };
    let is_wait = |path: &[&str]| trees.iter().any(|tree| tree.get(path).is_some_and(Time::is_wait));
    for (path, name) in rows(shown(&trees, all), is_wait) {
        push(named(&path, &name), &|tree| tree.get(&path).map_or(0.0, |time| time.spent_ns as f64), duration);
        if path.len() == 1 {
            let times = format!("{name}, times");
            push(times.into(), &|tree| tree.get(&path).map_or(0.0, |time| time.count as f64), plain);
        }
    }
    table
}

/// For [`crate::to_json`].
pub(crate) fn sections_json(recording: &Recording) -> Vec<Value> {
    let section = |time: &SectionTime| {
        json!({
            "phase": time.phase,
            "task": time.task,
            "within": time.within,
            "count": time.count,
            "spent_seconds": seconds(time.spent_ns),
            "longest_seconds": seconds(time.longest_ns),
            "waited": time.waited,
        })
    };
    recording.sections.iter().map(section).collect()
}

/// For [`crate::to_csv`]: the path, the task, what of it, and the number.
pub(crate) fn sections_csv(recording: &Recording) -> Vec<(String, &str, &'static str, f64)> {
    let mut sums: BTreeMap<(String, &str), (u64, u128)> = BTreeMap::new();
    let mut add = |path: String, task, count, spent_ns: u64| {
        let (times, spent) = sums.entry((path, task)).or_default();
        *times += count;
        *spent += u128::from(spent_ns);
    };
    for time in &recording.sections {
        add(time.within.clone(), time.task.as_str(), time.count, time.spent_ns);
    }
    for wait in recording.waits.iter().filter(|wait| !wait.within.is_empty()) {
        let path = [wait.within.as_str(), &wait.wait, &wait.on].join(WITHIN);
        add(path, &wait.task, wait.count, wait.spent_ns);
    }
    let rows = sums.into_iter().flat_map(|((path, task), (times, spent))| {
        [(path.clone(), task, "times", times as f64), (path, task, "seconds", spent as f64 / 1e9)]
    });
    rows.collect()
}
