//! What chance decides in a real run, drawn from the seed: when a task begins, and where files lie.
//!
//! A program that is started anew never begins at the same distance from the kernel's ticks and
//! periodic work, nor do two programs that are started together begin together; and its files lie
//! wherever the disk had room. Each draw has a stream of its own, named after the workload and the
//! entity, so that two kernels see the same chances and a new task changes nobody else's. All of it
//! goes through [`System`]: a real kernel gets the same, besides what it varies by itself.
//!
//! Left out: the CPU that a task starts on, which the scheduler chooses. Next: what each workload
//! says that a seed varies, in [`mod@crate::catalog`].

use units::{Bytes, Nanos, PAGE_SIZE};

use crate::system::System;
use crate::system::errno::SystemError;

/// How late a task may begin that a program forks after others, one after the other: in any order.
pub(crate) const WITH_OTHERS: Nanos = Nanos::from_millis(2);

/// Files begin within this distance from where the disk had room: longer than a track.
pub(crate) const PLACED_WITHIN: Bytes = Bytes(1 << 20);
const GAP_FILE: &str = "gap";

/// Waits until the task called `task` of `workload` begins, within so long. To be called first in it, before
/// anything is measured.
pub(crate) async fn begin<S: System>(sys: &S, workload: &str, task: &str, within: Nanos) {
    let mut stream = sys.seed().stream(&format!("{workload}/{task}/start"));
    sys.sleep(Nanos(stream.below(within.get()))).await;
}

/// Moves the files that `workload` lays out next to another place of the disk.
pub(crate) async fn place_files<S: System>(sys: &S, workload: &str) -> Result<(), SystemError> {
    place(sys, &format!("{workload}/place"), GAP_FILE).await
}

/// The same for the disk that `directory` is on.
pub(crate) async fn place_files_in<S: System>(
    sys: &S,
    workload: &str,
    directory: &str,
) -> Result<(), SystemError> {
    place(sys, &format!("{workload}/{directory}/place"), &format!("{directory}/{GAP_FILE}")).await
}

async fn place<S: System>(sys: &S, stream: &str, gap: &str) -> Result<(), SystemError> {
    let pages = sys.seed().stream(stream).below(PLACED_WITHIN.get() / PAGE_SIZE);
    sys.lay_out_file(gap, Bytes(pages * PAGE_SIZE)).await
}
