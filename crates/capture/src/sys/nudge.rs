//! Waking a thread that waits in a system call: a signal that does nothing but end the call.
//!
//! Neither `wait4` nor the wait for a notice takes a timeout. The signal is the last but one of the real-time
//! signals; a handler that was set for it before stays, and then is asked to do nothing, too.

use std::sync::Once;

static HANDLER: Once = Once::new();

extern "C" fn nothing(_: libc::c_int) {}

fn signal() -> libc::c_int {
    libc::SIGRTMAX() - 1
}

/// A thread that may be woken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sleeper {
    process: libc::pid_t,
    thread: libc::pid_t,
}

/// This thread.
#[allow(unsafe_code)]
pub(crate) fn sleeper() -> Sleeper {
    HANDLER.call_once(|| {
        // SAFETY: `nothing` is a handler of the right form that touches nothing, the mask is empty, and without
        // SA_RESTART a call that waits ends with EINTR, which every caller of ours takes for "look again".
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as *const () as libc::sighandler_t;
            libc::sigaction(signal(), &raw const action, std::ptr::null_mut());
        }
    });
    let thread = rustix::thread::gettid().as_raw_nonzero().get();
    Sleeper { process: rustix::process::getpid().as_raw_nonzero().get(), thread }
}

impl Sleeper {
    /// Ends the call that it waits in; nothing where it does not wait, or is gone.
    #[allow(unsafe_code)]
    pub(crate) fn wake(self) {
        // SAFETY: a signal to a thread of this process alone, for which there is a handler: `sleeper` has set it.
        unsafe { libc::syscall(libc::SYS_tgkill, self.process, self.thread, signal()) };
    }
}
