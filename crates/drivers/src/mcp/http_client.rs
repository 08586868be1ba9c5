//! The HTTP client of one server: it connects to that server's host and to nothing else, at addresses that are checked each
//! time they are resolved. It follows no redirect, because a key would go along.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use spinney_kernel::definition::{HttpAddress, Network};
use spinney_kernel::primitives::RemoteHost;

use crate::network::{Connector, Outbound};
use crate::off_worker::off_worker;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const USER_AGENT: &str = concat!("spinney/", env!("CARGO_PKG_VERSION"));

/// A client for one host, and the URL that was asked for.
pub(super) async fn http_client(
    address: &HttpAddress,
    network: Network,
    outbound: Arc<dyn Outbound>,
) -> Result<(reqwest::Client, Url), String> {
    let rule = address.check()?;
    let url = Url::parse(&address.url).map_err(|error| format!("its URL cannot be read: {error}"))?;
    let read = rule.host().zip(rule.ports().first());
    let (host, port) = read.ok_or("its URL names no host")?;
    // The same text, read by the rules of browsers, has to lead to the same place.
    let same: Option<RemoteHost> = url.host_str().and_then(|name| name.parse().ok());
    if same.as_ref() != Some(host) || url.port_or_known_default() != Some(*port) {
        return Err("its URL can be read in two ways".to_owned());
    }
    let connector = Connector::new(network, outbound);
    // An address is not resolved, so it is checked here.
    connector.addresses(host, *port).await.map_err(|refusal| refusal.to_string())?;
    let names = CheckedName { connector, host: host.clone(), port: *port };
    // The certificates of the system are read from files.
    let built = off_worker(move || {
        // Building a client panics without a provider. If one is installed already, that one is used.
        let _already = rustls::crypto::ring::default_provider().install_default();
        let builder = reqwest::Client::builder().no_proxy().redirect(Policy::none()).referer(false);
        let builder = builder.user_agent(USER_AGENT).connect_timeout(CONNECT_TIMEOUT);
        builder.dns_resolver(Arc::new(names)).build()
    });
    let client = built.await.map_err(|error| format!("TLS cannot be set up: {}", innermost(&error)))?;
    Ok((client, url))
}

/// Resolves one name, as often as a connection is made.
struct CheckedName {
    connector: Connector,
    host: RemoteHost,
    port: u16,
}

impl Resolve for CheckedName {
    fn resolve(&self, name: Name) -> Resolving {
        let is_it = name.as_str().parse().is_ok_and(|name: RemoteHost| name == self.host);
        let (connector, host, port) = (self.connector.clone(), self.host.clone(), self.port);
        Box::pin(async move {
            if !is_it {
                return Err(io::Error::other("another host was asked for").into());
            }
            let addresses = connector.addresses(&host, port).await?;
            let addresses = addresses.into_iter().map(move |address| SocketAddr::new(address, port));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}

/// The innermost text says what happened.
pub(super) fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
