//! One case: a random tree under random load, with crashes, run to its end and then replayed.

mod branch;
mod rollback;

use std::collections::BTreeMap;

use spinney_journal::Batch;
use spinney_kernel::context::Contexts;
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{Actor, AgentId, CallId, CheckpointKind, Time, TreeId};
use spinney_kernel::record::{
    ClockKind, Event, Exit, NodeStart, Outcome, StartOf, Summary, WaitReason, Work,
};
use spinney_kernel::rules::decide;
use spinney_kernel::rules::report::{Lost, Report, Resumed, Timer};
use spinney_kernel::rules::request::{Cancel, Request, Start, Unseal};
use spinney_kernel::rules::{Input, InputKind};
use spinney_kernel::world::{AgentIx, World};

use super::clocks::Alarms;
use super::dice::Dice;
use super::graphs::GraphLaws;
use super::host_requests::AllowedHosts;
use super::law::{Law, Witness, hold};
use super::policy::{Policies, PolicyTally};
use super::repeats::Loops;
use super::shared;
use super::start::Before;
use super::tool_questions::ToolQuestions;
use super::windows::{check_images, check_packet, check_shared, check_windows};
use super::wrap_up::LastCalls;
use super::{LawViolation, moves, random_definition};

/// Longest life of one simulated tree, in operations.
const OPERATIONS_MAX: u64 = 140;

/// The id of every simulated tree; a branch has another one.
const TREE: TreeId = TreeId::new([1; 16]);

/// Coverage counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Trees.
    pub cases: u64,
    /// Inputs decided.
    pub operations: u64,
    /// Of them, refused.
    pub refused: u64,
    /// Events recorded.
    pub events: u64,
    /// Crashes survived.
    pub crashes: u64,
    /// Trees that halted at some time.
    pub halts: u64,
    /// Calls that had to wait for budget.
    pub waits: u64,
    /// Agents that were rolled back.
    pub rollbacks: u64,
    /// Branches that were made.
    pub branches: u64,
    /// Cuts that made placeholders of images.
    pub blanks: u64,
    /// Cuts that a summary replaced.
    pub summaries: u64,
    /// Calls that waited until a prompt was cached.
    pub cache_waits: u64,
    /// Calls that were held back by a limit outside the tree.
    pub held_back: u64,
    /// First tokens that such calls waited for.
    pub first_tokens: u64,
    /// Timeouts that stood still for a while.
    pub stood_still: u64,
    /// Agents that timed out.
    pub times_up: u64,
    /// Questions answered by their default.
    pub defaults: u64,
    /// Late answers that were refused.
    pub late_answers: u64,
    /// Last calls of agents.
    pub wrap_ups: u64,
    /// Agents that were told that they repeat themselves.
    pub repeats: u64,
    /// Shared values that were written.
    pub values_written: u64,
    /// Shared values that were read.
    pub values_read: u64,
    /// Roots that ended with shared values.
    pub values_cleared: u64,
    /// Questions about hosts.
    pub host_questions: u64,
    /// Calls that have hosts which a person allowed.
    pub hosts_allowed: u64,
    /// Agents that ended in a loop.
    pub loops: u64,
    /// Packets that were cut because they were too long for their model.
    pub shortened: u64,
    /// Steps and groups of graphs that ended.
    pub nodes: u64,
    /// Steps that were undone.
    pub undone: u64,
    /// Steps that waited for shared values.
    pub steps_waited: u64,
    /// What a second computation of graphs compared.
    pub policy: PolicyTally,
}

impl Tally {
    /// Adds another tally to this one.
    pub fn add(&mut self, other: &Self) {
        self.cases += other.cases;
        self.operations += other.operations;
        self.refused += other.refused;
        self.events += other.events;
        self.crashes += other.crashes;
        self.halts += other.halts;
        self.waits += other.waits;
        self.rollbacks += other.rollbacks;
        self.branches += other.branches;
        self.blanks += other.blanks;
        self.summaries += other.summaries;
        self.cache_waits += other.cache_waits;
        self.held_back += other.held_back;
        self.first_tokens += other.first_tokens;
        self.stood_still += other.stood_still;
        self.times_up += other.times_up;
        self.defaults += other.defaults;
        self.late_answers += other.late_answers;
        self.wrap_ups += other.wrap_ups;
        self.repeats += other.repeats;
        self.values_written += other.values_written;
        self.values_read += other.values_read;
        self.values_cleared += other.values_cleared;
        self.host_questions += other.host_questions;
        self.hosts_allowed += other.hosts_allowed;
        self.loops += other.loops;
        self.shortened += other.shortened;
        self.nodes += other.nodes;
        self.undone += other.undone;
        self.steps_waited += other.steps_waited;
        self.policy.add(&other.policy);
    }
}

/// Runs the case of one seed.
///
/// # Errors
/// The law that did not hold.
pub fn run_case(seed: u64) -> Result<Tally, LawViolation> {
    let mut case = Case::new(seed);
    match case.live() {
        Ok(()) => Ok(case.tally),
        Err(law) => {
            let last = case.batches.last().map(|batch| serde_json::to_string(batch).unwrap_or_default());
            Err(LawViolation { seed, operation: case.tally.operations, law, last: last.unwrap_or_default() })
        }
    }
}

/// The journal of the case of one seed, for tests of what is folded from journals. If the case made a branch, it is the
/// branch's.
///
/// # Errors
/// The law that did not hold.
pub fn batches(seed: u64) -> Result<Vec<Batch>, LawViolation> {
    let mut case = Case::new(seed);
    let broken = |law| LawViolation { seed, operation: 0, law, last: String::new() };
    case.start().map_err(broken)?;
    match case.go_on().map_err(broken)? {
        Some(mut branch) => {
            branch.go_on().map_err(broken)?;
            Ok(branch.batches)
        }
        None => Ok(case.batches),
    }
}

struct Case {
    dice: Dice,
    world: World,
    now: Time,
    batches: Vec<Batch>,
    /// How many batches no crash removes.
    shared: usize,
    witness: Witness,
    alarms: Alarms,
    last_calls: LastCalls,
    loops: Loops,
    hosts: AllowedHosts,
    tool_questions: ToolQuestions,
    graphs: GraphLaws,
    policies: Policies,
    /// The texts beside the world: both must hold the same messages.
    contexts: Contexts,
    /// Whether no model is called from outside for agents that take turns: then each tool is answered before the next
    /// turn.
    orderly: bool,
    tally: Tally,
}

impl Case {
    fn new(seed: u64) -> Self {
        Self {
            dice: Dice::new(seed),
            world: World::new(TREE),
            now: Time(0),
            batches: Vec::new(),
            shared: 1,
            witness: Witness::default(),
            alarms: Alarms::default(),
            last_calls: LastCalls::new(seed.is_multiple_of(2)),
            loops: Loops::default(),
            hosts: AllowedHosts::default(),
            tool_questions: ToolQuestions::default(),
            graphs: GraphLaws::default(),
            policies: Policies::default(),
            contexts: Contexts::new(TREE),
            orderly: seed.is_multiple_of(2),
            tally: Tally { cases: 1, ..Tally::default() },
        }
    }

    fn start(&mut self) -> Law {
        let definition = random_definition::definition(&mut self.dice);
        self.input(person(Request::Start(Start::new(definition))))
    }

    fn live(&mut self) -> Law {
        self.start()?;
        if let Some(mut branch) = self.go_on()? {
            let went_on = branch.go_on().map(drop);
            // What is shown with a broken law is the branch's.
            self.batches = branch.batches;
            went_on?;
            self.tally.add(&branch.tally);
        }
        Ok(())
    }

    /// Runs to the end, and returns a branch of itself, if one was made.
    fn go_on(&mut self) -> Result<Option<Box<Self>>, String> {
        let mut branch = None;
        for _ in 0..self.dice.between(5, OPERATIONS_MAX) {
            self.now = self.now.after_ms(self.dice.below(400));
            if self.dice.once_in(60) {
                self.crash()?;
            }
            if self.dice.once_in(15) {
                let agent = moves::an_agent(&mut self.dice, &self.world);
                self.checkpoint(agent, CheckpointKind::Manual)?;
            }
            if self.dice.once_in(25) {
                self.roll_back()?;
            }
            if self.world.tree() == TREE && branch.is_none() && self.dice.once_in(60) {
                branch = self.branch()?;
            }
            let what = moves::next(&mut self.dice, &self.world, self.now);
            self.wait_for(&what);
            if !(self.orderly && rollback::meddles(&what)) {
                self.input(what)?;
            }
            if self.world.is_over() {
                break;
            }
        }
        self.settle_all()?;
        self.wind_up()?;
        self.replay()?;
        self.tally.policy = self.policies.tally();
        Ok(branch)
    }

    /// A timer fires at its time, never before.
    fn wait_for(&mut self, what: &InputKind) {
        if let InputKind::Report(Report::Timer(Timer { timer })) = what {
            let alarm = self.world.alarms().find(|alarm| alarm.timer == *timer);
            self.now = alarm.map_or(self.now, |alarm| alarm.at.max(self.now));
        }
    }

    /// Decides one input and checks every law.
    fn input(&mut self, what: InputKind) -> Law {
        self.tally.operations += 1;
        let is_report = matches!(what, InputKind::Report(_));
        let input = Input { now: self.now, draw: self.dice.next(), what };
        let before = self.world.clone();
        match decide(&mut self.world, &input) {
            Err(refusal) => {
                self.tally.refused += 1;
                self.tally.late_answers += u64::from(matches!(refusal, Refusal::AnswerLate { .. }));
                if is_report {
                    return Err(format!("a report was refused: {refusal}"));
                }
                if before != self.world {
                    return Err(format!("a refused request changed the world: {refusal}"));
                }
            }
            Ok(decision) => {
                let by = input.what.clone();
                self.batches.push(Batch { input, events: decision.events.clone() });
                may_act(&before, &by)?;
                let mut shadow = before.clone();
                for event in &decision.events {
                    self.count(event);
                    let exact = !self.witness.overrun_possible;
                    Before { world: &shadow, now: self.now, exact }.judge(event)?;
                    self.witness.see(event)?;
                    self.alarms.see(event, self.now)?;
                    self.last_calls.see(&shadow, event)?;
                    self.loops.see(&shadow, event)?;
                    self.hosts.see(event)?;
                    self.tool_questions.see(event)?;
                    self.graphs.see(&shadow, event)?;
                    self.policies.see(event)?;
                    shared::judge(&shadow, self.now, event)?;
                    check_packet(&shadow, event)?;
                    self.contexts.apply(event);
                    check_images(&shadow, &self.contexts, event)?;
                    shadow.apply(event);
                    check_shared(&self.contexts, event)?;
                }
                if shadow != self.world {
                    return Err("applying the events gives another world than deciding them".to_owned());
                }
                if decision.events.is_empty() && before != self.world {
                    return Err("the world changed without an event".to_owned());
                }
                self.witness.check(&self.world)?;
                self.alarms.check(&self.world)?;
                check_windows(&self.world, &self.contexts)?;
                rollback::check_contexts(&self.contexts)?;
                if self.orderly {
                    self.last_calls.check(&self.world)?;
                    rollback::check_answered(&self.world, &self.contexts)?;
                }
            }
        }
        if self.world.is_over() { Ok(()) } else { Witness::check_nobody_stuck(&self.world) }
    }

    fn count(&mut self, event: &Event) {
        self.tally.events += 1;
        self.tally.stood_still +=
            u64::from(matches!(event, Event::ClockSet { clock: ClockKind::Timeout, alarm: None, .. }));
        let is_up = |exit: &Exit| matches!(exit, Exit::Failed { error } if error.code == "timeout");
        self.tally.times_up += u64::from(matches!(event, Event::AgentEnded { exit, .. } if is_up(exit)));
        let is_default = |outcome: &Outcome| matches!(outcome, Outcome::Answered { is_default: true, .. });
        self.tally.defaults +=
            u64::from(matches!(event, Event::CallEnded { outcome, .. } if is_default(outcome)));
        self.tally.halts += u64::from(matches!(event, Event::TreeHalted { .. }));
        self.tally.blanks +=
            u64::from(matches!(event, Event::ContextCut { cut, .. } if !cut.blank.is_empty()));
        self.tally.waits +=
            u64::from(matches!(event, Event::CallWaiting { why: WaitReason::Budget { .. }, .. }));
        self.tally.wrap_ups +=
            u64::from(matches!(event, Event::CallAsked { work, .. } if work.wrap_up().is_some()));
        self.tally.repeats += u64::from(matches!(event, Event::RepeatsNoticed { .. }));
        self.tally.values_written += u64::from(matches!(event, Event::ValueWritten { .. }));
        self.tally.values_read += u64::from(matches!(event, Event::ToolAnswered { value: Some(_), .. }));
        self.tally.values_cleared += u64::from(matches!(event, Event::ValuesCleared { .. }));
        let is_loop = |exit: &Exit| matches!(exit, Exit::Failed { error } if error.code == "loop_detected");
        self.tally.loops += u64::from(matches!(event, Event::AgentEnded { exit, .. } if is_loop(exit)));
        let is_about_hosts = |event: &Event| matches!(event, Event::QuestionAsked { question, .. } if !question.network.is_denied());
        self.tally.host_questions += u64::from(is_about_hosts(event));
        let has_hosts = |work: &Work| matches!(work, Work::Tool(call) if !call.network.is_denied());
        self.tally.hosts_allowed +=
            u64::from(matches!(event, Event::CallAsked { work, .. } if has_hosts(work)));
        self.tally.nodes += u64::from(matches!(event, Event::NodeEnded { .. }));
        let is_undo = |start: &NodeStart| start.of == StartOf::Undo;
        self.tally.undone += u64::from(matches!(event, Event::NodeStarted(start) if is_undo(start)));
        let waits = |start: &NodeStart| !start.waits_for.is_empty();
        self.tally.steps_waited += u64::from(matches!(event, Event::NodeStarted(start) if waits(start)));
        self.tally.shortened += u64::from(matches!(event, Event::ContextCut { shortened: Some(_), .. }));
        self.tally.cache_waits +=
            u64::from(matches!(event, Event::CallWaiting { why: WaitReason::Cache, .. }));
        self.tally.held_back += u64::from(matches!(event, Event::CallHeldBack { .. }));
        self.tally.first_tokens += u64::from(matches!(event, Event::FirstToken { .. }));
        self.tally.summaries +=
            u64::from(matches!(event, Event::ContextCut { summary: Some(Summary::By(_)), .. }));
    }

    /// The process dies and only a prefix of the journal is left. Recovery applies it, decides the clocks, and reports
    /// running calls as lost.
    fn crash(&mut self) -> Law {
        self.tally.crashes += 1;
        let kept = self.dice.between(self.shared as u64, self.batches.len() as u64);
        self.batches.truncate(usize::try_from(kept).unwrap_or(usize::MAX));
        self.recover()?;
        let running = self.running();
        self.resume()?;
        self.ring_clocks()?;
        for call in running {
            let attempt = self.world.call(call).map_or(0, |call| call.attempt);
            self.input(InputKind::Report(Report::Lost(Lost { call, attempt })))?;
        }
        Ok(())
    }

    /// Neither active time nor a timeout passed while the tree was not running, except by the wall clock.
    fn resume(&mut self) -> Law {
        let since = self.batches.last().map_or(self.now, |batch| batch.input.now);
        self.now = self.now.after_ms(self.dice.below(6_000));
        let now = self.now;
        let left = |world: &World, stopped: Time| -> BTreeMap<(AgentIx, ClockKind), u64> {
            let clocks = world.agents().all().flat_map(|ix| ClockKind::ALL.map(|kind| (ix, kind)));
            let left = |(ix, kind)| {
                let runs_on = kind == ClockKind::Timeout && world.is_by_the_wall(ix);
                let at = if runs_on { now } else { stopped };
                Some(((ix, kind), world.clock(ix, kind)?.left_at(at)))
            };
            clocks.filter_map(left).collect()
        };
        // A sealed tree is taken back before it is resumed, which gives back the time since it was sealed.
        let sealed = self.world.sealed_at();
        let before = left(&self.world, sealed.unwrap_or(since));
        let since = if sealed.is_some() { now } else { since };
        self.unseal()?;
        self.input(InputKind::Report(Report::Resumed(Resumed { since })))?;
        let (mut before, mut after) = (before, left(&self.world, now));
        // One whose deadline passed meanwhile has ended; what waited for that may have begun.
        after.retain(|of, _| before.contains_key(of));
        before.retain(|of, _| after.contains_key(of));
        hold(before == after, || format!("{before:?} ms were left, {after:?} are"))
    }

    /// Clocks that are over are decided before lost calls.
    fn ring_clocks(&mut self) -> Law {
        let due = self.world.clock_alarms().filter(|alarm| alarm.at <= self.now);
        for timer in due.map(|alarm| alarm.timer).collect::<Vec<_>>() {
            self.input(InputKind::Report(Report::Timer(Timer { timer })))?;
        }
        Ok(())
    }

    /// Applies what is written.
    fn recover(&mut self) -> Law {
        self.world = World::new(TREE);
        self.witness = Witness::default();
        self.alarms = Alarms::default();
        self.last_calls = LastCalls::new(self.orderly);
        self.loops = Loops::default();
        self.hosts = AllowedHosts::default();
        self.tool_questions = ToolQuestions::default();
        self.graphs = GraphLaws::default();
        self.policies = Policies::default();
        self.contexts = crate::contexts_of(TREE, self.events());
        for batch in self.batches.clone() {
            for event in &batch.events {
                self.last_calls.see(&self.world, event)?;
                self.loops.see(&self.world, event)?;
                self.hosts.see(event)?;
                self.tool_questions.see(event)?;
                self.graphs.see(&self.world, event)?;
                self.policies.see(event)?;
                self.world.apply(event);
                self.witness.see(event)?;
                self.alarms.see(event, batch.input.now)?;
            }
        }
        Ok(())
    }

    /// Ends every effect; after that nothing may wait for budget or a slot.
    fn settle_all(&mut self) -> Law {
        self.unseal()?;
        while let Some(call) = self.running().first().copied() {
            self.now = self.now.after_ms(1);
            if let Some(report) = moves::end_well(&mut self.dice, &self.world, call) {
                self.input(InputKind::Report(report))?;
            }
        }
        Ok(())
    }

    /// A sealed tree is taken back first: nothing happens to it otherwise.
    fn unseal(&mut self) -> Law {
        match self.world.sealed() {
            Some(_) => self.input(person(Request::Unseal(Unseal {}))),
            None => Ok(()),
        }
    }

    /// Cancels the root, reports all running calls, and checks that the tree has ended.
    fn wind_up(&mut self) -> Law {
        self.unseal()?;
        let agent = moves::root(&self.world);
        if !self.world.is_over() {
            self.input(person(Request::Cancel(Cancel { agent, reason: "the end".to_owned() })))?;
        }
        self.settle_all()?;
        self.witness.check_over(&self.world)?;
        // Everything later is refused.
        for _ in 0..3 {
            let what = moves::next(&mut self.dice, &self.world, self.now);
            self.input(what)?;
        }
        Ok(())
    }

    /// Deciding the stored inputs again, and applying the stored events from any cut, must give the same world.
    fn replay(&mut self) -> Law {
        let (mut decided, mut applied) = (World::new(TREE), World::new(TREE));
        let cut = self.dice.below(self.batches.len() as u64);
        let mut from_cut = None;
        for (at, batch) in self.batches.iter().enumerate() {
            if at as u64 == cut {
                from_cut = Some(decided.clone());
            }
            let events = decide(&mut decided, &batch.input).map(|decision| decision.events);
            if events.as_ref() != Ok(&batch.events) {
                return Err(format!("batch {at} decides otherwise the second time"));
            }
            for event in &batch.events {
                applied.apply(event);
                if let Some(world) = &mut from_cut {
                    world.apply(event);
                }
            }
        }
        if decided != self.world || applied != self.world || from_cut.is_some_and(|world| world != self.world)
        {
            return Err("a replay gave another world".to_owned());
        }
        Ok(())
    }

    fn running(&self) -> Vec<CallId> {
        self.world.calls().all().filter(|(_, call)| call.is_running()).map(|(id, _)| id).collect()
    }
}

/// An allowed request of an agent concerns itself, or is a signal to a descendant, or a message.
fn may_act(before: &World, what: &InputKind) -> Law {
    let InputKind::Request { by: Actor::Agent(by), request } = what else { return Ok(()) };
    let own = |agent: &AgentId| if agent == by { Ok(()) } else { Err(format!("{by} acted for {agent}")) };
    let below = |agent: &AgentId| {
        let (above, target) = (before.agents().find(by), before.agents().find(agent));
        let is_below =
            target.is_some_and(|ix| before.agents().above(ix).any(|ancestor| Some(ancestor) == above));
        if is_below { Ok(()) } else { Err(format!("{by} signalled {agent}")) }
    };
    match request.as_ref() {
        Request::Spawn(request) => own(&request.parent),
        Request::Followup(request) => own(&request.parent),
        Request::Hold(request) => own(&request.agent),
        Request::Withdraw(request) => own(&request.agent),
        Request::Wait(request) => own(&request.agent),
        Request::Ask(request) => own(&request.agent),
        Request::Finish(request) => own(&request.agent),
        Request::Fail(request) => own(&request.agent),
        Request::Checkpoint(request) => own(&request.agent),
        Request::Pause(request) => below(&request.agent),
        Request::Unpause(request) => below(&request.agent),
        Request::Cancel(request) => below(&request.agent),
        Request::Broadcast(request) => own(&request.from),
        Request::Send(_) | Request::Publish(_) => Ok(()),
        Request::Start(_)
        | Request::Refresh(_)
        | Request::Charge(_)
        | Request::Conclude(_)
        | Request::RecordConnections(_)
        | Request::Answer(_)
        | Request::Redirect(_)
        | Request::Replan(_)
        | Request::Raise(_)
        | Request::AddModel(_)
        | Request::Adjust(_)
        | Request::Seal(_)
        | Request::Unseal(_)
        | Request::Branch(_)
        | Request::ContinueEnded(_)
        | Request::Rollback(_)
        | Request::WriteValue(_) => Err(format!("{by} did what only a person may")),
    }
}

fn person(request: Request) -> InputKind {
    InputKind::Request { by: Actor::PERSON, request: Box::new(request) }
}
