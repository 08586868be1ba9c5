//! One attempt at a call between its hooks. Hooks run on a blocking thread, so they do not hold up the rest of
//! the tree.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures::FutureExt;
use spinney_kernel::budget::{Amounts, Price, Resource, ResourceSet, Used};
use spinney_kernel::context::Origin;
use spinney_kernel::port::model::AttemptError;
use spinney_kernel::primitives::{AgentId, Fault, FaultKind, Time, limit};
use spinney_kernel::record::{Failure, FailureCode};
use spinney_kernel::rules::request::{Fail, Request};
use spinney_kernel::world::World;
use tokio::task::{JoinHandle, spawn_blocking};

use super::effects::{Stop, Ticket, panicked, stopped_with, until_stopped};
use crate::hooks::{Calling, Returned, Target, TreeHooks};

#[derive(Clone)]
pub(super) struct Hooked {
    hooks: Arc<dyn TreeHooks>,
    calling: Arc<Calling>,
    /// The model's price, and when the attempt started.
    price: Option<(Price, Time)>,
}

pub(super) type Ended = Result<Returned, AttemptError>;

/// The result of `before_charge`.
pub(super) enum Verdict {
    Fine,
    /// The agent must fail.
    Refused(Veto),
    /// Not known yet, and the call must not wait for it.
    Later(JoinHandle<Option<Veto>>),
}

/// The agent that must fail because a charge was refused, and why.
pub(super) struct Veto {
    pub(super) agent: AgentId,
    pub(super) reason: String,
}

impl Veto {
    /// Recorded as a request to fail the agent, so the journal needs no event of its own.
    pub(super) fn request(self) -> Request {
        let Self { agent, mut reason } = self;
        reason.truncate(reason.floor_char_boundary(limit::NOTE_BYTES_MAX));
        let message = format!("a hook refused a charge, which is booked anyway: {reason}");
        let error = Failure { code: FailureCode::ChargeRefused, message };
        Request::Fail(Fail { agent, error, partial: None })
    }
}

impl Hooked {
    /// `None` if the home has no hooks.
    pub(super) fn around(
        hooks: Option<&Arc<dyn TreeHooks>>,
        world: &World,
        Ticket { call, attempt }: Ticket,
        origin: &Arc<Origin>,
        target: Target,
        key: &str,
    ) -> Option<Box<Self>> {
        let hooks = Arc::clone(hooks?);
        let definition = world.definition();
        let running = world.call(call)?;
        let (held, start) = (running.held(), running.start().unwrap_or_default());
        let price = match &target {
            Target::Model(model) => definition.price(model).map(|price| (price.clone(), start)),
            Target::Tool(_) => None,
        };
        let (origin, key, tags) = (Arc::clone(origin), key.to_owned(), Arc::clone(&definition.tags));
        let calling = Arc::new(Calling { origin, call, attempt, target, key, held, tags });
        Some(Box::new(Self { hooks, calling, price }))
    }

    pub(super) async fn between(
        self: Box<Self>,
        stop: &mut Stop,
        work: impl AsyncFnOnce(&mut Stop) -> Ended,
    ) -> (Ended, Verdict) {
        if let Err(missed) = self.before(stop).await {
            return (Err(missed), Verdict::Fine);
        }
        let ended = AssertUnwindSafe(work(stop)).catch_unwind().await;
        self.after(ended.unwrap_or_else(|_| Err(panicked())), stop).await
    }

    async fn before(&self, stop: &mut Stop) -> Result<(), AttemptError> {
        let Self { hooks, calling, .. } = self.clone();
        let asked = spawn_blocking(move || {
            catch_unwind(AssertUnwindSafe(|| hooks.before_call(&calling)))
                .unwrap_or_else(|_| Err(has_panicked("before_call")))
        });
        match until_stopped(asked, stop).await {
            Some(Ok(Ok(()))) => Ok(()),
            Some(Ok(Err(reason))) => Err(self.refused(&reason)),
            Some(Err(_)) => Err(self.refused("the hook before_call was not called")),
            None => Err(stopped_with(Used::NOTHING)),
        }
    }

    /// A refused call does not use a fallback: the hook refuses the call, not the model.
    fn refused(&self, reason: &str) -> AttemptError {
        let kind = match self.calling.target {
            Target::Model(_) => FaultKind::Stopped,
            Target::Tool(_) => FaultKind::Invalid,
        };
        let message = format!("refused by a hook: {reason}");
        AttemptError { fault: Fault { message, ..Fault::new(kind) }, used: Used::NOTHING }
    }

    /// Shows the hooks how the call ended, before it is reported. Does not wait if the call was stopped meanwhile.
    async fn after(self: Box<Self>, ended: Ended, stop: &mut Stop) -> (Ended, Verdict) {
        let ended = Arc::new(ended);
        let shown = Arc::clone(&ended);
        let mut looking = spawn_blocking(move || self.look(&shown));
        let looked = if stop.is_terminated() { None } else { until_stopped(&mut looking, stop).await };
        let verdict = match looked {
            Some(Ok(Some(veto))) => Verdict::Refused(veto),
            Some(Ok(None) | Err(_)) => Verdict::Fine,
            None => Verdict::Later(looking),
        };
        (Arc::unwrap_or_clone(ended), verdict)
    }

    fn look(&self, ended: &Ended) -> Option<Veto> {
        let Self { hooks, calling, .. } = self;
        let used = match ended {
            Ok(Returned::Model(answer)) => answer.used,
            Ok(Returned::Tool(answer)) => answer.used,
            Err(missed) => missed.used,
        };
        let actual = self.actual(used);
        let charged = catch_unwind(AssertUnwindSafe(|| hooks.before_charge(calling, &actual)));
        let refused = charged.unwrap_or_else(|_| Err(has_panicked("before_charge"))).err();
        // The panic hook has reported it; the call's result stays.
        let _ = catch_unwind(AssertUnwindSafe(|| match ended {
            Ok(result) => hooks.on_result(calling, result),
            Err(missed) => hooks.on_error(calling, &missed.fault),
        }));
        refused.map(|reason| Veto { agent: calling.origin.agent().clone(), reason })
    }

    /// What the kernel will book: a test compares the two.
    fn actual(&self, used: Used) -> Amounts {
        match used.checked().unwrap_or(Used::Unknown) {
            Used::Unknown => self.calling.held.only(ResourceSet::MEASURED),
            Used::CostNanos(nanos) => Amounts::cost(nanos),
            Used::Tokens(usage) => {
                let price = self.price.as_ref();
                let cost =
                    price.map_or_else(|| usage.cost_with(0), |(price, start)| price.cost(&usage, *start));
                Amounts::cost(cost).with(Resource::Tokens, usage.tokens())
            }
        }
    }
}

fn has_panicked(hook: &str) -> String {
    format!("the hook {hook} panicked")
}
