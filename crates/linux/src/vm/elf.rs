//! Takes a program of this host into the guest: the executable and the libraries that it needs.
//!
//! The guest's `/init` is the running program itself, so nothing is compiled a second time and
//! host and guest cannot disagree about a format. A statically linked program goes alone. A
//! dynamically linked one takes its loader, at the path that the executable names, and its
//! libraries, which the loader lists (`ld.so --list`, the mechanism below `ldd`).
//!
//! Debugging sections stay behind: an initramfs is memory that the guest cannot reclaim, and what
//! a process maps ends with its last segment.
//!
//! Left out: 32-bit programs, libraries that are opened by name at run time.

use std::path::{Path, PathBuf};
use std::process::Command;

use object::LittleEndian;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader as _, ProgramHeader as _};

use super::cpio::Archive;
use super::error::VmError;

/// Where libraries lie in the guest; its loader is told by `LD_LIBRARY_PATH`.
pub const LIBRARY_DIR: &str = "lib/pagetide";

/// A program with all that it needs to run.
#[derive(Debug)]
pub struct Program {
    /// The executable, up to the end of its last segment.
    pub image: Vec<u8>,
    /// The dynamic loader; `None` for a static program.
    pub interpreter: Option<PathBuf>,
    /// Libraries on this host, by the name under which the loader looks for them.
    pub libraries: Vec<(String, PathBuf)>,
}

impl Program {
    /// Reads the program at `path` and finds its libraries.
    ///
    /// # Errors
    /// It is not a 64-bit ELF program, or a library is missing.
    pub fn read(path: &Path) -> Result<Self, VmError> {
        let bytes = std::fs::read(path).map_err(|source| VmError::io("read", path, source))?;
        let bad = |why: String| VmError::BadProgram { path: path.to_owned(), why };
        let (end, interpreter) = inspect(&bytes).map_err(bad)?;
        let libraries = match &interpreter {
            None => Vec::new(),
            Some(loader) => {
                let output = Command::new(loader)
                    .arg("--list")
                    .arg(path)
                    .output()
                    .map_err(|source| VmError::io("run", loader, source))?;
                parse_library_list(&String::from_utf8_lossy(&output.stdout)).map_err(bad)?
            }
        };
        Ok(Self { image: without_sections(bytes, end), interpreter, libraries })
    }

    /// Puts the program into `archive` as `/init`.
    ///
    /// # Errors
    /// A library cannot be read.
    pub fn install(&self, archive: &mut Archive) -> Result<(), VmError> {
        let read = |path: &Path| std::fs::read(path).map_err(|source| VmError::io("read", path, source));
        archive.file("init", &self.image);
        if let Some(loader) = &self.interpreter {
            archive.file(loader.to_string_lossy().trim_start_matches('/'), &read(loader)?);
        }
        for (name, path) in &self.libraries {
            archive.file(&format!("{LIBRARY_DIR}/{name}"), &read(path)?);
        }
        Ok(())
    }
}

/// The architecture of kernels and guests (ELF's `e_machine`).
pub const X86_64: u16 = object::elf::EM_X86_64.0;

/// The architecture of a 64-bit little-endian ELF file; `None` for any other.
pub fn machine_of(bytes: &[u8]) -> Option<u16> {
    let header = FileHeader64::<LittleEndian>::parse(bytes).ok()?;
    Some(header.e_machine(header.endian().ok()?).0)
}

/// Lets the program at `path` ask for its loader in `folder` of where it is started; returns the loader's name
/// from there. The name in the file is shorter then, and all else stays where it is.
///
/// # Errors
/// It has no loader, or one whose name leaves no room.
pub fn set_loader(path: &Path, folder: &str) -> Result<PathBuf, VmError> {
    let bad = |why: &str| VmError::bad_kernel(path, why);
    let mut bytes = std::fs::read(path).map_err(|source| VmError::io("read", path, source))?;
    let (_, loader) = inspect(&bytes).map_err(|why| bad(&why))?;
    let loader = loader.ok_or_else(|| bad("it is linked statically, and yet does not run on this host"))?;
    let old = loader.to_string_lossy().into_owned().into_bytes();
    let name = loader.file_name().ok_or_else(|| bad("its loader has no name"))?;
    let new = Path::new(folder).join(name);
    let text = new.to_string_lossy().into_owned().into_bytes();
    let place = bytes.windows(old.len()).position(|window| window == old);
    let place =
        place.filter(|_| text.len() <= old.len()).ok_or_else(|| bad("its loader's name has no room"))?;
    bytes[place..place + old.len()].fill(0);
    bytes[place..place + text.len()].copy_from_slice(&text);
    std::fs::write(path, bytes).map_err(|source| VmError::io("write", path, source))?;
    Ok(new)
}

/// The end of the last segment in the file, and the loader that the program asks for.
fn inspect(bytes: &[u8]) -> Result<(usize, Option<PathBuf>), String> {
    let explain = |error: object::read::Error| error.to_string();
    let header = FileHeader64::<LittleEndian>::parse(bytes).map_err(explain)?;
    let endian = header.endian().map_err(explain)?;
    let segments = header.program_headers(endian, bytes).map_err(explain)?;
    let mut end = 0;
    let mut interpreter = None;
    for segment in segments {
        let (offset, size) = segment.file_range(endian);
        end = end.max(offset.saturating_add(size));
        if let Some(name) = segment.interpreter(endian, bytes).map_err(explain)? {
            interpreter = Some(PathBuf::from(String::from_utf8_lossy(name).into_owned()));
        }
    }
    let end = usize::try_from(end).ok().filter(|end| (1..=bytes.len()).contains(end));
    Ok((end.ok_or("it has no segments, or they are cut off")?, interpreter))
}

/// Cuts off what no process maps, and tells the header that there are no sections any more.
fn without_sections(mut bytes: Vec<u8>, end: usize) -> Vec<u8> {
    const SECTION_TABLE_OFFSET: std::ops::Range<usize> = 0x28..0x30;
    const SECTION_COUNT_AND_NAMES: std::ops::Range<usize> = 0x3c..0x40;
    bytes.truncate(end);
    if bytes.len() >= size_of::<FileHeader64<LittleEndian>>() {
        bytes[SECTION_TABLE_OFFSET].fill(0);
        bytes[SECTION_COUNT_AND_NAMES].fill(0);
    }
    bytes
}

/// Reads lines such as `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f…)`.
fn parse_library_list(text: &str) -> Result<Vec<(String, PathBuf)>, String> {
    let mut libraries = Vec::new();
    for line in text.lines() {
        let Some((name, target)) = line.trim().split_once(" => ") else { continue };
        let path = target.rsplit_once(" (0x").map_or(target, |(path, _)| path);
        if !path.starts_with('/') {
            return Err(format!("library `{name}` is {path}"));
        }
        if !name.starts_with('/') {
            libraries.push((name.to_owned(), PathBuf::from(path)));
        }
    }
    Ok(libraries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loaders_list_gives_libraries_and_leaves_out_the_kernels_own() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd4b5f2000)\n\
                    \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f7b6ca00000)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f7b6cd0f000)\n";
        let expected = vec![("libc.so.6".to_owned(), PathBuf::from("/lib/x86_64-linux-gnu/libc.so.6"))];
        assert_eq!(parse_library_list(text), Ok(expected));
        assert_eq!(
            parse_library_list("\tlibz.so.1 => not found\n"),
            Err("library `libz.so.1` is not found".to_owned())
        );
    }

    #[test]
    fn a_program_without_its_sections_still_runs() {
        let dir = tempfile::tempdir().unwrap();
        let program = Program::read(Path::new("/bin/true")).unwrap();
        let copy = dir.path().join("true");
        std::fs::write(&copy, &program.image).unwrap();
        std::fs::set_permissions(&copy, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        assert!(Command::new(&copy).status().unwrap().success());
        assert!(program.image.len() <= std::fs::metadata("/bin/true").unwrap().len() as usize);
    }

    /// A program whose loader lies elsewhere runs from where that is found.
    #[test]
    fn a_program_asks_for_its_loader_where_it_is_started() {
        let dir = tempfile::tempdir().unwrap();
        let copy = dir.path().join("true");
        let loader = Program::read(Path::new("/bin/true")).unwrap().interpreter.unwrap();
        std::fs::copy("/bin/true", &copy).unwrap();
        let name = set_loader(&copy, "lib").unwrap();
        assert_eq!(name, Path::new("lib").join(loader.file_name().unwrap()));
        let started = || Command::new(&copy).current_dir(&dir).status();
        assert!(started().is_err(), "there is no loader yet");
        std::fs::create_dir(dir.path().join("lib")).unwrap();
        std::fs::copy(&loader, dir.path().join(&name)).unwrap();
        assert!(started().unwrap().success());
        assert_eq!(machine_of(&std::fs::read(&copy).unwrap()), Some(X86_64));
        assert!(set_loader(&copy, "a-longer-name").is_err());
    }

    #[test]
    fn text_is_not_a_program() {
        let error = inspect(b"#!/bin/sh\n").unwrap_err();
        assert!(!error.is_empty());
        let mut header = vec![0; 64];
        header[..4].copy_from_slice(b"\x7fELF");
        assert!(inspect(&header).is_err());
    }
}
