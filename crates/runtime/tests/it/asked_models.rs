//! A running tool asks the model of its agent: a call in that agent's budget, which nothing reads but the tool.

use std::sync::{Arc, Mutex};

use spinney::function_tool::RawCall;
use spinney::{Drivers, FunctionTool, Home, Tree, TreeFile};
use spinney_kernel::port::model::Purpose;
use spinney_kernel::port::{ModelReply, NoReply};
use spinney_kernel::record::{Event, Outcome};
use spinney_store::MemoryJournal;
use spinney_testkit::scripted::{Script, ScriptedModel};
use spinney_testkit::{Recorder, recorded};

const SCRIPT: &str = "
rules:
- { when: { of_tool: true }, say: 'A red one.' }
- { when: { turn: 1 }, call: [{ tool: ask, args: {} }] }
- { say: '{{ last }}' }
";

type Reply = Result<ModelReply, NoReply>;

struct Stage {
    tree: Tree,
    model: Arc<Recorder<ScriptedModel>>,
    replies: Arc<Mutex<Vec<Reply>>>,
}

/// A tree whose lead has a tool that asks for this many tokens, and says what it got.
async fn ended(output_cap: u64, budget: &str) -> Stage {
    let replies: Arc<Mutex<Vec<Reply>>> = Arc::default();
    let kept = Arc::clone(&replies);
    let ask = FunctionTool::new(move |RawCall(attempt)| {
        let kept = Arc::clone(&kept);
        async move {
            let reply = attempt.model.ask("Which one?".to_owned(), output_cap).await;
            let said = format!("{reply:?}");
            kept.lock().unwrap().push(reply);
            Ok::<_, String>(said)
        }
    });
    let model = Arc::new(Recorder::new(Script::parse("s.yaml", SCRIPT).unwrap().model()));
    let drivers = Drivers::new()
        .with_model("m".parse().unwrap(), Arc::clone(&model) as _)
        .with_tool("ask".parse().unwrap(), Arc::new(ask));
    let file = format!(
        "
name: asking
goal: Go.
budget: {{ {budget} }}
models: {{ m: {{ provider: scripted, script: none, price: {{ input_per_mtok_usd: 1, output_per_mtok_usd: 10 }} }} }}
agents:
  lead: {{ model: m, tools: [ask] }}
entry: lead
"
    );
    let home = Home::open(Arc::new(MemoryJournal::new()), drivers);
    let tree = home.start(TreeFile::parse("tree.yaml", &file).unwrap().definition).await.unwrap();
    tree.ended().await;
    Stage { tree, model, replies }
}

#[tokio::test(start_paused = true)]
async fn a_tool_asks_the_model_and_its_agent_pays() {
    let Stage { tree, model, replies } = ended(100, "cost_usd: 1").await;
    let reply = replies.lock().unwrap().pop().unwrap().unwrap();
    assert_eq!((reply.text.as_str(), reply.is_cut), ("A red one.", false));
    let attempts = model.attempts();
    let purposes: Vec<Purpose> = attempts.iter().map(|attempt| attempt.purpose).collect();
    assert_eq!(purposes, [Purpose::Turn, Purpose::OfTool, Purpose::Turn]);
    // It reads the message and nothing else, and has no tools.
    let packet = &attempts[1].packet;
    assert_eq!((packet.messages.len(), packet.tools.len(), attempts[1].output_cap), (1, 0, 100));
    assert_eq!(packet.messages[0].text(), "Which one?");
    // The agent's own context has the tool's answer and not the model's.
    assert!(attempts[2].packet.messages.iter().all(|message| message.text() != "A red one."));

    let mut asked = None;
    let mut spent = Vec::new();
    for recorded in recorded(&tree).await {
        match recorded.event {
            Event::CallAsked { call, work, .. } if work.of_tool().is_some() => {
                asked = Some((call, work.of_tool()));
            }
            Event::CallEnded { call, spent: nanos, outcome: Outcome::Done { .. }, .. } => {
                spent.push((call, nanos));
            }
            _ => {}
        }
    }
    let (call, of) = asked.unwrap();
    // It ended before the tool call that it was made for.
    let places =
        [Some(call), of].map(|call| spent.iter().position(|(ended, _)| Some(*ended) == call).unwrap());
    assert!(places[0] < places[1], "{spent:?}");
    assert!(!spent[places[0]].1.is_zero());
    let root = tree.snapshot().await.unwrap().agents.remove(0);
    let all = spent
        .iter()
        .fold(Default::default(), |all: spinney_kernel::budget::Amounts, (_, nanos)| all.plus(nanos));
    assert_eq!(root.spent, all);
}

/// What does not fit is refused: it halts nothing, and the tool reads why.
#[tokio::test(start_paused = true)]
async fn a_model_call_of_a_tool_that_does_not_fit_is_refused() {
    let Stage { tree, model, replies } = ended(4_000, "tokens: 3000").await;
    let reply = replies.lock().unwrap().pop().unwrap();
    let Err(NoReply::NotAsked(why)) = reply else { panic!("{reply:?}") };
    assert!(why.contains("tokens"), "{why}");
    assert_eq!(model.attempts().len(), 2);
    assert!(!recorded(&tree).await.iter().any(|recorded| matches!(recorded.event, Event::TreeHalted { .. })));
}
