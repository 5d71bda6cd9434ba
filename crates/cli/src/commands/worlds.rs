//! `pagetide worlds`: random scenarios on a real kernel and on the model.

use lab::HostPolicy;
use lab::worlds::{WORLD_THREAD, WorldRequest, WorldsPlan, WorldsRequest, never_drawn};

use crate::args::{ShrinkArgs, WorldArgs, WorldsArgs, WorldsPart};
use crate::printer::{Failure, Printer};
use crate::progress::{ShrinkBar, WorldsBar};

pub(crate) fn worlds(args: &WorldsArgs, printer: &Printer) -> Result<(), Failure> {
    match &args.part {
        Some(WorldsPart::Shrink(args)) => return shrink(args, printer),
        Some(WorldsPart::Explain(args)) => return explain(args, printer),
        None if args.check => return check(args, printer),
        None => {}
    }
    let plan = request(args).plan()?;
    let Some(out) = args.out.as_ref().filter(|_| !args.dry_run) else { return dry_run(&plan, printer) };
    let host = host(args.host_disk.as_ref())?;
    plan.check(&host)?;
    let jobs = args.jobs.unwrap_or(if plan.boots() { 1 } else { 0 });
    let bar = WorldsBar::new(plan.count(), host, jobs, printer);
    let found = plan.run(out, &bar.control);
    bar.done();
    let (summary, interrupted) = found?;
    // What has finished is shown, also when the rest has not.
    printer.document(&report::views::worlds(&summary), args.format)?;
    interrupted.map_or(Ok(()), |error| Err(error.into()))
}

fn host(share: Option<&String>) -> Result<HostPolicy, Failure> {
    let mut host = HostPolicy::default();
    if let Some(share) = share {
        host.share = lab::real::parse_disk_share(share)?;
    }
    Ok(host)
}

/// A world that disagrees, made smaller.
fn shrink(args: &ShrinkArgs, printer: &Printer) -> Result<(), Failure> {
    let world = one(&args.world, Some(args.time.clone())).find()?;
    let host = host(args.world.host_disk.as_ref())?;
    world.check(&host)?;
    let bar = ShrinkBar::new(host, printer);
    let found = world.shrink(&bar.control, &|tried| bar.tell(tried));
    bar.done();
    let (evidence, interrupted) = found?;
    // The smallest so far is shown, also when a smaller one may be found.
    printer.document(&report::views::world(&evidence), args.world.format)?;
    interrupted.map_or(Ok(()), |error| Err(error.into()))
}

/// Both sides of a world.
fn explain(args: &WorldArgs, printer: &Printer) -> Result<(), Failure> {
    let world = one(args, None).find()?;
    let host = host(args.host_disk.as_ref())?;
    world.check(&host)?;
    let bar = ShrinkBar::new(host, printer);
    let evidence = world.explain(&bar.control);
    bar.done();
    printer.document(&report::views::world(&evidence?), args.format)
}

fn one(args: &WorldArgs, time: Option<String>) -> WorldRequest {
    let WorldArgs { world, folder, counter, .. } = args;
    WorldRequest { folder: folder.clone(), world: world.clone(), counter: counter.clone(), time }
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
        machine: args.machine.clone(),
        against: args.against.clone(),
        real_of: args.real_of.clone(),
        seeds: args.seeds.clone().unwrap_or_default(),
        workloads: args.workloads.clone(),
        time: args.time.clone(),
        repeats: args.repeats,
        model_seeds: args.model_seeds,
    }
}
