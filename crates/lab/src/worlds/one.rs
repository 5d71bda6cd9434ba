//! One world of a folder again: which it is, what it was drawn as, and by which counter it disagrees.
//!
//! A world is what its commands in the table say, not what its seed would draw today. Left out: the runs, see
//! `shrink.rs` and `evidence.rs`.

use std::path::PathBuf;
use std::time::Duration;

use recording::chunk::FactKind;
use recording::worlds::WorldRow;
use sim::machines::MachineSpec;
use stats::describe::median;
use workload::scenario::{Backend, UML_MACHINE};
use workload::{UnknownName, WorkloadSpec};

use super::draw::Drawn;
use super::folder::rows_there;
use super::judge::Class;
use super::{Side, WorldsError, WorldsPlan, time};
use crate::error::LabError;
use crate::resolve::request::GuestRequest;
use crate::run::real::{self, HostPolicy};

/// A world that somebody asks about.
#[derive(Debug, Clone, Default)]
pub struct WorldRequest {
    /// The folder that it is in.
    pub folder: PathBuf,
    /// `KERNEL/SEED`, or the seed.
    pub world: String,
    /// The counter; none is the one that is most off.
    pub counter: Option<String>,
    /// After which time no smaller world is tried: `10m`.
    pub time: Option<String>,
}

/// A world that disagrees.
#[derive(Debug, Clone)]
pub struct OneWorld {
    /// `KERNEL/SEED`.
    pub(super) name: String,
    pub(super) seed: u64,
    pub(super) drawn: Drawn,
    /// Its two sides.
    pub(super) plan: WorldsPlan,
    /// What was found of it.
    pub(super) rows: Vec<WorldRow>,
    /// The row of the counter.
    pub(super) wanted: WorldRow,
    pub(super) time: Option<Duration>,
}

impl WorldRequest {
    /// Finds it.
    ///
    /// # Errors
    /// There is no such folder, world or counter; both sides agree.
    pub fn find(&self) -> Result<OneWorld, LabError> {
        let time = self.time.as_deref().map(time).transpose()?;
        let rows = self.rows()?;
        let name = format!("{}/{}", rows[0].kernel, rows[0].seed);
        let text =
            |counter: &str| rows.iter().find(|row| is_run(row, counter)).and_then(|row| row.text.as_deref());
        let (Some(real), Some(model)) = (text("real"), text("model")) else {
            return Err(WorldsError::ModelAlone(name).into());
        };
        let outcome = rows.iter().find(|row| is_run(row, "outcome"));
        let runs = |of: &dyn Fn(&WorldRow) -> usize| outcome.map_or(1, |row| of(row).max(1) as u64);
        let (drawn, model) = parsed(model).ok_or_else(|| WorldsError::NoCommand(name.clone()))?;
        let (_, real) = parsed(real).ok_or_else(|| WorldsError::NoCommand(name.clone()))?;
        let seed = rows[0].seed;
        let plan = WorldsPlan {
            real: Some(real),
            model,
            seeds: seed..=seed,
            workloads: WorkloadSpec::find(drawn.workload).into_iter().collect(),
            time: None,
            known: Vec::new(),
            repeats: runs(&|row| row.real.len()),
            model_seeds: runs(&|row| row.model.len()),
        };
        let wanted = wanted(&name, &rows, self.counter.as_deref())?;
        Ok(OneWorld { name, seed, drawn, plan, wanted, rows, time })
    }

    /// What the folder has of it.
    fn rows(&self) -> Result<Vec<WorldRow>, LabError> {
        let none = || WorldsError::NoWorld { world: self.world.clone(), folder: self.folder.clone() };
        let (kernel, seed) = match self.world.rsplit_once('/') {
            Some((kernel, seed)) => (Some(kernel), seed),
            None => (None, &*self.world),
        };
        let seed: u64 = seed.trim().parse().map_err(|_| none())?;
        let mut rows = rows_there(&self.folder)?;
        rows.retain(|row| row.seed == seed && kernel.is_none_or(|kernel| row.kernel == kernel));
        if rows.is_empty() { Err(none().into()) } else { Ok(rows) }
    }
}

impl OneWorld {
    /// Looks whether the real kernel is here, before anything begins.
    ///
    /// # Errors
    /// It is not, or does not run here.
    pub fn check(&self, policy: &HostPolicy) -> Result<(), LabError> {
        let world = self.plan.sides(self.seed, &self.drawn)?;
        real::check(&world.real, policy).map(drop)
    }

    /// Whether a row is of the counter that is asked about.
    pub(super) fn is_wanted(&self, row: &WorldRow) -> bool {
        (&row.kind, &row.counter) == (&self.wanted.kind, &self.wanted.counter)
    }
}

fn is_run(row: &WorldRow, counter: &str) -> bool {
    row.kind == FactKind::Run.name() && row.counter == counter
}

/// The row of the counter that was named, or of the one that is most off.
fn wanted(world: &str, rows: &[WorldRow], counter: Option<&str>) -> Result<WorldRow, LabError> {
    let is_told = |row: &&WorldRow| Class::named(&row.class).is_some();
    let Some(counter) = counter else {
        let most = most_off(rows).ok_or_else(|| WorldsError::Agrees(world.to_owned()))?;
        return Ok(most.clone());
    };
    let Some(row) = rows.iter().filter(is_told).find(|row| row.counter == counter) else {
        let known = rows.iter().filter(is_told).map(|row| row.counter.as_str());
        return Err(UnknownName::new("counter", counter, known).into());
    };
    if Class::named(&row.class).is_some_and(Class::disagrees) {
        return Ok(row.clone());
    }
    let other = most_off(rows).map(|row| row.counter.clone());
    let (world, counter) = (world.to_owned(), counter.to_owned());
    Err(WorldsError::CounterAgrees { world, counter, class: row.class.clone(), other }.into())
}

/// How the runs ended, if that differs; else the counter of `/proc/vmstat` that is off by the most, then that of a
/// cgroup, then the metric that is off by the largest part.
fn most_off(rows: &[WorldRow]) -> Option<&WorldRow> {
    let disagrees = |row: &&WorldRow| Class::named(&row.class).is_some_and(Class::disagrees);
    let off = |row: &&WorldRow| (median(&row.real).unwrap_or(0.0) - median(&row.model).unwrap_or(0.0)).abs();
    let part = |row: &&WorldRow| row.error.unwrap_or(0.0).abs();
    let of = |kind: FactKind| rows.iter().filter(disagrees).filter(move |row| row.kind == kind.name());
    of(FactKind::Run)
        .next()
        .or_else(|| of(FactKind::Vmstat).max_by(|a, b| off(a).total_cmp(&off(b))))
        .or_else(|| of(FactKind::Memcg).max_by(|a, b| off(a).total_cmp(&off(b))))
        .or_else(|| of(FactKind::Metric).max_by(|a, b| part(a).total_cmp(&part(b))))
}

/// What a command of the table says: the world, and the side that it is for.
fn parsed(command: &str) -> Option<(Drawn, Side)> {
    let words = words(command);
    let ["pagetide", "run", workload, options @ ..] =
        &words.iter().map(String::as_str).collect::<Vec<_>>()[..]
    else {
        return None;
    };
    let all = |option: &str| -> Vec<String> {
        let pairs = options.chunks_exact(2).filter(|pair| pair[0] == option);
        pairs.map(|pair| pair[1].to_owned()).collect()
    };
    let one = |option: &str| all(option).into_iter().next();
    let machine = one("--machine").unwrap_or_else(|| UML_MACHINE.to_owned());
    let default = || MachineSpec::parse(&machine).ok().map(|spec| spec.default_mem.to_string());
    let backend: Backend = one("--on").as_deref().unwrap_or("sim").parse().ok()?;
    let drawn = Drawn {
        workload: WorkloadSpec::find(workload).ok()?.name,
        mem: one("--mem").or_else(default)?,
        params: all("--param"),
        sysctls: all("--set"),
        swap: one("--swap").filter(|swap| swap != "none"),
        kernel: None,
        machine: (backend == Backend::Sim && machine != UML_MACHINE).then_some(machine),
    };
    let guest = GuestRequest { lru_gen: one("--lru-gen"), ..GuestRequest::default() };
    Some((drawn, Side { backend, kernel: one("--kernel"), guest, machine: None }))
}

/// The words of a command, as a shell would have them.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut quoted, mut word) = (Vec::new(), false, None::<String>);
    for c in command.chars() {
        match c {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_of_the_table_is_a_world_again() {
        let command = "pagetide run anon-and-file --kernel linux-6.12 --machine guest-uml --mem 300M --swap disk:64M \
                       --param hot=3M --param 'a b=c' --set vm.swappiness=3";
        assert_eq!(words(command)[14], "a b=c");
        let (drawn, side) = parsed(&command.replace(" --param 'a b=c'", "")).unwrap();
        assert_eq!((&*drawn.mem, drawn.swap.as_deref(), drawn.machine), ("300M", Some("disk:64M"), None));
        assert_eq!(
            (drawn.params, drawn.sysctls),
            (vec!["hot=3M".to_owned()], vec!["vm.swappiness=3".to_owned()])
        );
        assert_eq!(side.name(), "linux-6.12");
        let (drawn, side) = parsed("pagetide run simoop --on uml:6.12 --lru-gen on").unwrap();
        assert_eq!((&*drawn.mem, &*side.name()), ("512M", "uml:6.12,lru_gen=on"));
        assert!(parsed("pagetide list").is_none() && parsed("pagetide run nothing").is_none());
    }
}
