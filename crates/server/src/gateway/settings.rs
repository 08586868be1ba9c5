//! What a person decides about a run.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use spinney_drivers::http::HttpLimits;
use spinney_kernel::budget::Shortfall;
use spinney_kernel::words::AgentId;

use super::models::ModelRules;
use super::upstream::UpstreamServer;

/// The settings of a gateway.
#[derive(Clone, Debug)]
pub struct GatewaySettings {
    pub anthropic: UpstreamServer,
    pub open_ai: UpstreamServer,
    pub models: ModelRules,
    /// The cost ceiling of each agent below the root; what is left if absent.
    pub child_cost_nanos: Option<u64>,
    /// What happens to a call that no ceiling allows.
    pub on_limit: OnLimit,
    pub bodies: Bodies,
    pub waiting: WaitTimes,
    pub upstream: HttpLimits,
    pub raise_hint: RaiseHint,
}

/// The command that raises a ceiling, for the text of an error.
#[derive(Clone)]
pub struct RaiseHint(Arc<WriteHint>);

type WriteHint = dyn Fn(&AgentId, &Shortfall) -> String + Send + Sync;

impl RaiseHint {
    pub fn new(hint: impl Fn(&AgentId, &Shortfall) -> String + Send + Sync + 'static) -> Self {
        Self(Arc::new(hint))
    }

    pub(super) fn command(&self, account: &AgentId, short: &Shortfall) -> String {
        (self.0)(account, short)
    }
}

impl fmt::Debug for RaiseHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RaiseHint")
    }
}

/// What happens to a call that no ceiling allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLimit {
    /// It waits until somebody raises the ceiling, at most this long.
    Wait(Duration),
    /// Its program gets an error at once.
    Stop,
}

/// What the journal keeps of requests and responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bodies {
    /// All bytes.
    Kept,
    /// Only counts.
    Dropped,
}

/// How a call that waits keeps its program patient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimes {
    /// How long a program that wants a stream gets no head of a response.
    pub withheld: Duration,
    /// Between two pings after that.
    pub ping: Duration,
    /// How long a call stays in line whose program closed its connection, for the program's own retry.
    pub retry: Duration,
    /// How long an agent may make no call before it is ended.
    pub silent: Duration,
}

impl Default for WaitTimes {
    fn default() -> Self {
        Self {
            withheld: Duration::from_secs(30),
            ping: Duration::from_secs(10),
            retry: Duration::from_secs(60),
            silent: Duration::from_secs(30 * 60),
        }
    }
}
