//! Requests of a login: to one host each, at addresses that are checked, without redirects, and bounded.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use reqwest::Url;
use reqwest::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use serde_json::Value;
use spinney_kernel::definition::{HttpAddress, Network};
use tokio::time::timeout;

use super::http_client::{http_client, innermost};
use super::offered::one_line;
use crate::network::Outbound;

const TIMEOUT: Duration = Duration::from_secs(20);
const BODY_BYTES_MAX: usize = 256 << 10;
const HEADER_BYTES_MAX: usize = 4 << 10;

/// What is sent.
pub(super) enum LoginBody {
    None,
    Json(Value),
    Form(String),
}

/// What came back.
pub(super) struct LoginPage {
    pub(super) status: u16,
    pub(super) body: Value,
    /// What a server wants, if it says so.
    pub(super) authenticate: String,
}

/// Sends one request. The body is null if it is not JSON.
pub(super) async fn send(
    outbound: &Arc<dyn Outbound>,
    url: &str,
    body: LoginBody,
) -> Result<LoginPage, String> {
    let address = HttpAddress { url: url.to_owned(), auth: None };
    let rule = address.check().map_err(|why| format!("{}: {why}", one_line(url, 200)))?;
    let host = one_line(&rule.to_string(), 200);
    let (client, url) = http_client(&address, Network::hosts([rule]), Arc::clone(outbound)).await?;
    let request = match body {
        LoginBody::None => client.request(Method::GET, url),
        LoginBody::Json(value) => {
            client.request(Method::POST, url).header(CONTENT_TYPE, "application/json").body(value.to_string())
        }
        LoginBody::Form(form) => client
            .request(Method::POST, url)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(form),
    };
    let exchange = async {
        let mut response = request.header(ACCEPT, "application/json, text/event-stream").send().await?;
        let authenticate = response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
        let authenticate =
            authenticate.filter(|value| value.len() <= HEADER_BYTES_MAX).unwrap_or_default().to_owned();
        let status = response.status().as_u16();
        let mut body = Vec::new();
        // What a server says unasked has no end, and is not needed here.
        let is_stream = response
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        while !is_stream && let Some(chunk) = response.chunk().await? {
            let room = BODY_BYTES_MAX.saturating_sub(body.len());
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if chunk.len() > room {
                break;
            }
        }
        let body = serde_json::from_slice(&body).unwrap_or_default();
        Ok::<_, reqwest::Error>(LoginPage { status, body, authenticate })
    };
    match timeout(TIMEOUT, exchange).await {
        Ok(Ok(page)) => Ok(page),
        Ok(Err(error)) => Err(format!("{host} cannot be asked: {}", innermost(&error.without_url()))),
        Err(_) => Err(format!("{host} did not answer within {} s", TIMEOUT.as_secs())),
    }
}

/// The body of a form, or the query of a URL.
pub(super) fn form(fields: &[(&str, &str)]) -> String {
    let mut url =
        Url::parse("http://localhost/").unwrap_or_else(|error| unreachable!("it is a URL: {error}"));
    url.query_pairs_mut().extend_pairs(fields);
    url.query().unwrap_or_default().to_owned()
}
