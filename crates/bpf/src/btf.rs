//! The types of an object, as its section `.BTF` has them: where fields lie, what maps are made of.
//!
//! Left out: everything that is not asked for here, such as line numbers; relocations (CO-RE), as the emulated kernel
//! takes the object's own types for its own. The format is that of the kernel's `Documentation/bpf/btf.rst`. Next:
//! [`crate::layout`], the structs of a kernel; [`crate::link`], the maps.

use std::collections::BTreeSet;

use crate::fault::ObjectError;

/// Follows references of types so often at most: a circle is damage.
const DEPTH_MAX: u32 = 32;

const INT: u32 = 1;
const PTR: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const TYPEDEF: u32 = 8;
const VOLATILE: u32 = 9;
const CONST: u32 = 10;
const RESTRICT: u32 = 11;
const FUNC_PROTO: u32 = 13;
const VAR: u32 = 14;
const DATASEC: u32 = 15;
const DECL_TAG: u32 = 17;
const TYPE_TAG: u32 = 18;
const ENUM64: u32 = 19;

/// A type: its number, in the order of the section, from 1; 0 is `void`.
pub(crate) type TypeId = u32;

#[derive(Debug, Clone)]
struct Type {
    name: u32,
    kind: u32,
    /// Offsets of members have the size of a bitfield in them.
    has_bitfields: bool,
    /// A size, or another type.
    size: u32,
    /// What follows, in words.
    words: Vec<u32>,
}

/// All types.
#[derive(Debug, Clone, Default)]
pub(crate) struct Btf {
    types: Vec<Type>,
    strings: Vec<u8>,
}

/// A member of a struct or union.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Member<'a> {
    pub(crate) name: &'a str,
    pub(crate) of: TypeId,
    /// In bytes.
    pub(crate) offset: u32,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

impl Btf {
    /// Reads the section.
    ///
    /// # Errors
    /// It is damaged, or has a kind of type that is not known.
    pub(crate) fn read(section: &[u8]) -> Result<Self, ObjectError> {
        Self::parts(section).ok_or_else(|| ObjectError::broken("`.BTF` cannot be read"))
    }

    fn parts(section: &[u8]) -> Option<Self> {
        if section.get(..2)? != [0x9f, 0xeb] {
            return None;
        }
        let header = word(section, 4)? as usize;
        let part = |at: usize| {
            let from = header.checked_add(word(section, at)? as usize)?;
            section.get(from..from.checked_add(word(section, at + 4)? as usize)?)
        };
        let (raw, strings) = (part(8)?, part(16)?.to_vec());
        let (mut types, mut at) = (Vec::new(), 0);
        while at < raw.len() {
            let (name, info, size) = (word(raw, at)?, word(raw, at + 4)?, word(raw, at + 8)?);
            let (kind, entries) = ((info >> 24) & 31, info as usize & 0xffff);
            let length = match kind {
                INT | VAR | DECL_TAG => 1,
                ARRAY => 3,
                STRUCT | UNION | DATASEC | ENUM64 => 3 * entries,
                ENUM | FUNC_PROTO => 2 * entries,
                PTR..=TYPE_TAG => 0,
                _ => return None,
            };
            at += 12;
            let words = (0..length).map(|index| word(raw, at + 4 * index)).collect::<Option<_>>()?;
            types.push(Type { name, kind, has_bitfields: info >> 31 == 1, size, words });
            at += 4 * length;
        }
        Some(Self { types, strings })
    }

    fn text(&self, at: u32) -> &str {
        let bytes = self.strings.get(at as usize..).unwrap_or_default();
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(0);
        str::from_utf8(&bytes[..end]).unwrap_or_default()
    }

    fn get(&self, id: TypeId) -> Option<&Type> {
        self.types.get(id.checked_sub(1)? as usize)
    }

    /// The type's name.
    pub(crate) fn name(&self, id: TypeId) -> &str {
        self.get(id).map_or("", |found| self.text(found.name))
    }

    /// What a type is behind its other names and qualifiers.
    pub(crate) fn bare(&self, mut id: TypeId) -> TypeId {
        for _ in 0..DEPTH_MAX {
            match self.get(id) {
                Some(found) if matches!(found.kind, TYPEDEF | VOLATILE | CONST | RESTRICT | TYPE_TAG) => {
                    id = found.size
                }
                _ => break,
            }
        }
        id
    }

    /// What a pointer points to.
    pub(crate) fn pointee(&self, id: TypeId) -> Option<TypeId> {
        self.get(self.bare(id)).filter(|found| found.kind == PTR).map(|found| found.size)
    }

    /// How many elements an array has, and of what.
    pub(crate) fn array(&self, id: TypeId) -> Option<(TypeId, u32)> {
        let found = self.get(self.bare(id)).filter(|found| found.kind == ARRAY)?;
        Some((found.words[0], found.words[2]))
    }

    /// Bytes that a value of a type takes.
    pub(crate) fn size(&self, id: TypeId) -> Option<u32> {
        let mut elements = 1_u32;
        let mut id = self.bare(id);
        for _ in 0..DEPTH_MAX {
            let found = self.get(id)?;
            match found.kind {
                ARRAY => {
                    elements = elements.checked_mul(found.words[2])?;
                    id = self.bare(found.words[0]);
                }
                PTR => return elements.checked_mul(8),
                INT | STRUCT | UNION | ENUM | ENUM64 => return elements.checked_mul(found.size),
                _ => return None,
            }
        }
        None
    }

    /// The struct of this name. Behind `___` there may be more, as in `folio___old`.
    pub(crate) fn structure(&self, name: &str) -> Option<TypeId> {
        let numbered = (1..).zip(&self.types);
        let mut structs = numbered.filter(|(_, found)| found.kind == STRUCT);
        let is_it = |(_, found): &(u32, &Type)| self.text(found.name).split("___").next() == Some(name);
        structs.find(is_it).map(|(id, _)| id)
    }

    /// The members of a struct or union.
    pub(crate) fn members(&self, id: TypeId) -> impl Iterator<Item = Member<'_>> + '_ {
        let found = self.get(self.bare(id)).filter(|found| matches!(found.kind, STRUCT | UNION));
        found.into_iter().flat_map(move |found| {
            found.words.chunks_exact(3).map(move |member| {
                let bits = if found.has_bitfields { member[2] & 0xff_ffff } else { member[2] };
                Member { name: self.text(member[0]), of: member[1], offset: bits / 8 }
            })
        })
    }

    /// Where a member lies in a struct, also inside unions and structs without a name.
    pub(crate) fn offset(&self, id: TypeId, name: &str) -> Option<u32> {
        self.offset_within(id, name, &mut BTreeSet::new())
    }

    /// Types that were looked into are not looked into again: a circle of them is damage.
    fn offset_within(&self, id: TypeId, name: &str, seen: &mut BTreeSet<TypeId>) -> Option<u32> {
        if !seen.insert(id) {
            return None;
        }
        self.members(id).find_map(|member| match member.name {
            "" => member.offset.checked_add(self.offset_within(member.of, name, seen)?),
            found => (found == name).then_some(member.offset),
        })
    }

    /// The value of an enumerator, of whatever enum.
    pub(crate) fn enumerator(&self, name: &str) -> Option<u32> {
        let enums = self.types.iter().filter(|found| found.kind == ENUM);
        let mut values = enums.flat_map(|found| found.words.chunks_exact(2));
        values.find(|value| self.text(value[0]) == name).map(|value| value[1])
    }

    /// The variables of a section with their types.
    pub(crate) fn variables(&self, section: &str) -> Vec<(&str, TypeId)> {
        let is_it = |found: &&Type| found.kind == DATASEC && self.text(found.name) == section;
        let sections = self.types.iter().filter(is_it);
        let variables = sections.flat_map(|found| found.words.chunks_exact(3)).filter_map(|entry| {
            let variable = self.get(entry[0]).filter(|found| found.kind == VAR)?;
            Some((self.text(variable.name), variable.size))
        });
        variables.collect()
    }
}
