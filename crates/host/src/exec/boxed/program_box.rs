//! Makes the box of a program: checks where it is started and what this machine can enforce, before anything is started.

use std::ffi::{OsStr, OsString};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use spinney_drivers::commands::{
    ProgramFolder, RepositoryAccess, box_network, namespace_remedy, refusal_remedy,
};
use spinney_drivers::folders::HiddenFolders;
use spinney_drivers::network::{Connector, Proxy, ProxyLog, SystemOutbound};
use spinney_drivers::processes::StandardStreams;
use spinney_drivers::sandbox::{
    BoxLauncher, BoxLimits, BoxNetwork, BoxRefusal, BoxTierChoice, BoxedProgram, Confinement,
    LocalhostMeaning,
};
use spinney_kernel::definition::Network;
use spinney_kernel::port::ConnectionLog;
use spinney_kernel::primitives::HostRule;

use super::configuration::ProgramConfigurationError;
use super::options::BoxOptions;
use super::running::{BoxedProgramRun, Connections};
use super::{configuration, installation};
use crate::exec::program::base_name;
use crate::inside::{OURSELVES, command_mark};
use crate::system::files;
use crate::user::folders::{hidden_folders, user_home};

/// With the threads of each, more than any build needs, and fewer than a machine has.
const PROCESSES_MAX: u64 = 1_024;

/// Why a program is not started in a box.
#[derive(Debug, thiserror::Error)]
pub enum ProgramBoxError {
    /// What would be hidden is not known.
    #[error("a box hides your home folder, and there is no HOME: set it")]
    NoHome,
    /// All of the user's files would be in the box.
    #[error(
        "the box would contain your home folder: start the program in the folder of a project, not in {}",
        folder.display()
    )]
    HomeFolder {
        /// Where it was started.
        folder: PathBuf,
    },
    /// The folder cannot be in a box.
    #[error("the program cannot be started in a box here: {0}")]
    Folder(String),
    /// A path that it should read would show what is hidden.
    #[error("{} cannot be read in a box: it is or contains {what}", path.display())]
    Read {
        /// The path.
        path: PathBuf,
        /// What it would show.
        what: &'static str,
    },
    /// This machine cannot make it.
    #[error("this machine cannot make the box: {refusal}{}", remedy(refusal))]
    Machine {
        /// Why not.
        refusal: BoxRefusal,
    },
    /// What the program runs could be written in it.
    #[error(transparent)]
    Configuration(#[from] ProgramConfigurationError),
    /// The system does not say what is needed.
    #[error("the box cannot be prepared")]
    Io(#[from] io::Error),
}

fn remedy(refusal: &BoxRefusal) -> String {
    let namespaces = || match refusal {
        BoxRefusal::Namespaces { found, .. } => namespace_remedy(found),
        _ => None,
    };
    let remedy = refusal_remedy(refusal).or_else(namespaces);
    remedy.map(|remedy| format!("; {remedy}")).unwrap_or_default()
}

/// A box that can be made here.
#[derive(Debug)]
pub struct ProgramBox {
    launcher: BoxLauncher,
    confinement: Confinement,
    options: BoxOptions,
    hidden: HiddenFolders,
    /// The program itself, if it is not the system's.
    file: Option<PathBuf>,
    folder: PathBuf,
    user: PathBuf,
}

/// What of a box is known when its program is started.
pub struct BoxStart {
    /// The program and its arguments.
    pub arguments: Vec<OsString>,
    /// The whole of it.
    pub environment: Vec<(OsString, OsString)>,
    /// Its standard streams; a terminal takes the place of some.
    pub streams: StandardStreams,
    /// The size of its terminal, and which of the streams it is.
    pub terminal: Option<((u16, u16), [bool; 3])>,
    /// Its limit of open files.
    pub open_files: Option<u64>,
    /// Where the gateway listens. The program finds it at the same address.
    pub gateway: SocketAddr,
    /// A file of the run that it reads.
    pub settings: Option<PathBuf>,
    /// What it connects to, for the journal.
    pub connections: ConnectionLog,
}

impl ProgramBox {
    /// Looks at the current folder, the user's configuration and the machine. `program` is the name of the program, and
    /// `home` that of our files.
    ///
    /// # Errors
    /// Why it cannot run in a box here.
    pub async fn prepare(
        options: &BoxOptions,
        program: &OsStr,
        home: &Path,
    ) -> Result<Self, ProgramBoxError> {
        // Before the first run there is no home, and nothing in one to keep from a program.
        let mark = command_mark(home).unwrap_or_default();
        let launcher = BoxLauncher::with_mark(OURSELVES.into(), mark).await.map_err(machine)?;
        let folder = std::env::current_dir()?.canonicalize()?;
        let hidden = hidden_folders(home);
        let user = user_home().ok_or(ProgramBoxError::NoHome)?;
        let user = user.canonicalize().unwrap_or(user);
        if user.starts_with(&folder) {
            return Err(ProgramBoxError::HomeFolder { folder });
        }
        let mut confinement = Confinement::new(folder.clone());
        confinement.tier = BoxTierChoice::Namespaces;
        confinement.limits = BoxLimits {
            processes: PROCESSES_MAX,
            memory_bytes: BoxLimits::UNLIMITED,
            disk_bytes: BoxLimits::UNLIMITED,
        };
        confinement.private.push(user.clone());
        confinement.network = network(&options.hosts);
        // Before the folder is looked at: without it nothing else matters.
        launcher.tier(&confinement).map_err(machine)?;
        check_readable(options, &user, &hidden)?;
        let file = installation::add(program, &folder, &user, &mut confinement);
        configuration::add(&base_name(program), &user, &folder, &mut confinement)?;
        confinement.read.extend(options.read.iter().cloned());
        let options = options.clone();
        let prepared = Self { launcher, confinement, options, hidden, file, folder, user };
        prepared.look()?;
        Ok(prepared)
    }

    /// Its folder as it is now: the home of the run is made meanwhile.
    fn look(&self) -> Result<ProgramFolder, ProgramBoxError> {
        let Self { options, hidden, folder, .. } = self;
        let repository =
            if options.allow_git { RepositoryAccess::Writable } else { RepositoryAccess::ReadOnly };
        let looked = ProgramFolder::look(folder, repository, &options.read, hidden);
        Ok(looked.map_err(ProgramBoxError::Folder)?.naming_programs_in(&installation::searched()))
    }

    /// Starts the program.
    ///
    /// # Errors
    /// If there is no box for it after all.
    pub fn start(self, start: BoxStart) -> Result<BoxedProgramRun, ProgramBoxError> {
        let program_folder = self.look()?;
        let Self { launcher, mut confinement, options, file, folder, user, .. } = self;
        let changes = program_folder.add_to(&mut confinement);
        let BoxStart {
            arguments,
            environment,
            streams,
            terminal,
            open_files,
            gateway,
            settings,
            connections,
        } = start;
        confinement.served_port = Some(gateway.port());
        confinement.read.extend(settings);
        confinement.environment = environment_inside(environment, &user);
        let mut program = BoxedProgram::new(arguments, folder, streams).with_file(file).with_umask(umask());
        if let Some(open_files) = open_files {
            program = program.with_open_files(open_files);
        }
        if let Some((size, streams)) = terminal {
            program = program.with_terminal(size, streams);
        }
        let mut run = launcher.start_program(&confinement, program).map_err(machine)?;
        let rules = rules(options.hosts, confinement.network, gateway);
        let log = ProxyLog::new(connections);
        let proxy = Proxy::new(Connector::new(rules, Arc::new(SystemOutbound::default())), log.clone());
        let connections = Connections::serve(run.take_network(), proxy, gateway);
        Ok(BoxedProgramRun::new(launcher, run, connections, log, changes))
    }
}

const fn machine(refusal: BoxRefusal) -> ProgramBoxError {
    ProgramBoxError::Machine { refusal }
}

/// There is always one, for the gateway.
fn network(hosts: &[HostRule]) -> BoxNetwork {
    match box_network(&Network::hosts(hosts.iter().cloned())) {
        BoxNetwork::None => BoxNetwork::Proxied { localhost: LocalhostMeaning::Box },
        network => network,
    }
}

/// Where `localhost` means the machine, programs also look for the gateway through the proxy.
fn rules(hosts: Vec<HostRule>, network: BoxNetwork, gateway: SocketAddr) -> Network {
    let through_proxy = network == BoxNetwork::Proxied { localhost: LocalhostMeaning::Machine };
    let gateway = through_proxy.then(|| gateway.to_string().parse().ok()).flatten();
    Network::hosts(hosts.into_iter().chain(gateway))
}

/// Refuses what the program must not read.
fn check_readable(options: &BoxOptions, user: &Path, hidden: &HiddenFolders) -> Result<(), ProgramBoxError> {
    let check = |path: &PathBuf| {
        let refused = |what| Err(ProgramBoxError::Read { path: path.clone(), what });
        if user.starts_with(path) {
            return refused("your home folder");
        }
        if hidden.contain(path) {
            return refused("what Spinney keeps");
        }
        if files::is_socket(path) {
            return refused("a socket, and a box cannot limit what is behind it");
        }
        Ok(())
    };
    options.read.iter().try_for_each(check)
}

/// Variables that name places are right inside.
fn environment_inside(mut all: Vec<(OsString, OsString)>, home: &Path) -> Vec<(OsString, OsString)> {
    for (name, value) in &mut all {
        if name == "HOME" {
            home.as_os_str().clone_into(value);
        } else if name == "TMPDIR" {
            *value = "/tmp".into();
        }
    }
    all
}

/// That of this process. It cannot be read without changing it, except here.
fn umask() -> u32 {
    const USUAL: u32 = 0o022;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let umask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    umask.and_then(|umask| u32::from_str_radix(umask.trim(), 8).ok()).unwrap_or(USUAL)
}
