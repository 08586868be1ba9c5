//! Why a connection was not made, as agents and people read it.

use std::net::IpAddr;

use spinney_kernel::definition::Network;
use spinney_kernel::primitives::RemoteHost;
use thiserror::Error;

use super::addresses::AddressKind;

/// Nothing was connected to.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectRefusal {
    #[error(
        "the connection to {host}:{port} was refused: granted here is {granted}; do without it, or have a person grant `{host}:{port}`"
    )]
    NotGranted { host: RemoteHost, port: u16, granted: Network },
    #[error(
        "the connection to {host}:{port} was refused: the name resolves to {address}, {kind}, which only a rule for that address can grant"
    )]
    Address { host: RemoteHost, port: u16, address: IpAddr, kind: AddressKind },
    #[error(
        "the connection to {host}:{port} was refused: {address} is an address of this machine, which only a rule for that address can grant"
    )]
    OwnAddress { host: RemoteHost, port: u16, address: IpAddr },
    #[error("the request was refused: {problem}")]
    Request { problem: &'static str },
    #[error("the connection to {host}:{port} was refused: {problem}")]
    TlsName { host: RemoteHost, port: u16, problem: String },
    #[error("{host} cannot be resolved: {problem}")]
    Unresolved { host: RemoteHost, problem: String },
    #[error("cannot connect to {host}:{port}: {problem}")]
    Unreachable { host: RemoteHost, port: u16, problem: String },
}

impl ConnectRefusal {
    /// Whether a rule or our own checks said no. The rest is what the network said.
    #[must_use]
    pub const fn is_ours(&self) -> bool {
        match self {
            Self::NotGranted { .. }
            | Self::Address { .. }
            | Self::OwnAddress { .. }
            | Self::Request { .. }
            | Self::TlsName { .. } => true,
            Self::Unresolved { .. } | Self::Unreachable { .. } => false,
        }
    }
}
