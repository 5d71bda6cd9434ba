//! A directory whose files lie in memory.
//!
//! Only a guest mounts one: its mounts go with it. Left out: a limit to its size, so it may take half of memory.

use std::path::Path;
use std::{fs, io};

use rustix::mount::MountFlags;

use crate::vm::protocol::GUEST_VARIABLE;

/// Makes a directory and mounts a tmpfs there.
///
/// # Errors
/// `EOPNOTSUPP` outside of a guest; what the kernel says.
pub(crate) fn mount(target: &Path) -> io::Result<()> {
    if std::env::var_os(GUEST_VARIABLE).is_none() {
        return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
    }
    fs::create_dir(target)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    rustix::mount::mount("tmpfs", target, "tmpfs", flags, None)?;
    Ok(())
}
