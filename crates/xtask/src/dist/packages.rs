//! The archive and the Debian package: one tree of files, by GNU tar and by `dpkg-deb`.
//!
//! Order, owners, modes and times are set, so that the bytes depend on the files alone. Left out: RPM.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{VERSION, copy, done, epoch, folder, outcome, output, program, told, workshop, write};
use crate::checkout::root;
use crate::step::Outcome;

/// Where shells look for completions below `share`, beside the names that they are generated under.
const COMPLETIONS: [(&str, &str); 4] = [
    ("pagetide.bash", "bash-completion/completions/pagetide"),
    ("_pagetide", "zsh/vendor-completions/_pagetide"),
    ("pagetide.fish", "fish/vendor_completions.d/pagetide.fish"),
    ("pagetide.nu", "nushell/vendor/autoload/pagetide.nu"),
];

const HOMEPAGE: &str = env!("CARGO_PKG_REPOSITORY");

/// Debian wants an address where its reports go: nobody reads mail, so it is that of the issues.
const MAINTAINER: &str = concat!(env!("CARGO_PKG_AUTHORS"), " <", env!("CARGO_PKG_REPOSITORY"), "/issues>");

/// Makes the archive, to be unpacked anywhere, `/usr/local` among them.
pub(super) fn archive() -> Result<(), String> {
    let name = format!("pagetide-{VERSION}-x86_64-linux");
    let stage = fresh("archive")?;
    let tree = stage.join(&name);
    put_files(&tree)?;
    for file in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&root().join(file), &tree.join("share/doc/pagetide").join(file))?;
    }
    set_modes(&tree)?;
    let tar = folder().join(format!("{name}.tar"));
    let mut pack = Command::new("tar");
    pack.args(["--sort=name", "--format=ustar", "--owner=0", "--group=0", "--numeric-owner"]);
    pack.arg(format!("--mtime=@{}", epoch()?)).arg("--create").arg("--file").arg(&tar);
    done(pack.arg("--directory").arg(stage).arg(name))?;
    done(Command::new("gzip").args(["-9", "--no-name", "--force"]).arg(tar))
}

/// Makes the Debian package, where there is `dpkg-deb`.
pub(super) fn debian() -> Outcome {
    match Command::new("dpkg-deb").arg("--version").output() {
        Ok(_) => outcome(make_debian()),
        Err(_) => Outcome::Skipped("there is no `dpkg-deb`".to_owned()),
    }
}

fn make_debian() -> Result<(), String> {
    let tree = fresh("debian")?;
    let usr = tree.join("usr");
    put_files(&usr)?;
    for entry in fs::read_dir(usr.join("share/man/man1")).into_iter().flatten().flatten() {
        done(Command::new("gzip").args(["-9", "--no-name"]).arg(entry.path()))?;
    }
    let documents = usr.join("share/doc/pagetide");
    copy(&root().join("CHANGELOG.md"), &documents.join("CHANGELOG.md"))?;
    write(&documents.join("changelog"), changelog()?)?;
    for file in ["CHANGELOG.md", "changelog"] {
        done(Command::new("gzip").args(["-9", "--no-name"]).arg(documents.join(file)))?;
    }
    let mit = root().join("LICENSE-MIT");
    let mit = fs::read_to_string(&mit).map_err(|error| told(&mit, &error))?;
    let terms = "pagetide is licensed under MIT or Apache-2.0, at your choice. The latter is in\n\
                 /usr/share/common-licenses/Apache-2.0; what others wrote is in THIRD-PARTY-LICENSES.\n\n";
    write(&documents.join("copyright"), format!("{terms}{mit}"))?;
    set_modes(&tree)?;
    write(&tree.join("DEBIAN/control"), control(kib_of(&usr)?))?;
    let package = folder().join(format!("pagetide_{VERSION}_amd64.deb"));
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "-Zxz", "--build"]).arg(tree).arg(package);
    done(build.env("SOURCE_DATE_EPOCH", epoch()?).env("DPKG_DEB_THREADS_MAX", "1"))
}

fn control(kib: u64) -> String {
    format!(
        "Package: pagetide\nVersion: {VERSION}\nArchitecture: amd64\nSection: devel\nPriority: optional\n\
         Installed-Size: {kib}\nMaintainer: {MAINTAINER}\n\
         Homepage: {HOMEPAGE}\n\
         Suggests: e2fsprogs, xfsprogs, qemu-system-x86\n\
         Description: Linux memory management that you can run, watch and change\n \
         The page allocator and page reclaim of Linux on a simulated machine: what a\n \
         change to reclaim does to a workload, how much memory a service needs, which\n \
         replacement policy fits a cache.\n"
    )
}

/// What Debian's tools read; what has changed is in CHANGELOG.md beside it.
fn changelog() -> Result<String, String> {
    let date =
        output(Command::new("date").args(["--utc", "--rfc-email", "--date"]).arg(format!("@{}", epoch()?)))?;
    let date = String::from_utf8_lossy(&date);
    let date = date.trim();
    Ok(format!(
        "pagetide ({VERSION}) unstable; urgency=medium\n\n  * CHANGELOG.md.gz says what is new.\n\n \
         -- {MAINTAINER}  {date}\n"
    ))
}

/// The program, its pages and licences, as they lie below `/usr`.
fn put_files(usr: &Path) -> Result<(), String> {
    copy(&program::binary(), &usr.join("bin/pagetide"))?;
    let pages = workshop("pages");
    let man = pages.join("man");
    for page in fs::read_dir(&man).map_err(|error| told(&man, &error))?.flatten() {
        copy(&page.path(), &usr.join("share/man/man1").join(page.file_name()))?;
    }
    let share = usr.join("share");
    for (made, place) in COMPLETIONS {
        copy(&pages.join("completions").join(made), &share.join(place))?;
    }
    let others = "THIRD-PARTY-LICENSES";
    copy(&workshop(others), &share.join("doc/pagetide").join(others))
}

fn fresh(name: &str) -> Result<PathBuf, String> {
    let folder = workshop(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| told(&folder, &error))?;
    }
    fs::create_dir_all(&folder).map_err(|error| told(&folder, &error))?;
    Ok(folder)
}

/// Modes do not depend on whoever makes a package.
fn set_modes(path: &Path) -> Result<(), String> {
    let is_program = path.ends_with("bin/pagetide");
    let mode = if path.is_dir() || is_program { 0o755 } else { 0o644 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(|error| told(path, &error))?;
    if path.is_dir() {
        for entry in fs::read_dir(path).map_err(|error| told(path, &error))?.flatten() {
            set_modes(&entry.path())?;
        }
    }
    Ok(())
}

fn kib_of(folder: &Path) -> Result<u64, String> {
    let printed =
        output(Command::new("du").args(["--apparent-size", "--summarize", "--block-size=1K"]).arg(folder))?;
    let printed = String::from_utf8_lossy(&printed);
    let size = printed.split_whitespace().next().and_then(|size| size.parse().ok());
    size.ok_or_else(|| format!("`du` printed {printed:?}"))
}
