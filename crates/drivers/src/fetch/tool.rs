//! The driver of `fetch`.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use spinney_kernel::definition::{FETCH, HostRequests, HostsArgument, OnLost, ToolSpec};
use spinney_kernel::port::Pending;
use spinney_kernel::port::model::AttemptError;
use spinney_kernel::port::tool::{Tool, ToolAnswer, ToolAttempt};
use spinney_kernel::primitives::ToolName;

use super::get::{TOTAL_TIMEOUT, get};
use super::image::image;
use super::page::page;
use crate::network::{ConnectRefusal, Connector, Outbound, ProxiedEnd, ProxyLog, SystemOutbound};
use crate::off_worker::off_worker;

const DESCRIPTION: &str = "read a page of the web {url, max_bytes?} with GET: HTML as readable text with its links, other text as it is, images to look at; only from hosts that you were granted";
const SCHEMA: &str = r#"{"type":"object","properties":{"url":{"type":"string","description":"such as https://example.org/page"},"max_bytes":{"type":"integer","description":"how much of the answer to read: 1000000 if left out, at most 8000000"}},"required":["url"],"additionalProperties":false}"#;

const BYTES: usize = 1_000_000;
const BYTES_MAX: usize = 8_000_000;
/// Pages up to this size are shown whole.
const SHOWN_BYTES: u32 = 16_384;
/// How much longer a call may take than what it fetches.
const SLACK_MS: u64 = 15_000;

/// The driver of `fetch`, for the agents of every tree: each call brings the hosts that its agent was granted.
#[derive(Clone)]
pub struct Fetch {
    outbound: Arc<dyn Outbound>,
}

impl fmt::Debug for Fetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fetch")
    }
}

impl Default for Fetch {
    fn default() -> Self {
        Self { outbound: Arc::new(SystemOutbound::default()) }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    url: String,
    max_bytes: Option<usize>,
}

impl Fetch {
    /// Resolves names through this instead of through the system.
    #[must_use]
    pub fn connecting(outbound: Arc<dyn Outbound>) -> Self {
        Self { outbound }
    }

    /// The name of the tool.
    #[must_use]
    pub fn tool_name() -> ToolName {
        match FETCH.parse() {
            Ok(name) => name,
            Err(_) => unreachable!("it is a name"),
        }
    }

    /// The tool.
    #[must_use]
    pub fn tool(&self) -> Arc<dyn Tool> {
        Arc::new(self.clone())
    }

    async fn fetch(&self, attempt: ToolAttempt) -> Result<ToolAnswer, String> {
        let args: Args = serde_json::from_str(&attempt.args)
            .map_err(|error| format!("`{FETCH}` cannot be called like this: {error}"))?;
        let bytes_max = args.max_bytes.unwrap_or(BYTES);
        if bytes_max == 0 || bytes_max > BYTES_MAX {
            return Err(format!("`max_bytes` is out of bounds: write from 1 to {BYTES_MAX}"));
        }
        let connector = Connector::new(attempt.rights.network.clone(), Arc::clone(&self.outbound));
        let log = ProxyLog::new(attempt.connections.clone());
        let fetched = get(&connector, &log, &args.url, bytes_max).await;
        let fetched = fetched.map_err(|why| why + how_to_ask(&log, attempt.rights.host_requests))?;
        off_worker(move || {
            let (status, url) = (fetched.status, &fetched.url);
            let cut = match fetched.is_cut {
                true => format!("; cut after {bytes_max} bytes, ask for more with `max_bytes`"),
                false => String::new(),
            };
            let head = format!("{status} from {url}{cut}");
            if let Some(image) = image(&fetched).filter(|_| status.is_success()) {
                return Ok(ToolAnswer::text(head).with_parts(vec![image]));
            }
            match page(&fetched) {
                Ok(text) if status.is_success() => Ok(ToolAnswer::text(format!("{head}\n\n{text}"))),
                Ok(text) => Err(format!("{head}\n\n{text}")),
                Err(why) => Err(format!("{head}\n\n{why}")),
            }
        })
        .await
    }
}

/// What helps an agent that may ask and was led to a host that its call did not name.
fn how_to_ask(log: &ProxyLog, requests: HostRequests) -> &'static str {
    let is_not_granted = |end| matches!(end, ProxiedEnd::Refused(ConnectRefusal::NotGranted { .. }));
    let was_refused = log.records().0.into_iter().any(|record| is_not_granted(record.end));
    if was_refused && requests == HostRequests::Ask {
        "; a person can allow it: fetch an address of that host itself"
    } else {
        ""
    }
}

impl Tool for Fetch {
    fn spec(&self) -> ToolSpec {
        let timeout_ms = u64::try_from(TOTAL_TIMEOUT.as_millis()).unwrap_or(u64::MAX) + SLACK_MS;
        ToolSpec {
            description: DESCRIPTION.to_owned(),
            schema: SCHEMA.to_owned(),
            // GET changes nothing.
            lost: OnLost::Repeatable,
            timeout_ms: Some(timeout_ms),
            shown_bytes: Some(SHOWN_BYTES),
            hosts: Some(HostsArgument::url("url")),
            ..ToolSpec::default()
        }
    }

    fn call(&self, attempt: ToolAttempt) -> Pending<Result<ToolAnswer, AttemptError>> {
        let fetch = self.clone();
        Box::pin(async move { Ok(fetch.fetch(attempt).await.unwrap_or_else(ToolAnswer::failed)) })
    }
}
