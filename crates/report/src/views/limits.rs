//! Limits and what came of them, as every format shows them.

use serde_json::{Value, json};

use crate::document::number::plain;
use crate::document::{Section, Table, row};
use crate::judge::Judged;
use crate::judge::outcome::Outcome;
use crate::render::markup::escaped;

/// The limits, and why what came of them is not what numbers say; empty without any.
pub(crate) fn limits(judged: &[Judged]) -> Section {
    Section::new("limits").with(table(judged)).lines_of(reasons(judged))
}

/// `[{"limit", "label", "baseline", "value", "outcome", "fails", "why"}]`.
pub(crate) fn limits_value(judged: &[Judged]) -> Value {
    let object = |judged: &Judged| {
        json!({
            "limit": judged.limit,
            "label": judged.label,
            "baseline": judged.values[0],
            "value": judged.values[1],
            "outcome": judged.outcome.word(),
            "fails": judged.outcome.fails(),
            "why": judged.why,
        })
    };
    judged.iter().map(object).collect()
}

/// A suite of tests in JUnit's XML, as CI systems read it: a limit on a column is a test, and a doubt is printed by it.
pub fn junit(workload: &str, judged: &[Judged]) -> String {
    let failures = judged.iter().filter(|judged| judged.outcome.fails()).count();
    let name = escaped(workload);
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuite name=\"pagetide {name}\" tests=\"{}\" failures=\"{failures}\">\n",
        judged.len()
    );
    for judged in judged {
        let told = escaped(&judged.told());
        let inside = match judged.outcome {
            outcome if outcome.fails() => {
                format!("<failure message=\"limit is {}\">{told}</failure>", outcome.word())
            }
            outcome => format!("<system-out>{}: {told}</system-out>", outcome.word()),
        };
        let (limit, label) = (escaped(&judged.limit), escaped(&judged.label));
        xml += &format!("  <testcase classname=\"{name}.{label}\" name=\"{limit}\">{inside}</testcase>\n");
    }
    xml + "</testsuite>\n"
}

/// What fails, and what is not clear, as SARIF 2.1.0 (OASIS), with what GitHub's code scanning asks for: each limit
/// is a rule, the workload stands for the file, for a limit is on no line of a source. Limits that are kept are no
/// results.
pub fn sarif(workload: &str, judged: &[Judged]) -> String {
    let mut rules: Vec<&str> = judged.iter().map(|judged| judged.limit.as_str()).collect();
    rules.sort_unstable();
    rules.dedup();
    let rule = |limit: &&str| {
        let text = json!({ "text": format!("`--fail-if '{limit}'`") });
        let help = json!({ "text": "`pagetide compare` ends with code 5 where a limit is not kept." });
        json!({ "id": limit, "shortDescription": text, "fullDescription": text, "help": help })
    };
    let result = |judged: &Judged| {
        let Judged { limit, label, outcome, .. } = judged;
        let place = json!({ "artifactLocation": { "uri": uri(workload) }, "region": { "startLine": 1 } });
        json!({
            "ruleId": limit,
            "ruleIndex": rules.binary_search(&limit.as_str()).ok(),
            "level": if outcome.fails() { "error" } else { "warning" },
            "message": { "text": format!("{}: {}", outcome.word(), judged.told()) },
            "locations": [{ "physicalLocation": place, "logicalLocations": [{ "name": label }] }],
            "partialFingerprints": { "primaryLocationLineHash": format!("{workload}/{label}/{limit}") },
        })
    };
    let told = judged.iter().filter(|judged| judged.outcome != Outcome::Kept);
    let driver = json!({
        "name": "pagetide",
        "semanticVersion": env!("CARGO_PKG_VERSION"),
        "rules": rules.iter().map(rule).collect::<Value>(),
    });
    let log = json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{ "tool": { "driver": driver }, "results": told.map(result).collect::<Value>() }],
    });
    format!("{log:#}\n")
}

/// A name as a relative reference of RFC 3986.
fn uri(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    name.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// For rows of CSV: the column, the limit, and its outcome.
pub(crate) fn limits_csv(judged: &[Judged]) -> impl Iterator<Item = [&str; 3]> {
    judged.iter().map(|Judged { label, limit, outcome, .. }| [label.as_str(), limit, outcome.word()])
}

fn table(judged: &[Judged]) -> Table {
    let mut table = Table::new()
        .texts(["limit", "run"])
        .numbers(["baseline", "value"])
        .texts(["change", "limit is"])
        .named_by(2)
        .breaking_names();
    let value = |value: &Option<f64>| value.map_or("none".to_owned(), plain);
    for Judged { limit, label, values, change, outcome, .. } in judged {
        let [base, new] = values;
        table.push(row![limit, label, value(base), value(new), change, outcome.word()]);
    }
    table
}

/// Why, each reason once with the limits that it is for.
fn reasons(judged: &[Judged]) -> Vec<String> {
    let told = judged.iter().filter(|judged| !judged.why.is_empty());
    told.map(|Judged { limit, label, why, .. }| format!("{limit}, {label}: {why}")).collect()
}
