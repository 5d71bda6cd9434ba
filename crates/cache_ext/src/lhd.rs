//! LHD (Beckmann, Chen, Cidon, NSDI 2018): the folios go that have the fewest hits to expect for the room and time that
//! they would take until they are hit or evicted, by what became of others of their class and age.
//!
//! ```text
//!   age      accesses since a folio's own last one, in steps of a 64th of the cache
//!   class    how long it was before its last two accesses together
//!   density  (hits at this age or older) / (time that those of this age still stayed), for each class and age
//!   head: 512 scored by density --> the 32 lowest are candidates, all 512 --> tail
//! ```
//! From time to time what was counted is made less by a tenth, and densities anew. That and the steps of ages go by the
//! number of folios here, where the paper has constants for caches of millions. Whole numbers, as in cache_ext.
//! Left out, as there: sampling by chance, and folios that are tried although they seem bad.

use mm::lru::cache_ext::hooks::EvictionPolicy;
use mm::lru::cache_ext::lists::{End, Eviction, EvictionList, Folio, LOOKS_MAX, Lists};

use crate::per_folio::PerFolio;

/// Ages that are told apart; whoever is older counts as of the last one.
const AGES: usize = 2048;
const CLASSES: usize = 16;
/// Steps of ages to the number of folios.
const STEPS: u64 = 64;
/// What one event counts for, so that a tenth less of few events is less.
const EVENT: u64 = 1 << 10;
/// Densities are parts of this.
const DENSITY: u64 = 1 << 32;
/// Accesses for each folio until densities are made anew, and how many at least.
const PERIOD: u64 = 4;
const PERIOD_LEAST: u64 = 1 << 12;

/// What became of folios of a class, by their age then.
#[derive(Debug, Clone)]
struct Class {
    hits: Vec<u64>,
    evictions: Vec<u64>,
    density: Vec<u64>,
}

/// What is kept of a folio, in accesses.
#[derive(Debug, Clone, Copy, Default)]
struct Kept {
    last: u64,
    /// Its ages when it was hit last, and the time before.
    hit_ages: [Option<u64>; 2],
}

/// The policy.
#[derive(Debug, Clone)]
pub struct Lhd {
    list: EvictionList,
    kept: PerFolio<Kept>,
    /// Empty until the first folio comes.
    classes: Vec<Class>,
    /// Accesses and admissions so far.
    now: u64,
    /// log2 of accesses in a step of ages.
    shift: u32,
    /// When densities are made anew.
    due: u64,
}

impl Default for Lhd {
    fn default() -> Self {
        let (list, kept) = (EvictionList::NIL, PerFolio::default());
        Self { list, kept, classes: Vec::new(), now: 0, shift: 0, due: PERIOD_LEAST }
    }
}

impl Class {
    /// Before anything is known the density falls with the age, and a folio that came back soon is worth more.
    fn new(class: usize) -> Self {
        let density = (1..=AGES as u64).map(|age| DENSITY / age * (class as u64 + 1) / CLASSES as u64);
        Self { hits: vec![0; AGES], evictions: vec![0; AGES], density: density.collect() }
    }

    fn model(&mut self) {
        let (mut hits, mut events, mut time) = (0, 0, 0);
        for age in (0..AGES).rev() {
            hits += self.hits[age];
            events += self.hits[age] + self.evictions[age];
            time += events;
            let parts = u128::from(hits) * u128::from(DENSITY);
            let density = parts.checked_div(u128::from(time)).unwrap_or(0);
            self.density[age] = u64::try_from(density).expect("hits are events");
        }
    }
}

/// Counts by ages of larger steps, or of smaller ones.
fn rescaled(counts: &[u64], from: u32, to: u32) -> Vec<u64> {
    let mut scaled = vec![0; AGES];
    for (age, &count) in counts.iter().enumerate() {
        if to >= from {
            scaled[age >> (to - from)] += count;
            continue;
        }
        let parts = 1_usize << (from - to).min(usize::BITS - 1);
        for part in 0..parts.min(AGES) {
            let place = age.saturating_mul(parts).saturating_add(part).min(AGES - 1);
            scaled[place] += count / parts as u64;
        }
    }
    scaled
}

impl Lhd {
    /// The class and the age of a folio.
    fn place(&self, kept: &Kept) -> (usize, usize) {
        let age = usize::try_from((self.now - kept.last) >> self.shift).unwrap_or(AGES);
        let [last, before] = kept.hit_ages.map(|age| age.map_or(AGES as u64, |age| age >> self.shift));
        let both = (last + before).max(1);
        // The shorter, the higher: each class is of half the times of the one below.
        let class = (AGES as u64 / both).checked_ilog2().map_or(0, |log| log as usize + 1);
        (class.min(CLASSES - 1), age.min(AGES - 1))
    }

    /// Time goes on by an access.
    fn pass(&mut self, folios: u32) {
        self.now += 1;
        if self.now < self.due {
            return;
        }
        let folios = u64::from(folios).max(1);
        self.due = self.now + (PERIOD * folios).max(PERIOD_LEAST);
        let shift = (folios / STEPS).checked_ilog2().unwrap_or(0);
        for class in &mut self.classes {
            for counts in [&mut class.hits, &mut class.evictions] {
                counts.iter_mut().for_each(|count| *count = *count * 9 / 10);
                if shift != self.shift {
                    *counts = rescaled(counts, self.shift, shift);
                }
            }
            class.model();
        }
        self.shift = shift;
    }
}

impl EvictionPolicy for Lhd {
    fn init(&mut self, lists: &mut Lists<'_>) {
        self.list = lists.create();
    }

    fn evict_folios(&mut self, lists: &mut Lists<'_>, eviction: &mut Eviction) {
        let mut kept = std::mem::take(&mut self.kept);
        lists.evict_lowest(self.list, LOOKS_MAX, eviction, |seen| {
            let (class, age) = self.place(kept.of(seen.folio));
            (!seen.is_busy()).then(|| self.classes[class].density[age])
        });
        self.kept = kept;
    }

    fn folio_added(&mut self, lists: &mut Lists<'_>, folio: Folio) {
        if self.classes.is_empty() {
            self.classes = (0..CLASSES).map(Class::new).collect();
        }
        lists.add(self.list, folio, End::Tail);
        *self.kept.of(folio) = Kept { last: self.now, hit_ages: [None; 2] };
        self.pass(lists.len(self.list));
    }

    fn folio_accessed(&mut self, lists: &mut Lists<'_>, folio: Folio) {
        let kept = *self.kept.of(folio);
        let (class, age) = self.place(&kept);
        self.classes[class].hits[age] += EVENT;
        let hit_ages = [Some(self.now - kept.last), kept.hit_ages[0]];
        *self.kept.of(folio) = Kept { last: self.now, hit_ages };
        self.pass(lists.len(self.list));
    }

    fn folio_removed(&mut self, _lists: &mut Lists<'_>, folio: Folio) {
        let kept = *self.kept.of(folio);
        let (class, age) = self.place(&kept);
        self.classes[class].evictions[age] += EVENT;
    }
}
