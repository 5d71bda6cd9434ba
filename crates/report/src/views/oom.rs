//! What the OOM killer took: said first, with what was killed, when, the memory then, and why reclaim gave up.
//!
//! A run that ended by it has counters, phases and series up to that moment, and no metrics; one whose workload
//! went on has all. Next: [`recording::OomKill`].

use recording::{OomKill, Recording};
use serde_json::{Value, json};

use crate::document::Section;
use crate::document::number::duration;
use crate::judge::Group;

/// `OOM-killed after 3.2 s`; `None` for a run that its workload ended.
pub(crate) fn oom_killed(recording: &Recording) -> Option<String> {
    recording.ended_by().map(ended_how)
}

fn ended_how(kill: &OomKill) -> String {
    let how = if kill.panicked { "kernel panic" } else { "OOM-killed" };
    format!("{how} after {}", duration(kill.at_ns as f64))
}

/// Kills that the workload of a run survived: `3 OOM kills`.
fn survived(recording: &Recording) -> Option<String> {
    match recording.oom_kills.len() {
        _ if recording.ended_by().is_some() => None,
        0 => None,
        1 => Some("1 OOM kill".to_owned()),
        many => Some(format!("{many} OOM kills")),
    }
}

/// What the first line of a run says: how it ended, or that it went on.
pub(crate) fn in_title(recording: &Recording) -> Option<String> {
    oom_killed(recording).or_else(|| survived(recording))
}

/// How the runs of a group ended, for a cell of a table.
pub(crate) fn group_ended(group: &Group<'_>) -> String {
    let killed = group.recordings.iter().filter(|recording| recording.ended_by().is_some()).count();
    let survivors = group.recordings.iter().filter_map(|recording| survived(recording));
    match (killed, group.recordings[..].first().and_then(|first| oom_killed(first))) {
        (0, _) => match (&*group.recordings, survivors.count()) {
            (_, 0) => "by itself".to_owned(),
            ([one], _) => format!("by itself, {}", survived(one).unwrap_or_default()),
            (runs, some) => format!("by itself, {some} of {} with OOM kills", runs.len()),
        },
        (1, Some(killed)) if group.recordings.len() == 1 => killed,
        (some, _) => format!("{some} of {} OOM-killed", group.recordings.len()),
    }
}

/// One line for each group of which runs were killed; nothing where none was.
pub(crate) fn oom_lines(groups: &[Group<'_>]) -> Vec<String> {
    let line = |group: &Group<'_>| {
        if group.recordings.iter().all(|recording| recording.ended_by().is_none()) {
            return survivors_line(group);
        }
        let mut killed: Vec<&Recording> =
            group.recordings.iter().copied().filter(|recording| recording.ended_by().is_some()).collect();
        killed.sort_by_key(|recording| recording.ended_by().map(|kill| kill.at_ns));
        let (first, last) = (*killed.first()?, *killed.last()?);
        let mut text = oom_killed(first)?;
        if killed.len() > 1 {
            text += &format!(" to {}", duration(last.ended_by()?.at_ns as f64));
        }
        if group.recordings.len() > 1 {
            text = format!("{} of {} runs {text}", killed.len(), group.recordings.len());
        }
        Some(format!("{}: {text}: {}", group.label, whom(first.ended_by()?)))
    };
    groups.iter().filter_map(line).collect()
}

/// Which runs of a group had kills that their workloads survived.
fn survivors_line(group: &Group<'_>) -> Option<String> {
    let survivors: Vec<&Recording> =
        group.recordings.iter().copied().filter(|recording| survived(recording).is_some()).collect();
    let mut first: Vec<&OomKill> =
        survivors.iter().filter_map(|recording| recording.oom_kills.first()).collect();
    first.sort_by_key(|kill| kill.at_ns);
    let (earliest, latest) = (*first.first()?, *first.last()?);
    let mut text = format!("first OOM kill after {}", duration(earliest.at_ns as f64));
    if survivors.len() > 1 {
        text += &format!(" to {}", duration(latest.at_ns as f64));
    }
    if group.recordings.len() > 1 {
        text = format!("{} of {} runs: {text}", survivors.len(), group.recordings.len());
    }
    Some(format!("{}: {text}: {}; the workload went on", group.label, whom(earliest)))
}

/// What was killed, why reclaim gave up, and the memory then.
pub(crate) fn oom_section(recording: &Recording) -> Section {
    let Some(first) = recording.oom_kills.first() else { return Section::untitled() };
    let kill = recording.ended_by().unwrap_or(first);
    let section = Section::untitled().line(format!("{}: {}", ended_how(kill), whom(kill))).line(
        match recording.ended_by() {
            Some(_) => "the workload did not end, so there are no metrics; counters are up to then",
            None => "the workload went on",
        },
    );
    let others = recording.oom_kills.len() - 1;
    let when = if kill.panicked { "before" } else { "after" };
    let others = (others > 0).then(|| format!("killed {when} it: {others} more, see `--format json`"));
    let heading = |heading: &'static str, lines: &[String]| (!lines.is_empty()).then_some(heading);
    let indented = |line: &String| format!(" {line}");
    section
        .lines_of(others)
        .lines_of(heading("why reclaim gave up", &kill.why))
        .lines_of(kill.why.iter().map(indented))
        .lines_of(heading("memory then, as the kernel prints it", &kill.memory))
        .lines(kill.memory.iter().map(indented))
}

fn whom(kill: &OomKill) -> String {
    if kill.panicked {
        return format!(
            "`{}` was out of memory, and nobody was left to kill: System is deadlocked on memory",
            kill.task
        );
    }
    let held = kill.anon_pages.map_or(String::new(), |pages| format!(" with {pages} anonymous pages"));
    let cgroup = if kill.cgroup.is_empty() { String::new() } else { format!(" in cgroup `{}`", kill.cgroup) };
    let why = if kill.by_limit { "a cgroup's limit was reached" } else { "the machine was out of memory" };
    format!("`{}`{cgroup}{held}; {why}", kill.task)
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
            "panicked": kill.panicked,
            "ended_run": recording.ended_by() == Some(kill),
            "why": kill.why,
            "gauges": kill.gauges,
            "memory": kill.memory,
        })
    };
    recording.oom_kills.iter().map(kill).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;
    use crate::judge::view::View;
    use crate::tests::text_of;
    use crate::views::{compare, metrics, run as run_view};

    fn ended(label: &str, seed: u64) -> Recording {
        let mut recording = Recording::new(label, "huge-faults", "sim", "linux-6.12", seed);
        recording.metrics.insert("percentage_huge".into(), 15.0);
        recording.vmstat.insert("pgscan_direct".into(), 320);
        recording.simulated_ns = 7_402_000_000;
        recording
    }

    fn killed(label: &str, seed: u64) -> Recording {
        let kill = OomKill {
            at_ns: 3_214_000_000 + seed * 100_000_000,
            task: "faulter0".into(),
            cgroup: "P/B".into(),
            by_limit: true,
            anon_pages: Some(12_214),
            memory: vec!["memory: usage 1024kB, limit 1024kB, failcnt 7".into()],
            why: vec!["5 runs of limit reclaim in a row freed nothing".into()],
            ..OomKill::default()
        };
        let mut recording = ended(label, seed);
        recording.metrics.clear();
        recording.simulated_ns = kill.at_ns;
        recording.killed(vec![kill])
    }

    fn group<'a>(label: &str, recordings: &'a [Recording]) -> Group<'a> {
        let recordings = recordings.iter().collect();
        Group { label: label.to_owned(), command: format!("pagetide run {label}"), recordings }
    }

    /// It was an error without a recording: hours of a run were lost, and what killed it with them.
    #[test]
    fn a_run_that_was_killed_says_so_in_its_first_line_and_shows_the_memory_then() {
        insta::assert_snapshot!(run_view(&killed("linux-6.12", 0), None, &View::default()).render(Format::Text, 100), @"
        huge-faults on linux-6.12 (sim, seed 0), OOM-killed after 3.214 s, 3.214 s simulated

        OOM-killed after 3.214 s: `faulter0` in cgroup `P/B` with 12214 anonymous pages; a cgroup's limit
          was reached
        the workload did not end, so there are no metrics; counters are up to then
        why reclaim gave up
         5 runs of limit reclaim in a row freed nothing
        memory then, as the kernel prints it
         memory: usage 1024kB, limit 1024kB, failcnt 7

         counter (/proc/vmstat)  total
         pgscan_direct             320
        ");
    }

    /// The last run of reclaim was one line of 240 columns.
    #[test]
    fn what_is_said_of_a_kill_stays_within_the_terminal_and_what_the_kernel_says_is_as_it_is() {
        let mut run = killed("linux-6.12", 0);
        run.oom_kills[0].why = vec!["the last run, by priority: ".to_owned() + &"12: 0/0, 0; ".repeat(9)];
        run.oom_kills[0].memory = vec!["Node 0 DMA free:15360kB".repeat(4)];
        let text = text_of(oom_section(&run), 80);
        let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 80).collect();
        assert_eq!(wide, [format!(" {}", run.oom_kills[0].memory[0])], "{text}");
        assert!(text.contains("\n   12: 0/0"), "what goes on is further in: {text}");
    }

    #[test]
    fn a_killed_run_has_no_metrics_in_any_format_and_no_zeros_either() {
        let run = killed("linux-6.12", 0);
        let json: Value =
            serde_json::from_str(&metrics(&[&run], &View::default()).unwrap().render(Format::Json, 80))
                .unwrap();
        let kill = &json["runs"][0]["oom_kills"][0];
        assert_eq!((&kill["task"], &kill["at_seconds"]), (&"faulter0".into(), &3.214.into()));
        assert_eq!(json["runs"][0]["metrics"], json!({}));
        let csv = metrics(&[&run], &View::default()).unwrap().render(Format::Csv, 80);
        assert!(csv.contains(",oom_kill,faulter0,0,3.214\n") && !csv.contains(",metric,"), "{csv}");
    }

    /// The creators of small files may be killed and their parent go on to tell how many there were.
    #[test]
    fn a_run_whose_workload_survived_keeps_its_metrics_and_tells_its_kills_all_the_same() {
        let went_on = |label, seed| {
            let Recording { oom_kills, .. } = killed(label, seed);
            ended(label, seed).killed(oom_kills)
        };
        let run = went_on("linux-6.12", 0);
        insta::assert_snapshot!(run_view(&run, None, &View::default()).render(Format::Text, 100), @"
        huge-faults on linux-6.12 (sim, seed 0), 1 OOM kill, 7.402 s simulated

        OOM-killed after 3.214 s: `faulter0` in cgroup `P/B` with 12214 anonymous pages; a cgroup's limit
          was reached
        the workload went on
        why reclaim gave up
         5 runs of limit reclaim in a row freed nothing
        memory then, as the kernel prints it
         memory: usage 1024kB, limit 1024kB, failcnt 7

         metric           value  unit
         percentage_huge     15

         counter (/proc/vmstat)  total
         pgscan_direct             320
        ");
        let json: Value =
            serde_json::from_str(&metrics(&[&run], &View::default()).unwrap().render(Format::Json, 80))
                .unwrap();
        let kill = &json["runs"][0]["oom_kills"][0];
        assert_eq!(
            (&kill["ended_run"], &kill["why"][0]),
            (&false.into(), &run.oom_kills[0].why[0].clone().into())
        );
        assert_eq!(json["runs"][0]["metrics"]["percentage_huge"], 15.0);
        let csv = metrics(&[&run], &View::default()).unwrap().render(Format::Csv, 80);
        assert!(
            csv.contains(",oom_kill,faulter0,0,3.214\n") && csv.contains(",metric,percentage_huge,"),
            "{csv}"
        );
        let (base, new) = ([ended("base", 0)], [went_on("new", 0), went_on("new", 1)]);
        insta::assert_snapshot!(compare(&[group("base", &base), group("new", &new)], &View::default()).unwrap().render(Format::Text, 100), @"
        huge-faults: base against new
        new: 2 of 2 runs: first OOM kill after 3.214 s to 3.314 s: `faulter0` in cgroup `P/B` with 12214
          anonymous pages; a cgroup's limit was reached; the workload went on

         metric           unit       base                               new  change  verdict
         how it ended           by itself  by itself, 2 of 2 with OOM kills
         percentage_huge               15                                15     0 %  one run
        a side has one run: how much repeats vary is not known; make more runs for a verdict

        what the runs say: no counter moved by a tenth or more
        all 1 counters with `--all`

        made by
          base: pagetide run base
          new: pagetide run new
        ");
    }

    #[test]
    fn a_panic_where_nobody_was_left_to_kill_ends_a_run_whatever_was_killed_before() {
        let mut run = killed("linux-6.12", 0);
        run.oom_kills.push(OomKill {
            at_ns: 3_300_000_000,
            task: "kthreadd".into(),
            panicked: true,
            ..OomKill::default()
        });
        insta::assert_snapshot!(run_view(&run, None, &View::default()).render(Format::Text, 100), @"
        huge-faults on linux-6.12 (sim, seed 0), kernel panic after 3.3 s, 3.214 s simulated

        kernel panic after 3.3 s: `kthreadd` was out of memory, and nobody was left to kill: System is
          deadlocked on memory
        the workload did not end, so there are no metrics; counters are up to then
        killed before it: 1 more, see `--format json`

         counter (/proc/vmstat)  total
         pgscan_direct             320
        ");
    }

    #[test]
    fn a_comparison_and_a_sweep_say_which_runs_were_killed() {
        let base = [ended("base", 0), ended("base", 1)];
        let new = [killed("new", 0), killed("new", 1)];
        let text = compare(&[group("base", &base), group("new", &new)], &View::default())
            .unwrap()
            .render(Format::Text, 100);
        insta::assert_snapshot!(text, @"
        huge-faults: base against new
        new: 2 of 2 runs OOM-killed after 3.214 s to 3.314 s: `faulter0` in cgroup `P/B` with 12214
          anonymous pages; a cgroup's limit was reached

         metric           unit       base                new  change  verdict
         how it ended           by itself  2 of 2 OOM-killed
         percentage_huge               15               none       -  -

        what the runs say: no counter moved by a tenth or more
        all 1 counters with `--all`

        made by
          base: pagetide run base
          new: pagetide run new
        ");
        insta::assert_snapshot!(metrics(&[&base[0], &new[0]], &View::default()).unwrap().render(Format::Text, 100), @r"
huge-faults

 run                            percentage_huge
 base                                        15
 new: OOM-killed after 3.214 s                -
");
    }
}
