//! The network of agents: connections to the hosts of their rules and to nothing else (decision 0066). What a rule covers
//! is decided by its text; here names are resolved, addresses are checked, and the connection goes to the address that
//! was checked. Every way out passes through [`Connector::connect`].

mod addresses;
mod connect;
#[cfg(all(feature = "processes", target_os = "linux"))]
mod forward;
#[cfg(all(feature = "processes", target_os = "linux"))]
mod head;
mod log;
mod outbound;
#[cfg(all(feature = "processes", target_os = "linux"))]
mod proxy;
mod refusal;
#[cfg(all(feature = "processes", target_os = "linux"))]
mod relay;
#[cfg(all(feature = "processes", target_os = "linux"))]
mod tls_name;

pub use self::addresses::AddressKind;
pub use self::connect::{Connected, Connector};
#[cfg(all(feature = "processes", target_os = "linux"))]
pub use self::forward::forward_all;
#[cfg(feature = "http")]
pub(crate) use self::log::OpenConnection;
pub use self::log::{ProxiedConnection, ProxiedEnd, ProxyLog};
pub use self::outbound::{Outbound, SystemOutbound};
#[cfg(all(feature = "processes", target_os = "linux"))]
pub use self::proxy::{CONNECTIONS_AT_ONCE_MAX, Proxy};
pub use self::refusal::ConnectRefusal;
