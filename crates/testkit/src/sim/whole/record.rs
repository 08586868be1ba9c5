//! The record: folds durable events independently of the runtime, and checks the laws batch by batch. It outlives every
//! crash.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use spinney::tree::TreeSnapshot;
use spinney_journal::Batch;
use spinney_kernel::budget::{Amounts, ResourceSet};
use spinney_kernel::context::{Contexts, Packet};
use spinney_kernel::port::model::{ModelAttempt, Purpose};
use spinney_kernel::primitives::{AgentId, CallId, FaultKind, Seq, Time, TreeId};
use spinney_kernel::record::{Event, Outcome, Work};
use spinney_kernel::world::World;
use tokio::sync::watch;

use super::super::clocks::Alarms;
use super::super::graphs::GraphLaws;
use super::super::law::{Law, Witness, hold};
use super::super::policy::{Policies, PolicyTally};
use super::super::start::Before;
use super::coverage::shown;
use super::player::QUESTION_OF_TOOL;

/// How late a timer may be, in milliseconds: the clock's granularity and the disk's delay.
const LATE_MS_MAX: u64 = 50;

/// The durable events, and the first broken law.
pub(super) struct Record {
    kept: Mutex<RecordedTree>,
    durable: watch::Sender<Seq>,
}

#[derive(Default)]
struct RecordedTree {
    tree: Option<Fold>,
    events: Vec<Event>,
    batches: u64,
    resumes: BTreeMap<CallId, u64>,
    /// Calls that were stopped while they ran.
    stopped: u64,
    seen: BTreeSet<&'static str>,
    /// When the home that runs the tree now was opened.
    opened: Time,
    /// Whether its owner lost it, and the next one did not open it yet.
    is_lost: bool,
    broken: Option<String>,
}

/// The durable part of the tree.
#[derive(Clone)]
struct Fold {
    world: World,
    contexts: Contexts,
    witness: Witness,
    alarms: Alarms,
    graphs: GraphLaws,
    policies: Policies,
}

impl Record {
    pub(super) fn new() -> Self {
        let (durable, _) = watch::channel(Seq(0));
        Self { kept: Mutex::default(), durable }
    }

    /// A batch was written. It must not be shown yet.
    pub(super) fn written(&self, tree: TreeId, after: Seq, batch: &Batch) {
        let mut kept = self.kept();
        if let Err(law) = kept.take(tree, after, batch) {
            kept.broken.get_or_insert(law);
        }
    }

    /// Everything written is confirmed and may be shown.
    pub(super) fn confirmed(&self, seq: Seq) {
        self.durable.send_replace(seq);
    }

    /// The last confirmed event.
    pub(super) fn watch(&self) -> watch::Receiver<Seq> {
        self.durable.subscribe()
    }

    /// A new home runs the tree from here on; everything written counts as confirmed.
    pub(super) fn opened(&self, now: Time) {
        let mut kept = self.kept();
        (kept.opened, kept.is_lost) = (now, false);
        self.durable.send_replace(Seq(kept.events.len() as u64));
    }

    /// Its owner knows that it has another one: from now on nothing may start until that one opens it.
    pub(super) fn lost(&self) {
        self.kept().is_lost = true;
    }

    /// The tree, once there is one.
    pub(super) fn tree(&self) -> Option<TreeId> {
        self.kept().tree.as_ref().map(|fold| fold.world.tree())
    }

    /// How many batches were written.
    pub(super) fn batches(&self) -> u64 {
        self.kept().batches
    }

    /// How often a call was resumed.
    pub(super) fn resumes(&self, call: CallId) -> u64 {
        self.kept().resumes.get(&call).copied().unwrap_or_default()
    }

    /// How many calls were stopped while they ran.
    pub(super) fn stopped(&self) -> u64 {
        self.kept().stopped
    }

    /// What was compared with a second computation of graphs.
    pub(super) fn policy(&self) -> PolicyTally {
        self.kept().tree.as_ref().map(|fold| fold.policies.tally()).unwrap_or_default()
    }

    /// What happened at least once.
    pub(super) fn seen(&self) -> BTreeSet<&'static str> {
        self.kept().seen.clone()
    }

    /// The events after one, up to another.
    pub(super) fn events(&self, after: Seq, until: Seq) -> Vec<Event> {
        let kept = self.kept();
        let (from, to) = (after.0 as usize, (until.0 as usize).min(kept.events.len()));
        kept.events.get(from..to).map(<[Event]>::to_vec).unwrap_or_default()
    }

    /// Notes something that no event shows.
    pub(super) fn saw(&self, what: &'static str) {
        self.kept().seen.insert(what);
    }

    /// Records a broken law.
    pub(super) fn broken(&self, law: String) {
        self.kept().broken.get_or_insert(law);
    }

    /// The first broken law.
    pub(super) fn verdict(&self) -> Law {
        self.kept().broken.clone().map_or(Ok(()), Err)
    }

    /// An effect may start only if exactly this attempt is durably running.
    pub(super) fn judge_start(&self, call: Option<CallId>, attempt: u32, key: &str) {
        let mut kept = self.kept();
        let runs = call
            .and_then(|call| kept.tree.as_ref()?.world.call(call))
            .is_some_and(|call| call.is_running() && call.attempt == attempt);
        if !runs {
            kept.broken
                .get_or_insert(format!("effect {key} attempt {attempt} was made and is not durably running"));
        }
        if kept.is_lost {
            kept.broken
                .get_or_insert(format!("effect {key} was made by an owner that knew it had lost the tree"));
        }
    }

    /// A model's packet must match the durable events.
    pub(super) fn judge_packet(&self, attempt: &ModelAttempt) {
        let (agent, packet) = (attempt.origin.agent(), &attempt.packet);
        let mut kept = self.kept();
        let same = kept.tree.as_ref().and_then(|fold| match attempt.purpose {
            Purpose::Turn | Purpose::Continue => fold.contexts.packet(agent, packet.tokens),
            Purpose::WrapUp => fold.contexts.last_packet(agent, packet.tokens),
            Purpose::Summary => fold.contexts.summary_packet(agent, packet.tokens),
            Purpose::OfTool => Some(Packet::of_message(QUESTION_OF_TOOL, packet.tokens)),
        });
        if same.as_ref() != Some(packet) {
            kept.broken
                .get_or_insert(format!("the model of {agent} saw {packet:?}, the journal says {same:?}"));
        }
    }

    /// What people see must match the durable events.
    pub(super) fn judge_look(&self, snapshot: &TreeSnapshot) -> Law {
        let kept = self.kept();
        let Some(fold) = &kept.tree else { return Err("there is a look and no tree".to_owned()) };
        let mut world = World::new(fold.world.tree());
        let events = kept.events.iter().take(snapshot.seq.0 as usize);
        let contexts = crate::contexts_of(fold.world.tree(), events.clone());
        events.for_each(|event| world.apply(event));
        let expected = TreeSnapshot::at(&world, &contexts);
        if expected == *snapshot {
            Ok(())
        } else {
            Err(format!("seen {snapshot:?}, the journal says {expected:?}"))
        }
    }

    /// Open questions of agents, which outlive a process: who asked, and until when an answer counts. Those of a tool call end
    /// with it.
    pub(super) fn questions(&self) -> Vec<(CallId, AgentId, Time)> {
        let kept = self.kept();
        let Some(Fold { world, .. }) = &kept.tree else { return Vec::new() };
        let is_open = |id: CallId| {
            let is_of_agent =
                |work: &Work| matches!(work, Work::Question(question) if question.call.is_none());
            world.calls().all().any(|(call, open)| call == id && is_of_agent(&open.work))
        };
        let asked = kept.events.iter().filter_map(|event| {
            let Event::QuestionAsked { call, agent, alarm, .. } = event else { return None };
            Some((*call, agent.clone(), alarm.at))
        });
        asked.filter(|(call, ..)| is_open(*call)).collect()
    }

    /// At the end only totals are left.
    pub(super) fn check_over(&self) -> Law {
        let kept = self.kept();
        match &kept.tree {
            Some(fold) => fold.witness.check_over(&fold.world),
            None => Err("there is no tree".to_owned()),
        }
    }

    /// The durable state.
    pub(super) fn snapshot(&self) -> Option<TreeSnapshot> {
        self.kept().tree.as_ref().map(|fold| TreeSnapshot::at(&fold.world, &fold.contexts))
    }

    fn kept(&self) -> MutexGuard<'_, RecordedTree> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecordedTree {
    fn take(&mut self, tree: TreeId, after: Seq, batch: &Batch) -> Law {
        self.batches += 1;
        let fold = self.tree.get_or_insert_with(|| Fold {
            world: World::new(tree),
            contexts: Contexts::new(tree),
            witness: Witness::default(),
            alarms: Alarms::default(),
            graphs: GraphLaws::default(),
            policies: Policies::default(),
        });
        if fold.world.seq() != after || fold.world.tree() != tree {
            return Err(format!(
                "a batch after {after:?} was written, the journal is at {:?}",
                fold.world.seq()
            ));
        }
        let now = batch.input.now;
        let late = fold.world.alarms().find(|alarm| now.0 > alarm.at.max(self.opened).0 + LATE_MS_MAX);
        if let Some(alarm) = late {
            return Err(format!("at {now:?} {alarm:?} has not fired"));
        }
        for event in &batch.events {
            let exact = !fold.witness.overrun_possible;
            if !matches!(event, Event::TreeStarted { .. }) {
                Before { world: &fold.world, now, exact }.judge(event)?;
            }
            presumed_in_full(&fold.world, event)?;
            fold.witness.see(event)?;
            fold.alarms.see(event, now)?;
            fold.graphs.see(&fold.world, event)?;
            fold.policies.see(event)?;
            fold.world.apply(event);
            fold.contexts.apply(event);
            if let Event::CallResumed { call } = event {
                *self.resumes.entry(*call).or_default() += 1;
            }
            self.stopped += u64::from(is_stop(event));
            self.seen.extend(shown(event));
            self.events.push(event.clone());
            if fold.contexts.lacks().is_some() {
                fold.contexts = crate::contexts_of(tree, self.events.iter());
            }
            if let Some(seq) = fold.contexts.lacks() {
                return Err(format!("event {} goes back to what was not so", seq.0));
            }
        }
        fold.witness.check(&fold.world)?;
        fold.alarms.check(&fold.world)?;
        if fold.world.is_over() { Ok(()) } else { Witness::check_nobody_stuck(&fold.world) }
    }
}

/// A call lost in a crash is settled at its full hold, because it may be billed in full.
fn presumed_in_full(world: &World, event: &Event) -> Law {
    let (Event::AttemptFailed { call, fault: None, spent, .. }
    | Event::CallEnded { call, outcome: Outcome::Lost, spent, .. }) = event
    else {
        return Ok(());
    };
    let held = world.call(*call).map(|call| call.held()).unwrap_or_default();
    let full = |amounts: &Amounts| amounts.only(ResourceSet::MEASURED);
    hold(full(spent) == full(&held), || format!("{call} was cut off: it held {held:?}, settled at {spent:?}"))
}

/// Whether an event ends a call that was stopped, or lost while it was being stopped.
fn is_stop(event: &Event) -> bool {
    let Event::CallEnded { outcome, .. } = event else { return false };
    match outcome {
        Outcome::Lost => true,
        Outcome::Failed { fault } => fault.kind == FaultKind::Stopped,
        Outcome::Done { .. }
        | Outcome::Cancelled
        | Outcome::Refused { .. }
        | Outcome::Answered { .. }
        | Outcome::Approved
        | Outcome::Children { .. }
        | Outcome::Message { .. }
        | Outcome::NobodyLeft
        | Outcome::Expired { .. } => false,
    }
}
