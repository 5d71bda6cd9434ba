//! A size as a page to look at: what to set, the curve, its numbers, and what it rests on.
//!
//! Left out: figures of the single runs, which `pagetide report` draws of the recordings that `--out` keeps.

use serde_json::json;

use super::data::value;
use super::found::Sized;
use super::plot::{figure, finding};
use super::settings::settings;
use super::text::{advised, between, curve, extra, knee, rests_on, title};
use crate::document::{Block, Document, Mark, Section};

/// The size as a page, with its figure; its data is that of [`super::size`].
pub fn size_page(sized: &Sized) -> Document<'_> {
    let (heading, sentences) = advised(sized);
    let header = Section::first(title(sized), Some(finding(sized)))
        .with(Block::Verdict(format!("{heading}.")))
        .paragraph(format!("The trace: {}.", sized.holds.join(", ")));
    let said = |heading: &str, texts: Vec<String>| Section::new(heading).list(Mark::Sentence, texts);
    let limits = [knee(sized)].into_iter().chain(between(sized));
    let beside = extra(sized).into_iter().enumerate().map(|(number, (heading, table, text))| {
        Section::new(heading).at(format!("beside{number}")).with(table).list(Mark::Sentence, [text])
    });
    let commands = vec![("this page and its runs".to_owned(), sized.command.clone())];
    Document::new(&sized.trace)
        .section(header)
        .section(Section::untitled().with_all(figure(sized)))
        .section(
            Section::new("Every limit that was run")
                .at("limits")
                .with(curve(sized))
                .list(Mark::Sentence, limits),
        )
        .section(said("How the recommendation was found", sentences).at("advice"))
        .section(Section::new("To paste").at("settings").with_all(settings(sized)))
        .sections(beside)
        .section(
            said("What it rests on, and how to make it again", rests_on(sized))
                .at("reading")
                .with(Block::Commands { heading: "Make it again", commands }),
        )
        .json(|| json!({ "size": value(sized) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::size::text::advised;
    use crate::views::size::{
        Advice, CheckedPoint, Patch, PatchKind, ProgramCheck, SizedKnee, SizedPoint, Spread,
    };
    use crate::{Format, Style};

    const STYLE: Style<'_> = Style { width: 80, made_by: "pagetide 1" };

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
            program: None,
            practices: Vec::new(),
            other_disks: Vec::new(),
            patches: Vec::new(),
            notes: vec!["One seed.".to_owned()],
            known: None,
            command: "pagetide size t.csv".to_owned(),
            runs: 3,
        }
    }

    #[test]
    fn a_limit_that_is_enough_by_itself_is_not_called_too_small() {
        let mut sized = sized();
        sized.points.insert(2, point(Some(512 << 20), 0.78, 1.0));
        sized.advice.as_mut().unwrap().high = 512 << 20;
        let said = &advised(&sized).1[0];
        assert!(said.starts_with("256 MiB keeps the target by itself"), "{said}");
        assert!(said.contains("64 MiB does not; with all three set"), "{said}");
    }

    #[test]
    fn a_patch_of_nothing_is_told() {
        let patch = Patch { kind: PatchKind::Vpa, name: "web".to_owned(), container: None };
        let sized = Sized { advice: None, patches: vec![patch], ..sized() };
        assert_eq!(advised(&sized).1[1], "no patch of `vpa/web`: nothing is recommended");
    }

    /// The program needs 400 MiB, the model said 256: how near that is hangs on the limits that were run.
    #[test]
    fn a_check_says_how_the_curve_is_to_be_read_as_near_as_limits_were_run() {
        let base = CheckedPoint {
            limit: None,
            seconds: None,
            runs: 3,
            slowdown: None,
            predicted: None,
            predicted_killed: false,
            refaults: 0.0,
            major_faults: 0.0,
            peak: 0,
            anon_peak: 0,
            killed: 0,
            ended: None,
            keeps: true,
        };
        let (command, place) = ("./app".to_owned(), "a cgroup of this host".to_owned());
        let program =
            ProgramCheck { command, place, repeats: 3, base, points: vec![], model: Some(256 << 20) };
        let said = |too_small: u64| {
            let advice =
                Advice { high: 400 << 20, too_small: Some(too_small << 20), ..sized().advice.unwrap() };
            advised(&Sized {
                advice: Some(Advice { low: 400 << 20, ..advice }),
                program: Some(program.clone()),
                ..sized()
            })
            .1
        };
        assert!(said(380)[1].contains("as 1.56 times as large"), "{:?}", said(380));
        assert!(said(256)[1].contains("as 1.00 to 1.56 times as large"), "{:?}", said(256));
        assert!(said(380)[3].starts_with("memory.low is the knee of the curve, moved"), "{:?}", said(380));
    }

    /// The page has the curve with both limits, what to paste for all three systems, and nothing that a trace's name
    /// could break out of; the same size gives the same bytes.
    #[test]
    fn a_page_has_the_curve_the_advice_and_what_it_rests_on() {
        let page = size_page(&sized()).render(Format::Html, STYLE);
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
        assert_eq!(page, size_page(&sized()).render(Format::Html, STYLE));
    }

    #[test]
    fn a_size_of_one_limit_is_a_page_without_a_curve() {
        let mut sized = sized();
        sized.points.remove(0);
        let page = size_page(&sized).render(Format::Html, STYLE);
        assert!(!page.contains("id=\"size\"") && page.contains("id=\"limits\""));
    }
}
