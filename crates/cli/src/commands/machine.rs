//! `pagetide machine`: this host, and built-in machines, as machine files.

use std::path::Path;

use crate::args::{MachineArgs, MachineCommand};
use crate::printer::{Failure, Printer};
use crate::signals::stop_flag;

pub(crate) fn machine(args: &MachineArgs, printer: &Printer) -> Result<(), Failure> {
    match &args.command {
        MachineCommand::Probe { backend: Some(backend), .. } => {
            let guests = lab::guest_speed::Guests::of(backend)?;
            printer.note("timing calls, faults and pages in six guests; it takes some thirty seconds");
            printer.data(&guests.probe(&stop_flag())?)
        }
        MachineCommand::Probe { dir, backend: None } => {
            printer.note("timing calls, the disk and reclaim; it takes some ten seconds");
            printer.data(&lab::machine_file::probe(dir.as_deref().unwrap_or(Path::new(".")), &stop_flag())?)
        }
        MachineCommand::Show { machine } => printer.data(&lab::machine_file::of_machine(machine)?),
    }
}
