//! The folder of worlds: what they are drawn by, one table of all that have finished, and what is not in it yet.
//!
//! Each world is a small file in `unmerged` from the moment at which it has ended, so that nothing but the worlds that
//! ran is lost to whoever pulls the plug. [`WorldsFolder::merge`] puts them into `worlds.parquet`, in the order of
//! their seeds. Seeds are not part of the plan: more of them can be asked for later.

use std::fs::{self, File, TryLockError};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use recording::RecordingError;
use recording::chunk::FactKind;
use recording::worlds::{WorldRow, read_worlds, write_worlds};
use workload::scenario::UML_MACHINE;

use super::WorldsError;
use crate::error::LabError;
use crate::plan::sweep::{PlanOf, SweepFolder};

/// The table.
pub const TABLE: &str = "worlds.parquet";
/// Where worlds are that are not in it yet.
const UNMERGED: &str = "unmerged";

/// A folder that takes worlds of one plan.
#[derive(Debug)]
pub struct WorldsFolder {
    path: PathBuf,
    /// Locked as long as worlds are put into the folder.
    _lock: File,
}

impl WorldsFolder {
    /// Makes the folder, or goes on in one with the same plan; returns also the rows of all that have finished there.
    ///
    /// # Errors
    /// It is something else, or of another plan; another process is at it; a table in it is damaged; the system
    /// refuses.
    pub(super) fn open(path: &Path, plan: &str) -> Result<(Self, Vec<WorldRow>), LabError> {
        let exists = path.symlink_metadata().is_ok();
        SweepFolder::open_for(path, PlanOf::Worlds, Vec::new(), plan, exists)?;
        let lock = path.join(PlanOf::Worlds.file());
        let lock = File::open(&lock).map_err(|source| LabError::unreadable(&lock, source))?;
        match lock.try_lock() {
            // Where the system has no locks there is nobody to find out from.
            Ok(()) | Err(TryLockError::Error(_)) => {}
            Err(TryLockError::WouldBlock) => return Err(WorldsError::Busy(path.to_owned()).into()),
        }
        let rows = if exists { rows(path)? } else { Vec::new() };
        Ok((Self { path: path.to_owned(), _lock: lock }, rows))
    }

    /// Keeps the rows of a world that has ended.
    pub(super) fn keep(&self, seed: u64, rows: &[WorldRow]) -> Result<(), LabError> {
        let unmerged = self.path.join(UNMERGED);
        fs::create_dir_all(&unmerged)
            .map_err(|source| RecordingError::Unwritable { path: unmerged.clone(), source })?;
        Ok(write_worlds(&unmerged.join(format!("{seed}.parquet")), rows)?)
    }

    /// Puts all that has finished into the one table, and returns it.
    pub(super) fn merge(&self) -> Result<Vec<WorldRow>, LabError> {
        let rows = rows(&self.path)?;
        write_worlds(&self.path.join(TABLE), &rows)?;
        let unmerged = self.path.join(UNMERGED);
        // They are in the table; what stays is read again and found to be there.
        let _ = fs::remove_dir_all(unmerged);
        Ok(rows)
    }
}

/// All rows of the folder of an earlier call.
///
/// # Errors
/// It has no worlds, or they are damaged.
pub(super) fn rows_there(path: &Path) -> Result<Vec<WorldRow>, LabError> {
    if !path.is_dir() {
        return Err(WorldsError::NoFolder(path.to_owned()).into());
    }
    if path.join(UNMERGED).is_dir() { rows(path) } else { Ok(read_worlds(&path.join(TABLE))?) }
}

/// The machine of the model's side of these worlds, where it is another than `guest-uml`.
///
/// # Errors
/// They were judged on several.
pub(super) fn machine_of(
    rows: &[WorldRow],
    seeds: &RangeInclusive<u64>,
) -> Result<Option<String>, WorldsError> {
    let models = rows.iter().filter(|row| row.kind == FactKind::Run.name() && row.counter == "model");
    let mut machines = models.filter(|row| seeds.contains(&row.seed)).filter_map(|row| {
        let (_, rest) = row.text.as_deref()?.split_once(" --machine ")?;
        Some((row.seed, rest.split_whitespace().next()?))
    });
    let Some((first, machine)) = machines.next() else { return Ok(None) };
    match machines.find(|(_, other)| *other != machine) {
        Some((second, _)) => Err(WorldsError::Machines { first, second }),
        None => Ok((machine != UML_MACHINE).then(|| machine.to_owned())),
    }
}

/// All rows of a folder, world after world; none of a new one.
///
/// # Errors
/// They cannot be read, or are damaged.
fn rows(path: &Path) -> Result<Vec<WorldRow>, LabError> {
    let table = path.join(TABLE);
    let mut rows = if table.exists() { read_worlds(&table)? } else { Vec::new() };
    let mut there: Vec<u64> = rows.iter().map(|row| row.seed).collect();
    there.dedup();
    let unmerged = path.join(UNMERGED);
    if !unmerged.is_dir() {
        return Ok(rows);
    }
    let entries = fs::read_dir(&unmerged).map_err(|source| LabError::unreadable(&unmerged, source))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension().is_some_and(|is| is == "parquet") {
            let world = read_worlds(&path)?;
            rows.extend(world.into_iter().filter(|row| there.binary_search(&row.seed).is_err()));
        }
    }
    rows.sort_by_key(|row| row.seed); // Stable: the rows of a world stay in their order.
    Ok(rows)
}
