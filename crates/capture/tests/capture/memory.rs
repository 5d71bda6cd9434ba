//! What programs do to memory.

use std::collections::BTreeSet;

use trace::{NONE, OperationKind, advice};

use crate::plays::{self, play, played_on};
use crate::support::follow;

const PAGE: u64 = 4096;

#[test]
fn mappings_and_what_was_touched_of_them_are_told() {
    if let Some(file) = played_on() {
        return plays::maps(&file);
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, vec![1; 64 * PAGE as usize]).unwrap();
    let words = play("memory::mappings_and_what_was_touched_of_them_are_told", &file);
    let seen = follow(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let name = file.to_string_lossy();
    let number = seen.trace.files.iter().position(|file| file.path == name).unwrap() as u32;
    let of_file = seen.trace.mappings.iter().position(|mapping| mapping.file == number).unwrap() as u32;
    let done = |kind, mapping: u32| {
        seen.of(&[kind]).into_iter().filter(|one| one.object == mapping).collect::<Vec<_>>()
    };
    assert_eq!(done(OperationKind::AdviseMapping, of_file)[0].detail, advice::RANDOM);
    assert_eq!(done(OperationKind::Unmap, of_file)[0].len, 64 * PAGE);
    let touched: Vec<_> = done(OperationKind::Touch, of_file);
    // The kernel maps neighbours of what is touched, when they are in memory: more than five, no less.
    for page in (0..50).step_by(10) {
        let within = |one: &&trace::Operation| (one.offset..one.offset + one.len).contains(&(page * PAGE));
        assert!(touched.iter().any(|one| within(&one)), "page {page}");
    }
    let mapping = |pages| {
        let fits = |mapping: &trace::TraceMapping| mapping.file == NONE && mapping.len == pages * PAGE;
        seen.trace.mappings.iter().position(fits).unwrap() as u32
    };
    // A page that was used between two looks is told by both: on a slow machine a look comes in the middle.
    let written = |mapping| {
        let parts = done(OperationKind::Dirty, mapping);
        let pages = parts.iter().flat_map(|one| (one.offset..one.offset + one.len).step_by(PAGE as usize));
        let pages: BTreeSet<u64> = pages.collect();
        (pages.first().copied(), pages.len() as u64 * PAGE)
    };
    assert_eq!(written(mapping(300)), (Some(0), 200 * PAGE));
    // It was moved and has grown: the new part is a mapping of its own.
    assert_eq!(written(mapping(77_777 - 300)), (Some((70_000 - 300) * PAGE), 10 * PAGE));
}

#[test]
fn pages_that_were_copied_after_a_fork_are_told_as_the_childs() {
    if played_on().is_some() {
        return plays::writes_after_a_fork();
    }
    let folder = tempfile::tempdir().unwrap();
    let words = play(
        "memory::pages_that_were_copied_after_a_fork_are_told_as_the_childs",
        &folder.path().join("none"),
    );
    let seen = follow(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let mapping = seen.trace.mappings.iter().position(|mapping| mapping.len == 1234 * PAGE).unwrap() as u32;
    let dirty = seen.of(&[OperationKind::Dirty]);
    let mut pages = std::collections::BTreeMap::<u32, BTreeSet<u64>>::new();
    for one in dirty.iter().filter(|one| one.object == mapping) {
        let touched = (one.offset..one.offset + one.len).step_by(PAGE as usize).map(|at| at / PAGE);
        pages.entry(one.task).or_default().extend(touched);
    }
    let [parent, child] = pages.values().collect::<Vec<_>>()[..] else { panic!("{pages:?}") };
    assert_eq!((parent.len(), parent.first()), (100, Some(&0)));
    let copied: BTreeSet<u64> = (0..40).chain(80..90).collect();
    assert_eq!(child, &copied);
}
