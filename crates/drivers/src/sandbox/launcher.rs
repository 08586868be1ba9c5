//! Starts commands in boxes, or says why it does not.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use libc::sock_filter;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::geteuid;
use spinney_kernel::port::{FolderAccess, FolderRight};

use super::confinement::{
    BoxNetwork, BoxTier, BoxTierChoice, BoxWeakness, BoxedCommand, BoxedInput, Confinement, PlacedPath,
};
use super::descriptors;
use super::fork_server::ForkServer;
use super::handed_out::{self, BoxHandouts};
use super::landlock::{ABI_MIN, ABI_WITH_SCOPES, Access};
use super::machine::{LandlockSupport, MachineSupport, NamespaceSupport, ProcessListSupport, SeccompSupport};
use super::network::{self, BoxListener};
use super::order::{BoxOrder, BoxedProgramOrder, Grant, Presence, Walls};
use super::process_limit::ProcessLimit;
use super::program::BoxedProgram;
use super::refusal::{BoxRefusal, NamespaceNeed};
use super::run::{BoxedExit, BoxedRun, StreamsKept};
use super::step::BoxStep;
use super::system_calls::{ModeChanges, Surroundings, filter};
use super::system_paths::{facts, grants, search, terminal};
use super::terminal::BoxTerminal;

/// Without Landlock there is no box in which they could be tried.
const UNTRIED: NamespaceSupport = NamespaceSupport::Failed { step: BoxStep::Rules, errno: libc::ENOSYS };
/// Of programs whose output is kept.
const UMASK: u32 = 0o022;
const OPEN_FILES: u64 = 4_096;
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Starts commands in boxes.
#[derive(Debug)]
pub struct BoxLauncher {
    guards: ForkServer,
    machine: MachineSupport,
    filter: Vec<sock_filter>,
    filter_with_modes: Vec<sock_filter>,
    filter_in_namespaces: Vec<sock_filter>,
    filter_of_programs: Vec<sock_filter>,
}

impl BoxLauncher {
    /// Tries what this machine enforces. `helper` is a program whose `main` calls [`guard_a_box`](super::guard_a_box)
    /// first, as this one's may: `/proc/self/exe`. Needs a tokio runtime with its IO and time.
    pub async fn new(helper: PathBuf) -> Result<Self, BoxRefusal> {
        Self::with_mark(helper, Vec::new()).await
    }

    /// The same with words on the command line of every guard, so that others know it.
    pub async fn with_mark(helper: PathBuf, mark: Vec<OsString>) -> Result<Self, BoxRefusal> {
        let modes = if geteuid().is_root() { ModeChanges::Refused } else { ModeChanges::OfOpenFiles };
        let mut launcher = Self {
            guards: ForkServer::new(helper, mark),
            machine: MachineSupport::without_namespaces(UNTRIED),
            filter: filter(Surroundings::Machine(modes)),
            filter_with_modes: filter(Surroundings::Machine(ModeChanges::Allowed)),
            filter_in_namespaces: filter(Surroundings::Namespaces),
            filter_of_programs: filter(Surroundings::Program(ProcessLimit::here())),
        };
        if launcher.machine.landlock_abi() >= ABI_MIN {
            launcher.machine.namespaces = launcher.probe_namespaces().await?;
        }
        Ok(launcher)
    }

    /// Acts as on a kernel whose Landlock has at most this version, to try on a newer kernel what an older one would do. It
    /// refuses and weakens boxes as that kernel would, and never raises a version.
    #[must_use]
    pub fn as_with_landlock(mut self, abi_max: u32) -> Self {
        if let LandlockSupport::Abi(abi) = &mut self.machine.landlock {
            *abi = abi_max.min(*abi);
        }
        if self.machine.landlock_abi() < ABI_MIN {
            self.machine.namespaces = UNTRIED;
        }
        self
    }

    #[must_use]
    pub fn machine(&self) -> &MachineSupport {
        &self.machine
    }

    /// Makes a whole box of tier 2, and starts nothing in it.
    async fn probe_namespaces(&self) -> Result<NamespaceSupport, BoxRefusal> {
        let confinement = Confinement::new("/".into());
        let command = BoxedCommand { timeout: PROBE_TIMEOUT, ..BoxedCommand::new([""; 0]) };
        let mut order = self.order(BoxTier::Namespaces, &confinement, &command);
        order.grants = grants().collect();
        order.folder = "/".into();
        let mut probe = self.start_order(&order, BoxTier::Namespaces, &command)?;
        Ok(match probe.finish(&mut |_, _| ()).await?.exit {
            BoxedExit::Ready => NamespaceSupport::Work,
            BoxedExit::NotStarted { step, errno } => NamespaceSupport::Failed { step, errno },
            _ => NamespaceSupport::Failed { step: BoxStep::Namespaces, errno: libc::EPERM },
        })
    }

    /// The box that a command would get.
    pub fn tier(&self, confinement: &Confinement) -> Result<BoxTier, BoxRefusal> {
        let need = namespace_need(confinement);
        if confinement.weaknesses.contains(&BoxWeakness::Unboxed) {
            return need.map_or(Ok(BoxTier::Unboxed), |needs| Err(BoxRefusal::NamespacesUnwanted { needs }));
        }
        let MachineSupport { landlock, seccomp, namespaces, process_lists } = self.machine;
        let landlock_abi = self.machine.landlock_abi();
        if landlock_abi < ABI_MIN {
            return Err(BoxRefusal::Landlock { found: landlock, needed: ABI_MIN });
        }
        if seccomp != SeccompSupport::Works {
            return Err(BoxRefusal::Seccomp { found: seccomp });
        }
        if process_lists != ProcessListSupport::Works {
            return Err(BoxRefusal::ProcessLists);
        }
        let wants_them = confinement.tier != BoxTierChoice::WithoutNamespaces;
        if wants_them && namespaces == NamespaceSupport::Work {
            return Ok(BoxTier::Namespaces);
        }
        match need {
            Some(needs) if wants_them => Err(BoxRefusal::Namespaces { needs, found: namespaces }),
            Some(needs) => Err(BoxRefusal::NamespacesUnwanted { needs }),
            None if landlock_abi < ABI_WITH_SCOPES
                && !confinement.weaknesses.contains(&BoxWeakness::Signals) =>
            {
                Err(BoxRefusal::Signals { landlock_abi, needed: ABI_WITH_SCOPES, namespaces })
            }
            None => Ok(BoxTier::Landlock),
        }
    }

    /// Starts a command. Needs a tokio runtime with its IO and time.
    pub fn start(&self, confinement: &Confinement, command: &BoxedCommand) -> Result<BoxedRun, BoxRefusal> {
        let tier = self.tier(confinement)?;
        check(confinement, command)?;
        Ok(self.start_order(&self.order(tier, confinement, command), tier, command)?)
    }

    /// Starts a program of a person, which has streams that are handed in, perhaps a terminal, and no end but its own. Only
    /// in namespaces: it begins sessions and groups of processes as it likes. Needs a tokio runtime with its IO and time.
    pub fn start_program(
        &self,
        confinement: &Confinement,
        program: BoxedProgram,
    ) -> Result<BoxedRun, BoxRefusal> {
        let confinement = Confinement { tier: BoxTierChoice::Namespaces, ..confinement.clone() };
        let tier = self.tier(&confinement)?;
        let BoxedProgram { arguments, file, folder, streams, umask, open_files, terminal: made } = program;
        let command =
            BoxedCommand { folder: Some(folder), timeout: Duration::MAX, ..BoxedCommand::new(arguments) };
        check(&confinement, &command)?;
        let mut order = self.order(tier, &confinement, &command);
        order.filter.clone_from(&self.filter_of_programs);
        order.grants.push(terminal());
        order.file = file.unwrap_or_default();
        order.program = Some(BoxedProgramOrder { umask: umask.into(), open_files, terminal: made });
        let streams = [streams.stdin, streams.stdout, streams.stderr];
        Ok(self.start_with(&order, tier, streams, None, command.timeout)?)
    }

    /// Starts a program whose output is kept: like one of a person, and without a box where the confinement says so. `file`
    /// runs under the name that the arguments begin with.
    pub fn start_piped_program(
        &self,
        confinement: &Confinement,
        command: &BoxedCommand,
        file: Option<PathBuf>,
    ) -> Result<BoxedRun, BoxRefusal> {
        let tier = self.tier(confinement)?;
        check(confinement, command)?;
        let mut order = self.order(tier, confinement, command);
        order.file = file.unwrap_or_default();
        if tier == BoxTier::Namespaces {
            order.filter.clone_from(&self.filter_of_programs);
            order.grants.push(terminal());
            order.program =
                Some(BoxedProgramOrder { umask: UMASK.into(), open_files: OPEN_FILES, terminal: None });
        }
        Ok(self.start_order(&order, tier, command)?)
    }

    fn order(&self, tier: BoxTier, confinement: &Confinement, command: &BoxedCommand) -> BoxOrder {
        let (walls, filter) = match tier {
            BoxTier::Unboxed => (Walls::None, &self.filter),
            BoxTier::Landlock if confinement.weaknesses.contains(&BoxWeakness::FileModes) => {
                (Walls::Landlock, &self.filter_with_modes)
            }
            BoxTier::Landlock => (Walls::Landlock, &self.filter),
            BoxTier::Namespaces => (Walls::Namespaces, &self.filter_in_namespaces),
        };
        let given =
            |paths: &[PathBuf], access| paths.iter().map(move |path| required(path, access)).collect();
        let mut all = vec![required(&confinement.workspace, Access::Write)];
        all.extend::<Vec<Grant>>(given(&confinement.write, Access::Write));
        all.extend::<Vec<Grant>>(given(&confinement.read, Access::Read));
        all.extend(confinement.folders.iter().map(exact));
        all.extend(confinement.placed.iter().map(placed));
        all.extend(grants());
        if tier != BoxTier::Namespaces {
            all.extend(facts());
        }
        let environment = environment(confinement);
        let has_proxy = confinement.network != BoxNetwork::None;
        BoxOrder {
            walls,
            landlock_abi: self.machine.landlock_abi(),
            grants: all,
            hidden: confinement.hidden.clone(),
            read_only: confinement.read_only.clone(),
            reserved: confinement.reserved.clone(),
            private: confinement.private.clone(),
            files: confinement.files.clone(),
            folder: command.folder.clone().unwrap_or_default(),
            file: PathBuf::new(),
            arguments: command.arguments.clone(),
            search: searched(&environment),
            environment,
            has_proxy,
            served_port: confinement.served_port.unwrap_or(0).into(),
            program: None,
            filter: filter.clone(),
            processes_max: confinement.limits.processes,
            memory_bytes_max: confinement.limits.memory_bytes,
            disk_bytes_max: confinement.limits.disk_bytes,
            timeout_ms: u64::try_from(command.timeout.as_millis()).unwrap_or(u64::MAX),
        }
    }

    fn start_order(&self, order: &BoxOrder, tier: BoxTier, command: &BoxedCommand) -> io::Result<BoxedRun> {
        let ((stdout, stdout_to), (stderr, stderr_to)) = (io::pipe()?, io::pipe()?);
        let (stdin, stdin_to) = match &command.input {
            BoxedInput::Bytes(bytes) => (in_memory(c"stdin", bytes)?, None),
            BoxedInput::Piped => {
                let (read, write) = io::pipe()?;
                (OwnedFd::from(read), Some(OwnedFd::from(write)))
            }
        };
        let output = StreamsKept {
            stdin: stdin_to,
            output: [stdout.into(), stderr.into()],
            part_bytes_max: command.kept_bytes,
        };
        let streams = [stdin, stdout_to.into(), stderr_to.into()];
        self.start_with(order, tier, streams, Some(output), command.timeout)
    }

    /// With these standard streams, of which some output may be ours to keep.
    fn start_with(
        &self,
        order: &BoxOrder,
        tier: BoxTier,
        [stdin, stdout, stderr]: [OwnedFd; 3],
        output: Option<StreamsKept>,
        timeout: Duration,
    ) -> io::Result<BoxedRun> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (control, guards) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        // The guard waits for it.
        rustix::io::ioctl_fionbio(&guards, false)?;
        let order_file = in_memory(c"order", &order.to_bytes())?;
        let channel = |is_needed: bool| is_needed.then(handed_out::channel).transpose();
        let (network, boxes_network) = channel(order.has_proxy)?.unzip();
        let has_terminal = order.program.is_some_and(|program| program.terminal.is_some());
        let (terminal, boxes_terminal) = channel(has_terminal)?.unzip();
        let channels = boxes_network.iter().chain(&boxes_terminal).map(OwnedFd::as_fd);
        let descriptors: Vec<_> = [order_file.as_fd(), stdin.as_fd()].into_iter().chain(channels).collect();
        let handed_out = BoxHandouts {
            network: network.map(BoxListener::new).transpose()?,
            terminal: terminal.map(BoxTerminal::new).transpose()?,
        };
        let guard = self.guards.start_guard([guards.as_fd(), stdout.as_fd(), stderr.as_fd()])?;
        // A guard that nobody waits for gets no order and runs nothing, so an error up to here means that nothing ran.
        descriptors::send(control.as_fd(), &[0], &descriptors).map_err(io::Error::from)?;
        BoxedRun::new(guard, control, output, (tier, handed_out), timeout)
    }
}

/// Bytes that can be read and not be changed or added to.
fn in_memory(name: &std::ffi::CStr, bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.write_all(bytes)?;
    file.rewind()?;
    fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
    Ok(file.into())
}

fn required(path: &Path, access: Access) -> Grant {
    Grant::new(path.to_owned(), access, Presence::Required)
}

fn exact(folder: &FolderRight) -> Grant {
    Grant::new(folder.path.clone(), access(folder.access), Presence::Exact)
}

fn placed(placed: &PlacedPath) -> Grant {
    let found = Grant::new(placed.from.clone(), access(placed.access), Presence::Required);
    Grant { at: Some(placed.at.clone()), ..found }
}

const fn access(access: FolderAccess) -> Access {
    match access {
        FolderAccess::Read => Access::Read,
        FolderAccess::Write => Access::Write,
    }
}

fn namespace_need(confinement: &Confinement) -> Option<NamespaceNeed> {
    if !confinement.hidden.is_empty() {
        Some(NamespaceNeed::HiddenPaths)
    } else if !confinement.read_only.is_empty() || !confinement.reserved.is_empty() {
        Some(NamespaceNeed::ReadOnlyPaths)
    } else if !(confinement.private.is_empty()
        && confinement.placed.is_empty()
        && confinement.files.is_empty())
    {
        Some(NamespaceNeed::PrivatePaths)
    } else if confinement.network != BoxNetwork::None {
        Some(NamespaceNeed::Network)
    } else {
        (confinement.tier == BoxTierChoice::Namespaces).then_some(NamespaceNeed::Tier)
    }
}

fn check(confinement: &Confinement, command: &BoxedCommand) -> Result<(), BoxRefusal> {
    let Confinement { workspace, write, read, folders, hidden, read_only, reserved, private, .. } =
        confinement;
    let paths = [write, read, hidden, read_only, reserved, private].into_iter().flatten();
    let placed = confinement.placed.iter().flat_map(|placed| [&placed.from, &placed.at]);
    let paths = paths.chain(placed).chain(confinement.files.iter().map(|file| &file.path));
    let folders = folders.iter().map(|folder| &folder.path);
    let relative =
        paths.chain(folders).chain([workspace]).chain(&command.folder).find(|path| !path.is_absolute());
    if let Some(path) = relative {
        return Err(BoxRefusal::RelativePath { path: path.clone() });
    }
    let is_bad =
        |name: &OsStr| name.is_empty() || name.as_bytes().iter().any(|byte| matches!(byte, b'=' | 0));
    if let Some((name, _)) = confinement.environment.iter().find(|(name, _)| is_bad(name)) {
        return Err(BoxRefusal::Variable { name: name.clone() });
    }
    if command.arguments.is_empty() { Err(BoxRefusal::NoCommand) } else { Ok(()) }
}

/// `NAME=VALUE`; the helper adds `HOME`.
fn environment(confinement: &Confinement) -> Vec<OsString> {
    let path = super::system_paths::SEARCH.join(":");
    let defaults = [("PATH", path.as_str()), ("LANG", "C.UTF-8"), ("TERM", "dumb")];
    let proxies = network::variables(confinement.network);
    let given = |name: &str| confinement.environment.iter().any(|(given, _)| given == name);
    let defaults = defaults.into_iter().filter(|(name, _)| !given(name));
    let defaults = defaults.map(|(name, value)| OsString::from(format!("{name}={value}")));
    let is_proxy = |name: &OsStr| proxies.iter().any(|(proxy, _)| name == *proxy);
    let named = confinement.environment.iter().filter(|(name, _)| !is_proxy(name)).map(|(name, value)| {
        let bytes = [name.as_bytes(), b"=", value.as_bytes()].concat();
        OsString::from_vec(bytes)
    });
    let proxies = proxies.iter().map(|(name, value)| OsString::from(format!("{name}={value}")));
    defaults.chain(named).chain(proxies).collect()
}

/// The folders of `PATH` that are absolute.
fn searched(environment: &[OsString]) -> Vec<OsString> {
    let path = environment.iter().find_map(|variable| variable.as_bytes().strip_prefix(b"PATH="));
    let Some(path) = path else { return search() };
    let folders = path.split(|byte| *byte == b':').filter(|folder| folder.starts_with(b"/"));
    folders.map(|folder| OsString::from_vec(folder.to_vec())).collect()
}
