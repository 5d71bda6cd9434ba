//! Sizes held to real programs: `cargo xtask sizes [PROGRAM...]`, an hour for all of them on a host with nothing else
//! to do.
//!
//! A program is a script of `data/sizes`, which makes its data (`prepare`) and runs (`run`). It is captured, sized by
//! the model, and checked with itself: the least real limit that is at most 10 % slower. What was found is kept in
//! `data/sizes.toml`, of which `docs/size.md` shows the table. Packages that a script names are installed where root
//! may; a program that cannot be had is skipped aloud.
//!
//! Left out: other targets, swap, and programs that need a network.

use std::error::Error;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use lab::size::{SizeControl, SizeRequest, VERIFY_DEFAULT};
use report::{CheckedPoint, Ended, Sized};
use serde::{Deserialize, Serialize};

/// What all are sized for.
const SLOWDOWN: &str = "10%";
/// Parts of the least limit at which the program and the model are compared.
const COMPARED: [f64; 5] = [0.7, 0.85, 1.0, 1.2, 1.5];
/// A check ends a run that is slower by so many percent.
const ENDLESS: f64 = 300.0;
/// Points of a slowdown that the model may be off by.
const NEAR: f64 = 10.0;
const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/sizes.toml");
const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/sizes");

/// What is kept of all programs.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    program: Vec<Row>,
}

/// What was found of one. Limits are bytes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    what: String,
    /// Of this host: its kernel and disk.
    host: String,
    /// Without a limit.
    seconds: f64,
    held: u64,
    anonymous: u64,
    /// `memory.max` that the model alone recommends; none where it has none.
    model: Option<u64>,
    /// The least limit that keeps the target; none where none does.
    least: Option<u64>,
    /// `memory.max` after the check.
    checked: Option<u64>,
    /// Whether the program was killed in the run nearest to what the model alone recommends, at it or above.
    model_kills: bool,
    /// [`COMPARED`] limits, each with what became of the program and of the model.
    points: Vec<(u64, Outcome, Outcome)>,
}

/// What a run with a limit came to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Outcome {
    /// Slower by so much, in percent.
    Slower(f64),
    Failed(Failure),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Failure {
    Killed,
    /// It took four times as long, and was ended.
    Endless,
    /// It ended with another status.
    Failed,
}

impl Outcome {
    /// Whether the model, which is this, is near the program.
    fn is_near(self, real: Self) -> bool {
        match (self, real) {
            (Self::Slower(model), Self::Slower(real)) => (model - real).abs() <= NEAR,
            (Self::Slower(model), Self::Failed(Failure::Endless)) => model >= ENDLESS - NEAR,
            (model, real) => model == real,
        }
    }
}

/// Runs these programs, or all, and keeps what was found.
pub(crate) fn measure(names: &[&str]) -> Result<(), Box<dyn Error>> {
    let mut kept = kept()?;
    for script in scripts(names)? {
        let name = script.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        match row(&name, &script) {
            Ok(row) => {
                say(&format!("{name}: {}", line(&row)));
                kept.program.retain(|other| other.name != name);
                kept.program.push(row);
                kept.program.sort_by(|a, b| a.name.cmp(&b.name));
                std::fs::write(KEPT, toml::to_string(&kept)?)?;
            }
            Err(error) => say(&format!("SKIPPED {name}: {error}")),
        }
    }
    Ok(())
}

fn kept() -> Result<Kept, Box<dyn Error>> {
    match std::fs::read_to_string(KEPT) {
        Ok(text) => Ok(toml::from_str(&text)?),
        Err(_) => Ok(Kept::default()),
    }
}

fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn scripts(names: &[&str]) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    if !names.is_empty() {
        let of = |name: &&str| Path::new(SCRIPTS).join(format!("{name}.sh"));
        let scripts: Vec<PathBuf> = names.iter().map(of).collect();
        return match scripts.iter().find(|script| !script.is_file()) {
            Some(missing) => Err(format!("there is no script {}", missing.display()).into()),
            None => Ok(scripts),
        };
    }
    let mut all: Vec<PathBuf> =
        std::fs::read_dir(SCRIPTS)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    all.sort();
    Ok(all)
}

/// Makes its data, captures it, and has it say what is enough.
fn row(name: &str, script: &Path) -> Result<Row, Box<dyn Error>> {
    let text = std::fs::read_to_string(script)?;
    let header = |key: &str| {
        let of =
            |line: &str| line.strip_prefix("# ")?.strip_prefix(key)?.strip_prefix(": ").map(str::to_owned);
        text.lines().find_map(of)
    };
    let what = header("What").ok_or("it does not say what it is")?;
    let folder = folder(name)?;
    std::env::set_current_dir(&folder)?;
    let packages = header("Debian").unwrap_or_default();
    install(&packages)?;
    if let Some(packages) = header("PyPI") {
        done("/usr/bin/python3 -m venv env")?;
        done(&format!("env/bin/pip -q install {packages}"))?;
    }
    let command = ["/bin/sh".into(), script.as_os_str().to_owned(), OsString::from("run")];
    done(&format!("sh {} prepare", script.display()))?;
    done(&format!("sh {} run", script.display()))?;
    let trace = folder.join("program.trace");
    let request = lab::capture::Request {
        out: &trace,
        whom: lab::capture::Whom::Command(command.to_vec()),
        length: None,
        sample: None,
        max_tasks: None,
    };
    let captured = lab::capture::run(&request, &AtomicUsize::new(0))?;
    if captured.status != 0 {
        return Err(format!("captured, it ends with status {}", captured.status).into());
    }
    let request = SizeRequest {
        trace,
        slowdown: Some(SLOWDOWN.to_owned()),
        verify: Some(VERIFY_DEFAULT.to_owned()),
        program: command.to_vec(),
        allow_host_pressure: true,
        ..SizeRequest::default()
    };
    let sized = checked(&request)?;
    let mut row = as_row(name, what, &sized);
    if let Some(least) = row.least {
        let limits = COMPARED.map(|part| ((least as f64 * part) as u64 >> 20 << 20).to_string());
        row.points = points(&checked(&SizeRequest { limits: Some(limits.join(",")), ..request })?);
    }
    std::env::set_current_dir("/")?;
    std::fs::remove_dir_all(&folder)?;
    Ok(row)
}

/// Its size, and what the program itself says of it.
fn checked(request: &SizeRequest) -> Result<Sized, Box<dyn Error>> {
    let control = SizeControl { stop: Arc::new(AtomicBool::new(false)), observer: Arc::new(|_| {}) };
    let (sized, _) = request.plan()?.run(0, &control, None)?;
    if sized.program.is_none() {
        return Err(sized.notes.join(" ").into());
    }
    Ok(sized)
}

/// A new folder on a disk.
fn folder(name: &str) -> std::io::Result<PathBuf> {
    let folder = Path::new("/var/tmp").join(format!("pagetide-sizes-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn install(packages: &str) -> Result<(), Box<dyn Error>> {
    let is_there = |package: &&str| {
        let status = Command::new("dpkg-query").args(["-W", "-f", "${db:Status-Abbrev}", package]).output();
        status.is_ok_and(|output| output.stdout.starts_with(b"ii"))
    };
    let missing: Vec<&str> = packages.split(' ').filter(|package| !is_there(package)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    done(&format!("apt-get install -y -q --no-install-recommends {}", missing.join(" ")))
}

/// Runs a line of shell to its good end.
fn done(line: &str) -> Result<(), Box<dyn Error>> {
    let output = Command::new("/bin/sh").args(["-c", line]).output()?;
    if output.status.success() {
        return Ok(());
    }
    let told = String::from_utf8_lossy(&output.stderr);
    Err(format!("`{line}`: {}", told.lines().last().unwrap_or("it says nothing")).into())
}

fn as_row(name: &str, what: String, sized: &Sized) -> Row {
    let advice = sized.advice.as_ref();
    let check = sized.program.as_ref().expect("it was checked");
    let model = check.model.map(|high| high + high / 10);
    let nearest = check.points.iter().find(|point| point.limit >= model);
    Row {
        name: name.to_owned(),
        what,
        host: host(sized),
        seconds: check.base.seconds.map_or(0.0, |seconds| (seconds.mean * 100.0).round() / 100.0),
        held: check.base.peak,
        anonymous: check.base.anon_peak,
        model,
        least: advice.map(|advice| advice.high),
        checked: advice.map(|advice| advice.max),
        model_kills: nearest.is_some_and(|point| point.killed > 0),
        points: points(sized),
    }
}

fn points(sized: &Sized) -> Vec<(u64, Outcome, Outcome)> {
    sized.program.iter().flat_map(|check| check.points.iter().map(slowdowns)).collect()
}

/// Its kernel, and what was measured of its disk.
fn host(sized: &Sized) -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let disk =
        sized.machine.split("disk=").nth(1).and_then(|rest| rest.split(',').next()).unwrap_or("unknown");
    format!("Linux {}, disk {disk}", release.trim().split('-').next().unwrap_or_default())
}

fn slowdowns(point: &CheckedPoint) -> (u64, Outcome, Outcome) {
    let slower = |percent: Option<f64>, killed: bool| match (killed, percent, point.ended) {
        (true, ..) => Outcome::Failed(Failure::Killed),
        (false, Some(percent), _) => Outcome::Slower((percent * 10.0).round() / 10.0),
        (false, None, Some(Ended::Status(_))) => Outcome::Failed(Failure::Failed),
        (false, None, _) => Outcome::Failed(Failure::Endless),
    };
    let real = slower(point.slowdown, point.killed > 0);
    (point.limit.unwrap_or(0), real, slower(point.predicted, point.predicted_killed))
}

/// How many of its points the model is near at.
fn near(row: &Row) -> usize {
    row.points.iter().filter(|(_, real, model)| model.is_near(*real)).count()
}

fn line(row: &Row) -> String {
    format!("{:?} by the model, {:?} is the least, {:?} checked", row.model, row.least, row.checked)
}

/// The table for `docs/size.md`.
pub(crate) fn table() -> Result<String, Box<dyn Error>> {
    let Kept { program } = kept()?;
    let mut text = String::from(
        "| program | s | holds, MiB | least real limit | the model alone | of the least | checked | of the least | \
         slowdown near at |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    let mib = |bytes: Option<u64>| bytes.map_or("none".to_owned(), |bytes| (bytes >> 20).to_string());
    for row in &program {
        let of_least = |limit: Option<u64>| match (limit, row.least) {
            (Some(limit), Some(least)) => format!("{:.2}", limit as f64 / least as f64),
            _ => String::new(),
        };
        let killed = if row.model_kills { " (killed)" } else { "" };
        writeln!(
            text,
            "| {} | {:.1} | {} | {} | {}{killed} | {} | {} | {} | {} of {} |",
            row.what,
            row.seconds,
            row.held >> 20,
            mib(row.least),
            mib(row.model),
            of_least(row.model),
            mib(row.checked),
            of_least(row.checked),
            near(row),
            row.points.len()
        )?;
    }
    let kernels: std::collections::BTreeSet<&str> =
        program.iter().filter_map(|row| row.host.split(',').next()).collect();
    let kernels: Vec<&str> = kernels.into_iter().collect();
    writeln!(text, "\nMeasured on {}; `data/sizes.toml` has the disk of each.", kernels.join(", "))?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_shows_what_was_measured() {
        let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/size.md");
        let document = std::fs::read_to_string(document).unwrap();
        let table = table().unwrap();
        assert!(
            document.contains(&table),
            "docs/size.md lacks what `pagetide-evidence sizes --table` prints:\n{table}"
        );
    }

    /// The sign for a kill was once a slowdown of -1 %, which programs have, too.
    #[test]
    fn a_kill_is_no_slowdown() {
        let [killed, endless] = [Failure::Killed, Failure::Endless].map(Outcome::Failed);
        assert!(killed.is_near(killed) && !killed.is_near(Outcome::Slower(-1.0)));
        assert!(Outcome::Slower(0.0).is_near(Outcome::Slower(-1.0)) && !Outcome::Slower(0.0).is_near(killed));
        assert!(Outcome::Slower(400.0).is_near(endless) && !Outcome::Slower(133.0).is_near(endless));
    }

    /// No program was killed at a limit that a check had found to be enough.
    #[test]
    fn what_was_checked_is_at_least_what_is_enough() {
        for row in kept().unwrap().program {
            assert!(row.checked >= row.least, "{}", row.name);
            let killed = |(limit, real, _): &(u64, Outcome, Outcome)| {
                matches!(real, Outcome::Failed(_)) && Some(*limit) >= row.least
            };
            assert!(!row.points.iter().any(killed), "{}", row.name);
        }
    }
}
