//! Which pages of a file are in memory: `mincore(2)` of a mapping of it.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

const PAGE: u64 = 4096;
/// What is mapped at a time.
const WINDOW: u64 = 1 << 30;

/// Ranges of a file of `size` bytes whose pages are in memory, in bytes.
///
/// # Errors
/// It cannot be mapped, or the kernel does not tell.
#[allow(unsafe_code)]
pub(crate) fn cached(file: BorrowedFd<'_>, size: u64) -> io::Result<Vec<(u64, u64)>> {
    let mut found: Vec<(u64, u64)> = Vec::new();
    let mut pages = vec![0_u8; size.min(WINDOW).div_ceil(PAGE) as usize];
    let mut from = 0;
    while from < size {
        let len = WINDOW.min(size - from);
        let offset = libc::off_t::try_from(from).map_err(io::Error::other)?;
        let (shared, rights) = (libc::MAP_SHARED, libc::PROT_READ);
        // SAFETY: the kernel chooses the address; nothing of the mapping is read, so that a file that is cut
        // meanwhile does no harm. `pages` has a byte for each page, and what was mapped is unmapped.
        let told = unsafe {
            let at = libc::mmap(std::ptr::null_mut(), len as usize, rights, shared, file.as_raw_fd(), offset);
            if at == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            let told = libc::mincore(at, len as usize, pages.as_mut_ptr());
            libc::munmap(at, len as usize);
            told
        };
        if told != 0 {
            return Err(io::Error::last_os_error());
        }
        let bits = pages.iter().take(len.div_ceil(PAGE) as usize).map(|page| page & 1 == 1);
        for (page, _) in (from / PAGE..).zip(bits).filter(|(_, there)| *there) {
            match found.last_mut() {
                Some(last) if last.1 == page * PAGE => last.1 = (page + 1) * PAGE,
                _ => found.push((page * PAGE, (page + 1) * PAGE)),
            }
        }
        from += len;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn what_was_just_written_is_in_memory() {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, &[1; 3 * PAGE as usize + 1]).unwrap();
        assert_eq!(cached(file.as_fd(), 3 * PAGE + 1).unwrap(), [(0, 4 * PAGE)]);
        assert_eq!(cached(file.as_fd(), 0).unwrap(), []);
    }
}
