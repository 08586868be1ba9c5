//! `rig-0-40 TURNS`: the agent of rig-core 0.40 asks for a trivial tool in each of so many turns, then answers. The
//! model says what ours says in the same bench, at once; no hook and no subscriber of traces is attached.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rig_core_0_40::OneOrMany;
use rig_core_0_40::agent::AgentBuilder;
use rig_core_0_40::completion::{
    CompletionError, CompletionModel, CompletionRequest, CompletionResponse, Prompt, Usage,
};
use rig_core_0_40::message::AssistantContent;
use rig_core_0_40::streaming::StreamingCompletionResponse;
use rig_core_0_40::tool::Tool;

/// What a step says and what a tool returns: 200 bytes, as in our benches.
const STEP_BYTES: usize = 200;

fn main() {
    let turns = std::env::args().nth(1).and_then(|word| word.parse().ok()).expect("say how many turns");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let said = runtime.block_on(run(turns));
    assert_eq!(said.len(), STEP_BYTES);
}

async fn run(turns: usize) -> String {
    let calls = Arc::new(AtomicUsize::new(0));
    let model = Instant { turns, calls: Arc::clone(&calls) };
    let agent = AgentBuilder::new(model).preamble("Do it.").tool(Noop).build();
    let said = agent.prompt("Grow.").max_turns(turns + 2).await.expect("an answer");
    assert_eq!(calls.load(Ordering::Relaxed), turns + 1);
    said
}

struct Noop;

#[derive(serde::Deserialize)]
struct Nothing {}

impl Tool for Noop {
    const NAME: &'static str = "noop";
    type Error = Infallible;
    type Args = Nothing;
    type Output = String;

    fn description(&self) -> String {
        String::new()
    }

    fn parameters(&self) -> serde_json::Value {
        serde_json::json!({"type": "object"})
    }

    async fn call(&self, _: Nothing) -> Result<String, Infallible> {
        Ok("y".repeat(STEP_BYTES))
    }
}

/// Asks for the tool in so many turns, then answers.
#[derive(Clone)]
struct Instant {
    turns: usize,
    calls: Arc<AtomicUsize>,
}

impl CompletionModel for Instant {
    type Response = ();
    type StreamingResponse = ();
    type Client = ();

    fn make((): &(), _: impl Into<String>) -> Self {
        Self { turns: 0, calls: Arc::default() }
    }

    async fn completion(&self, _: CompletionRequest) -> Result<CompletionResponse<()>, CompletionError> {
        let turn = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let mut choice = OneOrMany::one(AssistantContent::text("x".repeat(STEP_BYTES)));
        if turn <= self.turns {
            choice.push(AssistantContent::tool_call(format!("c{turn}"), Noop::NAME, serde_json::json!({})));
        }
        let usage = Usage { input_tokens: 10, output_tokens: 50, ..Usage::default() };
        Ok(CompletionResponse { choice, usage, raw_response: (), message_id: None })
    }

    async fn stream(&self, _: CompletionRequest) -> Result<StreamingCompletionResponse<()>, CompletionError> {
        Err(CompletionError::ProviderError("nobody streams here".to_owned()))
    }
}
