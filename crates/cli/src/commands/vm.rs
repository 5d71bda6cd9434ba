//! `pagetide vm`: kernels for virtual machines.

use crate::args::{VmArgs, VmCommand};
use crate::printer::{Failure, Printer};

pub(crate) fn vm(args: &VmArgs, printer: &Printer) -> Result<(), Failure> {
    match &args.command {
        VmCommand::Fetch { version } => {
            let release = lab::real::fetch_kernel(version, &mut |text| printer.note(text))?;
            printer.data(&format!("{release}\n"))
        }
    }
}
