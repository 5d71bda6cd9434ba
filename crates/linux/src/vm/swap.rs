//! What a guest swaps to: images of swap disks on the host, and `zram` in the guest.
//!
//! A swap area begins with a page of header: the version, the number of the last page and, at the end of that page,
//! a signature. It is what `mkswap` writes; the identifier is fixed, so that every run starts from the same disk.
//!
//! Left out: bad pages, labels.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use units::{Bytes, PAGE_SIZE};

use super::error::VmError;

/// The module of compressed memory.
pub(super) const ZRAM_MODULE: &str = "zram";
/// Compressors that kernels with the crypto interface load by name; later ones have theirs in the module.
pub(super) const COMPRESSORS: [&str; 1] = ["lzo_rle"];

const SIGNATURE: &[u8; 10] = b"SWAPSPACE2";
/// Where version and last page stand.
const INFO_AT: u64 = 1024;
const VERSION: u32 = 1;

/// Makes the image of a swap disk: only what is swapped takes room on the host.
pub(super) fn make_image(path: &Path, size: Bytes) -> Result<(), VmError> {
    // An attempt with another accelerator may have left one.
    let made = File::create(path).and_then(|file| {
        file.set_len(size.get())?;
        write_header(&file, size)
    });
    made.map_err(|source| VmError::io("write", path, source))
}

/// Makes a swap area of `size` bytes of a file or device.
pub(super) fn write_header(area: &File, size: Bytes) -> io::Result<()> {
    let last_page = u32::try_from(size.get() / PAGE_SIZE - 1).map_err(|_| io::ErrorKind::FileTooLarge)?;
    let mut header = vec![0_u8; PAGE_SIZE as usize];
    let info = INFO_AT as usize;
    header[info..info + 4].copy_from_slice(&VERSION.to_le_bytes());
    header[info + 4..info + 8].copy_from_slice(&last_page.to_le_bytes());
    let signature = header.len() - SIGNATURE.len();
    header[signature..].copy_from_slice(SIGNATURE);
    area.write_all_at(&header, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_as_large_as_asked_for_and_begins_with_a_header() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("swap0");
        make_image(&path, Bytes(1 << 20)).unwrap();
        let image = std::fs::read(&path).unwrap();
        assert_eq!(image.len(), 1 << 20);
        assert_eq!(&image[4086..4096], b"SWAPSPACE2");
        assert_eq!(&image[1024..1032], &[1, 0, 0, 0, 255, 0, 0, 0], "version 1, pages 0 to 255");
        assert!(image[4096..].iter().all(|byte| *byte == 0));
        make_image(&path, Bytes(2 << 20)).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 2 << 20, "a second attempt begins anew");
    }
}
