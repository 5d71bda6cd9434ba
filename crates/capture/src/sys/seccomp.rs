//! Notices of a seccomp filter: a task asks whether it may, we look and say that it may (`seccomp_unotify(2)`).
//!
//! A notice costs two switches of tasks and two calls of ours, a stop by `ptrace` two and three; since Linux 6.6
//! the switches stay on one CPU, which makes it three times as fast where CPUs sleep.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// One instruction of a filter: `struct sock_filter`.
pub(crate) type Instruction = libc::sock_filter;

/// `SECCOMP_IOCTL_NOTIF_SET_FLAGS` and its only flag: wake on this CPU.
const SET_FLAGS: libc::Ioctl = libc::_IOW::<u64>(b'!' as u32, 4);
const SYNC_WAKE_UP: u64 = 1;

/// A call that waits for an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Notice {
    id: u64,
    /// Whose it is.
    pub(crate) tid: i32,
    /// Its number.
    pub(crate) number: u64,
    /// Its arguments.
    pub(crate) arguments: [u64; 6],
    /// `AUDIT_ARCH_...`.
    pub(crate) arch: u32,
}

/// The notices of one filter.
#[derive(Debug)]
pub(crate) struct Notices(OwnedFd);

impl Notices {
    /// Those that come by this file, and whether a notice wakes on its own CPU.
    #[allow(unsafe_code)]
    pub(crate) fn new(listener: OwnedFd) -> Self {
        // SAFETY: the flags are passed by value; a kernel that has no such request refuses it.
        unsafe { libc::ioctl(listener.as_raw_fd(), SET_FLAGS, SYNC_WAKE_UP) };
        Self(listener)
    }

    /// Waits for the next one; `None` where the wait was ended, or the task that asked is gone.
    ///
    /// # Errors
    /// No task has the filter any more.
    #[allow(unsafe_code)]
    pub(crate) fn next(&self) -> io::Result<Option<Notice>> {
        let mut notice = std::mem::MaybeUninit::<libc::seccomp_notif>::zeroed();
        // SAFETY: the kernel wants zeroes, and writes this structure to them.
        let got =
            unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, notice.as_mut_ptr()) };
        if got == -1 {
            return match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(None),
                // The asking task was killed between the wake-up and the look: that is no end of all.
                error if error.raw_os_error() == Some(libc::ENOENT) && self.has_tasks() => Ok(None),
                error => Err(error),
            };
        }
        // SAFETY: zeroes are a value of this structure of numbers.
        let notice = unsafe { notice.assume_init() };
        Ok(Some(Notice {
            id: notice.id,
            tid: notice.pid.cast_signed(),
            number: notice.data.nr.cast_unsigned().into(),
            arguments: notice.data.args,
            arch: notice.data.arch,
        }))
    }

    fn has_tasks(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec};
        let mut waits = [PollFd::new(&self.0, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        rustix::event::poll(&mut waits, Some(&now)).is_ok() && !waits[0].revents().contains(PollFlags::HUP)
    }

    /// Lets the call happen.
    #[allow(unsafe_code)]
    pub(crate) fn allow(&self, notice: &Notice) {
        let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
        let mut answer = libc::seccomp_notif_resp { id: notice.id, val: 0, error: 0, flags };
        // SAFETY: the kernel reads this structure. A task that was killed meanwhile needs no answer.
        unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer) };
    }
}

/// Whether this kernel has notices that signals do not disturb once they were received (Linux 5.19).
#[allow(unsafe_code)]
pub(crate) fn listens() -> bool {
    // SAFETY: there is no filter at the null address, so that a kernel which knows the flags says EFAULT, and one
    // that does not EINVAL; no filter is installed.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
            std::ptr::null::<libc::sock_fprog>(),
        )
    };
    answer == -1 && io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT)
}
