//! The paragraph that a person would say first: how it ended, what was waited for and how much of that for
//! nothing, who reclaimed, what came back.
//!
//! Each sentence stands on figures of the recording; what the recording does not tell is said or left out,
//! never assumed. Next: the other files of this folder, of which each shows its own evidence.

use recording::Recording;

use super::digest::Digest;
use super::protection;
use super::stalls::{self, Imposed};
use super::words::{listed, mib, so_often};
use crate::document::number::duration;
use crate::views::oom::oom_killed;
use crate::views::run::sum;
use crate::views::waits::share;

/// What is less of all waiting than this is not worth a word at first.
const SHARE_MIN: f64 = 0.05;

/// The sentences, most telling first.
pub(super) fn sentences(recording: &Recording, events: Option<&Digest>) -> Vec<String> {
    let mut sentences = Vec::new();
    sentences.extend(killed(recording));
    sentences.extend(for_nothing(recording));
    sentences.extend(waited_most(recording));
    sentences.extend(reclaimed(recording));
    sentences.extend(refaulted(recording));
    sentences.extend(protection::sentences(recording, events));
    sentences
}

/// What the OOM killer did.
fn killed(recording: &Recording) -> Option<String> {
    if let Some(killed) = oom_killed(recording) {
        return Some(format!("The run was {killed}: see below."));
    }
    let first = recording.oom_kills.first()?;
    let times = match recording.oom_kills.len() {
        1 => String::new(),
        kills => format!("{}, first ", so_often(kills as u64)),
    };
    let at = duration(first.at_ns as f64);
    Some(format!("The OOM killer struck {times}after {at}, and the workload went on: see below."))
}

fn lasted(ns: u128) -> String {
    duration(ns as f64)
}

/// How long tasks were in waits that nothing could end.
fn for_nothing(recording: &Recording) -> Vec<String> {
    let Some(imposed) = stalls::imposed(recording) else {
        return vec!["Whether anybody waited for nothing this recording does not tell.".to_owned()];
    };
    let Imposed { spent_ns, futile_ns, unknown_ns } = imposed;
    let of_all = format!("of {} that the allocator and reclaim made tasks wait", lasted(spent_ns));
    match (spent_ns, futile_ns, unknown_ns) {
        (0, ..) if reclaims_itself(recording) => {
            // What they wait for in there is in `stalls`: a disk, or that others drain lists.
            vec!["No task was throttled in the allocator or in reclaim: what they cost tasks is work, their own or \
                  that of others.".to_owned()]
        }
        (0, ..) => vec!["Neither the allocator nor reclaim made anybody wait.".to_owned()],
        (_, 0, 0) => vec![format!("No task waited for what could not come: {of_all}, none was for nothing.")],
        (_, 0, _) => vec![format!(
            "How long tasks were in waits that nothing could end is not known for {} {of_all}, and none is \
             known to have been for nothing.",
            lasted(unknown_ns)
        )],
        _ => {
            let most = futile_ns + unknown_ns;
            let at_most = match unknown_ns {
                0 => String::new(),
                _ => format!(" at least, and {} at most,", lasted(most)),
            };
            let part = match (share(futile_ns, spent_ns), share(most, spent_ns)) {
                (least, most) if least == most => least,
                (least, most) => format!("{least} to {most}"),
            };
            let first = format!(
                "Tasks spent {}{at_most} in waits that nothing could end: {part} {of_all}.",
                lasted(futile_ns)
            );
            std::iter::once(first).chain(who_waited_for_nothing(recording)).collect()
        }
    }
}

/// Whether tasks had to reclaim, for themselves or for their cgroup.
fn reclaims_itself(recording: &Recording) -> bool {
    stalls_of(recording) > 0 || limit_reclaim(recording).is_some()
}

fn stalls_of(recording: &Recording) -> u64 {
    sum(&recording.vmstat, "allocstall").map_or(0, |count| count as u64)
}

fn who_waited_for_nothing(recording: &Recording) -> Option<String> {
    let futile = stalls::futile(recording);
    let (who, wait, sum) = futile.first()?;
    let times = so_often(u64::try_from(sum.count).unwrap_or(u64::MAX));
    let phase = match stalls::phases_of_futile(recording)[..] {
        [phase] => format!(" in phase `{phase}`"),
        _ => String::new(),
    };
    let each = duration(sum.spent_ns as f64 / sum.count.max(1) as f64);
    let more = match futile.len() - 1 {
        0 => String::new(),
        1 => "; another kind is below".to_owned(),
        more => format!("; {more} other kinds are below"),
    };
    Some(format!(
        "{}{phase}: {times} in `{wait}` until its timeout, {each} each, while nothing was under way \
         that could have woken them{more}.",
        who_did(who)
    ))
}

/// What most of the waiting was for, whoever was to blame.
fn waited_most(recording: &Recording) -> Option<String> {
    let (longest, whole) = stalls::longest(recording);
    if whole == 0 {
        return None;
    }
    let telling = longest.iter().filter(|(_, _, sum)| sum.spent_ns as f64 >= SHARE_MIN * whole as f64);
    let told: Vec<String> = telling
        .take(3)
        .map(|(who, wait, sum)| format!("{} of {} in `{wait}`", lasted(sum.spent_ns), in_words(who)))
        .collect();
    Some(format!("All waiting of all tasks, disks included, was {}: {}.", lasted(whole), listed(&told)))
}

/// `reader* (16 tasks)` as a person says it: 16 tasks `reader*`.
fn in_words(who: &str) -> String {
    match who.strip_suffix(')').and_then(|who| who.split_once(" (")) {
        Some((name, count)) => format!("{count} `{name}`"),
        None if who.ends_with(" tasks") => who.to_owned(),
        None => format!("`{who}`"),
    }
}

/// The same as the beginning of a sentence that says who it was.
fn who_did(who: &str) -> String {
    let told = in_words(who);
    match told.starts_with(|first: char| first.is_ascii_digit()) {
        true => format!("They were {told}"),
        false => format!("It was {told}"),
    }
}

/// Who freed how much, and what it cost those who had to do it themselves.
fn reclaimed(recording: &Recording) -> Option<String> {
    let of = |key: &str| sum(&recording.vmstat, key).map_or(0, |count| count as u64);
    sum(&recording.vmstat, "pgsteal_kswapd")?;
    let (kswapd, direct) = (of("pgsteal_kswapd"), of("pgsteal_direct"));
    let (stalls, limits) = (stalls_in_words(recording), limit_reclaim(recording));
    let mut text = match (kswapd, direct) {
        (0, 0) => match (&stalls, &limits) {
            (Some(stalls), _) => format!("Reclaim freed no page of the LRU lists, {stalls}"),
            (None, Some(_)) => "The machine as a whole reclaimed nothing".to_owned(),
            (None, None) => return Some("No page was reclaimed.".to_owned()),
        },
        (_, 0) => match &stalls {
            Some(stalls) => {
                format!("kswapd reclaimed {kswapd} pages ({}), tasks themselves none {stalls}", mib(kswapd))
            }
            None => {
                format!("kswapd reclaimed {kswapd} pages ({}), and no task had to for itself", mib(kswapd))
            }
        },
        _ => {
            let all = kswapd + direct;
            let part = share(u128::from(direct), u128::from(all));
            let stalls = stalls.map_or_else(String::new, |stalls| format!(" {stalls}"));
            format!("Reclaim freed {all} pages ({}), {part} of them by tasks themselves{stalls}", mib(all))
        }
    };
    if kswapd + direct == 0
        && let Some(objects) = Some(of("slabs_scanned")).filter(|objects| *objects > 0)
    {
        text += &format!("; its shrinkers looked at {objects} slab objects");
    }
    Some(text + &limits.unwrap_or_default() + ".")
}

/// How often tasks had to reclaim for themselves, and what that took: their runs of reclaim, and apart from them the
/// pauses between two.
fn stalls_in_words(recording: &Recording) -> Option<String> {
    let stalls = stalls_of(recording);
    let mut text = match stalls {
        0 => return None,
        1 => "in 1 allocation stall".to_owned(),
        _ => format!("in {stalls} allocation stalls"),
    };
    let spent = |name| in_section(recording, name).map(|time| time.spent_ns).sum::<u64>();
    let (lasted, paused) = (spent("allocation stall"), spent("allocation pause"));
    if lasted > 0 {
        text += &format!(" of {} altogether", duration(lasted as f64));
    }
    if paused > 0 {
        text += &format!(" and pauses between them of {}", duration(paused as f64));
    }
    Some(text)
}

fn in_section<'a>(
    recording: &'a Recording,
    name: &'a str,
) -> impl Iterator<Item = &'a recording::SectionTime> + 'a {
    recording.sections.iter().filter(move |time| time.within == name)
}

/// What cgroups had to reclaim of their own: how often and for how long where sections tell it, else how much.
fn limit_reclaim(recording: &Recording) -> Option<String> {
    let count: u64 = in_section(recording, "limit reclaim").map(|time| time.count).sum();
    let spent: u64 = in_section(recording, "limit reclaim").map(|time| time.spent_ns).sum();
    match (count, of_cgroups(recording)) {
        (0, 0) => None,
        (0, pages) => Some(format!("; cgroups reclaimed {pages} pages ({}) of their own", mib(pages))),
        _ => {
            let spent = duration(spent as f64);
            Some(format!("; cgroups at their limit reclaimed {count} times, {spent} altogether"))
        }
    }
}

/// Pages that were reclaimed within cgroups, and that the counters of the machine have by kind of page but not by
/// reclaimer (`cgroup_reclaim`). Before 5.8 it has none by kind; then those of the topmost cgroups stand in.
fn of_cgroups(recording: &Recording) -> u64 {
    let of = |keys: &[&str]| keys.iter().filter_map(|key| sum(&recording.vmstat, key)).reduce(|a, b| a + b);
    let of_tops = || {
        let tops = recording.memcg.iter().filter(|(path, _)| !path.is_empty() && !path.contains('/'));
        tops.filter_map(|(_, stats)| stats.get("pgsteal")).sum::<u64>() as f64
    };
    let all = of(&["pgsteal_file", "pgsteal_anon"]).unwrap_or_else(of_tops);
    let told = of(&["pgsteal_kswapd", "pgsteal_direct", "pgsteal_khugepaged", "pgsteal_proactive"]);
    (all - told.unwrap_or(0.0)).max(0.0) as u64
}

/// How many pages came back. Without shadows of evicted pages, as before 3.15, nobody can know.
fn refaulted(recording: &Recording) -> Option<String> {
    let of = |name: &str| recording.vmstat.get(name).copied().unwrap_or(0);
    let came_back = of("workingset_refault_file") + of("workingset_refault_anon") + of("workingset_refault");
    let evicted = sum(&recording.vmstat, "pgsteal_kswapd").unwrap_or(0.0)
        + sum(&recording.vmstat, "pgsteal_direct").unwrap_or(0.0)
        + of_cgroups(recording) as f64;
    match came_back {
        0 => None,
        _ if evicted < 1.0 => Some(format!("{came_back} evicted pages were read again.")),
        _ => {
            let part = share(u128::from(came_back), evicted as u128);
            Some(format!("{came_back} evicted pages were asked for again, {part} of what was reclaimed."))
        }
    }
}
