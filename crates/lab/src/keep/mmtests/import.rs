//! A folder of mmtests as recordings: one for each test of each iteration of each run.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use recording::Recording;

use super::logs::{self, Samples};
use crate::error::LabError;
use crate::keep::unpacked::whole;

/// What a recording calls where it comes from.
const BACKEND: &str = "mmtests";

/// What was read, and what the reader has to know of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The recordings, in the order of runs as mmtests has it, iterations and tests.
    pub recordings: Vec<Recording>,
    /// What was not read.
    pub warnings: Vec<String>,
}

/// Reads `folder`: `work/log`, or one run in it.
///
/// Samples keep the names that mmtests had for them in 2019; counters are those of the test, durations its `user`,
/// `system` and `elapsed` seconds. The seed of a recording is the number of its iteration.
///
/// # Errors
/// There is no run in it, or a file cannot be read or holds something else.
pub fn import(folder: &Path) -> Result<Imported, LabError> {
    let mut imported = Imported { recordings: Vec::new(), warnings: Vec::new() };
    let mut runs = if iterations(folder)?.is_empty() { folders_in(folder)? } else { vec![folder.to_owned()] };
    runs.retain(|run| iterations(run).is_ok_and(|iterations| !iterations.is_empty()));
    if runs.is_empty() {
        return Err(no_run(folder));
    }
    let mut started: Vec<(u64, PathBuf)> = Vec::new();
    for run in runs {
        started.push((started_at(&run)?, run));
    }
    started.sort();
    for (_, run) in started {
        // `.` has no name of its own.
        let named = run.canonicalize().unwrap_or_else(|_| run.clone());
        let name =
            named.file_name().map_or_else(|| "run".to_owned(), |name| name.to_string_lossy().into_owned());
        for (number, iteration) in iterations(&run)? {
            read_iteration(&name, number, &iteration, &mut imported)?;
        }
    }
    if imported.recordings.is_empty() {
        return Err(no_run(folder));
    }
    Ok(imported)
}

/// What a folder of runs is.
const RUNS: &str = "name `work/log` of mmtests, or the folder of one run in it";

fn no_run(folder: &Path) -> LabError {
    LabError::refused(format!("there is no run of mmtests in `{}`", folder.display()), RUNS)
}

fn unreadable(path: &Path, source: io::Error) -> LabError {
    LabError::Unreadable { path: path.to_owned(), source, hint: None }
}

/// That a file holds something else than mmtests writes.
fn malformed(path: &Path) -> impl FnOnce((usize, String)) -> LabError {
    let path = path.display().to_string();
    move |(line, problem)| LabError::Refused {
        message: format!("`{path}`, line {line}: {problem}"),
        hint: None,
    }
}

fn folders_in(folder: &Path) -> Result<Vec<PathBuf>, LabError> {
    let failed = |source| LabError::Unreadable { path: folder.to_owned(), source, hint: Some(RUNS) };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The iterations of a run, by their numbers.
fn iterations(run: &Path) -> Result<Vec<(u64, PathBuf)>, LabError> {
    let number = |path: &PathBuf| path.file_name()?.to_str()?.strip_prefix("iter-")?.parse::<u64>().ok();
    let mut found: Vec<(u64, PathBuf)> =
        folders_in(run)?.into_iter().filter_map(|path| Some((number(&path)?, path))).collect();
    found.sort();
    Ok(found)
}

/// When a run began, as its first iteration says; 0 where it does not.
fn started_at(run: &Path) -> Result<u64, LabError> {
    let Some((_, first)) = iterations(run)?.into_iter().next() else { return Ok(0) };
    let Some((_, text)) = read_file(&first.join("tests-timestamp"))? else { return Ok(0) };
    let start = text.lines().find_map(|line| line.strip_prefix("start :: "));
    Ok(start.and_then(|start| start.trim().parse().ok()).unwrap_or(0))
}

fn read_iteration(run: &str, number: u64, folder: &Path, imported: &mut Imported) -> Result<(), LabError> {
    let stamps = folder.join("tests-timestamp");
    let Some((path, text)) = read_file(&stamps)? else {
        let source = io::ErrorKind::NotFound.into();
        return Err(unreadable(&stamps, source));
    };
    let tests = logs::read_timestamps(&text).map_err(malformed(&path))?;
    let state = read_file(&folder.join("tests-sysstate"))?;
    for (test, [user, system, elapsed]) in tests {
        let mut recording = Recording::new(run, test.clone(), BACKEND, run, number);
        for (name, seconds) in
            [("user_seconds", user), ("system_seconds", system), ("elapsed_seconds", elapsed)]
        {
            recording.metrics.extend(seconds.map(|seconds| (name.to_owned(), seconds)));
        }
        recording.wall_ns =
            elapsed.filter(|seconds| *seconds >= 0.0).map(|seconds| (seconds * 1e9).round() as u64);
        if let Some((path, text)) = &state {
            recording.vmstat = logs::read_vmstat(text, &test).map_err(malformed(path))?;
        }
        recording.samples = read_samples(&test, &folder.join(&test).join("logs"))?;
        recording
            .notes
            .push(format!("imported from mmtests: run `{run}`, iteration {number}, test `{test}`"));
        if !logs::READ.contains(&test.as_str()) {
            let told = format!("samples of `{test}` are not read, only its durations and counters");
            if !imported.warnings.contains(&told) {
                imported.warnings.push(told);
            }
        }
        imported.recordings.push(recording);
    }
    Ok(())
}

fn read_samples(test: &str, folder: &Path) -> Result<Samples, LabError> {
    let mut samples = Samples::new();
    if !logs::READ.contains(&test) || !folder.is_dir() {
        return Ok(samples);
    }
    let failed = |source| unreadable(folder, source);
    let entries = fs::read_dir(folder).map_err(failed)?.collect::<io::Result<Vec<_>>>().map_err(failed)?;
    let plain = |name: String| name.strip_suffix(".gz").map_or(name.clone(), str::to_owned);
    let mut names: Vec<String> =
        entries.iter().filter_map(|entry| entry.file_name().into_string().ok()).map(plain).collect();
    names.sort_by_key(|name| (name.len(), name.clone())); // iteration 2 before 10
    names.dedup();
    for name in names {
        let Some((path, text)) = read_file(&folder.join(&name))? else { continue };
        logs::read(test, &name, &text, &mut samples).map_err(malformed(&path))?;
    }
    Ok(samples)
}

/// The text of a file, packed by gzip or not, and the path that it was found at; `None` where there is none.
fn read_file(path: &Path) -> Result<Option<(PathBuf, String)>, LabError> {
    let with = |ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let packed = with(".gz");
    let (path, bytes) = if packed.is_file() {
        let failed = |source| unreadable(&packed, source);
        let file = fs::File::open(&packed).map_err(failed)?;
        (packed.clone(), whole(MultiGzDecoder::new(file)).map_err(failed)?)
    } else if path.is_file() {
        let bytes = fs::read(path).map_err(|source| unreadable(path, source))?;
        (path.to_owned(), bytes)
    } else if with(".xz").is_file() {
        let message = format!("`{}` is packed by xz", with(".xz").display());
        return Err(LabError::refused(message, "unpack it with `unxz` first"));
    } else {
        return Ok(None);
    };
    // Names of devices and the like may be in any encoding; figures are not.
    Ok(Some((path, String::from_utf8_lossy(&bytes).into_owned())))
}
