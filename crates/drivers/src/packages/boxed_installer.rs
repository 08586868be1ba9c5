//! Runs one step of an installation in a box: its folder is all that it writes, and the index all that it reaches.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use spinney_kernel::definition::Network;

use crate::commands::{box_network, refusal_in_words};
use crate::network::{Connector, Outbound, ProxiedEnd, Proxy, ProxyLog};
use crate::sandbox::{BoxLauncher, BoxLimits, BoxedCommand, BoxedExit, Confinement, KeptOutput};

/// How long one step may take.
const STEP_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// By how much one step may fill the disk, and what it may use of the memory.
const LIMITS: BoxLimits = BoxLimits { processes: 256, memory_bytes: 4 << 30, disk_bytes: 4 << 30 };
/// Kept of the beginning and the end of what it prints.
const KEPT_BYTES: usize = 64 << 10;
/// What an error shows of it.
const SHOWN_BYTES: usize = 1_500;

/// Where and with what the steps of one installation run.
pub(super) struct BoxedInstaller {
    pub(super) launcher: Arc<BoxLauncher>,
    pub(super) outbound: Arc<dyn Outbound>,
    pub(super) network: Network,
    /// Its own folder, which is its home as well.
    pub(super) folder: PathBuf,
    pub(super) reads: Vec<PathBuf>,
    pub(super) environment: Vec<(OsString, OsString)>,
}

impl BoxedInstaller {
    /// Runs a program with these arguments, and returns what it printed.
    ///
    /// # Errors
    /// How it ended if it did not end well, with the last of what it printed.
    pub(super) async fn run(&self, program: &Path, arguments: &[&str]) -> Result<String, String> {
        let mut confinement = Confinement::new(self.folder.clone());
        confinement.read.clone_from(&self.reads);
        confinement.environment.clone_from(&self.environment);
        confinement.network = box_network(&self.network);
        confinement.limits = LIMITS;
        let words = [program.as_os_str().to_owned()].into_iter().chain(arguments.iter().map(OsString::from));
        let command =
            BoxedCommand { timeout: STEP_TIMEOUT, kept_bytes: KEPT_BYTES, ..BoxedCommand::new(words) };
        let mut run =
            self.launcher.start(&confinement, &command).map_err(|refusal| refusal_in_words(&refusal))?;
        let network = run.take_network();
        let log = ProxyLog::default();
        let connector = Connector::new(self.network.clone(), Arc::clone(&self.outbound));
        let proxy = Proxy::new(connector, log.clone());
        let listener = async {
            match network {
                Some(network) => network.listener().await,
                None => Ok(None),
            }
        };
        let ended = proxy.serve_during(listener, run.finish(&mut |_, _| {})).await;
        let end = ended.map_err(|error| format!("its guard cannot be followed ({error})"))?;
        if end.exit == BoxedExit::Exited(0) {
            return Ok(text(&end.stdout));
        }
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let how = match end.exit {
            BoxedExit::Exited(code) => format!("ended with exit code {code}"),
            BoxedExit::Signalled(signal) => format!("was ended by signal {signal}"),
            BoxedExit::TimedOut => format!("did not end within {} minutes", STEP_TIMEOUT.as_secs() / 60),
            BoxedExit::PastLimit(limit) => format!("used too much ({limit:?})"),
            BoxedExit::NotStarted { errno, .. } => {
                format!("cannot be started ({})", std::io::Error::from_raw_os_error(errno))
            }
            BoxedExit::Cancelled | BoxedExit::GuardLost | BoxedExit::Ready => {
                "was ended from outside".to_owned()
            }
        };
        let printed = [text(&end.stdout), text(&end.stderr)].concat();
        let printed = printed.trim();
        let from = printed.ceil_char_boundary(printed.len().saturating_sub(SHOWN_BYTES));
        let refused = log.records().0.into_iter().find_map(|record| match record.end {
            ProxiedEnd::Refused(refusal) => Some(format!("\na connection was refused: {refusal}")),
            ProxiedEnd::Closed | ProxiedEnd::Stopped => None,
        });
        let said = if printed.is_empty() { String::new() } else { format!(":\n{}", &printed[from..]) };
        Err(format!("`{name}` {how}{said}{}", refused.unwrap_or_default()))
    }
}

/// A whole output, or its two ends.
fn text(output: &KeptOutput) -> String {
    String::from_utf8_lossy(&[output.head(), output.tail().as_slice()].concat()).into_owned()
}
