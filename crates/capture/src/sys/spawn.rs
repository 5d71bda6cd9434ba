//! A child that installs its filter and waits, and then becomes the command.
//!
//! Between `fork` and `execve` the child only makes system calls, on memory that was made before: another thread
//! may have held the allocator's lock.

use std::ffi::{CString, c_char};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags};

use super::probe::Cost;
use super::seccomp::Instruction;

/// The child.
#[derive(Debug)]
pub(crate) struct Child {
    /// Its number.
    pub(crate) pid: i32,
    /// Our end of the line to it; it has closed its own once it is the command.
    line: OwnedFd,
}

/// What a child becomes.
struct Program {
    path: CString,
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
}

/// Standard streams of a child that has not ours: input, and both outputs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Streams {
    pub(crate) input: RawFd,
    pub(crate) output: RawFd,
}

/// Makes a child that waits for [`Child::filter`] and [`Child::run`], in this order.
///
/// # Errors
/// There is no memory or no number for it.
pub(crate) fn fork_stopped(
    path: CString,
    arguments: &[CString],
    environment: &[CString],
    filter: &[Instruction],
    listen: bool,
    streams: Option<Streams>,
) -> io::Result<Child> {
    let pointers = |texts: &[CString]| -> Vec<*const c_char> {
        texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let program = Program { path, arguments: pointers(arguments), environment: pointers(environment) };
    fork_filtered(filter, listen, streams, |line| become_program(&program, line))
}

/// Makes a child that waits in the same way, and then measures what calls cost; without a filter it waits for
/// [`Child::run`] only.
///
/// # Errors
/// There is no memory or no number for it.
pub(crate) fn fork_probe(filter: &[Instruction], listen: bool) -> io::Result<Child> {
    let mut room = super::probe::room();
    fork_filtered(filter, listen, None, |line| {
        super::probe::probe(&mut room, |cost| {
            send(line, cost.ran_ns.cast_signed());
            send(line, cost.took_ns.cast_signed());
        });
    })
}

/// `become_other` makes system calls only, on what was made before.
#[allow(unsafe_code)]
fn fork_filtered(
    filter: &[Instruction],
    listen: bool,
    streams: Option<Streams>,
    mut become_other: impl FnMut(i32),
) -> io::Result<Child> {
    let (ours, theirs) = line()?;
    let mut filter = filter.to_vec();
    let length = u16::try_from(filter.len()).map_err(|_| io::Error::from_raw_os_error(libc::E2BIG))?;
    let filter = libc::sock_fprog { len: length, filter: filter.as_mut_ptr() };
    // SAFETY: the child makes system calls only, and never returns; all that it reads was made before and is not
    // changed by anybody in the child's own memory.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => unsafe {
            if let Some(Streams { input, output }) = streams {
                for (from, to) in [(input, 0), (output, 1), (output, 2)] {
                    libc::dup2(from, to);
                }
            }
            wait_and_filter(&filter, listen, theirs.as_raw_fd());
            become_other(theirs.as_raw_fd());
            libc::_exit(127)
        },
        pid => Ok(Child { pid, line: ours }),
    }
}

#[allow(unsafe_code)]
fn line() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two numbers.
    let made = unsafe {
        libc::socketpair(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0, ends.as_mut_ptr())
    };
    if made == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both were just made and belong to nobody else.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

/// The child's life before it goes on: it waits to be followed, and filters its calls.
#[allow(unsafe_code)]
fn wait_and_filter(filter: &libc::sock_fprog, listen: bool, line: i32) {
    let flags = match listen {
        true => libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
        false => 0,
    };
    // SAFETY: system calls on objects that live until `execve` or `_exit`. None of them is in the filter but what
    // the command does. Rust ignores SIGPIPE in its programs; the command gets it back as shells have it.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        if receive(line).is_none() {
            libc::_exit(1); // Nobody follows: the parent gave up.
        }
        if filter.len == 0 {
            return;
        }
        let mut listener = libc::c_long::from(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
        if listener == 0 {
            listener = libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                flags,
                std::ptr::from_ref(filter),
            );
        }
        send(line, if listener < 0 { -*libc::__errno_location() } else { listener as i32 });
        if receive(line).is_none() {
            libc::_exit(1);
        }
    }
}

#[allow(unsafe_code)]
fn become_program(program: &Program, line: i32) {
    // SAFETY: both lists end with a null, and all of it lives until the program is another one.
    unsafe {
        libc::execve(program.path.as_ptr(), program.arguments.as_ptr(), program.environment.as_ptr());
        send(line, *libc::__errno_location());
    }
}

/// A number from the other end; `None` where that is closed, or has sent nothing.
#[allow(unsafe_code)]
fn receive_with(line: i32, flags: libc::c_int) -> Option<i32> {
    let mut bytes = [0_u8; 4];
    loop {
        // SAFETY: the kernel writes at most 4 bytes.
        match unsafe { libc::recv(line, bytes.as_mut_ptr().cast(), 4, flags) } {
            4 => return Some(i32::from_ne_bytes(bytes)),
            // SAFETY: this thread's own number.
            -1 if unsafe { *libc::__errno_location() } == libc::EINTR => {}
            _ => return None,
        }
    }
}

fn receive(line: i32) -> Option<i32> {
    receive_with(line, 0)
}

#[allow(unsafe_code)]
fn send(line: i32, number: i32) {
    let bytes = number.to_ne_bytes();
    // SAFETY: the kernel reads 4 bytes. Without SIGPIPE: the other end may be gone, and then nobody cares.
    unsafe { libc::send(line, bytes.as_ptr().cast(), 4, libc::MSG_NOSIGNAL) };
}

impl Child {
    /// Has the child, which is followed by now, install its filter; returns the file by which notices come, if it
    /// was asked for one.
    ///
    /// # Errors
    /// The kernel does not take the filter, or the child was killed.
    pub(crate) fn filter(&self, listen: bool) -> io::Result<Option<OwnedFd>> {
        send(self.line.as_raw_fd(), 0);
        let gone = || io::Error::from_raw_os_error(libc::ESRCH);
        match receive(self.line.as_raw_fd()) {
            None => Err(gone()),
            Some(error) if error < 0 => Err(io::Error::from_raw_os_error(-error)),
            Some(_) if !listen => Ok(None),
            Some(listener) => {
                let pid = Pid::from_raw(self.pid).ok_or_else(gone)?;
                let process = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
                let listener = rustix::process::pidfd_getfd(process, listener, PidfdGetfdFlags::empty())?;
                Ok(Some(listener))
            }
        }
    }

    /// Has the child become the command.
    pub(crate) fn run(&self) {
        send(self.line.as_raw_fd(), 0);
    }

    /// The next cost that a probe has measured; `None` where it did not.
    pub(crate) fn cost(&self) -> Option<Cost> {
        let next = || receive_with(self.line.as_raw_fd(), libc::MSG_DONTWAIT).map(i32::cast_unsigned);
        Some(Cost { ran_ns: next()?, took_ns: next()? })
    }

    /// Why it did not become the command; `None` where it did.
    pub(crate) fn failure(&self) -> Option<io::Error> {
        receive_with(self.line.as_raw_fd(), libc::MSG_DONTWAIT).map(io::Error::from_raw_os_error)
    }
}
