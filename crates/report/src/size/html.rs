//! A size as a page to look at: what to set, the curve, its numbers, and what it rests on.
//!
//! Laid out and styled as the pages of [`crate::html`], with the figure of `size/plot.rs`. Left out: figures of the
//! single runs, which `pagetide report` draws of the recordings that `--out` keeps.

use serde_json::{Value, json};

use super::plot::{figure, finding};
use super::settings::{Setting, settings};
use super::text::{advised, between, curve, extra, knee, rests_on, title};
use super::{Sized, size_json};
use crate::html::{Element, commands, framed, plain_table};

/// The page; `made_by` is the program and its version.
pub fn size_html(sized: &Sized, made_by: &str) -> String {
    let (heading, sentences) = advised(sized);
    let header = Element::new("header")
        .with(Element::of("p", "eyebrow").text(&title(sized)))
        .with(Element::new("h1").text(&finding(sized)))
        .with(Element::of("p", "verdict").text(&format!("{heading}.")))
        .with(Element::of("p", "not").prose(&format!("The trace: {}.", sized.holds.join(", "))));
    let figure = figure(sized);
    let mut body = Element::new("main")
        .with(header)
        .with_all(figure.iter().map(crate::html::Figure::html))
        .with(
            section("limits", "Every limit that was run")
                .with(plain_table(&curve(sized)))
                .with_all(paragraphs([knee(sized)].into_iter().chain(between(sized)))),
        )
        .with(section("advice", "How the recommendation was found").with_all(paragraphs(sentences)));
    if let Some(advice) = &sized.advice {
        body = body.with(section("settings", "To paste").with_all(settings(advice).iter().map(pasted)));
    }
    for (number, (heading, table, said)) in extra(sized).into_iter().enumerate() {
        let beside = section(&format!("beside{number}"), &capital(&heading));
        body = body.with(beside.with(plain_table(&table)).with_all(paragraphs([said])));
    }
    let made = [("this page and its runs".to_owned(), sized.command.clone())];
    let reading =
        section("reading", "What it rests on, and how to make it again")
            .with_all(paragraphs(rests_on(sized)))
            .with(commands("Make it again", &made).set("open", ""))
            .with(Element::new("footer").text(&format!(
                "{made_by}. One file, no network; a script adds values under the pointer only."
            )));
    let found: Value = serde_json::from_str(&size_json(sized)).expect("it was just written");
    let figures: serde_json::Map<String, Value> =
        figure.iter().map(|figure| (figure.name.clone(), figure.data())).collect();
    let data = json!({ "made_by": made_by, "size": found, "figures": figures });
    framed(made_by, &format!("{}: {}", sized.trace, finding(sized)), &body.with(reading), &data)
}

fn section(id: &str, heading: &str) -> Element {
    Element::of("section", "summary").set("id", id).with(Element::new("h2").text(heading))
}

fn paragraphs(texts: impl IntoIterator<Item = String>) -> impl Iterator<Item = Element> {
    texts.into_iter().map(|text| Element::of("p", "not").prose(&sentence(&text)))
}

/// Lines for one system, and what it lacks.
fn pasted(setting: &Setting) -> Element {
    Element::of("details", "commands")
        .set("open", "")
        .with(Element::new("summary").text(setting.of))
        .with(Element::of("pre", "command").text(&setting.lines.join("\n")))
        .with(Element::of("p", "not").prose(&sentence(setting.lacks)))
}

/// What stands in a list of the text, as a sentence.
fn sentence(text: &str) -> String {
    let text = capital(text);
    if text.ends_with(['.', '!', '?']) { text } else { format!("{text}.") }
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    // What is named as the kernel or a command line names it stays as it is.
    let is_name = text.split(' ').next().is_some_and(|word| word.contains(['.', '_', '`', '-']));
    match characters.next() {
        Some(first) if !is_name => first.to_uppercase().chain(characters).collect(),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Advice, SizedKnee, SizedPoint, Spread};
    use super::*;

    fn point(limit: Option<u64>, hits: f64, slowdown: f64) -> SizedPoint {
        let spread = |value| Some(Spread { least: value, mean: value, most: value });
        SizedPoint {
            limit,
            hit_ratio: spread(hits),
            refaults: spread(0.0),
            in_reclaim: spread(0.0),
            stalled: None,
            read: None,
            written: None,
            run: spread(1.0),
            slowdown: spread(slowdown),
            keeps: Some(slowdown < 5.0),
            killed: 0,
        }
    }

    fn sized() -> Sized {
        Sized {
            trace: "</script><b>.csv".to_owned(),
            holds: vec!["7 requests".to_owned()],
            kernel: "linux-6.12".to_owned(),
            machine: "vm-2cpu, 2G of memory".to_owned(),
            seeds: vec![1],
            one_in: None,
            held: 1 << 30,
            targets: vec!["replay_seconds > +5%".to_owned()],
            slowdown_of: None,
            points: vec![
                point(Some(64 << 20), 0.25, 40.0),
                point(Some(256 << 20), 0.75, 3.0),
                point(None, 0.8, 0.0),
            ],
            resolution: Some(0.05),
            knee: Some(SizedKnee { limit: 256 << 20, between: (Some(64 << 20), None) }),
            advice: Some(Advice {
                high: 256 << 20,
                max: 288 << 20,
                low: 256 << 20,
                too_small: Some(64 << 20),
                headroom: 10.0,
                run_as_set: None,
                low_is_knee: true,
            }),
            checked: Vec::new(),
            verified: None,
            notes: vec!["One seed.".to_owned()],
            command: "pagetide size t.csv".to_owned(),
            runs: 3,
        }
    }

    /// The page has the curve with both limits, what to paste for all three systems, and nothing that a trace's name
    /// could break out of; the same size gives the same bytes.
    #[test]
    fn a_page_has_the_curve_the_advice_and_what_it_rests_on() {
        let page = size_html(&sized(), "pagetide 1");
        for wanted in [
            "256 MiB keeps the target",
            "id=\"size\"",
            "64.0 MiB: 25.00 %",
            "MemoryHigh=256M",
            "memory: 288Mi",
            "--memory=288m",
            "<p class=\"not\">One seed.</p>",
            "pagetide size t.csv",
        ] {
            assert!(page.contains(wanted), "no `{wanted}`");
        }
        assert!(!page.contains("<b>"), "the name of a trace is text");
        assert_eq!(page.matches("</script>").count(), 2);
        assert_eq!(page, size_html(&sized(), "pagetide 1"));
    }

    #[test]
    fn a_size_of_one_limit_is_a_page_without_a_curve() {
        let mut sized = sized();
        sized.points.remove(0);
        let page = size_html(&sized, "pagetide 1");
        assert!(!page.contains("id=\"size\"") && page.contains("id=\"limits\""));
    }
}
