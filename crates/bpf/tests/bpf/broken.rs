//! Objects that are none, or not whole: each is refused with a reason, or does no harm.

use pagetide_bpf::{Object, ObjectError};
use units::Seed;

use crate::{FIFO, INSTRUCTIONS, TRIAL, boot, pass};

fn told(bytes: &[u8]) -> String {
    let ObjectError { message, hint } = Object::read(bytes).expect_err("no policy");
    format!("{message}; {hint}")
}

/// The object with other bytes in place of these, wherever they are.
fn with(object: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut changed = object.to_vec();
    let places: Vec<usize> =
        object.windows(from.len()).enumerate().filter(|(_, w)| *w == from).map(|(at, _)| at).collect();
    assert!(!places.is_empty());
    places.into_iter().for_each(|at| changed[at..at + to.len()].copy_from_slice(to));
    changed
}

#[test]
fn what_is_no_policy_is_refused_with_a_reason() {
    let said = [
        told(b"#!/bin/sh\n"),
        told(&with(FIFO, &[1, 0, 247, 0], &[1, 0, 62, 0])),
        told(&FIFO[..3000]),
        told(&with(FIFO, b"cache_ext_ops", b"sched_ext_ops")),
        told(&with(FIFO, b"bpf_cache_ext_list_add_tail", b"bpf_cache_ext_list_add_back")),
        // bpf_map_lookup_elem becomes bpf_d_path.
        told(&with(TRIAL, &[0x85, 0, 0, 0, 1, 0, 0, 0], &[0x85, 0, 0, 0, 147, 0, 0, 0])),
        told(&with(FIFO, b"folio_added\0", b"folio_moved\0")),
        told(&with(FIFO, b".BTF\0", b".BTX\0")),
    ];
    insta::assert_snapshot!(said.join("\n"), @r#"
    not an object: it does not begin as an ELF file does; `clang -g -O2 -target bpf -c policy.bpf.c` makes one
    an object for another machine than (little-endian) eBPF; `clang -g -O2 -target bpf -c policy.bpf.c` makes one
    an ELF file that cannot be read; the object is damaged, or newer than what is read here
    the object holds no policy: it has no `struct cache_ext_ops`; cache_ext's policies have `SEC(".struct_ops.link") struct cache_ext_ops name = { ... };`
    a policy calls `bpf_cache_ext_list_add_back`, which is not modelled, at instruction 4 of `fifo_folio_added`; `docs/policies.md` has what a policy may call
    a policy calls helper number 147, which is not modelled, at instruction 6 of `trial_folio_accessed`; `docs/policies.md` has what a policy may call
    the policy has a hook `folio_moved`, which is not modelled; `docs/policies.md` has the six that there are
    the object has no types (`.BTF`); compile it with `clang -g -target bpf`
    "#);
    let mut object = Object::read(TRIAL).unwrap();
    let set = [("wat", 1), ("what", 1 << 40), ("accesses.max_entries", 0)].map(|(name, value)| {
        let set = object.set(name, value).and_then(|()| object.check());
        let ObjectError { message, hint } = set.expect_err("refused");
        format!("{message}; {hint}")
    });
    insta::assert_snapshot!(set.join("\n"), @"
    the object has no `wat` to set; it has list, what, answers, events.max_entries, accesses.max_entries, recent.max_entries; a variable of 1, 2, 4 or 8 bytes by its name, or `MAP.max_entries`
    `what` has 4 bytes, and 1099511627776 does not fit; give a smaller number
    the map `accesses` has no size: the program that loads the object sets it; set it behind the object's path, as `:MAP.max_entries=16384`
    ");
    insta::assert_snapshot!(Object::read(TRIAL).unwrap().assumed().join("\n"), @"
    the policy was compiled for the page flags of Linux 6.6, on which cache_ext is a patch
    user space runs the object's `syscall` program at once when a ring buffer has a record
    ");
}

/// Whatever stands in an object, reading and running it ends without a panic.
#[test]
fn damage_does_no_harm() {
    let (mut draws, mut ran) = (Seed(7).stream("damage"), 0);
    for round in 0..3000 {
        let mut bytes = if round % 2 == 0 { FIFO.to_vec() } else { TRIAL.to_vec() };
        for _ in 0..1 + draws.below(3) {
            let at = draws.below(bytes.len() as u64 - 8) as usize;
            match draws.below(3) {
                0 => bytes[at] = draws.bits() as u8,
                // Sizes, offsets and addresses at their ends.
                1 => bytes[at & !3..][..4].fill(0xff),
                _ => bytes[at & !7..][..8].copy_from_slice(&i64::MAX.to_le_bytes()),
            }
        }
        if round % 10 == 9 {
            bytes.truncate(draws.below(bytes.len() as u64) as usize);
        }
        let Ok(mut object) = Object::read(&bytes) else { continue };
        // Where damage has put the variable it may not be.
        let _ = object.set("list", 1);
        if object.check().is_err() {
            continue;
        }
        ran += 1;
        let mut world = boot(object.policy_within(Seed(1), INSTRUCTIONS));
        let group = world.group("A");
        world.read(group, 0..100);
        pass(&mut world, group);
    }
    assert!(ran > 200, "{ran}");
}
