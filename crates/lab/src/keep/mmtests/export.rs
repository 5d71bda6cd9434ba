//! Recordings as a folder of mmtests: a run for each group, an iteration for each of its recordings.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder};
use recording::Recording;
use recording::folder::check_new_folder;
use report::{Better, Group, Place, Rules};

use super::logs::{self, Log};
use crate::error::LabError;

/// Seconds between the starts of two runs: mmtests puts them in the order of these, and knows no simulated time.
const APART: u64 = 1_000_000;

/// Writes `groups` into the new folder `out`, for the scripts of that generation; the first group stays the baseline.
/// Returns what the reader has to know: what was left out, and which headings the scripts will spoil.
///
/// `better` tells the direction of samples, which decides what benchmark they go to.
///
/// # Errors
/// No samples have a place, `out` exists, or the system refuses; nothing is left behind then.
pub fn export(
    groups: &[Group<'_>],
    better: &dyn Fn(&str) -> Better,
    rules: Rules,
    out: &Path,
) -> Result<Vec<String>, LabError> {
    check_new_folder(out)?;
    let mut warnings = Vec::new();
    let mut files: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    let mut any_samples = false;
    for (number, group) in groups.iter().enumerate() {
        let name = name_of(&group.label, &names);
        if !name.contains('-') {
            warnings.push(format!(
                "mmtests cuts names at a `-` and has the heading of `{name}` wrong, which has none"
            ));
        }
        for (iteration, recording) in group.recordings.iter().enumerate() {
            let folder = PathBuf::from(&name).join(format!("iter-{iteration}"));
            let (places, left_out) = places_of(recording, better);
            any_samples |= !places.is_empty();
            for sample in left_out {
                let told = format!("`{sample}` is left out: mmtests has no benchmark with such samples");
                if !warnings.contains(&told) {
                    warnings.push(told);
                }
            }
            let begin = 1 + APART * number as u64;
            files.extend(
                iteration_files(recording, &places, rules, begin)
                    .into_iter()
                    .map(|(path, bytes)| (folder.join(path), bytes)),
            );
        }
        names.push(name);
    }
    if !any_samples {
        let workload = groups.iter().flat_map(|group| &group.recordings).next();
        let workload = workload.map_or_else(String::new, |recording| recording.workload.clone());
        return Err(LabError::refused(
            format!("mmtests has no benchmark with samples such as those of `{workload}`"),
            "it takes files per second, times of page faults, and other rates; `pagetide stats` shows all",
        ));
    }
    write_all(&files, out)?;
    Ok(warnings)
}

/// A folder's name from a label: no separators of paths, lists or words, and no other run's.
fn name_of(label: &str, taken: &[String]) -> String {
    let plain: String = label
        .chars()
        .map(|c| if matches!(c, '/' | ',' | '\'' | '"') || c.is_whitespace() { '-' } else { c })
        .collect();
    let mut name = plain.clone();
    for number in 2.. {
        if !taken.contains(&name) {
            break;
        }
        name = format!("{plain}-{number}");
    }
    name
}

type Placed = Vec<(Place, Vec<f64>)>;

/// Samples with their places, and the names of those that have none.
fn places_of(recording: &Recording, better: &dyn Fn(&str) -> Better) -> (Placed, Vec<String>) {
    let (mut places, mut left_out) = (Vec::new(), Vec::new());
    for (name, samples) in &recording.samples {
        match Place::of(name, better(name)) {
            Some(place) => places.push((place, samples.clone())),
            None => left_out.push(name.clone()),
        }
    }
    (places, left_out)
}

fn iteration_files(
    recording: &Recording,
    places: &Placed,
    rules: Rules,
    begin: u64,
) -> Vec<(PathBuf, Vec<u8>)> {
    let mut by_benchmark: BTreeMap<&str, Placed> = BTreeMap::new();
    for (place, samples) in places {
        by_benchmark.entry(place.benchmark(rules)).or_default().push((place.clone(), samples.clone()));
    }
    let metric = |name: &str| recording.metrics.get(name).copied();
    let elapsed = metric("elapsed_seconds").or_else(|| recording.duration_ns().map(|ns| ns as f64 / 1e9));
    let told = |seconds: Option<f64>| seconds.map_or_else(|| "NaN".to_owned(), |seconds| seconds.to_string());
    let [user, system, elapsed] = [metric("user_seconds"), metric("system_seconds"), elapsed].map(told);
    let end = begin + recording.duration_ns().unwrap_or(0).div_ceil(1_000_000_000);
    let (mut stamps, mut state, mut activity) =
        (format!("start :: {begin}\n"), format!("start :: {begin}\n"), String::new());
    activity += &format!("{begin} run-mmtests: Start\n{begin} run-mmtests: Iteration 1 start\n");
    let mut files = Vec::new();
    for (benchmark, places) in &by_benchmark {
        let before = format!("test begin :: {benchmark} {begin}\n");
        let after = format!(
            "time :: {benchmark} {user} user {system} system {elapsed} elapsed\n\
             test exit :: {benchmark} 0\ntest end :: {benchmark} {end}\n"
        );
        stamps += &format!("{before}{after}");
        let [vmstat_before, vmstat_after] = [false, true].map(|at_end| logs::vmstat(recording, at_end));
        state += &format!(
            "{before}file start :: /proc/vmstat\n{vmstat_before}file start :: /proc/zoneinfo\n\
             file end :: /proc/vmstat\n{vmstat_after}file end :: /proc/zoneinfo\n{after}"
        );
        activity += &format!("{begin} run-mmtests: begin {benchmark}\n{end} run-mmtests: end {benchmark}\n");
        let folder = PathBuf::from(benchmark).join("logs");
        for Log { name, text, packed } in logs::written(places, rules) {
            let (name, bytes) =
                if packed { (format!("{name}.gz"), gzip(&text)) } else { (name, text.into_bytes()) };
            files.push((folder.join(name), bytes));
        }
    }
    let finish = format!("finish :: {end}\n");
    activity += &format!("{end} run-mmtests: Iteration 1 end\n{end} run-mmtests: End\n");
    files.push(("tests-timestamp".into(), (stamps + &finish).into_bytes()));
    files.push(("tests-sysstate.gz".into(), gzip(&(state + &finish))));
    files.push(("tests-activity".into(), activity.into_bytes()));
    files
}

/// Without a time, so that the same text gives the same bytes.
fn gzip(text: &str) -> Vec<u8> {
    let mut packed = GzBuilder::new().mtime(0).write(Vec::new(), Compression::default());
    packed.write_all(text.as_bytes()).expect("memory takes every write");
    packed.finish().expect("memory takes every write")
}

/// Into a hidden folder beside `out`, which is renamed when all is there.
fn write_all(files: &[(PathBuf, Vec<u8>)], out: &Path) -> Result<(), LabError> {
    let unwritable = |path: &Path| {
        let what = format!("`{}`", path.display());
        move |source| LabError::Unwritable { what, source }
    };
    let parent = out.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(unwritable(parent))?;
    let partial =
        tempfile::Builder::new().prefix(".mmtests-").tempdir_in(parent).map_err(unwritable(parent))?;
    let whole = partial.path().join("log");
    for (name, bytes) in files {
        let path = whole.join(name);
        let folder = path.parent().expect("a file is in a folder");
        fs::create_dir_all(folder).map_err(unwritable(folder))?;
        fs::write(&path, bytes).map_err(unwritable(&path))?;
    }
    fs::rename(&whole, out).map_err(unwritable(out))
}
