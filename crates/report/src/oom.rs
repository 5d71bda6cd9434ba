//! Runs that the OOM killer ended: said first, with what was killed, when, and the memory then.
//!
//! Such a run has counters, phases and series up to that moment, and no metrics. Next:
//! [`recording::OomKill`].

use recording::{OomKill, Recording};
use serde_json::{Value, json};

use crate::Group;
use crate::number::duration;
use crate::table::clean;

/// `OOM-killed after 3.2 s`; `None` for a run that its workload ended.
pub(crate) fn oom_killed(recording: &Recording) -> Option<String> {
    let kill = recording.ended_by()?;
    Some(format!("OOM-killed after {}", duration(kill.at_ns as f64)))
}

/// The same for the runs of a group: how many of several, and when the first of them.
pub(crate) fn group_oom_killed(group: &Group<'_>) -> Option<String> {
    let killed: Vec<&Recording> =
        group.recordings.iter().copied().filter(|recording| recording.ended_by().is_some()).collect();
    let first = killed.iter().min_by_key(|recording| recording.ended_by().map(|kill| kill.at_ns))?;
    let text = oom_killed(first)?;
    match (killed.len(), group.recordings.len()) {
        (1, 1) => Some(text),
        (1, all) => Some(format!("1 of {all} runs {text}")),
        (some, all) => Some(format!("{some} of {all} runs {text} or later")),
    }
}

/// One line for each group of which runs were killed; nothing where none was.
pub(crate) fn oom_lines(groups: &[Group<'_>]) -> String {
    let line = |group: &Group<'_>| {
        let killed = group_oom_killed(group)?;
        let kill = group.recordings.iter().find_map(|recording| recording.ended_by())?;
        Some(clean(&format!("{}: {killed} ({})", group.label, whom(kill))) + "\n")
    };
    groups.iter().filter_map(line).collect()
}

/// Lines of text as paragraphs of their own.
pub(crate) fn in_markdown(lines: &str) -> String {
    lines.lines().map(|line| format!("**{line}**\n\n")).collect()
}

/// What was killed, and the memory then.
pub(crate) fn oom_section(recording: &Recording) -> String {
    let Some(kill) = recording.ended_by() else { return String::new() };
    let mut text = format!("OOM-killed after {}: {}\n", duration(kill.at_ns as f64), whom(kill));
    text += "the workload did not end, so there are no metrics; counters are up to then\n";
    let more = recording.oom_kills.len() - 1;
    if more > 0 {
        text += &format!("killed after it: {more} more, see `--format json`\n");
    }
    if !kill.memory.is_empty() {
        text += "memory then, as the kernel prints it\n";
    }
    for line in &kill.memory {
        text += &format!(" {}\n", clean(line));
    }
    text
}

fn whom(kill: &OomKill) -> String {
    let held = kill.anon_pages.map_or(String::new(), |pages| format!(" with {pages} anonymous pages"));
    let cgroup = if kill.cgroup.is_empty() { String::new() } else { format!(" in cgroup `{}`", kill.cgroup) };
    let why = if kill.by_limit { "a cgroup's limit was reached" } else { "the machine was out of memory" };
    clean(&format!("`{}`{cgroup}{held}; {why}", kill.task))
}

/// The kills of a run as `--format json` has them.
pub(crate) fn oom_json(recording: &Recording) -> Vec<Value> {
    let kill = |kill: &OomKill| {
        json!({
            "at_seconds": kill.at_ns as f64 / 1e9,
            "task": kill.task,
            "cgroup": kill.cgroup,
            "by_limit": kill.by_limit,
            "anon_pages": kill.anon_pages,
            "memory": kill.memory,
        })
    };
    recording.oom_kills.iter().map(kill).collect()
}
