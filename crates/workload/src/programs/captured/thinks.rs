//! How long a task thinks before each of its steps.
//!
//! A task's own operations say how long it thought before them, since its own operation before. What it makes for
//! others (memory is made by the first task of a process) and what was seen by looking at memory say nothing of the
//! kind: such a step takes a share of what was thought between the operations around it, as its time lies between
//! theirs. So memory is touched while the task thinks, and where it waits for a child in between, the share before
//! goes. What a task thought before an operation that another one makes it thinks before its next.

use std::collections::BTreeMap;

use trace::{Operation, OperationKind, Trace};

/// By step. `home` is the task that makes a step, `waits` has for some when those ended that it waits for.
pub(super) fn thinks(
    trace: &Trace,
    steps: &[Vec<u32>],
    home: impl Fn(u32) -> u32,
    waits: &BTreeMap<u32, (Vec<u32>, u64)>,
) -> Vec<u64> {
    let own = own(trace, &home);
    let mut thinks = vec![0; trace.operations.len()];
    for (task, steps) in (0_u32..).zip(steps) {
        let mut from = 0;
        let says = |step: &u32| {
            let operation = &trace.operations[*step as usize];
            let seen = matches!(operation.kind, OperationKind::Touch | OperationKind::Dirty);
            operation.task == task && !(seen && operation.think_ns == 0)
        };
        while from < steps.len() {
            let past = steps[from..].iter().position(says).map_or(steps.len(), |at| from + at + 1);
            let end = |step: u32| {
                let operation = &trace.operations[step as usize];
                operation.at_ns.saturating_add(operation.took_ns)
            };
            let began = from.checked_sub(1).map(|before| end(steps[before]));
            let gap = &steps[from..past];
            let last = gap[gap.len() - 1];
            let thought = if says(&last) { own[last as usize] } else { u64::MAX };
            share(trace, gap, (began, thought), waits, &mut thinks);
            from = past;
        }
    }
    thinks
}

/// What each operation's task thought since the one before that it makes itself.
fn own(trace: &Trace, home: &impl Fn(u32) -> u32) -> Vec<u64> {
    let mut carried = vec![0_u64; trace.tasks.len()];
    let thought = (0_u32..).zip(&trace.operations).map(|(step, operation)| {
        let carried = &mut carried[operation.task as usize];
        let thought = carried.saturating_add(operation.think_ns);
        *carried = if home(step) == operation.task { 0 } else { thought };
        thought
    });
    thought.collect()
}

/// Divides what was thought among the steps of a gap; `u64::MAX` is all of its time.
fn share(
    trace: &Trace,
    gap: &[u32],
    (began, thought): (Option<u64>, u64),
    waits: &BTreeMap<u32, (Vec<u32>, u64)>,
    thinks: &mut [u64],
) {
    let at = |step: u32| trace.operations[step as usize].at_ns;
    let last = gap[gap.len() - 1];
    let began = began.unwrap_or(at(gap[0]));
    let span = at(last).saturating_sub(began);
    let mut before = began;
    for &step in gap {
        let passed = at(step).saturating_sub(before);
        before = before.max(at(step));
        thinks[step as usize] = match waits.get(&step) {
            Some((_, ended_ns)) => at(step).saturating_sub(*ended_ns),
            None if thought == u64::MAX => passed,
            None if span == 0 => {
                if step == last {
                    thought
                } else {
                    0
                }
            }
            None => part(thought, passed, span),
        };
    }
}

/// What a touch says of how often is taken for no more than this.
const USES_MAX: u32 = 256;

/// How often what an operation touches was used since the look before; 1 where it does not say.
pub(super) fn uses(operation: &Operation) -> u32 {
    match operation.kind {
        OperationKind::Touch | OperationKind::Dirty => operation.detail.clamp(1, USES_MAX),
        _ => 1,
    }
}

/// What one look at a task's memory saw.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look<'a> {
    pub(super) steps: &'a [u32],
    /// How often it was used at most.
    pub(super) rounds: u32,
}

impl<'a> Look<'a> {
    /// The first of these steps and those that were seen with it, for which the task does not wait.
    pub(super) fn of(trace: &Trace, steps: &'a [u32], waits: &BTreeMap<u32, (Vec<u32>, u64)>) -> Self {
        let operation = |step: u32| &trace.operations[step as usize];
        let seen = |step: u32| matches!(operation(step).kind, OperationKind::Touch | OperationKind::Dirty);
        let first = operation(steps[0]).at_ns;
        let is_same = |at: usize| {
            let step = steps[at];
            seen(step) && operation(step).at_ns == first && (at == 0 || !waits.contains_key(&step))
        };
        let count = (0..steps.len()).take_while(|at| is_same(*at)).count();
        let steps = &steps[..count];
        let rounds = steps.iter().map(|step| uses(operation(*step))).max().unwrap_or(1);
        Self { steps, rounds }
    }
}

/// `of` as `share` is to `whole`.
fn part(of: u64, share: u64, whole: u64) -> u64 {
    let part = u128::from(of) * u128::from(share) / u128::from(whole);
    u64::try_from(part).unwrap_or(u64::MAX)
}
