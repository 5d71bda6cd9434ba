//! How near the model is known to be to real kernels: one table of what worlds came to, part of the program.
//!
//! `data/known-error.csv` has a row for each counter by kernel, workload and scope; its kernel is the model's. The
//! workload `all` is every one of them. A row of the kind `pool` is what many counters come to: `counts` are those of
//! `/proc/vmstat` that tell of reclaim and swap, and metrics that are no time; `times` are metrics that are one. A
//! counter of a cgroup stands without the group's path, so that a world may have several of one row.
//!
//! Left out: who makes the table (the generators of this repository's documents, from folders of worlds). Neighbours:
//! `likeness.rs` finds the rows for a run, by `ranges.rs`, what each parameter of a world is drawn from, and `cost.rs`,
//! which bounds how much a world does.

pub(crate) mod cost;
pub(crate) mod likeness;
pub(crate) mod ranges;

pub use likeness::known_of;

/// The table.
const TABLE: &str = include_str!("../../data/known-error.csv");
/// Its first line.
const HEADER: &str =
    "kernel,workload,scope,kind,counter,worlds,spread,within_2,within_10,within_25,beyond,median,p90";

/// The workload of rows of all workloads.
pub const ALL: &str = "all";
/// The kind of what many counters come to.
pub const POOL: &str = "pool";
/// The pool of results and of counters of reclaim.
pub const COUNTS: &str = "counts";
/// The pool of times and rates.
pub const TIMES: &str = "times";

/// What worlds came to for one counter.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownError {
    /// The model's kernel.
    pub kernel: String,
    /// The workload, or [`ALL`].
    pub workload: String,
    /// `limit` or `global`.
    pub scope: String,
    /// `metric`, `vmstat`, `memcg`, `run` or [`POOL`].
    pub kind: String,
    /// The counter, or [`COUNTS`] or [`TIMES`].
    pub counter: String,
    /// In how many worlds it was judged.
    pub worlds: usize,
    /// How often it was in the real runs' own spread, and outside of it within 2, 10, 25 %, and beyond that.
    pub near: [usize; 5],
    /// The median of the errors without their signs, as a part of the real value; infinite where that is 0.
    pub median: f64,
    /// Nine of ten errors are at most this.
    pub p90: f64,
}

/// All rows of the table that is part of the program.
pub fn known_errors() -> Vec<KnownError> {
    read(TABLE).expect("the embedded table is well-formed")
}

/// Those of the kernels that one of these is or is made from: most of the table is of others, and takes longer to read
/// than many a run.
pub(crate) fn known_errors_of(kernels: &[&str]) -> Vec<KnownError> {
    let is_asked = |line: &&str| {
        let kernel = line.split(',').next().unwrap_or_default();
        kernels.iter().any(|asked| is_made_from(asked, kernel))
    };
    let rows: Option<_> = TABLE.lines().skip(1).filter(is_asked).map(row).collect();
    rows.expect("the embedded table is well-formed")
}

/// Whether a kernel is `base`, or that with features added or taken away.
pub(crate) fn is_made_from(kernel: &str, base: &str) -> bool {
    kernel.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with(['+', '-']))
}

/// The rows of a table; none where it is something else.
pub fn read(text: &str) -> Option<Vec<KnownError>> {
    let mut lines = text.lines();
    (lines.next()? == HEADER).then_some(())?;
    lines.map(row).collect()
}

fn row(line: &str) -> Option<KnownError> {
    let cells: [&str; 13] = line.split(',').collect::<Vec<_>>().try_into().ok()?;
    let [kernel, workload, scope, kind, counter] = [0, 1, 2, 3, 4].map(|cell| cells[cell].to_owned());
    let mut near = [0; 5];
    for (count, cell) in near.iter_mut().zip(&cells[6..11]) {
        *count = cell.parse().ok()?;
    }
    Some(KnownError {
        kernel,
        workload,
        scope,
        kind,
        counter,
        worlds: cells[5].parse().ok()?,
        near,
        median: cells[11].parse().ok()?,
        p90: cells[12].parse().ok()?,
    })
}

/// These rows as a table, which [`read`] takes.
pub fn write(rows: &[KnownError]) -> String {
    let mut text = format!("{HEADER}\n");
    for row in rows {
        let KnownError { kernel, workload, scope, kind, counter, worlds, near, median, p90 } = row;
        let near = near.map(|count| count.to_string()).join(",");
        let line = format!("{kernel},{workload},{scope},{kind},{counter},{worlds},{near}");
        text += &format!("{line},{},{}\n", part(*median), part(*p90));
    }
    text
}

/// A part with four digits behind the point: more is noise.
fn part(value: f64) -> String {
    if value.is_infinite() { "inf".to_owned() } else { ((value * 1e4).round() / 1e4).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_the_program_reads_and_writes_back() {
        assert_eq!(write(&known_errors()), TABLE);
    }

    #[test]
    fn a_part_of_the_table_has_all_rows_of_its_kernels() {
        for (asked, own) in [("linux-6.12+lru-gen", "linux-6.12"), ("linux-6.1", "linux-6.1")] {
            let expected: Vec<_> = known_errors().into_iter().filter(|row| row.kernel == own).collect();
            assert!(!expected.is_empty(), "{asked}");
            assert_eq!(known_errors_of(&[asked]), expected, "{asked}");
        }
        assert_eq!(known_errors_of(&["linux-6", "v6.12"]), []);
    }

    #[test]
    fn each_row_is_of_worlds_and_half_of_them_are_nearer_than_nine_of_ten() {
        for row in known_errors() {
            assert!(row.near.iter().sum::<usize>() >= row.worlds, "{row:?}");
            assert!(row.worlds > 0 && 0.0 <= row.median && row.median <= row.p90, "{row:?}");
        }
    }

    #[test]
    fn another_table_is_refused() {
        assert_eq!(read(""), None);
        assert_eq!(read("kernel,workload\nlinux-6.12,all\n"), None);
        assert_eq!(read(&format!("{HEADER}\nlinux-6.12,all,limit,pool,counts,x,0,0,0,0,0,0,0\n")), None);
        assert_eq!(read(&format!("{HEADER}\n")), Some(Vec::new()));
    }
}
