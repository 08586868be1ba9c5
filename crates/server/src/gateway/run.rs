//! What the connections of a gateway share.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use spinney::Tree;
use spinney_drivers::wire::Secrets;
use spinney_kernel::primitives::AgentId;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::agents::Agents;
use super::counter::Counter;
use super::halted_call::HaltedCall;
use super::kept_response::ResponseMemory;
use super::key::RunKey;
use super::models::Models;
use super::notice::OnNotice;
use super::pending_calls::PendingCalls;
use super::permissions::Permissions;
use super::refusals::Refusals;
use super::request_body::BodyMemory;
use super::retries::Retries;
use super::settings::GatewaySettings;
use super::upstream::Upstream;
use super::wire::{CountedInput, GatewayError, GatewayErrorKind, OpaqueTexts};

/// Most inputs of earlier calls that are kept to bound later ones.
const INPUTS_MAX: usize = 256;
/// The most inputs of other agents that a call is compared with.
const OTHER_INPUTS_MAX: usize = 3;

/// What the connections of a gateway share.
pub(super) struct Run {
    pub(super) tree: Tree,
    pub(super) key: RunKey,
    pub(super) settings: GatewaySettings,
    pub(super) pending_calls: Arc<PendingCalls>,
    pub(super) agents: Agents,
    pub(super) models: Arc<Models>,
    pub(super) upstream: Upstream,
    /// What the journal does not keep of requests and responses.
    pub(super) kept_secrets: Secrets,
    pub(super) retries: Retries,
    pub(super) bodies: BodyMemory,
    pub(super) responses: ResponseMemory,
    pub(super) halt: watch::Receiver<Option<HaltedCall>>,
    pub(super) given_up: GivenUp,
    pub(super) on_notice: OnNotice,
    /// No more connections are taken.
    pub(super) closing: CancellationToken,
    /// Calls that still run are broken off.
    pub(super) broken_off: CancellationToken,
    pub(super) calls: TaskTracker,
    /// Requests with the key of the run, also those that were refused.
    pub(super) requests: AtomicU64,
    /// Those that ask for a model call.
    pub(super) calls_asked: AtomicU64,
    pub(super) refusals: Refusals,
    /// Whether a request had another key. A person is notified of the first.
    pub(super) has_met_another_key: AtomicBool,
    /// Whether an answer was not the API's. A person is notified of the first.
    pub(super) has_met_another_answer: AtomicBool,
    pub(super) inputs: CountedInputs,
    pub(super) counter: Counter,
    pub(super) opaque: Mutex<OpaqueTexts>,
    pub(super) permissions: Permissions,
    /// Calls that got a smaller output cap than they asked for.
    pub(super) capped: AtomicU64,
}

/// Whether a call has waited for a person in vain: then no other call waits for one, until a call starts
/// or a ceiling is raised.
#[derive(Clone, Debug, Default)]
pub(super) struct GivenUp(Arc<AtomicBool>);

impl GivenUp {
    pub(super) fn set(&self, is_given_up: bool) {
        self.0.store(is_given_up, Ordering::Release);
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// The inputs of earlier calls that their providers have counted, the newest of each agent and model.
#[derive(Default)]
pub(super) struct CountedInputs(Mutex<VecDeque<EarlierInput>>);

struct EarlierInput {
    agent: AgentId,
    model: String,
    input: Arc<CountedInput>,
}

impl CountedInputs {
    /// The inputs that may be a prefix of an agent's next call: its own, and the newest of other agents, because the agents
    /// of one program share instructions and tools.
    pub(super) fn candidates(&self, agent: &AgentId, model: &str) -> Vec<Arc<CountedInput>> {
        let inputs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_model = || inputs.iter().rev().filter(|earlier| earlier.model == model);
        let own = of_model().filter(|earlier| earlier.agent == *agent);
        let others = of_model().filter(|earlier| earlier.agent != *agent).take(OTHER_INPUTS_MAX);
        own.chain(others).map(|earlier| Arc::clone(&earlier.input)).collect()
    }

    /// Forgets what the counter said about a model.
    pub(super) fn forget_estimates(&self, model: &str) {
        let mut inputs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inputs.retain(|earlier| earlier.model != model || !earlier.input.is_estimate());
    }

    pub(super) fn set(&self, agent: &AgentId, model: &str, input: CountedInput) {
        let mut inputs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inputs.retain(|earlier| earlier.agent != *agent || earlier.model != model);
        if inputs.len() >= INPUTS_MAX {
            inputs.pop_front();
        }
        inputs.push_back(EarlierInput {
            agent: agent.clone(),
            model: model.to_owned(),
            input: Arc::new(input),
        });
    }
}

impl Run {
    /// The error of a call whose run has ended.
    pub(super) fn over(&self) -> GatewayError {
        let message = "spinney: this run was cancelled or has ended";
        GatewayError::new(GatewayErrorKind::Ended, message)
    }
}
