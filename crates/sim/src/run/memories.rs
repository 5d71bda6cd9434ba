//! Memory that simulated tasks share, as each of them has it: what `system.rs` hands to tasks that are spawned.
//!
//! A task that forks gives its child all that it has, mapped or not; the pages go with the last one that has them.
//! Their life is in `kernel`, in `anon/shared.rs`.

use std::cell::RefCell;
use std::rc::Rc;

use kernel::SharedFile;
use workload::system::{Errno, SharedMemory};

/// What one task shares.
#[derive(Default)]
pub(crate) struct Memories(RefCell<Vec<Option<Memory>>>);

#[derive(Clone)]
struct Memory {
    pages: SharedFile,
    /// Whether the task's mapping of it was handed out.
    held: bool,
}

impl Memories {
    /// Pages that the task has from now on.
    pub(crate) fn add(&self, pages: SharedFile) -> SharedMemory {
        let mut all = self.0.borrow_mut();
        all.push(Some(Memory { pages, held: false }));
        SharedMemory(u32::try_from(all.len() - 1).expect("a program has few of them"))
    }

    /// What a task has that is spawned now.
    pub(crate) fn inherited(&self) -> Rc<Self> {
        let copy = |memory: &Memory| Memory { held: false, ..memory.clone() };
        let all = self.0.borrow().iter().map(|memory| memory.as_ref().map(copy)).collect();
        Rc::new(Self(RefCell::new(all)))
    }

    /// Pages whose mapping is handed out now.
    ///
    /// # Errors
    /// `NoEnt` where the task does not have them; `Exist` where that has happened.
    pub(crate) fn hold(&self, memory: SharedMemory) -> Result<SharedFile, Errno> {
        let mut all = self.0.borrow_mut();
        let known = all.get_mut(memory.0 as usize).and_then(Option::as_mut).ok_or(Errno::NoEnt)?;
        if std::mem::replace(&mut known.held, true) {
            return Err(Errno::Exist);
        }
        Ok(known.pages.clone())
    }

    /// The task has them no more.
    pub(crate) fn forget(&self, memory: SharedMemory) {
        self.0.borrow_mut()[memory.0 as usize] = None;
    }
}
