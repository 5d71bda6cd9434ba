//! Bytes of another process: `process_vm_readv(2)`.

/// Longest path that a call takes, with its zero.
pub(crate) const PATH_MAX: usize = 4096;
const PAGE: usize = 4096;

/// Reads into `buffer` from `address` of the process of `tid`; how many bytes were there.
#[allow(unsafe_code)]
pub(crate) fn read_memory(tid: i32, address: u64, buffer: &mut [u8]) -> usize {
    let Ok(address) = usize::try_from(address) else { return 0 };
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: buffer.len() };
    // SAFETY: the kernel writes at most `buffer.len()` bytes to `buffer`, which is ours alone; the other address
    // is looked at in the other process only, and a wrong one is an error.
    let read = unsafe { libc::process_vm_readv(tid, &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(read).unwrap_or(0)
}

/// The bytes of a string that ends with a zero, without it; `None` where none of it can be read.
pub(crate) fn read_path(tid: i32, address: u64) -> Option<Vec<u8>> {
    let mut path = Vec::new();
    let mut buffer = [0; PAGE];
    while path.len() < PATH_MAX {
        let from = address.checked_add(path.len() as u64)?;
        // Up to the end of the page: the next one may not be there.
        let there = PAGE - (from as usize % PAGE);
        let read = read_memory(tid, from, &mut buffer[..there]);
        let bytes = &buffer[..read];
        match bytes.iter().position(|byte| *byte == 0) {
            Some(end) => {
                path.extend_from_slice(&bytes[..end]);
                return Some(path);
            }
            None if read < there => return None,
            None => path.extend_from_slice(bytes),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_from_where_it_lies_and_nothing_from_where_nothing_lies() {
        let here = std::process::id() as i32;
        let path = c"/a/folder/of a name";
        assert_eq!(read_path(here, path.as_ptr() as u64).as_deref(), Some(path.to_bytes()));
        assert_eq!(read_path(here, 16), None);
        assert_eq!(read_memory(here, 16, &mut [0; 8]), 0);
    }
}
