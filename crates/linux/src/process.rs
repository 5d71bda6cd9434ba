//! Tasks as processes: fork, run a closure, send what it returns through a pipe.
//!
//! Theory of operation. A memory cgroup charges page cache to the cgroup of the *process* that
//! reads it, so a task in a cgroup of its own has to be a process of its own. It is forked and not
//! executed anew, because what it runs is a closure, and because the program around us may be
//! anything (a test, an interpreter) that would not know what to do as a task.
//! The child
//! 1. dies when its parent does (`PR_SET_PDEATHSIG`): no run survives its runner;
//! 2. writes itself into the cgroup and reports how that went, in 4 bytes;
//! 3. runs the closure and sends one byte (returned or panicked) and the result in postcard;
//! 4. leaves by `_exit`, so nothing of the parent's (buffers, destructors, exit hooks) runs twice.
//!
//! Left out: tasks as threads, signals other than death. Next: [`crate::system`].

use std::fs::File;
use std::future::Future;
use std::io::{self, Read, Write};
use std::marker::PhantomData;
use std::os::unix::process::CommandExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::process::Command;
use std::task::{Context, Poll, Waker};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getrlimit, setrlimit};
use rustix::thread::CpuSet;
use workload::Portable;

/// Gives this process the name of a task, by which the kernel's own reports call it; the kernel keeps
/// the first 15 bytes.
pub(crate) fn be_called(task: &str) {
    let name: Vec<u8> = task.bytes().filter(|&byte| byte != 0).collect();
    if let Ok(name) = std::ffi::CString::new(name) {
        // Only what others read of it would be wrong.
        let _ = rustix::thread::set_name(&name);
    }
}

/// Files that a process may have open where nobody forbids it (`fs.nr_open`).
const OPEN_FILES: u64 = 1 << 20;

/// Lets this process and its children have as many files open as they may: some workloads have thousands.
pub(crate) fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    let all = Rlimit { current: Some(OPEN_FILES), maximum: Some(OPEN_FILES) };
    // Only root may go beyond the hard limit.
    if limit.current.is_some_and(|current| current < OPEN_FILES) && setrlimit(Resource::Nofile, all).is_err()
    {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    }
}

/// Runs a future to its end. The calls of a real kernel block, so it is ready at once; one that
/// is not has yielded, and goes on.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::yield_now(),
        }
    }
}

/// How a child ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended<T> {
    /// Its closure returned.
    Returned(T),
    /// Its closure panicked, with this message.
    Panicked(String),
    /// A signal ended it.
    Signalled(i32),
}

/// A child process that will send a `T`.
#[derive(Debug)]
pub(crate) struct Child<T> {
    pid: Pid,
    result: File,
    returns: PhantomData<fn() -> T>,
}

/// Whether a child gets a process group of its own, which a Ctrl-C at the terminal does not reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    Own,
    Parents,
}

const RETURNED: u8 = 0;
const PANICKED: u8 = 1;

impl<T: Portable> Child<T> {
    /// Forks a child that writes itself into `procs` and runs `program`.
    ///
    /// # Errors
    /// Those of pipe, fork and of entering the cgroup.
    pub(crate) fn spawn(procs: Option<&File>, group: Group, program: impl FnOnce() -> T) -> io::Result<Self> {
        let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let parent = rustix::process::getpid();
        match fork()? {
            None => {
                drop(read);
                live(parent, procs, group, File::from(write), program)
            }
            Some(pid) => {
                drop(write);
                let mut child = Self { pid, result: File::from(read), returns: PhantomData };
                match child.entered() {
                    Ok(()) => Ok(child),
                    Err(error) => {
                        let _ = rustix::process::waitpid(Some(pid), WaitOptions::empty());
                        Err(error)
                    }
                }
            }
        }
    }

    fn entered(&mut self) -> io::Result<()> {
        let mut report = [0; 4];
        self.result.read_exact(&mut report)?;
        match i32::from_le_bytes(report) {
            0 => Ok(()),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    /// Its process id, which is also that of its group if it has its own.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// What becomes readable when it has returned.
    pub(crate) fn result(&self) -> &File {
        &self.result
    }

    /// Whether it has returned or died, so that joining it does not wait for its closure.
    pub(crate) fn has_ended(&self) -> bool {
        let mut files = [PollFd::new(&self.result, PollFlags::IN)];
        // An interruption is as good as a no: it is asked again.
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let _ = rustix::event::poll(&mut files, Some(&now));
        !files[0].revents().is_empty()
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    /// When it cannot be waited for, or sent what nobody can read.
    pub(crate) fn join(mut self) -> io::Result<Ended<T>> {
        let mut bytes = Vec::new();
        self.result.read_to_end(&mut bytes)?;
        let status = rustix::process::waitpid(Some(self.pid), WaitOptions::empty())?;
        match bytes.split_first() {
            Some((&RETURNED, result)) => match postcard::from_bytes(result) {
                Ok(result) => Ok(Ended::Returned(result)),
                Err(error) => Err(io::Error::new(io::ErrorKind::InvalidData, error)),
            },
            Some((_, message)) => Ok(Ended::Panicked(String::from_utf8_lossy(message).into_owned())),
            None => Ok(Ended::Signalled(signal(status.map(|(_, status)| status)))),
        }
    }
}

/// The signal that ended a process which left no result.
fn signal(status: Option<WaitStatus>) -> i32 {
    status.and_then(WaitStatus::terminating_signal).unwrap_or(Signal::KILL.as_raw())
}

/// The child's whole life.
fn live<T: Portable>(
    parent: Pid,
    procs: Option<&File>,
    group: Group,
    mut result: File,
    program: impl FnOnce() -> T,
) -> ! {
    let entered = enter(parent, procs, group);
    let report = entered.map_err(|error| error.raw_os_error().unwrap_or(libc::EIO)).err().unwrap_or(0);
    let mut status = 0;
    if result.write_all(&report.to_le_bytes()).is_ok() && report == 0 {
        let bytes = match catch_unwind(AssertUnwindSafe(program)) {
            Ok(value) => postcard::to_extend(&value, vec![RETURNED])
                .unwrap_or_else(|error| message(&format!("its result cannot be sent: {error}"))),
            Err(panic) => message(panic_text(&*panic)),
        };
        status = i32::from(result.write_all(&bytes).is_err());
    }
    leave(status)
}

fn message(text: &str) -> Vec<u8> {
    let mut bytes = vec![PANICKED];
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}

fn enter(parent: Pid, procs: Option<&File>, group: Group) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if rustix::process::getppid() != Some(parent) {
        leave(1); // It died before the line above: nobody waits for us.
    }
    if group == Group::Own {
        rustix::process::setpgid(None, None)?;
    }
    if let Some(mut procs) = procs {
        procs.write_all(b"0")?;
    }
    Ok(())
}

/// Makes a program of somebody else's die when the thread that starts it does, which a signal that
/// kills this process ends, too.
#[allow(unsafe_code)]
pub(crate) fn dying_with_us(command: &mut Command) -> &mut Command {
    told_of_our_death(command, Signal::KILL)
}

/// Lets a command have `signal` when this thread ends, also when it is killed: one that has to clean up before it dies.
#[allow(unsafe_code)]
pub(crate) fn told_of_our_death(command: &mut Command, signal: Signal) -> &mut Command {
    let parent = rustix::process::getpid();
    let bind = move || {
        rustix::process::set_parent_process_death_signal(Some(signal))?;
        if rustix::process::getppid() == Some(parent) {
            return Ok(());
        }
        Err(io::Error::from_raw_os_error(libc::ESRCH)) // It died before the line above.
    };
    // SAFETY: between fork and exec `bind` makes two system calls; it takes no lock, allocates
    // nothing and touches no memory of the parent's.
    unsafe { command.pre_exec(bind) }
}

/// Lets a command have its memory at the same addresses in each run, as far as this host allows it.
#[allow(unsafe_code)]
pub(crate) fn at_fixed_addresses(command: &mut Command) -> &mut Command {
    let fix = || {
        // SAFETY: `personality(2)` changes how later programs of this process are loaded and touches no memory.
        unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) };
        Ok(())
    };
    // SAFETY: between fork and exec `fix` makes one system call; it takes no lock, allocates nothing and touches no
    // memory of the parent's.
    unsafe { command.pre_exec(fix) }
}

/// Lets a command run on these CPUs alone, as far as this host allows it.
#[allow(unsafe_code)]
pub(crate) fn on_cpus(command: &mut Command, cpus: CpuSet) -> &mut Command {
    let bind = move || {
        // It only takes longer elsewhere.
        let _ = rustix::thread::sched_setaffinity(None, &cpus);
        Ok(())
    };
    // SAFETY: between fork and exec `bind` makes one system call; it takes no lock, allocates nothing and touches no
    // memory of the parent's.
    unsafe { command.pre_exec(bind) }
}

/// Forks: `None` in the child, the child's id in the parent.
#[allow(unsafe_code)]
fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: of the parent's threads only this one is in the child, so the child must not wait
    // for a lock that another thread held. Of std's locks it takes none but stderr's, in the
    // message of a panic, and then its parent can still kill it. The allocators of glibc (`malloc`
    // after `fork`) and musl (since 1.2.2) are made consistent in the child. A task is forked from
    // a run's main process, which has one thread.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        pid => Ok(Pid::from_raw(pid)),
    }
}

#[allow(unsafe_code)]
fn leave(status: i32) -> ! {
    // SAFETY: `_exit` ends the process and runs nothing of it.
    unsafe { libc::_exit(status) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_returns_what_its_closure_does_and_shares_no_memory() {
        let mut counter = 1;
        let child = Child::spawn(None, Group::Parents, || {
            counter += 1;
            (counter, "text".to_owned())
        });
        assert_eq!(child.unwrap().join().unwrap(), Ended::Returned((2, "text".to_owned())));
        assert_eq!(counter, 1);
    }

    #[test]
    fn a_result_larger_than_a_pipe_arrives_whole() {
        let numbers: Vec<u64> = (0..100_000).collect();
        let child = Child::spawn(None, Group::Own, || numbers.clone()).unwrap();
        assert_eq!(child.join().unwrap(), Ended::Returned(numbers));
    }

    #[test]
    fn a_killed_task_says_by_which_signal_and_a_panicking_one_why() {
        let child = Child::<u8>::spawn(None, Group::Own, || {
            std::thread::sleep(std::time::Duration::from_secs(60));
            0
        })
        .unwrap();
        assert!(!child.has_ended());
        rustix::process::kill_process(child.pid(), Signal::KILL).unwrap();
        while !child.has_ended() {
            std::thread::yield_now();
        }
        assert_eq!(child.join().unwrap(), Ended::Signalled(9));
        let child =
            Child::<u8>::spawn(None, Group::Parents, || std::panic::panic_any("no more pages")).unwrap();
        assert_eq!(child.join().unwrap(), Ended::Panicked("no more pages".to_owned()));
    }

    #[test]
    fn a_task_that_cannot_enter_its_cgroup_is_an_error_of_spawn() {
        let read_only = File::open("/dev/null").unwrap();
        let error = Child::spawn(Some(&read_only), Group::Parents, || ()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EBADF));
    }
}
