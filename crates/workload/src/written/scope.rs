//! What names in a workload file stand for, and amounts, words and settings that are read by them.
//!
//! Next: [`super::read`], which fills it.

use std::cell::Cell;
use std::collections::BTreeMap;

use language::params::{ParamError, ParamKind, ParamSpec};
use toml::de::DeValue;
use units::parse_size;

use crate::language::table::{Entry, Mistake, Source, Table};
use crate::written::definition::{Condition, Flag, Setting, When, Word};
use crate::written::expression::{Expression, MEMORY, TASK, Unit};

/// Names may be as long as this; a path of the kernel takes 255.
pub(super) const NAME_LEN_MAX: usize = 60;

/// What a name in an amount or a word can be.
pub(super) struct Scope<'t> {
    pub(super) source: Source<'t>,
    pub(super) params: Vec<ParamSpec>,
    pub(super) phases: Vec<String>,
    pub(super) files: Vec<(String, bool)>,
    pub(super) groups: Vec<String>,
    pub(super) tasks: Vec<String>,
    /// Whether it is of one task that something is read, which has `$task`.
    pub(super) of_task: Cell<bool>,
}

/// A name of something in the file, which goes into paths and into names of metrics.
pub(super) fn check_word(source: Source<'_>, name: &str, at: usize) -> Result<(), Mistake> {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.is_empty() || name.len() > NAME_LEN_MAX || name.starts_with('.') || !name.chars().all(is_fine) {
        let message = format!("`{}` is no name", name.escape_debug());
        return Err(source.fail_hint(at, message, "a name has letters, digits, `_`, `-` and `.`"));
    }
    Ok(())
}

impl Scope<'_> {
    /// An amount: a number, or a text with an expression.
    pub(super) fn amount(
        &self,
        table: &Table<'_>,
        entry: &Entry<'_>,
        unit: Unit,
    ) -> Result<Expression, Mistake> {
        let text = table.scalar_of(entry)?;
        self.expression(&text, entry, unit)
    }

    fn expression(&self, text: &str, entry: &Entry<'_>, unit: Unit) -> Result<Expression, Mistake> {
        let fail = |message: String| self.source.fail(entry.value_at, format!("`{}`: {message}", entry.name));
        let read = Expression::parse(text, unit).map_err(fail)?;
        for name in read.names() {
            let is_number =
                |param: &&ParamSpec| !matches!(param.kind, ParamKind::Choice(_) | ParamKind::File);
            let known = self
                .params
                .iter()
                .filter(is_number)
                .map(|param| param.name)
                .chain([MEMORY])
                .chain(self.of_task.get().then_some(TASK));
            if !known.clone().any(|known| known == name) {
                return Err(self.source.unknown(entry.value_at, "parameter", name, known));
            }
        }
        Ok(read)
    }

    /// The amount of a key that need not be there.
    pub(super) fn optional(
        &self,
        table: &Table<'_>,
        key: &str,
        unit: Unit,
    ) -> Result<Option<Expression>, Mistake> {
        table.get(key).map(|entry| self.amount(table, entry, unit)).transpose()
    }

    /// What is written to a file of a cgroup, or to a sysctl: a size or a number where it reads as one.
    pub(super) fn setting(&self, table: &Table<'_>, entry: &Entry<'_>) -> Result<Setting, Mistake> {
        let text = table.scalar_of(entry)?;
        if text.contains('$') || parse_size(&text).is_ok() {
            return self.expression(&text, entry, Unit::Bytes).map(Setting::Amount);
        }
        if text.is_empty() || text.chars().any(char::is_control) {
            let message = format!("`{}` cannot be `{}`", entry.name, text.escape_debug());
            return Err(self.source.fail(entry.value_at, message));
        }
        Ok(Setting::Text(text))
    }

    /// A word that passes `check`, or a parameter all of whose words do.
    pub(super) fn word(
        &self,
        table: &Table<'_>,
        entry: &Entry<'_>,
        check: impl Fn(&str, usize) -> Result<(), Mistake>,
    ) -> Result<Word, Mistake> {
        let text = table.text_of(entry)?;
        let Some(name) = text.strip_prefix('$') else {
            check(&text, entry.value_at)?;
            return Ok(Word::Fixed(text));
        };
        let choices: BTreeMap<&str, &[&str]> = (self.params.iter())
            .filter_map(|param| match param.kind {
                ParamKind::Choice(words) => Some((param.name, words)),
                _ => None,
            })
            .collect();
        let Some(words) = choices.get(name) else {
            return Err(self.source.unknown(entry.value_at, "parameter", name, choices.keys().copied()));
        };
        for word in *words {
            check(word, entry.value_at)?;
        }
        Ok(Word::Param(name.to_owned()))
    }

    /// What a key says of parameters: `"order = random"`, perhaps with others behind `or`, or a list of such texts,
    /// all of which must hold.
    pub(super) fn when(&self, table: &Table<'_>) -> Result<When, Mistake> {
        table.get("when").map_or(Ok(When::default()), |entry| self.conditions(table, entry))
    }

    fn conditions(&self, table: &Table<'_>, entry: &Entry<'_>) -> Result<When, Mistake> {
        let texts = table.one_or_more(entry)?;
        let any = |(text, at): &(String, usize)| {
            text.split(" or ").map(|one| self.condition(one, *at)).collect::<Result<_, _>>()
        };
        texts.iter().map(any).collect::<Result<_, _>>().map(When)
    }

    fn condition(&self, text: &str, at: usize) -> Result<Condition, Mistake> {
        let (is, split) = match text.split_once("!=") {
            Some(split) => (false, Some(split)),
            None => (true, text.split_once('=')),
        };
        let Some((name, value)) = split.map(|(name, value)| (name.trim(), value.trim())) else {
            let message = format!("`{text}` says nothing of a parameter");
            return Err(self.source.fail_hint(at, message, "write `order = random`, or `limit != none`"));
        };
        let Some(param) = self.params.iter().find(|param| param.name == name) else {
            let known = self.params.iter().map(|param| param.name);
            return Err(self.source.unknown(at, "parameter", name, known));
        };
        let value = match param.default {
            None if value == "none" => value.to_owned(),
            _ => {
                let fail = |error: ParamError| {
                    let mistake = self.source.fail(at, error.to_string());
                    Mistake { hint: error.hint(), ..mistake }
                };
                param.parse(value).map_err(fail)?.to_string()
            }
        };
        Ok(Condition { name: name.to_owned(), is, value })
    }

    /// True, false, or what a text says of parameters; false where it is left out.
    pub(super) fn flag(&self, table: &Table<'_>, key: &str) -> Result<Flag, Mistake> {
        match table.get(key) {
            Some(entry @ Entry { value: DeValue::String(_) | DeValue::Array(_), .. }) => {
                self.conditions(table, entry).map(|when| Flag(Some(when)))
            }
            _ => Ok(Flag(table.flag(key)?.then(When::default))),
        }
    }

    /// Names of groups: one, or a list.
    pub(super) fn groups_of(&self, table: &Table<'_>, entry: &Entry<'_>) -> Result<Vec<String>, Mistake> {
        let names = table.one_or_more(entry)?;
        let check = |(name, at): (String, usize)| self.group(&name, at).map(|()| name);
        names.into_iter().map(check).collect()
    }

    pub(super) fn phase(&self, name: &str, at: usize) -> Result<(), Mistake> {
        self.known(at, "phase", name, self.phases.iter().map(String::as_str))
    }

    pub(super) fn group(&self, path: &str, at: usize) -> Result<(), Mistake> {
        self.known(at, "cgroup", path, self.groups.iter().map(String::as_str))
    }

    pub(super) fn file(&self, name: &str, at: usize) -> Result<(), Mistake> {
        self.known(at, "file", name, self.files.iter().map(|(name, _)| &**name))
    }

    /// The number of a kind of tasks.
    pub(super) fn task(&self, name: &str, at: usize) -> Result<usize, Mistake> {
        self.known(at, "task", name, self.tasks.iter().map(String::as_str))?;
        Ok(self.tasks.iter().position(|own| own == name).unwrap_or(0))
    }

    fn known<'a>(
        &self,
        at: usize,
        what: &'static str,
        name: &str,
        known: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<(), Mistake> {
        if known.clone().any(|known| known == name) {
            Ok(())
        } else {
            Err(self.source.unknown(at, what, name, known))
        }
    }
}
