//! Who spent what: every booking of a tree's journal, summed up in several ways. Each way sums up to the ledger.

pub mod home;
mod json;
mod shares;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use spinney_journal::{Batch, Journal, JournalFault};
use spinney_kernel::budget::{Amounts, Resource, Usage, Used};
use spinney_kernel::context::{CallPurpose, OpenCalls};
use spinney_kernel::definition::{Definition, ModelSpec};
use spinney_kernel::primitives::{AgentId, CallId, ModelName, RoleName, Time, TreeId};
use spinney_kernel::record::{Attachment, Branched, Event, FrameIx, Outcome, Spawned};
use spinney_kernel::rules::InputKind;
use spinney_kernel::rules::report::Report;
use spinney_kernel::world::World;

use crate::spent::Spent;
use crate::wording::date;
use crate::{TreeFold, fold};

/// The name of what was charged from outside, in place of a model or an attempt.
pub const CHARGED: &str = "(charged from outside)";
/// The name of what belongs to no step of a pipeline.
pub const NO_STEP: &str = "(no step)";
/// The name of what the tree spent itself, not the one that it branched off.
pub const THIS_TREE: &str = "this tree";

/// What bookings are summed up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostsBy {
    /// By agent.
    Agent,
    /// By role.
    Role,
    /// By model or tool.
    Model,
    /// By step of a pipeline.
    Step,
    /// By this tree, and those that it branched off.
    Branch,
    /// By attempt of a call.
    Attempt,
    /// By day of the booking (UTC).
    Day,
}

/// A sum of bookings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Attempts of calls, and charges.
    pub count: u64,
    /// Those of `count` that ended without an answer, and cost something.
    pub cut_off: u64,
    /// Those of `count` that ended without an answer, and cost nothing.
    pub failed: u64,
    /// What they used.
    pub spent: Amounts,
    /// The part of it that no provider reported.
    pub presumed: Amounts,
    /// What was held for it before.
    pub held: Amounts,
    /// The part that was beyond its hold.
    pub overrun: Amounts,
    /// Input that providers reported, from caches or not.
    pub input_tokens: u64,
    /// The part that was read from caches.
    pub cached_tokens: u64,
    /// What caches saved, against plain input. Writing to a cache may cost more than it saves.
    pub saved_nanos: i64,
}

impl Sums {
    /// Adds the other.
    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.cut_off += other.cut_off;
        self.failed += other.failed;
        self.spent = self.spent.plus(&other.spent);
        self.presumed = self.presumed.plus(&other.presumed);
        self.held = self.held.plus(&other.held);
        self.overrun = self.overrun.plus(&other.overrun);
        self.input_tokens += other.input_tokens;
        self.cached_tokens += other.cached_tokens;
        self.saved_nanos += other.saved_nanos;
    }

    /// What was spent, and the part that is presumed.
    #[must_use]
    pub const fn booked(&self) -> Spent {
        Spent { all: self.spent, presumed: self.presumed }
    }
}

/// Sums by name, in the order of the first booking.
#[derive(Clone, Debug, Default)]
pub struct Breakdown {
    rows: Vec<(String, Sums)>,
    places: BTreeMap<String, usize>,
}

impl Breakdown {
    fn add(&mut self, name: &str, sums: &Sums) {
        let place = *self.places.entry(name.to_owned()).or_insert_with(|| {
            self.rows.push((name.to_owned(), Sums::default()));
            self.rows.len() - 1
        });
        self.rows[place].1.add(sums);
    }

    /// The sum of one name.
    #[must_use]
    pub fn get(&self, name: &str) -> Sums {
        self.places.get(name).map_or_else(Sums::default, |place| self.rows[*place].1)
    }

    /// All of them, the dearest first.
    #[must_use]
    pub fn rows(&self) -> Vec<&(String, Sums)> {
        let mut rows: Vec<&(String, Sums)> = self.rows.iter().collect();
        rows.sort_by_key(|(_, sums)| Resource::ALL.map(|resource| u64::MAX - sums.spent.get(resource)));
        rows
    }
}

/// All bookings of a tree.
pub struct Costs {
    /// Their sum.
    pub total: Sums,
    by_agent: Breakdown,
    by_role: Breakdown,
    by_model: Breakdown,
    by_step: Breakdown,
    by_attempt: Breakdown,
    by_day: Breakdown,
    /// What the tree was started with.
    pub definition: Option<Arc<Definition>>,
    /// What the trees that it branched off had spent up to there. They paid for that.
    pub before: Vec<(TreeId, Sums)>,
    roles: BTreeMap<AgentId, RoleName>,
    /// The tree as a whole: its ledger is what everything sums up to.
    pub world: World,
}

impl Costs {
    /// Reads them from a journal, also while another process runs the tree.
    ///
    /// # Errors
    /// If the tree cannot be read.
    pub async fn read(journal: &dyn Journal, tree: TreeId) -> Result<Self, JournalFault> {
        let mut costs = CostsFold::new(tree);
        fold(journal, tree, &mut costs).await?;
        Ok(costs.costs)
    }

    /// What the root's account has spent.
    #[must_use]
    pub fn ledger(&self) -> Spent {
        let root = self.world.agents().root();
        root.map(|root| Spent::from_view(&self.world.view(root))).unwrap_or_default()
    }

    /// The role of an agent; empty if there is none.
    #[must_use]
    pub fn role(&self, agent: &str) -> &str {
        self.roles.get(agent).map_or("", RoleName::as_str)
    }

    /// The sums by one of these.
    #[must_use]
    pub fn by(&self, by: CostsBy) -> Cow<'_, Breakdown> {
        Cow::Borrowed(match by {
            CostsBy::Agent => &self.by_agent,
            CostsBy::Role => &self.by_role,
            CostsBy::Model => &self.by_model,
            CostsBy::Step => &self.by_step,
            CostsBy::Attempt => &self.by_attempt,
            CostsBy::Day => &self.by_day,
            CostsBy::Branch => {
                let mut this = Breakdown::default();
                this.add(THIS_TREE, &self.total);
                return Cow::Owned(this);
            }
        })
    }

    fn book(&mut self, booking: &Booking<'_>, step: &str, day: &str) {
        let Booking { agent, what, attempt, sums } = booking;
        self.total.add(sums);
        self.by_agent.add(agent.as_str(), sums);
        let role = self.roles.get(*agent).map_or("", RoleName::as_str).to_owned();
        self.by_role.add(&role, sums);
        self.by_model.add(what, sums);
        self.by_step.add(step, sums);
        self.by_day.add(day, sums);
        let attempt = attempt.map_or_else(|| CHARGED.to_owned(), |attempt| format!("attempt {attempt}"));
        self.by_attempt.add(&attempt, sums);
    }

    /// From here on another tree pays.
    fn branched(&mut self, from: TreeId) {
        let before = std::mem::take(&mut self.total);
        self.before.push((from, before));
        for breakdown in [
            &mut self.by_agent,
            &mut self.by_role,
            &mut self.by_model,
            &mut self.by_step,
            &mut self.by_attempt,
            &mut self.by_day,
        ] {
            *breakdown = Breakdown::default();
        }
    }
}

struct Booking<'a> {
    agent: &'a AgentId,
    /// The model, the tool, or that it was charged.
    what: &'a str,
    attempt: Option<u32>,
    sums: Sums,
}

#[derive(Clone, Debug, Default)]
struct CallNote {
    attempt: u32,
    held: Amounts,
    start: Option<Time>,
}

#[derive(Clone, Default)]
struct AgentNote {
    /// The agent that stands for the graph that it belongs to, or itself.
    graph: Option<AgentId>,
    /// The step that it does, or that an agent above does.
    step: Option<(AgentId, FrameIx)>,
}

/// Costs that are being read.
pub struct CostsFold {
    costs: Costs,
    /// When the batch was decided that is being read.
    now: Time,
    calls: OpenCalls<CallNote>,
    agents: BTreeMap<AgentId, AgentNote>,
    steps: BTreeMap<(AgentId, FrameIx), String>,
}

impl TreeFold for CostsFold {
    fn take(&mut self, batch: &Batch) -> ControlFlow<()> {
        let used = match &batch.input.what {
            InputKind::Report(Report::Done(done)) => Some((done.call, done.used)),
            InputKind::Report(Report::Failed(failed)) => Some((failed.call, failed.used)),
            InputKind::Report(_) | InputKind::Request { .. } => None,
        };
        self.now = batch.input.now;
        for event in &batch.events {
            self.calls.enter(event);
            self.see(event, used);
            self.calls.leave(event);
            self.costs.world.apply(event);
        }
        ControlFlow::Continue(())
    }
}

impl CostsFold {
    /// Before the first batch of a tree.
    #[must_use]
    pub fn new(tree: TreeId) -> Self {
        let costs = Costs {
            total: Sums::default(),
            by_agent: Breakdown::default(),
            by_role: Breakdown::default(),
            by_model: Breakdown::default(),
            by_step: Breakdown::default(),
            by_attempt: Breakdown::default(),
            by_day: Breakdown::default(),
            definition: None,
            before: Vec::new(),
            roles: BTreeMap::new(),
            world: World::new(tree),
        };
        let (calls, agents, steps) = (OpenCalls::default(), BTreeMap::new(), BTreeMap::new());
        Self { costs, now: Time::default(), calls, agents, steps }
    }

    /// What was read so far.
    #[must_use]
    pub fn costs(self) -> Costs {
        self.costs
    }

    fn see(&mut self, event: &Event, used: Option<(CallId, Used)>) {
        match event {
            Event::TreeStarted { definition, .. } => self.costs.definition = Some(Arc::clone(definition)),
            Event::ModelAdded { model, spec } => {
                if let Some(definition) = &mut self.costs.definition {
                    Arc::make_mut(definition).models.insert(model.clone(), ModelSpec::clone(spec));
                }
            }
            Event::AgentSpawned(spawned) => self.spawned(spawned),
            Event::GraphStarted { agent, .. } => {
                self.agents.entry(agent.clone()).or_default().graph = Some(agent.clone());
            }
            Event::NodeStarted(start) => {
                self.steps.insert((start.graph.clone(), start.frame), start.name.clone());
            }
            // Nothing is booked at it or below it any more, and a tree may have many.
            Event::AgentEnded { agent, .. } => drop(self.agents.remove(agent)),
            Event::NodeEnded { graph, frame, .. } => drop(self.steps.remove(&(graph.clone(), *frame))),
            Event::TreeBranched(branched) => {
                let Branched { from, .. } = **branched;
                self.costs.branched(from);
            }
            Event::CallStarted { call, attempt, held, at, .. } => {
                if let Some(open) = self.calls.find_mut(*call) {
                    open.note = CallNote { attempt: *attempt, held: *held, start: *at };
                }
            }
            // It was not sent: the hold returns whole.
            Event::CallHeldBack { call, .. } => {
                if let Some(open) = self.calls.find_mut(*call) {
                    open.note.held = Amounts::ZERO;
                }
            }
            Event::AttemptFailed { call, spent, overrun, presumed, .. }
            | Event::CallEnded { call, spent, overrun, presumed, .. } => {
                let used = used.filter(|(reported, _)| reported == call).map(|(_, used)| used);
                let is_answered = matches!(event, Event::CallEnded { outcome: Outcome::Done { .. }, .. });
                let without = u64::from(!is_answered);
                let (cut_off, failed) = if spent.is_zero() { (0, without) } else { (without, 0) };
                let (spent, overrun, presumed) = (*spent, *overrun, *presumed);
                let sums = Sums { cut_off, failed, spent, presumed, overrun, ..Sums::default() };
                self.settled(*call, sums, used);
            }
            Event::Charged { agent, amounts, .. } => {
                let sums = Sums { count: 1, spent: *amounts, ..Sums::default() };
                self.book(&Booking { agent, what: CHARGED, attempt: None, sums });
            }
            _ => {}
        }
    }

    fn spawned(&mut self, spawned: &Spawned) {
        let above = spawned.parent.as_ref().and_then(|parent| self.agents.get(parent)).cloned();
        let AgentNote { graph, step } = above.unwrap_or_default();
        let step = match (spawned.attachment, &graph) {
            (Attachment::Step { frame }, Some(graph)) => Some((graph.clone(), frame)),
            _ => step,
        };
        self.agents.insert(spawned.agent.clone(), AgentNote { graph, step });
        self.costs.roles.insert(spawned.agent.clone(), spawned.role.clone());
    }

    /// Books what an attempt used. A call that never ran used nothing.
    fn settled(&mut self, call: CallId, mut sums: Sums, used: Option<Used>) {
        let Some(open) = self.calls.find_mut(call) else { return };
        let note = std::mem::take(&mut open.note);
        if note.held.is_zero() && sums.spent.is_zero() {
            return;
        }
        let (agent, purpose) = (open.agent.clone(), open.purpose.clone());
        (sums.count, sums.held) = (1, note.held);
        if let (Some(model), Some(Used::Tokens(usage))) = (purpose.model(), used) {
            sums.input_tokens = usage.input_tokens();
            sums.cached_tokens = usage.cached_input;
            sums.saved_nanos = self.saved(model, &usage, note.start);
        }
        let what = match &purpose {
            CallPurpose::Turn(model)
            | CallPurpose::LastTurn(model)
            | CallPurpose::Summary(model)
            | CallPurpose::Outside(model) => model.to_string(),
            CallPurpose::Tool(tool) => format!("tool {tool}"),
            CallPurpose::Child | CallPurpose::Wait(_) | CallPurpose::Question => "(wait)".to_owned(),
        };
        self.book(&Booking { agent: &agent, what: &what, attempt: Some(note.attempt), sums });
    }

    fn saved(&self, model: &ModelName, usage: &Usage, start: Option<Time>) -> i64 {
        let price = self.costs.definition.as_ref().and_then(|definition| definition.price(model));
        let Some(price) = price else { return 0 };
        let start = start.unwrap_or_default();
        let plain = Usage {
            input: usage.input_tokens(),
            output: usage.output,
            reasoning: usage.reasoning,
            ..Usage::default()
        };
        let cost = i128::from(price.cost(&usage.without_money(), start));
        let difference = i128::from(price.cost(&plain, start)) - cost;
        i64::try_from(difference).unwrap_or(i64::MAX)
    }

    fn book(&mut self, booking: &Booking<'_>) {
        let note = self.agents.get(booking.agent);
        let step = note.and_then(|note| self.steps.get(note.step.as_ref()?)).map_or(NO_STEP, String::as_str);
        self.costs.book(booking, step, &date(self.now));
    }
}

#[cfg(test)]
mod tests {
    use rustix::time::{ClockId, clock_gettime};
    use spinney_testkit::sim;

    use super::*;

    fn sum(breakdown: &Breakdown) -> Sums {
        breakdown.rows().into_iter().fold(Sums::default(), |mut all, (_, sums)| {
            all.add(sums);
            all
        })
    }

    /// X11 (costs; spans come with telemetry): in 1,000 random trees, branches among them, every breakdown sums up to the
    /// ledger. G40 (costs): so does what is presumed.
    #[test]
    fn every_breakdown_sums_up_to_the_ledger() {
        let (mut spent, mut presumed, mut branches) = (0_u64, 0_u64, 0);
        for seed in 0..1_000 {
            let mut fold = CostsFold::new(TreeId::new([1; 16]));
            sim::batches(seed).unwrap().iter().for_each(|batch| assert!(fold.take(batch).is_continue()));
            let costs = fold.costs();
            let ledger = costs.ledger();
            assert_eq!(costs.total.booked(), ledger, "seed {seed}");
            for by in [CostsBy::Agent, CostsBy::Role, CostsBy::Model] {
                assert_eq!(sum(&costs.by(by)), costs.total, "seed {seed}, by {by:?}");
            }
            for by in [CostsBy::Step, CostsBy::Branch, CostsBy::Attempt, CostsBy::Day] {
                assert_eq!(sum(&costs.by(by)), costs.total, "seed {seed}, by {by:?}");
            }
            let total = serde_json::to_value(&costs).unwrap()["total"].clone();
            for (field, amounts) in [("spent", ledger.all), ("presumed", ledger.presumed)] {
                let cost = total[field]["cost_nanos"].as_u64();
                assert_eq!(cost, Some(amounts.get(Resource::Cost)), "seed {seed}: {field}");
            }
            spent += u64::from(!ledger.all.is_zero());
            presumed += u64::from(!ledger.presumed.is_zero());
            branches += costs.before.len();
        }
        assert!(spent > 500, "only {spent} of the trees spent anything");
        assert!(presumed > 100, "only {presumed} of the trees presumed anything");
        assert!(branches > 0, "no tree was a branch");
    }

    /// The costs of this many agents, each with one call.
    fn many(agents: u64) -> Costs {
        let mut fold = CostsFold::new(TreeId::new([1; 16]));
        let role: RoleName = "helper".parse().unwrap();
        for at in 0..agents {
            let agent: AgentId = format!("helper-{at}").parse().unwrap();
            fold.costs.roles.insert(agent.clone(), role.clone());
            let sums = Sums { count: 1, spent: Amounts::cost(at + 1), ..Sums::default() };
            fold.book(&Booking { agent: &agent, what: "fast", attempt: Some(1), sums });
        }
        fold.costs
    }

    /// The processor time that this thread needs to write them.
    fn nanos_to_write(costs: &Costs) -> i128 {
        let now = || {
            let now = clock_gettime(ClockId::ThreadCPUTime);
            i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)
        };
        let before = now();
        assert!(!serde_json::to_string(costs).unwrap().is_empty());
        now() - before
    }

    /// Issue 34: each row looked for its role among all agents: 5 s for 16,000 of them.
    #[test]
    fn costs_of_eight_times_as_many_agents_take_about_eight_times_as_long() {
        let (few, many) = (many(2_000), many(16_000));
        let best = |costs: &Costs| (0..3).map(|_| nanos_to_write(costs)).min().unwrap();
        let (few, many) = (best(&few), best(&many));
        assert!(many < 24 * few, "{few} ns for 2,000 agents, {many} ns for 16,000");
    }
}
