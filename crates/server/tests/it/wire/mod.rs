//! The pure half of the gateway. What is random here is text and bytes, not values: whatever a program may write.

mod answers;
mod costs;
mod events;
mod gemini;
mod headers;
mod inputs;
mod json_text;
mod requests;
mod routes;
mod told_lines;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use spinney_drivers::http::BodyEnd;
use spinney_drivers::wire::{Permitted, Secrets};
use spinney_server::gateway::wire::{
    CallEnd, CallFormat, CallHead, CallRequest, CallUpstream, GatewayError, ResponseReader,
};

fn read(format: CallFormat, body: &str) -> Result<CallRequest, GatewayError> {
    read_at(format, CallUpstream::Provider, &HeaderMap::new(), Bytes::copy_from_slice(body.as_bytes()))
}

fn read_at(
    format: CallFormat,
    upstream: CallUpstream,
    headers: &HeaderMap,
    body: Bytes,
) -> Result<CallRequest, GatewayError> {
    let permitted = Permitted::new();
    let path = "/v1beta/models/m:generateContent";
    let head = CallHead { format, upstream, headers, path, query: None, permitted: &permitted };
    CallRequest::read(head, body)
}

fn stream_headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers
}

fn reader(call: &CallRequest) -> ResponseReader {
    call.reader(StatusCode::OK, &stream_headers(), Secrets::default())
}

/// What passes of a response that arrives in chunks of these sizes, and its outcome.
fn passed(mut reader: ResponseReader, response: &[u8], sizes: &[usize]) -> (Vec<u8>, CallEnd) {
    let (mut rest, mut passed) = (response, Vec::new());
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (chunk, after) = rest.split_at((*size).min(rest.len()));
        passed.extend_from_slice(&reader.feed(Bytes::copy_from_slice(chunk)).bytes);
        rest = after;
    }
    let end = reader.finish(BodyEnd::Clean);
    passed.extend_from_slice(&end.rest);
    (passed, end)
}
