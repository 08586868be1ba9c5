//! Attempts for the scripted model and tools, and playing them.

use std::sync::{Arc, Mutex};

use spinney_drivers::scripted::{Script, ScriptedModel};
use spinney_kernel::budget::{Usage, Used};
use spinney_kernel::context::{Message, Origin, Packet};
use spinney_kernel::port::model::{AttemptError, DeltaKind, Model, ModelAnswer, ModelAttempt};
use spinney_kernel::port::tool;
use spinney_kernel::primitives::{Actor, Body, CallId, Category, TreeId};

/// The first attempt at the first turn of `root/a`, a lead.
pub(crate) fn attempt() -> ModelAttempt {
    let packet = packet(vec![Message::System("You lead.".into())]);
    let attempt =
        ModelAttempt::new(Arc::new(origin()), CallId(1), "k".to_owned(), "m".parse().unwrap(), packet);
    with(attempt, |attempt| attempt.output_cap = 2_000)
}

/// An attempt with other fields.
pub(crate) fn with<T>(mut attempt: T, change: impl FnOnce(&mut T)) -> T {
    change(&mut attempt);
    attempt
}

pub(crate) fn origin() -> Origin {
    Origin {
        tree: TreeId::new([7; 16]),
        path: ["root".parse().unwrap(), "a".parse().unwrap()].into(),
        role: "lead".parse().unwrap(),
        goal: "Compare PyTorch and JAX.".into(),
    }
}

pub(crate) fn packet(messages: Vec<Message>) -> Packet {
    let messages = Arc::new(messages.into_iter().map(Arc::new).collect());
    Packet { messages, tools: Arc::default(), tokens: 100 }
}

pub(crate) fn heard(text: &str) -> Message {
    Message::Heard { from: Actor::PERSON, text: text.to_owned(), category: Category::Dialog, along: None }
}

pub(crate) fn said(text: &str) -> Message {
    Message::Said { body: Body::text(text), asks: Vec::new() }
}

pub(crate) fn result(text: &str) -> Message {
    let (id, tool) = ("c1".to_owned(), "search".to_owned());
    let (id, tool) = (id.into(), tool.into());
    Message::Result { id, tool, text: text.to_owned(), is_error: false, along: None }
}

pub(crate) fn tool_attempt(args: &str) -> tool::ToolAttempt {
    let (origin, tool) = (Arc::new(origin()), "search".parse().unwrap());
    tool::ToolAttempt::new(origin, CallId(1), "k".to_owned(), tool, args.to_owned())
}

pub(crate) fn script(text: &str) -> Script {
    Script::parse("x.script.yaml", text).unwrap()
}

pub(crate) fn model(text: &str) -> ScriptedModel {
    script(text).model()
}

/// How an attempt ended, and the chunks that were streamed.
pub(crate) async fn play(
    model: &ScriptedModel,
    attempt: ModelAttempt,
) -> (Result<ModelAnswer, AttemptError>, Vec<String>) {
    let chunks = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&chunks);
    let deltas = Arc::new(move |kind, chunk: &str| {
        if kind == DeltaKind::Text {
            heard.lock().unwrap().push(chunk.to_owned());
        }
    });
    let end = model.call(Arc::new(attempt), deltas).await;
    let chunks = chunks.lock().unwrap().clone();
    (end, chunks)
}

/// What a script answers to one attempt.
pub(crate) async fn answer(text: &str, attempt: ModelAttempt) -> ModelAnswer {
    play(&model(text), attempt).await.0.unwrap()
}

/// How a script fails one attempt.
pub(crate) async fn missed(text: &str, attempt: ModelAttempt) -> AttemptError {
    play(&model(text), attempt).await.0.unwrap_err()
}

pub(crate) fn used(input: u64, output: u64) -> Used {
    Used::Tokens(Usage { input, output, ..Usage::default() })
}
