//! `pagetide compare`: kernels on one workload, or recordings made earlier.

use std::path::{Path, PathBuf};

use lab::compare;
use lab::folders::{Loaded, SideBySide, load};
use lab::{LabError, view};
use report::{Grid, Group};

use super::{host_policy, request, run_plan};
use crate::args::{CompareArgs, Format, Style};
use crate::printer::{Failure, Printer};

pub(crate) fn compare(args: &CompareArgs, printer: &Printer) -> Result<(), Failure> {
    if args.style != Style::Own && args.format != Format::Text {
        return Err(Failure::Usage("mmtests' tables are text; leave `--format` out".to_owned()));
    }
    let is_folder = |subject: &String| Path::new(subject).is_dir();
    match &args.subjects[..] {
        subjects if subjects.iter().any(is_folder) => compare_folders(args, printer),
        [path] if path.contains('/') && !path.ends_with(".toml") => {
            Err(LabError::NotComparable(path.clone()).into())
        }
        [workload] => compare_kernels(workload, args, printer),
        [first, ..] => Err(LabError::NotComparable(first.clone()).into()),
        [] => Err(Failure::Usage("name a workload, or folders with recordings".to_owned())),
    }
}

fn compare_folders(args: &CompareArgs, printer: &Printer) -> Result<(), Failure> {
    if let Some(option) = option_of_runs(args) {
        let problem = format!("`{option}` is for runs; it changes nothing about recordings");
        return Err(Failure::Usage(problem));
    }
    let folders: Vec<PathBuf> = args.subjects.iter().map(PathBuf::from).collect();
    let SideBySide { columns, warnings } = load(&folders)?;
    let groups: Vec<Group<'_>> = columns.iter().map(Loaded::group).collect();
    let text = shown(&groups, None, args, &warnings, printer)?;
    warnings.iter().for_each(|warning| printer.warning(warning));
    printer.data(&text)
}

/// An option that was given and that only makes sense for new runs.
fn option_of_runs(args: &CompareArgs) -> Option<&'static str> {
    let scenario = &args.scenario;
    let given = [
        ("--kernel", !args.kernels.is_empty()),
        ("--param", !scenario.params.is_empty()),
        ("--seed", scenario.seed.is_some()),
        ("--seeds", args.seeds.is_some()),
        ("--on", !scenario.backends.is_empty()),
        ("--dry-run", scenario.dry_run),
        ("--machine", scenario.machine.is_some()),
        ("--mem", scenario.mem.is_some()),
        ("--set", !scenario.sysctls.is_empty()),
        ("--vm-cpus", scenario.vm.cpus.is_some()),
        ("--vm-nodes", scenario.vm.numa_nodes.is_some()),
        ("--lru-gen", scenario.vm.lru_gen.is_some()),
        ("--vm-xfs-log", scenario.vm.xfs_log.is_some()),
        ("--jobs", args.jobs.is_some()),
        ("--out", args.out.is_some()),
    ];
    given.into_iter().find_map(|(option, given)| given.then_some(option)).or(scenario.host.given())
}

fn compare_kernels(workload: &str, args: &CompareArgs, printer: &Printer) -> Result<(), Failure> {
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
    let batch = run_plan(&plan, args.jobs, args.out.as_deref(), policy, printer)?;
    let groups = comparison.groups(&batch.recordings);
    let grid = comparison.grid(&batch.recordings);
    match batch.error {
        None => printer.data(&shown(&groups, grid.as_ref(), args, &[], printer)?),
        Some(error) => {
            // What has finished is shown where it makes a comparison.
            if matches!(error, LabError::Interrupted { .. }) && groups.len() > 1 {
                printer.data(&shown(&groups, grid.as_ref(), args, &[], printer)?)?;
            }
            Err(error.into())
        }
    }
}

fn shown(
    groups: &[Group<'_>],
    grid: Option<&Grid<'_>>,
    args: &CompareArgs,
    warnings: &[String],
    printer: &Printer,
) -> Result<String, Failure> {
    let recordings = groups.iter().flat_map(|group| group.recordings.iter().copied());
    let view = view(recordings, printer.width(), args.all, warnings.to_vec());
    if let Some(rules) = super::stats::rules(args.style) {
        report::mmtests_notes(groups, rules).iter().for_each(|note| printer.warning(note));
        let better = |name: &str| report::better_in(&view, name);
        return Ok(report::mmtests_tables(groups, rules, report::usual_rows(rules), &better)?);
    }
    Ok(match (args.format, grid) {
        (Format::Text, None) => report::compare_text(groups, view)?,
        (Format::Text, Some(grid)) => report::grid_text(grid, groups, view)?,
        (Format::Json, None) => report::compare_json(groups, view)?,
        (Format::Json, Some(grid)) => report::grid_json(grid, groups, view)?,
        (Format::Csv, None) => report::compare_csv(groups, view)?,
        (Format::Csv, Some(grid)) => report::grid_csv(grid, groups, view)?,
        (Format::Md, None) => report::to_markdown(groups, view)?,
        (Format::Md, Some(grid)) => report::grid_markdown(grid, groups, view)?,
    })
}
