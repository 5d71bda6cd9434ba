//! What worlds of the model alone came to that were checked all along: how they ended, and what is wrong with which.
//!
//! Left out: how it was found (`pagetide-lab`, `worlds/check.rs`).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::document::{Block, Document, Records, Section, Table, row};

/// A world with which something is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenWorld {
    /// What it was drawn from.
    pub seed: u64,
    /// The workload.
    pub workload: String,
    /// The kernel.
    pub kernel: String,
    /// `broken`, `endless` or `failed`.
    pub what: &'static str,
    /// What it says.
    pub text: String,
    /// The command that shows it again.
    pub command: String,
    /// That of a smaller world with which the same is wrong.
    pub smaller: Option<String>,
    /// How many smaller worlds were tried.
    pub tried: usize,
}

/// Worlds that were checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckedWorlds {
    /// How those ended with which nothing is wrong, and how many did so.
    pub ended: BTreeMap<&'static str, usize>,
    /// The others, by seed.
    pub broken: Vec<BrokenWorld>,
}

impl CheckedWorlds {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.ended.values().sum::<usize>() + self.broken.len()
    }
}

/// Checked worlds: how they ended, and a command for each with which something is wrong.
///
/// CSV: one row for each such world.
pub fn checked(worlds: &CheckedWorlds) -> Document<'_> {
    Document::new("checked worlds")
        .section(Section::first(title(worlds), None))
        .section(Section::new("how they ended".to_owned()).with(ended(worlds)))
        .sections(worlds.broken.iter().map(broken))
        .json(|| value(worlds))
        .csv(|| records(worlds))
}

fn title(worlds: &CheckedWorlds) -> String {
    let (count, wrong) = (worlds.count(), worlds.broken.len());
    let noun = if count == 1 { "world" } else { "worlds" };
    match wrong {
        0 => format!("{count} {noun} of the model, checked all along: nothing is wrong"),
        _ => format!("{count} {noun} of the model, checked all along: {wrong} with something wrong"),
    }
}

fn ended(worlds: &CheckedWorlds) -> Table {
    let mut table = Table::new().texts(["how"]).amounts(["worlds"]);
    for (how, count) in &worlds.ended {
        table.push(row![*how, *count]);
    }
    for what in ["broken", "endless", "failed"] {
        let count = worlds.broken.iter().filter(|world| world.what == what).count();
        if count > 0 {
            table.push(row![what, count]);
        }
    }
    table
}

fn broken(world: &BrokenWorld) -> Section {
    let BrokenWorld { seed, workload, kernel, what, text, command, smaller, tried } = world;
    let mut commands = vec![("it".to_owned(), command.clone())];
    commands.extend(
        smaller.iter().map(|smaller| (format!("a smaller one, after {tried} tries"), smaller.clone())),
    );
    Section::new(format!("{what}: seed {seed}, {workload} on {kernel}"))
        .lines_of(text.lines().map(str::to_owned))
        .with(Block::Commands { heading: "Make it again", commands })
}

fn value(worlds: &CheckedWorlds) -> Value {
    let broken = |world: &BrokenWorld| {
        json!({
            "seed": world.seed, "workload": world.workload, "kernel": world.kernel, "what": world.what,
            "text": world.text, "command": world.command, "smaller": world.smaller, "tried": world.tried,
        })
    };
    json!({
        "schema": 1,
        "worlds": worlds.count(),
        "ended": worlds.ended,
        "wrong": worlds.broken.iter().map(broken).collect::<Vec<_>>(),
    })
}

fn records(worlds: &CheckedWorlds) -> Records {
    let header = ["seed", "workload", "kernel", "what", "text", "command", "smaller"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for world in &worlds.broken {
        let BrokenWorld { seed, workload, kernel, what, text, command, smaller, .. } = world.clone();
        let smaller = smaller.unwrap_or_default();
        rows.push(vec![seed.to_string(), workload, kernel, what.to_owned(), text, command, smaller]);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;

    /// Commands were broken like sentences: pasted, each line ran by itself.
    #[test]
    fn a_command_of_many_options_goes_on_behind_a_backslash() {
        let command =
            format!("pagetide run huge-faults --check {}", "--param readers=16 ".repeat(8).trim_end());
        let world = BrokenWorld {
            seed: 17,
            workload: "huge-faults".to_owned(),
            kernel: "linux-6.12".to_owned(),
            what: "endless",
            text: "nobody got anywhere".to_owned(),
            command,
            smaller: Some("pagetide run huge-faults".to_owned()),
            tried: 3,
        };
        let worlds = CheckedWorlds { broken: vec![world], ..CheckedWorlds::default() };
        insta::assert_snapshot!(checked(&worlds).render(Format::Text, 80), @r#"
        1 world of the model, checked all along: 1 with something wrong

        how they ended
         how      worlds
         endless       1

        endless: seed 17, huge-faults on linux-6.12
        nobody got anywhere
        made by
          it:
            pagetide run huge-faults --check --param readers=16 --param readers=16 \
              --param readers=16 --param readers=16 --param readers=16 \
              --param readers=16 --param readers=16 --param readers=16
          a smaller one, after 3 tries: pagetide run huge-faults
        "#);
    }
}
