//! The bytes of a trace: a file or standard input, named by a hash while they are read.
//!
//! Standard input can be read once. Where it must be read again, for instance because each kernel
//! reads the trace for itself, it is kept in a temporary file until the replay is over.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;
use trace::requests::TraceError;
use xxhash_rust::xxh3::Xxh3;

use super::scenario::{STDIN, TraceId};
use crate::error::LabError;

/// A trace that can be opened.
#[derive(Debug)]
pub(crate) struct Input {
    /// As it was given.
    name: PathBuf,
    /// Standard input, kept.
    kept: Option<NamedTempFile>,
}

impl Input {
    /// The trace called `name`. With `again` it can be opened more than once.
    pub(crate) fn new(name: &Path, again: bool) -> Result<Self, LabError> {
        let unreadable = |source| LabError::unreadable_trace(name, source);
        let mut kept = None;
        if again && name == Path::new(STDIN) {
            let mut file = NamedTempFile::new().map_err(unreadable)?;
            io::copy(&mut io::stdin(), &mut file).map_err(unreadable)?;
            kept = Some(file);
        }
        Ok(Self { name: name.to_owned(), kept })
    }

    /// Whether standard input was put into a temporary file.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// Where it can be opened again.
    pub(crate) fn path(&self) -> &Path {
        self.kept.as_ref().map_or(&self.name, |file| file.path())
    }

    /// Its length; 0 where it is not known.
    pub(crate) fn length(&self) -> u64 {
        std::fs::metadata(self.path()).map_or(0, |metadata| metadata.len())
    }

    pub(crate) fn open(&self) -> Result<Hashing, LabError> {
        let source: Box<dyn Read + Send> = if self.path() == Path::new(STDIN) {
            Box::new(io::stdin())
        } else {
            let path = self.path();
            Box::new(File::open(path).map_err(|error| self.failed(TraceError::open(path, error)))?)
        };
        Ok(Hashing { source, hasher: Xxh3::new(), bytes: 0 })
    }

    pub(crate) fn failed(&self, source: TraceError) -> LabError {
        LabError::Trace { path: self.name.clone(), source }
    }
}

/// A source that hashes what is read of it.
pub(crate) struct Hashing {
    source: Box<dyn Read + Send>,
    hasher: Xxh3,
    bytes: u64,
}

impl Hashing {
    /// What was read so far: all of the trace when its reader came to the end.
    pub(crate) fn id(&self) -> TraceId {
        TraceId { bytes: self.bytes, hash: self.hasher.digest128() }
    }
}

impl Read for Hashing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}
