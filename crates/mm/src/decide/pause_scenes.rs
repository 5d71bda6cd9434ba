//! A writer on a machine with dirty pages: when it wakes the flusher, and what it does then
//! (MECHANISMS 10.1, 10.3). Neighbour: [`super::pause`].

use units::Nanos;

use crate::base::event::NoTrace;
use crate::base::ids::MemcgId;
use crate::base::sysctl::Sysctl;
use crate::decide::pause::{Next, Pause, WriterPace};
use crate::decide::scene::{add_dirty_page, machine};
use crate::memory::Memory;

const ROOT: MemcgId = MemcgId::ROOT;
const NOW: Nanos = Nanos::from_secs(1);
const HZ: u64 = 100;

/// A machine of 64 MiB with so many dirty pages, and none above which writers are left alone.
fn with_dirty(pages: u32) -> Memory<NoTrace> {
    let mut mem = machine("linux-6.1");
    for sysctl in [Sysctl::DirtyRatio, Sysctl::DirtyBackgroundRatio] {
        mem.core.alloc.set_sysctl(sysctl, 0);
    }
    (0..pages).for_each(|_| add_dirty_page(&mut mem));
    mem
}

#[test]
fn the_flusher_is_woken_when_more_is_dirty_than_the_background_threshold() {
    let mut pace = WriterPace::new();
    let (mut mem, mut pause) = (with_dirty(0), Pause::new(&pace));
    assert_eq!(pause.step(&mut mem, &mut pace, ROOT, NOW, HZ, false), Next::Go, "just as many");
    let (mut mem, mut pause) = (with_dirty(1), Pause::new(&pace));
    assert_eq!(pause.step(&mut mem, &mut pace, ROOT, NOW, HZ, false), Next::StartFlusher);
    // At the limit nobody may make another page dirty: it sleeps for the shortest pause, and looks again.
    let full = Next::Sleep(1);
    assert_eq!(pause.step(&mut mem, &mut pace, ROOT, NOW, HZ, false), full);
    assert_eq!(pause.step(&mut mem, &mut pace, ROOT, NOW, HZ, false), Next::StartFlusher, "still full");
    assert_eq!(pause.step(&mut mem, &mut pace, ROOT, NOW, HZ, false), full);
    assert_eq!(
        pause.step(&mut mem, &mut pace, ROOT, NOW, HZ, true),
        Next::Go,
        "a killed writer waits no more"
    );
}
