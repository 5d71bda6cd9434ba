//! What the page of a workload asks, and which story it tells: see `pagetide-report` for how it looks.
//!
//! Left out: findings, which come from the recordings alone.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use mm::Version;
use mm::version::feature::Feature;
use recording::Recording;
use report::heat::Heat;
use report::page::{
    Counts, FIGURE_OF_SAMPLES, FIGURES, Factors, Page, SettingGrid, Story, StoryLine, StoryPanel, Tells,
};
use report::{Group, MARKS_OF_OURS, View};
use workload::UnknownName;

use crate::error::LabError;
use crate::keep::folders::Loaded;
use crate::keep::folders::is_replay;
use crate::keep::trace::{check_folder_of, new_file_beside, unwritable};
use crate::resolve::planned::FEATURES_MAX;
use crate::resolve::texts::shell_quoted;
use crate::show::heat::heat;
use crate::show::view::view;

/// Where memory was warm in the first run of each column: the one with the lowest seed.
///
/// # Errors
/// Events that cannot be read.
pub fn heats(columns: &[&Loaded]) -> Result<Vec<Option<Heat>>, LabError> {
    let of_column = |loaded: &&Loaded| {
        let runs = loaded.recordings.iter().zip(&loaded.folders);
        runs.min_by_key(|(run, _)| run.seed).map_or(Ok(None), |(run, folder)| heat(folder, run))
    };
    columns.iter().map(of_column).collect()
}

/// A column of a page, whose command is the recording's own where it has one: it names no folder.
pub fn group(loaded: &Loaded) -> Group<'_> {
    let own = loaded.recordings.first().map(|run| run.command.clone()).filter(|command| !command.is_empty());
    let group = loaded.group();
    Group { command: own.unwrap_or_else(|| group.command.clone()), ..group }
}

/// More columns than this are not drawn beside each other, if some differ in their setting and not in their kernel.
const COLUMNS_MAX: usize = 12;

/// The columns that a page has room for beside each other: all, or where these are too many those of the first one's
/// setting, which differ from it in kernel and seed only; and what to say of the others, which are in the grid.
pub fn of_one_setting(columns: &[Loaded]) -> (Vec<&Loaded>, Option<String>) {
    let all = columns.len();
    let Some(first) = columns.first().and_then(setting).filter(|_| all > COLUMNS_MAX) else {
        return (columns.iter().collect(), None);
    };
    let like_first = |column: &&Loaded| setting(column).is_some_and(|setting| setting == first);
    let kept: Vec<&Loaded> = columns.iter().filter(like_first).collect();
    if kept.len() < 2 {
        return (columns.iter().collect(), None);
    }
    let left_out = all - kept.len();
    let told = format!(
        "{left_out} of {all} columns are of other settings than the first one: they are in the grid, and not in the other \
         figures; name their folders to compare them"
    );
    (kept, (left_out > 0).then_some(told))
}

/// Columns that differ in their setting, as a grid of settings and kernels; `None` where they do not, and for replays,
/// whose figure is another one.
pub fn grid(columns: &[Loaded]) -> Option<SettingGrid<'_>> {
    grid_of(&columns.iter().map(group).collect::<Vec<_>>())
}

/// [`grid`] of columns that are in memory.
pub fn grid_of<'a>(columns: &[Group<'a>]) -> Option<SettingGrid<'a>> {
    let runs = || columns.iter().flat_map(|column| column.recordings.first());
    let settings = runs().map(|run| Some(flat(&setting_of(run)?))).collect::<Option<Vec<_>>>()?;
    if columns.iter().flat_map(|column| &column.recordings).any(|run| is_replay(&run.scenario_toml)) {
        return None;
    }
    let names: BTreeSet<&String> = settings.iter().flat_map(BTreeMap::keys).collect();
    let differs = |name: &&&String| settings.iter().any(|of| of.get(**name) != settings[0].get(**name));
    let axes: Vec<&String> = names.into_iter().filter(|name| differs(&name)).collect();
    let mut grid = SettingGrid {
        axes: axes.iter().map(|axis| axis.rsplit('/').next().unwrap_or(axis).to_owned()).collect(),
        settings: Vec::new(),
        kernels: Vec::new(),
        cells: Vec::new(),
    };
    let mut placed: BTreeMap<(usize, usize), Group<'_>> = BTreeMap::new();
    for (column, of) in columns.iter().zip(&settings) {
        let run = column.recordings.first()?;
        let kernel = if run.kernel.is_empty() { &run.backend } else { &run.kernel };
        let values: Vec<String> =
            axes.iter().map(|axis| of.get(*axis).cloned().unwrap_or_else(|| "default".to_owned())).collect();
        let place = (place_of(&mut grid.kernels, kernel.clone()), place_of(&mut grid.settings, values));
        match placed.get_mut(&place) {
            // A sweep has a column for each seed.
            Some(cell) => cell.recordings.extend(&column.recordings),
            None => drop(placed.insert(place, column.clone())),
        }
    }
    let cell = |kernel, setting| placed.get(&(kernel, setting)).cloned();
    let all = 0..grid.settings.len();
    grid.cells = (0..grid.kernels.len())
        .map(|kernel| all.clone().map(|setting| cell(kernel, setting)).collect())
        .collect();
    (grid.settings.len() > 1).then_some(grid)
}

/// Where `value` stands in `list`, at its end if it is new.
fn place_of<T: PartialEq>(list: &mut Vec<T>, value: T) -> usize {
    list.iter().position(|other| *other == value).unwrap_or_else(|| {
        list.push(value);
        list.len() - 1
    })
}

/// A table's values by their paths, such as `sysctls/vm.swappiness`.
fn flat(table: &toml::Table) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    for (name, value) in table {
        match value {
            toml::Value::Table(inside) => {
                let inside = flat(inside).into_iter();
                values.extend(inside.map(|(inner, value)| (format!("{name}/{inner}"), value)));
            }
            toml::Value::String(text) => drop(values.insert(name.clone(), text.clone())),
            other => drop(values.insert(name.clone(), other.to_string())),
        }
    }
    values
}

/// What a column ran, but for kernel and seed.
fn setting(column: &Loaded) -> Option<toml::Table> {
    setting_of(column.recordings.first()?)
}

fn setting_of(run: &Recording) -> Option<toml::Table> {
    let mut scenario: toml::Table = run.scenario_toml.parse().ok()?;
    for key in ["kernel", "seed"] {
        scenario.remove(key);
    }
    Some(scenario)
}

/// Runs as columns: those that differ in their seed only are one.
pub fn columns_of<'a>(runs: impl IntoIterator<Item = &'a Recording>) -> Vec<Group<'a>> {
    let mut columns: Vec<(Option<toml::Table>, &str, Group<'a>)> = Vec::new();
    for run in runs {
        let setting = setting_of(run);
        let kernel = if run.kernel.is_empty() { &run.backend } else { &run.kernel };
        let same = |(other, of, _): &&mut (Option<toml::Table>, &str, Group<'_>)| {
            setting.is_some() && *other == setting && of == kernel
        };
        match columns.iter_mut().find(same) {
            Some((.., column)) => column.recordings.push(run),
            None => {
                let parts = run.label.split(", ").filter(|part| !part.starts_with("seed="));
                let label = match parts.collect::<Vec<_>>().join(", ") {
                    none if none.is_empty() => kernel.clone(),
                    label => label,
                };
                let column = Group { label, command: run.command.clone(), recordings: vec![run] };
                columns.push((setting, kernel, column));
            }
        }
    }
    columns.into_iter().map(|(.., column)| column).collect()
}

/// Runs that are in memory as a page, for one of its figures: beside each other stand those columns that
/// [`of_one_setting`] would keep.
pub fn with_page<'a, T>(
    runs: impl IntoIterator<Item = &'a Recording>,
    then: impl FnOnce(&Page<'_>) -> T,
) -> T {
    let columns = columns_of(runs);
    let grid = grid_of(&columns);
    let first = columns.first().and_then(|column| setting_of(column.recordings[0]));
    let like_first = |column: &&Group<'_>| setting_of(column.recordings[0]) == first;
    let kept: Vec<Group<'_>> = columns.iter().filter(like_first).cloned().collect();
    let kept = if columns.len() > COLUMNS_MAX && kept.len() > 1 { kept } else { columns };
    then(&page(&kept, grid, Vec::new(), Vec::new(), String::new()))
}

/// The page of `groups`, whose heat is `heats`, and of all settings; `command` makes it again.
pub fn page<'a>(
    groups: &'a [Group<'a>],
    grid: Option<SettingGrid<'a>>,
    heats: Vec<Option<Heat>>,
    warnings: Vec<String>,
    command: String,
) -> Page<'a> {
    let recordings = || groups.iter().flat_map(|group| group.recordings.iter().copied());
    let workload = recordings().next().map_or("", |recording: &Recording| &recording.workload);
    let view: View = view(recordings(), false, warnings);
    Page {
        groups,
        view,
        question: question(workload, groups),
        story: story(workload),
        heats,
        factors: factors(groups),
        grid,
        command,
    }
}

/// The command that makes the page of `folders` again.
pub fn command(folders: &[PathBuf], output: Option<&Path>) -> String {
    let quoted = |path: &Path| shell_quoted(&path.to_string_lossy());
    let folders = folders.iter().map(|folder| quoted(folder)).collect::<Vec<_>>().join(" ");
    let output = output.map_or_else(|| "report.html".to_owned(), quoted);
    format!("pagetide report {folders} -o {output}")
}

/// Refuses a place where a figure cannot be written.
///
/// # Errors
/// A name of another form than SVG, and those of [`check_writable`].
pub fn check_figure(path: &Path) -> Result<(), LabError> {
    check_named(path, "svg", "figures are written as SVG")
}

/// Refuses a figure that no page has, or none of these runs: `never` are those that their command does not draw.
///
/// # Errors
/// An unknown name, or one of `never`.
pub fn check_figure_name(command: &str, name: &str, never: &[&str]) -> Result<(), LabError> {
    let of_samples = format!("{FIGURE_OF_SAMPLES}SAMPLES");
    let drawn = FIGURES.into_iter().filter(|figure| !never.contains(figure));
    let drawn: Vec<&str> = drawn.chain([&*of_samples]).collect();
    if drawn.contains(&name)
        || name.strip_prefix(FIGURE_OF_SAMPLES).is_some_and(|samples| !samples.is_empty())
    {
        return Ok(());
    }
    if never.contains(&name) {
        let here = format!("`{command}` draws {}", drawn.join(", "));
        let hint = match name {
            "ages" | "regions" => {
                format!("{here}; `report` draws it of runs with `--events pages --out DIR`")
            }
            _ => here,
        };
        return Err(LabError::refused(format!("`{command}` has no figure `{name}`"), hint));
    }
    Err(UnknownName::new("figure", name, drawn).into())
}

/// Refuses a place where a page cannot be written.
///
/// # Errors
/// A name of another form than HTML, and those of [`check_writable`].
pub fn check_page(path: &Path) -> Result<(), LabError> {
    check_named(path, "html", "pages are written as HTML")
}

fn check_named(path: &Path, extension: &str, form: &str) -> Result<(), LabError> {
    match path.extension() {
        Some(named) if named.eq_ignore_ascii_case(extension) => check_writable(path),
        _ if path.is_dir() => Err(LabError::file_exists(path)),
        _ => Err(LabError::refused(
            format!("`{}` is not named as what it would be: {form}", path.display()),
            format!("name it `{}`", path.with_extension(extension).display()),
        )),
    }
}

/// Refuses a place where [`write()`] would refuse to write.
///
/// # Errors
/// As [`write()`], as far as it can be known before.
pub fn check_writable(path: &Path) -> Result<(), LabError> {
    match may_replace(path).map_err(|source| unwritable(Some(path), source))? {
        true => check_folder_of(path),
        false => Err(LabError::file_exists(path)),
    }
}

/// Writes a page or a figure to `path`: whole, or not at all. An earlier page or figure is replaced, and nothing
/// else is. Returns its bytes.
///
/// # Errors
/// A file that is something else, or a place that cannot be written.
pub fn write(path: &Path, text: &str) -> Result<usize, LabError> {
    check_writable(path)?;
    let failed = |source| unwritable(Some(path), source);
    let mut file = new_file_beside(path).map_err(failed)?;
    file.as_file_mut().write_all(text.as_bytes()).map_err(failed)?; // Whose errors have no hidden name in them.
    file.as_file().sync_all().map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(text.len())
}

/// Whether nothing is at `path` yet, or what we wrote ourselves.
fn may_replace(path: &Path) -> io::Result<bool> {
    let metadata = match path.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    if !metadata.is_file() {
        return Ok(false);
    }
    let mut begin = Vec::new();
    std::fs::File::open(path)?.take(512).read_to_end(&mut begin)?;
    Ok(MARKS_OF_OURS.iter().any(|mark| begin.starts_with(mark.as_bytes())))
}

/// That a page has no figure of this name; `figures` are those that it has.
pub fn no_figure(name: Option<&str>, figures: &[&str]) -> LabError {
    let name = name.map_or_else(String::new, |name| format!(" `{name}`"));
    let hint = match figures {
        [] => "they have no readings over time, no samples and no waits".to_owned(),
        figures => format!("there are {}", figures.join(", ")),
    };
    LabError::refused(format!("there is no figure{name} to draw of these recordings"), hint)
}

/// The features in which simulated kernels differ, as changes to the first one.
fn factors(groups: &[Group<'_>]) -> Option<Factors> {
    let version = |group: &Group<'_>| {
        let run = group.recordings.first().filter(|run| run.is_simulated())?;
        Version::parse(&run.kernel).ok()
    };
    let versions = groups.iter().map(version).collect::<Option<Vec<Version>>>()?;
    let base = versions.first().filter(|base| versions.iter().all(|version| version.base == base.base))?;
    let has = |version: &Version, feature: Feature| version.rules.has(feature.on());
    let differs =
        |feature: &Feature| versions.iter().any(|version| has(version, *feature) != has(base, *feature));
    let features: Vec<Feature> = Feature::ALL.iter().copied().filter(differs).collect();
    if features.len() > FEATURES_MAX {
        return None;
    }
    let mask = |version: &Version| {
        let changed = |(bit, feature): (usize, &Feature)| {
            u32::from(has(version, *feature) != has(base, *feature)) << bit
        };
        features.iter().enumerate().map(changed).sum()
    };
    let name = |feature: &Feature| format!("{}{feature}", if has(base, *feature) { '-' } else { '+' });
    Some(Factors { names: features.iter().map(name).collect(), of: versions.iter().map(mask).collect() })
}

fn question(workload: &str, groups: &[Group<'_>]) -> String {
    let question = match workload {
        "anon-and-file" => "Which of hot memory, cold memory and a file makes room for the others?",
        "containers" => "What does a container do to the one beside it, and to itself at its limit?",
        "hot-and-stream" => "Does a file that is in use stay in memory while another cgroup streams past it?",
        "mapped-and-stream" => {
            "Does a file that a program accesses through a mapping stay in memory beside a stream?"
        }
        "random-calls" => "What do calls in no order of anybody's come to, here and there?",
        "small-files" => {
            "How fast are small files created once memory is full, and what is reclaimed for them?"
        }
        "sequential-readers" => "How much time do readers lose in waits of reclaim that nothing could end?",
        "inode-storm" => "How much memory can be pinned before the creation of files runs out of it?",
        "huge-faults" => {
            "Do page faults get huge pages beside the creation of small files, and how long do they wait?"
        }
        "simoop" => "How long do allocations and works of a busy machine take, at the tail above all?",
        replay if replay.starts_with("replay ") => {
            "Which cache misses least of this trace, and how does that change with its size?"
        }
        _ => "",
    };
    match (question, groups) {
        ("", [only]) => format!("What did {workload} do on {}?", only.label),
        ("", [base, new]) => format!("What changes from {} to {} in {workload}?", base.label, new.label),
        ("", _) => format!("What changes between {} variants in {workload}?", groups.len()),
        (question, _) => question.to_owned(),
    }
}

const fn line(name: &'static str, columns: &'static [&'static str]) -> StoryLine {
    StoryLine { name, columns }
}

const FILE: &[&str] = &["nr_active_file", "nr_inactive_file"];
const ANON: &[&str] = &["nr_active_anon", "nr_inactive_anon"];
const SLAB: &[&str] = &["nr_slab_reclaimable", "nr_slab_unreclaimable"];
/// Kernels have counted refaults under two names.
const REFAULTS: &[&str] = &["workingset_refault", "workingset_refault_file", "workingset_refault_anon"];
const STALLS: &[&str] =
    &["allocstall", "allocstall_dma", "allocstall_dma32", "allocstall_normal", "allocstall_movable"];

const CACHES: StoryPanel = StoryPanel {
    name: "page cache and slab",
    counts: Counts::Pages,
    lines: &[line("page cache", FILE), line("slab", SLAB)],
};

const HOT_AND_STREAM: Story = Story {
    panels: &[
        StoryPanel {
            name: "page cache of cgroup A, which holds the hot file",
            counts: Counts::Bytes,
            lines: &[line("page cache of A", &["cg_A_file", "cg_P/A_file"])],
        },
        StoryPanel {
            name: "page cache of cgroup B, which streams",
            counts: Counts::Bytes,
            lines: &[line("page cache of B", &["cg_B_file", "cg_P/B_file"])],
        },
        StoryPanel { name: "refaults", counts: Counts::Events, lines: &[line("refaults", REFAULTS)] },
    ],
    tells: Tells::EndOf("stream_done"),
};

const SMALL_FILES: Story = Story {
    panels: &[
        StoryPanel {
            name: "slab and page cache",
            counts: Counts::Pages,
            lines: &[line("slab", SLAB), line("page cache", FILE)],
        },
        StoryPanel {
            name: "slab objects scanned",
            counts: Counts::Events,
            lines: &[line("slab objects scanned", &["slabs_scanned"])],
        },
    ],
    tells: Tells::Most,
};

const SEQUENTIAL_READERS: Story = Story {
    panels: &[
        StoryPanel {
            name: "allocation stalls",
            counts: Counts::Events,
            lines: &[line("allocation stalls", STALLS)],
        },
        CACHES,
    ],
    tells: Tells::TotalOf("read_done"),
};

const INODE_STORM: Story = Story {
    panels: &[
        StoryPanel {
            name: "pinned memory and slab",
            counts: Counts::Pages,
            lines: &[line("pinned memory", &["nr_unevictable"]), line("slab", SLAB)],
        },
        StoryPanel {
            name: "slab objects scanned",
            counts: Counts::Events,
            lines: &[line("slab objects scanned", &["slabs_scanned"])],
        },
    ],
    tells: Tells::Most,
};

const HUGE_FAULTS: Story = Story {
    panels: &[
        StoryPanel {
            name: "huge page faults",
            counts: Counts::Events,
            lines: &[
                line("huge pages given to faults", &["thp_fault_alloc"]),
                line("faults that fell back to small pages", &["thp_fault_fallback"]),
            ],
        },
        StoryPanel {
            name: "allocations that mix mobility types",
            counts: Counts::Events,
            lines: &[line("mixing allocations", &["extfrag_events_all"])],
        },
        CACHES,
    ],
    tells: Tells::TotalOf("faulted"),
};

const ANY: Story = Story {
    panels: &[StoryPanel {
        name: "page cache and anonymous memory",
        counts: Counts::Pages,
        lines: &[line("page cache", FILE), line("anonymous memory", ANON)],
    }],
    tells: Tells::Most,
};

fn story(workload: &str) -> Story {
    match workload {
        "hot-and-stream" => HOT_AND_STREAM,
        "small-files" => SMALL_FILES,
        "sequential-readers" => SEQUENTIAL_READERS,
        "inode-storm" => INODE_STORM,
        "huge-faults" => HUGE_FAULTS,
        _ => ANY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_asks_its_own_question() {
        for spec in workload::catalog() {
            assert!(!question(spec.name, &[]).contains(spec.name), "{}", spec.name);
        }
    }
}
