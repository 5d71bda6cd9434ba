//! Whether a simulated machine has the disks that a workload puts its files on.
//!
//! Left out: real kernels, whose backends know their own disks. Next: [`crate::resolve::request`], which asks
//! before anything runs.

use workload::Scenario;
use workload::scenario::ScenarioProblem;

use crate::resolve::setting::Setting;

/// # Errors
/// More disks than the machine has; several disks on a filesystem of which the model has one only.
pub(crate) fn check(scenario: &Scenario, setting: &Setting) -> Result<(), ScenarioProblem> {
    let size = setting.machine_size();
    let there = size.disks;
    let wanted = scenario.workload.footprint(size).disks;
    let machine = scenario.machine.as_deref().unwrap_or_default();
    let base = machine.split('+').next().unwrap_or_default();
    let name = scenario.workload.name();
    let refused = |message, hint| Err(ScenarioProblem::Model { message, hint: Some(hint) });
    if wanted > there {
        let disks = if there == 1 { "disk" } else { "disks" };
        return refused(
            format!("`{name}` puts its files on {wanted} disks, and machine `{machine}` has {there} {disks}"),
            match scenario.workload.spec().file_text() {
                Some(_) => format!("take a machine with more, as `--machine {base}+disks={wanted}`"),
                None => format!(
                    "put all on one with `--param disks=1`, or take a machine with more, as `{base}+disks={wanted}`"
                ),
            },
        );
    }
    let is_xfs = scenario.workload.params().get("filesystem") == Some(workload::ParamValue::Choice("xfs"));
    if wanted > 1 && is_xfs {
        return refused(
            format!("XFS is modelled on one disk, and `{name}` puts its files on {wanted}"),
            "give `--param filesystem=ext4` or `--param disks=1`, or run it with `--on vm:VERSION`"
                .to_owned(),
        );
    }
    Ok(())
}
