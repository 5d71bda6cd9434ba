//! `pagetide vm` and `pagetide uml`: kernels for guests.

use crate::args::{UmlArgs, UmlCommand, VmArgs, VmCommand};
use crate::printer::{Failure, Printer};

pub(crate) fn vm(args: &VmArgs, printer: &Printer) -> Result<(), Failure> {
    match &args.command {
        VmCommand::Fetch { version, update } => {
            let release = lab::real::fetch_kernel(version, *update, &mut |text| printer.note(text))?;
            printer.data(&format!("{release}\n"))
        }
    }
}

pub(crate) fn uml(args: &UmlArgs, printer: &Printer) -> Result<(), Failure> {
    match &args.command {
        UmlCommand::Fetch { version, update } => {
            let release = lab::real::fetch_uml(version, *update, &mut |text| printer.note(text))?;
            printer.data(&format!("{release}\n"))
        }
        UmlCommand::Config => printer.data(lab::real::UML_CONFIG),
    }
}
