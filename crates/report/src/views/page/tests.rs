//! Pages of small recordings, as text: what stands where, that it is whole, and that nothing steers a browser.

use recording::{Phase, Recording, Series, Wait, WaitEnd, WaitKind};

use super::{Counts, Factors, Page, SettingGrid, Story, StoryLine, StoryPanel, Tells};
use crate::document::figure::Figure;
use crate::judge::{Headline, View, by_seed};
use crate::views::heat::{AgeMap, FileHeat, Heat};
use crate::{Direction, Format, Group, Style};

const SECOND: u64 = 1_000_000_000;

const STORY: Story = Story {
    panels: &[StoryPanel {
        name: "page cache of A",
        counts: Counts::Pages,
        lines: &[StoryLine { name: "page cache of A", columns: &["nr_file_pages"] }],
    }],
    tells: Tells::EndOf("streamed"),
};

/// A run of three seconds that keeps so many of 512 pages, reads as fast as it keeps, and stalls otherwise.
fn run(label: &str, seed: u64, kept: u64) -> Recording {
    let columns = ["nr_file_pages", "nr_free_pages", "z0_Normal_low", "pgscan_direct", "allocstall_normal"];
    let lost = 512 - kept;
    let rows = vec![
        (0, vec![0, 9000, 700, 0, 0]),
        (SECOND, vec![512, 900, 700, 0, 0]),
        (2 * SECOND, vec![kept, 800, 700, 10 * lost, lost]),
        (3 * SECOND, vec![512, 700, 700, 10 * lost, lost]),
    ];
    let wait = |futile: bool, spent_ns: u64| Wait {
        phase: "streamed".into(),
        task: "reader".into(),
        wait: "congestion_wait".into(),
        within: "allocation stall".into(),
        kind: WaitKind::Writes,
        ended: if futile { WaitEnd::Timeout } else { WaitEnd::Wake },
        futile: Some(futile),
        count: 3,
        requested_ns: Some(3 * SECOND / 10),
        spent_ns,
        longest_ns: spent_ns / 2,
        ..Wait::default()
    };
    let pace = |step: u64| (kept * (10 + seed) + step * 100) as f64 / 10.0;
    let recording = Recording {
        metrics: [("kept_pages".to_owned(), kept as f64), ("reread_s".to_owned(), lost as f64 / 100.0 + 0.5)]
            .into(),
        samples: [("pace".to_owned(), (0..6).map(pace).collect())].into(),
        phases: vec![Phase { name: "streamed".into(), at_ns: 2 * SECOND, vmstat: Default::default() }],
        series: Series::new(columns.map(str::to_owned).to_vec(), rows),
        scenario_toml: format!("workload = \"aging\"\nkernel = \"{label}\"\nseed = {seed}\n"),
        vmstat: [("pgscan_direct".to_owned(), 10 * lost)].into(),
        simulated_ns: 3 * SECOND,
        ..Recording::new(label, "aging", "sim", label, seed)
    };
    recording.waited(vec![wait(true, lost * 1_000_000), wait(false, 250_000_000)])
}

fn headline(name: &'static str, unit: &'static str, direction: Direction) -> Headline {
    Headline { name, unit, direction, of: None, resolution: 0.0, help: "a measure" }
}

fn groups(runs: &[Recording]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for run in runs {
        match groups.iter_mut().find(|group| group.label == run.label) {
            Some(group) => group.recordings.push(run),
            None => groups.push(Group {
                label: run.label.clone(),
                command: format!("pagetide run aging --kernel {}", run.label),
                recordings: vec![run],
            }),
        }
    }
    groups
}

fn page<'a>(groups: &'a [Group<'a>]) -> Page<'a> {
    let headlines =
        vec![headline("kept_pages", "pages", Direction::Higher), headline("reread_s", "s", Direction::Lower)];
    Page {
        groups,
        view: View { headlines, ..View::default() },
        question: "Does it stay?".into(),
        story: STORY,
        heats: Vec::new(),
        factors: None,
        grid: None,
        command: "pagetide report aging -o report.html".into(),
    }
}

fn two_kernels() -> Vec<Recording> {
    vec![run("old", 1, 100), run("old", 2, 120), run("new", 1, 500), run("new", 2, 500)]
}

fn shown(page: &Page<'_>) -> String {
    super::page(page).unwrap().render(Format::Html, Style { width: 80, made_by: "pagetide 0" })
}

/// All figures, the summary too.
fn drawn(page: &Page<'_>) -> Vec<Figure> {
    let groups = by_seed(page.groups);
    let is_replay = super::sections::is_replay(&groups[0].recordings[0].workload);
    let summary = if is_replay { None } else { super::summary::figure(&groups, &page.view) };
    super::figures(page, &groups).into_iter().chain(summary).collect()
}

fn names(page: &Page<'_>) -> Vec<String> {
    super::page(page).unwrap().figures().into_iter().map(str::to_owned).collect()
}

/// The page without style, script and data, which are the same files for all or follow from what is shown.
fn body(html: &str) -> &str {
    let begin = html.find("<body>").expect("a body") + 7;
    &html[begin..html.find("<script").expect("data")]
}

/// Without drawings: they have tests of their own.
fn without_drawings(body: &str) -> String {
    let mut text = String::new();
    let mut rest = body;
    while let Some(begin) = rest.find("<svg") {
        text += &rest[..begin];
        let mut depth = 0;
        let mut at = begin;
        loop {
            let opens = rest[at..].find("<svg").map(|place| at + place);
            let closes = at + rest[at..].find("</svg>").expect("pictures end");
            match opens {
                Some(opens) if opens < closes => (depth, at) = (depth + 1, opens + 4),
                _ => (depth, at) = (depth - 1, closes + 6),
            }
            if depth == 0 {
                break;
            }
        }
        text += "[drawn]";
        rest = &rest[at..];
    }
    text + rest
}

/// Every element that is opened is closed, in its order.
fn check_markup(html: &str) {
    const VOID: [&str; 4] = ["meta", "!doctype", "br", "hr"];
    let mut open: Vec<&str> = Vec::new();
    let mut rest = html;
    while let Some(begin) = rest.find('<') {
        rest = &rest[begin + 1..];
        let end = rest.find('>').expect("a tag ends");
        let tag = &rest[..end];
        rest = &rest[end + 1..];
        let name = tag.split([' ', '/', '\n']).find(|part| !part.is_empty()).expect("a name");
        match (tag.starts_with('/'), tag.ends_with('/')) {
            (true, _) => assert_eq!(open.pop(), Some(name), "a tag that closes another one"),
            (false, true) => {}
            (false, false) if VOID.contains(&name) => {}
            (false, false) => open.push(name),
        }
        if matches!(name, "script" | "style") && !tag.starts_with('/') {
            rest = &rest[rest.find(&format!("</{name}>")).expect("it ends")..];
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

fn heat(kept: u64) -> Heat {
    Heat {
        slice_ns: SECOND,
        slices: 3,
        age_classes: vec![(0, Some(SECOND)), (SECOND, None)],
        ages: vec![AgeMap { cgroup: "A".into(), pages: vec![vec![512, 0], vec![0, kept], vec![12, kept]] }],
        files: vec![FileHeat {
            file: "hot".into(),
            region_pages: 256,
            accessed: vec![vec![256, 0, 1], vec![256, 0, 0]],
            resident: vec![vec![256, kept / 2, 256], vec![256, kept / 2, 256]],
        }],
        other_files: 0,
    }
}

#[test]
fn a_page_asks_answers_and_says_what_was_not_shown() {
    let runs = two_kernels();
    let groups = groups(&runs);
    let html = shown(&page(&groups));
    insta::assert_snapshot!(without_drawings(body(&html)), @r#"
    <main><header>
    <p class="eyebrow">aging · 2 variants · 4 runs</p><h1>Does it stay?</h1>
    <p class="verdict">kept_pages: 110 ± 14 pages on old, 500 pages on new (+355 % [+123, +586]): better. Of 2 headline metrics: 2 better.</p>
    <p class="not"><b>Not shown: </b>Real kernels (every run is of the model); 1 more metric, which is below, folded.</p></header>
    <section class="summary" id="summary">
    <h2>What changed, worst first</h2>
    <table class="summary"><caption><b class="new">new</b> against <b class="base">old</b></caption><thead>
    <tr><th class="name" scope="col">metric</th><th class="number base" scope="col">baseline</th><th class="number new" scope="col">candidate</th><th class="number" scope="col">change [95 %]</th><th class="bar" scope="col">[drawn]</th><th class="verdict" scope="col">verdict</th></tr></thead><tbody>
    <tr class="better"><th class="name" scope="row">kept_pages<span class="unit">pages</span><small class="help">a measure</small></th><td class="number" data-label="baseline">110 ± 14</td><td class="number" data-label="candidate">500</td><td class="number" data-label="change">+355 % [+123, +586]</td><td class="bar">[drawn]</td><td class="verdict"><span>better</span></td></tr>
    <tr class="better"><th class="name" scope="row">reread_s<span class="unit">s</span><small class="help">a measure</small></th><td class="number" data-label="baseline">4.52 ± 0.14</td><td class="number" data-label="candidate">0.62</td><td class="number" data-label="change">-86 % [-143, -30]</td><td class="bar">[drawn]</td><td class="verdict"><span>better</span></td></tr></tbody></table>
    <p class="not">2 paired seeds: mean ± standard deviation; paired t test; intervals and verdicts hold at 95 % over all 2 rows together (Bonferroni)</p>
    <p class="not">a t test takes the mean over runs for normal; 7 runs a side are enough to test without that</p>
    <p class="not">an interval beside a value without ±: that side is the same in all 2 seeds, and the spread of the other is tested</p>
    <p class="not">Bars: the candidate as a multiple of the baseline, on one axis for all rows; equal factors are equal steps, finer around 0. Arrows point at what lies beyond. A thin line is the 95 % interval, where seeds differ.</p></section>
    <section class="figure" id="story">
    <h2>Page cache of A at streamed: 0.391 MiB on old, 1.95 MiB on new</h2><ul class="legend"><li>[drawn]baseline</li><li>[drawn]candidate</li><li>[drawn]direct reclaim</li></ul><div class="columns"><div class="column" style="grid-row: span 5">
    <h3>old</h3>
    <figure class="lane"><figcaption>page cache of A, MiB</figcaption><div class="plot" data-lines="story/0/0">[drawn]</div></figure>
    <figure class="lane"><figcaption>free memory and its marks min, low, high, MiB; cut, at most 35.2 MiB</figcaption><div class="plot" data-lines="story/0/1">[drawn]</div></figure>
    <figure class="lane"><figcaption>pages scanned, per s</figcaption><div class="plot" data-lines="story/0/2">[drawn]</div></figure>
    <figure class="lane"><figcaption>allocation stalls: 412 in all, a stroke for each reading with some</figcaption><div class="plot">[drawn]</div></figure></div><div class="column" style="grid-row: span 5">
    <h3>new</h3>
    <figure class="lane"><figcaption>page cache of A, MiB</figcaption><div class="plot" data-lines="story/1/0">[drawn]</div></figure>
    <figure class="lane"><figcaption>free memory and its marks min, low, high, MiB; cut, at most 35.2 MiB</figcaption><div class="plot" data-lines="story/1/1">[drawn]</div></figure>
    <figure class="lane"><figcaption>pages scanned, per s</figcaption><div class="plot" data-lines="story/1/2">[drawn]</div></figure>
    <figure class="lane"><figcaption>allocation stalls: 12 in all, a stroke for each reading with some</figcaption><div class="plot">[drawn]</div></figure></div></div>
    <dl class="facts"><dt>n</dt><dd>2 runs of each kernel; seed 1 is drawn, other seeds are faint lines; 4 readings</dd><dt>axes</dt><dd>x: seconds since the run began, the same for all panels; y: as each panel says, the same scale for all kernels</dd><dt>how to read this</dt><dd>Read a column from top to bottom at one moment: what happened to the memory that the workload is about, how much was free, who scanned for more, and when tasks had to reclaim themselves. Levels are steps from one reading to the next; rates are means between two readings.</dd></dl>
    <details class="commands"><summary>reproduce it</summary><ul><li><span>old</span><code class="command">pagetide run aging --kernel old</code></li><li><span>new</span><code class="command">pagetide run aging --kernel new</code></li></ul></details></section>
    <section class="figure" id="ecdf-pace">
    <h2>pace: median 150, 95th percentile 194 on old; median 600, 95th percentile 650 on new</h2><ul class="legend"><li>[drawn]old</li><li>[drawn]the candidate</li><li>[drawn]single seeds</li></ul><div class="columns one"><div class="column" style="grid-row: span 2">
    <h3>new</h3>
    <figure class="lane"><figcaption>part of the samples at or below</figcaption><div class="plot" data-lines="ecdf-pace/0/0">[drawn]</div></figure></div></div>
    <dl class="facts"><dt>n</dt><dd>12 samples of each kernel from 2 runs</dd><dt>axes</dt><dd>x: pace; y: part of the samples that are at or below it</dd><dt>how to read this</dt><dd>A line that lies further to the left has smaller values; where two lines cross, the order turns around. Go up from a value to read what part of the samples is not larger; go right from 0.5 to read the median. Steep parts are where most samples lie, a long flat end is a tail.</dd></dl>
    <details class="commands"><summary>reproduce it</summary><ul><li><span>old</span><code class="command">pagetide run aging --kernel old</code></li><li><span>new</span><code class="command">pagetide run aging --kernel new</code></li></ul></details></section>
    <section class="figure" id="waits">
    <h2>Tasks waited in all: 652 ms (futile 402 ms) on old, 262 ms (futile 12 ms) on new</h2><ul class="legend"><li>[drawn]baseline</li><li>[drawn]candidate</li><li>[drawn]of it futile: to its timeout while nothing could end it</li></ul><div class="columns"><div class="column" style="grid-row: span 2">
    <h3>old</h3>
    <figure class="lane"><figcaption>congestion_wait in allocation stall: 652 ms, of it futile 402 ms</figcaption><div class="plot">[drawn]</div></figure></div><div class="column" style="grid-row: span 2">
    <h3>new</h3>
    <figure class="lane"><figcaption>congestion_wait in allocation stall: 262 ms, of it futile 12 ms</figcaption><div class="plot">[drawn]</div></figure></div></div>
    <dl class="facts"><dt>n</dt><dd>all waits of all tasks but idle ones; mean of 2 runs</dd><dt>axes</dt><dd>x: ms in a wait, added over all tasks, the same scale for all kernels</dd><dt>how to read this</dt><dd>A bar is the time that tasks spent in one wait of the kernel, named by its function, and in the middle of what. Tasks wait at the same time, so a bar may be longer than the run. Orange is time that could not have ended earlier by anything that was under way.</dd></dl>
    <details class="commands"><summary>reproduce it</summary><ul><li><span>old</span><code class="command">pagetide run aging --kernel old</code></li><li><span>new</span><code class="command">pagetide run aging --kernel new</code></li></ul></details></section>
    <section class="figure" id="seeds">
    <h2>kept_pages is better than on old in 2 of 2 seeds on new</h2><ul class="legend"><li>[drawn]better, by far</li><li>[drawn]better</li><li>[drawn]as the baseline</li><li>[drawn]worse</li><li>[drawn]worse, by far</li></ul><div class="columns"><div class="column" style="grid-row: span 3">
    <h3>kept_pages</h3>
    <figure class="lane"><figcaption>old</figcaption><div class="plot">[drawn]</div></figure>
    <figure class="lane"><figcaption>new</figcaption><div class="plot">[drawn]</div></figure></div><div class="column" style="grid-row: span 3">
    <h3>reread_s</h3>
    <figure class="lane"><figcaption>old</figcaption><div class="plot">[drawn]</div></figure>
    <figure class="lane"><figcaption>new</figcaption><div class="plot">[drawn]</div></figure></div></div>
    <dl class="facts"><dt>n</dt><dd>2 kernels with up to 2 seeds, 4 runs</dd><dt>axes</dt><dd>x: seed; each row a kernel; a cell is one run</dd><dt>how to read this</dt><dd>Compare cells of one column to see what kernels do to the same seed, and cells of one row to see how much seeds matter. Colours begin where a run is 0.5 % away from the mean of the baseline, and grow stronger from 5 %, from 25 % and from a factor of 2 on.</dd></dl>
    <details class="commands"><summary>reproduce it</summary><ul><li><span>old</span><code class="command">pagetide run aging --kernel old</code></li><li><span>new</span><code class="command">pagetide run aging --kernel new</code></li></ul></details></section>
    <section id="details">
    <h2>Details</h2>
    <details><summary>Other metrics</summary>
    <table class="summary"><caption><b class="new">new</b> against <b class="base">old</b></caption><thead>
    <tr><th class="name" scope="col">metric</th><th class="number base" scope="col">baseline</th><th class="number new" scope="col">candidate</th><th class="number" scope="col">change [95 %]</th><th class="bar" scope="col">[drawn]</th><th class="verdict" scope="col">verdict</th></tr></thead><tbody>
    <tr class="plain"><th class="name" scope="row">pace (mean)<span class="unit"></span></th><td class="number" data-label="baseline">152 ± 24</td><td class="number" data-label="candidate">600 ± 35</td><td class="number" data-label="change">+295 % [+228, +362]</td><td class="bar">[drawn]</td><td class="verdict"><span>higher</span></td></tr></tbody></table></details>
    <details><summary>What differs in the scenarios</summary>
    <p><b>new</b>: <code>kernel = &quot;new&quot;</code></p></details>
    <details><summary>The scenario of the baseline</summary><code class="command">workload = &quot;aging&quot;
    kernel = &quot;old&quot;
    seed = 1</code></details>
    <details><summary>Time waited for</summary><div class="plaintable">
    <table><thead>
    <tr><th scope="col">time waited for</th><th scope="col">old</th><th scope="col">new</th><th scope="col">change</th></tr></thead><tbody>
    <tr><td>congestion_wait</td><td>652 ms</td><td>262 ms</td><td>-59.8 %</td></tr>
    <tr><td>congestion_wait, futile</td><td>402 ms</td><td>12 ms</td><td>-97.0 %</td></tr></tbody></table></div></details>
    <details><summary>All counters that are not zero (/proc/vmstat)</summary><div class="plaintable">
    <table><thead>
    <tr><th scope="col">counter (/proc/vmstat)</th><th scope="col">old</th><th scope="col">new</th><th scope="col">change</th></tr></thead><tbody>
    <tr><td>pgscan_direct</td><td>4020</td><td>120</td><td>-97.0 %</td></tr></tbody></table></div></details>
    <details><summary>Runs, seeds and length</summary><div class="plaintable">
    <table><thead>
    <tr><th scope="col">run</th><th class="words" scope="col">backend</th><th class="words" scope="col">kernel</th><th scope="col">seed</th><th scope="col">length, s</th><th scope="col">readings</th></tr></thead><tbody>
    <tr><td>old</td><td class="words">sim</td><td class="words">old</td><td>1</td><td>3</td><td>4</td></tr>
    <tr><td>old</td><td class="words">sim</td><td class="words">old</td><td>2</td><td>3</td><td>4</td></tr>
    <tr><td>new</td><td class="words">sim</td><td class="words">new</td><td>1</td><td>3</td><td>4</td></tr>
    <tr><td>new</td><td class="words">sim</td><td class="words">new</td><td>2</td><td>3</td><td>4</td></tr></tbody></table></div></details></section>
    <section id="reading">
    <h2>How to read this page, and how to make it again</h2>
    <p>The baseline is grey and the candidate coloured, in every figure. Orange is what a task pays: direct reclaim, stalls, what got worse. All figures are drawn from the recordings as they are, without smoothing; the numbers behind them are in this file, in the element with the id data.</p>
    <details class="commands" open><summary>Every run, and this page</summary><ul><li><span>old</span><code class="command">pagetide run aging --kernel old</code></li><li><span>new</span><code class="command">pagetide run aging --kernel new</code></li><li><span>this page, from the recordings</span><code class="command">pagetide report aging -o report.html</code></li></ul></details>
    <footer>pagetide 0. One file, no network; a script adds values under the pointer only.</footer></section></main>
    "#);
}

#[test]
fn every_figure_has_a_finding_its_n_axes_a_reading_and_commands() {
    let runs = two_kernels();
    let groups = groups(&runs);
    let page = Page { heats: vec![Some(heat(100)), Some(heat(500))], ..page(&groups) };
    assert_eq!(names(&page), ["story", "ages", "regions", "ecdf-pace", "waits", "seeds", "changes"]);
    for figure in drawn(&page) {
        let name = figure.name.as_str();
        assert!(super::FIGURES.contains(&name) || name.starts_with(super::FIGURE_OF_SAMPLES), "{name}");
        let said = [&figure.finding, &figure.n, &figure.axes, &figure.read];
        assert!(said.iter().all(|text| text.len() > 10), "{}: {said:?}", figure.name);
        assert!(figure.finding.contains(char::is_numeric), "{}: no number", figure.finding);
        assert_eq!(figure.commands.len(), 2, "{}", figure.name);
        let last = |column: &crate::document::figure::Column| {
            column.panels.last().map(|panel| panel.x_label.clone())
        };
        assert!(
            figure.columns.iter().all(|column| last(column).is_some_and(|label| !label.is_empty())),
            "{}",
            figure.name
        );
        check_markup(&super::page(&page).unwrap().svg(Some(&figure.name)).expect("it is there"));
    }
    assert_eq!(super::page(&page).unwrap().svg(Some("no-such")), None);
}

#[test]
fn findings_have_the_numbers() {
    let runs = two_kernels();
    let groups = groups(&runs);
    let page = Page { heats: vec![Some(heat(100)), Some(heat(500))], ..page(&groups) };
    let findings: Vec<String> = drawn(&page).into_iter().map(|figure| figure.finding).collect();
    insta::assert_snapshot!(findings.join("\n"), @"
    Page cache of A at streamed: 0.391 MiB on old, 1.95 MiB on new
    Page cache that nobody had read for 1 s or longer at the end: 0.391 MiB on old, 1.95 MiB on new
    What of the file hot was in memory, at least, after it had been read: 0.391 MiB of 2 MiB on old, 1.95 MiB of 2 MiB on new
    pace: median 150, 95th percentile 194 on old; median 600, 95th percentile 650 on new
    Tasks waited in all: 652 ms (futile 402 ms) on old, 262 ms (futile 12 ms) on new
    kept_pages is better than on old in 2 of 2 seeds on new
    kept_pages: 110 ± 14 pages on old, 500 pages on new (+355 % [+123, +586]): better
    ");
}

#[test]
fn what_is_opened_is_closed_and_nothing_comes_from_elsewhere() {
    let runs = two_kernels();
    let groups = groups(&runs);
    let html = shown(&page(&groups));
    check_markup(&html);
    for outside in ["http", "src=", "href=", "@import", "url("] {
        assert!(!html.contains(outside), "`{outside}` in a page that is one file");
    }
    assert_eq!(html, shown(&page(&groups)), "the same bytes twice");
    assert!(html.starts_with(crate::MARKS_OF_OURS[0]));
    let figure = super::page(&page(&groups)).unwrap().svg(None).unwrap();
    assert!(figure.starts_with(crate::MARKS_OF_OURS[1]));
    let outside = figure.replace("http://www.w3.org/2000/svg", "");
    assert!(!outside.contains("http"), "a name space is no address");
}

/// Labels, reasons and scenarios are texts of a file that anybody may have written.
#[test]
fn no_text_of_a_recording_is_markup_or_ends_the_data() {
    let mut evil = run("</script><script>alert(1)</script>", 1, 100);
    evil.metrics.insert("<img src=x onerror=alert(2)>".into(), 1.0);
    evil.scenario_toml = "x = \"</code><script>\u{7}\"".into();
    let runs = [evil, run("new", 1, 500)];
    let groups = groups(&runs);
    let html = shown(&page(&groups));
    check_markup(&html);
    assert_eq!(html.matches("<script").count(), 2, "data and our own");
    assert!(!html.contains("<img") && !html.contains('\u{7}'));
}

#[test]
fn an_ablation_has_a_matrix_of_effects() {
    let runs = [run("k", 1, 100), run("k+a", 1, 300), run("k-b", 1, 110), run("k+a-b", 1, 500)];
    let groups = groups(&runs);
    let factors = |of: &[u32]| Some(Factors { names: vec!["+a".into(), "-b".into()], of: of.to_vec() });
    let figures = |factors| names(&Page { factors, ..page(&groups) });
    assert!(figures(factors(&[0, 1, 2, 3])).contains(&"ablation".to_owned()));
    assert!(!figures(factors(&[0, 1, 2, 2])).contains(&"ablation".to_owned()), "a subset is missing");
    let page = Page { factors: factors(&[0, 1, 2, 3]), ..page(&groups) };
    let ablation = drawn(&page).into_iter().find(|figure| figure.name == "ablation").unwrap();
    insta::assert_snapshot!(ablation.finding, @"kept_pages: +a matters most (+295 %); together +a and -b add +95 % to that");
}

#[test]
fn replays_have_a_curve_and_no_baseline() {
    let replay = |label: &str, ratio: f64| {
        let mut run = Recording::new(label, "replay t.csv", "policy", "lru", 0);
        run.metrics = [("miss_ratio".to_owned(), ratio), ("requests".to_owned(), 900.0)].into();
        run
    };
    let runs =
        [replay("lru 10", 0.9), replay("lru 1000", 0.3), replay("fifo 10", 0.9), replay("fifo 1000", 0.4)];
    let groups = groups(&runs);
    let view = View { headlines: vec![headline("miss_ratio", "ratio", Direction::Lower)], ..View::default() };
    let page = Page { view, ..page(&groups) };
    assert_eq!(names(&page), ["misses"]);
    let html = shown(&page);
    let text = without_drawings(body(&html));
    assert!(!text.contains("against"), "{text}");
    insta::assert_snapshot!(drawn(&page)[0].finding, @"Caches differ most with 1000: lru misses 30 of 100 requests, fifo 40");
}

#[test]
fn one_variant_alone_is_shown_without_a_comparison() {
    let runs = [run("only", 1, 100)];
    let groups = groups(&runs);
    let html = shown(&page(&groups));
    check_markup(&html);
    assert!(html.contains("There is nothing to compare it with."));
}

#[test]
fn readings_that_are_too_many_keep_their_extremes() {
    let points: Vec<(f64, f64)> =
        (0..10_000).map(|i| (f64::from(i), if i == 7777 { 5.0 } else { 1.0 })).collect();
    let drawn = super::readings::thinned(points);
    assert!(drawn.len() < 700, "{}", drawn.len());
    assert!(drawn.contains(&(7777.0, 5.0)) && drawn.contains(&(9999.0, 1.0)));
    assert!(drawn.is_sorted_by(|a, b| a.0 <= b.0));
}

/// Settings of some axes with a kernel in each of two columns; `kept` by kernel and setting, 0 where there is no run.
fn grid(axes: &[&str], settings: &[&[&str]], runs: &[Recording], kept: [&[u64]; 2]) -> SettingGrid<'static> {
    let runs: &'static [Recording] = runs.to_vec().leak();
    let cell = |kernel: &str, pages: u64| {
        let of: Vec<&Recording> = runs
            .iter()
            .filter(|run| run.label == kernel && run.metrics["kept_pages"] == pages as f64)
            .collect();
        let command = format!("pagetide run aging --kernel {kernel} # {pages}");
        (!of.is_empty()).then(|| Group { label: kernel.to_owned(), command, recordings: of })
    };
    let row = |kernel: &str, kept: &[u64]| kept.iter().map(|&pages| cell(kernel, pages)).collect();
    let texts = |texts: &&[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    SettingGrid {
        axes: texts(&axes),
        settings: settings.iter().map(texts).collect(),
        kernels: vec!["old".into(), "new".into()],
        cells: vec![row("old", kept[0]), row("new", kept[1])],
    }
}

/// What the figure `grid` says, and its panels with the titles of their cells.
fn grid_shown(grid: SettingGrid<'_>) -> String {
    let figure = super::settings::figure(&grid, &page(&[]).view).expect("cells differ");
    let mut text = format!("{}\n{}\n{}\n", figure.finding, figure.n, figure.axes);
    for panel in &figure.columns[0].panels {
        let ticks: Vec<&str> = panel.x.ticks.iter().map(|(_, text)| text.as_str()).collect();
        text += &format!("{} | {}{ticks:?}\n", panel.caption, panel.x_label);
        for mark in &panel.marks {
            if let crate::document::figure::Mark::Cells(cells) = mark {
                for cell in cells {
                    text += &format!("  {:?} {:?} {} {}\n", cell.x.0, cell.y.0, cell.shade, cell.title);
                }
            }
        }
    }
    text
}

#[test]
fn settings_of_one_list_have_a_row_for_each_kernel() {
    let runs =
        [run("old", 1, 100), run("old", 1, 200), run("old", 2, 200), run("new", 1, 500), run("new", 1, 190)];
    let grid = grid(&["mem"], &[&["256M"], &["512M"], &["1G"]], &runs, [&[100, 200, 0], &[500, 190, 0]]);
    insta::assert_snapshot!(grid_shown(grid), @r#"
    kept_pages is better than on old in 1 of 2 cells; furthest from it is new at mem 256M (500 pages, +400 %)
    2 kernels x 3 settings, each with 1 to 2 seeds, 5 runs; 2 cells without a run
    x: mem; each row a kernel
    old | ["", "", ""]
      0.03 0.06 even old, mem 256M: 100 pages, n = 1
      1.03 0.06 even old, mem 512M: 200 pages, n = 2
    new | mem["256M", "512M", "1G"]
      0.03 0.06 good4 new, mem 256M: 500 pages, n = 1
      1.03 0.06 bad2 new, mem 512M: 190 pages, n = 1
    "#);
}

#[test]
fn settings_of_two_lists_are_the_axes_of_a_panel() {
    let runs = [run("old", 1, 100), run("old", 1, 200), run("new", 1, 500), run("new", 1, 190)];
    let settings: [&[&str]; 4] = [&["1", "256M"], &["1", "512M"], &["8", "256M"], &["8", "512M"]];
    let grid = grid(&["readers", "mem"], &settings, &runs, [&[100, 200, 100, 200], &[500, 190, 190, 500]]);
    insta::assert_snapshot!(grid_shown(grid), @r#"
    kept_pages is better than on old in 3 of 4 cells; furthest from it is new at readers 1, mem 256M (500 pages, +400 %)
    2 kernels x 4 settings, each with 1 seed, 8 runs
    x: mem; y: readers; each panel a kernel
    old | ["", ""]
      0.03 0.06 even old, readers 1, mem 256M: 100 pages, n = 1
      1.03 0.06 even old, readers 1, mem 512M: 200 pages, n = 1
      0.03 1.06 even old, readers 8, mem 256M: 100 pages, n = 1
      1.03 1.06 even old, readers 8, mem 512M: 200 pages, n = 1
    new | mem["256M", "512M"]
      0.03 0.06 good4 new, readers 1, mem 256M: 500 pages, n = 1
      1.03 0.06 bad2 new, readers 1, mem 512M: 190 pages, n = 1
      0.03 1.06 good3 new, readers 8, mem 256M: 190 pages, n = 1
      1.03 1.06 good4 new, readers 8, mem 512M: 500 pages, n = 1
    "#);
}

#[test]
fn other_settings_have_a_row_each_and_kernels_letters() {
    let runs = [run("old", 1, 100), run("old", 1, 200), run("new", 1, 500), run("new", 1, 190)];
    let settings: [&[&str]; 3] = [&["1", "256M"], &["8", "256M"], &["8", "1G"]];
    let grid = grid(&["readers", "mem"], &settings, &runs, [&[100, 200, 100], &[500, 190, 0]]);
    insta::assert_snapshot!(grid_shown(grid), @r#"
    kept_pages is better than on old in 1 of 2 cells; furthest from it is new at readers 1, mem 256M (500 pages, +400 %)
    2 kernels x 3 settings, each with 1 seed, 5 runs; 1 cell without a run
    x: kernels, A old, B new; each row a setting
    readers 1, mem 256M | ["", ""]
      0.03 0.06 even old, readers 1, mem 256M: 100 pages, n = 1
      1.03 0.06 good4 new, readers 1, mem 256M: 500 pages, n = 1
    readers 8, mem 256M | ["", ""]
      0.03 0.06 even old, readers 8, mem 256M: 200 pages, n = 1
      1.03 0.06 bad2 new, readers 8, mem 256M: 190 pages, n = 1
    readers 8, mem 1G | kernel["A", "B"]
      0.03 0.06 even old, readers 8, mem 1G: 100 pages, n = 1
    "#);
}
