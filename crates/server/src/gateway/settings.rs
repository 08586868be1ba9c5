//! What a person decides about a run.

use std::time::Duration;

use spinney_drivers::http::HttpLimits;
use spinney_drivers::wire::Permitted;

use super::models::ModelRules;
use super::permissions::AskPerson;
use super::upstream::UpstreamServers;

/// The settings of a gateway.
#[derive(Clone)]
pub struct GatewaySettings {
    pub servers: UpstreamServers,
    pub models: ModelRules,
    /// The cost ceiling of each agent below the root; what is left if absent.
    pub child_cost_nanos: Option<u64>,
    /// Most agents of the run, the program itself among them. The first call of one more is refused.
    pub agents_max: Option<u32>,
    /// Whether a line at the end of each system prompt says how much of the budget is left.
    pub tells_remaining: bool,
    /// What happens to a call that does not fit under a ceiling.
    pub on_limit: OnLimit,
    pub bodies: Bodies,
    pub waiting: WaitTimes,
    pub upstream: HttpLimits,
    /// The names that the user has allowed although their cost has no bound.
    pub permitted: Permitted,
    /// How to ask the user to allow another name. If absent, such requests are refused.
    pub ask_person: Option<AskPerson>,
    /// Texts that the journal keeps nowhere, beside the keys.
    pub secrets: Vec<String>,
}

/// What happens to a call that does not fit under a ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLimit {
    /// It waits until the ceiling is raised, at most this long.
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
    /// The shortest usage window of an account that calls wait for; a shorter pause is left to the program.
    pub window_min: Duration,
    /// How long an agent may make no call before it is ended.
    pub silent: Duration,
}

impl Default for WaitTimes {
    fn default() -> Self {
        Self {
            withheld: Duration::from_secs(30),
            ping: Duration::from_secs(10),
            retry: Duration::from_secs(60),
            window_min: Duration::from_secs(60),
            silent: Duration::from_secs(30 * 60),
        }
    }
}
