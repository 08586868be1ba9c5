//! The loop of a tree: input, decide, append, apply, effects, reports. One task, no locks.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;

use spinney_journal::{Append, Batch, Claim, Head, Journal, JournalFault, catalog_of};
use spinney_kernel::budget::Used;
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{Actor, Fault, FaultKind, Seq, Time, TimerId, TreeId};
use spinney_kernel::record::{Alarm, Event};
use spinney_kernel::rules::report::{
    Continued, Done, Failed, FirstToken, FollowupStarted, HeldBack, JournalAway, Report, Session, Suspended,
    Timer,
};
use spinney_kernel::rules::request::{Reply, Request};
use spinney_kernel::world::{Call, TreeState, World};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tracing::Instrument as _;

use super::effects::{EffectResult, Effects, Programs, REPORTS_MAX, Ticket, blob_reader};
use super::fill::{NotFilled, fill};
use super::gate::{Confirmations, Confirmed, Gate, Held};
use super::live_state::{Decided, LiveState};
use super::prepared::{ModelStart, Prepared};
use super::program::ProgramRunner;
use super::rollback::{PreparedRollback, Requested};
use super::timers::Timers;
use super::{Enclosing, FreeBudget, REQUESTS_MAX, Stopped, Tree, TreeCommand, TreeSnapshot, TreeStatus};
use crate::bus::{EndOnDrop, Hub, RecordedEvent, actor_of};
use crate::call_limits::{CallLimits, NotYet};
use crate::clock::Clock;
use crate::drivers::Drivers;
use crate::hooks::TreeHooks;
use crate::rng::Rng;

/// What a tree gets from its home.
pub(crate) struct Begin {
    pub(crate) tree: TreeId,
    /// Who makes the requests that do not say so themselves.
    pub(crate) actor: Actor,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) draws: Rng,
    pub(crate) hooks: Option<Arc<dyn TreeHooks>>,
    pub(crate) keeps_first_text: bool,
    pub(crate) programs: Option<Arc<dyn ProgramRunner>>,
    pub(crate) limits: Arc<CallLimits>,
    pub(crate) stop: CancellationToken,
}

/// A tree as its journal has it, before it has drivers.
pub(crate) struct Seed {
    live: LiveState,
    actor: Actor,
    claim: Claim,
    head: Option<Head>,
    journal: Arc<dyn Journal>,
    clock: Arc<dyn Clock>,
    hooks: Option<Arc<dyn TreeHooks>>,
    keeps_first_text: bool,
    programs: Option<Arc<dyn ProgramRunner>>,
    limits: Arc<CallLimits>,
    stop: CancellationToken,
}

/// A tree before its task is started.
pub(crate) struct UnstartedTree {
    run: Run,
    inlets: Inlets,
    tree: Tree,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Running,
    /// No effect starts; running ones may finish.
    Stopping,
}

struct Run {
    live: LiveState,
    journal: Arc<dyn Journal>,
    /// Under which everything is appended.
    claim: Claim,
    gate: Gate,
    effects: Effects,
    timers: Timers,
    durable: Seq,
    status: watch::Sender<TreeStatus>,
    hub: EndOnDrop,
    /// Events for the watchers, until they are durable.
    tail: VecDeque<RecordedEvent>,
    /// Calls whose answers began to arrive and that others may wait for.
    streaming: Vec<Ticket>,
    mode: Mode,
}

struct Inlets {
    requests: mpsc::Receiver<TreeCommand>,
    reports: mpsc::Receiver<EffectResult>,
    confirmations: Confirmations,
    /// Made once and not in every round: starting to wait for it takes a lock.
    stop: Pin<Box<WaitForCancellationFutureOwned>>,
}

/// Reads a tree that is to be started. A new one is empty, and its first batch claims it.
pub(crate) async fn begin(begin: Begin) -> Result<Seed, JournalFault> {
    let claim = Claim::first(begin.tree);
    read(begin, claim).await
}

/// Claims a tree and then reads it: nothing is written in between.
pub(crate) async fn claimed(begin: Begin) -> Result<Seed, JournalFault> {
    let claim = begin.journal.claim(begin.tree).await?;
    let journal = Arc::clone(&begin.journal);
    let seed = read(begin, claim).await;
    if seed.is_err() {
        release(journal.as_ref(), claim).await;
    }
    seed
}

/// Gives a tree back. If that fails, it is this process's for as long as it lives, and any claim here takes it.
pub(crate) async fn release(journal: &dyn Journal, claim: Claim) {
    if let Err(fault) = journal.release(claim).await {
        tracing::debug!(target: "spinney::journal", tree = %claim.tree, "not released: {fault}");
    }
}

async fn read(begin: Begin, claim: Claim) -> Result<Seed, JournalFault> {
    let Begin { tree, actor, journal, clock, draws, hooks, keeps_first_text, programs, limits, stop } = begin;
    let head = journal.head(tree).await?;
    let mut live = LiveState::new(tree, Arc::clone(&clock), draws);
    if let Some(head) = &head {
        live.recover(journal.as_ref(), head).await?;
    }
    Ok(Seed { live, actor, claim, head, journal, clock, hooks, keeps_first_text, programs, limits, stop })
}

impl Seed {
    pub(crate) fn world(&self) -> &World {
        &self.live.world
    }

    /// Where its journal ends, if it has one.
    pub(crate) fn head(&self) -> Option<Head> {
        self.head.clone()
    }

    /// Gives the folders of its agents the files that they wrote.
    pub(crate) async fn fill_folders(&self, drivers: &Drivers) -> Result<(), NotFilled> {
        fill(self.journal.as_ref(), &self.live.world, &self.live.contexts, drivers).await
    }

    /// Gives it back: it is not resumed.
    pub(crate) async fn release(self) {
        release(self.journal.as_ref(), self.claim).await;
    }

    /// Prepares the tree to run with its drivers.
    pub(crate) fn with(self, drivers: Drivers) -> UnstartedTree {
        let Self {
            live,
            actor,
            claim,
            head,
            journal,
            clock,
            hooks,
            keeps_first_text,
            programs,
            limits,
            stop,
        } = self;
        let id = live.world.tree();
        let durable = live.world.seq();
        let hash = head.map(|head| head.hash);
        let state = live.world.state();
        let status = TreeStatus { seq: durable, hash, state, unavailable: None, last: None, stopped: None };
        let (status, watched) = watch::channel(status);
        let hub = Hub::new(id, Arc::clone(&journal), durable);
        let hub = Arc::new(if keeps_first_text { hub.with_first_text() } else { hub });
        let (requests, asked) = mpsc::channel(REQUESTS_MAX);
        let (reports, brought) = mpsc::channel(REPORTS_MAX);
        let gate = Gate::new(Arc::clone(&journal), Confirmed { seq: durable, hash, fault: None });
        let stop = Box::pin(stop.cancelled_owned());
        let inlets = Inlets { requests: asked, reports: brought, confirmations: gate.confirmations(), stop };
        let journal_of_handle = Arc::clone(&journal);
        let tree = Tree {
            id,
            actor,
            requests,
            status: watched,
            hub: Arc::clone(&hub),
            journal: journal_of_handle,
            claim,
            drivers: drivers.clone(),
        };
        let programs = programs.map(|runner| Programs { runner, tree: tree.clone() });
        let effects = Effects {
            tree: tree.clone(),
            drivers,
            hooks,
            limits,
            clock,
            reports,
            out: VecDeque::new(),
            hub: Arc::clone(&hub),
            blobs: blob_reader(Arc::clone(&journal)),
            programs,
        };
        let run = Run {
            live,
            journal,
            claim,
            gate,
            effects,
            timers: Timers::new(),
            durable,
            status,
            hub: EndOnDrop(hub),
            tail: VecDeque::new(),
            streaming: Vec::new(),
            mode: Mode::Running,
        };
        UnstartedTree { run, inlets, tree }
    }
}

impl UnstartedTree {
    /// The first request of a tree, with the bytes that it names. If it is refused, nothing was written.
    pub(crate) fn ask(&mut self, request: Request, blobs: Vec<Vec<u8>>) -> Result<Reply, Refusal> {
        self.run.decide(self.tree.actor.clone(), request, blobs)
    }

    /// Resumes a tree: clocks are decided, then running effects are lost, then other timers that are due fire. So an
    /// agent whose time is over ends because of that, and not because of a lost call. No handle exists before that.
    /// Timers fire before a suspended tree continues, so it starts nothing whose time is over.
    pub(crate) fn resume(&mut self, head: &Head) {
        let run = &mut self.run;
        let alarms: Vec<Alarm> = run.live.world.alarms().collect();
        alarms.into_iter().for_each(|alarm| run.timers.set(alarm));
        let lost = run.live.lost();
        for report in run.live.resume_reports(head) {
            run.report(report, Vec::new());
        }
        run.ring_clocks();
        for lost in lost {
            run.report(Report::Lost(lost), Vec::new());
        }
        run.fire_due();
        run.report(Report::Continued(Continued {}), Vec::new());
        if run.live.world.seq() != run.durable {
            // The stored state is outdated; the new one is published when it is durable.
            run.status.send_modify(|status| status.state = TreeState::Running);
        }
    }

    /// Starts the task.
    pub(crate) fn spawn(self) -> (Tree, tokio::task::JoinHandle<()>) {
        let Self { run, inlets, tree } = self;
        // The span is entered for each poll, so a subscriber can measure polls.
        let span = tracing::trace_span!(target: "spinney::tree", "poll");
        (tree, tokio::spawn(run.run(inlets).instrument(span)))
    }
}

enum NextInput {
    /// Batches are durable up to here, or the journal failed.
    Confirmed(Confirmed),
    /// A journal that could not be reached was asked where the tree ends.
    Answered(Result<Option<Head>, JournalFault>),
    /// The watchers that held the tree up have room again.
    Released,
    EffectResult(EffectResult),
    TreeCommand(TreeCommand),
    TimerDue,
    Stop,
}

impl Run {
    async fn run(mut self, mut inlets: Inlets) {
        let stopped = self.until_done(&mut inlets).await;
        // A journal that failed is not asked for anything more.
        let is_owner = !matches!(stopped, Some(Stopped::Journal(_))) && self.gate.outage().is_none();
        self.publish_last_status(stopped);
        let (journal, claim) = (Arc::clone(&self.journal), self.claim);
        // What still runs ends before the tree can be another owner's.
        drop((self, inlets));
        if is_owner {
            release(journal.as_ref(), claim).await;
        }
    }

    /// Returns why it stopped, unless it ended.
    async fn until_done(&mut self, inlets: &mut Inlets) -> Option<Stopped> {
        self.release_durable();
        while !self.is_done() {
            let input = self.next_input(inlets).await;
            if matches!(input, NextInput::Stop) && self.gate.outage().is_some() {
                // What is not written never left, and the next process does it again.
                return Some(Stopped::Shutdown);
            }
            if let Err(fault) = self.handle(input) {
                return Some(Stopped::Journal(fault));
            }
        }
        let shut = self.mode != Mode::Running && !self.live.world.is_over();
        shut.then_some(Stopped::Shutdown)
    }

    /// Waits for the next input. Confirmations come first; while the journal or a watcher is behind, nothing else is
    /// taken.
    async fn next_input(&mut self, inlets: &mut Inlets) -> NextInput {
        let is_held = self.hub.0.is_held();
        let is_out = self.gate.outage().is_some();
        let room = self.gate.has_room() && !is_held && !is_out;
        let is_running = self.mode == Mode::Running;
        // What a timer releases must not start in a tree that is being stopped.
        let may_fire = room && (is_running || self.live.world.is_suspended());
        tokio::select! {
            biased;
            confirmed = inlets.confirmations.next() => NextInput::Confirmed(confirmed),
            answer = self.gate.answer(), if is_out => NextInput::Answered(answer),
            () = self.hub.0.released(), if is_held => NextInput::Released,
            Some(brought) = inlets.reports.recv(), if room => NextInput::EffectResult(brought),
            Some(asked) = inlets.requests.recv(), if room && is_running => NextInput::TreeCommand(asked),
            () = self.timers.next(|at| self.live.ms_until(at)), if may_fire => NextInput::TimerDue,
            () = &mut inlets.stop, if is_running => NextInput::Stop,
        }
    }

    fn handle(&mut self, input: NextInput) -> Result<(), JournalFault> {
        match input {
            NextInput::Confirmed(confirmed) => self.confirmed(confirmed)?,
            NextInput::Answered(answer) => self.answered(answer)?,
            NextInput::Released => {}
            NextInput::EffectResult(brought) => self.take(brought),
            NextInput::TreeCommand(asked) => self.asked(asked),
            NextInput::TimerDue => self.fire(),
            NextInput::Stop => self.stop(),
        }
        self.report_first_tokens();
        Ok(())
    }

    fn confirmed(&mut self, Confirmed { seq, hash, fault }: Confirmed) -> Result<(), JournalFault> {
        let events = seq.0.saturating_sub(self.durable.0);
        tracing::debug!(target: "spinney::journal", tree = %self.live.world.tree(), seq = seq.0, events, "durable");
        self.durable = seq;
        self.publish_progress(hash);
        if let Some(fault) = fault {
            self.wait(fault)?;
        }
        self.release_durable();
        Ok(())
    }

    /// Waits for a journal that cannot be reached. A tree that is being stopped does not.
    fn wait(&mut self, fault: JournalFault) -> Result<(), JournalFault> {
        if !fault.can_be_retried() || self.mode != Mode::Running {
            return Err(fault);
        }
        if self.gate.outage().is_none() {
            tracing::warn!(target: "spinney::journal", "{fault}: the tree waits, and tries again");
            self.status.send_modify(|status| status.unavailable = Some(fault));
        }
        self.gate.wait(self.live.world.tree(), Time(self.live.now_ms()));
        Ok(())
    }

    /// Continues with a journal that can be reached again.
    fn answered(&mut self, answer: Result<Option<Head>, JournalFault>) -> Result<(), JournalFault> {
        let Some(back) = self.gate.answered(self.live.world.tree(), answer)? else { return Ok(()) };
        tracing::warn!(target: "spinney::journal", "the journal is available again: the tree continues");
        self.durable = back.seq;
        self.status.send_modify(|status| status.unavailable = None);
        self.publish_progress(back.hash);
        self.release_durable();
        self.report(Report::JournalAway(JournalAway { since: back.since }), Vec::new());
        // As after a crash: clocks by the wall come before what ended meanwhile.
        self.ring_clocks();
        self.fire();
        Ok(())
    }

    /// Whether the tree is over or stopped, and everything is durable.
    fn is_done(&self) -> bool {
        let still = self.live.world.is_over() || self.mode != Mode::Running;
        still && self.gate.is_clear() && self.effects.len() == 0
    }

    /// Publishes the last status. It contains only what is durable.
    fn publish_last_status(&self, stopped: Option<Stopped>) {
        let whole = self.durable == self.live.world.seq();
        let (tree, seq, state) = (self.live.world.tree(), self.durable.0, self.live.world.state().as_str());
        match &stopped {
            None => tracing::info!(%tree, seq, state, "tree ended"),
            Some(Stopped::Shutdown) => tracing::info!(%tree, seq, state, "tree stopped"),
            Some(Stopped::Journal(_)) => {
                tracing::error!(%tree, seq, state, "tree stopped: its journal failed");
            }
            Some(Stopped::Bug) => tracing::error!(%tree, seq, state, "tree stopped at a bug"),
        }
        let snapshot = whole.then(|| Arc::new(TreeSnapshot::at(&self.live.world, &self.live.contexts)));
        self.status.send_modify(|status| (status.last, status.stopped) = (snapshot, stopped));
    }

    fn asked(&mut self, asked: TreeCommand) {
        match asked {
            TreeCommand::Request { by, request, answer } => {
                let decided = self.requested(by, request);
                self.gate.hold(self.live.world.seq(), Held::Answer(answer, decided));
            }
            TreeCommand::Limit(rate) => self.report(Report::Rate(rate), Vec::new()),
            // The answer is only a hint, so it does not wait for durability. The caller may have dropped the receiver.
            TreeCommand::FreeBudget { agent, answer } => {
                let _gone = answer.send(FreeBudget::at(&self.live.world, &agent));
            }
            TreeCommand::TreeSnapshot(answer) => {
                let snapshot = Box::new(TreeSnapshot::at(&self.live.world, &self.live.contexts));
                self.gate.hold(self.live.world.seq(), Held::TreeSnapshot(answer, snapshot));
            }
        }
        self.release_durable();
    }

    /// Decides a request. The name that it requests is already reserved.
    fn requested(&mut self, by: Actor, Enclosing { request, blobs }: Enclosing) -> Result<Reply, Refusal> {
        let (request, name) = match request {
            Requested::Plain(request, name) => (request, name),
            Requested::Rollback(rollback) => return self.roll_back(by, *rollback),
        };
        // Also while it stops: calls that still run report to it.
        if let Request::Seal(_) = *request {
            return Err(Refusal::SealRunning);
        }
        let reply = self.decide(by, *request, blobs)?;
        name.give();
        Ok(reply)
    }

    /// Makes a checkpoint of the current state and rolls the agent back.
    fn roll_back(&mut self, by: Actor, back: PreparedRollback) -> Result<Reply, Refusal> {
        let prior = back.prior(&self.live.world, &by)?;
        let prior = self.decide(by.clone(), prior, Vec::new())?;
        let (request, at) = back.request(prior, &mut self.live.contexts);
        let decided = self.decide(by, request, Vec::new());
        if decided.is_err() {
            self.live.contexts.take_back(at);
        }
        decided
    }

    fn take(&mut self, brought: EffectResult) {
        match brought {
            EffectResult::Report(report, blobs) => {
                if let Report::Done(Done { call, .. }) | Report::Failed(Failed { call, .. }) = &report
                    && let Some(connections) = self.effects.ended(*call)
                {
                    self.report(connections, Vec::new());
                }
                self.trace_end(&report);
                self.report(report, blobs);
            }
            EffectResult::FirstToken(ticket) => self.streaming.push(ticket),
            EffectResult::Connections(call) => {
                if let Some(connections) = self.effects.connections(call) {
                    self.report(connections, Vec::new());
                }
            }
            EffectResult::Session(Ticket { call, attempt }, session) => {
                self.report(Report::Session(Session { call, attempt, session }), Vec::new());
            }
            EffectResult::FollowupStarted(Ticket { call, attempt }, of, start) => {
                let started = FollowupStarted { call, attempt, of, start };
                self.report(Report::FollowupStarted(started), Vec::new());
            }
            EffectResult::Veto(veto) => {
                // An agent that has already ended need not fail.
                let _ = self.decide(Actor::HOOK, veto.request(), Vec::new());
            }
        }
        self.release_durable();
    }

    /// Logs how an effect ended, without its content.
    fn trace_end(&self, report: &Report) {
        let tree = self.live.world.tree();
        match report {
            Report::Done(Done { call, attempt, is_error, .. }) => {
                tracing::debug!(target: "spinney::effect", %tree, %call, attempt, is_error, "call done");
            }
            Report::Failed(Failed { call, attempt, fault, .. }) => {
                let kind = fault.kind.as_str();
                tracing::debug!(target: "spinney::effect", %tree, %call, attempt, kind, "call failed");
            }
            _ => {}
        }
    }

    /// Reports that a prompt is cached, if a call waits for that.
    fn report_first_tokens(&mut self) {
        self.streaming.retain(|ticket| self.live.world.leads(ticket.call));
        let is_awaited = |ticket: &mut Ticket| self.live.world.is_cache_awaited(ticket.call);
        let awaited: Vec<Ticket> = self.streaming.extract_if(.., is_awaited).collect();
        for Ticket { call, attempt } in awaited {
            self.report(Report::FirstToken(FirstToken { call, attempt }), Vec::new());
        }
    }

    fn fire(&mut self) {
        self.fire_due();
        let pending = self.live.world.alarms().count();
        self.timers.prune(self.live.world.alarms(), 2 * pending + 64);
        self.release_durable();
    }

    /// Decides the clocks that are over, earliest first. Their timers have no effect when they fire again.
    fn ring_clocks(&mut self) {
        let now = Time(self.live.now_ms());
        let due = self.live.world.clock_alarms().filter(|alarm| alarm.at <= now);
        let mut due: Vec<(Time, TimerId)> = due.map(|alarm| (alarm.at, alarm.timer)).collect();
        due.sort_unstable();
        for (_, timer) in due {
            self.report(Report::Timer(Timer { timer }), Vec::new());
        }
    }

    fn fire_due(&mut self) {
        let now = Time(self.live.now_ms());
        while let Some(timer) = self.timers.due(now) {
            self.report(Report::Timer(Timer { timer }), Vec::new());
        }
    }

    /// Shuts the tree down: running effects may finish, nothing new starts. A tree that waits only for a person has
    /// nothing running and keeps its state, so lists show what it waits for.
    fn stop(&mut self) {
        self.mode = Mode::Stopping;
        let state = self.live.world.state();
        if !matches!(state, TreeState::Waiting | TreeState::Halted | TreeState::Paused) {
            self.report(Report::Suspended(Suspended::default()), Vec::new());
        }
    }

    fn report(&mut self, report: Report, blobs: Vec<Vec<u8>>) {
        let Decided { after, batch, .. } = self.live.report(report);
        self.append(after, batch, blobs);
    }

    fn decide(&mut self, by: Actor, request: Request, blobs: Vec<Vec<u8>>) -> Result<Reply, Refusal> {
        let tree = self.live.world.tree();
        let Decided { after, batch, reply } = self.live.request(by, request).inspect_err(|refusal| {
            tracing::debug!(%tree, code = refusal.code(), "refused");
        })?;
        self.append(after, batch, blobs);
        Ok(reply)
    }

    /// Appends a batch; its effects wait until it is durable.
    fn append(&mut self, after: Seq, batch: Batch, blobs: Vec<Vec<u8>>) {
        let (tree, first) = (self.live.world.tree(), batch.events.first().map(Event::as_str));
        tracing::debug!(%tree, after = after.0, events = batch.events.len(), first, "decided");
        if batch.events.is_empty() {
            return;
        }
        let world = &self.live.world;
        let preparing = self.effects.preparing(world, &self.live.contexts);
        for effect in batch.events.iter().filter_map(|event| world.effect_of(event)) {
            // An agent that ended within the decision has nothing left to start or stop.
            if let Some(prepared) = preparing.prepare(effect) {
                self.gate.hold(world.seq(), Held::Effect(prepared));
            }
        }
        let state = world.state();
        if self.hub.0.is_watched() {
            let numbered = batch.events.iter().zip(after.0 + 1..);
            let recorded = |(event, seq): (&Event, u64)| RecordedEvent {
                seq: Seq(seq),
                at: batch.input.now,
                actor: actor_of(&batch.input).cloned(),
                event: event.clone(),
            };
            self.tail.extend(numbered.map(recorded));
        }
        let (tree, durability) = (world.tree(), world.definition().durability);
        let catalog = catalog_of(tree, after, &batch);
        let batch = match batch.encode() {
            Ok(batch) => batch,
            Err(fault) => return self.gate.fail(world.seq(), fault),
        };
        // The gate knows the predecessor.
        let (base, seed, before, blobs) = (None, None, None, blobs.into());
        let epoch = self.claim.epoch;
        self.gate.append(Append {
            tree,
            epoch,
            after,
            base,
            seed,
            before,
            batch,
            blobs,
            catalog,
            state,
            durability,
        });
    }

    /// Publishes the durable progress.
    fn publish_progress(&mut self, hash: Option<spinney_journal::ChainHash>) {
        let whole = self.durable == self.live.world.seq();
        // Do not wake waiters for every step.
        self.status.send_if_modified(|status| {
            let (first, before) = (status.seq == Seq(0), status.state);
            (status.seq, status.hash) = (self.durable, hash);
            if whole {
                status.state = self.live.world.state();
            }
            first || status.state != before
        });
        let ready = self.tail.partition_point(|recorded| recorded.seq <= self.durable);
        let recorded = self.tail.drain(..ready).collect();
        self.hub.0.publish(recorded, self.durable);
    }

    /// Releases what waited for its events to be durable.
    fn release_durable(&mut self) {
        self.gate.reach(self.durable);
        while let Some(held) = self.gate.release(self.durable) {
            match held {
                // The caller may be gone.
                Held::Answer(answer, decided) => drop(answer.send(decided)),
                Held::TreeSnapshot(answer, snapshot) => drop(answer.send(*snapshot)),
                Held::Effect(effect) => self.start(effect),
            }
        }
    }

    /// Sends a model call, unless a limit of this process does not allow it yet.
    fn call_model(&mut self, start: ModelStart) {
        match self.effects.admit(&start) {
            Ok(pass) => self.effects.call_model(start, pass),
            Err(NotYet { by, wait_ms }) => {
                let Ticket { call, attempt } = start.ticket;
                let (tree, until) = (self.live.world.tree(), Time(self.live.now_ms()).after_ms(wait_ms));
                tracing::debug!(target: "spinney::effect", %tree, %call, attempt, ?by, wait_ms, "call held back");
                self.report(Report::HeldBack(HeldBack { call, attempt, by, until }), Vec::new());
            }
        }
    }

    fn start(&mut self, effect: Prepared) {
        if let Some(Ticket { call, attempt }) = effect.ticket()
            && self.live.world.call(call).is_some_and(Call::is_void)
        {
            // Its agent was rolled back since, so the call would be about a context that is gone.
            let fault = Fault::new(FaultKind::Stopped);
            return self
                .report(Report::Failed(Failed { call, attempt, fault, used: Used::NOTHING }), Vec::new());
        }
        match effect {
            Prepared::SetTimer(alarm) => self.timers.set(alarm),
            Prepared::StopCalls(calls) => calls.into_iter().for_each(|call| self.effects.stop(call)),
            Prepared::CallModel(start) => self.call_model(*start),
            Prepared::CallTool(start) => self.effects.call_tool(*start),
        }
    }
}
