//! The connections of a run: on this machine's own address only, with a bound on their number, their heads and their
//! patience. Whoever has no key gets an answer before anything of the request is read.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::{HeaderValue, Method, Request, Response, Uri, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::sleep;

use super::call::{OutsideRequest, off_worker, pass};
use super::client::{ClientBody, client, whole};
use super::run::Run;
use super::wire::{CallRequest, Caller, GatewayError, GatewayErrorKind, GatewayRoute, headers_up};

/// Most connections at the same time; more wait until one is closed.
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
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
        let accepted = tokio::select! {
            () = run.closing.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let run = Arc::clone(&run);
        tokio::spawn(async move {
            serve(stream, &run).await;
            drop(place);
        });
    }
}

async fn serve(stream: TcpStream, run: &Arc<Run>) {
    // Small pieces of a stream go out at once.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| {
        let run = Arc::clone(run);
        async move { Ok::<_, Infallible>(answer(request, run).await) }
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
    };
    if let Err(error) = served {
        tracing::debug!(target: "spinney::gateway", %error, "connection ended");
    }
}

/// Answers one request.
async fn answer(request: Request<Incoming>, run: Arc<Run>) -> Response<ClientBody> {
    let route = GatewayRoute::of(request.method(), request.uri(), request.headers());
    let caller = Caller::of(request.headers());
    let (api, program) = (route.api(), caller.program);
    let refuse = |error: &GatewayError| {
        tracing::debug!(target: "spinney::gateway", kind = ?error.kind, "request refused");
        run.refusals.add(error);
        let mut response = whole(error.reply(api, program));
        // What was not read of the request is not read any more.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        response
    };
    if !run.key.opens(request.headers()) {
        let message = "spinney: this gateway serves only the program that it was started with";
        return refuse(&GatewayError::new(GatewayErrorKind::WrongKey, message));
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
        GatewayRoute::CountTokens | GatewayRoute::Models(_) => None,
        GatewayRoute::WebSocket => {
            let message = "spinney: the gateway speaks HTTP and no WebSocket";
            return Err(GatewayError::new(GatewayErrorKind::NeedsHttp, message));
        }
        GatewayRoute::Unknown(_) => return Err(not_found(&head.method, &head.uri)),
    };
    let url = route.upstream_url(&head.uri, run.upstream.base_url(api));
    let Some(url) = url else { return Err(not_found(&head.method, &head.uri)) };
    run.upstream.check_key(api)?;
    let body = run.bodies.read(body).await?;
    let (client, response) = client();
    let up = headers_up(&head.headers);
    match format {
        Some(format) => {
            let upstream = run.upstream.kind(api);
            let (headers, bytes) = (head.headers.clone(), body.bytes.clone());
            let read = off_worker(bytes.len(), move || CallRequest::read(format, upstream, &headers, bytes));
            let call = read.await??;
            let path = head.uri.path().to_owned();
            let outside = OutsideRequest { call: Arc::new(call), body, caller, url, path, headers: up };
            // A task of its own: a call goes on when its program is gone, until its usage is known.
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

fn not_found(method: &Method, uri: &Uri) -> GatewayError {
    let path: String = uri.path().chars().take(200).collect();
    let why = if path.ends_with("/responses/compact") {
        "it has no output cap, so no budget bounds it; compact with a call of /responses, as newer versions of Codex do"
    } else {
        "it serves messages, chat completions, responses, token counts and lists of models"
    };
    let message = format!("spinney: the gateway does not serve {method} {path}: {why}");
    GatewayError::new(GatewayErrorKind::NotFound, message)
}

fn lost() -> GatewayError {
    GatewayError::new(GatewayErrorKind::Internal, "spinney: the gateway lost this call")
}
