//! The connections of a run: on this machine's own address only, with a bound on their number, their heads and their
//! patience. A client without the key is answered before its request is read, and takes no place from the program.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, Uri, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::yield_now;
use tokio::time::sleep;

use super::call::{OutsideRequest, off_worker, pass};
use super::client::{ClientBody, client, whole};
use super::key::ShownKey;
use super::notice::Notice;
use super::run::Run;
use super::unauthenticated::{Newcomer, Newcomers};
use super::wire::{
    CallFormat, CallHead, CallRequest, Caller, GatewayError, GatewayErrorKind, GatewayRoute, headers_up,
};

/// Most connections at the same time. Beyond that, one that has not shown the key is closed; if there is none, more wait.
const CONNECTIONS_MAX: usize = 2_048;
/// How long the head of a request may take.
const HEAD_WAIT: Duration = Duration::from_secs(30);
/// Largest head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 128 * 1024;
/// Pause after a failed accept: the machine has no more descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Takes connections until the run closes.
pub(super) async fn listen(listener: TcpListener, run: Arc<Run>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let newcomers = Arc::new(Newcomers::default());
    loop {
        if room.available_permits() == 0 {
            newcomers.turn_away_oldest();
        }
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
        let accepted = tokio::select! {
            () = run.closing.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let (run, newcomer) = (Arc::clone(&run), newcomers.add());
        tokio::spawn(async move {
            serve(stream, &run, newcomer).await;
            drop(place);
        });
        // One that has sent its key is read before others push it out.
        yield_now().await;
    }
}

async fn serve(stream: TcpStream, run: &Arc<Run>, newcomer: Newcomer) {
    // Small pieces of a stream go out at once.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| {
        let run = Arc::clone(run);
        let shown = run.key.shown_in(request.uri(), request.headers());
        if shown == ShownKey::OfRun {
            newcomer.admit();
        }
        async move { Ok::<_, Infallible>(answer(request, run, shown).await) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let served = tokio::select! {
        served = serving => served,
        // Nothing outlives its run.
        () = run.broken_off.cancelled() => Ok(()),
        () = newcomer.turned_away() => Ok(()),
    };
    if let Err(error) = served {
        tracing::debug!(target: "spinney::gateway", %error, "connection ended");
    }
}

/// Answers one request.
async fn answer(request: Request<Incoming>, run: Arc<Run>, shown: ShownKey) -> Response<ClientBody> {
    let route = GatewayRoute::new(request.method(), request.uri(), request.headers());
    let caller = Caller::from_headers(request.headers());
    let (api, program) = (route.api(), caller.program);
    let refuse = |error: &GatewayError| {
        tracing::debug!(target: "spinney::gateway", kind = ?error.kind, "request refused");
        run.refusals.add(error);
        let mut response = whole(error.reply(api, program));
        // What was not read of the request is not read any more.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        response
    };
    if let Some(error) = wrong_key(shown) {
        if shown == ShownKey::Other && !run.has_met_another_key.swap(true, Ordering::Relaxed) {
            (run.on_notice)(Notice::OtherKey { error: error.clone() });
        }
        return refuse(&error);
    }
    run.requests.fetch_add(1, Ordering::Relaxed);
    match take(request, route, caller, Arc::clone(&run)).await {
        Ok(response) => response,
        Err(error) => refuse(&error),
    }
}

async fn take(
    request: Request<Incoming>,
    route: GatewayRoute,
    caller: Caller,
    run: Arc<Run>,
) -> Result<Response<ClientBody>, GatewayError> {
    let (head, body) = request.into_parts();
    let api = route.api();
    let format = match route {
        GatewayRoute::Call(format) => Some(format),
        GatewayRoute::CountTokens(_) | GatewayRoute::Models(_) => None,
        GatewayRoute::WebSocket => {
            let message = "spinney: the gateway does not support WebSocket: use HTTP";
            return Err(GatewayError::new(GatewayErrorKind::NeedsHttp, message));
        }
        GatewayRoute::Unknown(_) => return Err(not_found(&head.method, &head.uri)),
    };
    let url = route.upstream_url(&head.uri, run.upstream.base_url(api));
    let Some(url) = url else { return Err(not_found(&head.method, &head.uri)) };
    run.upstream.check_key(api)?;
    let body = run.bodies.read(body).await?;
    let (client, response) = client();
    let mut up = headers_up(&head.headers);
    match format {
        Some(format) => {
            let call = read_call(&run, format, &head, &body.bytes).await?;
            // The gateway read the body as UTF-8, so the provider must as well.
            up.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            let (path, query) = (head.uri.path().to_owned(), head.uri.query().map(str::to_owned));
            let outside =
                OutsideRequest { call: Arc::new(call), body, caller, url, path, query, headers: up };
            // A separate task: a call continues without its program until its usage is known.
            let calls = run.calls.clone();
            calls.spawn(outside.run(run, client));
        }
        None => {
            let (method, calls) = (head.method, run.calls.clone());
            calls.spawn(async move { pass(&run, api, method, &url, up, body, client).await });
        }
    }
    response.await.map_err(|_| lost())
}

/// Reads a call. If the user allows a refused name, the call is read again.
async fn read_call(
    run: &Run,
    format: CallFormat,
    head: &Parts,
    body: &Bytes,
) -> Result<CallRequest, GatewayError> {
    let upstream = run.upstream.kind(format.api());
    loop {
        let permitted = run.permissions.permitted();
        let (headers, uri, body) = (head.headers.clone(), head.uri.clone(), body.clone());
        let read = off_worker(body.len(), move || {
            let (path, query) = (uri.path(), uri.query());
            let head = CallHead { format, upstream, headers: &headers, path, query, permitted: &permitted };
            CallRequest::read(head, body)
        });
        match read.await? {
            Ok(call) => return Ok(call),
            Err(error) if run.permissions.allows(&error).await => {}
            Err(error) => return Err(error),
        }
    }
}

/// The error of a request without the key of the run.
fn wrong_key(shown: ShownKey) -> Option<GatewayError> {
    let message = match shown {
        ShownKey::OfRun => return None,
        ShownKey::Other => {
            "spinney: this request does not use this run's key; the program probably read one from a .env file, a stored \
             login or its configuration: make it use the key in ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY of its \
             environment"
        }
        ShownKey::None => {
            "spinney: this request has no key: the gateway serves only the program that it was started with, which has the \
             key in ANTHROPIC_API_KEY, OPENAI_API_KEY and GEMINI_API_KEY of its environment"
        }
    };
    Some(GatewayError::new(GatewayErrorKind::WrongKey, message))
}

fn not_found(method: &Method, uri: &Uri) -> GatewayError {
    let path: String = uri.path().chars().take(200).collect();
    let why = if path.ends_with("/responses/compact") {
        "it has no output cap, so no budget bounds it; compact with a call of /responses, as newer versions of Codex do"
    } else if path.contains("/projects/") || path.contains("/publishers/") {
        "it serves the Gemini API with a key, and not Vertex AI"
    } else {
        "it serves messages, chat completions, responses, Gemini's generateContent and streamGenerateContent, token counts \
         and lists of models"
    };
    let message = format!("spinney: the gateway does not serve {method} {path}: {why}");
    GatewayError::new(GatewayErrorKind::NotFound, message)
}

fn lost() -> GatewayError {
    GatewayError::new(GatewayErrorKind::Internal, "spinney: the gateway lost this call")
}
