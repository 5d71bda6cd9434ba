//! Rows of single pages on the lists come to the same as the pages one by one.

use super::*;

/// What is to be seen of lists: `high`, the pages on them, and the free ones behind them.
fn look(cpu: &Cpu) -> (u32, Vec<Vec<Pfn>>, Vec<u64>) {
    let pages = cpu.pcp.lists().map(|(_, list)| list.iter(&cpu.frames).collect()).collect();
    let free = (0..=10).map(|order| cpu.area.blocks_free(Order(order))).collect();
    (cpu.pcp.high(), pages, free)
}

/// Frees these pages, a row at a time or one by one, and gives back what is too much; returns how much that was.
fn free(cpu: &mut Cpu, pages: &[Pfn], end: End, by_rows: bool) -> u32 {
    let (mut rest, mut excess) = (pages, 0);
    while let Some(&first) = rest.first() {
        let Cpu { pcp, frames, rules, marks, .. } = cpu;
        let (put, over) = match by_rows {
            true => pcp.put_singles(frames, rules, rest, Movable, end, marks),
            false => (1, pcp.put(frames, rules, first, (SINGLE, Movable), end, marks)),
        };
        rest = &rest[put..];
        excess += if over > 0 { cpu.hand_back(over, SINGLE) } else { 0 };
    }
    excess
}

#[test]
fn rows_are_freed_as_their_pages_one_by_one_whatever_kswapd_does_meanwhile() {
    let mut stream = units::Seed(3).stream("rows");
    for (generation, high_max) in [(Classic, 90), (HighOrder, 90), (AutoSize, 90), (AutoSize, 2000)] {
        let mut pair = [true, false].map(|by_rows| {
            let mut cpu = Cpu::new(generation, 15, 90, high_max);
            cpu.area.one_by_one = !by_rows;
            cpu
        });
        let mut given_back = 0;
        for step in 0..300 {
            let [reclaim_active, below_high, at_head, falls] = [0; 4].map(|_| stream.below(2) == 1);
            let (allocs, count) = (stream.below(20), 1 + stream.below(40));
            let first = u32::try_from(step * 64 + stream.below(24)).expect("a small zone");
            let mut row: Vec<Pfn> = (first..).map(Pfn).take(usize::try_from(count).unwrap()).collect();
            if falls {
                row.reverse();
            }
            let end = if at_head { End::Head } else { End::Tail };
            let came_to = [0, 1].map(|which| {
                let cpu = &mut pair[which];
                (cpu.marks.reclaim_active, cpu.marks.below_high) = (reclaim_active, below_high);
                let taken: Vec<Option<Pfn>> = (0..allocs)
                    .map(|_| {
                        cpu.pcp.note_alloc();
                        cpu.take(SINGLE, Movable)
                    })
                    .collect();
                // What is taken is in use again.
                taken.iter().flatten().for_each(|&pfn| cpu.frames.set_state(pfn, FrameState::InUse));
                (taken, free(cpu, &row, end, which == 0), look(cpu))
            });
            assert_eq!(came_to[0], came_to[1], "{generation:?}, step {step}");
            given_back += came_to[0].1;
        }
        assert!(given_back > 1000, "{generation:?}: {given_back}");
    }
}
