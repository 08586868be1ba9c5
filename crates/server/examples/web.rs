//! A tree inside a web handler: `cargo run -p spinney-server --example web`, then
//! `curl -d 'What is a spinney?' 127.0.0.1:8080`.
//!
//! Each request starts a tree with its own budget. A client that goes away cancels its tree, so that nothing is spent
//! for an answer that will not be read.
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;

use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use spinney::prelude::*;
use spinney::record::ExitKind;
use tokio::net::TcpListener;

const QUESTION_BYTES_MAX: usize = 4_096;

const TREE: &str = "
name: web
budget: { cost_usd: 0.05, timeout: 30s }
models: { poet: { provider: scripted, script: none, price: { input_per_mtok_usd: 1, output_per_mtok_usd: 5 } } }
agents: { lead: { model: poet, limits: { max_tokens_per_step: 1000 } } }
";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:8080").await?;
    println!("listening on {}", listener.local_addr()?);
    serve(listener, home()?).await
}

/// The home outlives the requests. On disk (`SqliteJournal`), its trees survive a kill of the server.
pub(crate) fn home() -> Result<Arc<Home>, Box<dyn Error>> {
    let poet = FunctionModel::new(|attempt| async move {
        let goal = attempt.packet.messages.last().map(|last| last.text().into_owned());
        Ok(ModelAnswer::text(format!("You ask: {}", goal.unwrap_or_default())))
    });
    let drivers = Drivers::new().with_model("poet".parse()?, Arc::new(poet));
    Ok(Arc::new(Home::open(Arc::new(MemoryJournal::new()), drivers)))
}

pub(crate) async fn serve(listener: TcpListener, home: Arc<Home>) -> Result<(), Box<dyn Error>> {
    loop {
        let (stream, _) = listener.accept().await?;
        let home = Arc::clone(&home);
        let service = service_fn(move |request| handle(request, Arc::clone(&home)));
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        tokio::spawn(async move {
            // A client that breaks off is its own business.
            let _ = connection.await;
        });
    }
}

async fn handle(request: Request<Incoming>, home: Arc<Home>) -> Result<Response<String>, Infallible> {
    let (status, text) = match answer(request, &home).await {
        Ok((ExitKind::Completed, text)) => (StatusCode::OK, text),
        Ok((ExitKind::Exhausted, text)) => (StatusCode::PAYMENT_REQUIRED, text),
        Ok((ExitKind::Failed | ExitKind::Cancelled, text)) => (StatusCode::BAD_GATEWAY, text),
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()),
    };
    let mut response = Response::new(text + "\n");
    *response.status_mut() = status;
    Ok(response)
}

async fn answer(
    request: Request<Incoming>,
    home: &Home,
) -> Result<(ExitKind, String), Box<dyn Error + Send + Sync>> {
    let question = Limited::new(request.into_body(), QUESTION_BYTES_MAX).collect().await?.to_bytes();
    let question = String::from_utf8(question.to_vec())?;
    let file = TreeFile::parse("web.yaml", TREE)?.with_goal(question);
    let tree = CancelledOnDrop(home.start(file.definition).await?);
    tree.0.ended().await;
    let end = tree.0.snapshot().await?.end.ok_or("it was stopped")?;
    Ok((end.exit.kind(), end.shown.text))
}

/// A handler is dropped when its client goes away.
struct CancelledOnDrop(Tree);

impl Drop for CancelledOnDrop {
    fn drop(&mut self) {
        let tree = self.0.clone();
        tokio::spawn(async move {
            let Ok(snapshot) = tree.snapshot().await else { return };
            if snapshot.end.is_none()
                && let Some(root) = snapshot.agents.first()
            {
                // It may have ended meanwhile.
                let _ = tree.cancel(root.agent.clone(), "the client went away").await;
            }
        });
    }
}
