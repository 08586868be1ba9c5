//! Calls over HTTP, against our own upstream that plays raw bytes.

mod announced;
mod calls;
mod chaos;
mod counting;
mod packets;
mod settling;
mod trial;
mod unfinished;
mod upstream;

use std::time::Duration;

use spinney_drivers::http::{
    HttpClient, HttpLimits, LastAnnouncement, ModelKey, Proxies, WireAttemptError, WireCall,
};
use spinney_drivers::wire::{
    CacheTime, Keep, ServedFrom, WireAnswer, WireDelta, WireFormat, WireMessage, WireParams, WirePart,
    WireRequest,
};

use super::wire::KEY;

/// Bounds that a test can wait for.
const SHORT: HttpLimits = HttpLimits {
    connect: Duration::from_secs(5),
    head: Duration::from_secs(5),
    idle: Duration::from_secs(5),
    total: Duration::from_secs(20),
    body_bytes_max: 8 * 1024 * 1024,
};

fn client(limits: HttpLimits) -> HttpClient {
    HttpClient::new(limits, Proxies::None).unwrap()
}

fn call(format: WireFormat, base_url: &str) -> WireCall {
    let messages = vec![WireMessage::User(vec![WirePart::Text("hi".into())])];
    // As our own models of Anthropic are called.
    let cache = (format == WireFormat::AnthropicMessages).then_some(CacheTime::FiveMinutes);
    let params = WireParams { cache, ..WireParams::default() };
    let request =
        WireRequest { model: "asked".into(), messages, output_cap: 100, params, ..WireRequest::default() };
    WireCall {
        format,
        endpoint: format.endpoint(base_url, "asked"),
        request,
        key: Some(ModelKey::new(KEY.to_owned())),
        extra: Vec::new(),
        keep: Keep::Everything,
        served_from: ServedFrom::Elsewhere,
        announcement: LastAnnouncement::default(),
    }
}

/// One attempt, and the text that was streamed.
async fn ask(limits: HttpLimits, call: WireCall) -> (Result<WireAnswer, Box<WireAttemptError>>, String) {
    let mut streamed = String::new();
    let answer = client(limits)
        .ask(call, &mut |delta| {
            if let WireDelta::Text(text) = delta {
                streamed.push_str(text);
            }
        })
        .await;
    (answer, streamed)
}
