//! G12: headers pass in both directions, but for those that `docs/gateway.md` names.

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;
use spinney_server::gateway::wire::{headers_down, headers_up};

const HOP: [&str; 8] = [
    "connection",
    "expect",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
const UP: [&str; 7] = [
    "accept-encoding",
    "api-key",
    "authorization",
    "content-length",
    "host",
    "proxy-authorization",
    "x-api-key",
];
const DOWN: [&str; 4] = ["alt-svc", "content-length", "proxy-authenticate", "strict-transport-security"];

fn map(headers: &[(String, Vec<u8>)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_bytes(value).unwrap());
    }
    map
}

fn without(headers: &[(String, Vec<u8>)], named: &[&str]) -> HeaderMap {
    let is_kept = |name: &str| !HOP.contains(&name) && !named.contains(&name);
    map(&headers.iter().filter(|(name, _)| is_kept(name)).cloned().collect::<Vec<_>>())
}

fn headers() -> impl Strategy<Value = Vec<(String, Vec<u8>)>> {
    let known = [HOP.as_slice(), &UP, &DOWN, &["anthropic-beta", "x-request-id", "set-cookie"]].concat();
    let name = prop_oneof![prop::sample::select(known).prop_map(str::to_owned), "x-[a-z0-9-]{1,12}"];
    let value = prop_oneof![
        "[a-z0-9 ,;=/]{0,12}".prop_map(String::into_bytes),
        prop::collection::vec(0x80_u8..=0xff, 0..8),
    ];
    // What a connection names is also dropped; that has its own test.
    let value = value.prop_filter("names of headers", |value| !value.starts_with(b"x-"));
    prop::collection::vec((name, value), 0..16)
}

proptest! {
    #[test]
    fn g12_headers_pass_but_for_the_named_ones(headers in headers()) {
        let mut up = without(&headers, &UP);
        up.insert("accept-encoding", HeaderValue::from_static("identity"));
        prop_assert_eq!(headers_up(&map(&headers)), up);
        prop_assert_eq!(headers_down(&map(&headers)), without(&headers, &DOWN));
    }
}

#[test]
fn what_the_connection_names_is_about_the_connection() {
    let mut headers = HeaderMap::new();
    headers.insert("connection", HeaderValue::from_static("close, X-Hop"));
    headers.insert("x-hop", HeaderValue::from_static("1"));
    headers.insert("x-other", HeaderValue::from_static("2"));
    let down = headers_down(&headers);
    assert_eq!(down.len(), 1);
    assert_eq!(down["x-other"], "2");
}

#[test]
fn g12_the_page_names_every_header_that_does_not_pass() {
    let page = include_str!("../../../../../docs/gateway.md");
    for name in [HOP.as_slice(), &UP, &DOWN].concat() {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}
