//! Latencies and rates in the layout of `simoop`, the program that source 3 prints figures of.
//!
//! For recordings that have metrics of those names: `read_latency_p50_us`, `alloc_stall_rate_p95` and so
//! on, whoever measured them. Several runs of one variant are told by the mean of each figure. Left out: the
//! program's steps in which it counts latencies, a 256th of a power of two.

use recording::Recording;
use stats::describe::mean;

use crate::document::{Mark, Section};
use crate::judge::Group;

const LATENCIES: [(&str, &str); 3] = [
    ("Read latency", "read_latency"),
    ("Write latency", "write_latency"),
    ("Allocation latency", "alloc_latency"),
];
const PERCENTILES: [&str; 3] = ["p50", "p95", "p99"];

/// What one run would have printed; empty for one without such metrics.
pub(crate) fn printed_run(recording: &Recording) -> Section {
    Section::untitled().lines_of(lines(&[recording]))
}

/// What the runs of each group would have printed, under its label; empty where none has such metrics.
pub(crate) fn printed(groups: &[Group<'_>]) -> Section {
    let told = groups.iter().map(|group| (&group.label, lines(&group.recordings)));
    told.filter(|(_, lines)| !lines.is_empty()).fold(Section::untitled(), |section, (label, lines)| {
        section.line(format!("{label}:")).list(Mark::Sentence, lines)
    })
}

fn lines(recordings: &[&Recording]) -> Vec<String> {
    let of = |name: &str| {
        let values: Vec<f64> =
            recordings.iter().filter_map(|recording| recording.metrics.get(name).copied()).collect();
        mean(&values)
    };
    let mut lines = Vec::new();
    for (heading, name) in LATENCIES {
        let figures: Option<String> = PERCENTILES
            .iter()
            .map(|percentile| {
                let value = of(&format!("{name}_{percentile}_us"))?;
                Some(format!(" ({percentile}: {})", grouped(value)))
            })
            .collect();
        lines.extend(figures.map(|figures| format!("{heading}{figures}")));
    }
    let rate = |name: &str| {
        let figure = |suffix: &str| of(&format!("{name}{suffix}")).map(|value| format!("{value:.2}"));
        let percentiles: Option<String> = PERCENTILES
            .iter()
            .map(|percentile| Some(format!(" ({percentile}: {})", figure(&format!("_{percentile}"))?)))
            .collect();
        Some((figure("_last")?, figure("")?, percentiles?))
    };
    lines.extend(rate("work_rate").map(|(last, average, percentiles)| {
        format!("work rate = {last}/sec (avg {average}/sec){percentiles}")
    }));
    lines.extend(rate("alloc_stall_rate").map(|(last, average, percentiles)| {
        format!("alloc stall rate = {last}/sec (avg: {average}){percentiles}")
    }));
    let seconds = of("run_seconds").filter(|_| !lines.is_empty());
    lines.splice(0..0, seconds.map(|seconds| format!("Run time: {seconds:.0} seconds")));
    lines
}

/// A whole number with a comma between thousands.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::text_of;

    fn recording(label: &str, metrics: &[(&str, f64)]) -> Recording {
        let mut recording = Recording::new(label, "simoop", "sim", "linux-5.7", 1);
        recording.metrics = metrics.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
        recording
    }

    /// The source's own figures.
    const VANILLA: [(&str, f64); 20] = [
        ("run_seconds", 1924.4),
        ("read_latency_p50_us", 3_305_472.0),
        ("read_latency_p95_us", 3_723_264.0),
        ("read_latency_p99_us", 4_001_792.0),
        ("write_latency_p50_us", 184_064.0),
        ("write_latency_p95_us", 553_984.0),
        ("write_latency_p99_us", 807_936.0),
        ("alloc_latency_p50_us", 2_641_920.0),
        ("alloc_latency_p95_us", 3_911_680.0),
        ("alloc_latency_p99_us", 4_464_640.0),
        ("work_rate_last", 13.45),
        ("work_rate", 13.44),
        ("work_rate_p50", 13.46),
        ("work_rate_p95", 13.58),
        ("work_rate_p99", 13.70),
        ("alloc_stall_rate_last", 3.8),
        ("alloc_stall_rate", 2.59),
        ("alloc_stall_rate_p50", 2.54),
        ("alloc_stall_rate_p95", 2.96),
        ("alloc_stall_rate_p99", 3.02),
    ];

    #[test]
    fn a_run_is_printed_as_its_source_prints_it() {
        insta::assert_snapshot!(text_of(printed_run(&recording("vanilla", &VANILLA)), 100), @r"
        Run time: 1924 seconds
        Read latency (p50: 3,305,472) (p95: 3,723,264) (p99: 4,001,792)
        Write latency (p50: 184,064) (p95: 553,984) (p99: 807,936)
        Allocation latency (p50: 2,641,920) (p95: 3,911,680) (p99: 4,464,640)
        work rate = 13.45/sec (avg 13.44/sec) (p50: 13.46) (p95: 13.58) (p99: 13.70)
        alloc stall rate = 3.80/sec (avg: 2.59) (p50: 2.54) (p95: 2.96) (p99: 3.02)
        ");
    }

    #[test]
    fn groups_are_told_by_means_and_what_was_not_measured_is_left_out() {
        let [first, second] = [1.0, 2.0]
            .map(|factor| recording("two", &VANILLA.map(|(name, value)| (name, value * factor))[10..]));
        let other = recording("other", &[("files_per_sec", 3.0)]);
        let group =
            |label: &str, recordings| Group { label: label.into(), command: String::new(), recordings };
        let groups = [group("two", vec![&first, &second]), group("other", vec![&other])];
        insta::assert_snapshot!(text_of(printed(&groups), 100), @r"
        two:
          work rate = 20.17/sec (avg 20.16/sec) (p50: 20.19) (p95: 20.37) (p99: 20.55)
          alloc stall rate = 5.70/sec (avg: 3.88) (p50: 3.81) (p95: 4.44) (p99: 4.53)
        ");
        assert!(printed_run(&other).is_empty());
        assert!(printed(&groups[1..]).is_empty());
    }
}
