//! The driver of `run_command`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spinney_kernel::definition::{HostRequests, OnLost, OutputLimits, RUN_COMMAND, ToolSpec, ToolSubject};
use spinney_kernel::port::model::AttemptError;
use spinney_kernel::port::tool::{OutputWatchers, Tool, ToolAnswer, ToolAttempt};
use spinney_kernel::port::{AgentFolder, Pending, Rights};
use spinney_kernel::primitives::{AgentId, FolderPath, ToolName};
use tokio::runtime::Handle;
use tokio::sync::OnceCell;

use super::answer::{answer, not_started, refused_connections, save};
use super::args::{Args, DESCRIPTION, SCHEMA, TIMEOUT_MAX, check_hosts, hosts_argument};
use super::changed_settings::{SearchEnd, SettingsSearch, UnsearchedFolders};
use super::command_tool::{CommandTool, CommandToolSpec};
use super::confinement::confinement;
use super::covers::FolderCovers;
use super::gate::said;
use super::permissions::BoxPermissions;
use crate::folders::HiddenFolders;
use crate::network::{Connector, Outbound, Proxy, ProxyLog, SystemOutbound};
use crate::off_worker::off_worker;
use crate::sandbox::{
    BoxLauncher, BoxRefusal, BoxTierChoice, BoxedCommand, BoxedEnd, BoxedRun, Confinement, OutputStream,
};
use crate::working_copies::{CopyLock, OpenCopy};
use crate::workspace::{
    AgentLock, AgentLocks, CommandFolders, OutputKind, OutputMarks, Stopped, Workspace, WorkspaceFault,
    Workspaces,
};

/// How much longer than its command a call may take: a box is made, and ended in good order.
pub(super) const SLACK_MS: u64 = 60_000;
/// Outputs up to this size are shown whole.
pub(super) const SHOWN_BYTES: u32 = 8_192;

/// The driver of `run_command`, for the agents of one tree. As a source of tools it decides whether the tree may start.
/// Clones are the same driver.
#[derive(Clone, Debug)]
pub struct Commands {
    shared: Arc<SharedCommands>,
    hidden: HiddenFolders,
    outbound: SharedOutbound,
}

/// The way to the network.
#[derive(Clone)]
struct SharedOutbound(Arc<dyn Outbound>);

impl fmt::Debug for SharedOutbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedOutbound")
    }
}

/// What a tree may do with commands in this process.
#[derive(Clone, Debug)]
pub(super) struct PreparedCommands {
    pub(super) permissions: BoxPermissions,
    mark: Vec<OsString>,
}

#[derive(Debug)]
struct SharedCommands {
    helper: PathBuf,
    tier: BoxTierChoice,
    launcher: OnceCell<BoxLauncher>,
    prepared: Mutex<Option<PreparedCommands>>,
    /// One command at a time for an agent: what it left in `outputs/` is then its own.
    agents: AgentLocks,
    /// Folders of agents with outputs that no call has taken: it was given up, or there was too much. All of them are taken
    /// by the next one that can.
    untaken: Mutex<BTreeSet<PathBuf>>,
    unsearched: UnsearchedFolders,
}

impl Commands {
    /// `helper` is as for [`BoxLauncher::new`].
    #[must_use]
    pub fn new(helper: PathBuf) -> Self {
        Self::with_tier(helper, BoxTierChoice::Best)
    }

    /// The same with boxes of one tier.
    #[must_use]
    pub fn with_tier(helper: PathBuf, tier: BoxTierChoice) -> Self {
        let (launcher, prepared) = (OnceCell::new(), Mutex::default());
        let (agents, untaken) = (AgentLocks::default(), Mutex::default());
        let unsearched = UnsearchedFolders::default();
        let shared = SharedCommands { helper, tier, launcher, prepared, agents, untaken, unsearched };
        Self {
            shared: Arc::new(shared),
            hidden: HiddenFolders::default(),
            outbound: SharedOutbound(Arc::new(SystemOutbound::default())),
        }
    }

    /// With boxes of this launcher, which is not tried again.
    #[must_use]
    pub fn with_launcher(launcher: BoxLauncher, tier: BoxTierChoice) -> Self {
        let (launcher, prepared) = (OnceCell::new_with(Some(launcher)), Mutex::default());
        let (agents, untaken) = (AgentLocks::default(), Mutex::default());
        let (helper, unsearched) = (PathBuf::new(), UnsearchedFolders::default());
        let shared = SharedCommands { helper, tier, launcher, prepared, agents, untaken, unsearched };
        Self {
            shared: Arc::new(shared),
            hidden: HiddenFolders::default(),
            outbound: SharedOutbound(Arc::new(SystemOutbound::default())),
        }
    }

    /// Keeps these folders from every command, whatever is granted around them.
    #[must_use]
    pub fn hiding(mut self, hidden: HiddenFolders) -> Self {
        self.hidden = hidden;
        self
    }

    /// Connects through this instead of through the system.
    #[must_use]
    pub fn connecting(mut self, outbound: Arc<dyn Outbound>) -> Self {
        self.outbound = SharedOutbound(outbound);
        self
    }

    /// Sets what the user allows, and what each guard has on its command line, so that others know what it guards. Nothing
    /// runs before that.
    pub fn prepare(&self, permissions: BoxPermissions, mark: Vec<OsString>) {
        let prepared = Some(PreparedCommands { permissions, mark });
        *self.shared.prepared.lock().unwrap_or_else(PoisonError::into_inner) = prepared;
    }

    /// The name of the tool.
    #[must_use]
    pub fn tool_name() -> ToolName {
        match RUN_COMMAND.parse() {
            Ok(name) => name,
            Err(_) => unreachable!("it is a name"),
        }
    }

    /// The tool.
    #[must_use]
    pub fn tool(&self) -> Arc<dyn Tool> {
        Arc::new(RunCommand(self.clone()))
    }

    /// A tool that runs one command of its own, in the same boxes.
    #[must_use]
    pub fn command_tool(&self, spec: CommandToolSpec) -> Arc<dyn Tool> {
        Arc::new(CommandTool { commands: self.clone(), spec })
    }

    pub(super) fn prepared(&self) -> Result<PreparedCommands, String> {
        let prepared = self.shared.prepared.lock().unwrap_or_else(PoisonError::into_inner).clone();
        prepared.ok_or_else(|| "this process is not prepared for commands: the `main` of its program has to call `guard_a_box` first, and its home has to be readable".to_owned())
    }

    pub(super) fn hidden(&self) -> &HiddenFolders {
        &self.hidden
    }

    pub(super) fn tier_choice(&self) -> BoxTierChoice {
        self.shared.tier
    }

    pub(super) fn agent(&self, folder: &AgentFolder) -> Arc<AgentLock> {
        self.shared.agents.get(folder)
    }

    pub(super) fn outbound(&self) -> &Arc<dyn Outbound> {
        &self.outbound.0
    }

    pub(super) fn untaken(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.shared.untaken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A search of what is about to run in an agent's folders of the user. Nothing runs where an earlier one was not finished
    /// and cannot be.
    pub(super) async fn begin_search(
        &self,
        agent: &AgentId,
        rights: &Rights,
        kept: &FolderCovers,
    ) -> Result<Option<SettingsSearch>, String> {
        let search = SettingsSearch::begin(agent, rights, &self.hidden, kept, &self.shared.unsearched);
        off_worker(move || search.map(|search| search.check_earlier().map(|()| search)).transpose()).await
    }

    /// Tries once what this machine enforces.
    pub(super) async fn launcher(&self, prepared: &PreparedCommands) -> Result<&BoxLauncher, BoxRefusal> {
        let shared = &self.shared;
        let start = async || BoxLauncher::with_mark(shared.helper.clone(), prepared.mark.clone()).await;
        shared.launcher.get_or_try_init(start).await
    }

    /// Runs what `command` says of the agent's own folder and of where its commands begin, if that is elsewhere.
    /// `requests` is whether a call of this tool can name hosts to ask for; with a `kind`, what it prints is saved.
    pub(super) async fn run(
        &self,
        attempt: ToolAttempt,
        requests: HostRequests,
        kind: Option<OutputKind>,
        command: impl FnOnce(&Path, Option<&Path>) -> Result<BoxedCommand, String>,
    ) -> ToolAnswer {
        self.try_run(attempt, requests, kind, command).await.unwrap_or_else(|why| not_started(&why))
    }

    async fn try_run(
        &self,
        attempt: ToolAttempt,
        requests: HostRequests,
        kind: Option<OutputKind>,
        command: impl FnOnce(&Path, Option<&Path>) -> Result<BoxedCommand, String>,
    ) -> Result<ToolAnswer, String> {
        let folder = attempt.workspace.as_ref();
        let folder = folder.ok_or("there is no folder to work in: do without commands")?.clone();
        let prepared = self.prepared()?;
        let launcher = self.launcher(&prepared).await.map_err(|refusal| said(&refusal))?;
        let held = self.shared.agents.get(&folder).lock_owned().await;
        let path = folder.path();
        let rights = attempt.rights.clone();
        let mut ready = Ready::new(folder.clone(), attempt.outputs, (rights, self.hidden.clone())).await?;
        let copy = open_copy(&folder, attempt.working_copy.as_ref()).await?;
        let begin = copy.as_ref().map(|copy| copy.folder.as_path());
        let command = command(&ready.folders.scratch, begin)?;
        let spec = &attempt.sandbox;
        let folders = ready.folders.clone();
        let (permissions, tier) = (&prepared.permissions, self.tier_choice());
        let covers = ready.covers.clone();
        let mut confinement = confinement(folders, &attempt.rights, covers, spec, permissions, tier)?;
        if let Some(copy) = &copy {
            let unusable = |error: std::io::Error| format!("your folder cannot be used: {}", error.kind());
            ready.workspace.link_copy().map_err(unusable)?;
            confinement.write.push(copy.folder.clone());
            confinement.read.push(copy.objects.clone());
        }
        if !self.untaken().insert(path.clone()) {
            ready.before = OutputMarks::default();
        }
        let (note, lock) = copy.map(|copy| (copy.note, copy.lock)).unzip();
        let agent = folder.origin().agent();
        let search = self.begin_search(agent, &attempt.rights, &ready.covers).await?;
        let afterwards = Afterwards { copy: lock, search: search.clone() };
        let log = ProxyLog::new(attempt.connections.clone());
        let connector = Connector::new(attempt.rights.network.clone(), Arc::clone(&self.outbound.0));
        let proxy = Proxy::new(connector, log.clone());
        let end = end(launcher, (&confinement, &proxy), &command, &attempt.watchers, afterwards).await?;
        let (spec, outputs, commands) = (spec.clone(), attempt.outputs, self.clone());
        let durability = attempt.durability;
        let (mut answer, searched) = off_worker(move || {
            let searched = search.map(|search| search.end());
            let unsaved = kind.and_then(|kind| save(&end, &ready.workspace, &kind, outputs, durability));
            let left = ready.workspace.left_outputs(&ready.before, outputs);
            if left.is_ok() {
                commands.untaken().remove(&path);
            }
            // A call that was given up still has it until its files are read.
            drop(held);
            let mut answer = answer(&end, &spec, left);
            answer.text.extend(unsaved);
            (answer, searched)
        })
        .await;
        let (changed, past) = searched.map(SearchEnd::into_parts).unwrap_or_default();
        if let Some(changed) = changed {
            answer.text = format!("{changed}\n{}", answer.text);
        }
        if let Some(past) = past {
            answer = answer.with_exit(past);
        }
        answer.text += &refused_connections(&log, requests);
        if let Some(note) = note.flatten() {
            answer.text = format!("{note}\n{}", answer.text);
        }
        Ok(answer)
    }
}

/// The working copy of an agent that has one; it is made if it is not there.
pub(super) async fn open_copy(
    folder: &AgentFolder,
    repository: Option<&FolderPath>,
) -> Result<Option<OpenCopy>, String> {
    let Some(repository) = repository else { return Ok(None) };
    let opened = OpenCopy::open(folder, Path::new(repository.as_str())).await;
    opened.map(Some).map_err(|error| format!("there is no working copy: {}", error.in_words()))
}

/// An agent's folder, ready for a command.
pub(super) struct Ready {
    pub(super) workspace: Workspace,
    pub(super) folders: CommandFolders,
    pub(super) before: OutputMarks,
    pub(super) covers: FolderCovers,
}

impl Ready {
    pub(super) async fn new(
        folder: AgentFolder,
        outputs: OutputLimits,
        (rights, hidden): (Rights, HiddenFolders),
    ) -> Result<Self, String> {
        off_worker(move || {
            let covers = FolderCovers::new(&rights, &hidden)?;
            let unusable = |error: std::io::Error| format!("your folder cannot be used: {}", error.kind());
            let opened = || -> Result<Workspace, WorkspaceFault> {
                Workspaces::below(folder.root(), folder.origin().tree)?.agent(folder.origin().agent())
            };
            let workspace = opened().map_err(|fault| unusable(fault.source))?;
            let folders = workspace.command_folders(&folder.path()).map_err(unusable)?;
            let before = match workspace.output_marks(outputs) {
                Ok(marks) => marks,
                Err(Stopped::Limit { .. }) => OutputMarks::default(),
                Err(Stopped::Io(error)) => return Err(unusable(error)),
            };
            Ok(Self { workspace, folders, before, covers })
        })
        .await
    }
}

/// What there is to do when everything of a command has ended, also when its call was given up.
pub(super) struct Afterwards {
    /// Its working copy stays locked until then.
    pub(super) copy: Option<CopyLock>,
    pub(super) search: Option<SettingsSearch>,
}

/// Runs a command to its end and shows watchers what it prints. Dropping this ends everything that it started.
async fn end(
    launcher: &BoxLauncher,
    (confinement, proxy): (&Confinement, &Proxy),
    command: &BoxedCommand,
    watchers: &OutputWatchers,
    afterwards: Afterwards,
) -> Result<BoxedEnd, String> {
    let mut running = launcher.start(confinement, command).map_err(|refusal| said(&refusal))?;
    let network = running.take_network();
    let mut running = RunningCommand { running: Some(running), afterwards: Some(afterwards) };
    let mut cut = [Vec::new(), Vec::new()];
    let mut show = |stream: OutputStream, bytes: &[u8]| {
        let cut = match stream {
            OutputStream::Stdout => &mut cut[0],
            OutputStream::Stderr => &mut cut[1],
        };
        watchers.show(&whole_characters(cut, bytes));
    };
    let listener = async {
        match network {
            Some(network) => network.listener().await,
            None => Ok(None),
        }
    };
    let end = proxy.serve_during(listener, running.finish(&mut show)).await;
    end.map_err(|error| format!("its guard cannot be followed ({error})"))
}

/// A command that may be given up.
pub(super) struct RunningCommand {
    pub(super) running: Option<BoxedRun>,
    pub(super) afterwards: Option<Afterwards>,
}

impl RunningCommand {
    pub(super) async fn finish(
        &mut self,
        show: &mut (dyn FnMut(OutputStream, &[u8]) + Send),
    ) -> std::io::Result<BoxedEnd> {
        let Some(running) = &mut self.running else { return Err(std::io::ErrorKind::NotFound.into()) };
        let end = running.finish(show).await?;
        self.running = None;
        Ok(end)
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        let (Some(mut running), Some(afterwards)) = (self.running.take(), self.afterwards.take()) else {
            return;
        };
        running.cancel();
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                // Dropping it ends the box, whatever this says.
                let _ = running.finish(&mut |_, _| ()).await;
                drop(afterwards.copy);
                if let Some(search) = afterwards.search {
                    off_worker(move || search.end()).await;
                }
            });
        }
    }
}

/// The text of these bytes after those that were cut before, without a character that is cut at the end.
fn whole_characters(cut: &mut Vec<u8>, bytes: &[u8]) -> String {
    cut.extend_from_slice(bytes);
    let end = match std::str::from_utf8(cut) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Ok(_) | Err(_) => cut.len(),
    };
    let rest = cut.split_off(end);
    String::from_utf8_lossy(&std::mem::replace(cut, rest)).into_owned()
}

struct RunCommand(Commands);

impl Tool for RunCommand {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            description: DESCRIPTION.to_owned(),
            schema: SCHEMA.to_owned(),
            // What it did before it was lost is unknown, so that it is not done again.
            lost: OnLost::Presumed,
            timeout_ms: Some(u64::try_from(TIMEOUT_MAX.as_millis()).unwrap_or(u64::MAX) + SLACK_MS),
            shown_bytes: Some(SHOWN_BYTES),
            subject: Some(ToolSubject::command("command")),
            hosts: Some(hosts_argument()),
            ..ToolSpec::default()
        }
    }

    fn call(&self, attempt: ToolAttempt) -> Pending<Result<ToolAnswer, AttemptError>> {
        let commands = self.0.clone();
        Box::pin(async move {
            let (args, rights) = (attempt.args.clone(), attempt.rights.clone());
            let requests = rights.host_requests;
            let command = |scratch: &Path, begin: Option<&Path>| {
                let written: Args = serde_json::from_str(&args)
                    .map_err(|error| format!("`{RUN_COMMAND}` cannot be called like this: {error}"))?;
                check_hosts(&args, &rights)?;
                written.command(scratch, begin)
            };
            Ok(commands.run(attempt, requests, None, command).await)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_that_comes_in_two_pieces_is_shown_once_and_whole() {
        let mut cut = Vec::new();
        let shown: Vec<String> = ["a\u{e9}".as_bytes(), &[0xe2, 0x82], &[0xac, b'b'], &[0xff, b'c'], &[0xc3]]
            .into_iter()
            .map(|bytes| whole_characters(&mut cut, bytes))
            .collect();
        assert_eq!(shown, ["a\u{e9}", "", "\u{20ac}b", "\u{fffd}c", ""]);
    }
}
