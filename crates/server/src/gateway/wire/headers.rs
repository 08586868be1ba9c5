//! Which headers pass. All do, in both directions, but for those named here.

use http::{HeaderMap, HeaderValue, header};

/// Headers that are about one connection and not about the message.
const HOP_BY_HOP: [&str; 8] = [
    "connection",
    "expect",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// What does not go up: the key of the run, what the connection to the provider writes itself, and the encodings that
/// the program takes, because usage is read from plain bytes.
const NOT_UP: [&str; 8] = [
    "accept-encoding",
    "api-key",
    "authorization",
    "content-length",
    "host",
    "proxy-authorization",
    "x-api-key",
    "x-goog-api-key",
];

/// What does not come down: what a provider says about its own address and connection.
const NOT_DOWN: [&str; 4] = ["alt-svc", "content-length", "proxy-authenticate", "strict-transport-security"];

/// The headers of a request that go to the provider. The user's key is not among them: the sender adds it.
#[must_use]
pub fn headers_up(from: &HeaderMap) -> HeaderMap {
    let mut up = passing(from, &NOT_UP);
    up.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    up
}

/// The headers of a response that go to the program. The length of the body is rewritten, if it is known.
#[must_use]
pub fn headers_down(from: &HeaderMap) -> HeaderMap {
    passing(from, &NOT_DOWN)
}

fn passing(from: &HeaderMap, dropped: &[&str]) -> HeaderMap {
    let named: Vec<&str> = from
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .collect();
    let mut to = HeaderMap::with_capacity(from.len());
    for (name, value) in from {
        let is_named = named.iter().any(|dropped| dropped.eq_ignore_ascii_case(name.as_str()));
        if !is_named && !HOP_BY_HOP.contains(&name.as_str()) && !dropped.contains(&name.as_str()) {
            to.append(name, value.clone());
        }
    }
    to
}
