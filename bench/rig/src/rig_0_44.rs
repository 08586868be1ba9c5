//! `rig-0-44 TURNS`: the agent of rig 0.44 asks for a trivial tool in each of so many turns, then answers. The model is
//! its own wire that says what ours says in the same bench, at once, and sends nothing anywhere; no hook, no
//! recorder and no subscriber of traces is attached.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rig_agent::AgentBuilder;
use rig_core::completion::options::{Mapping, OptionFields, OptionMap};
use rig_core::completion::{Accepts, CompletionRequest, ReplayTarget, Usage};
use rig_core::driver::{Exchange, Model, Opened, Opening, Transport};
use rig_core::error::{EncodeError, ProviderError};
use rig_core::message::Api;
use rig_core::operation::{Block, CallFragment, Completion, Finish};
use rig_core::tool::{Tool, ToolContext};
use rig_core::wire::document::{Reassemble, Serves};
use rig_core::wire::{Decoder, Descriptor, Flow, Mode, Out, Wire, WireEvent};

/// What a step says and what a tool returns: 200 bytes, as in our benches.
const STEP_BYTES: usize = 200;

fn main() {
    let turns = std::env::args().nth(1).and_then(|word| word.parse().ok()).expect("say how many turns");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let said = runtime.block_on(run(turns));
    assert_eq!(said.len(), STEP_BYTES);
}

async fn run(turns: usize) -> String {
    let model = Model::new(Instant, Script { turns, turn: Arc::new(AtomicUsize::new(0)) });
    let calls = Arc::clone(&model.transport.turn);
    let agent = AgentBuilder::new(model).preamble("Do it.").tool(Noop).build();
    let response = agent.prompt("Grow.").max_turns(turns + 2).run().await.expect("an answer");
    assert_eq!(calls.load(Ordering::Relaxed), turns + 1);
    response.output()
}

struct Noop;

#[derive(serde::Deserialize)]
struct Nothing {}

impl Tool for Noop {
    const NAME: &'static str = "noop";
    type Args = Nothing;
    type Output = String;
    type Error = Infallible;

    fn description(&self) -> String {
        String::new()
    }

    fn parameters(&self) -> serde_json::Value {
        serde_json::json!({"type": "object"})
    }

    async fn call(&self, _: &mut ToolContext, _: Nothing) -> Result<String, Infallible> {
        Ok("y".repeat(STEP_BYTES))
    }
}

/// One whole reply.
struct Reply {
    text: String,
    /// The id of the one tool call, if it asks for one.
    call: Option<String>,
}

/// Asks for the tool in so many turns, then answers.
#[derive(Clone)]
struct Script {
    turns: usize,
    turn: Arc<AtomicUsize>,
}

impl Transport<Instant> for Script {
    fn send(&self, _: CompletionRequest, _: Exchange) -> Opening<Reply> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) + 1;
        let call = (turn <= self.turns).then(|| format!("c{turn}"));
        let reply = Reply { text: "x".repeat(STEP_BYTES), call };
        // A document of its own would only be cloned; a real one is as large as the reply.
        let opened = Opened::new(futures::stream::iter([Ok(reply)])).with_document(serde_json::Value::Null);
        Opening::ready(opened)
    }
}

/// A wire on which requests and replies travel as they are.
#[derive(Clone, Debug)]
struct Instant;

impl Wire for Instant {
    type Op = Completion;
    type Payload = CompletionRequest;
    type Frame = Reply;
    type Decoder<'id> = Whole<'id>;
    type Reassembler = NoDocument;

    fn describe(&self) -> Descriptor<'_> {
        Descriptor::new("instant").model("instant").replay(self)
    }

    fn encode(&self, request: CompletionRequest, _: Mode) -> Result<CompletionRequest, EncodeError> {
        Ok(request)
    }

    fn decoder<'id>(&self) -> Whole<'id> {
        Whole(PhantomData)
    }
}

impl ReplayTarget for Instant {
    fn api(&self) -> Api {
        Api::from_static("instant")
    }

    fn provider(&self) -> &str {
        "instant"
    }

    fn model(&self) -> &str {
        "instant"
    }

    fn accepts(&self, _: &str) -> Accepts {
        Accepts::ALL
    }

    fn map_options(&self, _: &CompletionRequest, _: OptionFields<'_>) -> OptionMap {
        // No option is ever set.
        OptionMap {
            reasoning: Mapping::Nothing,
            cache: Mapping::Nothing,
            service_tier: Mapping::Nothing,
            verbosity: Mapping::Nothing,
            parallel_tool_calls: Mapping::Nothing,
            top_p: Mapping::Nothing,
            seed: Mapping::Nothing,
            stop: Mapping::Nothing,
        }
    }

    fn states_finish_reason(&self) -> bool {
        false
    }
}

/// Writes a whole reply in one step.
struct Whole<'id>(PhantomData<fn(&'id ()) -> &'id ()>);

impl<'id> Decoder<'id, Completion, Reply> for Whole<'id> {
    type Event = Reply;

    fn classify(&self, reply: Reply) -> WireEvent<Reply> {
        WireEvent::Known(reply)
    }

    fn decode(&mut self, reply: Reply, mut out: Out<'id, Completion>) -> Result<Flow, ProviderError> {
        out.run(Block::Text, &reply.text)?;
        out.end_run()?;
        if let Some(id) = &reply.call {
            let index = out.fresh_index();
            let fragment = CallFragment { id: Some(id), name: Some(Noop::NAME), ..CallFragment::default() };
            out.fragment(Some(index), fragment)?;
            out.announce(index, serde_json::json!({}))?;
            out.finish(index)?;
        }
        let mut usage = Usage::default();
        (usage.input_tokens, usage.output_tokens) = (Some(10), Some(50));
        Ok(out.end(Finish { usage, ..Finish::default() }))
    }
}

/// Keeps no document of a reply.
#[derive(Default)]
struct NoDocument;

impl Serves<Completion> for NoDocument {}

impl Reassemble<Reply> for NoDocument {
    fn absorb(&mut self, _: &Reply) {}

    fn finish(self) -> serde_json::Value {
        serde_json::Value::Null
    }
}
