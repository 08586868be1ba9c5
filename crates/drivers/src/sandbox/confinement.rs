//! What a command in a box may do, and what is asked of the box.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use spinney_kernel::port::{FolderAccess, FolderRight};

use super::order::PrivateFile;

/// What a command may touch and use. Everything else of the machine is out of its reach.
#[derive(Clone, Debug)]
pub struct Confinement {
    /// Its own folder: writable, and its `HOME`.
    pub workspace: PathBuf,
    /// Folders and files that it may also write.
    pub write: Vec<PathBuf>,
    /// Folders and files that it may read and run, beside the programs and libraries of the system.
    pub read: Vec<PathBuf>,
    /// Folders of the user. Others can write around them, so a path with a link in it is refused instead of followed.
    pub folders: Vec<FolderRight>,
    /// Paths in those that it must not see. What else is granted below one is there. Needs namespaces.
    pub hidden: Vec<PathBuf>,
    /// Paths in those that it must not change. Each must exist. Needs namespaces.
    pub read_only: Vec<PathBuf>,
    /// Paths in folders that it may write which must not come to be: while it runs, an empty folder that it cannot change
    /// has each of these names. Needs namespaces.
    pub reserved: Vec<PathBuf>,
    /// Empty folders in memory that it may write, which end with the box. Need namespaces.
    pub private: Vec<PathBuf>,
    /// Files and folders of the machine that are somewhere else inside. Need namespaces.
    pub placed: Vec<PlacedPath>,
    /// Files that exist only inside. Need namespaces.
    pub files: Vec<PrivateFile>,
    /// Variables beside `PATH`, `HOME`, `LANG` and `TERM`, or instead of one of them.
    pub environment: Vec<(OsString, OsString)>,
    pub network: BoxNetwork,
    /// A port of its loopback that is handed out beside the proxy.
    pub served_port: Option<u16>,
    pub limits: BoxLimits,
    pub tier: BoxTierChoice,
    /// What a person gave up for a box to run on this machine.
    pub weaknesses: Vec<BoxWeakness>,
}

impl Confinement {
    /// A folder and nothing else, with the default limits.
    #[must_use]
    pub fn new(workspace: PathBuf) -> Self {
        Self {
            workspace,
            write: Vec::new(),
            read: Vec::new(),
            folders: Vec::new(),
            hidden: Vec::new(),
            read_only: Vec::new(),
            reserved: Vec::new(),
            private: Vec::new(),
            placed: Vec::new(),
            files: Vec::new(),
            environment: Vec::new(),
            network: BoxNetwork::None,
            served_port: None,
            limits: BoxLimits::default(),
            tier: BoxTierChoice::Best,
            weaknesses: Vec::new(),
        }
    }
}

/// A path of the machine, with links in it followed, and where it is inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedPath {
    pub from: PathBuf,
    pub at: PathBuf,
    pub access: FolderAccess,
}

/// What a command and everything that it starts may use together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoxLimits {
    pub processes: u64,
    pub memory_bytes: u64,
    /// By how much its writable folders may grow during the call.
    pub disk_bytes: u64,
}

impl BoxLimits {
    /// Stands for no limit of memory or of bytes.
    pub const UNLIMITED: u64 = u64::MAX;
}

impl Default for BoxLimits {
    fn default() -> Self {
        Self { processes: 256, memory_bytes: 2 << 30, disk_bytes: 1 << 30 }
    }
}

/// What a box is connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoxNetwork {
    /// Nothing.
    None,
    /// A socket in its own, empty network, which [`BoxedRun::take_network`](super::BoxedRun::take_network) hands out: who
    /// has it decides about each connection. Its variables name it as the proxy. Needs namespaces.
    Proxied { localhost: LocalhostMeaning },
}

/// Which machine programs in a box mean by `localhost`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalhostMeaning {
    /// The box: they reach what the command itself serves.
    Box,
    /// Ours, through the proxy: a rule names a port of it.
    Machine,
}

/// How a box is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoxTierChoice {
    /// With namespaces where they work, else without.
    Best,
    /// Tier 1, also where namespaces work.
    WithoutNamespaces,
    /// Tier 2, or refused.
    Namespaces,
}

/// Something that a box may do only if a person says so. A box with namespaces has none of these, whatever was allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoxWeakness {
    /// To signal processes of the same user outside, where the kernel cannot prevent it.
    Signals,
    /// To change modes, owners and times of any file of the user. Without it a box of tier 1 changes them only of files
    /// that it has open, and never as root.
    FileModes,
    /// Everything: there is no box. Only processes, memory, bytes and time are bounded.
    Unboxed,
}

/// How a command is really run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoxTier {
    /// Not in a box.
    Unboxed,
    /// Tier 1: Landlock and a filter of system calls.
    Landlock,
    /// Tier 2: these, and its own namespaces.
    Namespaces,
}

/// What a command reads from its standard input, and who reads its standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoxedInput {
    /// These bytes. What it writes is kept.
    Bytes(Vec<u8>),
    /// A conversation: [`BoxedRun::take_pipes`](super::BoxedRun::take_pipes) hands out both ends. Of what it writes, only
    /// the standard error is kept.
    Piped,
}

/// A command for a box.
#[derive(Clone, Debug)]
pub struct BoxedCommand {
    /// The program, looked for in `PATH` unless it has a `/`, and its arguments.
    pub arguments: Vec<OsString>,
    /// Where it begins; in the workspace, if there is none.
    pub folder: Option<PathBuf>,
    pub input: BoxedInput,
    pub timeout: Duration,
    /// Of each stream this many bytes from the beginning and as many from the end are kept.
    pub kept_bytes: usize,
}

impl BoxedCommand {
    /// Without input, for ten minutes at most.
    #[must_use]
    pub fn new(arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self {
            arguments: arguments.into_iter().map(Into::into).collect(),
            folder: None,
            input: BoxedInput::Bytes(Vec::new()),
            timeout: Duration::from_secs(600),
            kept_bytes: 64 << 10,
        }
    }
}
