//! How a command that a page names is tried: as it stands, small, as a dry run, or not at all, which is said.
//!
//! A page is for people with an afternoon and a kernel; a test has a second. So the files of `hot-and-stream` are made
//! small, what needs a real kernel is resolved but not run, and what fetches or follows is only read. That every
//! command can be typed at all is held by a test of `cli`.

/// What becomes of a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// `pagetide` with these words.
    Run(Vec<String>),
    /// Nothing, for this reason.
    Not(&'static str),
}

/// Settings of `hot-and-stream` that take a moment; the first two are its files.
const SMALL: [(&str, &str); 4] = [("hot", "1M"), ("stream", "64M"), ("low", "512k"), ("limit", "16M")];
const SMALL_MEM: &str = "32M";
/// What a real kernel is to do is planned only.
const PLAN: &str = "--dry-run";
/// The machine that has no less than this.
const LARGER: (&str, &str) = ("guest-uml", "64M");
/// Why a command of others is not tried.
pub(crate) const FOREIGN: &str = "no command of pagetide";
/// The program that stands for yours.
pub(crate) const SERVICE: &str = "./my-service";
/// What a policy is named by that is not in the tree.
const OF_OTHERS: &str = "+cache-ext=cache_ext_";
/// Workloads that have no small setting worth a second, and take several.
const LARGE: [&str; 5] = ["small-files", "huge-faults", "simoop", "inode-storm", "sequential-readers"];
/// Commands that can print what they would run.
const PLANS: [&str; 5] = ["run", "compare", "sweep", "ablate", "explain"];

/// The commands of a script, one each: lines that go on are one, comments and what a shell does with the output
/// are left out.
pub(crate) fn commands(script: &str) -> Vec<String> {
    let script = script.replace("\\\n", " ");
    let lines = script.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

/// Whether `command` does more where it is typed than where it is tried.
pub(crate) fn is_planned(command: &str) -> bool {
    let Way::Run(words) = way(command) else { return false };
    !command.contains(PLAN) && words.last().is_some_and(|word| word == PLAN)
}

/// How `command` is tried.
pub(crate) fn way(command: &str) -> Way {
    let mut words = words_of_a_shell(command);
    if words.starts_with(&["cargo".to_owned(), "run".to_owned(), "--release".to_owned(), "--".to_owned()]) {
        words.splice(..4, ["pagetide".to_owned()]);
    }
    if words.first().is_none_or(|word| word != "pagetide") {
        return Way::Not(FOREIGN);
    }
    words.remove(0);
    let has = |what: &dyn Fn(&str) -> bool| words.iter().any(|word| what(word));
    let first = words.first().map_or("", String::as_str).to_owned();
    let real = has(&|word| word.starts_with("uml:") || word.starts_with("vm:") || word == "host");
    if has(&|word| word == "fetch") {
        return Way::Not("fetches a kernel");
    }
    let part = words.get(1).map_or("", String::as_str);
    if first == "worlds" && ["shrink", "explain"].contains(&part) {
        return Way::Not("needs worlds of a real kernel");
    }
    if has(&|word| word.contains(OF_OTHERS)) {
        return Way::Not("needs an object that others compile");
    }
    let is_large = has(&|word| LARGE.contains(&word));
    if (real || is_large) && PLANS.contains(&first.as_str()) {
        words.push(PLAN.to_owned());
        return Way::Run(words);
    }
    // A program that is followed for real work, such as a build, works long.
    if let Some(at) = words.iter().position(|word| word == "--").filter(|at| words[at + 1] != SERVICE) {
        words.splice(at + 1.., ["true".to_owned()]);
    }
    if real || words.iter().any(|word| word == "--verify") {
        return Way::Not("needs a real kernel");
    }
    Way::Run(small(words))
}

/// The same command on less.
fn small(mut words: Vec<String>) -> Vec<String> {
    if !words.iter().any(|word| word == "hot-and-stream") {
        let of_check = words.iter().any(|word| word == "--check");
        if let Some(at) = words.iter().position(|word| word == "--seeds").filter(|_| of_check) {
            words[at + 1] = "1..20".to_owned();
        }
        return words;
    }
    for (index, (name, value)) in SMALL.into_iter().enumerate() {
        let param = format!("{name}={value}");
        match words.iter_mut().find(|word| word.starts_with(&format!("{name}="))) {
            Some(given) => *given = param,
            None if index < 2 => words.extend(["--param".to_owned(), param]),
            None => {}
        }
    }
    let place = |words: &[String], option: &str| words.iter().position(|word| word == option);
    if let Some(at) = place(&words, "--seeds") {
        words[at + 1] = "2".to_owned();
    }
    match place(&words, "--mem") {
        // Several sizes stay several.
        Some(at) if words[at + 1].contains("..") => words[at + 1] = format!("{SMALL_MEM}..64M"),
        Some(at) if words.iter().any(|word| word == LARGER.0) => words[at + 1] = LARGER.1.to_owned(),
        Some(at) => words[at + 1] = SMALL_MEM.to_owned(),
        None => words.extend(["--mem", SMALL_MEM].map(str::to_owned)),
    }
    words
}

/// The words of the first command in a line: up to a comment or what a shell does next; quotes keep blanks.
fn words_of_a_shell(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            '#' | '|' | ';' | '>' if !quoted => break,
            ' ' if !quoted => words.push(String::new()),
            _ => words.last_mut().expect("starts with one").push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_goes_on_is_one_command() {
        let script = "# all\ncd linux   # here\n\npagetide compare a \\\n    --seeds 5\n";
        assert_eq!(commands(script), ["cd linux   # here", "pagetide compare a      --seeds 5"]);
    }

    #[test]
    fn a_command_is_run_small_or_dry_or_not() {
        let told = |command: &str| match way(command) {
            Way::Run(words) => words.join(" "),
            Way::Not(why) => format!("not: {why}"),
        };
        assert_eq!(
            told("pagetide compare hot-and-stream --mem 256M..2G --seeds 10 --param stream=2G   # here"),
            "compare hot-and-stream --mem 32M..64M --seeds 2 --param stream=64M --param hot=1M"
        );
        assert_eq!(
            told("cargo run --release -- run hot-and-stream"),
            "run hot-and-stream --param hot=1M --param stream=64M --mem 32M"
        );
        assert_eq!(told("pagetide record -- cargo build"), "record -- true");
        assert_eq!(told("pagetide capture -- ./my-service --once"), "capture -- ./my-service --once");
        assert_eq!(told("pagetide list zones --mem 512M"), "list zones --mem 512M");
        assert_eq!(told("pagetide compare small-files"), "compare small-files --dry-run");
        assert_eq!(told("pagetide run x --on uml:6.12"), "run x --on uml:6.12 --dry-run");
        assert_eq!(told("pagetide replay t --on uml:6.12"), "not: needs a real kernel");
        assert_eq!(told("pagetide uml fetch 6.12"), "not: fetches a kernel");
        assert_eq!(
            told("pagetide run x --kernel linux-6.12+cache-ext=cache_ext_mru.bpf.o"),
            "not: needs an object that others compile"
        );
        assert_eq!(told("make linux"), "not: no command of pagetide");
        assert_eq!(told("pagetide x 'a # b' | tee c"), "x a # b");
    }
}
