//! A program as a policy: each hook of the kernel runs the function that the object has for it.
//!
//! A copy begins (`init`) with the first hook that it hears of, as it may have much to begin with and most cgroups have
//! no file pages; one that is asked about admission begins with its cgroup. Where a program does what it must not, the
//! policy gives up: it is told as the run's error, and the kernel's own lists go on meanwhile.

use std::fmt;
use std::sync::{Arc, Mutex};

use mm::lru::cache_ext::hooks::EvictionPolicy;
use mm::lru::cache_ext::lists::{CANDIDATES_MAX, Eviction, Folio, Lists, Place};
use units::{PAGE_SIZE, Seed};

use crate::fault::{Fault, Ran};
use crate::link::Linked;
use crate::maps::Maps;
use crate::memory::{ARGUMENTS, CGROUP, CONTEXT, Memory, area_address};
use crate::vm::{State, Vm};

/// An object that runs.
#[derive(Clone)]
pub(crate) struct ObjectPolicy {
    linked: Arc<Linked>,
    seed: Seed,
    instructions: u64,
    /// The first that any copy did wrong.
    failure: Arc<Mutex<Option<String>>>,
    state: Option<Box<State>>,
    has_given_up: bool,
}

impl fmt::Debug for ObjectPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectPolicy").finish_non_exhaustive()
    }
}

impl ObjectPolicy {
    pub(crate) fn new(linked: Arc<Linked>, seed: Seed, instructions: u64) -> Self {
        Self { linked, seed, instructions, failure: Arc::default(), state: None, has_given_up: false }
    }

    fn begin(&mut self, lists: &mut Lists<'_>) {
        let Linked { layout, data, maps, .. } = &*self.linked;
        let mut memory = Memory::new(layout.eviction.size.max(layout.admission.size) as usize);
        for (number, section) in data.iter().enumerate() {
            // Zeros that nobody has touched yet: a system gives pages to them when somebody does.
            let mut bytes = vec![0; section.size];
            bytes[..section.bytes.len()].copy_from_slice(&section.bytes);
            memory.place_data(number, bytes, !section.is_writable);
        }
        let maps = Maps::new(maps, &mut memory);
        let random = self.seed.stream(&format!("cache_ext policy {}", lists.group()));
        self.state = Some(Box::new(State { memory, maps, handles: Vec::new(), random, printed: 0 }));
        let result = self.run("init", self.linked.hooks.init, Some(lists), &[CGROUP]);
        if let Some(error) = result.filter(|&result| result as u32 != 0) {
            self.give_up("init", &Fault::new(format!("the policy does not begin: {}", error as i32)));
        }
    }

    /// Runs a hook that the object has, the first time `init` before it; what it returns.
    fn hook(
        &mut self,
        name: &str,
        entry: Option<usize>,
        lists: &mut Lists<'_>,
        arguments: &[u64],
    ) -> Option<u64> {
        if self.state.is_none() {
            self.begin(lists);
        }
        self.run(name, entry, Some(lists), arguments)
    }

    fn run(
        &mut self,
        name: &str,
        entry: Option<usize>,
        mut lists: Option<&mut Lists<'_>>,
        arguments: &[u64],
    ) -> Option<u64> {
        let (entry, state) = (entry?, self.state.as_deref_mut()?);
        if self.has_given_up {
            return None;
        }
        let passed = state.memory.area_mut(ARGUMENTS);
        for (bytes, argument) in passed.chunks_exact_mut(8).zip(arguments) {
            bytes.copy_from_slice(&argument.to_le_bytes());
        }
        let at = area_address(ARGUMENTS);
        let (linked, left) = (&*self.linked, self.instructions);
        let mut step = |state: &mut State, entry| -> Ran<u64> {
            let lists = lists.as_deref_mut();
            Vm { linked, state, lists, is_walking: false, left, depth: 0 }.run(entry, [at, 0, 0, 0, 0])
        };
        let mut result = step(state, entry);
        while result.is_ok() && state.maps.records > 0 {
            state.maps.records -= 1;
            for &answer in &linked.answers {
                result = result.and_then(|result| step(state, answer).map(|_| result));
            }
        }
        result.map_err(|fault| self.give_up(name, &fault)).ok()
    }

    #[cold]
    fn give_up(&mut self, hook: &str, fault: &Fault) {
        self.has_given_up = true;
        let told = fault.told(hook, |at| self.linked.program.place(at));
        let mut failure = self.failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        failure.get_or_insert(told);
    }

    /// What a hook is about.
    fn context(&mut self) -> Option<&mut [u8]> {
        let context = self.state.as_deref_mut()?.memory.area_mut(CONTEXT);
        context.fill(0);
        Some(context)
    }

    /// The candidates that a program has written down.
    fn propose(&self, eviction: &mut Eviction) -> Ran {
        let Some(state) = &self.state else { return Ok(()) };
        let (at, layout) = (area_address(CONTEXT), self.linked.layout.eviction);
        let count = state.memory.field(at, layout.count, 8)?;
        // A kernel takes none of too many.
        for candidate in 0..if count > u64::from(CANDIDATES_MAX) { 0 } else { count as u32 } {
            let address = state.memory.field(at, layout.folios + 8 * candidate, 8)?;
            if let Some(folio) = self.linked.layout.folio_at(address) {
                eviction.propose(folio);
            }
        }
        Ok(())
    }
}

fn put(context: &mut [u8], at: u32, value: u64) {
    if let Some(bytes) = context.get_mut(at as usize..at as usize + 8) {
        bytes.copy_from_slice(&value.to_le_bytes());
    }
}

impl EvictionPolicy for ObjectPolicy {
    fn init(&mut self, lists: &mut Lists<'_>) {
        if self.linked.hooks.admit_folio.is_some() {
            self.begin(lists);
        }
    }

    fn evict_folios(&mut self, lists: &mut Lists<'_>, eviction: &mut Eviction) {
        let requested = self.linked.layout.eviction.requested;
        if self.state.is_none() {
            self.begin(lists);
        }
        if let Some(context) = self.context() {
            put(context, requested, u64::from(eviction.wanted()));
        }
        let entry = self.linked.hooks.evict_folios;
        let ended = self.hook("evict_folios", entry, lists, &[area_address(CONTEXT), CGROUP]);
        if ended.is_some()
            && let Err(fault) = self.propose(eviction)
        {
            self.give_up("evict_folios", &fault);
        }
    }

    fn folio_added(&mut self, lists: &mut Lists<'_>, folio: Folio) {
        let (entry, folio) = (self.linked.hooks.folio_added, self.linked.layout.folio_address(folio));
        self.hook("folio_added", entry, lists, &[folio]);
    }

    fn folio_accessed(&mut self, lists: &mut Lists<'_>, folio: Folio) {
        let (entry, folio) = (self.linked.hooks.folio_accessed, self.linked.layout.folio_address(folio));
        self.hook("folio_accessed", entry, lists, &[folio]);
    }

    fn folio_removed(&mut self, lists: &mut Lists<'_>, folio: Folio) {
        let (entry, folio) = (self.linked.hooks.folio_evicted, self.linked.layout.folio_address(folio));
        self.hook("folio_evicted", entry, lists, &[folio]);
    }

    fn admit_folio(&mut self, place: Place) -> bool {
        let layout = self.linked.layout.admission;
        if let Some(context) = self.context() {
            put(context, layout.inode, Vm::inode_number(place.file.0));
            put(context, layout.offset, u64::from(place.index) * PAGE_SIZE);
            put(context, layout.length, PAGE_SIZE);
        }
        let entry = self.linked.hooks.admit_folio;
        // True is a page that is read past the cache.
        self.run("admit_folio", entry, None, &[area_address(CONTEXT)])
            .is_none_or(|passes_by| passes_by & 0xff == 0)
    }

    fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}
