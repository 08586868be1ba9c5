//! The process of a server: in a box of its own, with two pipes, until it ends or is given up.

use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use spinney_kernel::definition::{Network, ServerAddress, ToolServer};
use spinney_kernel::port::{FolderAccess, Rights};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::offered::cleaned;
use super::server_start::ProcessStart;
use crate::commands::{FolderCovers, box_network, refusal_in_words};
use crate::network::{Connector, Proxy, ProxyLog};
use crate::packages::{InstalledProgram, PackageCommand};
use crate::sandbox::{
    BoxLimit, BoxPipes, BoxStep, BoxedCommand, BoxedExit, BoxedInput, Confinement, OutputStream,
};

/// What is kept of its standard error, for errors.
const STDERR_BYTES: usize = 2 << 10;
/// What an error shows of it.
const STDERR_SHOWN: usize = 600;
/// How long the end of a process may take to be known after its pipes have closed.
const END_WAIT: Duration = Duration::from_secs(2);

/// A server's process. Dropping it ends everything that it started.
pub(super) struct Process {
    ended: watch::Receiver<Option<Ended>>,
    stderr: Arc<Mutex<VecDeque<u8>>>,
    follower: AbortHandle,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Box(BoxedExit),
    /// Its guard cannot be followed.
    Unknown,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

impl ProcessStart {
    /// The box of a server, as its folders are now.
    pub(super) fn confinement(&self, server: &ToolServer) -> Result<Confinement, String> {
        let rights = server
            .folders
            .iter()
            .fold(Rights::none(), |rights, (path, access)| rights.with_folder(path.as_str(), access));
        let covers = FolderCovers::new(&rights, &self.hidden)?;
        let mut confinement = Confinement::new(self.place.folder()?);
        // A folder in both lists may be written.
        let is_written = |path: &PathBuf| rights.access(path) == Some(FolderAccess::Write);
        let granted = rights
            .folders
            .iter()
            .filter(|folder| folder.access == FolderAccess::Write || !is_written(&folder.path));
        confinement.folders = granted.cloned().collect();
        (confinement.hidden, confinement.read_only, confinement.reserved) = covers.into_parts();
        confinement.network = box_network(&server.network);
        confinement.tier = self.tier;
        confinement.environment.clone_from(&self.environment);
        Ok(confinement)
    }

    /// Starts it. The folders are looked at first, so this may take a moment.
    pub(super) fn start(&self, server: &ToolServer) -> Result<(Process, BoxPipes), String> {
        let ServerAddress::Command(words) = &server.address else {
            return Err("it does not run here".to_owned());
        };
        let mut confinement = self.confinement(server)?;
        let installed = self.installed(words)?;
        let words = installed.as_ref().map_or(words, |installed| &installed.words);
        if let Some(installed) = &installed {
            confinement.read.extend(installed.reads.iter().cloned());
            let named = |name: &str| server.env.contains(name);
            let unnamed = installed.environment.iter().filter(|(name, _)| !named(name));
            confinement.environment.extend(unnamed.map(|(name, value)| (name.into(), value.into())));
        }
        let command = BoxedCommand {
            input: BoxedInput::Piped,
            timeout: Duration::MAX,
            kept_bytes: 0,
            ..BoxedCommand::new(words)
        };
        let mut run =
            self.launcher.start(&confinement, &command).map_err(|refusal| refusal_in_words(&refusal))?;
        let pipes = run.take_pipes().ok_or("it has no pipes")?;
        let network = run.take_network();
        let proxy = Proxy::new(self.connector(server.network.clone()), ProxyLog::default());
        let (end, ended) = watch::channel(None);
        let stderr = Arc::new(Mutex::new(VecDeque::new()));
        let kept = Arc::clone(&stderr);
        let follower = Handle::current().spawn(async move {
            let mut keep = |_: OutputStream, bytes: &[u8]| keep(&kept, bytes);
            let listener = async {
                match network {
                    Some(network) => network.listener().await,
                    None => Ok(None),
                }
            };
            let how = proxy.serve_during(listener, run.finish(&mut keep)).await;
            // If nobody asks any more, nobody needs to know.
            let _ = end.send(Some(how.map_or(Ended::Unknown, |end| Ended::Box(end.exit))));
        });
        Ok((Process { ended, stderr, follower: follower.abort_handle() }, pipes))
    }

    /// What a command that names a package is started with instead. It is never downloaded here.
    fn installed(&self, words: &[String]) -> Result<Option<InstalledProgram>, String> {
        let (Some(command), Some(packages)) = (PackageCommand::read(words), &self.packages) else {
            return Ok(None);
        };
        let command = command?;
        let installed = packages.find(&command)?;
        let missing = || format!("{} is not installed on this machine", command.package);
        installed.map(Some).ok_or_else(missing)
    }

    fn connector(&self, network: Network) -> Connector {
        Connector::new(network, Arc::clone(&self.outbound))
    }
}

fn keep(kept: &Mutex<VecDeque<u8>>, bytes: &[u8]) {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    kept.extend(&bytes[bytes.len().saturating_sub(STDERR_BYTES)..]);
    let surplus = kept.len().saturating_sub(STDERR_BYTES);
    kept.drain(..surplus);
}

impl Process {
    /// Whether it is known to have ended.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// Waits for its end, and then a little for how it ended, in words with what it wrote last.
    pub(super) async fn end(&self) -> ProcessEnd {
        let mut ended = self.ended.clone();
        let waited = timeout(END_WAIT, ended.wait_for(Option::is_some)).await;
        let how = match waited {
            Ok(Ok(ended)) => *ended,
            Ok(Err(_)) | Err(_) => None,
        };
        ProcessEnd { how, stderr: self.stderr() }
    }

    /// The end of what it wrote to its standard error.
    pub(super) fn stderr(&self) -> String {
        let kept: Vec<u8> =
            self.stderr.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        let text = cleaned(&String::from_utf8_lossy(&kept), usize::MAX);
        let from = text.ceil_char_boundary(text.len().saturating_sub(STDERR_SHOWN));
        text[from..].trim().to_owned()
    }
}

/// How a process ended and what it wrote last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProcessEnd {
    how: Option<Ended>,
    stderr: String,
}

impl ProcessEnd {
    /// Whether it ran, and ended on its own.
    pub(super) fn was_its_own(&self) -> bool {
        matches!(self.how, Some(Ended::Box(BoxedExit::Exited(_) | BoxedExit::Signalled(_))))
    }
}

impl fmt::Display for ProcessEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.how {
            Some(Ended::Box(exit)) => in_words(exit, f)?,
            Some(Ended::Unknown) => f.write_str("its guard cannot be followed")?,
            None => f.write_str("it closed its output")?,
        }
        if self.stderr.is_empty() { Ok(()) } else { write!(f, "; it wrote: {}", self.stderr) }
    }
}

fn in_words(exit: BoxedExit, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match exit {
        BoxedExit::Exited(code) => write!(f, "exit code {code}"),
        BoxedExit::Signalled(signal) => write!(f, "ended by signal {signal}"),
        BoxedExit::PastLimit(BoxLimit::Processes) => f.write_str("it started too many processes"),
        BoxedExit::PastLimit(BoxLimit::Memory) => f.write_str("it used too much memory"),
        BoxedExit::PastLimit(BoxLimit::Disk) => f.write_str("it wrote too much"),
        BoxedExit::NotStarted { step: BoxStep::Exec, errno } => {
            write!(f, "its program cannot be run ({})", std::io::Error::from_raw_os_error(errno))
        }
        BoxedExit::NotStarted { step, errno } => {
            write!(f, "its box could not be made ({step:?}, {})", std::io::Error::from_raw_os_error(errno))
        }
        BoxedExit::TimedOut | BoxedExit::Cancelled | BoxedExit::GuardLost | BoxedExit::Ready => {
            f.write_str("its box was ended from outside")
        }
    }
}
