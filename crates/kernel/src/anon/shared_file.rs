//! Files in memory as they are known: names, sizes, pages, and who has them open or mapped.
//!
//! A file lives as long as it has a name or a handle (memory that processes share is a file without a name); whoever
//! drops the last one leaves its pages to be freed at the kernel's next step. Next: [`super::shared`], which reads and
//! writes them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::rc::Rc;

use mm::base::ids::AnonId;

/// Pages of files that nobody has any more.
type Gone = Rc<RefCell<Vec<AnonId>>>;

/// A file in memory.
#[derive(Debug)]
pub struct SharedState {
    /// Its pages, in memory and swapped out.
    pub(crate) anon: AnonId,
    pub(crate) size: Cell<u64>,
    gone: Gone,
}

impl SharedState {
    /// Its length in bytes.
    pub fn size(&self) -> u64 {
        self.size.get()
    }
}

impl Drop for SharedState {
    fn drop(&mut self) {
        self.gone.borrow_mut().push(self.anon);
    }
}

/// A file in memory that is open. Clones are handles on one file.
#[derive(Debug, Clone)]
pub struct SharedFile(Rc<SharedState>);

impl Deref for SharedFile {
    type Target = SharedState;

    fn deref(&self) -> &SharedState {
        &self.0
    }
}

/// All files in memory that have names.
#[derive(Debug, Default)]
pub(crate) struct SharedFiles {
    names: BTreeMap<String, SharedFile>,
    gone: Gone,
}

impl SharedFiles {
    /// The file of a name.
    pub(crate) fn find(&self, name: &str) -> Option<SharedFile> {
        self.names.get(name).cloned()
    }

    /// A file without pages that takes a name.
    pub(crate) fn create(&mut self, name: &str, anon: AnonId) -> SharedFile {
        let file = self.nameless(anon, 0);
        self.names.insert(name.to_owned(), file.clone());
        file
    }

    /// A file of a length, without pages and without a name.
    pub(crate) fn nameless(&self, anon: AnonId, size: u64) -> SharedFile {
        let state = SharedState { anon, size: Cell::new(size), gone: Rc::clone(&self.gone) };
        SharedFile(Rc::new(state))
    }

    /// Takes a name away; none: nobody has it.
    pub(crate) fn unlink(&mut self, name: &str) -> Option<SharedFile> {
        self.names.remove(name)
    }

    /// Gives a file another name, which another one may lose by that; false: there is no such file.
    pub(crate) fn rename(&mut self, from: &str, to: &str) -> bool {
        let file = self.names.remove(from);
        file.map(|file| self.names.insert(to.to_owned(), file)).is_some()
    }

    /// The next file whose pages nobody has any more.
    pub(crate) fn take_gone(&self) -> Option<AnonId> {
        self.gone.borrow_mut().pop()
    }
}
