//! Tables of TOML with the place of each key and value, so that a mistake is told where it stands.
//!
//! Left out: what keys mean, which each kind of file knows. Neighbours: [`crate::scenario`] and [`crate::written`], the
//! two kinds of file.

use std::cell::Cell;
use std::fmt;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use language::names::UnknownName;

/// A place in a text, for people: both count from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

impl Position {
    /// The place of a byte of `text`.
    pub fn of(text: &str, byte: usize) -> Self {
        let before: String = String::from_utf8_lossy(&text.as_bytes()[..byte.min(text.len())]).into();
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let from_one = |count: usize| u32::try_from(count).unwrap_or(u32::MAX).saturating_add(1);
        let line = from_one(before.matches('\n').count());
        Self { line, column: from_one(before[line_start..].chars().count()) }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// One entry of a table: its full name, where the key and the value begin, and the value.
pub struct Entry<'t> {
    /// Its key.
    pub name: String,
    /// The byte at which the key begins.
    pub key_at: usize,
    /// The byte at which the value begins.
    pub value_at: usize,
    /// The value.
    pub value: &'t DeValue<'t>,
}

/// A table's entries in the order of the file, so that the first mistake is reported.
pub fn entries<'t>(table: &'t DeTable<'t>) -> Vec<Entry<'t>> {
    let entry = |(key, value): (&'t Spanned<_>, &'t Spanned<DeValue<'t>>)| {
        let name: &std::borrow::Cow<'t, str> = Spanned::get_ref(key);
        Entry {
            name: name.clone().into_owned(),
            key_at: key.span().start,
            value_at: value.span().start,
            value: value.get_ref(),
        }
    };
    let mut entries: Vec<Entry<'t>> = table.iter().map(entry).collect();
    entries.sort_by_key(|entry| entry.key_at);
    entries
}

/// What a value is, as errors call it.
pub fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a point",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// A mistake in a file, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Where; `None` for something that is missing.
    pub position: Option<Position>,
    /// What.
    pub message: String,
    /// What to do about it; `None` when the message says it all.
    pub hint: Option<String>,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some(position) => write!(f, "{position}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Mistake {}

/// A file as it stands.
#[derive(Clone, Copy)]
pub struct Source<'t>(pub &'t str);

impl<'t> Source<'t> {
    /// The file's table.
    ///
    /// # Errors
    /// It is not TOML.
    pub fn parse(&self) -> Result<Spanned<DeTable<'t>>, Mistake> {
        DeTable::parse(self.0).map_err(|error| Mistake {
            position: error.span().map(|span| Position::of(self.0, span.start)),
            message: error.message().trim_end().replace('\n', "; "),
            hint: None,
        })
    }

    /// A mistake at a byte of the file.
    pub fn fail(&self, at: usize, message: impl Into<String>) -> Mistake {
        Mistake { position: Some(Position::of(self.0, at)), message: message.into(), hint: None }
    }

    /// The same with a remedy.
    pub fn fail_hint(&self, at: usize, message: impl Into<String>, hint: impl Into<String>) -> Mistake {
        Mistake { hint: Some(hint.into()), ..self.fail(at, message) }
    }

    /// A name that nothing carries.
    pub fn unknown<'a>(
        &self,
        at: usize,
        what: &'static str,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Mistake {
        let unknown = UnknownName::new(what, name, known);
        self.fail_hint(at, unknown.to_string(), unknown.hint())
    }
}

/// A table that is read key by key, and that has no other keys.
pub struct Table<'t> {
    /// The file that it is in.
    pub source: Source<'t>,
    /// How errors call it: `task `reader``.
    pub called: String,
    /// Where it begins.
    pub at: usize,
    entries: Vec<(Cell<bool>, Entry<'t>)>,
}

impl<'t> Table<'t> {
    /// A table of `source` that begins at the byte `at`.
    pub fn new(source: Source<'t>, called: String, at: usize, table: &'t DeTable<'t>) -> Self {
        let entries = entries(table).into_iter().map(|entry| (Cell::new(false), entry)).collect();
        Self { source, called, at, entries }
    }

    /// The table that `entry` is.
    pub fn of(source: Source<'t>, called: String, entry: &Entry<'t>) -> Result<Self, Mistake> {
        match entry.value {
            DeValue::Table(table) => Ok(Self::new(source, called, entry.value_at, table)),
            other => Err(source.fail(entry.value_at, format!("{called} is {}, not a table", kind_of(other)))),
        }
    }

    /// The entry of `key`, if it is there.
    pub fn get(&self, key: &str) -> Option<&Entry<'t>> {
        let (taken, entry) = self.entries.iter().find(|(_, entry)| entry.name == key)?;
        taken.set(true);
        Some(entry)
    }

    /// All entries, in the order of the file.
    pub fn all(&self) -> impl Iterator<Item = &Entry<'t>> {
        self.entries.iter().map(|(taken, entry)| {
            taken.set(true);
            entry
        })
    }

    /// The names of its entries and where they are, in the order of the file.
    pub fn names(&self) -> impl Iterator<Item = (String, usize)> {
        self.entries.iter().map(|(_, entry)| (entry.name.clone(), entry.key_at))
    }

    /// The entry of a key that must be there.
    pub fn needed(&self, key: &str, example: &str) -> Result<&Entry<'t>, Mistake> {
        self.get(key).ok_or_else(|| {
            let message = format!("{} has no `{key}`", self.called);
            self.source.fail_hint(self.at, message, format!("add `{key} = {example}`"))
        })
    }

    /// A value of the wrong kind.
    pub fn wrong(&self, entry: &Entry<'_>, expected: &str) -> Mistake {
        let message = format!("`{}` is {}, not {expected}", entry.name, kind_of(entry.value));
        self.source.fail(entry.value_at, message)
    }

    /// A text.
    pub fn text(&self, key: &str) -> Result<Option<String>, Mistake> {
        self.get(key).map(|entry| self.text_of(entry)).transpose()
    }

    /// The text that `entry` is.
    pub fn text_of(&self, entry: &Entry<'t>) -> Result<String, Mistake> {
        match entry.value {
            DeValue::String(text) => Ok(text.clone().into_owned()),
            _ => Err(self.wrong(entry, "a text")),
        }
    }

    /// A text or a whole number, as text.
    pub fn scalar_of(&self, entry: &Entry<'t>) -> Result<String, Mistake> {
        match entry.value {
            DeValue::String(text) => Ok(text.clone().into_owned()),
            DeValue::Integer(number) => i128::from_str_radix(number.as_str(), number.radix())
                .map(|number| number.to_string())
                .map_err(|_| self.wrong(entry, "a number of at most 127 bits")),
            DeValue::Float(number) => Ok(number.as_str().to_owned()),
            _ => Err(self.wrong(entry, "a text or a number")),
        }
    }

    /// True or false; false where it is left out.
    pub fn flag(&self, key: &str) -> Result<bool, Mistake> {
        match self.get(key) {
            None => Ok(false),
            Some(Entry { value: DeValue::Boolean(flag), .. }) => Ok(*flag),
            Some(entry) => Err(self.wrong(entry, "true or false")),
        }
    }

    /// The items of a list, each as an entry with the list's name.
    pub fn list(&self, key: &str) -> Result<Vec<Entry<'t>>, Mistake> {
        let Some(entry) = self.get(key) else { return Ok(Vec::new()) };
        let DeValue::Array(list) = entry.value else { return Err(self.wrong(entry, "a list")) };
        let item = |item: &'t Spanned<DeValue<'t>>| Entry {
            name: entry.name.clone(),
            key_at: entry.key_at,
            value_at: item.span().start,
            value: item.get_ref(),
        };
        Ok(list.iter().map(item).collect())
    }

    /// Texts of a list, each with its place.
    pub fn texts(&self, key: &str) -> Result<Vec<(String, usize)>, Mistake> {
        let items = self.list(key)?;
        items.iter().map(|item| Ok((self.text_of(item)?, item.value_at))).collect()
    }

    /// A text, or the texts of a list, each with its place.
    pub fn one_or_more(&self, entry: &Entry<'t>) -> Result<Vec<(String, usize)>, Mistake> {
        match entry.value {
            DeValue::Array(_) => self.texts(&entry.name),
            _ => Ok(vec![(self.text_of(entry)?, entry.value_at)]),
        }
    }

    /// Fails at the first key that nobody asked for.
    pub fn finish(&self, known: &[&str]) -> Result<(), Mistake> {
        let left = self.entries.iter().find(|(taken, entry)| !taken.get() || !known.contains(&&*entry.name));
        match left {
            None => Ok(()),
            Some((_, entry)) if known.contains(&&*entry.name) => {
                let message = format!("`{}` means nothing here, in {}", entry.name, self.called);
                Err(self.source.fail_hint(entry.key_at, message, "leave it out"))
            }
            Some((_, entry)) => {
                let mistake = self.source.unknown(entry.key_at, "key", &entry.name, known.iter().copied());
                Err(Mistake { message: format!("{} of {}", mistake.message, self.called), ..mistake })
            }
        }
    }
}
