//! The program that an agent is: it runs in the box that commands of the agent would have, with the gateway beside the
//! proxy, no limit of time, and sessions of its own.

use std::future::pending;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use spinney_kernel::definition::{BoxWalls, HostRequests, Network};
use spinney_kernel::port::program::{OnOutput, ProgramAnswer, ProgramAttempt, ProgramStarter, SessionCopy};
use spinney_kernel::port::{FolderAccess, Pending, Rights};
use spinney_kernel::record::NoSession;

use super::answer::{PRINTED_NOTHING, answer, refused_connections};
use super::changed_settings::SearchEnd;
use super::confinement::{box_network, confinement};
use super::gate::said;
use super::tool::{Afterwards, Commands, Ready, RunningCommand, open_copy};
use crate::network::{Connector, Proxy, ProxyLog, forward_all};
use crate::off_worker::off_worker;
use crate::sandbox::{
    BoxLauncher, BoxLimits, BoxListener, BoxNetwork, BoxTierChoice, BoxedCommand, BoxedEnd, Confinement,
    KeptOutput, LocalhostMeaning, OutputStream, PlacedPath,
};
use crate::workspace::{COPY, OutputMarks, SessionFilesError, SessionPlace, WorkspaceFault, Workspaces};

/// Kept of the beginning and of the end of each output.
const KEPT_BYTES: usize = 1 << 20;
/// Shown of its standard error.
const STDERR_BYTES: usize = 4 << 10;
/// The line of a program that ended well, which says nothing.
const SUCCESS: &str = "exit code 0";
/// More than any build needs, and fewer than a machine has.
const PROCESSES_MAX: u64 = 4_096;
/// Room for a build and its linker.
const MEMORY_BYTES_MAX: u64 = 8 << 30;
/// Room for the dependencies of a large project and what is built of them.
const DISK_BYTES_MAX: u64 = 32 << 30;

impl ProgramStarter for Commands {
    fn run(&self, attempt: ProgramAttempt) -> Pending<Result<ProgramAnswer, String>> {
        let commands = self.clone();
        Box::pin(async move { commands.run_program(attempt).await })
    }

    fn copy_session(&self, order: SessionCopy) -> Pending<Result<(), NoSession>> {
        Box::pin(off_worker(move || {
            copy_session(&order).map_err(|error| match error {
                SessionFilesError::Gone => NoSession::Gone,
                SessionFilesError::TooLarge => NoSession::TooLarge,
                SessionFilesError::Io(error) => {
                    tracing::warn!("the session of `{}` cannot be copied: {error}", order.from);
                    NoSession::NotCopied
                }
            })
        }))
    }
}

/// What the box of a program is, before its folders are looked at.
pub(super) fn boxed(mut confinement: Confinement, walls: BoxWalls, network: &Network) -> Confinement {
    if walls == BoxWalls::None {
        return confinement;
    }
    confinement.tier = BoxTierChoice::Namespaces;
    confinement.network = match box_network(network) {
        // There is always one, for the gateway.
        BoxNetwork::None => BoxNetwork::Proxied { localhost: LocalhostMeaning::Box },
        network => network,
    };
    confinement
}

impl Commands {
    async fn run_program(&self, program: ProgramAttempt) -> Result<ProgramAnswer, String> {
        let ProgramAttempt {
            attempt,
            arguments,
            environment,
            gateway_port,
            file,
            installation,
            mut on_output,
            ..
        } = program;
        let gateway = SocketAddr::from((Ipv4Addr::LOCALHOST, gateway_port));
        let folder = attempt.workspace.clone().ok_or("there is no folder to work in")?;
        let prepared = self.prepared()?;
        let launcher = self.launcher(&prepared).await.map_err(|refusal| said(&refusal))?;
        let held = self.agent(&folder).lock_owned().await;
        let path = folder.path();
        let rights = attempt.rights.clone();
        let mut ready = Ready::new(folder.clone(), attempt.outputs, (rights, self.hidden().clone())).await?;
        let copy = open_copy(&folder, attempt.working_copy.as_ref()).await?;
        let (spec, folders, covers) = (&attempt.sandbox, ready.folders.clone(), ready.covers.clone());
        let made = confinement(
            folders.clone(),
            &attempt.rights,
            covers,
            spec,
            &prepared.permissions,
            self.tier_choice(),
        )?;
        let mut made = boxed(made, spec.walls, &attempt.rights.network);
        made.limits = BoxLimits {
            processes: spec.processes.unwrap_or(PROCESSES_MAX),
            memory_bytes: spec.memory_bytes.unwrap_or(MEMORY_BYTES_MAX),
            disk_bytes: spec.disk_bytes.unwrap_or(DISK_BYTES_MAX),
        };
        let begin = begins_in(folders.scratch, copy.as_ref().map(|copy| &copy.folder), &attempt.rights);
        if let Some(copy) = &copy {
            let unusable = |error: std::io::Error| format!("its folder cannot be used: {}", error.kind());
            ready.workspace.link_copy().map_err(unusable)?;
            made.write.push(copy.folder.clone());
            made.read.push(copy.objects.clone());
        }
        if spec.walls != BoxWalls::None {
            made.served_port = Some(gateway.port());
            let placed = installation.into_iter();
            let placed =
                placed.map(|path| PlacedPath { from: path.from, at: path.at, access: FolderAccess::Read });
            made.placed.extend(placed);
        }
        made.environment.extend(environment);
        if !self.untaken().insert(path.clone()) {
            ready.before = OutputMarks::default();
        }
        let (note, lock) = copy.map(|copy| (copy.note, copy.lock)).unzip();
        let agent = folder.origin().agent();
        let search = self.begin_search(agent, &attempt.rights, &ready.covers).await?;
        let afterwards = Afterwards { copy: lock, search: search.clone() };
        let command = BoxedCommand {
            folder: Some(begin),
            timeout: Duration::MAX,
            kept_bytes: KEPT_BYTES,
            ..BoxedCommand::new(arguments)
        };
        let log = ProxyLog::new(attempt.connections.clone());
        let rules = rules(&attempt.rights.network, made.network, gateway);
        let connector = Connector::new(rules, Arc::clone(self.outbound()));
        let serving = Serving { proxy: Proxy::new(connector, log.clone()), gateway };
        let end = run(launcher, (&made, file), &command, &serving, (afterwards, &mut on_output)).await?;
        let (spec, outputs, commands) = (spec.clone(), attempt.outputs, self.clone());
        let (stdout, stderr) = (whole(&end.stdout), last(&end.stderr));
        let (mut answer, searched) = off_worker(move || {
            let searched = search.map(|search| search.end());
            let left = ready.workspace.left_outputs(&ready.before, outputs);
            if left.is_ok() {
                commands.untaken().remove(&path);
            }
            // A call that was given up still has it until its files are read.
            drop(held);
            (answer(&without_output(&end), &spec, left), searched)
        })
        .await;
        let (changed, past) = searched.map(SearchEnd::into_parts).unwrap_or_default();
        if let Some(past) = past {
            answer = answer.with_exit(past);
        }
        // The journal has them all. Programs that succeed try hosts that nobody misses.
        let refused = match answer.is_error {
            true => refused_connections(&log, HostRequests::Refused),
            false => String::new(),
        };
        let lines = answer.text.lines().filter(|line| *line != PRINTED_NOTHING && *line != SUCCESS);
        let notes = [note.flatten(), changed].into_iter().flatten();
        let all = notes.chain(lines.map(str::to_owned)).chain([refused.trim().to_owned()]);
        answer.text = all.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
        Ok(ProgramAnswer::new(stdout, stderr, answer))
    }
}

/// Copies the files of a session into the home of an agent.
fn copy_session(
    SessionCopy { attempt, from, session, store, .. }: &SessionCopy,
) -> Result<(), SessionFilesError> {
    let Some(folder) = &attempt.workspace else { return Err(SessionFilesError::Gone) };
    let (tree, to) = (folder.origin().tree, folder.origin().agent());
    let io = |fault: WorkspaceFault| fault.source;
    let workspaces = Workspaces::below(folder.root(), tree).map_err(io)?;
    let agent = folder.path();
    let scratch = workspaces.agent(to).map_err(io)?.command_folders(&agent)?.scratch;
    let copy = agent.canonicalize()?.join(COPY);
    let begin = begins_in(scratch, attempt.working_copy.is_some().then_some(&copy), &attempt.rights);
    let first = store.first.map(|name| name(&begin));
    let place = SessionPlace { folder: store.folder, levels: store.levels, first };
    workspaces.copy_session((from, to), session, &place)
}

/// The folder in which a program begins.
fn begins_in(scratch: PathBuf, copy: Option<&PathBuf>, rights: &Rights) -> PathBuf {
    copy.cloned().or_else(|| only_writable(rights)).unwrap_or(scratch)
}

/// The folder in which a program begins that has no working copy: the one that it was granted to write, if it is one.
fn only_writable(rights: &Rights) -> Option<PathBuf> {
    let mut writable = rights.folders.iter().filter(|folder| folder.access == FolderAccess::Write);
    let first = writable.next()?;
    writable.next().is_none().then(|| first.path.clone())
}

/// Where `localhost` means the machine, programs also look for the gateway through the proxy.
fn rules(granted: &Network, network: BoxNetwork, gateway: SocketAddr) -> Network {
    let through_proxy = network == BoxNetwork::Proxied { localhost: LocalhostMeaning::Machine };
    let gateway = through_proxy.then(|| gateway.to_string().parse().ok()).flatten();
    Network::hosts(granted.rules().cloned().chain(gateway))
}

struct Serving {
    proxy: Proxy,
    gateway: SocketAddr,
}

impl Serving {
    /// Serves what the box connects to: granted hosts through the proxy, and the gateway.
    async fn during<T>(&self, listener: Option<BoxListener>, work: impl Future<Output = T>) -> T {
        let serve = async {
            let Some(listener) = listener else { return pending().await };
            // Without a box nothing connects.
            let Ok(Some(sockets)) = listener.listeners().await else { return pending().await };
            let to_hosts = self.proxy.serve_during(async { Ok(Some(sockets.proxy)) }, pending::<()>());
            let to_gateway = async {
                match &sockets.served {
                    Some(served) => match forward_all(served, self.gateway).await {},
                    None => pending::<()>().await,
                }
            };
            tokio::join!(to_hosts, to_gateway);
        };
        tokio::select! {
            done = work => done,
            () = serve => pending().await,
        }
    }
}

/// Runs it to its end. Dropping this ends everything that it started.
async fn run(
    launcher: &BoxLauncher,
    (confinement, file): (&Confinement, Option<PathBuf>),
    command: &BoxedCommand,
    serving: &Serving,
    (afterwards, on_output): (Afterwards, &mut OnOutput),
) -> Result<BoxedEnd, String> {
    let started = launcher.start_piped_program(confinement, command, file);
    let mut running = started.map_err(|refusal| said(&refusal))?;
    let network = running.take_network();
    let mut running = RunningCommand { running: Some(running), afterwards: Some(afterwards) };
    let mut show = |stream: OutputStream, bytes: &[u8]| {
        if stream == OutputStream::Stdout {
            on_output(bytes);
        }
    };
    let end = serving.during(network, running.finish(&mut show)).await;
    end.map_err(|error| format!("its guard cannot be followed ({error})"))
}

/// An output, without what is left out of a long one.
fn whole(output: &KeptOutput) -> String {
    let all = [output.head(), output.tail().as_slice()].concat();
    String::from_utf8_lossy(&all).into_owned()
}

fn last(output: &KeptOutput) -> String {
    let text = whole(output);
    let from = text.ceil_char_boundary(text.len().saturating_sub(STDERR_BYTES));
    text[from..].trim().to_owned()
}

fn without_output(end: &BoxedEnd) -> BoxedEnd {
    BoxedEnd { stdout: KeptOutput::default(), stderr: KeptOutput::default(), ..end.clone() }
}
