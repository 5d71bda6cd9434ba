//! Where a scenario runs.

use std::fmt;

use crate::scenario::guest::Guest;
use language::names::UnknownName;

/// The name of the machine that a guest of QEMU's is: its model for simulations, and the only machine that
/// `vm:VERSION` can be.
pub const GUEST_MACHINE: &str = "guest-tcg";
/// The same of User-Mode Linux, `uml:VERSION`.
pub const UML_MACHINE: &str = "guest-uml";

/// Where a scenario runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Backend {
    /// The simulated machine: `sim`.
    #[default]
    Sim,
    /// This Linux: `host`.
    Host,
    /// A real kernel in a virtual machine, by version or by the path of its image: `vm:6.12`,
    /// `vm:./vmlinuz`.
    Vm(String),
    /// A real kernel that runs as a program (User-Mode Linux), by version or by its path: `uml:6.12`, `uml:./linux`.
    Uml(String),
}

impl Backend {
    /// What a guest boots: a version or a path. `None` where nothing boots.
    pub fn guest_kernel(&self) -> Option<&str> {
        match self {
            Self::Sim | Self::Host => None,
            Self::Vm(kernel) | Self::Uml(kernel) => Some(kernel),
        }
    }

    /// Whether a kernel of its own boots for each run.
    pub fn is_guest(&self) -> bool {
        self.guest_kernel().is_some()
    }

    /// The machine that a guest is: its model for simulations, and the only one that it can be.
    pub fn guest_machine(&self) -> Option<&'static str> {
        match self {
            Self::Sim | Self::Host => None,
            Self::Vm(_) => Some(GUEST_MACHINE),
            Self::Uml(_) => Some(UML_MACHINE),
        }
    }

    /// The shape of a guest of which nobody says more.
    pub fn default_guest(&self) -> Guest {
        let cpus = if matches!(self, Self::Uml(_)) { 1 } else { Guest::default().cpus };
        Guest { cpus, ..Guest::default() }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sim => f.write_str("sim"),
            Self::Host => f.write_str("host"),
            Self::Vm(version) => write!(f, "vm:{version}"),
            Self::Uml(version) => write!(f, "uml:{version}"),
        }
    }
}

impl std::str::FromStr for Backend {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let is_version = |version: &&str| {
            let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+');
            let is_path = version.contains('/') && !version.contains(char::is_control);
            is_path || (!version.is_empty() && version.chars().all(allowed))
        };
        let kernel = |kind| text.strip_prefix(kind).filter(is_version).map(str::to_owned);
        let guest = kernel("vm:").map(Self::Vm).or_else(|| kernel("uml:").map(Self::Uml));
        match (text, guest) {
            ("sim", _) => Ok(Self::Sim),
            ("host", _) => Ok(Self::Host),
            (_, Some(guest)) => Ok(guest),
            _ => Err(UnknownName::new("backend", text, ["sim", "host", "uml:VERSION", "vm:VERSION"])),
        }
    }
}
