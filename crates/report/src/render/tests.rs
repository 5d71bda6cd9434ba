//! One document of every block, in every format.

use super::*;
use crate::document::axis::Axis;
use crate::document::changes::{ChangeBar, ChangeRow, Changes};
use crate::document::figure::{Column, Figure, Key, Mark as Drawn, NamedLine, Panel};
use crate::document::timeline::{Kind, Line, Timeline};
use crate::document::{Block, Cell, Mark, Paste, Section, Table, row};

fn text(text: &str) -> String {
    text.to_owned()
}

/// Three cats: a part of a whole, a size, what is missing.
fn table() -> Table {
    let mut table = Table::new().texts(["who"]).numbers(["mice"]).amounts(["ate", "slept"]);
    table.push(row!["house", 12.5, units::Bytes(3 << 20), Cell::Time(2e9)]);
    table.push(row![Cell::part(&["house"], "kitchen"), 7_u64, None::<u64>, Cell::Time(150_000.0)]);
    table.push(row!["a|b", "12 ± 0.5", Cell::None, Cell::Dash]);
    table
}

fn figure() -> Figure {
    let line = Drawn::Line { class: text("line base"), points: vec![(0.0, 1.0), (2.0, 3.0)], steps: false };
    let panel = Panel {
        caption: text("mice"),
        height: 20.0,
        x: Axis::exact(0.0, 2.0, 2),
        y: Axis::from_zero(3.0, 3),
        x_label: text("nights"),
        marks: vec![line],
        lines: vec![NamedLine { label: text("cat"), class: text("base"), points: vec![(0.0, 1.0)] }],
    };
    Figure {
        name: text("mice"),
        finding: text("More mice each night"),
        n: text("2 nights"),
        axes: text("x: nights"),
        keys: vec![Key::line("line base", "the cat")],
        columns: vec![Column { heading: String::new(), panels: vec![panel] }],
        read: String::new(),
        commands: Vec::new(),
    }
}

fn changes() -> Changes {
    let bar = ChangeBar { end: 0.75, interval: Some((0.6, 0.9)), is_beyond: false, said: text("2 times") };
    let row = ChangeRow {
        name: text("mice"),
        unit: "a night",
        help: "caught",
        base: text("4"),
        candidate: text("8"),
        change: text("+100 %"),
        verdict: "better",
        bar: Some(bar),
    };
    let (base, candidate) = (text("old"), text("new"));
    Changes { base, candidate, heading: "change", ticks: vec![(0.5, "0")], grid: vec![0.5], rows: vec![row] }
}

fn timeline() -> Timeline {
    let values = vec![4.0, 2.0, 1.0];
    let line = Line { name: text("awake"), unit: "cats", kind: Kind::Level, values };
    Timeline { times_ns: vec![0, 1_000_000_000, 2_000_000_000], end_ns: 2_000_000_000, lines: vec![line] }
}

fn document() -> Document<'static> {
    let paste = Paste { to: "a door", lines: vec![text("flap = 1")], lacks: "it lacks a lock" };
    let commands = vec![(text("cat"), text("feed --cat tom")), (String::new(), text("feed --all"))];
    Document::new("cats")
        .section(
            Section::first("cats: old against new", Some(text("mice: 4 -> 8")))
                .with(Block::Verdict(text("More mice.")))
                .with(Block::Alarm(text("the cat is out")))
                .with(Block::Warning(text("one night"))),
        )
        .section(Section::untitled().with(table()).line("a night is * long").paragraph("Cats sleep."))
        .section(Section::new("what it rests on").list(Mark::Dash, [text("one house")]).at("rests"))
        .section(Section::new("nothing").with(Table::new().texts(["who"])).line(""))
        .section(Section::untitled().with(figure()))
        .section(Section::untitled().with(changes()).with(timeline()))
        .section(
            Section::untitled()
                .list(Mark::Note, [text("be\u{1b}[2Jware")])
                .lines([text("as  it is")])
                .with(Block::Labelled { label: text("Not shown"), text: text("dogs") })
                .with(Block::Code { label: text("tom"), text: text("fur = 1") })
                .with(paste)
                .with(Block::Folded { heading: text("More"), blocks: vec![Block::Line(text("folded"))] })
                .with(Block::Commands { heading: "Make it again", commands }),
        )
}

#[test]
fn a_terminal_gets_lines_and_sections_without_content_are_not_there() {
    insta::assert_snapshot!(document().render(Format::Text, 40), @r"
    mice: 4 -> 8
    cats: old against new
    More mice.
    the cat is out
    warning: one night

     who              mice  ate   slept
     house      12.5         3M     2 s
       kitchen   7            -  150 µs
     a|b        12   ± 0.5            -
    a night is * long
    Cats sleep.

    what it rests on
      - one house

    More mice each night
      2 nights

     metric  unit     old  new  change
     mice    a night    4    8  +100 %

     metric  verdict
     mice    better
    over time, 2 parts of 1 s
                least to most
     awake  █▄  1 to 2         cats

    note: be\u{1b}[2Jware
    as  it is
    Not shown: dogs
    tom: fur = 1
      a door
        flap = 1
        (it lacks a lock)
    More
    folded
    made by
      cat: feed --cat tom
      feed --all
    ");
}

#[test]
fn markdown_says_the_same_with_an_empty_line_between_blocks() {
    insta::assert_snapshot!(document().render(Format::Markdown, 40), @r"
    ## cats: old against new

    mice: 4 -> 8

    **More mice.**

    **the cat is out**

    **warning**: one night

    | who | mice | ate | slept |
    | --- | ---: | ---: | ---: |
    | house | 12.5 | 3M | 2 s |
    | house > kitchen | 7 | - | 150 µs |
    | a\|b | 12 ± 0.5 |  | - |

    a night is \* long

    Cats sleep.

    ### what it rests on

    - one house

    More mice each night

    2 nights

    | metric | unit | old | new | change | verdict |
    | --- | --- | ---: | ---: | ---: | --- |
    | mice | a night | 4 | 8 | +100 % | better |

    ```text
    over time, 2 parts of 1 s
                least to most
     awake  █▄  1 to 2         cats
    ```

    - note: be\u{1b}[2Jware

    ```text
    as  it is
    ```

    **Not shown**: dogs

    **tom**: `fur = 1`

    a door:

    ```text
    flap = 1
    ```

    (it lacks a lock)

    **More**

    folded

    ```sh
    feed --cat tom  # cat
    feed --all
    ```
    ");
}

/// What a view does not make for programs its tables do: numbers as numbers, sizes in bytes.
#[test]
fn programs_get_the_tables_where_a_view_makes_nothing_else() {
    let json: serde_json::Value = serde_json::from_str(&document().render(Format::Json, 80)).unwrap();
    let rows = &json["tables"][0];
    assert_eq!((&rows[0]["mice"], &rows[0]["ate"]), (&12.5.into(), &(3 << 20).into()));
    assert_eq!((&rows[1]["who"], &rows[1]["ate"]), (&"house > kitchen".into(), &serde_json::Value::Null));
    insta::assert_snapshot!(document().render(Format::Csv, 80), @r"
    who,mice,ate,slept
    house,12.5,3145728,2000000000.0
    house > kitchen,7,,150000.0
    a|b,12 ± 0.5,,
    ");
}

#[test]
fn what_a_view_makes_for_programs_comes_before_its_tables() {
    let document = document()
        .json(|| serde_json::json!({ "cats": 3 }))
        .csv(|| vec![vec![text("cat")], vec![text("tom, \"the\"")]]);
    assert_eq!(document.render(Format::Json, 80), "{\n  \"cats\": 3\n}\n");
    assert_eq!(document.render(Format::Csv, 80), "cat\n\"tom, \"\"the\"\"\"\n");
}

#[test]
fn a_page_has_a_header_its_figures_and_its_numbers() {
    let page = document().render(Format::Html, Style { width: 80, made_by: "pagetide 0" });
    let main = &page[page.find("<main>").unwrap()..page.find("</main>").unwrap()];
    let mut rest = main;
    let mut without_pictures = String::new();
    while let Some(begin) = rest.find("<svg") {
        without_pictures += &rest[..begin];
        // Pictures of a panel hold one more.
        let inner = rest[begin + 4..].find("<svg").map_or(usize::MAX, |at| begin + 4 + at);
        let end = rest[begin..].find("</svg>").unwrap() + begin + 6;
        rest =
            if inner < end { &rest[end + rest[end..].find("</svg>").unwrap() + 6..] } else { &rest[end..] };
    }
    insta::assert_snapshot!(without_pictures + rest, @r#"
    <main><header>
    <p class="eyebrow">cats: old against new</p><h1>mice: 4 -&gt; 8</h1>
    <p class="verdict">More mice.</p>
    <p class="note">the cat is out</p>
    <p class="note">warning: one night</p></header><div class="plaintable">
    <table><thead>
    <tr><th scope="col">who</th><th scope="col">mice</th><th scope="col">ate</th><th scope="col">slept</th></tr></thead><tbody>
    <tr><td>house</td><td>12.5</td><td>3M</td><td>2 s</td></tr>
    <tr><td>  kitchen</td><td>7</td><td>-</td><td>150 µs</td></tr>
    <tr><td>a|b</td><td>12 ± 0.5</td><td></td><td>-</td></tr></tbody></table></div>
    <p class="not">a night is * long</p>
    <p class="not">Cats sleep.</p>
    <section class="summary" id="rests">
    <h2>What it rests on</h2>
    <p class="not">One house.</p></section>
    <section class="figure" id="mice">
    <h2>More mice each night</h2><ul class="legend"><li>the cat</li></ul><div class="columns one"><div class="column" style="grid-row: span 1">
    <figure class="lane"><figcaption>mice</figcaption><div class="plot" data-lines="mice/0/0"></div></figure></div></div>
    <dl class="facts"><dt>n</dt><dd>2 nights</dd><dt>axes</dt><dd>x: nights</dd></dl>
    <details class="commands"><summary>reproduce it</summary><ul></ul></details></section>
    <table class="summary"><caption><b class="new">new</b> against <b class="base">old</b></caption><thead>
    <tr><th class="name" scope="col">metric</th><th class="number base" scope="col">baseline</th><th class="number new" scope="col">candidate</th><th class="number" scope="col">change</th><th class="bar" scope="col"></th><th class="verdict" scope="col">verdict</th></tr></thead><tbody>
    <tr class="better"><th class="name" scope="row">mice<span class="unit">a night</span><small class="help">caught</small></th><td class="number" data-label="baseline">4</td><td class="number" data-label="candidate">8</td><td class="number" data-label="change">+100 %</td><td class="bar"></td><td class="verdict"><span>better</span></td></tr></tbody></table><pre class="command">over time, 2 parts of 1 s
                least to most
     awake  █▄  1 to 2         cats
    </pre>
    <section class="summary">
    <p class="not">note: be\u{1b}[2Jware</p><pre class="command">as  it is</pre>
    <p class="not"><b>Not shown: </b>dogs</p>
    <p><b>tom</b>: <code>fur = 1</code></p>
    <details class="commands" open><summary>a door</summary><pre class="command">flap = 1</pre>
    <p class="not">It lacks a lock.</p></details>
    <details><summary>More</summary>
    <p class="not">folded</p></details>
    <details class="commands" open><summary>Make it again</summary><ul><li><span>cat</span><code class="command">feed --cat tom</code></li><li><span></span><code class="command">feed --all</code></li></ul></details>
    <footer>pagetide 0. One file, no network; a script adds values under the pointer only.</footer></section>
    "#);
    assert!(page.contains("<title>cats: mice: 4 -&gt; 8</title>"));
    assert!(page.contains("\"figures\":{\"mice\":{\"columns\""));
}

#[test]
fn a_figure_is_a_file_of_its_own_by_its_name() {
    let document = document();
    assert_eq!(document.figures(), ["mice"]);
    assert!(document.svg(Some("mice")).is_some_and(|svg| svg.starts_with(MARKS_OF_OURS[1])));
    assert_eq!(document.svg(Some("rats")), None);
}

#[test]
fn markdown_has_the_cells_of_a_terminal() {
    let mut table = Table::new().texts(["metric", "unit"]).numbers(["linux-5.3+shrink-slab-when-boosted"]);
    table.push(["direct reclaim", "kpages", "89 ± 4"]);
    table.push(["kills", "", "12"]);
    table.push(["hits", "%", "missing"]);
    let document = Document::new("").section(Section::untitled().with(table));
    insta::assert_snapshot!(document.render(Format::Markdown, 80), @r"
    | metric | unit | linux-5.3+shrink-slab-when-boosted |
    | --- | --- | ---: |
    | direct reclaim | kpages | 89 ± 4 |
    | kills |  | 12 |
    | hits | % | missing |
    ");
}

#[test]
fn a_name_cannot_steer_the_terminal_nor_break_a_table() {
    let mut table = Table::new().texts(["name"]);
    table.push(["\u{1b}[2Jgone\na|b"]);
    let document = Document::new("").section(Section::untitled().with(table));
    insta::assert_snapshot!(document.render(Format::Text, 80), @r"
    name
    \u{1b}[2Jgone\na|b
    ");
    insta::assert_snapshot!(document.render(Format::Markdown, 80), @r"
    | name |
    | --- |
    | \\u{1b}[2Jgone\\na\|b |
    ");
}
