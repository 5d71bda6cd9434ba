//! `kernel` asks `mm` and tells it what happened; it writes none of its fields.
//!
//! Held by text: what is reached through a memory is not assigned to, nor borrowed for change (the step of a
//! decision is code of `mm` and may), nor are its frames; and no field is assigned to whose name only structs
//! of `mm` have. Any other method may change what it likes. Neighbour: `storeys`.

use std::collections::BTreeSet;

use crate::sources::{code, sources_of};
use crate::tree::{Text, assert_none};

/// Names under which `kernel` holds a memory.
const MEMORY: [&str; 2] = ["mem", "memory"];
const SIGNS: [&str; 7] = [" = ", " += ", " -= ", " *= ", " |= ", " &= ", " ^= "];
/// Methods of frames that change them.
const CHANGES_OF_FRAMES: [&str; 3] = [".frames.set_", ".frames.put_", ".frames.clear_"];

/// Code with each chain of calls on one line.
fn joined(text: &Text) -> String {
    let mut lines = String::new();
    for (_, line) in code(text) {
        let goes_on = line.trim_start().starts_with('.') && !line.trim_start().starts_with("..");
        lines.push_str(if goes_on { "" } else { "\n" });
        lines.push_str(if goes_on { line.trim() } else { line });
    }
    lines
}

/// Fields that structs of a crate have, as far as they stand on a line of their own.
fn fields_of(package: &str) -> BTreeSet<String> {
    let field = |line: &str| {
        let (name, _) = line.strip_prefix("    ")?.strip_suffix(',')?.split_once(": ")?;
        let name = name.rsplit(' ').next()?;
        name.chars().all(|c| c.is_alphanumeric() || c == '_').then(|| name.to_owned())
    };
    let sources = sources_of(&[package]);
    sources
        .iter()
        .flat_map(|text| code(text).filter_map(|(_, line)| field(line)).collect::<Vec<_>>())
        .collect()
}

fn is_of_chain(c: char) -> bool {
    c.is_alphanumeric() || "_.[]()".contains(c)
}

/// The places that a line assigns to, such as `mem.reclaim.failures`.
fn assigned(line: &str) -> impl Iterator<Item = &str> {
    let before = SIGNS.iter().flat_map(|sign| line.match_indices(sign)).map(|(at, _)| &line[..at]);
    before.map(|before| before.rsplit(|c| !is_of_chain(c)).next().unwrap_or_default())
}

/// What a line reaches through a memory: each chain that begins with one of its names.
fn reached(line: &str) -> impl Iterator<Item = (&str, &str)> {
    let begins = MEMORY.iter().flat_map(|name| line.match_indices(name).map(|(at, _)| at));
    begins.filter_map(|at| {
        let (before, chain) = line.split_at(at);
        let end = chain.find(|c| !is_of_chain(c)).unwrap_or(chain.len());
        let whole = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.');
        let is_memory = MEMORY
            .iter()
            .any(|name| chain[..end].strip_prefix(name).is_some_and(|rest| rest.starts_with('.')));
        (whole && is_memory).then_some((before, &chain[..end]))
    })
}

/// Whether a line writes what is `mm`'s; `foreign` are fields that only its structs have.
fn writes(line: &str, foreign: &BTreeSet<String>) -> bool {
    let assigns = assigned(line).any(|place| {
        let (holder, field) = place.rsplit_once('.').unwrap_or_default();
        MEMORY.contains(&holder.split('.').next().unwrap_or_default()) || foreign.contains(field)
    });
    let borrows = reached(line).any(|(before, chain)| {
        let for_change = before.ends_with("&mut ") && !before.ends_with(".step(&mut ");
        for_change || chain.contains("_mut(") || CHANGES_OF_FRAMES.iter().any(|change| chain.contains(change))
    });
    assigns || borrows
}

#[test]
fn kernel_writes_no_field_of_mm() {
    let own = fields_of("kernel");
    let foreign: BTreeSet<String> =
        fields_of("mm").into_iter().filter(|field| !own.contains(field)).collect();
    assert!(foreign.contains("kswapd_failures"), "no fields of mm: the check looks at the wrong place");
    let mut found = Vec::new();
    for text in sources_of(&["kernel"]) {
        let lines = joined(&text);
        let wrong = lines.lines().filter(|line| writes(line, &foreign));
        found.extend(wrong.map(|line| format!("{}: {}", text.path, line.trim())));
    }
    assert_none("fields of mm that kernel writes: give mm a method that says what happened", &found);
}

#[test]
fn writes_are_found_in_assignments_and_in_borrows() {
    let foreign = BTreeSet::from(["nr_scanned".to_owned()]);
    for line in [
        "    mem.core.alloc.trace = trace;",
        "mem.reclaim.failures += 1;",
        "self.mem(|mem| mem.zone(0).managed -= 1);",
        "sc.nr_scanned = 0;",
        "let events = &mut mem.core.alloc.events;",
        "for zone in mem.core.zones_mut() {",
        "mem.core.alloc.frames.set_flags(pfn, PageFlags::LOCKED);",
    ] {
        assert!(writes(line, &foreign), "{line}");
    }
    for line in [
        "let found = mem.cache.find(mapping, 0);",
        "if mem.cache.dirty(0) == 1 {",
        "match self.mem(|mem| charge.step(&mut mem.core.cgroups, cpu)) {",
        "let mut member = &mut remember.first;",
        "self.size = mem.cache.dirty(0);",
    ] {
        assert!(!writes(line, &foreign), "{line}");
    }
}
