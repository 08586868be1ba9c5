//! Counting tokens: each text once, when it arrives, with each tokenizer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use spinney::function_tool::RawCall;
use spinney::{Drivers, FunctionTool, Home};
use spinney_kernel::budget::{Usage, Used};
use spinney_kernel::port::Pending;
use spinney_kernel::port::model::{AttemptError, Deltas, Model, ModelAnswer, ModelAttempt};
use spinney_kernel::primitives::{Actor, Running, TokenCount};
use spinney_kernel::record::{Event, ToolAsk};
use spinney_kernel::rules::request::{Redirect, Request, Spawn};
use spinney_testkit::{Scenario, TestHome, definition, recorded};

/// The goal of an agent that receives messages meanwhile.
const SLOWLY: &str = "Slowly.";

/// Counts a third of the bytes, and records every text.
struct Counter {
    name: Option<&'static str>,
    counted: Mutex<Vec<String>>,
}

impl Counter {
    fn new(name: Option<&'static str>) -> Arc<Self> {
        Arc::new(Self { name, counted: Mutex::default() })
    }

    /// How often each text was counted.
    fn counted(&self) -> BTreeMap<String, usize> {
        let mut times = BTreeMap::new();
        for text in self.counted.lock().unwrap_or_else(|error| panic!("{error}")).iter() {
            *times.entry(text.clone()).or_default() += 1;
        }
        times
    }
}

impl Model for Counter {
    /// Calls a tool until the sixth turn, then answers.
    fn call(&self, attempt: Arc<ModelAttempt>, _: Deltas) -> Pending<Result<ModelAnswer, AttemptError>> {
        let turn = attempt.turn;
        let goal = format!(r#"{{"agent":"helper","goal":"Goal \u00e9 {turn}."}}"#);
        let asks = match (attempt.origin.role.as_str(), turn) {
            ("root", 1..=4) => vec![("look", format!(r#"{{"place":{turn}}}"#))],
            ("root", 5) => vec![("spawn_agent", goal)],
            _ => Vec::new(),
        };
        let asks = asks.into_iter().map(|(tool, args)| ToolAsk {
            id: format!("c{turn}"),
            tool: tool.to_owned(),
            args,
            tokens: None,
            told_tokens: None,
        });
        let used = Used::Tokens(Usage { input: attempt.packet.tokens, output: 1, ..Usage::default() });
        let text = format!("{} says {turn}", attempt.origin.role);
        let answer = ModelAnswer::text(text).with_asks(asks.collect()).with_used(used);
        let slowly = &*attempt.origin.goal == SLOWLY;
        Box::pin(async move {
            if slowly {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            Ok(answer)
        })
    }

    fn tokens(&self, text: &str) -> u64 {
        self.counted.lock().unwrap_or_else(|error| panic!("{error}")).push(text.to_owned());
        text.len().div_ceil(3) as u64
    }

    fn tokenizer(&self) -> Option<&str> {
        self.name
    }
}

fn home(models: [&Arc<Counter>; 3]) -> Home {
    let snapshot =
        FunctionTool::sync(|RawCall(attempt)| Ok::<_, String>(format!("found by {}", attempt.args)));
    let mut drivers =
        Drivers::new().with_tool("look".parse().unwrap(), Arc::new(snapshot.described("look around")));
    for (name, model) in ["m", "cheap", "free"].into_iter().zip(models) {
        drivers = drivers.with_model(name.parse().unwrap(), Arc::<Counter>::clone(model));
    }
    Home::open(Arc::clone(TestHome::new("rules: [{ say: x }]").journal()), drivers)
}

/// A turn counts only new texts: earlier counts are in the journal.
#[tokio::test(start_paused = true)]
async fn no_turn_counts_an_old_message_again() {
    let model = Counter::new(Some("thirds"));
    let home = home([&model, &model, &model]);
    let mut definition = definition("root turns=9 / helper later turns=3");
    definition.goal = SLOWLY.to_owned();
    let tree = home.start(definition).await.unwrap();
    tree.send("root".parse().unwrap(), "A letter.").await.unwrap();
    tree.ended().await;
    let counted = model.counted();
    let texts = [
        "Your task: Slowly.",
        "Your task: Goal é 5.",
        "- look: look around\n",
        "A letter.",
        "root says 1",
        "root says 2",
        "root says 4",
        r#"found by {"place":1}"#,
        r#"found by {"place":3}"#,
        r#"{"place":1}"#,
        "helper says 1",
        "root says 6",
    ];
    assert_eq!(texts.map(|text| (text, counted.get(text).copied())), texts.map(|text| (text, Some(1))));
}

/// Resuming a tree reads its counts back and makes none.
#[tokio::test(start_paused = true)]
async fn a_tree_that_is_resumed_counts_nothing_again() {
    let stage = TestHome::new("rules: [{ say: x }]");
    let open = |model: &Arc<Counter>| {
        let names = ["m", "cheap", "free"].into_iter();
        let drivers = names.fold(Drivers::new(), |drivers, name| {
            drivers.with_model(name.parse().unwrap(), Arc::<Counter>::clone(model))
        });
        Home::open(Arc::clone(stage.journal()), drivers)
    };
    let first = Counter::new(Some("thirds"));
    let home = open(&first);
    let mut definition = definition("root turns=9");
    definition.goal = SLOWLY.to_owned();
    let tree = home.start(definition).await.unwrap();
    tree.send("root".parse().unwrap(), "A letter.").await.unwrap();
    home.shutdown(spinney::Shutdown::Stop).await;
    let second = Counter::new(Some("thirds"));
    let home = open(&second);
    let tree = home.resume(tree.id()).await.unwrap();
    assert_eq!(second.counted(), BTreeMap::new());
    home.shutdown(spinney::Shutdown::Kill).await;
    drop(tree);
}

/// Three models with the same tokenizer count once; another tokenizer counts separately, and so does each unnamed one.
#[tokio::test(start_paused = true)]
async fn each_tokenizer_counts_once_however_many_models_have_it() {
    for (names, counts) in [
        ([Some("a"), Some("a"), Some("a")], 1),
        ([Some("a"), Some("b"), Some("a")], 2),
        ([None, Some("a"), None], 3),
    ] {
        let [m, cheap, free] = names.map(Counter::new);
        let home = home([&m, &cheap, &free]);
        let tree = home.start(definition("root turns=9 / helper later turns=3")).await.unwrap();
        tree.ended().await;
        let all = [m, cheap, free]
            .iter()
            .map(|model| model.counted().get("root says 1").copied())
            .collect::<Vec<_>>();
        assert_eq!(all.into_iter().flatten().sum::<usize>(), counts, "{names:?}");
    }
}

/// Every text from a person or another agent is counted when it arrives, even if it brings a count.
#[tokio::test(start_paused = true)]
async fn every_message_is_counted_on_its_way_in() {
    let model = Counter::new(Some("thirds"));
    let home = home([&model, &model, &model]);
    let tree = home.start(definition("root / helper later turns=3")).await.unwrap();
    let redirect = Redirect {
        agent: "root".parse().unwrap(),
        instruction: "Go on elsewhere.".to_owned(),
        tokens: Some(TokenCount::ZERO),
        running: Running::Finishes,
    };
    tree.redirect(redirect).await.unwrap();
    tree.send("root".parse().unwrap(), "A letter.").await.unwrap();
    let spawn = Spawn { goal: "Look.".to_owned(), ..Scenario::spawn("root", "helper") };
    tree.request(Actor::PERSON, Request::Spawn(spawn)).await.unwrap();
    tree.cancel("root".parse().unwrap(), "enough").await.unwrap();
    let count = |event: &Event| {
        if let Event::AgentRedirected { tokens, .. } = event {
            return *tokens;
        }
        if let Event::MessageSent { body, .. } = event { body.tokens } else { None }
    };
    let counts = recorded(&tree).await.into_iter().filter_map(|recorded| count(&recorded.event));
    assert_eq!(counts.collect::<Vec<_>>(), [6, 3].map(TokenCount::exact));
    assert_eq!(model.counted().get("Your task: Look."), Some(&1));
}
