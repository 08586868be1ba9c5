//! A running tool asks the model of its agent: a call in that agent's budget, which nothing reads but the tool.

use std::sync::{Arc, Mutex};

use spinney::function_tool::RawCall;
use spinney::{Drivers, FunctionTool, Home, Tree, TreeFile};
use spinney_kernel::port::model::Purpose;
use spinney_kernel::port::{ModelReply, NoReply};
use spinney_kernel::record::{Event, Exit, Outcome};
use spinney_kernel::world::TreeState;
use spinney_store::MemoryJournal;
use spinney_testkit::scripted::{Script, ScriptedModel};
use spinney_testkit::{Recorder, recorded, settled};

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
    asked(output_cap, budget, 1).await
}

/// The same with several questions at once.
async fn asked(output_cap: u64, budget: &str, times: usize) -> Stage {
    let replies: Arc<Mutex<Vec<Reply>>> = Arc::default();
    let kept = Arc::clone(&replies);
    let ask = FunctionTool::new(move |RawCall(attempt)| {
        let kept = Arc::clone(&kept);
        async move {
            let questions = (0..times).map(|_| attempt.model.ask("Which one?".to_owned(), output_cap));
            let replies = futures::future::join_all(questions).await;
            let said = format!("{replies:?}");
            kept.lock().unwrap().extend(replies);
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
limits: {{ parallel: 1 }}
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

/// Of two at once, the second one is refused if the agent could not answer any more.
#[tokio::test(start_paused = true)]
async fn model_calls_of_tools_leave_their_agent_an_answer() {
    let Stage { tree, replies, .. } = asked(3_000, "tokens: 9000", 2).await;
    let replies = replies.lock().unwrap().clone();
    let answered = replies.iter().filter(|reply| reply.is_ok()).count();
    assert_eq!((replies.len(), answered), (2, 1), "{replies:?}");
    let ended = recorded(&tree).await.into_iter().find_map(|recorded| match recorded.event {
        Event::AgentEnded { exit, .. } => Some(exit),
        _ => None,
    });
    assert_eq!(ended, Some(Exit::Completed));
}

/// Nothing starts in a paused tree, so what a tool asks is refused and the tool can end.
#[tokio::test(start_paused = true)]
async fn a_tool_of_a_paused_agent_asks_no_model() {
    let replies: Arc<Mutex<Vec<Reply>>> = Arc::default();
    let kept = Arc::clone(&replies);
    let paused = Arc::new(tokio::sync::Notify::new());
    let (waits, begun) = (Arc::clone(&paused), Arc::new(tokio::sync::Notify::new()));
    let begins = Arc::clone(&begun);
    let ask = FunctionTool::new(move |RawCall(attempt)| {
        let (kept, waits, begins) = (Arc::clone(&kept), Arc::clone(&waits), Arc::clone(&begins));
        async move {
            begins.notify_one();
            waits.notified().await;
            let reply = attempt.model.ask("Which one?".to_owned(), 100).await;
            kept.lock().unwrap().push(reply);
            Ok::<_, String>("asked")
        }
    });
    let model = Script::parse("s.yaml", SCRIPT).unwrap().model();
    let drivers = Drivers::new()
        .with_model("m".parse().unwrap(), Arc::new(model))
        .with_tool("ask".parse().unwrap(), Arc::new(ask));
    let file = "
name: asking
goal: Go.
budget: { cost_usd: 1 }
models: { m: { provider: scripted, script: none, price: { input_per_mtok_usd: 1, output_per_mtok_usd: 1 } } }
agents:
  lead: { model: m, tools: [ask] }
entry: lead
";
    let home = Home::open(Arc::new(MemoryJournal::new()), drivers);
    let tree = home.start(TreeFile::parse("tree.yaml", file).unwrap().definition).await.unwrap();
    begun.notified().await;
    tree.pause("lead".parse().unwrap()).await.unwrap();
    paused.notify_one();
    let settled = settled(&tree).await;
    assert_eq!(settled.state, TreeState::Paused);
    let reply = replies.lock().unwrap().pop().unwrap();
    assert!(matches!(reply, Err(NoReply::NotAsked(_))), "{reply:?}");
}
