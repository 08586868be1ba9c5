//! One case: a random tree under random load, with crashes, wound up and then replayed.

use spinney_kernel::call::{Why, Work};
use spinney_kernel::context::{Contexts, Folded, Message};
use spinney_kernel::id::{AgentId, CallId, TreeId};
use spinney_kernel::report::Lost;
use spinney_kernel::request::{Cancel, Start};
use spinney_kernel::time::Time;
use spinney_kernel::window::{Summary, Tie};
use spinney_kernel::{Batch, By, Event, Input, Report, Request, What, World, decide, limit};

use super::dice::Dice;
use super::law::{Law, Witness};
use super::start::Before;
use super::{Broken, grow, moves};
use crate::fixture::parse;

/// Longest life of one simulated tree, in operations.
const OPERATIONS_MAX: u64 = 140;

/// How much was tried.
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
    /// Cuts that a summary told.
    pub summaries: u64,
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
        self.summaries += other.summaries;
    }
}

/// Runs the case of one seed.
///
/// # Errors
/// The law that did not hold.
pub fn run_case(seed: u64) -> Result<Tally, Broken> {
    let mut case = Case::new(seed);
    match case.live() {
        Ok(()) => Ok(case.tally),
        Err(law) => {
            let last = case.batches.last().map(|batch| serde_json::to_string(batch).unwrap_or_default());
            Err(Broken { seed, operation: case.tally.operations, law, last: last.unwrap_or_default() })
        }
    }
}

struct Case {
    dice: Dice,
    world: World,
    now: Time,
    batches: Vec<Batch>,
    witness: Witness,
    /// The texts beside the world: both must hold the same messages.
    contexts: Contexts,
    tally: Tally,
}

impl Case {
    fn new(seed: u64) -> Self {
        Self {
            dice: Dice::new(seed),
            world: World::new(TreeId::new([1; 16])),
            now: Time(0),
            batches: Vec::new(),
            witness: Witness::default(),
            contexts: Contexts::new(TreeId::new([1; 16])),
            tally: Tally { cases: 1, ..Tally::default() },
        }
    }

    fn live(&mut self) -> Law {
        let definition = grow::definition(&mut self.dice);
        self.input(person(Request::Start(Start { definition, goal_tokens: None })))?;
        for _ in 0..self.dice.between(5, OPERATIONS_MAX) {
            self.now = self.now.after_ms(self.dice.below(400));
            if self.dice.once_in(60) {
                self.crash()?;
            }
            let what = moves::next(&mut self.dice, &self.world, self.now);
            self.input(what)?;
            if self.world.is_over() {
                break;
            }
        }
        self.settle_all()?;
        self.wind_up()?;
        self.replay()
    }

    /// Decides one input and checks every law.
    fn input(&mut self, what: What) -> Law {
        self.tally.operations += 1;
        let is_report = matches!(what, What::Report(_));
        let input = Input { now: self.now, draw: self.dice.next(), what };
        let before = self.world.clone();
        match decide(&mut self.world, &input) {
            Err(refusal) => {
                self.tally.refused += 1;
                if is_report {
                    return Err(format!("a report was refused: {refusal}"));
                }
                if before != self.world {
                    return Err(format!("a refused request changed the world: {refusal}"));
                }
            }
            Ok(decision) => {
                may_act(&before, &input.what)?;
                let mut shadow = before.clone();
                for event in &decision.events {
                    self.count(event);
                    let exact = !self.witness.overrun_possible;
                    Before { world: &shadow, now: self.now, exact }.judge(event)?;
                    self.witness.see(event)?;
                    check_packet(&shadow, event)?;
                    self.contexts.apply(event);
                    shadow.apply(event);
                    check_told(&self.contexts, event)?;
                }
                if shadow != self.world {
                    return Err("applying the events gives another world than deciding them".to_owned());
                }
                if decision.events.is_empty() && before != self.world {
                    return Err("the world changed without an event".to_owned());
                }
                self.batches.push(Batch { input, events: decision.events });
                self.witness.check(&self.world)?;
                check_windows(&self.world, &self.contexts)?;
            }
        }
        if self.world.is_over() { Ok(()) } else { Witness::check_nobody_stuck(&self.world) }
    }

    fn count(&mut self, event: &Event) {
        self.tally.events += 1;
        self.tally.halts += u64::from(matches!(event, Event::TreeHalted { .. }));
        self.tally.waits += u64::from(matches!(event, Event::CallWaiting { why: Why::Budget { .. }, .. }));
        self.tally.summaries +=
            u64::from(matches!(event, Event::ContextCut { summary: Some(Summary::By(_)), .. }));
    }

    /// The process dies and only a prefix of the journal is left. Recovery applies it and reports what ran as lost.
    fn crash(&mut self) -> Law {
        self.tally.crashes += 1;
        let kept = self.dice.between(1, self.batches.len() as u64);
        self.batches.truncate(usize::try_from(kept).unwrap_or(usize::MAX));
        self.world = World::new(self.world.tree());
        self.witness = Witness::default();
        self.contexts = Contexts::new(self.world.tree());
        for batch in self.batches.clone() {
            for event in &batch.events {
                self.world.apply(event);
                self.contexts.apply(event);
                self.witness.see(event)?;
            }
        }
        for call in self.running() {
            let attempt = self.world.call(call).map_or(0, |call| call.attempt);
            self.input(What::Report(Report::Lost(Lost { call, attempt })))?;
        }
        Ok(())
    }

    /// Every effect ends; then nobody may be left waiting for budget or a slot.
    fn settle_all(&mut self) -> Law {
        while let Some(call) = self.running().first().copied() {
            self.now = self.now.after_ms(1);
            if let Some(report) = moves::end_well(&mut self.dice, &self.world, call) {
                self.input(What::Report(report))?;
            }
        }
        Ok(())
    }

    /// The root is cancelled, what still runs reports, and the tree must be over.
    fn wind_up(&mut self) -> Law {
        let agent: AgentId = parse("lead");
        if !self.world.is_over() {
            self.input(person(Request::Cancel(Cancel { agent, reason: "the end".to_owned() })))?;
        }
        self.settle_all()?;
        self.witness.check_over(&self.world)?;
        // Whatever comes now finds the tree over.
        for _ in 0..3 {
            let what = moves::next(&mut self.dice, &self.world, self.now);
            self.input(what)?;
        }
        Ok(())
    }

    /// Deciding the stored inputs again, and applying the stored events from any cut, must give the same world.
    fn replay(&mut self) -> Law {
        let mut decided = World::new(self.world.tree());
        let mut applied = World::new(self.world.tree());
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

/// What an agent was allowed to ask concerns itself, or is a signal to one below it, or a message.
fn may_act(before: &World, what: &What) -> Law {
    let What::Request { by: By::Agent(by), request } = what else { return Ok(()) };
    let own = |agent: &AgentId| if agent == by { Ok(()) } else { Err(format!("{by} acted for {agent}")) };
    let below = |agent: &AgentId| {
        let (above, target) = (before.agents().find(by), before.agents().find(agent));
        let is_below =
            target.is_some_and(|ix| before.agents().above(ix).any(|ancestor| Some(ancestor) == above));
        if is_below { Ok(()) } else { Err(format!("{by} signalled {agent}")) }
    };
    match request.as_ref() {
        Request::Spawn(request) => own(&request.parent),
        Request::Hold(request) => own(&request.agent),
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
        | Request::Answer(_)
        | Request::Redirect(_)
        | Request::Raise(_)
        | Request::Branch(_) => Err(format!("{by} did what only a person may")),
    }
}

/// What the world counts is what a model will read: as many messages.
fn check_windows(world: &World, contexts: &Contexts) -> Law {
    for view in world.directory() {
        let Some(ix) = world.agents().find(&view.agent) else { continue };
        let Some(agent) = world.agents().living(ix) else { continue };
        let window = &agent.progress.window;
        let (counted, read) = (window.headers().len(), contexts.count(&view.agent).unwrap_or(0));
        if counted > 0 && counted != read {
            return Err(format!("{} has {read} messages and {counted} are counted", view.agent));
        }
        // Nobody counted tokens, so what tells the rest in short has as many as it has bytes.
        let headers = window.headers().iter().filter(|header| header.tie == Tie::Folded);
        let room = headers.map(|header| u64::from(header.tokens)).sum::<u64>();
        let told = folded(contexts, &view.agent)
            .map_or(0, |told| told.to_string().len() as u64 + limit::MESSAGE_TOKENS);
        if told > room {
            return Err(format!("{} has {told} tokens in short where {room} have room", view.agent));
        }
    }
    Ok(())
}

/// What tells an agent in short what was left out of its window.
fn folded<'c>(contexts: &'c Contexts, agent: &AgentId) -> Option<&'c Folded> {
    let messages = contexts.messages(agent)?;
    if let Message::Folded(folded) = messages.get(1)?.as_ref() { Some(folded) } else { None }
}

/// What a cut says it is told by is what tells it.
fn check_told(contexts: &Contexts, event: &Event) -> Law {
    let Event::ContextCut { agent, summary: Some(Summary::By(_)), .. } = event else { return Ok(()) };
    match folded(contexts, agent).and_then(Folded::summary) {
        Some(_) => Ok(()),
        None => Err(format!("{agent} has no summary of what was cut")),
    }
}

/// No packet is larger than its window.
fn check_packet(before: &World, event: &Event) -> Law {
    let Event::CallAsked { agent, work: Work::Model(work), .. } = event else { return Ok(()) };
    let ix = before.agents().find(agent);
    let agent = ix.and_then(|ix| before.agents().living(ix));
    match agent.and_then(|agent| agent.progress.window.size()) {
        Some(size) if work.input_tokens > size => {
            Err(format!("a packet of {} tokens in a window of {size}", work.input_tokens))
        }
        Some(_) | None => Ok(()),
    }
}

fn person(request: Request) -> What {
    What::Request { by: By::Person, request: Box::new(request) }
}
