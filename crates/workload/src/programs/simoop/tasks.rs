//! What the tasks of `simoop` do, each until its time is over. Next: [`super::rates`].

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos, PAGE_SIZE, Stream};

use crate::parts::buffer;
use crate::system::errno::{Errno, SystemError};
use crate::system::{OpenMode, System};

/// A file that only walkers look at.
pub(super) const TREE_FILE_SIZE: Bytes = Bytes(PAGE_SIZE);

/// Pages that a worker touches without a pause: a huge page's.
const TOUCHED_AT_ONCE: u64 = 512;

/// A burning task looks at the clock so often.
const BURN: Nanos = Nanos::from_millis(4);

/// The files that are there from the beginning.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tree {
    pub(super) directories: u64,
    pub(super) files: u64,
    pub(super) file_size: Bytes,
}

pub(super) fn directory(number: u64) -> String {
    format!("d{number:03}")
}

impl Tree {
    /// The data file with this number.
    pub(super) fn data(&self, number: u64) -> String {
        format!("{}/data{number:06}", directory(number % self.directories))
    }

    /// The file with this number that nobody reads.
    pub(super) fn small(&self, number: u64) -> String {
        format!("{}/t{number:08}", directory(number % self.directories))
    }

    /// A file of what a worker made of a work.
    fn result(&self, worker: u64, work: u64, piece: u64) -> String {
        format!("{}/w{worker:04}-{work:07}-{piece:04}", directory(worker % self.directories))
    }
}

/// One work: when it was over, and how long its parts took, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Work {
    pub(super) ended: Nanos,
    pub(super) read_us: u64,
    pub(super) alloc_us: u64,
    pub(super) write_us: u64,
}

/// A worker.
#[derive(Debug, Clone, Copy)]
pub(super) struct Worker {
    pub(super) number: u64,
    pub(super) tree: Tree,
    /// Pages of its part of the working set.
    pub(super) kept_pages: u64,
    /// Pages that a work touches.
    pub(super) mapped_pages: u64,
    /// How long it waits in all while it touches them.
    pub(super) alloc_wait: Nanos,
    pub(super) pieces: u64,
    pub(super) read_size: Bytes,
    pub(super) write_size: Bytes,
    /// Results that it keeps.
    pub(super) kept: u64,
    pub(super) end: Nanos,
}

impl Worker {
    /// Works until the end; returns its works.
    pub(super) async fn work<S: System>(self, sys: &S, mut stream: Stream) -> Result<Vec<Work>, SystemError> {
        let working_set = sys.map_anonymous(Bytes(self.kept_pages * PAGE_SIZE)).await?;
        sys.fill(&working_set, 0, self.kept_pages).await?;
        buffer::use_large(sys, self.read_size.max(self.write_size)).await?;
        let mut works = Vec::new();
        for number in 0.. {
            let begin = sys.now();
            if begin >= self.end {
                break;
            }
            let mapped = sys.map_anonymous(Bytes(self.mapped_pages * PAGE_SIZE)).await?;
            let mut first = 0;
            while first < self.mapped_pages {
                let count = TOUCHED_AT_ONCE.min(self.mapped_pages - first);
                sys.fill(&mapped, first, count).await?;
                sys.sleep(Nanos(self.alloc_wait.get() * count / self.mapped_pages)).await;
                first += count;
            }
            let allocated = sys.now();
            self.read(sys, &mut stream).await?;
            let read = sys.now();
            self.write(sys, number).await?;
            let written = sys.now();
            drop(mapped);
            if number >= self.kept {
                self.delete(sys, number - self.kept).await?;
            }
            let micros = |from: Nanos, to: Nanos| to.saturating_sub(from).get() / 1000;
            works.push(Work {
                ended: sys.now(),
                read_us: micros(allocated, read),
                alloc_us: micros(begin, allocated),
                write_us: micros(read, written),
            });
        }
        Ok(works)
    }

    async fn read<S: System>(&self, sys: &S, stream: &mut Stream) -> Result<(), SystemError> {
        let places = (self.tree.file_size.get() - self.read_size.get()) / PAGE_SIZE + 1;
        for _ in 0..self.pieces {
            let path = self.tree.data(stream.below(self.tree.files));
            let offset = stream.below(places) * PAGE_SIZE;
            let file = sys.open(&path, OpenMode::Read).await?;
            sys.read(&file, offset, self.read_size.get()).await?;
        }
        Ok(())
    }

    async fn write<S: System>(&self, sys: &S, work: u64) -> Result<(), SystemError> {
        for piece in 0..self.pieces {
            let path = self.tree.result(self.number, work, piece);
            let file = sys.open(&path, OpenMode::Create).await?;
            sys.write(&file, 0, self.write_size.get()).await?;
        }
        Ok(())
    }

    async fn delete<S: System>(&self, sys: &S, work: u64) -> Result<(), SystemError> {
        for piece in 0..self.pieces {
            sys.unlink(&self.tree.result(self.number, work, piece)).await?;
        }
        Ok(())
    }
}

/// A task that looks at all files.
#[derive(Debug, Clone, Copy)]
pub(super) struct Walker {
    pub(super) tree: Tree,
    pub(super) pause: Nanos,
    pub(super) end: Nanos,
}

impl Walker {
    /// Walks until the end.
    pub(super) async fn walk<S: System>(self, sys: &S) -> Result<(), SystemError> {
        while sys.now() < self.end {
            for number in 0..self.tree.directories {
                let directory = directory(number);
                for name in sys.read_dir(&directory).await? {
                    match sys.file_size(&format!("{directory}/{name}")).await {
                        // It is deleted meanwhile.
                        Err(error) if error.errno != Errno::NoEnt => return Err(error),
                        _ => {}
                    }
                }
            }
            sys.sleep(self.pause.min(self.end.saturating_sub(sys.now()))).await;
        }
        Ok(())
    }
}

/// Keeps a CPU busy until `end`.
pub(super) async fn burn<S: System>(sys: &S, end: Nanos) -> Result<(), SystemError> {
    while sys.now() < end {
        sys.compute(BURN);
        // A call at which the model lets the time pass; a real program has used the CPU by then.
        sys.cpu_time().await?;
    }
    Ok(())
}
