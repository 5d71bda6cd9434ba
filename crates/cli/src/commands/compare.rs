//! `pagetide compare`: kernels on one workload, or recordings made earlier.

use std::path::{Path, PathBuf};

use lab::batch::{Batch, run_rest};
use lab::compare::{self, Comparison};
use lab::folders::{Loaded, SideBySide, load};
use lab::page::{check_writable, write};
use lab::{HostPolicy, LabError, PlannedRun, fail_if, view};
use report::{Grid, Group, Limit, Outcome, View, views};

use super::{check_events, host_policy, keep_runs, plot, request, tell_how_to_go_on, told_of_runs};
use crate::args::{CompareArgs, Events, Format, Style};
use crate::printer::{Failure, Printer};
use crate::progress::RunProgress;

pub(crate) fn compare(args: &CompareArgs, printer: &Printer) -> Result<(), Failure> {
    if args.style != Style::Own && args.format != Format::Text {
        return Err(Failure::Usage("mmtests' tables are text; leave `--format` out".to_owned()));
    }
    let limits = fail_if::parse(&args.fail_if)?;
    plot::check("compare", &args.plot, &["grid", "ages", "regions"])?;
    for file in [&args.junit, &args.sarif].into_iter().flatten() {
        check_writable(file)?;
    }
    let is_folder = |subject: &String| Path::new(subject).is_dir();
    match &args.subjects[..] {
        subjects if subjects.iter().any(is_folder) => compare_folders(args, &limits, printer),
        [path] if path.contains('/') && !path.ends_with(".toml") => Err(not_comparable(path)),
        [workload] => compare_kernels(workload, args, &limits, printer),
        [first, ..] => Err(not_comparable(first)),
        [] => Err(Failure::Usage("name a workload, or folders with recordings".to_owned())),
    }
}

/// Several workloads in one comparison, or a folder that is not there.
fn not_comparable(subject: &str) -> Failure {
    let refused = LabError::refused(
        format!("`{subject}` is not a folder with recordings"),
        "compare folders, or one workload, whose kernels are named with `--kernel`; \
         `pagetide run WORKLOAD --out DIR` makes a recording",
    );
    refused.into()
}

fn compare_folders(args: &CompareArgs, limits: &[Limit], printer: &Printer) -> Result<(), Failure> {
    if let Some(option) = option_of_runs(args) {
        let problem = format!("`{option}` is for runs; it changes nothing about recordings");
        return Err(Failure::Usage(problem));
    }
    let folders: Vec<PathBuf> = args.subjects.iter().map(PathBuf::from).collect();
    let SideBySide { columns, warnings, mut unfinished } = load(&folders)?;
    unfinished.extend(warnings);
    let warnings = unfinished;
    let groups: Vec<Group<'_>> = columns.iter().map(Loaded::group).collect();
    let told = Told { groups: &groups, grid: None, limits, warnings: &warnings };
    told.print(args, printer)
}

/// An option that was given and that only makes sense for new runs.
fn option_of_runs(args: &CompareArgs) -> Option<&'static str> {
    let given = [
        ("--kernel", !args.kernels.is_empty()),
        ("--seeds", args.seeds.is_some()),
        ("--jobs", args.jobs.is_some()),
        ("--out", args.out.is_some()),
        ("--events", args.events.which != Events::None),
        ("--resume", args.resume),
    ];
    given.into_iter().find_map(|(option, given)| given.then_some(option)).or(args.scenario.given())
}

fn compare_kernels(
    workload: &str,
    args: &CompareArgs,
    limits: &[Limit],
    printer: &Printer,
) -> Result<(), Failure> {
    let request = request(workload, None, &args.scenario);
    let comparison =
        compare::plan(&request, &args.kernels, &args.scenario.backends, args.seeds.unwrap_or(1))?;
    let plan = comparison.runs();
    let policy = host_policy(&args.scenario.host, plan.iter().map(|run| &run.scenario))?;
    for assumption in &comparison.assumed {
        printer.note(assumption);
    }
    if args.scenario.dry_run {
        let scenarios = plan.iter().map(|run| run.scenario.to_toml());
        return printer.data(&scenarios.collect::<Vec<_>>().join("\n"));
    }
    for doubt in fail_if::doubtful(limits, plan.first().map_or("", |run| run.scenario.workload.name())) {
        printer.warning(&doubt);
    }
    let batch = run_plan(&comparison, &plan, args, policy, printer)?;
    let groups = comparison.groups(&batch.recordings);
    let grid = comparison.grid(&batch.recordings);
    let told = Told { groups: &groups, grid: grid.as_ref(), limits, warnings: &[] };
    match batch.error {
        None => told.print(args, printer),
        Some(error) => {
            // What has finished is shown where it makes a comparison; limits are for all of it.
            let can_go_on = matches!(error, LabError::Interrupted { .. } | LabError::Recording(_));
            if can_go_on && groups.len() > 1 {
                let finished = batch.recordings.iter().flatten().count();
                let warnings = &[format!("a part of the comparison: {finished} of {} runs", plan.len())];
                Told { limits: &[], warnings, ..told }.print(args, printer)?;
            }
            if can_go_on {
                tell_how_to_go_on(args.out.as_deref(), printer);
            }
            Err(error.into())
        }
    }
}

/// Runs what has not finished with its progress shown, keeping each recording in the folder `--out` as it comes.
fn run_plan(
    comparison: &Comparison,
    plan: &[PlannedRun],
    args: &CompareArgs,
    policy: HostPolicy,
    printer: &Printer,
) -> Result<Batch, LabError> {
    check_events(args.events.which, plan)?;
    told_of_runs(plan, &policy, printer)?;
    let folder = args.out.as_ref().map(|out| comparison.folder(out, args.resume)).transpose()?;
    let (folder, finished) = match folder {
        Some((folder, finished)) => (Some(folder), finished),
        None => (None, vec![None; plan.len()]),
    };
    let done = finished.iter().flatten().count();
    if args.resume {
        printer.note(&format!("{} runs; {done} have finished before", plan.len()));
    }
    let mut progress = RunProgress::new(plan.len() - done, policy, printer);
    if let Some(folder) = folder.clone() {
        progress.control.kept = keep_runs(args.events.which, move |run| folder.folder_of(run));
    }
    let jobs = args.jobs.unwrap_or(0);
    let batch = run_rest(plan, finished, jobs, &progress.control, |index, recording| match &folder {
        Some(folder) => folder.keep(index, recording),
        None => Ok(()),
    });
    progress.done();
    batch
}

/// What a comparison has to say.
#[derive(Clone, Copy)]
struct Told<'a> {
    groups: &'a [Group<'a>],
    grid: Option<&'a Grid<'a>>,
    limits: &'a [Limit],
    warnings: &'a [String],
}

impl Told<'_> {
    /// Prints it; the error is that of the limits.
    fn print(self, args: &CompareArgs, printer: &Printer) -> Result<(), Failure> {
        let recordings = self.groups.iter().flat_map(|group| group.recordings.iter().copied());
        let mut view = view(recordings, args.all, self.warnings.to_vec());
        // A limit that cannot be judged is told after the results, which may have taken long.
        let judged = fail_if::judge(self.groups, &view, self.limits);
        view.limits = judged.as_ref().cloned().unwrap_or_default();
        if let Some(rules) = super::stats::rules(args.style) {
            report::mmtests_notes(self.groups, rules).iter().for_each(|note| printer.warning(note));
        }
        // Nothing is told of what cannot be shown.
        let shown = self.shown(args, &view, printer)?;
        self.warnings.iter().for_each(|warning| printer.warning(warning));
        printer.data(&shown)?;
        if let Some(path) = &args.plot.plot {
            let page = lab::page::page(self.groups, None, Vec::new(), Vec::new(), String::new());
            plot::figure(&page, path, args.plot.figure.as_deref(), printer)?;
        }
        let judged = judged?;
        let first = self.groups.first().and_then(|group| group.recordings.first());
        let workload = first.map_or("", |recording| &recording.workload);
        if let Some(path) = &args.junit {
            write(path, &views::junit(workload, &judged))?;
        }
        if let Some(path) = &args.sarif {
            write(path, &views::sarif(workload, &judged))?;
        }
        for unclear in judged.iter().filter(|judged| judged.outcome == Outcome::Unclear) {
            printer.warning(&format!("{}; `--seeds` makes more runs", unclear.told()));
        }
        fail_if::failure(&judged).map_or(Ok(()), |failure| Err(failure.into()))
    }

    fn shown(self, args: &CompareArgs, view: &View, printer: &Printer) -> Result<String, Failure> {
        let groups = self.groups;
        if let Some(rules) = super::stats::rules(args.style) {
            let better = |name: &str| report::better_in(view, name);
            return Ok(report::mmtests_tables(groups, rules, report::usual_rows(rules), &better)?);
        }
        let document = match self.grid {
            None => views::compare(groups, view)?,
            Some(grid) => views::grid(grid, groups, view)?,
        };
        Ok(document.render(args.format.into(), printer.width()))
    }
}
