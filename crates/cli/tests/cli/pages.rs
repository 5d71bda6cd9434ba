//! Pages and figures as files: what is written, what is replaced, and what is left alone.

use std::fs;

use crate::support::{Scene, below_title, refused};

/// A comparison of a fraction of a second, with reclaim.
fn compared() -> Scene {
    let scene = Scene::new();
    let small = "--param hot=1M --param stream=64M --mem 32M";
    scene.data(&format!("compare hot-and-stream {small} --out pair"));
    scene
}

#[test]
fn a_page_is_one_file_that_says_how_large_it_is_and_is_the_same_each_time() {
    let scene = compared();
    let output = scene.output("report pair -o page.html");
    assert!(output.status.success() && output.stdout.is_empty());
    let read = |name: &str| fs::read_to_string(scene.path().join(name)).unwrap();
    let page = read("page.html");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, format!("`page.html`: {} KiB\n", page.len().div_ceil(1024)));
    for part in [
        "Does a file that is in use stay in memory while another cgroup streams past it?",
        "hot_pages_cached: ",
        "id=\"story\"",
        "pagetide report pair -o page.html",
        "pagetide run ",
    ] {
        assert!(page.contains(part), "`{part}`");
    }
    scene.data("report pair -o page.html -q");
    assert_eq!(read("page.html"), page, "an earlier page is replaced, by the same bytes");
    assert_eq!(scene.names().iter().filter(|name| !name.starts_with("pair")).count(), 1, "nothing else");
}

#[test]
fn a_figure_is_one_file_and_names_can_be_asked_for() {
    let scene = compared();
    scene.data("report pair --plot first.svg");
    scene.data("report pair --plot story.svg --figure story");
    scene.data("report pair --plot changes.svg --figure changes");
    let read = |name: &str| fs::read_to_string(scene.path().join(name)).unwrap();
    assert_eq!(read("first.svg"), read("story.svg"));
    assert!(read("changes.svg").contains("hot_pages_cached"));
    let shown = scene.shown("report pair --plot other.svg --figure no-such");
    assert!(shown.contains("error: unknown figure `no-such`"), "{shown}");
    let shown = scene.shown("report pair --plot other.svg --figure ages");
    assert!(shown.contains("error: there is no figure `ages` to draw of these recordings"), "{shown}");
    assert!(shown.contains("hint: there are story, "), "{shown}");
    assert!(shown.ends_with("exit 1"), "{shown}");
}

#[test]
fn a_comparison_draws_a_figure_beside_its_tables() {
    let scene = compared();
    let table = scene.data("compare pair");
    assert_eq!(scene.data("compare pair --plot story.svg --figure story"), table);
    scene.data("report pair --plot reported.svg --figure story");
    let read = |name: &str| fs::read_to_string(scene.path().join(name)).unwrap();
    // Beside it stand the commands: of the columns, or of the recordings in them.
    let drawn = |name: &str| read(name).split("<desc>").next().map(str::to_owned);
    assert_eq!(drawn("story.svg"), drawn("reported.svg"));
    scene.file("mine.svg", "<svg/>");
    let refused = scene.shown("compare hot-and-stream --plot mine.svg");
    assert!(refused.starts_with("error: `mine.svg`") && refused.ends_with("exit 1"), "{refused}");
}

/// Beside its table each command draws what `report` draws of the recordings that it has kept.
#[test]
fn every_table_has_its_figure() {
    let scene = Scene::new();
    scene.file("trace.csv", (0..400).map(|i| format!("{i},{},4096\n", i % 40)).collect::<String>());
    let small = "hot-and-stream --param hot=1M --param stream=24M";
    let features = "--features root-aging,shared-memcg-walk";
    let commands = [
        (format!("run {small} --mem 32M"), "story"),
        (format!("sweep {small} --mem 16M,32M --kernel linux-5.3,linux-5.4 --seed 1,2"), "grid"),
        (format!("ablate {small} --mem 16M --kernel linux-5.4 {features}"), "ablation"),
        ("replay trace.csv --policy lru,clock --capacity 5,10,20".to_owned(), "misses"),
    ];
    for (command, figure) in commands {
        let table = scene.data(&format!("{command} --out {figure}-runs"));
        let plotted = scene.output(&format!("{command} --plot {figure}.svg --figure {figure}"));
        let told = String::from_utf8(plotted.stderr).unwrap();
        assert!(plotted.status.success() && told.contains(&format!("`{figure}.svg`: ")), "{told}");
        let plotted = String::from_utf8(plotted.stdout).unwrap();
        assert_eq!(below_title(&plotted), below_title(&table), "{command}");
        scene.data(&format!("report {figure}-runs --plot reported-{figure}.svg --figure {figure}"));
        let read = |name: String| fs::read_to_string(scene.path().join(name)).unwrap();
        // Beside it stand the commands: of the runs, or of the recordings that were kept.
        let drawn = |name: String| read(name).split("<desc>").next().map(str::to_owned);
        assert_eq!(drawn(format!("{figure}.svg")), drawn(format!("reported-{figure}.svg")), "{command}");
    }
}

#[test]
fn a_figure_that_cannot_be_written_is_refused_before_anything_runs() {
    let scene = Scene::new();
    scene.file("mine.svg", "<svg/>").file("trace.csv", "0,1,4096\n");
    let commands = [
        "run hot-and-stream --plot figure.png",
        "sweep hot-and-stream --mem 1G,2G --plot figure",
        "ablate hot-and-stream --features root-aging --plot mine.svg",
        "replay trace.csv --policy lru --capacity 5 --plot no-such-folder/figure.pdf",
        "compare hot-and-stream --plot figure.html",
        "run hot-and-stream --figure story",
        "run hot-and-stream --plot new.svg --figure stroy",
        "run hot-and-stream --plot new.svg --figure changes",
        "compare hot-and-stream --plot new.svg --figure ages",
        "replay trace.csv --policy lru --capacity 5 --plot new.svg --figure ecdf",
        "report no-such-folder --plot new.svg --figure change",
    ];
    let shown = refused(&scene, &commands);
    assert_eq!(shown.matches("error: ").count(), commands.len(), "{shown}");
    for text in [
        "error: unknown figure `stroy`\nhint: did you mean `story`?",
        "error: `run` has no figure `changes`\nhint: `run` draws story, waits, ecdf-SAMPLES",
        "; `report` draws it of runs with `--events pages --out DIR`",
        "hint: did you mean `ecdf-SAMPLES`?",
        "hint: did you mean `changes`?",
        "error: `figure.png` is not named as what it would be: figures are written as SVG",
        "hint: name it `figure.svg`",
        "hint: name it `no-such-folder/figure.svg`",
        "`mine.svg` exists already",
    ] {
        assert!(shown.contains(text), "`{text}`: {shown}");
    }
    let none = scene.shown("replay trace.csv --policy lru --capacity 5 --plot one.svg --figure story");
    assert!(none.contains("there is no figure `story` to draw"), "{none}");
    assert_eq!(scene.names(), ["mine.svg", "trace.csv"]);
}

/// Several settings: one has its figures, all are in the grid.
#[test]
fn a_sweep_has_a_grid_on_its_page() {
    let scene = Scene::new();
    let swept = "--param stream=24M,64M --mem 16M,32M --kernel linux-5.3,linux-5.4 --seed 1,2";
    scene.data(&format!("sweep hot-and-stream --param hot=1M {swept} --out grid"));
    scene.data("report grid -o page.html");
    let page = fs::read_to_string(scene.path().join("page.html")).unwrap();
    for part in [
        "id=\"grid\"",
        "2 kernels x 4 settings, each with 2 seeds, 16 runs",
        "x: stream; y: mem; each panel a kernel",
    ] {
        assert!(page.contains(part), "`{part}`");
    }
}

#[test]
fn events_of_pages_become_maps() {
    let scene = Scene::new();
    scene.data("run hot-and-stream --param hot=1M --param stream=64M --mem 32M --events pages --out one");
    scene.data("report one -o page.html");
    let page = fs::read_to_string(scene.path().join("page.html")).unwrap();
    for part in ["id=\"ages\"", "id=\"regions\"", "There is nothing to compare it with."] {
        assert!(page.contains(part), "`{part}`");
    }
}

#[test]
fn what_is_no_page_of_ours_is_left_alone() {
    let scene = compared();
    scene.file("mine.html", "<p>mine").file("mine.svg", "<svg/>");
    fs::create_dir(scene.path().join("folder")).unwrap();
    let commands = [
        "report pair -o mine.html",
        "report pair --plot mine.svg",
        "report pair -o folder",
        "report pair -o page.pdf",
        "report pair -o no-such-folder/page.html",
        "report pair -o page.html --format json",
        "report pair --figure story",
        "report folder -o page.html",
    ];
    let shown = refused(&scene, &commands);
    assert_eq!(shown.matches("error: ").count(), commands.len(), "{shown}");
    for text in [
        "`mine.html` exists already",
        "`mine.svg` exists already",
        "`folder` is a folder",
        "name it `page.html`",
    ] {
        assert!(shown.contains(text), "`{text}`: {shown}");
    }
    assert_eq!(fs::read_to_string(scene.path().join("mine.html")).unwrap(), "<p>mine");
}

/// The comparison of `sequential-readers` has 72 columns, of nine settings: nobody can look at that many.
#[test]
fn a_page_of_many_columns_is_about_the_setting_of_the_first() {
    let scene = Scene::new();
    scene.data(
        "sweep hot-and-stream --kernel linux-5.4,linux-5.5 --mem 64M..76M+2M --param hot=1M --param stream=2M \
         --out many -q",
    );
    let shown = scene.shown("report many -o many.html");
    assert!(
        shown.starts_with("warning: 12 of 14 columns are of other settings than the first one"),
        "{shown}"
    );
    let page = fs::read_to_string(scene.path().join("many.html")).unwrap();
    assert!(page.contains("2 variants"), "those of 64M");
}
