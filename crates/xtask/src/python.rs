//! The Python package, installed as a person installs it, and its tests.
//!
//! Everything that Python needs goes into a virtual environment below cargo's target folder: `pip install .` in the
//! root of the repository, and what the tests use beside it. Where there is no Python, or nothing
//! can be fetched, it says so aloud and goes on. Left out: building the command, whose results they are held against.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::built;
use crate::checkout::{root, target};
use crate::say::say;
use crate::step::{Outcome, passed_on};

/// What is asked of an interpreter.
const CHECK: &str = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";
const TOOLS: &str = "crates/python/tests/requirements.txt";

/// Installs what tests use.
pub(crate) fn tools() -> Outcome {
    match environment() {
        Ok(_) => Outcome::Passed(Default::default()),
        Err(why) => Outcome::Skipped(why),
    }
}

/// Installs the package and runs its tests.
pub(crate) fn test() -> Outcome {
    let inside = match environment() {
        Ok(inside) => inside,
        Err(why) => return Outcome::Skipped(why),
    };
    match install(&inside).and_then(|()| run(&inside)) {
        Ok(()) => Outcome::Passed(Default::default()),
        Err(why) => Outcome::Failed(why),
    }
}

/// The interpreter of an environment with what tests use, or what is missing.
fn environment() -> Result<PathBuf, String> {
    let Some(python) = interpreter() else {
        return Err("there is no Python from 3.10 on with `venv` and `ensurepip`".to_owned());
    };
    let venv = target().join("python").join("venv");
    let inside = venv.join("bin").join("python");
    let mut make = Command::new(python);
    make.args(["-m", "venv"]).arg(&venv);
    if !inside.is_file() && !is_done(make) {
        return Err(format!("`{python} -m venv` does not work"));
    }
    let mut tools = Command::new(&inside);
    tools.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-compile",
        "--disable-pip-version-check",
        "-r",
        TOOLS,
    ]);
    tools.current_dir(root());
    if !is_done(tools) {
        return Err(format!("what {TOOLS} names could not be installed"));
    }
    Ok(inside)
}

/// The first of the usual names that is new enough.
fn interpreter() -> Option<&'static str> {
    let fits = |name: &&str| {
        let check = Command::new(name).args(["-c", CHECK]).stderr(Stdio::null()).status();
        check.is_ok_and(|status| status.success())
    };
    ["python3", "python"].into_iter().find(fits)
}

fn install(python: &Path) -> Result<(), String> {
    let arguments =
        ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-build-isolation"];
    let mut pip = Command::new(python);
    pip.args(arguments).args(["--no-deps", "--force-reinstall", "."]).current_dir(root());
    pip.env("MATURIN_PEP517_ARGS", "--profile release").env("PATH", path_with(python));
    if is_done(pip) { Ok(()) } else { Err("`pip install .`".to_owned()) }
}

fn run(python: &Path) -> Result<(), String> {
    let binary = root().join(built::binary("release"));
    let mut pytest = Command::new(python);
    pytest.args(["-m", "pytest", "-rs", "-n", "auto"]).current_dir(root()).env("PAGETIDE_COMMAND", binary);
    if is_done(pytest) { Ok(()) } else { Err("`pytest`".to_owned()) }
}

/// The search path with the environment's programs, of which `maturin` is one, before all others.
fn path_with(python: &Path) -> String {
    let programs = python.parent().map(Path::to_owned).unwrap_or_default();
    let others = std::env::var("PATH").unwrap_or_default();
    format!("{}:{others}", programs.display())
}

fn is_done(command: Command) -> bool {
    let told = format!("{command:?}");
    match passed_on(command, |_| ()) {
        Ok(status) => status.success(),
        Err(error) => {
            say(&format!("{told}: {error}"));
            false
        }
    }
}
