//! `MANIFEST`: what a recording consists of, written last.
//!
//! A title, the version of the format, a line with length and xxh3-128 for each file, and a hash over these
//! lines, which names the recording. Events come behind it and have a hash of their own, so that a run is
//! called the same with and without them. The hashes find damage and careless edits; they are no signature.

use std::fmt;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_128;

use crate::disk::{read_file, utf8};
use crate::layout::{EVENTS, JSON, MANIFEST, event_file, files_of, is_growing};
use crate::partial::partial_name;
use crate::{RecordingError, SCHEMA, SCHEMA_OLDEST};

/// Its first line.
pub(crate) const TITLE: &str = "pagetide recording";
/// What the last line begins with, and the one before the events.
const CONTENT: &str = "content";

/// 128 bits that name the bytes of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentHash(pub u128);

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// What `MANIFEST` says about one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Listed {
    length: u64,
    hash: u128,
}

impl Listed {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self { length: bytes.len() as u64, hash: xxh3_128(bytes) }
    }

    /// Whether `bytes` are those that were listed.
    pub(crate) fn check(self, bytes: &[u8], path: PathBuf) -> Result<(), RecordingError> {
        let found = Self::of(bytes);
        let problem = if found.length != self.length {
            format!("it has {} bytes, `{MANIFEST}` says {}", found.length, self.length)
        } else if found.hash != self.hash {
            format!("its hash is {:032x}, `{MANIFEST}` says {:032x}", found.hash, self.hash)
        } else {
            return Ok(());
        };
        Err(RecordingError::Changed { path, problem })
    }
}

/// The files of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// Version of the format.
    pub(crate) schema: u32,
    /// All files but those of the events, in the order of the format.
    pub(crate) files: Vec<(String, Listed)>,
    /// Files of the events, in order.
    pub(crate) events: Vec<(String, Listed)>,
}

impl Manifest {
    /// What that of a recording says; `None` for what a run left that did not end.
    ///
    /// # Errors
    /// No recording, or `MANIFEST` cannot be read.
    pub(crate) fn of(folder: &Path) -> Result<Option<Self>, RecordingError> {
        if !folder.exists() {
            let partial = partial_name(folder, 1).filter(|partial| partial.is_dir());
            return Err(RecordingError::NoFolder { path: folder.to_owned(), partial });
        }
        if !folder.is_dir() {
            return Err(RecordingError::NotAFolder { path: folder.to_owned() });
        }
        let path = folder.join(MANIFEST);
        match read_file(&path) {
            // Other programs have files of that name, too.
            Ok(bytes) if !bytes.starts_with(TITLE.as_bytes()) && !folder.join(JSON).is_file() => {
                Err(RecordingError::Foreign { path: folder.to_owned() })
            }
            Ok(bytes) => Self::decode(&bytes, &path).map(Some),
            Err(RecordingError::Missing { .. }) if is_growing(folder) => Ok(None),
            Err(RecordingError::Missing { .. }) if !folder.join(JSON).is_file() => {
                Err(RecordingError::Foreign { path: folder.to_owned() })
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn new<'a>(files: impl Iterator<Item = (&'a str, &'a [u8])>) -> Self {
        let files = files.map(|(name, bytes)| (name.to_owned(), Listed::of(bytes))).collect();
        Self { schema: SCHEMA, files, events: Vec::new() }
    }

    /// What `name` is listed as.
    pub(crate) fn listed(&self, name: &str) -> Option<Listed> {
        self.files.iter().find(|(listed, _)| listed == name).map(|&(_, listed)| listed)
    }

    /// The hash over all but the events.
    pub(crate) fn content_hash(&self) -> ContentHash {
        let lines = lines(&self.files);
        ContentHash(xxh3_128(format!("{TITLE}\nschema {}\n{lines}", self.schema).as_bytes()))
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let lines = lines(&self.files);
        let content = self.content_hash();
        let mut text = format!("{TITLE}\nschema {}\n{lines}{CONTENT} {content}\n", self.schema);
        if !self.events.is_empty() {
            let events = self::lines(&self.events);
            text += &format!("{events}{EVENTS} {:032x}\n", xxh3_128(events.as_bytes()));
        }
        text.into_bytes()
    }

    /// # Errors
    /// Another version, or not what [`Manifest::encode`] writes.
    pub(crate) fn decode(bytes: &[u8], path: &Path) -> Result<Self, RecordingError> {
        let text = utf8(bytes, path)?;
        let malformed = |line: usize, expected: &str| RecordingError::Malformed {
            path: path.to_owned(),
            line: line as u64,
            column: 1,
            problem: format!("expected {expected}"),
        };
        if text.lines().next() != Some(TITLE) {
            return Err(malformed(1, &format!("`{TITLE}`")));
        }
        let schema = text.lines().nth(1).and_then(|line| line.strip_prefix("schema ")?.parse::<u64>().ok());
        let found = schema.ok_or_else(|| malformed(2, "`schema` and a number"))?;
        let known = u32::try_from(found).ok().filter(|schema| (SCHEMA_OLDEST..=SCHEMA).contains(schema));
        let schema = known.ok_or_else(|| RecordingError::Schema { path: path.to_owned(), found })?;
        let mut manifest = Self { schema, files: Vec::new(), events: Vec::new() };
        for (name, listed) in text.lines().skip(2).filter_map(decode_line) {
            let is_event = name == event_file(manifest.events.len());
            let list = if is_event { &mut manifest.events } else { &mut manifest.files };
            list.push((name, listed));
        }
        manifest.check_names().map_err(|(line, expected)| malformed(line, &expected))?;
        let written = manifest.encode();
        let written = utf8(&written, path)?;
        if written == text {
            return Ok(manifest);
        }
        let same =
            text.lines().zip(written.lines()).take_while(|(found, expected)| found == expected).count();
        let expected = match written.lines().nth(same) {
            Some(line) if line.starts_with("file ") => format!("`{line}`"),
            Some(line) => {
                format!("`{}` and the hash of the lines above", line.split(' ').next().unwrap_or(""))
            }
            None => "no further line".to_owned(),
        };
        Err(malformed(same + 1, &expected))
    }

    /// Whether these are the files of the format, in its order; an error is the line and what should be there.
    fn check_names(&self) -> Result<(), (usize, String)> {
        let (required, optional) = files_of(self.schema);
        let mut listed = self.files.iter().map(|(name, _)| name.as_str()).zip(3..);
        for name in required {
            match listed.next() {
                Some((found, _)) if found == name => {}
                _ => {
                    let line = required.iter().position(|other| *other == name).unwrap_or(0) + 3;
                    return Err((line, format!("`file {name}`, its length and its hash")));
                }
            }
        }
        let mut optional = optional.iter();
        for (found, line) in listed {
            if !optional.any(|name| *name == found) {
                return Err((line, format!("no `{}` there", found.escape_default())));
            }
        }
        Ok(())
    }
}

fn lines(files: &[(String, Listed)]) -> String {
    let line =
        |(name, Listed { length, hash }): &(String, Listed)| format!("file {name} {length} {hash:032x}\n");
    files.iter().map(line).collect()
}

fn decode_line(line: &str) -> Option<(String, Listed)> {
    let mut words = line.strip_prefix("file ")?.split(' ');
    let (name, length, hash) = (words.next()?, words.next()?, words.next()?);
    let listed = Listed { length: length.parse().ok()?, hash: u128::from_str_radix(hash, 16).ok()? };
    Some((name.to_owned(), listed))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn arbitrary_manifests_never_panic(text in "(pagetide recording\n)?(schema [0-9]{1,22}\n)?(file [ a-z.]{0,20}\n){0,3}\\PC*") {
            prop_assert!(Manifest::decode(text.as_bytes(), Path::new("runs/first/MANIFEST")).is_err());
        }
    }
}
