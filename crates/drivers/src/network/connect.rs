//! One connection of an agent: its rules, then the name, then each address. It goes to the address that was checked.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use spinney_kernel::definition::Network;
use spinney_kernel::primitives::{HostRule, RemoteHost};
use tokio::net::TcpStream;

use super::addresses::AddressKind;
use super::outbound::Outbound;
use super::refusal::ConnectRefusal;

/// Addresses of one name that are tried, one after another.
const ADDRESSES_TRIED_MAX: usize = 4;

/// Makes the connections that rules grant.
#[derive(Clone)]
pub struct Connector {
    network: Network,
    outbound: Arc<dyn Outbound>,
}

/// A connection to a host of a rule.
#[derive(Debug)]
pub struct Connected {
    pub stream: TcpStream,
    pub address: IpAddr,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").field("network", &self.network).finish_non_exhaustive()
    }
}

impl Connector {
    #[must_use]
    pub fn new(network: Network, outbound: Arc<dyn Outbound>) -> Self {
        Self { network, outbound }
    }

    /// What is granted.
    #[must_use]
    pub const fn network(&self) -> &Network {
        &self.network
    }

    /// Whether a rule covers a host, before anything is looked up: names that are not granted are not even resolved.
    pub fn check(&self, host: &RemoteHost, port: u16) -> Result<(), ConnectRefusal> {
        // What old journals granted without naming a host leads nowhere.
        if matches!(self.network, Network::Hosts(_)) && self.network.has(host, port) {
            return Ok(());
        }
        Err(ConnectRefusal::NotGranted { host: host.clone(), port, granted: self.network.clone() })
    }

    /// Connects to a host that a rule covers, at an address that may be reached through it.
    pub async fn connect(&self, host: &RemoteHost, port: u16) -> Result<Connected, ConnectRefusal> {
        let addresses = self.addresses(host, port).await?;
        let mut problem = String::from("it has no address");
        for address in addresses.into_iter().take(ADDRESSES_TRIED_MAX) {
            match self.outbound.connect(SocketAddr::new(address, port)).await {
                Ok(stream) => return Ok(Connected { stream, address }),
                Err(error) => problem = error.to_string(),
            }
        }
        Err(ConnectRefusal::Unreachable { host: host.clone(), port, problem })
    }

    /// The addresses of a host that may be connected to, if a rule covers it; resolved once.
    pub(crate) async fn addresses(
        &self,
        host: &RemoteHost,
        port: u16,
    ) -> Result<Vec<IpAddr>, ConnectRefusal> {
        self.check(host, port)?;
        let found = match host {
            RemoteHost::Address(address) => vec![*address],
            // It always means this machine, whatever a resolver says.
            RemoteHost::Name(_) if host.is_localhost() => {
                return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
            }
            RemoteHost::Name(name) => {
                let unresolved = |problem: String| ConnectRefusal::Unresolved { host: host.clone(), problem };
                let found =
                    self.outbound.resolve(name).await.map_err(|error| unresolved(error.to_string()))?;
                if found.is_empty() {
                    return Err(unresolved("it has no address".to_owned()));
                }
                found
            }
        };
        let mut refused = None;
        let mut allowed = Vec::new();
        for address in found {
            let address = address.to_canonical();
            match self.check_address(host, port, address) {
                Ok(()) if allowed.contains(&address) => {}
                Ok(()) => allowed.push(address),
                Err(refusal) => refused = refused.or(Some(refusal)),
            }
        }
        match refused {
            Some(refusal) if allowed.is_empty() => Err(refusal),
            _ => Ok(allowed),
        }
    }

    fn check_address(&self, host: &RemoteHost, port: u16, address: IpAddr) -> Result<(), ConnectRefusal> {
        let names_it = |rule: &HostRule| {
            rule.address() == Some(address) && rule.has(&RemoteHost::Address(address), port)
        };
        if self.network.rules().any(names_it) {
            return Ok(());
        }
        let host = host.clone();
        match AddressKind::new(address) {
            AddressKind::Public if self.outbound.is_own(address) => {
                Err(ConnectRefusal::OwnAddress { host, port, address })
            }
            AddressKind::Public => Ok(()),
            kind => Err(ConnectRefusal::Address { host, port, address, kind }),
        }
    }
}
