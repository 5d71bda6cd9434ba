//! From the bytes of an object to a program, as `libbpf` does it before a kernel sees any of it.
//!
//! ```text
//!   sections with code         --> one row of instructions
//!   .maps, with their types    --> maps                          loads and calls that name them are rewritten
//!   .data, .bss, .rodata       --> memory
//!   .struct_ops.link           --> which function is which hook
//! ```
//! Left out: relocations by a kernel's types ([`crate::layout`] says why), `.kconfig`, and programs of other kinds
//! than `struct_ops` and `syscall`: those of `fexit` watch which files are made, and here every file is watched.
//!
//! Next: [`crate::object`], what can be set of it; [`crate::vm`], which runs it.

use std::collections::BTreeMap;

use object::read::elf::ElfFile64;
use object::{
    Architecture, LittleEndian, Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget,
    SectionFlags, SectionIndex, SymbolIndex, SymbolKind,
};

use crate::btf::Btf;
use crate::calls::Call;
use crate::code::{CALL, FUNCTIONS, Function, INSN, LOAD_WIDE, Program, TO_FUNCTION, TO_KFUNC, decoded};
use crate::fault::ObjectError;
use crate::layout::Layout;
use crate::maps::MapSpec;
use crate::memory::{MAPS_MAX, SECTIONS_MAX, data_address, map_address};

type Elf<'a> = ElfFile64<'a, LittleEndian>;

/// Sections that hold the policy's table of hooks.
const STRUCT_OPS: [&str; 2] = [".struct_ops.link", ".struct_ops"];
/// The type of that table.
const OPS_TYPE: &str = "cache_ext_ops";
const IS_CODE: u64 = 0x4;
const IS_LOADED: u64 = 0x2;
const IS_WRITABLE: u64 = 0x1;

/// Memory that an object brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Data {
    pub(crate) name: String,
    /// Without the zeros at its end.
    pub(crate) bytes: Vec<u8>,
    pub(crate) size: usize,
    pub(crate) is_writable: bool,
}

/// A variable of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) name: String,
    /// Which memory it is in.
    pub(crate) data: usize,
    pub(crate) offset: usize,
    pub(crate) size: usize,
}

/// Where the functions of a policy begin; none of a hook that it has not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Hooks {
    pub(crate) init: Option<usize>,
    pub(crate) evict_folios: Option<usize>,
    pub(crate) folio_added: Option<usize>,
    pub(crate) folio_accessed: Option<usize>,
    pub(crate) folio_evicted: Option<usize>,
    pub(crate) admit_folio: Option<usize>,
}

/// An object, ready to be run.
#[derive(Debug, Clone)]
pub(crate) struct Linked {
    pub(crate) program: Program,
    pub(crate) hooks: Hooks,
    /// Programs that user space runs when a ring buffer says so.
    pub(crate) answers: Vec<usize>,
    pub(crate) data: Vec<Data>,
    pub(crate) maps: Vec<MapSpec>,
    pub(crate) variables: Vec<Variable>,
    pub(crate) layout: Layout,
}

/// What a section became.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// Instructions from this one on.
    Code(usize),
    /// The memory of this number.
    Data(usize),
    Maps,
}

/// Reads an object.
///
/// # Errors
/// It is none, it is one of another machine, it holds no policy, or calls what is not there.
pub(crate) fn linked(bytes: &[u8]) -> Result<Linked, ObjectError> {
    let elf = opened(bytes)?;
    let types = elf.section_by_name(".BTF").and_then(|section| section.data().ok());
    let types = types.ok_or_else(|| {
        let hint = "compile it with `clang -g -target bpf`";
        ObjectError::new("the object has no types (`.BTF`)", hint)
    })?;
    let btf = Btf::read(types)?;
    let mut linker = Linker { elf: &elf, btf: &btf, places: BTreeMap::new(), linked: Linked::new(&btf) };
    linker.place_sections()?;
    linker.name_functions();
    linker.name_variables();
    let maps = linker.maps()?;
    linker.relocate_all(&maps)?;
    linker.linked.maps = maps.into_iter().map(|(_, spec)| spec).collect();
    linker.linked.hooks = linker.hooks()?;
    let Linked { program, hooks, answers, .. } = &linker.linked;
    program.check(hooks.entries().chain(answers.iter().copied()))?;
    Ok(linker.linked)
}

fn opened(bytes: &[u8]) -> Result<Elf<'_>, ObjectError> {
    let made = "`clang -g -O2 -target bpf -c policy.bpf.c` makes one";
    if !bytes.starts_with(b"\x7fELF") {
        return Err(ObjectError::new("not an object: it does not begin as an ELF file does", made));
    }
    let of_bpf = matches!(bytes.get(4..6), Some([2, 1])) && bytes.get(18..20) == Some(&[247, 0]);
    let elf = Elf::parse(bytes).ok().filter(|elf| elf.architecture() == Architecture::Bpf);
    match elf {
        Some(elf) => Ok(elf),
        None if of_bpf => Err(ObjectError::broken("an ELF file that cannot be read")),
        None => Err(ObjectError::new("an object for another machine than (little-endian) eBPF", made)),
    }
}

impl Linked {
    fn new(btf: &Btf) -> Self {
        Self {
            program: Program::default(),
            hooks: Hooks::default(),
            answers: Vec::new(),
            data: Vec::new(),
            maps: Vec::new(),
            variables: Vec::new(),
            layout: Layout::of(btf),
        }
    }
}

impl Hooks {
    fn of_name(&mut self, name: &str) -> Option<&mut Option<usize>> {
        Some(match name {
            "init" => &mut self.init,
            "evict_folios" => &mut self.evict_folios,
            "folio_added" => &mut self.folio_added,
            "folio_accessed" => &mut self.folio_accessed,
            "folio_evicted" => &mut self.folio_evicted,
            "admit_folio" => &mut self.admit_folio,
            _ => return None,
        })
    }

    fn entries(&self) -> impl Iterator<Item = usize> + use<> {
        let Self { init, evict_folios, folio_added, folio_accessed, folio_evicted, admit_folio } = *self;
        [init, evict_folios, folio_added, folio_accessed, folio_evicted, admit_folio].into_iter().flatten()
    }
}

struct Linker<'a> {
    elf: &'a Elf<'a>,
    btf: &'a Btf,
    places: BTreeMap<usize, Place>,
    linked: Linked,
}

/// What a symbol of the object is.
struct Symbol<'a> {
    name: &'a str,
    value: u64,
    section: Option<SectionIndex>,
}

impl Linker<'_> {
    fn place_sections(&mut self) -> Result<(), ObjectError> {
        for section in self.elf.sections() {
            let (name, SectionFlags::Elf { sh_flags, .. }) =
                (section.name().unwrap_or_default(), section.flags())
            else {
                continue;
            };
            let sh_flags = sh_flags.0;
            let size = usize::try_from(section.size()).unwrap_or(usize::MAX);
            if sh_flags & IS_CODE != 0 && size > 0 {
                let first = self.linked.program.insns.len();
                let bytes =
                    section.data().map_err(|_| ObjectError::broken(format!("`{name}` is cut off")))?;
                self.linked.program.insns.extend(decoded(name, bytes)?);
                self.places.insert(section.index().0, Place::Code(first));
                if name == "syscall" {
                    self.linked.answers.push(first);
                }
            } else if name == ".maps" {
                self.places.insert(section.index().0, Place::Maps);
            } else if sh_flags & IS_LOADED != 0 && !STRUCT_OPS.contains(&name) && size > 0 {
                if self.linked.data.len() == SECTIONS_MAX {
                    return Err(ObjectError::broken(format!("more than {SECTIONS_MAX} sections of data")));
                }
                let mut bytes = section.data().unwrap_or_default().to_vec();
                bytes.truncate(bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1));
                let is_writable = sh_flags & IS_WRITABLE != 0;
                self.places.insert(section.index().0, Place::Data(self.linked.data.len()));
                self.linked.data.push(Data { name: name.to_owned(), bytes, size, is_writable });
            }
        }
        Ok(())
    }

    fn name_functions(&mut self) {
        let functions =
            self.elf.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text).filter_map(|symbol| {
                let Place::Code(first) = self.places.get(&symbol.section_index()?.0)? else { return None };
                let first = first + symbol.address() as usize / INSN;
                Some(Function { name: symbol.name().ok()?.to_owned(), first })
            });
        let mut functions: Vec<Function> = functions.collect();
        functions.sort_by_key(|function| function.first);
        self.linked.program.functions = functions;
    }

    fn name_variables(&mut self) {
        let variables =
            self.elf.symbols().filter(|symbol| symbol.kind() == SymbolKind::Data).filter_map(|symbol| {
                let Place::Data(data) = *self.places.get(&symbol.section_index()?.0)? else { return None };
                let (offset, size) = (symbol.address() as usize, symbol.size() as usize);
                Some(Variable { name: symbol.name().ok()?.to_owned(), data, offset, size })
            });
        self.linked.variables = variables.collect();
    }

    /// The maps of the object, each with where its definition lies in `.maps`.
    fn maps(&self) -> Result<Vec<(u64, MapSpec)>, ObjectError> {
        let mut maps = Vec::new();
        for (name, definition) in self.btf.variables(".maps") {
            if maps.len() == MAPS_MAX {
                return Err(ObjectError::broken(format!("more than {MAPS_MAX} maps")));
            }
            let symbol = self.elf.symbols().find(|symbol| symbol.name() == Ok(name));
            let symbol =
                symbol.ok_or_else(|| ObjectError::broken(format!("no symbol has the map `{name}`")))?;
            maps.push((symbol.address(), MapSpec::of(self.btf, name, definition)?));
        }
        Ok(maps)
    }

    fn symbol(&self, index: SymbolIndex) -> Result<Symbol<'_>, ObjectError> {
        let symbol =
            self.elf.symbol_by_index(index).map_err(|_| ObjectError::broken("a relocation of no symbol"))?;
        let (name, section) = (symbol.name().unwrap_or_default(), symbol.section_index());
        Ok(Symbol { name, value: symbol.address(), section })
    }

    fn relocate_all(&mut self, maps: &[(u64, MapSpec)]) -> Result<(), ObjectError> {
        for section in self.elf.sections() {
            let Some(&Place::Code(first)) = self.places.get(&section.index().0) else { continue };
            // A section may say that it is larger than what it holds.
            let count = section.data().map_or(0, <[u8]>::len) / INSN;
            let mut is_done = vec![false; count];
            for (offset, relocation) in section.relocations() {
                let RelocationTarget::Symbol(symbol) = relocation.target() else { continue };
                let at = first + offset as usize / INSN;
                if at >= first + count {
                    return Err(ObjectError::broken("a relocation behind its section"));
                }
                self.relocate(at, symbol, maps)?;
                is_done[at - first] = true;
            }
            // Calls within a section may have none: they go by distance.
            for at in (first..first + count).filter(|at| !is_done[at - first]) {
                let insn = &mut self.linked.program.insns[at];
                if insn.code == CALL && insn.src == TO_FUNCTION {
                    insn.imm += at as i64 + 1;
                }
            }
        }
        Ok(())
    }

    fn relocate(
        &mut self,
        at: usize,
        symbol: SymbolIndex,
        maps: &[(u64, MapSpec)],
    ) -> Result<(), ObjectError> {
        let symbol = self.symbol(symbol)?;
        let mut insn = self.linked.program.insns[at];
        let place = symbol.section.and_then(|section| self.places.get(&section.0).copied());
        let is_call = insn.code == CALL && insn.src == TO_FUNCTION;
        let target = symbol.value as i64;
        let mut unknown = None;
        match (place, insn.code) {
            (Some(Place::Code(first)), CALL) if is_call => {
                insn.imm = first as i64 + target / INSN as i64 + insn.imm + 1;
            }
            (None, CALL) if is_call && symbol.section.is_none() => {
                insn.src = TO_KFUNC;
                insn.imm = match Call::index_of_kfunc(symbol.name) {
                    Some(index) => index as i64,
                    None => {
                        unknown = Some(symbol.name.to_owned());
                        -1 - self.linked.program.unknown.len() as i64
                    }
                };
            }
            (Some(Place::Code(first)), LOAD_WIDE) => {
                let function = first as i64 + target.wrapping_add(insn.imm) / INSN as i64;
                insn.imm = (FUNCTIONS as i64).wrapping_add(function);
            }
            (Some(Place::Data(data)), LOAD_WIDE) => {
                insn.imm = (data_address(data) as i64).wrapping_add(target).wrapping_add(insn.imm);
            }
            (Some(Place::Maps), LOAD_WIDE) => {
                let map = maps.iter().position(|(at, _)| *at == symbol.value);
                let map = map.ok_or_else(|| ObjectError::broken("a load of what is no map"))?;
                insn.imm = map_address(map) as i64;
            }
            _ => {
                let (name, place) = (symbol.name, self.linked.program.place(at));
                let hint = "a policy can use its own variables, maps and functions, and kfuncs of cache_ext";
                return Err(ObjectError::new(format!("nothing is known of `{name}`, used at {place}"), hint));
            }
        }
        self.linked.program.insns[at] = insn;
        self.linked.program.unknown.extend(unknown);
        Ok(())
    }

    /// Reads the table of hooks.
    fn hooks(&self) -> Result<Hooks, ObjectError> {
        let none = || {
            let hint =
                "cache_ext's policies have `SEC(\".struct_ops.link\") struct cache_ext_ops name = { ... };`";
            ObjectError::new("the object holds no policy: it has no `struct cache_ext_ops`", hint)
        };
        let of_section = |section: &'static str| {
            let tables = self.btf.variables(section).into_iter();
            let is_one = |of| self.btf.name(self.btf.bare(of)).split("___").next() == Some(OPS_TYPE);
            tables.filter(move |&(_, of)| is_one(of)).map(move |(name, of)| (section, name, of))
        };
        let mut tables = STRUCT_OPS.into_iter().flat_map(of_section);
        let (section, table, of) = tables.next().ok_or_else(none)?;
        if let Some((_, second, _)) = tables.next() {
            let message = format!("the object holds two policies, `{table}` and `{second}`");
            return Err(ObjectError::new(message, "split it into one object for each"));
        }
        let start =
            self.elf.symbols().find(|symbol| symbol.name() == Ok(table)).map(|symbol| symbol.address());
        let (start, section) = (start.ok_or_else(none)?, self.elf.section_by_name(section).ok_or_else(none)?);
        let end = start.saturating_add(u64::from(self.btf.size(of).unwrap_or(0)));
        let mut hooks = Hooks::default();
        for (offset, relocation) in section.relocations().filter(|(offset, _)| (start..end).contains(offset))
        {
            let RelocationTarget::Symbol(symbol) = relocation.target() else { continue };
            let symbol = self.symbol(symbol)?;
            let member = self.btf.members(of).find(|member| u64::from(member.offset) == offset - start);
            let name = member.map_or("", |member| member.name);
            let hook = hooks.of_name(name).ok_or_else(|| {
                let hint = "`docs/policies.md` has the six that there are";
                ObjectError::new(format!("the policy has a hook `{name}`, which is not modelled"), hint)
            })?;
            match symbol.section.and_then(|section| self.places.get(&section.0)) {
                Some(Place::Code(first)) => *hook = Some(first + symbol.value as usize / INSN),
                _ => return Err(ObjectError::broken(format!("the hook `{name}` is no function"))),
            }
        }
        Ok(hooks)
    }
}
