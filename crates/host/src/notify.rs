//! Starts the user's own command when a tree ends, halts or asks a person. The command runs beside the tree, for a short
//! time, and what comes of it changes nothing about the tree.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use spinney::Tree;
use spinney::bus::{TracedEvent, Watch};
use spinney_kernel::primitives::{CallId, Millis, Seq, TreeId};
use spinney_kernel::record::{Event, Exit, ExitKind};
use spinney_kernel::world::TreeState;
use tokio::process::Command;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use crate::system::processes;
use crate::user::configuration::NotifyCommand;
use crate::user::folders;
use crate::user::variables::of_environment;

/// How long the command may take; then it is killed.
const TIME_MAX: Duration = Duration::from_secs(10);
/// How long it may take after that until everything is over.
const GRACE: Duration = Duration::from_secs(2);
/// Most that run at the same time.
const AT_ONCE_MAX: usize = 4;

/// The variables that the command gets from ours. Keys may have any name, so it gets no others.
const PASSED_ON: [&str; 22] = [
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_CONFIG_HOME",
    "XDG_CURRENT_DESKTOP",
    "XDG_DATA_DIRS",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];

/// Watches a tree for what its user wants to know; nothing without a command.
#[derive(Default)]
pub struct Notifier {
    watching: Option<JoinHandle<()>>,
}

/// What the command learns about a tree.
struct Subject {
    tree: TreeId,
    name: String,
    home: PathBuf,
    command: NotifyCommand,
}

impl Notifier {
    /// Watches a tree from after this event on, if the user has a command for it.
    pub fn watch(command: Option<&NotifyCommand>, tree: &Tree, past: Seq, name: &str, home: &Path) -> Self {
        let Some(command) = command.cloned() else { return Self { watching: None } };
        // The command runs in another folder.
        let home = std::path::absolute(home).unwrap_or_else(|_| home.to_owned());
        let subject = Arc::new(Subject { tree: tree.id(), name: name.to_owned(), home, command });
        let mut events = tree.watch(Watch::after(past));
        let watching = tokio::spawn(async move {
            let mut commands = JoinSet::new();
            let mut states = States::default();
            // The tree's follower reports a journal that cannot be read.
            while let Some(Ok(event)) = events.next_event().await {
                let Some(about) = states.occasion(&event) else { continue };
                while commands.try_join_next().is_some() {}
                if commands.len() >= AT_ONCE_MAX {
                    let program = subject.command.program();
                    tracing::warn!(
                        "notify command `{program}` was not started: {AT_ONCE_MAX} of them are still running"
                    );
                    continue;
                }
                let subject = Arc::clone(&subject);
                commands.spawn(async move { subject.notify(about).await });
            }
            while commands.join_next().await.is_some() {}
        });
        Self { watching: Some(watching) }
    }

    /// Waits until every command is over. The tree is no longer run.
    pub async fn end(self) {
        let Some(mut watching) = self.watching else { return };
        if timeout(TIME_MAX + GRACE, &mut watching).await.is_err() {
            watching.abort();
        }
    }
}

/// What happened, and the state of the tree after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Occasion {
    event: &'static str,
    state: TreeState,
    /// The event after which it is in this state.
    seq: Seq,
}

/// What the user knows already: they are told once of each time in which questions are open, and of each halt.
#[derive(Debug, Default)]
struct States {
    open: BTreeSet<CallId>,
    is_halted: bool,
}

impl States {
    fn occasion(&mut self, TracedEvent { recorded, context, .. }: &TracedEvent) -> Option<Occasion> {
        let (event, state) = match &recorded.event {
            Event::TreeHalted { .. } => {
                let was_halted = std::mem::replace(&mut self.is_halted, true);
                (!was_halted).then_some(("halted", TreeState::Halted))?
            }
            Event::TreeUnhalted => {
                self.is_halted = false;
                return None;
            }
            Event::QuestionAsked { call, .. } => {
                let is_first = self.open.is_empty();
                self.open.insert(*call);
                is_first.then_some(("asked", TreeState::Waiting))?
            }
            Event::CallEnded { call, .. } => {
                self.open.remove(call);
                return None;
            }
            Event::AgentEnded { exit, .. } if context.path().len() == 1 => {
                let kind = match exit {
                    Exit::Completed => ExitKind::Completed,
                    Exit::Cancelled { .. } => ExitKind::Cancelled,
                    Exit::Failed { .. } | Exit::Exhausted { .. } => ExitKind::Failed,
                };
                ("ended", TreeState::Ended(kind))
            }
            _ => return None,
        };
        Some(Occasion { event, state, seq: recorded.seq })
    }
}

impl Subject {
    async fn notify(&self, occasion: Occasion) {
        if let Err(why) = self.run(occasion).await {
            tracing::warn!("notify command `{}` {why}", self.command.program());
        }
    }

    async fn run(&self, Occasion { event, state, seq }: Occasion) -> Result<(), String> {
        let mut command = Command::new(self.command.program());
        command.args(self.command.words().iter().skip(1));
        command.env_clear();
        for name in PASSED_ON {
            command.envs(of_environment(name).map(|value| (name, value)));
        }
        command
            .env("SPINNEY_EVENT", event)
            .env("SPINNEY_ID", format!("{}:{}", self.tree, seq.0))
            .env("SPINNEY_TREE", self.tree.to_string())
            .env("SPINNEY_NAME", self.name.replace('\0', ""))
            .env("SPINNEY_STATE", state.as_str())
            .env("SPINNEY_HOME", &self.home)
            // In a project, a program may take what is around for its own.
            .current_dir(
                folders::configuration().filter(|folder| folder.is_dir()).unwrap_or(PathBuf::from("/")),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| format!("cannot be started: {error}"))?;
        let group = child.id();
        let ended = timeout(TIME_MAX, child.wait()).await;
        if ended.is_err()
            && let Some(group) = group
        {
            processes::kill_group(group);
            let _ = child.wait().await;
        }
        match ended {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(ended_with(status)),
            Ok(Err(error)) => Err(format!("was lost: {error}")),
            Err(_) => Err(format!("was killed after {:#}", Millis(TIME_MAX.as_millis() as u64))),
        }
    }
}

fn ended_with(status: ExitStatus) -> String {
    status
        .code()
        .map_or_else(|| format!("was killed ({status})"), |code| format!("failed with exit code {code}"))
}
