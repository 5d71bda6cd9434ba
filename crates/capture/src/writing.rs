//! From the follower to whoever writes the trace: pieces, by a thread of their own, so that nobody waits for a disk
//! or a compressor.

use std::io;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender};

use trace::{Operation, TraceFile, TraceMapping, TraceTask};

use crate::follower::Follower;
use crate::locked;

/// Operations in one piece, or more.
const PIECE: usize = 1 << 14;
/// Pieces that wait to be written at most; then the program waits, too.
pub(crate) const WAITING_MAX: usize = 64;

/// A part of a trace: operations in order of time, and the rows that were added to the tables meanwhile.
#[derive(Debug, Clone, Default)]
pub struct Piece {
    /// Operations.
    pub operations: Vec<Operation>,
    /// New tasks; the name of one may change later.
    pub tasks: Vec<TraceTask>,
    /// New files.
    pub files: Vec<TraceFile>,
    /// New mappings.
    pub mappings: Vec<TraceMapping>,
}

/// The way out of the follower.
#[derive(Debug)]
pub(crate) struct Outlet {
    /// Nothing once nobody takes pieces any more.
    sender: Mutex<Option<SyncSender<Piece>>>,
    /// Rows that were passed on: tasks, files, mappings.
    passed: Mutex<(usize, usize, usize)>,
}

impl Outlet {
    pub(crate) fn new(sender: SyncSender<Piece>) -> Self {
        Self { sender: Mutex::new(Some(sender)), passed: Mutex::new((0, 0, 0)) }
    }

    /// Passes on what is ready, if it is worth it.
    pub(crate) fn pass(&self, follower: &mut Follower) {
        if follower.ready() >= PIECE {
            self.pass_all(follower, false);
        }
    }

    /// Passes on what is ready; with `all` what waits for a call's end, too.
    pub(crate) fn pass_all(&self, follower: &mut Follower, all: bool) {
        let operations = follower.take(all);
        let mut passed = locked(&self.passed);
        let rows = follower.rows_from(passed.0, passed.1, passed.2);
        *passed = follower.lengths();
        let mut sender = locked(&self.sender);
        let (tasks, files, mappings) = (rows.tasks, rows.files, rows.mappings);
        let piece = Piece { operations, tasks, files, mappings };
        if sender.as_ref().is_some_and(|sender| sender.send(piece).is_err()) {
            *sender = None;
        }
    }

    /// No more pieces come.
    pub(crate) fn close(&self) {
        *locked(&self.sender) = None;
    }
}

/// Hands pieces to `sink` until no more come; the first error ends it, and what came before it is written.
pub(crate) fn write(
    pieces: Receiver<Piece>,
    sink: &mut dyn FnMut(Piece) -> io::Result<()>,
) -> io::Result<()> {
    for piece in pieces {
        sink(piece)?;
    }
    Ok(())
}
