//! Work that is stopped when somebody says so, or when it takes too long on the clock.
//!
//! Left out: how work is stopped, which is told by a flag and looks at it itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How often somebody looks whether work shall stop.
const LOOK: Duration = Duration::from_millis(50);

/// Does `work`, which the flag that it is given stops: when `stop` is set, or after `max`. Returns also whether it
/// took too long.
pub(crate) fn in_time<T>(
    max: Option<Duration>,
    stop: &Arc<AtomicBool>,
    work: impl FnOnce(&Arc<AtomicBool>) -> T,
) -> (T, bool) {
    let Some(max) = max else { return (work(stop), false) };
    let own = Arc::new(AtomicBool::new(false));
    let too_long = AtomicBool::new(false);
    let (ended, watcher) = channel::<()>();
    let begin = Instant::now();
    let done = std::thread::scope(|scope| {
        scope.spawn(|| {
            let watcher = watcher;
            while watcher.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                too_long.fetch_or(begin.elapsed() > max, Ordering::Relaxed);
                let shall_stop = too_long.load(Ordering::Relaxed) || stop.load(Ordering::Relaxed);
                own.fetch_or(shall_stop, Ordering::Relaxed);
            }
        });
        let done = work(&own);
        drop(ended);
        done
    });
    (done, too_long.into_inner())
}
