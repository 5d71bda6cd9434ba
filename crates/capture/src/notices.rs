//! Calls that come as notices: a thread that answers them, and does nothing else.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::clocks::OwnQueue;
use crate::filter::ARCH;
use crate::follower::Follower;
use crate::locked;
use crate::pace::Watch;
use crate::sys::Notices;
use crate::writing::Outlet;

/// Answers until nobody asks any more, or all is done.
pub(crate) fn answer(notices: &Notices, follower: &Mutex<Follower>, outlet: &Outlet, done: &AtomicBool) {
    let (mut watch, mut queue) = (Watch::new(), OwnQueue::of_this_thread());
    while !done.load(Ordering::Acquire) {
        watch.asks();
        let notice = match notices.next() {
            Ok(Some(notice)) => notice,
            Ok(None) => continue,
            Err(_) => return,
        };
        if notice.arch == ARCH {
            let got = watch.got();
            let mut follower = locked(follower);
            follower.seen(notice.tid, got, false, &mut queue);
            let _ = follower.enter(notice.tid, notice.number, notice.arguments, false);
            outlet.pass(&mut follower);
            follower.freed(notice.tid);
        }
        notices.allow(&notice);
    }
}
