//! Stops of tasks, one after the other: which are ours, which are the program's own, and how each goes on.
//!
//! A signal goes on to the task that it was for; a task that a signal stopped stays stopped until it is continued
//! (`PTRACE_LISTEN`); a new task waits until its parent's event has told whose it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Ended;
use crate::clocks::OwnQueue;
use crate::follower::{Born, Follower, Next, look_at};
use crate::locked;
use crate::pace::Watch;
use crate::sys::{self, CallInfo, Resume};
use crate::writing::Outlet;

/// `PTRACE_EVENT_STOP`.
const EVENT_STOP: i32 = 128;
/// A stop for a call, by `PTRACE_O_TRACESYSGOOD`.
const CALL_STOP: i32 = libc::SIGTRAP | 0x80;

/// What the loop knows beside the follower.
pub(crate) struct Stops<'a> {
    pub(crate) follower: &'a Mutex<Follower>,
    pub(crate) outlet: &'a Outlet,
    /// The command's first process.
    pub(crate) root: i32,
    /// Every call stops, at both ends: there is no filter.
    pub(crate) every_call: bool,
    /// Notices come beside stops.
    pub(crate) notices: bool,
    /// Tasks that may be made at most.
    pub(crate) tasks_max: usize,
    /// To look at memory when a process ends.
    pub(crate) looks: bool,
    /// To end with the first process, whatever other children this thread has.
    pub(crate) with_root: bool,
    /// Somebody asked us to stop following.
    pub(crate) leave: &'a AtomicBool,
    /// The command's first process has ended, and others are left.
    pub(crate) root_ended: &'a AtomicBool,
    /// Tasks that stopped before their parent said whose they are.
    early: BTreeSet<i32>,
    /// Tasks whose call must be made before their signal: what they blocked before, and the signal.
    held: BTreeMap<i32, (u64, i32)>,
    ended: Option<Ended>,
    /// It has become the command.
    pub(crate) executed: bool,
}

impl<'a> Stops<'a> {
    pub(crate) fn new(
        follower: &'a Mutex<Follower>,
        outlet: &'a Outlet,
        root: i32,
        leave: &'a AtomicBool,
        root_ended: &'a AtomicBool,
    ) -> Self {
        Self {
            follower,
            outlet,
            root,
            every_call: false,
            notices: false,
            tasks_max: usize::MAX,
            looks: true,
            with_root: false,
            leave,
            root_ended,
            early: BTreeSet::new(),
            held: BTreeMap::new(),
            ended: None,
            executed: false,
        }
    }

    /// Follows until no task is left, or it is to leave; returns how the first process ended.
    pub(crate) fn follow(&mut self) -> Ended {
        let (mut watch, mut queue) = (Watch::new(), OwnQueue::of_this_thread());
        loop {
            watch.asks();
            match sys::wait() {
                Ok(Some((tid, status))) => {
                    locked(self.follower).seen(tid, watch.got(), true, &mut queue);
                    self.stopped(tid, status);
                    locked(self.follower).freed(tid);
                }
                Ok(None) => {}
                Err(_) => return self.ended.unwrap_or(Ended::Left),
            }
            if self.with_root
                && let Some(ended) = self.ended
            {
                return ended;
            }
            if self.leave.load(Ordering::Acquire) {
                self.take_leave();
                return self.ended.unwrap_or(Ended::Left);
            }
            if locked(self.follower).tasks_made() > self.tasks_max {
                self.kill_all();
                return Ended::TooManyTasks;
            }
        }
    }

    /// A program that had run before goes on without us; one of ours cannot, and dies.
    fn take_leave(&mut self) {
        if !self.every_call {
            return self.kill_all();
        }
        let mut left: BTreeSet<i32> = locked(self.follower).all_tasks().into_iter().collect();
        left.iter().for_each(|tid| sys::interrupt(*tid));
        while !left.is_empty() {
            match sys::wait() {
                Ok(Some((tid, status))) if libc::WIFSTOPPED(status) => {
                    // One that was made meanwhile is followed, too, and stops.
                    let signal = libc::WSTOPSIG(status);
                    let ours = status >> 16 != 0 || signal == CALL_STOP;
                    let makes = [libc::PTRACE_EVENT_FORK, libc::PTRACE_EVENT_VFORK, libc::PTRACE_EVENT_CLONE];
                    if makes.contains(&(status >> 16)) {
                        left.extend(sys::event_message(tid));
                    }
                    sys::detach(tid, if ours { 0 } else { signal });
                    left.remove(&tid);
                }
                Ok(Some((tid, status))) => {
                    self.gone(tid, status);
                    left.remove(&tid);
                }
                Ok(None) => {}
                Err(_) => return,
            }
        }
    }

    fn kill_all(&mut self) {
        let tasks = locked(self.follower).all_tasks();
        // Those that stopped before their parent told of them say nothing more.
        for tid in tasks.into_iter().chain(std::mem::take(&mut self.early)) {
            sys::kill(tid);
        }
        while let Ok(stopped) = sys::wait() {
            if let Some((tid, status)) = stopped
                && libc::WIFSTOPPED(status)
            {
                sys::kill(tid);
                sys::resume(tid, Resume::Freely, 0);
            }
        }
    }

    fn stopped(&mut self, tid: i32, status: i32) {
        if !libc::WIFSTOPPED(status) {
            return self.gone(tid, status);
        }
        let signal = libc::WSTOPSIG(status);
        match status >> 16 {
            0 if signal == CALL_STOP => self.call(tid),
            0 => self.signal(tid, signal),
            libc::PTRACE_EVENT_SECCOMP => self.call(tid),
            libc::PTRACE_EVENT_FORK => self.spawned(tid, Born::Fork),
            libc::PTRACE_EVENT_VFORK => self.spawned(tid, Born::Vfork),
            libc::PTRACE_EVENT_CLONE => self.spawned(tid, Born::Clone),
            libc::PTRACE_EVENT_EXEC => self.executed(tid),
            libc::PTRACE_EVENT_EXIT => self.ending(tid),
            EVENT_STOP => self.event_stop(tid, signal),
            _ => self.go_on(tid),
        }
    }

    fn go_on(&self, tid: i32) {
        self.resume(tid, 0);
    }

    fn resume(&self, tid: i32, signal: i32) {
        let how = if self.every_call { Resume::ToCallBoundary } else { Resume::Freely };
        sys::resume(tid, how, signal);
    }

    /// A call begins or ends.
    fn call(&mut self, tid: i32) {
        let info = sys::call_info(tid);
        if let Some(&(blocked, signal)) = self.held.get(&tid) {
            return match info {
                CallInfo::Exit(_) => {
                    self.held.remove(&tid);
                    sys::block_signals(tid, blocked);
                    self.resume(tid, signal);
                }
                _ => sys::resume(tid, Resume::ToCallBoundary, 0),
            };
        }
        let mut follower = locked(self.follower);
        let next = match info {
            CallInfo::Entry { number, arguments, arch } if arch == crate::filter::ARCH => {
                // Without notices the end is told, because a stop is made anyway.
                follower.enter(tid, number, arguments, true)
            }
            CallInfo::Exit(result) => {
                follower.leave(tid, result);
                Next::Done
            }
            _ => Next::Done,
        };
        self.outlet.pass(&mut follower);
        drop(follower);
        match next {
            Next::TellEnd => sys::resume(tid, Resume::ToCallBoundary, 0),
            Next::Done => self.go_on(tid),
        }
    }

    /// A signal is about to be delivered.
    fn signal(&mut self, tid: i32, signal: i32) {
        if self.notices {
            let quiet = |number, arguments| locked(self.follower).is_quiet(tid, number, arguments);
            if let Some(blocked) = sys::restart_quietly(tid, quiet) {
                self.held.insert(tid, (blocked, signal));
                return sys::resume(tid, Resume::ToCallBoundary, 0);
            }
        }
        self.resume(tid, signal);
    }

    fn spawned(&mut self, tid: i32, born: Born) {
        if let Some(child) = sys::event_message(tid) {
            locked(self.follower).spawned(tid, child, born);
            if self.early.remove(&child) {
                self.go_on(child);
            }
        }
        self.go_on(tid);
    }

    fn executed(&mut self, tid: i32) {
        let former = sys::event_message(tid).unwrap_or(tid);
        self.executed |= tid == self.root;
        locked(self.follower).executed(tid, former);
        self.go_on(tid);
    }

    /// A task is about to end: its memory is still there.
    fn ending(&self, tid: i32) {
        let last_of = {
            let mut follower = locked(self.follower);
            let last_of = follower.ending(tid).filter(|_| self.looks);
            last_of.map(|pid| (pid, follower.inherited(pid)))
        };
        let look = last_of.map(|(pid, inherited)| (pid, look_at(tid, true, &inherited)));
        let mut follower = locked(self.follower);
        follower.settle(tid);
        follower.name(tid);
        if let Some((pid, look)) = look {
            follower.looked(pid, &look, 0.0);
        }
        drop(follower);
        self.go_on(tid);
    }

    /// A new task stops once, and so does one that a stopping signal has stopped.
    fn event_stop(&mut self, tid: i32, signal: i32) {
        if [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU].contains(&signal) {
            return sys::listen(tid);
        }
        match locked(self.follower).knows(tid) {
            true => self.go_on(tid),
            false => {
                self.early.insert(tid);
            }
        }
    }

    fn gone(&mut self, tid: i32, status: i32) {
        self.early.remove(&tid);
        self.held.remove(&tid);
        let mut follower = locked(self.follower);
        follower.ended(tid);
        // The one that made them may be gone without a word.
        for orphan in std::mem::take(&mut self.early) {
            if follower.adopted(orphan) {
                self.go_on(orphan);
            } else {
                self.early.insert(orphan);
            }
        }
        if tid == self.root {
            self.ended = Some(match libc::WIFEXITED(status) {
                true => Ended::Exited(libc::WEXITSTATUS(status)),
                false => Ended::Signalled(libc::WTERMSIG(status)),
            });
            self.root_ended.store(true, Ordering::Release);
        }
    }
}
