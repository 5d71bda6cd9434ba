//! Memory of a task: mappings of anonymous memory, shared or not, and of files, page tables of a file, locked buffers.
//!
//! All `unsafe` of this crate is here and in [`crate::process`]. Ranges are checked against their
//! mapping before the kernel or a pointer sees them.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::ptr::NonNull;
use std::rc::Rc;

use rustix::mm::{Advice, MapFlags, ProtFlags};
use rustix::process::Pid;
use units::{Bytes, PAGE_SIZE, Seed};
use workload::system::FileMapping;

/// A mapping that is unmapped when dropped. Neither content nor address leave this file.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    len: usize,
    /// The file that it maps; none for anonymous memory.
    file: Option<Shown>,
    writable: bool,
    /// Of memory that tasks share: what this process knows of it.
    shared: Option<Rc<Cell<Held>>>,
    /// What a touch writes: pages of one repeated byte stay that, all others have something else already.
    touched: Cell<u8>,
}

/// A file that is mapped.
#[derive(Debug)]
struct Shown {
    file: File,
    /// Where the mapping begins.
    offset: u64,
    /// How large it was when somebody last looked: a call for each access would cost more than the access.
    size: Cell<u64>,
}

impl Shown {
    /// Whether the page of `byte` of the mapping is one of the file.
    fn has(&self, byte: usize) -> io::Result<bool> {
        let at = self.offset + byte as u64;
        let page = at - at % PAGE_SIZE;
        if page >= self.size.get() {
            self.size.set(self.file.metadata()?.len());
        }
        Ok(page < self.size.get())
    }
}

/// Memory that tasks share, as a process has it: all of them at the same address.
#[derive(Debug)]
pub(crate) struct Shared {
    start: NonNull<u8>,
    len: usize,
    held: Rc<Cell<Held>>,
}

/// Who unmaps it in this process. What is forked has the state of its parent, but no [`Mapping`] of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    /// Nobody yet.
    ByNone,
    /// A [`Mapping`] of this process.
    By(Pid),
    /// It was unmapped.
    Gone,
}

impl Shared {
    /// Maps memory that processes share which are forked from now on.
    #[allow(unsafe_code)]
    pub(crate) fn new(len: Bytes) -> io::Result<Self> {
        let len = usize::try_from(len.get()).map_err(|_| io::Error::from_raw_os_error(libc::ENOMEM))?;
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: no address is asked for, so the kernel picks one that nothing else is mapped at.
        let start = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), len, prot, MapFlags::SHARED)? };
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        Ok(Self { start, len, held: Rc::new(Cell::new(Held::ByNone)) })
    }

    /// What this process has of it, to unmap it when it is dropped.
    ///
    /// # Errors
    /// `ENOENT` once that has happened, here or in a parent before it forked; `EEXIST` while somebody has it.
    pub(crate) fn take(&self) -> io::Result<Mapping> {
        let own = rustix::process::getpid();
        match self.held.get() {
            Held::Gone => return Err(io::Error::from_raw_os_error(libc::ENOENT)),
            Held::By(other) if other == own => return Err(io::Error::from_raw_os_error(libc::EEXIST)),
            // What a parent holds we have a copy of, which nobody will drop.
            Held::By(_) | Held::ByNone => self.held.set(Held::By(own)),
        }
        let mut mapping = Mapping::new(self.start.as_ptr(), self.len)?;
        (mapping.writable, mapping.shared) = (true, Some(Rc::clone(&self.held)));
        Ok(mapping)
    }
}

impl Mapping {
    /// Maps private anonymous memory.
    #[allow(unsafe_code)]
    pub(crate) fn anonymous(len: Bytes) -> io::Result<Self> {
        let len = usize::try_from(len.get()).map_err(|_| io::Error::from_raw_os_error(libc::ENOMEM))?;
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: no address is asked for, so the kernel picks one that nothing else is mapped at.
        let start =
            unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), len, prot, MapFlags::PRIVATE)? };
        let mut mapping = Self::new(start.cast(), len)?;
        mapping.writable = true;
        Ok(mapping)
    }

    /// Maps a part of a file. Tasks forked from now on do not share it: each of them would count as one that has
    /// accessed what this one accesses.
    #[allow(unsafe_code)]
    pub(crate) fn shown_file(file: &File, offset: u64, len: Bytes, how: FileMapping) -> io::Result<Self> {
        let len = usize::try_from(len.get()).map_err(|_| io::Error::from_raw_os_error(libc::ENOMEM))?;
        let mut prot = ProtFlags::READ;
        prot.set(ProtFlags::WRITE, how.writable);
        prot.set(ProtFlags::EXEC, how.executable);
        let flags = if how.shared { MapFlags::SHARED } else { MapFlags::PRIVATE };
        let own = file.try_clone()?;
        // SAFETY: no address is asked for, so the kernel picks one that nothing else is mapped at. The pages are
        // only read and written byte by byte through volatile accesses, so that the file may change meanwhile.
        let start = unsafe { rustix::mm::mmap(std::ptr::null_mut(), len, prot, flags, file, offset)? };
        let mut mapping = Self::new(start.cast(), len)?;
        let shown = Shown { file: own, offset, size: Cell::new(0) };
        (mapping.file, mapping.writable) = (Some(shown), how.writable);
        mapping.advise(Advice::LinuxDontFork)?;
        Ok(mapping)
    }

    /// Maps a part of a file, to look at its page table only.
    #[allow(unsafe_code)]
    fn of_file(file: &File, offset: u64, len: usize) -> io::Result<Self> {
        // SAFETY: as above. The pages are never read, so that the file may change meanwhile.
        let start = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), len, ProtFlags::READ, MapFlags::SHARED, file, offset)?
        };
        Self::new(start.cast(), len)
    }

    fn new(start: *mut u8, len: usize) -> io::Result<Self> {
        let start = NonNull::new(start).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        Ok(Self { start, len, file: None, writable: false, shared: None, touched: Cell::new(1) })
    }

    /// The bytes of pages `first..first + count`: where they start and how many they are; the last
    /// page of the mapping may be a part.
    fn range(&self, first: u64, count: u64) -> io::Result<(usize, usize)> {
        let outside = || io::Error::from_raw_os_error(libc::EINVAL);
        let pages = (self.len as u64).div_ceil(PAGE_SIZE);
        let end = first.checked_add(count).filter(|&end| end <= pages).ok_or_else(outside)?;
        let begin = usize::try_from(first * PAGE_SIZE).map_err(|_| outside())?;
        let end = usize::try_from(end * PAGE_SIZE).map_err(|_| outside())?.min(self.len);
        Ok((begin, end.saturating_sub(begin)))
    }

    /// [`Self::range`], of pages that can be accessed: an access beyond the end of the file, or a write where none is
    /// allowed, would end the task by a signal.
    fn accessible(&self, first: u64, count: u64, write: bool) -> io::Result<(usize, usize)> {
        let (begin, len) = self.range(first, count)?;
        let invalid = || io::Error::from_raw_os_error(libc::EINVAL);
        if write && !self.writable {
            return Err(invalid());
        }
        match &self.file {
            Some(file) if len > 0 && !file.has(begin + len - 1)? => Err(invalid()),
            _ => Ok((begin, len)),
        }
    }

    /// Writes one byte to every page of the range.
    #[allow(unsafe_code)]
    pub(crate) fn touch(&self, first: u64, count: u64) -> io::Result<()> {
        let (begin, len) = self.accessible(first, count, true)?;
        for offset in (begin..begin + len).step_by(PAGE_SIZE as usize) {
            // SAFETY: `range` keeps `offset` below `len`, `accessible` has seen that the mapping is writable, and
            // it is ours. Where its file was cut meanwhile the kernel ends the task by a signal.
            unsafe { self.start.add(offset).write_volatile(self.touched.get()) };
        }
        Ok(())
    }

    /// Reads one byte of every page of the range.
    #[allow(unsafe_code)]
    pub(crate) fn touch_reading(&self, first: u64, count: u64) -> io::Result<()> {
        let (begin, len) = self.accessible(first, count, false)?;
        for offset in (begin..begin + len).step_by(PAGE_SIZE as usize) {
            // SAFETY: `range` keeps `offset` below `len`, and the mapping is readable; a file that was cut: as in
            // `touch`.
            let _ = unsafe { self.start.add(offset).read_volatile() };
        }
        Ok(())
    }

    /// Writes `compressed` bytes that do not compress to the start of every page of the range, or one byte, a zero, for
    /// none. No two pages have the same.
    #[allow(unsafe_code)]
    pub(crate) fn write_content(
        &self,
        first: u64,
        count: u64,
        compressed: u16,
        seed: Seed,
    ) -> io::Result<()> {
        let (begin, len) = self.accessible(first, count, true)?;
        let mut stream = seed.stream("anonymous content");
        let wanted = usize::from(compressed).min(PAGE_SIZE as usize);
        self.touched.set(u8::from(wanted > 0));
        let mut content = vec![0_u8; wanted.max(1)];
        for offset in (begin..begin + len).step_by(PAGE_SIZE as usize) {
            for word in content.chunks_mut(8).take(wanted.div_ceil(8)) {
                let random = stream.bits().to_le_bytes();
                word.copy_from_slice(&random[..word.len()]);
            }
            let there = content.len().min(begin + len - offset);
            // SAFETY: `there` bytes from `offset` lie below the end of the range, which `accessible` keeps within the
            // mapping; it is ours and writable, as `accessible` has seen, and `content` is elsewhere.
            unsafe { self.start.add(offset).as_ptr().copy_from_nonoverlapping(content.as_ptr(), there) };
        }
        Ok(())
    }

    /// Writes every byte of the range.
    #[allow(unsafe_code)]
    pub(crate) fn fill(&self, first: u64, count: u64) -> io::Result<()> {
        let (begin, len) = self.accessible(first, count, true)?;
        // SAFETY: `accessible` keeps it within the mapping, which is ours, and has seen that it is writable; nobody
        // holds a reference into it.
        unsafe { self.start.add(begin).write_bytes(1, len) };
        Ok(())
    }

    /// Advises on all of it.
    #[allow(unsafe_code)]
    pub(crate) fn advise(&self, advice: Advice) -> io::Result<()> {
        // SAFETY: the range is the mapping. The advices in use keep or zero it, and nobody holds a
        // reference into it.
        unsafe { rustix::mm::madvise(self.start.as_ptr().cast(), self.len, advice)? };
        Ok(())
    }

    /// Locks pages of the range into memory. Tasks forked from now on do not share the mapping: what is locked
    /// would count as theirs as well, and no task shares memory with another one.
    #[allow(unsafe_code)]
    pub(crate) fn lock(&self, first: u64, count: u64) -> io::Result<()> {
        self.advise(Advice::LinuxDontFork)?;
        let (begin, len) = self.range(first, count)?;
        // SAFETY: `range` keeps it within the mapping; locking changes no content.
        unsafe { rustix::mm::mlock(self.start.add(begin).as_ptr().cast(), len)? };
        Ok(())
    }

    /// How many of its pages are in memory.
    fn resident(&self) -> io::Result<u64> {
        self.resident_in(0, (self.len as u64).div_ceil(PAGE_SIZE))
    }

    /// How many pages of the range are in memory.
    #[allow(unsafe_code)]
    pub(crate) fn resident_in(&self, first: u64, count: u64) -> io::Result<u64> {
        let (begin, len) = self.range(first, count)?;
        let mut pages = vec![0_u8; len.div_ceil(PAGE_SIZE as usize)];
        // SAFETY: `range` keeps it within the mapping, and `pages` has a byte for each of its pages.
        let status = unsafe { libc::mincore(self.start.add(begin).as_ptr().cast(), len, pages.as_mut_ptr()) };
        if status != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(pages.iter().map(|page| u64::from(page & 1)).sum())
    }
}

impl Drop for Mapping {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length and is used by nobody after its drop.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
        if let Some(shared) = &self.shared {
            shared.set(Held::Gone);
        }
    }
}

/// `SWAP_FLAG_PREFER`: the priority stands in the lower 15 bits.
const SWAP_FLAG_PREFER: libc::c_int = 0x8000;

/// `swapon(2)`, below all areas that are there unless it has a priority.
#[allow(unsafe_code)]
pub(crate) fn swap_on(device: &std::path::Path, priority: Option<i16>) -> io::Result<()> {
    let flags = priority.map_or(0, |priority| SWAP_FLAG_PREFER | libc::c_int::from(priority));
    let path = std::ffi::CString::new(device.as_os_str().as_encoded_bytes())?;
    // SAFETY: `path` ends with a null and lives until the call has returned.
    match unsafe { libc::swapon(path.as_ptr(), flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Pages of `file` in the range that are in the page cache, by `mincore` on a mapping of it: the
/// range is widened to whole pages, and nothing is touched.
pub(crate) fn resident_pages(file: &File, offset: u64, len: u64) -> io::Result<u64> {
    /// A window keeps the answer's buffer small: a byte for each page, 256 KiB.
    const WINDOW: u64 = 1 << 30;
    let end = offset.checked_add(len).ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
    let mut begin = offset - offset % PAGE_SIZE;
    let mut resident = 0;
    while begin < end {
        let window = WINDOW.min(end - begin);
        resident += Mapping::of_file(file, begin, window as usize)?.resident()?;
        begin += window;
    }
    Ok(resident)
}

/// A buffer that stays in memory, so that reading into it faults nothing in.
#[derive(Debug)]
pub(crate) struct LockedBuffer {
    bytes: Box<[u8]>,
    locked: bool,
}

impl LockedBuffer {
    /// `len` bytes, locked where the limit on locked memory permits.
    #[allow(unsafe_code)]
    pub(crate) fn new(len: usize) -> Self {
        let mut bytes = vec![0; len].into_boxed_slice();
        // SAFETY: the range is the buffer; locking changes no content.
        let locked = unsafe { rustix::mm::mlock(bytes.as_mut_ptr().cast(), len) }.is_ok();
        Self { bytes, locked }
    }

    /// Its bytes.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Whether it is locked.
    pub(crate) fn is_locked(&self) -> bool {
        self.locked
    }
}

impl Drop for LockedBuffer {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        if self.locked {
            // SAFETY: as in `new`. The allocator may keep the pages, unlocked.
            let _ = unsafe { rustix::mm::munlock(self.bytes.as_mut_ptr().cast(), self.bytes.len()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_beyond_a_mapping_are_invalid_and_a_partial_last_page_is_a_page() {
        let mapping = Mapping::anonymous(Bytes(2 * PAGE_SIZE + 1)).unwrap();
        mapping.touch(0, 3).unwrap();
        for (first, count) in [(0, 4), (3, 1), (u64::MAX, 1), (1, u64::MAX)] {
            let error = mapping.touch(first, count).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EINVAL), "{first} {count}");
        }
        mapping.touch(3, 0).unwrap();
        assert_eq!(mapping.resident().unwrap(), 3);
        mapping.advise(Advice::LinuxDontNeed).unwrap();
        assert_eq!(mapping.resident().unwrap(), 0);
    }

    #[test]
    fn a_mapped_file_is_read_and_written_within_its_end_and_its_rights() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(3 * PAGE_SIZE + 1).unwrap();
        let how = |shared, writable| FileMapping { shared, writable, executable: false };
        let errno = |result: io::Result<()>| result.err().and_then(|error| error.raw_os_error());
        let read = Mapping::shown_file(&file, PAGE_SIZE, Bytes(8 * PAGE_SIZE), how(true, false)).unwrap();
        read.touch_reading(0, 3).unwrap();
        assert_eq!(errno(read.touch_reading(3, 1)), Some(libc::EINVAL), "beyond the end");
        assert_eq!(errno(read.touch(0, 1)), Some(libc::EINVAL), "not to be written to");
        assert_eq!(errno(read.fill(0, 1)), Some(libc::EINVAL), "not to be written to");
        read.touch_reading(3, 0).unwrap();
        let private = Mapping::shown_file(&file, 0, Bytes(PAGE_SIZE), how(false, true)).unwrap();
        private.touch(0, 1).unwrap();
        let first = || {
            let mut byte = [0];
            std::os::unix::fs::FileExt::read_exact_at(&file, &mut byte, 0).unwrap();
            byte[0]
        };
        assert_eq!(first(), 0, "a copy");
        let shared = Mapping::shown_file(&file, 0, Bytes(PAGE_SIZE), how(true, true)).unwrap();
        shared.touch(0, 1).unwrap();
        assert_eq!(first(), 1);
        shared.write_content(0, 1, 0, Seed(1)).unwrap();
        shared.touch(0, 1).unwrap();
        assert_eq!(first(), 0, "a page of one repeated byte stays one");
        assert_eq!(read.resident_in(0, 3).unwrap(), 3);
        let odd = Mapping::shown_file(&file, 100, Bytes(PAGE_SIZE), how(true, false));
        assert_eq!(odd.unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn an_empty_mapping_is_an_error_of_the_kernel() {
        assert_eq!(Mapping::anonymous(Bytes(0)).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }
}
