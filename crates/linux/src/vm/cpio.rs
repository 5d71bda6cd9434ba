//! Writes the initramfs: a cpio archive in the `newc` format that the Linux kernel unpacks.
//!
//! The format is in the kernel's documentation, `driver-api/early-userspace/buffer-format.rst`:
//! each member is a header of 110 ASCII characters, its name with a NUL, and its content, the
//! last two padded to 4 bytes; a member called `TRAILER!!!` ends the archive.
//!
//! Left out: links, owners other than root, times (all zero, so that equal content makes equal
//! bytes), compression (memory to memory it costs more than it saves).

use std::collections::BTreeSet;

const MODE_DIRECTORY: u32 = 0o040_755;
const MODE_PROGRAM: u32 = 0o100_755;
const MODE_CHARACTER_DEVICE: u32 = 0o020_600;

/// An archive that grows in memory.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    members: u32,
    directories: BTreeSet<String>,
}

impl Archive {
    /// An empty archive.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a directory and all directories above it; those that are there already are left alone.
    ///
    /// # Panics
    /// When `path` is absolute: that is a bug of the caller.
    pub fn directory(&mut self, path: &str) {
        assert!(!path.starts_with('/'), "members are relative to the root: `{path}`");
        for (end, _) in path.match_indices('/').chain([(path.len(), "")]) {
            let parent = &path[..end];
            if !parent.is_empty() && self.directories.insert(parent.to_owned()) {
                self.member(parent, MODE_DIRECTORY, (0, 0), &[]);
            }
        }
    }

    /// Adds a file that everybody may read and execute, and the directories above it.
    pub fn file(&mut self, path: &str, content: &[u8]) {
        self.parents(path);
        self.member(path, MODE_PROGRAM, (0, 0), content);
    }

    /// Adds a character device, and the directories above it.
    pub fn character_device(&mut self, path: &str, major: u32, minor: u32) {
        self.parents(path);
        self.member(path, MODE_CHARACTER_DEVICE, (major, minor), &[]);
    }

    /// Ends the archive and returns its bytes.
    pub fn finish(mut self) -> Vec<u8> {
        self.member("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }

    fn parents(&mut self, path: &str) {
        if let Some((parent, _)) = path.rsplit_once('/') {
            self.directory(parent);
        }
    }

    fn member(&mut self, name: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        self.members += 1;
        let size = u32::try_from(content.len()).expect("a member of an initramfs is below 4 GiB");
        let name_size = u32::try_from(name.len() + 1).expect("a name is short");
        let links = if mode & 0o170_000 == 0o040_000 { 2 } else { 1 };
        let (no_uid, no_gid, no_time, no_checksum) = (0, 0, 0, 0);
        let (container_major, container_minor) = (0, 0);
        let fields = [
            self.members,
            mode,
            no_uid,
            no_gid,
            links,
            no_time,
            size,
            container_major,
            container_minor,
            device.0,
            device.1,
            name_size,
            no_checksum,
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08X}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_exactly_the_bytes_that_the_format_asks_for() {
        let mut archive = Archive::new();
        archive.file("lib/a", b"hello");
        archive.character_device("lib/c", 5, 1);
        let expected = [
            "070701000000010000",
            "41ED0000000000000000000000020000000000000000000000000000000000000000000000000000000400000000lib\0\0\0",
            "070701000000020000",
            "81ED0000000000000000000000010000000000000005000000000000000000000000000000000000000600000000lib/a\0hello\0\0\0",
            "070701000000030000",
            "21800000000000000000000000010000000000000000000000000000000000000005000000010000000600000000lib/c\0",
            "070701000000040000",
            "00000000000000000000000000010000000000000000000000000000000000000000000000000000000B00000000TRAILER!!!\0\0\0\0",
        ]
        .concat();
        assert_eq!(String::from_utf8(archive.finish()).unwrap(), expected);
    }

    #[test]
    fn every_directory_stands_before_its_content_and_only_once() {
        let mut archive = Archive::new();
        archive.directory("a/b");
        archive.directory("a");
        archive.file("a/b/c", b"");
        archive.file("a/d", b"");
        let text = String::from_utf8(archive.finish()).unwrap();
        let names: Vec<_> = text.split('\0').filter_map(|part| part.get(110..)).collect();
        assert_eq!(names, ["a", "a/b", "a/b/c", "a/d", "TRAILER!!!"]);
    }
}
