//! Open files: what a descriptor holds, and how the kernel learns that it was dropped.

use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::rc::Rc;

use mm::base::ids::MappingId;

use crate::cache::window::Readahead;
use crate::files::inode::Inode;

/// Inodes whose descriptors were dropped: the kernel takes note at its next step.
pub(crate) type Closed = Rc<RefCell<Vec<Rc<Inode>>>>;

/// A descriptor; dropping it closes the file.
#[derive(Debug)]
pub struct Descriptor {
    pub(crate) inode: Rc<Inode>,
    pub(crate) readahead: Cell<Readahead>,
    closed: Closed,
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        self.closed.borrow_mut().push(Rc::clone(&self.inode));
    }
}

/// An open file with its readahead state. Clones share both, as duplicated descriptors do; dropping the
/// last one closes the file, see [`put_closed`](crate::Kernel::put_closed).
#[derive(Debug, Clone)]
pub struct OpenFile(Rc<Descriptor>);

impl Deref for OpenFile {
    type Target = Descriptor;

    fn deref(&self) -> &Descriptor {
        &self.0
    }
}

impl Descriptor {
    /// The file's page cache, which stays its as long as it is open.
    pub fn mapping(&self) -> MappingId {
        self.inode.mapping
    }
}

impl OpenFile {
    /// A new descriptor of `inode`, which is put on `closed` when the last clone is dropped.
    pub(crate) fn new(inode: Rc<Inode>, closed: &Closed) -> Self {
        let readahead = Cell::new(Readahead::new());
        Self(Rc::new(Descriptor { inode, readahead, closed: Rc::clone(closed) }))
    }
}
