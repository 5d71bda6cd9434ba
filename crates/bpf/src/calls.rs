//! What a program can call: helpers, which have numbers, and kfuncs, which have names.
//!
//! Next: [`crate::helpers`] and [`crate::kfuncs`], what each does.

use crate::fault::ObjectError;

/// A helper or a kfunc.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    MapLookup,
    MapUpdate,
    MapDelete,
    Nanoseconds,
    Print,
    Random,
    Cpu,
    Task,
    NoOp,
    ReadMemory,
    RingOutput,
    Loop,
    ListNew,
    ListAdd,
    ListAddTail,
    ListMove,
    ListDel,
    ListIterate,
    ListIterateExtended,
    ListSample,
    CountNew,
    CountNext,
    CountEnd,
}

/// Helpers by number (`include/uapi/linux/bpf.h`).
const HELPERS: &[(i64, Call)] = &[
    (1, Call::MapLookup),
    (2, Call::MapUpdate),
    (3, Call::MapDelete),
    (5, Call::Nanoseconds),
    (6, Call::Print),
    (7, Call::Random),
    (8, Call::Cpu),
    (14, Call::Task),
    (93, Call::NoOp), // bpf_spin_lock: nobody else runs meanwhile.
    (94, Call::NoOp), // bpf_spin_unlock
    (113, Call::ReadMemory),
    (125, Call::Nanoseconds),
    (130, Call::RingOutput),
    (160, Call::Nanoseconds),
    (177, Call::Print),
    (181, Call::Loop),
];

/// Kfuncs by name, in the order in which instructions have them.
const KFUNCS: &[(&str, Call)] = &[
    ("bpf_cache_ext_ds_registry_new_list", Call::ListNew),
    ("bpf_cache_ext_list_add", Call::ListAdd),
    ("bpf_cache_ext_list_add_tail", Call::ListAddTail),
    ("bpf_cache_ext_list_move", Call::ListMove),
    ("bpf_cache_ext_list_del", Call::ListDel),
    ("bpf_cache_ext_list_iterate", Call::ListIterate),
    ("bpf_cache_ext_list_iterate_extended", Call::ListIterateExtended),
    ("bpf_cache_ext_list_sample", Call::ListSample),
    ("bpf_iter_num_new", Call::CountNew),
    ("bpf_iter_num_next", Call::CountNext),
    ("bpf_iter_num_destroy", Call::CountEnd),
    ("bpf_rcu_read_lock", Call::NoOp),
    ("bpf_rcu_read_unlock", Call::NoOp),
];

impl Call {
    pub(crate) fn helper(number: i64) -> Option<Self> {
        HELPERS.iter().find(|(known, _)| *known == number).map(|&(_, call)| call)
    }

    /// The kfunc that an instruction has by this index.
    pub(crate) fn kfunc(index: i64) -> Option<Self> {
        KFUNCS.get(usize::try_from(index).ok()?).map(|&(_, call)| call)
    }

    /// The index of a kfunc. A name may have a flavour behind `___`, as types have.
    pub(crate) fn index_of_kfunc(name: &str) -> Option<usize> {
        let name = name.split("___").next().unwrap_or(name);
        KFUNCS.iter().position(|(known, _)| *known == name)
    }

    pub(crate) fn unknown(what: &str, place: &str) -> ObjectError {
        let hint = "`docs/policies.md` has what a policy may call";
        ObjectError::new(format!("a policy calls {what}, which is not modelled, at {place}"), hint)
    }
}
