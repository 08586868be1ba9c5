//! The live state of a tree: its world and contexts, changed only by inputs. It decides and records; it runs no
//! effects.

use std::sync::Arc;

use spinney_journal::{Batch, Entry, Head, Journal, JournalFault, mended, pages};
use spinney_kernel::context::Contexts;
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{Actor, Body, Seq, Time, TreeId};
use spinney_kernel::record::Work;
use spinney_kernel::rules::report::{Lost, Report, Resumed, Suspended};
use spinney_kernel::rules::request::Answer;
use spinney_kernel::rules::{
    Decision, Input, InputKind, Receipt, Reply, Request, decide_report, decide_request,
};
use spinney_kernel::world::{TreeState, World};

use super::unfit::checked;
use crate::clock::Clock;
use crate::output_schema;
use crate::rng::Rng;

pub(super) struct LiveState {
    pub(super) world: World,
    pub(super) contexts: Contexts,
    clock: Arc<dyn Clock>,
    draws: Rng,
    /// The time of the last input. Time never goes back.
    now: Time,
    /// How far the journal's time is ahead of the clock, because the clock was set back.
    ahead_ms: u64,
}

/// One decision: the batch for the journal, and the reply.
pub(super) struct Decided<R> {
    /// The event before the batch.
    pub(super) after: Seq,
    pub(super) batch: Batch,
    pub(super) reply: R,
}

impl LiveState {
    pub(super) fn new(tree: TreeId, clock: Arc<dyn Clock>, draws: Rng) -> Self {
        let (world, contexts) = (World::new(tree), Contexts::new(tree));
        Self { world, contexts, clock, draws, now: Time(0), ahead_ms: 0 }
    }

    /// Reads a tree from its journal, a page at a time.
    pub(super) async fn recover(&mut self, journal: &dyn Journal, head: &Head) -> Result<(), JournalFault> {
        let tree = self.world.tree();
        let mut pages = pages(journal, tree, Seq(0));
        while let Some(page) = pages.next().await? {
            for entry in &page {
                self.take_up(entry)?;
            }
        }
        self.mend(journal).await?;
        self.ahead_ms = self.now.0.saturating_sub(self.clock.now_ms());
        let (end, after) = (head.seq.0, self.world.seq().0);
        if end == after {
            return Ok(());
        }
        let reason = format!("its last event is {end} and there is none after {after}");
        Err(JournalFault::Damaged { tree, after, reason })
    }

    /// Reads a tree up to an event, and returns when that event arrived.
    pub(super) async fn recover_until(
        &mut self,
        journal: &dyn Journal,
        at: Seq,
    ) -> Result<Time, JournalFault> {
        let tree = self.world.tree();
        let mut pages = pages(journal, tree, Seq(0));
        while let Some(page) = pages.next().await? {
            for entry in page.iter().filter(|entry| entry.after < at) {
                self.take_up(entry)?;
            }
            if self.world.seq() >= at {
                break;
            }
        }
        self.mend(journal).await?;
        self.ahead_ms = self.now.0.saturating_sub(self.clock.now_ms());
        let exact = self.world.seq() == at;
        if exact { Ok(self.now) } else { Err(JournalFault::NotABoundary { tree, at: at.0 }) }
    }

    /// Reads contexts that were rolled back again, this time keeping what they return to.
    async fn mend(&mut self, journal: &dyn Journal) -> Result<(), JournalFault> {
        let tree = self.world.tree();
        let contexts = std::mem::replace(&mut self.contexts, Contexts::new(tree));
        self.contexts = mended(journal, tree, contexts, Contexts::new(tree)).await?;
        Ok(())
    }

    /// Applies a stored batch. A batch whose events do not fit is damage.
    fn take_up(&mut self, Entry { after, batch, .. }: &Entry) -> Result<(), JournalFault> {
        self.now = self.now.max(batch.input.now);
        let applied = checked(|| {
            for event in &batch.events {
                self.world.apply(event);
                self.contexts.apply(event);
            }
            self.world.state() != TreeState::New
        });
        match applied {
            Some(true) => Ok(()),
            Some(false) | None => {
                let reason = "the next batch does not fit the tree".to_owned();
                Err(JournalFault::Damaged { tree: self.world.tree(), after: after.0, reason })
            }
        }
    }

    /// Decides one request and applies the events. The returned input is what the journal stores.
    pub(super) fn request(&mut self, by: Actor, mut request: Request) -> Result<Decided<Reply>, Refusal> {
        // Who may not answer learns nothing of what fits.
        if let (Request::Answer(answer), Actor::Outside(_)) = (&mut request, &by) {
            self.fit_answer(answer)?;
        }
        let after = self.world.seq();
        let (now, draw) = (self.next_now(), self.next_draw());
        let decision = decide_request(&mut self.world, now, draw, &by, &request)?;
        let input = Input { now, draw, what: InputKind::Request { by, request: Box::new(request) } };
        Ok(self.decided(after, input, decision))
    }

    /// Refuses an answer that the schema of its question does not accept, which leaves the question open. No answer can fit a
    /// schema that is none, so then any does.
    fn fit_answer(&self, answer: &mut Answer) -> Result<(), Refusal> {
        let call = self.world.call(answer.question);
        let Some(Work::Question(question)) = call.map(|call| &call.work) else { return Ok(()) };
        let Some(schema) = question.form.schema() else { return Ok(()) };
        if output_schema::check(schema.text()).is_err() {
            return Ok(());
        }
        match output_schema::fit(schema.text(), &answer.answer.text) {
            Ok(bare) if bare.len() == answer.answer.text.len() => Ok(()),
            Ok(bare) => {
                answer.answer = Body::text(bare);
                Ok(())
            }
            Err(mismatch) => {
                let mismatch = mismatch.describe();
                Err(Refusal::AnswerMismatch { question: answer.question, mismatch })
            }
        }
    }

    /// Decides one report and applies the events. The returned input is what the journal stores.
    pub(super) fn report(&mut self, report: Report) -> Decided<Receipt> {
        let after = self.world.seq();
        let draw = if draws(&report) { self.next_draw() } else { 0 };
        let now = self.next_now();
        let decision = decide_report(&mut self.world, now, draw, &report);
        self.decided(after, Input { now, draw, what: InputKind::Report(report) }, decision)
    }

    fn decided<R>(&mut self, after: Seq, input: Input, decision: Decision<R>) -> Decided<R> {
        let Decision { events, reply } = decision;
        events.iter().for_each(|event| self.contexts.apply(event));
        Decided { after, batch: Batch { input, events }, reply }
    }

    fn next_now(&mut self) -> Time {
        self.now = self.now.max(Time(self.now_ms()));
        self.now
    }

    fn next_draw(&mut self) -> u64 {
        self.draws.next() & u64::from(u32::MAX)
    }

    /// The reports that resume a tree where its journal ends.
    pub(super) fn resume_reports(&self, head: &Head) -> Vec<Report> {
        let root = self.world.agents().root().and_then(|root| self.world.agents().living(root));
        // Versions before rules 4 stopped a tree by pausing its root, and only the head shows that no person did.
        // This report comes first: a crash after any other batch would leave what looks like a person's pause.
        let was_pause = head.state == TreeState::Suspended && root.is_some_and(|root| root.paused);
        let suspended = was_pause.then_some(Report::Suspended(Suspended { was_pause }));
        suspended.into_iter().chain([Report::Resumed(Resumed { since: self.now })]).collect()
    }

    /// Every running effect, reported as lost.
    pub(super) fn lost(&self) -> Vec<Lost> {
        let out = self.world.calls().all().filter(|(_, call)| call.is_running());
        out.map(|(call, found)| Lost { call, attempt: found.attempt }).collect()
    }

    /// Continues from the journal's last time.
    pub(super) fn now_ms(&self) -> u64 {
        self.clock.now_ms().saturating_add(self.ahead_ms)
    }

    pub(super) fn ms_until(&self, at: Time) -> u64 {
        at.0.saturating_sub(self.now_ms())
    }
}

/// Whether this report may create an id: only then are random bits drawn and stored.
const fn draws(report: &Report) -> bool {
    match report {
        Report::Done(done) => !done.asks.is_empty(),
        _ => false,
    }
}
