//! Reading a scenario file: TOML into values with places, and those into a [`Scenario`].
//!
//! By hand on the parser's spanned tables, not through derived code: each value is checked by the
//! one who knows its rules, and its mistake is reported where the value stands.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};
use units::Seed;

use crate::catalog::{InputError, Workload, WorkloadSpec};
use crate::language::table::{Entry, Position, entries, kind_of};
use crate::language::vocabulary::{KernelSpec, Vocabulary};
use crate::scenario::backend::Backend;
use crate::scenario::bounds::{SCHEMA, SEED_DEFAULT};
use crate::scenario::error::{ScenarioError, ScenarioProblem};
use crate::scenario::guest::Guest;
use crate::scenario::real::{
    check_kernel, check_lru_gen, check_machine, check_mem, is_guest_machine, lru_gen_of,
};
use crate::scenario::resolved::Scenario;
use crate::scenario::swap::{Swap, check_swap};
use crate::scenario::values::{parse_interval, parse_mem, parse_sysctl_value};
use language::names::UnknownName;
use language::params::ParamError;

const KEYS: [&str; 13] = [
    "schema", "workload", "program", "kernel", "machine", "mem", "swap", "seed", "interval", "backend",
    "params", "sysctls", "vm",
];
const GUEST_KEYS: [&str; 4] = ["cpus", "numa_nodes", "lru_gen", "xfs_log"];

/// What a file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The scenario.
    pub scenario: Scenario,
    /// Keys of the file that mean nothing where the run was moved to.
    pub unused: Vec<&'static str>,
    places: BTreeMap<String, Position>,
}

impl Written {
    /// Where the file gives the value of `key`, if it does: `kernel`, `mem`, or a sysctl by its dotted
    /// name.
    pub fn place(&self, key: &str) -> Option<Position> {
        self.places.get(key).copied()
    }
}

impl Scenario {
    /// Reads a scenario file.
    ///
    /// # Errors
    /// The first mistake, with its line and column where it has one.
    pub fn read(text: &str, vocabulary: &Vocabulary<'_>) -> Result<Self, ScenarioError> {
        read(text, vocabulary, None).map(|written| written.scenario)
    }

    /// Reads a scenario file that may run elsewhere than it says, and keeps where it says what, for
    /// checks that come later.
    ///
    /// # Errors
    /// As [`Scenario::read`].
    pub fn read_to_run_on(
        text: &str,
        vocabulary: &Vocabulary<'_>,
        moved_to: Option<&Backend>,
    ) -> Result<Written, ScenarioError> {
        read(text, vocabulary, moved_to)
    }
}

/// Reads a file. With `moved_to` it runs there, whatever its own `backend`: what it says of a kernel
/// and a machine is then left out where it means nothing, and a mistake otherwise.
fn read(
    text: &str,
    vocabulary: &Vocabulary<'_>,
    moved_to: Option<&Backend>,
) -> Result<Written, ScenarioError> {
    let table = DeTable::parse(text).map_err(|error| ScenarioError {
        position: error.span().map(|span| Position::of(text, span.start)),
        problem: ScenarioProblem::NotToml(error.message().trim_end().replace('\n', "; ")),
    })?;
    let file = File { text, table: table.get_ref() };
    file.check_keys()?;
    file.check_schema()?;
    let backend = file.optional("backend", |text| Ok(text.parse::<Backend>()?))?.unwrap_or_default();
    let own = moved_to.is_none_or(|other| *other == backend);
    let mut scenario = Scenario {
        workload: file.workload()?,
        file: None,
        kernel: file.optional("kernel", |text| Ok::<KernelSpec, _>(vocabulary.kernel(text)?))?,
        machine: file.optional("machine", |text| {
            let written_for = |backend: &Backend| is_guest_machine(text, backend);
            let is_real = *moved_to.unwrap_or(&backend) != Backend::Sim;
            match is_real && (written_for(&backend) || moved_to.is_some_and(written_for)) {
                true => Ok(text.to_owned()),
                false => Ok(vocabulary.machine(text)?),
            }
        })?,
        mem: file.optional("mem", parse_mem)?,
        swap: file.optional_list("swap", |text| text.parse::<Swap>())?,
        sysctls: file.sysctls(vocabulary)?,
        seed: file.optional("seed", parse_seed)?.unwrap_or(SEED_DEFAULT),
        interval: file.optional("interval", |text| parse_interval("interval", text))?,
        guest: file.guest(moved_to.unwrap_or(&backend).default_guest())?,
        backend: moved_to.cloned().unwrap_or(backend),
    };
    let unused = if own {
        file.check_real(&scenario)?;
        Vec::new()
    } else {
        file.unused(&scenario)
    };
    if scenario.backend != Backend::Sim {
        if let Some(kernel) = scenario.kernel.as_ref().filter(|_| !unused.contains(&"kernel")) {
            scenario.guest = file.guest_of(kernel, scenario.guest, &scenario.backend)?;
        }
        scenario.kernel = None; // The backend tells which it is.
    }
    for key in &unused {
        match *key {
            "machine" => scenario.machine = None,
            "mem" => scenario.mem = None,
            "swap" => scenario.swap = None,
            "[vm]" => scenario.guest = None,
            _ => {}
        }
    }
    Ok(Written { scenario, unused, places: file.places() })
}

fn parse_seed(text: &str) -> Result<Seed, ScenarioProblem> {
    text.parse().map(Seed).map_err(|_| ScenarioProblem::NotASeed(text.to_owned()))
}

fn parse_count(key: &'static str, text: &str) -> Result<u16, ScenarioProblem> {
    let why = "it is a whole number".to_owned();
    text.parse().map_err(|_| ScenarioProblem::Guest { key, value: text.to_owned(), why })
}

/// A file that is TOML.
struct File<'t> {
    text: &'t str,
    table: &'t DeTable<'t>,
}

impl<'t> File<'t> {
    fn fail(&self, at: usize, problem: impl Into<ScenarioProblem>) -> ScenarioError {
        ScenarioError { position: Some(Position::of(self.text, at)), problem: problem.into() }
    }

    fn check_keys(&self) -> Result<(), ScenarioError> {
        let unknown = entries(self.table).into_iter().find(|entry| !KEYS.contains(&entry.name.as_str()));
        match unknown {
            Some(entry) => Err(self.fail(entry.key_at, UnknownName::new("key", &entry.name, KEYS))),
            None => Ok(()),
        }
    }

    fn check_schema(&self) -> Result<(), ScenarioError> {
        let check = |text: &str| {
            if text == SCHEMA.to_string() { Ok(()) } else { Err(ScenarioProblem::Schema(text.to_owned())) }
        };
        self.optional("schema", check).map(|_| ())
    }

    fn entry(&self, key: &str) -> Option<Entry<'t>> {
        entries(self.table).into_iter().find(|entry| entry.name == key)
    }

    /// The value of a key at the top, if it is there.
    fn optional<T>(
        &self,
        key: &'static str,
        parse: impl FnOnce(&str) -> Result<T, ScenarioProblem>,
    ) -> Result<Option<T>, ScenarioError> {
        let Some(entry) = self.entry(key) else { return Ok(None) };
        let text = self.scalar(&entry)?;
        parse(&text).map(Some).map_err(|problem| self.fail(entry.value_at, problem))
    }

    /// The same of a value that may also be a list of texts, which are put together with commas between them.
    fn optional_list<T>(
        &self,
        key: &'static str,
        parse: impl FnOnce(&str) -> Result<T, ScenarioProblem>,
    ) -> Result<Option<T>, ScenarioError> {
        let Some(entry) = self.entry(key) else { return Ok(None) };
        let DeValue::Array(list) = entry.value else { return self.optional(key, parse) };
        let texts = list.iter().map(|item| match item.get_ref() {
            DeValue::String(text) => Ok(text.clone().into_owned()),
            value => {
                let item =
                    Entry { name: key.to_owned(), key_at: entry.key_at, value_at: item.span().start, value };
                Err(self.wrong_kind(&item, "a text"))
            }
        });
        let text = texts.collect::<Result<Vec<_>, _>>()?.join(",");
        parse(&text).map(Some).map_err(|problem| self.fail(entry.value_at, problem))
    }

    /// The value of a key at the top that must be there.
    fn required<T>(
        &self,
        key: &'static str,
        parse: impl FnOnce(&str) -> Result<T, ScenarioProblem>,
    ) -> Result<T, ScenarioError> {
        let missing = ScenarioError { position: None, problem: ScenarioProblem::MissingKey(key) };
        self.optional(key, parse)?.ok_or(missing)
    }

    /// Whether the file says no more and no less of kernel and machine than its backend lets it.
    fn check_real(&self, scenario: &Scenario) -> Result<(), ScenarioError> {
        let Scenario { kernel, machine, mem, guest, backend, .. } = scenario;
        if *backend == Backend::Sim {
            for key in ["kernel", "machine", "mem"] {
                self.required(key, |_| Ok(()))?;
            }
        }
        let at = |key: &str, problem| self.fail(self.entry(key).map_or(0, |entry| entry.value_at), problem);
        if let Some(kernel) = kernel {
            check_kernel("kernel", kernel, backend).map_err(|problem| at("kernel", problem))?;
        }
        if let Some(machine) = machine {
            check_machine("machine", machine, backend).map_err(|problem| at("machine", problem))?;
        }
        if let Some(mem) = mem {
            check_mem("mem", &mem.to_string(), backend).map_err(|problem| at("mem", problem))?;
        }
        if let Some(swap) = &scenario.swap {
            check_swap("swap", swap, backend).map_err(|problem| at("swap", problem))?;
        }
        if guest.is_some() && !backend.is_guest() {
            let backend = backend.to_string();
            let key_at = self.entry("vm").map_or(0, |entry| entry.key_at);
            return Err(self.fail(key_at, ScenarioProblem::NoGuest { what: "[vm]", backend }));
        }
        Ok(())
    }

    /// The guest that also has what the name of its kernel says.
    fn guest_of(
        &self,
        kernel: &KernelSpec,
        guest: Option<Guest>,
        backend: &Backend,
    ) -> Result<Option<Guest>, ScenarioError> {
        let Some(lru_gen) = lru_gen_of(kernel) else { return Ok(guest) };
        let guest = guest.unwrap_or_else(|| backend.default_guest());
        if let Some(entry) = self.table("vm")?.into_iter().find(|entry| entry.name == "lru_gen") {
            check_lru_gen(lru_gen, guest.lru_gen).map_err(|problem| self.fail(entry.value_at, problem))?;
            return Ok(Some(guest));
        }
        Ok(Some(Guest { lru_gen, ..guest }))
    }

    /// What the file says of kernel and machine and that means nothing on the scenario's backend.
    fn unused(&self, scenario: &Scenario) -> Vec<&'static str> {
        let Scenario { kernel, machine, mem, guest, backend, .. } = scenario;
        let refused = [
            ("kernel", kernel.as_ref().is_some_and(|kernel| check_kernel("", kernel, backend).is_err())),
            ("machine", machine.as_ref().is_some_and(|machine| check_machine("", machine, backend).is_err())),
            ("mem", mem.is_some_and(|mem| check_mem("", &mem.to_string(), backend).is_err())),
            ("swap", scenario.swap.as_ref().is_some_and(|swap| check_swap("", swap, backend).is_err())),
            ("[vm]", guest.is_some() && !backend.is_guest()),
        ];
        refused.into_iter().filter_map(|(key, refused)| refused.then_some(key)).collect()
    }

    /// Where values are that can still be wrong to those who know more.
    fn places(&self) -> BTreeMap<String, Position> {
        let mut places = BTreeMap::new();
        for entry in entries(self.table).into_iter().chain(self.flat_table("sysctls").unwrap_or_default()) {
            let name = entry.name.replace('/', ".");
            places.insert(name, Position::of(self.text, entry.value_at));
        }
        places
    }

    /// The entries of a table at the top; none when it is not there.
    fn table(&self, key: &'static str) -> Result<Vec<Entry<'t>>, ScenarioError> {
        let Some(entry) = self.entry(key) else { return Ok(Vec::new()) };
        match entry.value {
            DeValue::Table(table) => Ok(entries(table)),
            _ => Err(self.wrong_kind(&entry, "a table")),
        }
    }

    /// A text or whole number, as text.
    fn scalar(&self, entry: &Entry<'_>) -> Result<String, ScenarioError> {
        const EXPECTED: &str = "a text or a whole number";
        match entry.value {
            DeValue::String(text) => Ok(text.clone().into_owned()),
            DeValue::Integer(integer) => i128::from_str_radix(integer.as_str(), integer.radix())
                .map(|number| number.to_string())
                .map_err(|_| self.wrong_kind(entry, "a number of at most 127 bits")),
            _ => Err(self.wrong_kind(entry, EXPECTED)),
        }
    }

    fn wrong_kind(&self, entry: &Entry<'_>, expected: &'static str) -> ScenarioError {
        let found = kind_of(entry.value);
        self.fail(entry.value_at, ScenarioProblem::WrongKind { key: entry.name.clone(), found, expected })
    }

    fn workload(&self) -> Result<Workload, ScenarioError> {
        let spec = match self.entry("program") {
            None => self.required("workload", |name| Ok(WorkloadSpec::find(name)?))?,
            Some(entry) => self.own_workload(&entry)?,
        };
        let mut params = spec.defaults();
        let written = self.table("params")?;
        for entry in &written {
            let value = self.scalar(entry)?;
            params.set(&entry.name, &value).map_err(|error| {
                let at = if let ParamError::UnknownParam(_) = error { entry.key_at } else { entry.value_at };
                self.fail(at, InputError::from(error))
            })?;
        }
        spec.build(params).map_err(|error| {
            let blamed = match &error {
                ParamError::Conflict { name, .. } => written.iter().find(|entry| entry.name == *name),
                _ => None,
            };
            let position = blamed.map(|entry| Position::of(self.text, entry.value_at));
            ScenarioError { position, problem: InputError::from(error).into() }
        })
    }

    /// The workload whose file the scenario has in it.
    fn own_workload(&self, entry: &Entry<'_>) -> Result<&'static WorkloadSpec, ScenarioError> {
        let text = self.scalar(entry)?;
        let spec = WorkloadSpec::of_file(&text).map_err(|mistake| {
            let message = format!("in `program`: {mistake}");
            self.fail(entry.value_at, ScenarioProblem::Model { message, hint: mistake.hint })
        })?;
        self.required("workload", |name| match name == spec.name {
            true => Ok(spec),
            false => Err(UnknownName::new("workload", name, [spec.name]).into()),
        })
    }

    /// The table `[vm]`: what it leaves out is as in the measured guests.
    fn guest(&self, mut guest: Guest) -> Result<Option<Guest>, ScenarioError> {
        let Some(table) = self.entry("vm") else { return Ok(None) };
        for entry in self.table("vm")? {
            let text = self.scalar(&entry)?;
            let fail = |problem: ScenarioProblem| self.fail(entry.value_at, problem);
            match entry.name.as_str() {
                "cpus" => guest.cpus = parse_count("cpus", &text).map_err(fail)?,
                "numa_nodes" => guest.numa_nodes = parse_count("numa_nodes", &text).map_err(fail)?,
                "lru_gen" => guest.lru_gen = text.parse().map_err(fail)?,
                "xfs_log" => guest.xfs_log = Some(parse_count("xfs_log", &text).map_err(fail)?),
                name => return Err(self.fail(entry.key_at, UnknownName::new("key", name, GUEST_KEYS))),
            }
        }
        guest.check().map_err(|problem| self.fail(table.value_at, problem))?;
        Ok(Some(guest))
    }

    /// The entries of a table at the top and of tables in it, by their dotted names:
    /// `vm.swappiness = 60` without quotes is a table `vm` to TOML.
    fn flat_table(&self, key: &'static str) -> Result<Vec<Entry<'t>>, ScenarioError> {
        let mut flat = Vec::new();
        let mut open = self.table(key)?;
        open.reverse(); // Taken from the end.
        while let Some(entry) = open.pop() {
            match entry.value {
                DeValue::Table(below) => {
                    let inner = entries(below).into_iter().rev();
                    open.extend(
                        inner.map(|below| Entry { name: format!("{}.{}", entry.name, below.name), ..below }),
                    );
                }
                _ => flat.push(entry),
            }
        }
        Ok(flat)
    }

    fn sysctls(&self, vocabulary: &Vocabulary<'_>) -> Result<BTreeMap<String, String>, ScenarioError> {
        let mut sysctls: BTreeMap<String, String> = BTreeMap::new();
        for entry in self.flat_table("sysctls")? {
            let name = vocabulary.sysctl(&entry.name).map_err(|error| self.fail(entry.key_at, error))?;
            let text = self.scalar(&entry)?;
            let value =
                parse_sysctl_value(&name, &text).map_err(|problem| self.fail(entry.value_at, problem))?;
            if let Some(first) = sysctls.insert(name.clone(), value.clone()) {
                return Err(
                    self.fail(entry.key_at, ScenarioProblem::SysctlTwice { name, first, second: value })
                );
            }
        }
        Ok(sysctls)
    }
}
