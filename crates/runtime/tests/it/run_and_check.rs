//! Runs a tree to its end on a stage, and checks what holds for every tree, however its models behave.

use spinney_journal::Blocking;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use spinney::Home;
use spinney::bus::RecordedEvent;
use spinney::tree::{TreeSnapshot, verify};
use spinney_kernel::budget::{Amounts, Resource};
use spinney_kernel::context::Message;
use spinney_kernel::definition::Definition;
use spinney_kernel::port::model::ModelAttempt;
use spinney_kernel::record::{Event, Exit};
use spinney_kernel::world::TreeState;
use spinney_testkit::{TestHome, definition, recorded};

/// Longer than any wait, question and retry of these trees together: anything longer hangs.
const PATIENCE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// A tree that has ended.
pub(crate) struct Played {
    /// Every model call, in order.
    pub(crate) attempts: Vec<Arc<ModelAttempt>>,
    pub(crate) snapshot: TreeSnapshot,
    pub(crate) recorded: Vec<RecordedEvent>,
}

/// A tool call's result, as the model reads it.
#[derive(Debug)]
pub(crate) struct Returned {
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) is_error: bool,
}

/// The tree of a fixture without a limit on the output of a turn.
pub(crate) fn wordy(fixture: &str) -> Definition {
    let mut wordy = definition(fixture);
    for (_, role) in &mut wordy.roles {
        if let Some(turns) = &mut role.turns {
            turns.output_cap = Some(1_000_000);
        }
    }
    wordy
}

impl Played {
    /// Runs the tree of a fixture with a script.
    pub(crate) async fn by(script: &str, fixture: &str) -> Self {
        Self::on(TestHome::new(script), wordy(fixture)).await
    }

    /// Runs a tree on a stage, and checks what holds for all: it ends, nothing is left running, no ceiling or limit was
    /// exceeded, and deciding everything again gives the same.
    pub(crate) async fn on(stage: TestHome, definition: Definition) -> Self {
        let (home, model) = (stage.home(), stage.model());
        let played = Self::at(&home, definition, || model.attempts()).await;
        assert_eq!(model.out(), 0, "model calls are out");
        played
    }

    /// The same in a home, with the caller's own model.
    pub(crate) async fn at(
        home: &Home,
        definition: Definition,
        attempts: impl FnOnce() -> Vec<Arc<ModelAttempt>>,
    ) -> Self {
        let tree = home.start(definition.clone()).await.unwrap();
        let status = tokio::time::timeout(PATIENCE, tree.ended()).await;
        let Ok(status) = status else { panic!("it hangs: {:#?}", tree.snapshot().await.unwrap().agents) };
        assert_eq!(status.stopped, None);
        let (snapshot, recorded) = (tree.snapshot().await.unwrap(), recorded(&tree).await);
        let verified = verify(home.journal().as_ref(), tree.id(), None).wait().unwrap();
        assert!(verified.decided);
        assert_eq!(verified.snapshot, snapshot, "replayed");
        let played = Self { attempts: attempts(), snapshot, recorded };
        played.is_still();
        played.is_bounded(&definition);
        played
    }

    fn is_still(&self) {
        for view in &self.snapshot.agents {
            let has_ended = matches!(view.status, spinney_kernel::world::AgentStatus::Ended(_));
            assert!(has_ended, "{} is {}", view.agent, view.status);
            for (what, amounts) in [("held", view.held), ("lent", view.lent), ("overrun", view.overrun)] {
                assert_eq!(amounts, Amounts::ZERO, "{what} at {}", view.agent);
            }
        }
        let (mut asked, mut ended) = (0, 0);
        for recorded in &self.recorded {
            asked += usize::from(matches!(
                recorded.event,
                Event::CallAsked { .. } | Event::WaitStarted { .. } | Event::QuestionAsked { .. }
            ));
            ended += usize::from(matches!(recorded.event, Event::CallEnded { .. }));
        }
        // A spawned child that is waited for is also a call.
        let attached = self
            .spawned()
            .filter(|spawned| matches!(spawned.attachment, spinney_kernel::record::Attachment::Call { .. }));
        assert_eq!(asked + attached.count(), ended, "calls that were asked for and have ended");
    }

    fn is_bounded(&self, definition: &Definition) {
        let limits = definition.limits;
        let mut live: BTreeMap<&str, u32> = BTreeMap::new();
        let mut ceilings = BTreeMap::new();
        for recorded in &self.recorded {
            if let Event::AgentSpawned(spawned) = &recorded.event {
                ceilings.insert(spawned.agent.as_str(), (spawned.terms.limit, spawned.parent.as_ref()));
                if let Some(parent) = &spawned.parent {
                    let live = live.entry(parent.as_str()).or_default();
                    *live += 1;
                    assert!(*live <= limits.children_max, "{live} children of {parent}");
                }
            }
            if let Event::AgentEnded { agent, spent, .. } = &recorded.event {
                let (limit, parent) = ceilings[agent.as_str()];
                for resource in Resource::ALL {
                    let most = limit.get(resource).unwrap_or(u64::MAX);
                    assert!(spent.get(resource) <= most, "{agent} used {spent:?} of {limit:?}");
                }
                if let Some(live) = parent.and_then(|parent| live.get_mut(parent.as_str())) {
                    *live -= 1;
                }
            }
        }
        assert!(live.values().all(|live| *live == 0), "orphans: {live:?}");
        assert!(self.snapshot.agents.len() <= limits.agents_max as usize);
        assert!(self.snapshot.agents.iter().all(|view| view.depth <= limits.depth_max));
    }

    pub(crate) fn spawned(&self) -> impl Iterator<Item = &spinney_kernel::record::Spawned> {
        self.recorded.iter().filter_map(|recorded| {
            if let Event::AgentSpawned(spawned) = &recorded.event { Some(spawned.as_ref()) } else { None }
        })
    }

    /// The number of model calls and agents, and the exit, as one line.
    pub(crate) fn sum(&self) -> String {
        let (calls, agents) = (self.attempts.len(), self.snapshot.agents.len());
        let TreeState::Ended(word) = self.snapshot.state else { panic!("{:?}", self.snapshot.state) };
        let code = match self.snapshot.end.as_ref().map(|end| &end.exit) {
            Some(Exit::Failed { error }) => format!(" ({})", error.code),
            Some(Exit::Completed | Exit::Exhausted { .. } | Exit::Cancelled { .. }) | None => String::new(),
        };
        format!("{word}{code}, {calls} model calls, {agents} agents")
    }

    /// Every tool result in an agent's last packet, in order.
    pub(crate) fn returned(&self, agent: &str) -> Vec<Returned> {
        let last = self.attempts.iter().rev().find(|attempt| attempt.origin.agent().as_str() == agent);
        let last = last.unwrap_or_else(|| panic!("{agent} was never asked"));
        let result = |message: &Message| {
            let Message::Result { id, text, is_error, .. } = message else { return None };
            Some(Returned { id: id.to_string(), text: text.clone(), is_error: *is_error })
        };
        last.packet.messages.iter().filter_map(|message| result(message)).collect()
    }

    /// The same as text: one line each, with `!` before errors.
    pub(crate) fn results(&self, agent: &str) -> String {
        let line = |Returned { id, text, is_error }: &Returned| {
            let mark = if *is_error { "!" } else { " " };
            format!("{mark}{} {}", id.trim_start_matches("call_"), text.replace('\n', " | "))
        };
        self.returned(agent).iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// How an agent ended, as one word.
    pub(crate) fn word(&self, agent: &str) -> String {
        let view = self.snapshot.agents.iter().find(|view| view.agent.as_str() == agent);
        view.map_or_else(|| panic!("there is no {agent}"), |view| view.status.to_string())
    }
}
