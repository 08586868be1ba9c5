//! Why a command is not started: the box that was asked for cannot be had here, or not at all.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::machine::{LandlockSupport, NamespaceSupport, SeccompSupport};

/// Nothing was started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BoxRefusal {
    #[error("this machine has no Landlock of version {needed} or newer ({found:?})")]
    Landlock { found: LandlockSupport, needed: u32 },
    #[error("this machine cannot filter system calls ({found:?})")]
    Seccomp { found: SeccompSupport },
    #[error("this machine does not list the children of processes")]
    ProcessLists,
    #[error(
        "signals cannot be kept inside: Landlock has version {landlock_abi} and needs {needed}, and namespaces do not work ({namespaces:?})"
    )]
    Signals { landlock_abi: u32, needed: u32, namespaces: NamespaceSupport },
    #[error("{needs} need namespaces, and they do not work here ({found:?})")]
    Namespaces { needs: NamespaceNeed, found: NamespaceSupport },
    #[error("{needs} need namespaces, and this box should have none")]
    NamespacesUnwanted { needs: NamespaceNeed },
    #[error("{} is not an absolute path", path.display())]
    RelativePath { path: PathBuf },
    #[error("`{}` cannot be the name of a variable", name.display())]
    Variable { name: OsString },
    #[error("there is no command")]
    NoCommand,
    #[error("the box could not be started")]
    NotStarted(#[from] io::Error),
}

/// What needs namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceNeed {
    HiddenPaths,
    ReadOnlyPaths,
    /// Folders and files that exist only in the box.
    PrivatePaths,
    /// A network of which only some hosts are granted.
    Network,
    /// They were asked for.
    Tier,
}

impl std::fmt::Display for NamespaceNeed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::HiddenPaths => "hidden paths",
            Self::ReadOnlyPaths => "read-only or hidden paths in granted folders",
            Self::PrivatePaths => "private folders",
            Self::Network => "granted hosts",
            Self::Tier => "boxes of tier 2",
        })
    }
}
