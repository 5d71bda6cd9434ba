//! How fast guests of this host are: the costs of `guest-uml` at which the model takes as long as a guest does.
//!
//! One workload of many phases, each of which consists of one kind of operation. It runs in some guests, of which the
//! middle one counts, phase by phase, as single ones are a fifth slower or faster; then in the model, where the cost
//! that decides about a phase is moved until that takes as long: a phase is linear in it, so two runs tell by how much.
//! Phases come in the order in which their costs are part of later ones; what it takes to write an inode back is told
//! by XFS, and what ext4 takes more by ext4, which all other phases use.
//!
//! Left out: the disk's own speed, and operations that hardly any workload consists of. Next: [`sim::machines`],
//! whose table this replaces; [`crate::name::machine_file`], what comes of it.

use std::fmt::Write as _;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use recording::Recording;
use sim::machines::MachineSpec;
use units::Nanos;
use workload::scenario::{Backend, UML_MACHINE};

use crate::error::LabError;
use crate::plan::compare::model_of;
use crate::resolve::planned::PlannedRun;
use crate::resolve::request::{Request, Subject};
use crate::run::batch::{self, Control, Ended};
use crate::run::simulate::simulate;

const WORKLOAD: &str = include_str!("guest_speed.toml");
const MEM: &str = "704M";
/// Runs in a guest.
const GUESTS: u64 = 3;

/// A phase that tells a cost.
struct Phase {
    name: &'static str,
    filesystem: &'static str,
    cost: &'static str,
    /// Costs that are taken to be as much dearer.
    others: &'static [&'static str],
}

const fn phase(name: &'static str, cost: &'static str, others: &'static [&'static str]) -> Phase {
    Phase { name, filesystem: EXT4, cost, others }
}

const EXT4: &str = "ext4";
const XFS: &str = "xfs";

const PHASES: [Phase; 14] = [
    phase("calls", "syscall", &["file_open", "read_clock"]),
    phase("copied", "copy_page", &[]),
    phase("faults", "minor_fault", &["major_fault", "access_fault", "remap"]),
    phase("started", "start_process", &[]),
    phase("locked", "populate_page", &["fork_page"]),
    phase("fresh", "first_use", &[]),
    phase("mapped", "map_around", &[]),
    phase("made", "file_create", &[]),
    phase("removed", "file_unlink", &[]),
    phase("asked", "io_request", &[]),
    phase("read", "readahead_page", &[]),
    phase("written", "writeback_page", &["swap_write"]),
    Phase { filesystem: XFS, ..phase("flushed", "writeback_inode", &["writeback_end"]) },
    phase("flushed", "writeback_inode_ext4", &[]),
];

/// Costs by their names.
type Costs = Vec<(&'static str, Nanos)>;

/// Guests that can be measured.
#[derive(Debug)]
pub struct Guests {
    backend: Backend,
    /// What the model has in their place.
    kernel: String,
}

impl Guests {
    /// Those of `backend`, a kernel of User-Mode Linux.
    ///
    /// # Errors
    /// `backend` is something else, or of a kernel that the model has not.
    pub fn of(backend: &str) -> Result<Self, LabError> {
        let backend: Backend = backend.parse()?;
        let kernel = Some(&backend).filter(|backend| matches!(backend, Backend::Uml(_))).and_then(model_of);
        match kernel {
            Some(kernel) => Ok(Self { backend, kernel }),
            None => {
                let hint = "name a release, as in `--on uml:6.12`";
                Err(LabError::refused(format!("guests of `{backend}` are not measured"), hint))
            }
        }
    }

    /// Measures them on this host; returns a machine file.
    ///
    /// # Errors
    /// A run fails; `stop` was set.
    pub fn probe(&self, stop: &Arc<AtomicBool>) -> Result<String, LabError> {
        let Self { backend, kernel } = self;
        let mut guests = Vec::new();
        for (filesystem, seed) in
            [EXT4, XFS].into_iter().flat_map(|name| (1..=GUESTS).map(move |seed| (name, seed)))
        {
            let request =
                Request { backend: Some(backend.to_string()), seed: Some(seed), ..request(filesystem) };
            let run = PlannedRun { label: backend.to_string(), scenario: request.resolve()? };
            guests.push((filesystem, in_guest(&run, stop)?));
        }
        let took = |phase: &Phase| {
            let of = guests.iter().filter(|(filesystem, _)| *filesystem == phase.filesystem);
            middle(of.filter_map(|(_, guest)| seconds(guest, phase.name)).collect())
        };
        let model = |costs: &Costs, phase: &Phase| {
            let recording = in_model(kernel, phase.filesystem, costs);
            recording.map(|recording| seconds(&recording, phase.name).unwrap_or_default())
        };
        let costs = fitted(&model, &took)?;
        Ok(file(backend, &guests[0].1.kernel, &costs))
    }
}

fn request(filesystem: &str) -> Request {
    Request {
        mem: Some(MEM.to_owned()),
        params: vec![format!("filesystem={filesystem}")],
        // A flusher that comes by itself takes work from the phase that waits for one.
        sysctls: vec!["vm.dirty_writeback_centisecs=0".to_owned()],
        ..Request::new(Subject::of_text(WORKLOAD.to_owned()))
    }
}

fn in_guest(run: &PlannedRun, stop: &Arc<AtomicBool>) -> Result<Recording, LabError> {
    let control = Control { stop: Arc::clone(stop), ..Control::default() };
    match batch::outcomes(slice::from_ref(run), 1, &control, true, |_, _| Ok(()))?.pop() {
        Some(Ended::Recorded(recording) | Ended::NotKept(recording, _)) => Ok(recording),
        Some(Ended::Failed(error)) => Err(error),
        Some(Ended::NotRun) | None => Err(LabError::Interrupted { finished: 0, total: 1 }),
    }
}

fn in_model(kernel: &str, filesystem: &str, costs: &Costs) -> Result<Recording, LabError> {
    let pairs: Vec<String> = costs.iter().map(|(name, Nanos(cost))| format!("{name}:{cost}ns")).collect();
    let request = Request {
        kernel: Some(kernel.to_owned()),
        machine: Some(format!("{UML_MACHINE}+costs={}", pairs.join(","))),
        seed: Some(1),
        ..request(filesystem)
    };
    simulate(&request.resolve()?, kernel, &Arc::new(AtomicBool::new(false)), |_| {})
}

/// The middle one of some times.
fn middle(mut times: Vec<f64>) -> Option<f64> {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied()
}

/// How long `phase` took in `recording`.
fn seconds(recording: &Recording, phase: &str) -> Option<f64> {
    recording.metrics.get(&format!("{phase}_seconds")).copied()
}

/// The costs at which each phase takes as long in `model` as it `took`, in seconds.
fn fitted(
    model: &dyn Fn(&Costs, &Phase) -> Result<f64, LabError>,
    took: &dyn Fn(&Phase) -> Option<f64>,
) -> Result<Costs, LabError> {
    // Phases with a disk end by ticks: a step is to be many of these.
    const STEP: Nanos = Nanos(10_000);
    let machine = MachineSpec::find(UML_MACHINE).expect("it is one of the machines");
    let named = |name: &str| PHASES.iter().any(|phase| phase.cost == name || phase.others.contains(&name));
    let mut costs: Costs = machine.costs.names().filter(|(name, _)| named(name)).collect();
    // A host cannot be so fast that an operation costs nothing.
    let least: Vec<f64> = costs.iter().map(|(_, cost)| cost.0 as f64 / 10.0).collect();
    // Twice: a little of a phase is what only later ones tell.
    for phase in PHASES.iter().chain(&PHASES) {
        let Some(wanted) = took(phase) else { continue };
        let place = costs.iter().position(|(name, _)| *name == phase.cost).expect("it is a cost");
        let mut dearer = costs.clone();
        dearer[place].1 = Nanos(dearer[place].1.0 + STEP.0);
        let (now, then) = (model(&costs, phase)?, model(&dearer, phase)?);
        let Nanos(before) = costs[place].1;
        let per_nano = (then - now) / STEP.0 as f64;
        let after = match per_nano > 0.0 {
            true => (before as f64 + ((wanted - now) / per_nano)).max(least[place]),
            // The phase does not depend on it.
            false => before as f64,
        };
        costs[place].1 = Nanos(after.round() as u64);
        let factor = after / before as f64;
        for (_, cost) in costs.iter_mut().filter(|(name, _)| phase.others.contains(name)) {
            *cost = Nanos((cost.0 as f64 * factor).round() as u64);
        }
    }
    Ok(costs)
}

/// The costs as a machine file.
fn file(backend: &Backend, release: &str, costs: &Costs) -> String {
    let mut text = format!(
        "# Guests of Linux {release} on this host, as `pagetide machine probe --on {backend}` found them: the\n\
         # middle one of {GUESTS} runs. Not measured: the disk itself.\nbase = \"{UML_MACHINE}\"\n\
         protection_keys = {}\n\n[costs]\n",
        linux::vm::uml::sees_reads()
    );
    for (name, Nanos(cost)) in costs {
        writeln!(text, "{name} = \"{cost}ns\"").expect("text can be written to");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(costs: &Costs, name: &str) -> f64 {
        costs.iter().find(|(other, _)| *other == name).map_or(0.0, |(_, cost)| cost.0 as f64)
    }

    /// A guest in which a call takes 30 us, of which each phase has some, and a fault 60.
    #[test]
    fn costs_are_those_at_which_the_model_takes_as_long() {
        let model = |costs: &Costs, phase: &Phase| {
            Ok((1_000.0 * cost(costs, phase.cost) + 200.0 * cost(costs, "syscall") + 5e6) / 1e9)
        };
        let took = |phase: &Phase| match phase.name {
            "calls" => Some((1_200.0 * 30_000.0 + 5e6) / 1e9),
            "faults" => Some((1_000.0 * 60_000.0 + 200.0 * 30_000.0 + 5e6) / 1e9),
            // Faster than anything can be.
            "copied" => Some(1e-9),
            _ => None,
        };
        let [before, after] = [fitted(&model, &|_| None).unwrap(), fitted(&model, &took).unwrap()];
        assert_eq!(cost(&after, "syscall"), 30_000.0);
        assert_eq!(cost(&after, "minor_fault"), 60_000.0);
        assert_eq!(cost(&after, "copy_page"), cost(&before, "copy_page") / 10.0);
        assert_eq!(cost(&after, "map_around"), cost(&before, "map_around"));
        for (other, name) in [("file_open", "syscall"), ("access_fault", "minor_fault")] {
            let dearer = |name| cost(&after, name) / cost(&before, name);
            assert!((dearer(other) / dearer(name) - 1.0).abs() < 1e-3, "{other}");
        }
    }

    #[test]
    fn each_phase_is_measured() {
        let costs = fitted(&|_, _| Ok(0.0), &|_| None).unwrap();
        for filesystem in [EXT4, XFS] {
            let recording = in_model("linux-6.12", filesystem, &costs).unwrap();
            for Phase { name, .. } in PHASES.iter().filter(|phase| phase.filesystem == filesystem) {
                assert!(seconds(&recording, name).is_some_and(|seconds| seconds > 0.0), "{name}");
            }
        }
    }

    #[test]
    fn what_is_no_guest_of_user_mode_linux_is_refused() {
        let refused = |backend| Guests::of(backend).unwrap_err().to_string();
        insta::assert_snapshot!(["sim", "host", "vm:6.12", "uml:./linux"].map(refused).join("\n"), @"
        guests of `sim` are not measured
        guests of `host` are not measured
        guests of `vm:6.12` are not measured
        guests of `uml:./linux` are not measured
        ");
    }
}
