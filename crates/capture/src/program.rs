//! Which program a command means, and whether it can be followed: found as a shell finds it, before anything starts.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags};

use crate::error::CaptureError;

const SET_USER_ID: u32 = 0o4000;
const SET_GROUP_ID: u32 = 0o2000;
/// Where programs are looked for without `PATH`.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The program that `command` means.
///
/// # Errors
/// There is none, it cannot be run, or it would not have its rights while it is followed.
pub(crate) fn find(command: &OsStr) -> Result<PathBuf, CaptureError> {
    let program = locate(command)?;
    let failed = |source| CaptureError::Command { command: PathBuf::from(command), source };
    let found = std::fs::metadata(&program).map_err(failed)?;
    if found.is_dir() {
        return Err(failed(io::Error::from(io::ErrorKind::IsADirectory)));
    }
    rustix::fs::accessat(rustix::fs::CWD, &program, Access::EXEC_OK, AtFlags::EACCESS)
        .map_err(|errno| failed(errno.into()))?;
    let refused = |what| Err(CaptureError::Privileged { program: program.clone(), what });
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    if found.mode() & SET_USER_ID != 0 && found.uid() != user {
        return refused("set-user-ID");
    }
    if found.mode() & SET_GROUP_ID != 0 && found.gid() != group {
        return refused("set-group-ID");
    }
    if user != 0 && has_capabilities(&program) {
        return refused("file capabilities");
    }
    Ok(program)
}

fn locate(command: &OsStr) -> Result<PathBuf, CaptureError> {
    if command.as_bytes().contains(&b'/') {
        return Ok(PathBuf::from(command));
    }
    let folders = std::env::var_os("PATH").unwrap_or_else(|| PATH.into());
    let mut denied = None;
    for folder in std::env::split_paths(&folders).filter(|_| !command.is_empty()) {
        let program = folder.join(command);
        let is_file = std::fs::metadata(&program).is_ok_and(|found| found.is_file());
        match rustix::fs::accessat(rustix::fs::CWD, &program, Access::EXEC_OK, AtFlags::EACCESS) {
            Ok(()) if is_file => return Ok(program),
            Err(errno) if is_file => denied = Some(errno),
            _ => {}
        }
    }
    let errno = denied.unwrap_or(rustix::io::Errno::NOENT);
    Err(CaptureError::Command { command: PathBuf::from(command), source: errno.into() })
}

/// Whether a program gives rights to those who run it, without a change of user.
pub(crate) fn has_capabilities(program: &Path) -> bool {
    let mut value = [0_u8; 64];
    rustix::fs::getxattr(program, "security.capability", &mut value).is_ok()
}

/// A command as `execve` wants it.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) path: CString,
    pub(crate) arguments: Vec<CString>,
    pub(crate) environment: Vec<CString>,
}

/// The line that runs `program`, called `command`, with `arguments` and this process's environment.
///
/// # Errors
/// An argument holds a zero.
pub(crate) fn line(program: &Path, command: &OsStr, arguments: &[OsString]) -> Result<Line, CaptureError> {
    let text = |bytes: Vec<u8>| {
        CString::new(bytes).map_err(|error| CaptureError::Command {
            command: PathBuf::from(command),
            source: io::Error::new(io::ErrorKind::InvalidInput, error),
        })
    };
    let words = std::iter::once(command).chain(arguments.iter().map(OsString::as_os_str));
    let environment = std::env::vars_os().map(|(mut name, value)| {
        name.push("=");
        name.push(value);
        name.into_vec()
    });
    Ok(Line {
        path: text(program.as_os_str().as_bytes().to_vec())?,
        arguments: words.map(|word| text(word.as_bytes().to_vec())).collect::<Result<_, _>>()?,
        environment: environment.map(text).collect::<Result<_, _>>()?,
    })
}

impl Line {
    /// The command as a line for a shell, words in quotes that it would read otherwise.
    pub(crate) fn shown(&self) -> String {
        let word = |word: &CString| {
            let word = CStr::to_string_lossy(word);
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_=.,:+/%@".contains(c);
            match !word.is_empty() && word.chars().all(plain) {
                true => word.into_owned(),
                false => format!("'{}'", word.replace('\'', "'\\''")),
            }
        };
        self.arguments.iter().map(word).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn refusal(command: &Path) -> String {
        find(command.as_os_str()).unwrap_err().to_string()
    }

    #[test]
    fn a_program_is_found_as_a_shell_finds_it() {
        assert!(find(OsStr::new("sh")).unwrap().ends_with("sh"));
        assert_eq!(find(OsStr::new("/bin/sh")).unwrap(), Path::new("/bin/sh"));
        let error = find(OsStr::new("no-such-command")).unwrap_err();
        assert!(error.is_missing());
        assert!(find(OsStr::new("")).unwrap_err().is_missing());
    }

    #[test]
    fn what_cannot_be_run_or_would_lose_its_rights_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        std::fs::write(&script, "#!/bin/sh\n").unwrap();
        assert!(refusal(&script).contains("Permission denied"), "{}", refusal(&script));
        assert!(refusal(folder.path()).contains("is a directory"), "{}", refusal(folder.path()));
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o4755)).unwrap();
        // Of the same user it gives nothing, and is as good as any.
        assert!(find(script.as_os_str()).is_ok());
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&script, Some(1), None).unwrap();
            std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o4755)).unwrap();
            assert!(refusal(&script).contains("set-user-ID"), "{}", refusal(&script));
        }
    }

    #[test]
    fn a_command_is_shown_as_it_would_be_written() {
        let words = ["-c", "echo a b", "it's", ""].map(OsString::from);
        let line = line(Path::new("/bin/sh"), OsStr::new("sh"), &words).unwrap();
        assert_eq!(line.shown(), r"sh -c 'echo a b' 'it'\''s' ''");
        let words = ["`id`", "~", "#", "a=b", "[x]"].map(OsString::from);
        let line = super::line(Path::new("/bin/echo"), OsStr::new("echo"), &words).unwrap();
        assert_eq!(line.shown(), "echo '`id`' '~' '#' a=b '[x]'");
    }
}
