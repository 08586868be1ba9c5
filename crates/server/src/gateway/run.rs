//! What the connections of a gateway share.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use spinney::Tree;
use spinney_kernel::words::AgentId;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::agents::Agents;
use super::halted_call::HaltedCall;
use super::kept_response::ResponseMemory;
use super::key::RunKey;
use super::models::Models;
use super::notice::OnNotice;
use super::pending_calls::PendingCalls;
use super::refusals::Refusals;
use super::request_body::BodyMemory;
use super::retries::Retries;
use super::settings::GatewaySettings;
use super::upstream::Upstream;
use super::wire::{CountedInput, GatewayError, GatewayErrorKind};

/// Most inputs of earlier calls that are kept to bound later ones.
const INPUTS_MAX: usize = 256;

/// What the connections of a gateway share.
pub(super) struct Run {
    pub(super) tree: Tree,
    pub(super) key: RunKey,
    pub(super) settings: GatewaySettings,
    pub(super) pending_calls: Arc<PendingCalls>,
    pub(super) agents: Agents,
    pub(super) models: Arc<Models>,
    pub(super) upstream: Upstream,
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
    pub(super) refusals: Refusals,
    pub(super) inputs: CountedInputs,
}

/// Whether nobody came when a call waited for a person: then no other call waits for one, until a call starts
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
    pub(super) fn get(&self, agent: &AgentId, model: &str) -> Option<Arc<CountedInput>> {
        let inputs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = inputs.iter().find(|earlier| earlier.agent == *agent && earlier.model == model);
        found.map(|earlier| Arc::clone(&earlier.input))
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
