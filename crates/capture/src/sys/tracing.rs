//! `ptrace(2)` and `wait4(2)`: what a task that stopped has to say, and letting it go on.
//!
//! A task belongs to the thread that attached it: all calls here are made by that one thread.

use std::io;

const OPTIONS: libc::c_int = libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEEXIT
    | libc::PTRACE_O_TRACESECCOMP;

/// How a task is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attached {
    /// It dies with us: its filter asks us, and without an answer its calls would fail.
    DiesWithUs,
    /// It goes on without us.
    GoesOn,
}

/// How a stopped task goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resume {
    /// Up to what its filter stops, or an event.
    Freely,
    /// Up to the end of the call that it is in, or to its next call.
    ToCallBoundary,
}

/// Whether a call begins or ends, and what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallInfo {
    /// It begins: its number and arguments.
    Entry {
        /// Number, of the table that `arch` names.
        number: u64,
        /// Arguments as registers hold them.
        arguments: [u64; 6],
        /// `AUDIT_ARCH_...` of the table.
        arch: u32,
    },
    /// It ends: its value, or minus its error.
    Exit(i64),
    /// It is in no call, or gone.
    Nothing,
}

/// What the C library takes numbers of requests as.
#[cfg(target_env = "musl")]
type Request = libc::c_int;
#[cfg(not(target_env = "musl"))]
type Request = libc::c_uint;

#[allow(unsafe_code)]
fn request(what: Request, tid: i32, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: callers pass numbers, or addresses of their own objects that are as large as the request wants and
    // outlive the call.
    match unsafe { libc::ptrace(what, tid, address, data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Begins to follow a task, without stopping it.
///
/// # Errors
/// It is gone, somebody else follows it, or it is not ours to follow.
pub(crate) fn attach(tid: i32, how: Attached) -> io::Result<()> {
    let kill = if how == Attached::DiesWithUs { libc::PTRACE_O_EXITKILL } else { 0 };
    request(libc::PTRACE_SEIZE, tid, 0, (OPTIONS | kill) as usize)
}

/// Makes a task stop at once.
pub(crate) fn interrupt(tid: i32) {
    let _ = request(libc::PTRACE_INTERRUPT, tid, 0, 0); // One that is gone need not stop.
}

/// Lets a stopped task go, with a signal or 0.
pub(crate) fn resume(tid: i32, how: Resume, signal: i32) {
    let what = match how {
        Resume::Freely => libc::PTRACE_CONT,
        Resume::ToCallBoundary => libc::PTRACE_SYSCALL,
    };
    let _ = request(what, tid, 0, signal as usize); // A task that was killed meanwhile says so by itself.
}

/// Leaves a task stopped by a stopping signal, until it is continued.
pub(crate) fn listen(tid: i32) {
    let _ = request(libc::PTRACE_LISTEN, tid, 0, 0);
}

/// Lets a stopped task go and follows it no longer.
pub(crate) fn detach(tid: i32, signal: i32) {
    let _ = request(libc::PTRACE_DETACH, tid, 0, signal as usize);
}

/// Ends a task, whatever it does.
#[allow(unsafe_code)]
pub(crate) fn kill(tid: i32) {
    // SAFETY: a signal to a task that we follow; one that is gone is an error that means nothing.
    unsafe { libc::kill(tid, libc::SIGKILL) };
}

/// Passes a signal on to a process.
#[allow(unsafe_code)]
pub(crate) fn pass_signal(pid: i32, signal: i32) {
    // SAFETY: as above.
    unsafe { libc::kill(pid, signal) };
}

/// Whether two processes have one table of descriptors; nothing where the kernel does not tell (`kcmp(2)`).
#[allow(unsafe_code)]
pub(crate) fn same_files(one: i32, other: i32) -> Option<bool> {
    const FILES: libc::c_int = 2; // KCMP_FILES
    // SAFETY: it compares, and takes numbers only.
    let order = unsafe { libc::syscall(libc::SYS_kcmp, one, other, FILES, 0, 0) };
    (order >= 0).then_some(order == 0)
}

/// What comes with an event: the number of the new task, the former one of exec.
pub(crate) fn event_message(tid: i32) -> Option<i32> {
    let mut message: libc::c_ulong = 0;
    request(libc::PTRACE_GETEVENTMSG, tid, 0, &raw mut message as usize).ok()?;
    i32::try_from(message).ok()
}

/// `PTRACE_GET_SYSCALL_INFO`: musl has neither the request nor its structure.
const PTRACE_GET_SYSCALL_INFO: Request = 0x420e;
const AT_ENTRY: u64 = 1;
const AT_EXIT: u64 = 2;
const AT_SECCOMP: u64 = 3;

/// The call that a stopped task is in.
pub(crate) fn call_info(tid: i32) -> CallInfo {
    // `struct ptrace_syscall_info`: what it is of in a byte, the table in the upper half, two pointers, and then
    // number and arguments, or the value.
    let mut info = [0_u64; 11];
    let (size, address) = (size_of_val(&info), info.as_mut_ptr() as usize);
    if request(PTRACE_GET_SYSCALL_INFO, tid, size, address).is_err() {
        return CallInfo::Nothing;
    }
    let [what, _, _, first, arguments @ .., _] = info;
    match what & 0xff {
        AT_ENTRY | AT_SECCOMP => CallInfo::Entry { number: first, arguments, arch: (what >> 32) as u32 },
        AT_EXIT => CallInfo::Exit(first.cast_signed()),
        _ => CallInfo::Nothing,
    }
}

/// What the kernel returns within for a call that a signal ended before it did anything: begin it again, unless a
/// handler runs that does not want it.
const ERESTARTSYS: i64 = -512;
/// The same, handler or not.
const ERESTARTNOINTR: i64 = -513;

/// Has a task that stopped for a signal begin its call again as if there had been none, and blocks all signals, if
/// `is_quiet` says of the call's number and arguments that no signal ends it. Returns what was blocked before.
///
/// A notice that nobody has received yet ends with a signal as a read of a pipe does; a read of a file never
/// does, and programs do not expect it. With one signal after the other the call would never come to be made.
#[allow(unsafe_code)]
pub(crate) fn restart_quietly(tid: i32, is_quiet: impl FnOnce(u64, [u64; 6]) -> bool) -> Option<u64> {
    let mut registers = std::mem::MaybeUninit::<libc::user_regs_struct>::zeroed();
    request(libc::PTRACE_GETREGS, tid, 0, registers.as_mut_ptr() as usize).ok()?;
    // SAFETY: zeroes are a value of this structure of numbers, and the kernel has filled it.
    let mut registers = unsafe { registers.assume_init() };
    let arguments = [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9];
    if registers.rax.cast_signed() != ERESTARTSYS || !is_quiet(registers.orig_rax, arguments) {
        return None;
    }
    let mut blocked = 0_u64;
    request(PTRACE_GETSIGMASK, tid, size_of::<u64>(), &raw mut blocked as usize).ok()?;
    registers.rax = ERESTARTNOINTR.cast_unsigned();
    request(libc::PTRACE_SETREGS, tid, 0, &raw mut registers as usize).ok()?;
    block_signals(tid, u64::MAX);
    Some(blocked)
}

/// `PTRACE_GETSIGMASK` and `PTRACE_SETSIGMASK`, on masks of 64 bits.
const PTRACE_GETSIGMASK: Request = 0x420a;
const PTRACE_SETSIGMASK: Request = 0x420b;

/// Sets which signals a stopped task blocks.
pub(crate) fn block_signals(tid: i32, mut blocked: u64) {
    let _ = request(PTRACE_SETSIGMASK, tid, size_of::<u64>(), &raw mut blocked as usize); // Or it is gone.
}

/// Waits for the end of a child that was killed.
#[allow(unsafe_code)]
pub(crate) fn reap(pid: i32) {
    let mut status = 0;
    // SAFETY: the kernel writes a number to `status`.
    while unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) } == pid && libc::WIFSTOPPED(status) {
        resume(pid, Resume::Freely, 0);
    }
}

/// Waits for a task of this thread: its number and its status; `None` where the wait was ended by a signal.
///
/// # Errors
/// There are no more tasks (`ECHILD`).
#[allow(unsafe_code)]
pub(crate) fn wait() -> io::Result<Option<(i32, i32)>> {
    let mut status = 0;
    // SAFETY: the kernel writes a number to `status`.
    let tid = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::__WNOTHREAD) };
    match tid {
        -1 => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            error => Err(error),
        },
        tid => Ok(Some((tid, status))),
    }
}
