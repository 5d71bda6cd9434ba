//! Calls that come as notices: a thread that answers them, and does nothing else.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::filter::ARCH;
use crate::follower::Follower;
use crate::locked;
use crate::sys::Notices;
use crate::writing::Outlet;

/// Answers until nobody asks any more, or all is done.
pub(crate) fn answer(notices: &Notices, follower: &Mutex<Follower>, outlet: &Outlet, done: &AtomicBool) {
    while !done.load(Ordering::Acquire) {
        let notice = match notices.next() {
            Ok(Some(notice)) => notice,
            Ok(None) => continue,
            Err(_) => return,
        };
        if notice.arch == ARCH {
            let mut follower = locked(follower);
            let _ = follower.enter(notice.tid, notice.number, notice.arguments, false);
            outlet.pass(&mut follower);
        }
        notices.allow(&notice);
    }
}
