//! Runs the programs that are agents of trees: each has a gateway of its own, which books its model calls at its agent, and
//! a box, in which the tree's drivers start it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use spinney::tree::{ProgramRun, ProgramRunner};
use spinney_drivers::wire::Secrets;
use spinney_host::exec::agent::{
    AgentPlace, AgentReader, AgentReply, AgentStart, AgentWork, interrupted_followup, session_store,
};
use spinney_host::exec::environment::UserEnvironment;
use spinney_host::exec::options::RunOptions;
use spinney_host::user::configuration::Configuration;
use spinney_host::user::variables::Variables;
use spinney_host::{off_workers, with_causes};
use spinney_kernel::budget::Used;
use spinney_kernel::context::ProgramPast;
use spinney_kernel::definition::{ProgramCommand, ProgramSpec};
use spinney_kernel::port::Pending;
use spinney_kernel::port::model::{AttemptError, Deltas, Model, ModelAnswer, ModelAttempt};
use spinney_kernel::port::program::{ProgramAttempt, ProgramStarter, SessionCopy};
use spinney_kernel::port::tool::{ToolAnswer, ToolAttempt};
use spinney_kernel::primitives::{Fault, FaultKind, TreeId};
use spinney_kernel::record::{FollowupStart, NoSession};
use tokio::time::sleep;

use crate::exec::gateway_settings;
use crate::gateway::{Gateway, GatewayModel, GatewaySettings, GatewaySocket, OnLimit, PendingCalls};

/// How long the calls of a program that has ended may take to end: a provider bills on, and only the end of its response
/// says how much.
const SETTLING: Duration = Duration::from_secs(30);

/// Reads what a person decides about the calls of a program.
type ReadSettings = dyn Fn(&ProgramSpec) -> Result<ProgramSettings, String> + Send + Sync;

/// Runs the programs of the trees of one home.
pub struct ProgramGateways {
    settings: Arc<ReadSettings>,
    calls: Arc<TreeCalls>,
}

/// What a person decides about the calls of programs.
pub struct ProgramSettings {
    /// The user's keys and addresses.
    pub user: UserEnvironment,
    /// The gateway's.
    pub gateway: GatewaySettings,
}

/// Where the calls of each tree and their connections meet, for as long as one of its programs runs.
#[derive(Default)]
struct TreeCalls(Mutex<BTreeMap<TreeId, Weak<PendingCalls>>>);

impl Default for ProgramGateways {
    /// With the user's configuration and keys, read again for each program.
    fn default() -> Self {
        Self::with_settings(users_settings)
    }
}

impl ProgramGateways {
    /// With other settings than the user's.
    #[must_use]
    pub fn with_settings(
        settings: impl Fn(&ProgramSpec) -> Result<ProgramSettings, String> + Send + Sync + 'static,
    ) -> Self {
        Self { settings: Arc::new(settings), calls: Arc::default() }
    }
}

/// What the user's configuration and variables say.
fn users_settings(program: &ProgramSpec) -> Result<ProgramSettings, String> {
    let configuration = Configuration::read().map_err(|error| with_causes(&error))?;
    let variables = Variables::read(&configuration).map_err(|error| with_causes(&error))?;
    let user = UserEnvironment::read(&variables);
    let name = match &program.command {
        ProgramCommand::Known(known) => known.as_str().to_owned(),
        ProgramCommand::Words(_) => program.command.shown().split(' ').next().unwrap_or_default().to_owned(),
    };
    let gateway = gateway_settings(&RunOptions::default(), &configuration, &user, &name, None);
    Ok(ProgramSettings { user, gateway: gateway.map_err(|error| error.to_string())? })
}

impl ProgramRunner for ProgramGateways {
    fn model(&self) -> Arc<dyn Model> {
        Arc::new(CallsOfPrograms(Arc::clone(&self.calls)))
    }

    fn run(&self, run: ProgramRun) -> Pending<Result<ToolAnswer, AttemptError>> {
        let (settings, calls) = (Arc::clone(&self.settings), self.calls.of_tree(run.tree.id()));
        Box::pin(async move {
            let spec = Arc::clone(&run.spec);
            let read: Result<ProgramSettings, String> = off_workers(async move || settings(&spec)).await;
            run_program(run, read.map_err(|why| not_started(&why))?, calls).await
        })
    }
}

async fn run_program(
    run: ProgramRun,
    settings: ProgramSettings,
    calls: Arc<PendingCalls>,
) -> Result<ToolAnswer, AttemptError> {
    let ProgramRun { tree, agent, spec, mut task, attempt, starter, mut session, past, sessions, .. } = run;
    let ProgramSettings { user, gateway: settings } = settings;
    let on_limit = OnLimit::Wait(Duration::from_millis(spec.halt_wait_ms()));
    let settings = GatewaySettings { on_limit, ..settings };
    let role = attempt.origin.role.clone();
    let failed = |error: &dyn std::error::Error| not_started(&with_causes(error));
    let socket = GatewaySocket::bind(None).await.map_err(|error| failed(&error))?;
    let notices = Arc::new(|_| ());
    let gateway = Gateway::start_below(tree, (agent, role), calls, settings, notices, socket).await;
    let gateway = gateway.map_err(|error| failed(&error))?;
    let (address, key) = (gateway.address(), gateway.key().text().to_owned());
    let keys = Secrets::new([key.clone()]);
    let (command, walls) = (spec.command.clone(), spec.sandbox.walls);
    let mut is_next = past.is_some() && session.is_some();
    if is_next {
        task = interrupted_followup(&task);
    }
    if let (None, Some(past)) = (&session, &past) {
        let begin = followup_start(past, &command, &attempt, starter.as_ref()).await;
        match &begin {
            FollowupStart::Session(found) => (session, is_next) = (Some(found.clone()), true),
            FollowupStart::Anew(_) => task = past.retold(&task),
        }
        sessions.followup_started(past.agent.clone(), begin).await;
    }
    // It looks for the program's file.
    let start = off_workers(async move || {
        let place = AgentPlace { gateway: address, key: &key, walls };
        let work = match &session {
            None => AgentWork::Task(&task),
            Some(session) if is_next => AgentWork::Next(session, &task),
            Some(session) => AgentWork::Rest(session),
        };
        AgentStart::new(&command, work, &place, &user)
    });
    let start = start.await.map_err(|error| failed(&error))?;
    let reader = Arc::new(Mutex::new(AgentReader::new(start.output)));
    let (read, watchers, hidden) = (Arc::clone(&reader), attempt.watchers.clone(), keys.clone());
    let mut named = None;
    let on_output = Box::new(move |bytes: &[u8]| {
        let mut reader = read.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = reader.read(bytes);
        if let Some(session) = reader.session().filter(|session| named.as_ref() != Some(*session)) {
            // A busy tree is told with the next piece.
            named = sessions.name(session.clone()).then(|| session.clone());
        }
        drop(reader);
        if !shown.is_empty() {
            watchers.show(&without(&hidden, &shown));
        }
    });
    let program = ProgramAttempt::new(attempt, start.arguments, address.port())
        .with_environment(start.environment)
        .with_installation(start.file, start.installation)
        .with_output(on_output);
    let answer = starter.run(program).await.map_err(|why| not_started(&why))?;
    gateway.close(sleep(SETTLING)).await;
    let output = start.output;
    let reader = std::mem::replace(
        &mut *reader.lock().unwrap_or_else(PoisonError::into_inner),
        AgentReader::new(output),
    );
    let AgentReply { text, is_error, .. } = reader.end(&answer.stdout, &answer.stderr, answer.end.exit);
    let text = without(&keys, &text);
    let notes = &answer.end.text;
    let text = if notes.is_empty() || is_error { text } else { format!("{text}\n\n{notes}") };
    let mut end = answer.end;
    (end.text, end.is_error) = (text, is_error);
    Ok(end)
}

/// Brings the session to the agent in which it continues another, if that can be.
async fn followup_start(
    past: &ProgramPast,
    command: &ProgramCommand,
    attempt: &ToolAttempt,
    starter: &dyn ProgramStarter,
) -> FollowupStart {
    let Some(store) = session_store(command) else { return FollowupStart::Anew(NoSession::Unsupported) };
    let Some(session) = &past.session else { return FollowupStart::Anew(NoSession::Unnamed) };
    let copy = SessionCopy::new(attempt.clone(), past.agent.clone(), session.clone(), store);
    match starter.copy_session(copy).await {
        Ok(()) => FollowupStart::Session(session.clone()),
        Err(why) => FollowupStart::Anew(why),
    }
}

/// What a program printed, without the key of its gateway: the journal keeps it, and others read it.
fn without(keys: &Secrets, text: &str) -> String {
    String::from_utf8_lossy(&keys.hide(text.as_bytes())).into_owned()
}

/// The program never ran.
fn not_started(why: &str) -> AttemptError {
    let fault = Fault { message: why.to_owned(), ..Fault::new(FaultKind::Invalid) };
    AttemptError { fault, used: Used::NOTHING }
}

impl TreeCalls {
    fn of_tree(&self, tree: TreeId) -> Arc<PendingCalls> {
        let mut all = self.all();
        all.retain(|_, calls| calls.strong_count() > 0);
        if let Some(calls) = all.get(&tree).and_then(Weak::upgrade) {
            return calls;
        }
        let calls = Arc::new(PendingCalls::new());
        all.insert(tree, Arc::downgrade(&calls));
        calls
    }

    fn known(&self, tree: TreeId) -> Option<Arc<PendingCalls>> {
        self.all().get(&tree).and_then(Weak::upgrade)
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<TreeId, Weak<PendingCalls>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The driver of the model calls of programs.
struct CallsOfPrograms(Arc<TreeCalls>);

impl Model for CallsOfPrograms {
    fn call(&self, attempt: Arc<ModelAttempt>, deltas: Deltas) -> Pending<Result<ModelAnswer, AttemptError>> {
        match self.0.known(attempt.origin.tree) {
            Some(calls) => GatewayModel::new(calls).call(attempt, deltas),
            // Its program has ended, and nothing of it was sent.
            None => Box::pin(async {
                let fault = Fault::new(FaultKind::Cut);
                Err(AttemptError { fault, used: Used::NOTHING })
            }),
        }
    }

    fn used_when_stopped(&self, attempt: &ModelAttempt, said: &str) -> Used {
        match self.0.known(attempt.origin.tree) {
            Some(calls) => GatewayModel::new(calls).used_when_stopped(attempt, said),
            // It may have been sent.
            None => Used::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use spinney_host::doctor::tried_version;
    use spinney_kernel::definition::KnownProgram;

    /// What `doctor` says was tried is what the gateway's list was seen with, and what the page says.
    #[test]
    fn the_versions_that_were_tried_are_those_of_the_list() {
        let list: serde_json::Value =
            serde_json::from_str(include_str!("gateway/wire/allow_list.json")).unwrap();
        let seen = |name: &str| list["seen_with"][name].as_str();
        assert_eq!(tried_version(KnownProgram::Claude), seen("Claude Code"));
        assert_eq!(tried_version(KnownProgram::Codex), seen("Codex"));
        assert_eq!(tried_version(KnownProgram::Opencode), seen("opencode"));
        let page = include_str!("../../../docs/programs.md");
        for program in KnownProgram::ALL {
            let tried = tried_version(program);
            assert!(tried.is_none_or(|version| page.contains(version)), "{program:?}");
        }
    }
}
