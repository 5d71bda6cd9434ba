//! `pagetide worlds`: random scenarios on a real kernel and on the model.

use lab::HostPolicy;
use lab::worlds::{WORLD_THREAD, WorldsPlan, WorldsRequest, never_drawn};

use crate::args::WorldsArgs;
use crate::printer::{Failure, Printer};
use crate::progress::WorldsBar;

pub(crate) fn worlds(args: &WorldsArgs, printer: &Printer) -> Result<(), Failure> {
    if args.check {
        return check(args, printer);
    }
    let plan = request(args).plan()?;
    let Some(out) = args.out.as_ref().filter(|_| !args.dry_run) else { return dry_run(&plan, printer) };
    let mut host = HostPolicy::default();
    if let Some(share) = &args.host_disk {
        host.share = lab::real::parse_disk_share(share)?;
    }
    plan.check(&host)?;
    let jobs = args.jobs.unwrap_or(if plan.boots() { 1 } else { 0 });
    let bar = WorldsBar::new(plan.count(), host, jobs, printer);
    let found = plan.run(out, args.real_of.as_deref(), &bar.control);
    bar.done();
    let (summary, interrupted) = found?;
    // What has finished is shown, also when the rest has not.
    printer.document(&report::views::worlds(&summary), args.format)?;
    interrupted.map_or(Ok(()), |error| Err(error.into()))
}

/// Worlds of the model alone, checked all along.
fn check(args: &WorldsArgs, printer: &Printer) -> Result<(), Failure> {
    let plan = request(args).check_plan()?;
    if args.dry_run {
        return printer.data(&plan.commands());
    }
    told_elsewhere();
    let bar = WorldsBar::of_checks(plan.count(), args.jobs.unwrap_or(0), printer);
    let found = plan.run(&bar.control);
    bar.done();
    let (checked, wrong) = found?;
    printer.document(&report::views::checked(&checked), args.format)?;
    wrong.map_or(Ok(()), |error| Err(error.into()))
}

/// What a world says when it panics is in its row: it is not told twice.
fn told_elsewhere() {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().name() != Some(WORLD_THREAD) {
            told(panic);
        }
    }));
}

fn dry_run(plan: &WorldsPlan, printer: &Printer) -> Result<(), Failure> {
    printer.data(&plan.commands())?;
    printer.note("never drawn:");
    never_drawn().iter().for_each(|(what, why)| printer.note(&format!("  {what}: {why}")));
    Ok(())
}

fn request(args: &WorldsArgs) -> WorldsRequest {
    WorldsRequest {
        backend: args.backend.clone(),
        kernel: args.kernel.clone(),
        against: args.against.clone(),
        seeds: args.seeds.clone(),
        workloads: args.workloads.clone(),
        time: args.time.clone(),
        repeats: args.repeats,
        model_seeds: args.model_seeds,
    }
}
