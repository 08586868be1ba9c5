//! The gateway of `spinney exec`: model calls of an unmodified program, each held before it leaves and settled at what
//! the provider reports.
//!
//! A run is an ordinary tree without model turns of its own ([`exec_definition`]). Each request of the program is a hold
//! on its agent's account; when the tree starts the call, the connection that waits for it sends it. So holds, lines,
//! bookings, crashes and views are the kernel's, and nothing is counted here.

mod agents;
mod budget_line;
mod call;
mod client;
mod counter;
mod definition;
mod driver;
mod events;
mod halted_call;
mod kept_response;
mod key;
mod listen;
mod models;
mod notice;
mod pending_calls;
mod permissions;
mod refusals;
mod request_body;
mod retries;
mod run;
mod running_gateway;
mod settings;
mod unauthenticated;
mod upstream;
mod wait;
pub mod wire;

pub use definition::{ExecBudget, exec_definition};
pub use driver::GatewayModel;
pub use key::RunKey;
pub use models::ModelRules;
pub use notice::{Notice, OnNotice};
pub use pending_calls::PendingCalls;
pub use permissions::AskPerson;
pub use refusals::RefusedRequests;
pub use running_gateway::{Gateway, GatewayReport, GatewaySocket, GatewayStartError};
pub use settings::{Bodies, GatewaySettings, OnLimit, WaitTimes};
pub use upstream::{UpstreamKey, UpstreamServer, UpstreamServers};
