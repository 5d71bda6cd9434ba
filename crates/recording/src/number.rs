//! Floats in JSON that read back equal, including those that JSON has no number for.
//!
//! A finite float is its shortest decimal form; the others are the strings `"NaN"`, `"inf"` and
//! `"-inf"`. A workload that divided by zero still leaves a recording.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

struct Number(f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_finite() { serializer.serialize_f64(self.0) } else { serializer.collect_str(&self.0) }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

struct NumberVisitor;

impl Visitor<'_> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, \"NaN\", \"inf\" or \"-inf\"")
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Number, E> {
        Ok(Number(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Number, E> {
        Ok(Number(number as f64))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Number, E> {
        Ok(Number(number as f64))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Number, E> {
        match text {
            "NaN" => Ok(Number(f64::NAN)),
            "inf" => Ok(Number(f64::INFINITY)),
            "-inf" => Ok(Number(f64::NEG_INFINITY)),
            other => Err(E::invalid_value(serde::de::Unexpected::Str(other), &self)),
        }
    }
}

/// For `BTreeMap<String, f64>`.
pub(crate) mod map {
    use super::Number;
    use serde::{Deserialize, Deserializer, Serializer};
    use std::collections::BTreeMap;

    pub(crate) fn serialize<S: Serializer>(
        map: &BTreeMap<String, f64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(map.iter().map(|(name, &number)| (name, Number(number))))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, f64>, D::Error> {
        let map = BTreeMap::<String, Number>::deserialize(from)?;
        Ok(map.into_iter().map(|(name, number)| (name, number.0)).collect())
    }
}

/// Whether a map of lists has no name that would be lost without a place in JSON.
pub(crate) fn all_have_numbers(map: &std::collections::BTreeMap<String, Vec<f64>>) -> bool {
    map.values().all(|list| !list.is_empty())
}

/// For `BTreeMap<String, Vec<f64>>` whose numbers have a file of their own: names of empty lists are written,
/// and whatever is there, is read.
pub(crate) mod only_names {
    use super::Number;
    use serde::{Deserialize, Deserializer, Serializer};
    use std::collections::BTreeMap;

    pub(crate) fn serialize<S: Serializer>(
        map: &BTreeMap<String, Vec<f64>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let empty = map.iter().filter(|(_, list)| list.is_empty());
        serializer.collect_map(empty.map(|(name, _)| (name, [(); 0])))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<String, Vec<f64>>, D::Error> {
        let map = BTreeMap::<String, Vec<Number>>::deserialize(from)?;
        let floats = |list: Vec<Number>| list.into_iter().map(|number| number.0).collect();
        Ok(map.into_iter().map(|(name, list)| (name, floats(list))).collect())
    }
}
