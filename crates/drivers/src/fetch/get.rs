//! One GET, with redirects that are each checked like the first address. The connection goes to what was
//! checked: the client gets the addresses and resolves nothing itself.

use std::net::SocketAddr;
use std::time::Duration;

use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Response, StatusCode, Url};
use spinney_kernel::primitives::RemoteHost;
use tokio::time::timeout;

use crate::network::{ConnectRefusal, Connector, OpenConnection, ProxyLog};
use crate::off_worker::off_worker;

pub(super) const REDIRECTS_MAX: usize = 5;
/// All of it, with its redirects.
pub(super) const TOTAL_TIMEOUT: Duration = Duration::from_secs(60);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const URL_BYTES_MAX: usize = 8_192;
const USER_AGENT: &str = "spinney";
const ACCEPTED: &str = "text/html, text/plain, application/json, image/*, */*;q=0.5";

/// What a host answered.
#[derive(Debug)]
pub(super) struct Fetched {
    pub(super) url: Url,
    pub(super) status: StatusCode,
    /// As its header has it.
    pub(super) content_type: String,
    pub(super) body: Vec<u8>,
    /// Whether there was more than was asked for.
    pub(super) is_cut: bool,
}

pub(super) async fn get(
    connector: &Connector,
    log: &ProxyLog,
    url: &str,
    bytes_max: usize,
) -> Result<Fetched, String> {
    let followed = follow(connector, log, url, bytes_max);
    let timed_out = |_| format!("it took longer than {} s: ask for less", TOTAL_TIMEOUT.as_secs());
    timeout(TOTAL_TIMEOUT, followed).await.map_err(timed_out)?
}

async fn follow(
    connector: &Connector,
    log: &ProxyLog,
    url: &str,
    bytes_max: usize,
) -> Result<Fetched, String> {
    let mut url = checked(url)?;
    for _ in 0..=REDIRECTS_MAX {
        let (host, port) = target(&url)?;
        let mut open = log.open(host.to_string(), port);
        let addresses = match connector.addresses(&host, port).await {
            Ok(addresses) => addresses,
            Err(refusal) => {
                let said = refusal.to_string();
                open.refuse(refusal);
                return Err(said);
            }
        };
        let addresses: Vec<SocketAddr> =
            addresses.into_iter().map(|address| SocketAddr::new(address, port)).collect();
        let client = client(&url, addresses).await?;
        let request = client.get(url.clone()).header(ACCEPT, ACCEPTED).header(ACCEPT_ENCODING, "identity");
        let mut response = match request.send().await {
            Ok(response) => response,
            Err(error) => {
                let problem = innermost(&error.without_url());
                let refusal = ConnectRefusal::Unreachable { host, port, problem };
                let said = refusal.to_string();
                open.refuse(refusal);
                return Err(said);
            }
        };
        open.address = response.remote_addr().map(|address| address.ip());
        open.sent(request_bytes(&url));
        open.close();
        if let Some(next) = redirect(&response, &url)? {
            url = next;
            continue;
        }
        let (body, is_cut) = body(&mut response, bytes_max, &open).await?;
        let content_type = header(&response, CONTENT_TYPE);
        return Ok(Fetched { url, status: response.status(), content_type, body, is_cut });
    }
    Err(format!("it redirects more than {REDIRECTS_MAX} times, last to {url}"))
}

/// The bytes of a request to this address, without TLS. It is the whole that leaves: a request has no body.
fn request_bytes(url: &Url) -> usize {
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let host = format!("{}{port}", url.host_str().unwrap_or_default());
    let headers = [("accept", ACCEPTED), ("accept-encoding", "identity"), ("user-agent", USER_AGENT)];
    let headers = headers.into_iter().chain([("host", host.as_str())]);
    let headers: usize = headers.map(|(name, value)| name.len() + ": \r\n".len() + value.len()).sum();
    format!("GET {}{query} HTTP/1.1\r\n\r\n", url.path()).len() + headers
}

/// A client for one connection: system proxies, cookies and redirects are not for it.
async fn client(url: &Url, addresses: Vec<SocketAddr>) -> Result<reqwest::Client, String> {
    let host = url.host_str().unwrap_or_default().to_owned();
    // The certificates of the system are read from files.
    let built = off_worker(move || {
        // Building a client panics without a provider. If one is installed already, that one is used.
        let _already = rustls::crypto::ring::default_provider().install_default();
        let builder = reqwest::Client::builder().no_proxy().redirect(Policy::none()).referer(false);
        // What is sent is counted, and one request needs no more.
        let builder = builder.http1_only().user_agent(USER_AGENT).connect_timeout(CONNECT_TIMEOUT);
        builder.resolve_to_addrs(&host, &addresses).pool_max_idle_per_host(0).build()
    });
    built.await.map_err(|error| format!("TLS cannot be set up: {}", innermost(&error)))
}

pub(super) fn checked(text: &str) -> Result<Url, String> {
    if text.len() > URL_BYTES_MAX {
        return Err(format!("the address is longer than {URL_BYTES_MAX} bytes"));
    }
    let url = Url::parse(text)
        .map_err(|error| format!("`url` is not an address ({error}): write `https://HOST/PATH`"))?;
    checked_url(url)
}

fn checked_url(mut url: Url) -> Result<Url, String> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("`{}` is not fetched: only `http` and `https` are", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a user or a password in an address is not sent: leave it out".to_owned());
    }
    url.set_fragment(None);
    Ok(url)
}

/// What is connected to.
fn target(url: &Url) -> Result<(RemoteHost, u16), String> {
    let name = url.host_str().unwrap_or_default();
    let host = name.parse().map_err(|error| format!("{error}"))?;
    let port = url.port_or_known_default().ok_or("`url` has no port")?;
    Ok((host, port))
}

/// Where an answer leads, if it leads elsewhere.
fn redirect(response: &Response, from: &Url) -> Result<Option<Url>, String> {
    let is_redirect = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    if !is_redirect || !response.headers().contains_key(LOCATION) {
        return Ok(None);
    }
    let location = header(response, LOCATION);
    let to =
        from.join(&location).map_err(|_| format!("{from} redirects to something that is not an address"))?;
    let to = checked_url(to).map_err(|problem| format!("{from} redirects: {problem}"))?;
    if from.scheme() == "https" && to.scheme() != "https" {
        return Err(format!(
            "{from} redirects to {to}, which is not encrypted: fetch that itself if you need it"
        ));
    }
    Ok(Some(to))
}

async fn body(
    response: &mut Response,
    bytes_max: usize,
    open: &OpenConnection,
) -> Result<(Vec<u8>, bool), String> {
    let encoding = header(response, CONTENT_ENCODING);
    if !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity") {
        return Err(format!("the host sends it compressed ({encoding}), although that was not asked for"));
    }
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(None) => return Ok((body, false)),
            Ok(Some(chunk)) => {
                open.received(chunk.len());
                let room = bytes_max - body.len();
                body.extend_from_slice(&chunk[..chunk.len().min(room)]);
                if chunk.len() > room {
                    return Ok((body, true));
                }
            }
            Err(error) => return Err(format!("it was broken off: {}", innermost(&error.without_url()))),
        }
    }
}

fn header(response: &Response, name: reqwest::header::HeaderName) -> String {
    let value = response.headers().get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
    value.map(|value| value.chars().take(URL_BYTES_MAX).collect()).unwrap_or_default()
}

/// The innermost text says what happened.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
