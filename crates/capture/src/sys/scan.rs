//! Which pages of a process are there: the ioctl `PAGEMAP_SCAN` of `/proc/PID/pagemap` (Linux 6.7).
//!
//! Older kernels are asked page by page, by reading the same file (`pagemap(5)` in proc).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

const PAGE: u64 = 4096;
/// Regions that one call returns.
const REGIONS: usize = 1024;
/// Entries of pagemap that one read returns, where the ioctl is missing.
const ENTRIES: usize = 1 << 13;

/// What is known of a page: bits as of `PAGEMAP_SCAN`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Categories(u64);

impl Categories {
    const FILE: u64 = 1 << 2;
    const PRESENT: u64 = 1 << 3;
    const SWAPPED: u64 = 1 << 4;
    const ZERO: u64 = 1 << 5;

    /// It has no page of a file nor the zero page: what is there was written by the process.
    pub(crate) const fn is_own(self) -> bool {
        self.0 & (Self::FILE | Self::ZERO) == 0
    }

    /// Of an entry of pagemap: bit 63 present, 62 swapped, 61 a file's.
    fn of_entry(entry: u64) -> Self {
        let bit = |bit: u32, category: u64| if entry >> bit & 1 == 1 { category } else { 0 };
        Self(bit(63, Self::PRESENT) | bit(62, Self::SWAPPED) | bit(61, Self::FILE))
    }

    const fn is_there(self) -> bool {
        self.0 & (Self::PRESENT | Self::SWAPPED) != 0
    }

    #[cfg(test)]
    pub(crate) const fn of_file() -> Self {
        Self(Self::PRESENT | Self::FILE)
    }

    #[cfg(test)]
    pub(crate) const fn own() -> Self {
        Self(Self::PRESENT)
    }
}

/// Pages in a row of the same kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Region {
    /// Address of the first byte.
    pub(crate) start: u64,
    /// Address after the last.
    pub(crate) end: u64,
    /// What is known of them.
    pub(crate) categories: Categories,
}

/// `struct pm_scan_arg`.
#[repr(C)]
struct Argument {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

const PAGEMAP_SCAN: libc::Ioctl = libc::_IOWR::<Argument>(b'f' as u32, 16);

/// Pages of `start..end` that are in memory or swapped out, by the pagemap of their process.
///
/// # Errors
/// The process is gone, or its pages are not for us to see.
pub(crate) fn scan(pagemap: &File, start: u64, end: u64) -> io::Result<Vec<Region>> {
    let mut found = Vec::new();
    let mut from = start;
    while from < end {
        match scan_some(pagemap, from, end, &mut found) {
            Ok(walked) if walked > from => from = walked,
            Ok(_) => break,
            Err(error) if error.raw_os_error() == Some(libc::ENOTTY) => {
                return read_entries(pagemap, start, end);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// Of the pages of `start..end` those that no other process has, in ranges: bit 56 of pagemap's entries.
///
/// # Errors
/// The process is gone, or its pages are not for us to see.
pub(crate) fn alone(pagemap: &File, start: u64, end: u64) -> io::Result<Vec<(u64, u64)>> {
    const ALONE: u64 = 1 << 56 | 1 << 63;
    let mut found: Vec<(u64, u64)> = Vec::new();
    each_entry(pagemap, start, end, |page, entry| {
        let (from, to) = (page * PAGE, (page + 1) * PAGE);
        match found.last_mut() {
            _ if entry & ALONE != ALONE => {}
            Some(last) if last.1 == from => last.1 = to,
            _ => found.push((from, to)),
        }
    })?;
    Ok(found)
}

#[allow(unsafe_code)]
fn scan_some(pagemap: &File, start: u64, end: u64, found: &mut Vec<Region>) -> io::Result<u64> {
    let nothing = Region { start: 0, end: 0, categories: Categories::default() };
    let mut regions = [nothing; REGIONS];
    let mut argument = Argument {
        size: size_of::<Argument>() as u64,
        flags: 0,
        start,
        end,
        walk_end: 0,
        vec: regions.as_mut_ptr() as u64,
        vec_len: REGIONS as u64,
        max_pages: 0,
        category_inverted: 0,
        category_mask: 0,
        category_anyof_mask: Categories::PRESENT | Categories::SWAPPED,
        return_mask: Categories::PRESENT | Categories::SWAPPED | Categories::FILE | Categories::ZERO,
    };
    // SAFETY: `argument` has the layout and the size that it names; the kernel writes to it and to at most
    // `vec_len` elements of `regions`, which both outlive the call. Without write-protection flags it changes
    // nothing in the other process.
    let count = unsafe { libc::ioctl(pagemap.as_raw_fd(), PAGEMAP_SCAN, &raw mut argument) };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    found.extend_from_slice(&regions[..count.min(REGIONS)]);
    Ok(if count < REGIONS { end } else { argument.walk_end })
}

fn read_entries(pagemap: &File, start: u64, end: u64) -> io::Result<Vec<Region>> {
    let mut found: Vec<Region> = Vec::new();
    each_entry(pagemap, start, end, |page, entry| {
        let categories = Categories::of_entry(entry);
        let (from, to) = (page * PAGE, (page + 1) * PAGE);
        match found.last_mut() {
            _ if !categories.is_there() => {}
            Some(last) if last.end == from && last.categories == categories => last.end = to,
            _ => found.push(Region { start: from, end: to, categories }),
        }
    })?;
    Ok(found)
}

/// Reads pagemap's entries: the number of each page, and what there is to say of it.
fn each_entry(pagemap: &File, start: u64, end: u64, mut take: impl FnMut(u64, u64)) -> io::Result<()> {
    let mut page = start / PAGE;
    let past = end.div_ceil(PAGE);
    let mut bytes = vec![0; ENTRIES.min(usize::try_from(past - page).unwrap_or(ENTRIES)) * 8];
    while page < past {
        let wanted = usize::try_from(past - page).unwrap_or(ENTRIES).min(ENTRIES);
        let read = pagemap.read_at(&mut bytes[..wanted * 8], page * 8)?;
        if read < 8 {
            break;
        }
        for entry in bytes[..read].as_chunks().0 {
            take(page, u64::from_ne_bytes(*entry));
            page += 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_were_written_are_there_by_both_ways() {
        let bytes = vec![1_u8; 64 * PAGE as usize];
        let start = (bytes.as_ptr() as u64).next_multiple_of(PAGE);
        let end = start + 62 * PAGE;
        let pagemap = File::open("/proc/self/pagemap").unwrap();
        for found in [scan(&pagemap, start, end), read_entries(&pagemap, start, end)] {
            let found = found.unwrap();
            let pages: u64 = found.iter().map(|region| (region.end - region.start) / PAGE).sum();
            assert_eq!(pages, 62);
            assert!(found.iter().all(|region| region.categories.is_own()));
        }
    }

    #[test]
    fn a_page_is_alone_until_a_fork_and_again_when_one_of_both_wrote() {
        let bytes = vec![1_u8; 10 * PAGE as usize];
        let start = (bytes.as_ptr() as u64).next_multiple_of(PAGE);
        let end = start + 8 * PAGE;
        let pagemap = File::open("/proc/self/pagemap").unwrap();
        let pages = || alone(&pagemap, start, end).unwrap().iter().map(|(from, to)| (to - from) / PAGE).sum();
        assert_eq!(8, pages());
        // SAFETY: the child only waits to be killed, and is waited for.
        #[allow(unsafe_code)]
        let pid = unsafe {
            match libc::fork() {
                0 => {
                    libc::pause();
                    libc::_exit(0)
                }
                pid => pid,
            }
        };
        let shared: u64 = pages();
        // SAFETY: a page of the vector above, which is written by nobody else.
        #[allow(unsafe_code)]
        unsafe {
            (start as *mut u8).write_volatile(2);
        }
        let written: u64 = pages();
        super::super::kill(pid);
        super::super::reap(pid);
        assert_eq!((shared, written, pages()), (0, 1, 8));
    }
}
